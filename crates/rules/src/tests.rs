//! What the tables of every file here are written with, and the stories that need more than one file: a response
//! is stored, time passes, a request comes. The stories are told in seconds after `NOW`.

use message::{Authority, FieldName, Fields, Method, Request, Response, ResponseHead, Scheme, Status};
use message::{TargetForm, Version};

use crate::freshness::{OriginFailure, judge, may_serve_on_error};
use crate::storing::{facts_after_update, may_store};
use crate::{Exchange, Facts, Freshness, RequestDirectives, StoreDefaults, WhyNotStored, date};

/// 2026-01-01 00:00:00.
pub const NOW_S: i64 = 1_767_225_600;

/// `Name: value` lines. `{+N}` and `{-N}` in a value become the date so many seconds from `NOW_S`.
pub fn fields(lines: &str) -> Fields {
    let mut fields = Fields::default();
    for line in lines.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').expect("a test's field has a colon");
        let value = match value.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
            Some(offset) => date::write_date(NOW_S + offset.parse::<i64>().expect("a number")).to_vec(),
            None => value.trim().as_bytes().to_vec(),
        };
        fields.push_named(name.as_bytes(), &value);
    }
    fields
}

/// `METHOD /path?query` at `http://t.test`.
pub fn request<'a>(line: &'a str, fields: &'a Fields) -> Request<'a> {
    let (method, target) = line.split_once(' ').unwrap_or((line, "/"));
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    Request {
        method: Method::classify(method.as_bytes()),
        method_text: method.as_bytes(),
        version: Version::Http11,
        form: TargetForm::Origin,
        scheme: Scheme::Http,
        authority: Authority::parse(b"t.test", Scheme::Http).expect("a host"),
        path: path.as_bytes(),
        query: query.map(str::as_bytes),
        fields: fields.view(),
    }
}

pub fn head(status: u16, lines: &str) -> ResponseHead {
    let mut head = ResponseHead::new(Status(status));
    head.fields = fields(lines);
    head
}

/// Stores the answer to `GET /` with these request fields.
pub fn store(request_lines: &str, status: u16, response_lines: &str) -> Result<Facts, WhyNotStored> {
    store_as("GET /", request_lines, status, response_lines, &StoreDefaults::default())
}

pub fn store_as(
    line: &str,
    request_lines: &str,
    status: u16,
    response_lines: &str,
    defaults: &StoreDefaults,
) -> Result<Facts, WhyNotStored> {
    let (request_fields, head) = (fields(request_lines), head(status, response_lines));
    let request = request(line, &request_fields);
    may_store(&exchange(&request, head.response(), defaults))
}

pub fn exchange<'a>(request: &'a Request<'a>, response: Response<'a>, defaults: &'a StoreDefaults) -> Exchange<'a> {
    Exchange { request, response, response_wall_ms: NOW_S as u64 * 1000 + 400, response_delay_ms: 0, defaults }
}

/// What a plain GET gets so many seconds later: is it answered without asking the origin?
fn check(status: u16, response_lines: &str, after_s: u64, expect_reused: bool) {
    let facts = store("", status, response_lines);
    let verdict = facts.map(|facts| judge(&facts, after_s * 1000, &RequestDirectives::default()));
    let reused = verdict == Ok(Freshness::Fresh);
    assert_eq!(reused, expect_reused, "{status} {response_lines:?} after {after_s} s: {verdict:?}");
}

/// RFC 9111 §4.2.1: s-maxage, else max-age, else Expires minus Date.
#[test]
fn freshness_lifetime() {
    check(200, "", 0, false);
    check(200, "Cache-Control: max-age=3600", 3, true);
    check(200, "Cache-Control: max-age=3600", 3600, false);
    check(200, "Cache-Control: max-age=0", 0, false);
    check(200, "Cache-Control: max-age=-3600", 0, false);
    check(200, "Cache-Control: max-age=99999999999\nAge: 99999", 3, true);
    check(200, "Cache-Control: max-age=99999999999\nAge: 99999999999", 3, false);
    check(200, "Cache-Control: max-age=3600\nExpires: {-7200}\nDate: {0}", 3, true);
    check(200, "Cache-Control: max-age=3600\nExpires: 0\nDate: {0}", 3, true);
    check(200, "Cache-Control: max-age=0\nExpires: {+3600}\nDate: {0}", 0, false);
    check(200, "Cache-Control: max-age=3600, s-maxage=1", 3, false);
    check(200, "Cache-Control: s-maxage=1\nCache-Control: max-age=3600", 3, false);
    check(200, "Cache-Control: max-age=0, s-maxage=3600\nExpires: {-10}", 3, true);
    check(200, "Expires: {+2592000}\nDate: {0}", 3, true);
    check(200, "Expires: {-2592000}\nDate: {0}", 0, false);
    check(200, "Expires: {0}\nDate: {0}", 0, false);
    check(200, "Expires: {300}\nDate: {400}", 0, false);
    check(200, "Expires: 0\nDate: {0}", 0, false);
    check(200, "Expires: {10}\nDate: foo", 3, true);
    check(200, "Expires: {10}", 11, false);
    check(200, "Expires: Thu, 18 Aug 2050 02:01:18 UTC\nDate: {0}", 0, false);
    check(200, "Expires: Thu, 18 Aug 2050 02:01:18 GMT\nDate: {0}", 3, true);
    check(200, "Expires: {10}\nExpires: {-10}\nDate: {0}", 3, true);
}

