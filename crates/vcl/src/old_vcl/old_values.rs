//! Values of old: names, strings that are joined by standing beside one another, and `%22` within strings.

use crate::source_files::Span;
use crate::tokens::{Mark, Word};

use super::Dialect;
use super::old_bodies::Body;
use super::old_names::{Access, Renamed, is_variable, renamed};

/// Why something cannot be carried over.
#[derive(Clone, Debug)]
pub struct Problem {
    pub span: Span,
    pub why: String,
    pub way_out: Option<&'static str>,
}

impl Body<'_, '_> {
    /// Translates words `from..to` as one value or several.
    pub(super) fn values(&mut self, from: usize, to: usize, problems: &mut Vec<Problem>) {
        let mut after_value = false;
        let mut at = from;
        while at < to {
            let word = self.text.word(at);
            let is_value = matches!(word.word, Word::Identifier | Word::Integer(_) | Word::Real(_) | Word::Text(_));
            if is_value && after_value && self.is_unit(at, from) {
                at += 1;
                continue;
            }
            if is_value && after_value {
                self.edits.insert(self.text.start(at), "+ ");
            }
            match word.word {
                Word::Identifier => {
                    let end = self.name_end(at);
                    if self.text.is(end, Mark::ParenOpen) {
                        // Of a file that includes this one it may be imported; twice is no mistake.
                        self.shared.needs.std |= self.text.text(at) == "std";
                        after_value = false;
                    } else {
                        self.name(at, end, Access::Read, problems);
                        after_value = true;
                    }
                    at = end;
                    continue;
                }
                Word::Text(_) => self.unescape(at),
                Word::InlineC | Word::Blob => {
                    problems.push(Problem { span: word.span, why: "this is no value".to_owned(), way_out: None })
                }
                _ => {}
            }
            after_value = is_value || word.is(Mark::ParenClose);
            at += 1;
        }
    }

    /// `120 s`: the word belongs to the number before it.
    fn is_unit(&self, at: usize, from: usize) -> bool {
        const UNITS: [&str; 14] = ["ms", "s", "m", "h", "d", "w", "y", "b", "kb", "mb", "gb", "tb", "pb", "%"];
        at > from
            && self.text.is_identifier(at)
            && matches!(self.text.word(at - 1).word, Word::Integer(_) | Word::Real(_))
            && UNITS.contains(&self.text.lower(at).as_str())
            && !self.text.is(at + 1, Mark::Dot)
    }

    /// Behind the last part of the name that begins here.
    pub(super) fn name_end(&self, at: usize) -> usize {
        let mut end = at + 1;
        while self.text.is(end, Mark::Dot) && self.text.is_identifier(end + 1) {
            end += 2;
        }
        end
    }

    /// The parts of a name.
    pub(super) fn parts(&self, at: usize, end: usize) -> Vec<String> {
        (at..end).step_by(2).map(|at| self.text.text(at)).collect()
    }

    /// Translates the name in words `at..end`; the variable's present name when it has one.
    pub(super) fn name(
        &mut self,
        at: usize,
        end: usize,
        access: Access,
        problems: &mut Vec<Problem>,
    ) -> Option<String> {
        let parts = self.parts(at, end);
        let (start, behind) = (self.text.start(at), self.text.end_before(end));
        if let [name] = &parts[..] {
            let value = self.shared.director_value(name, self.method);
            if let Some(value) = value {
                self.edits.replace(start, behind, value);
            }
            return None;
        }
        if !is_variable(&parts[0]) {
            return None;
        }
        match renamed(&parts, self.method, access) {
            Renamed::To(now) => {
                if now != parts.join(".") {
                    self.edits.replace(start, behind, now.clone());
                }
                Some(now)
            }
            Renamed::Std(now) => {
                self.shared.needs.std = true;
                self.edits.replace(start, behind, now);
                None
            }
            Renamed::Gone { why, way_out } => {
                problems.push(Problem { span: self.text.span(at, end), why, way_out });
                None
            }
        }
    }

    /// Until Varnish 2, `%22` in a string was a character.
    pub(super) fn unescape(&mut self, at: usize) {
        let word = self.text.word(at);
        if self.shared.dialect != Dialect::Vcl2 || word.word != Word::Text(1) {
            return;
        }
        let (start, end) = (word.span.start as usize, word.span.end as usize);
        let inside = &self.text.bytes[start + 1..end - 1];
        let plain = unescaped(inside);
        if plain == inside {
            return;
        }
        let needs_long = plain.iter().any(|b| matches!(b, b'"' | b'\r' | b'\n'));
        let (open, close): (&[u8], &[u8]) = match (needs_long, plain.windows(2).any(|two| two == b"\"}")) {
            (false, _) => (b"\"", b"\""),
            (true, false) => (b"{\"", b"\"}"),
            (true, true) => (b"\"\"\"", b"\"\"\""),
        };
        self.edits.replace(start, end, [open, &plain, close].concat());
        let why = "until Varnish 2, a percent sign and two digits were a character; `--from 3` if they are meant as they stand";
        self.note(word.span, "the escapes in this string are replaced", why);
    }
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| text.get(at).and_then(|b| char::from(*b).to_digit(16));
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match (text[at], digit(at + 1), digit(at + 2)) {
            // A zero would end the string of old.
            (b'%', Some(high), Some(low)) if high + low > 0 => {
                plain.push((high * 16 + low) as u8); // two digits are at most 255
                at += 3;
            }
            (byte, ..) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_characters() {
        let check = |text: &str, expect: &str| {
            assert_eq!(String::from_utf8(unescaped(text.as_bytes())).unwrap(), expect, "{text}");
        };
        check("a%22b%2F", "a\"b/");
        check("100%", "100%");
        check("%2x%00%", "%2x%00%");
        check("", "");
    }
}
