//! When the requests of an open loop are meant to start: a list without an end, made as it is read.
//!
//! Each thread has a share of the whole. A copy gives the same moments again, which is how an agenda knows what is due
//! and what was taken without keeping either. A rate plan is read in two steps: the series says how many starts of the
//! whole run come before one (evenly, or as the dice say), the clock of the plan at which moment so many are over.

use std::sync::Arc;

use crate::lab_clock::Nanos;
use crate::replay::Replay;
use crate::workload::{Arrivals, RatePlan};

#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    begun: Nanos,
    /// From the beginning to the next start; infinite after the last one.
    offset_nanos: f64,
    moments: Moments,
}

#[derive(Clone, Debug)]
enum Moments {
    Planned { series: Series, clock: PlanClock },
    Logged { log: Arc<Replay>, speed: f64, next: usize, step: usize },
}

/// How many starts of all threads come before the next one of this thread.
#[derive(Clone, Debug)]
enum Series {
    /// Counted, not summed up from distances, so that nothing drifts.
    Equal { next: u64, step: u64 },
    /// All threads throw the same dice, and each takes its own of the moments: together they are one series.
    Jitter { before: f64, first: u64, step: u64, dice: fastrand::Rng },
    /// Independent Poisson processes add up to one.
    Exponential { before: f64, mean: f64, dice: fastrand::Rng },
}

/// The moment at which the plan has so many starts behind it.
#[derive(Clone, Debug)]
struct PlanClock {
    per_second: Arc<[f64]>,
    step_seconds: f64,
    /// The rate that is valid, and the starts before it began.
    at: usize,
    before: f64,
}

impl Timetable {
    /// The share of one thread of several.
    pub(crate) fn new(begun: Nanos, plan: &RatePlan, share: (usize, usize), seed: u64) -> Timetable {
        let (thread, threads) = (share.0 as u64, share.1 as u64);
        let series = match plan.arrivals {
            Arrivals::Constant => Series::Equal { next: thread, step: threads },
            Arrivals::Jitter => {
                let dice = fastrand::Rng::with_seed(seed.wrapping_mul(1_000_003));
                Series::Jitter { before: 0.0, first: thread, step: threads, dice }
            }
            Arrivals::Poisson => {
                let dice = fastrand::Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(thread));
                Series::Exponential { before: 0.0, mean: threads as f64, dice }
            }
        };
        let per_second = plan.per_second.clone().into();
        let clock = PlanClock { per_second, step_seconds: plan.step.as_secs_f64(), at: 0, before: 0.0 };
        Timetable::begin(begun, Moments::Planned { series, clock })
    }

    /// The moments of a log, shared out in turn.
    pub(crate) fn of_log(begun: Nanos, log: Arc<Replay>, speed: f64, (thread, threads): (usize, usize)) -> Timetable {
        Timetable::begin(begun, Moments::Logged { log, speed, next: thread, step: threads })
    }

    fn begin(begun: Nanos, moments: Moments) -> Timetable {
        let mut timetable = Timetable { begun, offset_nanos: 0.0, moments };
        timetable.advance();
        timetable
    }

    /// The next start.
    #[inline]
    pub(crate) fn peek(&self) -> Nanos {
        Nanos(self.begun.0.saturating_add(self.offset_nanos as u64))
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Nanos {
        let start = self.peek();
        self.advance();
        start
    }

    #[inline]
    fn advance(&mut self) {
        self.offset_nanos = match &mut self.moments {
            Moments::Planned { series, clock } => clock.nanos_at(series.next()),
            Moments::Logged { log, speed, next, step } => {
                let offset_nanos = log.offset_nanos(*next, *speed);
                *next += *step;
                offset_nanos
            }
        };
    }
}

impl Series {
    #[inline]
    fn next(&mut self) -> f64 {
        match self {
            Series::Equal { next, step } => {
                let before = *next as f64;
                *next += *step;
                before
            }
            Series::Jitter { before, first, step, dice } => {
                for _ in 0..std::mem::replace(first, *step) {
                    *before += 0.9 + 0.2 * dice.f64();
                }
                *before
            }
            Series::Exponential { before, mean, dice } => {
                // 1 - [0, 1) is never 0, whose logarithm would be no time at all.
                *before -= (1.0 - dice.f64()).ln() * *mean;
                *before
            }
        }
    }
}

