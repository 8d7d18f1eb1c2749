//! What a thread's users are to do next, and when that was meant to start.
//!
//! Users pull. In a closed loop there is always something to do; in an open one there is when the timetable says so,
//! and a start that finds no idle user waits for the first one, its lateness kept. What starts is a request, or a
//! session whose requests its user then asks for one after another (`sessions`). A user does not know by which pace it
//! lives: it asks here, says what came of it, and hangs up when it is told.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use crate::lab_clock::Nanos;
use crate::limits::END_GRACE;
use crate::pauses::Pauses;
use crate::pick::Pick;
use crate::session_tally::SessionTally;
use crate::sessions::{Sessions, Turn};
use crate::sleepers::Sleepers;
use crate::timetable::Timetable;

/// One request that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Its number in the catalogue.
    pub(crate) request: usize,
    /// When it was meant to start: latency counts from here.
    pub(crate) intended: Nanos,
}

/// What a user does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Ask(Start),
    /// Close the connection, if there is one, and come again.
    HangUp,
    /// There will be no more.
    Leave,
}

#[derive(Debug)]
pub(crate) struct Agenda {
    pace: Pace,
    pick: Pick,
    /// Starts (of requests, or of sessions) that are still to be given out.
    left: u64,
    habits: Habits,
    /// Users that wait for a start, longest first.
    parked: VecDeque<(usize, Waker)>,
    is_parked: Vec<bool>,
    sleepers: Sleepers,
    /// Somebody sleeps until before what the pacer knows.
    must_ring: bool,
}

#[derive(Debug)]
enum Pace {
    AtOnce,
    Timed(Box<Timed>),
}

/// How a user lives between its requests.
#[derive(Debug)]
pub(crate) enum Habits {
    Restless,
    Pausing(Pauses),
    InSessions(Box<Sessions>),
}

/// Two readers of one timetable: what lies between them is due and not taken.
#[derive(Debug)]
struct Timed {
    due: Timetable,
    taken: Timetable,
    backlog: u64,
    /// Starts that may still become due.
    undue: u64,
    /// The end of the run: what would start then or later does not.
    end: Nanos,
}

/// Starts that nobody took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Untaken {
    pub(crate) dropped: u64,
    /// Due so shortly before the end that an idle user might not have been woken yet.
    pub(crate) cut: u64,
}

impl Agenda {
    /// `starts`: how many there are at most, all before `end`.
    pub(crate) fn new(
        timetable: Option<Timetable>,
        pick: Pick,
        habits: Habits,
        starts: u64,
        end: Nanos,
        users: usize,
    ) -> Agenda {
        let pace = match timetable {
            None => Pace::AtOnce,
            Some(due) => Pace::Timed(Box::new(Timed { taken: due.clone(), due, backlog: 0, undue: starts, end })),
        };
        let (parked, is_parked) = (VecDeque::new(), vec![false; users]);
        Agenda { pace, pick, left: starts, habits, parked, is_parked, sleepers: Sleepers::new(users), must_ring: false }
    }

    /// For a user that is ready to ask.
    #[inline]
    pub(crate) fn poll_next(&mut self, now: Nanos, user: usize, cx: &mut Context<'_>) -> Poll<Next> {
        match &mut self.habits {
            Habits::Restless => self.poll_start(now, user, cx).map(|intended| match intended {
                Some(intended) => Next::Ask(Start { request: self.pick.next(), intended }),
                None => Next::Leave,
            }),
            Habits::Pausing(pauses) => {
                let until = pauses.until(user).filter(|_| self.left > 0);
                if let Some(until) = until.filter(|&until| now < until) {
                    return self.sleep(user, until, cx);
                }
                pauses.end(user);
                // There is no timetable with pauses, so this is ready.
                self.poll_start(now, user, cx).map(|intended| match intended {
                    Some(now) => Next::Ask(Start { request: self.pick.next(), intended: until.unwrap_or(now) }),
                    None => Next::Leave,
                })
            }
            Habits::InSessions(_) => self.poll_session(now, user, cx),
        }
    }

    fn poll_session(&mut self, now: Nanos, user: usize, cx: &mut Context<'_>) -> Poll<Next> {
        loop {
            let Habits::InSessions(sessions) = &mut self.habits else {
                unreachable!("asked only where there are some")
            };
            match sessions.turn(user, now) {
                Turn::Ask { intended, request } => {
                    let request = request.map_or_else(|| self.pick.next(), |request| request as usize);
                    return Poll::Ready(Next::Ask(Start { request, intended }));
                }
                Turn::Thinks { until } => return self.sleep(user, until, cx),
                // The answer wakes this user.
                Turn::Waits => return Poll::Pending,
                Turn::Over => return Poll::Ready(Next::HangUp),
                Turn::Free => match self.poll_start(now, user, cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(None) => return Poll::Ready(Next::Leave),
                    Poll::Ready(Some(intended)) => {
                        if let Habits::InSessions(sessions) = &mut self.habits {
                            sessions.begin(user, intended);
                        }
                    }
                },
            }
        }
    }

