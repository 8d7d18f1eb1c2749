//! The segments: which generation each is of, whether it is written, and who still reads in it.
//!
//! A place is named by its segment's generation too: it is drawn anew whenever a segment is opened, so nothing that a
//! segment held before can be taken for what it holds now. A segment is reused only when nothing pins it.

use crate::sync::Mutex;

use super::encoding::{Decoder, Encode};
use super::limits::LEASED_SHARE_SHIFT;

/// A segment in a checkpoint.
pub const SEGMENT_ROW_BYTES: usize = 4 + 8 + 8 + 1;

/// | a segment is | holds records | is written | may be reclaimed |
/// |---|---|---|---|
/// | `Free` | no | no | – |
/// | `Open` | yes | yes | no |
/// | `Sealed` | yes | no | if nothing pins it |
/// | `Orphan` | yes: it was open when the process ended | no | when recovery has sealed it |
/// | `Leaving` | no longer; its last readers still look | no | freed when they are done |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Free,
    Open,
    Sealed,
    Orphan,
    Leaving,
}

#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub phase: Phase,
    pub generation: u32,
    /// The order in which segments were opened: the oldest leaves first.
    pub order: u64,
    /// The least number of a record in it.
    pub number_min: u64,
    pins: u32,
    /// Of these, answers that are sent from its pages.
    answers: u32,
    /// Sockets may refer to its pages: some answer was sent from them since they were detached, or who had the store before
    /// may have done so.
    leased: bool,
}

#[derive(Debug)]
pub struct SegmentTable {
    segments: Mutex<Vec<Segment>>,
}

impl Phase {
    fn holds_records(self) -> bool {
        matches!(self, Phase::Open | Phase::Sealed | Phase::Orphan)
    }
}

impl Segment {
    const FREE: Segment = Segment {
        phase: Phase::Free,
        generation: 0,
        order: 0,
        number_min: u64::MAX,
        pins: 0,
        answers: 0,
        leased: false,
    };

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.generation);
        out.put_u64(self.order);
        out.put_u64(self.number_min);
        out.put_u8(match self.phase {
            // Another process that has the disk next must not write where somebody here still looks.
            Phase::Leaving if self.pins > 0 => 2,
            Phase::Free | Phase::Leaving => 0,
            Phase::Open | Phase::Orphan => 1,
            Phase::Sealed => 2,
        });
    }

    pub fn decode(decoder: &mut Decoder<'_>) -> Option<Segment> {
        let (generation, order, number_min) = (decoder.u32()?, decoder.u64()?, decoder.u64()?);
        let phase = match decoder.u8()? {
            0 => Phase::Free,
            1 => Phase::Orphan,
            2 => Phase::Sealed,
            _ => return None,
        };
        Some(Segment { phase, generation, order, number_min, ..Segment::FREE })
    }
}

impl SegmentTable {
    pub fn new(count: u32) -> SegmentTable {
        SegmentTable { segments: Mutex::new(vec![Segment::FREE; count as usize]) }
    }

    /// Starts from what a checkpoint says.
    pub fn restore(&self, segments: Vec<Segment>) {
        *self.segments.lock() = segments;
    }

    pub fn all(&self) -> Vec<Segment> {
        self.segments.lock().clone()
    }

    pub fn get(&self, segment: u32) -> Segment {
        self.segments.lock()[segment as usize]
    }

    /// Changes one.
    pub fn change<R>(&self, segment: u32, change: impl FnOnce(&mut Segment) -> R) -> R {
        change(&mut self.segments.lock()[segment as usize])
    }

    /// Keeps a segment from being reused. Returns its generation, unless it is another than the one that is meant.
    pub fn pin(&self, segment: u32, meant: Option<u32>) -> Option<u32> {
        let mut segments = self.segments.lock();
        let segment = segments.get_mut(segment as usize)?;
        let is_meant = meant.is_none_or(|generation| generation == segment.generation);
        if !is_meant || segment.phase == Phase::Free {
            return None;
        }
        segment.pins += 1;
        Some(segment.generation)
    }

    pub fn unpin(&self, segment: u32) {
        let mut segments = self.segments.lock();
        let pins = &mut segments[segment as usize].pins;
        *pins = pins.checked_sub(1).expect("what is unpinned was pinned");
    }

