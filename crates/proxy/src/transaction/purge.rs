//! Purge: takes a URL with all its variants out of the store, and condemns the fetches of it that are under way; or, where
//! the request names cache groups of its host, what belongs to those (RFC 9875) instead of the URL.

use message::FieldName;

use crate::access_log::CacheVerdict;
use crate::cache_groups;
use crate::disks;
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction};
use crate::{policy, policy_steps};

pub(crate) async fn run(tx: &mut Transaction) -> Step {
    if let Some(step) = policy_steps::purge(tx) {
        return step;
    }
    if tx.seen.has(FieldName::CacheGroupInvalidation) {
        return groups(tx).await;
    }
    let shared = &tx.core.shared;
    let mut objects_count = 0;
    policy::invalidate(shared, &tx.head.request(), |key| objects_count += shared.cache.purge(key));
    tx.core.counters.purges.add(1);
    done(tx, Synth::purged(objects_count)).await
}

async fn groups(tx: &mut Transaction) -> Step {
    let request = tx.head.request();
    let Some(names) = rules::groups::named(request.fields).filter(|names| !names.is_empty()) else {
        return Step::Synth(Synth::purge_unreadable());
    };
    cache_groups::invalidate(&tx.core.shared.cache, &request, &names);
    tx.core.counters.purges.add(1);
    done(tx, Synth::purged_groups(names.len())).await
}

/// Nobody is told of a purge that a crash may undo as if it were done.
async fn done(tx: &mut Transaction, said: Synth) -> Step {
    tx.outcome.verdict = CacheVerdict::Purge;
    Step::Synth(if disks::settled(&tx.core.shared).await { said } else { Synth::purge_unsettled() })
}
