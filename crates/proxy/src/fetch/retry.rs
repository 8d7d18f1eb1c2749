//! Retry: whether a request that got no byte of an answer may be sent once more, and why.

use crate::fetch::{Broken, Fetch};

/// A request that got no final head.
pub(crate) struct Lost {
    pub(crate) broken: Broken,
    /// It was sent on a pooled connection that ended before a byte of an answer: the origin may have closed it while
    /// our request was on its way.
    pub(crate) on_dead_pooled_connection: bool,
    /// Bytes of the client's body were taken, and are gone.
    pub(crate) body_was_taken: bool,
    /// There was no connection, so nothing was sent.
    pub(crate) unconnected: bool,
}

impl Lost {
    pub(crate) fn for_good(broken: Broken) -> Lost {
        Lost { broken, on_dead_pooled_connection: false, body_was_taken: true, unconnected: false }
    }

    pub(crate) fn unconnected(broken: Broken) -> Lost {
        Lost { unconnected: true, ..Lost::for_good(broken) }
    }
}

/// RFC 9110 §9.2.2 and RFC 9112 §9.3.1: an idempotent request, once, whose body we still could send.
pub(crate) fn is_worth_it(fetch: &Fetch, lost: &Lost) -> bool {
    lost.on_dead_pooled_connection && !fetch.retried && !lost.body_was_taken && fetch.method().is_idempotent()
}
