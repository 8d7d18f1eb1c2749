//! Places in the fleet's log beside numbers of this node's own invalidation sequence: by which a node judges what another one fetched.
//!
//! A response that was fetched when its node stood at a place in the log is older than each order behind that place, whoever carries it out.
//! This node has carried those out, and whatever it purged by itself since it came to that place, under greater numbers than the one that it
//! had then: under that number the response counts as fetched here.

use std::collections::VecDeque;

use store::sync::Mutex;

use crate::limits::LOG_MARKS_MAX;

/// A place in the log: in one life of it, later ones are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceInLog {
    /// Of the log's life; 0: it is not known.
    pub epoch: u64,
    pub position: u64,
}

/// Of a place in no log.
const NO_EPOCH: u64 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogMark {
    position: u64,
    /// All orders up to that position were in force here.
    number: u64,
}

#[derive(Debug, Default)]
pub(crate) struct LogMarks(Mutex<MarkRow>);

/// In the order of both.
#[derive(Debug, Default)]
struct MarkRow {
    epoch: u64,
    marks: VecDeque<LogMark>,
}

impl LogMarks {
    /// All orders up to there are in force under this number. `is_followed`: and before that all up to the place before it.
    pub fn reach(&self, at: PlaceInLog, number: u64, is_followed: bool) {
        let mut inner = self.0.lock();
        if !is_followed || inner.epoch != at.epoch {
            *inner = MarkRow { epoch: at.epoch, marks: VecDeque::new() };
        }
        // Two logs that nobody knows yet would be taken for one.
        if at.epoch == NO_EPOCH {
            return;
        }
        if inner.marks.back().is_some_and(|last| at.position <= last.position) {
            return;
        }
        inner.marks.push_back(LogMark { position: at.position, number });
        if inner.marks.len() > LOG_MARKS_MAX {
            inner.thin();
        }
    }

    /// Under which number what was fetched at a place counts as fetched; `None`: what was purged since nobody knows here.
    pub fn number_at(&self, at: PlaceInLog) -> Option<u64> {
        let inner = self.0.lock();
        let behind = inner.marks.partition_point(|mark| mark.position <= at.position);
        (inner.epoch == at.epoch && behind > 0).then(|| inner.marks[behind - 1].number)
    }

    /// The place at which this node stood when what began under this number began.
    pub fn place_of(&self, number: u64) -> Option<PlaceInLog> {
        let inner = self.0.lock();
        let behind = inner.marks.partition_point(|mark| mark.number <= number);
        (behind > 0).then(|| PlaceInLog { epoch: inner.epoch, position: inner.marks[behind - 1].position })
    }

    /// The least number that it gives; `None`: it gives none.
    pub fn oldest_number(&self) -> Option<u64> {
        self.0.lock().marks.front().map(|mark| mark.number)
    }
}

impl MarkRow {
    /// Every second one of the older half goes. What was fetched there counts as fetched a little earlier, which is never wrong.
    fn thin(&mut self) {
        let half = self.marks.len() / 2;
        let mut at = 0;
        self.marks.retain(|_| {
            at += 1;
            at > half || at % 2 == 1
        });
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn at(position: u64) -> PlaceInLog {
        PlaceInLog { epoch: 7, position }
    }

    fn marks() -> LogMarks {
        let marks = LogMarks::default();
        marks.reach(at(10), 100, false);
        marks.reach(at(20), 101, true);
        // Something was purged here alone meanwhile.
        marks.reach(at(30), 105, true);
        marks
    }

    #[test]
    fn what_was_fetched_at_a_place_is_older_than_all_that_came_behind_it() {
        for (position, expect) in [
            (9, None),
            (10, Some(100)),
            (19, Some(100)),
            (20, Some(101)),
            (29, Some(101)),
            (30, Some(105)),
            (99, Some(105)),
        ] {
            assert_eq!(marks().number_at(at(position)), expect, "{position}");
        }
        assert_eq!(marks().number_at(PlaceInLog { epoch: 8, position: 30 }), None, "of another life of the log");
        assert_eq!(LogMarks::default().number_at(PlaceInLog::default()), None);
    }

    #[test]
    fn a_fetch_is_written_down_at_the_last_place_that_was_in_force() {
        for (number, expect) in [
            (99, None),
            (100, Some(at(10))),
            (101, Some(at(20))),
            (104, Some(at(20))),
            (105, Some(at(30))),
            (900, Some(at(30))),
        ] {
            assert_eq!(marks().place_of(number), expect, "{number}");
        }
    }

    #[test]
    fn who_missed_something_believes_nothing_from_before() {
        let marks = marks();
        marks.reach(at(50), 110, false);
        assert_eq!((marks.number_at(at(30)), marks.number_at(at(50))), (None, Some(110)));
        marks.reach(PlaceInLog { epoch: 8, position: 5 }, 111, true);
        assert_eq!((marks.number_at(at(50)), marks.place_of(110)), (None, None), "the log was begun anew");
    }

    #[test]
    fn a_place_in_no_log_is_none() {
        let marks = marks();
        marks.reach(PlaceInLog::default(), 112, false);
        let nowhere = (marks.number_at(PlaceInLog::default()), marks.number_at(at(30)), marks.place_of(112));
        assert_eq!(nowhere, (None, None, None));
    }

    #[test]
    fn however_many_orders_come_old_places_are_judged_too_strictly_and_not_too_mildly() {
        let marks = LogMarks::default();
        marks.reach(at(0), 0, false);
        let last = 5 * LOG_MARKS_MAX as u64;
        for position in 1..=last {
            marks.reach(at(position), 2 * position, true);
        }
        for position in 0..=last {
            let number = marks.number_at(at(position)).unwrap();
            assert!(number <= 2 * position, "{position}: {number}");
        }
        assert_eq!(marks.number_at(at(last)), Some(2 * last));
        assert!(marks.0.lock().marks.len() <= LOG_MARKS_MAX);
    }
}
