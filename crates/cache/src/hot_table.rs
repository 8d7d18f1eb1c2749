//! The hottest objects of one core, in front of the shards: a hit here borrows, takes no lock and touches no
//! shared reference count.
//!
//! It may hold what is dead already; one Acquire load of the object's liveness tells. Sets of four ways, found by
//! the key's digest; of a full set goes what was not used of late.

use std::sync::Arc;

use message::Request;

use crate::key::{Key, Variant};
use crate::limits::{HOT_ENTRIES, HOT_WAYS};
use crate::object::Object;
use crate::spec::{same_spec, variant_of};

/// One per core.
#[derive(Debug)]
pub struct HotTable {
    sets: Box<[Set]>,
    mask: u64,
    /// Where the next sweep begins.
    swept: usize,
}

#[derive(Debug, Default)]
struct Set {
    ways: [Way; HOT_WAYS],
}

#[derive(Debug, Default)]
struct Way {
    object: Option<Arc<Object>>,
    /// The object's key, beside the pointer so that a look-up follows it only when it is the right one.
    digest: u128,
    used: bool,
}

impl Default for HotTable {
    fn default() -> HotTable {
        HotTable::new()
    }
}

impl HotTable {
    pub fn new() -> HotTable {
        HotTable::with_entries(HOT_ENTRIES)
    }

    /// `entries` is rounded up to a power of two.
    pub fn with_entries(entries: usize) -> HotTable {
        let sets = (entries / HOT_WAYS).next_power_of_two();
        HotTable { sets: (0..sets).map(|_| Set::default()).collect(), mask: sets as u64 - 1, swept: 0 }
    }

    #[inline]
    fn set(&mut self, key: Key) -> &mut Set {
        &mut self.sets[(key.0 as u64 & self.mask) as usize]
    }

    /// The live object that answers this request as far as Vary goes. Whether it is fresh is the caller's question
    /// ([`Object::freshness`]); a hit is the caller's to count ([`Object::touch`]).
    #[inline]
    pub fn get(&mut self, key: Key, request: &Request<'_>) -> Option<&Arc<Object>> {
        let set = self.set(key);
        let mut selected: Option<(usize, Variant)> = None;
        let mut found = None;
        for (index, way) in set.ways.iter().enumerate() {
            if way.digest != key.0 {
                continue;
            }
            let Some(object) = way.object.as_ref().filter(|object| object.is_hot()) else { continue };
            // Variants of one key nearly always share one specification: select once.
            let variant = match (&object.spec, selected) {
                (None, _) => Variant::PLAIN,
                (Some(spec), Some((other, variant)))
                    if same_spec(Some(spec), set.ways[other].object.as_ref().and_then(|it| it.spec.as_ref())) =>
                {
                    variant
                }
                (Some(_), _) => variant_of(object.spec.as_ref(), request.fields),
            };
            if variant == object.variant {
                found = Some(index);
                break;
            }
            selected = Some((index, variant));
        }
        let way = &mut set.ways[found?];
        way.used = true;
        way.object.as_ref()
    }

    /// Puts an object in that was just served from the shards.
    pub fn remember(&mut self, key: Key, object: &Arc<Object>) {
        if !object.is_hot() || object.key() != key {
            return;
        }
        let set = self.set(key);
        let same =
            |way: &Way| way.digest == key.0 && way.object.as_ref().is_some_and(|it| it.variant == object.variant);
        let free = |way: &Way| way.object.as_ref().is_none_or(|it| !it.is_hot());
        let place = set.ways.iter().position(same).or_else(|| set.ways.iter().position(free));
        let place = place.or_else(|| set.ways.iter().position(|way| !way.used)).unwrap_or_else(|| {
            set.ways.iter_mut().for_each(|way| way.used = false);
            (key.0 >> 64) as usize % HOT_WAYS
        });
        set.ways[place] = Way { object: Some(Arc::clone(object)), digest: key.0, used: true };
    }

    /// Lets go of the dead in a quarter of the table, so that they hold no memory. To be called every quarter of a
    /// second or so: looking at every object each time would cost half a percent of a core.
    pub fn sweep(&mut self) {
        let quarter = self.sets.len().div_ceil(4);
        let from = self.swept;
        let to = (from + quarter).min(self.sets.len());
        self.swept = if to == self.sets.len() { 0 } else { to };
        for way in self.sets[from..to].iter_mut().flat_map(|set| &mut set.ways) {
            if way.object.as_ref().is_some_and(|object| !object.is_live()) {
                *way = Way::default();
            }
        }
    }

    /// Lets go of everything.
    pub fn clear(&mut self) {
        self.sets.iter_mut().for_each(|set| *set = Set::default());
    }
}
