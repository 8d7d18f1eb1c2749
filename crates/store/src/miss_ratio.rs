//! What a cache of a given size would have missed: a trace of requests, replayed over the policies that the memory tier
//! itself evicts by. Nothing is stored but who sits where.

use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::eviction::{Eviction, EvictionKind, Seat, Tenant};

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which object, from 0 on without gaps.
    pub object: u32,
    /// How long its body is.
    pub bytes: u32,
    /// Seconds since the trace began.
    pub at_s: u32,
}

/// The cache that a trace is replayed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    pub kind: EvictionKind,
    /// What bodies and their objects may take together.
    pub limit_bytes: u64,
    /// What an object takes beside its body.
    pub object_bytes: u64,
    /// From when on a stored object is fetched again.
    pub ttl_s: Option<u32>,
    /// For how long after that it keeps its place in the order of eviction; then it leaves first.
    pub standby_s: u32,
}

/// How it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    pub requests: u64,
    pub missed: u64,
    pub bytes: u64,
    pub missed_bytes: u64,
}

impl Misses {
    /// Of the requests, 0 to 1.
    pub fn ratio(&self) -> f64 {
        self.missed as f64 / self.requests.max(1) as f64
    }

    /// Of the bytes asked for, 0 to 1.
    pub fn bytes_ratio(&self) -> f64 {
        self.missed_bytes as f64 / self.bytes.max(1) as f64
    }
}

struct Guest {
    object: u32,
    bytes: u32,
    stored_s: u32,
    weight: usize,
    over_s: Option<u32>,
    seat: Seat,
}

impl Tenant for Guest {
    fn seat(&self) -> &Seat {
        &self.seat
    }

    fn weight(&self) -> usize {
        self.weight
    }

    fn fingerprint(&self) -> u64 {
        u64::from(self.object)
    }

    fn over_s(&self) -> Option<u32> {
        self.over_s
    }
}

/// A cache of which only who sits where is kept. An object whose length is another than it was counts as another; one that is longer than
/// the whole cache is not kept.
pub struct TriedCache {
    tried: Tried,
    limit: usize,
    policy: Box<dyn Eviction<Guest>>,
    stored: HashMap<u32, Arc<Guest>, FixedState>,
}

impl TriedCache {
    pub fn new(tried: Tried) -> TriedCache {
        let limit = usize::try_from(tried.limit_bytes).unwrap_or(usize::MAX);
        TriedCache { tried, limit, policy: crate::eviction::by_kind(tried.kind, limit), stored: HashMap::default() }
    }

    /// When what it has for this request came from the origin. `None`: it is missed.
    pub fn ask(&mut self, ask: &Ask) -> Option<u32> {
        self.policy.note_time(ask.at_s);
        let guest = self.stored.get(&ask.object).filter(|guest| is_same(guest, ask, self.tried.ttl_s))?;
        guest.seat.touch();
        Some(guest.stored_s)
    }

    /// Takes in what was missed, and came from the origin at this second: an age that it has already is part of its life.
    pub fn store(&mut self, ask: &Ask, stored_s: u32) {
        let guest = Arc::new(guest_of(ask, stored_s, &self.tried));
        if let Some(before) = self.stored.remove(&ask.object) {
            guest.seat.inherit(&before.seat);
            self.policy.remove(&before);
        }
        if guest.weight <= self.limit {
            self.stored.insert(ask.object, Arc::clone(&guest));
            self.policy.admit(guest);
            self.make_room();
        }
    }

    fn make_room(&mut self) {
        while self.policy.weight() > self.limit {
            let Some(victim) = self.policy.victim() else { return };
            self.stored.remove(&victim.object);
        }
    }
}

/// Replays the whole trace.
pub fn replay(trace: &[Ask], tried: Tried) -> Misses {
    let mut cache = TriedCache::new(tried);
    let mut misses = Misses::default();
    for ask in trace {
        misses.requests += 1;
        misses.bytes += u64::from(ask.bytes);
        if cache.ask(ask).is_none() {
            misses.missed += 1;
            misses.missed_bytes += u64::from(ask.bytes);
            cache.store(ask, ask.at_s);
        }
    }
    misses
}

fn is_same(guest: &Guest, ask: &Ask, ttl_s: Option<u32>) -> bool {
    guest.bytes == ask.bytes && ttl_s.is_none_or(|ttl_s| ask.at_s.saturating_sub(guest.stored_s) < ttl_s)
}

