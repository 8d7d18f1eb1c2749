//! Recall: a disk has something of the key that memory has not, or the tier that nodes share. It is brought into memory, and the request asks
//! again; or it is not what is wanted, and the request goes on to where it would have gone.
//!
//! A miss holds its ticket meanwhile, so one request for a key reads and the others wait for it. A disk that takes longer
//! than `limits.disk_read_timeout` is a disk that has nothing, and so is a tier that takes longer than `shared.wait_max`.

use cache::{Key, Recalled, SharedRecall, Ticket};

use crate::access_log::CacheVerdict;
use crate::transaction::synth::Synth;
use crate::transaction::{Outcome, Step, Transaction};

/// What would have been done with nothing beneath.
pub(crate) struct Recall {
    pub(crate) key: Key,
    pub(crate) otherwise: Otherwise,
}

/// Where a request goes that finds nothing stored.
pub(crate) enum Otherwise {
    Miss(Ticket),
    /// One that must not take on a fetch of the whole.
    Pass(&'static str),
    /// One that takes nothing but what is stored.
    OnlyIfCached,
}

pub(crate) async fn run(tx: &mut Transaction, Recall { key, mut otherwise }: Recall) -> Step {
    let mut is_stored = from_disk(tx, key).await;
    if !is_stored {
        is_stored = from_shared_tier(tx, key, &mut otherwise).await;
    }
    tx.recalled = Some(is_stored);
    if !is_stored {
        return otherwise.step(tx);
    }
    if let Otherwise::Miss(ticket) = otherwise {
        ticket.give_back();
    }
    Step::Lookup
}

/// True: it is in memory now.
async fn from_disk(tx: &Transaction, key: Key) -> bool {
    let (core, patience) = (&tx.core, tx.site.settings.limits.disk_read_timeout);
    let request = tx.head.request();
    let came = tokio::time::timeout(patience, core.shared.cache.recall(key, &request, core.now())).await;
    core.counters.disk_timeouts.add(u64::from(came.is_err()));
    came == Ok(Recalled::Stored)
}

/// The same. How long it waits the tier knows. Who would fetch does so for all nodes, unless each URL has an owner, who does.
async fn from_shared_tier(tx: &Transaction, key: Key, otherwise: &mut Otherwise) -> bool {
    let cache = &tx.core.shared.cache;
    let wants_right = tx.site.settings.fleet.is_none() && matches!(otherwise, Otherwise::Miss(_));
    match cache.recall_shared(key, &tx.head.request(), tx.core.now(), wants_right).await {
        SharedRecall::Stored => true,
        SharedRecall::NotThere(right) => {
            if let (Otherwise::Miss(ticket), Some(right)) = (otherwise, right) {
                ticket.hold(right);
            }
            false
        }
    }
}

impl Otherwise {
    fn step(self, tx: &mut Transaction) -> Step {
        match self {
            Otherwise::Miss(ticket) => Step::Miss(ticket),
            Otherwise::Pass(why) => {
                tx.outcome = Outcome { why, verdict: CacheVerdict::Pass, ..Outcome::NONE };
                Step::Pass
            }
            // RFC 9111 §5.2.1.7.
            Otherwise::OnlyIfCached => Step::Synth(Synth::only_if_cached()),
        }
    }
}
