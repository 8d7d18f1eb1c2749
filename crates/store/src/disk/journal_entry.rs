//! What the journal says: every change of what is on a disk, and every invalidation, in the order in which they count.

use bytes::Bytes;

use super::disk_index::Kept;
use super::encoding::{Decoder, Encode};
use super::limits::BAN_TEXT_BYTES_MAX;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalEntry {
    /// A record is in its place: a new one, one with a new head, or one that reclaim has moved.
    Put {
        kept: Kept,
        /// Of the segment in which it lies.
        generation: u32,
        sequence: u64,
        number: u64,
    },
    /// A member is deleted, or a family.
    Delete {
        family: u64,
        member: Option<u64>,
    },
    Clear,
    Slot {
        slot: u32,
        number: u64,
    },
    Ban {
        number: u64,
        text: Bytes,
    },
    RetireBans {
        through: u64,
    },
    Number(u64),
    /// A segment is written from its beginning; nothing of what it held counts any more.
    Open {
        segment: u32,
        generation: u32,
        order: u64,
    },
    Seal {
        segment: u32,
        number_min: u64,
    },
    Free {
        segment: u32,
    },
}

impl JournalEntry {
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            JournalEntry::Put { kept, generation, sequence, number } => {
                out.put_u8(1);
                kept.encode(out);
                out.put_u32(*generation);
                out.put_u64(*sequence);
                out.put_u64(*number);
            }
            JournalEntry::Delete { family, member: None } => {
                out.put_u8(2);
                out.put_u64(*family);
            }
            JournalEntry::Delete { family, member: Some(member) } => {
                out.put_u8(3);
                out.put_u64(*family);
                out.put_u64(*member);
            }
            JournalEntry::Clear => out.put_u8(4),
            JournalEntry::Slot { slot, number } => {
                out.put_u8(5);
                out.put_u32(*slot);
                out.put_u64(*number);
            }
            JournalEntry::Ban { number, text } => {
                out.put_u8(6);
                out.put_u64(*number);
                out.put_u32(text.len() as u32);
                out.put(text);
            }
            JournalEntry::RetireBans { through } => {
                out.put_u8(7);
                out.put_u64(*through);
            }
            JournalEntry::Number(number) => {
                out.put_u8(8);
                out.put_u64(*number);
            }
            JournalEntry::Open { segment, generation, order } => {
                out.put_u8(9);
                out.put_u32(*segment);
                out.put_u32(*generation);
                out.put_u64(*order);
            }
            JournalEntry::Seal { segment, number_min } => {
                out.put_u8(10);
                out.put_u32(*segment);
                out.put_u64(*number_min);
            }
            JournalEntry::Free { segment } => {
                out.put_u8(11);
                out.put_u32(*segment);
            }
        }
    }

    pub fn decode(decoder: &mut Decoder<'_>) -> Option<JournalEntry> {
        Some(match decoder.u8()? {
            1 => JournalEntry::Put {
                kept: Kept::decode(decoder)?,
                generation: decoder.u32()?,
                sequence: decoder.u64()?,
                number: decoder.u64()?,
            },
            2 => JournalEntry::Delete { family: decoder.u64()?, member: None },
            3 => JournalEntry::Delete { family: decoder.u64()?, member: Some(decoder.u64()?) },
            4 => JournalEntry::Clear,
            5 => JournalEntry::Slot { slot: decoder.u32()?, number: decoder.u64()? },
            6 => {
                let (number, len) = (decoder.u64()?, decoder.u32()? as usize);
                let text = decoder.take(len).filter(|_| len <= BAN_TEXT_BYTES_MAX)?;
                JournalEntry::Ban { number, text: Bytes::copy_from_slice(text) }
            }
            7 => JournalEntry::RetireBans { through: decoder.u64()? },
            8 => JournalEntry::Number(decoder.u64()?),
            9 => JournalEntry::Open { segment: decoder.u32()?, generation: decoder.u32()?, order: decoder.u64()? },
            10 => JournalEntry::Seal { segment: decoder.u32()?, number_min: decoder.u64()? },
            11 => JournalEntry::Free { segment: decoder.u32()? },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::disk_digest::ShortName;
    use super::super::disk_index::Spot;
    use super::*;

    #[test]
    fn every_kind_is_what_it_was_when_it_is_read_again() {
        let kept = Kept {
            name: ShortName { family: 1, member: 2 },
            spot: Spot { unit: 0xff_1234_5678, span: 9, split: true },
            uses: 2,
        };
        let entries = [
            JournalEntry::Put { kept, generation: 4, sequence: 5, number: 6 },
            JournalEntry::Delete { family: 1, member: None },
            JournalEntry::Delete { family: 1, member: Some(2) },
            JournalEntry::Clear,
            JournalEntry::Slot { slot: 1, number: 2 },
            JournalEntry::Ban { number: 3, text: Bytes::from_static(b"text") },
            JournalEntry::RetireBans { through: 1 },
            JournalEntry::Number(8),
            JournalEntry::Open { segment: 1, generation: 2, order: 3 },
            JournalEntry::Seal { segment: 1, number_min: 4 },
            JournalEntry::Free { segment: 1 },
        ];
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| entry.encode(&mut bytes));
        let mut decoder = Decoder::new(&bytes);
        for entry in entries {
            assert_eq!(JournalEntry::decode(&mut decoder), Some(entry));
        }
        assert!(decoder.is_empty() && JournalEntry::decode(&mut decoder).is_none());
    }
}
