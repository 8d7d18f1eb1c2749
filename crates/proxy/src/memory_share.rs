//! What of the memory limit the store may have at the moment, and whether a new connection may come: arithmetic on what the
//! kernel says the process occupies. `memory_warden.rs` looks, asks here, and does what is said.
//!
//! ```text
//! 0        base                                   mark   refusal danger line = base + limit
//! |--------|--------------- the limit ---------------|-------|------|---|
//!                                                     the reserve
//! ```
//!
//! Above the mark the store gives up what is too much, whoever took it. Where that does not help, because the store has
//! nothing more to give, connections are refused until the mark is reached again: beyond `refusal` when that lasts, beyond
//! `danger` at once. It does not know what the memory is used for.

use crate::limits::{MEMORY_MOVES_SHIFT, MEMORY_RESERVE_MAX, MEMORY_RESERVE_SHIFT, MEMORY_SHARE_SHIFT};

/// After so many looks in a row that found too much, and again after as many, memory is given back.
const RELEASE_LOOKS: u32 = 8;
/// After so many looks in a row beyond the refusal connections are refused: what was given up at the first shows at the next.
const REFUSAL_LOOKS: u32 = 3;
/// How much of what is free the store's share grows by at each look: 1/8.
const GROWTH_SHIFT: u32 = 3;

/// The operator's limit beside what a process takes anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryLimit {
    pub(crate) base_bytes: u64,
    pub(crate) limit_bytes: u64,
}

impl MemoryLimit {
    /// From here on there is no time to see whether it helps.
    fn danger_bytes(self) -> u64 {
        self.line_bytes() - self.reserve_bytes() / 4
    }

    pub(crate) fn is_beyond_refusal(self, resident_bytes: u64) -> bool {
        resident_bytes > self.refusal_bytes()
    }

    pub(crate) fn is_in_danger(self, resident_bytes: u64) -> bool {
        resident_bytes > self.danger_bytes()
    }

    /// What is never to be crossed.
    pub(crate) fn line_bytes(self) -> u64 {
        self.base_bytes.saturating_add(self.limit_bytes)
    }

    fn reserve_bytes(self) -> u64 {
        (self.limit_bytes >> MEMORY_RESERVE_SHIFT).min(MEMORY_RESERVE_MAX)
    }

    fn mark_bytes(self) -> u64 {
        self.line_bytes() - self.reserve_bytes()
    }

    /// What of this is above the mark.
    pub(crate) fn excess_bytes(self, resident_bytes: u64) -> u64 {
        resident_bytes.saturating_sub(self.mark_bytes())
    }

    fn refusal_bytes(self) -> u64 {
        self.line_bytes() - self.reserve_bytes() / 2
    }

    fn share_max(self) -> u64 {
        self.limit_bytes - self.reserve_bytes()
    }

    fn share_min(self) -> u64 {
        self.limit_bytes >> MEMORY_SHARE_SHIFT
    }

    /// Is what is resident so near the mark, or does it change so fast, that it has to be looked at often?
    pub(crate) fn wants_looks(self, before_bytes: u64, resident_bytes: u64) -> bool {
        let is_near = resident_bytes > self.mark_bytes().saturating_sub(self.reserve_bytes());
        is_near || resident_bytes.abs_diff(before_bytes) > self.limit_bytes >> MEMORY_MOVES_SHIFT
    }
}

/// What is decided from one look to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryShare {
    share_bytes: u64,
    /// What the share has lost since the allocator last gave back.
    given_up_bytes: u64,
    refuses: bool,
    /// Looks in a row that found too much.
    looks_above: u32,
    /// And beyond the refusal.
    looks_beyond: u32,
}

impl MemoryShare {
    pub(crate) fn new(limit: MemoryLimit) -> MemoryShare {
        let share_bytes = limit.share_max();
        MemoryShare { share_bytes, given_up_bytes: 0, refuses: false, looks_above: 0, looks_beyond: 0 }
    }

