//! Who was admitted by a service a moment ago, for all cores together: by a keyed digest of the credentials, until when, and what of the service's
//! answer goes on with a request (`auth_request` with `cache`). Only what was admitted is here: a refusal is asked about anew each time.

use std::collections::HashMap;
use std::sync::Arc;

use cache::{Charge, Key};
use message::Fields;
use parking_lot::Mutex;

use crate::limits::{ADMISSIONS_KNOWN_MAX, ADMISSIONS_SHARDS};

/// Who is known.
#[derive(Debug)]
pub(crate) struct KnownAdmissions(Box<[Mutex<HashMap<Key, Admitted>>]>);

#[derive(Debug)]
struct Admitted {
    until_ms: u64,
    copied: Arc<Fields>,
    _held: Charge,
}

impl Default for KnownAdmissions {
    fn default() -> KnownAdmissions {
        KnownAdmissions((0..ADMISSIONS_SHARDS).map(|_| Mutex::default()).collect())
    }
}

impl KnownAdmissions {
    /// What was copied for who is known by this.
    pub(crate) fn of(&self, key: Key, now_ms: u64) -> Option<Arc<Fields>> {
        let shard = self.shard(key).lock();
        shard.get(&key).filter(|known| now_ms < known.until_ms).map(|known| Arc::clone(&known.copied))
    }

    pub(crate) fn note(&self, key: Key, copied: &Fields, (now_ms, until_ms): (u64, u64), held: Charge) {
        let mut shard = self.shard(key).lock();
        if shard.len() >= ADMISSIONS_KNOWN_MAX / ADMISSIONS_SHARDS {
            make_room(&mut shard, now_ms);
        }
        shard.insert(key, Admitted { until_ms, copied: Arc::new(copied.clone()), _held: held });
    }

    fn shard(&self, key: Key) -> &Mutex<HashMap<Key, Admitted>> {
        &self.0[(key.bits() >> 32) as usize % ADMISSIONS_SHARDS]
    }
}

/// What is over goes. Where nothing is, somebody is asked about again.
#[cold]
fn make_room(shard: &mut HashMap<Key, Admitted>, now_ms: u64) {
    shard.retain(|_, known| now_ms < known.until_ms);
    if shard.len() >= ADMISSIONS_KNOWN_MAX / ADMISSIONS_SHARDS
        && let Some(&unlucky) = shard.keys().next()
    {
        shard.remove(&unlucky);
    }
}

#[cfg(test)]
mod tests {
    use cache::{Cache, CacheSettings, Flight, Notifier};

    use super::*;

    struct Nobody;

    impl Notifier for Nobody {
        fn post(&self, _: usize, _: Arc<Flight>) {}
    }

    #[test]
    fn who_is_known_is_known_until_then_and_the_table_is_bounded() {
        let cache = Cache::new(CacheSettings::default(), Arc::new(Nobody));
        let (known, key) = (KnownAdmissions::default(), |who: u64| cache.key([&who.to_le_bytes()[..]]));
        let mut copied = Fields::default();
        copied.push_named(b"X-User", b"ann");
        known.note(key(1), &copied, (1_000, 2_000), cache.account().charge(10));
        assert_eq!(known.of(key(1), 1_999).map(|fields| fields.view().count()), Some(1));
        assert!(known.of(key(1), 2_000).is_none() && known.of(key(2), 1_000).is_none());
        let before = cache.account().used();
        (0..3 * ADMISSIONS_KNOWN_MAX as u64).for_each(|who| {
            known.note(key(who), &copied, (3_000, 4_000), cache.account().charge(10));
        });
        let count: usize = known.0.iter().map(|shard| shard.lock().len()).sum();
        assert!(count <= ADMISSIONS_KNOWN_MAX, "{count}");
        // What makes room gives back what it was charged.
        assert_eq!(cache.account().used() - before + 10, 10 * count);
    }
}
