//! Whether every worker still goes round: each is asked through its mailbox, and answers with the number of the question. For who has
//! to know that a thread is stuck although the process lives, such as a service manager with a watchdog.

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) struct Pulse {
    asked: AtomicU64,
    /// The last question that each worker has answered.
    answered: Vec<AtomicU64>,
}

impl Pulse {
    pub(crate) fn new(workers: usize) -> Pulse {
        Pulse { asked: AtomicU64::new(0), answered: (0..workers).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The number of the next question, unless the last one is open with somebody: the first such worker.
    pub(crate) fn next_question(&self) -> Result<u64, usize> {
        let asked = self.asked.load(Ordering::Acquire);
        match self.answered.iter().position(|answered| answered.load(Ordering::Acquire) < asked) {
            Some(silent) => Err(silent),
            None => Ok(self.asked.fetch_add(1, Ordering::AcqRel) + 1),
        }
    }

    /// Said by a worker itself.
    pub(crate) fn answer(&self, worker: usize, question: u64) {
        self.answered[worker].fetch_max(question, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_asked_again_while_one_is_silent() {
        let pulse = Pulse::new(2);
        assert_eq!(pulse.next_question(), Ok(1));
        assert_eq!(pulse.next_question(), Err(0));
        pulse.answer(0, 1);
        assert_eq!(pulse.next_question(), Err(1));
        assert_eq!(pulse.next_question(), Err(1));
        pulse.answer(1, 1);
        assert_eq!(pulse.next_question(), Ok(2));
        // A late answer to an older question is none to this one.
        pulse.answer(0, 1);
        pulse.answer(1, 2);
        assert_eq!(pulse.next_question(), Err(0));
        pulse.answer(0, 2);
        assert_eq!(pulse.next_question(), Ok(3));
    }
}
