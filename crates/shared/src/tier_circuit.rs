//! A server that fails again and again is left alone for a while: what is asked meanwhile goes to the origin at once.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::limits::{ALONE_MAX, ALONE_MIN, FAILURES_MAX, TOLD_AGAIN};

#[derive(Default)]
pub struct TierCircuit(Mutex<State>);

/// May the server be asked?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    Open,
    Shut,
    /// This one question, on a connection of its own: nobody knows what became of the one before.
    Trial,
}

#[derive(Default)]
struct State {
    failures: u32,
    /// How long it is left alone the next time.
    alone: Option<Duration>,
    alone_until: Option<Instant>,
    trouble: Option<String>,
    told: Option<Instant>,
}

impl TierCircuit {
    /// After a while one question is let through.
    pub fn passage(&self, now: Instant) -> Passage {
        let mut state = self.0.lock();
        match state.alone_until {
            Some(until) if now < until => Passage::Shut,
            Some(_) => {
                // Whoever comes behind this one waits for what becomes of it.
                state.alone_until = Some(now + state.alone.unwrap_or(ALONE_MIN));
                Passage::Trial
            }
            None => Passage::Open,
        }
    }

    pub fn answered(&self) {
        let mut state = self.0.lock();
        if state.failures > 0 {
            let told = state.told;
            *state = State { told, ..State::default() };
        }
    }

    /// The sentence is to be told now, if it says so.
    pub fn failed(&self, why: &str, now: Instant) -> bool {
        let mut state = self.0.lock();
        state.failures += 1;
        if state.failures < FAILURES_MAX {
            return false;
        }
        let alone = state.alone.map_or(ALONE_MIN, |alone| (alone * 2).min(ALONE_MAX));
        (state.alone, state.alone_until, state.trouble) = (Some(alone), Some(now + alone), Some(why.to_owned()));
        let is_told = state.told.is_none_or(|told| now.duration_since(told) >= TOLD_AGAIN);
        if is_told {
            state.told = Some(now);
        }
        is_told
    }

    /// Why it is left alone.
    pub fn trouble(&self) -> Option<String> {
        self.0.lock().trouble.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use Passage::{Open, Shut, Trial};

    #[test]
    fn who_fails_in_a_row_is_left_alone_and_tried_once_after_a_while() {
        let (circuit, start) = (TierCircuit::default(), Instant::now());
        assert!(!circuit.failed("a", start) && !circuit.failed("a", start));
        assert_eq!(circuit.passage(start), Open);
        assert!(circuit.failed("refused", start), "it is told once");
        assert_eq!((circuit.trouble().as_deref(), circuit.passage(start)), (Some("refused"), Shut));
        let later = start + ALONE_MIN;
        assert_eq!([circuit.passage(later), circuit.passage(later)], [Trial, Shut]);
        assert!(!circuit.failed("refused", later), "it was told a moment ago");
        assert_eq!(circuit.passage(later + ALONE_MIN), Shut, "twice as long");
        assert_eq!(circuit.passage(later + 2 * ALONE_MIN), Trial);
        circuit.answered();
        assert_eq!((circuit.passage(later), circuit.trouble()), (Open, None));
    }

    #[test]
    fn one_that_answers_between_is_not_left_alone() {
        let (circuit, start) = (TierCircuit::default(), Instant::now());
        for _ in 0..10 {
            assert!(!circuit.failed("slow", start));
            circuit.answered();
        }
        assert_eq!(circuit.passage(start), Open);
    }
}
