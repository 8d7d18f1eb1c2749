//! Retry: whether a request that got no byte of an answer may be sent once more, and why.

use message::Method;

use crate::fetch::broken::Broken;

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
pub(crate) fn is_worth_it(lost: &Lost, was_retried: bool, method: Method) -> bool {
    lost.on_dead_pooled_connection && !was_retried && !lost.body_was_taken && method.is_idempotent()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lost: &Lost, was_retried: bool, method: Method, expect: bool) {
        assert_eq!(is_worth_it(lost, was_retried, method), expect, "{method:?}, wants_fresh_connection: {was_retried}");
    }

    #[test]
    fn only_an_idempotent_request_that_a_pooled_connection_lost_is_sent_again_and_once() {
        let lost = |pooled, taken| Lost {
            on_dead_pooled_connection: pooled,
            body_was_taken: taken,
            ..Lost::for_good(Broken::ClientLeft)
        };
        check(&lost(true, false), false, Method::Get, true);
        check(&lost(true, false), false, Method::Put, true);
        check(&lost(true, false), false, Method::Post, false);
        check(&lost(true, false), true, Method::Get, false);
        check(&lost(true, true), false, Method::Put, false);
        check(&lost(false, false), false, Method::Get, false);
    }
}
