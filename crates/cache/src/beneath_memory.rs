//! What lies beneath the memory: this node's disks, and the tier that it shares with others. Both are told here of what is stored and dropped.

use std::sync::Arc;

use store::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use crate::cache::{Cache, CacheSettings};
use crate::disk_level::{Disk, DiskLevel};
use crate::flight::Notifier;
use crate::invalidation_line::Invalidated;
use crate::key::{Digester, Key, Variant};
use crate::limits::GROUP_SLOTS;
use crate::log_marks::PlaceInLog;
use crate::object::Object;
use crate::second_tier::{SharedTier, TierFigures, TierServer};
use crate::shared_level::{NOT_ALONE, SharedLevel};

/// What lies beneath the memory.
#[derive(Default)]
pub struct Beneath {
    /// With the digests that it knows, and what was invalidated when it was used last. Bans that were recovered are for who can read them:
    /// [`Cache::restore_ban`].
    pub disk: Option<Disk>,
    /// A disk beside it must have been opened with its seed.
    pub shared: Option<SharedTier>,
    /// What keys are made with where neither says it: for who knows keys of the process before this one.
    pub seed: Option<[u8; 16]>,
}

impl Cache {
    /// The same above something.
    pub fn above(settings: CacheSettings, notifier: Arc<dyn Notifier>, beneath: Beneath) -> Arc<Cache> {
        let Beneath { disk, shared, seed } = beneath;
        let Some(Disk { tier, recovered, admission, leases_from }) = disk else {
            let seed = shared.as_ref().map(|shared| shared.seed).or(seed);
            let digester = seed.map_or_else(Digester::random, Digester::with_seed);
            return Cache::made(settings, notifier, (digester, 0), (None, shared.map(SharedLevel::new)));
        };
        // Otherwise nothing there is found by the names of the others.
        let shared = shared.filter(|shared| shared.seed == recovered.seed).map(SharedLevel::new);
        let digester = (Digester::with_seed(recovered.seed), recovered.number_max);
        let disk = DiskLevel::new(tier, admission, leases_from);
        let cache = Cache::made(settings, notifier, digester, (Some(disk), shared));
        for (slot, number) in recovered.slots {
            match slot.checked_sub(GROUP_SLOTS as u32) {
                None => cache.group_table().restore(slot, number),
                Some(slot) => cache.tag_index().restore(slot, number),
            }
        }
        cache
    }

    /// All orders of the fleet's log up to there are in force. `is_followed`: they follow those up to the place that was said before, without
    /// a gap.
    pub fn note_log_place(&self, at: PlaceInLog, is_followed: bool) {
        if let Some(shared) = &self.shared {
            let number = self.invalidation.load(Acquire).min(shared.alone_since.load(Acquire));
            shared.marks.reach(at, number, is_followed);
        }
    }

    /// Something is about to be purged here that is not in the log yet; or all such has come back from there. What others fetch meanwhile, at
    /// whatever place, they fetch without having heard of it: it is older than that. To be called before it is purged.
    pub fn stand_alone(&self, is_alone: bool) {
        let Some(shared) = &self.shared else { return };
        match is_alone {
            true => {
                let now = self.invalidation.load(Acquire);
                // Since the first of them.
                let _ = shared.alone_since.compare_exchange(NOT_ALONE, now, AcqRel, Acquire);
            }
            false => shared.alone_since.store(NOT_ALONE, Release),
        }
    }

    /// What became of the shared tier's answers, if there is one.
    pub fn shared_figures(&self) -> Option<(TierFigures, Vec<TierServer>)> {
        self.shared.as_ref().map(|shared| (shared.tier.figures(), shared.tier.servers()))
    }

    /// What is stored in memory. Under the shard's lock.
    pub(crate) fn keep_beneath(&self, object: &Arc<Object>) {
        if let Some(disk) = &self.disk {
            disk.keep(object);
        }
        if let Some(shared) = &self.shared {
            shared.keep(object);
        }
    }

    /// All variants of a key. Under the shard's lock.
    pub(crate) fn forget_beneath(&self, key: Key) {
        if let Some(disk) = &self.disk {
            disk.forget(key);
        }
        if let Some(shared) = &self.shared {
            shared.forget(key);
        }
        // Behind the disk: who takes that over has it from there, or is told.
        self.tell_of(|| Invalidated::Key(key));
    }

    /// What lies beneath must not be served any more, and nothing is stored in its place. Under the shard's lock.
    pub(crate) fn forget_variant_beneath(&self, key: Key, variant: Variant) {
        if let Some(disk) = &self.disk {
            disk.outdate(key, variant);
        }
        if let Some(shared) = &self.shared {
            shared.forget_variant(key, variant);
        }
    }
}
