//! Keys whose large bodies cannot be kept in slices, as their origin has shown a short while ago: it says that it knows
//! ranges and does not heed them, or its validators are weak. They are passed through meanwhile.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cache::Key;

/// Keys that are remembered; one that comes to another's place takes it.
const UNSLICEABLE_MAX: usize = 1024;
/// For how long.
const REMEMBERED_MS: u64 = 60_000;

/// One for all cores.
pub(crate) struct Unsliceable {
    places: Box<[KeyUntil]>,
}

#[derive(Default)]
struct KeyUntil {
    key: AtomicU64,
    until_ms: AtomicU64,
}

impl Default for Unsliceable {
    fn default() -> Unsliceable {
        Unsliceable { places: (0..UNSLICEABLE_MAX).map(|_| KeyUntil::default()).collect() }
    }
}

impl Unsliceable {
    fn place(&self, key: Key) -> &KeyUntil {
        &self.places[(key.bits() >> 32) as usize % UNSLICEABLE_MAX]
    }

    pub(crate) fn note(&self, key: Key, now_ms: u64) {
        let place = self.place(key);
        place.key.store(key.bits(), Relaxed);
        place.until_ms.store(now_ms + REMEMBERED_MS, Relaxed);
    }

    pub(crate) fn has(&self, key: Key, now_ms: u64) -> bool {
        let place = self.place(key);
        place.key.load(Relaxed) == key.bits() && now_ms < place.until_ms.load(Relaxed)
    }
}
