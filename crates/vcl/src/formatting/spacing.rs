//! Whether a blank stands between two pieces of a line.

use super::pieces::{Kind, Piece};
use crate::tokens::{Mark, Word};

/// Where the two pieces stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// Among the entries of an ACL, where `/` parts an address from its mask.
    pub in_acl: bool,
    /// Behind `acl name` or `include`, where `+` and `-` begin flags.
    pub in_flags: bool,
    /// Open parentheses.
    pub parentheses: usize,
    /// The left piece is a `+` or `-` that belongs to what follows, and is not between two values.
    pub left_is_sign: bool,
}

/// Words before a parenthesis that are no functions.
const HEADS: [&[u8]; 5] = [b"if", b"elseif", b"elsif", b"elif", b"return"];

pub fn space_between(left: &Piece, right: &Piece, text: &[u8], place: Place) -> bool {
    let (Kind::Word(before), Kind::Word(after)) = (left.kind, right.kind) else { return true };
    match (before, after) {
        (_, Word::Mark(Mark::Semicolon | Mark::Comma | Mark::ParenClose | Mark::Dot)) => false,
        (Word::Mark(Mark::ParenOpen | Mark::Dot | Mark::Not), _) => false,
        // Two signs in a row would be read as one word.
        (Word::Mark(Mark::Minus | Mark::Plus), Word::Mark(Mark::Minus | Mark::Plus)) => true,
        (Word::Mark(Mark::Minus | Mark::Plus), _) => !place.left_is_sign,
        (Word::Identifier, Word::Mark(Mark::ParenOpen)) => is_head(left, text),
        (Word::Integer(_) | Word::Real(_), Word::Identifier) => false,
        (_, Word::Mark(Mark::Slash)) | (Word::Mark(Mark::Slash), _) => !place.in_acl,
        (_, Word::Mark(Mark::Assign)) | (Word::Mark(Mark::Assign), _) => place.parentheses == 0,
        _ => true,
    }
}

/// Not after a dot, behind which every word names a function.
fn is_head(piece: &Piece, text: &[u8]) -> bool {
    let word = piece.bytes(text);
    HEADS.iter().any(|head| word.eq_ignore_ascii_case(head))
        && (piece.start == 0 || text[piece.start as usize - 1] != b'.')
}

/// Whether a `+` or `-` behind this piece is a sign.
pub fn sign_follows(left: Option<&Piece>, place: Place) -> bool {
    match left.map(|piece| piece.kind) {
        _ if place.in_flags => true,
        Some(Kind::Word(Word::Mark(mark))) => mark != Mark::ParenClose,
        _ => false,
    }
}
