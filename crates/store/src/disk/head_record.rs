//! The record of an object: who it is, its opaque head, and where its body lies.
//!
//! ```text
//! 0 magic  4 checksum of the rest, and of store and place  8 record_bytes  12 head_bytes  16 extents  20 generation
//! 24 place  32 family  40 member  48 record_sequence  56 body_sequence  64 body_bytes  72 expires  80 number
//! 88 for each extent: offset, generation, bytes, and the checksum of each block of it
//! …  the head
//! ```
//!
//! A small body stands right behind it, in the same write. Body bytes carry nothing of their own: a record that is
//! whole says what each block of the body must sum to.

use bytes::Bytes;

use super::disk_digest::Digest;
use super::encoding::{Decoder, Encode, checksum_at};
use super::limits::{EXTENT_BYTES_MAX, HEAD_BYTES_MAX, RECORD_BYTES_MAX};
use crate::limits::BLOCK_BYTES;

const MAGIC: u32 = u32::from_le_bytes(*b"LREC");
pub const FIXED_BYTES: usize = 88;
const EXTENT_ROW_BYTES: usize = 16;

/// What the caller says of a record beside its head.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordFacts {
    /// After this it is of no use to anybody, in the caller's units: then reclaim does not keep it.
    pub expires: u64,
    /// The number of the last invalidation that it was tested against.
    pub number: u64,
}

/// A stretch of a body in one segment. All but a body's last are whole blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BodyExtent {
    /// Of the device, in bytes.
    pub offset: u64,
    pub generation: u32,
    pub bytes: u32,
    /// Of each block.
    pub sums: Vec<u32>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeadRecord {
    pub digest: Digest,
    /// The number of this record.
    pub record_sequence: u64,
    /// The number of the record that the body came with: a new head for the same body keeps it.
    pub body_sequence: u64,
    pub facts: RecordFacts,
    pub extents: Vec<BodyExtent>,
    pub head: Bytes,
}

impl HeadRecord {
    pub fn body_bytes(&self) -> u64 {
        self.extents.iter().map(|extent| u64::from(extent.bytes)).sum()
    }

    /// How long it is on the disk.
    pub fn record_bytes(&self) -> usize {
        let rows = |extent: &BodyExtent| EXTENT_ROW_BYTES + 4 * extent.sums.len();
        FIXED_BYTES + self.extents.iter().map(rows).sum::<usize>() + self.head.len()
    }

    /// Writes it into an empty buffer.
    pub fn encode(&self, store: u64, place: u64, generation: u32, out: &mut Vec<u8>) {
        out.put_u32(MAGIC);
        out.put_u32(0);
        out.put_u32(self.record_bytes() as u32);
        out.put_u32(self.head.len() as u32);
        out.put_u32(self.extents.len() as u32);
        out.put_u32(generation);
        out.put_u64(place);
        out.put_u64(self.digest.family);
        out.put_u64(self.digest.member);
        out.put_u64(self.record_sequence);
        out.put_u64(self.body_sequence);
        out.put_u64(self.body_bytes());
        out.put_u64(self.facts.expires);
        out.put_u64(self.facts.number);
        for extent in &self.extents {
            out.put_u64(extent.offset);
            out.put_u32(extent.generation);
            out.put_u32(extent.bytes);
            extent.sums.iter().for_each(|sum| out.put_u32(*sum));
        }
        out.put(&self.head);
        let sum = checksum_at(store, place, &out[8..]);
        out[4..8].copy_from_slice(&sum.to_le_bytes());
    }

    /// How long the record is that begins so, as it says itself; nothing is trusted yet but that it may be so.
    pub fn stated_bytes(begin: &[u8]) -> Option<usize> {
        let mut decoder = Decoder::new(begin);
        let (magic, _sum, bytes) = (decoder.u32()?, decoder.u32()?, decoder.u32()? as usize);
        (magic == MAGIC && (FIXED_BYTES..=RECORD_BYTES_MAX).contains(&bytes)).then_some(bytes)
    }

