//! Conditional requests (RFC 9110 §13, RFC 9111 §4.3): what a client's preconditions make of an answer we hold,
//! what a 304 carries, and which validators we send to the origin ourselves.

use message::{Field, FieldName, FieldsView, Method, Request, Response};

use crate::date::parse_date;
use crate::entity_tag::{Comparison, EntityTag, list_contains};
use crate::freshness::Facts;

/// What becomes of a request whose answer we hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer is sent as it is (a range of it, perhaps).
    Proceed,
    /// 304 with the fields that [`kept_in_304`] keeps.
    NotModified,
    /// 412.
    PreconditionFailed,
}

/// For whom the conditions are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A stored response of somebody else's. If-Match and If-Unmodified-Since are not for a cache (RFC 9111 §4.3.2).
    Cache,
    /// Our own resource: a file, a synthetic answer.
    Origin,
}

/// RFC 9110 §13.2.2, in its order. Without a condition in the request this is one pass over its fields.
pub fn evaluate(request: &Request<'_>, held: Response<'_>, facts: &Facts, holder: Holder) -> Outcome {
    let get_or_head = matches!(request.method, Method::Get | Method::Head);
    // RFC 9110 §13.2.1: no conditions on what would not have been a success anyway.
    if !has_conditions(request.fields) || !held.status.is_success() {
        return Outcome::Proceed;
    }
    let fields = request.fields;
    let etag = held.fields.get(FieldName::Etag);
    if holder == Holder::Origin {
        if fields.contains(FieldName::IfMatch) {
            if !tag_condition(fields, FieldName::IfMatch, etag, Comparison::Strong) {
                return Outcome::PreconditionFailed;
            }
        } else if let Some(since) = date_condition(fields, FieldName::IfUnmodifiedSince, facts)
            && facts.last_modified.is_some_and(|modified| modified > since)
        {
            return Outcome::PreconditionFailed;
        }
    }
    if fields.contains(FieldName::IfNoneMatch) {
        // If-Modified-Since is not looked at then, whatever the outcome (§13.1.3).
        return match tag_condition(fields, FieldName::IfNoneMatch, etag, Comparison::Weak) {
            false => Outcome::Proceed,
            true if get_or_head => Outcome::NotModified,
            true => Outcome::PreconditionFailed,
        };
    }
    // RFC 9111 §4.3.2: without Last-Modified, the Date of what we hold, or its arrival, stands in.
    let held_since = facts.last_modified.unwrap_or(facts.date);
    match date_condition(fields, FieldName::IfModifiedSince, facts) {
        Some(since) if get_or_head && held_since <= since => Outcome::NotModified,
        _ => Outcome::Proceed,
    }
}

/// Does the request carry any precondition (RFC 9110 §13.1)? If-Range is not one: see `range`.
#[inline]
pub fn has_conditions(fields: FieldsView<'_>) -> bool {
    fields.iter().any(|field| is_condition(field.name))
}

/// The fields that are taken off a request on its way to the origin when its answer is to be stored, so that the
/// answer is whole.
#[inline]
pub const fn is_condition(name: FieldName) -> bool {
    matches!(
        name,
        FieldName::IfMatch | FieldName::IfNoneMatch | FieldName::IfModifiedSince | FieldName::IfUnmodifiedSince
    )
}

/// RFC 9110 §13.1.1, §13.1.2: `*` is true of anything that exists; several lines are one list.
fn tag_condition(fields: FieldsView<'_>, name: FieldName, etag: Option<&[u8]>, how: Comparison) -> bool {
    let listed = |list: &[u8]| list == b"*" || etag.is_some_and(|etag| list_contains(list, etag, how));
    fields.get_all(name).any(listed)
}

/// A date that cannot be read, or several, make the condition void (RFC 9110 §13.1.3, §13.1.4).
fn date_condition(fields: FieldsView<'_>, name: FieldName, facts: &Facts) -> Option<i64> {
    let mut values = fields.get_all(name);
    let (value, None) = (values.next()?, values.next()) else { return None };
    // The age of what we hold is close enough to the present to know a two-digit year's century.
    parse_date(value, facts.date)
}

/// RFC 9110 §15.4.5: a 304 says what caching needs to know and nothing of the representation that is not sent.
/// With an ETag, Last-Modified is superfluous.
pub fn kept_in_304(field: &Field<'_>, has_etag: bool) -> bool {
    match field.name {
        FieldName::ContentLocation => true,
        FieldName::LastModified => !has_etag,
        FieldName::AcceptRanges | FieldName::Trailer | FieldName::TransferEncoding => false,
        _ => !is_content_metadata(field.name_text),
    }
}

/// `Content-…` and `Repr-Digest`, without the security policies that merely share the prefix.
fn is_content_metadata(name: &[u8]) -> bool {
    let starts = |prefix: &str| name.get(..prefix.len()).is_some_and(|n| n.eq_ignore_ascii_case(prefix.as_bytes()));
    starts("content-") && !starts("content-security-policy") || name.eq_ignore_ascii_case(b"repr-digest")
}

/// What we ask the origin with when we hold something stale (RFC 9111 §4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The stored ETag, byte for byte.
    pub if_none_match: Option<&'a [u8]>,
    /// The stored Last-Modified, byte for byte.
    pub if_modified_since: Option<&'a [u8]>,
}

impl<'a> Validators<'a> {
    /// `None` when there is nothing to validate with. Both are sent when both are there.
    pub fn of(held: Response<'a>, facts: &Facts) -> Option<Validators<'a>> {
        let if_none_match = held.fields.get(FieldName::Etag).filter(|etag| !etag.is_empty());
        let if_modified_since = facts.last_modified.and_then(|_| held.fields.get(FieldName::LastModified));
        let validators = Validators { if_none_match, if_modified_since };
        (if_none_match.is_some() || if_modified_since.is_some()).then_some(validators)
    }

    /// RFC 9111 §4.3.4: is this 304 about what was validated? A validator in it must be the one we sent; one
    /// without any answers the question as asked.
    pub fn are_confirmed_by(&self, not_modified: FieldsView<'_>) -> bool {
        if let (Some(ours), Some(theirs)) = (self.if_none_match, not_modified.get(FieldName::Etag)) {
            return match (EntityTag::parse(ours), EntityTag::parse(theirs)) {
                (Some(ours), Some(theirs)) if !theirs.weak => ours.opaque == theirs.opaque,
                (Some(ours), Some(theirs)) => ours.matches_weakly(&theirs),
                _ => ours == theirs,
            };
        }
        match (self.if_modified_since, not_modified.get(FieldName::LastModified)) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        }
    }
}
