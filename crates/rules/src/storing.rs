//! May this response be stored, and if so, what are its facts? (RFC 9111 §3, §3.3, §3.5, §4.2)
//!
//! Asked once, when the head of a response has arrived. The answer is the facts that judging a hit needs, or the
//! reason why not, which goes to the log. Policy may change the facts afterwards; this file knows only what the
//! two peers said.

use message::{Authority, Field, FieldName, Fields, FieldsView, Method, Request, Response, Status};

use crate::cache_control::{Scope, delta_seconds, listed_fields};
use crate::date::parse_date;
use crate::freshness::Facts;
use crate::range::ContentRange;
use crate::reference::Location;
use crate::targeted::{self, Policy, Source};
use crate::vary::Vary;
use crate::{RequestDirectives, limits::DELTA_SECONDS_MAX};

/// A request that was sent to the origin and the head of its answer.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// As the client sent it: what was taken off for the origin (conditions, say) still counts here.
    pub request: &'a Request<'a>,
    pub response: Response<'a>,
    /// When the head arrived, since 1970.
    pub response_wall_ms: u64,
    /// RFC 9111 §4.2.3: response_delay, from the request's leaving, on a clock that does not jump.
    pub response_delay_ms: u64,
    pub defaults: &'a StoreDefaults,
}

/// What the operator decides where the RFC leaves a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreDefaults {
    /// RFC 9111 §4.2.2 suggests a tenth of the time since Last-Modified.
    pub heuristic_percent: u64,
    pub heuristic_max_s: u64,
    /// Off: `no-store` of a request is not heard.
    pub honour_client_cache_control: bool,
    /// On: a stored Set-Cookie is given to everybody (RFC 9111 §7.3 permits it). Off: it is not stored.
    pub share_set_cookie: bool,
    /// The token we announce in Surrogate-Capability, if we do.
    pub surrogate_device: Option<String>,
}

impl Default for StoreDefaults {
    fn default() -> StoreDefaults {
        StoreDefaults {
            heuristic_percent: 10,
            heuristic_max_s: 86_400,
            honour_client_cache_control: true,
            share_set_cookie: false,
            surrogate_device: None,
        }
    }
}

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhyNotStored {
    /// The method's answer serves no later GET.
    Method,
    /// 1xx, or a status whose meaning hangs on the request: 304, 412, 416.
    Status,
    /// 206: not the whole; see [`may_store_part`].
    Partial,
    /// A 206 whose Content-Range is missing, unreadable or not one range.
    ContentRange,
    RequestNoStore,
    NoStore,
    Private,
    /// `must-understand` with a status that we do not know.
    NotUnderstood,
    /// The request carried Authorization and the answer does not allow sharing.
    Authorization,
    /// A cookie on either side, and no lifetime that was said.
    Cookie,
    /// `Vary: *`.
    VaryAny,
    /// More names in Vary than the limit.
    VaryTooMany,
    /// Nothing says how long it is fresh, and nothing could validate it.
    NeverReusable,
}

impl WhyNotStored {
    /// The stable word for the log.
    pub const fn token(self) -> &'static str {
        match self {
            WhyNotStored::Method => "method",
            WhyNotStored::Status => "status",
            WhyNotStored::Partial => "partial",
            WhyNotStored::ContentRange => "content-range",
            WhyNotStored::RequestNoStore => "request-no-store",
            WhyNotStored::NoStore => "no-store",
            WhyNotStored::Private => "private",
            WhyNotStored::NotUnderstood => "must-understand",
            WhyNotStored::Authorization => "authorization",
            WhyNotStored::Cookie => "cookie",
            WhyNotStored::VaryAny => "vary-any",
            WhyNotStored::VaryTooMany => "vary-too-many",
            WhyNotStored::NeverReusable => "never-reusable",
        }
    }
}

/// RFC 9111 §3 for a whole response. For a POST the facts are those of a later GET of the same URI.
pub fn may_store(exchange: &Exchange<'_>) -> Result<Facts, WhyNotStored> {
    if exchange.response.status == Status::PARTIAL_CONTENT {
        return Err(WhyNotStored::Partial);
    }
    judge_storable(exchange)
}

/// RFC 9111 §3.3 for a single part of a GET's response. Whether the body has the length that the range says is
/// for the caller to see once it is there.
pub fn may_store_part(exchange: &Exchange<'_>) -> Result<(Facts, ContentRange), WhyNotStored> {
    let is_part = exchange.response.status == Status::PARTIAL_CONTENT && exchange.request.method == Method::Get;
    if !is_part || !exchange.request.fields.contains(FieldName::Range) {
        return Err(WhyNotStored::Status);
    }
    let mut ranges = exchange.response.fields.get_all(FieldName::ContentRange);
    let range = ranges.next().and_then(ContentRange::parse).ok_or(WhyNotStored::ContentRange)?;
    if ranges.next().is_some() {
        return Err(WhyNotStored::ContentRange);
    }
    Ok((judge_storable(exchange)?, range))
}

