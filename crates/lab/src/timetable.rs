//! When the requests of an open loop are meant to start: a list without an end, made as it is read.
//!
//! Each thread has a share of the whole rate. A copy gives the same moments again, which is how an agenda knows what
//! is due and what was taken without keeping either. Log replay will be another source of moments here.

use crate::lab_clock::Nanos;
use crate::workload::Arrivals;

#[derive(Clone, Debug)]
pub(crate) struct Timetable {
    begun: Nanos,
    /// From the beginning to the next start.
    offset_nanos: f64,
    distances: Distances,
}

#[derive(Clone, Debug)]
enum Distances {
    /// The `n`th start of this thread is at `first + n * gap`; multiplied, not summed up, so that nothing drifts.
    Equal {
        first_nanos: f64,
        gap_nanos: f64,
        n: u64,
    },
    Exponential {
        mean_nanos: f64,
        dice: fastrand::Rng,
    },
}

impl Timetable {
    /// The share of one thread of several. Equal distances interleave; independent Poisson processes add up to one.
    pub(crate) fn new(
        begun: Nanos,
        per_second: f64,
        arrivals: Arrivals,
        share: (usize, usize),
        seed: u64,
    ) -> Timetable {
        let (thread, threads) = share;
        let gap_all_nanos = 1e9 / per_second;
        let gap_nanos = gap_all_nanos * threads as f64;
        let distances = match arrivals {
            Arrivals::Constant => Distances::Equal { first_nanos: gap_all_nanos * thread as f64, gap_nanos, n: 0 },
            Arrivals::Poisson => Distances::Exponential {
                mean_nanos: gap_nanos,
                dice: fastrand::Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(thread as u64)),
            },
        };
        let mut timetable = Timetable { begun, offset_nanos: 0.0, distances };
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
        match &mut self.distances {
            Distances::Equal { first_nanos, gap_nanos, n } => {
                self.offset_nanos = *first_nanos + *gap_nanos * *n as f64;
                *n += 1;
            }
            // 1 - [0, 1) is never 0, whose logarithm would be no time at all.
            Distances::Exponential { mean_nanos, dice } => self.offset_nanos -= (1.0 - dice.f64()).ln() * *mean_nanos,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(n: usize, mut timetable: Timetable) -> Vec<u64> {
        (0..n).map(|_| timetable.take().0).collect()
    }

    #[test]
    fn equal_distances_interleave_over_threads() {
        let of = |thread| first(3, Timetable::new(Nanos(7), 1000.0, Arrivals::Constant, (thread, 2), 1));
        assert_eq!(of(0), [7, 2_000_007, 4_000_007]);
        assert_eq!(of(1), [1_000_007, 3_000_007, 5_000_007]);
    }

    #[test]
    fn poisson_distances_have_the_mean_and_the_spread_of_their_kind() {
        let table = || Timetable::new(Nanos(0), 1000.0, Arrivals::Poisson, (0, 1), 42);
        let starts = first(20_000, table());
        assert_eq!(starts, first(20_000, table()), "the same seed gives the same starts");
        let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let spread = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((0.97..1.03).contains(&mean), "mean {mean} ms");
        assert!((0.95..1.05).contains(&(spread / mean)), "an exponential's spread is its mean: {spread} of {mean}");
    }
}
