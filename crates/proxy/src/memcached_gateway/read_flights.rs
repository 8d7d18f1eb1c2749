//! Gets that are on their way to one server, by key: who asks for the same key meanwhile waits for the same reply. Routes
//! may differ in how long they wait for it and in how much they take, and wait for none that would end otherwise than
//! one of their own.
//!
//! A reply may be shared as long as nobody was told of a change to its key since it was asked for: the lane that brings
//! the reply to a change forgets the key's get before it tells whoever changed it. All cores share the table.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use parking_lot::Mutex;

use crate::memcached_gateway::gateway_call::GatewayCall;

/// Parts of the table, each with a lock of its own.
const SHARDS_COUNT: usize = 16;

#[derive(Debug)]
pub(crate) struct ReadFlights {
    hasher: RandomState,
    shards: [Mutex<HashTable<Arc<GatewayCall>>>; SHARDS_COUNT],
}

/// A get as a route wants it.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) timeout_ms: u64,
    pub(crate) value_bytes_max: usize,
}

impl Wish<'_> {
    fn is_met_by(&self, call: &GatewayCall) -> bool {
        *call.key == *self.key
            && call.patience.timeout_ms == self.timeout_ms
            && call.value_bytes_max == self.value_bytes_max
    }
}

/// A place in a flight.
pub(crate) enum Seat {
    /// Somebody has asked already.
    Joined(Arc<GatewayCall>),
    /// Ours to ask.
    Leading(Arc<GatewayCall>),
}

impl ReadFlights {
    pub(crate) fn new() -> ReadFlights {
        ReadFlights { hasher: RandomState::default(), shards: Default::default() }
    }

    fn shard(&self, hash: u64) -> &Mutex<HashTable<Arc<GatewayCall>>> {
        &self.shards[hash as usize % SHARDS_COUNT]
    }

    /// The get that is on its way and meets this wish, or the one that `begin` makes.
    pub(crate) fn join(&self, wish: &Wish<'_>, begin: impl FnOnce() -> GatewayCall) -> Seat {
        let hash = self.hasher.hash_one(wish.key);
        let mut shard = self.shard(hash).lock();
        if let Some(call) = shard.find(hash, |call| wish.is_met_by(call)) {
            return Seat::Joined(Arc::clone(call));
        }
        let call = Arc::new(begin());
        shard.insert_unique(hash, Arc::clone(&call), |call| self.hasher.hash_one(&*call.key));
        Seat::Leading(call)
    }

    /// The get that is on its way and meets this wish, if there is one.
    pub(crate) fn find(&self, wish: &Wish<'_>) -> Option<Arc<GatewayCall>> {
        let hash = self.hasher.hash_one(wish.key);
        self.shard(hash).lock().find(hash, |call| wish.is_met_by(call)).cloned()
    }

    /// It has ended, and is joined by nobody any more.
    pub(crate) fn leave(&self, call: &Arc<GatewayCall>) {
        let hash = self.hasher.hash_one(&*call.key);
        if let Ok(entry) = self.shard(hash).lock().find_entry(hash, |known| Arc::ptr_eq(known, call)) {
            entry.remove();
        }
    }

    /// What is on its way for this key may be older than a change that somebody is about to hear of.
    pub(crate) fn forget(&self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash).lock();
        // One of each kind of route.
        while let Ok(entry) = shard.find_entry(hash, |call| *call.key == *key) {
            entry.remove();
        }
    }

    pub(crate) fn forget_all(&self) {
        self.shards.iter().for_each(|shard| shard.lock().clear());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::memcached_gateway::gateway_call::Patience;
    use wire::memcached::Command;

    const WISH: Wish<'static> = Wish { key: b"a", timeout_ms: 1_000, value_bytes_max: 1 };

    fn join(flights: &ReadFlights, wish: Wish<'_>) -> (Arc<GatewayCall>, bool) {
        let get = Command::MetaGet { key: wish.key, exptime: None };
        let patience = Patience::new(Duration::from_millis(wish.timeout_ms));
        match flights.join(&wish, || GatewayCall::new(&get, wish.key, patience, wish.value_bytes_max)) {
            Seat::Leading(call) => (call, true),
            Seat::Joined(call) => (call, false),
        }
    }

    /// Whether a get of `a` is led anew after `between`.
    fn check(between: impl FnOnce(&ReadFlights, &Arc<GatewayCall>), leads: bool) {
        let flights = ReadFlights::new();
        let (first, _) = join(&flights, WISH);
        between(&flights, &first);
        let found = flights.find(&WISH).is_some_and(|found| Arc::ptr_eq(&found, &first));
        let (next, is_led) = join(&flights, WISH);
        assert_eq!((is_led, Arc::ptr_eq(&next, &first), found), (leads, !leads, !leads));
    }

    #[test]
    fn a_get_is_joined_until_it_ends_or_its_key_changes() {
        check(|_, _| {}, false);
        check(|flights, call| flights.leave(call), true);
        check(|flights, _| flights.forget(b"a"), true);
        check(|flights, _| flights.forget(b"b"), false);
        check(|flights, _| flights.forget_all(), true);
    }

    #[test]
    fn a_get_is_joined_by_those_who_want_the_same_of_it() {
        let flights = ReadFlights::new();
        let (first, _) = join(&flights, WISH);
        let others =
            [Wish { timeout_ms: 999, ..WISH }, Wish { value_bytes_max: 2, ..WISH }, Wish { key: b"b", ..WISH }];
        for other in others {
            assert!(flights.find(&other).is_none());
            assert!(join(&flights, other).1 && !join(&flights, other).1, "each kind leads one");
        }
        assert!(Arc::ptr_eq(&join(&flights, WISH).0, &first));
        flights.forget(b"a");
        for (wish, leads) in [(WISH, true), (others[0], true), (others[1], true), (others[2], false)] {
            assert_eq!(join(&flights, wish).1, leads, "a change is one to all of them");
        }
    }

    #[test]
    fn a_get_that_was_forgotten_takes_nobody_with_it_when_it_ends() {
        let flights = ReadFlights::new();
        let (old, _) = join(&flights, WISH);
        flights.forget(b"a");
        let (new, _) = join(&flights, WISH);
        flights.leave(&old);
        let (joined, leads) = join(&flights, WISH);
        assert!(!leads && Arc::ptr_eq(&joined, &new));
    }
}
