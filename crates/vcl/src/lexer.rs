//! Bytes into words, one file at a time.
//!
//! What cannot be a word is reported and skipped, so that one run finds several mistakes. Every byte is looked at a
//! bounded number of times: a search for an end that fails goes to the end of the file once, and reading stops there.

use crate::codes::Code;
use crate::diagnostics::{Diagnostic, Reports};
use crate::limits::{FRACTION_DIGITS_MAX, INTEGER_DIGITS_MAX, REAL_DIGITS_MAX};
use crate::source_files::{FileId, Sources, Span};
use crate::tokens::{Mark, Token, Word};

/// The words of a file, with `Word::End` as the last.
pub fn words(sources: &Sources, file: FileId, reports: &mut Reports) -> Vec<Token> {
    let bytes = &sources.file(file).bytes;
    let mut lexer = Lexer { bytes, at: 0, file, tokens: Vec::with_capacity(bytes.len() / 5), reports };
    while lexer.at < bytes.len() && !lexer.reports.is_full() {
        lexer.step();
    }
    let end = bytes.len();
    lexer.push(Word::End, end, end);
    lexer.tokens
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    file: FileId,
    tokens: Vec<Token>,
    reports: &'a mut Reports,
}

/// Strings and inline C: opening, closing, whether line ends may stand inside, the word they make.
const DELIMITED: [(&[u8], &[u8], bool, Word); 4] = [
    (b"\"\"\"", b"\"\"\"", true, Word::Text(3)),
    (b"{\"", b"\"}", true, Word::Text(2)),
    (b"\"", b"\"", false, Word::Text(1)),
    (b"C{", b"}C", true, Word::InlineC),
];

