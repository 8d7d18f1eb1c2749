//! S3-FIFO (Yang et al., SOSP 2023), weighted by bytes: a small queue on probation, a main queue, and the ghosts
//! of those who left probation unused.
//!
//! Most of what is asked for once is never asked for again; it passes through the small queue and cannot push out
//! the hot set. Hits only count in the seat, so this needs a lock for storing and evicting, never for hits.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::arena::Arena;
use crate::eviction::{Eviction, Tenant};
use crate::limits::{GHOSTS_MAX, GHOSTS_MIN, PASSED_OVER_MAX, PROBATION_PERCENT, PROMOTION_HITS, SEAT_HITS_MAX};

const PROBATION: usize = 0;
const MAIN: usize = 1;

pub struct S3Fifo<T> {
    arena: Arena<T, 2>,
    ghosts: Ghosts,
    probation_bytes_max: usize,
}

impl<T: Tenant> S3Fifo<T> {
    pub fn new(limit: usize) -> S3Fifo<T> {
        let mut policy = S3Fifo { arena: Arena::new(), ghosts: Ghosts::default(), probation_bytes_max: 0 };
        policy.set_limit(limit);
        policy
    }

    /// The oldest on probation, unless it has earned its place in the main queue.
    fn leave_probation(&mut self) -> Option<Arc<T>> {
        let tenant = self.arena.pop(PROBATION)?;
        if tenant.seat().hits() < PROMOTION_HITS {
            self.ghosts.insert(tenant.fingerprint(), self.arena.count());
            return Some(tenant);
        }
        tenant.seat().set_hits(0);
        self.arena.push(MAIN, tenant);
        None
    }

    /// The oldest in the main queue, unless it was used: then it goes round again and is one use the poorer.
    fn leave_main(&mut self) -> Option<Arc<T>> {
        let tenant = self.arena.pop(MAIN)?;
        let hits = tenant.seat().hits();
        if hits == 0 {
            return Some(tenant);
        }
        tenant.seat().set_hits(hits - 1);
        self.arena.push(MAIN, tenant);
        None
    }
}

impl<T: Tenant> Eviction<T> for S3Fifo<T> {
    fn admit(&mut self, tenant: Arc<T>) {
        let queue = if self.ghosts.take(tenant.fingerprint()) { MAIN } else { PROBATION };
        self.arena.push(queue, tenant);
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
        for _ in 0..PASSED_OVER_MAX.min(self.arena.count() * usize::from(SEAT_HITS_MAX + 2)) {
            let probation = self.arena.queue(PROBATION);
            let crowded = probation.weight > self.probation_bytes_max || self.arena.queue(MAIN).count == 0;
            let leaves = if crowded && probation.count > 0 { self.leave_probation() } else { self.leave_main() };
            if leaves.is_some() {
                return leaves;
            }
        }
        self.arena.pop(MAIN).or_else(|| self.arena.pop(PROBATION))
    }

    fn spare(&mut self, tenant: Arc<T>) {
        self.ghosts.take(tenant.fingerprint());
        self.arena.push(PROBATION, tenant);
    }

    fn set_limit(&mut self, bytes: usize) {
        self.probation_bytes_max = bytes / 100 * PROBATION_PERCENT;
    }

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

/// Fingerprints of those who left probation unused, oldest first. A name that comes back goes to the main queue.
#[derive(Default)]
struct Ghosts {
    order: VecDeque<(u64, u64)>,
    latest: HashMap<u64, u64, foldhash::fast::RandomState>,
    sequence: u64,
}

impl Ghosts {
    fn insert(&mut self, fingerprint: u64, tenants: usize) {
        self.sequence += 1;
        self.latest.insert(fingerprint, self.sequence);
        self.order.push_back((fingerprint, self.sequence));
        let max = tenants.clamp(GHOSTS_MIN, GHOSTS_MAX);
        while self.order.len() > max {
            let (oldest, sequence) = self.order.pop_front().expect("it is longer than its bound");
            // An entry that was taken, or renewed since, is only a husk in the queue.
            if self.latest.get(&oldest) == Some(&sequence) {
                self.latest.remove(&oldest);
            }
        }
    }

    fn take(&mut self, fingerprint: u64) -> bool {
        self.latest.remove(&fingerprint).is_some()
    }
}
