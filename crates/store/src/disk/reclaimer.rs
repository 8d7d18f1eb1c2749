//! Making room: the oldest segment leaves, and what is still asked for is written anew.
//!
//! First in, first out, but for what was asked for since it was written and has not expired: that is written again, up to
//! a part of a segment, with one use less to its name. What a reader still holds stays until it is done.

use hashbrown::HashSet;

use super::body_stretch::BodyStretch;
use super::disk_digest::ShortName;
use super::disk_index::Rule;
use super::disk_log::{DiskLog, DraftOnDisk};
use super::head_record::HeadRecord;
use super::journal_entry::JournalEntry;
use super::limits::{REINSERTED_PERCENT_MAX, SEGMENTS_FREE_MIN, UNIT_BYTES};
use super::open_segment::read_names;
use super::segment_table::Phase;
use super::stored::{Patience, Pins, ReadOutcome, Stored, open_at};
use crate::limits::BLOCK_BYTES;
use crate::sync::atomic::Ordering::Relaxed;

impl DiskLog {
    /// Keeps a few segments free, so that writes need not wait. False when nothing is to be done.
    pub(super) fn reclaim_ahead(&mut self) -> bool {
        if self.disk.spares.load(Relaxed) {
            return false;
        }
        self.free_those_that_left();
        let wanted = SEGMENTS_FREE_MIN.min(self.disk.geometry.segments as usize / 4);
        self.disk.segments.free_count() < wanted && self.reclaim_one(true)
    }

    /// Frees a segment at once, if any can be.
    pub(super) fn make_room(&mut self) {
        if self.disk.spares.load(Relaxed) {
            return;
        }
        self.free_those_that_left();
        for _ in 0..self.disk.geometry.segments {
            // What is still asked for has no place to go to now.
            let must_wait = self.is_reclaiming || self.recovering.is_some();
            if self.disk.segments.free_count() > 0 || must_wait || !self.reclaim_one(false) {
                return;
            }
        }
    }

    /// Not while another process may read in them.
    fn free_those_that_left(&mut self) {
        if self.disk.spares.load(Relaxed) {
            return;
        }
        for segment in self.disk.segments.free_left() {
            self.journal.append(&JournalEntry::Free { segment });
        }
    }

    /// Empties the oldest segment that nobody reads in. False if there is none.
    fn reclaim_one(&mut self, reinserts: bool) -> bool {
        let Some(segment) = self.disk.segments.oldest_unpinned() else { return false };
        self.is_reclaiming = true;
        match read_names(&self.disk, segment) {
            Some(names) => self.empty(segment, names, reinserts),
            None => self.sweep(segment),
        }
        self.is_reclaiming = false;
        self.disk.segments.change(segment, |it| it.phase = Phase::Leaving);
        self.disk.counters.reclaimed_segments.fetch_add(1, Relaxed);
        self.free_those_that_left();
        true
    }

    fn empty(&mut self, segment: u32, names: Vec<ShortName>, reinserts: bool) {
        let mut left = self.disk.geometry.segment_bytes * REINSERTED_PERCENT_MAX / 100;
        let mut seen = HashSet::new();
        for name in names {
            if !seen.insert(name) {
                continue;
            }
            let Some((uses, spot)) = self.disk.index.uses(name) else { continue };
            let is_here = self.disk.geometry.segment_of(spot.unit * UNIT_BYTES) == Some(segment);
            if !is_here && !spot.split {
                continue;
            }
            if uses > 0 && reinserts && left > 0 && self.disk.is_up() {
                let written = self.reinsert(segment, name, uses);
                left = left.saturating_sub(written);
            }
            // What was moved is elsewhere now. Of one whose head is elsewhere a reader will find that its body is gone.
            if is_here {
                self.disk.index.remove_at(name, spot.unit);
            }
        }
    }

    /// Its table cannot be read: the index is gone through.
    fn sweep(&mut self, segment: u32) {
        for shard in 0..self.disk.index.shards_count() {
            for kept in self.disk.index.shard_kept(shard) {
                if self.disk.geometry.segment_of(kept.spot.unit * UNIT_BYTES) == Some(segment) {
                    self.disk.index.remove_at(kept.name, kept.spot.unit);
                }
            }
        }
    }

    /// Writes what of an object lies in this segment anew, and its record. Returns the bytes written.
    fn reinsert(&mut self, segment: u32, name: ShortName, uses: u8) -> u64 {
        let Some(spot) = self.disk.index.find(name) else { return 0 };
        let mut pins = Pins::new(&self.disk);
        let Some(generation) = pins.add(spot.unit * UNIT_BYTES, None) else { return 0 };
        let ReadOutcome::Read(stored) = open_at(&self.disk, spot, generation, pins, Patience::Waits) else {
            return 0;
        };
        let facts = stored.facts();
        if stored.digest().short() != name || facts.expires < self.disk.now.load(Relaxed) {
            return 0;
        }
        let Some(moved) = self.move_body(segment, &stored) else { return 0 };
        let bytes = moved.bytes;
        let record = HeadRecord {
            digest: stored.digest(),
            record_sequence: self.disk.sequence.fetch_add(1, Relaxed) + 1,
            body_sequence: stored.sequence(),
            facts,
            extents: Vec::new(),
            head: stored.head().clone(),
        };
        let table: usize = stored.record().record_bytes() + 4 * moved.draft.extents.len() * 16;
        if !self.has_room_for((table + moved.tail.len()) as u64 + 2 * UNIT_BYTES) {
            return 0;
        }
        let placed =
            self.place_record(record, moved.draft, BodyStretch::of([&moved.tail[..]]), Rule::IfAt(spot.unit), uses - 1);
        self.disk.counters.reinserted.fetch_add(u64::from(placed.is_ok()), Relaxed);
        bytes
    }

    /// Copies the extents that lie in the segment; a small body that is one extent goes with its record.
    fn move_body(&mut self, segment: u32, stored: &Stored) -> Option<Moved> {
        let draft = DraftOnDisk { extents: Vec::new(), pins: Pins::new(&self.disk) };
        let mut moved = Moved { draft, tail: Vec::new(), bytes: 0 };
        let extents = stored.record().extents.clone();
        let mut block = 0;
        for extent in &extents {
            let blocks = extent.sums.len() as u64;
            if self.disk.geometry.segment_of(extent.offset) != Some(segment) {
                moved.draft.extents.push(extent.clone());
                block += blocks;
                continue;
            }
            let mut bytes = Vec::with_capacity(extent.bytes as usize);
            for at in block..block + blocks {
                let ReadOutcome::Read(read) = stored.read_now(at, Patience::Waits) else { return None };
                bytes.extend_from_slice(&read);
            }
            block += blocks;
            moved.bytes += u64::from(extent.bytes);
            match extents.len() == 1 && bytes.len() <= BLOCK_BYTES {
                true => moved.tail = bytes,
                false => self.move_extent(stored, &bytes, &mut moved.draft)?,
            }
        }
        Some(moved)
    }

    fn move_extent(&mut self, stored: &Stored, bytes: &[u8], draft: &mut DraftOnDisk) -> Option<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(rest.len().min(BLOCK_BYTES * 4));
            // Only into what is free: making room is what we are at.
            if !self.has_room_for(part.len() as u64) {
                return None;
            }
            self.write_body(stored.digest(), &BodyStretch::of([part]), draft).ok()?;
            rest = behind;
        }
        Some(())
    }
}

/// What reclaim has written of an object already.
struct Moved {
    draft: DraftOnDisk,
    /// What goes with the record.
    tail: Vec<u8>,
    bytes: u64,
}