impl PlanClock {
    /// Asked in the order of time.
    #[inline]
    fn nanos_at(&mut self, starts: f64) -> f64 {
        while self.at + 1 < self.per_second.len() {
            let after = self.before + self.per_second[self.at] * self.step_seconds;
            if starts < after {
                break;
            }
            self.before = after;
            self.at += 1;
        }
        let begun = if self.at == 0 { 0.0 } else { self.at as f64 * self.step_seconds * 1e9 };
        begun + (starts - self.before) * 1e9 / self.per_second[self.at]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn first(n: usize, mut timetable: Timetable) -> Vec<u64> {
        (0..n).map(|_| timetable.take().0).collect()
    }

    fn of(rate: f64, arrivals: Arrivals, share: (usize, usize)) -> Timetable {
        Timetable::new(Nanos(7), &RatePlan::steady(rate, arrivals), share, 42)
    }

    #[test]
    fn equal_distances_interleave_over_threads() {
        assert_eq!(first(3, of(1000.0, Arrivals::Constant, (0, 2))), [7, 2_000_007, 4_000_007]);
        assert_eq!(first(3, of(1000.0, Arrivals::Constant, (1, 2))), [1_000_007, 3_000_007, 5_000_007]);
    }

    #[test]
    fn poisson_distances_have_the_mean_and_the_spread_of_their_kind() {
        let table = || of(1000.0, Arrivals::Poisson, (0, 1));
        let starts = first(20_000, table());
        assert_eq!(starts, first(20_000, table()), "the same seed gives the same starts");
        let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let spread = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((0.97..1.03).contains(&mean), "mean {mean} ms");
        assert!((0.95..1.05).contains(&(spread / mean)), "an exponential's spread is its mean: {spread} of {mean}");
    }

    #[test]
    fn jitter_is_one_series_however_many_threads_share_it() {
        let alone = first(3_000, of(1000.0, Arrivals::Jitter, (0, 1)));
        let mut shared: Vec<u64> = (0..3).flat_map(|t| first(1_000, of(1000.0, Arrivals::Jitter, (t, 3)))).collect();
        shared.sort_unstable();
        assert_eq!(alone, shared);
        let gaps = || alone.windows(2).map(|pair| pair[1] - pair[0]);
        let (least, most) = (gaps().min().unwrap(), gaps().max().unwrap());
        assert!((899_990..910_000).contains(&least) && (1_090_000..1_100_010).contains(&most), "{least} to {most}");
        let mean = (alone[2_999] - alone[0]) / 2_999;
        assert!((997_000..1_003_000).contains(&mean), "{mean}");
    }

    #[test]
    fn rates_follow_one_another_and_the_last_one_stays() {
        let plan = |per_second: &[f64], arrivals| RatePlan {
            per_second: per_second.to_vec(),
            step: Duration::from_secs(1),
            arrivals,
        };
        let table = |per_second: &[f64]| Timetable::new(Nanos(0), &plan(per_second, Arrivals::Constant), (0, 1), 1);
        let millis: Vec<u64> = first(9, table(&[2.0, 4.0])).iter().map(|nanos| nanos / 1_000_000).collect();
        assert_eq!(millis, [0, 500, 1000, 1250, 1500, 1750, 2000, 2250, 2500]);
        // A rate of nothing is a pause.
        let millis: Vec<u64> = first(4, table(&[2.0, 0.0, 4.0])).iter().map(|nanos| nanos / 1_000_000).collect();
        assert_eq!(millis, [0, 500, 2000, 2250]);
        // Half a start is left over by the first step, and belongs to the second.
        let millis: Vec<u64> = first(4, table(&[1.5, 1.0])).iter().map(|nanos| nanos / 1_000_000).collect();
        assert_eq!(millis, [0, 666, 1500, 2500]);
        let random = Timetable::new(Nanos(0), &plan(&[1000.0, 5000.0], Arrivals::Poisson), (0, 1), 1);
        let starts = first(20_000, random);
        let within = |from: u64, to: u64| starts.iter().filter(|&&s| (from..to).contains(&(s / 1_000_000))).count();
        assert!((900..1100).contains(&within(0, 1000)), "{}", within(0, 1000));
        assert!((4800..5200).contains(&within(1000, 2000)), "{}", within(1000, 2000));
    }

    #[test]
    fn a_log_keeps_its_gaps_times_the_speed_and_ends() {
        let log = Arc::new(Replay { offsets_nanos: vec![0, 500, 3_000], requests: vec![0, 1, 0] });
        let of = |speed, share| Timetable::of_log(Nanos(100), Arc::clone(&log), speed, share);
        assert_eq!(first(4, of(1.0, (0, 1))), [100, 600, 3_100, u64::MAX]);
        assert_eq!(first(3, of(2.0, (0, 1))), [100, 350, 1_600]);
        assert_eq!(first(3, of(1.0, (0, 2))), [100, 3_100, u64::MAX]);
        assert_eq!(first(2, of(0.5, (1, 2))), [1_100, u64::MAX]);
    }
}
