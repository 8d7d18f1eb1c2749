//! Which kinds of records a sink hears. What nobody hears is not written at all.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::limits::RECORD_BYTES_MAX;
use crate::records::RecordKind;

/// For each kind the number that stands for it in the records, and how long its text may be. The sink may change them at any time.
#[derive(Debug)]
pub struct HeardKinds([AtomicU32; RecordKind::ALL.len()]);

/// A kind as a sink hears it: its number in the uppermost byte, and the bytes of the longest text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeardAs(u32);

const NUMBER_SHIFT: u32 = 24;
const _: () = assert!(RECORD_BYTES_MAX < u16::MAX as usize, "a record's first word has sixteen bits for its length");

impl Default for HeardKinds {
    fn default() -> HeardKinds {
        HeardKinds([const { AtomicU32::new(0) }; RecordKind::ALL.len()])
    }
}

impl HeardKinds {
    /// All of them, by the numbers in their order from 1 on.
    pub fn all() -> HeardKinds {
        let heard = HeardKinds::default();
        RecordKind::ALL.iter().for_each(|kind| heard.hear(*kind, *kind as u8 + 1, RECORD_BYTES_MAX));
        heard
    }

    /// From here on records of this kind are written, with this number, which is not 0; a longer text is cut.
    pub fn hear(&self, kind: RecordKind, number: u8, text_bytes_max: usize) {
        let bytes = text_bytes_max.min(RECORD_BYTES_MAX) as u32;
        self.0[kind as usize].store(u32::from(number) << NUMBER_SHIFT | bytes, Ordering::Relaxed);
    }

    /// From here on none of this kind are.
    pub fn ignore(&self, kind: RecordKind) {
        self.0[kind as usize].store(0, Ordering::Relaxed);
    }

    pub fn hears(&self, kind: RecordKind) -> bool {
        self.as_heard(kind).is_some()
    }

    #[inline(always)]
    pub(crate) fn as_heard(&self, kind: RecordKind) -> Option<HeardAs> {
        let entry = self.0[kind as usize].load(Ordering::Relaxed);
        (entry != 0).then_some(HeardAs(entry))
    }
}

impl HeardAs {
    /// The first word of a record with so many bytes behind its head.
    #[inline(always)]
    pub(crate) fn first_word(self, bytes: usize) -> u32 {
        self.0 & !(u32::from(u16::MAX)) | bytes as u32
    }

    #[inline(always)]
    pub(crate) fn text_bytes_max(self) -> usize {
        (self.0 & u32::from(u16::MAX)) as usize
    }
}
