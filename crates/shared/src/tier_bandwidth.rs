//! How many bytes may be sent in a second.

use std::time::Duration;

use tokio::time::Instant;

/// So many a second, and at most what comes in `burst` at once.
pub struct Bandwidth {
    bytes_per_s: u64,
    burst: Duration,
    /// What was let through is paid for by then.
    paid_at: Instant,
}

impl Bandwidth {
    pub fn new(bytes_per_s: u64, burst: Duration, now: Instant) -> Bandwidth {
        Bandwidth { bytes_per_s: bytes_per_s.max(1), burst, paid_at: now }
    }

    /// May they be sent now?
    pub fn takes(&mut self, bytes: u64, now: Instant) -> bool {
        let from = self.paid_at.max(now);
        if from.duration_since(now) > self.burst {
            return false;
        }
        self.paid_at = from + Duration::from_secs_f64(bytes as f64 / self.bytes_per_s as f64);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_goes_out_than_comes_in_by_the_second() {
        let start = Instant::now();
        let mut bandwidth = Bandwidth::new(1_000, Duration::from_millis(500), start);
        let mut sent = 0;
        for ms in 0..10_000 {
            if bandwidth.takes(100, start + Duration::from_millis(ms)) {
                sent += 100;
            }
        }
        assert!((10_000..=10_600).contains(&sent), "{sent}");
    }

    #[test]
    fn what_is_larger_than_a_burst_goes_out_and_is_paid_for_behind_it() {
        let start = Instant::now();
        let mut bandwidth = Bandwidth::new(1_000, Duration::from_millis(500), start);
        assert!(bandwidth.takes(5_000, start));
        assert!(!bandwidth.takes(1, start + Duration::from_millis(4_000)));
        assert!(bandwidth.takes(1, start + Duration::from_millis(4_600)));
    }
}
