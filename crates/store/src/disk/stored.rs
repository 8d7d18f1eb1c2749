//! Reading: from a place to a record that is whole and the right one, and from there to the blocks of its body.
//!
//! Whoever holds a record pins the segments it lies in, so they are not written anew meanwhile. Every byte is summed
//! before it is handed out.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::device::{read_whole, read_whole_at_hand};
use super::disk_digest::{Digest, ShortName};
use super::disk_index::Spot;
use super::disk_queue::QuestionQueue;
use super::encoding::checksum;
use super::head_record::{HeadRecord, RecordFacts};
use super::limits::UNIT_BYTES;
use super::one_disk::OneDisk;
use super::refused::Lost;
use crate::Blocks;
use crate::limits::BLOCK_BYTES;
use crate::sync::atomic::Ordering::Relaxed;

/// A record on a disk, found whole. A clone shares it.
#[derive(Clone)]
pub struct Stored {
    inner: Arc<PinnedRecord>,
    /// Who reads when it has to be waited for.
    readers: Option<Arc<QuestionQueue>>,
}

struct PinnedRecord {
    disk: Arc<OneDisk>,
    record: HeadRecord,
    unit: u64,
    body: Option<Blocks>,
    _pins: Pins,
}

/// Segments that must stay what they are.
pub(super) struct Pins {
    disk: Arc<OneDisk>,
    segments: Vec<u32>,
}

impl Pins {
    pub fn new(disk: &Arc<OneDisk>) -> Pins {
        Pins { disk: Arc::clone(disk), segments: Vec::new() }
    }

    /// Pins the segment of a place, if it is still of the generation that is meant.
    pub fn add(&mut self, place: u64, generation: Option<u32>) -> Option<u32> {
        let segment = self.disk.geometry.segment_of(place)?;
        let generation = self.disk.segments.pin(segment, generation)?;
        match self.segments.contains(&segment) {
            true => self.disk.segments.unpin(segment),
            false => self.segments.push(segment),
        }
        Some(generation)
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        self.segments.iter().for_each(|segment| self.disk.segments.unpin(*segment));
    }
}

/// How to read: with or without waiting.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    AtHand,
    Waits,
}

/// What came of reading.
pub(super) enum ReadOutcome<T> {
    Read(T),
    NotAtHand,
    Lost(Lost),
}

macro_rules! read_or_return {
    ($outcome:expr) => {
        match $outcome {
            ReadOutcome::Read(value) => value,
            ReadOutcome::NotAtHand => return ReadOutcome::NotAtHand,
            ReadOutcome::Lost(lost) => return ReadOutcome::Lost(lost),
        }
    };
}

fn read_bytes(disk: &OneDisk, offset: u64, len: usize, patience: Patience) -> ReadOutcome<Vec<u8>> {
    let mut bytes = vec![0; len];
    if patience == Patience::AtHand {
        return match read_whole_at_hand(&*disk.device, &mut bytes, offset) {
            true => ReadOutcome::Read(bytes),
            false => ReadOutcome::NotAtHand,
        };
    }
    match read_whole(&*disk.device, &mut bytes, offset) {
        Ok(()) => {
            disk.read_succeeded();
            disk.counters.bytes_read.fetch_add(len as u64, Relaxed);
            ReadOutcome::Read(bytes)
        }
        // The file is shorter than it was: what was there is gone, the disk may be good.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            disk.found_damage(offset);
            ReadOutcome::Lost(Lost::Damaged)
        }
        Err(error) => {
            disk.read_failed(&error);
            ReadOutcome::Lost(Lost::Failed)
        }
    }
}

/// A block that lies at a place, if it is what it was.
pub(super) fn read_summed(
    disk: &OneDisk,
    (offset, len): (u64, usize),
    sum: u32,
    patience: Patience,
) -> ReadOutcome<Bytes> {
    let bytes = read_or_return!(read_bytes(disk, offset, len, patience));
    if checksum(&bytes) == sum {
        return ReadOutcome::Read(Bytes::from(bytes));
    }
    disk.found_damage(offset);
    ReadOutcome::Lost(Lost::Damaged)
}

