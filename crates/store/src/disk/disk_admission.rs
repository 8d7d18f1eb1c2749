//! What is worth a write to disk: bodies of certain sizes at once, others when they are asked for again.
//!
//! Most of what is asked for once is never asked for again, and would only wear the disk and push out what is. Who asked
//! before is remembered in a table of four bytes a name in which newer names replace older ones: nothing to sweep, and
//! never more than it is. It stands before `Tier::begin` and `Tier::put`; the caller asks it.

use super::disk_index::Digest;
use super::recovery::mixed;
use crate::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bodies that are stored the first time they are seen, by their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtOnce {
    pub from: u64,
    pub to: u64,
}

impl AtOnce {
    /// Everything is stored when it is first seen.
    pub const ALL: AtOnce = AtOnce { from: 0, to: u64::MAX };
    /// Everything has to be asked for twice.
    pub const NONE: AtOnce = AtOnce { from: 1, to: 0 };
}

pub struct Admission {
    at_once: AtOnce,
    /// What of a name fits; 0 where there was none.
    seen: Box<[AtomicU32]>,
}

impl Admission {
    /// `names` is how many can be remembered at most; as many as the disks have objects is plenty.
    pub fn new(at_once: AtOnce, names: usize) -> Admission {
        let names = if at_once == AtOnce::ALL { 0 } else { names.max(1).next_power_of_two() };
        Admission { at_once, seen: (0..names).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Shall it be stored now? Remembers that it was asked for. Two names in one place may hide one another, then one more
    /// request is needed; one in four billion is taken for another that was.
    pub fn admits(&self, digest: Digest, bytes: u64) -> bool {
        if (self.at_once.from..=self.at_once.to).contains(&bytes) {
            return true;
        }
        let mixed = mixed(mixed(digest.family) ^ digest.member);
        let place = &self.seen[mixed as usize & (self.seen.len() - 1)];
        let mark = (mixed >> 32) as u32 | 1;
        place.swap(mark, Relaxed) == mark
    }

    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.seen)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn name(n: u64) -> Digest {
        Digest { family: mixed(n), member: n }
    }

    #[test]
    fn what_is_asked_for_again_is_admitted() {
        let admission = Admission::new(AtOnce::NONE, 1000);
        assert!(!admission.admits(name(1), 10) && admission.admits(name(1), 10) && admission.admits(name(1), 10));
        // Another variant of it is another name.
        assert!(!admission.admits(Digest { member: 9, ..name(1) }, 10));
        let first = (100..300).filter(|n| admission.admits(name(*n), 10)).count();
        let second = (100..300).filter(|n| admission.admits(name(*n), 10)).count();
        assert!(first == 0 && second > 150, "{first} {second}");
        assert_eq!(admission.heap_bytes(), 4096);
    }

    #[test]
    fn sizes_that_are_stored_at_once_are_not_remembered() {
        let admission = Admission::new(AtOnce { from: 100, to: 200 }, 1000);
        assert!(admission.admits(name(1), 100) && admission.admits(name(1), 200));
        assert!(!admission.admits(name(1), 99) && !admission.admits(name(2), 201));
        let all = Admission::new(AtOnce::ALL, 1000);
        assert!(all.admits(name(1), 0) && all.admits(name(2), u64::MAX) && all.heap_bytes() == 0);
    }
}
