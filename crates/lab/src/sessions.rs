//! The sessions that a thread's users sit in: who may ask next, who thinks, whose session is over.
//!
//! A user has at most one session, and a session one connection, opened anew when the server closes it. The rule of
//! httperf: a session fails at its first request that fails, and asks no more; what was under way is still read.
//! Moments come as arguments; when sessions start, and how users sleep, is the agenda's business.

use std::sync::Arc;

use crate::lab_clock::Nanos;
use crate::script::{Burst, Script, Template};
use crate::session_tally::SessionTally;

#[derive(Debug)]
pub(crate) struct Sessions {
    script: Arc<Script>,
    /// The template of the next session; the threads share one round of them.
    next: usize,
    step: usize,
    /// By user.
    seats: Vec<Option<Session>>,
    tally: SessionTally,
    begun: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    template: usize,
    intended: Nanos,
    /// Requests given out: of all, and of the burst that it is in.
    given: u32,
    given_in_burst: u32,
    burst: usize,
    outstanding: u32,
    replies: u32,
    failed: bool,
    /// From when on the next request may be asked, which is when it was meant to be.
    ready: Nanos,
}

/// What a user may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// There is no session: take the next one.
    Free,
    /// Ask; the number in the catalogue, unless the order of the run gives it.
    Ask {
        intended: Nanos,
        request: Option<u32>,
    },
    Thinks {
        until: Nanos,
    },
    /// For answers that are under way.
    Waits,
    /// The session has ended, and its connection with it.
    Over,
}

impl Sessions {
    pub(crate) fn new(script: Arc<Script>, users: usize, (thread, threads): (usize, usize), begun: Nanos) -> Sessions {
        let count = script.templates.len();
        let tally = SessionTally::new(script.calls_max());
        let (next, step) = (thread % count, threads % count);
        Sessions { script, next, step, seats: vec![None; users], tally, begun }
    }

    pub(crate) fn begin(&mut self, user: usize, intended: Nanos) {
        let template = self.next;
        self.next = (self.next + self.step) % self.script.templates.len();
        self.tally.begun += 1;
        self.seats[user] = Some(Session {
            template,
            intended,
            given: 0,
            given_in_burst: 0,
            burst: 0,
            outstanding: 0,
            replies: 0,
            failed: false,
            ready: intended,
        });
    }

    pub(crate) fn turn(&mut self, user: usize, now: Nanos) -> Turn {
        let Some(session) = &mut self.seats[user] else { return Turn::Free };
        let template = &self.script.templates[session.template];
        let burst = match template.bursts.get(session.burst) {
            Some(burst) if !session.failed => burst,
            _ if session.outstanding > 0 => return Turn::Waits,
            _ => {
                self.seats[user] = None;
                return Turn::Over;
            }
        };
        let first_is_out = session.given_in_burst == 1 && session.outstanding > 0;
        if first_is_out || session.given_in_burst == burst.calls {
            return Turn::Waits;
        }
        if now < session.ready {
            return Turn::Thinks { until: session.ready };
        }
        let request = template.requests.get(session.given as usize).copied();
        session.given += 1;
        session.given_in_burst += 1;
        session.outstanding += 1;
        Turn::Ask { intended: session.ready, request }
    }

    /// A request of this user has found its end.
    pub(crate) fn note_outcome(&mut self, user: usize, good: bool, now: Nanos) {
        let Some(session) = &mut self.seats[user] else { return };
        let lived_nanos = now.0.saturating_sub(session.intended.0);
        session.outstanding -= 1;
        if session.failed {
            return;
        }
        if !good {
            session.failed = true;
            self.tally.note_failed(lived_nanos, session.replies);
            return;
        }
        let template = &self.script.templates[session.template];
        session.note_reply(template, now);
        if session.burst == template.bursts.len() {
            self.tally.note_completed(lived_nanos, now.0.saturating_sub(self.begun.0), session.replies);
        }
    }

    pub(crate) fn into_tally(self) -> SessionTally {
        self.tally
    }
}

