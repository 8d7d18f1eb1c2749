//! The directory: for every key what is stored, what is being fetched, and what is known of it otherwise.
//!
//! Sharded by the key's digest; a shard is locked for a look-up or a change, never while anybody waits. The lock
//! order is shard, then flight or eviction. What leaves is handed out, to be dropped when no lock is held.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{HashMap, hash_map};
use smallvec::SmallVec;
use store::Account;
use store::sync::{Guard, Mutex};

use crate::entry::{Entry, temper};
use crate::flight::Failure;
use crate::key::{DigestBuild, Key};
use crate::limits::{ENTRY_BYTES, FLOORS, NOTES_MAX, OBJECT_INDEX_BYTES, SHARDS};
use crate::object::Object;
use crate::wishes::Now;

pub(crate) struct Directory {
    shards: Box<[Mutex<Shard>]>,
}

pub(crate) struct Shard {
    keys: HashMap<Key, Known, DigestBuild>,
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

/// Objects that left the directory. They die under the shard's lock and are freed after it.
pub(crate) type Leavers = SmallVec<[Arc<Object>; 2]>;

/// What is known under a key. Nearly all of them have one stored response and nothing else; of such a key only that is kept,
/// and becomes an entry as soon as anybody wants to change something.
enum Known {
    Object(Arc<Object>),
    Entry(Box<Entry>),
}

// The table is between half and seven eighths full; beside it an arena node, its links in the wheel and a ghost.
const _: () = assert!((size_of::<(Key, Known)>() + 1) * 2 + 96 <= OBJECT_INDEX_BYTES);

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

impl Known {
    /// Makes it an entry, if it is none.
    fn entry(&mut self, invalidated: u64, account: &Arc<Account>) -> &mut Entry {
        if let Known::Object(object) = self {
            *self = Known::Entry(Box::new(Entry::of(object, invalidated, account.charge(ENTRY_BYTES))));
        }
        match self {
            Known::Entry(entry) => entry,
            Known::Object(_) => unreachable!("it was just made one"),
        }
    }

    fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        let (alone, entry) = match self {
            Known::Object(object) => (Some(object), None),
            Known::Entry(entry) => (None, Some(entry)),
        };
        alone.into_iter().chain(entry.into_iter().flat_map(|entry| entry.objects()))
    }
}

impl Shard {
    fn new(account: &Arc<Account>) -> Shard {
        Shard {
            keys: HashMap::default(),
            account: Arc::clone(account),
            floors: [0; FLOORS],
            notes: VecDeque::new(),
            order: 0,
            open: SmallVec::new(),
        }
    }

    /// The entry of a key, made if there is none. Whoever asked for it says [`tidy`](Shard::tidy) in the end.
    pub fn entry(&mut self, key: Key) -> &mut Entry {
        let (floor, account) = (self.floors[floor_of(key)], &self.account);
        let fresh = || Known::Entry(Box::new(Entry::new(floor, account.charge(ENTRY_BYTES))));
        self.keys.entry(key).or_insert_with(fresh).entry(floor, account)
    }

    /// The same of a key of which something is known.
    pub fn known(&mut self, key: Key) -> Option<&mut Entry> {
        let (floor, account) = (self.floors[floor_of(key)], &self.account);
        self.keys.get_mut(&key).map(|known| known.entry(floor, account))
    }

    /// The entry of a key, if there is one already: while anything is fetched there is.
    pub fn entry_if_any(&mut self, key: Key) -> Option<&mut Entry> {
        match self.keys.get_mut(&key) {
            Some(Known::Entry(entry)) => Some(entry),
            _ => None,
        }
    }

    /// The object of a key, if it is all that is known of it.
    pub fn only_object(&self, key: Key) -> Option<&Arc<Object>> {
        match self.keys.get(&key) {
            Some(Known::Object(object)) => Some(object),
            _ => None,
        }
    }

    /// Is anything stored under a key?
    pub fn holds_any(&self, key: Key) -> bool {
        self.keys.get(&key).is_some_and(|known| known.objects().next().is_some())
    }

    pub fn keys_count(&self) -> usize {
        self.keys.len()
    }

    /// What is stored under those keys that are wanted.
    pub fn objects(&self, wants: impl Fn(Key) -> bool) -> impl Iterator<Item = &Arc<Object>> {
        self.keys.iter().filter(move |(key, _)| wants(**key)).flat_map(|(_, known)| known.objects())
    }

    /// Takes out one object, if it is the stored one, and with it what says nothing any more.
    pub fn remove(&mut self, object: &Arc<Object>) -> bool {
        let is_it = match self.keys.get_mut(&object.key) {
            Some(Known::Object(only)) => Arc::ptr_eq(only, object),
            Some(Known::Entry(entry)) => {
                let was_in = entry.remove(object);
                self.tidy(object.key);
                return was_in;
            }
            None => false,
        };
        if is_it {
            self.keys.remove(&object.key);
        }
        is_it
    }

    /// See [`Entry::temper`].
    pub fn temper(&self, watched: bool) {
        for known in self.keys.values() {
            match known {
                Known::Object(object) => temper(object, watched, true),
                Known::Entry(entry) => entry.temper(watched),
            }
        }
    }

    /// Gives the key a new invalidation number; returns the one it had.
    pub fn renumber(&mut self, key: Key, number: u64) -> u64 {
        let place = match self.keys.get_mut(&key) {
            Some(Known::Entry(entry)) => &mut entry.invalidated,
            _ => &mut self.floors[floor_of(key)],
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
        let hash_map::Entry::Occupied(mut place) = self.keys.entry(key) else { return };
        let Known::Entry(entry) = place.get_mut() else { return };
        let invalidated = entry.invalidated;
        if entry.is_idle() {
            place.remove();
        } else if let Some(object) = entry.take_only_object() {
            *place.get_mut() = Known::Object(object);
        } else {
            return;
        }
        let floor = &mut self.floors[floor_of(key)];
        *floor = invalidated.max(*floor);
    }

    /// Remembers that this key's responses are not storable, if it is said until when.
    pub fn note_uncacheable(&mut self, key: Key, until_ms: Option<u64>) {
        if let Some(until_ms) = until_ms
            && let Some(entry) = self.entry_if_any(key)
        {
            entry.note_uncacheable(until_ms);
            self.note(key);
        }
    }

    /// Remembers a failure.
    pub fn note_failure(&mut self, key: Key, failure: Failure, now: Now) {
        if let Some(entry) = self.entry_if_any(key) {
            let until_ms = now.mono_ms.saturating_add(failure.remember_ms);
            entry.note_failure(failure, until_ms);
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