fn guest_of(ask: &Ask, stored_s: u32, tried: &Tried) -> Guest {
    let weight = usize::try_from(u64::from(ask.bytes) + tried.object_bytes).unwrap_or(usize::MAX);
    let over_s = tried.ttl_s.map(|ttl_s| stored_s.saturating_add(ttl_s).saturating_add(tried.standby_s));
    Guest { object: ask.object, bytes: ask.bytes, stored_s, weight, over_s, seat: Seat::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects by letter, each of one byte.
    fn check(kind: EvictionKind, limit_bytes: u64, trace: &str, expect_missed: u64) {
        let ask = |(at, letter): (usize, u8)| Ask { object: u32::from(letter - b'a'), bytes: 1, at_s: at as u32 };
        let trace: Vec<Ask> = trace.bytes().enumerate().map(ask).collect();
        let tried = Tried { kind, limit_bytes, object_bytes: 0, ttl_s: None, standby_s: 0 };
        let misses = replay(&trace, tried);
        assert_eq!((misses.requests, misses.missed), (trace.len() as u64, expect_missed), "{kind:?} {limit_bytes}");
    }

    #[test]
    fn what_fits_is_missed_once() {
        for kind in EvictionKind::ALL {
            check(kind, 3, "abcabcabc", 3);
            check(kind, 0, "aaa", 3);
        }
    }

    #[test]
    fn the_least_recently_used_leaves_first() {
        check(EvictionKind::Lru, 2, "abacabac", 5);
        check(EvictionKind::Lru, 2, "abcabcabc", 9);
    }

    /// The hand passes `a`, which was used, takes `b`, and stays before `c`. Did it begin with the oldest each time, `d` would
    /// be there in the end.
    #[test]
    fn the_hand_of_sieve_goes_on_where_it_was() {
        check(EvictionKind::Sieve, 3, "abcadabed", 7);
        check(EvictionKind::Sieve, 3, "abcad", 4);
    }

    #[test]
    fn lengths_and_lives_count() {
        let ask = |at_s, bytes| Ask { object: 0, bytes, at_s };
        let tried = |limit_bytes, object_bytes, ttl_s| {
            replay(
                &[ask(0, 10), ask(1, 10), ask(2, 20), ask(62, 20)],
                Tried { kind: EvictionKind::S3Fifo, limit_bytes, object_bytes, ttl_s, standby_s: 0 },
            )
        };
        assert_eq!(tried(100, 0, None), Misses { requests: 4, missed: 2, bytes: 60, missed_bytes: 30 });
        assert_eq!(tried(100, 0, Some(60)).missed, 3);
        assert_eq!(tried(19, 0, None).missed, 3, "the longer one has no room");
        assert_eq!(tried(19, 10, None).missed, 4, "nor has any with what it costs beside its body");
    }

    #[test]
    fn what_comes_with_an_age_is_over_sooner() {
        let ask = |at_s| Ask { object: 7, bytes: 1, at_s };
        let tried = Tried { kind: EvictionKind::Lru, limit_bytes: 9, object_bytes: 0, ttl_s: Some(60), standby_s: 0 };
        let mut cache = TriedCache::new(tried);
        assert_eq!(cache.ask(&ask(50)), None);
        cache.store(&ask(50), 10);
        assert_eq!((cache.ask(&ask(69)), cache.ask(&ask(70))), (Some(10), None));
    }

    /// `b` is asked for as often as `a`, but both are over when `c` and `d` come; only `e` is not.
    #[test]
    fn what_is_over_leaves_before_what_is_not() {
        for (kind, standby_s, expect) in EvictionKind::ALL.into_iter().flat_map(|kind| [(kind, 0, 5), (kind, 1_000, 6)])
        {
            let asks = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (4, 9), (2, 30), (3, 30), (4, 30)];
            let trace: Vec<Ask> =
                asks.iter().map(|(object, at_s)| Ask { object: *object, bytes: 1, at_s: *at_s }).collect();
            let tried = Tried { kind, limit_bytes: 3, object_bytes: 0, ttl_s: Some(25), standby_s };
            assert_eq!(replay(&trace, tried).missed, expect, "{kind:?} {standby_s}");
        }
    }
}
