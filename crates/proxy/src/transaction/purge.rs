//! Purge: takes a URL with all its variants out of the store, and condemns the fetches of it that are under way; or, where
//! the request names cache groups of its host, what belongs to those (RFC 9875) instead of the URL. What clients have by https:// is
//! purged by http://, too, and the other way: an application that says what has changed speaks plainly to the cache on its machine.

use message::{FieldName, Request, Scheme};

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
    for request in by_each_scheme(tx.head.request()) {
        policy::invalidate(shared, &request, |key| objects_count += shared.cache.purge(key));
    }
    tx.core.counters.purges.add(1);
    done(tx, Synth::purged(objects_count)).await
}

async fn groups(tx: &mut Transaction) -> Step {
    let request = tx.head.request();
    let Some(names) = rules::groups::named(request.fields).filter(|names| !names.is_empty()) else {
        return Step::Synth(Synth::purge_unreadable());
    };
    for request in by_each_scheme(request.clone()) {
        cache_groups::invalidate(&tx.core.shared.cache, &request, &names);
    }
    tx.core.counters.purges.add(1);
    done(tx, Synth::purged_groups(names.len())).await
}

/// What is asked for, by either scheme.
pub(crate) fn by_each_scheme(request: Request<'_>) -> [Request<'_>; 2] {
    [Scheme::Http, Scheme::Https].map(|scheme| {
        let mut asked = Request { scheme, ..request.clone() };
        // As it is known to who asks by this scheme: without the port that goes without saying.
        asked.authority.port = asked.authority.port.filter(|&port| port != scheme.default_port());
        asked
    })
}

/// Nobody is told of a purge that a crash may undo as if it were done.
async fn done(tx: &mut Transaction, said: Synth) -> Step {
    tx.outcome.verdict = CacheVerdict::Purge;
    Step::Synth(if disks::settled(&tx.core.shared).await { said } else { Synth::purge_unsettled() })
}
