//! regsub and regsuball: as Varnish does it, down to its corners.
//!
//! * `\0` to `\9` in the replacement are groups; a group that took no part is empty. `\` before anything else is
//!   dropped, `\&` is `&`, and a `\` at the end stays.
//! * After the first match of regsuball only matches that are not empty count: `regsuball("abc", "", "-")` is `-abc`.

use smallvec::SmallVec;

use super::pattern::{Groups, Pattern};
use crate::limits::SUBSTITUTIONS_MAX;
use crate::plain_values::Fault;
use crate::scope_arena::Arena;

/// The text with its first match, or all, replaced; the same text when nothing matches.
pub fn substitute<'a>(
    pattern: &Pattern,
    text: &'a [u8],
    replacement: &'a [u8],
    all: bool,
    arena: &'a Arena,
) -> Result<&'a [u8], Fault> {
    if text.len() < pattern.bytes_min() {
        return Ok(text);
    }
    let wants_groups = replacement.contains(&b'\\');
    let mut groups = Groups::default();
    if !pattern.find(text, 0, false, wants_groups, &mut groups)? {
        return Ok(text);
    }
    if replacement.is_empty()
        && let Some(rest) = cut(pattern, text, &groups, all)
    {
        return Ok(rest);
    }
    let mut parts: SmallVec<[&[u8]; 16]> = SmallVec::new();
    let mut copied = 0;
    for _ in 0..SUBSTITUTIONS_MAX {
        // A look-behind that resets the start can put it before what is copied already.
        let (start, end) = groups[0].unwrap_or((copied, copied));
        parts.push(text.get(copied..start).unwrap_or_default());
        expand(replacement, text, &groups, &mut parts);
        copied = end.max(copied);
        if !all || !pattern.find(text, copied, true, wants_groups, &mut groups)? {
            parts.push(&text[copied..]);
            return arena.join(&parts);
        }
    }
    Err(Fault::new(format!("regsuball replaced more than {SUBSTITUTIONS_MAX} matches (SUBSTITUTIONS_MAX)")))
}

/// What is left of the text when its only match is dropped: a part of it, if the match lies at an end.
fn cut<'a>(pattern: &Pattern, text: &'a [u8], groups: &Groups, all: bool) -> Option<&'a [u8]> {
    let (start, end) = groups[0].filter(|(start, end)| start <= end)?;
    match (start, end) {
        // Behind the end there is nothing but an empty match, which counts no more.
        (start, end) if end == text.len() && (!all || pattern.bytes_min() > 0) => Some(&text[..start]),
        (0, end) if !all => Some(&text[end..]),
        _ => None,
    }
}

fn expand<'a>(replacement: &'a [u8], text: &'a [u8], groups: &Groups, parts: &mut SmallVec<[&'a [u8]; 16]>) {
    let mut rest = replacement;
    let mut searched = 0;
    while let Some(at) = rest[searched..].iter().position(|byte| *byte == b'\\').map(|at| at + searched) {
        let Some(next) = rest.get(at + 1) else { break };
        parts.push(&rest[..at]);
        rest = &rest[at + 1..];
        searched = 1;
        if next.is_ascii_digit() {
            if let Some((start, end)) = groups[usize::from(next - b'0')] {
                parts.push(&text[start..end]);
            }
            rest = &rest[1..];
            searched = 0;
        }
    }
    parts.push(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, pattern: &str, replacement: &str, all: bool, expect: &str) {
        let arena = Arena::default();
        let pattern = Pattern::new(pattern.as_bytes());
        let made = substitute(&pattern, text.as_bytes(), replacement.as_bytes(), all, &arena).expect("it is short");
        assert_eq!(String::from_utf8_lossy(made), expect, "{text} {pattern:?} {replacement}");
    }

    /// Each of these was asked of Varnish 7.1.
    #[test]
    fn it_is_as_varnish_does_it() {
        check("banana", "a*", "X", true, "XbXnXnX");
        check("abc", "", "-", true, "-abc");
        check("abc", "b", "[\\5\\0\\\\1\\&\\", false, "a[b\\1&\\c");
        check("aXbXc", "X|(?=b)", "<\\0>", true, "a<X>b<X>c");
        check("abc", "(x)?b", "[\\1]", false, "a[]c");
        check("foo bar", "\\b", "|", true, "|foo bar");
        check("aaa", "^a", "b", true, "baa");
        check("aaa", "a?", "b", true, "bbb");
        check("aab", "b*|a", "X", true, "XXXX");
    }

    #[test]
    fn what_does_not_match_is_not_copied() {
        let arena = Arena::default();
        let text = b"abc";
        let made = substitute(&Pattern::new(b"x"), text, b"y", true, &arena).expect("it is short");
        assert!(std::ptr::eq(made, text) && arena.used_bytes() == 0);
    }

    #[test]
    fn what_is_cut_off_at_an_end_is_not_copied() {
        let (text, arena) = (b"a.test:80", Arena::default());
        for (pattern, all, expect) in
            [(":[0-9]+", false, "a.test"), ("^a", false, ".test:80"), ("[0-9]+", true, "a.test:")]
        {
            let made = substitute(&Pattern::new(pattern.as_bytes()), text, b"", all, &arena).expect("it is short");
            assert_eq!((made, arena.used_bytes()), (expect.as_bytes(), 0), "{pattern}");
        }
        check("aab", "a", "", true, "b");
        check("aab", "b*", "", true, "aa");
        check("", "^", "", false, "");
    }

    #[test]
    fn substitutions_are_limited() {
        let (text, arena) = (vec![b'a'; SUBSTITUTIONS_MAX + 1], Arena::default());
        let why = substitute(&Pattern::new(b"a"), &text, b"", true, &arena).expect_err("they are too many");
        assert!(why.reason().contains("SUBSTITUTIONS_MAX"), "{why}");
    }
}