    /// The moment for which the next start was meant; `None` when there will be no more.
    #[inline]
    fn poll_start(&mut self, now: Nanos, user: usize, cx: &mut Context<'_>) -> Poll<Option<Nanos>> {
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
            if !matches!(self.habits, Habits::InSessions(_)) {
                self.sleepers.wake_all();
            }
        }
        Poll::Ready(Some(intended))
    }

    fn sleep(&mut self, user: usize, until: Nanos, cx: &mut Context<'_>) -> Poll<Next> {
        self.must_ring |= self.sleepers.sleep(user, until, cx);
        Poll::Pending
    }

    /// A request of this user has found its end.
    #[inline]
    pub(crate) fn note_outcome(&mut self, user: usize, good: bool, now: Nanos) {
        match &mut self.habits {
            Habits::Restless => {}
            Habits::Pausing(pauses) => pauses.begin(user, now),
            Habits::InSessions(sessions) => sessions.note_outcome(user, good, now),
        }
    }

    /// Wakes a user for each start that is due, and those whose sleep is over. When to come again; `None`: not before
    /// somebody rings.
    pub(crate) fn release(&mut self, now: Nanos) -> Option<Nanos> {
        self.must_ring = false;
        self.sleepers.wake_until(now);
        let mut due = self.sleepers.earliest();
        if let Pace::Timed(timed) = &mut self.pace {
            timed.release(now);
            for _ in 0..timed.backlog {
                let Some((user, waker)) = self.parked.pop_front() else { break };
                self.is_parked[user] = false;
                waker.wake();
            }
            due = due.into_iter().chain(timed.next()).min();
        }
        due
    }

    /// Must the pacer come at once? True once for each reason.
    #[inline]
    pub(crate) fn take_must_ring(&mut self) -> bool {
        std::mem::take(&mut self.must_ring)
    }

    /// What was due by then and was not taken; nothing is given out any more.
    pub(crate) fn take_untaken(&mut self, now: Nanos) -> Untaken {
        match &mut self.pace {
            Pace::AtOnce => Untaken::default(),
            Pace::Timed(timed) => timed.take_untaken(now),
        }
    }

    /// At the end of the run.
    pub(crate) fn take_sessions(&mut self) -> Option<SessionTally> {
        match std::mem::replace(&mut self.habits, Habits::Restless) {
            Habits::InSessions(sessions) => Some(sessions.into_tally()),
            Habits::Restless | Habits::Pausing(_) => None,
        }
    }
}

impl Timed {
    fn release(&mut self, now: Nanos) {
        while self.next().is_some_and(|next| next <= now) {
            self.due.take();
            self.undue -= 1;
            self.backlog += 1;
        }
    }

    /// The next start that is not due yet.
    #[inline]
    fn next(&self) -> Option<Nanos> {
        Some(self.due.peek()).filter(|&next| self.undue > 0 && next < self.end)
    }

