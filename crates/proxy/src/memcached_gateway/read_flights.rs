//! Gets that are on their way to one server, by key: who asks for the same key meanwhile waits for the same reply.
//!
//! A reply may be shared as long as nobody was told of a change to its key since it was asked for: the lane that brings
//! the reply to a change forgets the key's get before it tells whoever changed it. All cores share the table.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use parking_lot::Mutex;

use crate::memcached_gateway::gateway_call::Call;

/// Parts of the table, each with a lock of its own.
const SHARDS_COUNT: usize = 16;

#[derive(Debug)]
pub(crate) struct ReadFlights {
    hasher: RandomState,
    shards: [Mutex<HashTable<Arc<Call>>>; SHARDS_COUNT],
}

/// A place in a flight.
pub(crate) enum Seat {
    /// Somebody has asked already.
    Joined(Arc<Call>),
    /// Ours to ask.
    Leading(Arc<Call>),
}

impl ReadFlights {
    pub(crate) fn new() -> ReadFlights {
        ReadFlights { hasher: RandomState::default(), shards: Default::default() }
    }

    fn shard(&self, hash: u64) -> &Mutex<HashTable<Arc<Call>>> {
        &self.shards[hash as usize % SHARDS_COUNT]
    }

    /// The get of this key that is on its way, or the one that `begin` makes.
    pub(crate) fn join(&self, key: &[u8], begin: impl FnOnce() -> Call) -> Seat {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash).lock();
        if let Some(call) = shard.find(hash, |call| *call.key == *key) {
            return Seat::Joined(Arc::clone(call));
        }
        let call = Arc::new(begin());
        shard.insert_unique(hash, Arc::clone(&call), |call| self.hasher.hash_one(&*call.key));
        Seat::Leading(call)
    }

    /// The get of this key that is on its way, if there is one.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Arc<Call>> {
        let hash = self.hasher.hash_one(key);
        self.shard(hash).lock().find(hash, |call| *call.key == *key).cloned()
    }

    /// It has ended, and is joined by nobody any more.
    pub(crate) fn leave(&self, call: &Arc<Call>) {
        let hash = self.hasher.hash_one(&*call.key);
        if let Ok(entry) = self.shard(hash).lock().find_entry(hash, |known| Arc::ptr_eq(known, call)) {
            entry.remove();
        }
    }

    /// What is on its way for this key may be older than a change that somebody is about to hear of.
    pub(crate) fn forget(&self, key: &[u8]) {
        let hash = self.hasher.hash_one(key);
        if let Ok(entry) = self.shard(hash).lock().find_entry(hash, |call| *call.key == *key) {
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

    fn begin(key: &[u8]) -> Call {
        Call::new(&Command::MetaGet { key, exptime: None }, key, Patience::new(Duration::MAX), 1)
    }

    /// Whether a get of `a` is led anew after `between`.
    fn check(between: impl FnOnce(&ReadFlights, &Arc<Call>), leads: bool) {
        let flights = ReadFlights::new();
        let Seat::Leading(first) = flights.join(b"a", || begin(b"a")) else { panic!("nobody asked before") };
        between(&flights, &first);
        match flights.join(b"a", || begin(b"a")) {
            Seat::Leading(next) => assert!(leads && !Arc::ptr_eq(&next, &first)),
            Seat::Joined(next) => {
                assert!(!leads && Arc::ptr_eq(&next, &first));
                assert!(flights.find(b"a").is_some_and(|found| Arc::ptr_eq(&found, &first)));
            }
        }
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
    fn a_get_that_was_forgotten_takes_nobody_with_it_when_it_ends() {
        let flights = ReadFlights::new();
        let Seat::Leading(old) = flights.join(b"a", || begin(b"a")) else { panic!("nobody asked before") };
        flights.forget(b"a");
        let Seat::Leading(new) = flights.join(b"a", || begin(b"a")) else { panic!("it was forgotten") };
        flights.leave(&old);
        assert!(matches!(flights.join(b"a", || begin(b"a")), Seat::Joined(call) if Arc::ptr_eq(&call, &new)));
    }
}