/// RFC 9111 §4.2.3: the greater of the apparent age and the corrected one.
#[test]
fn initial_age() {
    check(200, "Cache-Control: max-age=3600\nDate: {0}\nAge: 7200", 0, false);
    check(200, "Cache-Control: max-age=3600\nDate: {-7200}", 0, false);
    check(200, "Cache-Control: max-age=3600\nDate: {+7200}", 3, true);
    check(200, "Expires: {10}\nDate: {-10}\nAge: 25", 0, false);
    check(200, "Expires: {20}\nDate: {10}\nAge: 15", 0, false);
    // A second is not lost to the fraction that Date cannot say.
    check(200, "Cache-Control: max-age=1\nDate: {0}", 0, true);
}

/// RFC 9111 §4.2.2, RFC 9110 §15.1.
#[test]
fn heuristic_freshness() {
    let old = "Last-Modified: {-86400}\nDate: {0}";
    for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
        check(status, old, 3, true);
    }
    for status in [201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 299, 599] {
        check(status, old, 0, false);
        check(status, &format!("{old}\nCache-Control: public"), 3, true);
        assert_eq!(store("", status, old), Err(WhyNotStored::NotCacheable), "{status}");
    }
    check(200, "Last-Modified: {-5}\nDate: {0}", 3, false);
    check(200, "Last-Modified: {-60}\nDate: {0}", 3, true);
    check(200, "Last-Modified: {+60}\nDate: {0}", 0, false);
    check(200, "Last-Modified: yesterday\nDate: {0}", 0, false);
    check(200, "Last-Modified: {-999999999}\nDate: {0}", 86_399, true);
    check(200, "Last-Modified: {-999999999}\nDate: {0}", 86_400, false);
    check(200, "Last-Modified: {-86400}\nDate: {0}\nCache-Control: max-age=junk", 0, false);
    check(200, "Last-Modified: {-86400}\nDate: {0}\nPragma: no-cache", 3, true);
}

/// RFC 9111 §3: any final status, when freshness was said.
#[test]
fn every_final_status_is_stored_when_freshness_was_said() {
    for status in [200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599] {
        check(status, "Expires: {+100000}\nLast-Modified: {0}\nDate: {0}", 3, true);
        check(status, "Expires: {-5000}\nLast-Modified: {-100000}\nDate: {0}", 0, false);
    }
}

/// RFC 9213 §2.1: the targeted field alone decides; and the older Surrogate-Control in its place.
#[test]
fn targeted_lifetimes() {
    for name in ["CDN-Cache-Control", "Surrogate-Control"] {
        check(200, &format!("{name}: max-age=3600"), 3, true);
        check(200, &format!("{name}: max-age=99999999999"), 3, true);
        check(200, &format!("{name}: max-age=3600\nDate: {{0}}\nAge: 7200"), 0, false);
        check(200, &format!("{name}: max-age=0"), 0, false);
        check(200, &format!("{name}: max-age=3600\nExpires: {{-10000}}\nDate: {{0}}"), 3, true);
        check(200, &format!("{name}: max-age=0\nExpires: {{+10000}}\nDate: {{0}}"), 0, false);
        check(200, &format!("{name}: max-age=3600\nCache-Control: max-age=1"), 3, true);
        check(200, &format!("{name}: max-age=1\nCache-Control: max-age=3600"), 3, false);
        check(200, &format!("{name}: no-store\nCache-Control: max-age=3600"), 0, false);
        check(200, &format!("{name}: max-age=3600\nCache-Control: no-store"), 3, true);
        check(200, &format!("{name}: foobar, max-age=3600"), 3, true);
    }
}

