//! What became of the sessions of a run.
//!
//! A session begins when a user takes it and ends with its last answer, or with its first request that fails. Times
//! count from its intended start, so a session that waited for a user shows it.

use hdrhistogram::Histogram;

use crate::limits::{SESSION_DIGITS, SESSION_MILLIS_MAX};

#[derive(Clone, Debug)]
pub struct SessionTally {
    pub begun: u64,
    /// All their requests were answered well.
    pub completed: u64,
    /// Ended at their first request that failed.
    pub failed: u64,
    /// Milliseconds from the intended start to the last answer of the completed …
    pub lifetime_millis: Histogram<u64>,
    /// … and to the first failure of the failed ones.
    pub failtime_millis: Histogram<u64>,
    /// Sessions that have ended, by how many good answers they had: 0 to the calls of the longest one.
    pub by_replies: Vec<u64>,
    /// Sessions completed in each second of the run.
    pub completed_by_second: Vec<u64>,
}

impl SessionTally {
    pub(crate) fn new(calls_max: u32) -> SessionTally {
        let millis = || {
            Histogram::new_with_bounds(1, SESSION_MILLIS_MAX, SESSION_DIGITS)
                .expect("the bounds are constants that fit")
        };
        SessionTally {
            begun: 0,
            completed: 0,
            failed: 0,
            lifetime_millis: millis(),
            failtime_millis: millis(),
            by_replies: vec![0; calls_max as usize + 1],
            completed_by_second: Vec::new(),
        }
    }

    /// Begun, and neither completed nor failed when the run ended.
    pub fn cut(&self) -> u64 {
        self.begun - self.completed - self.failed
    }

    /// `nanos`: from the intended start; `since_begin_nanos`: of the run.
    pub(crate) fn note_completed(&mut self, nanos: u64, since_begin_nanos: u64, replies: u32) {
        self.completed += 1;
        self.lifetime_millis.saturating_record(nanos / 1_000_000);
        self.by_replies[replies as usize] += 1;
        let second = (since_begin_nanos / 1_000_000_000) as usize;
        if self.completed_by_second.len() <= second {
            self.completed_by_second.resize(second + 1, 0);
        }
        self.completed_by_second[second] += 1;
    }

    pub(crate) fn note_failed(&mut self, nanos: u64, replies: u32) {
        self.failed += 1;
        self.failtime_millis.saturating_record(nanos / 1_000_000);
        self.by_replies[replies as usize] += 1;
    }

    pub(crate) fn add(&mut self, other: &SessionTally) {
        self.begun += other.begun;
        self.completed += other.completed;
        self.failed += other.failed;
        self.lifetime_millis.add(&other.lifetime_millis).expect("all sessions have the same bounds");
        self.failtime_millis.add(&other.failtime_millis).expect("all sessions have the same bounds");
        add_up(&mut self.by_replies, &other.by_replies);
        add_up(&mut self.completed_by_second, &other.completed_by_second);
    }
}

fn add_up(mine: &mut Vec<u64>, theirs: &[u64]) {
    mine.resize(mine.len().max(theirs.len()), 0);
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_threads_add_up() {
        let (mut one, mut two) = (SessionTally::new(3), SessionTally::new(3));
        (one.begun, two.begun) = (2, 3);
        one.note_completed(2_000_000_000, 2_500_000_000, 3);
        two.note_completed(4_000_000_000, 4_000_000_000, 3);
        two.note_failed(1_000_000, 0);
        one.add(&two);
        assert_eq!((one.begun, one.completed, one.failed, one.cut()), (5, 2, 1, 2));
        assert_eq!((one.by_replies, one.completed_by_second), (vec![1, 0, 0, 2], vec![0, 0, 1, 0, 1]));
        assert_eq!((one.lifetime_millis.mean().round(), one.failtime_millis.max()), (3_001.0, 1));
    }
}
