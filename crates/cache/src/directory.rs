//! The directory: for every key what is stored, what is being fetched, and what is known of it otherwise.
//!
//! Sharded by the key's digest; a shard is locked for a look-up or a change, never while anybody waits. The lock
//! order is shard, then flight or eviction. What leaves is handed out, to be dropped when no lock is held.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;
use message::FieldsView;
use smallvec::SmallVec;
use store::Charge;
use store::sync::{Guard, Mutex};

use crate::flight::{Failure, Flight};
use crate::key::{DigestBuild, Key, Variant};
use crate::limits::{FLIGHTS_LISTED_MAX, FLOORS, NOTES_MAX, SHARDS, SPECS_MAX};
use crate::object::Object;
use crate::spec::{Spec, same_spec, variant_of};
use crate::variants::{Slot, Variants};
use crate::wishes::Now;

pub(crate) struct Directory {
    shards: Box<[Mutex<Shard>]>,
}

pub(crate) struct Shard {
    pub entries: HashMap<Key, Entry, DigestBuild>,
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

/// All about one key.
pub(crate) struct Entry {
    /// Every Vary specification in use, newest first; `None` is a response without Vary.
    specs: SmallVec<[Option<Arc<Spec>>; 1]>,
    variants: Variants,
    /// The flights that others can join.
    flights: Vec<Listed>,
    /// Fetches under way, listed or not. While there is one the entry stays, and with it `invalidated`.
    pub fetching: u32,
    /// The number of the last invalidation of this key.
    pub invalidated: u64,
    /// Hit-for-miss: until when its responses are known not to be storable.
    uncacheable_until_ms: u64,
    /// Negative memory.
    failure: Option<Box<(Failure, u64)>>,
    noted: bool,
    _charge: Charge,
}

// The table is between half and seven eighths full; beside it an arena node, its links in the wheel and a ghost.
#[cfg(not(feature = "shuttle"))]
const _: () = assert!(size_of::<(Key, Entry)>() * 2 + 96 <= crate::limits::ENTRY_BYTES);

struct Listed {
    flight: Arc<Flight>,
    spec: Option<Arc<Spec>>,
    variant: Variant,
}

impl Directory {
    pub fn new() -> Directory {
        Directory { shards: (0..SHARDS).map(|_| Mutex::new(Shard::default())).collect() }
    }

    /// The shard of a key, by the digest's top bits; the table inside goes by its low ones.
    #[inline]
    pub fn shard(&self, key: Key) -> Guard<'_, Shard> {
        self.shards[(key.0 >> (128 - SHARDS.trailing_zeros())) as usize].lock()
    }

    pub fn entries_count(&self) -> usize {
        self.shards().map(|shard| shard.entries.len()).sum()
    }

    /// One after another.
    pub fn shards(&self) -> impl Iterator<Item = Guard<'_, Shard>> {
        self.shards.iter().map(|shard| shard.lock())
    }

    pub fn nth_shard(&self, index: usize) -> Guard<'_, Shard> {
        self.shards[index].lock()
    }
}

impl Default for Shard {
    fn default() -> Shard {
        Shard {
            entries: HashMap::default(),
            floors: [0; FLOORS],
            notes: VecDeque::new(),
            order: 0,
            open: SmallVec::new(),
        }
    }
}

impl Shard {
    /// The entry of a key, made if there is none.
    pub fn entry(&mut self, key: Key, charge: impl FnOnce() -> Charge) -> &mut Entry {
        let floor = self.floors[floor_of(key)];
        self.entries.entry(key).or_insert_with(|| Entry::new(floor, charge()))
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

    /// Removes an entry that says nothing any more.
    pub fn tidy(&mut self, key: Key) {
        if self.entries.get(&key).is_some_and(Entry::is_idle)
            && let Some(entry) = self.entries.remove(&key)
        {
            let floor = &mut self.floors[floor_of(key)];
            *floor = entry.invalidated.max(*floor);
        }
    }

    /// Remembers that this key's responses are not storable, if it is said until when.
    pub fn note_uncacheable(&mut self, key: Key, until_ms: Option<u64>) {
        if let Some(until_ms) = until_ms
            && let Some(entry) = self.entries.get_mut(&key)
        {
            entry.uncacheable_until_ms = until_ms;
            self.note(key);
        }
    }

    /// Remembers a failure.
    pub fn note_failure(&mut self, key: Key, failure: Failure, now: Now) {
        if let Some(entry) = self.entries.get_mut(&key) {
            let until_ms = now.mono_ms.saturating_add(failure.remember_ms);
            entry.failure = Some(Box::new((failure, until_ms)));
            self.note(key);
        }
    }

    fn note(&mut self, key: Key) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if std::mem::replace(&mut entry.noted, true) {
            return;
        }
        self.notes.push_back(key);
        if self.notes.len() > NOTES_MAX
            && let Some(oldest) = self.notes.pop_front()
            && let Some(entry) = self.entries.get_mut(&oldest)
        {
            entry.noted = false;
            entry.forget_notes();
            self.tidy(oldest);
        }
    }
}