/// RFC 9111 §4.2.4, RFC 5861 §4: after so many seconds, unreachable or 503.
#[test]
fn standing_in_for_a_failed_origin() {
    let check = |directives: &str, asks: &str, after_s: u64, unreachable: bool, server_error: bool| {
        let facts = store("", 200, &format!("Cache-Control: {directives}\nETag: \"e\"")).expect("is stored");
        let asked = fields(asks);
        let asked = RequestDirectives::parse(asked.view());
        let got = [OriginFailure::Unreachable, OriginFailure::ServerError]
            .map(|failure| may_serve_on_error(&facts, after_s * 1000, &asked, failure));
        assert_eq!(got, [unreachable, server_error], "{directives} after {after_s} s, {asks}");
    };
    check("max-age=2", "", 3, true, false);
    check("max-age=2", "", 1, true, true);
    check("max-age=2", "Cache-Control: stale-if-error=60", 3, true, true);
    check("max-age=2", "Cache-Control: no-cache", 3, true, false);
    check("max-age=2, stale-if-error=60", "", 3, true, true);
    check("max-age=2, stale-if-error=60", "", 62, false, false);
    check("max-age=2, stale-if-error=0", "", 3, false, false);
    check("max-age=2, must-revalidate", "", 3, false, false);
    check("max-age=2, must-revalidate", "", 1, true, true);
    check("max-age=2, must-revalidate, stale-if-error=60", "", 3, false, false);
    check("max-age=2, proxy-revalidate", "", 3, false, false);
    check("max-age=2, no-cache", "", 1, false, false);
    check("max-age=2, no-cache, stale-if-error=60", "", 3, false, false);
    check("max-age=2, s-maxage=2", "", 3, false, false);
    check("max-age=2, s-maxage=2", "Cache-Control: stale-if-error=60", 3, false, false);
    check("s-maxage=2, stale-if-error=60", "", 3, true, true);
}

/// RFC 9111 §4.3.4: an update starts a new age; what it does not say, the stored response still says.
#[test]
fn an_update_makes_it_fresh_again() {
    let check = |update: &str, merged: &str, expect: Result<(u64, u64), WhyNotStored>| {
        let (none, update, merged) = (Fields::default(), head(304, update), head(200, merged));
        let (get, defaults) = (request("GET /", &none), StoreDefaults::default());
        let facts = facts_after_update(&exchange(&get, update.response(), &defaults), none.view(), merged.response());
        assert_eq!(facts.map(|facts| (facts.initial_age_ms, facts.lifetime_ms)), expect);
    };
    check("Date: {0}", "Date: {0}\nCache-Control: max-age=9", Ok((0, 9000)));
    check("", "Date: {-1000}\nCache-Control: max-age=9", Ok((0, 9000)));
    check("Age: 4\nDate: {0}", "Date: {0}\nCache-Control: max-age=9", Ok((4000, 9000)));
    check("Date: {0}", "Date: {0}\nCache-Control: no-store", Err(WhyNotStored::NoStore));
    check("Date: {0}", "Date: {0}\nVary: *\nCache-Control: max-age=9", Err(WhyNotStored::VaryAny));
}

/// RFC 9111 §4.2.3: the time on the way counts.
#[test]
fn the_response_delay_is_part_of_the_age() {
    let (none, head) = (Fields::default(), head(200, "Age: 1\nCache-Control: max-age=9"));
    let (get, defaults) = (request("GET /", &none), StoreDefaults::default());
    let slow = Exchange { response_delay_ms: 1500, ..exchange(&get, head.response(), &defaults) };
    assert_eq!(may_store(&slow).map(|facts| facts.initial_age_ms), Ok(2500));
}

#[test]
fn the_lines_of_a_test_are_fields() {
    assert_eq!(fields("Date: {0}").view().get(FieldName::Date), Some(&b"Thu, 01 Jan 2026 00:00:00 GMT"[..]));
}

