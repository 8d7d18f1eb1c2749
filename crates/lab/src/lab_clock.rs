//! The one place of the lab that reads clocks.
//!
//! Everything counts in nanoseconds of CLOCK_MONOTONIC, which is also what the pacer's timer counts in.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Seconds of the UNIX epoch, for `Date`. Nothing is measured with it: the wall's clock may be set back.
pub(crate) fn wall_seconds() -> u64 {
    u64::try_from(clock_gettime(ClockId::Realtime).tv_sec).unwrap_or(0)
}

/// The time of day as people write it: `2026-01-31T12:00:00Z`.
pub(crate) fn utc_now() -> String {
    utc(wall_seconds() as i64)
}

/// From seconds since 1970; the calendar's rule counted from a March, so that leap days end their years.
fn utc(unix_seconds: i64) -> String {
    let (days, second) = (unix_seconds.div_euclid(86_400) + 719_468, unix_seconds.rem_euclid(86_400));
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year_of_era + era * 400 + next;
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_795_305_600, "2026-11-22T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }
}