/// The facts of a stored response after a 304 or a HEAD was merged into it. `None` when what came forbids keeping it.
pub fn facts_after_update(exchange: &Exchange<'_>, merged: Response<'_>) -> Result<Facts, WhyNotStored> {
    let merged = Exchange { response: merged, ..*exchange };
    // RFC 9111 §3.2 updates whatever the update's own status is; the merged head has the stored one.
    if merged.response.status == Status::PARTIAL_CONTENT { judge_storable(&merged) } else { may_store(&merged) }
}

fn judge_storable(exchange: &Exchange<'_>) -> Result<Facts, WhyNotStored> {
    let Exchange { request, response, .. } = *exchange;
    let policy = targeted::policy(response.fields, exchange.defaults.surrogate_device.as_deref());
    permitted(exchange, &policy)?;
    let arrived_s = (exchange.response_wall_ms / 1000) as i64;
    let facts = facts(exchange, &policy, arrived_s);

    if !facts.explicit {
        if request.fields.contains(FieldName::Cookie) || response.fields.contains(FieldName::SetCookie) {
            return Err(WhyNotStored::Cookie);
        }
        if request.method == Method::Post {
            // RFC 9110 §9.3.3: only with explicit freshness.
            return Err(WhyNotStored::Method);
        }
    }
    let has_validator = facts.last_modified.is_some() || response.fields.contains(FieldName::Etag);
    let has_window = facts.stale_while_revalidate_ms > 0 || facts.stale_if_error_ms.is_some_and(|ms| ms > 0);
    let usable_unasked = facts.lifetime_ms > 0 || has_window;
    if !has_validator && (facts.always_validate || !usable_unasked) {
        return Err(WhyNotStored::NeverReusable);
    }
    Ok(facts)
}

/// What RFC 9111 §3 asks before any freshness.
fn permitted(exchange: &Exchange<'_>, policy: &Policy) -> Result<(), WhyNotStored> {
    let Exchange { request, response, defaults, .. } = *exchange;
    let directives = &policy.directives;
    match request.method {
        Method::Get => {}
        Method::Post if names_the_target(request, response.fields) => {}
        _ => return Err(WhyNotStored::Method),
    }
    if response.status.is_interim() || matches!(response.status.0, 304 | 412 | 416) {
        return Err(WhyNotStored::Status);
    }
    if defaults.honour_client_cache_control && RequestDirectives::parse(request.fields).no_store {
        return Err(WhyNotStored::RequestNoStore);
    }
    // RFC 9111 §5.2.2.3: who understands the status ignores the no-store beside must-understand.
    if directives.must_understand && !is_understood(response.status) {
        return Err(WhyNotStored::NotUnderstood);
    }
    if directives.no_store && !directives.must_understand {
        return Err(WhyNotStored::NoStore);
    }
    if directives.private == Scope::Whole {
        return Err(WhyNotStored::Private);
    }
    // RFC 9111 §3.5.
    let shareable = directives.public || directives.must_revalidate || directives.s_maxage_s.is_some();
    if request.fields.contains(FieldName::Authorization) && !shareable {
        return Err(WhyNotStored::Authorization);
    }
    match Vary::of(response.fields) {
        Vary::Any => Err(WhyNotStored::VaryAny),
        Vary::TooMany => Err(WhyNotStored::VaryTooMany),
        Vary::None | Vary::Fields(_) => Ok(()),
    }
}

/// RFC 9111 §4.2.3 and §4.2.1.
fn facts(exchange: &Exchange<'_>, policy: &Policy, arrived_s: i64) -> Facts {
    let fields = exchange.response.fields;
    let directives = &policy.directives;
    let date = fields.get(FieldName::Date).and_then(|text| parse_date(text, arrived_s)).unwrap_or(arrived_s);
    let last_modified = fields.get(FieldName::LastModified).and_then(|text| parse_date(text, arrived_s));

    // Whole seconds: Date has no finer ones, and a response must not be born up to a second old.
    let apparent_age_s = seconds_between(date, arrived_s);
    let corrected_age_ms = (age_value_s(fields) * 1000).saturating_add(exchange.response_delay_ms);

    let said_s = explicit_lifetime_s(fields, policy, date, arrived_s);
    let lifetime_s = said_s.unwrap_or_else(|| heuristic_lifetime_s(exchange, policy, date, last_modified));
    Facts {
        initial_age_ms: corrected_age_ms.max(apparent_age_s * 1000),
        lifetime_ms: lifetime_s * 1000,
        stale_while_revalidate_ms: directives.stale_while_revalidate_s.unwrap_or(0) * 1000,
        stale_if_error_ms: directives.stale_if_error_s.map(|s| s * 1000),
        last_modified,
        date,
        must_revalidate: directives.forbids_stale(),
        always_validate: directives.no_cache == Scope::Whole,
        explicit: said_s.is_some(),
        immutable: directives.immutable,
    }
}

