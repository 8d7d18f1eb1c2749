//! May this response be stored, and if so, what are its facts? (RFC 9111 §3, §3.3, §3.5, §4.2)
//!
//! Asked once, when the head of a response has arrived. The answer is the facts that judging a hit needs, or the
//! reason why not, which goes to the log. Policy may change the facts afterwards; this file knows only what the
//! two peers said.

use message::{Authority, Field, FieldName, Fields, FieldsView, Method, Request, Response, Status};

use crate::cache_control::{self, ResponseDirectives, Scope, delta_seconds, listed_fields};
use crate::credentials;
use crate::date::parse_date;
use crate::delta_coding;
use crate::freshness::Facts;
use crate::grant::Grant;
use crate::groups;
use crate::lifetime_source::{LifetimeSource, seconds_between};
use crate::range::{ContentRange, may_combine};
use crate::reference::Location;
use crate::targeted::{self, Policy, Source};
use crate::vary::Vary;
use crate::why_not_stored::WhyNotStored;
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
    /// Off: of what sets a cookie, or was asked for with credentials, `max-age` and Expires say how long its own client may keep it, and not
    /// that others may have it.
    pub share_by_max_age: bool,
    /// We work for the origin: what it says to CDNs and surrogates is said to us.
    pub is_surrogate: bool,
    /// The token we announce in Surrogate-Capability, if we do.
    pub surrogate_device: Option<String>,
    /// What the operator says of these responses beside that.
    pub grant: Grant,
}

impl Default for StoreDefaults {
    fn default() -> StoreDefaults {
        StoreDefaults {
            heuristic_percent: 10,
            heuristic_max_s: 86_400,
            honour_client_cache_control: true,
            share_set_cookie: false,
            share_by_max_age: true,
            is_surrogate: true,
            surrogate_device: None,
            grant: Grant::default(),
        }
    }
}

/// RFC 9111 §3 for a whole response. For a POST the facts are those of a later GET of the same URI.
pub fn may_store(exchange: &Exchange<'_>) -> Result<Facts, WhyNotStored> {
    if exchange.response.status == Status::PARTIAL_CONTENT {
        return Err(WhyNotStored::Partial);
    }
    may_store_method(exchange)?;
    judge_new(exchange)
}

/// RFC 9111 §3: GET; and POST when its answer says that it is what a GET would have got (RFC 9110 §9.3.3).
fn may_store_method(exchange: &Exchange<'_>) -> Result<(), WhyNotStored> {
    match exchange.request.method {
        Method::Get => Ok(()),
        Method::Post if names_the_target(exchange.request, exchange.response.fields) => Ok(()),
        _ => Err(WhyNotStored::Method),
    }
}

/// RFC 9111 §3.3 for a single part of a GET's response, which §3.4 lets us combine with others of its strong entity
/// tag. Whether the body has the length that the range says is for the caller to see.
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
    if !may_combine(exchange.response.fields, exchange.response.fields) {
        return Err(WhyNotStored::PartValidator);
    }
    // RFC 9110 §15.3.7: to If-Range the origin need not repeat the fields of the representation.
    let asked_if = exchange.request.fields.contains(FieldName::IfRange);
    if asked_if && !exchange.response.fields.contains(FieldName::ContentType) {
        return Err(WhyNotStored::PartFields);
    }
    Ok((judge_new(exchange)?, range))
}

/// The facts of a stored response into which the answer of this exchange, a 304 or a HEAD's 200, was merged
/// (RFC 9111 §4.3.4). Its age counts from that answer. `Err`: what came forbids keeping it, as it would have forbidden
/// storing a 200.
pub fn facts_after_update(
    exchange: &Exchange<'_>,
    stored: FieldsView<'_>,
    merged: Response<'_>,
) -> Result<Facts, WhyNotStored> {
    let update = exchange.response.fields;
    let merged = Exchange { response: merged, ..*exchange };
    let policy = policy_of(exchange, merged.response.fields);
    let facts = judge_storable(&merged, &policy, update)?;
    let said_now = policy_of(exchange, update);
    if said_now.source == policy.source || !says_anew(said_now.source, stored, update) {
        return Ok(facts);
    }
    // A targeted field was retained, and what came lacks it and has another word in a field that it outranks. Whether it is
    // still meant nobody knows.
    Ok(facts.stricter(&judge_storable(&merged, &said_now, update)?))
}

