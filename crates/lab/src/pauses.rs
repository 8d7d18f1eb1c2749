//! The pauses of users in a closed loop: until the ramp has come to them, and between an answer and the next request.
//!
//! A pause is drawn evenly from nothing to the longest, as siege draws its delay. Moments come as arguments.

use std::time::Duration;

use crate::lab_clock::Nanos;

#[derive(Debug)]
pub(crate) struct Pauses {
    /// By user: until when it rests. Taken with the request that was meant to start then.
    until: Vec<Option<Nanos>>,
    think_nanos_max: u64,
    dice: fastrand::Rng,
}

impl Pauses {
    /// `users`: of this thread. Those of all threads take turns in the ramp.
    pub(crate) fn new(
        begun: Nanos,
        ramp: Duration,
        think: Duration,
        (thread, threads): (usize, usize),
        users: usize,
        seed: u64,
    ) -> Pauses {
        let all = (users * threads).max(1) as f64;
        let begins = |user: usize| begun.after(ramp.mul_f64((user * threads + thread) as f64 / all));
        Pauses {
            until: (0..users).map(|user| (!ramp.is_zero()).then(|| begins(user))).collect(),
            think_nanos_max: u64::try_from(think.as_nanos()).unwrap_or(u64::MAX),
            dice: fastrand::Rng::with_seed(seed.wrapping_mul(15_485_863).wrapping_add(thread as u64)),
        }
    }

    /// After an answer.
    pub(crate) fn begin(&mut self, user: usize, now: Nanos) {
        if self.think_nanos_max > 0 {
            let nanos = self.dice.u64(..=self.think_nanos_max);
            self.until[user] = Some(now.after(Duration::from_nanos(nanos)));
        }
    }

    pub(crate) fn until(&self, user: usize) -> Option<Nanos> {
        self.until[user]
    }

    /// The user has asked.
    pub(crate) fn end(&mut self, user: usize) {
        self.until[user] = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_is_shared_by_threads() {
        let begins = |thread| {
            let pauses = Pauses::new(Nanos(5), Duration::from_nanos(1_000), Duration::ZERO, (thread, 2), 2, 1);
            [0, 1].map(|user| pauses.until(user).unwrap().0)
        };
        assert_eq!([begins(0), begins(1)], [[5, 505], [255, 755]]);
    }

    #[test]
    fn time_to_think_is_drawn_evenly() {
        let mut pauses = Pauses::new(Nanos(0), Duration::ZERO, Duration::from_secs(1), (0, 1), 1, 1);
        assert_eq!(pauses.until(0), None);
        let drawn: Vec<u64> = (0..10_000)
            .map(|_| {
                pauses.begin(0, Nanos(0));
                pauses.until(0).unwrap().0 / 1_000_000
            })
            .collect();
        let mean = drawn.iter().sum::<u64>() / 10_000;
        assert!((490..510).contains(&mean) && drawn.iter().all(|&ms| ms <= 1_000), "{mean}");
        assert!(drawn.iter().any(|&ms| ms < 10) && drawn.iter().any(|&ms| ms > 990));
    }
}
