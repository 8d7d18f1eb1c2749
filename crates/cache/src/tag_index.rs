//! Tags: words that stored responses carry, by which many of them are purged at once, hard or soft, and counted.
//!
//! For each tag the index knows the keys under which something carries it. Objects are enrolled when they are stored and
//! struck off when they leave, under their shard's lock; the lock order is shard, then index. What an index entry costs is
//! charged to the object. It is made for the first response with tags: a site without them has none.
//!
//! Cache groups (`group_table.rs`) are cheaper and know neither counts nor objects; their table of numbers serves here for
//! what is under way.

use std::sync::Arc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry as Place;
use store::sync::Mutex;
use store::sync::atomic::{AtomicU64, Ordering};

use crate::group_table::{GroupTable, Groups, Membership};
use crate::key::{DigestBuild, Key};
use crate::limits::{TAG_BYTES, TAG_SHARDS, TAGS_MAX};

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
pub(crate) struct TagIndex {
    shards: Box<[Mutex<HashMap<u64, Keys, DigestBuild>>]>,
    numbers: Arc<GroupTable>,
    /// Tags of objects, each object's counted.
    enrolled: AtomicU64,
}

/// The keys under which something carries a tag, and how many of its variants do. The sum of those is kept: counted anew for who lists the
/// tags, it would hold the lock for as long as that takes.
#[derive(Debug)]
enum Keys {
    One(Key, u32),
    Many { keys: HashMap<Key, u32, DigestBuild>, objects: usize },
}

/// The tags of a stored response.
#[derive(Debug)]
pub(crate) struct TagSet {
    index: Arc<TagIndex>,
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

impl TagIndex {
    pub fn new() -> Arc<TagIndex> {
        let shards = (0..TAG_SHARDS).map(|_| Mutex::new(HashMap::default())).collect();
        Arc::new(TagIndex { shards, numbers: GroupTable::new(), enrolled: AtomicU64::new(0) })
    }

    fn shard(&self, digest: u64) -> &Mutex<HashMap<u64, Keys, DigestBuild>> {
        &self.shards[(digest >> (64 - TAG_SHARDS.trailing_zeros())) as usize]
    }

    /// Nothing that carries the tag and began before this number will be stored any more. Returns the keys of what is.
    pub fn invalidate(&self, tag: Key, number: u64) -> Vec<Key> {
        self.numbers.invalidate(tag, number);
        self.keys(tag)
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

impl TagSet {
    pub fn new(index: &Arc<TagIndex>, tags: Tags) -> Arc<TagSet> {
        Arc::new(TagSet { index: Arc::clone(index), tags })
    }

    pub fn has(&self, tag: Key) -> bool {
        self.tags.digests.binary_search(&tag.bits()).is_ok()
    }

    /// The slots of their numbers, and their digests in order.
    pub fn as_stored(&self) -> (&[u32], &[u64]) {
        (self.tags.groups.slots(), &self.tags.digests)
    }

    /// Enters what is about to be stored under a key. False if one of its tags was purged since its fetch began: whoever
    /// purges gives the number first and reads the keys then, so one of the two sees the other.
    pub fn enrol(&self, key: Key, began: u64) -> bool {
        for &digest in self.tags.digests.iter() {
            match self.index.shard(digest).lock().entry(digest) {
                Place::Vacant(place) => drop(place.insert(Keys::One(key, 1))),
                Place::Occupied(mut place) => place.get_mut().add(key),
            }
        }
        self.index.enrolled.fetch_add(self.tags.digests.len() as u64, Ordering::Relaxed);
        let valid = self.is_valid_since(began);
        if !valid {
            self.strike_off(key);
        }
        valid
    }

    /// One that was entered has left.
    pub fn strike_off(&self, key: Key) {
        for &digest in self.tags.digests.iter() {
            if let Place::Occupied(mut place) = self.index.shard(digest).lock().entry(digest)
                && place.get_mut().remove(key)
            {
                place.remove();
            }
        }
        self.index.enrolled.fetch_sub(self.tags.digests.len() as u64, Ordering::Relaxed);
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
        size_of::<TagSet>() + self.tags.digests.len() * (size_of::<u64>() + size_of::<u32>() + TAG_BYTES)
    }
}

impl Keys {
    fn as_use(&self, bits: u64) -> Option<TagUse> {
        match self {
            Keys::One(key, objects) => Some(TagUse { bits, keys: 1, one_of_them: *key, objects: *objects as usize }),
            Keys::Many { keys, objects } => {
                Some(TagUse { bits, keys: keys.len(), one_of_them: *keys.keys().next()?, objects: *objects })
            }
        }
    }

    fn add(&mut self, key: Key) {
        match self {
            Keys::One(only, count) if *only == key => *count += 1,
            Keys::One(only, count) => {
                let (keys, objects) = (HashMap::from_iter([(*only, *count), (key, 1)]), *count as usize + 1);
                *self = Keys::Many { keys, objects };
            }
            Keys::Many { keys, objects } => {
                *keys.entry(key).or_insert(0) += 1;
                *objects += 1;
            }
        }
    }

    /// True when nothing is left.
    fn remove(&mut self, key: Key) -> bool {
        match self {
            Keys::One(_, count) => {
                *count -= 1;
                *count == 0
            }
            Keys::Many { keys, objects } => {
                *objects -= 1;
                let count = keys.get_mut(&key).expect("what is struck off was enrolled");
                *count -= 1;
                if *count == 0 {
                    keys.remove(&key);
                }
                keys.is_empty()
            }
        }
    }
}
