//! What the body of an answer under a program goes through on its way to one client: out of gzip for who does not take that, or
//! what the program names in `resp.filters`.

use message::{FieldName, FieldsView, ResponseHead, Status};

use crate::answer_body::AnswerBody;
use crate::records::RecordKind;
use crate::transaction::deliver::Answer;
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction};
use crate::vcl_parameters::VclParameters;
use crate::vcl_story::filter_names;

/// A gzip ends with the length of its text, modulo 2³² (RFC 1952 §2.3.1).
const LENGTH_BYTES: u64 = 4;
/// A text of so many bytes has a length that this says in full; what can be of a larger one it does not.
const LENGTH_SAID_MAX: u64 = 4_000_000;

/// Is the body in gzip, by the head that it was stored or came with?
pub(crate) fn is_gzip(answer: &Answer) -> bool {
    match answer {
        Answer::Stored { object, .. } => filter_names::is_gzip(object.fields()),
        Answer::Followed { head, .. } => filter_names::is_gzip(head.fields.view()),
        Answer::Origin { head, body } => !body.is_none() && filter_names::is_gzip(head.fields.view()),
        _ => false,
    }
}

/// The names of the filters that there are where the program names none.
pub(crate) fn usual(vcl: &VclParameters, is_gzip: bool, asked: FieldsView<'_>, status: Status) -> &'static str {
    let gunzips = vcl.http_gzip_support && is_gzip && !filter_names::takes_gzip(asked);
    let has_parts = vcl.http_range_support && status == Status::OK && asked.contains(FieldName::Range);
    match (gunzips, has_parts) {
        (false, false) => "",
        (true, false) => "gunzip",
        (false, true) => "range",
        (true, true) => "gunzip range",
    }
}

/// The body behind its filters; the head says what it has become. The error is a filter that nobody knows.
pub(crate) fn apply(
    tx: &Transaction,
    head: &mut ResponseHead,
    body: AnswerBody,
    is_gzip: bool,
) -> Result<AnswerBody, Step> {
    let named = tx.policy.program().and_then(|state| state.filters.borrow().clone());
    let names = match &named {
        Some(named) => String::from_utf8_lossy(named).into_owned(),
        None => usual(&tx.site.settings.vcl, is_gzip, tx.head.fields(), head.status).to_owned(),
    };
    if let Some(records) = tx.policy.records() {
        records.put(RecordKind::Filters, &[names.as_bytes()]);
    }
    let mut kinds = Vec::new();
    for name in names.split_ascii_whitespace() {
        match filter_names::of_delivery(name) {
            Some(kind) => kinds.extend(kind.filter(|_| is_gzip)),
            None => return Err(unfilterable(format!("Filter '{name}' not found"))),
        }
    }
    if kinds.is_empty() {
        return Ok(body);
    }
    let chain = filter_names::chain(&tx.core, &kinds).map_err(unfilterable)?;
    let length = plain_length(&body);
    head.fields.remove(FieldName::ContentEncoding);
    head.fields.remove(FieldName::ContentLength);
    filter_names::weaken_tag(&mut head.fields);
    Ok(AnswerBody::Filtered { body: Box::new(body), chain, length })
}

fn unfilterable(why: String) -> Step {
    Step::Synth(Synth::unfilterable(why))
}

/// How long the text of a stored gzip is, if that is there to be read and cannot be meant otherwise.
fn plain_length(body: &AnswerBody) -> Option<u64> {
    let AnswerBody::Object { object, leased: None, slices: None } = body else { return None };
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
