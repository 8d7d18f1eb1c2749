//! The shared tier beneath memory and disk: what of the cache is written to it, and how far what is found there is believed.
//!
//! Whoever fetches keeps a copy there, with its own place in the fleet's log of purges. Whoever finds it asks what was purged behind that
//! place (`log_marks.rs`), and tests it as what lies on a disk is tested: against the purges of its key, its tags and groups, and against
//! the bans. So a purge has nothing to do in the tier, and what comes to be written there behind a purge, or comes back with a server that was
//! away, is served by nobody. What this node has purged alone counts as purged behind that place, unless it fetched the record itself.
//!
//! Not kept are marks, parts, bodies in slices, bodies on a disk and large ones, and encodings, which each node makes by itself.

use std::sync::Arc;

use message::Status;
use store::Blocks;
use store::sync::atomic::AtomicU64;

use crate::disk_level::facts_of;
use crate::key::{Key, Variant};
use crate::log_marks::LogMarks;
use crate::object::Object;
use crate::second_tier::{SecondTier, SharedTier, TierName, TierRecord};
use crate::shared_form::{self, Fetched};
use crate::stored_form::{self, Boot};

/// All that was purged here is in the log.
pub(crate) const NOT_ALONE: u64 = u64::MAX;

pub(crate) struct SharedLevel {
    pub tier: Arc<dyn SecondTier>,
    pub marks: LogMarks,
    /// The number before the first purge that is in force here and not in the log yet.
    pub alone_since: AtomicU64,
    pub boot: Boot,
    run: u64,
}

impl SharedLevel {
    pub fn new(shared: SharedTier) -> SharedLevel {
        let alone_since = AtomicU64::new(NOT_ALONE);
        SharedLevel {
            tier: shared.tier,
            marks: LogMarks::default(),
            alone_since,
            boot: Boot::this_one(),
            run: shared.run,
        }
    }

    /// An object has been stored in memory. Under the shard's lock.
    pub fn keep(&self, object: &Arc<Object>) {
        let (key, variant) = (object.key(), object.variant);
        // It stands in the place of none that could lie there.
        let is_slice = || object.response().status == Status::PARTIAL_CONTENT;
        if object.mark().is_some() || object.partial().is_some() || is_slice() {
            return;
        }
        let Some(record) = self.record(object) else {
            self.forget_variant(key, variant);
            return;
        };
        let expires_s = facts_of(object).expires;
        if let Some(spec) = &object.spec {
            let fields = TierRecord { head: shared_form::write_fields(spec.vary()), body: Blocks::copy_of(b"") };
            self.tier.keep(name_of(key, Variant::PLAIN), fields, expires_s);
        }
        self.tier.keep(name_of(key, variant), record, expires_s);
    }

    fn record(&self, object: &Arc<Object>) -> Option<TierRecord> {
        let is_fit = object.sliced().is_none()
            && object.body().on_disk().is_none()
            && object.body_len() <= self.tier.body_bytes_max();
        let at = self.marks.place_of(object.began()).filter(|_| is_fit)?;
        let form = stored_form::write(object, self.boot)?;
        let head = shared_form::write_response(Fetched { at, run: self.run, began: object.began() }, &form);
        Some(TierRecord { head, body: object.body().blocks() })
    }

    /// Under which number of this node's own sequence it counts as fetched.
    pub fn number_of(&self, fetched: &Fetched) -> Option<u64> {
        if fetched.run == self.run { Some(fetched.began) } else { self.marks.number_at(fetched.at) }
    }

    pub fn forget(&self, key: Key) {
        self.tier.forget(name_of(key, Variant::PLAIN));
    }

    /// Also in vain: a mark has the name of nothing.
    pub fn forget_variant(&self, key: Key, variant: Variant) {
        self.tier.forget(name_of(key, variant));
    }
}

/// Where a variant of a key lies.
pub(crate) fn name_of(key: Key, variant: Variant) -> TierName {
    TierName { key: key.0, variant: variant.0 }
}

impl std::fmt::Debug for SharedLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedLevel").finish_non_exhaustive()
    }
}
