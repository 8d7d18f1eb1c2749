//! Tags: words that stored responses carry, by which many of them are purged at once, hard or soft, and counted.
//!
//! For each tag the index knows the keys under which something carries it, and what does. Objects are enrolled when they are stored and
//! struck off when they leave, under their shard's lock; the lock order is shard, then index. What an index entry costs is
//! charged to the object. It is made for the first response with tags: a site without them has none.
//!
//! A hard purge takes all that carries its tag out of the index in one go, and marks it with nothing locked (`purging.rs`). The index
//! does not look into what it knows.
//!
//! Cache groups (`group_table.rs`) are cheaper and know neither counts nor objects; their table of numbers serves here for
//! what is under way.

use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry as Place;
use smallvec::SmallVec;
use store::sync::Mutex;
use store::sync::atomic::{AtomicU64, Ordering};

use crate::group_table::{GroupTable, Groups, Membership};
use crate::key::{DigestBuild, Key};
use crate::limits::{PURGED_PIECE, TAG_BYTES, TAG_SHARDS, TAGS_MAX};

/// The tags of a response, whoever fetches it.
#[derive(Clone, Debug)]
pub struct Tags {
    /// In order.
    digests: Arc<[u64]>,
    groups: Groups,
}

/// A response carries more tags than `limits::TAGS_MAX`. It must not be stored: a purge could not find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyTags;

/// A tag, by its digest, and what carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagUse {
    /// [`Key::bits`] of its digest.
    pub bits: u64,
    /// Keys under which something carries it, and one of them.
    pub keys: usize,
    pub one_of_them: Key,
    /// Responses that carry it.
    pub objects: usize,
}

/// One for the process.
#[derive(Debug)]
pub(crate) struct TagIndex<T> {
    shards: Box<[Mutex<ByDigest<T>>]>,
    numbers: Arc<GroupTable>,
    /// The tags whose carriers are being marked at this moment.
    being_purged: Mutex<SmallVec<[u64; 2]>>,
    /// Tags of objects, each object's counted.
    enrolled: AtomicU64,
}

type ByDigest<T> = HashMap<u64, Keys<T>, DigestBuild>;

/// The keys under which something carries a tag, and which of its variants do. The sum of those is kept: counted anew for who lists the
/// tags, it would hold the lock for as long as that takes.
#[derive(Debug)]
enum Keys<T> {
    One(Key, Carriers<T>),
    Many { keys: HashMap<Key, Carriers<T>, DigestBuild>, objects: usize },
}

/// What carries a tag under one key. The directory has it: here it is only known.
#[derive(Debug)]
enum Carriers<T> {
    One(Weak<T>),
    /// In a box, so that an entry of the index is as large as half a line of the cache.
    Many(Box<SmallVec<[Weak<T>; 4]>>),
}

/// What carried a tag at one moment, for a purge to mark. Until this is dropped what takes the place of any of it is not stored.
pub(crate) struct TagCarriers<'a, T> {
    index: &'a TagIndex<T>,
    tag: u64,
    keys: Option<Keys<T>>,
}

/// The tags of a stored response.
#[derive(Debug)]
pub(crate) struct TagSet<T> {
    index: Arc<TagIndex<T>>,
    tags: Tags,
}

impl Tags {
    /// By the digests of their names; `None` for none.
    pub fn new(tags: impl IntoIterator<Item = Key>) -> Result<Option<Tags>, TooManyTags> {
        let mut keys: Vec<Key> = tags.into_iter().take(TAGS_MAX + 1).collect();
        if keys.len() > TAGS_MAX {
            return Err(TooManyTags);
        }
        keys.sort_unstable_by_key(|key| key.bits());
        keys.dedup();
        let digests = keys.iter().map(|key| key.bits()).collect();
        Ok(Groups::new(keys).map(|groups| Tags { digests, groups }))
    }
}

impl Tags {
    /// As they were stored; `None` for none.
    pub(crate) fn as_they_were(slots: Vec<u32>, digests: Vec<u64>) -> Option<Tags> {
        let is_in_order = digests.is_sorted() && digests.len() <= TAGS_MAX;
        let groups = Groups::of_slots(slots)?;
        (is_in_order && !digests.is_empty()).then(|| Tags { digests: digests.into(), groups })
    }
}

impl<T> TagIndex<T> {
    pub fn new() -> Arc<TagIndex<T>> {
        let shards = (0..TAG_SHARDS).map(|_| Mutex::new(HashMap::default())).collect();
        Arc::new(TagIndex {
            shards,
            numbers: GroupTable::new(),
            being_purged: Mutex::default(),
            enrolled: AtomicU64::new(0),
        })
    }

    fn shard(&self, digest: u64) -> &Mutex<ByDigest<T>> {
        &self.shards[(digest >> (64 - TAG_SHARDS.trailing_zeros())) as usize]
    }

