//! A finished body: immutable, reference-counted blocks, each but the last exactly `BLOCK_BYTES` long; or, when it is
//! large, one extent of the page file; or a place on a disk, from which it is sent.
//!
//! Equal blocks make the way from a range to its bytes arithmetic, and keep a hit's gather list short. A block is
//! never rewritten: whoever holds a piece of one holds it as it was.

use std::sync::Arc;

use bytes::Bytes;

use crate::Extent;
use crate::disk::BodyOnDisk;
use crate::limits::BLOCK_BYTES;

/// A whole body. A clone shares its bytes.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    held: Held,
}

#[derive(Clone, Debug)]
enum Held {
    /// Most bodies. The block stands here and not in a list, which would be one more cache miss on a hit's way.
    One(Bytes),
    /// None, or more than one, and how many bytes they are together.
    List(Arc<[Bytes]>, u64),
    Pages(Arc<Extent>),
    OnDisk(Arc<BodyOnDisk>),
}

impl Default for Held {
    fn default() -> Held {
        Held::List(Arc::default(), 0)
    }
}

impl Blocks {
    /// All blocks but the last must be full.
    pub(crate) fn from_blocks(mut blocks: Vec<Bytes>) -> Blocks {
        let len = blocks.iter().map(|block| block.len() as u64).sum();
        let full = blocks.len().saturating_sub(1);
        assert!(blocks[..full].iter().all(|block| block.len() == BLOCK_BYTES), "a block in the middle is not full");
        assert!(blocks.last().is_none_or(|block| !block.is_empty() && block.len() <= BLOCK_BYTES));
        let held = match blocks.len() {
            1 => Held::One(blocks.remove(0)),
            _ => Held::List(blocks.into(), len),
        };
        Blocks { held }
    }

    fn list(&self) -> &[Bytes] {
        match &self.held {
            Held::One(only) => std::slice::from_ref(only),
            Held::List(blocks, _) => blocks,
            Held::Pages(_) | Held::OnDisk(_) => &[],
        }
    }

    /// A body that was copied into the page file.
    pub fn in_pages(extent: Extent) -> Blocks {
        Blocks { held: Held::Pages(Arc::new(extent)) }
    }

    /// A body that is at hand as one piece, which it shares.
    pub fn of_piece(piece: Bytes) -> Blocks {
        let pieces = (0..piece.len()).step_by(BLOCK_BYTES);
        Blocks::from_blocks(pieces.map(|at| piece.slice(at..piece.len().min(at + BLOCK_BYTES))).collect())
    }

    /// A body that stays where it lies on a disk.
    pub fn in_segments(body: Arc<BodyOnDisk>) -> Blocks {
        Blocks { held: Held::OnDisk(body) }
    }

    /// Where the body lies on a disk, if it is sent from there. Then it has neither blocks nor pieces.
    #[inline]
    pub fn on_disk(&self) -> Option<&Arc<BodyOnDisk>> {
        match &self.held {
            Held::OnDisk(body) => Some(body),
            _ => None,
        }
    }

    /// Where the body lies in the page file, if it does. Then it has no blocks to borrow.
    #[inline]
    pub fn extent(&self) -> Option<&Arc<Extent>> {
        match &self.held {
            Held::Pages(extent) => Some(extent),
            _ => None,
        }
    }

    /// Copies a body that is at hand as one piece.
    pub fn copy_of(bytes: &[u8]) -> Blocks {
        Blocks::from_blocks(bytes.chunks(BLOCK_BYTES).map(Bytes::copy_from_slice).collect())
    }

