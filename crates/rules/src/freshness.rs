//! Judging a stored response: fresh, stale, or to be validated first (RFC 9111 §4.2, §5.2.1; RFC 5861; RFC 8246).
//!
//! All that a verdict needs was extracted when the response was stored; here is only arithmetic, because every hit
//! passes through it. Age is counted from the corrected initial age by milliseconds of residence on a clock that
//! does not jump.

use crate::cache_control::RequestDirectives;

/// What freshness needs to know of a stored response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// RFC 9111 §4.2.3: corrected_initial_age.
    pub initial_age_ms: u64,
    /// RFC 9111 §4.2.1: freshness_lifetime.
    pub lifetime_ms: u64,
    /// RFC 5861 §3; 0 when the origin did not say, or forbade it by a stronger word.
    pub stale_while_revalidate_ms: u64,
    /// RFC 5861 §4; `None` when the origin did not say, which forbids nothing while the origin is unreachable.
    pub stale_if_error_ms: Option<u64>,
    /// Unix seconds, when there is a Last-Modified that can be read.
    pub last_modified: Option<i64>,
    /// Unix seconds of Date, or of the arrival when there is none that can be read.
    pub date: i64,
    /// RFC 9111 §4.2.4: never stale, but inside the two windows above: they are set beside `s-maxage` only, where
    /// the origin's explicit permission is the narrower word.
    pub must_revalidate: bool,
    /// RFC 9111 §5.2.2.4: not even fresh without asking.
    pub always_validate: bool,
    /// The response says that others may have it, even where the request carried credentials: `public`, or a lifetime
    /// greater than 0 that was said and not guessed. See docs/what-is-cached.md.
    pub says_shared: bool,
    /// RFC 8246: while fresh, a reload is no reason to ask.
    pub immutable: bool,
}

impl Facts {
    /// RFC 9111 §4.2.3: current_age.
    #[inline]
    pub fn age_ms(&self, resident_ms: u64) -> u64 {
        self.initial_age_ms.saturating_add(resident_ms)
    }

    /// How long it goes on being fresh; 0 when it is not.
    #[inline]
    pub fn fresh_for_ms(&self, resident_ms: u64) -> u64 {
        self.lifetime_ms.saturating_sub(self.age_ms(resident_ms))
    }

    /// What both allow. They are of one response, and differ in what was said of its reuse.
    pub fn stricter(&self, other: &Facts) -> Facts {
        let stale_if_error_ms = match (self.stale_if_error_ms, other.stale_if_error_ms) {
            (None, None) => None,
            // One permits it for a time after any failure, the other for any time without a connection.
            (one, another) => Some(one.unwrap_or(0).min(another.unwrap_or(0))),
        };
        Facts {
            lifetime_ms: self.lifetime_ms.min(other.lifetime_ms),
            stale_while_revalidate_ms: self.stale_while_revalidate_ms.min(other.stale_while_revalidate_ms),
            stale_if_error_ms,
            must_revalidate: self.must_revalidate || other.must_revalidate,
            always_validate: self.always_validate || other.always_validate,
            says_shared: self.says_shared && other.says_shared,
            immutable: self.immutable && other.immutable,
            ..*self
        }
    }

    /// How long it has been stale; 0 when it is fresh, and in the instant in which it stops being so.
    #[inline]
    pub fn stale_for_ms(&self, resident_ms: u64) -> u64 {
        self.age_ms(resident_ms).saturating_sub(self.lifetime_ms)
    }
}

/// May the stored response be used for this request?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// As it is.
    Fresh,
    /// It is stale. With neither permission it still may stand in when the origin fails: [`may_serve_on_error`].
    Stale {
        /// RFC 5861 §3: it may be served at once while one request refreshes it.
        while_revalidate: bool,
        /// RFC 9111 §5.2.1.2: this client takes it stale (`max-stale`).
        requester_allows: bool,
    },
    /// The origin has to be asked first: it said so, or this client did.
    Validate,
}

/// The verdict (RFC 9111 §4). `request` is the default when the client asks nothing or is not listened to.
#[inline]
pub fn judge(facts: &Facts, resident_ms: u64, request: &RequestDirectives) -> Freshness {
    if facts.always_validate || request.no_cache {
        return Freshness::Validate;
    }
    // RFC 9111 §4.2: fresh when freshness_lifetime > current_age.
    let fresh_for_ms = facts.fresh_for_ms(resident_ms);
    if fresh_for_ms > 0 {
        let young = facts.immutable || is_young_enough(facts, resident_ms, request);
        let lasting = request.min_fresh_s.is_none_or(|s| fresh_for_ms >= s.saturating_mul(1000));
        return if young && lasting { Freshness::Fresh } else { Freshness::Validate };
    }
    let stale_for_ms = facts.stale_for_ms(resident_ms);
    let while_revalidate = stale_for_ms < facts.stale_while_revalidate_ms;
    let client_minds = request.min_fresh_s.is_some() || !is_young_enough(facts, resident_ms, request);
    if client_minds || facts.must_revalidate && !while_revalidate {
        return Freshness::Validate;
    }
    let tolerated = request.max_stale_s.is_some_and(|s| stale_for_ms <= s.saturating_mul(1000));
    Freshness::Stale { while_revalidate, requester_allows: tolerated && !facts.must_revalidate }
}

