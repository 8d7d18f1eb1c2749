//! How a body lies in slices, as its manifest knows it: how long it is, how long they are, and by which stamp they are found.

use std::ops::Range;

use crate::key::random_number;

/// How a body lies in slices: all of `slice_bytes`, but the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sliced {
    /// Of the whole representation.
    pub complete: u64,
    pub slice_bytes: u64,
    /// Drawn when the manifest was made.
    pub(crate) stamp: u64,
}

impl Sliced {
    /// `slice_bytes` must not be 0.
    pub fn new(complete: u64, slice_bytes: u64) -> Sliced {
        assert!(slice_bytes > 0, "a slice holds something");
        Sliced { complete, slice_bytes, stamp: random_number() }
    }

    /// As it was written on a disk. `None` for what nobody wrote.
    pub(crate) fn read([complete, slice_bytes, stamp]: [u64; 3]) -> Option<Sliced> {
        (slice_bytes > 0).then_some(Sliced { complete, slice_bytes, stamp })
    }

    pub fn count(self) -> u64 {
        self.complete.div_ceil(self.slice_bytes)
    }

    /// The slice that a byte is in.
    pub fn number_at(self, position: u64) -> u64 {
        position / self.slice_bytes
    }

    /// The bytes of a slice, in the representation.
    pub fn range(self, number: u64) -> Range<u64> {
        let from = number.saturating_mul(self.slice_bytes).min(self.complete);
        from..from.saturating_add(self.slice_bytes).min(self.complete)
    }
}
