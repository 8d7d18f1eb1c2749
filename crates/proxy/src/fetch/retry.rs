//! Retry: whether a request that got no final head may be sent once more, how, and why.

use message::Method;

use crate::fetch::broken::Broken;

/// A request that got no final head.
pub(crate) struct Lost {
    pub(crate) broken: Broken,
    pub(crate) by: LostBy,
    /// Bytes of the client's body were taken, and are gone.
    pub(crate) body_was_taken: bool,
}

/// What says whether it may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostBy {
    /// It was sent on a connection that had served others, and that ended before a byte of an answer: the origin may have closed it
    /// while our request was on its way.
    DeadConnection,
    /// The origin says that it has not worked on it.
    Unprocessed,
    /// The origin wants to be asked over HTTP/1.1.
    WrongProtocol,
    /// There was no connection, so nothing was sent.
    Unconnected,
    /// Whatever else.
    Other,
}

/// How it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// On another connection.
    Anew,
    OverHttp1,
}

/// What was tried already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tried {
    /// A connection of its own, or a new one.
    pub(crate) anew: bool,
    pub(crate) http1: bool,
}

impl Lost {
    pub(crate) fn for_good(broken: Broken) -> Lost {
        Lost { broken, by: LostBy::Other, body_was_taken: true }
    }

    pub(crate) fn unconnected(broken: Broken) -> Lost {
        Lost { by: LostBy::Unconnected, ..Lost::for_good(broken) }
    }
}

/// Each way once, for a request whose body we still could send. What the origin may have worked on must be idempotent (RFC 9110
/// §9.2.2, RFC 9112 §9.3.1); what it has not worked on need not be (RFC 9113 §8.7).
pub(crate) fn way(lost: &Lost, tried: Tried, method: Method) -> Option<Again> {
    match lost.by {
        _ if lost.body_was_taken => None,
        LostBy::DeadConnection if !tried.anew && method.is_idempotent() => Some(Again::Anew),
        LostBy::Unprocessed if !tried.anew => Some(Again::Anew),
        LostBy::WrongProtocol if !tried.http1 => Some(Again::OverHttp1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Tried = Tried { anew: false, http1: false };
    const ANEW: Tried = Tried { anew: true, http1: false };
    const HTTP1: Tried = Tried { anew: false, http1: true };

    fn check(by: LostBy, body_was_taken: bool, tried: Tried, method: Method, expect: Option<Again>) {
        let lost = Lost { by, body_was_taken, ..Lost::for_good(Broken::ClientLeft) };
        assert_eq!(way(&lost, tried, method), expect, "{by:?}, {tried:?}, {method:?}, taken: {body_was_taken}");
    }

    #[test]
    fn only_an_idempotent_request_that_a_pooled_connection_lost_is_sent_again_and_once() {
        let by = LostBy::DeadConnection;
        check(by, false, FIRST, Method::Get, Some(Again::Anew));
        check(by, false, FIRST, Method::Put, Some(Again::Anew));
        check(by, false, FIRST, Method::Post, None);
        check(by, false, ANEW, Method::Get, None);
        check(by, true, FIRST, Method::Put, None);
        for by in [LostBy::Other, LostBy::Unconnected] {
            check(by, false, FIRST, Method::Get, None);
        }
    }

    #[test]
    fn what_the_origin_has_not_worked_on_is_sent_again_whatever_it_is_and_once() {
        check(LostBy::Unprocessed, false, FIRST, Method::Post, Some(Again::Anew));
        check(LostBy::Unprocessed, false, HTTP1, Method::Post, Some(Again::Anew));
        check(LostBy::Unprocessed, false, ANEW, Method::Get, None);
        check(LostBy::Unprocessed, true, FIRST, Method::Post, None);
    }

    #[test]
    fn who_wants_http1_gets_it_once() {
        check(LostBy::WrongProtocol, false, FIRST, Method::Post, Some(Again::OverHttp1));
        check(LostBy::WrongProtocol, false, ANEW, Method::Get, Some(Again::OverHttp1));
        check(LostBy::WrongProtocol, false, HTTP1, Method::Get, None);
        check(LostBy::WrongProtocol, true, FIRST, Method::Post, None);
    }
}
