//! Where bytes go: the one segment that is written, from its beginning to its end, and the table of names that ends it.
//!
//! ```text
//! a segment:   records and extents, each from a unit's beginning … a name for each record, 12 bytes … the trailer
//! the trailer: 0 magic  4 checksum of names and the rest  8 generation  12 names  16 place
//! ```
//!
//! Reclaim reads the names instead of the segment. A segment without a trailer is gone through by the index.

use std::io::{self, IoSlice};

use super::body_stretch::BodyStretch;
use super::device::{read_whole, sync_whole, write_whole, write_whole_pieces};
use super::disk_digest::{Digest, ShortName};
use super::disk_log::{DiskLog, DraftOnDisk};
use super::encoding::{Decoder, Encode, checksum_at, padded};
use super::head_record::{BodyExtent, HeadRecord};
use super::journal_entry::JournalEntry;
use super::limits::{RECORD_BYTES_MAX, SLICES_A_WRITE, SPAN_UNITS_MAX, UNIT_BYTES};
use super::one_disk::OneDisk;
use super::refused::Refused;
use super::segment_table::Phase;
use crate::limits::BLOCK_BYTES;
use crate::sync::atomic::Ordering::Relaxed;

const MAGIC: u32 = u32::from_le_bytes(*b"LSEG");
const TRAILER_BYTES: u64 = 24;
const NAME_BYTES: u64 = 12;

pub struct OpenSegment {
    segment: u32,
    generation: u32,
    /// The next free byte, of the device.
    position: u64,
    end: u64,
    names: Vec<ShortName>,
    number_min: u64,
}

/// Where a record was put.
pub struct PlacedRecord {
    pub place: u64,
    pub generation: u32,
    pub span_units: u16,
}

impl OpenSegment {
    /// What is left for bytes, with one more name.
    fn room(&self) -> u64 {
        let table = TRAILER_BYTES + (self.names.len() as u64 + 1) * NAME_BYTES;
        (self.end - self.position).saturating_sub(table) / UNIT_BYTES * UNIT_BYTES
    }

    fn note(&mut self, name: ShortName) {
        if self.names.last() != Some(&name) {
            self.names.push(name);
        }
    }
}

impl DiskLog {
    fn room(&self) -> u64 {
        self.open.as_ref().map_or(0, OpenSegment::room)
    }

    /// The most that a segment takes in one piece.
    fn room_max(&self) -> u64 {
        (self.disk.geometry.segment_bytes - TRAILER_BYTES - NAME_BYTES) / UNIT_BYTES * UNIT_BYTES
    }

    /// Writes a stretch of a body, in as many extents as it takes. All of it but a body's end is whole blocks.
    pub(super) fn write_body(
        &mut self,
        digest: Digest,
        bytes: &BodyStretch<'_>,
        draft: &mut DraftOnDisk,
    ) -> Result<(), Refused> {
        if !self.disk.is_up() {
            return Err(Refused::Down);
        }
        let mut rest = bytes.clone();
        while !rest.is_empty() {
            let room = self.room() as usize;
            let take = if rest.len() <= room { rest.len() } else { room / BLOCK_BYTES * BLOCK_BYTES };
            if take == 0 {
                if (self.room_max() as usize) < rest.len().min(BLOCK_BYTES) {
                    return Err(Refused::TooLarge);
                }
                self.open_next()?;
                continue;
            }
            let (part, behind) = rest.split_at(take);
            let (offset, generation) = self.write_at_end(&[], &part, digest.short())?;
            draft.pins.add(offset, Some(generation)).expect("an open segment can be pinned");
            draft.extents.push(BodyExtent { offset, generation, bytes: part.len() as u32, sums: part.block_sums() });
            rest = behind;
        }
        Ok(())
    }

