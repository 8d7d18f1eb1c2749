//! Words into a tree: recursive descent, with a named limit on every recursion and list.
//!
//! After a mistake the parser goes on at the end of the statement or definition, so that one run finds several. It
//! knows no names and no types; what only another language says is recognised by `foreign`.

use crate::codes::Code;
use crate::diagnostics::{Diagnostic, Reported, Reports};
use crate::foreign;
use crate::source_files::{Sources, Span};
use crate::syntax::{Definition, Identifier};
use crate::tokens::{Mark, Token, Word};

mod definition_parser;
mod expression_parser;
mod statement_parser;

type Parsed<T> = Result<T, Reported>;

/// The definitions of a program, as far as they can be read.
pub fn parse(words: &[Token], sources: &Sources, reports: &mut Reports) -> Vec<Definition> {
    let mut parser = Parser { words, at: 0, sources, reports, expression_depth: 0, block_depth: 0, unclosed_at: None };
    let mut definitions = Vec::new();
    if parser.version_is_first(&mut definitions) {
        while parser.word().word != Word::End && !parser.reports.is_full() {
            let before = parser.at;
            match parser.definition() {
                Ok(definition) => definitions.push(definition),
                Err(Reported) => parser.skip_to_definition(before),
            }
        }
    }
    definitions
}

/// Reads what another file may include: definitions, with or without a version, or statements. Only for the mistakes.
pub fn parse_part(words: &[Token], sources: &Sources, reports: &mut Reports) {
    let mut parser = Parser { words, at: 0, sources, reports, expression_depth: 0, block_depth: 0, unclosed_at: None };
    while parser.word().word != Word::End && !parser.reports.is_full() {
        let before = parser.at;
        let first = parser.word();
        let is_statement = first.word == Word::Identifier
            && !DEFINITION_WORDS.iter().any(|known| parser.is_identifier(first, known))
            && !foreign::is_definition(&sources.text(first.span));
        if is_statement {
            if let Err(Reported) = parser.statement() {
                parser.skip_statement(before);
            }
        } else if let Err(Reported) = parser.definition() {
            parser.skip_to_definition(before);
        }
    }
}

struct Parser<'a> {
    words: &'a [Token],
    at: usize,
    sources: &'a Sources,
    reports: &'a mut Reports,
    expression_depth: usize,
    block_depth: usize,
    /// The word before which an open block was reported, so that the blocks around it are not reported too.
    unclosed_at: Option<usize>,
}

/// The words that begin definitions; they are case-sensitive.
const DEFINITION_WORDS: [&[u8]; 9] =
    [b"vcl", b"import", b"include", b"sub", b"acl", b"backend", b"probe", b"unused", b"director"];

impl<'a> Parser<'a> {
    /// The file must say its version first. Without, it may be of another time, and each of its statements would be
    /// reported for that one reason.
    fn version_is_first(&mut self, definitions: &mut Vec<Definition>) -> bool {
        let first = self.word();
        if self.is_identifier(first, b"vcl") {
            if let Ok(version) = self.version() {
                definitions.push(version);
            } else {
                self.skip_to_definition(self.at);
            }
            return true;
        }
        let report = Diagnostic::new(Code::VersionMissing, first.span, "a VCL file begins with its version")
            .label("expected `vcl 4.1;`")
            .way_out("write `vcl 4.1;` in the first line, or `vcl 4.0;` for a file of that age");
        self.reports.add(foreign::version_missing(report, self.sources, first.span));
        true
    }

