//! Which regexes mean the same to the linear-time engine as to PCRE2, whose language VCL's is.
//!
//! VCL compiles with no options, so: bytes, not characters; letters count; `.` is any byte but a line feed; `^` is the
//! start; `$` is the end, or before a line feed that is the last byte. A pattern is translated only if it is made of
//! what is listed here; anything else goes to PCRE2.
//!
//! * Bytes that stand for themselves. One that is not ASCII is written `\xHH`, because a repetition behind a character
//!   of several bytes repeats only the last.
//! * `\` before punctuation other than `<` and `>` (which would be word boundaries there); `\t \n \r \f \e \a \xHH`;
//!   `\d \w \s \D \W \S \b \B \A`, which are ASCII on both sides. Not `\v`, a class to one and a byte to the other.
//! * `[…]` of bytes, ranges of bytes, such escapes and `[:names:]`. A `[`, `&`, `-` or `~` that is a byte is escaped:
//!   nested and computed classes are the other engine's alone. Not a `]` that is first.
//! * `(`, `(?:`, `(?i:` and, at the start of the pattern or of a group, `(?i)`; `|`; `*`, `+`, `?`, `{n}`, `{n,}`,
//!   `{n,m}`, each also with `?`. Not possessive ones, not repetitions of assertions or repetitions.
//!
//! The one difference that remains is `$` in a text that ends with a line feed: `Pattern` gives such texts to PCRE2.
//! Whether a text matches does not depend on how an engine searches. Which part matches does, and both prefer the same
//! (first alternative, longest or shortest repetition) except where a repeated group can match nothing: then PCRE2
//! leaves the loop. `Pattern` therefore substitutes by PCRE2 where there is such a loop.

/// The pattern as the linear-time engine has it; `None` when its meaning might differ.
pub fn translate(pattern: &[u8]) -> Option<String> {
    let mut reader = Reader { pattern, at: 0, out: String::with_capacity(pattern.len() + 8), may_repeat: false };
    let mut group_start = true;
    let mut depth = 0usize;
    while let Some(byte) = reader.next() {
        let at_start = std::mem::replace(&mut group_start, false);
        match byte {
            b'\\' => reader.escape(false)?,
            b'[' => reader.class()?,
            b'(' => {
                group_start = true;
                depth += usize::from(reader.group(at_start)?);
            }
            b')' => {
                depth = depth.checked_sub(1)?;
                reader.push(")", true);
            }
            b'|' => reader.push("|", false),
            b'*' | b'+' | b'?' => reader.repetition(byte)?,
            b'{' => reader.counted_repetition()?,
            b'^' | b'$' => reader.push_byte(byte, false),
            b'.' => reader.push_byte(byte, true),
            b'}' | b']' => reader.push(if byte == b'}' { "\\}" } else { "\\]" }, true),
            _ => reader.literal(byte),
        }
    }
    (depth == 0).then_some(reader.out)
}

