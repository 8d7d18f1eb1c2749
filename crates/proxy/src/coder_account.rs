//! What coders hold of memory while they work: it stands on an account of their own, which says when there are enough of them, and on that
//! of the store, which gives way to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cache::{Account, Charge};

/// Of all cores and threads.
pub(crate) struct CoderAccount {
    own: Arc<Account>,
    of_store: Arc<Account>,
    refused: AtomicU64,
}

/// Held as long as the coders are there.
pub(crate) struct CoderCharge([Charge; 2]);

impl CoderAccount {
    /// `bytes_max`: `limits.coding_memory_bytes_max`.
    pub(crate) fn new(bytes_max: usize, of_store: &Arc<Account>) -> CoderAccount {
        CoderAccount { own: Account::new(bytes_max), of_store: Arc::clone(of_store), refused: AtomicU64::new(0) }
    }

    pub(crate) fn set_limit(&self, bytes_max: usize) {
        self.own.set_limit(bytes_max);
    }

    /// May somebody code that could leave it, and takes so much for it? A no is counted.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        let has_room = self.own.excess(bytes) == 0;
        if !has_room {
            self.refused.fetch_add(1, Relaxed);
        }
        has_room
    }

    /// For what has to be, whatever the limit says.
    pub(crate) fn charge(&self, bytes: usize) -> CoderCharge {
        CoderCharge([&self.own, &self.of_store].map(|account| account.charge(bytes)))
    }

    pub(crate) fn used(&self) -> u64 {
        self.own.used() as u64
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }
}

impl std::fmt::Debug for CoderCharge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CoderCharge({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_leaves_no_room_for_others_and_the_store_less() {
        let store = Account::new(1_000);
        let coders = CoderAccount::new(100, &store);
        assert!(coders.has_room_for(100) && !coders.has_room_for(101));
        let held = coders.charge(60);
        assert!(coders.has_room_for(40) && !coders.has_room_for(41));
        assert_eq!((coders.used(), store.used(), coders.refused()), (60, 60, 2));
        let more = coders.charge(60);
        assert!(!coders.has_room_for(0), "it is beyond its limit already");
        drop((held, more));
        assert_eq!((coders.used(), store.used()), (0, 0));
        coders.set_limit(0);
        assert!(!coders.has_room_for(1));
    }
}