    /// Whoever had the store before may have leased any of it, and its sockets outlive it.
    pub fn distrust_all(&self) {
        self.segments.lock().iter_mut().for_each(|it| it.leased = true);
    }

    /// Keeps segments, each of the generation that is meant, from being reused while an answer is sent from their pages. All
    /// of them or none: false if one is another by now, or if answers would keep more of all segments than they may.
    pub fn lease(&self, meant: &[(u32, u32)]) -> bool {
        let mut segments = self.segments.lock();
        if !may_lease(&segments, meant) {
            return false;
        }
        for (at, _) in meant {
            let segment = &mut segments[*at as usize];
            (segment.pins, segment.answers, segment.leased) = (segment.pins + 1, segment.answers + 1, true);
        }
        true
    }

    /// Would it be leased at this moment?
    pub fn may_lease(&self, meant: &[(u32, u32)]) -> bool {
        may_lease(&self.segments.lock(), meant)
    }

    /// An answer has been sent. What sockets still refer to stays theirs: see `leased`.
    pub fn release(&self, leased: &[(u32, u32)]) {
        let mut segments = self.segments.lock();
        for (at, _) in leased {
            let segment = &mut segments[*at as usize];
            segment.pins = segment.pins.checked_sub(1).expect("what is released was leased");
            segment.answers = segment.answers.checked_sub(1).expect("what is released was leased");
        }
    }

    /// Its pages were detached: sockets have them for themselves.
    pub fn detached(&self, segment: u32) {
        self.segments.lock()[segment as usize].leased = false;
    }

    /// Nothing of what they hold counts any more.
    pub fn leave_all(&self) {
        self.segments.lock().iter_mut().filter(|it| it.phase != Phase::Free).for_each(|it| it.phase = Phase::Leaving);
    }

    pub fn free_count(&self) -> usize {
        self.segments.lock().iter().filter(|segment| segment.phase == Phase::Free).count()
    }

    /// Opens a free segment. Returns it, and whether its pages were leased in its last life.
    pub fn open(&self, generation: u32, order: u64) -> Option<(u32, bool)> {
        let mut segments = self.segments.lock();
        let at = segments.iter().position(|segment| segment.phase == Phase::Free)?;
        let leased = segments[at].leased;
        segments[at] = Segment { phase: Phase::Open, generation, order, leased, ..Segment::FREE };
        Some((at as u32, leased))
    }

    /// The oldest sealed segments that nothing pins, oldest first.
    pub fn oldest_unpinned(&self) -> Option<u32> {
        let segments = self.segments.lock();
        let sealed = segments.iter().enumerate().filter(|(_, it)| it.phase == Phase::Sealed && it.pins == 0);
        sealed.min_by_key(|(_, segment)| segment.order).map(|(at, _)| at as u32)
    }

    /// Frees those that have left and that nobody looks at any more. Returns them.
    pub fn free_left(&self) -> Vec<u32> {
        let mut freed = Vec::new();
        for (at, segment) in self.segments.lock().iter_mut().enumerate() {
            if segment.phase == Phase::Leaving && segment.pins == 0 {
                segment.phase = Phase::Free;
                freed.push(at as u32);
            }
        }
        freed
    }

    /// No record has a lesser number.
    pub fn number_min(&self) -> u64 {
        let segments = self.segments.lock();
        let holding = segments.iter().filter(|segment| segment.phase.holds_records());
        holding.map(|segment| segment.number_min).min().unwrap_or(u64::MAX)
    }
}

