//! The hottest objects of one core, in front of the shards: a hit here borrows, takes no lock and touches no
//! shared reference count.
//!
//! It may hold what is dead already; one Acquire load of the object's liveness tells. Sets of four ways, found by
//! the key's digest; of a full set goes what was not used of late.

use std::sync::Arc;

use message::Request;
use rules::AcceptedCodings;
use store::Account;

use crate::ban_list::BanList;
use crate::cache::Cache;
use crate::key::{Key, Variant};
use crate::limits::{HOT_ENTRIES, HOT_WAYS};
use crate::object::Object;
use crate::spec::{Spec, same_spec};

/// After so many sweeps all of a table has been looked at.
const SWEEPS: usize = 4;

/// Odd, so that no two sets of codings come to one number: 2¹²⁸ divided by the golden ratio.
const CODINGS_SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// One per core.
#[derive(Debug)]
pub struct HotTable {
    bans: Arc<BanList>,
    sets: Box<[Set]>,
    mask: u64,
    /// Where the next sweep begins.
    swept: usize,
    account: Arc<Account>,
    /// Of bodies, since all of the table was swept last.
    remembered_bytes: u64,
}

/// Two neighbouring cache lines: the keys in one, so that a look-up follows a pointer only when it is the right one,
/// and the pointers in the other.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Set {
    digests: [u128; HOT_WAYS],
    objects: [Option<Arc<Object>>; HOT_WAYS],
    used: [bool; HOT_WAYS],
}

/// The name of what answers requests of a key from those who take these codings. Without Accept-Encoding it is the key.
#[inline]
fn digest_for(key: Key, accepted: AcceptedCodings) -> u128 {
    key.0 ^ u128::from(accepted.bits()).wrapping_mul(CODINGS_SPREAD)
}

impl HotTable {
    pub fn new(cache: &Cache) -> HotTable {
        HotTable::with_entries(cache, HOT_ENTRIES)
    }

    /// `entries` is rounded up to a power of two.
    pub fn with_entries(cache: &Cache, entries: usize) -> HotTable {
        let sets = (entries / HOT_WAYS).next_power_of_two();
        let (bans, account) = (Arc::clone(&cache.bans), Arc::clone(&cache.account));
        let (sets, mask) = ((0..sets).map(|_| Set::default()).collect(), sets as u64 - 1);
        HotTable { bans, sets, mask, swept: 0, account, remembered_bytes: 0 }
    }

    #[inline]
    fn set(&mut self, digest: u128) -> (&mut Set, &BanList) {
        (&mut self.sets[(digest as u64 & self.mask) as usize], &self.bans)
    }

    /// The live object that answers this request, of who takes these codings, as far as Vary goes. Whether it is fresh is the caller's
    /// question ([`Object::freshness`]); a hit is the caller's to count ([`Object::touch`]).
    #[inline]
    pub fn get(&mut self, key: Key, accepted: AcceptedCodings, request: &Request<'_>) -> Option<&Arc<Object>> {
        let digest = digest_for(key, accepted);
        let (set, bans) = self.set(digest);
        let mut selected: Option<(&Arc<Spec>, Variant)> = None;
        for way in 0..HOT_WAYS {
            if set.digests[way] != digest {
                continue;
            }
            let Some(object) = set.objects[way].as_ref().filter(|object| object.is_hot(bans)) else { continue };
            // Variants of one key nearly always share one specification: select once.
            let variant = match (&object.spec, selected) {
                (None, _) => Variant::PLAIN,
                (Some(spec), Some((other, variant))) if same_spec(Some(spec), Some(other)) => variant,
                (Some(spec), _) => spec.variant(request.fields),
            };
            if variant == object.variant {
                set.used[way] = true;
                return Some(object);
            }
            selected = object.spec.as_ref().map(|spec| (spec, variant));
        }
        None
    }

    /// The live object under a key whose responses do not vary; `None` also where there are variants.
    #[inline]
    pub fn get_plain(&mut self, key: Key) -> Option<&Arc<Object>> {
        let (set, bans) = self.set(key.0);
        let is_it = |object: &Object| object.spec.is_none() && object.is_hot(bans);
        let way =
            (0..HOT_WAYS).find(|&way| set.digests[way] == key.0 && set.objects[way].as_deref().is_some_and(is_it))?;
        set.used[way] = true;
        set.objects[way].as_ref()
    }

    /// Puts an object in that was just served from the shards, and answers whoever takes these codings.
    pub fn remember(&mut self, key: Key, accepted: AcceptedCodings, object: &Arc<Object>) {
        let digest = digest_for(key, accepted);
        let (set, bans) = self.set(digest);
        if !object.is_hot(bans) || object.key() != key {
            return;
        }
        let mut held = set.objects.iter().zip(set.digests);
        let same =
            held.position(|(it, known)| known == digest && it.as_ref().is_some_and(|it| it.variant == object.variant));
        let place = same
            .or_else(|| set.objects.iter().position(|it| it.as_ref().is_none_or(|it| !it.is_hot(bans))))
            .or_else(|| set.used.iter().position(|used| !used))
            .unwrap_or_else(|| {
                set.used = [false; HOT_WAYS];
                (digest >> 64) as usize % HOT_WAYS
            });
        set.objects[place] = Some(Arc::clone(object));
        set.digests[place] = digest;
        set.used[place] = true;
        self.remembered_bytes += object.body_len();
        let slack = self.account.slack();
        if self.remembered_bytes > slack as u64 && self.account.leaving() > slack {
            self.sweep_all();
        }
    }

    /// What was evicted has to leave now: as long as it is here, others are evicted in its place.
    #[cold]
    fn sweep_all(&mut self) {
        (0..SWEEPS).for_each(|_| self.sweep());
        self.remembered_bytes = 0;
    }

    /// Lets go of the dead in a quarter of the table, so that they hold no memory. To be called every quarter of a
    /// second or so: looking at every object each time would cost half a percent of a core.
    pub fn sweep(&mut self) {
        let quarter = self.sets.len().div_ceil(SWEEPS);
        let from = self.swept;
        let to = (from + quarter).min(self.sets.len());
        self.swept = if to == self.sets.len() { 0 } else { to };
        for object in self.sets[from..to].iter_mut().flat_map(|set| &mut set.objects) {
            if object.as_ref().is_some_and(|object| !object.is_live()) {
                *object = None;
            }
        }
    }

    /// Lets go of everything.
    pub fn clear(&mut self) {
        self.sets.iter_mut().for_each(|set| *set = Set::default());
    }
}
