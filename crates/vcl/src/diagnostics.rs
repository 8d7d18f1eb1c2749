//! What is wrong at a place of a program: what, where, and which way out.
//!
//! Every part of this crate reports through `Reports`; nothing here knows VCL. The drawing is the form that larder
//! draws mistakes of its config in too: one line that editors can jump by, the text with carets, the way out.

use std::fmt::Write;

use crate::codes::{Code, Severity};
use crate::limits::DIAGNOSTICS_MAX;
use crate::source_files::{Sources, Span};

/// One mistake, or one thing that is worth a look. Texts often quote what somebody wrote: characters that a terminal would obey
/// are taken out of them as they come in, so that nobody who shows them has to.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    pub code: Code,
    pub span: Span,
    /// The headline.
    pub what: String,
    /// Stands at the carets; empty when the headline says all.
    pub label: String,
    /// Other places that matter, and facts without a place.
    pub notes: Vec<(Option<Span>, String)>,
    /// The same in the words of Varnish's compiler, by which scripts and search engines know it.
    pub in_varnish: Option<Box<str>>,
    /// What to write instead.
    pub way_out: Option<Box<str>>,
}

impl Diagnostic {
    pub fn new(code: Code, span: Span, what: impl Into<String>) -> Diagnostic {
        let what = printable(&what.into());
        Diagnostic { code, span, what, label: String::new(), notes: Vec::new(), in_varnish: None, way_out: None }
    }

    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = printable(&label.into());
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push((None, printable(&note.into())));
        self
    }

    pub fn note_at(mut self, span: Span, note: impl Into<String>) -> Diagnostic {
        self.notes.push((Some(span), printable(&note.into())));
        self
    }

    pub fn in_varnish(mut self, words: impl Into<String>) -> Diagnostic {
        self.in_varnish = Some(printable(&words.into()).into());
        self
    }

    pub fn way_out(mut self, way_out: impl Into<String>) -> Diagnostic {
        self.way_out = Some(printable(&way_out.into()).into());
        self
    }

    /// `Some` when there is a name near enough.
    pub fn did_you_mean(self, name: Option<&str>) -> Diagnostic {
        match name {
            Some(name) => self.way_out(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

/// Something was wrong and is reported already; whoever gets this only has to find a place from which to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported;

/// The mistakes found so far.
#[derive(Debug, Default)]
pub struct Reports {
    found: Vec<Diagnostic>,
    errors_count: usize,
}

impl Reports {
    pub fn add(&mut self, diagnostic: Diagnostic) -> Reported {
        if diagnostic.severity() == Severity::Error {
            self.errors_count += 1;
        }
        if self.found.len() < DIAGNOSTICS_MAX {
            self.found.push(diagnostic);
        }
        Reported
    }

    pub fn has_errors(&self) -> bool {
        self.errors_count > 0
    }

    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter().filter(|d| d.severity() == Severity::Error)
    }

    /// Reading on would only bury the reader.
    pub fn is_full(&self) -> bool {
        self.found.len() >= DIAGNOSTICS_MAX
    }

    /// In the order of the text, each place and code once.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|d| (d.severity(), d.span.file, d.span.start));
        self.found.dedup_by(|a, b| a.code == b.code && a.span == b.span && a.what == b.what);
        self.found
    }
}

/// `FILE:LINE:COLUMN: error[code]: …`, the line with carets under the place, notes and the way out.
pub fn draw(diagnostic: &Diagnostic, sources: &Sources, colour: bool) -> String {
    let (red, yellow, bold, plain) =
        if colour { ("\x1b[1;31m", "\x1b[1;33m", "\x1b[1m", "\x1b[0m") } else { ("", "", "", "") };
    let Diagnostic { code, span, what, label, .. } = diagnostic;
    let (paint, word) = match diagnostic.severity() {
        Severity::Error => (red, "error"),
        Severity::Warning => (yellow, "warning"),
    };
    let mut out = String::new();
    let place = place(sources, *span);
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{bold}{place}:{plain} {paint}{word}[{code}]:{plain} {bold}{what}{plain}");
    quote(&mut out, sources, *span, label, (paint, plain));
    for (at, note) in &diagnostic.notes {
        let _ = match at {
            Some(at) => {
                let _ = writeln!(out, "  {}: note: {note}", self::place(sources, *at));
                quote(&mut out, sources, *at, "", (bold, plain));
                Ok(())
            }
            None => writeln!(out, "  note: {note}"),
        };
    }
    if let Some(words) = &diagnostic.in_varnish {
        let _ = writeln!(out, "  in Varnish: {words}");
    }
    if let Some(way_out) = &diagnostic.way_out {
        let _ = writeln!(out, "  {bold}help:{plain} {way_out}");
    }
    out
}

/// `FILE:LINE:COLUMN`.
fn place(sources: &Sources, span: Span) -> String {
    let position = sources.position(span);
    format!("{}:{}:{}", printable(&sources.file(span.file).name), position.line, position.column)
}

/// Characters of a line that are shown on either side of the place; some files are one line.
const QUOTED_CHARS_MAX: usize = 160;
/// The bytes that these can have: no more of a line is looked at.
const QUOTED_BYTES_MAX: u32 = 4 * QUOTED_CHARS_MAX as u32;

/// The line, and carets under the place.
fn quote(out: &mut String, sources: &Sources, span: Span, label: &str, (paint, plain): (&str, &str)) {
    let line = sources.line(span);
    let number = sources.position(span).line;
    let gutter = " ".repeat(number.to_string().len());
    let start = span.start.clamp(line.start, line.end);
    let end = span.end.clamp(start, line.end);
    let before = last_chars(printable(&sources.text(Span {
        start: line.start.max(start.saturating_sub(QUOTED_BYTES_MAX)),
        end: start,
        ..line
    })));
    let marked = first_chars(&printable(&sources.text(Span {
        start,
        end: end.min(start.saturating_add(QUOTED_BYTES_MAX)),
        ..line
    })));
    let after = first_chars(&printable(&sources.text(Span {
        start: end,
        end: line.end.min(end.saturating_add(QUOTED_BYTES_MAX)),
        ..line
    })));
    let indent: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let carets = "^".repeat(marked.chars().count().max(1));
    let _ = writeln!(
        out,
        "{gutter} |\n{number} | {before}{marked}{after}\n{gutter} | {indent}{paint}{carets}{plain} {label}"
    );
    while out.ends_with([' ', '\n']) {
        out.pop();
    }
    out.push('\n');
}

fn first_chars(text: &str) -> String {
    text.chars().take(QUOTED_CHARS_MAX).collect()
}

fn last_chars(text: String) -> String {
    let skipped = text.chars().count().saturating_sub(QUOTED_CHARS_MAX);
    text.chars().skip(skipped).collect()
}

/// Nothing that a terminal would obey; a tab stays a tab, and long lines are the reader's own.
fn printable(text: &str) -> String {
    let text = text.trim_end_matches('\r');
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_drawn_with_its_line() {
        let mut sources = Sources::default();
        let file = sources.add("a.vcl", b"vcl 4.1;\n\tset x\x1b = 1;\n".to_vec());
        let span = Span { file, start: 14, end: 15 };
        let diagnostic =
            Diagnostic::new(Code::UnknownName, span, "there is no `x\x1b`").label("not known").way_out("use y");
        assert_eq!(
            draw(&diagnostic, &sources, false),
            "a.vcl:2:6: error[unknown-name]: there is no `x\u{fffd}`\n  |\n2 | \tset x\u{fffd} = 1;\n  | \t    ^ not known\n  help: use y\n"
        );
        let worded = diagnostic.clone().in_varnish("Symbol not found: 'x\x1b'");
        assert!(
            draw(&worded, &sources, false).ends_with("\n  in Varnish: Symbol not found: 'x\u{fffd}'\n  help: use y\n")
        );
        let told = diagnostic.label("\x07").note("a\nb").note_at(span, "\u{9b}").way_out("\x1b]0;title");
        let (label, notes, way_out) = (&told.label, &told.notes, &told.way_out);
        assert_eq!((label.as_str(), notes[0].1.as_str(), notes[1].1.as_str()), ("\u{fffd}", "a\u{fffd}b", "\u{fffd}"));
        assert_eq!(way_out.as_deref(), Some("\u{fffd}]0;title"));
    }
}
