//! What an old file defines, and where: found by words and braces, as its grammar is no longer ours.

use crate::codes::Code;
use crate::diagnostics::Diagnostic;
use crate::formatting::pieces::{Piece, pieces};
use crate::source_files::Span;
use crate::tokens::{Mark, Token, Word};

use super::Dialect;

/// The bytes of a file and its words.
pub struct OldText<'a> {
    pub bytes: &'a [u8],
    pub words: &'a [Token],
    pub comments: Vec<Piece>,
}

/// A definition: words `start..end`.
#[derive(Debug)]
pub struct Definition {
    pub start: usize,
    pub end: usize,
    pub kind: Kind,
}

#[derive(Debug, PartialEq)]
pub enum Kind {
    /// The name, and the word that is its body's `{`.
    Subroutine {
        name: String,
        open: usize,
    },
    /// The name, and the word that is its `{`.
    Director {
        name: String,
        open: usize,
    },
    Backend {
        name: String,
    },
    /// A probe, an ACL.
    Other,
    Import,
    Include,
    InlineC,
}

#[derive(Debug)]
pub struct Layout {
    pub definitions: Vec<Definition>,
}

impl<'a> OldText<'a> {
    pub fn new(bytes: &'a [u8], words: &'a [Token]) -> OldText<'a> {
        // A byte that is no word was reported by the lexer already.
        let comments = pieces(bytes, words).unwrap_or_default();
        let comments = comments.into_iter().filter(Piece::is_comment).collect();
        OldText { bytes, words, comments }
    }

    /// The last word is always `Word::End`.
    pub fn word(&self, at: usize) -> Token {
        self.words[at.min(self.words.len() - 1)]
    }

    pub fn is(&self, at: usize, mark: Mark) -> bool {
        self.word(at).is(mark)
    }

    pub fn is_identifier(&self, at: usize) -> bool {
        self.word(at).word == Word::Identifier
    }

    pub fn is_text(&self, at: usize) -> bool {
        matches!(self.word(at).word, Word::Text(_))
    }

    /// The word as it is written.
    pub fn text(&self, at: usize) -> String {
        let span = self.word(at).span;
        String::from_utf8_lossy(&self.bytes[span.start as usize..span.end as usize]).into_owned()
    }

    pub fn lower(&self, at: usize) -> String {
        self.text(at).to_ascii_lowercase()
    }

    pub fn start(&self, at: usize) -> usize {
        self.word(at).span.start as usize
    }

    /// Where word `at - 1` ends.
    pub fn end_before(&self, at: usize) -> usize {
        self.word(at.saturating_sub(1)).span.end as usize
    }

    pub fn span(&self, start: usize, end: usize) -> Span {
        let first = self.word(start).span;
        Span { end: (self.end_before(end) as u32).max(first.start), ..first }
    }

    /// Behind the word that closes what the word at `open` opens.
    pub fn behind_closing(&self, open: usize, marks: (Mark, Mark)) -> Option<usize> {
        let mut depth = 0;
        for at in open..self.words.len() {
            if self.is(at, marks.0) {
                depth += 1;
            } else if self.is(at, marks.1) {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
        }
        None
    }

    /// The blanks that the line of the word begins with.
    pub fn indentation(&self, at: usize) -> String {
        let before = &self.bytes[..self.start(at)];
        let line = before.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        let blanks = self.bytes[line..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        String::from_utf8_lossy(&self.bytes[line..line + blanks]).into_owned()
    }

    /// Whether nothing but blanks stands before the word in its line.
    pub fn begins_line(&self, at: usize) -> bool {
        let before = &self.bytes[..self.start(at)];
        let rest = before.iter().rev().find(|b| !matches!(b, b' ' | b'\t'));
        rest.is_none_or(|b| *b == b'\n')
    }

    /// By words that only one of them has.
    pub fn guess(&self) -> Dialect {
        let has = |fits: &dyn Fn(usize) -> bool| (0..self.words.len()).any(fits);
        let is_word = |at: usize, words: &[&str]| self.is_identifier(at) && words.contains(&self.text(at).as_str());
        let third = ["import", "hash_data", "hit_for_pass", "ban", "ban_url"];
        if has(&|at| is_word(at, &third) || self.is(at, Mark::Plus)) {
            return Dialect::Vcl3;
        }
        let second = ["purge_url", "purge_hash", "log", "esi", "insert", "prefetch", "discard", "cacheable"];
        let actions = ["pass", "lookup", "deliver", "fetch", "pipe", "hash"];
        let is_second = |at: usize| {
            is_word(at, &second)
                || is_word(at, &actions) && self.is(at + 1, Mark::Semicolon)
                || is_word(at, &["purge"]) && self.is(at + 1, Mark::ParenOpen)
                || is_word(at, &["set"]) && is_word(at + 1, &["backend"])
                || self.is_text(at) && (self.is_text(at + 1) || self.is_identifier(at + 1))
        };
        if has(&is_second) { Dialect::Vcl2 } else { Dialect::Vcl3 }
    }
}

const BRACES: (Mark, Mark) = (Mark::BraceOpen, Mark::BraceClose);

impl Layout {
    pub fn read(text: &OldText<'_>) -> Result<Layout, Diagnostic> {
        let mut definitions = Vec::new();
        let mut at = 0;
        while text.word(at).word != Word::End {
            let definition = definition(text, at)?;
            at = definition.end;
            definitions.push(definition);
        }
        Ok(Layout { definitions })
    }

    pub fn director(&self, name: &str) -> Option<&Definition> {
        let is_it = |found: &&Definition| matches!(&found.kind, Kind::Director { name: known, .. } if known == name);
        self.definitions.iter().find(is_it)
    }
}

fn definition(text: &OldText<'_>, start: usize) -> Result<Definition, Diagnostic> {
    if text.word(start).word == Word::InlineC {
        return Ok(Definition { start, end: start + 1, kind: Kind::InlineC });
    }
    let word = if text.is_identifier(start) { text.text(start) } else { String::new() };
    let name = || text.text(start + 1);
    let kind_with_braces = |open: usize| match word.as_str() {
        "sub" => Some(Kind::Subroutine { name: name(), open }),
        "director" => Some(Kind::Director { name: name(), open }),
        "backend" => Some(Kind::Backend { name: name() }),
        "acl" | "probe" => Some(Kind::Other),
        _ => None,
    };
    if matches!(word.as_str(), "import" | "include") {
        let kind = if word == "import" { Kind::Import } else { Kind::Include };
        let semicolon = (start..text.words.len()).find(|at| text.is(*at, Mark::Semicolon));
        let semicolon = semicolon.ok_or_else(|| {
            Diagnostic::new(Code::MissingSemicolon, text.span(start, start + 1), "`;` is missing at the end")
        })?;
        return Ok(Definition { start, end: semicolon + 1, kind });
    }
    let open = (start..start + 4).find(|at| text.is(*at, Mark::BraceOpen)).filter(|_| text.is_identifier(start + 1));
    let Some((open, kind)) = open.and_then(|open| Some((open, kind_with_braces(open)?))) else {
        let what = format!("expected a definition, found {}", shown(text, start));
        return Err(Diagnostic::new(Code::Syntax, text.span(start, start + 1), what)
            .label("expected sub, backend, director, acl, probe, import or include"));
    };
    let Some(end) = text.behind_closing(open, BRACES) else {
        let what = "the `{` that stands here is never closed";
        return Err(Diagnostic::new(Code::UnbalancedBrace, text.span(open, open + 1), what));
    };
    Ok(Definition { start, end, kind })
}

fn shown(text: &OldText<'_>, at: usize) -> String {
    if text.word(at).word == Word::End { "the end of the file".to_owned() } else { format!("`{}`", text.text(at)) }
}