    /// On from a definition that cannot be read: to a word that begins one, at the beginning of a line or after the
    /// end of something.
    fn skip_to_definition(&mut self, start: usize) {
        let mut depth = 0usize;
        self.at = self.at.max(start);
        while self.word().word != Word::End {
            let word = self.word();
            let begins = DEFINITION_WORDS.iter().any(|known| self.is_identifier(word, known))
                && self.at > start
                && (depth == 0
                    && matches!(self.words[self.at - 1].word, Word::Mark(Mark::BraceClose | Mark::Semicolon))
                    || self.sources.begins_line(word.span));
            if begins {
                return;
            }
            match word.word {
                Word::Mark(Mark::BraceOpen) => depth += 1,
                Word::Mark(Mark::BraceClose) => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
        }
    }

    fn word(&self) -> Token {
        #[cfg(test)]
        crate::effort::spend(1);
        self.words[self.at.min(self.words.len() - 1)]
    }

    /// The word after the present one, and so on.
    fn ahead(&self, by: usize) -> Token {
        #[cfg(test)]
        crate::effort::spend(by);
        self.words[(self.at + by).min(self.words.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let word = self.word();
        if word.word != Word::End {
            self.at += 1;
        }
        word
    }

    /// Where the last word that was taken stands.
    fn last(&self) -> Span {
        self.words[self.at.saturating_sub(1)].span
    }

    fn is_identifier(&self, word: Token, text: &[u8]) -> bool {
        word.word == Word::Identifier && self.sources.bytes(word.span) == text
    }

    fn is_mark(&self, mark: Mark) -> bool {
        self.word().is(mark)
    }

    fn take(&mut self, mark: Mark) -> bool {
        let there = self.is_mark(mark);
        if there {
            self.at += 1;
        }
        there
    }

    fn expect(&mut self, mark: Mark, what_for: &str) -> Parsed<Span> {
        if self.is_mark(mark) {
            Ok(self.next().span)
        } else {
            Err(self.unexpected(&format!("`{}` {what_for}", mark.text())))
        }
    }

    fn identifier(&mut self, what: &str) -> Parsed<Identifier> {
        let word = self.word();
        if word.word != Word::Identifier {
            return Err(self.unexpected_for(what, "ID"));
        }
        self.at += 1;
        Ok(Identifier { text: self.sources.text(word.span), span: word.span })
    }

    /// The bytes within the quotes.
    fn text_bytes(&self, word: Token) -> Vec<u8> {
        let Word::Text(delimiter) = word.word else { return Vec::new() };
        let bytes = self.sources.bytes(word.span);
        let delimiter = usize::from(delimiter);
        bytes.get(delimiter..bytes.len().saturating_sub(delimiter)).unwrap_or_default().to_vec()
    }

    /// A missing `;` is reported where it belongs, at the end of what it ends; reading goes on as if it were there.
    fn semicolon(&mut self) -> Parsed<()> {
        if self.take(Mark::Semicolon) {
            return Ok(());
        }
        let (last, word) = (self.last(), self.word());
        if let Word::Text(_) = word.word
            && matches!(self.words[self.at - 1].word, Word::Text(_) | Word::Identifier)
        {
            let report =
                Diagnostic::new(Code::OldVcl, word.span, "strings are not joined by standing beside one another")
                    .label("this string follows an expression without an operator")
                    .way_out("join them with `+`");
            return Err(self.reports.add(report));
        }
        let ended = word.word == Word::End || word.is(Mark::BraceClose) || !self.sources.same_line(last, word.span);
        if !ended {
            return Err(self.unexpected("`;`"));
        }
        let report =
            Diagnostic::new(Code::MissingSemicolon, last.after(), "`;` is missing at the end of the statement")
                .label("after this");
        self.reports.add(report);
        Ok(())
    }

    fn unexpected(&mut self, expected: &str) -> Reported {
        let mark =
            expected.strip_prefix('`').and_then(|rest| rest.split_once('`')).map(|(mark, _)| format!("'{mark}'"));
        self.unexpected_for(expected, &mark.unwrap_or_default())
    }

    /// `token` is what Varnish calls that which is expected; empty where it has no word for it.
    fn unexpected_for(&mut self, expected: &str, token: &str) -> Reported {
        let word = self.word();
        if word.word == Word::InlineC {
            return self.reports.add(foreign::inline_c(word.span));
        }
        let found = word.show(self.sources);
        let report = Diagnostic::new(Code::Syntax, word.span, format!("expected {expected}, found {found}"));
        self.reports.add(match token {
            "" => report,
            _ if word.word == Word::End => report,
            token => report.in_varnish(format!("Expected {token} got '{}'", self.sources.text(word.span))),
        })
    }

    /// Ends the reading: behind a limit nothing is known.
    fn too_much(&mut self, span: Span, what: String) -> Reported {
        self.at = self.words.len() - 1;
        self.unclosed_at = Some(self.at);
        self.reports.add(Diagnostic::new(Code::TooMuch, span, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer;

    /// Definitions that could be read, then what is wrong, with its line.
    fn check(text: &str, expect: &str) {
        let (mut sources, mut reports) = (Sources::default(), Reports::default());
        let file = sources.add("t.vcl", text.as_bytes().to_vec());
        let words = lexer::words(&sources, file, &mut reports);
        let definitions = parse(&words, &sources, &mut reports);
        let mut shown = vec![definitions.len().to_string()];
        for report in reports.finish() {
            shown.push(format!("{}@{}", report.code, sources.position(report.span).line));
        }
        assert_eq!(shown.join(" "), expect, "{text}");
    }

    #[test]
    fn definitions_are_read() {
        check("vcl 4.1;\nimport std;\nimport blob as b from \"x\";\nunused a;", "4");
        check("vcl 4.0; backend a { .host = \"x\"; .probe = { .request = \"a\" \"b\"; } } backend n none;", "3");
        check("vcl 4.1; acl a +log -pedantic { ! \"10.0.0.0\"/8; (\"x\"); ! (\"y\"/8); }", "2");
        check("vcl 4.1; probe p { .url = \"/\"; .interval = 5s; .window = 8; .expect_close = true; }", "2");
    }

    #[test]
    fn statements_are_read() {
        let body = |text: &str, expect: &str| check(&format!("vcl 4.1;\nsub a {{\n{text}\n}}"), expect);
        body("SET Req.HTTP.x = 1 + \"a\"; unset req.http.y; call b; { return; }", "2");
        body("if (a) { } else if (b) { } elseif (c) { } elsif (d) { } elif (e) { } else { }", "2");
        body("return (synth(404, \"x\")); return (vcl(label)); return (pass(10s)); return(hash);", "2");
        body("new d = directors.round_robin(); d.add_backend(b); std.log(\"a\");", "2");
        body("ban(\"a\"); hash_data(req.url); synthetic({\"a\"});", "2");
    }

    #[test]
    fn several_mistakes_are_found_in_one_run() {
        check(
            "vcl 4.1;\nsub a {\nset x 1;\nset y = ;\nif (a { set z = ; }\nset ok = 1;\n}\nsub b { ;; }",
            "3 syntax@3 syntax@4 syntax@5 syntax@5 syntax@8 syntax@8",
        );
        check("vcl 4.1;\nsub a {\nset x = 1\nset y = 2\n}", "2 missing-semicolon@3 missing-semicolon@4");
        check("vcl 4.1;\nsub a {\nif (x) {\nset y = 2;\n}\nsub b { }\nsub c { }", "3 unbalanced-brace@2");
        check("vcl 4.1;\nsub a { } }\nsub b { }", "3 unbalanced-brace@2");
        check("vcl 4.1;\nbackend b { .host \"x\"; .port = 80; }\nsub c { }", "3 syntax@2");
        check("vcl 4.1;\nsub a {\niff (x) { set y = 2; }\nset ok = 1;\n}\nsub b { }", "3 syntax@3");
        check("vcl 4.1;\nsub a.b { }\nacl x {\"1\"; \"}", "1 bad-name@2 acl-long-string@3");
    }

    #[test]
    fn reading_always_goes_on() {
        check("vcl 4.1;\nacl x { \"1\".; acl x { \"1\"; }", "2 unbalanced-brace@2 syntax@2");
        check("vcl 4.1;\nacl x { { } * { } }", "2 syntax@2 syntax@2");
        check("vcl 4.1;\nsub a { if (b) { } * { } * }", "2 syntax@2 syntax@2");
        check("vcl 4.1;\nbackend b { { } sub c { } }", "2 unbalanced-brace@2 syntax@2 unbalanced-brace@2");
    }

    #[test]
    fn other_languages_are_recognised() {
        check("backend a { }", "1 version-missing@1");
        check("vcl 3.0;", "1 version-unknown@1");
        check("sub vcl_fetch { remove req.http.x; }", "1 old-vcl@1 old-vcl@1");
        check(
            "vcl 4.0;\nsub a { error 404; set x = \"a\" \"b\"; }\ndirector d random { }",
            "2 old-vcl@2 old-vcl@2 old-vcl@3",
        );
        check("vcl 4.0;\nsub a { declare local var.x STRING; }\ntable t { }", "2 fastly-vcl@2 fastly-vcl@3");
        check("vcl 4.0;\nC{ int x; }C\nsub a { C{ y }C }", "2 inline-c@2 inline-c@3");
        check("vcl 4.0;\nbackend b { set backend.host = \"a\"; }", "2 old-vcl@2");
    }

    #[test]
    fn nesting_is_bounded() {
        check(&format!("vcl 4.1; sub a {}", "{".repeat(100_000)), "1 too-much@1");
        check(&format!("vcl 4.1; sub a {{ {} }}", "if (a) { ".repeat(5_000)), "1 too-much@1");
    }
}
