//! Where everything lies on a device, and the superblock that says so.
//!
//! ```text
//! 0        superblock                          4096   the same again
//! 8192     journal: half 0, its mirror, half 1, its mirror
//! …        checkpoint slot 0, slot 1: knowledge, pages of the index, the knowledge again
//! …        segments, to the end
//! ```
//!
//! The two halves of the journal and the two slots take turns, one epoch after another.

use super::device::{Device, read_whole, sync_whole, write_whole, write_whole_synced};
use super::disk_settings::DiskSettings;
use super::encoding::{Decoder, Encode, checksum};
use super::limits::{
    JOURNAL_BYTES_MAX, JOURNAL_BYTES_MIN, JOURNAL_SHARE_SHIFT, PAGE_BYTES, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN,
    SEGMENTS_MIN, UNIT_BYTES,
};
use std::io;

/// The format that this code writes. It reads no other: docs/store-format.md says what changes it.
pub const FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"larderS\n";
const SUPERBLOCK_BYTES: u64 = 4096;
const SUPERBLOCKS: [u64; 2] = [0, SUPERBLOCK_BYTES];
const ALIGNMENT: u64 = 4096;

/// The sizes of a store's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub bytes: u64,
    pub segment_bytes: u64,
    pub segments: u32,
    /// One of the four copies.
    pub journal_bytes: u64,
    /// One of the two copies of what a checkpoint knows beside the index.
    pub knowledge_bytes: u64,
    /// Pages of one slot.
    pub pages: u64,
}

impl Geometry {
    /// Lays a store out; `None` if it is too small for a log.
    pub fn of(settings: &DiskSettings) -> Option<Geometry> {
        let bytes = settings.bytes / ALIGNMENT * ALIGNMENT;
        let segment_bytes = settings.segment_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
        let segment_bytes = segment_bytes / ALIGNMENT * ALIGNMENT;
        let share = (bytes >> JOURNAL_SHARE_SHIFT).clamp(JOURNAL_BYTES_MIN, JOURNAL_BYTES_MAX);
        let journal_bytes = share.next_multiple_of(ALIGNMENT);
        let segments_max = bytes / segment_bytes;
        let knowledge_bytes =
            super::knowledge::bytes_max(segments_max, settings.slots_max, settings.bans_bytes_max) as u64;
        let knowledge_bytes = knowledge_bytes.next_multiple_of(ALIGNMENT);
        let objects_max = settings.objects_max.max(1);
        let pages = objects_max.div_ceil(super::checkpoint::ENTRIES_A_PAGE as u64);
        let mut geometry = Geometry { bytes, segment_bytes, segments: 0, journal_bytes, knowledge_bytes, pages };
        let segments = bytes.checked_sub(geometry.segments_begin())? / segment_bytes;
        geometry.segments = u32::try_from(segments).ok()?;
        (segments >= SEGMENTS_MIN).then_some(geometry)
    }

    pub fn journal_at(&self, half: u64, mirror: u64) -> u64 {
        SUPERBLOCK_BYTES * 2 + (half * 2 + mirror) * self.journal_bytes
    }

    pub fn slot_at(&self, slot: u64) -> u64 {
        self.journal_at(2, 0) + slot * self.slot_bytes()
    }

    fn slot_bytes(&self) -> u64 {
        2 * self.knowledge_bytes + self.pages * PAGE_BYTES as u64
    }

    /// The two places of a checkpoint's knowledge: before and behind its pages.
    pub fn knowledge_at(&self, slot: u64) -> [u64; 2] {
        [self.slot_at(slot), self.slot_at(slot) + self.knowledge_bytes + self.pages * PAGE_BYTES as u64]
    }

    pub fn page_at(&self, slot: u64, page: u64) -> u64 {
        self.slot_at(slot) + self.knowledge_bytes + page * PAGE_BYTES as u64
    }

    fn segments_begin(&self) -> u64 {
        self.slot_at(2).next_multiple_of(ALIGNMENT)
    }

    pub fn segment_at(&self, segment: u32) -> u64 {
        self.segments_begin() + u64::from(segment) * self.segment_bytes
    }

    /// The segment in which a place lies, if it lies in one.
    pub fn segment_of(&self, place: u64) -> Option<u32> {
        let segment = place.checked_sub(self.segments_begin())? / self.segment_bytes;
        u32::try_from(segment).ok().filter(|segment| *segment < self.segments)
    }

    /// Does a range lie in one segment?
    pub fn holds(&self, place: u64, len: u64) -> bool {
        let ends_in = |segment| place + len <= self.segment_at(segment) + self.segment_bytes;
        len <= self.segment_bytes && place < self.bytes && self.segment_of(place).is_some_and(ends_in)
    }
}

impl Geometry {
    /// Does a range lie so far from the ends of its segment that no folio of it reaches beyond them?
    pub fn is_inside(&self, place: u64, len: u64, folio_bytes: u64) -> bool {
        let Some(segment) = self.segment_of(place) else { return false };
        let begin = self.segment_at(segment).next_multiple_of(folio_bytes);
        let end = (self.segment_at(segment) + self.segment_bytes) / folio_bytes * folio_bytes;
        begin <= place && place + len <= end
    }
}