    /// Writes a record, the rest of its body right behind it if that can be.
    pub(super) fn write_record(
        &mut self,
        record: &mut HeadRecord,
        tail: BodyStretch<'_>,
        draft: &mut DraftOnDisk,
    ) -> Result<PlacedRecord, Refused> {
        let digest = record.digest;
        let inline = BodyExtent { offset: 0, generation: 0, bytes: tail.len() as u32, sums: tail.block_sums() };
        let with_tail = record.record_bytes() + 16 + 4 * inline.sums.len() + tail.len();
        let is_small = with_tail as u64 <= SPAN_UNITS_MAX * UNIT_BYTES && with_tail as u64 <= self.room_max();
        let goes_together = !tail.is_empty() && (is_small || with_tail as u64 <= self.room());
        if goes_together {
            record.extents.push(inline);
        } else if !tail.is_empty() {
            draft.extents = std::mem::take(&mut record.extents);
            self.write_body(digest, &tail, draft)?;
            record.extents = std::mem::take(&mut draft.extents);
        }
        let behind = if goes_together { tail } else { BodyStretch::default() };
        let record_bytes = record.record_bytes();
        let bytes = record_bytes + behind.len();
        if record_bytes > RECORD_BYTES_MAX || bytes as u64 > self.room_max() {
            return Err(Refused::TooLarge);
        }
        if self.room() < bytes as u64 {
            self.open_next()?;
        }
        let open = self.open.as_mut().expect("there is room in it");
        let (place, generation) = (open.position, open.generation);
        open.number_min = open.number_min.min(record.facts.number);
        let number_min = open.number_min;
        self.disk.segments.change(open.segment, |segment| segment.number_min = number_min);
        if let Some(inline) = record.extents.last_mut().filter(|_| goes_together) {
            (inline.offset, inline.generation) = (place + record_bytes as u64, generation);
        }
        let mut encoded = Vec::with_capacity(record_bytes);
        record.encode(self.disk.store(), place, generation, &mut encoded);
        assert_eq!(encoded.len(), record_bytes);
        self.write_at_end(&encoded, &behind, digest.short())?;
        let units = |bytes: usize| padded(bytes as u64) / UNIT_BYTES;
        let at_once = if units(bytes) <= SPAN_UNITS_MAX { units(bytes) } else { units(record_bytes) };
        Ok(PlacedRecord { place, generation, span_units: at_once as u16 })
    }

    /// A record, or none, and what lies behind it, as they are; there is room for both. What could not be written leaves a gap: no
    /// place is used twice.
    fn write_at_end<'a>(
        &mut self,
        record: &'a [u8],
        behind: &BodyStretch<'a>,
        name: ShortName,
    ) -> Result<(u64, u32), Refused> {
        let open = self.open.as_mut().expect("who writes has made room");
        let bytes = record.len() + behind.len();
        let (place, len) = (open.position, padded(bytes as u64));
        assert!(len <= open.room(), "who writes has made room");
        open.position += len;
        open.note(name);
        let generation = open.generation;
        let padding = &[0; UNIT_BYTES as usize][..len as usize - bytes];
        let mut pieces: Vec<IoSlice<'_>> = Vec::with_capacity(SLICES_A_WRITE);
        pieces.extend((!record.is_empty()).then(|| IoSlice::new(record)));
        pieces.extend(behind.slices());
        pieces.extend((!padding.is_empty()).then(|| IoSlice::new(padding)));
        let written = write_whole_pieces(&*self.disk.device, &mut pieces, place);
        match written {
            Ok(()) => {
                self.disk.counters.bytes_written.fetch_add(len, Relaxed);
                Ok((place, generation))
            }
            Err(error) => {
                self.disk.write_failed(&error);
                Err(Refused::Down)
            }
        }
    }

    /// Goes on in another segment; makes room for it if there is none.
    pub(super) fn open_next(&mut self) -> Result<(), Refused> {
        self.seal_open().map_err(|error| {
            self.disk.write_failed(&error);
            Refused::Down
        })?;
        if self.disk.segments.free_count() == 0 {
            self.make_room();
        }
        self.open_free()
    }

    /// The same without making room: for who makes it.
    fn open_free(&mut self) -> Result<(), Refused> {
        let order = self.order + 1;
        let generation = super::recovery::mixed(self.nonce ^ order) as u32 | 1;
        let (segment, was_leased) = self.disk.segments.open(generation, order).ok_or(Refused::Full)?;
        self.order = order;
        let position = self.disk.geometry.segment_at(segment);
        if was_leased {
            // Sockets may still refer to its pages: they keep them, and the segment gets others.
            if let Err(error) = self.disk.device.punch(position, self.disk.geometry.segment_bytes) {
                self.disk.segments.change(segment, |it| it.phase = Phase::Free);
                self.disk.write_failed(&error);
                return Err(Refused::Down);
            }
            self.disk.segments.detached(segment);
        } else {
            self.disk.device.forget(position, self.disk.geometry.segment_bytes);
        }
        self.journal.append(&JournalEntry::Open { segment, generation, order });
        let end = position + self.disk.geometry.segment_bytes;
        let (names, number_min) = (Vec::new(), u64::MAX);
        self.open = Some(OpenSegment { segment, generation, position, end, names, number_min });
        Ok(())
    }

    /// Ends the open segment, and begins to make it durable: so a write that failed later is found out.
    pub(super) fn seal_open(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        self.look_after();
        let result = self.seal(open.segment, &open.names);
        result.and_then(|()| match &mut self.syncer {
            Some(syncer) => syncer.begin(),
            None => sync_whole(&*self.disk.device),
        })
    }

    /// Writes the table of names that ends a segment.
    pub(super) fn seal(&mut self, segment: u32, names: &[ShortName]) -> io::Result<()> {
        let table = self.disk.segments.change(segment, |it| {
            it.phase = Phase::Sealed;
            JournalEntry::Seal { segment, number_min: it.number_min }
        });
        self.journal.append(&table);
        write_names(&self.disk, segment, names)
    }

    /// Goes on in a free segment if the open one has not so much room; false if there is none.
    pub(super) fn has_room_for(&mut self, bytes: u64) -> bool {
        if self.room() >= bytes {
            return true;
        }
        if self.disk.segments.free_count() == 0 || bytes > self.room_max() {
            return false;
        }
        self.seal_open().is_ok() && self.open_free().is_ok()
    }
}

