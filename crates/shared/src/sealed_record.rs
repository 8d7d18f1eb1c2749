//! A record as it lies in the tier: sealed by a key that follows from the fleet's secret, for the name under which it lies. What was changed, cut,
//! put under another name or written by somebody else is no record.
//!
//! ```text
//! the first value: pieces u32 · stamp u64, and the first piece; of the others each value is a piece
//! the pieces, joined: "LRS1" · seal, 32 bytes · bytes of the head u32 · head · body
//! ```
//!
//! The seal is an HMAC with SHA-256 (RFC 2104) of the name and of all that follows the seal. Numbers are little-endian.

use aws_lc_rs::hmac;
use bytes::{Bytes, BytesMut};
use cache::{TierName, TierRecord};
use store::Blocks;

use crate::limits::{HEAD_BYTES_MAX, VALUE_BYTES_MAX};

const FORM: &[u8; 4] = b"LRS1";
const SEAL_BYTES: usize = 32;
const SEALED_FROM: usize = FORM.len() + SEAL_BYTES;
const HEAD_FROM: usize = SEALED_FROM + 4;
/// Before the first piece.
const OPENING_BYTES: usize = 4 + 8;
const PIECE_BYTES: usize = VALUE_BYTES_MAX - OPENING_BYTES;

/// Makes and breaks seals.
pub struct Sealer {
    key: hmac::Key,
    body_bytes_max: u64,
}

/// What stands before the first piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    pub pieces: usize,
    pub stamp: u64,
}

impl Sealer {
    pub fn new(key: &[u8; 32], body_bytes_max: u64) -> Sealer {
        Sealer { key: hmac::Key::new(hmac::HMAC_SHA256, key), body_bytes_max }
    }

    /// The values of a record, which is always more than one byte. `None`: its head is too long.
    pub fn seal(&self, name: TierName, record: &TierRecord, stamp: u64) -> Option<Vec<Bytes>> {
        let TierRecord { head, body } = record;
        if head.len() > HEAD_BYTES_MAX || body.len() > self.body_bytes_max {
            return None;
        }
        let length = HEAD_FROM + head.len() + body.len() as usize;
        let pieces = length.div_ceil(PIECE_BYTES);
        let mut text = BytesMut::with_capacity(OPENING_BYTES + length);
        text.extend_from_slice(&(pieces as u32).to_le_bytes());
        text.extend_from_slice(&stamp.to_le_bytes());
        text.extend_from_slice(FORM);
        text.extend_from_slice(&[0; SEAL_BYTES]);
        text.extend_from_slice(&(head.len() as u32).to_le_bytes());
        text.extend_from_slice(head);
        body.pieces(0, u64::MAX).for_each(|piece| text.extend_from_slice(&piece));
        let seal = self.tag(name, &text[OPENING_BYTES + SEALED_FROM..]);
        text[OPENING_BYTES + FORM.len()..][..SEAL_BYTES].copy_from_slice(seal.as_ref());
        let mut text = text.freeze();
        let mut values = vec![text.split_to(text.len().min(OPENING_BYTES + PIECE_BYTES))];
        while !text.is_empty() {
            values.push(text.split_to(text.len().min(PIECE_BYTES)));
        }
        Some(values)
    }

    /// How many pieces a record has whose first value is this.
    pub fn opening(&self, first: &[u8]) -> Option<Opening> {
        let pieces = u32::from_le_bytes(first.get(..4)?.try_into().ok()?) as usize;
        let stamp = u64::from_le_bytes(first.get(4..OPENING_BYTES)?.try_into().ok()?);
        let pieces_max = (HEAD_FROM + HEAD_BYTES_MAX + self.body_bytes_max as usize).div_ceil(PIECE_BYTES);
        (1..=pieces_max).contains(&pieces).then_some(Opening { pieces, stamp })
    }

    /// `None`: nobody who has the key wrote this under this name.
    pub fn unseal(&self, name: TierName, values: &[Bytes]) -> Option<TierRecord> {
        let first = values.first()?.get(OPENING_BYTES..)?;
        let joined = match values {
            [whole] => whole.slice_ref(first),
            _ => {
                let mut joined = BytesMut::from(first);
                values[1..].iter().for_each(|piece| joined.extend_from_slice(piece));
                joined.freeze()
            }
        };
        let seal = joined.strip_prefix(FORM)?.get(..SEAL_BYTES)?;
        let sealed = joined.get(SEALED_FROM..)?;
        let mut context = self.begin(name);
        context.update(sealed);
        aws_lc_rs::constant_time::verify_slices_are_equal(context.sign().as_ref(), seal).ok()?;
        let head_bytes = u32::from_le_bytes(sealed.get(..4)?.try_into().ok()?) as usize;
        let rest = joined.slice(HEAD_FROM..);
        let (head, body) = (rest.get(..head_bytes)?, rest.get(head_bytes..)?);
        Some(TierRecord { head: rest.slice_ref(head), body: Blocks::of_piece(rest.slice_ref(body)) })
    }

