//! Freshening a stored response from a 304 (RFC 9111 §3.2, §4.3.4) or from the answer to a HEAD (§4.3.5).

use message::{FieldName, Response, ResponseHead};

use crate::cache_control::listed_fields;
use crate::date::parse_date;
use crate::freshness::Facts;
use crate::storing::{StoreDefaults, Withholding};

/// RFC 9111 §3.2: every field of the update replaces what is stored under its name; fields it does not name stay.
/// Content-Length, Content-Encoding and Content-Range stay what the stored body is; what may not be stored is not, and
/// what `no-cache="…"` or `private="…"` of the update names leaves the store (§5.2.2.4, §5.2.2.7).
pub fn merge_304(stored: &mut ResponseHead, fresh: Response<'_>, defaults: &StoreDefaults) {
    let withholding = Withholding::of(fresh.fields, defaults);
    let updates =
        || fresh.fields.iter().filter(|field| !describes_stored_body(field.name) && !withholding.withholds(field));
    let is_named = |name: &[u8]| listed_fields(fresh.fields).any(|named| named.eq_ignore_ascii_case(name));
    let is_replaced = |name: &[u8]| updates().any(|new| new.name_text.eq_ignore_ascii_case(name));
    stored.fields.retain(|old| !is_named(old.name_text) && !is_replaced(old.name_text));
    for field in updates() {
        stored.fields.push_named(field.name_text, field.value);
    }
}

/// RFC 9111 §3.2 forbids updating Content-Length and lets a cache except the fields that say how its stored bytes
/// are to be read. Content-Type is not excepted: origins correct it.
const fn describes_stored_body(name: FieldName) -> bool {
    matches!(
        name,
        FieldName::ContentLength | FieldName::ContentEncoding | FieldName::ContentRange | FieldName::TransferEncoding
    )
}

/// What the answer to a HEAD means for a stored GET response that could have been chosen for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadEffect {
    /// Nothing: it is not a 200, is older, or has no validator.
    None,
    /// It is the same representation: merge as from a 304.
    Update,
    /// It is another one by now: the stored response counts as stale.
    Invalidate,
}

/// RFC 9111 §4.3.5: validators and length that were received must be those that are stored, and one validator must have been
/// received: without any, a length that did not change would keep a body alive that did. An answer that is older than what
/// is stored, by their dates, says nothing of it. `stored_length` is the length of the stored body.
pub fn head_effect(
    (stored, facts): (Response<'_>, &Facts),
    stored_length: u64,
    head: Response<'_>,
    now_s: i64,
) -> HeadEffect {
    let date = head.fields.get(FieldName::Date).and_then(|text| parse_date(text, now_s));
    if head.status.0 != 200 || stored.status.0 != 200 || date.is_some_and(|date| date < facts.date) {
        return HeadEffect::None;
    }
    let received = |name: FieldName| head.fields.get(name);
    let differs = |name: FieldName| received(name).is_some_and(|value| stored.fields.get(name) != Some(value));
    let length_differs = received(FieldName::ContentLength)
        .is_some_and(|text| std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) != Some(stored_length));
    if differs(FieldName::Etag) || differs(FieldName::LastModified) || length_differs {
        HeadEffect::Invalidate
    } else if [FieldName::Etag, FieldName::LastModified].into_iter().any(|name| received(name).is_some()) {
        HeadEffect::Update
    } else {
        HeadEffect::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{NOW_S, fields, head};

    /// RFC 9111 §3.2.
    #[test]
    fn an_update_replaces_what_it_names() {
        let check = |stored: &str, update: &str, expect: &str| {
            let (mut stored, update) = (head(200, stored), head(304, update));
            merge_304(&mut stored, update.response(), &StoreDefaults::default());
            let text = |fields: &message::Fields| -> String {
                let line = |field: message::Field<'_>| {
                    let [name, value] = [field.name_text, field.value].map(String::from_utf8_lossy);
                    format!("{name}: {value}\n")
                };
                fields.view().iter().map(line).collect()
            };
            assert_eq!(text(&stored.fields), text(&fields(expect)), "{update:?}");
        };
        check("A: 1\nB: 2", "", "A: 1\nB: 2");
        check("A: 1\nB: 2", "a: 3", "B: 2\na: 3");
        check("A: 1\nA: 2\nB: 2", "A: 3\nA: 4", "B: 2\nA: 3\nA: 4");
        check("A: 1", "Content-Type: text/html\nC: 1", "A: 1\nContent-Type: text/html\nC: 1");
        check("Content-Length: 5", "Content-Length: 10", "Content-Length: 5");
        check("Content-Encoding: gzip", "Content-Encoding: br\nContent-Range: x", "Content-Encoding: gzip");
        check("Expires: {0}\nETag: \"a\"", "Expires: {9}\nETag: W/\"a\"", "Expires: {9}\nETag: W/\"a\"");
        check("A: 1", "Connection: x, A\nX: 1\nA: 2\nTransfer-Encoding: chunked\nAge: 5\nSet-Cookie: a=b", "A: 1");
        let named = "Cache-Control: no-cache=\"a, B\", private=c";
        check("A: 1\nB: 2\nC: 3\nD: 4", &format!("{named}\nB: 5"), &format!("D: 4\n{named}"));
    }

    /// RFC 9111 §4.3.5.
    #[test]
    fn a_head_updates_or_invalidates_a_stored_get() {
        let check = |stored: &str, status: u16, lines: &str, expect: HeadEffect| {
            let (stored, answer) = (head(200, stored), head(status, lines));
            let facts = Facts { date: NOW_S, ..Facts::default() };
            let effect = head_effect((stored.response(), &facts), 36, answer.response(), NOW_S);
            assert_eq!(effect, expect, "{status} {lines:?}");
        };
        check("", 200, "", HeadEffect::None);
        check("", 200, "Content-Length: 36", HeadEffect::None);
        check("ETag: \"a\"", 200, "Content-Length: 36", HeadEffect::None);
        check("", 200, "Content-Length: 37", HeadEffect::Invalidate);
        check("", 200, "Content-Length: x", HeadEffect::Invalidate);
        check("ETag: \"a\"", 200, "ETag: \"a\"\nDate: {0}", HeadEffect::Update);
        check("ETag: \"a\"", 200, "ETag: \"a\"\nDate: {-1}", HeadEffect::None);
        check("ETag: \"a\"", 200, "ETag: \"b\"\nDate: {-1}", HeadEffect::None);
        check("ETag: \"a\"", 200, "ETag: \"a\"", HeadEffect::Update);
        check("ETag: \"a\"", 200, "ETag: \"b\"", HeadEffect::Invalidate);
        check("", 200, "ETag: \"b\"", HeadEffect::Invalidate);
        check("ETag: \"a\"\nLast-Modified: {0}", 200, "ETag: \"a\"", HeadEffect::Update);
        check("Last-Modified: {0}", 200, "Last-Modified: {1}", HeadEffect::Invalidate);
        check("", 410, "", HeadEffect::None);
        check("ETag: \"a\"", 410, "ETag: \"b\"", HeadEffect::None);
        check("", 304, "", HeadEffect::None);
    }
}
