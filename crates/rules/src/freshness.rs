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
    /// RFC 5861 §3; 0 when the origin did not say.
    pub stale_while_revalidate_ms: u64,
    /// RFC 5861 §4; `None` when the origin did not say, which forbids nothing while the origin is unreachable.
    pub stale_if_error_ms: Option<u64>,
    /// Unix seconds, when there is a Last-Modified that can be read.
    pub last_modified: Option<i64>,
    /// Unix seconds of Date, or of the arrival when there is none that can be read.
    pub date: i64,
    /// RFC 9111 §4.2.4: never stale, whatever happens.
    pub must_revalidate: bool,
    /// RFC 9111 §5.2.2.4: not even fresh without asking.
    pub always_validate: bool,
    /// The lifetime was said, not guessed.
    pub explicit: bool,
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
    if facts.must_revalidate || request.min_fresh_s.is_some() || !is_young_enough(facts, resident_ms, request) {
        return Freshness::Validate;
    }
    let stale_for_ms = facts.stale_for_ms(resident_ms);
    Freshness::Stale {
        while_revalidate: stale_for_ms < facts.stale_while_revalidate_ms,
        requester_allows: request.max_stale_s.is_some_and(|s| stale_for_ms <= s.saturating_mul(1000)),
    }
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
    if facts.must_revalidate {
        return false;
    }
    let stale_for_ms = facts.stale_for_ms(resident_ms);
    let asked_ms = request.stale_if_error_s.map(|s| s.saturating_mul(1000));
    match facts.stale_if_error_ms.max(asked_ms) {
        Some(window_ms) => stale_for_ms < window_ms,
        None => failure == OriginFailure::Unreachable,
    }
}
