//! Whose time is over, found without a search: a timing wheel that is fed when a tenant takes its place, and turned when room
//! has to be made.
//!
//! A wheel of several rings, each eight times as coarse as the one before. A tenant lies in one slot until that is due or
//! the tenant leaves; nothing is ever moved to a finer ring, as nothing is in Linux' timers since 4.8. For that, one is due up to a
//! seventh of its time too late, and never too soon. Places are those of `arena.rs`, 8 bytes a node; the wheel does not know
//! who sits there.

/// Slots of a ring: what the finest one sees ahead, in seconds.
const SLOTS: u32 = 64;
/// A slot of a ring is so many times as long as one of the ring before, as a shift: eight.
const COARSER_SHIFT: u32 = 3;
/// The last ring sees four years ahead. What lives longer than that is never due.
const RINGS: u32 = 8;

/// The list of those that are due stands behind those of the slots.
const DUE: u32 = RINGS * SLOTS;
/// Where places begin among the links: the lists' own ends come first.
const PLACES_FROM: u32 = DUE + 1;

/// A neighbour on each side, in a ring of them: who is in no list is its own neighbour.
#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

#[derive(Debug)]
pub(crate) struct ExpiryWheel {
    links: Vec<Link>,
    now_s: u32,
}

impl ExpiryWheel {
    pub fn new() -> ExpiryWheel {
        ExpiryWheel { links: (0..PLACES_FROM).map(alone).collect(), now_s: 0 }
    }

    /// A tenant took this place; its time is over from that second on. The place is in no list.
    pub fn put(&mut self, place: u32, over_s: u32) {
        let list = self.list_of(over_s);
        let link = self.link_of(place);
        if let Some(list) = list {
            let before = self.links[list as usize].before;
            self.links[link as usize] = Link { before, after: list };
            self.links[before as usize].after = link;
            self.links[list as usize].before = link;
        }
    }

    /// The tenant left this place. Nothing happens if its time was never known.
    pub fn take_out(&mut self, place: u32) {
        let link = PLACES_FROM + place;
        if let Some(Link { before, after }) = self.links.get(link as usize).copied() {
            self.links[before as usize].after = after;
            self.links[after as usize].before = before;
            self.links[link as usize] = alone(link);
        }
    }

    /// One whose time is over, of those first whose slot was due first.
    pub fn due(&self) -> Option<u32> {
        self.links[DUE as usize].after.checked_sub(PLACES_FROM)
    }

    /// It is this second now. Time does not run backwards.
    pub fn turn(&mut self, now_s: u32) {
        if now_s <= self.now_s {
            return;
        }
        for ring in 0..RINGS {
            let shift = ring * COARSER_SHIFT;
            let (from, to) = (self.now_s >> shift, now_s >> shift);
            // A whole round passes every slot.
            for tick in from + 1..=to.min(from.saturating_add(SLOTS)) {
                self.all_due(ring * SLOTS + tick % SLOTS);
            }
        }
        self.now_s = now_s;
    }

    /// The first ring in which the time is less than a round ahead; the slot's end is not before the time.
    fn list_of(&self, over_s: u32) -> Option<u32> {
        let left_s = match over_s.checked_sub(self.now_s) {
            None | Some(0) => return Some(DUE),
            Some(left_s) => left_s,
        };
        let ring = (0..RINGS).find(|ring| left_s >> (ring * COARSER_SHIFT) < SLOTS - 1)?;
        let shift = ring * COARSER_SHIFT;
        let tick = over_s.div_ceil(1 << shift);
        Some(ring * SLOTS + tick % SLOTS)
    }

    /// Puts all that are in a list behind those that are due.
    fn all_due(&mut self, list: u32) {
        let Link { before: last, after: first } = self.links[list as usize];
        if first == list {
            return;
        }
        let before = self.links[DUE as usize].before;
        self.links[before as usize].after = first;
        self.links[first as usize].before = before;
        self.links[last as usize].after = DUE;
        self.links[DUE as usize].before = last;
        self.links[list as usize] = alone(list);
    }

    fn link_of(&mut self, place: u32) -> u32 {
        let link = PLACES_FROM + place;
        while self.links.len() <= link as usize {
            self.links.push(alone(self.links.len() as u32));
        }
        link
    }
}

fn alone(link: u32) -> Link {
    Link { before: link, after: link }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Put at one second, over at another: due when?
    fn check(put_s: u32, over_s: u32) {
        let mut wheel = ExpiryWheel::new();
        wheel.turn(put_s);
        wheel.put(0, over_s);
        let left_s = over_s.saturating_sub(put_s);
        let late_s_max = left_s / 7 + 1;
        wheel.turn(over_s.saturating_sub(1));
        assert_eq!(wheel.due().is_some(), left_s == 0, "{put_s}, {over_s}: too soon");
        wheel.turn(over_s.saturating_add(late_s_max));
        assert_eq!(wheel.due(), Some(0), "{put_s}, {over_s}: too late");
        wheel.take_out(0);
        assert_eq!(wheel.due(), None);
    }

    #[test]
    fn nobody_is_due_too_soon_or_much_too_late() {
        for put_s in [0, 1, 62, 63, 64, 511, 512, 1_000_003, 1 << 30] {
            for left_s in (0..2_000).chain([86_399, 86_400, 604_800, 31_536_000, 100_000_000]) {
                check(put_s, put_s + left_s);
            }
        }
        check(50, 20);
    }

    #[test]
    fn what_lives_for_ever_is_never_due() {
        let mut wheel = ExpiryWheel::new();
        wheel.put(3, u32::MAX);
        wheel.turn(u32::MAX - 1);
        assert_eq!(wheel.due(), None);
        wheel.take_out(3);
        wheel.take_out(900);
    }

    #[test]
    fn those_that_leave_and_those_that_come_keep_their_lists() {
        let mut wheel = ExpiryWheel::new();
        (0..100).for_each(|place| wheel.put(place, 10 + place % 5));
        (0..100).filter(|place| place % 2 == 0).for_each(|place| wheel.take_out(place));
        // The slots that are passed are free for the next round, while those that were in them are due.
        wheel.turn(12);
        (100..110).for_each(|place| wheel.put(place, 12 + SLOTS - 2));
        let mut gone = Vec::new();
        while let Some(place) = wheel.due() {
            wheel.take_out(place);
            gone.push(place);
        }
        gone.sort_unstable();
        let expect: Vec<u32> = (0..100).filter(|place| place % 2 == 1 && place % 5 <= 2).collect();
        assert_eq!(gone, expect);
        wheel.turn(100);
        assert_eq!(std::iter::from_fn(|| wheel.due().inspect(|place| wheel.take_out(*place))).count(), 30);
    }
}
