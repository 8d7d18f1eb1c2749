//! What a program hashes, part behind part, as the key of a response is made of it.

use cache::Key;

use crate::worker::Core;

/// Bytes that the parts usually have together. More of them are on the heap.
const BYTES_USUAL: usize = 192;

pub(crate) struct HashedParts {
    usual: [u8; BYTES_USUAL],
    usual_count: usize,
    /// All of them, once there are too many.
    all: Vec<u8>,
}

impl HashedParts {
    #[inline]
    pub(crate) fn new() -> HashedParts {
        HashedParts { usual: [0; BYTES_USUAL], usual_count: 0, all: Vec::new() }
    }

    /// Adds what is hashed as one part, in pieces. Each part counts by itself: `ab` and `c` are not `a` and `bc`; and
    /// absent is not empty.
    #[inline]
    pub(crate) fn add(&mut self, pieces: Option<&[&[u8]]>) {
        let length = pieces.map_or(u32::MAX, |pieces| pieces.iter().map(|piece| piece.len() as u32).sum());
        self.push(&length.to_le_bytes());
        pieces.unwrap_or_default().iter().for_each(|piece| self.push(piece));
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.usual_count + bytes.len();
        match self.usual.get_mut(self.usual_count..end) {
            Some(room) if self.all.is_empty() => {
                room.copy_from_slice(bytes);
                self.usual_count = end;
            }
            _ => self.push_beyond(bytes),
        }
    }

    #[cold]
    fn push_beyond(&mut self, bytes: &[u8]) {
        if self.all.is_empty() {
            self.all.extend_from_slice(&self.usual[..self.usual_count]);
        }
        self.all.extend_from_slice(bytes);
    }

    fn bytes(&self) -> &[u8] {
        if self.all.is_empty() { &self.usual[..self.usual_count] } else { &self.all }
    }

    #[inline]
    pub(crate) fn key(&self, core: &Core) -> Key {
        core.shared.cache.key([&b"vcl"[..], self.bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_kept_apart_and_all_there() {
        let of = |parts: &[Option<&[&[u8]]>]| {
            let mut hashed = HashedParts::new();
            parts.iter().for_each(|pieces| hashed.add(*pieces));
            hashed.bytes().to_vec()
        };
        assert_eq!(of(&[Some(&[b"ab", b"c"])]), b"\x03\0\0\0abc");
        assert_ne!(of(&[Some(&[b"ab"]), Some(&[b"c"])]), of(&[Some(&[b"a"]), Some(&[b"bc"])]));
        assert_ne!(of(&[None]), of(&[Some(&[])]));
        let long = [b'x'; BYTES_USUAL];
        for count in [BYTES_USUAL - 5, BYTES_USUAL - 4, BYTES_USUAL - 3, BYTES_USUAL] {
            let expect = [&(count as u32).to_le_bytes()[..], &long[..count], &2u32.to_le_bytes(), b"yz"].concat();
            assert_eq!(of(&[Some(&[&long[..count]]), Some(&[b"y", b"z"])]), expect, "{count}");
        }
    }
}
