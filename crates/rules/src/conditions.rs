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
    /// The same of a response that is on its way and not stored: nothing stands in for a Last-Modified that it does not have.
    Relay,
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
    // RFC 9111 §4.3.2: without Last-Modified, the Date of what is stored, or its arrival, stands in.
    let held_since = match (facts.last_modified, holder) {
        (None, Holder::Relay) => return Outcome::Proceed,
        (modified, _) => modified.unwrap_or(facts.date),
    };
    match date_condition(fields, FieldName::IfModifiedSince, facts) {
        Some(since) if get_or_head && held_since <= since => Outcome::NotModified,
        _ => Outcome::Proceed,
    }
}

/// Does the request carry any precondition (RFC 9110 §13.1)? If-Range is not one: see `range`.
#[inline]
pub fn has_conditions(fields: FieldsView<'_>) -> bool {
    fields.names().any(is_condition)
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
                (Some(ours), Some(theirs)) if !theirs.weak => ours.matches_strongly(&theirs),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{NOW_S, fields, head, request};

    fn check(line: &str, request_lines: &str, held: (u16, &str), expect: [Outcome; 2]) {
        let request_fields = fields(request_lines);
        let request = request(line, &request_fields);
        let held_head = head(held.0, held.1);
        let date = |name| held_head.fields.view().get(name).and_then(|text| parse_date(text, NOW_S));
        let facts = Facts {
            last_modified: date(FieldName::LastModified),
            date: date(FieldName::Date).unwrap_or(NOW_S),
            ..Facts::default()
        };
        let got =
            [Holder::Cache, Holder::Origin].map(|holder| evaluate(&request, held_head.response(), &facts, holder));
        assert_eq!(got, expect, "{line} {request_lines:?} of {held:?}");
    }

    #[test]
    fn four_fields_are_conditions() {
        for name in ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"] {
            assert!(has_conditions(fields(&format!("Accept: x\n{name}: x\nX-Other: x")).view()), "{name}");
        }
        assert!(!has_conditions(fields("Accept: x\nRange: bytes=0-1\nIf-Range: \"a\"\nIf-Other: x").view()));
    }

    fn check_both(request_lines: &str, held: &str, expect: Outcome) {
        check("GET /", request_lines, (200, held), [expect; 2]);
        check("HEAD /", request_lines, (200, held), [expect; 2]);
    }

    use Outcome::{NotModified, PreconditionFailed, Proceed};

    /// RFC 9110 §13.1.2.
    #[test]
    fn if_none_match() {
        check_both("", "ETag: \"a\"", Proceed);
        check_both("If-None-Match: \"a\"", "ETag: \"a\"", NotModified);
        check_both("If-None-Match: W/\"a\"", "ETag: \"a\"", NotModified);
        check_both("If-None-Match: \"a\"", "ETag: W/\"a\"", NotModified);
        check_both("If-None-Match: \"1\", \"a\", \"2\"", "ETag: \"a\"", NotModified);
        check_both("If-None-Match: \"1\"\nIf-None-Match: \"a\"", "ETag: \"a\"", NotModified);
        check_both("If-None-Match: \"b\"", "ETag: \"a\"", Proceed);
        check_both("If-None-Match: \"a\"", "", Proceed);
        check_both("If-None-Match: *", "", NotModified);
        check("GET /", "If-None-Match: *", (404, ""), [Proceed; 2]);
        check("POST /", "If-None-Match: *", (200, ""), [PreconditionFailed; 2]);
    }

    /// RFC 9110 §13.1.3; RFC 9111 §4.3.2 for what has no Last-Modified.
    #[test]
    fn if_modified_since() {
        check_both("If-Modified-Since: {-3000}", "Last-Modified: {-3000}", NotModified);
        check_both("If-Modified-Since: {-2000}", "Last-Modified: {-3000}", NotModified);
        check_both("If-Modified-Since: {-3001}", "Last-Modified: {-3000}", Proceed);
        check_both("If-Modified-Since: yesterday", "Last-Modified: {-3000}", Proceed);
        check_both("If-Modified-Since: {0}\nIf-Modified-Since: {0}", "Last-Modified: {-3000}", Proceed);
        check_both("If-Modified-Since: Thursday, 01-Jan-26 00:00:00 GMT", "Last-Modified: {0}", NotModified);
        check_both("If-Modified-Since: {0}", "Date: {0}", NotModified);
        check_both("If-Modified-Since: {-1}", "Date: {0}", Proceed);
        for (held, expect) in [("Date: {0}", Proceed), ("Date: {0}\nLast-Modified: {-1}", NotModified)] {
            let (asked, held) = (fields("If-Modified-Since: {0}"), head(200, held));
            let last_modified =
                held.fields.view().get(FieldName::LastModified).and_then(|text| parse_date(text, NOW_S));
            let facts = Facts { last_modified, date: NOW_S, ..Facts::default() };
            assert_eq!(evaluate(&request("GET /", &asked), held.response(), &facts, Holder::Relay), expect);
        }
        check("POST /", "If-Modified-Since: {0}", (200, "Last-Modified: {0}"), [Proceed; 2]);
        check("GET /", "If-Modified-Since: {0}", (302, "Last-Modified: {0}"), [Proceed; 2]);
    }

    /// RFC 9110 §13.2.2: If-None-Match makes If-Modified-Since void, whichever way it goes.
    #[test]
    fn precedence() {
        let held = "ETag: \"a\"\nLast-Modified: {-5000}";
        check_both("If-None-Match: \"a\"\nIf-Modified-Since: {-10000}", held, NotModified);
        check_both("If-None-Match: \"b\"\nIf-Modified-Since: {0}", held, Proceed);
        check_both("If-None-Match: junk\nIf-Modified-Since: {0}", held, Proceed);
    }

    /// RFC 9110 §13.1.1, §13.1.4; RFC 9111 §4.3.2: not for a cache.
    #[test]
    fn if_match_and_if_unmodified_since_are_the_origins_matter() {
        let held = (200, "ETag: \"a\"\nLast-Modified: {-5000}");
        check("GET /", "If-Match: \"a\"", held, [Proceed, Proceed]);
        check("GET /", "If-Match: \"b\", *", held, [Proceed, PreconditionFailed]);
        check("GET /", "If-Match: *", held, [Proceed, Proceed]);
        check("GET /", "If-Match: W/\"a\"", held, [Proceed, PreconditionFailed]);
        check("GET /", "If-Match: \"b\"\nIf-None-Match: \"a\"", held, [NotModified, PreconditionFailed]);
        check("GET /", "If-Unmodified-Since: {-5000}", held, [Proceed, Proceed]);
        check("GET /", "If-Unmodified-Since: {-5001}", held, [Proceed, PreconditionFailed]);
        check("GET /", "If-Match: \"a\"\nIf-Unmodified-Since: {-5001}", held, [Proceed, Proceed]);
        check("GET /", "If-Unmodified-Since: {-5001}", (200, ""), [Proceed, Proceed]);
    }

    /// RFC 9110 §15.4.5.
    #[test]
    fn a_304_says_what_caching_needs() {
        let kept = |lines: &str, has_etag: bool| -> Vec<String> {
            let all = fields(lines);
            let kept = all.view().iter().filter(|field| kept_in_304(field, has_etag));
            kept.map(|field| String::from_utf8_lossy(field.name_text).into_owned()).collect()
        };
        let lines = "Date: x\nETag: x\nVary: x\nCache-Control: x\nExpires: x\nContent-Location: x\nContent-Type: x\n\
            Content-Length: 1\nContent-Encoding: x\nLast-Modified: x\nContent-Security-Policy: x\nX-Own: x\n\
            Repr-Digest: x\nAccept-Ranges: x";
        let always = [
            "Date",
            "ETag",
            "Vary",
            "Cache-Control",
            "Expires",
            "Content-Location",
            "Content-Security-Policy",
            "X-Own",
        ];
        assert_eq!(kept(lines, true), always);
        assert_eq!(kept("Last-Modified: x", false), ["Last-Modified"]);
    }

    /// RFC 9111 §4.3.1, §4.3.4.
    #[test]
    fn a_304_must_be_about_what_was_asked() {
        let check = |held: &str, answer: &str, expect: Option<bool>| {
            let (held, answer) = (head(200, held), fields(answer));
            let last_modified =
                held.fields.view().get(FieldName::LastModified).and_then(|text| parse_date(text, NOW_S));
            let facts = Facts { last_modified, ..Facts::default() };
            let validators = Validators::of(held.response(), &facts);
            assert_eq!(validators.map(|validators| validators.are_confirmed_by(answer.view())), expect);
        };
        check("", "", None);
        check("Last-Modified: junk", "", None);
        check("ETag: \"a\"", "ETag: \"a\"", Some(true));
        check("ETag: \"a\"", "ETag: \"b\"", Some(false));
        check("ETag: \"a\"", "ETag: W/\"a\"", Some(true));
        check("ETag: W/\"a\"", "ETag: W/\"a\"", Some(true));
        check("ETag: W/\"a\"", "ETag: \"a\"", Some(false));
        check("ETag: a", "ETag: a", Some(true));
        check("ETag: \"a\"", "", Some(true));
        check("ETag: \"a\"\nLast-Modified: {-9}", "ETag: \"a\"\nLast-Modified: {0}", Some(true));
        check("Last-Modified: {-9}", "Last-Modified: {-9}", Some(true));
        check("Last-Modified: {-9}", "Last-Modified: {-8}", Some(false));
        check("Last-Modified: {-9}", "ETag: \"new\"\nLast-Modified: {-9}", Some(true));
    }
}