    /// The store's share from now on. `used_bytes` is what the account holds.
    ///
    /// Only what is resident counts, not what the account makes of it. What was given up stays resident until the allocator
    /// gives it back; until then it is used again before anything more is taken, and is not given up a second time.
    pub(crate) fn after_look(&mut self, limit: MemoryLimit, resident_bytes: u64, used_bytes: u64) -> u64 {
        let mark = limit.mark_bytes();
        if resident_bytes > mark {
            let excess = resident_bytes - mark;
            if excess > self.given_up_bytes {
                // A share that is not used up would not give anything by becoming smaller.
                self.share_bytes = self.share_bytes.min(used_bytes).saturating_sub(excess - self.given_up_bytes);
                self.given_up_bytes = excess;
            }
            self.looks_above = self.looks_above.saturating_add(1);
        } else {
            (self.looks_above, self.given_up_bytes) = (0, 0);
            self.share_bytes += (mark - resident_bytes) >> GROWTH_SHIFT;
        }
        self.share_bytes = self.share_bytes.clamp(limit.share_min(), limit.share_max().max(limit.share_min()));
        self.share_bytes
    }

    /// Should the allocator give back what it keeps for later? At once when it is much too much or connections are refused,
    /// else when it stays so: what it keeps is used again at the next moment, and each page that is given back costs a fault
    /// then.
    pub(crate) fn wants_release(&self, limit: MemoryLimit, resident_bytes: u64) -> bool {
        let is_much = resident_bytes > limit.mark_bytes() + limit.reserve_bytes() / 4;
        let lasts = self.looks_above > 0 && (self.refuses || self.looks_above.is_multiple_of(RELEASE_LOOKS));
        is_much || lasts
    }

    /// The allocator has given back what it kept.
    pub(crate) fn note_released(&mut self) {
        self.given_up_bytes = 0;
    }

