//! All words of a program: those of its first file, and in place of each `include` those of the files that it names.
//!
//! Inclusion is a matter of words, not of statements: it is allowed anywhere.

use crate::codes::Code;
use crate::diagnostics::{Diagnostic, Reports};
use crate::lexer;
use crate::limits::{FILE_BYTES_MAX, FILES_MAX, INCLUDE_DEPTH_MAX, TOKENS_MAX};
use crate::source_files::{FileId, IncludeRequest, Included, Includes, Sources, Span};
use crate::tokens::{Mark, Token, Word};

/// The words of the file and of whatever it includes, with `Word::End` as the last.
pub fn all_words(first: Included, includes: &dyn Includes, sources: &mut Sources, reports: &mut Reports) -> Vec<Token> {
    let mut inclusion = Inclusion { includes, sources, reports, words: Vec::new(), chain: Vec::new() };
    let end = inclusion.file(first, None);
    let mut words = inclusion.words;
    words.push(Token { word: Word::End, span: end });
    words
}

struct Inclusion<'a> {
    includes: &'a dyn Includes,
    sources: &'a mut Sources,
    reports: &'a mut Reports,
    words: Vec<Token>,
    /// The files that are being read, the outermost first.
    chain: Vec<FileId>,
}

impl Inclusion<'_> {
    /// Reads a file; its end. `at` is the statement that includes it.
    fn file(&mut self, included: Included, at: Option<Span>) -> Span {
        let Included { name, bytes } = included;
        let too_big = bytes.len() > FILE_BYTES_MAX;
        let bytes_count = bytes.len();
        let id = self.sources.add(name, if too_big { Vec::new() } else { bytes });
        let start = Span { file: id, start: 0, end: 0 };
        if too_big {
            let what = format!("the file has {bytes_count} bytes; a VCL file may have {FILE_BYTES_MAX}");
            self.reports.add(Diagnostic::new(Code::TooMuch, at.unwrap_or(start), what));
            return start;
        }
        let words = lexer::words(self.sources, id, self.reports);
        let end = words.last().map_or(start, |end| end.span);
        if self.words.len() + words.len() > TOKENS_MAX {
            let what = format!("with this file the program has more than {TOKENS_MAX} words");
            self.reports.add(Diagnostic::new(Code::TooMuch, at.unwrap_or(start), what));
            return end;
        }
        self.chain.push(id);
        let mut rest = &words[..words.len().saturating_sub(1)];
        while let Some((word, after)) = rest.split_first() {
            rest = after;
            let include = word.word == Word::Identifier && self.sources.bytes(word.span) == b"include";
            match include.then(|| self.statement(word, after)).flatten() {
                Some((request, length)) => {
                    self.include(&request);
                    rest = &after[length..];
                }
                None => self.words.push(*word),
            }
        }
        self.chain.pop();
        end
    }

    /// `"name";` or `+glob "name";`, and its length in words. What is neither is left to the parser.
    fn statement(&self, include: &Token, after: &[Token]) -> Option<(Statement, usize)> {
        let glob = matches!(after, [plus, word, ..] if plus.is(Mark::Plus) && self.sources.bytes(word.span) == b"glob");
        let (name, length) = match after.get(if glob { 2 } else { 0 }..)? {
            [name, semicolon, ..] if semicolon.is(Mark::Semicolon) => (name, if glob { 4 } else { 2 }),
            [name, ..] => (name, if glob { 3 } else { 1 }),
            [] => return None,
        };
        let Word::Text(delimiter) = name.word else { return None };
        let span = name.span;
        let inside =
            Span { start: span.start + u32::from(delimiter), end: span.end.saturating_sub(delimiter.into()), ..span };
        let written = if inside.start <= inside.end { self.sources.text(inside) } else { String::new() };
        let missing_semicolon = length % 2 == 1;
        Some((Statement { written, glob, name: span, whole: include.span.to(span), missing_semicolon }, length))
    }

    fn include(&mut self, statement: &Statement) {
        let Statement { written, glob, name, whole, missing_semicolon } = statement;
        if *missing_semicolon {
            let what = "`;` is missing after the name of the included file";
            self.reports.add(Diagnostic::new(Code::MissingSemicolon, name.after(), what));
        }
        if self.chain.len() >= INCLUDE_DEPTH_MAX || self.sources.files().len() >= FILES_MAX {
            let what =
                format!("more than {INCLUDE_DEPTH_MAX} files within one another, or more than {FILES_MAX} in all");
            self.reports.add(Diagnostic::new(Code::TooMuch, *whole, what));
            return;
        }
        let from = &self.sources.file(name.file).name;
        let found = self.includes.find(&IncludeRequest { written, from, glob: *glob });
        let files = match found {
            Ok(files) => files,
            Err(why) => {
                let what = format!("the included file `{written}` cannot be read");
                let report = Diagnostic::new(Code::IncludeNotFound, *name, what).note(why).way_out(
                    "a name that begins with `./` is looked for beside the including file, others in --vcl-path",
                );
                self.reports.add(report);
                return;
            }
        };
        for file in files {
            if self.chain.iter().any(|open| self.sources.file(*open).name == file.name) {
                let what = format!("`{written}` is being read already: it includes itself");
                self.reports.add(Diagnostic::new(Code::IncludeCircle, *name, what));
            } else if self.sources.files().len() < FILES_MAX && !self.reports.is_full() {
                self.file(file, Some(*whole));
            }
        }
    }
}

struct Statement {
    written: String,
    glob: bool,
    name: Span,
    whole: Span,
    missing_semicolon: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files(&'static [(&'static str, &'static str)]);

    impl Includes for Files {
        fn find(&self, request: &IncludeRequest<'_>) -> Result<Vec<Included>, String> {
            let fits = |name: &str| name == request.written || request.glob && name.starts_with(request.written);
            let found = self.0.iter().filter(|(name, _)| fits(name));
            let found: Vec<Included> =
                found.map(|(name, text)| Included { name: (*name).into(), bytes: text.as_bytes().to_vec() }).collect();
            if found.is_empty() { Err("tried nothing".into()) } else { Ok(found) }
        }
    }

    fn check(text: &str, expect: &str) {
        let files =
            Files(&[("b", "b1 include \"c\"; b2"), ("c", "c"), ("circle", "x include \"circle\";"), ("c2", "z")]);
        let (mut sources, mut reports) = (Sources::default(), Reports::default());
        let first = Included { name: "a".into(), bytes: text.as_bytes().to_vec() };
        let words = all_words(first, &files, &mut sources, &mut reports);
        let mut seen: Vec<String> = words.iter().map(|word| sources.text(word.span)).collect();
        seen.pop();
        seen.extend(reports.finish().iter().map(|report| format!("[{}]", report.code)));
        assert_eq!(seen.join(" "), expect, "{text}");
    }

    #[test]
    fn files_stand_where_they_are_included() {
        check("a include \"b\"; c", "a b1 c b2 c");
        check("include +glob \"c\";", "c x z [include-circle]");
        check("include \"no\"; a", "a [include-not-found]");
        check("include \"c\" a", "c a [missing-semicolon]");
        check("include;", "include ;");
    }
}
