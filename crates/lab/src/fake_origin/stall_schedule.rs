//! Moments in which the whole origin answers nothing, as a machine does that collects garbage or writes its disk.

use std::time::Duration;

use crate::lab_clock::Nanos;

/// A stall begins after each `every` and lasts `lasts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    pub every: Duration,
    /// Shorter than `every`.
    pub lasts: Duration,
}

impl Stalls {
    /// What is left at `now` of the stall under way. The first one begins when `every` has gone by.
    pub(crate) fn rest(&self, begun: Nanos, now: Nanos) -> Option<Duration> {
        let (every, lasts) = (self.every.as_nanos() as u64, self.lasts.as_nanos() as u64);
        let since = now.0.saturating_sub(begun.0);
        let into = since % every.max(1);
        (since >= every && into < lasts).then(|| Duration::from_nanos(lasts - into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_come_after_each_period_and_end() {
        let stalls = Stalls { every: Duration::from_millis(1_000), lasts: Duration::from_millis(200) };
        for (at_ms, rest_ms) in [(0, 0), (999, 0), (1_000, 200), (1_150, 50), (1_200, 0), (1_999, 0), (5_199, 1)] {
            let now = Nanos(7 + at_ms * 1_000_000);
            let expect = (rest_ms > 0).then(|| Duration::from_millis(rest_ms));
            assert_eq!(stalls.rest(Nanos(7), now), expect, "{at_ms}");
        }
    }
}