impl Lexer<'_> {
    fn step(&mut self) {
        #[cfg(test)]
        crate::effort::spend(1);
        let rest = &self.bytes[self.at..];
        let first = rest[0];
        if matches!(first, b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        } else if first == b'#' || rest.starts_with(b"//") {
            self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            self.block_comment();
        } else if let Some(delimited) = DELIMITED.iter().find(|(open, ..)| rest.starts_with(open)) {
            self.delimited(delimited);
        } else if first == b':' && self.after_name() {
            // Fastly's `req.http.Cookie:name`, of which the parser speaks.
            self.at += 1 + rest[1..].iter().take_while(|b| is_name_byte(**b)).count();
        } else if first == b':' {
            self.blob();
        } else if first.is_ascii_alphabetic() {
            let length = rest.iter().position(|b| !is_name_byte(*b)).unwrap_or(rest.len());
            self.take(Word::Identifier, length);
        } else if first.is_ascii_digit() {
            self.number();
        } else if let Some((mark, text)) = Mark::ALL.iter().find(|(_, text)| rest.starts_with(text.as_bytes())) {
            self.take(Word::Mark(*mark), text.len());
        } else {
            self.unknown();
        }
    }

    fn block_comment(&mut self) {
        let start = self.at;
        let mut at = start + 2;
        while at < self.bytes.len() {
            let rest = &self.bytes[at..];
            if rest.starts_with(b"*/") {
                self.at = at + 2;
                return;
            }
            if rest.starts_with(b"/*") {
                let what = "a /* ... */ comment contains /*";
                let report = Diagnostic::new(Code::Syntax, self.span(at, at + 2), what)
                    .label("comments cannot be nested")
                    .note_at(self.span(start, start + 2), "the outer one begins here")
                    .way_out("end the outer comment first, or comment these lines out with `#`");
                self.reports.add(report);
                at += 2;
                continue;
            }
            at += 1;
        }
        self.endless(start, 2, "comment", "*/");
    }

    fn delimited(&mut self, (open, close, lines, word): &(&[u8], &[u8], bool, Word)) {
        let start = self.at;
        let inside = start + open.len();
        let rest = &self.bytes[inside..];
        let found = if *lines {
            find(rest, close)
        } else {
            rest.iter().position(|b| matches!(b, b'"' | b'\r' | b'\n')).filter(|at| rest[*at] == b'"')
        };
        if let Some(at) = found {
            self.take(*word, open.len() + at + close.len());
            return;
        }
        if *word == Word::Text(2) && self.after_acl_name() {
            let report = Diagnostic::new(Code::AclLongString, self.span(start, inside), "`{\"` begins a long string")
                .label("read as the start of a string that ends at `\"}`")
                .way_out("put a blank after the brace: `acl name { \"10.0.0.1\"; }`");
            self.reports.add(report);
            // Read on as it was meant.
            self.take(Word::Mark(Mark::BraceOpen), 1);
            return;
        }
        let (kind, close) =
            (if *word == Word::InlineC { "inline C" } else { "string" }, String::from_utf8_lossy(close));
        if *lines {
            self.endless(start, open.len(), kind, &close);
            return;
        }
        let end = inside + rest.iter().position(|b| matches!(b, b'\r' | b'\n')).unwrap_or(rest.len());
        let report =
            Diagnostic::new(Code::Unterminated, self.span(start, inside), "a string that does not end in its line")
                .label("begins here")
                .way_out("close it with `\"`; a string over several lines is written {\"…\"}");
        self.reports.add(report);
        self.at = end;
        self.push(*word, start, end.max(inside + 1).min(self.bytes.len()));
    }

    /// What began does not end before the file does.
    fn endless(&mut self, start: usize, length: usize, kind: &str, close: &str) {
        let what = format!("the {kind} that begins here never ends");
        let report = Diagnostic::new(Code::Unterminated, self.span(start, start + length), what)
            .way_out(format!("close it with `{close}`"));
        self.reports.add(report);
        self.at = self.bytes.len();
    }

    fn after_acl_name(&self) -> bool {
        let last_two = self.tokens.iter().rev().take(2).collect::<Vec<_>>();
        matches!(last_two[..], [name, acl] if name.word == Word::Identifier && self.text(acl) == b"acl")
    }

    /// Whether a name ends here, and not a number with its unit.
    fn after_name(&self) -> bool {
        let last_two = self.tokens.iter().rev().take(2).collect::<Vec<_>>();
        let ends = |token: &Token, at: usize| token.span.end as usize == at;
        match last_two[..] {
            [name, before] if matches!(before.word, Word::Integer(_) | Word::Real(_)) => {
                name.word == Word::Identifier && ends(name, self.at) && !ends(before, name.span.start as usize)
            }
            [name, ..] => name.word == Word::Identifier && ends(name, self.at),
            [] => false,
        }
    }

    fn blob(&mut self) {
        let rest = &self.bytes[self.at + 1..];
        let length = rest.iter().position(|b| !is_base64(*b)).unwrap_or(rest.len());
        let whole = self.span(self.at, self.at + 1 + length);
        if rest.get(length) != Some(&b':') {
            let odd = rest.get(length).filter(|byte| byte.is_ascii_graphic());
            let what = match odd {
                Some(odd) => format!("Illegal BLOB character: '{}'", char::from(*odd)),
                None => "Missing colon at end of BLOB".to_owned(),
            };
            let report = Diagnostic::new(Code::BadLiteral, whole, what)
                .way_out("a BLOB is Base64 between two colons: `:3q2+7w==:`");
            self.reports.add(report);
            // What is left of it is not looked at, if its end is to be seen.
            let line = &rest[..rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())];
            let end = odd.and_then(|_| line.iter().position(|b| *b == b':'));
            self.at += 1 + end.map_or(length, |end| end + 1);
            return;
        }
        if let Some(what) = fault_of_base64(&rest[..length]) {
            self.reports.add(Diagnostic::new(Code::BadLiteral, whole, what));
        }
        self.take(Word::Blob, length + 2);
    }

    fn number(&mut self) {
        let rest = &self.bytes[self.at..];
        let digits = |from: usize| rest[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let whole = digits(0);
        let (word, length) = if rest.get(whole) == Some(&b'.') {
            let length = whole + 1 + digits(whole + 1);
            if whole > REAL_DIGITS_MAX || length - whole - 1 > FRACTION_DIGITS_MAX {
                self.too_many_digits(length, "real", "a REAL has at most 12 digits before the point and 3 after it");
            }
            (Word::Real(self.parse(length)), length)
        } else {
            if whole > INTEGER_DIGITS_MAX {
                self.too_many_digits(whole, "integer", "an INT has at most 15 digits");
            }
            // Up to 15 digits fit; longer ones are reported.
            (Word::Integer(self.parse::<u64>(whole.min(INTEGER_DIGITS_MAX))), whole)
        };
        self.take(word, length);
    }

    fn parse<T: std::str::FromStr + Default>(&self, length: usize) -> T {
        let digits = std::str::from_utf8(&self.bytes[self.at..self.at + length]);
        digits.ok().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    fn too_many_digits(&mut self, length: usize, kind: &str, rule: &str) {
        let span = self.span(self.at, self.at + length);
        self.reports.add(Diagnostic::new(Code::BadLiteral, span, format!("Too many digits for {kind}.")).label(rule));
    }

    fn unknown(&mut self) {
        let rest = &self.bytes[self.at..];
        // A whole character, or a run of bytes that are none.
        let length = 1 + rest[1..].iter().take_while(|b| **b & 0xc0 == 0x80).count();
        let span = self.span(self.at, self.at + length);
        let what = match String::from_utf8_lossy(&rest[..length]).chars().next() {
            Some(c @ ('\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}' | '\'')) => {
                format!("`{c}` is no quotation mark of VCL: strings are written \"…\"")
            }
            Some('\u{feff}') => "a byte order mark, which VCL does not have".to_owned(),
            Some(c) if !c.is_control() => format!("`{c}` means nothing in VCL"),
            _ => format!("the byte 0x{:02x} means nothing in VCL", rest[0]),
        };
        self.reports.add(Diagnostic::new(Code::BadCharacter, span, what));
        self.at += length;
    }

    fn take(&mut self, word: Word, length: usize) {
        let start = self.at;
        self.at += length;
        self.push(word, start, self.at);
    }

    fn push(&mut self, word: Word, start: usize, end: usize) {
        let span = self.span(start, end);
        self.tokens.push(Token { word, span });
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span { file: self.file, start: start as u32, end: end as u32 }
    }

    fn text(&self, token: &Token) -> &[u8] {
        &self.bytes[token.span.start as usize..token.span.end as usize]
    }
}

/// A minus sign is part of a name: `a-b` is one.
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Characters of Base64 come in fours, padding at the end alone, and no bits are left over.
fn fault_of_base64(data: &[u8]) -> Option<String> {
    let padding = data.iter().rev().take_while(|b| **b == b'=').count();
    let digits = &data[..data.len() - padding];
    if digits.contains(&b'=') || padding > 2 {
        return Some("Wrong padding ('=') in BLOB".to_owned());
    }
    if !data.len().is_multiple_of(4) {
        return Some("BLOB must have n*4 base64 characters".to_owned());
    }
    let last = digits.last().filter(|_| padding > 0)?;
    let value = match last {
        b'A'..=b'Z' => last - b'A',
        b'a'..=b'z' => last - b'a' + 26,
        b'0'..=b'9' => last - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let left_over = value & if padding == 2 { 0b1111 } else { 0b11 };
    (left_over != 0).then(|| format!("Illegal BLOB character: '{}' leaves bits over", char::from(*last)))
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let found = haystack.windows(needle.len()).position(|window| window == needle);
    #[cfg(test)]
    crate::effort::spend(found.unwrap_or(haystack.len()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words between blanks, errors by their codes.
    fn check(text: &str, expect: &str) {
        let mut sources = Sources::default();
        let file = sources.add("t.vcl", text.as_bytes().to_vec());
        let mut reports = Reports::default();
        let tokens = words(&sources, file, &mut reports);
        let mut seen: Vec<String> = tokens.iter().map(|token| sources.text(token.span).replace('\n', "~")).collect();
        assert_eq!(seen.pop().as_deref(), Some(""), "{text}: the end");
        seen.extend(reports.finish().iter().map(|report| format!("[{}]", report.code)));
        assert_eq!(seen.join(" "), expect, "{text}");
    }

    #[test]
    fn words_are_parted_as_vcl_parts_them() {
        check("set req.http.X-Y = a-b;", "set req . http . X-Y = a-b ;");
        check("120 s 1.5h 7%4", "120 s 1.5 h 7 % 4");
        check("\"a\\\"{\"b\n\"}\"\"\"c\"\"\"", "\"a\\\" {\"b~\"} \"\"\"c\"\"\"");
        check("a# c\nb// d\n/* e\n */f", "a b f");
        check("!~!= != ! ~ += &&", "!~ != != ! ~ += &&");
        check(":3q2+7w==: C{ int i; }C", ":3q2+7w==: C{ int i; }C");
        check("ABC{", "ABC {");
        check("acl x { \"10.0.0.1\"/8; }", "acl x { \"10.0.0.1\" / 8 ; }");
    }

    #[test]
    fn what_is_no_word_is_reported() {
        check("a \"b\nc", "a \"b c [unterminated]");
        check("a /* b", "a [unterminated]");
        check("a /* b /* c */ d", "a d [syntax]");
        check("{\"a", "[unterminated]");
        check("acl x {\"10.0.0.1\";}", "acl x { \"10.0.0.1\" ; } [acl-long-string]");
        check("1234567890123456", "1234567890123456 [bad-literal]");
        check("1.2345", "1.2345 [bad-literal]");
        check(":abc:", ":abc: [bad-literal]");
        check("req.http.Cookie:name;", "req . http . Cookie ;"); // the parser speaks of it
        check("10:x;", "10 ; [bad-literal]");
        check("10s:x;", "10 s ; [bad-literal]");
        check("10 s:x;", "10 s ;");
        check("\"a\":x;", "\"a\" ; [bad-literal]");
        check("a $ \u{201c} b", "a b [bad-character] [bad-character]");
    }
}
