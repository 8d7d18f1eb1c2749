//! What a store must know to tell what is no longer valid: bans, the numbers of slots, and the greatest number seen.
//!
//! The index is positive knowledge: a part of it that is lost costs hits. This is negative knowledge: without it
//! something would come back that was invalidated, so it is kept twice, and a store that has lost it is discarded.
//! The texts of bans are the caller's and mean nothing here.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::encoding::{Decoder, Encode};
use super::limits::BAN_TEXT_BYTES_MAX;

const SLOT_BYTES: usize = 12;
const BAN_BYTES: usize = 12;

/// A ban, as its maker wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    pub number: u64,
    pub text: Bytes,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knowledge {
    bans: BTreeMap<u64, Bytes>,
    slots: BTreeMap<u32, u64>,
    pub number_max: u64,
    bans_bytes: usize,
}

impl Knowledge {
    /// False if there would be more of them than fit.
    pub fn add_ban(&mut self, number: u64, text: &Bytes, bytes_max: usize) -> bool {
        self.note_number(number);
        let bytes = BAN_BYTES + text.len();
        if self.bans.contains_key(&number) {
            return true;
        }
        if text.len() > BAN_TEXT_BYTES_MAX || self.bans_bytes + bytes > bytes_max {
            return false;
        }
        self.bans_bytes += bytes;
        self.bans.insert(number, text.clone());
        true
    }

    pub fn retire_bans(&mut self, through: u64) {
        let left = self.bans.split_off(&through.saturating_add(1));
        let gone: usize = self.bans.values().map(|text| BAN_BYTES + text.len()).sum();
        self.bans_bytes -= gone;
        self.bans = left;
    }

    /// False if there would be more slots than fit.
    pub fn set_slot(&mut self, slot: u32, number: u64, slots_max: usize) -> bool {
        self.note_number(number);
        if self.slots.len() >= slots_max && !self.slots.contains_key(&slot) {
            return false;
        }
        let last = self.slots.entry(slot).or_insert(0);
        *last = number.max(*last);
        true
    }

    pub fn note_number(&mut self, number: u64) {
        self.number_max = self.number_max.max(number);
    }

    pub fn bans(&self) -> impl Iterator<Item = Ban> + '_ {
        self.bans.iter().map(|(number, text)| Ban { number: *number, text: text.clone() })
    }

    pub fn slots(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.slots.iter().map(|(slot, number)| (*slot, *number))
    }

    /// Takes in what another disk knows.
    pub fn merge(&mut self, other: &Knowledge) {
        other.bans().for_each(|ban| {
            self.add_ban(ban.number, &ban.text, usize::MAX);
        });
        other.slots().for_each(|(slot, number)| {
            self.set_slot(slot, number, usize::MAX);
        });
        self.note_number(other.number_max);
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.number_max);
        out.put_u32(self.slots.len() as u32);
        for (slot, number) in self.slots() {
            out.put_u32(slot);
            out.put_u64(number);
        }
        out.put_u32(self.bans.len() as u32);
        for (number, text) in &self.bans {
            out.put_u64(*number);
            out.put_u32(text.len() as u32);
            out.put(text);
        }
    }

    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Knowledge> {
        let mut knowledge = Knowledge { number_max: decoder.u64()?, ..Knowledge::default() };
        for _ in 0..decoder.u32()? {
            let (slot, number) = (decoder.u32()?, decoder.u64()?);
            knowledge.set_slot(slot, number, usize::MAX);
        }
        for _ in 0..decoder.u32()? {
            let (number, len) = (decoder.u64()?, decoder.u32()?);
            let text = Bytes::copy_from_slice(decoder.take(len as usize)?);
            knowledge.add_ban(number, &text, usize::MAX);
        }
        Some(knowledge)
    }
}

/// The most that a checkpoint's knowledge takes, segments and its own head included.
pub fn bytes_max(segments: u64, slots: usize, bans_bytes: usize) -> usize {
    const HEAD_BYTES_MAX: usize = 256;
    HEAD_BYTES_MAX + segments as usize * super::segment_table::SEGMENT_ROW_BYTES + slots * SLOT_BYTES + bans_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_it_was_when_it_is_read_again() {
        let mut knowledge = Knowledge::default();
        assert!(knowledge.add_ban(3, &Bytes::from_static(b"obj.age > 3"), 100));
        assert!(knowledge.add_ban(7, &Bytes::from_static(b""), 100));
        assert!(!knowledge.add_ban(8, &Bytes::from(vec![b'x'; 80]), 100));
        assert!(knowledge.set_slot(9, 4, 1) && knowledge.set_slot(9, 2, 1) && !knowledge.set_slot(1, 5, 1));
        knowledge.note_number(20);
        let mut bytes = Vec::new();
        knowledge.encode(&mut bytes);
        let again = Knowledge::decode(&mut Decoder::new(&bytes)).expect("whole");
        assert_eq!(again, knowledge);
        assert_eq!(again.slots().collect::<Vec<_>>(), [(9, 4)]);
        for len in 0..bytes.len() {
            assert_eq!(Knowledge::decode(&mut Decoder::new(&bytes[..len])), None, "{len}");
        }
    }

    #[test]
    fn retired_bans_make_room() {
        let mut knowledge = Knowledge::default();
        for number in 1..=5 {
            assert!(knowledge.add_ban(number, &Bytes::from_static(b"12345678"), 100));
        }
        assert!(!knowledge.add_ban(6, &Bytes::from_static(b"12345678"), 100));
        knowledge.retire_bans(4);
        assert_eq!(knowledge.bans().map(|ban| ban.number).collect::<Vec<_>>(), [5]);
        assert!(knowledge.add_ban(6, &Bytes::from_static(b"12345678"), 100));
    }
}
