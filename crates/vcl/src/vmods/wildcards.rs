//! POSIX's fnmatch: `*`, `?`, `[…]` and `\`. Each `*` is gone back to at most once, so a match ends soon.

use crate::limits::WILDCARD_STEPS_MAX;
use crate::plain_values::Fault;

/// The flags.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// A `/` is matched by a `/` alone.
    pub slash_is_apart: bool,
    /// `\` takes the byte behind it as it is.
    pub escapes: bool,
    /// A `.` at the start, or behind a `/` that is apart, is matched by a `.` alone.
    pub dot_is_apart: bool,
}

pub fn is_match(pattern: &[u8], text: &[u8], how: How) -> Result<bool, Fault> {
    let (mut at_pattern, mut at_text) = (0, 0);
    // Where to go on when nothing fits: behind the last star, one byte of text further. Under `slash_is_apart` a star
    // that reached a slash is spent, and no star before it could have done better.
    let mut star: Option<(usize, usize)> = None;
    for _ in 0..WILDCARD_STEPS_MAX {
        if at_pattern == pattern.len() && at_text == text.len() {
            return Ok(true);
        }
        let is_first = at_text == 0 || how.slash_is_apart && text[at_text - 1] == b'/';
        let must_be_dot = how.dot_is_apart && is_first && text.get(at_text) == Some(&b'.');
        if pattern.get(at_pattern) == Some(&b'*') && !must_be_dot {
            star = Some((at_pattern + 1, at_text));
            at_pattern += 1;
            continue;
        }
        let here = text.get(at_text).and_then(|byte| one(&pattern[at_pattern..], *byte, how, must_be_dot));
        match (here, star) {
            (Some(length), _) => (at_pattern, at_text) = (at_pattern + length, at_text + 1),
            (None, Some((behind, from))) if from < text.len() && !(how.slash_is_apart && text[from] == b'/') => {
                star = Some((behind, from + 1));
                (at_pattern, at_text) = (behind, from + 1);
            }
            (None, _) => return Ok(false),
        }
    }
    Err(Fault::new(format!("std.fnmatch took more than {WILDCARD_STEPS_MAX} steps (WILDCARD_STEPS_MAX)")))
}

/// How many bytes of the pattern stand for this one byte of text.
fn one(pattern: &[u8], byte: u8, how: How, must_be_dot: bool) -> Option<usize> {
    // By what is not that byte itself.
    let is_free = !(must_be_dot || how.slash_is_apart && byte == b'/');
    match *pattern.first()? {
        b'?' => is_free.then_some(1),
        b'[' => match bracket(&pattern[1..], byte, how) {
            Some((matches, length)) => (matches && is_free).then_some(1 + length),
            // One that does not end is a byte.
            None => (byte == b'[').then_some(1),
        },
        b'\\' if how.escapes => (*pattern.get(1)? == byte).then_some(2),
        b'*' => None,
        other => (other == byte).then_some(1),
    }
}

/// Whether the byte is in the list behind `[`, and how long the list is with its `]`.
fn bracket(list: &[u8], byte: u8, how: How) -> Option<(bool, usize)> {
    let negated = matches!(list.first(), Some(b'!' | b'^'));
    let mut at = usize::from(negated);
    let (first, mut matches) = (at, false);
    loop {
        let mut low = *list.get(at)?;
        if low == b']' && at > first {
            return Some((matches != negated, at + 1));
        }
        if low == b'[' && list.get(at + 1) == Some(&b':') {
            let end = list[at..].windows(2).position(|pair| pair == b":]")?;
            matches |= is_of_class(&list[at + 2..at + end], byte);
            at += end + 2;
            continue;
        }
        if low == b'\\' && how.escapes {
            at += 1;
            low = *list.get(at)?;
        }
        at += 1;
        let mut high = low;
        if list.get(at) == Some(&b'-') && list.get(at + 1).is_some_and(|next| *next != b']') {
            at += 1;
            if list[at] == b'\\' && how.escapes {
                at += 1;
            }
            high = *list.get(at)?;
            at += 1;
        }
        matches |= (low..=high).contains(&byte);
    }
}

fn is_of_class(name: &[u8], byte: u8) -> bool {
    match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => byte == b' ' || byte == b'\t',
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asked of Varnish 7.1, but for the longer ones.
    #[test]
    fn patterns_match_as_fnmatch_does() {
        let check = |pattern: &str, text: &str, flags: &str, expect| {
            let how = How {
                slash_is_apart: !flags.contains("path"),
                escapes: !flags.contains("noescape"),
                dot_is_apart: flags.contains("period"),
            };
            assert_eq!(is_match(pattern.as_bytes(), text.as_bytes(), how), Ok(expect), "{pattern} {text} {flags}");
        };
        check("*/b", "a/b", "", true);
        check("*", "a/b", "", false);
        check("*", "a/b", "path", true);
        check("[!a]x", "bx", "", true);
        check("\\*", "*", "", true);
        check("\\*", "\\x", "noescape", true);
        check("*", ".a", "", true);
        check("*", ".a", "period", false);
        check("a[b-d]?", "ac1", "", true);
        check("a[]-]", "a]", "", true);
        check("a\\", "a\\", "", false);
        check("[[:digit:]]", "5", "", true);
        check("a**b", "aXXb", "", true);
        check("/x/*", "/x/.y", "period", false);
        check("[a", "[a", "", true);
        check("*.jpg", "a.b.jpg", "", true);
        check("/*/x*/y", "/aa/xbb/y", "", true);
        check("/*/y", "/a/b/y", "", false);
        check("*a*b*c", "xxaxxbxxbxxc", "", true);
        check("", "", "", true);
        check("?", "", "", false);
        check("[^/]", "/", "path", false);
        check("a?b", "a/b", "", false);
    }

    #[test]
    fn many_stars_end_soon() {
        let (pattern, text) = ("a*".repeat(100) + "b", "a".repeat(10_000));
        let how = How { slash_is_apart: false, escapes: true, dot_is_apart: false };
        assert_eq!(is_match(pattern.as_bytes(), text.as_bytes(), how), Ok(false));
    }
}
