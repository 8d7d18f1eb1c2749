//! Which request of the catalogue comes next: one after another, at random, by popularity, or as a log has them.
//!
//! A thread of several has its share: in turn, all threads together go through the catalogue, or the log, once a round.

use std::sync::Arc;

use crate::catalogue::Order;
use crate::replay::Replay;
use crate::zipf_pick::ZipfPick;

#[derive(Debug)]
pub(crate) enum Pick {
    InTurn { next: usize, step: usize, count: usize },
    Random { dice: fastrand::Rng, count: usize },
    Zipf(ZipfPick),
    Halves { dice: fastrand::Rng, half: usize, second_per_million: u32 },
    Logged { log: Arc<Replay>, next: usize, step: usize },
}

impl Pick {
    pub(crate) fn new(order: Order, count: usize, (thread, threads): (usize, usize), seed: u64) -> Pick {
        let dice = fastrand::Rng::with_seed(seed.wrapping_mul(7_919).wrapping_add(thread as u64));
        match order {
            Order::InTurn => Pick::InTurn { next: thread % count, step: threads % count, count },
            Order::Random => Pick::Random { dice, count },
            Order::Zipf { alpha } => Pick::Zipf(ZipfPick::new(count, alpha, dice)),
            Order::Halves { second_per_million } => Pick::Halves { dice, half: count / 2, second_per_million },
        }
    }

    pub(crate) fn of_log(log: Arc<Replay>, (thread, threads): (usize, usize)) -> Pick {
        Pick::Logged { log, next: thread, step: threads }
    }

    /// Of a catalogue of one request.
    #[cfg(test)]
    pub(crate) fn only() -> Pick {
        Pick::new(Order::InTurn, 1, (0, 1), 0)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> usize {
        match self {
            Pick::InTurn { next, step, count } => {
                let picked = *next;
                *next += *step;
                if *next >= *count {
                    *next -= *count;
                }
                picked
            }
            Pick::Random { dice, count } => dice.usize(..*count),
            Pick::Zipf(zipf) => zipf.next(),
            Pick::Halves { dice, half, second_per_million } => {
                let second = dice.u32(..1_000_000) < *second_per_million;
                dice.usize(..*half) + if second { *half } else { 0 }
            }
            Pick::Logged { log, next, step } => {
                let picked = log.requests[*next];
                *next += *step;
                picked as usize
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_turn(thread: usize, threads: usize, count: usize) -> Pick {
        Pick::new(Order::InTurn, count, (thread, threads), 0)
    }

    #[test]
    fn threads_share_one_round_of_the_catalogue() {
        let mut seen: Vec<usize> = Vec::new();
        for thread in 0..3 {
            let mut pick = in_turn(thread, 3, 10);
            // 10 = 4 + 3 + 3 requests.
            seen.extend((0..if thread == 0 { 4 } else { 3 }).map(|_| pick.next()));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
        let mut alone = in_turn(1, 2, 1);
        assert_eq!([alone.next(), alone.next()], [0, 0]);
        let mut random = Pick::new(Order::Random, 5, (0, 1), 3);
        let drawn: std::collections::BTreeSet<usize> = (0..200).map(|_| random.next()).collect();
        assert_eq!(drawn.len(), 5);
    }

    #[test]
    fn halves_have_their_shares() {
        let mut pick = Pick::new(Order::Halves { second_per_million: 100_000 }, 20, (0, 1), 1);
        let drawn: Vec<usize> = (0..10_000).map(|_| pick.next()).collect();
        let second = drawn.iter().filter(|&&request| request >= 10).count();
        assert!((900..1_100).contains(&second) && drawn.iter().all(|&request| request < 20), "{second}");
        for (second_per_million, range) in [(0, 0..10), (1_000_000, 10..20)] {
            let mut pick = Pick::new(Order::Halves { second_per_million }, 20, (0, 1), 1);
            assert!((0..1_000).all(|_| range.contains(&pick.next())));
        }
    }

    #[test]
    fn a_log_is_shared_in_its_order() {
        let log = Arc::new(Replay { offsets_nanos: vec![0; 5], requests: vec![4, 3, 2, 1, 0] });
        let mut picks = [0, 1].map(|thread| Pick::of_log(Arc::clone(&log), (thread, 2)));
        assert_eq!(
            [picks[0].next(), picks[1].next(), picks[0].next(), picks[1].next(), picks[0].next()],
            [4, 3, 2, 1, 0]
        );
    }
}
