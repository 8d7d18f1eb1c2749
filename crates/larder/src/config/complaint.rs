//! What is wrong at one place of a file, and how it is shown: drawn for people, as JSON for programs.
//!
//! It does not know what the file means; whoever reads the file says where and why. The drawing is the compilers'
//! one-line form, which editors can jump by; ariadne was tried and draws no caret under a single character.

use std::fmt::Write;
use std::ops::Range;

use serde::Serialize;

/// One mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Bytes of the file.
    pub span: Range<usize>,
    /// The headline: what is wrong.
    pub what: String,
    /// Stands at the caret.
    pub label: String,
    /// What to write instead.
    pub suggestion: Option<String>,
    /// What it has to do with others.
    pub relation: Box<Relation>,
}

/// What a mistake has to do with others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relation {
    /// The key that it is about; of an unknown one, that which was surely meant.
    pub of: Option<String>,
    /// Where one of these keys is complained of, this is no mistake of its own.
    pub follows_from: &'static [&'static str],
    /// What is wrong from this byte on has nothing to do with it.
    pub until: Option<usize>,
}

impl Complaint {
    pub fn new(span: Range<usize>, what: impl Into<String>, label: impl Into<String>) -> Complaint {
        Complaint { span, what: what.into(), label: label.into(), suggestion: None, relation: Box::default() }
    }

    /// It is about this key.
    pub fn of_key(mut self, key: &str) -> Complaint {
        self.relation.of = Some(key.to_owned());
        self
    }

    /// It says nothing new where one of these keys was written wrongly.
    pub fn following_from(mut self, keys: &'static [&'static str]) -> Complaint {
        self.relation.follows_from = keys;
        self
    }

    /// It has nothing to do with what is wrong from this byte on.
    pub fn until(mut self, byte: usize) -> Complaint {
        self.relation.until = Some(byte);
        self
    }

    pub fn suggest(mut self, suggestion: impl Into<String>) -> Complaint {
        self.suggestion = Some(suggestion.into());
        self
    }
}

/// A file as it was read, and everything that is wrong with it.
#[derive(Clone, Debug)]
pub struct FaultyFile {
    pub name: String,
    pub text: String,
    pub complaints: Vec<Complaint>,
}

/// A complaint for programs. Lines and columns count from 1, columns in characters.
#[derive(Serialize)]
pub struct ComplaintRow<'a> {
    line: usize,
    column: usize,
    message: &'a str,
    detail: &'a str,
    suggestion: Option<&'a str>,
}

impl FaultyFile {
    /// `FILE:LINE:COLUMN: error: …`, the line with carets under the place, and the suggestion, for each complaint.
    pub fn draw(&self, colour: bool) -> String {
        let (red, bold, plain) = if colour { ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
        let mut out = String::new();
        for complaint in &self.complaints {
            let (line, column) = position(&self.text, complaint.span.start);
            let place = Place::of(&self.text, &complaint.span);
            let gutter = " ".repeat(line.to_string().len());
            let Complaint { what, label, .. } = complaint;
            let carets = "^".repeat(place.carets);
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{bold}{}:{line}:{column}:{plain} {red}error:{plain} {bold}{what}{plain}", self.name);
            let _ = writeln!(out, " {gutter} |\n {line} | {}", place.line);
            let _ = writeln!(out, " {gutter} | {}{red}{carets} {label}{plain}", place.indent);
            if let Some(suggestion) = &complaint.suggestion {
                let _ = writeln!(out, " {gutter} = help: {suggestion}");
            }
        }
        out
    }

    /// `FILE:LINE:COLUMN` of each.
    pub fn places(&self) -> String {
        let places = self.complaints.iter().map(|complaint| {
            let (line, column) = position(&self.text, complaint.span.start);
            format!("{}:{line}:{column}", self.name)
        });
        places.collect::<Vec<_>>().join(", ")
    }

    pub fn rows(&self) -> Vec<ComplaintRow<'_>> {
        let row = |c: &'_ Complaint| position(&self.text, c.span.start);
        self.complaints
            .iter()
            .map(|c| ComplaintRow {
                line: row(c).0,
                column: row(c).1,
                message: &c.what,
                detail: &c.label,
                suggestion: c.suggestion.as_deref(),
            })
            .collect()
    }
}

/// Bytes of a line that are shown on either side of where a place begins; some files are one line.
const QUOTED_BYTES_MAX: usize = 160;

/// Where the carets go.
struct Place<'a> {
    line: &'a str,
    /// As wide as what stands before the place; tabs stay tabs.
    indent: String,
    /// At least one, and none past the end of what is shown.
    carets: usize,
}

impl Place<'_> {
    fn of<'a>(text: &'a str, span: &Range<usize>) -> Place<'a> {
        let start = text.floor_char_boundary(span.start);
        let shown_from = text.ceil_char_boundary(start.saturating_sub(QUOTED_BYTES_MAX));
        let shown_to = text.floor_char_boundary(start.saturating_add(QUOTED_BYTES_MAX));
        let line_start = text[shown_from..start].rfind('\n').map_or(shown_from, |n| shown_from + n + 1);
        let line_end = text[start..shown_to].find('\n').map_or(shown_to, |n| start + n);
        let end = text.ceil_char_boundary(span.end).clamp(start, line_end);
        Place {
            line: text[line_start..line_end].trim_end_matches('\r'),
            indent: text[line_start..start].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect(),
            carets: text[start..end].chars().count().max(1),
        }
    }
}

/// Line and column of a byte, both from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(at)];
    let line_start = before.rfind('\n').map_or(0, |n| n + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_survive_the_end_of_the_file() {
        let text = "é = 1\nb";
        for (at, expect) in [(0, (1, 1)), (2, (1, 2)), (7, (2, 1)), (8, (2, 2)), (99, (2, 2))] {
            assert_eq!(position(text, at), expect, "{at}");
        }
    }

    fn check(text: &str, span: Range<usize>, expect: &str) {
        let complaints = vec![Complaint::new(span, "wrong", "here").suggest("right")];
        let file = FaultyFile { name: "x.toml".to_owned(), text: text.to_owned(), complaints };
        assert_eq!(file.draw(false), expect);
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        check(
            "a = 1\n\tbé = xyz\r\n",
            13..16,
            "x.toml:2:7: error: wrong\n   |\n 2 | \tbé = xyz\n   | \t     ^^^ here\n   = help: right\n",
        );
    }

    #[test]
    fn a_place_of_many_lines_is_shown_by_its_first() {
        check("a = [\n1]", 4..8, "x.toml:1:5: error: wrong\n   |\n 1 | a = [\n   |     ^ here\n   = help: right\n");
    }

    #[test]
    fn of_a_long_line_only_what_is_near_the_place_is_shown() {
        let text = format!("{}b{}", "é".repeat(1 << 20), "x".repeat(1 << 20));
        let complaints = vec![Complaint::new(2 << 20..3 << 20, "wrong", "here")];
        let file = FaultyFile { name: "x.toml".to_owned(), text, complaints };
        let drawn = file.draw(false);
        assert!(drawn.starts_with("x.toml:1:1048577: error: wrong\n"), "{drawn}");
        assert!(drawn.len() < 1_000 && drawn.contains("éb"), "{} bytes", drawn.len());
    }

    #[test]
    fn the_end_of_a_file_is_a_place_too() {
        check("", 0..0, "x.toml:1:1: error: wrong\n   |\n 1 | \n   | ^ here\n   = help: right\n");
        check("a", 9..12, "x.toml:1:2: error: wrong\n   |\n 1 | a\n   |  ^ here\n   = help: right\n");
    }
}
