//! The directory: for every key what is stored, what is being fetched, and what is known of it otherwise.
//!
//! Sharded by the key's digest; a shard is locked for a look-up or a change, never while anybody waits. The lock
//! order is shard, then flight or eviction. What leaves is handed out, to be dropped when no lock is held.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{HashMap, HashTable, hash_map};
use smallvec::SmallVec;
use store::Account;
use store::sync::{Guard, Mutex};

use crate::entry::{Entry, temper};
use crate::failure::Failure;
use crate::key::{DigestBuild, Key};
use crate::limits::{ENTRY_BYTES, FLOORS, GHOST_BYTES, NOTES_MAX, OBJECT_INDEX_BYTES, SHARDS};
use crate::moment::Now;
use crate::object::Object;
use crate::why_uncacheable::WhyUncacheable;

pub(crate) struct Directory {
    shards: Box<[Mutex<Shard>]>,
}

pub(crate) struct Shard {
    /// Keys of which nothing is known but one stored response: nearly all. Only that is kept, until anybody wants to change
    /// something; then the key goes over to the entries.
    alone: HashTable<Alone>,
    entries: HashMap<Key, Box<Entry>, DigestBuild>,
    account: Arc<Account>,
    /// The last invalidation of keys that have no entry. Only a fetch without a ticket can have begun before it, and
    /// is not stored then; that of another key in the same place counts too.
    floors: [u64; FLOORS],
    /// Keys with notes, oldest first; bounded, because attackers choose keys.
    notes: VecDeque<Key>,
    /// Numbers the questions to this shard, and so its flights.
    order: u64,
    /// The numbers that its open flights began under, in order, and how many of each.
    open: SmallVec<[(u64, u32); 2]>,
}

/// The key is the object's; half of it stands here, so that the table grows and is looked through without a look at the objects,
/// which may be anywhere in memory.
struct Alone {
    key_bits: u64,
    object: Arc<Object>,
}

// The table is between 7/16 and seven eighths full; beside it a node of the arena with its links in the wheel, and a ghost.
const _: () = assert!((size_of::<Alone>() + 1) * 16 / 7 + 24 + GHOST_BYTES <= OBJECT_INDEX_BYTES);

impl Directory {
    pub fn new(account: &Arc<Account>) -> Directory {
        Directory { shards: (0..SHARDS).map(|_| Mutex::new(Shard::new(account))).collect() }
    }

    /// The shard of a key, by the digest's top bits; the table inside goes by its low ones.
    #[inline]
    pub fn shard(&self, key: Key) -> Guard<'_, Shard> {
        self.shards[(key.0 >> (128 - SHARDS.trailing_zeros())) as usize].lock()
    }

    pub fn keys_count(&self) -> usize {
        self.shards().map(|shard| shard.keys_count()).sum()
    }

    /// One after another.
    pub fn shards(&self) -> impl Iterator<Item = Guard<'_, Shard>> {
        self.shards.iter().map(|shard| shard.lock())
    }

    pub fn nth_shard(&self, index: usize) -> Guard<'_, Shard> {
        self.shards[index].lock()
    }
}

impl Alone {
    fn is_of(&self, key: Key) -> bool {
        self.key_bits == key.bits() && self.object.key == key
    }
}

impl Shard {
    fn new(account: &Arc<Account>) -> Shard {
        Shard {
            alone: HashTable::new(),
            entries: HashMap::default(),
            account: Arc::clone(account),
            floors: [0; FLOORS],
            notes: VecDeque::new(),
            order: 0,
            open: SmallVec::new(),
        }
    }

    /// The entry of a key, made if there is none. Whoever asked for it says [`tidy`](Shard::tidy) in the end.
    pub fn entry(&mut self, key: Key) -> &mut Entry {
        self.take_alone(key);
        let (floor, account) = (self.floors[floor_of(key)], &self.account);
        self.entries.entry(key).or_insert_with(|| Box::new(Entry::new(floor, account.charge(ENTRY_BYTES))))
    }

    /// The same of a key of which something is known.
    pub fn known(&mut self, key: Key) -> Option<&mut Entry> {
        self.take_alone(key);
        self.entry_if_any(key)
    }

    /// What is known of a key, to be looked at; nothing that is done with it changes anything.
    pub fn copy(&self, key: Key) -> Entry {
        let charge = self.account.charge(0);
        match (self.only_object(key), self.entries.get(&key)) {
            (Some(object), _) => Entry::of(object, self.floors[floor_of(key)], charge),
            (None, Some(entry)) => entry.copy(charge),
            (None, None) => Entry::new(self.floors[floor_of(key)], charge),
        }
    }

    /// Makes the only object of a key an entry, if that is all that is known of it.
    fn take_alone(&mut self, key: Key) {
        let Ok(place) = self.alone.find_entry(key.bits(), |alone| alone.is_of(key)) else { return };
        let (Alone { object, .. }, _) = place.remove();
        let entry = Entry::of(&object, self.floors[floor_of(key)], self.account.charge(ENTRY_BYTES));
        self.entries.insert(key, Box::new(entry));
    }