/// A record that was asked for, by as much of its name as the index knows.
pub(super) fn open(disk: &Arc<OneDisk>, name: ShortName, patience: Patience) -> ReadOutcome<Stored> {
    if !disk.is_read() {
        return ReadOutcome::Lost(Lost::Failed);
    }
    let mut pins = Pins::new(disk);
    // Pinned while the entry cannot change: what it names is not reclaimed before we have looked.
    // The first try is the one without waiting, so it alone counts as a use.
    let counts = patience == Patience::AtHand;
    let pin = |spot: Spot| pins.add(spot.unit * UNIT_BYTES, None).map(|generation| (spot, generation));
    let asked = disk.index.ask(name, counts, pin);
    let Some(Some((spot, generation))) = asked else { return ReadOutcome::Lost(Lost::Gone) };
    let outcome = open_at(disk, spot, generation, pins, patience);
    match outcome {
        ReadOutcome::Read(stored) if stored.digest().short() == name => ReadOutcome::Read(stored),
        ReadOutcome::Read(_) => {
            disk.found_damage(spot.unit * UNIT_BYTES);
            disk.index.remove_at(name, spot.unit);
            ReadOutcome::Lost(Lost::Damaged)
        }
        ReadOutcome::Lost(lost @ (Lost::Damaged | Lost::Gone)) => {
            disk.index.remove_at(name, spot.unit);
            ReadOutcome::Lost(lost)
        }
        other => other,
    }
}

/// The record at a place, whoever's it is.
pub(super) fn open_at(
    disk: &Arc<OneDisk>,
    spot: Spot,
    generation: u32,
    mut pins: Pins,
    patience: Patience,
) -> ReadOutcome<Stored> {
    let place = spot.unit * UNIT_BYTES;
    let len = u64::from(spot.span) * UNIT_BYTES;
    if !disk.geometry.holds(place, len) || len == 0 {
        return ReadOutcome::Lost(Lost::Damaged);
    }
    let bytes = Bytes::from(read_or_return!(read_bytes(disk, place, len as usize, patience)));
    let Some(record) = HeadRecord::decode(&bytes, disk.store(), place, generation) else {
        disk.found_damage(place);
        return ReadOutcome::Lost(Lost::Damaged);
    };
    for extent in &record.extents {
        if !disk.geometry.holds(extent.offset, u64::from(extent.bytes)) {
            disk.found_damage(extent.offset);
            return ReadOutcome::Lost(Lost::Damaged);
        }
        // Reclaimed since the record was written: not damage, only gone.
        if pins.add(extent.offset, Some(extent.generation)).is_none() {
            return ReadOutcome::Lost(Lost::Gone);
        }
    }
    let body = match body_at_hand(&record, &bytes, place) {
        Some(Ok(body)) => Some(body),
        Some(Err(offset)) => {
            disk.found_damage(offset);
            return ReadOutcome::Lost(Lost::Damaged);
        }
        None => None,
    };
    let disk = Arc::clone(disk);
    ReadOutcome::Read({
        let inner = Arc::new(PinnedRecord { disk, record, unit: spot.unit, body, _pins: pins });
        Stored { inner, readers: None }
    })
}

/// The body, if it was read together with its record; where it lies, if it is not what it must be.
fn body_at_hand(record: &HeadRecord, bytes: &Bytes, place: u64) -> Option<Result<Blocks, u64>> {
    let [extent] = record.extents.as_slice() else {
        return record.extents.is_empty().then(|| Ok(Blocks::default()));
    };
    let from = usize::try_from(extent.offset.checked_sub(place)?).ok()?;
    let body = bytes.get(from..from + extent.bytes as usize)?;
    let is_whole = body.chunks(BLOCK_BYTES).zip(&extent.sums).all(|(block, sum)| checksum(block) == *sum);
    if !is_whole {
        return Some(Err(extent.offset));
    }
    let end = from + body.len();
    let blocks = (from..end).step_by(BLOCK_BYTES).map(|at| bytes.slice(at..end.min(at + BLOCK_BYTES)));
    Some(Ok(Blocks::from_blocks(blocks.collect())))
}

