//! What the body of an answer under a program goes through on its way to one client: out of gzip for who does not take that, or
//! what the program names in `resp.filters`; and a page with what it includes.

use std::rc::Rc;
use std::sync::Arc;

use cache::{EsiPage, Object};
use coding::GZIP_HEAD;
use message::{FieldName, ResponseHead};
use rules::content_coding;

use crate::answer_body::AnswerBody;
use crate::page_parts::PageParts;
use crate::records::RecordKind;
use crate::transaction::deliver::{Answer, Made};
use crate::transaction::synth::Synth;
use crate::transaction::{BeginIncluded, Step, Transaction};
use crate::vcl_story::filter_names;

/// A gzip ends with the length of its text, modulo 2³² (RFC 1952 §2.3.1).
const LENGTH_BYTES: u64 = 4;
/// A text of so many bytes has a length that this says in full; what can be of a larger one it does not.
const LENGTH_SAID_MAX: u64 = 4_000_000;

/// What a body is, before it goes through anything.
pub(crate) struct Coded {
    /// In gzip, by the head that it was stored or came with.
    is_gzip: bool,
    /// What is to be included in it.
    page: Option<Arc<EsiPage>>,
    /// By vcl_synth, which may answer a filter that nobody knows: it goes through none, or it would be asked for ever.
    is_final: bool,
}

impl Coded {
    pub(crate) fn of(answer: &Answer) -> Coded {
        let fields = match answer {
            Answer::Stored { object, .. } => object.fields(),
            Answer::Followed { head, .. } => head.fields.view(),
            Answer::Origin { head, body } if !body.is_none() => head.fields.view(),
            Answer::Made(Made { made, is_final: false, .. }) => made.head.fields.view(),
            Answer::Made(Made { is_final: true, .. }) => return Coded { is_gzip: false, page: None, is_final: true },
            _ => return Coded { is_gzip: false, page: None, is_final: false },
        };
        Coded { is_gzip: filter_names::is_gzip(fields), page: answer.page().cloned(), is_final: false }
    }
}

/// The body behind its filters; the head says what it has become. The error is a filter that nobody knows.
pub(crate) fn apply(
    tx: &Transaction,
    head: &mut ResponseHead,
    body: AnswerBody,
    coded: &Coded,
    begin: BeginIncluded,
) -> Result<AnswerBody, Step> {
    let state = tx.policy.program();
    let (named, wants_esi) = state.map_or((None, false), |state| (state.filters.borrow().clone(), state.esi.get()));
    let includes = wants_esi && coded.page.is_some();
    let (vcl, asked) = (&tx.site.settings.vcl, tx.head.fields());
    let names = match &named {
        _ if coded.is_final => String::new(),
        Some(named) => String::from_utf8_lossy(named).into_owned(),
        None => filter_names::of_delivery_usually(vcl, (coded.is_gzip, includes), asked, head.status).to_owned(),
    };
    if let Some(records) = tx.policy.records() {
        records.put(RecordKind::Filters, &[names.as_bytes()]);
    }
    let (mut kinds, mut assembles) = (Vec::new(), false);
    for name in names.split_ascii_whitespace() {
        match filter_names::of_delivery(name) {
            _ if name == "esi" => assembles = includes,
            Some(kind) => kinds.extend(kind.filter(|_| coded.is_gzip)),
            None => return Err(unfilterable(format!("Filter '{name}' not found"))),
        }
    }
    // A page that is to go out as text is put together of texts.
    let in_gzip = coded.is_gzip && kinds.is_empty();
    let mut body = body;
    if !kinds.is_empty() {
        let work = filter_names::work_of_delivery(&tx.core, &kinds).map_err(unfilterable)?;
        let length = plain_length(&body);
        head.fields.remove(FieldName::ContentEncoding);
        head.fields.remove(FieldName::ContentLength);
        content_coding::weaken_tag(&mut head.fields);
        body = AnswerBody::Filtered { body: Box::new(body), work, length };
    }
    if let Some(page) = coded.page.as_ref().filter(|_| assembles) {
        let includer = Rc::new(PageParts::of(tx, in_gzip, begin));
        body = AnswerBody::Assembled { text: Box::new(body), page: Arc::clone(page), includer, in_gzip };
        head.fields.remove(FieldName::ContentLength);
        content_coding::weaken_tag(&mut head.fields);
    }
    Ok(body)
}

fn unfilterable(why: String) -> Step {
    Step::Synth(Synth::unfilterable(why))
}

/// Is it seen at once that a stored body is no gzip? A program may say of anything that it is one.
fn begins_otherwise(object: &Arc<Object>) -> bool {
    !object.body().pieces(0, 1).flat_map(|piece| piece.to_vec()).eq([GZIP_HEAD[0]])
}

/// How long the text of a stored gzip is, if that is there to be read and cannot be meant otherwise.
fn plain_length(body: &AnswerBody) -> Option<u64> {
    let object = match body {
        AnswerBody::Object { object, leased: None, slices: None } => Arc::clone(object),
        AnswerBody::Follower { follower, .. } => follower.landed()?.0,
        _ => return None,
    };
    let length = object.length();
    let is_here = object.has_whole_body() && object.body().on_disk().is_none();
    if !is_here || !(18..LENGTH_SAID_MAX).contains(&length) || begins_otherwise(&object) {
        return None;
    }
    let mut said = [0; LENGTH_BYTES as usize];
    let pieces = object.body().pieces(length - LENGTH_BYTES, length);
    let mut last = pieces.flat_map(|piece| piece.to_vec());
    said.fill_with(|| last.next().unwrap_or_default());
    Some(u64::from(u32::from_le_bytes(said)))
}
