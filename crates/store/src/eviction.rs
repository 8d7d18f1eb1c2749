//! Who leaves first: the seat that every tenant carries, and the trait behind which a policy chooses.
//!
//! A hit only calls [`Seat::touch`], which takes no lock and writes nothing once its counter is full. The policy
//! itself is changed under its owner's lock, by those who store, purge and evict.

use std::sync::Arc;

use crate::limits::SEAT_HITS_MAX;
use crate::lru::Lru;
use crate::s3_fifo::S3Fifo;
use crate::sieve::Sieve;
use crate::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// Which policy to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionKind {
    S3Fifo,
    Sieve,
    Lru,
}

impl EvictionKind {
    pub const ALL: [EvictionKind; 3] = [EvictionKind::S3Fifo, EvictionKind::Sieve, EvictionKind::Lru];

    /// As settings and tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            EvictionKind::S3Fifo => "s3-fifo",
            EvictionKind::Sieve => "sieve",
            EvictionKind::Lru => "lru",
        }
    }
}

/// The policy of that kind for so many bytes.
pub fn by_kind<T: Tenant + 'static>(kind: EvictionKind, limit: usize) -> Box<dyn Eviction<T>> {
    match kind {
        EvictionKind::S3Fifo => Box::new(S3Fifo::new(limit)),
        EvictionKind::Sieve => Box::new(Sieve::new()),
        EvictionKind::Lru => Box::new(Lru::new()),
    }
}

/// What a policy needs of the things it orders.
pub trait Tenant: Send + Sync {
    fn seat(&self) -> &Seat;
    /// Bytes that leave with it. The same as long as it sits, but for what [`Eviction::reweigh`] is told.
    fn weight(&self) -> usize;
    /// The same for a tenant that comes back after it was evicted: a digest of its name.
    fn fingerprint(&self) -> u64;
    /// The second from which on nobody has a use for it, on the clock of [`Eviction::note_time`]; none if it has no end.
    /// The same as long as it sits.
    fn over_s(&self) -> Option<u32> {
        None
    }
}

/// An order among tenants. Its weight is bounded by who calls [`victim`](Eviction::victim); the limit given to it
/// only sizes its queues.
pub trait Eviction<T: Tenant>: Send {
    fn admit(&mut self, tenant: Arc<T>);
    /// Takes out a tenant that left by itself. Nothing happens if it was not in.
    fn remove(&mut self, tenant: &T);
    /// Says that a tenant, which may sit, weighs something else than it did.
    fn reweigh(&mut self, tenant: &T, before: usize);
    /// Takes out the one that should leave next: one whose life is over, if there is one.
    fn victim(&mut self) -> Option<Arc<T>>;
    /// Takes one back that was chosen and does not leave after all. It has earned nothing by that.
    fn spare(&mut self, tenant: Arc<T>);
    fn set_limit(&mut self, bytes: usize);
    /// It is this second now. To be said now and then: nobody's life is over before.
    fn note_time(&mut self, now_s: u32);
    fn count(&self) -> usize;
    fn weight(&self) -> usize;
}

/// Where a tenant sits in its policy, and how often it was used of late.
#[derive(Debug, Default)]
pub struct Seat {
    /// The node's index plus one; 0 while it has none. Changed only by the policy.
    place: AtomicU32,
    /// Which of its policy's queues that is in.
    queue: AtomicU8,
    hits: AtomicU8,
}

impl Seat {
    /// Counts a use. Two at once may count as one, which no policy minds.
    #[inline]
    pub fn touch(&self) {
        let hits = self.hits.load(Relaxed);
        if hits < SEAT_HITS_MAX {
            self.hits.store(hits + 1, Relaxed);
        }
    }

    /// How often it was used of late; from here on it counts anew.
    pub fn take_uses(&self) -> u8 {
        self.hits.swap(0, Relaxed)
    }

    /// Takes over what is known of the tenant in whose place this one comes.
    pub fn inherit(&self, before: &Seat) {
        self.set_hits(before.hits());
    }

    pub(crate) fn hits(&self) -> u8 {
        self.hits.load(Relaxed)
    }

    pub(crate) fn set_hits(&self, hits: u8) {
        self.hits.store(hits, Relaxed);
    }

    pub(crate) fn place(&self) -> Option<u32> {
        self.place.load(Relaxed).checked_sub(1)
    }

    pub(crate) fn queue(&self) -> usize {
        usize::from(self.queue.load(Relaxed))
    }

    pub(crate) fn set_place(&self, place: Option<u32>, queue: usize) {
        self.queue.store(queue as u8, Relaxed);
        self.place.store(place.map_or(0, |index| index + 1), Relaxed);
    }
}
