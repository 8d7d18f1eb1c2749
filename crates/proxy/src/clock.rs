//! The one place that reads clocks. Everybody else gets a `Stamp`, or a `Now` that the cache makes of it.
//!
//! `mono_ms` is CLOCK_BOOTTIME: freshness counts on it, so a jump of the wall clock expires nothing. Tests
//! advance both through [`advance`], so that no behaviour file needs to sleep.

use std::sync::atomic::{AtomicU64, Ordering};

use cache::Stamp;
use rustix::time::{ClockId, clock_gettime};

static ADVANCED_MS: AtomicU64 = AtomicU64::new(0);

/// A moment, with the precision that latencies need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds since boot, without what tests added.
    pub nanos: u64,
}

impl Moment {
    #[inline]
    pub fn now() -> Moment {
        let t = clock_gettime(ClockId::Boottime);
        Moment { nanos: t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64 }
    }

    #[inline]
    pub fn micros_until(self, later: Moment) -> u64 {
        later.nanos.saturating_sub(self.nanos) / 1_000
    }

    #[inline]
    pub fn millis(self) -> u64 {
        self.nanos / 1_000_000
    }
}

/// Milliseconds that deadlines of connections count in (unaffected by [`advance`]): as precise as the kernel's tick of
/// some milliseconds, and a fifth of the price of a [`Moment`].
#[inline]
pub fn deadline_now_ms() -> u64 {
    let t = clock_gettime(ClockId::MonotonicCoarse);
    t.tv_sec as u64 * 1_000 + t.tv_nsec as u64 / 1_000_000
}

/// Microseconds as the service manager counts them (CLOCK_MONOTONIC), for its `MONOTONIC_USEC`.
pub fn manager_now_us() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000 + t.tv_nsec as u64 / 1_000
}

/// What the thread that asks has had of a processor since it began.
pub(crate) fn thread_cpu_nanos() -> u64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Wall clock and monotonic clock of a moment.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Wall time minus boot time, read once a tick.
    wall_ahead_ms: u64,
    /// The same in microseconds, for records.
    wall_ahead_us: u64,
    /// All bits where time goes by, none where it stands still: an `and` costs a hit less than a question.
    running: u64,
    /// What the clock shows where it stands, or how far it goes ahead.
    stood_ms: u64,
}

impl Clock {
    pub fn read() -> Clock {
        let wall = clock_gettime(ClockId::Realtime);
        let wall_us = wall.tv_sec as u64 * 1_000_000 + wall.tv_nsec as u64 / 1_000;
        let boot = Moment::now();
        Clock {
            wall_ahead_ms: (wall_us / 1_000).saturating_sub(boot.millis()),
            wall_ahead_us: wall_us.saturating_sub(boot.nanos / 1_000),
            running: u64::MAX,
            stood_ms: 0,
        }
    }

    /// One that goes ahead by so much: what will be then?
    pub(crate) fn ahead(ms: u64) -> Clock {
        Clock { stood_ms: ms, ..Clock::read() }
    }

    /// One that shows the same at every moment: a dry run must not depend on how fast the machine is.
    pub fn standing(mono_ms: u64, wall_ms: u64) -> Clock {
        let wall_ahead_ms = wall_ms - mono_ms;
        Clock { wall_ahead_ms, wall_ahead_us: wall_ahead_ms * 1_000, running: 0, stood_ms: mono_ms }
    }

    /// The time of day in microseconds since 1970, without what tests added.
    pub(crate) fn wall_micros(&self, moment: Moment) -> u64 {
        self.wall_ahead_us + moment.nanos / 1_000
    }

    /// The time of day and the time that freshness counts in.
    #[inline]
    pub fn at(&self, moment: Moment) -> Stamp {
        let mono_ms = (moment.millis() & self.running) + self.stood_ms + ADVANCED_MS.load(Ordering::Relaxed);
        Stamp { wall_ms: mono_ms + self.wall_ahead_ms, mono_ms }
    }
}

/// The time of day in milliseconds since 1970, as freshness knows it.
pub fn wall_now_ms() -> u64 {
    Clock::read().at(Moment::now()).wall_ms
}

/// The time that freshness, and what is known of origins, counts in.
pub(crate) fn mono_now_ms() -> u64 {
    Clock::read().at(Moment::now()).mono_ms
}

/// Moves the clocks of freshness forward; deadlines of connections stay where they are. For tests, behind
/// `[admin] debug = true`.
pub fn advance(ms: u64) {
    ADVANCED_MS.fetch_add(ms, Ordering::Relaxed);
}