    fn begin(&self, name: TierName) -> hmac::Context {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&name.key.to_le_bytes());
        context.update(&name.variant.to_le_bytes());
        context
    }

    fn tag(&self, name: TierName, sealed: &[u8]) -> hmac::Tag {
        let mut context = self.begin(name);
        context.update(sealed);
        context.sign()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: TierName = TierName { key: 5 << 90, variant: 9 };

    fn sealer(key: u8) -> Sealer {
        Sealer::new(&[key; 32], 5_000_000)
    }

    fn record(body_bytes: usize) -> TierRecord {
        let body: Vec<u8> = (0..body_bytes).map(|at| (at % 251) as u8).collect();
        TierRecord { head: Bytes::from_static(b"a head"), body: Blocks::copy_of(&body) }
    }

    fn bytes_of(body: &Blocks) -> Vec<u8> {
        body.slices(0, u64::MAX).collect::<Vec<_>>().concat()
    }

    #[test]
    fn what_is_sealed_comes_back_in_however_many_pieces() {
        let edge = PIECE_BYTES - HEAD_FROM - 6;
        for (body_bytes, pieces) in [(0, 1), (1, 1), (edge, 1), (edge + 1, 2), (4_500_000, 5)] {
            let values = sealer(1).seal(NAME, &record(body_bytes), 77).unwrap();
            assert_eq!(values.len(), pieces, "{body_bytes}");
            assert!(values.iter().all(|value| value.len() <= VALUE_BYTES_MAX));
            assert_eq!(sealer(1).opening(&values[0]), Some(Opening { pieces, stamp: 77 }));
            let back = sealer(1).unseal(NAME, &values).unwrap();
            assert_eq!((&back.head[..], bytes_of(&back.body)), (&b"a head"[..], bytes_of(&record(body_bytes).body)));
        }
        assert!(sealer(1).seal(NAME, &record(5_000_001), 1).is_none());
    }

    /// As one that was asked for often does.
    #[test]
    fn a_body_may_lie_in_the_page_file() {
        let length = store::limits::PAGES_BYTES_MIN;
        let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let pages = store::PageFile::create().expect("a memory file");
        let mut writer = pages.write_extent(length, u64::MAX).expect("a turn");
        Blocks::copy_of(&body).slices(0, length).try_for_each(|block| writer.append(block)).expect("laid");
        let blocks = Blocks::in_pages(writer.finish().expect("all of it"));
        let values = sealer(1).seal(NAME, &TierRecord { body: blocks, ..record(0) }, 1).unwrap();
        assert!(bytes_of(&sealer(1).unseal(NAME, &values).unwrap().body) == body);
    }

    #[test]
    fn whatever_is_changed_is_no_record() {
        let values = sealer(1).seal(NAME, &record(300), 77).unwrap();
        let whole = values[0].to_vec();
        for at in OPENING_BYTES..whole.len() {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                assert!(sealer(1).unseal(NAME, &[Bytes::from(flipped)]).is_none(), "{at}.{bit}");
            }
        }
        for length in 0..whole.len() {
            assert!(sealer(1).unseal(NAME, &[Bytes::copy_from_slice(&whole[..length])]).is_none(), "{length}");
        }
        let longer = Bytes::from([&whole[..], b"x"].concat());
        assert!(sealer(1).unseal(NAME, &[longer]).is_none());
        assert!(sealer(1).unseal(NAME, &[]).is_none());
    }

    #[test]
    fn under_another_name_or_another_secret_it_is_no_record() {
        let values = sealer(1).seal(NAME, &record(300), 77).unwrap();
        for other in [TierName { key: 6 << 90, ..NAME }, TierName { variant: 8, ..NAME }] {
            assert!(sealer(1).unseal(other, &values).is_none(), "{other:?}");
        }
        assert!(sealer(2).unseal(NAME, &values).is_none());
    }

    #[test]
    fn pieces_of_two_records_make_none() {
        let (one, two) = (record(2_500_000), record(2_400_000));
        let (one, two) = (sealer(1).seal(NAME, &one, 1).unwrap(), sealer(1).seal(NAME, &two, 2).unwrap());
        assert!(sealer(1).unseal(NAME, &[one[0].clone(), one[1].clone(), two[2].clone()]).is_none());
        assert!(sealer(1).unseal(NAME, &[one[1].clone(), one[0].clone(), one[2].clone()]).is_none());
    }

    #[test]
    fn an_opening_promises_no_more_than_there_can_be() {
        let opening = |pieces: u32| sealer(1).opening(&[&pieces.to_le_bytes()[..], &[0; 8]].concat());
        assert_eq!((opening(0), opening(7), opening(1_000)), (None, Some(Opening { pieces: 7, stamp: 0 }), None));
        assert_eq!(sealer(1).opening(b"short"), None);
    }
}
