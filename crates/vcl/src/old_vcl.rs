//! VCL of Varnish 1, 2 and 3, translated to VCL 4.1: `larder import`.
//!
//! ```text
//! old_layout      what the file defines, and where
//!   → old_translator  each definition, subroutines once for each of today's in which they run
//!     → old_directors     directors become objects of vmod directors
//!     → old_bodies, old_statements, old_actions
//!     → old_values, old_names   names, strings joined by standing beside one another, escapes
//! ```
//!
//! The text stays, with its comments and its layout, and what was called otherwise is replaced in it. What cannot be
//! carried over stays as a comment at its place and is reported; nothing is dropped in silence. Whether the result is a
//! program is for `check` to say.

mod old_actions;
mod old_bodies;
mod old_directors;
mod old_edits;
mod old_layout;
mod old_names;
mod old_statements;
mod old_translator;
mod old_values;

use crate::codes::Code;
use crate::diagnostics::{Diagnostic, Reports};
use crate::lexer;
use crate::limits::FILE_BYTES_MAX;
use crate::source_files::{FileId, Included, Sources, Span};
use crate::tokens::Word;
use old_layout::{Layout, OldText};
use old_translator::Translator;

/// Which Varnish the file was written for, as far as it makes a difference: in strings up to 2, `%22` is a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Vcl2,
    Vcl3,
}

/// What came of a file.
#[derive(Debug)]
pub struct Translated {
    pub sources: Sources,
    /// Errors first: what was left, or why nothing could be read. Then, as warnings, what means something else now.
    pub diagnostics: Vec<Diagnostic>,
    /// `None` when the file cannot be read.
    pub text: Option<Vec<u8>>,
}

impl Translated {
    /// Whether all was carried over.
    pub fn is_whole(&self) -> bool {
        self.text.is_some() && self.diagnostics.iter().all(|found| found.code != Code::NotCarriedOver)
    }
}

/// Whether the text says that it is VCL 4.
pub fn is_present_vcl(bytes: &[u8]) -> bool {
    let (mut sources, mut reports) = (Sources::default(), Reports::default());
    let file = sources.add("", bytes.to_vec());
    let words = lexer::words(&sources, file, &mut reports);
    words.first().is_some_and(|first| first.word == Word::Identifier && sources.bytes(first.span) == b"vcl")
}

/// Translates one file. Without a dialect it is guessed.
pub fn translate(file: Included, dialect: Option<Dialect>) -> Translated {
    let (mut sources, mut reports) = (Sources::default(), Reports::default());
    let text = translated_text(file, dialect, &mut sources, &mut reports);
    Translated { sources, diagnostics: reports.finish(), text }
}

fn translated_text(
    file: Included,
    dialect: Option<Dialect>,
    sources: &mut Sources,
    reports: &mut Reports,
) -> Option<Vec<u8>> {
    let bytes_count = file.bytes.len();
    let id = sources.add(file.name, file.bytes);
    let start = Span { file: id, start: 0, end: 0 };
    if bytes_count > FILE_BYTES_MAX {
        let what = format!("the file has {bytes_count} bytes; a VCL file may have {FILE_BYTES_MAX}");
        reports.add(Diagnostic::new(Code::TooMuch, start, what));
        return None;
    }
    let words = lexer::words(sources, id, reports);
    refuse_other_languages(sources, id, reports);
    if reports.has_errors() {
        return None;
    }
    let text = OldText::new(&sources.file(id).bytes, &words);
    let layout = match Layout::read(&text) {
        Ok(layout) => layout,
        Err(report) => {
            reports.add(report);
            return None;
        }
    };
    let dialect = dialect.unwrap_or_else(|| text.guess());
    Some(Translator::new(&text, &layout, dialect).translate(reports))
}

fn refuse_other_languages(sources: &Sources, id: FileId, reports: &mut Reports) {
    let bytes = &sources.file(id).bytes;
    let start = Span { file: id, start: 0, end: 0 };
    let has = |mark: &[u8]| bytes.windows(mark.len()).any(|window| window == mark);
    if has(b"#FASTLY") || has(b"declare local") {
        let what = "the file is written for Fastly, whose language parted from VCL with Varnish 2.1";
        reports.add(Diagnostic::new(Code::FastlyVcl, start, what));
    }
    crate::foreign::templates(sources, reports);
}

#[cfg(test)]
mod tests;
