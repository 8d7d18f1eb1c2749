//! What soft purges leave of a stored response's life: bounds that only get tighter, so that orders which come at once need no lock.

use rules::Facts;
use store::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::by_program::ByProgram;

/// Bounds on what is kept. Whoever reads them has seen the liveness that was written behind them.
#[derive(Debug)]
pub(crate) struct ShortenedLife {
    initial_age_ms_min: AtomicU64,
    lifetime_ms_max: AtomicU64,
    stale_while_revalidate_ms_max: AtomicU64,
    keep_ms_max: AtomicU64,
}

impl Default for ShortenedLife {
    fn default() -> ShortenedLife {
        let unbounded = || AtomicU64::new(u64::MAX);
        ShortenedLife {
            initial_age_ms_min: AtomicU64::new(0),
            lifetime_ms_max: unbounded(),
            stale_while_revalidate_ms_max: unbounded(),
            keep_ms_max: unbounded(),
        }
    }
}

impl ShortenedLife {
    /// It has no more than these facts allow from now on, and is kept no longer than so behind that, if that is said.
    pub fn bound(&self, facts: &Facts, keep_ms: Option<u64>) {
        self.initial_age_ms_min.fetch_max(facts.initial_age_ms, Relaxed);
        self.lifetime_ms_max.fetch_min(facts.lifetime_ms, Relaxed);
        self.stale_while_revalidate_ms_max.fetch_min(facts.stale_while_revalidate_ms, Relaxed);
        self.keep_ms_max.fetch_min(keep_ms.unwrap_or(u64::MAX), Relaxed);
    }

    /// What is left of what it came with.
    pub fn of(&self, (facts, policy): (Facts, Option<ByProgram>)) -> (Facts, Option<ByProgram>) {
        let bounded = |ms: u64, max: &AtomicU64| ms.min(max.load(Relaxed));
        let left = Facts {
            initial_age_ms: facts.initial_age_ms.max(self.initial_age_ms_min.load(Relaxed)),
            lifetime_ms: bounded(facts.lifetime_ms, &self.lifetime_ms_max),
            stale_while_revalidate_ms: bounded(facts.stale_while_revalidate_ms, &self.stale_while_revalidate_ms_max),
            ..facts
        };
        let kept = |policy: ByProgram| ByProgram { keep_ms: bounded(policy.keep_ms, &self.keep_ms_max), ..policy };
        (left, policy.map(kept))
    }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    #[test]
    fn bounds_only_get_tighter_in_whatever_order_they_come() {
        let own = Facts { lifetime_ms: 100, stale_while_revalidate_ms: 50, ..Facts::default() };
        let policy = Some(ByProgram { keep_ms: 40, mark: None });
        let bounds = [
            (Facts { initial_age_ms: 1, lifetime_ms: 30, ..own }, None),
            (Facts { lifetime_ms: 60, stale_while_revalidate_ms: 5, ..own }, Some(20)),
        ];
        for order in [[0, 1], [1, 0]] {
            let life = ShortenedLife::default();
            assert_eq!(life.of((own, policy)), (own, policy));
            order.iter().for_each(|&at| life.bound(&bounds[at].0, bounds[at].1));
            let left = Facts { initial_age_ms: 1, lifetime_ms: 30, stale_while_revalidate_ms: 5, ..own };
            assert_eq!(life.of((own, policy)), (left, Some(ByProgram { keep_ms: 20, mark: None })));
        }
    }
}
