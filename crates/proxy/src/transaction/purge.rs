//! Purge: takes a URL with all its variants out of the store, and condemns the fetches of it that are under way.

use crate::access_log::CacheVerdict;
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction};

pub(crate) fn run(tx: &mut Transaction) -> Step {
    let shared = &tx.core.shared;
    let mut objects_count = 0;
    tx.policy.invalidate(shared, &tx.head.request(), |key| objects_count += shared.cache.purge(key));
    tx.core.counters.purges.add(1);
    tx.outcome.verdict = CacheVerdict::Purge;
    Step::Synth(Synth::purged(objects_count))
}
