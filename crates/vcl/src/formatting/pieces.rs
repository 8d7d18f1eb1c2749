//! Words and comments in one row, as formatting needs them: nothing of the text but blanks is lost.

use crate::tokens::{Mark, Token, Word};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Word(Word),
    /// `#` or `//`, without the line's end.
    LineComment,
    /// `/* … */`.
    BlockComment,
}

#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
    /// Line ends between the piece before and this one.
    pub line_ends_before: usize,
}

impl Piece {
    pub fn bytes<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.start as usize..self.end as usize]
    }

    pub fn is(&self, mark: Mark) -> bool {
        self.kind == Kind::Word(Word::Mark(mark))
    }

    pub fn is_identifier(&self) -> bool {
        self.kind == Kind::Word(Word::Identifier)
    }

    pub fn is_text(&self) -> bool {
        matches!(self.kind, Kind::Word(Word::Text(_)))
    }

    pub fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::LineComment | Kind::BlockComment)
    }
}

/// The pieces of a text that was read without errors; or the place of a byte that is neither word, comment nor blank.
pub fn pieces(bytes: &[u8], words: &[Token]) -> Result<Vec<Piece>, u32> {
    let mut pieces = Vec::with_capacity(words.len() + words.len() / 4);
    let (mut at, mut line_ends) = (0, 0);
    for word in words {
        while at < word.span.start as usize {
            let rest = &bytes[at..word.span.start as usize];
            let (kind, length) = match rest {
                [b'\n', ..] => {
                    line_ends += 1;
                    at += 1;
                    continue;
                }
                [b' ' | b'\t' | b'\r', ..] => {
                    at += 1;
                    continue;
                }
                [b'#', ..] | [b'/', b'/', ..] => (Kind::LineComment, until_line_end(rest)),
                [b'/', b'*', ..] => {
                    let close = rest[2..].windows(2).position(|two| two == b"*/").ok_or(at as u32)?;
                    (Kind::BlockComment, close + 4)
                }
                _ => return Err(at as u32),
            };
            let end = (at + length) as u32;
            pieces.push(Piece { kind, start: at as u32, end, line_ends_before: line_ends });
            (at, line_ends) = (at + length, 0);
        }
        if word.word != Word::End {
            let (start, end) = (word.span.start, word.span.end);
            pieces.push(Piece { kind: Kind::Word(word.word), start, end, line_ends_before: line_ends });
            (at, line_ends) = (end as usize, 0);
        }
    }
    Ok(pieces)
}

/// A carriage return before the line feed belongs to the line's end.
fn until_line_end(rest: &[u8]) -> usize {
    let line = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    rest[..line].strip_suffix(b"\r").map_or(line, <[u8]>::len)
}