    /// Nothing that carries the tag and began before this number will be stored any more.
    pub fn invalidate(&self, tag: Key, number: u64) {
        self.numbers.invalidate(tag, number);
    }

    /// Takes what carries a tag out of the index, to be marked. To be called when the tag was invalidated.
    pub fn take(&self, tag: Key) -> TagCarriers<'_, T> {
        self.carriers_by(tag, |keys, tag| keys.remove(tag))
    }

    /// What carries a tag and goes on doing so. To be called when the tag was invalidated.
    pub fn carriers(&self, tag: Key) -> TagCarriers<'_, T> {
        self.carriers_by(tag, |keys, tag| keys.get(tag).cloned())
    }

    fn carriers_by(
        &self,
        tag: Key,
        look: impl FnOnce(&mut ByDigest<T>, &u64) -> Option<Keys<T>>,
    ) -> TagCarriers<'_, T> {
        let tag = tag.bits();
        self.being_purged.lock().push(tag);
        let keys = look(&mut self.shard(tag).lock(), &tag);
        TagCarriers { index: self, tag, keys }
    }

    /// The keys under which something carries a tag.
    pub fn keys(&self, tag: Key) -> Vec<Key> {
        match self.shard(tag.bits()).lock().get(&tag.bits()) {
            None => Vec::new(),
            Some(Keys::One(key, _)) => vec![*key],
            Some(Keys::Many { keys, .. }) => keys.keys().copied().collect(),
        }
    }

    /// All tags that something carries.
    pub fn uses(&self) -> Vec<TagUse> {
        let mut uses = Vec::new();
        for shard in &self.shards {
            uses.extend(shard.lock().iter().filter_map(|(bits, keys)| keys.as_use(*bits)));
        }
        uses
    }

    /// What an earlier process purged.
    pub fn restore(&self, slot: u32, number: u64) {
        self.numbers.restore(slot, number);
    }

    pub fn enrolled_count(&self) -> u64 {
        self.enrolled.load(Ordering::Relaxed)
    }
}

impl<T> TagSet<T> {
    pub fn new(index: &Arc<TagIndex<T>>, tags: Tags) -> Arc<TagSet<T>> {
        Arc::new(TagSet { index: Arc::clone(index), tags })
    }

    pub fn has(&self, tag: Key) -> bool {
        self.tags.digests.binary_search(&tag.bits()).is_ok()
    }

    /// The slots of their numbers, and their digests in order.
    pub fn as_stored(&self) -> (&[u32], &[u64]) {
        (self.tags.groups.slots(), &self.tags.digests)
    }

    /// Enters what is about to be stored. False if one of its tags was purged since its fetch began: whoever
    /// purges gives the number first and reads the index then, so one of the two sees the other.
    pub fn enrol(&self, key: Key, object: &Arc<T>, began: u64) -> bool {
        for &digest in self.tags.digests.iter() {
            let carrier = Arc::downgrade(object);
            match self.index.shard(digest).lock().entry(digest) {
                Place::Vacant(place) => drop(place.insert(Keys::One(key, Carriers::One(carrier)))),
                Place::Occupied(mut place) => place.get_mut().add(key, carrier),
            }
        }
        self.index.enrolled.fetch_add(self.tags.digests.len() as u64, Ordering::Relaxed);
        let valid = self.is_valid_since(began);
        if !valid {
            self.strike_off(key, object);
        }
        valid
    }

    /// One that was entered has left. A purge may have taken it out of the index before.
    pub fn strike_off(&self, key: Key, object: &T) {
        for &digest in self.tags.digests.iter() {
            if let Place::Occupied(mut place) = self.index.shard(digest).lock().entry(digest)
                && place.get_mut().remove(key, object)
            {
                place.remove();
            }
        }
        self.index.enrolled.fetch_sub(self.tags.digests.len() as u64, Ordering::Relaxed);
    }

    /// Is what carries one of them being marked at this moment?
    pub fn is_being_purged(&self) -> bool {
        self.index.being_purged.lock().iter().any(|tag| self.tags.digests.binary_search(tag).is_ok())
    }

    /// Was none of them purged after this number?
    pub fn is_valid_since(&self, number: u64) -> bool {
        self.under_way(number).is_valid()
    }

    /// Those of what is under way since a number.
    pub fn under_way(&self, began: u64) -> Arc<Membership> {
        Membership::new(&self.index.numbers, &self.tags.groups, began)
    }

    /// With what the index spends on them.
    pub fn heap_bytes(&self) -> usize {
        size_of::<TagSet<T>>() + self.tags.digests.len() * (size_of::<u64>() + size_of::<u32>() + TAG_BYTES)
    }
}

