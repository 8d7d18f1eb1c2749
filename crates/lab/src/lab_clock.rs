//! The one place of the lab that reads clocks.
//!
//! Everything counts in nanoseconds of CLOCK_MONOTONIC, which is also what the pacer's timer counts in.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Seconds of the UNIX epoch, for `Date`. Nothing is measured with it: the wall's clock may be set back.
pub(crate) fn wall_seconds() -> u64 {
    u64::try_from(clock_gettime(ClockId::Realtime).tv_sec).unwrap_or(0)
}

/// A moment, or with another subtracted a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Nanos(pub(crate) u64);

impl Nanos {
    #[inline]
    pub(crate) fn now() -> Nanos {
        Nanos::of(ClockId::Monotonic)
    }

    /// Processor time that the calling thread has used.
    pub(crate) fn of_thread() -> Nanos {
        Nanos::of(ClockId::ThreadCPUTime)
    }

    fn of(clock: ClockId) -> Nanos {
        let t = clock_gettime(clock);
        Nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
    }

    pub(crate) fn after(self, time: Duration) -> Nanos {
        Nanos(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How much later `later` is; nothing when it is not.
    pub(crate) fn until(self, later: Nanos) -> Duration {
        Duration::from_nanos(later.0.saturating_sub(self.0))
    }

    #[inline]
    pub(crate) fn micros_until(self, later: Nanos) -> u64 {
        later.0.saturating_sub(self.0) / 1_000
    }
}
