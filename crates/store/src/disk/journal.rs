//! The journal: blocks of entries, each written twice and each naming the one before by its checksum.
//!
//! ```text
//! a block:  0 magic  4 checksum of the rest, and of store and position  8 epoch  16 number  24 chain  28 bytes
//!           32 entries … to a whole unit
//! ```
//!
//! A block is durable before the next is begun. So the one that cannot be read is the torn tail, unless the one behind
//! it can: then the journal is damaged, something that was acknowledged may be lost, and the store must not be used.
//! A bit that flips in one copy is made good by the other.

use std::collections::VecDeque;
use std::io;

use super::device::{Device, read_whole, write_whole, write_whole_synced};
use super::encoding::{Decoder, Encode, checksum_at, padded};
use super::geometry::Geometry;
use super::journal_entry::JournalEntry;
use super::limits::{JOURNAL_PAYLOAD_BYTES_MAX, UNIT_BYTES};

const MAGIC: u32 = u32::from_le_bytes(*b"LJNL");
const HEAD_BYTES: usize = 32;
/// How far behind an unreadable block the next is looked for: more than a block is long.
const GAP_BYTES_MAX: u64 = 256 << 10;
const _: () = assert!(GAP_BYTES_MAX > 2 * (JOURNAL_PAYLOAD_BYTES_MAX + HEAD_BYTES) as u64);

/// Where a journal goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalEnd {
    pub epoch: u64,
    /// In the epoch's half.
    pub position: u64,
    /// Of the next block.
    pub number: u64,
    /// The checksum of the last one.
    pub chain: u32,
}

#[derive(Debug)]
pub struct Journal {
    store: u64,
    /// Where the half began that is written now.
    start: JournalEnd,
    end: JournalEnd,
    /// Entries that are not written yet, a block's worth each.
    pending: VecDeque<Vec<u8>>,
}

impl Journal {
    pub fn new(store: u64, start: JournalEnd, end: JournalEnd) -> Journal {
        assert_eq!(start.epoch, end.epoch, "a journal goes on in its own half");
        Journal { store, start, end, pending: VecDeque::new() }
    }

    pub fn start(&self) -> JournalEnd {
        self.start
    }

    pub fn end(&self) -> JournalEnd {
        self.end
    }

    pub fn append(&mut self, entry: &JournalEntry) {
        let mut bytes = Vec::with_capacity(48);
        entry.encode(&mut bytes);
        match self.pending.back_mut() {
            Some(last) if last.len() + bytes.len() <= JOURNAL_PAYLOAD_BYTES_MAX => last.extend_from_slice(&bytes),
            _ => self.pending.push_back(bytes),
        }
    }

    pub fn pending_bytes(&self) -> usize {
        self.pending.iter().map(Vec::len).sum()
    }

    /// Forgets what is not written: a checkpoint will say it all.
    pub fn drop_pending(&mut self) {
        self.pending.clear();
    }

    /// Is there room for what is pending?
    pub fn fits(&self, geometry: &Geometry) -> bool {
        let needed: u64 = self.pending.iter().map(|entries| padded((HEAD_BYTES + entries.len()) as u64)).sum();
        self.end.position + needed <= geometry.journal_bytes
    }

    /// Goes on in the other half.
    pub fn switch(&mut self) {
        self.end.epoch += 1;
        self.end.position = 0;
        self.start = self.end;
    }

    /// Takes the last switches back: what was written since the checkpoint of this epoch does not count.
    pub fn return_to(&mut self, epoch: u64) {
        self.end.epoch = epoch;
    }

    /// Writes what is pending; it is durable when this returns.
    pub fn commit(&mut self, device: &dyn Device, geometry: &Geometry) -> io::Result<()> {
        assert!(self.fits(geometry), "a journal is committed when there is room");
        while let Some(entries) = self.pending.front() {
            let block = self.block(entries);
            let half = self.end.epoch % 2;
            let at = |mirror| geometry.journal_at(half, mirror) + self.end.position;
            write_whole(device, &block, at(1))?;
            write_whole_synced(device, &block, at(0))?;
            self.end.chain = Decoder::new(&block[4..]).u32().expect("a block has a checksum");
            self.end.position += block.len() as u64;
            self.end.number += 1;
            self.pending.pop_front();
        }
        Ok(())
    }

    fn block(&self, entries: &[u8]) -> Vec<u8> {
        let mut block = Vec::with_capacity(padded((HEAD_BYTES + entries.len()) as u64) as usize);
        block.put_u32(MAGIC);
        block.put_u32(0);
        block.put_u64(self.end.epoch);
        block.put_u64(self.end.number);
        block.put_u32(self.end.chain);
        block.put_u32(entries.len() as u32);
        block.put(entries);
        block.resize(padded(block.len() as u64) as usize, 0);
        let sum = checksum_at(self.store, self.end.position, &block[8..]);
        block[4..8].copy_from_slice(&sum.to_le_bytes());
        block
    }
}

/// The journal is not what was written: what it said cannot be known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalDamaged;

