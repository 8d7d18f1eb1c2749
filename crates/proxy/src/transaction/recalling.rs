//! Recall: a disk has something of the key that memory has not. It is brought into memory, and the request asks again; or
//! it is not what is wanted, and the request goes on to where it would have gone.
//!
//! A miss holds its ticket meanwhile, so one request for a key reads and the others wait for it. A disk that takes longer
//! than `limits.disk_read_timeout` is a disk that has nothing.

use cache::{Key, Recalled, Ticket};

use crate::access_log::CacheVerdict;
use crate::transaction::synth::Synth;
use crate::transaction::{Outcome, Step, Transaction};

/// What would have been done without a disk.
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

pub(crate) async fn run(tx: &mut Transaction, Recall { key, otherwise }: Recall) -> Step {
    let patience = tx.site.settings.limits.disk_read_timeout;
    let cache = &tx.core.shared.cache;
    let request = tx.head.request();
    let came = tokio::time::timeout(patience, cache.recall(key, &request, tx.core.now())).await;
    tx.recalled = Some(came == Ok(Recalled::Stored));
    match came {
        Ok(Recalled::Stored) => {
            if let Otherwise::Miss(ticket) = otherwise {
                ticket.give_back();
            }
            Step::Lookup
        }
        Ok(Recalled::NotThere) => otherwise.step(tx),
        Err(_) => {
            tx.core.counters.disk_timeouts.add(1);
            otherwise.step(tx)
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
