//! How long what is stored may be served unasked where others purge it, too.
//!
//! Nodes of a fleet hear of one another's purges through a log. As long as a node has heard all of it lately it serves what it has as it
//! stands. When it has heard nothing for a lease, whatever it fetched longer than a lease ago may have been purged unheard: the origin is
//! asked first, and what it confirms or sends may be served for a lease again. So nobody is served what was purged longer than that
//! ago, and an origin is asked once a lease for what is popular, and not once a request.
//!
//! Without a fleet there is no lease, and nothing ever has to be confirmed.

use store::sync::Mutex;
use store::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What is fetched beside a process that cannot be heard may be served for so long.
const LEASE_BESIDE_MS: u64 = 1_000;
/// No fleet.
const FOREVER: u64 = u64::MAX;

/// Whether all of the log has been heard, and what to do where it has not.
#[derive(Debug)]
pub struct FleetLease {
    /// Until then (`mono_ms`) everything that is stored may be served as it stands.
    heard_until_ms: AtomicU64,
    length_ms: AtomicU64,
    /// What was fetched under an earlier number has to be confirmed whatever was heard since: something was missed.
    condemned: AtomicU64,
    since_lapsed: Mutex<TakenNumbers>,
    /// It is extended no more.
    has_ended: AtomicBool,
    is_beside: AtomicBool,
}

/// Two numbers of the invalidation sequence, and when they were taken: what began under one of them began later than that.
#[derive(Debug, Default)]
struct TakenNumbers {
    older: Option<TakenNumber>,
    newer: Option<TakenNumber>,
}

#[derive(Clone, Copy, Debug)]
struct TakenNumber {
    number: u64,
    taken_ms: u64,
}

impl Default for FleetLease {
    fn default() -> FleetLease {
        FleetLease {
            heard_until_ms: AtomicU64::new(FOREVER),
            length_ms: AtomicU64::new(0),
            condemned: AtomicU64::new(0),
            since_lapsed: Mutex::default(),
            has_ended: AtomicBool::new(false),
            is_beside: AtomicBool::new(false),
        }
    }
}

impl FleetLease {
    /// From now on there is one, and it has lapsed until something is heard.
    pub fn begin(&self, length_ms: u64) {
        self.length_ms.store(length_ms, Relaxed);
        self.heard_until_ms.store(0, Relaxed);
    }

    /// Is there another process of this node that cannot be heard? Then the lease has lapsed, whatever the log says.
    pub(crate) fn stand_beside(&self, is_beside: bool) {
        self.is_beside.store(is_beside, Relaxed);
    }

    /// From now on whatever is stored has to be confirmed: somebody else is told what is purged.
    pub fn end_for_good(&self) {
        // The shortest: what is fetched for a request is served to it and to who asks in the same moment.
        self.length_ms.store(1, Relaxed);
        self.heard_until_ms.store(0, Relaxed);
        self.has_ended.store(true, Relaxed);
    }

    /// All of the log was heard at a moment that lies a lease before this one (`mono_ms`).
    pub fn extend(&self, heard_until_ms: u64) {
        if !self.has_ended.load(Relaxed) {
            let _ = self.heard_until_ms.fetch_max(heard_until_ms, Relaxed);
        }
    }

    /// What began before this number has to be confirmed from now on, whether the lease lasts or not.
    pub(crate) fn condemn(&self, before: u64) {
        self.condemned.fetch_max(before, Relaxed);
    }

    /// Must what was fetched long ago be confirmed?
    pub fn has_lapsed(&self, mono_ms: u64) -> bool {
        let is_over = self.is_beside.load(Relaxed) || self.has_ended.load(Relaxed);
        is_over || mono_ms >= self.heard_until_ms.load(Relaxed)
    }

    /// See [`Now::confirmed_from`](crate::Now::confirmed_from). `next_number` takes the next one of the invalidation sequence.
    #[inline]
    pub(crate) fn confirmed_from(&self, mono_ms: u64, next_number: impl FnOnce() -> u64) -> u64 {
        let condemned = self.condemned.load(Relaxed);
        match self.has_lapsed(mono_ms) {
            false => condemned,
            true => self.lapsed_from(mono_ms, next_number).max(condemned),
        }
    }

