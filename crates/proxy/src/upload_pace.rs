//! How fast a client sends the body of its request.

use wire::Refusal;

/// How long we have waited for a client to send its body. Time in which the origin took nothing is not the client's.
#[derive(Debug, Default)]
pub(crate) struct UploadPace {
    waited_ms: u64,
    waiting_since_ms: Option<u64>,
}

/// What the limits say about the pace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PaceLimits {
    pub(crate) timeout_ms: u64,
    pub(crate) rate_min: u64,
}

impl UploadPace {
    /// Nothing is there to be read. Returns until when that may be so: for `timeout_ms`, and for no longer than what
    /// has come makes up for at `rate_min`.
    pub(crate) fn wait(&mut self, now_ms: u64, taken_bytes: u64, limits: PaceLimits) -> u64 {
        let since_ms = *self.waiting_since_ms.get_or_insert(now_ms);
        let PaceLimits { timeout_ms, rate_min } = limits;
        let earned_ms = match taken_bytes.saturating_mul(1_000).checked_div(rate_min) {
            Some(earned_ms) => earned_ms.max(timeout_ms).saturating_sub(self.waited_ms),
            None => u64::MAX,
        };
        since_ms.saturating_add(timeout_ms.min(earned_ms))
    }

    /// Something came.
    pub(crate) fn go_on(&mut self, now_ms: u64) {
        if let Some(since_ms) = self.waiting_since_ms.take() {
            self.waited_ms += now_ms.saturating_sub(since_ms);
        }
    }

    /// The wait is over and nothing came: was it silence, or did too little come before?
    pub(crate) fn refusal(&self, now_ms: u64, limits: PaceLimits) -> Refusal {
        let silent_ms = now_ms.saturating_sub(self.waiting_since_ms.unwrap_or(now_ms));
        let (token, limit) = if silent_ms >= limits.timeout_ms {
            ("request-body-timeout", "limits.request_body_timeout")
        } else {
            ("request-body-too-slow", "limits.request_body_rate_min")
        };
        Refusal { status: 408, token, limit: Some(limit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits of so many milliseconds, each ended by so many bytes; then how long the next may last.
    fn check(rate_min: u64, waits: &[(u64, u64)], expect_ms: u64) {
        let limits = PaceLimits { timeout_ms: 60_000, rate_min };
        let (mut pace, mut now_ms, mut taken_bytes) = (UploadPace::default(), 5_000, 0);
        for &(waited_ms, bytes) in waits {
            let until_ms = pace.wait(now_ms, taken_bytes, limits);
            assert_eq!(pace.wait(now_ms + 1, taken_bytes, limits), until_ms, "a second look moves nothing");
            assert!(now_ms + waited_ms < until_ms, "cut off too early: {waits:?}");
            now_ms += waited_ms;
            taken_bytes += bytes;
            pace.go_on(now_ms);
            // The origin takes its time.
            now_ms += 1_000_000;
        }
        assert_eq!(pace.wait(now_ms, taken_bytes, limits) - now_ms, expect_ms, "{waits:?}");
    }

    #[test]
    fn a_body_is_waited_for_as_long_as_its_rate_allows() {
        check(100, &[], 60_000);
        check(100, &[(59_000, 1)], 1_000);
        check(100, &[(59_000, 1), (900, 1)], 100);
        // Two bytes a second: a minute, and no longer.
        check(100, &[(500, 1); 119], 500);
        check(100, &[(30_000, 9_000)], 60_000);
        check(100, &[(30_000, 8_000)], 50_000);
        check(100, &[(1_000, 1 << 30), (59_000, 1)], 60_000);
        check(0, &[(59_000, 1), (59_000, 1), (59_000, 1)], 60_000);
        check(u64::MAX, &[(59_000, 1 << 40)], 1_000);
    }

    #[test]
    fn the_refusal_names_the_limit_that_was_passed() {
        let limits = PaceLimits { timeout_ms: 60_000, rate_min: 100 };
        let mut pace = UploadPace::default();
        pace.wait(0, 0, limits);
        assert_eq!(pace.refusal(60_100, limits).token, "request-body-timeout");
        pace.go_on(59_000);
        pace.wait(59_000, 1, limits);
        assert_eq!(pace.refusal(60_100, limits).token, "request-body-too-slow");
    }
}
