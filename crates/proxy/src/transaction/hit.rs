//! Hit: something stored will be served. Counts it, and hands it to deliver.

use std::sync::Arc;

use cache::Object;

use crate::access_log::CacheVerdict;
use crate::transaction::deliver::Answer;
use crate::transaction::slicing::Slicing;
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
    /// It has just come, for this request or for another that it waited behind.
    Fetched,
    /// Of what lies in slices not all are there that are wanted.
    Incomplete,
}

pub(crate) fn run(tx: &mut Transaction, object: Arc<Object>, why: Why) -> Step {
    object.touch(tx.core.now());
    if tx.vcl.is_some()
        && why != Why::Revalidated
        && let Some(elsewhere) = client_steps::hit(tx, &object)
    {
        return elsewhere;
    }
    if object.sliced().is_some() && matches!(why, Why::Fresh | Why::Fetched) {
        // What this is only the slices say.
        return Step::Slicing(Box::new(Slicing { object, why }));
    }
    let counters = &tx.core.counters;
    counters.hits.add(1);
    if tx.recalled == Some(true) {
        counters.hits_disk.add(1);
        tx.outcome.why = "disk";
    }
    tx.outcome.verdict = match why {
        Why::Fresh | Why::Fetched | Why::Incomplete => CacheVerdict::Hit,
        Why::Stale | Why::OriginFailed => {
            counters.hits_stale.add(1);
            CacheVerdict::Stale
        }
        Why::Revalidated => {
            counters.revalidated.add(1);
            CacheVerdict::Revalidated
        }
    };
    if object.sliced().is_some() {
        return Step::Slicing(Box::new(Slicing { object, why }));
    }
    Step::Deliver(Box::new(Answer::Stored { object, why, slices: None }))
}
