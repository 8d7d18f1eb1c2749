//! Retry: whether a request that got no final head may be sent once more, how, and why.

use std::sync::Arc;

use message::Method;

use crate::fetch::broken::Broken;
use crate::origin::Address;
use crate::settings::RetrySettings;

/// A request that got no final head.
pub(crate) struct Lost {
    pub(crate) broken: Broken,
    pub(crate) by: LostBy,
    /// Bytes of the client's body were taken, and are gone.
    pub(crate) body_was_taken: bool,
    /// Where it was sent.
    pub(crate) at: Option<Arc<Address>>,
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
    /// No answer began in time.
    Silence,
    /// A connection of its own ended without an answer, or what came was none.
    NoAnswer,
    /// Whatever else.
    Other,
}

/// How it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// On another connection.
    Anew,
    OverHttp1,
    /// To another address.
    Elsewhere,
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
        Lost { broken, by: LostBy::Other, body_was_taken: true, at: None }
    }

    pub(crate) fn unconnected(broken: Broken) -> Lost {
        Lost { by: LostBy::Unconnected, ..Lost::for_good(broken) }
    }
}

/// Each way once, for a request whose body we still could send. What the origin may have worked on must be idempotent (RFC 9110
/// §9.2.2, RFC 9112 §9.3.1); what it has not worked on need not be (RFC 9113 §8.7).
pub(crate) fn way(lost: &Lost, tried: Tried, method: Method, settings: &RetrySettings) -> Option<Again> {
    match lost.by {
        _ if lost.body_was_taken => None,
        LostBy::DeadConnection if !tried.anew && method.is_idempotent() => Some(Again::Anew),
        LostBy::Unprocessed if !tried.anew => Some(Again::Anew),
        LostBy::WrongProtocol if !tried.http1 => Some(Again::OverHttp1),
        LostBy::Silence if settings.on_timeout && may_go_elsewhere(settings, method) => Some(Again::Elsewhere),
        LostBy::NoAnswer | LostBy::DeadConnection if settings.on_closed && may_go_elsewhere(settings, method) => {
            Some(Again::Elsewhere)
        }
        _ => None,
    }
}

/// May an address have worked on it in vain? Whether there is another one is its caller's to say.
pub(crate) fn may_go_elsewhere(settings: &RetrySettings, method: Method) -> bool {
    settings.methods.contains(&method)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Tried = Tried { anew: false, http1: false };
    const ANEW: Tried = Tried { anew: true, http1: false };
    const HTTP1: Tried = Tried { anew: false, http1: true };

    fn check(by: LostBy, body_was_taken: bool, tried: Tried, method: Method, expect: Option<Again>) {
        let lost = Lost { by, body_was_taken, ..Lost::for_good(Broken::ClientLeft) };
        assert_eq!(
            way(&lost, tried, method, &RetrySettings::default()),
            expect,
            "{by:?}, {tried:?}, {method:?}, taken: {body_was_taken}"
        );
    }

    #[test]
    fn only_an_idempotent_request_that_a_pooled_connection_lost_is_sent_again_and_once() {
        let by = LostBy::DeadConnection;
        check(by, false, FIRST, Method::Get, Some(Again::Anew));
        check(by, false, FIRST, Method::Put, Some(Again::Anew));
        check(by, false, FIRST, Method::Post, None);
        check(by, false, ANEW, Method::Get, None);
        check(by, true, FIRST, Method::Put, None);
        for by in [LostBy::Other, LostBy::Unconnected, LostBy::Silence, LostBy::NoAnswer] {
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
    fn what_an_operator_lets_go_elsewhere_does_by_cause_and_method() {
        let on_timeout = RetrySettings { on_timeout: true, ..RetrySettings::default() };
        let on_closed = RetrySettings { on_closed: true, methods: vec![Method::Post], ..RetrySettings::default() };
        let check = |settings: &RetrySettings, by, body_was_taken, method, expect| {
            let lost = Lost { by, body_was_taken, ..Lost::for_good(Broken::ClientLeft) };
            assert_eq!(way(&lost, ANEW, method, settings), expect, "{by:?}, {method:?}, {settings:?}");
        };
        let elsewhere = Some(Again::Elsewhere);
        check(&on_timeout, LostBy::Silence, false, Method::Get, elsewhere);
        check(&on_timeout, LostBy::Silence, true, Method::Get, None);
        check(&on_timeout, LostBy::Silence, false, Method::Post, None);
        check(&on_timeout, LostBy::NoAnswer, false, Method::Get, None);
        check(&on_closed, LostBy::NoAnswer, false, Method::Post, elsewhere);
        check(&on_closed, LostBy::DeadConnection, false, Method::Post, elsewhere);
        check(&on_closed, LostBy::NoAnswer, false, Method::Get, None);
        check(&on_closed, LostBy::Silence, false, Method::Post, None);
        check(&on_closed, LostBy::Other, false, Method::Post, None);
    }

    #[test]
    fn who_wants_http1_gets_it_once() {
        check(LostBy::WrongProtocol, false, FIRST, Method::Post, Some(Again::OverHttp1));
        check(LostBy::WrongProtocol, false, ANEW, Method::Get, Some(Again::OverHttp1));
        check(LostBy::WrongProtocol, false, HTTP1, Method::Get, None);
        check(LostBy::WrongProtocol, true, FIRST, Method::Post, None);
    }
}
