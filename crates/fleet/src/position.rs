//! How far into the log a node has heard, and whether what comes next is what comes next.

use std::cmp::Ordering;

use crate::node::Reached;

/// A place in a stream: milliseconds and a number within them, as Redis makes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u64, pub u64);

/// A million orders in a millisecond are told apart, and times up to the year 2500.
const WITHIN_A_MILLISECOND_BITS: u32 = 20;

impl StreamId {
    /// As one number, in the same order.
    pub fn packed(self) -> u64 {
        (self.0 << WITHIN_A_MILLISECOND_BITS) | self.1.min((1 << WITHIN_A_MILLISECOND_BITS) - 1)
    }

    /// Before everything.
    pub const NONE: StreamId = StreamId(0, 0);

    pub fn of(text: &str) -> Option<StreamId> {
        let (ms, number) = text.split_once('-')?;
        Some(StreamId(ms.parse().ok()?, number.parse().ok()?))
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// The last order that was heard.
///
/// Orders are numbered without gaps by the log itself. An epoch is one life of the log: one that was emptied, or came back without
/// its end, begins another or counts anew, and nobody takes its numbers for those that were before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Empty before the log was heard.
    pub epoch: String,
    pub number: u64,
    pub id: StreamId,
}

impl Position {
    /// Is this the next order? Otherwise something between is missing, or the log has come back without its end, or it is another one.
    pub fn is_followed_by(&self, next: &Position) -> bool {
        self.is_of(&next.epoch) && self.number.checked_add(1) == Some(next.number) && next.id > self.id
    }

    /// Can all that is missing up to the end of the log still be read? Otherwise the log is not the one that was heard.
    pub fn leads_to(&self, end: &Position) -> bool {
        if !self.is_of(&end.epoch) {
            return false;
        }
        match end.number.cmp(&self.number) {
            Ordering::Less => false,
            // All entries may have been trimmed away since.
            Ordering::Equal => end.id == self.id || end.id == StreamId::NONE,
            Ordering::Greater => end.id > self.id,
        }
    }

    /// For who compares places.
    pub fn reached(&self, is_followed: bool) -> Reached {
        // FNV-1a.
        let mixed = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let epoch = match self.epoch.is_empty() {
            true => 0,
            false => self.epoch.bytes().fold(0xcbf2_9ce4_8422_2325, mixed),
        };
        Reached { epoch, position: self.id.packed(), is_followed }
    }

    /// The place right before this one.
    pub fn before(&self) -> Position {
        let StreamId(ms, within) = self.id;
        let id = match (self.number, within.checked_sub(1)) {
            // There was none before the first one.
            (..=1, _) => StreamId::NONE,
            (_, Some(within)) => StreamId(ms, within),
            (_, None) => StreamId(ms.saturating_sub(1), u64::MAX),
        };
        Position { epoch: self.epoch.clone(), number: self.number.saturating_sub(1), id }
    }

    /// Has whoever stands here heard of the order there?
    pub fn includes(&self, order: &Position) -> bool {
        self.epoch == order.epoch && self.number >= order.number && self.id >= order.id
    }

    fn is_of(&self, epoch: &str) -> bool {
        self.epoch == epoch || self.epoch.is_empty()
    }
}

/// What a node keeps over a restart beside what it stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptPosition {
    pub position: Position,
    /// See [`Node::condemned`](crate::Node::condemned); 0 is none.
    pub condemned: u64,
}

/// The first line of its file.
const FORM: &str = "larder fleet position 1";

impl KeptPosition {
    /// As it is kept in a file.
    pub fn text(&self) -> String {
        let Position { epoch, number, id } = &self.position;
        format!("{FORM}\nepoch {epoch}\nnumber {number}\nid {id}\ncondemned {}\n", self.condemned)
    }

    /// `None`: it is no such text, or not all of it.
    pub fn of(text: &str) -> Option<KeptPosition> {
        let mut lines = text.lines();
        if lines.next()? != FORM || !text.ends_with('\n') {
            return None;
        }
        let mut word = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned);
        let (epoch, number) = (word("epoch")?, word("number")?.parse().ok()?);
        let (id, condemned) = (StreamId::of(&word("id")?)?, word("condemned")?.parse().ok()?);
        Some(KeptPosition { position: Position { epoch, number, id }, condemned })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(epoch: &str, number: u64, ms: u64) -> Position {
        Position { epoch: epoch.to_owned(), number, id: StreamId(ms, 0) }
    }

