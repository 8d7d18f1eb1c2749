//! A stretch of a body on its way to the disk: bytes that lie in several pieces and are written, summed and cut as one, without
//! being joined first.
//!
//! It knows no places.

use std::io::IoSlice;

use crate::limits::BLOCK_BYTES;

#[derive(Clone, Default)]
pub struct BodyStretch<'a> {
    pieces: Vec<&'a [u8]>,
    len: usize,
}

impl<'a> BodyStretch<'a> {
    pub fn of(pieces: impl IntoIterator<Item = &'a [u8]>) -> BodyStretch<'a> {
        let pieces: Vec<&[u8]> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        let len = pieces.iter().map(|piece| piece.len()).sum();
        BodyStretch { pieces, len }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What is in front of a position that lies within it, and the rest.
    pub fn split_at(&self, at: usize) -> (BodyStretch<'a>, BodyStretch<'a>) {
        assert!(at <= self.len, "a stretch is cut within itself");
        let mut left = at;
        let (mut front, mut behind) = (BodyStretch::default(), BodyStretch::default());
        for piece in &self.pieces {
            let (head, tail) = piece.split_at(left.min(piece.len()));
            left -= head.len();
            front.push(head);
            behind.push(tail);
        }
        (front, behind)
    }

    fn push(&mut self, piece: &'a [u8]) {
        if !piece.is_empty() {
            self.pieces.push(piece);
            self.len += piece.len();
        }
    }

    /// The sums of its blocks, counted from its beginning.
    pub fn block_sums(&self) -> Vec<u32> {
        let mut sums = Vec::with_capacity(self.len.div_ceil(BLOCK_BYTES));
        let (mut hasher, mut room) = (crc32fast::Hasher::new(), BLOCK_BYTES);
        for piece in &self.pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                let (part, behind) = rest.split_at(rest.len().min(room));
                hasher.update(part);
                (room, rest) = (room - part.len(), behind);
                if room == 0 {
                    sums.push(std::mem::take(&mut hasher).finalize());
                    room = BLOCK_BYTES;
                }
            }
        }
        if room < BLOCK_BYTES {
            sums.push(hasher.finalize());
        }
        sums
    }

    pub fn slices(&self) -> impl Iterator<Item = IoSlice<'a>> {
        self.pieces.iter().map(|piece| IoSlice::new(piece))
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::disk::encoding::checksum;

    fn joined(stretch: &BodyStretch<'_>) -> Vec<u8> {
        stretch.slices().flat_map(|slice| slice.to_vec()).collect()
    }

    fn check(bytes: &[u8], piece_bytes: usize) {
        let stretch = BodyStretch::of(bytes.chunks(piece_bytes));
        let sums: Vec<u32> = bytes.chunks(BLOCK_BYTES).map(checksum).collect();
        assert_eq!((stretch.len(), stretch.block_sums()), (bytes.len(), sums), "{} in {piece_bytes}", bytes.len());
        for at in [0, 1, piece_bytes, BLOCK_BYTES, bytes.len() / 2, bytes.len()] {
            let at = at.min(bytes.len());
            let (front, behind) = stretch.split_at(at);
            assert!(joined(&front) == bytes[..at] && joined(&behind) == bytes[at..], "{at} of {}", bytes.len());
            assert_eq!((front.len(), behind.len()), (at, bytes.len() - at));
        }
    }

    #[test]
    fn in_whatever_pieces_it_comes_it_is_summed_and_cut_the_same() {
        let bytes: Vec<u8> = (0..3 * BLOCK_BYTES + 77).map(|at| (at % 251) as u8).collect();
        for len in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES, bytes.len()] {
            for piece_bytes in [777, 4096, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, usize::MAX >> 1] {
                check(&bytes[..len], piece_bytes);
            }
        }
    }
}