// By hand: what carries the tag need not be cloned.
impl<T> Clone for Keys<T> {
    fn clone(&self) -> Keys<T> {
        match self {
            Keys::One(key, carriers) => Keys::One(*key, carriers.clone()),
            Keys::Many { keys, objects } => Keys::Many { keys: keys.clone(), objects: *objects },
        }
    }
}

impl<T> Clone for Carriers<T> {
    fn clone(&self) -> Carriers<T> {
        match self {
            Carriers::One(only) => Carriers::One(Weak::clone(only)),
            Carriers::Many(all) => Carriers::Many(all.clone()),
        }
    }
}

impl<T> Keys<T> {
    fn as_use(&self, bits: u64) -> Option<TagUse> {
        match self {
            Keys::One(key, carriers) => {
                Some(TagUse { bits, keys: 1, one_of_them: *key, objects: carriers.all().len() })
            }
            Keys::Many { keys, objects } => {
                Some(TagUse { bits, keys: keys.len(), one_of_them: *keys.keys().next()?, objects: *objects })
            }
        }
    }

    fn add(&mut self, key: Key, carrier: Weak<T>) {
        match self {
            Keys::One(only, carriers) if *only == key => carriers.add(carrier),
            Keys::One(only, carriers) => {
                let first = std::mem::replace(carriers, Carriers::One(Weak::new()));
                let objects = first.all().len() + 1;
                let keys = HashMap::from_iter([(*only, first), (key, Carriers::One(carrier))]);
                *self = Keys::Many { keys, objects };
            }
            Keys::Many { keys, objects } => {
                *objects += 1;
                match keys.entry(key) {
                    Place::Vacant(place) => drop(place.insert(Carriers::One(carrier))),
                    Place::Occupied(mut place) => place.get_mut().add(carrier),
                }
            }
        }
    }

    /// Takes an object out, if it is in. True when nothing is left.
    fn remove(&mut self, key: Key, object: &T) -> bool {
        match self {
            Keys::One(only, carriers) => {
                if *only == key {
                    carriers.remove(object);
                }
                carriers.all().is_empty()
            }
            Keys::Many { keys, objects } => {
                if let Place::Occupied(mut place) = keys.entry(key) {
                    *objects -= usize::from(place.get_mut().remove(object));
                    if place.get().all().is_empty() {
                        place.remove();
                    }
                }
                keys.is_empty()
            }
        }
    }
}

impl<T> Carriers<T> {
    fn all(&self) -> &[Weak<T>] {
        match self {
            Carriers::One(only) => std::slice::from_ref(only),
            Carriers::Many(all) => all,
        }
    }

    fn add(&mut self, carrier: Weak<T>) {
        match self {
            Carriers::One(first) => {
                *self = Carriers::Many(Box::new(SmallVec::from_iter([std::mem::take(first), carrier])))
            }
            Carriers::Many(all) => all.push(carrier),
        }
    }

    /// True if it was in.
    fn remove(&mut self, object: &T) -> bool {
        let Some(at) = self.all().iter().position(|carrier| std::ptr::eq(carrier.as_ptr(), object)) else {
            return false;
        };
        match self {
            Carriers::One(_) => *self = Carriers::Many(Box::default()),
            Carriers::Many(all) => drop(all.swap_remove(at)),
        }
        true
    }
}

impl<T> TagCarriers<'_, T> {
    /// Shows what is still there to `each`, piece by piece. Most of it lies anywhere in memory: a look at all of a piece first has its
    /// parts come side by side.
    pub fn in_pieces(&mut self, mut each: impl FnMut(Vec<Arc<T>>)) {
        let mut piece = Vec::with_capacity(PURGED_PIECE);
        let mut show = |piece: &mut Vec<Weak<T>>| {
            let is_there = |carrier: &&Weak<T>| carrier.strong_count() > 0;
            let mut there = Vec::with_capacity(piece.iter().filter(is_there).count());
            there.extend(piece.drain(..).filter_map(|carrier| carrier.upgrade()));
            each(there);
        };
        let mut note = |carriers: Carriers<T>| {
            match carriers {
                Carriers::One(only) => piece.push(only),
                Carriers::Many(all) => piece.extend(*all),
            }
            if piece.len() >= PURGED_PIECE {
                show(&mut piece);
            }
        };
        match self.keys.take() {
            None => return,
            Some(Keys::One(_, carriers)) => note(carriers),
            Some(Keys::Many { keys, .. }) => keys.into_values().for_each(note),
        }
        show(&mut piece);
    }
}

impl<T> Drop for TagCarriers<'_, T> {
    fn drop(&mut self) {
        let mut being_purged = self.index.being_purged.lock();
        if let Some(at) = being_purged.iter().position(|tag| *tag == self.tag) {
            being_purged.swap_remove(at);
        }
    }
}
