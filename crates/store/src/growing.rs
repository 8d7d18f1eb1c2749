//! A body that is being received: finished blocks, and a tail of pieces as they came.
//!
//! Pieces are cheap to append and to read behind, but hold on to the buffer they were read into. As soon as the
//! tail amounts to a block its writer copies it into one, outside of whatever lock guards this; so a large body
//! is compacted bit by bit and landing copies at most one block.

use bytes::{Bytes, BytesMut};

use crate::Blocks;
use crate::limits::{BLOCK_BYTES, PIECE_JOIN_BYTES_MAX};

/// A body from byte 0 to as far as it has come. One writer; readers go by position.
#[derive(Debug, Default)]
pub struct Growing {
    blocks: Vec<Bytes>,
    tail: Vec<Bytes>,
    tail_bytes: usize,
}

impl Growing {
    pub fn len(&self) -> u64 {
        (self.blocks.len() * BLOCK_BYTES + self.tail_bytes) as u64
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn append(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.tail_bytes += piece.len();
        match self.tail.last_mut() {
            Some(last) if last.len() + piece.len() <= PIECE_JOIN_BYTES_MAX => {
                let mut joined = BytesMut::with_capacity(last.len() + piece.len());
                joined.extend_from_slice(last);
                joined.extend_from_slice(&piece);
                *last = joined.freeze();
            }
            _ => self.tail.push(piece),
        }
    }

    /// Appends a piece that holds on to nothing but its own bytes. If it is the next block it stays as it is.
    pub fn append_own(&mut self, piece: Bytes) {
        if self.tail.is_empty() && piece.len() == BLOCK_BYTES {
            self.blocks.push(piece);
        } else {
            self.append(piece);
        }
    }

    /// The pieces of the next block, once there are enough: to be joined by [`join`](Growing::join) and given to
    /// [`settle`](Growing::settle).
    pub fn ripe(&self) -> Option<Vec<Bytes>> {
        (self.tail_bytes >= BLOCK_BYTES).then(|| self.unsettled(BLOCK_BYTES))
    }

    /// All there is, for landing: to be finished outside of the lock.
    pub fn unfinished(&self) -> Unfinished {
        Unfinished { blocks: self.blocks.clone(), tail: self.unsettled(self.tail_bytes) }
    }

    fn unsettled(&self, bytes: usize) -> Vec<Bytes> {
        let mut left = bytes;
        let mut pieces = Vec::with_capacity(self.tail.len());
        for piece in &self.tail {
            if left == 0 {
                break;
            }
            let take = piece.len().min(left);
            left -= take;
            pieces.push(piece.slice(..take));
        }
        pieces
    }

    /// Copies pieces into one exact block.
    pub fn join<'a>(pieces: impl IntoIterator<Item = &'a Bytes, IntoIter: Clone>) -> Bytes {
        let pieces = pieces.into_iter();
        let len = pieces.clone().map(Bytes::len).sum();
        let mut block = Vec::with_capacity(len);
        for piece in pieces {
            block.extend_from_slice(piece);
        }
        Bytes::from(block.into_boxed_slice())
    }

    /// Puts a full block in the place of the pieces it was made of.
    pub fn settle(&mut self, block: Bytes) {
        assert!(block.len() == BLOCK_BYTES && self.tail_bytes >= BLOCK_BYTES, "only a full block is settled");
        let mut left = block.len();
        let mut whole = 0;
        for piece in &mut self.tail {
            if piece.len() > left {
                *piece = piece.slice(left..);
                break;
            }
            left -= piece.len();
            whole += 1;
            if left == 0 {
                break;
            }
        }
        self.tail.drain(..whole);
        self.tail_bytes -= block.len();
        self.blocks.push(block);
    }

    /// Makes blocks of all that are full, where nobody reads meanwhile.
    pub fn settle_all(&mut self) {
        while let Some(pieces) = self.ripe() {
            self.settle(Growing::join(&pieces));
        }
    }

