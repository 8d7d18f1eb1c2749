//! Least recently used, by lazy promotion: a hit moves nothing, but a tenant that was touched since it was placed
//! is put back at the newest end when its turn to leave comes.
//!
//! Strict LRU would need a lock on every hit. The order among those touched between two evictions is lost, the
//! set of those that leave is nearly the same.

use std::sync::Arc;

use crate::arena::Arena;
use crate::eviction::{Eviction, Tenant};
use crate::limits::PASSED_OVER_MAX;

pub struct Lru<T> {
    arena: Arena<T, 1>,
}

impl<T: Tenant> Lru<T> {
    pub fn new() -> Lru<T> {
        Lru { arena: Arena::new() }
    }
}

impl<T: Tenant> Default for Lru<T> {
    fn default() -> Lru<T> {
        Lru::new()
    }
}

impl<T: Tenant> Eviction<T> for Lru<T> {
    fn admit(&mut self, tenant: Arc<T>) {
        self.arena.push(0, tenant);
    }

    fn reweigh(&mut self, tenant: &T, before: usize) {
        self.arena.reweigh(tenant, before);
    }

    fn remove(&mut self, tenant: &T) {
        self.arena.remove(tenant);
    }

    fn victim(&mut self) -> Option<Arc<T>> {
        if let Some(place) = self.arena.over() {
            return self.arena.take(place);
        }
        for _ in 0..self.arena.count().min(PASSED_OVER_MAX) {
            let tenant = self.arena.pop(0)?;
            if tenant.seat().hits() == 0 {
                return Some(tenant);
            }
            tenant.seat().set_hits(0);
            self.arena.push(0, tenant);
        }
        self.arena.pop(0)
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