/// RFC 9111 §5.1: the first member counts; one that is no number is ignored. A parameter behind the number is not
/// part of it: the older reading, which makes a response older rather than younger.
pub fn age_value_s(fields: FieldsView<'_>) -> u64 {
    let line = fields.get(FieldName::Age).unwrap_or_default();
    let first = line.split(|&b| matches!(b, b',' | b';')).next().unwrap_or_default();
    let first = first.trim_ascii();
    if first.first() == Some(&b'"') { 0 } else { delta_seconds(first).unwrap_or(0) }
}

/// RFC 9111 §4.2.1, of a shared cache. An Expires that cannot be read is in the past (§5.3).
fn explicit_lifetime_s(fields: FieldsView<'_>, policy: &Policy, date: i64, now_s: i64) -> Option<u64> {
    if let Some(seconds) = policy.directives.shared_lifetime_s() {
        return Some(seconds);
    }
    let expires = fields.get(FieldName::Expires).filter(|_| policy.source == Source::CacheControl)?;
    Some(parse_date(expires, now_s).map_or(0, |expires| seconds_between(date, expires)))
}

/// RFC 9111 §4.2.2: a fraction of the time since Last-Modified, for a status that allows it or a response that is
/// marked public; never beside cookies, where sharing must have been said.
fn heuristic_lifetime_s(exchange: &Exchange<'_>, policy: &Policy, date: i64, last_modified: Option<i64>) -> u64 {
    let Exchange { request, response, defaults, .. } = *exchange;
    let allowed = policy.directives.public || is_heuristically_cacheable(response.status);
    let cookies = request.fields.contains(FieldName::Cookie) || response.fields.contains(FieldName::SetCookie);
    if !allowed || cookies || policy.source != Source::CacheControl {
        return 0;
    }
    let since_s = last_modified.map_or(0, |modified| seconds_between(modified, date));
    (since_s.saturating_mul(defaults.heuristic_percent) / 100).min(defaults.heuristic_max_s).min(DELTA_SECONDS_MAX)
}

/// From one time to a later one; 0 the other way round.
fn seconds_between(from_s: i64, to_s: i64) -> u64 {
    (to_s.saturating_sub(from_s).max(0) as u64).min(DELTA_SECONDS_MAX)
}

/// RFC 9110 §15.1.
pub const fn is_heuristically_cacheable(status: Status) -> bool {
    matches!(status.0, 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// The final statuses whose caching requirements we know: those of RFC 9110 §15.
const fn is_understood(status: Status) -> bool {
    matches!(status.0, 200..=206 | 300..=305 | 307..=308 | 400..=417 | 421..=422 | 426 | 500..=505)
}

/// RFC 9110 §9.3.3: a POST's answer serves a later GET when its Content-Location is the target itself.
fn names_the_target(request: &Request<'_>, fields: FieldsView<'_>) -> bool {
    let mut values = fields.get_all(FieldName::ContentLocation);
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let target = Location { path: request.path.to_vec(), query: request.query.map(<[u8]>::to_vec) };
    request.authority != Authority::EMPTY && Location::resolve(request, value) == Some(target)
}

/// Which fields of a response stay out of the store (RFC 9111 §3.1): those of the connection, those that
/// `no-cache="…"` and `private="…"` name, Age, which we count ourselves, and Set-Cookie unless it may be shared.
#[derive(Clone, Debug)]
pub struct Withholding<'a> {
    named: Vec<&'a [u8]>,
    set_cookie: bool,
}

impl<'a> Withholding<'a> {
    pub fn of(fields: FieldsView<'a>, defaults: &StoreDefaults) -> Withholding<'a> {
        let named = fields.members(FieldName::Connection).chain(listed_fields(fields)).collect();
        Withholding { named, set_cookie: !defaults.share_set_cookie }
    }

    pub fn withholds(&self, field: &Field<'_>) -> bool {
        let by_nature = match field.name {
            FieldName::SetCookie => self.set_cookie,
            FieldName::Other => self.set_cookie && field.name_text.eq_ignore_ascii_case(b"Set-Cookie2"),
            FieldName::Connection | FieldName::KeepAlive | FieldName::ProxyConnection => true,
            FieldName::Te | FieldName::Trailer | FieldName::TransferEncoding | FieldName::Upgrade => true,
            FieldName::ProxyAuthenticate | FieldName::ProxyAuthenticationInfo => true,
            FieldName::ProxyAuthorization | FieldName::Age => true,
            _ => false,
        };
        by_nature || self.named.iter().any(|name| name.eq_ignore_ascii_case(field.name_text))
    }

    /// A copy of the fields without those.
    pub fn stored(fields: FieldsView<'_>, defaults: &StoreDefaults) -> Fields {
        let withholding = Withholding::of(fields, defaults);
        let mut stored = Fields::default();
        for field in fields.iter().filter(|field| !withholding.withholds(field)) {
            stored.push_named(field.name_text, field.value);
        }
        stored
    }
}
