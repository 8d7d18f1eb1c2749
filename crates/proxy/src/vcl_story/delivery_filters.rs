//! What the body of an answer under a program goes through on its way to one client: out of gzip for who does not take that, or
//! what the program names in `resp.filters`; and a page with what it includes.

use std::rc::Rc;
use std::sync::Arc;

use cache::EsiPage;
use coding::Coding;
use message::{FieldName, ResponseHead};
use rules::content_coding;

use crate::answer_body::AnswerBody;
use crate::filter_chain::FilterKind;
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
    let (vcl, asked, is_part) = (&tx.site.settings.vcl, tx.head.fields(), tx.place_in_page.level > 0);
    // A page is kept as it is, and put into gzip with what it includes: in the words of filters it is in gzip already.
    let is_said_gzip = coded.is_gzip || coded.page.as_ref().is_some_and(|page| page.is_gzipped);
    let names = match &named {
        _ if coded.is_final => String::new(),
        Some(named) => String::from_utf8_lossy(named).into_owned(),
        None => {
            filter_names::of_delivery_usually(vcl, (is_said_gzip, includes, is_part), asked, head.status).to_owned()
        }
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
    let mut body = body;
    if let Some(page) = coded.page.as_ref().filter(|_| assembles) {
        let includer = Rc::new(PageParts::of(tx, begin));
        body = AnswerBody::Assembled { text: Box::new(body), page: Arc::clone(page), includer };
        head.fields.remove(FieldName::ContentLength);
        content_coding::weaken_tag(&mut head.fields);
    }
    if let Some(page) = &coded.page
        && page.is_gzipped
        && (filter_names::takes_gzip(asked) || !vcl.http_gzip_support && !is_part)
    {
        kinds.push(FilterKind::Encode(Coding::Gzip, vcl.gzip_level));
    }
    if kinds.is_empty() {
        return Ok(body);
    }
    let work = filter_names::work(&tx.core, &kinds).map_err(unfilterable)?;
    let length = if coded.is_gzip { plain_length(&body) } else { None };
    head.fields.remove(FieldName::ContentEncoding);
    head.fields.remove(FieldName::ContentLength);
    content_coding::weaken_tag(&mut head.fields);
    if let Some(FilterKind::Encode(coding, _)) = kinds.last() {
        head.fields.push(FieldName::ContentEncoding, coding.name());
    }
    Ok(AnswerBody::Filtered { body: Box::new(body), work, length })
}

fn unfilterable(why: String) -> Step {
    Step::Synth(Synth::unfilterable(why))
}

/// How long the text of a stored gzip is, if that is there to be read and cannot be meant otherwise.
fn plain_length(body: &AnswerBody) -> Option<u64> {
    let object = match body {
        AnswerBody::Object { object, leased: None, slices: None } => Arc::clone(object),
        AnswerBody::Follower { follower, .. } => follower.landed()?.0,
        _ => return None,
    };
    let length = object.length();
    if !object.has_whole_body() || object.body().on_disk().is_some() || !(18..LENGTH_SAID_MAX).contains(&length) {
        return None;
    }
    let mut said = [0; LENGTH_BYTES as usize];
    let pieces = object.body().pieces(length - LENGTH_BYTES, length);
    let mut last = pieces.flat_map(|piece| piece.to_vec());
    said.fill_with(|| last.next().unwrap_or_default());
    Some(u64::from(u32::from_le_bytes(said)))
}
