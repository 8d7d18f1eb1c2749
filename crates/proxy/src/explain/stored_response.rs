//! A stored response, as it is told to who asks why something is a hit or none.

use std::sync::Arc;

use cache::{Now, Object};
use message::{FieldName, Request};
use rules::storing::{Exchange, lifetime_source};
use rules::{LifetimeSource, StoreDefaults};

/// What is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    pub status: u16,
    /// Fields of a request that select it.
    pub vary: Vec<String>,
    /// Its Content-Encoding.
    pub coding: Option<String>,
    pub etag: Option<String>,
    pub body_bytes: u64,
    /// Of a part: where it begins and ends.
    pub part: Option<(u64, u64)>,
    pub hits: u32,
    /// When it came or was confirmed, since 1970.
    pub received_wall_ms: u64,
    pub age_s: u64,
    /// How long it is fresh from its making on.
    pub lifetime_ms: u64,
    /// Which word, or which setting, says so.
    pub fresh_by: String,
    /// Until when it is fresh, since 1970; in the past, since when it is not.
    pub fresh_until_wall_ms: u64,
    pub is_fresh: bool,
    /// It is confirmed for each request, however fresh.
    pub always_confirmed: bool,
    pub stale_while_revalidate_ms: u64,
    /// `None`: nothing is said, and nothing forbidden.
    pub stale_if_error_ms: Option<u64>,
    /// It says that others may have it, also where requests have credentials.
    pub says_shared: bool,
    pub is_on_disk: bool,
}

impl StoredResponse {
    /// `defaults`: of the route that the request has now.
    pub(super) fn of(
        object: &Arc<Object>,
        request: &Request<'_>,
        defaults: &StoreDefaults,
        now: Now,
    ) -> StoredResponse {
        let (facts, fields) = (object.facts(), object.fields());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (received, age_ms) = (object.received(), facts.age_ms(object.resident_ms(now)));
        let fresh_for_ms = facts.fresh_for_ms(object.resident_ms(now));
        let stale_for_ms = facts.stale_for_ms(object.resident_ms(now));
        StoredResponse {
            status: object.status().0,
            vary: object.vary().into_iter().flat_map(|vary| vary.names()).map(text).collect(),
            coding: fields.get(FieldName::ContentEncoding).map(text),
            etag: object.etag().map(text),
            body_bytes: object.length(),
            part: object.partial().map(|part| (part.from, part.to)),
            hits: object.hits(),
            received_wall_ms: received.wall_ms,
            age_s: age_ms / 1_000,
            lifetime_ms: facts.lifetime_ms,
            fresh_by: fresh_by(object, request, defaults),
            fresh_until_wall_ms: (now.wall_ms + fresh_for_ms).saturating_sub(stale_for_ms),
            is_fresh: fresh_for_ms > 0,
            always_confirmed: facts.always_validate,
            stale_while_revalidate_ms: facts.stale_while_revalidate_ms,
            stale_if_error_ms: facts.stale_if_error_ms,
            says_shared: facts.says_shared,
            is_on_disk: object.body().on_disk().is_some(),
        }
    }
}

const NO_WORD: &str = "no word of how long: it is confirmed each time";

/// The word by which it is fresh, found out by who judged it when it came. Where that comes to something else now, a soft purge, a 304 or
/// other settings have changed it, and nobody remembers which.
fn fresh_by(object: &Object, request: &Request<'_>, defaults: &StoreDefaults) -> String {
    if object.is_by_program() {
        return "the VCL".to_owned();
    }
    // The request that it was stored for is not known any more: nobody's is asked about here.
    let nobody = Request { fields: message::FieldsView::default(), ..request.clone() };
    let (response_wall_ms, response_delay_ms) = (object.received().wall_ms, 0);
    let response = object.response();
    let exchange = Exchange { request: &nobody, response, response_wall_ms, response_delay_ms, defaults };
    let (rule, seconds) = lifetime_source(&exchange);
    // Nothing is guessed of what was asked for with credentials, or sets a cookie.
    if rule == LifetimeSource::Heuristic && object.facts().lifetime_ms == 0 {
        return NO_WORD.to_owned();
    }
    if seconds.saturating_mul(1_000) != object.facts().lifetime_ms {
        return "what held when it was stored, and a soft purge, a 304 or other settings have changed since".to_owned();
    }
    match rule {
        LifetimeSource::SharedMaxAge(source) => format!("{}: s-maxage={seconds}", source.field().canonical()),
        LifetimeSource::MaxAge(source) => format!("{}: max-age={seconds}", source.field().canonical()),
        LifetimeSource::Expires => "Expires".to_owned(),
        LifetimeSource::Granted => format!("ttl of the route: {seconds} s"),
        LifetimeSource::Heuristic => format!(
            "the time since Last-Modified ([policy] heuristic_percent = {}), as nothing says how long",
            defaults.heuristic_percent
        ),
        LifetimeSource::Nothing => NO_WORD.to_owned(),
    }
}
