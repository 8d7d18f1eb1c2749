//! Hit: something stored will be served. Counts it, and hands it to deliver.

use std::sync::Arc;

use cache::Object;

use crate::access_log::CacheVerdict;
use crate::transaction::deliver::Answer;
use crate::transaction::{Step, Transaction};
use crate::vcl_story::client_steps;

/// Why a stored response may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Fresh,
    /// Stale, and allowed to be: while it is refreshed, or because this client takes it.
    Stale,
    /// Stale, and the origin failed.
    OriginFailed,
    /// The origin has just said that it still holds.
    Revalidated,
}

pub(crate) fn run(tx: &mut Transaction, object: Arc<Object>, why: Why) -> Step {
    object.touch(tx.core.now());
    if tx.vcl.is_some()
        && why != Why::Revalidated
        && let Some(elsewhere) = client_steps::hit(tx, &object)
    {
        return elsewhere;
    }
    let counters = &tx.core.counters;
    counters.hits.add(1);
    if tx.recalled == Some(true) {
        counters.hits_disk.add(1);
        tx.outcome.why = "disk";
    }
    tx.outcome.verdict = match why {
        Why::Fresh => CacheVerdict::Hit,
        Why::Stale | Why::OriginFailed => {
            counters.hits_stale.add(1);
            CacheVerdict::Stale
        }
        Why::Revalidated => {
            counters.revalidated.add(1);
            CacheVerdict::Revalidated
        }
    };
    Step::Deliver(Box::new(Answer::Stored { object, why }))
}
