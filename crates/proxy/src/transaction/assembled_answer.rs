//! A page with parts, and a part of one, as they go out by the built-in policy.
//!
//! A page is put together anew for each client. What its origin said of its own text (a tag, a date, a digest) is not true of the whole, and a client
//! that holds an older whole must not be told that nothing has changed.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cache::EsiPage;
use coding::Coding;
use message::{Field, FieldName, Fields, Status};
use rules::Facts;

use crate::answer_body::AnswerBody;
use crate::answer_head::Rendered;
use crate::filter_chain::FilterKind;
use crate::page_parts::PageParts;
use crate::stored_head;
use crate::transaction::deliver::{UnplannedAnswer, UnplannedFields};
use crate::transaction::{BeginIncluded, Transaction};
use crate::vcl_story::filter_names;

/// Why a part is no answer: it is in a coding that the page is not in.
const CODING: &str = "esi-coding";

/// The page with its parts.
pub(super) fn page(
    tx: &Transaction,
    draft: UnplannedAnswer,
    page: Arc<EsiPage>,
    begin: BeginIncluded,
) -> UnplannedAnswer {
    let mut fields = Fields::default();
    draft.fields.view().iter().filter(|field| !is_of_text(field)).for_each(|field| fields.push_field(&field));
    if let UnplannedFields::Rendered(Rendered::Object(object)) = &draft.fields {
        // Which the rendered head has.
        stored_head::push_via(&mut fields, object.response().version, &tx.site);
    }
    let is_gzip = filter_names::is_gzip(fields.view());
    let in_gzip = is_gzip && filter_names::takes_gzip(tx.head.fields());
    let mut text = draft.body;
    if is_gzip && !in_gzip {
        // What cannot be read breaks off.
        text = decoded(tx, text).unwrap_or_else(|| AnswerBody::Bytes(Bytes::new()));
        fields.remove(FieldName::ContentEncoding);
    }
    let includer = Rc::new(PageParts::of(tx, in_gzip, begin));
    let body = AnswerBody::Assembled { text: Box::new(text), page, includer, in_gzip };
    let fields = match draft.fields {
        UnplannedFields::Complete(_) => UnplannedFields::Complete(fields),
        _ => UnplannedFields::Own(fields),
    };
    let facts = Facts { last_modified: None, ..draft.facts };
    UnplannedAnswer { fields, body, facts, length_said: None, ..draft }
}

/// A part as its page takes it: as text, or in gzip too where the page is in that.
pub(crate) fn part(tx: &mut Transaction, draft: UnplannedAnswer) -> UnplannedAnswer {
    let fields = draft.fields.view();
    let (is_coded, is_gzip) = (fields.contains(FieldName::ContentEncoding), filter_names::is_gzip(fields));
    if !is_coded || is_gzip && filter_names::takes_gzip(tx.head.fields()) {
        return draft;
    }
    let text = match is_gzip {
        true => decoded(tx, draft.body),
        false => {
            drop(draft.body.leave());
            None
        }
    };
    match text {
        Some(body) => UnplannedAnswer { body, length_said: None, ..draft },
        None => {
            tx.outcome.why = CODING;
            UnplannedAnswer { status: Status(502), body: AnswerBody::Bytes(Bytes::new()), ..draft }
        }
    }
}

/// What is in gzip, as text.
fn decoded(tx: &Transaction, body: AnswerBody) -> Option<AnswerBody> {
    let work = filter_names::work(&tx.core, &[FilterKind::Decode(Coding::Gzip)]).ok()?;
    Some(AnswerBody::Filtered { body: Box::new(body), work, length: None })
}

/// Is it about the text of the page alone?
fn is_of_text(field: &Field<'_>) -> bool {
    const DIGESTS: [&[u8]; 4] = [b"content-digest", b"repr-digest", b"digest", b"content-md5"];
    matches!(field.name, FieldName::Etag | FieldName::LastModified | FieldName::ContentLength | FieldName::AcceptRanges)
        || DIGESTS.iter().any(|name| field.name_text.eq_ignore_ascii_case(name))
}