    /// Are new connections refused, now that the store has given what it could?
    pub(crate) fn after_shedding(&mut self, limit: MemoryLimit, resident_bytes: u64) -> bool {
        self.looks_beyond =
            if limit.is_beyond_refusal(resident_bytes) { self.looks_beyond.saturating_add(1) } else { 0 };
        self.refuses = match self.refuses {
            false => self.looks_beyond >= REFUSAL_LOOKS || limit.is_in_danger(resident_bytes),
            true => resident_bytes > limit.mark_bytes(),
        };
        self.refuses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    /// The line is at 192 MiB, connections are refused from 187 on, and the mark is at 182.
    const LIMIT: MemoryLimit = MemoryLimit { base_bytes: 32 * MIB, limit_bytes: 160 * MIB };

    /// A process that holds `others` beside its base and the store, which is as full as it may be, and whose pages keep
    /// `waste` percent more than is in them.
    struct Process {
        share: MemoryShare,
        store: u64,
        others: u64,
        waste: u64,
    }

    impl Process {
        fn new(others: u64, waste: u64) -> Process {
            Process { share: MemoryShare::new(LIMIT), store: 0, others, waste }
        }

        fn resident(&self) -> u64 {
            LIMIT.base_bytes + self.others + self.store + self.store * self.waste / 100
        }

        /// One look. Says whether connections are refused.
        fn look(&mut self) -> bool {
            let share = self.share.after_look(LIMIT, self.resident(), self.store + self.others);
            self.store = share.saturating_sub(self.others);
            self.share.after_shedding(LIMIT, self.resident())
        }

        fn settle(&mut self) -> bool {
            (0..200).fold(false, |_, _| self.look())
        }
    }

    #[track_caller]
    fn check(others: u64, waste: u64, store: std::ops::Range<u64>, refuses: bool) {
        let mut process = Process::new(others * MIB, waste);
        assert_eq!(process.settle(), refuses);
        assert!(store.contains(&(process.store / MIB)), "the store has {} MiB", process.store / MIB);
        assert!(refuses || process.resident() <= LIMIT.refusal_bytes(), "{} MiB", process.resident() / MIB);
    }

    #[test]
    fn the_store_has_what_others_and_the_allocator_leave_of_the_limit() {
        check(0, 0, 149..151, false);
        check(0, 20, 120..126, false);
        check(50, 0, 99..101, false);
        check(100, 10, 40..46, false);
    }

    #[test]
    fn connections_are_refused_when_the_store_has_nothing_more_to_give() {
        check(149, 0, 0..2, false);
        check(158, 0, 0..1, true);
    }

    #[test]
    fn a_store_that_gave_its_memory_up_gets_it_back() {
        let mut process = Process::new(0, 10);
        process.settle();
        let before = process.store;
        process.others = 200 * MIB;
        assert!(process.settle() && process.store == 0);
        process.others = 0;
        process.settle();
        assert!(process.store >= before - MIB && !process.share.refuses, "{} of {before}", process.store);
    }

    #[test]
    fn refusing_begins_when_it_lasts_or_is_urgent_and_ends_at_the_mark() {
        let mut share = MemoryShare::new(LIMIT);
        let lasts = [(187, false), (188, false), (189, false), (188, true), (183, true), (182, false)];
        let urgent = [(188, false), (188, false), (186, false), (188, false), (190, true), (183, true), (182, false)];
        for (resident, refuses) in lasts.into_iter().chain(urgent) {
            assert_eq!(share.after_shedding(LIMIT, resident * MIB), refuses, "{resident} MiB");
        }
    }

    #[test]
    fn the_allocator_gives_back_when_it_is_much_or_lasts() {
        let mut share = MemoryShare::new(LIMIT);
        share.after_look(LIMIT, 185 * MIB, 150 * MIB);
        assert!(share.wants_release(LIMIT, 185 * MIB) && !share.wants_release(LIMIT, 183 * MIB));
        let released = (0..15).filter(|_| {
            share.after_look(LIMIT, 183 * MIB, 150 * MIB);
            share.wants_release(LIMIT, 183 * MIB)
        });
        assert_eq!(released.count(), 2);
        share.after_look(LIMIT, 182 * MIB, 150 * MIB);
        assert!(!share.wants_release(LIMIT, 182 * MIB));
    }

    #[test]
    fn what_was_given_up_is_not_given_up_again_before_the_allocator_gives_back() {
        let mut share = MemoryShare::new(LIMIT);
        let look = |share: &mut MemoryShare, resident| share.after_look(LIMIT, resident * MIB, 140 * MIB) / MIB;
        assert_eq!(look(&mut share, 185), 137, "three above the mark");
        assert_eq!(look(&mut share, 185), 137, "the allocator keeps them");
        assert_eq!(look(&mut share, 187), 135, "two more");
        assert_eq!(look(&mut share, 186), 135);
        share.note_released();
        assert_eq!(look(&mut share, 184), 133, "it had to keep two, for what lies beside them");
        assert!(look(&mut share, 182) == 133 && look(&mut share, 185) == 130, "below the mark it begins anew");
    }

    #[test]
    fn it_is_looked_often_near_the_mark_and_while_much_changes() {
        for (before, resident, often) in
            [(100, 100, false), (100, 102, true), (102, 100, true), (171, 172, false), (173, 173, true)]
        {
            assert_eq!(LIMIT.wants_looks(before * MIB, resident * MIB), often, "{before} to {resident} MiB");
        }
    }

    #[test]
    fn the_smallest_limit_keeps_a_share_and_a_reserve() {
        let limit = MemoryLimit { base_bytes: 32 * MIB, limit_bytes: MIB };
        let mut share = MemoryShare::new(limit);
        assert_eq!(share.after_look(limit, 20 * MIB, 0), MIB / 16 * 15);
        assert_eq!(share.after_look(limit, 40 * MIB, MIB), MIB / 8);
        assert!(limit.mark_bytes() > limit.base_bytes && limit.refusal_bytes() < limit.line_bytes());
    }
}