/// Reads an epoch's half on from where a journal was. Returns its entries, and leaves `end` behind the last block.
pub fn replay(
    device: &dyn Device,
    geometry: &Geometry,
    store: u64,
    end: &mut JournalEnd,
) -> Result<Vec<JournalEntry>, JournalDamaged> {
    let half = end.epoch % 2;
    let mut copies = [0, 1].map(|mirror| Half::new(device, geometry.journal_at(half, mirror), geometry.journal_bytes));
    let mut entries = Vec::new();
    loop {
        let found = copies.iter_mut().find_map(|copy| copy.block(store, end.position, |head| head.follows(end)));
        let Some(block) = found else { break };
        entries.extend(block.entries);
        end.position += block.padded_bytes;
        end.number += 1;
        end.chain = block.sum;
    }
    match copies.iter_mut().any(|copy| copy.goes_on(store, end)) {
        true => Err(JournalDamaged),
        false => Ok(entries),
    }
}

/// Is there a block of a later epoch than this one and the next? Then what is read is not the newest.
pub fn is_outdated(device: &dyn Device, geometry: &Geometry, store: u64, epoch: u64) -> bool {
    (0..4).any(|copy| {
        let mut half = Half::new(device, geometry.journal_at(copy / 2, copy % 2), geometry.journal_bytes);
        half.block(store, 0, |head| head.epoch > epoch + 1).is_some()
    })
}

struct BlockHead {
    epoch: u64,
    number: u64,
    chain: u32,
    bytes: u32,
}

impl BlockHead {
    fn follows(&self, end: &JournalEnd) -> bool {
        (self.epoch, self.number, self.chain) == (end.epoch, end.number, end.chain)
    }
}

struct Block {
    entries: Vec<JournalEntry>,
    padded_bytes: u64,
    sum: u32,
}

/// One copy of a half, read through a window.
struct Half<'a> {
    device: &'a dyn Device,
    base: u64,
    bytes: u64,
    window_at: u64,
    window: Vec<u8>,
}

impl<'a> Half<'a> {
    const WINDOW_BYTES: u64 = 1 << 20;

    fn new(device: &'a dyn Device, base: u64, bytes: u64) -> Half<'a> {
        Half { device, base, bytes, window_at: 0, window: Vec::new() }
    }

    /// What stands at a position; `None` if it cannot be read.
    fn at(&mut self, position: u64, len: u64) -> Option<&[u8]> {
        if position + len > self.bytes {
            return None;
        }
        let is_inside = position >= self.window_at && position + len <= self.window_at + self.window.len() as u64;
        if !is_inside {
            let take = Half::WINDOW_BYTES.max(len).min(self.bytes - position);
            self.window.resize(take as usize, 0);
            self.window_at = position;
            if read_whole(self.device, &mut self.window, self.base + position).is_err() {
                // One bad sector must not hide the rest: unit by unit, and zeros where there is nothing to be had.
                self.read_by_units(position);
            }
        }
        let from = (position - self.window_at) as usize;
        self.window.get(from..from + len as usize)
    }

    fn read_by_units(&mut self, position: u64) {
        for (index, unit) in self.window.chunks_mut(UNIT_BYTES as usize).enumerate() {
            if read_whole(self.device, unit, self.base + position + index as u64 * UNIT_BYTES).is_err() {
                unit.fill(0);
            }
        }
    }

    fn block(&mut self, store: u64, position: u64, is_meant: impl Fn(&BlockHead) -> bool) -> Option<Block> {
        let head = self.at(position, HEAD_BYTES as u64)?;
        let mut decoder = Decoder::new(head);
        let (magic, sum) = (decoder.u32()?, decoder.u32()?);
        let (epoch, number) = (decoder.u64()?, decoder.u64()?);
        let head = BlockHead { epoch, number, chain: decoder.u32()?, bytes: decoder.u32()? };
        if magic != MAGIC || head.bytes as usize > JOURNAL_PAYLOAD_BYTES_MAX || !is_meant(&head) {
            return None;
        }
        let padded_bytes = padded(HEAD_BYTES as u64 + u64::from(head.bytes));
        let block = self.at(position, padded_bytes)?;
        if sum != checksum_at(store, position, &block[8..]) {
            return None;
        }
        let mut decoder = Decoder::new(&block[HEAD_BYTES..HEAD_BYTES + head.bytes as usize]);
        let mut entries = Vec::new();
        while !decoder.is_empty() {
            entries.push(JournalEntry::decode(&mut decoder)?);
        }
        Some(Block { entries, padded_bytes, sum })
    }

    /// Does a later block of the same epoch stand behind the end?
    fn goes_on(&mut self, store: u64, end: &JournalEnd) -> bool {
        let behind = (end.position..self.bytes.min(end.position + GAP_BYTES_MAX)).step_by(UNIT_BYTES as usize);
        let later = |head: &BlockHead| head.epoch == end.epoch && head.number > end.number;
        behind.into_iter().any(|position| self.block(store, position, later).is_some())
    }
}