    #[cold]
    fn lapsed_from(&self, mono_ms: u64, next_number: impl FnOnce() -> u64) -> u64 {
        // Where there is no fleet: the shortest that a node may have.
        let length_ms = match self.length_ms.load(Relaxed) {
            0 => LEASE_BESIDE_MS,
            length_ms => length_ms,
        };
        let mut marks = self.since_lapsed.lock();
        // Two in a lease: what began since the older one counts, and that is never a whole lease old.
        if marks.newer.is_none_or(|newer| mono_ms.saturating_sub(newer.taken_ms) >= length_ms / 2) {
            marks.older = marks.newer.replace(TakenNumber { number: next_number(), taken_ms: mono_ms });
        }
        let is_young = |mark: &TakenNumber| mono_ms.saturating_sub(mark.taken_ms) < length_ms;
        [marks.older, marks.newer].into_iter().flatten().find(is_young).map_or(u64::MAX, |mark| mark.number)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LEASE_MS: u64 = 1_000;

    fn lapsed() -> (FleetLease, Cell<u64>) {
        let lease = FleetLease::default();
        lease.begin(LEASE_MS);
        (lease, Cell::new(10))
    }

    fn asked(lease: &FleetLease, numbers: &Cell<u64>, mono_ms: u64) -> u64 {
        lease.confirmed_from(mono_ms, || {
            numbers.set(numbers.get() + 1);
            numbers.get()
        })
    }

    #[test]
    fn without_a_fleet_nothing_has_to_be_confirmed() {
        let numbers = Cell::new(10);
        assert_eq!(asked(&FleetLease::default(), &numbers, 5_000_000), 0);
        assert_eq!(numbers.get(), 10, "and no number is taken");
    }

    #[test]
    fn beside_a_process_that_cannot_be_heard_it_has_lapsed() {
        let (lease, numbers) = (FleetLease::default(), Cell::new(10));
        lease.stand_beside(true);
        let first = asked(&lease, &numbers, 5_000);
        assert!((11..u64::MAX).contains(&first));
        assert_eq!(asked(&lease, &numbers, 5_100), first, "what was fetched since is served for a while");
        assert!(asked(&lease, &numbers, 9_000) > first);
        lease.stand_beside(false);
        assert_eq!(asked(&lease, &numbers, 9_001), 0);
    }

    #[test]
    fn one_that_has_ended_for_good_is_extended_no_more() {
        let (lease, numbers) = (FleetLease::default(), Cell::new(10));
        lease.end_for_good();
        assert!((11..u64::MAX).contains(&asked(&lease, &numbers, 5_000)));
        lease.extend(9_000);
        assert!(lease.has_lapsed(5_000));
        let first = asked(&lease, &numbers, 5_000);
        assert!(
            first < u64::MAX && asked(&lease, &numbers, 5_001) > first,
            "what was fetched a moment ago has to be confirmed too"
        );
    }

    #[test]
    fn what_was_heard_holds_for_a_lease_and_not_longer() {
        let (lease, numbers) = lapsed();
        lease.extend(5_000);
        assert_eq!(asked(&lease, &numbers, 4_999), 0);
        assert!(asked(&lease, &numbers, 5_000) > 10);
        lease.extend(4_000);
        assert!(
            !lease.has_lapsed(4_500) && lease.has_lapsed(5_000),
            "an older word takes nothing back and adds nothing"
        );
        lease.extend(6_000);
        assert_eq!(asked(&lease, &numbers, 5_500), 0);
    }

    /// Each row: when somebody asks, and from which number on what is stored may be served.
    #[test]
    fn once_lapsed_what_began_within_a_lease_may_be_served() {
        let (lease, numbers) = lapsed();
        for (at_ms, from) in [
            // All that was stored before the first question has to be confirmed.
            (20_000, 11),
            (20_499, 11),
            // What began since is good until its mark is a lease old, and the next mark takes over.
            (20_500, 11),
            (20_999, 11),
            (21_000, 12),
            (21_400, 12),
            // After a long pause, such as that of a stopped process, nothing is.
            (99_000, 14),
        ] {
            assert_eq!(asked(&lease, &numbers, at_ms), from, "{at_ms}");
        }
    }

    #[test]
    fn what_may_have_been_missed_has_to_be_confirmed_for_good() {
        let (lease, numbers) = lapsed();
        lease.extend(5_000);
        lease.condemn(8);
        lease.condemn(7);
        assert_eq!(asked(&lease, &numbers, 4_000), 8);
        assert_eq!(asked(&lease, &numbers, 6_000), 11, "what is younger than the lapse is younger than that, too");
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_confirms_nothing_by_itself() {
        let (lease, numbers) = lapsed();
        let from = asked(&lease, &numbers, 30_000);
        assert_eq!(asked(&lease, &numbers, 30_000), from);
        assert_eq!(asked(&lease, &numbers, 29_000), from);
    }
}
