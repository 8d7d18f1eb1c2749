//! The same words with other blanks: `larder vcl fmt`.
//!
//! ```text
//! pieces     the words, and the comments between them, which the lexer drops
//!   → line_breaks  which piece begins a line, and how deep it stands
//!   → wrapping     lines that are too long, broken at their loosest operators
//!   → text
//! ```
//!
//! No word and no comment is ever changed: what comes out is read again and compared with what went in. Line ends
//! within a statement are its author's and stay. Nothing is known of names and types: a file that others include, be it
//! only statements, can be formatted as well as a whole program.

mod line_breaks;
pub(crate) mod pieces;
mod spacing;
mod wrapping;

use crate::codes::Code;
use crate::diagnostics::{Diagnostic, Reports};
use crate::lexer;
use crate::limits::{FILE_BYTES_MAX, TOKENS_MAX};
use crate::parser;
use crate::source_files::{FileId, Included, Sources, Span};
use crate::tokens::{Mark, Token, Word};
use line_breaks::Line;
use pieces::Piece;

/// What a level of blocks is indented by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indent {
    Spaces(u8),
    Tab,
}

impl Indent {
    fn bytes(self) -> Vec<u8> {
        match self {
            Indent::Spaces(count) => vec![b' '; count.into()],
            Indent::Tab => vec![b'\t'],
        }
    }

    /// As which it counts when a line is measured.
    fn columns(self) -> usize {
        match self {
            Indent::Spaces(count) => count.into(),
            Indent::Tab => 4,
        }
    }
}

/// What came of formatting a file.
#[derive(Debug)]
pub struct Formatted {
    pub sources: Sources,
    /// What keeps the file from being formatted.
    pub diagnostics: Vec<Diagnostic>,
    /// There only without diagnostics.
    pub text: Option<Vec<u8>>,
}

/// Lays out a file, which need not be a whole program. What it includes is not looked at.
pub fn format(file: Included, indent: Indent) -> Formatted {
    let (mut sources, mut reports) = (Sources::default(), Reports::default());
    let text = lay_out(file, indent, &mut sources, &mut reports);
    let text = text.filter(|_| !reports.has_errors());
    Formatted { sources, diagnostics: reports.finish(), text }
}

fn lay_out(file: Included, indent: Indent, sources: &mut Sources, reports: &mut Reports) -> Option<Vec<u8>> {
    let id = sources.add(file.name, file.bytes);
    let start = Span { file: id, start: 0, end: 0 };
    let bytes_count = sources.file(id).bytes.len();
    if bytes_count > FILE_BYTES_MAX {
        let what = format!("the file has {bytes_count} bytes; a VCL file may have {FILE_BYTES_MAX}");
        reports.add(Diagnostic::new(Code::TooMuch, start, what));
        return None;
    }
    let words = lexer::words(sources, id, reports);
    if words.len() > TOKENS_MAX {
        reports.add(Diagnostic::new(Code::TooMuch, start, format!("the file has more than {TOKENS_MAX} words")));
        return None;
    }
    parser::parse_part(&without_includes(&words, sources), sources, reports);
    if reports.has_errors() {
        return None;
    }
    let bytes = &sources.file(id).bytes;
    let pieces = match pieces::pieces(bytes, &words) {
        Ok(pieces) => pieces,
        Err(at) => {
            reports.add(Diagnostic::new(
                Code::BadCharacter,
                Span { start: at, end: at + 1, ..start },
                "no word of VCL",
            ));
            return None;
        }
    };
    let lines = line_breaks::lines(&pieces, bytes);
    let text = write(&lines, indent, bytes);
    if let Err(at) = same_words(&pieces, bytes, &text) {
        let what = "this cannot be formatted without changing a word";
        let span = pieces.get(at).map_or(start, |piece| Span { file: id, start: piece.start, end: piece.end });
        reports.add(Diagnostic::new(Code::Syntax, span, what));
        return None;
    }
    Some(text)
}

/// An inclusion stands wherever words may stand, so a parser that does not follow it must not see it.
fn without_includes(words: &[Token], sources: &Sources) -> Vec<Token> {
    let mut kept = Vec::with_capacity(words.len());
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        if word.word == Word::Identifier && sources.bytes(word.span) == b"include" {
            let is_glob =
                matches!(after, [plus, glob, ..] if plus.is(Mark::Plus) && sources.bytes(glob.span) == b"glob");
            let name = if is_glob { 2 } else { 0 };
            let is_whole = matches!(after.get(name..), Some([text, end, ..]) if matches!(text.word, Word::Text(_)) && end.is(Mark::Semicolon));
            if is_whole {
                rest = &after[name + 2..];
                continue;
            }
        }
        kept.push(*word);
    }
    kept
}

fn write(lines: &[Line], indent: Indent, bytes: &[u8]) -> Vec<u8> {
    let first_end = bytes.iter().position(|b| *b == b'\n').unwrap_or(0);
    let line_end: &[u8] = if first_end > 0 && bytes[first_end - 1] == b'\r' { b"\r\n" } else { b"\n" };
    let one_level = indent.bytes();
    let mut text = Vec::with_capacity(bytes.len() + bytes.len() / 8);
    for line in wrapping::wrapped(lines, indent.columns(), bytes) {
        if line.blank_before {
            text.extend_from_slice(line_end);
        }
        for _ in 0..line.depth {
            text.extend_from_slice(&one_level);
        }
        for part in &line.parts {
            if part.space_before {
                text.push(b' ');
            }
            text.extend_from_slice(part.bytes(bytes));
        }
        text.extend_from_slice(line_end);
    }
    text
}

/// Reads what was written, and compares; or the number of the first piece that is another one.
fn same_words(pieces: &[Piece], bytes: &[u8], text: &[u8]) -> Result<(), usize> {
    let (mut sources, mut reports) = (Sources::default(), Reports::default());
    let id: FileId = sources.add("", text.to_vec());
    let words = lexer::words(&sources, id, &mut reports);
    let again = pieces::pieces(text, &words).map_err(|_| 0usize)?;
    let differs = |(old, new): (&Piece, &Piece)| old.kind != new.kind || old.bytes(bytes) != new.bytes(text);
    match pieces.iter().zip(&again).position(differs) {
        Some(at) => Err(at),
        None if pieces.len() != again.len() || reports.has_errors() => Err(pieces.len().min(again.len())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