/// RFC 9111 §5.2.1.1. `max-age=0` is a reload: it asks even in the millisecond of arrival.
#[inline]
fn is_young_enough(facts: &Facts, resident_ms: u64, request: &RequestDirectives) -> bool {
    match request.max_age_s {
        None => true,
        Some(0) => false,
        Some(s) => facts.age_ms(resident_ms) <= s.saturating_mul(1000),
    }
}

/// RFC 9111 §5.1: what the Age field says.
#[inline]
pub fn age_s(facts: &Facts, resident_ms: u64) -> u64 {
    facts.age_ms(resident_ms) / 1000
}

/// Why there is no answer from the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginFailure {
    /// No connection, no answer, or half of one: RFC 9111 §4.2.4 calls the cache "disconnected".
    Unreachable,
    /// It answered 500, 502, 503 or 504: an error in the sense of RFC 5861 §4.
    ServerError,
}

/// May the stored response stand in for the origin that failed? Disconnected: yes, unless the origin forbade it or
/// limited it by `stale-if-error`. After a 5xx: only inside a `stale-if-error`, its own or the request's.
pub fn may_serve_on_error(
    facts: &Facts,
    resident_ms: u64,
    request: &RequestDirectives,
    failure: OriginFailure,
) -> bool {
    if facts.always_validate {
        return false;
    }
    if facts.fresh_for_ms(resident_ms) > 0 {
        return true;
    }
    let stale_for_ms = facts.stale_for_ms(resident_ms);
    let asked_ms = request.stale_if_error_s.filter(|_| !facts.must_revalidate).map(|s| s.saturating_mul(1000));
    match facts.stale_if_error_ms.max(asked_ms) {
        Some(window_ms) => stale_for_ms < window_ms,
        None => failure == OriginFailure::Unreachable && !facts.must_revalidate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: Facts = Facts {
        initial_age_ms: 0,
        lifetime_ms: 10_000,
        stale_while_revalidate_ms: 0,
        stale_if_error_ms: None,
        last_modified: None,
        date: 0,
        must_revalidate: false,
        always_validate: false,
        says_shared: true,
        immutable: false,
    };
    const STALE: Freshness = Freshness::Stale { while_revalidate: false, requester_allows: false };
    const REVALIDATED: Freshness = Freshness::Stale { while_revalidate: true, requester_allows: false };
    const TOLERATED: Freshness = Freshness::Stale { while_revalidate: false, requester_allows: true };
    const ASKS: RequestDirectives = RequestDirectives {
        max_age_s: None,
        max_stale_s: None,
        min_fresh_s: None,
        stale_if_error_s: None,
        no_cache: false,
        no_store: false,
        no_transform: false,
        only_if_cached: false,
    };

    fn check(facts: Facts, resident_ms: u64, request: RequestDirectives, expect: Freshness) {
        assert_eq!(judge(&facts, resident_ms, &request), expect, "{facts:?} after {resident_ms} ms, {request:?}");
    }

    /// RFC 9111 §4.2: response_is_fresh = (freshness_lifetime > current_age).
    #[test]
    fn fresh_until_its_age_reaches_its_lifetime() {
        check(STORED, 0, ASKS, Freshness::Fresh);
        check(STORED, 9_999, ASKS, Freshness::Fresh);
        check(STORED, 10_000, ASKS, STALE);
        check(Facts { initial_age_ms: 9_000, ..STORED }, 999, ASKS, Freshness::Fresh);
        check(Facts { initial_age_ms: 9_000, ..STORED }, 1_000, ASKS, STALE);
        check(Facts { initial_age_ms: u64::MAX, ..STORED }, 1, ASKS, STALE);
        check(Facts { always_validate: true, ..STORED }, 0, ASKS, Freshness::Validate);
    }

    /// RFC 5861 §3; RFC 9111 §5.2.2.2.
    #[test]
    fn what_is_stale_may_be_served_inside_its_window() {
        let facts = Facts { stale_while_revalidate_ms: 5_000, ..STORED };
        check(facts, 10_000, ASKS, REVALIDATED);
        check(facts, 14_999, ASKS, REVALIDATED);
        check(facts, 15_000, ASKS, STALE);
        check(Facts { must_revalidate: true, ..STORED }, 10_000, ASKS, Freshness::Validate);
        // s-maxage with a window of its own.
        check(Facts { must_revalidate: true, ..facts }, 14_999, ASKS, REVALIDATED);
        check(Facts { must_revalidate: true, ..facts }, 15_000, ASKS, Freshness::Validate);
    }

    /// RFC 9111 §5.2.1.1 to §5.2.1.4.
    #[test]
    fn a_request_may_be_stricter_or_laxer() {
        check(STORED, 5_000, RequestDirectives { no_cache: true, ..ASKS }, Freshness::Validate);
        check(STORED, 5_000, RequestDirectives { no_store: true, ..ASKS }, Freshness::Fresh);
        check(STORED, 0, RequestDirectives { max_age_s: Some(0), ..ASKS }, Freshness::Validate);
        check(STORED, 5_000, RequestDirectives { max_age_s: Some(5), ..ASKS }, Freshness::Fresh);
        check(STORED, 5_001, RequestDirectives { max_age_s: Some(5), ..ASKS }, Freshness::Validate);
        check(STORED, 5_000, RequestDirectives { min_fresh_s: Some(5), ..ASKS }, Freshness::Fresh);
        check(STORED, 5_001, RequestDirectives { min_fresh_s: Some(5), ..ASKS }, Freshness::Validate);
        let tolerant = RequestDirectives { max_stale_s: Some(5), ..ASKS };
        check(STORED, 15_000, tolerant, TOLERATED);
        check(STORED, 15_001, tolerant, STALE);
        check(STORED, u64::MAX, RequestDirectives { max_stale_s: Some(u64::MAX), ..ASKS }, TOLERATED);
        check(STORED, 15_000, RequestDirectives { max_age_s: Some(9), ..tolerant }, Freshness::Validate);
        check(STORED, 15_000, RequestDirectives { min_fresh_s: Some(1), ..tolerant }, Freshness::Validate);
        check(Facts { must_revalidate: true, ..STORED }, 11_000, tolerant, Freshness::Validate);
        let window = Facts { stale_while_revalidate_ms: 9_000, ..STORED };
        check(window, 11_000, RequestDirectives { max_age_s: Some(0), ..ASKS }, Freshness::Validate);
        check(Facts { must_revalidate: true, ..window }, 11_000, tolerant, REVALIDATED);
    }

    /// RFC 8246 §2: a reload does not ask while it is fresh, a forced one does.
    #[test]
    fn an_immutable_response_is_not_reloaded_while_fresh() {
        let facts = Facts { immutable: true, ..STORED };
        let reload = RequestDirectives { max_age_s: Some(0), ..ASKS };
        check(facts, 9_999, reload, Freshness::Fresh);
        check(facts, 10_000, reload, Freshness::Validate);
        check(facts, 0, RequestDirectives { no_cache: true, ..ASKS }, Freshness::Validate);
    }

    /// RFC 9111 §4.2.4, RFC 5861 §4: in the last millisecond of each window, and in the one behind it.
    #[test]
    fn what_stands_in_for_an_error_does_so_to_the_end_of_its_window() {
        let answers = |resident_ms| {
            let asks = RequestDirectives { stale_if_error_s: Some(5), ..ASKS };
            may_serve_on_error(&STORED, resident_ms, &asks, OriginFailure::ServerError)
        };
        assert!(may_serve_on_error(&STORED, 9_999, &ASKS, OriginFailure::ServerError), "it is fresh");
        assert!(!may_serve_on_error(&STORED, 10_000, &ASKS, OriginFailure::ServerError));
        assert!(answers(14_999) && !answers(15_000));
    }

    /// What is private, or to be asked for, in one reading of a response is so in both together.
    #[test]
    fn of_two_readings_the_stricter_word_counts() {
        let lax = Facts { stale_while_revalidate_ms: 9, stale_if_error_ms: Some(9), immutable: true, ..STORED };
        let strict = Facts {
            lifetime_ms: 5,
            stale_while_revalidate_ms: 4,
            stale_if_error_ms: Some(4),
            must_revalidate: true,
            always_validate: true,
            says_shared: false,
            immutable: false,
            ..STORED
        };
        assert_eq!((lax.stricter(&strict), strict.stricter(&lax)), (strict, strict));
        let window = |one, another| {
            let of = |stale_if_error_ms| Facts { stale_if_error_ms, ..STORED };
            [of(one).stricter(&of(another)), of(another).stricter(&of(one))].map(|both| both.stale_if_error_ms)
        };
        assert_eq!(window(None, None), [None, None]);
        assert_eq!(window(None, Some(9)), [Some(0), Some(0)], "neither what one permits nor what the other does");
    }

    #[test]
    fn age_is_whole_seconds() {
        assert_eq!(age_s(&Facts { initial_age_ms: 1_500, ..STORED }, 1_499), 2);
        assert_eq!(age_s(&Facts { initial_age_ms: 1_500, ..STORED }, 1_500), 3);
    }
}
