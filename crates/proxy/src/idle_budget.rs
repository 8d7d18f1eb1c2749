//! How much of a processor work may have that nobody waits for: a share of one core, counted over a window.
//!
//! It reads no clock: moments and times are told to it.

use std::time::Duration;

use crate::clock::Moment;
use crate::limits::CODING_IDLE_WINDOW;

/// What may be spent. A job ends when it is done, so it may take more than there is; that is owed, and paid before the next begins.
pub(crate) struct IdleBudget {
    /// Nanoseconds of a processor; below zero they are owed.
    balance: i64,
    counted: Moment,
}

impl IdleBudget {
    /// With all that a window has: a process that has just started did nothing so far.
    pub(crate) fn full(now: Moment) -> IdleBudget {
        IdleBudget { balance: i64::MAX, counted: now }
    }

    /// How long no job may begin. `percent` of one core are earned, of one window at most; without any it is never.
    pub(crate) fn due_in(&mut self, now: Moment, percent: u32) -> Duration {
        let part = |nanos: u64| (u128::from(nanos) * u128::from(percent) / 100) as i64;
        let earned = part(now.nanos.saturating_sub(self.counted.nanos));
        self.counted = now;
        self.balance = self.balance.saturating_add(earned).min(part(CODING_IDLE_WINDOW.as_nanos() as u64));
        match u64::try_from(1_i64.saturating_sub(self.balance)) {
            Err(_) | Ok(0) => Duration::ZERO,
            Ok(_) if percent == 0 => Duration::MAX,
            Ok(owed) => Duration::from_nanos((u128::from(owed) * 100).div_ceil(u128::from(percent)) as u64),
        }
    }

    pub(crate) fn spend(&mut self, nanos: u64) {
        self.balance = self.balance.saturating_sub_unsigned(nanos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const WINDOW: u64 = CODING_IDLE_WINDOW.as_nanos() as u64;

    fn at(nanos: u64) -> Moment {
        Moment { nanos }
    }

    #[test]
    fn a_share_of_one_core_is_had_and_no_more() {
        for percent in [1, 25, 100] {
            let (mut budget, mut now, mut spent) = (IdleBudget::full(at(0)), 0, 0);
            while now < 100 * WINDOW {
                let pause = budget.due_in(at(now), percent);
                now += pause.as_nanos() as u64;
                assert!(budget.due_in(at(now), percent).is_zero(), "what was said to be due is");
                // Jobs of any length.
                let job = SECOND / 3 + now % SECOND;
                budget.spend(job);
                (now, spent) = (now + job, spent + job);
            }
            let whole = now * u64::from(percent) / 100;
            // One window was there from the start, one job may be owed, and a whole core is never quite used.
            let more = WINDOW * u64::from(percent) / 100 + 2 * SECOND;
            assert!((whole - whole / 50..=whole + more).contains(&spent), "{percent}: {spent} of {whole}");
        }
    }

    #[test]
    fn a_long_rest_earns_no_more_than_a_window() {
        let mut budget = IdleBudget::full(at(0));
        budget.due_in(at(1_000 * WINDOW), 50);
        budget.spend(WINDOW / 2);
        assert!(!budget.due_in(at(1_000 * WINDOW), 50).is_zero());
        assert!(budget.due_in(at(1_000 * WINDOW + 2), 50).is_zero());
    }

    #[test]
    fn without_a_share_nothing_is_ever_due() {
        assert_eq!(IdleBudget::full(at(5)).due_in(at(SECOND), 0), Duration::MAX);
    }

    #[test]
    fn what_a_job_took_too_much_is_paid_by_a_rest() {
        let mut budget = IdleBudget::full(at(0));
        assert!(budget.due_in(at(0), 10).is_zero());
        budget.spend(WINDOW / 10 + SECOND);
        assert_eq!(budget.due_in(at(0), 10).as_secs(), 10);
        assert_eq!(budget.due_in(at(4 * SECOND), 10).as_secs(), 6);
        assert!(budget.due_in(at(11 * SECOND), 10).is_zero());
    }
}
