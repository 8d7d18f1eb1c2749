//! How fast a client takes its answer. Time in which there was nothing to take is none of the client's. Times are
//! microseconds since the answer began.

/// Of one answer on its way out.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Since when all that was there has gone.
    starved_since: Option<u64>,
    /// How long that was so before.
    starved_micros: u64,
}

impl Pace {
    /// All that was there has gone.
    pub(crate) fn starve(&mut self, at_micros: u64) {
        self.starved_since.get_or_insert(at_micros);
    }

    /// Is that the last that was said?
    pub(crate) fn is_starved(&self) -> bool {
        self.starved_since.is_some()
    }

    /// There is something again.
    pub(crate) fn feed(&mut self, at_micros: u64) {
        if let Some(since) = self.starved_since.take() {
            self.starved_micros += at_micros.saturating_sub(since);
        }
    }

    /// `limits.send_rate_min`, on average over the time in which there was something to take, once that is
    /// `limits.send_timeout`.
    pub(crate) fn is_too_slow(&self, at_micros: u64, sent_bytes: u64, rate_min: u64, timeout_ms: u64) -> bool {
        let taking_ms = at_micros.saturating_sub(self.starved_micros) / 1_000;
        rate_min > 0 && taking_ms > timeout_ms && sent_bytes.saturating_mul(1_000) / taking_ms < rate_min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is it too slow at 10 s, if it starved in these times? At least 100 bytes a second, after one second.
    fn check(starved: &[(u64, u64)], sent_bytes: u64, expect: bool) {
        let mut pace = Pace::default();
        for (from_ms, to_ms) in starved {
            pace.starve(from_ms * 1_000);
            pace.starve(from_ms * 1_000 + 1);
            pace.feed(to_ms * 1_000);
            pace.feed(to_ms * 1_000 + 1);
        }
        assert_eq!(pace.is_too_slow(10_000_000, sent_bytes, 100, 1_000), expect, "{starved:?} {sent_bytes}");
    }

    #[test]
    fn a_client_has_the_time_in_which_there_was_something_to_take() {
        check(&[], 999, true);
        check(&[], 1_000, false);
        check(&[(0, 5_000)], 499, true);
        check(&[(0, 5_000)], 500, false);
        check(&[(0, 2_000), (4_000, 7_000)], 499, true);
        check(&[(0, 2_000), (4_000, 7_000)], 500, false);
        // Not for long enough to say anything.
        check(&[(0, 9_000)], 0, false);
        check(&[(0, 8_900)], 0, true);
    }

    #[test]
    fn without_a_limit_nobody_is_too_slow() {
        assert!(!Pace::default().is_too_slow(u64::MAX, 0, 0, 1));
    }
}