impl Session {
    fn note_reply(&mut self, template: &Template, now: Nanos) {
        let Burst { calls, think } = template.bursts[self.burst];
        self.replies += 1;
        if self.given_in_burst == calls && self.outstanding == 0 {
            self.burst += 1;
            self.given_in_burst = 0;
            self.ready = now.after(think);
        } else if self.given_in_burst == 1 {
            self.ready = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What each act of one user comes to: `a5` asks at 5, `+7` and `-7` a good and a failed answer at 7.
    #[track_caller]
    fn check(script: &Script, acts: &[(&str, Option<Turn>)]) -> SessionTally {
        let mut sessions = Sessions::new(Arc::new(script.clone()), 1, (0, 1), Nanos(0));
        sessions.begin(0, Nanos(2));
        for (index, (act, expect)) in acts.iter().enumerate() {
            let at = Nanos(act[1..].parse().unwrap());
            match &act[..1] {
                "a" => assert_eq!(Some(sessions.turn(0, at)), *expect, "act {index}, {act}"),
                sign => sessions.note_outcome(0, sign == "+", at),
            }
        }
        sessions.into_tally()
    }

    fn ask(intended: u64) -> Option<Turn> {
        Some(Turn::Ask { intended: Nanos(intended), request: None })
    }

    fn thinks(until: u64) -> Option<Turn> {
        Some(Turn::Thinks { until: Nanos(until) })
    }

    const WAITS: Option<Turn> = Some(Turn::Waits);
    const OVER: Option<Turn> = Some(Turn::Over);
    const FREE: Option<Turn> = Some(Turn::Free);
    const THINK: Duration = Duration::from_nanos(100);

    #[test]
    fn calls_follow_their_answers_and_the_time_to_think() {
        let acts = [
            // Taken late: the first request was meant for the start of the session.
            ("a9", ask(2)),
            ("a9", WAITS),
            ("+20", None),
            ("a20", thinks(120)),
            ("a119", thinks(120)),
            // Woken late: meant for the end of the thinking.
            ("a130", ask(120)),
            ("+140", None),
            ("a141", OVER),
            ("a141", FREE),
        ];
        let tally = check(&Script::alike(2, 1, THINK), &acts);
        assert_eq!((tally.begun, tally.completed, tally.failed, tally.by_replies), (1, 1, 0, vec![0, 0, 1]));
    }

    #[test]
    fn a_burst_is_one_call_and_then_the_rest() {
        let acts = [
            ("a2", ask(2)),
            ("a2", WAITS),
            ("+5", None),
            ("a6", ask(5)),
            ("a6", ask(5)),
            ("a6", WAITS),
            ("+7", None),
            ("a7", WAITS),
            ("+8", None),
            ("a9", thinks(108)),
            ("a108", ask(108)),
            ("+109", None),
            ("a110", OVER),
        ];
        let tally = check(&Script::alike(4, 3, THINK), &acts);
        assert_eq!((tally.completed, tally.by_replies), (1, vec![0, 0, 0, 0, 1]));
    }

    #[test]
    fn a_session_fails_once_and_asks_no_more() {
        let acts = [
            ("a2", ask(2)),
            ("+5", None),
            ("a6", ask(5)),
            ("a6", ask(5)),
            ("-7", None),
            // One is still under way, whatever comes of it.
            ("a8", WAITS),
            ("-9", None),
            ("a9", OVER),
        ];
        let tally = check(&Script::alike(5, 3, THINK), &acts);
        assert_eq!((tally.completed, tally.failed, tally.by_replies), (0, 1, vec![0, 1, 0, 0, 0, 0]));
        let tally = check(&Script::alike(2, 1, THINK), &[("a2", ask(2)), ("a3", WAITS)]);
        assert_eq!((tally.completed, tally.failed, tally.cut()), (0, 0, 1));
    }

    #[test]
    fn threads_share_one_round_of_the_templates() {
        let template = |request| Template { bursts: vec![Burst { calls: 1, think: THINK }], requests: vec![request] };
        let script = Arc::new(Script { templates: (0..3).map(template).collect() });
        let of = |thread| {
            let mut sessions = Sessions::new(Arc::clone(&script), 1, (thread, 2), Nanos(0));
            let mut next = || {
                sessions.begin(0, Nanos(0));
                match sessions.turn(0, Nanos(0)) {
                    Turn::Ask { request, .. } => request,
                    other => panic!("{other:?}"),
                }
            };
            [next(), next(), next()]
        };
        assert_eq!([of(0), of(1)], [[Some(0), Some(2), Some(1)], [Some(1), Some(0), Some(2)]]);
    }
}
