//! The one byte account of the process: a limit, and how much is used.
//!
//! Who keeps bytes holds a [`Charge`] for them; dropping it pays back. The account never refuses by itself: who
//! wants room asks how much is over, evicts, and then charges. It does not know who uses the bytes for what.

use std::sync::Arc;

use crate::limits::LEAVING_SLACK_SHIFT;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes allowed and bytes used.
///
/// | a charge is | counted in `used` | counted in `leaving` |
/// |---|---|---|
/// | new: filling, stored, a buffer | yes | no |
/// | told to leave: evicted, replaced or purged, but a reader still holds it | yes | yes |
/// | dropped | no | no |
#[derive(Debug)]
pub struct Account {
    limit: AtomicUsize,
    used: AtomicUsize,
    leaving: AtomicUsize,
}

impl Account {
    pub fn new(limit: usize) -> Arc<Account> {
        let (used, leaving) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Account { limit: AtomicUsize::new(limit), used, leaving })
    }

    pub fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Relaxed);
    }

    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// Bytes that go as soon as their last reader does.
    pub fn leaving(&self) -> usize {
        self.leaving.load(Relaxed)
    }

    /// What may be leaving before others have to leave for it.
    pub fn slack(&self) -> usize {
        self.limit() >> LEAVING_SLACK_SHIFT
    }

    /// How many bytes must be evicted before `more` can be taken. What is leaving already counts only above its
    /// slack: evicting others for it would empty the cache while a slow client reads one large object.
    pub fn excess(&self, more: usize) -> usize {
        let (limit, leaving) = (self.limit(), self.leaving());
        let staying = self.used().saturating_sub(leaving);
        let overhang = leaving.saturating_sub(self.slack());
        staying.saturating_add(overhang).saturating_add(more).saturating_sub(limit)
    }

    /// Counts bytes whose holder has no room for a [`Charge`], whatever the limit says. It gives back as many.
    pub fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes, Relaxed);
    }

    /// Gives back what was taken without a charge.
    pub fn give_back(&self, bytes: usize) {
        pay_back(&self.used, bytes);
    }

    /// Takes bytes, whatever the limit says.
    pub fn charge(self: &Arc<Account>, bytes: usize) -> Charge {
        self.used.fetch_add(bytes, Relaxed);
        Charge { account: Arc::clone(self), bytes_and_leaving: AtomicUsize::new(bytes << 1) }
    }
}

/// Bytes taken from an account until this is dropped.
#[derive(Debug)]
pub struct Charge {
    account: Arc<Account>,
    /// Twice the bytes, and one more once they are leaving.
    bytes_and_leaving: AtomicUsize,
}

impl Charge {
    pub fn bytes(&self) -> usize {
        self.bytes_and_leaving.load(Relaxed) >> 1
    }

    /// Does nothing but its last readers keep these bytes?
    pub fn is_leaving(&self) -> bool {
        self.bytes_and_leaving.load(Relaxed) & 1 == 1
    }

    /// Of the account that these bytes are on.
    pub fn account_limit(&self) -> usize {
        self.account.limit()
    }

    /// More bytes of the same account.
    pub fn another(&self, bytes: usize) -> Charge {
        self.account.charge(bytes)
    }

    /// Corrects the charge to what is really held.
    pub fn resize(&mut self, bytes: usize) {
        let (account, was, leaving) = (&self.account, self.bytes(), self.is_leaving());
        self.bytes_and_leaving.store(bytes << 1 | usize::from(leaving), Relaxed);
        for counter in [Some(&account.used), leaving.then_some(&account.leaving)].into_iter().flatten() {
            if bytes >= was {
                counter.fetch_add(bytes - was, Relaxed);
            } else {
                pay_back(counter, was - bytes);
            }
        }
    }

    /// Says that nothing but its last readers keeps these bytes.
    pub fn leave(&self) {
        let before = self.bytes_and_leaving.fetch_or(1, Relaxed);
        if before & 1 == 0 {
            self.account.leaving.fetch_add(before >> 1, Relaxed);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let bytes = self.bytes();
        if self.is_leaving() {
            pay_back(&self.account.leaving, bytes);
        }
        pay_back(&self.account.used, bytes);
    }
}

fn pay_back(counter: &AtomicUsize, bytes: usize) {
    let before = counter.fetch_sub(bytes, Relaxed);
    assert!(before >= bytes, "the account paid back more than was taken");
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_leaves_counts_only_above_its_slack() {
        let account = Account::new(1600);
        let big = account.charge(1000);
        let small = account.charge(90);
        assert_eq!(account.excess(600), 90);
        small.leave();
        small.leave();
        assert_eq!(account.excess(600), 0);
        big.leave();
        assert_eq!((account.leaving(), account.excess(600)), (1090, 0));
        assert_eq!(account.excess(1600), 990);
        drop((big, small));
        assert_eq!((account.used(), account.leaving()), (0, 0));
    }

    proptest! {
        #[test]
        fn the_account_is_the_sum_of_its_charges(steps in prop::collection::vec((0u8..4, 0usize..9, 0usize..5000), 1..200)) {
            let account = Account::new(10_000);
            let mut charges: Vec<Charge> = Vec::new();
            for (verb, at, bytes) in steps {
                let at = at % charges.len().max(1);
                match (verb, charges.get_mut(at)) {
                    (1, Some(charge)) => charge.resize(bytes),
                    (2, Some(charge)) => charge.leave(),
                    (3, Some(_)) => drop(charges.swap_remove(at)),
                    _ => charges.push(account.charge(bytes)),
                }
                prop_assert_eq!(account.used(), charges.iter().map(Charge::bytes).sum::<usize>());
                prop_assert!(account.leaving() <= account.used());
            }
            charges.clear();
            prop_assert_eq!((account.used(), account.leaving()), (0, 0));
        }
    }
}
