//! `bandwidth`: how fast the answers of a route go out.

use crate::limits::{PACED_PIECE_BYTES_MAX, PACED_PIECES_PER_SECOND};

/// How fast one answer goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// At least 1.
    pub bytes_per_second: u64,
    /// So much of the beginning goes as fast as it can.
    pub after_bytes: u64,
}

impl Bandwidth {
    /// How many bytes are due after this time.
    pub(crate) fn due(self, micros: u64) -> u64 {
        let paced = u128::from(self.bytes_per_second) * u128::from(micros) / 1_000_000;
        self.after_bytes.saturating_add(u64::try_from(paced).unwrap_or(u64::MAX))
    }

    /// After which time so many are.
    pub(crate) fn micros_of(self, bytes: u64) -> u64 {
        let paced = u128::from(bytes.saturating_sub(self.after_bytes)) * 1_000_000;
        u64::try_from(paced.div_ceil(u128::from(self.bytes_per_second))).unwrap_or(u64::MAX)
    }

    /// What goes out at a time.
    pub(crate) fn piece_bytes(self) -> u64 {
        (self.bytes_per_second / PACED_PIECES_PER_SECOND).clamp(1, PACED_PIECE_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_grows_with_time_behind_what_goes_at_once() {
        let pace = Bandwidth { bytes_per_second: 1_000, after_bytes: 500 };
        assert_eq!([0, 1_000_000, 2_500_000].map(|micros| pace.due(micros)), [500, 1_500, 3_000]);
        assert_eq!([0, 500, 501, 1_500].map(|bytes| pace.micros_of(bytes)), [0, 0, 1_000, 1_000_000]);
        for bytes in [501, 777, 9_999] {
            assert!(pace.due(pace.micros_of(bytes)) >= bytes, "{bytes}");
        }
        assert_eq!(pace.piece_bytes(), 100);
        assert_eq!(Bandwidth { bytes_per_second: 1, ..pace }.piece_bytes(), 1);
    }
}