/// Whatever a peer sends, nothing here panics: pieces of every grammar in random order, and the bytes between them.
#[test]
fn no_bytes_make_a_parser_panic() {
    const PIECES: &[&[u8]] = &[
        b"max-age=",
        b"max-age=60",
        b"bytes 0-4/10",
        b"bytes=0-1,-1",
        b"no-cache=\"",
        b"\"",
        b"\\",
        b",",
        b";",
        b"=",
        b"*",
        b" ",
        b"\t",
        b"W/\"a\"",
        b"bytes=",
        b"bytes ",
        b"-",
        b"/",
        b"0",
        b"18446744073709551615",
        b"99999999999999999999",
        b"Sun, 06 Nov 1994 08:49:37 GMT",
        b"Sunday, 06-Nov-94 08:49:37 GMT",
        b"Sun Nov  6 08:49:37 1994",
        b"http://t.test",
        b"..",
        b"?",
        b"#",
        b"%",
        b"\xff",
        b"gzip",
        b"q=0.5",
        b"[::1]",
        b"10.0.0.1",
        b":",
        b"(",
        b")",
        b"?1",
        b"params",
        b"except",
        b"\xc3\xa9",
    ];
    const NAMES: &[&str] = &[
        "Cache-Control",
        "CDN-Cache-Control",
        "Surrogate-Control",
        "Expires",
        "Date",
        "Age",
        "Last-Modified",
        "ETag",
        "Vary",
        "Content-Range",
        "Content-Location",
        "Location",
        "Range",
        "If-Range",
        "If-None-Match",
        "If-Match",
        "If-Modified-Since",
        "If-Unmodified-Since",
        "Accept-Encoding",
        "Accept-Language",
        "X-Forwarded-For",
        "Forwarded",
        "Via",
        "Connection",
        "No-Vary-Search",
        "Cache-Groups",
        "Cache-Group-Invalidation",
        "X-Own",
    ];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut dice = |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % sides
    };
    let (mut stored, mut combined) = (0, 0);
    for round in 0..20_000 {
        let mut sides = [Fields::default(), Fields::default()];
        for side in &mut sides {
            for _ in 0..dice(6) {
                let value = (0..dice(7)).flat_map(|_| PIECES[dice(PIECES.len())]).copied().collect::<Vec<u8>>();
                side.push_named(NAMES[dice(NAMES.len())].as_bytes(), value.trim_ascii());
            }
        }
        let line = ["GET /a/b?c", "POST /a", "HEAD /", "M-SEARCH /../x"][dice(4)];
        let request = request(line, &sides[0]);
        let status = [200, 206, 304, 404, 599][round % 5];
        let head = ResponseHead { fields: sides[1].clone(), ..ResponseHead::new(Status(status)) };
        let (whole, part) = exercise(&request, head);
        stored += usize::from(whole);
        combined += usize::from(part);
    }
    assert!(stored > 100 && combined > 0, "the dice reach the inside: {stored} stored, {combined} parts");
}

/// Puts one request and one response through every function that reads what a peer sent.
fn exercise(request: &Request<'_>, mut head: ResponseHead) -> (bool, bool) {
    use crate::{UrlVariation, conditions, forwarded, groups, invalidation, range, storing, update, vary};
    let defaults = StoreDefaults::default();
    let stored = may_store(&exchange(request, head.response(), &defaults));
    let _ = storing::may_store_part(&exchange(request, head.response(), &defaults));
    let facts = stored.unwrap_or_default();
    let asks = RequestDirectives::parse(request.fields);
    judge(&facts, u64::MAX, &asks);
    may_serve_on_error(&facts, u64::MAX, &asks, OriginFailure::ServerError);
    for holder in [conditions::Holder::Cache, conditions::Holder::Origin] {
        conditions::evaluate(request, head.response(), &facts, holder);
    }
    if let Some(validators) = conditions::Validators::of(head.response(), &facts) {
        validators.are_confirmed_by(request.fields);
    }
    for length in [0, 1, 10, u64::MAX] {
        range::wanted(request, head.response(), &facts, length);
    }
    let part = head.fields.view().get(FieldName::ContentRange).and_then(range::ContentRange::parse);
    if let (Some(part), Some(specs)) = (&part, range::RangeSpecs::of(request.fields)) {
        part.serves(&specs);
        part.write_to(&mut Vec::new());
    }
    if let vary::Vary::Fields(spec) = vary::Vary::of(head.fields.view()) {
        spec.select(request.fields, &mut |_| ());
    }
    let sorted = || UrlVariation::of(fields("No-Vary-Search: key-order").view());
    let variation = UrlVariation::of(head.fields.view()).or_else(sorted).expect("one of them");
    variation.normalise(request.fields.get(FieldName::Location), &mut Vec::new());
    let _ = groups::of_response(head.fields.view());
    groups::invalidated(request.method, head.fields.view());
    invalidation::invalidated(request, head.response());
    update::head_effect((head.response(), &Facts::default()), 10, head.response(), NOW_S);
    let peer = std::net::IpAddr::from([10, 0, 0, 1]);
    forwarded::sender(peer, request.fields, |_| true);
    forwarded::write_forwarded(peer, true, request.fields, b"t.test", Scheme::Http, &mut Vec::new());
    forwarded::via_count(request.fields, "larder");
    let update = head.clone();
    update::merge_304(&mut head, update.response(), &defaults);
    (stored.is_ok(), part.is_some())
}
