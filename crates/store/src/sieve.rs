//! SIEVE (Zhang et al., NSDI 2024), over weighted tenants: one queue in the order of arrival, and a hand that walks it
//! from the oldest to the newest, takes out whom nobody used since it came by, and lets the others stay where they are.
//!
//! Simpler than S3-FIFO and near to it for web objects. A scan of what is asked for once can push out more, because newcomers are
//! kept until the hand comes round.

use std::sync::Arc;

use crate::arena::Arena;
use crate::eviction::{Eviction, Tenant};
use crate::limits::PASSED_OVER_MAX;

pub struct Sieve<T> {
    arena: Arena<T, 1>,
    /// Where the next search begins; none: with the oldest.
    hand: Option<u32>,
}

impl<T: Tenant> Sieve<T> {
    pub fn new() -> Sieve<T> {
        Sieve { arena: Arena::new(), hand: None }
    }

    /// Takes out who sits there; the hand goes on to the next newer one.
    fn take(&mut self, place: u32) -> Option<Arc<T>> {
        if self.hand == Some(place) {
            self.hand = self.arena.newer(place);
        }
        self.arena.take(place)
    }
}

impl<T: Tenant> Default for Sieve<T> {
    fn default() -> Sieve<T> {
        Sieve::new()
    }
}

impl<T: Tenant> Eviction<T> for Sieve<T> {
    fn admit(&mut self, tenant: Arc<T>) {
        self.arena.push(0, tenant);
    }

    fn reweigh(&mut self, tenant: &T, before: usize) {
        self.arena.reweigh(tenant, before);
    }

    fn remove(&mut self, tenant: &T) {
        if let Some(place) = tenant.seat().place() {
            self.take(place);
        }
    }

    fn victim(&mut self) -> Option<Arc<T>> {
        if let Some(place) = self.arena.over() {
            return self.take(place);
        }
        let mut place = self.hand.or_else(|| self.arena.oldest(0))?;
        for _ in 0..PASSED_OVER_MAX {
            let tenant = self.arena.tenant(place)?;
            if tenant.seat().hits() == 0 {
                break;
            }
            tenant.seat().set_hits(0);
            place = self.arena.newer(place).or_else(|| self.arena.oldest(0))?;
        }
        self.hand = Some(place);
        self.take(place)
    }

    fn spare(&mut self, tenant: Arc<T>) {
        self.admit(tenant);
    }

    fn set_limit(&mut self, _bytes: usize) {}

    fn note_time(&mut self, now_s: u32) {
        self.arena.note_time(now_s);
    }

    fn count(&self) -> usize {
        self.arena.count()
    }

    fn weight(&self) -> usize {
        self.arena.weight()
    }
}
