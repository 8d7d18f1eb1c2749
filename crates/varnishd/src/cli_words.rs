//! A line of the management protocol as words: parted by blanks, with `"` around what has blanks in it, and backslashes
//! for what cannot be typed. What a word means is not known here.

use crate::limits::WORDS_MAX;

/// The words of a line, or what is wrong with it.
pub fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(words);
        }
        if words.len() == WORDS_MAX {
            return Err("Too many words");
        }
        let (word, after) = match rest.strip_prefix(b"\"") {
            Some(quoted) => word(quoted, true)?,
            None => word(rest, false)?,
        };
        words.push(word);
        rest = after;
    }
}

fn word(mut rest: &[u8], is_quoted: bool) -> Result<(Vec<u8>, &[u8]), &'static str> {
    let mut word = Vec::new();
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'\\' => {
                let (byte, after) = escaped(after).ok_or("Invalid backslash sequence")?;
                word.push(byte);
                rest = after;
                continue;
            }
            b'"' if is_quoted && after.first().is_none_or(u8::is_ascii_whitespace) => return Ok((word, after)),
            b'"' if is_quoted => return Err("Missing separator between arguments"),
            byte if !is_quoted && byte.is_ascii_whitespace() => return Ok((word, rest)),
            byte => word.push(byte),
        }
        rest = after;
    }
    if is_quoted { Err("Missing '\"'") } else { Ok((word, rest)) }
}

/// `\n`, `\r`, `\t`, `\"`, `\\`, `\ooo` in octal, `\xhh`.
fn escaped(rest: &[u8]) -> Option<(u8, &[u8])> {
    let (&letter, after) = rest.split_first()?;
    match letter {
        b'n' => Some((b'\n', after)),
        b'r' => Some((b'\r', after)),
        b't' => Some((b'\t', after)),
        b'"' | b'\\' => Some((letter, after)),
        b'x' => number(after, 2, 16),
        b'0'..=b'7' => number(rest, 3, 8),
        _ => None,
    }
}

fn number(rest: &[u8], digits: usize, base: u32) -> Option<(u8, &[u8])> {
    let (written, after) = rest.split_at_checked(digits)?;
    let written = std::str::from_utf8(written).ok().filter(|text| !text.starts_with('+'))?;
    Some((u8::from_str_radix(written, base).ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: Result<&[&str], &str>) {
        let got = words(line.as_bytes());
        let got =
            got.map(|words| words.into_iter().map(|w| String::from_utf8_lossy(&w).into_owned()).collect::<Vec<_>>());
        assert_eq!(got, expect.map(|words| words.iter().map(|w| (*w).to_owned()).collect()), "{line}");
    }

    #[test]
    fn words_are_parted_by_blanks_and_joined_by_quotes() {
        check("  vcl.load  a\t/x.vcl \r", Ok(&["vcl.load", "a", "/x.vcl"]));
        check(
            r#"vcl.inline a "vcl 4.1;\nbackend default none;""#,
            Ok(&["vcl.inline", "a", "vcl 4.1;\nbackend default none;"]),
        );
        check(r#"ban obj.http.x == """#, Ok(&["ban", "obj.http.x", "==", ""]));
        check(r"a \x41\101\\\t", Ok(&["a", "AA\\\t"]));
        check(r#"a b"c"#, Ok(&["a", "b\"c"]));
        check("", Ok(&[]));
    }

    #[test]
    fn what_is_no_word_is_said() {
        check(r#"a "b"#, Err("Missing '\"'"));
        check(r#"a "b"c"#, Err("Missing separator between arguments"));
        for escape in [r"\q", r"\x4", r"\xzz", r"\9", r"\777", "\\", r"\x+4"] {
            check(escape, Err("Invalid backslash sequence"));
        }
        check(&"a ".repeat(WORDS_MAX + 1), Err("Too many words"));
    }
}