    /// The bytes from `from` on, at most about `bytes_max` (at least one piece when there is any), given to `take`.
    pub fn read(&self, from: u64, bytes_max: usize, mut take: impl FnMut(Bytes)) {
        let first = ((from / BLOCK_BYTES as u64) as usize).min(self.blocks.len());
        let mut skip = (from - (first * BLOCK_BYTES) as u64) as usize;
        let mut left = bytes_max;
        for piece in self.blocks[first..].iter().chain(&self.tail) {
            if left == 0 {
                return;
            }
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let part = piece.slice(std::mem::take(&mut skip)..);
            left = left.saturating_sub(part.len());
            take(part);
        }
    }

    /// Every piece in order, for who gives up keeping the whole.
    pub fn into_pieces(self) -> impl Iterator<Item = Bytes> {
        self.blocks.into_iter().chain(self.tail)
    }
}

/// A body that has ended, with its last block still in pieces.
#[derive(Debug)]
pub struct Unfinished {
    blocks: Vec<Bytes>,
    tail: Vec<Bytes>,
}

impl Unfinished {
    pub fn len(&self) -> u64 {
        self.pieces().map(|piece| piece.len() as u64).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every piece in order, for who copies them himself.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.blocks.iter().chain(&self.tail)
    }

    /// Makes the last block.
    pub fn finish(self) -> Blocks {
        let last = Growing::join(&self.tail);
        Blocks::from_blocks(self.blocks.into_iter().chain((!last.is_empty()).then_some(last)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grow(sizes: &[usize]) -> (Growing, Vec<u8>) {
        let (mut growing, mut body) = (Growing::default(), Vec::new());
        for &size in sizes {
            let piece: Vec<u8> = (body.len()..body.len() + size).map(|at| (at % 253) as u8).collect();
            body.extend_from_slice(&piece);
            if size % 2 == 0 {
                growing.append_own(Bytes::from(piece))
            } else {
                growing.append(Bytes::from(piece))
            }
            growing.settle_all();
        }
        (growing, body)
    }

    fn read(growing: &Growing, from: u64, bytes_max: usize) -> Vec<u8> {
        let mut out = Vec::new();
        growing.read(from, bytes_max, |piece| out.extend_from_slice(&piece));
        out
    }

    proptest! {
        #[test]
        fn what_is_appended_is_read_from_any_place_and_lands(
            sizes in prop::collection::vec(prop_oneof![0usize..9, 1000usize..9000, 60_000usize..200_000, Just(BLOCK_BYTES)], 0..12),
            from in 0.0f64..1.0,
        ) {
            let (growing, body) = grow(&sizes);
            let from = (from * body.len() as f64) as usize;
            prop_assert_eq!(growing.len(), body.len() as u64);
            prop_assert!(read(&growing, from as u64, usize::MAX) == body[from..]);
            let some = read(&growing, from as u64, 1);
            prop_assert!(body[from..].starts_with(&some) && (from == body.len() || !some.is_empty()));
            let unfinished = growing.unfinished();
            prop_assert_eq!(unfinished.len(), body.len() as u64);
            prop_assert!(unfinished.pieces().flatten().eq(&body));
            let blocks = unfinished.finish();
            prop_assert!(blocks.slices(0, u64::MAX).collect::<Vec<_>>().concat() == body);
            prop_assert!(growing.into_pieces().collect::<Vec<_>>().concat() == body);
        }
    }

    #[test]
    fn a_piece_that_is_a_block_is_not_copied() {
        let piece = Bytes::from(vec![7; BLOCK_BYTES]);
        let mut growing = Growing::default();
        growing.append_own(piece.clone());
        assert!(growing.ripe().is_none());
        growing.append(piece.slice(..9));
        let blocks = growing.unfinished().finish();
        assert!(blocks.slices(0, 1).all(|block| std::ptr::eq(block.as_ptr(), piece.as_ptr())));
        assert_eq!(blocks.len(), BLOCK_BYTES as u64 + 9);
    }

    #[test]
    fn single_bytes_do_not_make_a_long_list() {
        let (growing, _) = grow(&[1; 60_000]);
        assert!(growing.tail.len() <= 2 * (60_000 / PIECE_JOIN_BYTES_MAX + 1), "{}", growing.tail.len());
    }
}
