//! Hit: something stored will be served. Counts it, and hands it to deliver.

use std::sync::Arc;

use cache::Object;

use crate::access_log::CacheVerdict;
use crate::disk_read::DiskRead;
use crate::policy_steps;
use crate::reason::Reason;
use crate::transaction::deliver::Answer;
use crate::transaction::lookup::ASKED_AGAIN_MAX;
use crate::transaction::slicing::Slicing;
use crate::transaction::{Step, Transaction};

/// What the log says of a hit whose body a disk was asked for.
pub(crate) const FROM_DISK: &str = Reason::FromDisk.token();

/// Why a stored response may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Fresh,
    /// Stale, and allowed to be: while it is refreshed, or because this client takes it.
    Stale,
    /// Stale, and the origin failed: with this status, if it answered. Somebody else may have asked it.
    OriginFailed {
        status: Option<u16>,
        is_collapsed: bool,
    },
    /// The origin has just said that it still holds.
    Revalidated,
    /// The same, for this request alone.
    RevalidatedAlone,
    /// It has just come, for this request …
    Fetched,
    /// … or for another, behind which this one waited.
    Collapsed,
    /// Of what lies in slices not all are there that are wanted.
    Incomplete,
}

impl Why {
    /// Was the origin asked for this very request? Then it is no hit, whatever is served.
    pub(crate) fn is_brought(self) -> bool {
        matches!(self, Why::Fetched | Why::Revalidated | Why::RevalidatedAlone)
    }
}

pub(crate) fn run(tx: &mut Transaction, object: Arc<Object>, why: Why) -> Step {
    match why {
        Why::Fetched => object.note_needed(),
        _ => object.touch(tx.core.now()),
    }
    if !leases_body(tx, &object) {
        return Step::Lookup;
    }
    if !why.is_brought()
        && let Some(elsewhere) = policy_steps::hit(tx, &object)
    {
        return elsewhere;
    }
    if object.sliced().is_some() && matches!(why, Why::Fresh | Why::Fetched | Why::Collapsed) {
        // What this is only the slices say.
        return Step::Slicing(Box::new(Slicing { object, why }));
    }
    tx.outcome.verdict = match why {
        Why::Collapsed => CacheVerdict::Coalesced,
        Why::Fresh | Why::Fetched | Why::Incomplete => CacheVerdict::Hit,
        Why::Stale | Why::OriginFailed { .. } => CacheVerdict::Stale,
        Why::Revalidated | Why::RevalidatedAlone => CacheVerdict::Revalidated,
    };
    if tx.recalled == Some(true) || tx.leased.is_some() {
        tx.outcome.why = FROM_DISK;
    }
    if object.sliced().is_some() {
        return Step::Slicing(Box::new(Slicing { object, why }));
    }
    Step::Deliver(Box::new(Answer::Stored { object, why, slices: None }))
}

/// Takes a lease on a body that lies on a disk. False if the disk has written over it: then the request is looked up anew, as often as it
/// may wait for somebody else's answers.
fn leases_body(tx: &mut Transaction, object: &Arc<Object>) -> bool {
    tx.leased = None;
    let Some(body) = object.body().on_disk() else { return true };
    match body.lease() {
        Some(leased) => {
            tx.leased = Some(DiskRead::new(leased, tx.site.settings.limits.disk_read_timeout));
            true
        }
        None => {
            tx.core.shared.cache.release(object);
            tx.recalled = tx.recalled.filter(|_| tx.asked_again_count > ASKED_AGAIN_MAX);
            false
        }
    }
}
