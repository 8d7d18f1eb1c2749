//! What a scanner makes of a text.

use std::ops::Range;

/// A text, in the order in which it goes out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    pub pieces: Vec<Piece>,
    /// At most [`COMPLAINTS_MAX`](crate::limits::COMPLAINTS_MAX) of them.
    pub complaints: Vec<Complaint>,
    /// Is there any ESI in it? If not, the whole text goes out as it is.
    pub has_esi: bool,
}

/// A part of what goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These bytes of the text.
    Text(Range<u64>),
    Include(Include),
    /// The first, if all that it includes can be had; else the second.
    Try {
        attempt: Vec<Piece>,
        except: Vec<Piece>,
    },
}

/// `<esi:include>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Include {
    /// As it was written: see [`Target`](crate::Target).
    pub src: Vec<u8>,
    /// What is included where that fails.
    pub alt: Option<Vec<u8>>,
    /// `onerror="continue"`: nothing stands in the place of what failed.
    pub goes_on: bool,
}

/// Something that is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Where it stood: up to there the text goes out, or does not, as what was before it.
    pub after: u64,
    /// Something was left out because of it.
    pub is_error: bool,
    pub text: &'static str,
}

impl Document {
    /// How many includes there are, those in alternatives counted too.
    pub fn includes_count(&self) -> usize {
        count(&self.pieces)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        heap_bytes(&self.pieces)
    }
}

fn count(pieces: &[Piece]) -> usize {
    let of = |piece: &Piece| match piece {
        Piece::Text(_) => 0,
        Piece::Include(_) => 1,
        Piece::Try { attempt, except } => count(attempt) + count(except),
    };
    pieces.iter().map(of).sum()
}

fn heap_bytes(pieces: &[Piece]) -> usize {
    let of = |piece: &Piece| match piece {
        Piece::Text(_) => 0,
        Piece::Include(include) => include.src.len() + include.alt.as_ref().map_or(0, Vec::len),
        Piece::Try { attempt, except } => heap_bytes(attempt) + heap_bytes(except),
    };
    size_of_val(pieces) + pieces.iter().map(of).sum::<usize>()
}