/// Does an update say in this field what the stored response did not say in it?
fn says_anew(source: Source, stored: FieldsView<'_>, update: FieldsView<'_>) -> bool {
    let name = source.field();
    update.contains(name) && !update.members(name).eq(stored.members(name))
}

fn policy_of(exchange: &Exchange<'_>, fields: FieldsView<'_>) -> Policy {
    let StoreDefaults { is_surrogate, surrogate_device, grant, .. } = exchange.defaults;
    if grant.ignores_directives {
        return Policy { source: Source::CacheControl, directives: ResponseDirectives::default() };
    }
    targeted::policy(fields, *is_surrogate, surrogate_device.as_deref())
}

fn judge_new(exchange: &Exchange<'_>) -> Result<Facts, WhyNotStored> {
    let fields = exchange.response.fields;
    judge_storable(exchange, &policy_of(exchange, fields), fields)
}

/// `arrived` holds what has just come: its Date and Age count, and who asked got its Set-Cookie.
fn judge_storable(exchange: &Exchange<'_>, policy: &Policy, arrived: FieldsView<'_>) -> Result<Facts, WhyNotStored> {
    let Exchange { request, response, .. } = *exchange;
    permitted(exchange, policy)?;
    let Judged { facts, said_lifetime, origin_said_lifetime, origin_says_shared } = facts(exchange, policy, arrived);
    let sets_cookie = !exchange.defaults.grant.ignores_set_cookie
        && (credentials::sets_cookie(response.fields) || credentials::sets_cookie(arrived));
    // An operator who gives lifetimes says that pages are for all; not that one is which comes with a cookie for its client.
    let is_for_all = facts.says_shared && (origin_says_shared || !sets_cookie);
    may_be_shared(request, &policy.directives, (sets_cookie, is_for_all))?;

    // RFC 9110 §9.3.3 asks for the origin's own word.
    if request.method == Method::Post && !origin_said_lifetime {
        return Err(WhyNotStored::Method);
    }
    if !said_lifetime {
        // RFC 9111 §3: the last of its conditions.
        if !policy.directives.public && !is_heuristically_cacheable(response.status) {
            return Err(WhyNotStored::NotCacheable);
        }
    }
    let has_validator = facts.last_modified.is_some() || response.fields.contains(FieldName::Etag);
    let usable_unasked = !facts.always_validate && (facts.lifetime_ms > 0 || has_stale_window(&facts));
    if has_validator || usable_unasked { Ok(facts) } else { Err(WhyNotStored::NeverReusable) }
}

/// What was made for a client's credentials, or gives it a cookie, is shared only where it says so. For Authorization
/// RFC 9111 §3.5 asks for one of three words as well; `must-revalidate` is one of them, and says by itself nothing that
/// others may have: applications send it with what is never to be shared (`no-cache, must-revalidate, max-age=0`).
fn may_be_shared(
    request: &Request<'_>,
    directives: &ResponseDirectives,
    (sets_cookie, is_for_all): (bool, bool),
) -> Result<(), WhyNotStored> {
    let lets_authorized = directives.public || directives.must_revalidate || directives.s_maxage_s.is_some();
    match credentials::of_request(request.fields) {
        Some(WhyNotStored::Authorization) if !lets_authorized => Err(WhyNotStored::Authorization),
        _ if is_for_all => Ok(()),
        Some(why) => Err(why),
        None if sets_cookie => Err(WhyNotStored::Cookie),
        None => Ok(()),
    }
}

fn has_stale_window(facts: &Facts) -> bool {
    facts.stale_while_revalidate_ms > 0 || facts.stale_if_error_ms.is_some_and(|ms| ms > 0)
}

