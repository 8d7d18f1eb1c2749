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
use crate::filter_work::FilterWork;
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
    let gzip = page.is_gzipped && filter_names::takes_gzip(tx.head.fields());
    let includer = Rc::new(PageParts::of(tx, begin));
    let mut body = AnswerBody::Assembled { text: Box::new(draft.body), page, includer };
    if gzip {
        let kinds = [FilterKind::Encode(Coding::Gzip, tx.site.settings.vcl.gzip_level)];
        if let Ok(work) = filter_names::work(&tx.core, &kinds) {
            fields.push(FieldName::ContentEncoding, Coding::Gzip.name());
            body = AnswerBody::Filtered { body: Box::new(body), work, length: None };
        }
    }
    let fields = match draft.fields {
        UnplannedFields::Complete(_) => UnplannedFields::Complete(fields),
        _ => UnplannedFields::Own(fields),
    };
    let facts = Facts { last_modified: None, ..draft.facts };
    UnplannedAnswer { fields, body, facts, length_said: None, ..draft }
}

/// A part, as the text that its page takes it for.
pub(super) fn part(tx: &mut Transaction, draft: UnplannedAnswer) -> UnplannedAnswer {
    let fields = draft.fields.view();
    if !fields.contains(FieldName::ContentEncoding) {
        return draft;
    }
    let kinds = [FilterKind::Decode(Coding::Gzip)];
    let work: Option<FilterWork> =
        filter_names::is_gzip(fields).then(|| filter_names::work(&tx.core, &kinds)).and_then(Result::ok);
    match work {
        Some(work) => {
            let body = AnswerBody::Filtered { body: Box::new(draft.body), work, length: None };
            UnplannedAnswer { body, length_said: None, ..draft }
        }
        None => {
            tx.outcome.why = CODING;
            drop(draft.body.leave());
            UnplannedAnswer { status: Status(502), body: AnswerBody::Bytes(Bytes::new()), ..draft }
        }
    }
}

/// Is it about the text of the page alone?
fn is_of_text(field: &Field<'_>) -> bool {
    const DIGESTS: [&[u8]; 4] = [b"content-digest", b"repr-digest", b"digest", b"content-md5"];
    matches!(field.name, FieldName::Etag | FieldName::LastModified | FieldName::ContentLength | FieldName::AcceptRanges)
        || DIGESTS.iter().any(|name| field.name_text.eq_ignore_ascii_case(name))
}
