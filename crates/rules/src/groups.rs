//! HTTP cache groups (RFC 9875): which groups a stored response belongs to, and which ones an exchange invalidates.
//!
//! Both fields are Lists of Strings (RFC 9651); parameters are not looked at, and a field with an error in it counts as
//! not sent. A group belongs to the origin whose response named it (§2.1): whoever keeps groups keeps them by that.

use message::{FieldName, FieldsView, Method};
use sfv::{BareItem, List, ListEntry, Parser};

use crate::limits::GROUPS_MAX;

/// More groups than a stored response may have: it cannot be stored, for an invalidation might miss it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyGroups;

/// RFC 9875 §2: the groups of a response.
pub fn of_response(fields: FieldsView<'_>) -> Result<Vec<String>, TooManyGroups> {
    let groups = listed(fields, FieldName::CacheGroups).unwrap_or_default();
    if groups.len() > GROUPS_MAX { Err(TooManyGroups) } else { Ok(groups) }
}

/// RFC 9875 §3: the groups, of the request's own origin, that the answer to a request invalidates. On the answer to a
/// safe method the field MUST be ignored; any other may invalidate whatever its status, for the origin says so itself.
pub fn invalidated(method: Method, response: FieldsView<'_>) -> Vec<String> {
    if method.is_safe() {
        return Vec::new();
    }
    named(response).unwrap_or_default()
}

/// The groups that a Cache-Group-Invalidation names, whoever sent it; `None` where there is none that can be read.
pub fn named(fields: FieldsView<'_>) -> Option<Vec<String>> {
    listed(fields, FieldName::CacheGroupInvalidation)
}

/// Each name once; order means nothing (§2, §3).
fn listed(fields: FieldsView<'_>, name: FieldName) -> Option<Vec<String>> {
    if !fields.contains(name) {
        return None;
    }
    let lines: Vec<&[u8]> = fields.get_all(name).collect();
    let list = Parser::new(&lines.join(&b", "[..])).parse::<List>().ok()?;
    let mut groups = Vec::with_capacity(list.len());
    for entry in &list {
        match entry {
            ListEntry::Item(item) => match &item.bare_item {
                BareItem::String(text) => groups.push(text.as_str().to_owned()),
                _ => return None,
            },
            ListEntry::InnerList(_) => return None,
        }
    }
    groups.sort_unstable();
    groups.dedup();
    Some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fields;

    /// RFC 9875 §2.
    #[test]
    fn a_response_has_groups() {
        let check = |lines: &str, expect: &[&str]| {
            let groups = of_response(fields(lines).view()).expect("not too many");
            assert_eq!(groups, expect, "{lines}");
        };
        check("", &[]);
        check("Cache-Groups: \"scripts\"", &["scripts"]);
        check("Cache-Groups: \"b\", \"a\", \"b\"", &["a", "b"]);
        check("Cache-Groups: \"a\";revalidate;x=1, \"A\"", &["A", "a"]);
        check("Cache-Groups: \"a\"\nCache-Groups: \"b \\\"c\\\"\"", &["a", "b \"c\""]);
        for junk in ["a", "\"a\", b", "(\"a\")", "\"a\",", "\"a\" \"b\"", "1", "\"\u{e9}\""] {
            check(&format!("Cache-Groups: {junk}"), &[]);
        }
    }

    /// RFC 9875 §2: "Implementations MUST support at least 32 groups in a field value, with up to at least 32
    /// characters in each member."
    #[test]
    fn groups_are_bounded() {
        let of = |count: usize| {
            let members: Vec<_> = (0..count).map(|n| format!("\"{n:032}\"")).collect();
            of_response(fields(&format!("Cache-Groups: {}", members.join(", "))).view())
        };
        const { assert!(GROUPS_MAX >= 32) };
        assert_eq!(of(GROUPS_MAX).map(|groups| groups.len()), Ok(GROUPS_MAX));
        assert_eq!(of(GROUPS_MAX + 1), Err(TooManyGroups));
    }

    /// RFC 9875 §3: "The Cache-Group-Invalidation header field MUST be ignored on responses to requests that have a
    /// safe method".
    #[test]
    fn an_unsafe_exchange_invalidates_groups() {
        let check = |method: &str, lines: &str, expect: &[&str]| {
            let groups = invalidated(Method::classify(method.as_bytes()), fields(lines).view());
            assert_eq!(groups, expect, "{method} {lines}");
        };
        let lines = "Cache-Group-Invalidation: \"eurovision-results\", \"australia\";x";
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH"] {
            check(method, lines, &["australia", "eurovision-results"]);
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
            check(method, lines, &[]);
        }
        check("POST", "Cache-Group-Invalidation: australia", &[]);
        check("POST", "Cache-Groups: \"a\"", &[]);
        assert_eq!(named(fields("Cache-Group-Invalidation: \"a").view()), None);
        assert_eq!(named(fields("").view()), None);
    }
}
