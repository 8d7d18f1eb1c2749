//! Checkpoints: the whole index as pages, between two copies of all that is known beside it.
//!
//! ```text
//! knowledge:  0 magic  4 checksum  8 bytes  12 segments  16 epoch  24 number  32 chain  36 pages  40 records
//!             48 sequence  56 order  64 a row for each segment, slots, bans (knowledge.rs)
//! a page:     0 magic  4 checksum  8 epoch  16 page  20 records  24 records, 20 bytes each (disk_index.rs)
//! ```
//!
//! A checkpoint is written while the store goes on: first the journal goes over to its other half, then the index is
//! written shard by shard, then the knowledge. Whatever changed meanwhile is in that half too, and saying it twice does
//! no harm. A page that cannot be read costs the objects on it.

use std::io;

use super::device::{Device, read_whole, write_whole, write_whole_synced};
use super::disk_index::{ENTRY_BYTES, Kept};
use super::encoding::{Decoder, Encode, checksum_at};
use super::geometry::Geometry;
use super::journal::JournalEnd;
use super::knowledge::Knowledge;
use super::limits::PAGE_BYTES;
use super::segment_table::Segment;

const KNOWLEDGE_MAGIC: u32 = u32::from_le_bytes(*b"LCHK");
const PAGE_MAGIC: u32 = u32::from_le_bytes(*b"LPGE");
const PAGE_HEAD_BYTES: usize = 24;
pub const ENTRIES_A_PAGE: usize = (PAGE_BYTES - PAGE_HEAD_BYTES) / ENTRY_BYTES;
const KNOWLEDGE_HEAD_BYTES: usize = 64;

/// What a checkpoint says beside its pages.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Where the journal began that goes on from it.
    pub journal: JournalEnd,
    pub pages: u32,
    pub records: u64,
    /// The last numbers given out.
    pub sequence: u64,
    pub order: u64,
    pub segments: Vec<Segment>,
    pub knowledge: Knowledge,
}

impl Checkpoint {
    fn encode(&self, store: u64, place: u64) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u32(KNOWLEDGE_MAGIC);
        out.put_u32(0);
        out.put_u32(0);
        out.put_u32(self.segments.len() as u32);
        out.put_u64(self.journal.epoch);
        out.put_u64(self.journal.number);
        out.put_u32(self.journal.chain);
        out.put_u32(self.pages);
        out.put_u64(self.records);
        out.put_u64(self.sequence);
        out.put_u64(self.order);
        assert_eq!(out.len(), KNOWLEDGE_HEAD_BYTES);
        self.segments.iter().for_each(|segment| segment.encode(&mut out));
        self.knowledge.encode(&mut out);
        let bytes = out.len() as u32;
        out[8..12].copy_from_slice(&bytes.to_le_bytes());
        let sum = checksum_at(store, place, &out[8..]);
        out[4..8].copy_from_slice(&sum.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8], store: u64, place: u64) -> Option<Checkpoint> {
        let mut decoder = Decoder::new(bytes);
        let (_magic, sum, len) = (decoder.u32()?, decoder.u32()?, decoder.u32()? as usize);
        if len != bytes.len() || sum != checksum_at(store, place, &bytes[8..]) {
            return None;
        }
        let segments = decoder.u32()?;
        let (epoch, number, chain) = (decoder.u64()?, decoder.u64()?, decoder.u32()?);
        let journal = JournalEnd { epoch, position: 0, number, chain };
        let (pages, records, sequence, order) = (decoder.u32()?, decoder.u64()?, decoder.u64()?, decoder.u64()?);
        let segments = (0..segments).map(|_| Segment::decode(&mut decoder)).collect::<Option<Vec<_>>>()?;
        let knowledge = Knowledge::decode(&mut decoder)?;
        Some(Checkpoint { journal, pages, records, sequence, order, segments, knowledge })
    }

    /// Writes both copies. With the first of them the checkpoint is the newest, so its pages must be durable before.
    pub fn write(&self, device: &dyn Device, geometry: &Geometry, store: u64) -> io::Result<()> {
        for place in geometry.knowledge_at(self.journal.epoch % 2) {
            let bytes = self.encode(store, place);
            if bytes.len() as u64 > geometry.knowledge_bytes {
                return Err(io::Error::other("what must be known does not fit in its place"));
            }
            write_whole_synced(device, &bytes, place)?;
        }
        Ok(())
    }

    /// The newest that can be read.
    pub fn read_newest(device: &dyn Device, geometry: &Geometry, store: u64) -> Option<Checkpoint> {
        let slots = [0, 1].into_iter().flat_map(|slot| geometry.knowledge_at(slot));
        let found = slots.filter_map(|place| Checkpoint::read(device, geometry, store, place));
        let fits = found.filter(|it| it.segments.len() == geometry.segments as usize);
        fits.max_by_key(|checkpoint| checkpoint.journal.epoch)
    }

    fn read(device: &dyn Device, geometry: &Geometry, store: u64, place: u64) -> Option<Checkpoint> {
        let mut head = [0; KNOWLEDGE_HEAD_BYTES];
        read_whole(device, &mut head, place).ok()?;
        let mut decoder = Decoder::new(&head);
        let (magic, _sum, len) = (decoder.u32()?, decoder.u32()?, decoder.u32()?);
        let is_possible = (KNOWLEDGE_HEAD_BYTES as u64..=geometry.knowledge_bytes).contains(&u64::from(len));
        if magic != KNOWLEDGE_MAGIC || !is_possible {
            return None;
        }
        let mut bytes = vec![0; len as usize];
        read_whole(device, &mut bytes, place).ok()?;
        Checkpoint::decode(&bytes, store, place)
    }
}

/// A slot is about to be written over: nothing in it counts any more.
pub fn void_slot(device: &dyn Device, geometry: &Geometry, epoch: u64) -> io::Result<()> {
    for place in geometry.knowledge_at(epoch % 2) {
        write_whole(device, &[0; KNOWLEDGE_HEAD_BYTES], place)?;
    }
    Ok(())
}

pub fn encode_page(store: u64, place: u64, epoch: u64, page: u32, records: &[Kept]) -> Vec<u8> {
    let mut out = Vec::with_capacity(PAGE_BYTES);
    out.put_u32(PAGE_MAGIC);
    out.put_u32(0);
    out.put_u64(epoch);
    out.put_u32(page);
    out.put_u32(records.len() as u32);
    records.iter().for_each(|kept| kept.encode(&mut out));
    out.resize(PAGE_BYTES, 0);
    let sum = checksum_at(store, place, &out[8..]);
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out
}

/// The records of a page; `None` if it is not whole, or another's.
pub fn decode_page(bytes: &[u8], store: u64, place: u64, epoch: u64, page: u32) -> Option<Vec<Kept>> {
    let mut decoder = Decoder::new(bytes);
    let (magic, sum) = (decoder.u32()?, decoder.u32()?);
    let is_meant = decoder.u64()? == epoch && decoder.u32()? == page;
    if magic != PAGE_MAGIC || !is_meant || sum != checksum_at(store, place, &bytes[8..]) {
        return None;
    }
    let records = decoder.u32()?;
    (0..records).map(|_| Kept::decode(&mut decoder)).collect()
}
