//! Lines that are too long, broken where their operators bind loosest.
//!
//! A line is looked at by itself, and whatever it is broken into is looked at again in the same way; so a text that
//! was wrapped stays as it is when it is formatted once more.

use std::collections::BTreeSet;

use super::line_breaks::{Line, Part, continuation};
use super::pieces::Kind;
use super::spacing::Place;
use crate::tokens::{Mark, Word};

/// Columns.
const WIDTH_MAX: usize = 120;

pub fn wrapped(lines: &[Line], level_columns: usize, text: &[u8]) -> Vec<Line> {
    let wrapping = Wrapping { level_columns, text };
    let mut done = Vec::with_capacity(lines.len());
    for line in lines {
        wrapping.wrap(line.clone(), &mut done);
    }
    done
}

struct Wrapping<'a> {
    level_columns: usize,
    text: &'a [u8],
}

/// The looser an operator binds, the sooner a line is broken at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Looseness {
    Comma,
    Or,
    And,
    Sum,
}

impl Wrapping<'_> {
    /// Every call leaves shorter lines to look at, and there are only four loosenesses for each depth of parentheses.
    fn wrap(&self, line: Line, done: &mut Vec<Line>) {
        if self.fits(&line) {
            done.push(line);
            return;
        }
        for (parentheses, looseness) in self.places(&line.parts) {
            let broken = broken(&line, parentheses, looseness);
            // A list of arguments is broken for the sake of length only.
            if looseness == Looseness::Comma && !broken.iter().all(|line| self.fits(line)) {
                continue;
            }
            for line in broken {
                self.wrap(line, done);
            }
            return;
        }
        done.push(line);
    }

    /// A comment at the end may stand out; a text of several lines cannot be measured, nor helped.
    fn fits(&self, line: &Line) -> bool {
        let mut columns = line.depth * self.level_columns;
        for part in &line.parts {
            let bytes = part.bytes(self.text);
            if bytes.contains(&b'\n') {
                return true;
            }
            if part.piece.kind != Kind::LineComment {
                columns += usize::from(part.space_before) + String::from_utf8_lossy(bytes).chars().count();
            }
        }
        columns <= WIDTH_MAX
    }

    /// Where it may be broken: from the outermost parentheses to the innermost, and from the loosest operator.
    fn places(&self, parts: &[Part]) -> BTreeSet<(usize, Looseness)> {
        (1..parts.len()).filter_map(|at| Some((parts[at].parentheses, breaks_before(parts, at)?))).collect()
    }
}

/// Whether a line may be broken before this part, and as which operator.
fn breaks_before(parts: &[Part], at: usize) -> Option<Looseness> {
    let (before, part) = (&parts[at - 1], &parts[at]);
    if before.piece.is(Mark::Comma) && before.is_operator && !part.piece.is_comment() {
        return Some(Looseness::Comma);
    }
    if before.piece.is_text() && part.piece.is_text() {
        return Some(Looseness::Sum);
    }
    if !part.is_operator {
        return None;
    }
    match part.piece.kind {
        Kind::Word(Word::Mark(Mark::OrOr)) => Some(Looseness::Or),
        Kind::Word(Word::Mark(Mark::AndAnd)) => Some(Looseness::And),
        Kind::Word(Word::Mark(Mark::Plus | Mark::Minus)) => Some(Looseness::Sum),
        _ => None,
    }
}

fn broken(line: &Line, parentheses: usize, looseness: Looseness) -> Vec<Line> {
    let mut lines = vec![Line { parts: Vec::new(), ..*line }];
    for (at, part) in line.parts.iter().enumerate() {
        let mut part = *part;
        if at > 0 && part.parentheses == parentheses && breaks_before(&line.parts, at) == Some(looseness) {
            let place = Place { parentheses, ..Place::default() };
            let depth = line.block_depth + continuation(&part.piece, place);
            lines.push(Line { blank_before: false, depth, parts: Vec::new(), block_depth: line.block_depth });
            part.space_before = false;
        }
        if let Some(last) = lines.last_mut() {
            last.parts.push(part);
        }
    }
    lines
}
