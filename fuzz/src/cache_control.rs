//! Laws of the Cache-Control parsers, for any field lines. Each line of the input is one field line.

use message::{FieldName, Fields};
use rules::cache_control::{Scope, delta_seconds, listed_fields};
use rules::limits::DELTA_SECONDS_MAX;
use rules::{RequestDirectives, ResponseDirectives};

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let lines: Vec<Vec<u8>> = data.split(|b| *b == b'\n').map(clean).collect();
    let fields = fields_of(&lines);
    let request = RequestDirectives::parse(fields.view());
    let response = ResponseDirectives::parse(fields.view());
    check_bounds(&request, &response);
    check_case(&lines, &request, &response);
    check_more_lines(&lines, &request, &response);
    for line in &lines {
        if let Some(seconds) = delta_seconds(line) {
            assert!(seconds <= DELTA_SECONDS_MAX);
            let padded = [b"000", &line[..]].concat();
            assert!(line.starts_with(b"\"") || delta_seconds(&padded) == Some(seconds), "leading zeros mean nothing");
        }
    }
    let named = listed_fields(fields.view()).count();
    let scoped = response.no_cache == Scope::Fields || response.private == Scope::Fields;
    assert!(named > 0 || !scoped, "a scope of fields names some");
}

/// A field value as the codec hands it on: no control bytes, no whitespace around it.
fn clean(line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    line.retain(|b| *b == b'\t' || (*b >= b' ' && *b != 0x7f));
    line.trim_ascii().to_vec()
}

fn fields_of<'a>(lines: impl IntoIterator<Item = &'a Vec<u8>>) -> Fields {
    let mut fields = Fields::default();
    for line in lines {
        fields.push(FieldName::CacheControl, line);
    }
    fields
}

fn check_bounds(request: &RequestDirectives, response: &ResponseDirectives) {
    let within = |seconds: Option<u64>| seconds.is_none_or(|seconds| seconds <= DELTA_SECONDS_MAX);
    assert!(within(request.max_age_s) && within(request.min_fresh_s) && within(request.stale_if_error_s));
    assert!(within(request.max_stale_s) || request.max_stale_s == Some(u64::MAX));
    assert!(within(response.max_age_s) && within(response.s_maxage_s));
    assert!(within(response.stale_while_revalidate_s) && within(response.stale_if_error_s));
    assert_eq!(response.shared_lifetime_s(), response.s_maxage_s.or(response.max_age_s));
    let forbids = response.must_revalidate
        || response.proxy_revalidate
        || response.s_maxage_s.is_some()
        || response.no_cache == Scope::Whole;
    assert_eq!(response.forbids_stale(), forbids);
}

/// RFC 9111 §5.2: directive names are compared without case.
fn check_case(lines: &[Vec<u8>], request: &RequestDirectives, response: &ResponseDirectives) {
    let shouted: Vec<_> = lines.iter().map(|line| line.to_ascii_uppercase()).collect();
    assert_eq!(RequestDirectives::parse(fields_of(&shouted).view()), *request);
    assert_eq!(ResponseDirectives::parse(fields_of(&shouted).view()), *response);
}

/// What a further line can do, and what it cannot.
fn check_more_lines(lines: &[Vec<u8>], request: &RequestDirectives, response: &ResponseDirectives) {
    let unknown = b"x-unknown=\"max-age=1, no-store\", ,".to_vec();
    let with_unknown = fields_of(lines.iter().chain([&unknown]));
    assert_eq!(RequestDirectives::parse(with_unknown.view()), *request, "an unknown directive says nothing");
    assert_eq!(ResponseDirectives::parse(with_unknown.view()), *response);
    let strict = b"no-store, no-cache, private, max-age=7, s-maxage=8".to_vec();
    let stricter = ResponseDirectives::parse(fields_of(lines.iter().chain([&strict])).view());
    assert!(stricter.no_store && stricter.no_cache == Scope::Whole && stricter.private == Scope::Whole);
    assert_eq!(stricter.max_age_s, response.max_age_s.or(Some(7)), "the first lifetime counts");
    assert_eq!(stricter.s_maxage_s, response.s_maxage_s.or(Some(8)));
    let stricter = RequestDirectives::parse(fields_of(lines.iter().chain([&strict])).view());
    assert!(stricter.no_store && stricter.no_cache && stricter.max_age_s == request.max_age_s.or(Some(7)));
}