fn may_lease(segments: &[Segment], meant: &[(u32, u32)]) -> bool {
    let is_meant = |(at, generation): &(u32, u32)| {
        segments.get(*at as usize).is_some_and(|it| it.generation == *generation && it.phase.holds_records())
    };
    if !meant.iter().all(is_meant) {
        return false;
    }
    let more = meant.iter().filter(|(at, _)| segments[*at as usize].answers == 0).count();
    let kept = || segments.iter().filter(|it| it.answers > 0).count();
    more == 0 || kept() + more <= segments.len() >> LEASED_SHARE_SHIFT
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use hashbrown::HashSet;

    #[test]
    fn what_is_pinned_is_not_chosen_and_what_left_is_freed_when_unpinned() {
        let table = SegmentTable::new(3);
        for order in 0..3 {
            assert_eq!(table.open(order as u32 + 7, order), Some((order as u32, false)));
            table.change(order as u32, |segment| segment.phase = Phase::Sealed);
        }
        assert_eq!(table.open(1, 9), None);
        assert_eq!(table.pin(0, Some(8)), None);
        assert_eq!(table.pin(0, Some(7)), Some(7));
        assert_eq!(table.oldest_unpinned(), Some(1));
        assert!(table.lease(&[(0, 7)]));
        table.change(0, |segment| segment.phase = Phase::Leaving);
        table.unpin(0);
        assert!(table.free_left().is_empty());
        table.release(&[(0, 7)]);
        assert_eq!(table.free_left(), [0]);
        assert_eq!(table.pin(0, None), None);
        assert_eq!(table.open(99, 9), Some((0, true)));
    }

    /// Every way in which two answers can take and give back segments of a table of five, of which they may keep two.
    #[test]
    fn answers_keep_what_they_are_sent_from_and_no_more_than_their_share() {
        let wishes: Vec<Vec<(u32, u32)>> = (0..3)
            .flat_map(|a| (0..4).map(move |b| if b == 3 { vec![(a, a + 7)] } else { vec![(a, a + 7), (b, b + 7)] }))
            .filter(|wish| wish.len() == 1 || wish[0] != wish[1])
            .collect();
        for first in &wishes {
            for second in &wishes {
                let table = SegmentTable::new(5);
                for order in 0..5 {
                    table.open(order as u32 + 7, order).expect("there are five");
                    table.change(order as u32, |segment| segment.phase = Phase::Sealed);
                }
                assert!(table.lease(first));
                let both: HashSet<_> = first.iter().chain(second).collect();
                let fits = both.len() <= 2;
                assert_eq!(table.lease(second), fits, "{first:?} {second:?}");
                let kept = |wish: &[(u32, u32)], at| wish.iter().any(|(kept, _)| *kept == at);
                let oldest = (0..5).find(|at| !(kept(first, *at) || fits && kept(second, *at)));
                assert_eq!(table.oldest_unpinned(), oldest, "{first:?} {second:?}");
                table.release(first);
                if fits {
                    assert_eq!(table.oldest_unpinned(), (0..5).find(|at| !kept(second, *at)));
                    table.release(second);
                }
                assert_eq!(table.oldest_unpinned(), Some(0));
                assert!(!table.lease(&[(0, 99)]) && !table.lease(&[(9, 7)]) && !table.lease(&[(0, 7), (1, 7)]));
                table.change(0, |segment| segment.phase = Phase::Leaving);
                assert!(!table.lease(&[(0, 7)]), "what leaves is leased no more");
                assert_eq!(table.free_left(), [0]);
                assert_eq!(table.open(99, 9), Some((0, kept(first, 0) || fits && kept(second, 0))));
            }
        }
    }

    #[test]
    fn one_that_is_looked_at_while_it_leaves_is_not_free_for_who_has_the_disk_next() {
        let table = SegmentTable::new(2);
        for order in 0..2 {
            table.open(order as u32 + 7, order).expect("there are two");
        }
        table.pin(1, Some(8)).expect("it is there");
        table.leave_all();
        let again = |at: u32| {
            let mut bytes = Vec::new();
            table.get(at).encode(&mut bytes);
            Segment::decode(&mut Decoder::new(&bytes)).expect("whole").phase
        };
        assert_eq!((again(0), again(1)), (Phase::Free, Phase::Sealed));
        table.unpin(1);
        assert_eq!(table.free_left(), [0, 1]);
    }

    #[test]
    fn a_row_is_what_it_was_when_it_is_read_again() {
        for (phase, again) in [
            (Phase::Free, Phase::Free),
            (Phase::Leaving, Phase::Free),
            (Phase::Open, Phase::Orphan),
            (Phase::Sealed, Phase::Sealed),
        ] {
            let segment = Segment { phase, generation: 5, order: 6, number_min: 7, ..Segment::FREE };
            let mut bytes = Vec::new();
            segment.encode(&mut bytes);
            assert_eq!(bytes.len(), SEGMENT_ROW_BYTES);
            let read = Segment::decode(&mut Decoder::new(&bytes)).expect("whole");
            assert_eq!((read.phase, read.generation, read.order, read.number_min), (again, 5, 6, 7));
        }
    }
}
