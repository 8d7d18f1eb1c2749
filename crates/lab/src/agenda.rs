//! What a thread's users are to do next, and when that was meant to start.
//!
//! Users pull. In a closed loop there is always something to do; in an open one there is when the timetable says so,
//! and a start that finds no idle user waits for the first one, its lateness kept. Sessions with think time, and
//! the replay of a log, are further paces here; a user does not know which one it lives by.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use crate::catalogue::Order;
use crate::lab_clock::Nanos;
use crate::timetable::Timetable;

/// One request that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Its number in the catalogue.
    pub(crate) request: usize,
    /// When it was meant to start: latency counts from here.
    pub(crate) intended: Nanos,
}

#[derive(Debug)]
pub(crate) struct Agenda {
    pace: Pace,
    pick: Pick,
    /// Starts that are still to be given out.
    left: u64,
    /// Users that wait for a start, longest first.
    parked: VecDeque<(usize, Waker)>,
    is_parked: Vec<bool>,
}

#[derive(Debug)]
pub(crate) enum Pace {
    AtOnce,
    Timed(Timed),
}

/// Two readers of one timetable: what lies between them is due and not taken.
#[derive(Debug)]
pub(crate) struct Timed {
    due: Timetable,
    taken: Timetable,
    backlog: u64,
    /// Starts that may still become due.
    undue: u64,
}

#[derive(Debug)]
pub(crate) enum Pick {
    InTurn { next: usize, step: usize, count: usize },
    Random { dice: fastrand::Rng, count: usize },
}

impl Agenda {
    /// `starts`: how many there are at most.
    pub(crate) fn new(timetable: Option<Timetable>, pick: Pick, starts: u64, users: usize) -> Agenda {
        let pace = match timetable {
            None => Pace::AtOnce,
            Some(due) => Pace::Timed(Timed { taken: due.clone(), due, backlog: 0, undue: starts }),
        };
        Agenda { pace, pick, left: starts, parked: VecDeque::new(), is_parked: vec![false; users] }
    }

    /// The next start, for a user that is ready for one; `None` when there will be no more.
    #[inline]
    pub(crate) fn poll_start(&mut self, now: Nanos, user: usize, cx: &mut Context<'_>) -> Poll<Option<Start>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let intended = match &mut self.pace {
            Pace::AtOnce => now,
            Pace::Timed(timed) => match timed.take(now) {
                Some(intended) => intended,
                None => {
                    if !std::mem::replace(&mut self.is_parked[user], true) {
                        self.parked.push_back((user, cx.waker().clone()));
                    }
                    return Poll::Pending;
                }
            },
        };
        self.left -= 1;
        if self.left == 0 {
            self.parked.drain(..).for_each(|(_, waker)| waker.wake());
        }
        Poll::Ready(Some(Start { request: self.pick.next(), intended }))
    }

    /// Wakes a user for each start that is due. When to come again; `None`: never.
    pub(crate) fn release(&mut self, now: Nanos) -> Option<Nanos> {
        let Pace::Timed(timed) = &mut self.pace else { return None };
        timed.release(now);
        for _ in 0..timed.backlog {
            let Some((user, waker)) = self.parked.pop_front() else { break };
            self.is_parked[user] = false;
            waker.wake();
        }
        (timed.undue > 0).then(|| timed.due.peek())
    }

    /// Starts that were due by then and that nobody took.
    pub(crate) fn backlog(&mut self, now: Nanos) -> u64 {
        match &mut self.pace {
            Pace::AtOnce => 0,
            Pace::Timed(timed) => {
                timed.release(now);
                timed.backlog
            }
        }
    }
}

impl Timed {
    fn release(&mut self, now: Nanos) {
        while self.undue > 0 && self.due.peek() <= now {
            self.due.take();
            self.undue -= 1;
            self.backlog += 1;
        }
    }

    fn take(&mut self, now: Nanos) -> Option<Nanos> {
        self.release(now);
        if self.backlog == 0 {
            return None;
        }
        self.backlog -= 1;
        Some(self.taken.take())
    }
}

impl Pick {
    /// The share of one thread of several: in turn, all threads together go through the catalogue once a round.
    pub(crate) fn new(order: Order, count: usize, (thread, threads): (usize, usize), seed: u64) -> Pick {
        match order {
            Order::InTurn => Pick::InTurn { next: thread % count, step: threads % count, count },
            Order::Random => {
                let dice = fastrand::Rng::with_seed(seed.wrapping_mul(7_919).wrapping_add(thread as u64));
                Pick::Random { dice, count }
            }
        }
    }

    #[inline]
    fn next(&mut self) -> usize {
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Arrivals;

    fn take(agenda: &mut Agenda, now: u64) -> Option<Option<u64>> {
        let mut cx = Context::from_waker(Waker::noop());
        match agenda.poll_start(Nanos(now), 0, &mut cx) {
            Poll::Pending => None,
            Poll::Ready(start) => Some(start.map(|start| start.intended.0)),
        }
    }

    fn in_turn(thread: usize, threads: usize, count: usize) -> Pick {
        Pick::new(Order::InTurn, count, (thread, threads), 0)
    }

    #[test]
    fn a_closed_loop_has_always_something_to_do_until_all_is_given_out() {
        let mut agenda = Agenda::new(None, in_turn(0, 1, 1), 2, 1);
        assert_eq!(
            [take(&mut agenda, 5), take(&mut agenda, 9), take(&mut agenda, 9)],
            [Some(Some(5)), Some(Some(9)), Some(None)]
        );
        assert_eq!((agenda.release(Nanos(10)), agenda.backlog(Nanos(10))), (None, 0));
    }

    #[test]
    fn a_late_start_keeps_the_moment_it_was_meant_for() {
        let table = Timetable::new(Nanos(100), 1e9 / 10.0, Arrivals::Constant, (0, 1), 0);
        let mut agenda = Agenda::new(Some(table), in_turn(0, 1, 1), 4, 1);
        assert_eq!(take(&mut agenda, 99), None, "nothing is due yet");
        assert_eq!(agenda.release(Nanos(99)), Some(Nanos(100)));
        assert_eq!(take(&mut agenda, 100), Some(Some(100)));
        // A stall: two more were due meanwhile.
        assert_eq!(agenda.release(Nanos(125)), Some(Nanos(130)));
        assert_eq!(agenda.backlog(Nanos(125)), 2);
        assert_eq!(
            [take(&mut agenda, 126), take(&mut agenda, 127), take(&mut agenda, 128)],
            [Some(Some(110)), Some(Some(120)), None]
        );
        assert_eq!(take(&mut agenda, 1_000), Some(Some(130)));
        assert_eq!((take(&mut agenda, 1_000), agenda.release(Nanos(1_000))), (Some(None), None));
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
}