/// What RFC 9111 §3 asks before any freshness.
fn permitted(exchange: &Exchange<'_>, policy: &Policy) -> Result<(), WhyNotStored> {
    let Exchange { request, response, defaults, .. } = *exchange;
    let directives = &policy.directives;
    // RFC 9110 §15.3.6: a 205 asks its client to do something; §15: beyond 599 is no status.
    if response.status.is_interim() || matches!(response.status.0, 205 | 304 | 412 | 416 | 600..) {
        return Err(WhyNotStored::Status);
    }
    let hears_client = defaults.honour_client_cache_control && !defaults.grant.ignores_directives;
    if hears_client && RequestDirectives::parse(request.fields).no_store {
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
    if policy.source == Source::CacheControl
        && defaults.grant.hears_older_words()
        && cache_control::older_words_prohibit(response.fields)
    {
        return Err(WhyNotStored::NoStore);
    }
    if groups::of_response(response.fields).is_err() {
        return Err(WhyNotStored::TooManyGroups);
    }
    if delta_coding::hides_its_dictionary(response.fields) {
        return Err(WhyNotStored::HiddenDictionary);
    }
    match Vary::of(response.fields) {
        Vary::Any => Err(WhyNotStored::VaryAny),
        Vary::TooMany => Err(WhyNotStored::VaryTooMany),
        Vary::None | Vary::Fields(_) => Ok(()),
    }
}

/// What a response comes to.
struct Judged {
    facts: Facts,
    /// Its lifetime was said, and not guessed.
    said_lifetime: bool,
    /// By the origin.
    origin_said_lifetime: bool,
    /// It says itself that others may have it.
    origin_says_shared: bool,
}

/// RFC 9111 §4.2.3 and §4.2.1.
fn facts(exchange: &Exchange<'_>, policy: &Policy, arrived: FieldsView<'_>) -> Judged {
    let fields = exchange.response.fields;
    let directives = &policy.directives;
    let arrived_s = (exchange.response_wall_ms / 1000) as i64;
    let date = arrived.get(FieldName::Date).and_then(|text| parse_date(text, arrived_s)).unwrap_or(arrived_s);
    let last_modified = fields.get(FieldName::LastModified).and_then(|text| parse_date(text, arrived_s));

    // Whole seconds: Date has no finer ones, and a response must not be born up to a second old.
    let apparent_age_s = seconds_between(date, arrived_s);
    let corrected_age_ms = (age_value_s(arrived) * 1000).saturating_add(exchange.response_delay_ms);

    let grant = &exchange.defaults.grant;
    let (rule, lifetime_s) = lifetime(exchange, policy, (date, arrived_s), last_modified);
    let origin_said_s = rule.is_origin_s().then_some(lifetime_s);
    let said_s = rule.is_said().then_some(lifetime_s);
    // RFC 9111 §5.2.2.2, §5.2.2.8, §5.2.2.4: under these nothing is ever stale and used, whatever else is said.
    let never_stale = directives.must_revalidate || directives.proxy_revalidate || directives.no_cache == Scope::Whole;
    // What is to be asked for each time says by its lifetime nothing of who may have it.
    let says_lifetime = |said_s: Option<u64>| directives.no_cache != Scope::Whole && said_s.is_some_and(|s| s > 0);
    let names_caches = policy.source != Source::CacheControl || directives.s_maxage_s.is_some();
    let is_said_of_others = names_caches || exchange.defaults.share_by_max_age;
    let origin_says_shared = directives.public || is_said_of_others && says_lifetime(origin_said_s);
    let operator_says_shared = origin_said_s.is_none() && says_lifetime(said_s);
    let has_lifetime = rule != LifetimeSource::Nothing;
    let granted = grant.stale_windows_s(exchange.response.status, has_lifetime);
    let while_revalidate_s = directives.stale_while_revalidate_s.or(granted.0);
    let if_error_s = directives.stale_if_error_s.or(granted.1);
    let facts = Facts {
        initial_age_ms: corrected_age_ms.max(apparent_age_s * 1000),
        lifetime_ms: lifetime_s * 1000,
        stale_while_revalidate_ms: while_revalidate_s.filter(|_| !never_stale).unwrap_or(0) * 1000,
        stale_if_error_ms: if_error_s.filter(|_| !never_stale).map(|s| s * 1000),
        last_modified,
        date,
        must_revalidate: directives.forbids_stale(),
        always_validate: directives.no_cache == Scope::Whole,
        says_shared: origin_says_shared || operator_says_shared,
        immutable: directives.immutable,
    };
    let (said_lifetime, origin_said_lifetime) = (said_s.is_some(), origin_said_s.is_some());
    Judged { facts, said_lifetime, origin_said_lifetime, origin_says_shared }
}

/// RFC 9111 §5.1: the first member counts; one that is no number is ignored. A parameter behind the number is not
/// part of it: the older reading, which makes a response older rather than younger.
pub fn age_value_s(fields: FieldsView<'_>) -> u64 {
    let first = fields.members(FieldName::Age).next().unwrap_or_default();
    let number = first.split(|&b| b == b';').next().unwrap_or_default();
    if number.starts_with(b"\"") { 0 } else { delta_seconds(number).unwrap_or(0) }
}

/// How long a response is fresh, and by what.
fn lifetime(
    exchange: &Exchange<'_>,
    policy: &Policy,
    (date, arrived_s): (i64, i64),
    last_modified: Option<i64>,
) -> (LifetimeSource, u64) {
    let grant = &exchange.defaults.grant;
    let explicit = || LifetimeSource::explicit(exchange.response.fields, policy, date, arrived_s);
    let said = if grant.ignores_directives { None } else { explicit() };
    let granted = || Some((LifetimeSource::Granted, grant.lifetime_s(exchange.response.status)?));
    said.or_else(granted).unwrap_or_else(|| heuristic_lifetime(exchange, policy, date, last_modified))
}

/// The same of a response that is stored, for who wants to know by what it is fresh. `exchange` has its stored fields.
pub fn lifetime_source(exchange: &Exchange<'_>) -> (LifetimeSource, u64) {
    let (fields, arrived_s) = (exchange.response.fields, (exchange.response_wall_ms / 1000) as i64);
    let read = |name| fields.get(name).and_then(|text| parse_date(text, arrived_s));
    let date = read(FieldName::Date).unwrap_or(arrived_s);
    lifetime(exchange, &policy_of(exchange, fields), (date, arrived_s), read(FieldName::LastModified))
}

/// RFC 9111 §4.2.2: a fraction of the time since Last-Modified, for a status that allows it or a response that is
/// marked public; never beside credentials or cookies, where a lifetime must have been said.
fn heuristic_lifetime(
    exchange: &Exchange<'_>,
    policy: &Policy,
    date: i64,
    last_modified: Option<i64>,
) -> (LifetimeSource, u64) {
    let allowed = policy.directives.public || is_heuristically_cacheable(exchange.response.status);
    let is_for_one = credentials::of_request(exchange.request.fields).is_some();
    let is_for_one = is_for_one || credentials::sets_cookie(exchange.response.fields);
    let Some(modified) = last_modified.filter(|_| allowed && !is_for_one) else { return (LifetimeSource::Nothing, 0) };
    let StoreDefaults { heuristic_percent, heuristic_max_s, .. } = *exchange.defaults;
    let since_s = seconds_between(modified, date);
    let seconds = (since_s.saturating_mul(heuristic_percent) / 100).min(heuristic_max_s).min(DELTA_SECONDS_MAX);
    (LifetimeSource::Heuristic, seconds)
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
/// `no-cache="…"` and `private="…"` name, Age, which we count ourselves, what is about one client's login, and Set-Cookie
/// unless it may be shared.
#[derive(Clone, Debug)]
pub struct Withholding<'a> {
    named: Vec<&'a [u8]>,
    set_cookie: bool,
}

impl<'a> Withholding<'a> {
    pub fn of(fields: FieldsView<'a>, defaults: &StoreDefaults) -> Withholding<'a> {
        let named = fields.members(FieldName::Connection).chain(listed_fields(fields)).collect();
        // Who was to ignore it gives it to nobody else either.
        Withholding { named, set_cookie: !defaults.share_set_cookie || defaults.grant.ignores_set_cookie }
    }

    pub fn withholds(&self, field: &Field<'_>) -> bool {
        let by_nature = match field.name {
            FieldName::SetCookie => self.set_cookie,
            // RFC 9110 §11.6.3: about who asked, and the exchange in which it proved that.
            FieldName::Other if field.name_text.eq_ignore_ascii_case(b"Authentication-Info") => true,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{exchange, fields, head, request, store, store_as};

    fn check(request_lines: &str, status: u16, response_lines: &str, expect: Result<(), WhyNotStored>) {
        let stored = store(request_lines, status, response_lines).map(|_| ());
        assert_eq!(stored, expect, "{request_lines:?} → {status} {response_lines:?}");
    }

    /// RFC 9111 §3, condition by condition.
    #[test]
    fn what_may_not_be_stored() {
        let fresh = "Cache-Control: max-age=60";
        check("", 200, fresh, Ok(()));
        check("", 200, &format!("{fresh}, no-store"), Err(WhyNotStored::NoStore));
        check("", 200, &format!("{fresh}, private"), Err(WhyNotStored::Private));
        check("", 200, &format!("{fresh}, private=\"x-own\""), Ok(()));
        check("Cache-Control: no-store", 200, fresh, Err(WhyNotStored::RequestNoStore));
        check("", 200, &format!("{fresh}\nVary: *"), Err(WhyNotStored::VaryAny));
        check("", 200, &format!("{fresh}\nVary: a b"), Err(WhyNotStored::VaryTooMany));
        check("", 103, fresh, Err(WhyNotStored::Status));
        check("", 304, fresh, Err(WhyNotStored::Status));
        check("Range: bytes=9-", 416, fresh, Err(WhyNotStored::Status));
        for status in [205, 600, 999] {
            check("", status, fresh, Err(WhyNotStored::Status));
        }
        check("If-Match: \"a\"", 412, fresh, Err(WhyNotStored::Status));
        check("Range: bytes=0-4", 206, fresh, Err(WhyNotStored::Partial));
        check("", 200, "", Err(WhyNotStored::NeverReusable));
        check("", 200, "Cache-Control: max-age=0", Err(WhyNotStored::NeverReusable));
        check("", 200, "Cache-Control: max-age=60, no-cache", Err(WhyNotStored::NeverReusable));
        let groups: Vec<String> = (0..=crate::limits::GROUPS_MAX).map(|n| format!("\"{n}\"")).collect();
        check("", 200, &format!("{fresh}\nCache-Groups: {}", groups.join(", ")), Err(WhyNotStored::TooManyGroups));
        check("", 200, &format!("{fresh}\nContent-Encoding: dcz"), Err(WhyNotStored::HiddenDictionary));
        check("", 207, "ETag: \"a\"", Err(WhyNotStored::NotCacheable));
        check("", 403, "ETag: \"a\"", Err(WhyNotStored::NotCacheable));
        check("", 200, "CDN-Cache-Control: private\nCache-Control: max-age=60", Err(WhyNotStored::Private));
    }

    #[test]
    fn what_can_be_validated_or_stands_in_is_stored() {
        for lines in
            ["Cache-Control: no-cache\nETag: \"a\"", "ETag: \"a\"", "Cache-Control: max-age=0\nLast-Modified: {0}"]
        {
            check("", 200, lines, Ok(()));
        }
        check("", 200, "Cache-Control: max-age=0, stale-while-revalidate=9", Ok(()));
        check("", 200, "Cache-Control: max-age=0, stale-if-error=9", Ok(()));
        for none in
            ["stale-if-error=0", "must-revalidate, stale-if-error=9", "proxy-revalidate, stale-while-revalidate=9"]
        {
            check("", 200, &format!("Cache-Control: max-age=0, {none}"), Err(WhyNotStored::NeverReusable));
        }
        let facts = store("", 200, "Cache-Control: max-age=9, stale-while-revalidate=9\nDate: {-10}").unwrap();
        assert_eq!((facts.initial_age_ms, facts.stale_while_revalidate_ms), (10_000, 9_000));
        let facts = store("", 200, "Cache-Control: max-age=9, no-cache\nETag: \"a\"").unwrap();
        assert!(facts.always_validate && facts.must_revalidate);
        assert!(!store("", 200, "Cache-Control: max-age=9, no-cache=\"a\"").unwrap().always_validate);
    }

    /// RFC 9111 §3.5.
    #[test]
    fn authorization_needs_leave_to_share() {
        let asked = "Authorization: x";
        check(asked, 200, "Expires: {+99}\nDate: {0}", Err(WhyNotStored::Authorization));
        check(asked, 200, "Cache-Control: max-age=60", Err(WhyNotStored::Authorization));
        check(asked, 200, "Cache-Control: max-age=60, proxy-revalidate", Err(WhyNotStored::Authorization));
        for leave in ["public", "must-revalidate", "s-maxage=60"] {
            check(asked, 200, &format!("Cache-Control: max-age=60, {leave}"), Ok(()));
        }
    }

    /// The words that let a response be shared which was asked for with credentials, or which sets a cookie.
    #[test]
    fn credentials_and_cookies_need_a_word_that_shares() {
        let shares = [
            "Cache-Control: max-age=60",
            "Cache-Control: s-maxage=60, max-age=0",
            "Cache-Control: public\nETag: \"a\"",
            "Cache-Control: public, no-cache\nETag: \"a\"",
            "Cache-Control: no-cache=\"x\", max-age=60",
            "Expires: {+99}\nDate: {0}",
            "CDN-Cache-Control: max-age=60\nCache-Control: no-store",
            "Surrogate-Control: max-age=60",
        ];
        let keeps = [
            "",
            "Last-Modified: {-86400}\nDate: {0}",
            "Cache-Control: no-cache, must-revalidate, max-age=0\nETag: \"a\"",
            "Cache-Control: no-cache, max-age=60\nETag: \"a\"",
            "Cache-Control: max-age=60, s-maxage=0\nETag: \"a\"",
            "Cache-Control: max-age=0, stale-while-revalidate=60\nETag: \"a\"",
            "Expires: {-99}\nDate: {0}\nETag: \"a\"",
            "Cache-Control: max-age=60\nCDN-Cache-Control: max-age=0\nETag: \"a\"",
        ];
        for lines in shares {
            check("Cookie: a=b", 200, lines, Ok(()));
            check("X-Client-Cert: x", 200, lines, Ok(()));
            check("", 200, &format!("{lines}\nSet-Cookie: a=b"), Ok(()));
        }
        check("Cookie: a=b", 200, "Cache-Control: max-age=1", Ok(()));
        for lines in keeps {
            check("Cookie: a=b", 200, lines, Err(WhyNotStored::Cookie));
            check("x-api-key: x", 200, lines, Err(WhyNotStored::Credentials));
            check("", 200, &format!("{lines}\nSet-Cookie: a=b"), Err(WhyNotStored::Cookie));
            let revalidated = format!("{lines}\nCache-Control: must-revalidate");
            check("Authorization: x", 200, &revalidated, Err(WhyNotStored::Authorization));
        }
    }

    #[test]
    fn where_max_age_is_said_to_clients_alone_what_is_said_to_caches_shares() {
        let defaults = StoreDefaults { share_by_max_age: false, ..StoreDefaults::default() };
        let check = |lines: &str, expect| {
            let stored = store_as("GET /", "Cookie: a=b", 200, lines, &defaults).map(|_| ());
            assert_eq!(stored, expect, "{lines:?}");
        };
        check("Cache-Control: max-age=60", Err(WhyNotStored::Cookie));
        check("Expires: {60}\nDate: {0}", Err(WhyNotStored::Cookie));
        check("Cache-Control: public, max-age=60", Ok(()));
        check("Cache-Control: s-maxage=60", Ok(()));
        check("CDN-Cache-Control: max-age=60", Ok(()));
    }

    /// RFC 9111 §4.2.2: no lifetime is guessed there, whatever is said of sharing.
    #[test]
    fn nothing_is_guessed_beside_credentials_and_cookies() {
        let guessed = "Last-Modified: {-86400}\nDate: {0}\nCache-Control: public";
        let lifetime = |asked: &str, lines: &str| store(asked, 200, lines).map(|facts| facts.lifetime_ms);
        assert_eq!(lifetime("", guessed), Ok(8_640_000));
        for asked in ["Cookie: a=b", "Authorization: x", "Client-Cert: x"] {
            assert_eq!(lifetime(asked, guessed), Ok(0), "{asked}");
        }
        assert_eq!(lifetime("", &format!("{guessed}\nSet-Cookie: a=b")), Ok(0));
    }

    /// RFC 9111 §5.2.2.3.
    #[test]
    fn must_understand() {
        check("", 599, "Cache-Control: max-age=60, must-understand", Err(WhyNotStored::NotUnderstood));
        check("", 599, "Cache-Control: max-age=60, no-store, must-understand", Err(WhyNotStored::NotUnderstood));
        check("", 200, "Cache-Control: max-age=60, no-store, must-understand", Ok(()));
        check("", 599, "Cache-Control: max-age=60", Ok(()));
        // The first and the last of each row of RFC 9110 §15, and what stands beside them.
        for known in [200, 206, 300, 305, 307, 308, 400, 417, 421, 422, 426, 500, 505] {
            assert!(is_understood(Status(known)), "{known}");
        }
        for unknown in [199, 207, 299, 306, 309, 399, 418, 420, 423, 425, 427, 499, 506] {
            assert!(!is_understood(Status(unknown)), "{unknown}");
        }
    }

    /// RFC 9111 §4.2.2: a fraction of a time that nobody has told.
    #[test]
    fn without_a_date_of_change_no_lifetime_is_guessed() {
        let (asked, answer) = (Fields::default(), head(200, "ETag: \"a\""));
        let get = request("GET /", &asked);
        let defaults = StoreDefaults { heuristic_percent: 100, ..StoreDefaults::default() };
        let facts = may_store(&exchange(&get, answer.response(), &defaults)).unwrap();
        assert_eq!(facts.lifetime_ms, 0);
    }

    fn updated(asked: &str, stored: &str, update: &str, merged: &str) -> Result<Facts, WhyNotStored> {
        let (asked, update, merged) = (fields(asked), head(304, update), head(200, merged));
        let (get, defaults) = (request("GET /", &asked), StoreDefaults::default());
        let exchange = exchange(&get, update.response(), &defaults);
        facts_after_update(&exchange, fields(stored).view(), merged.response())
    }

    /// RFC 9111 §4.3.4: a 304 is judged as a 200 would be.
    #[test]
    fn an_update_is_judged_as_what_is_new() {
        let check = |asked: &str, update: &str, merged: &str, expect: Result<(), WhyNotStored>| {
            assert_eq!(updated(asked, "", update, merged).map(|_| ()), expect, "{asked:?} {update:?} {merged:?}");
        };
        let (old, fresh) = ("Cache-Control: max-age=0\nETag: \"a\"", "Cache-Control: max-age=9\nETag: \"a\"");
        check("", "", old, Ok(()));
        check("", "Set-Cookie: a=b", old, Err(WhyNotStored::Cookie));
        check("", "Set-Cookie: a=b", fresh, Ok(()));
        check("Cookie: a=b", "", old, Err(WhyNotStored::Cookie));
        check("Cookie: a=b", "", fresh, Ok(()));
        check("Authorization: x", "", fresh, Err(WhyNotStored::Authorization));
        check("Cookie: a=b", "", "Cache-Control: private", Err(WhyNotStored::Private));
    }

    /// RFC 9213 §2.1 says nothing of a targeted field that an update leaves out.
    #[test]
    fn a_retained_targeted_field_does_not_outrank_a_later_word() {
        let check = |stored: &str, update: &str, expect: Result<(u64, bool), WhyNotStored>| {
            let targeted = "CDN-Cache-Control: max-age=60\nETag: \"a\"";
            let merged = format!("{targeted}\n{}", if update.is_empty() { stored } else { update });
            let facts = updated("", &format!("{targeted}\n{stored}"), update, &merged);
            assert_eq!(facts.map(|facts| (facts.lifetime_ms, facts.always_validate)), expect, "{stored} {update}");
        };
        check("Cache-Control: max-age=5", "", Ok((60_000, false)));
        check("Cache-Control: private", "Cache-Control: private", Ok((60_000, false)));
        check("Cache-Control: max-age=5", "Cache-Control: private", Err(WhyNotStored::Private));
        check("", "Cache-Control: no-store", Err(WhyNotStored::NoStore));
        check("", "Cache-Control: max-age=5", Ok((5_000, false)));
        check("", "Cache-Control: max-age=500", Ok((60_000, false)));
        check("", "Cache-Control: no-cache", Ok((0, true)));
        check("", "Cache-Control: private\nCDN-Cache-Control: max-age=60", Ok((60_000, false)));
    }

    /// RFC 9110 §9.3.3.
    #[test]
    fn a_post_may_answer_a_later_get_of_the_same_uri() {
        let check = |line: &str, lines: &str, expect: Result<(), WhyNotStored>| {
            let stored = store_as(line, "", 200, lines, &StoreDefaults::default()).map(|_| ());
            assert_eq!(stored, expect, "{line} → {lines:?}");
        };
        let fresh = "Expires: {+99}\nDate: {0}\nContent-Location:";
        check("POST /a", &format!("{fresh} /a"), Ok(()));
        check("POST /a?b", &format!("{fresh} http://t.test/a?b"), Ok(()));
        check("POST /a", &format!("{fresh} /b"), Err(WhyNotStored::Method));
        check("POST /a", &format!("{fresh} http://other.test/a"), Err(WhyNotStored::Method));
        check("POST /a", "Expires: {+99}\nDate: {0}", Err(WhyNotStored::Method));
        check("POST /a", "Last-Modified: {-99999}\nDate: {0}\nContent-Location: /a", Err(WhyNotStored::Method));
        for line in ["HEAD /a", "PUT /a", "DELETE /a", "OPTIONS /a", "M-SEARCH /a"] {
            check(line, &format!("{fresh} /a"), Err(WhyNotStored::Method));
        }
    }

    /// RFC 9111 §3.3.
    #[test]
    fn a_single_part_may_be_stored_as_a_part() {
        let check = |line: &str, asked: &str, lines: &str, expect: Result<std::ops::Range<u64>, WhyNotStored>| {
            let (asked, head) = (fields(asked), head(206, lines));
            let (request, defaults) = (request(line, &asked), StoreDefaults::default());
            let stored = may_store_part(&exchange(&request, head.response(), &defaults));
            assert_eq!(stored.map(|(_, part)| part.range), expect, "{line} {lines:?}");
        };
        let fresh = "Cache-Control: max-age=60\nETag: \"a\"\nContent-Range:";
        check("GET /", "Range: bytes=-5", &format!("{fresh} bytes 5-9/10"), Ok(5..10));
        let validated = |etag: &str| format!("Cache-Control: max-age=60\nETag: {etag}\nContent-Range: bytes 5-9/10");
        for etag in ["", "W/\"a\"", "a"] {
            check("GET /", "Range: bytes=-5", &validated(etag), Err(WhyNotStored::PartValidator));
        }
        let if_range = "Range: bytes=-5\nIf-Range: \"a\"";
        check("GET /", if_range, &format!("{fresh} bytes 5-9/10"), Err(WhyNotStored::PartFields));
        check("GET /", if_range, &format!("{fresh} bytes 5-9/10\nContent-Type: video/mp4"), Ok(5..10));
        check("GET /", "", &format!("{fresh} bytes 5-9/10"), Err(WhyNotStored::Status));
        check("POST /", "Range: bytes=-5", &format!("{fresh} bytes 5-9/10"), Err(WhyNotStored::Status));
        check("GET /", "Range: bytes=-5", "Cache-Control: max-age=60", Err(WhyNotStored::ContentRange));
        check("GET /", "Range: bytes=-5", &format!("{fresh} bytes */10"), Err(WhyNotStored::ContentRange));
        let twice = format!("{fresh} bytes 5-9/10\nContent-Range: bytes 0-4/10");
        check("GET /", "Range: bytes=-5", &twice, Err(WhyNotStored::ContentRange));
        let no_store = format!("{fresh} bytes 5-9/10\nCache-Control: no-store");
        check("GET /", "Range: bytes=-5", &no_store, Err(WhyNotStored::NoStore));
    }

    /// RFC 9111 §5.1.
    #[test]
    fn age_is_the_first_number() {
        let check = |lines: &str, expect_s: u64| assert_eq!(age_value_s(fields(lines).view()), expect_s, "{lines:?}");
        check("", 0);
        check("Age: 7200", 7200);
        check("Age: 7200, 0", 7200);
        check("Age: 0, 7200", 0);
        check("Age: 0\nAge: 7200", 0);
        check("Age: 7200\nAge: 0", 7200);
        check("Age: , 5", 5);
        check("Age: 7200;foo=bar", 7200);
        check("Age: 99999999999999999999", 1 << 31);
        for junk in ["abc", "-7200", "7200.0", "7200 s", "\"7200\"", "+1"] {
            check(&format!("Age: {junk}"), 0);
        }
    }

    /// RFC 9111 §3.1, §5.2.2.4, §7.3.
    #[test]
    fn some_fields_stay_out_of_the_store() {
        let check = |lines: &str, share_set_cookie: bool, expect: &[&str]| {
            let defaults = StoreDefaults { share_set_cookie, ..StoreDefaults::default() };
            let stored = Withholding::stored(fields(lines).view(), &defaults);
            let names: Vec<_> =
                stored.view().iter().map(|field| String::from_utf8_lossy(field.name_text).into_owned()).collect();
            assert_eq!(names, expect, "{lines:?}");
        };
        let of_connection = "Connection: a, B\nKeep-Alive: x\nProxy-Authenticate: x\nProxy-Authentication-Info: x\n\
            Proxy-Authorization: x\nProxy-Connection: x\nTE: x\nTransfer-Encoding: x\nUpgrade: x\nTrailer: x\nAge: 1";
        check(&format!("{of_connection}\nA: 1\nb: 2\nc: 3"), false, &["c"]);
        check("Cache-Control: no-cache=\"a, B\", private=c\na: 1\nb: 2\nc: 3\nd: 4", false, &["Cache-Control", "d"]);
        check("Set-Cookie: a=b\nset-cookie2: a=b\nd: 4", false, &["d"]);
        check("Authentication-Info: x\nauthentication-info: y\nd: 4", true, &["d"]);
        check("Set-Cookie: a=b\nset-cookie2: a=b\nd: 4", true, &["Set-Cookie", "set-cookie2", "d"]);
        check(
            "Content-Length: 5\nContent-Range: x\nContent-MD5: x",
            false,
            &["Content-Length", "Content-Range", "Content-MD5"],
        );
    }
}