/// What a store is told from others by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    pub geometry: Geometry,
    /// Drawn when the store was formatted: part of every checksum, so that nothing of a former store counts.
    pub store: u64,
    /// Drawn then too, for whoever makes the digests.
    pub seed: [u8; 16],
}

/// What was found where superblocks stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Ours(Superblock),
    /// A store of another format.
    Version(u32),
    /// Nothing was ever written there.
    Blank,
    /// Something that is no superblock. `was_ours` says that it looks as if it had been one.
    Garbage {
        was_ours: bool,
    },
}

impl Superblock {
    fn encode(&self) -> Vec<u8> {
        let geometry = &self.geometry;
        let mut block = Vec::with_capacity(SUPERBLOCK_BYTES as usize);
        block.put(&MAGIC);
        block.put_u32(FORMAT_VERSION);
        block.put_u32(UNIT_BYTES as u32);
        block.put_u64(self.store);
        block.put(&self.seed);
        block.put_u64(geometry.bytes);
        block.put_u64(geometry.segment_bytes);
        block.put_u32(geometry.segments);
        block.put_u64(geometry.journal_bytes);
        block.put_u64(geometry.knowledge_bytes);
        block.put_u64(geometry.pages);
        let sum = checksum(&block);
        block.put_u32(sum);
        block.resize(SUPERBLOCK_BYTES as usize, 0);
        block
    }

    fn decode(block: &[u8]) -> Found {
        let mut decoder = Decoder::new(block);
        if block.iter().all(|byte| *byte == 0) {
            return Found::Blank;
        }
        if decoder.take(MAGIC.len()) != Some(&MAGIC) {
            return Found::Garbage { was_ours: false };
        }
        let Some(superblock) = Superblock::decode_rest(&mut decoder) else {
            return Found::Garbage { was_ours: true };
        };
        if superblock.encode() == block {
            return Found::Ours(superblock);
        }
        match Decoder::new(&block[MAGIC.len()..]).u32() {
            Some(version) if version != FORMAT_VERSION => Found::Version(version),
            _ => Found::Garbage { was_ours: true },
        }
    }

    fn decode_rest(decoder: &mut Decoder<'_>) -> Option<Superblock> {
        let (_version, _unit) = (decoder.u32()?, decoder.u32()?);
        let store = decoder.u64()?;
        let seed = decoder.take(16)?.try_into().ok()?;
        let geometry = Geometry {
            bytes: decoder.u64()?,
            segment_bytes: decoder.u64()?,
            segments: decoder.u32()?,
            journal_bytes: decoder.u64()?,
            knowledge_bytes: decoder.u64()?,
            pages: decoder.u64()?,
        };
        Some(Superblock { geometry, store, seed })
    }

    /// Writes both copies, and returns when they would survive.
    pub fn write(&self, device: &dyn Device) -> io::Result<()> {
        let block = self.encode();
        write_whole(device, &block, SUPERBLOCKS[1])?;
        write_whole_synced(device, &block, SUPERBLOCKS[0])?;
        sync_whole(device)
    }

    /// Reads whichever copy is good.
    pub fn read(device: &dyn Device) -> io::Result<Found> {
        let mut best = Found::Blank;
        for at in SUPERBLOCKS {
            let mut block = vec![0; SUPERBLOCK_BYTES as usize];
            // Of a short file what there is: it may be somebody's letter.
            let there = device.bytes()?.saturating_sub(at).min(SUPERBLOCK_BYTES);
            read_whole(device, &mut block[..there as usize], at)?;
            let found = Superblock::decode(&block);
            match (found, best) {
                (Found::Ours(_), _) => return Ok(found),
                (_, Found::Version(_)) => {}
                (Found::Blank, _) => {}
                (Found::Garbage { was_ours: false }, Found::Garbage { .. }) => {}
                _ => best = found,
            }
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_one_another_and_do_not_overlap() {
        for bytes in [2 << 20, 1 << 30, 1 << 40] {
            let mut settings = DiskSettings::new("x", bytes);
            settings.segment_bytes = if bytes < 1 << 30 { 64 << 10 } else { 64 << 20 };
            settings.slots_max = 64;
            settings.bans_bytes_max = 16 << 10;
            let geometry = Geometry::of(&settings).expect("large enough");
            assert!(geometry.journal_at(1, 1) + geometry.journal_bytes <= geometry.slot_at(0));
            assert!(geometry.knowledge_at(0)[1] + geometry.knowledge_bytes <= geometry.slot_at(1));
            assert!(geometry.knowledge_at(1)[1] + geometry.knowledge_bytes <= geometry.segment_at(0));
            assert!(geometry.segment_at(geometry.segments) <= bytes);
            assert_eq!(geometry.segment_of(geometry.segment_at(3) - 1), Some(2));
            assert_eq!(geometry.segment_of(geometry.segment_at(geometry.segments)), None);
            assert_eq!(geometry.segment_of(0), None);
            // What is no place of a body stays a small part of the whole.
            assert!(bytes < 1 << 30 || geometry.segment_at(0) * 20 < bytes, "{geometry:?}");
        }
        assert_eq!(Geometry::of(&DiskSettings::new("x", 1 << 20)), None);
    }
}