    /// Reads a record that was written at this place in this generation, and is whole.
    pub fn decode(bytes: &Bytes, store: u64, place: u64, generation: u32) -> Option<HeadRecord> {
        let record_bytes = HeadRecord::stated_bytes(bytes)?;
        let record = bytes.get(..record_bytes)?;
        let mut decoder = Decoder::new(&record[4..]);
        let sum = decoder.u32()?;
        if sum != checksum_at(store, place, &record[8..]) {
            return None;
        }
        let (_bytes, head_bytes, extents) = (decoder.u32()?, decoder.u32()? as usize, decoder.u32()?);
        if decoder.u32()? != generation || decoder.u64()? != place || head_bytes > HEAD_BYTES_MAX {
            return None;
        }
        let digest = Digest { family: decoder.u64()?, member: decoder.u64()? };
        let (record_sequence, body_sequence, body_bytes) = (decoder.u64()?, decoder.u64()?, decoder.u64()?);
        let facts = RecordFacts { expires: decoder.u64()?, number: decoder.u64()? };
        let extents = (0..extents).map(|_| decode_extent(&mut decoder)).collect::<Option<Vec<_>>>()?;
        let head_at = record_bytes.checked_sub(head_bytes)?;
        let head = bytes.slice(head_at..record_bytes);
        let record = HeadRecord { digest, record_sequence, body_sequence, facts, extents, head };
        (record.body_bytes() == body_bytes && record.record_bytes() == record_bytes).then_some(record)
    }

    /// Which extent a block of the body lies in, and which block of it. All extents but the last are whole blocks.
    pub fn find_block(&self, block: u64) -> Option<(&BodyExtent, usize)> {
        let mut left = block;
        for extent in &self.extents {
            match usize::try_from(left).ok().filter(|at| *at < extent.sums.len()) {
                Some(at) => return Some((extent, at)),
                None => left -= extent.sums.len() as u64,
            }
        }
        None
    }
}

fn decode_extent(decoder: &mut Decoder<'_>) -> Option<BodyExtent> {
    let (offset, generation, bytes) = (decoder.u64()?, decoder.u32()?, decoder.u32()?);
    if bytes as usize > EXTENT_BYTES_MAX {
        return None;
    }
    let sums = (0..(bytes as usize).div_ceil(BLOCK_BYTES)).map(|_| decoder.u32()).collect::<Option<Vec<_>>>()?;
    Some(BodyExtent { offset, generation, bytes, sums })
}

impl BodyExtent {
    /// Where a block of it lies: offset on the device, length, and its sum.
    pub fn block(&self, at: usize) -> (u64, usize, u32) {
        let from = at * BLOCK_BYTES;
        let len = (self.bytes as usize - from).min(BLOCK_BYTES);
        (self.offset + from as u64, len, self.sums[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> HeadRecord {
        let extent = |offset, bytes: usize| BodyExtent {
            offset,
            generation: 9,
            bytes: bytes as u32,
            sums: (0..bytes.div_ceil(BLOCK_BYTES)).map(|at| at as u32).collect(),
        };
        HeadRecord {
            digest: Digest { family: 1, member: 2 },
            record_sequence: 3,
            body_sequence: 4,
            facts: RecordFacts { expires: 5, number: 6 },
            extents: vec![extent(512, 2 * BLOCK_BYTES), extent(1 << 30, BLOCK_BYTES + 7)],
            head: Bytes::from_static(b"a head"),
        }
    }

    fn encoded() -> Vec<u8> {
        let mut out = Vec::new();
        record().encode(7, 1024, 8, &mut out);
        out
    }

    #[test]
    fn it_is_what_it_was_in_its_own_place_only() {
        let bytes = Bytes::from(encoded());
        assert_eq!(bytes.len(), record().record_bytes());
        assert_eq!(HeadRecord::decode(&bytes, 7, 1024, 8), Some(record()));
        for (store, place, generation) in [(6, 1024, 8), (7, 512, 8), (7, 1024, 9)] {
            assert_eq!(HeadRecord::decode(&bytes, store, place, generation), None);
        }
    }

    #[test]
    fn no_bit_of_it_may_be_another() {
        let good = encoded();
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(HeadRecord::decode(&Bytes::from(bytes), 7, 1024, 8), None, "bit {bit}");
        }
        for len in 0..good.len() {
            assert_eq!(HeadRecord::decode(&Bytes::copy_from_slice(&good[..len]), 7, 1024, 8), None, "{len} bytes");
        }
    }

    #[test]
    fn a_block_is_found_in_its_extent() {
        let record = record();
        let at = |block| record.find_block(block).map(|(extent, at)| extent.block(at));
        assert_eq!(at(0), Some((512, BLOCK_BYTES, 0)));
        assert_eq!(at(1), Some((512 + BLOCK_BYTES as u64, BLOCK_BYTES, 1)));
        assert_eq!(at(3), Some(((1 << 30) + BLOCK_BYTES as u64, 7, 1)));
        assert_eq!(at(4), None);
    }
}