    /// The entry of a key, if there is one already: while anything is fetched there is.
    pub fn entry_if_any(&mut self, key: Key) -> Option<&mut Entry> {
        self.entries.get_mut(&key).map(|entry| &mut **entry)
    }

    /// The object of a key, if it is all that is known of it.
    pub fn only_object(&self, key: Key) -> Option<&Arc<Object>> {
        self.alone.find(key.bits(), |alone| alone.is_of(key)).map(|alone| &alone.object)
    }

    /// Is anything stored under a key?
    pub fn holds_any(&self, key: Key) -> bool {
        let is_there = |object: &Arc<Object>| !object.is_withdrawn();
        let in_entry = || self.entries.get(&key).is_some_and(|entry| entry.objects().any(is_there));
        self.only_object(key).is_some_and(is_there) || in_entry()
    }

    pub fn keys_count(&self) -> usize {
        self.alone.len() + self.entries.len()
    }

    /// What is stored under those keys that are wanted, by [`Key::bits`].
    pub fn objects(&self, wants: impl Fn(u64) -> bool + Copy) -> impl Iterator<Item = &Arc<Object>> {
        let alone = self.alone.iter().filter(move |alone| wants(alone.key_bits)).map(|alone| &alone.object);
        let entries = self.entries.iter().filter(move |(key, _)| wants(key.bits()));
        alone.chain(entries.flat_map(|(_, entry)| entry.objects()))
    }

    /// Takes out one object, if it is the stored one, and with it what says nothing any more.
    pub fn remove(&mut self, object: &Arc<Object>) -> bool {
        let key = object.key;
        if let Ok(place) = self.alone.find_entry(key.bits(), |alone| Arc::ptr_eq(&alone.object, object)) {
            place.remove();
            return true;
        }
        let was_in = self.entry_if_any(key).is_some_and(|entry| entry.remove(object));
        self.tidy(key);
        was_in
    }

    /// See [`Entry::temper`].
    pub fn temper(&self, watched: bool) {
        self.alone.iter().for_each(|alone| temper(&alone.object, watched, true));
        self.entries.values().for_each(|entry| entry.temper(watched));
    }

    /// Gives the key a new invalidation number; returns the one it had.
    pub fn renumber(&mut self, key: Key, number: u64) -> u64 {
        let place = match self.entries.get_mut(&key) {
            Some(entry) => &mut entry.invalidated,
            None => &mut self.floors[floor_of(key)],
        };
        std::mem::replace(place, number)
    }

    pub fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// A flight began under this number.
    pub fn open(&mut self, began: u64) {
        match self.open.binary_search_by_key(&began, |open| open.0) {
            Ok(at) => self.open[at].1 += 1,
            Err(at) => self.open.insert(at, (began, 1)),
        }
    }

    /// It has ended.
    pub fn close(&mut self, began: u64) {
        let at = self.open.binary_search_by_key(&began, |open| open.0).expect("a flight that ends was opened");
        self.open[at].1 -= 1;
        if self.open[at].1 == 0 {
            self.open.remove(at);
        }
    }

    /// The number under which the oldest of its flights began.
    pub fn oldest_open(&self) -> Option<u64> {
        self.open.first().map(|open| open.0)
    }

    /// Removes an entry that says nothing any more, and keeps of one that says no more than its object only that.
    pub fn tidy(&mut self, key: Key) {
        let hash_map::Entry::Occupied(mut place) = self.entries.entry(key) else { return };
        let entry = place.get_mut();
        let invalidated = entry.invalidated;
        if entry.is_idle() {
            place.remove();
        } else if let Some(object) = entry.take_only_object() {
            place.remove();
            let alone = Alone { key_bits: key.bits(), object };
            self.alone.insert_unique(key.bits(), alone, |alone| alone.key_bits);
        } else {
            return;
        }
        let floor = &mut self.floors[floor_of(key)];
        *floor = invalidated.max(*floor);
    }

    /// Remembers that this key's responses are not storable, or those to requests with credentials, if it is said until when.
    pub fn note_uncacheable(
        &mut self,
        key: Key,
        until_ms: Option<u64>,
        is_personal: bool,
        why: Option<WhyUncacheable>,
    ) {
        if let Some(until_ms) = until_ms
            && let Some(entry) = self.entry_if_any(key)
        {
            entry.note_uncacheable(until_ms, is_personal, why);
            self.note(key);
        }
    }

    /// Remembers a failure, which several had or one alone.
    pub fn note_failure(&mut self, key: Key, failure: Failure, had_by_several: bool, now: Now) {
        if let Some(entry) = self.entry_if_any(key) {
            entry.note_failure(failure, had_by_several, now);
            self.note(key);
        }
    }

    fn note(&mut self, key: Key) {
        let Some(entry) = self.entry_if_any(key) else { return };
        if entry.set_noted(true) {
            return;
        }
        self.notes.push_back(key);
        if self.notes.len() > NOTES_MAX
            && let Some(oldest) = self.notes.pop_front()
            && let Some(entry) = self.entry_if_any(oldest)
        {
            entry.set_noted(false);
            entry.forget_notes();
            self.tidy(oldest);
        }
    }
}

fn floor_of(key: Key) -> usize {
    (key.0 >> 64) as usize % FLOORS
}