    fn take_untaken(&mut self, now: Nanos) -> Untaken {
        self.release(now);
        let mut untaken = Untaken::default();
        for _ in 0..std::mem::take(&mut self.backlog) {
            let is_cut = self.taken.take().until(now.min(self.end)) < END_GRACE;
            *(if is_cut { &mut untaken.cut } else { &mut untaken.dropped }) += 1;
        }
        untaken
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::script::Script;
    use crate::workload::{Arrivals, RatePlan};

    const NEVER: Nanos = Nanos(u64::MAX);

    fn next(agenda: &mut Agenda, now: u64, user: usize) -> Option<Next> {
        let mut cx = Context::from_waker(Waker::noop());
        match agenda.poll_next(Nanos(now), user, &mut cx) {
            Poll::Pending => None,
            Poll::Ready(next) => Some(next),
        }
    }

    fn take(agenda: &mut Agenda, now: u64) -> Option<Option<u64>> {
        next(agenda, now, 0).map(|next| match next {
            Next::Ask(start) => Some(start.intended.0),
            Next::HangUp | Next::Leave => None,
        })
    }

    fn closed(habits: Habits, starts: u64, users: usize) -> Agenda {
        Agenda::new(None, Pick::only(), habits, starts, NEVER, users)
    }

    /// A start each 10 ns from 100 on.
    fn timed(habits: Habits, starts: u64) -> Agenda {
        let plan = RatePlan::steady(1e9 / 10.0, Arrivals::Constant);
        Agenda::new(Some(Timetable::new(Nanos(100), &plan, (0, 1), 0)), Pick::only(), habits, starts, NEVER, 1)
    }

    #[test]
    fn a_closed_loop_has_always_something_to_do_until_all_is_given_out() {
        let mut agenda = closed(Habits::Restless, 2, 1);
        assert_eq!(
            [take(&mut agenda, 5), take(&mut agenda, 9), take(&mut agenda, 9)],
            [Some(Some(5)), Some(Some(9)), Some(None)]
        );
        assert_eq!((agenda.release(Nanos(10)), agenda.take_untaken(Nanos(10))), (None, Untaken::default()));
    }

    #[test]
    fn a_late_start_keeps_the_moment_it_was_meant_for() {
        let mut agenda = timed(Habits::Restless, 4);
        assert_eq!(take(&mut agenda, 99), None, "nothing is due yet");
        assert_eq!(agenda.release(Nanos(99)), Some(Nanos(100)));
        assert_eq!(take(&mut agenda, 100), Some(Some(100)));
        // A stall: two more were due meanwhile.
        assert_eq!(agenda.release(Nanos(125)), Some(Nanos(130)));
        assert_eq!(
            [take(&mut agenda, 126), take(&mut agenda, 127), take(&mut agenda, 128)],
            [Some(Some(110)), Some(Some(120)), None]
        );
        assert_eq!(take(&mut agenda, 1_000), Some(Some(130)));
        assert_eq!((take(&mut agenda, 1_000), agenda.release(Nanos(1_000))), (Some(None), None));
    }

    #[test]
    fn what_nobody_took_is_dropped_unless_it_was_due_at_the_very_end() {
        let plan = RatePlan::steady(100.0, Arrivals::Constant);
        let second = 1_000_000_000;
        let untaken = |end: u64, now: u64| {
            let table = Timetable::new(Nanos(0), &plan, (0, 1), 0);
            Agenda::new(Some(table), Pick::only(), Habits::Restless, u64::MAX, Nanos(end), 1).take_untaken(Nanos(now))
        };
        // What would start at the end or later was never due, however late the end is noticed.
        assert_eq!(untaken(second, second), Untaken { dropped: 100, cut: 0 });
        assert_eq!(untaken(second, second * 2), Untaken { dropped: 100, cut: 0 });
        assert_eq!(untaken(second + 1, second + 1), Untaken { dropped: 100, cut: 1 });
        // Told to stop before the end.
        assert_eq!(untaken(u64::MAX, second / 2), Untaken { dropped: 50, cut: 1 });
    }

    #[test]
    fn users_of_a_ramp_begin_one_after_another() {
        let pauses = Pauses::new(Nanos(1_000), Duration::from_nanos(100), Duration::ZERO, (0, 1), 2, 0);
        let mut agenda = closed(Habits::Pausing(pauses), 3, 2);
        let asks = |intended| Some(Next::Ask(Start { request: 0, intended: Nanos(intended) }));
        assert_eq!((next(&mut agenda, 1_007, 0), next(&mut agenda, 1_007, 1)), (asks(1_000), None));
        assert!(agenda.take_must_ring() && !agenda.take_must_ring());
        assert_eq!(agenda.release(Nanos(1_007)), Some(Nanos(1_050)));
        assert_eq!(agenda.release(Nanos(1_051)), None);
        assert_eq!(next(&mut agenda, 1_051, 1), asks(1_050));
        // From here on it is a closed loop like any other.
        assert_eq!((next(&mut agenda, 1_060, 1), next(&mut agenda, 1_060, 0)), (asks(1_060), Some(Next::Leave)));
    }

    #[test]
    fn who_thinks_when_all_is_given_out_need_not_think_on() {
        let pauses = Pauses::new(Nanos(0), Duration::ZERO, Duration::from_nanos(1_000_000), (0, 1), 2, 0);
        let mut agenda = closed(Habits::Pausing(pauses), 2, 2);
        assert!(next(&mut agenda, 10, 0).is_some());
        agenda.note_outcome(0, true, Nanos(20));
        assert_eq!(next(&mut agenda, 20, 0), None, "it thinks");
        assert!(next(&mut agenda, 20, 1).is_some());
        assert_eq!(agenda.release(Nanos(21)), None, "nobody sleeps any more");
        assert_eq!(next(&mut agenda, 21, 0), Some(Next::Leave));
    }

    #[test]
    fn sessions_start_by_the_timetable_and_think_by_the_pacer() {
        let script = Arc::new(Script::alike(2, 1, Duration::from_nanos(5)));
        let mut agenda = timed(Habits::InSessions(Box::new(Sessions::new(script, 1, (0, 1), Nanos(100)))), 2);
        let ask = |intended| Some(Next::Ask(Start { request: 0, intended: Nanos(intended) }));
        assert_eq!(next(&mut agenda, 99, 0), None);
        assert_eq!(next(&mut agenda, 101, 0), ask(100));
        agenda.note_outcome(0, true, Nanos(102));
        assert_eq!((next(&mut agenda, 102, 0), agenda.take_must_ring()), (None, true));
        assert_eq!(agenda.release(Nanos(103)), Some(Nanos(107)));
        assert_eq!(next(&mut agenda, 107, 0), ask(107));
        agenda.note_outcome(0, true, Nanos(120));
        assert_eq!(next(&mut agenda, 121, 0), Some(Next::HangUp));
        // The second session was due at 110, and no user was free.
        assert_eq!(next(&mut agenda, 122, 0), ask(110));
        agenda.note_outcome(0, false, Nanos(125));
        assert_eq!([next(&mut agenda, 125, 0), next(&mut agenda, 125, 0)], [Some(Next::HangUp), Some(Next::Leave)]);
        let sessions = agenda.take_sessions().unwrap();
        assert_eq!((sessions.begun, sessions.completed, sessions.failed), (2, 1, 1));
    }
}
