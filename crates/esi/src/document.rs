//! What a scanner makes of a text.

use std::ops::Range;

use crate::esi_variables::Variable;

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
    /// What the request for the page says.
    Variable(Variable),
    /// The first whose test holds, else the last.
    Choose {
        whens: Vec<When>,
        otherwise: Vec<Piece>,
    },
}

/// `<esi:when>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// As it was written: [`holds`](crate::holds) reads it.
    pub test: Vec<u8>,
    pub pieces: Vec<Piece>,
}

/// `<esi:include>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Include {
    /// As it was written: see [`Target`](crate::Target).
    pub src: Vec<u8>,
    /// What is included where that fails.
    pub alt: Option<Vec<u8>>,
    /// There may be variables in these: see [`expanded`](crate::expanded).
    pub has_variables: bool,
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

    /// All texts, those in alternatives too, in the order in which they stand.
    pub fn texts(&self) -> Vec<Range<u64>> {
        let mut texts = Vec::new();
        push_texts(&self.pieces, &mut texts);
        // The second of two branches may stand before the first.
        texts.sort_unstable_by_key(|text| text.start);
        texts
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        heap_bytes(&self.pieces)
    }
}

fn count(pieces: &[Piece]) -> usize {
    let of = |piece: &Piece| match piece {
        Piece::Text(_) | Piece::Variable(_) => 0,
        Piece::Include(_) => 1,
        Piece::Try { attempt, except } => count(attempt) + count(except),
        Piece::Choose { whens, otherwise } => {
            whens.iter().map(|when| count(&when.pieces)).sum::<usize>() + count(otherwise)
        }
    };
    pieces.iter().map(of).sum()
}

fn push_texts(pieces: &[Piece], texts: &mut Vec<Range<u64>>) {
    for piece in pieces {
        match piece {
            Piece::Text(range) => texts.push(range.clone()),
            Piece::Include(_) | Piece::Variable(_) => {}
            Piece::Try { attempt, except } => {
                push_texts(attempt, texts);
                push_texts(except, texts);
            }
            Piece::Choose { whens, otherwise } => {
                whens.iter().for_each(|when| push_texts(&when.pieces, texts));
                push_texts(otherwise, texts);
            }
        }
    }
}

fn heap_bytes(pieces: &[Piece]) -> usize {
    let of = |piece: &Piece| match piece {
        Piece::Text(_) => 0,
        Piece::Include(include) => include.src.len() + include.alt.as_ref().map_or(0, Vec::len),
        Piece::Try { attempt, except } => heap_bytes(attempt) + heap_bytes(except),
        Piece::Variable(Variable { key, default, .. }) => {
            key.as_ref().map_or(0, Vec::len) + default.as_ref().map_or(0, Vec::len)
        }
        Piece::Choose { whens, otherwise } => {
            let of = |when: &When| size_of::<When>() + when.test.len() + heap_bytes(&when.pieces);
            whens.iter().map(of).sum::<usize>() + heap_bytes(otherwise)
        }
    };
    size_of_val(pieces) + pieces.iter().map(of).sum::<usize>()
}