    #[inline]
    pub fn len(&self) -> u64 {
        match &self.held {
            Held::One(only) => only.len() as u64,
            Held::List(_, len) => *len,
            Held::Pages(extent) => extent.len(),
            Held::OnDisk(body) => body.len(),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap, for the account.
    pub fn heap_bytes(&self) -> usize {
        match &self.held {
            Held::Pages(extent) => extent.memory_bytes(),
            Held::OnDisk(body) => body.heap_bytes(),
            Held::One(only) => only.len(),
            Held::List(blocks, len) => *len as usize + blocks.len() * size_of::<Bytes>(),
        }
    }

    /// The only block of a body that has one: what most hits are.
    #[inline]
    pub fn single(&self) -> Option<&Bytes> {
        match &self.held {
            Held::One(only) => Some(only),
            _ => None,
        }
    }

    /// The bytes `from..to` (clamped to the body), block by block, borrowed.
    ///
    /// # Panics
    /// For a body in the page file or on a disk: it has nothing to borrow, and an answer without its body must not go out.
    pub fn slices(&self, from: u64, to: u64) -> impl Iterator<Item = &[u8]> {
        assert!(self.extent().is_none(), "a body in the page file is sent as it lies, or by pieces");
        assert!(self.on_disk().is_none(), "a body on a disk is leased");
        self.parts(from, to).map(|(block, range)| &block[range])
    }

    /// The same, held: for a writer that cannot keep the object borrowed. Copied, if they lie in the page file.
    ///
    /// # Panics
    /// For a body on a disk.
    pub fn pieces(&self, from: u64, to: u64) -> impl Iterator<Item = Bytes> {
        assert!(self.on_disk().is_none(), "a body on a disk is leased");
        let copied = self.extent().map(|extent| extent.copy(from, to)).filter(|copy| !copy.is_empty());
        copied.into_iter().chain(self.parts(from, to).map(|(block, range)| block.slice(range)))
    }

    fn parts(&self, from: u64, to: u64) -> impl Iterator<Item = (&Bytes, std::ops::Range<usize>)> {
        let (to, block_bytes, blocks) = (to.min(self.len()), BLOCK_BYTES as u64, self.list());
        let first = (from / block_bytes).min(blocks.len() as u64) as usize;
        blocks[first..].iter().enumerate().map_while(move |(index, block)| {
            let base = (first + index) as u64 * block_bytes;
            let start = from.saturating_sub(base).min(block.len() as u64) as usize;
            let end = to.saturating_sub(base).min(block.len() as u64) as usize;
            (start < end).then_some((block, start..end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageFile;
    use crate::limits::{PAGES_BYTES_MAX, PAGES_BYTES_MIN};

    fn check(len: usize, from: u64, to: u64) {
        let body: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let blocks = Blocks::copy_of(&body);
        let clamped = &body[(from as usize).min(len)..(to as usize).clamp((from as usize).min(len), len)];
        assert_eq!(blocks.slices(from, to).collect::<Vec<_>>().concat(), clamped, "{len} {from}..{to}");
        assert_eq!(blocks.pieces(from, to).collect::<Vec<_>>().concat(), clamped, "{len} {from}..{to}");
        assert_eq!(blocks.len(), len as u64);
    }

    #[test]
    fn any_range_gives_exactly_its_bytes() {
        let edge = BLOCK_BYTES as u64;
        for len in [0, 1, 6221, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES, 3 * BLOCK_BYTES + 7] {
            for from in [0, 1, edge - 1, edge, edge + 1, 3 * edge, 9 * edge, u64::MAX] {
                for to in [0, 1, edge - 1, edge, edge + 1, 2 * edge, 4 * edge, u64::MAX] {
                    check(len, from, to);
                }
            }
        }
    }

    #[test]
    fn in_pages_the_same_bytes_are_found_in_every_range() {
        let pages = PageFile::create().expect("a memory file");
        let edge = BLOCK_BYTES as u64;
        for len in [PAGES_BYTES_MIN, 3 * edge + 7, PAGES_BYTES_MAX] {
            let body: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let mut writer = pages.write_extent(len, u64::MAX).expect("a turn");
            Blocks::copy_of(&body).slices(0, len).try_for_each(|block| writer.append(block)).expect("laid");
            let blocks = Blocks::in_pages(writer.finish().expect("all of it"));
            assert!(blocks.extent().is_some() && blocks.len() == len);
            for (from, to) in [(0, u64::MAX), (1, 2), (edge - 1, edge + 1), (len - 1, len), (len, len + 1), (9, 3)] {
                let expect = body.get(from as usize..to.min(len) as usize).unwrap_or_default();
                assert!(blocks.pieces(from, to).collect::<Vec<_>>().concat() == expect, "{len} {from}..{to}");
            }
        }
    }

    #[test]
    fn a_small_body_is_one_block() {
        assert_eq!(Blocks::copy_of(&[7; 6221]).single().map(Bytes::len), Some(6221));
        assert!(Blocks::copy_of(&vec![7; BLOCK_BYTES + 1]).single().is_none());
        assert!(Blocks::copy_of(b"").single().is_none());
    }
}