impl Stored {
    pub fn digest(&self) -> Digest {
        self.inner.record.digest
    }

    pub fn head(&self) -> &Bytes {
        &self.inner.record.head
    }

    pub fn facts(&self) -> RecordFacts {
        self.inner.record.facts
    }

    /// The number of the record that the body came with: what a refresh names it by.
    pub fn sequence(&self) -> u64 {
        self.inner.record.body_sequence
    }

    pub fn body_len(&self) -> u64 {
        self.inner.record.body_bytes()
    }

    /// Blocks of `BLOCK_BYTES` that the body has, the last one shorter.
    pub fn blocks_count(&self) -> u64 {
        self.body_len().div_ceil(BLOCK_BYTES as u64)
    }

    /// The whole body, if it was so small that it came with the head.
    pub fn body(&self) -> Option<&Blocks> {
        self.inner.body.as_ref()
    }

    /// Is it still the one that a look-up finds? To be asked after everything that was awaited.
    pub fn is_current(&self) -> bool {
        let found = self.inner.disk.index.find(self.digest().short());
        found.is_some_and(|spot| spot.unit == self.inner.unit || self.moved_to(spot))
    }

    /// Reclaim, or a new head for the same body, puts the record elsewhere; what was deleted is in no place.
    fn moved_to(&self, spot: Spot) -> bool {
        let disk = &self.inner.disk;
        let mut pins = Pins::new(disk);
        let Some(generation) = pins.add(spot.unit * UNIT_BYTES, None) else { return false };
        match open_at(disk, spot, generation, pins, Patience::AtHand) {
            ReadOutcome::Read(there) => there.digest() == self.digest() && there.sequence() == self.sequence(),
            _ => false,
        }
    }

    /// A block of the body, summed.
    pub(super) fn read_now(&self, block: u64, patience: Patience) -> ReadOutcome<Bytes> {
        let disk = &self.inner.disk;
        if let Some(body) = self.body() {
            let from = block * BLOCK_BYTES as u64;
            let mut pieces = body.pieces(from, from + BLOCK_BYTES as u64);
            return pieces.next().map_or(ReadOutcome::Lost(Lost::Gone), ReadOutcome::Read);
        }
        if !disk.is_read() {
            return ReadOutcome::Lost(Lost::Failed);
        }
        let Some((extent, at)) = self.inner.record.find_block(block) else { return ReadOutcome::Lost(Lost::Gone) };
        let (offset, len, sum) = extent.block(at);
        let outcome = read_summed(disk, (offset, len), sum, patience);
        if matches!(outcome, ReadOutcome::Lost(Lost::Damaged)) {
            disk.index.remove_at(self.digest().short(), self.inner.unit);
        }
        outcome
    }

    pub(super) fn read_all_now(&self, patience: Patience) -> ReadOutcome<Blocks> {
        if let Some(body) = self.body() {
            return ReadOutcome::Read(body.clone());
        }
        let mut blocks = Vec::with_capacity(self.blocks_count() as usize);
        for block in 0..self.blocks_count() {
            blocks.push(read_or_return!(self.read_now(block, patience)));
        }
        ReadOutcome::Read(Blocks::from_blocks(blocks))
    }

    pub(super) fn with_readers(self, readers: &Arc<QuestionQueue>) -> Stored {
        Stored { readers: Some(Arc::clone(readers)), ..self }
    }

    pub(super) fn readers(&self) -> Option<&Arc<QuestionQueue>> {
        self.readers.as_ref()
    }

    pub(super) fn disk(&self) -> &Arc<OneDisk> {
        &self.inner.disk
    }

    pub(super) fn record(&self) -> &HeadRecord {
        &self.inner.record
    }

    pub(super) fn unit(&self) -> u64 {
        self.inner.unit
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stored").field("record", &self.inner.record).finish_non_exhaustive()
    }
}