fn floor_of(key: Key) -> usize {
    (key.0 >> 64) as usize % FLOORS
}

impl Entry {
    fn new(invalidated: u64, charge: Charge) -> Entry {
        Entry {
            specs: SmallVec::new(),
            variants: Variants::None,
            flights: Vec::new(),
            fetching: 0,
            invalidated,
            uncacheable_until_ms: 0,
            failure: None,
            noted: false,
            _charge: charge,
        }
    }

    fn is_idle(&self) -> bool {
        self.fetching == 0 && self.variants.count() == 0 && self.uncacheable_until_ms == 0 && self.failure.is_none()
    }

    /// What is stored for a request: under the newest specification that has it (RFC 9111 §4.1: of several that
    /// match, the most recent).
    pub fn find(&self, request: FieldsView<'_>, ignore_vary: bool) -> Option<&Slot> {
        if ignore_vary {
            return self.variants.newest();
        }
        self.specs.iter().find_map(|spec| self.variants.get(variant_of(spec.as_ref(), request)))
    }

    pub fn slot(&self, variant: Variant) -> Option<&Slot> {
        self.variants.get(variant)
    }

    /// A flight whose response would fit, as far as is known.
    pub fn joinable(&self, request: FieldsView<'_>, ignore_vary: bool) -> Option<&Arc<Flight>> {
        let mut last: Option<(&Option<Arc<Spec>>, Variant)> = None;
        let found = self.flights.iter().rev().find(|listed| {
            if ignore_vary {
                return true;
            }
            let variant = match last {
                Some((spec, variant)) if same_spec(spec.as_ref(), listed.spec.as_ref()) => variant,
                _ => variant_of(listed.spec.as_ref(), request),
            };
            last = Some((&listed.spec, variant));
            variant == listed.variant
        });
        found.map(|listed| &listed.flight)
    }

    /// Lets others find a flight whose response is not known yet: under the specification they would look by.
    pub fn list_new(&mut self, flight: &Arc<Flight>, request: FieldsView<'_>) {
        if self.flights.len() < FLIGHTS_LISTED_MAX {
            let spec = self.specs.first().cloned().flatten();
            let variant = variant_of(spec.as_ref(), request);
            self.flights.push(Listed { flight: Arc::clone(flight), spec, variant });
        }
    }

    /// The head said what the flight varies on: from now on it is found by that, unless another one is already.
    pub fn list_described(&mut self, flight: &Arc<Flight>, spec: Option<Arc<Spec>>, variant: Variant) {
        self.delist(flight);
        let taken = self.flights.iter().any(|it| it.variant == variant && same_spec(it.spec.as_ref(), spec.as_ref()));
        if !taken && self.flights.len() < FLIGHTS_LISTED_MAX {
            self.flights.push(Listed { flight: Arc::clone(flight), spec, variant });
        }
    }

    /// True when others could have joined it until now.
    pub fn delist(&mut self, flight: &Arc<Flight>) -> bool {
        let before = self.flights.len();
        self.flights.retain(|listed| !Arc::ptr_eq(&listed.flight, flight));
        self.flights.len() < before
    }

    pub fn delist_all(&mut self) -> impl Iterator<Item = Arc<Flight>> + use<> {
        std::mem::take(&mut self.flights).into_iter().map(|listed| listed.flight)
    }

