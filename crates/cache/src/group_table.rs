//! Cache groups (RFC 9875): a fixed table of slots, each with the number of the last invalidation of a group that falls
//! into it. A stored response keeps its groups' slots and the number under which its fetch began, and is outdated when
//! one of them has a greater one.
//!
//! Two groups may share a slot: then more is invalidated than was asked, never less. Nothing is looked for when a group
//! is invalidated; what it outdates is taken out when somebody asks for it, or evicted.

use std::sync::Arc;

use store::sync::atomic::{AtomicU64, Ordering};

use crate::key::Key;
use crate::limits::GROUP_SLOTS;

/// One for the process.
#[derive(Debug)]
pub(crate) struct GroupTable {
    numbers: Box<[AtomicU64]>,
    /// How often a number was written: as long as this stays the same, nothing has to be looked up again. The numbers
    /// themselves would not do, for they may arrive in another order than they were given out.
    changes: AtomicU64,
}

/// The groups of a response, whoever fetches it.
#[derive(Clone, Debug)]
pub struct Groups {
    slots: Arc<[u32]>,
}

/// The groups of a response that a fetch brought.
#[derive(Debug)]
pub(crate) struct Membership {
    table: Arc<GroupTable>,
    slots: Arc<[u32]>,
    began: u64,
    /// The table's count of changes when this was found to be valid.
    checked: AtomicU64,
}

impl GroupTable {
    pub fn new() -> Arc<GroupTable> {
        let numbers = (0..GROUP_SLOTS).map(|_| AtomicU64::new(0)).collect();
        Arc::new(GroupTable { numbers, changes: AtomicU64::new(0) })
    }

    /// Everything in a group whose fetch began before this number is outdated.
    pub fn invalidate(&self, group: Key, number: u64) {
        self.numbers[slot_of(group) as usize].fetch_max(number, Ordering::AcqRel);
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// What an earlier process invalidated.
    pub fn restore(&self, slot: u32, number: u64) {
        if let Some(last) = self.numbers.get(slot as usize) {
            last.fetch_max(number, Ordering::AcqRel);
            self.changes.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Was no group invalidated yet?
    #[inline]
    pub fn is_untouched(&self) -> bool {
        self.changes.load(Ordering::Acquire) == 0
    }

    fn last_of(&self, slots: &[u32]) -> u64 {
        slots.iter().map(|&slot| self.numbers[slot as usize].load(Ordering::Acquire)).max().unwrap_or(0)
    }
}

pub(crate) fn slot_of(group: Key) -> u32 {
    (group.bits() % GROUP_SLOTS as u64) as u32
}

impl Groups {
    /// By the digests of their names; `None` for none.
    pub fn new(groups: impl IntoIterator<Item = Key>) -> Option<Groups> {
        let mut slots: Vec<u32> = groups.into_iter().map(slot_of).collect();
        slots.sort_unstable();
        slots.dedup();
        (!slots.is_empty()).then(|| Groups { slots: slots.into() })
    }

    /// As they were stored; `None` for none, or for one that no group has.
    pub(crate) fn of_slots(slots: Vec<u32>) -> Option<Groups> {
        let are_slots = slots.iter().all(|&slot| (slot as usize) < GROUP_SLOTS);
        (are_slots && !slots.is_empty()).then(|| Groups { slots: slots.into() })
    }

    pub(crate) fn slots(&self) -> &[u32] {
        &self.slots
    }
}

impl Membership {
    pub fn new(table: &Arc<GroupTable>, groups: &Groups, began: u64) -> Arc<Membership> {
        let (table, slots) = (Arc::clone(table), Arc::clone(&groups.slots));
        Arc::new(Membership { table, slots, began, checked: AtomicU64::new(0) })
    }

    /// Is it still what its groups hold? Two loads, unless some group was invalidated since it was asked last.
    #[inline]
    pub fn is_valid(&self) -> bool {
        let changes = self.table.changes.load(Ordering::Acquire);
        changes <= self.checked.load(Ordering::Relaxed) || self.look(changes)
    }

    #[cold]
    fn look(&self, changes: u64) -> bool {
        let valid = self.is_valid_since(self.began);
        if valid {
            self.checked.fetch_max(changes, Ordering::Relaxed);
        }
        valid
    }

    /// Was none of its groups invalidated after this number?
    pub fn is_valid_since(&self, number: u64) -> bool {
        self.table.last_of(&self.slots) <= number
    }

    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    pub fn heap_bytes(&self) -> usize {
        size_of::<Membership>() + self.slots.len() * size_of::<u32>()
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::key::Digester;

    #[test]
    fn what_began_before_its_group_was_invalidated_is_outdated() {
        let (digester, table) = (Digester::random(), GroupTable::new());
        let group = |name: &str| digester.key([name.as_bytes()]);
        let member = |names: &[&str], began| {
            let groups = Groups::new(names.iter().map(|name| group(name))).expect("groups");
            Membership::new(&table, &groups, began)
        };
        let [old, new, other] = [member(&["a", "b"], 1), member(&["b"], 2), member(&["c"], 1)];
        assert!(old.is_valid() && new.is_valid() && other.is_valid());
        table.invalidate(group("b"), 2);
        assert_eq!([&old, &new, &other].map(|it| it.is_valid()), [false, true, true]);
        assert!(!old.is_valid_since(1) && old.is_valid_since(2));
        table.invalidate(group("c"), 3);
        assert_eq!([&old, &new, &other].map(|it| it.is_valid()), [false, true, false]);
        assert!(Groups::new([]).is_none());
    }

    #[test]
    fn invalidations_may_arrive_in_another_order_than_their_numbers() {
        let (digester, table) = (Digester::random(), GroupTable::new());
        let [first, second] = ["a", "b"].map(|name| digester.key([name.as_bytes()]));
        let member = Membership::new(&table, &Groups::new([first]).expect("a group"), 1);
        table.invalidate(second, 3);
        assert!(member.is_valid());
        table.invalidate(first, 2);
        assert!(!member.is_valid());
    }
}