    #[test]
    fn places_are_numbers_in_the_same_order() {
        let places = [
            StreamId::NONE,
            StreamId(0, 1),
            StreamId(1_764_000_000_000, 0),
            StreamId(1_764_000_000_000, 7),
            StreamId(1_764_000_000_001, 0),
        ];
        let packed = places.map(StreamId::packed);
        assert!(packed.is_sorted_by(|one, other| one < other), "{packed:?}");
        assert_eq!(StreamId(5, u64::MAX).packed() + 1, StreamId(6, 0).packed());
    }

    #[test]
    fn orders_follow_one_another_without_a_gap() {
        for (position, next, expect) in [
            (at("", 0, 0), at("e", 1, 10), true),
            (at("", 0, 0), at("e", 2, 10), false),
            (at("e", 4, 10), at("e", 5, 11), true),
            (at("e", 4, 10), at("e", 6, 11), false),
            // It came back without its end, and goes on from there: the same number is another order.
            (at("e", 4, 10), at("e", 4, 11), false),
            (at("e", 4, 10), at("e", 1, 11), false),
            (at("e", 4, 10), at("e", 5, 9), false),
            // Emptied, and begun anew.
            (at("e", 4, 10), at("f", 1, 11), false),
            (at("e", 4, 10), at("f", 5, 11), false),
            // Of somebody else's.
            (at("e", u64::MAX, 10), at("e", 0, 11), false),
        ] {
            assert_eq!(position.is_followed_by(&next), expect, "{position:?} {next:?}");
        }
    }

    #[test]
    fn a_log_that_ends_earlier_is_not_the_one_that_was_heard() {
        for (position, end, expect) in [
            (at("", 0, 0), at("", 0, 0), true),
            (at("", 0, 0), at("e", 9, 10), true),
            (at("e", 4, 10), at("e", 4, 10), true),
            (at("e", 4, 10), at("e", 9, 12), true),
            (at("e", 4, 10), at("e", 4, 0), true),
            // Trimmed away before it was read.
            (at("e", 4, 10), at("e", 5, 0), false),
            (at("e", 4, 10), at("e", 3, 9), false),
            (at("e", 4, 10), at("e", 4, 11), false),
            (at("e", 4, 10), at("e", 9, 9), false),
            (at("e", 4, 10), at("f", 9, 12), false),
            (at("e", 4, 10), at("", 0, 0), false),
        ] {
            assert_eq!(position.leads_to(&end), expect, "{position:?} {end:?}");
        }
    }

    #[test]
    fn the_place_before_an_order_is_followed_by_it() {
        for id in [StreamId(10, 0), StreamId(10, 3)] {
            let order = Position { id, ..at("e", 5, 0) };
            let before = order.before();
            assert!(before.is_followed_by(&order) && before.id.packed() < id.packed(), "{before:?}");
        }
        assert_eq!(at("e", 1, 10).before(), at("e", 0, 0), "as the log was before its first order");
    }

    #[test]
    fn each_life_of_the_log_has_a_number_of_its_own() {
        let reached = at("e", 5, 9).reached(true);
        assert_eq!((reached.position, reached.is_followed), (StreamId(9, 0).packed(), true));
        assert_eq!(reached.epoch, at("e", 6, 10).reached(true).epoch);
        assert_ne!(reached.epoch, at("f", 5, 9).reached(true).epoch);
        assert_eq!(at("", 0, 0).reached(false).epoch, 0, "none is known");
    }

    #[test]
    fn what_is_kept_comes_back_as_it_was_or_not_at_all() {
        let kept = KeptPosition { position: Position { id: StreamId(17, 3), ..at("0a1b", 12, 0) }, condemned: 99 };
        let text = kept.text();
        assert_eq!(KeptPosition::of(&text), Some(kept));
        let before_the_first = KeptPosition::default();
        assert_eq!(KeptPosition::of(&before_the_first.text()), Some(before_the_first));
        for end in 0..text.len() {
            assert_eq!(KeptPosition::of(&text[..end]), None, "{end}");
        }
        assert_eq!(KeptPosition::of(&text.replace("number 12", "number x")), None);
    }
}