    /// Makes a specification the newest. Returns the entry's own copy of it.
    pub fn note_spec(&mut self, spec: Option<Arc<Spec>>, leavers: &mut Leavers) -> Option<Arc<Spec>> {
        let known = self.specs.iter().position(|it| same_spec(it.as_ref(), spec.as_ref()));
        let spec = known.map_or(spec, |at| self.specs.remove(at));
        self.specs.insert(0, spec.clone());
        if self.specs.len() > SPECS_MAX {
            let gone = self.specs.pop().expect("there are more than SPECS_MAX");
            let of_it = |slot: &Slot| slot.objects().any(|object| same_spec(object.spec.as_ref(), gone.as_ref()));
            let variants: Vec<Variant> =
                self.variants.iter().filter(|(_, slot)| of_it(slot)).map(|(variant, _)| variant).collect();
            variants.into_iter().for_each(|variant| self.remove_variant(variant, leavers));
        }
        spec
    }

    /// Takes an object in, as the newest of its variant, and makes hot exactly what is under the newest
    /// specification. Bounds: how many variants there may be, and whether bans are watched for.
    pub fn store(&mut self, object: &Arc<Object>, bounds: (usize, bool), leavers: &mut Leavers) {
        let (variants_max, watched) = bounds;
        self.note_spec(object.spec.clone(), leavers);
        let slot = self.variants.slot(object.variant);
        if object.partial().is_some() {
            slot.parts.store(object, leavers);
        } else {
            slot.parts.take_all(leavers);
            leavers.extend(slot.whole.replace(Arc::clone(object)));
            // Parts of what is too large to be stored say nothing about the whole.
            self.uncacheable_until_ms = 0;
        }
        if self.variants.count() > variants_max.max(1) {
            let oldest = self.variants.oldest_but(object.variant).expect("it is over its bound");
            self.remove_variant(oldest, leavers);
        }
        self.failure = None;
        self.temper(watched);
    }

    /// Puts an object in the place of one that differs in its lifetimes only.
    pub fn swap(&mut self, old: &Arc<Object>, new: &Arc<Object>, watched: bool) {
        let slot = self.variants.get_mut(old.variant).expect("who swaps has found it here");
        slot.whole = Some(Arc::clone(new));
        self.temper(watched);
    }

    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.variants.iter().flat_map(|(_, slot)| slot.objects())
    }

    /// Says of every object whether a hot table may serve it, and whether that has to watch for bans.
    pub fn temper(&self, watched: bool) {
        let newest = self.specs.first().and_then(Option::as_ref);
        for object in self.objects() {
            let is_whole = object.partial().is_none() && object.mark().is_none();
            object.set_hot(watched, is_whole && same_spec(object.spec.as_ref(), newest));
        }
    }

    /// Takes out the whole response of a variant.
    pub fn remove_whole(&mut self, variant: Variant, leavers: &mut Leavers) {
        if let Some(slot) = self.variants.get_mut(variant) {
            leavers.extend(slot.whole.take());
            if slot.is_empty() {
                self.variants.remove(variant);
            }
        }
    }

    /// Is anything stored?
    pub fn holds_any(&self) -> bool {
        self.variants.count() > 0
    }

    fn remove_variant(&mut self, variant: Variant, leavers: &mut Leavers) {
        if let Some(mut slot) = self.variants.remove(variant) {
            leavers.extend(slot.whole);
            slot.parts.take_all(leavers);
        }
    }

    /// Takes out one object, if it is the stored one.
    pub fn remove(&mut self, object: &Arc<Object>) -> bool {
        let Some(slot) = self.variants.get_mut(object.variant) else { return false };
        let is_it = match object.partial() {
            Some(_) => slot.parts.remove(object),
            None => slot.whole.take_if(|stored| Arc::ptr_eq(stored, object)).is_some(),
        };
        if is_it && slot.is_empty() {
            self.variants.remove(object.variant);
        }
        is_it
    }

    pub fn remove_all(&mut self, leavers: &mut Leavers) {
        self.specs.clear();
        let all: Vec<Variant> = self.variants.iter().map(|(variant, _)| variant).collect();
        all.into_iter().for_each(|variant| self.remove_variant(variant, leavers));
    }

    pub fn is_uncacheable(&mut self, now: Now) -> bool {
        if self.uncacheable_until_ms <= now.mono_ms {
            self.uncacheable_until_ms = 0;
        }
        self.uncacheable_until_ms != 0
    }

    /// The failure of a moment ago.
    pub fn recent_failure(&mut self, now: Now) -> Option<Failure> {
        self.failure.take_if(|it| it.1 <= now.mono_ms);
        self.failure.as_ref().map(|it| it.0.clone())
    }

    pub fn forget_notes(&mut self) {
        self.uncacheable_until_ms = 0;
        self.failure = None;
    }
}
