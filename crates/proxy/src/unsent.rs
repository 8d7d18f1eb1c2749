//! What an answer keeps in memory while its client takes nothing of it, and which such answers are cut first when that
//! memory is needed.
//!
//! An answer is noted in its connection's slot whenever its client has to be waited for. What it keeps is asked for only
//! when something has to be cut: a body that is still stored is kept by the store, and may become the answer's alone at
//! any moment.

use std::sync::{Arc, Weak};

use cache::{Flight, Object};

/// Where the rest of a body lies.
pub(crate) enum RestOfBody {
    /// In the answer's queue, or where it takes no memory.
    Queued,
    Object(Weak<Object>),
    Flight(Weak<Flight>),
}

impl RestOfBody {
    pub(crate) fn of_object(object: &Arc<Object>) -> RestOfBody {
        RestOfBody::Object(Arc::downgrade(object))
    }

    pub(crate) fn of_flight(flight: &Arc<Flight>) -> RestOfBody {
        RestOfBody::Flight(Arc::downgrade(flight))
    }
}

/// An answer whose client has to be waited for.
pub(crate) struct Unsent {
    /// What of it had gone when its client last took something.
    sent_bytes: u64,
    since_ms: u64,
    /// Of its queue, what nobody else holds.
    queued_bytes: usize,
    rest: RestOfBody,
}

impl Unsent {
    /// `before` is the same answer when its client was waited for before this.
    pub(crate) fn new(
        before: Option<&Unsent>,
        (sent_bytes, queued_bytes): (u64, usize),
        rest: RestOfBody,
        now_ms: u64,
    ) -> Unsent {
        let since_ms = before.filter(|before| before.sent_bytes == sent_bytes).map_or(now_ms, |before| before.since_ms);
        Unsent { sent_bytes, since_ms, queued_bytes, rest }
    }

    /// What would be free if it were cut.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let of_body = match &self.rest {
            RestOfBody::Queued => 0,
            RestOfBody::Object(object) => object.upgrade().map_or(0, |object| object.kept_for_reader()),
            RestOfBody::Flight(flight) => flight.upgrade().map_or(0, |flight| flight.kept_for_reader()),
        };
        (self.queued_bytes + of_body) as u64
    }

    /// For so long its client has taken nothing.
    pub(crate) fn stalled_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.since_ms)
    }
}

/// One of the answers that may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate<T> {
    pub(crate) whose: T,
    pub(crate) kept_bytes: u64,
    pub(crate) stalled_ms: u64,
}

/// Those to be cut for so many bytes: who holds most for longest first. A client that takes nothing for a while is not dead,
/// so it is not the time alone; and one that has just come holds as much as one that has stopped long ago, so it is not
/// the bytes alone.
pub(crate) fn worst<T: Copy>(mut candidates: Vec<Candidate<T>>, bytes: u64) -> Vec<Candidate<T>> {
    candidates.retain(|candidate| candidate.kept_bytes > 0);
    candidates
        .sort_by_key(|candidate| std::cmp::Reverse(candidate.kept_bytes.saturating_mul(candidate.stalled_ms + 1)));
    let mut left = bytes;
    let needed = candidates.iter().take_while(|candidate| {
        let is_needed = left > 0;
        left = left.saturating_sub(candidate.kept_bytes);
        is_needed
    });
    let count = needed.count();
    candidates.truncate(count);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kilobytes and milliseconds of each, by its place.
    fn check(candidates: &[(u64, u64)], kilobytes: u64, expect: &[usize]) {
        let candidates = candidates.iter().enumerate();
        let candidates = candidates.map(|(whose, &(kilobytes, stalled_ms))| Candidate {
            whose,
            kept_bytes: kilobytes << 10,
            stalled_ms,
        });
        let cut: Vec<usize> = worst(candidates.collect(), kilobytes << 10).iter().map(|cut| cut.whose).collect();
        assert_eq!(cut, expect);
    }

    #[test]
    fn who_holds_most_for_longest_is_cut_first_and_no_more_than_is_needed() {
        let held = [(100, 1_000), (2_000, 900), (2_000, 10), (0, 60_000), (100, 5_000)];
        check(&held, 0, &[]);
        check(&held, 1, &[1]);
        check(&held, 2_000, &[1]);
        check(&held, 2_001, &[1, 4]);
        check(&held, 2_101, &[1, 4, 0]);
        check(&held, 9_000, &[1, 4, 0, 2]);
    }

    #[test]
    fn a_client_that_takes_something_begins_anew() {
        let waited = |before: Option<&Unsent>, sent, now_ms| Unsent::new(before, (sent, 7), RestOfBody::Queued, now_ms);
        let first = waited(None, 100, 1_000);
        let still = waited(Some(&first), 100, 3_000);
        assert_eq!((still.stalled_ms(5_000), still.kept_bytes()), (4_000, 7));
        assert_eq!(waited(Some(&still), 101, 4_000).stalled_ms(5_000), 1_000);
    }
}
