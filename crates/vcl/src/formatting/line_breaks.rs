//! Which pieces begin a line: statements, braces, comments of their own, and where their author broke a statement.

use super::pieces::{Kind, Piece};
use super::spacing::{Place, sign_follows, space_between};
use crate::tokens::{Mark, Word};

/// A line of the new text.
#[derive(Clone, Debug)]
pub struct Line {
    pub blank_before: bool,
    /// Levels of indentation.
    pub depth: usize,
    pub parts: Vec<Part>,
    /// What the levels are counted from when the line is broken further.
    pub block_depth: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub piece: Piece,
    pub space_before: bool,
    /// Open parentheses before it; those that it closes itself are closed.
    pub parentheses: usize,
    /// It is an operator between two values.
    pub is_operator: bool,
}

impl Part {
    pub fn bytes<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        self.piece.bytes(text)
    }
}

pub fn lines(pieces: &[Piece], text: &[u8]) -> Vec<Line> {
    let mut layout = Layout {
        text,
        lines: Vec::new(),
        blocks: Vec::new(),
        place: Place::default(),
        statement: Vec::new(),
        last: None,
        last_word: None,
    };
    for piece in pieces {
        layout.add(*piece);
    }
    layout.lines
}

struct Layout<'a> {
    text: &'a [u8],
    lines: Vec<Line>,
    /// The open braces, and whether they are an ACL's.
    blocks: Vec<bool>,
    place: Place,
    /// The words of the statement so far; empty where one begins.
    statement: Vec<Piece>,
    last: Option<Piece>,
    last_word: Option<Piece>,
}

impl Layout<'_> {
    fn add(&mut self, piece: Piece) {
        if piece.is(Mark::BraceClose) {
            self.blocks.pop();
            self.end_statement();
        }
        if piece.is(Mark::ParenClose) {
            self.place.parentheses = self.place.parentheses.saturating_sub(1);
        }
        self.place.in_acl = self.blocks.last().copied().unwrap_or(false);
        self.place.in_flags = self.place.parentheses == 0 && self.statement_begins(&[b"acl", b"include"]);
        let is_sign =
            (piece.is(Mark::Minus) || piece.is(Mark::Plus)) && sign_follows(self.last_word.as_ref(), self.place);
        if self.breaks_before(&piece) {
            let line = self.new_line(&piece);
            self.lines.push(line);
        }
        self.push(piece, is_sign);
        self.place.left_is_sign = is_sign;
        self.last = Some(piece);
        if !piece.is_comment() {
            self.after_word(piece);
        }
    }

    fn push(&mut self, piece: Piece, is_sign: bool) {
        let is_operator = !is_sign
            && matches!(
                piece.kind,
                Kind::Word(Word::Mark(Mark::OrOr | Mark::AndAnd | Mark::Plus | Mark::Minus | Mark::Comma))
            );
        if let Some(line) = self.lines.last_mut() {
            let before = line.parts.last().map(|part| part.piece);
            let space_before = before.is_some_and(|left| space_between(&left, &piece, self.text, self.place));
            line.parts.push(Part { piece, space_before, parentheses: self.place.parentheses, is_operator });
        }
    }

    fn after_word(&mut self, piece: Piece) {
        self.last_word = Some(piece);
        match piece.kind {
            Kind::Word(Word::Mark(Mark::ParenOpen)) => self.place.parentheses += 1,
            Kind::Word(Word::Mark(Mark::BraceOpen)) => {
                let is_acl = self.statement_begins(&[b"acl"]);
                self.blocks.push(is_acl);
                self.end_statement();
                return;
            }
            Kind::Word(Word::Mark(Mark::Semicolon | Mark::BraceClose)) => {
                self.end_statement();
                return;
            }
            _ => {}
        }
        self.statement.push(piece);
    }

    fn end_statement(&mut self) {
        self.statement.clear();
        self.place.parentheses = 0;
    }

    fn statement_begins(&self, words: &[&[u8]]) -> bool {
        self.statement.first().is_some_and(|first| first.is_identifier() && words.contains(&first.bytes(self.text)))
    }

    fn breaks_before(&self, piece: &Piece) -> bool {
        let Some(last) = self.last else { return true };
        if last.kind == Kind::LineComment {
            return true;
        }
        if piece.is_comment() {
            // At the end of a line it stays there.
            return piece.line_ends_before > 0;
        }
        if piece.is(Mark::BraceClose) {
            return true;
        }
        if self.statement.is_empty() {
            // After `}` its `else`; a comment that ended the line of `{` or `;` does not hold what follows.
            return !(self.is_else(piece) && self.follows_brace());
        }
        if piece.is(Mark::Semicolon) || piece.is(Mark::BraceOpen) || self.keeps_next(piece) {
            return false;
        }
        piece.line_ends_before > 0
    }

    fn is_else(&self, piece: &Piece) -> bool {
        const WORDS: [&[u8]; 4] = [b"else", b"elseif", b"elsif", b"elif"];
        piece.is_identifier() && WORDS.contains(&piece.bytes(self.text))
    }

    /// The last word is a `}`, and no comment on a line of its own stands behind it.
    fn follows_brace(&self) -> bool {
        let own_line = |line: &Line| line.parts.first().is_some_and(|part| part.piece.is_comment());
        self.last_word.is_some_and(|word| word.is(Mark::BraceClose)) && !self.lines.last().is_some_and(own_line)
    }

    /// `else` and `if`, `if` and its parenthesis, a name and its arguments are not parted.
    fn keeps_next(&self, piece: &Piece) -> bool {
        let Some(last) = self.last.filter(Piece::is_identifier) else { return false };
        piece.is(Mark::ParenOpen) || last.bytes(self.text) == b"else" || piece.is(Mark::Dot)
    }

    /// Apart from comments behind it.
    fn last_line_ends_with(&self, mark: Mark) -> bool {
        let last = self.lines.last().and_then(|line| line.parts.iter().rfind(|part| !part.piece.is_comment()));
        last.is_some_and(|part| part.piece.is(mark))
    }

    fn new_line(&self, piece: &Piece) -> Line {
        let block_depth = self.blocks.len();
        let depth = block_depth + if self.statement.is_empty() { 0 } else { continuation(piece, self.place) };
        let after_block = self.last_line_ends_with(Mark::BraceClose);
        let wanted = piece.line_ends_before > 1 || block_depth == 0 && after_block && !self.is_else(piece);
        let blank_before = wanted
            && self.statement.is_empty()
            && !self.lines.is_empty()
            && !self.last_line_ends_with(Mark::BraceOpen)
            && !piece.is(Mark::BraceClose);
        Line { blank_before, depth, parts: Vec::new(), block_depth }
    }
}

/// How much deeper than its statement a line stands that does not begin one.
pub fn continuation(piece: &Piece, place: Place) -> usize {
    if piece.is(Mark::BraceOpen) || piece.is(Mark::ParenClose) { place.parentheses } else { place.parentheses.max(1) }
}