fn write_names(disk: &OneDisk, segment: u32, names: &[ShortName]) -> io::Result<()> {
    let end = disk.geometry.segment_at(segment) + disk.geometry.segment_bytes;
    let fit = (disk.geometry.segment_bytes - TRAILER_BYTES) / NAME_BYTES;
    let names = &names[..names.len().min(fit as usize)];
    let len = TRAILER_BYTES + names.len() as u64 * NAME_BYTES;
    let mut out = Vec::with_capacity(len as usize);
    for name in names {
        out.put_u64(name.family);
        out.put_u32(name.member);
    }
    let mut trailer = Vec::with_capacity(TRAILER_BYTES as usize);
    trailer.put_u32(disk.segments.get(segment).generation);
    trailer.put_u32(names.len() as u32);
    trailer.put_u64(end - len);
    out.put_u32(MAGIC);
    let sum = checksum_at(disk.store(), end, &[&out[..], &trailer[..]].concat());
    out.put_u32(sum);
    out.put(&trailer);
    write_whole(&*disk.device, &out, end - len)
}

/// The names in a segment; `None` if its table cannot be read.
pub fn read_names(disk: &OneDisk, segment: u32) -> Option<Vec<ShortName>> {
    let end = disk.geometry.segment_at(segment) + disk.geometry.segment_bytes;
    let mut trailer = [0; TRAILER_BYTES as usize];
    read_whole(&*disk.device, &mut trailer, end - TRAILER_BYTES).ok()?;
    let mut decoder = Decoder::new(&trailer);
    let (magic, sum) = (decoder.u32()?, decoder.u32()?);
    let (generation, count, place) = (decoder.u32()?, decoder.u32()?, decoder.u64()?);
    let len = TRAILER_BYTES + u64::from(count) * NAME_BYTES;
    let is_possible = len <= disk.geometry.segment_bytes && end - len == place;
    if magic != MAGIC || !is_possible || generation != disk.segments.get(segment).generation {
        return None;
    }
    let mut table = vec![0; (len - TRAILER_BYTES) as usize];
    read_whole(&*disk.device, &mut table, place).ok()?;
    let summed = [&table[..], &trailer[..4], &trailer[8..]].concat();
    if sum != checksum_at(disk.store(), end, &summed) {
        return None;
    }
    let mut decoder = Decoder::new(&table);
    (0..count).map(|_| Some(ShortName { family: decoder.u64()?, member: decoder.u32()? })).collect()
}
