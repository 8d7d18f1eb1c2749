//! Where a gzip is cut to become a piece for a page: what a [`GzipCutter`](crate::GzipCutter) has found out, and cutting by that.

use std::ops::Range;

use crate::text_sum::TextSum;

/// Where a gzip is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GzipMarks {
    /// Its head has so many bytes.
    pub head_bytes: u64,
    /// The bit that says that a block is the last, from the beginning …
    pub last_bit: u64,
    /// … and the first behind that block.
    pub end_bit: u64,
    /// What it says of its text.
    pub sum: TextSum,
}

/// What stands behind blocks that end in the middle of a byte: of the last byte of theirs these bits, and then these bytes. The first bits are
/// the head of an empty block that is not compressed, which begins anew at a byte.
const EMPTY_BLOCK: [u8; 4] = [0x00, 0x00, 0xff, 0xff];
/// The head of a block.
pub(crate) const BLOCK_HEAD_BITS: u64 = 3;

/// What becomes of some bytes of a gzip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CutBytes {
    /// These are of the piece, as they are.
    Kept(Range<usize>),
    Changed(Vec<u8>),
}

impl GzipMarks {
    /// What of these bytes of the gzip, which begin there in it, belongs to the piece.
    pub fn cut(&self, at: u64, bytes: &[u8]) -> Vec<CutBytes> {
        let within = |from: u64, to: u64| {
            let place = |place: u64| place.saturating_sub(at).min(bytes.len() as u64) as usize;
            place(from)..place(to).max(place(from))
        };
        let (last_byte, end_byte) = (self.last_bit / 8, self.end_bit / 8);
        let unmarked = |byte: u8| byte & !(1 << (self.last_bit & 7));
        let mut cut = Vec::new();
        let mut keep = |range: Range<usize>| cut.extend((!range.is_empty()).then_some(CutBytes::Kept(range)));
        keep(within(self.head_bytes, last_byte));
        let (marked, end) = (within(last_byte, last_byte + 1), within(end_byte, end_byte + 1));
        if last_byte < end_byte {
            cut.extend(bytes[marked].iter().map(|byte| CutBytes::Changed(vec![unmarked(*byte)])));
            let between = within(last_byte + 1, end_byte);
            cut.extend((!between.is_empty()).then_some(CutBytes::Kept(between)));
        }
        if self.end_bit & 7 != 0 {
            let byte = bytes[end].first().map(|byte| if last_byte == end_byte { unmarked(*byte) } else { *byte });
            cut.extend(byte.map(|byte| CutBytes::Changed(filled_up(byte, self.end_bit))));
        }
        cut
    }
}

/// What comes in the place of a byte in the middle of which the last block ends.
pub(crate) fn filled_up(byte: u8, end_bit: u64) -> Vec<u8> {
    let mut bytes = vec![byte & ((1 << (end_bit & 7)) - 1)];
    if (end_bit & 7) + BLOCK_HEAD_BITS > 8 {
        bytes.push(0);
    }
    bytes.extend_from_slice(&EMPTY_BLOCK);
    bytes
}
