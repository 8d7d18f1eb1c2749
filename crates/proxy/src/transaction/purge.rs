//! Purge: takes a URL with all its variants out of the store, and condemns the fetches of it that are under way; or, where
//! the request names cache groups of its host, what belongs to those (RFC 9875) instead of the URL. What clients have by https:// is
//! purged by http://, too, and the other way: an application that says what has changed speaks plainly to the cache on its machine. In a fleet
//! the other nodes are told, and the answer waits for what `[fleet] acknowledge` asks for.

use message::{FieldName, Request, Scheme};

use vcl::Purge;

use crate::access_log::CacheVerdict;
use crate::cache_groups;
use crate::core::Shared;
use crate::disks;
use crate::other_nodes::{ToldInvalidation, ToldUrl};
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction};
use crate::vcl_story::program_purge;
use crate::{policy, policy_steps};

pub(crate) async fn run(tx: &mut Transaction) -> Step {
    if let Some(step) = policy_steps::purge(tx) {
        return told_by_program(tx, step).await;
    }
    if tx.seen.has(FieldName::CacheGroupInvalidation) {
        return groups(tx).await;
    }
    let shared = &tx.core.shared;
    let (mut objects_count, mut urls) = (0, Vec::new());
    for request in by_each_scheme(tx.head.request()) {
        policy::invalidate(shared, &request, |key| objects_count += shared.cache.purge(key));
        urls.push(ToldUrl::of(&request));
    }
    tx.core.counters.purges.add(1);
    done(tx, Synth::purged(objects_count), ToldInvalidation::Urls(urls)).await
}

async fn groups(tx: &mut Transaction) -> Step {
    let request = tx.head.request();
    let Some(names) = rules::groups::named(request.fields).filter(|names| !names.is_empty()) else {
        return Step::Synth(Synth::purge_unreadable());
    };
    let mut of = Vec::new();
    for request in by_each_scheme(request.clone()) {
        cache_groups::invalidate(&tx.core.shared.cache, &request, &names);
        of.push(ToldUrl::of(&request));
    }
    tx.core.counters.purges.add(1);
    done(tx, Synth::purged_groups(names.len()), ToldInvalidation::Groups { of, names }).await
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

/// Nobody is told of a purge that a crash may undo as if it were done, nor of one that the rest of the fleet has not acknowledged.
async fn done(tx: &mut Transaction, said: Synth, what: ToldInvalidation) -> Step {
    tx.outcome.verdict = CacheVerdict::Purge;
    let shared = &tx.core.shared;
    if !disks::settled(shared).await {
        return Step::Synth(Synth::purge_unsettled());
    }
    Step::Synth(acknowledged(shared, &what).await.map_or_else(|why| Synth::purge_unacknowledged(&why), |()| said))
}

/// vcl_purge has said what comes next, as if all was well.
async fn told_by_program(tx: &Transaction, step: Step) -> Step {
    let shared = &tx.core.shared;
    if shared.others.is_none() {
        return step;
    }
    let Some(state) = tx.policy.program().filter(|state| state.key.get().is_some()) else { return step };
    let what = program_purge::of_request(state, Purge::Hard);
    match acknowledged(shared, &what).await {
        Ok(()) => step,
        Err(why) => Step::Synth(Synth::purge_unacknowledged(&why)),
    }
}

/// Ready when the other nodes, if there are any, have what `[fleet] acknowledge` asks for. The error says how far it came.
async fn acknowledged(shared: &Shared, what: &ToldInvalidation) -> Result<(), String> {
    match &shared.others {
        None => Ok(()),
        Some(others) => others.order(what).await,
    }
}
