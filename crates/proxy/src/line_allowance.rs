//! How often something may be said to the operator: a few lines at once, and then one a minute.

use crate::limits::NOTICE_EVERY_MS;

/// Times are those of any clock that only goes forward.
#[derive(Debug)]
pub struct LineAllowance {
    at_once: u64,
    /// It is whole again then.
    whole_again_ms: u64,
}

impl LineAllowance {
    pub const fn of(at_once: u64) -> LineAllowance {
        LineAllowance { at_once, whole_again_ms: 0 }
    }

    /// Takes a line from it, if there is one.
    pub fn take(&mut self, now_ms: u64) -> bool {
        let after_ms = self.whole_again_ms.max(now_ms) + NOTICE_EVERY_MS;
        let may = after_ms <= now_ms + NOTICE_EVERY_MS * self.at_once;
        if may {
            self.whole_again_ms = after_ms;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_at_once_and_then_one_a_minute() {
        let mut allowance = LineAllowance::of(2);
        let taken = [0, 0, 0, NOTICE_EVERY_MS - 1, NOTICE_EVERY_MS, NOTICE_EVERY_MS, NOTICE_EVERY_MS * 9]
            .map(|now_ms| allowance.take(now_ms));
        assert_eq!(taken, [true, true, false, false, true, false, true]);
    }
}