struct Reader<'p> {
    pattern: &'p [u8],
    at: usize,
    out: String,
    /// What was read last can be repeated: it is no assertion and no repetition.
    may_repeat: bool,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.pattern.get(self.at).copied()
    }

    fn push(&mut self, text: &str, may_repeat: bool) {
        self.out.push_str(text);
        self.may_repeat = may_repeat;
    }

    fn push_byte(&mut self, byte: u8, may_repeat: bool) {
        self.out.push(char::from(byte));
        self.may_repeat = may_repeat;
    }

    fn literal(&mut self, byte: u8) {
        if byte.is_ascii_graphic() || byte == b' ' {
            self.push_byte(byte, true);
        } else {
            self.push(&format!("\\x{byte:02X}"), true);
        }
    }

    fn escape(&mut self, in_class: bool) -> Option<()> {
        let byte = self.next()?;
        match byte {
            b'<' | b'>' => return None,
            b'd' | b'w' | b's' | b'D' | b'W' | b'S' => self.push(&format!("\\{}", char::from(byte)), true),
            b'b' | b'B' | b'A' if !in_class => self.push(&format!("\\{}", char::from(byte)), false),
            b't' => self.literal(b'\t'),
            b'n' => self.literal(b'\n'),
            b'r' => self.literal(b'\r'),
            b'f' => self.literal(0x0c),
            b'e' => self.literal(0x1b),
            b'a' => self.literal(0x07),
            b'x' => {
                let digits = std::str::from_utf8(self.pattern.get(self.at..self.at + 2)?).ok()?;
                let value = u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
                self.at += 2;
                self.push(&format!("\\x{value:02X}"), true);
            }
            _ if byte.is_ascii_punctuation() => self.push(&format!("\\{}", char::from(byte)), true),
            _ => return None,
        }
        Some(())
    }

    /// Behind `[`.
    fn class(&mut self) -> Option<()> {
        self.out.push('[');
        if self.peek() == Some(b'^') {
            self.at += 1;
            self.out.push('^');
        }
        if self.peek() == Some(b']') {
            return None;
        }
        // The byte before, if a range can begin with it.
        let mut before_range = false;
        loop {
            let byte = self.next()?;
            let is_single = match byte {
                b']' => break,
                b'[' if self.pattern[self.at..].starts_with(b":") => {
                    let rest = &self.pattern[self.at + 1..];
                    let end = rest.windows(2).position(|pair| pair == b":]")?;
                    let name = std::str::from_utf8(&rest[..end]).ok()?;
                    self.out.push_str(&format!("[:{}:]", class_name(name)?));
                    self.at += 1 + end + 2;
                    false
                }
                b'-' if before_range && self.peek() != Some(b']') => {
                    self.out.push('-');
                    self.range_end()?;
                    false
                }
                b'-' if self.peek() == Some(b']') || self.out.ends_with(['[', '^']) => {
                    self.out.push_str("\\-");
                    false
                }
                // Behind a range or a class: to PCRE2 a byte, but better not argued about.
                b'-' => return None,
                b'\\' => {
                    let class = self.peek()?.is_ascii_alphabetic() && b"dwsDWS".contains(&self.peek()?);
                    self.escape(true)?;
                    !class
                }
                b'[' | b'&' | b'~' | b'^' => {
                    self.out.push('\\');
                    self.out.push(char::from(byte));
                    true
                }
                _ => {
                    self.literal(byte);
                    true
                }
            };
            before_range = is_single;
        }
        self.push("]", true);
        Some(())
    }

    /// What stands behind the `-` of a range: one byte.
    fn range_end(&mut self) -> Option<()> {
        match self.next()? {
            b'[' => None,
            b'\\' if b"dwsDWS".contains(&self.peek()?) => None,
            b'\\' => self.escape(true),
            byte @ (b'&' | b'~' | b'^' | b'-') => {
                self.out.push('\\');
                self.out.push(char::from(byte));
                Some(())
            }
            byte => {
                self.literal(byte);
                Some(())
            }
        }
    }

    /// Behind `(`. Whether a group is opened, which `(?i)` does not.
    fn group(&mut self, at_start: bool) -> Option<bool> {
        let rest = &self.pattern[self.at..];
        if !rest.starts_with(b"?") && !rest.starts_with(b"*") {
            self.push("(", false);
            return Some(true);
        }
        for (written, needs_start) in [("?:", false), ("?i:", false), ("?i)", true)] {
            if rest.starts_with(written.as_bytes()) && (at_start || !needs_start) {
                self.at += written.len();
                self.push("(", false);
                self.push(written, false);
                return Some(!needs_start);
            }
        }
        None
    }

    fn repetition(&mut self, byte: u8) -> Option<()> {
        if !self.may_repeat {
            return None;
        }
        self.push_byte(byte, false);
        self.lazy()
    }

    /// Behind `{`.
    fn counted_repetition(&mut self) -> Option<()> {
        let rest = &self.pattern[self.at..];
        let end = rest.iter().position(|byte| *byte == b'}')?;
        let inside = std::str::from_utf8(&rest[..end]).ok()?;
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        let number = |text: &str| !text.is_empty() && text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit());
        if !self.may_repeat || !number(least) || !(most.is_empty() || number(most)) {
            return None;
        }
        self.at += end + 1;
        self.push(&format!("{{{inside}}}"), false);
        self.lazy()
    }

    fn lazy(&mut self) -> Option<()> {
        match self.peek() {
            Some(b'?') => {
                self.at += 1;
                self.out.push('?');
                Some(())
            }
            // A possessive repetition, or one of a repetition.
            Some(b'+' | b'*' | b'{') => None,
            _ => Some(()),
        }
    }
}

fn class_name(name: &str) -> Option<&str> {
    const NAMES: [&str; 14] = [
        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper",
        "word", "xdigit",
    ];
    NAMES.contains(&name).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_means_the_same_is_translated() {
        let check = |pattern: &str, expect: Option<&str>| {
            assert_eq!(translate(pattern.as_bytes()).as_deref(), expect, "{pattern}");
        };
        check("^/a\\.(jpg|png)$", Some("^/a\\.(jpg|png)$"));
        check("(?i)ab|c", Some("(?i)ab|c"));
        check("(?i:ab){2,}?", Some("(?i:ab){2,}?"));
        check("a((?i)b|c)", Some("a((?i)b|c)"));
        check("a(?i)b", None);
        check("\u{e9}+", Some("\\xC3\\xA9+"));
        check("[a-z_.&[-]", Some("[a-z_.\\&\\[\\-]"));
        check("[^\\w\\-/]", Some("[^\\w\\-/]"));
        check("[[:digit:]x]", Some("[[:digit:]x]"));
        check("[[:nosuch:]]", None);
        check("[]a]", None);
        check("[a-\\d]", None);
        check("[\\d-z]", None);
        check("[a--b]", Some("[a-\\-b]"));
        check("a++", None);
        check("a**", None);
        check("^*", None);
        check("a{,3}", None);
        check("a{x}", None);
        check("(?=a)", None);
        check("(?<n>a)", None);
        check("(a)\\1", None);
        check("\\v", None);
        check("\\<a", None);
        check("\\Qa", None);
        check("(*UTF)a", None);
        check("a#b c", Some("a#b c"));
        check("\\x4", None);
        check("\\x41\\t", Some("\\x41\\x09"));
        check("}]", Some("\\}\\]"));
        check("a)", None);
        check("((?i)a", None);
    }
}
