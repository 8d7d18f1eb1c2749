//! Entity tags (RFC 9110 §8.8.3): read from a field, compared strongly or weakly.
//!
//! An ETag that is not one by the grammar (without quotes, say) exists in the field. It matches only its own exact
//! bytes, and only weakly: clients echo what they were given.

use crate::limits::ENTITY_TAGS_MAX;

/// One entity tag, with its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityTag<'a> {
    pub weak: bool,
    pub opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// RFC 9110 §8.8.3: `[ W/ ] DQUOTE *etagc DQUOTE`. `W` is case-sensitive; a backslash escapes nothing.
    pub fn parse(text: &'a [u8]) -> Option<EntityTag<'a>> {
        let (tag, rest) = EntityTag::read(text)?;
        rest.is_empty().then_some(tag)
    }

    fn read(text: &'a [u8]) -> Option<(EntityTag<'a>, &'a [u8])> {
        let opaque = text.strip_prefix(b"W/").unwrap_or(text);
        if opaque.first() != Some(&b'"') {
            return None;
        }
        let end = opaque[1..].iter().position(|&b| !is_etagc(b))? + 1;
        if opaque[end] != b'"' {
            return None;
        }
        let (opaque, rest) = opaque.split_at(end + 1);
        Some((EntityTag { weak: text.first() == Some(&b'W'), opaque }, rest))
    }

    /// RFC 9110 §8.8.3.2.
    pub fn matches_strongly(&self, other: &EntityTag<'_>) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    /// RFC 9110 §8.8.3.2.
    pub fn matches_weakly(&self, other: &EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }
}

/// How two tags are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Strong,
    Weak,
}

/// Is the stored tag among those of an If-Match or If-None-Match value? `*` is the caller's matter. A list is read
/// up to its first member that is no entity tag.
pub fn list_contains(list: &[u8], stored: &[u8], how: Comparison) -> bool {
    let Some(stored) = EntityTag::parse(stored) else {
        return how == Comparison::Weak && !stored.is_empty() && list == stored;
    };
    members(list).any(|tag| match how {
        Comparison::Strong => tag.matches_strongly(&stored),
        Comparison::Weak => tag.matches_weakly(&stored),
    })
}

/// The tags of a list. Commas inside quotes belong to the tag, so the general splitter will not do: it knows
/// escapes, and `"a\"` is a whole entity tag.
fn members(list: &[u8]) -> impl Iterator<Item = EntityTag<'_>> {
    let mut rest = list;
    let next = move || {
        while let [b',' | b' ' | b'\t', tail @ ..] = rest {
            rest = tail;
        }
        let (tag, tail) = EntityTag::read(rest)?;
        rest = tail.trim_ascii_start();
        matches!(rest.first(), None | Some(b',')).then_some(tag)
    };
    std::iter::from_fn(next).take(ENTITY_TAGS_MAX)
}

/// RFC 9110 §8.8.3: `%x21 / %x23-7E / obs-text`.
fn is_etagc(b: u8) -> bool {
    b == 0x21 || (0x23..=0x7e).contains(&b) || b >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, stored: &str, expect: (bool, bool)) {
        let got =
            [Comparison::Strong, Comparison::Weak].map(|how| list_contains(list.as_bytes(), stored.as_bytes(), how));
        assert_eq!((got[0], got[1]), expect, "{list} against {stored}");
    }

    /// The table of RFC 9110 §8.8.3.2.
    #[test]
    fn strong_and_weak_comparison() {
        check(r#"W/"1""#, r#"W/"1""#, (false, true));
        check(r#"W/"1""#, r#"W/"2""#, (false, false));
        check(r#"W/"1""#, r#""1""#, (false, true));
        check(r#""1""#, r#""1""#, (true, true));
    }

    #[test]
    fn lists_are_searched() {
        check(r#""a", "b","c""#, r#""a""#, (true, true));
        check(r#""a", W/"b",, "c""#, r#""b""#, (false, true));
        check(r#" , "a" ,	"b" , "c""#, r#""c""#, (true, true));
        check(r#""a,b", "c""#, r#""b""#, (false, false));
        check(r#""a,b""#, r#""a,b""#, (true, true));
        check(r#""a\", "b""#, r#""b""#, (true, true));
        check("\"abcdef\u{fc}\"", "\"abcdef\u{fc}\"", (true, true));
        check(r#""""#, r#""""#, (true, true));
        check("\"~\u{80}\"", "\"~\u{80}\"", (true, true));
        assert!(list_contains(b"\"\x80\"", b"\"\x80\"", Comparison::Strong));
    }

    #[test]
    fn what_is_no_tag_matches_nothing_but_itself() {
        check("abcdef", r#""abcdef""#, (false, false));
        check(r#""abcdef""#, "abcdef", (false, false));
        check("abcdef", "abcdef", (false, true));
        check(r#"w/"1""#, r#"W/"1""#, (false, false));
        check(r#"w/"1""#, r#"w/"1""#, (false, true));
        check(r#"W\"1""#, r#"W\"1""#, (false, true));
        check(r#""a" x, "b""#, r#""b""#, (false, false));
        check(r#""a"#, r#""a""#, (false, false));
        check("", "", (false, false));
        check("abc\"", "abc\"", (false, true));
        check(r#""a "#, r#""a "#, (false, true));
    }
}
