//! What RFC 9111 makes of an answer to a fetch: what may be stored, what a 304 confirms, and who gets what.

use cache::Now;
use rules::credentials;

use super::*;
use crate::fetch::fetch_test_messages::{fields, lines, request, response};

const ARRIVAL: Arrival =
    Arrival { received: Now { mono_ms: 1_000, wall_ms: 1_767_268_800_000, confirmed_from: 0 }, delay_ms: 0 };
const FRESH: &str = "Cache-Control: max-age=60";

/// May it be stored, which part is it, or why not?
fn check(
    purpose: &Purpose,
    (method, asked): (&str, &[&str]),
    (status, answered): (u16, &[&str]),
    framing: ResponseBody,
    expect: Result<Option<(u64, u64)>, WhyNotStored>,
) {
    let (head, answer, defaults) = (request(method, asked), response(status, answered), StoreDefaults::default());
    let request = head.request();
    let exchange = ARRIVAL.exchange(&request, answer.response(), &defaults);
    let got = storable(purpose, &exchange, framing);
    let got = got.map(|(_, part)| part.map(|part| (part.from, part.to)));
    assert_eq!(got, expect, "{method} {asked:?}: {status} {answered:?} for {purpose:?}");
}

const STORE: Purpose = Purpose::Store(None);
const LENGTH: ResponseBody = ResponseBody::Length(10);

#[test]
fn what_says_how_long_it_lives_is_stored() {
    check(&STORE, ("GET", &[]), (200, &[FRESH]), LENGTH, Ok(None));
    check(&STORE, ("GET", &[]), (200, &[FRESH]), ResponseBody::Chunked, Ok(None));
    check(&STORE, ("GET", &[]), (200, &["Cache-Control: no-store"]), LENGTH, Err(WhyNotStored::NoStore));
    check(&STORE, ("GET", &[]), (200, &["Cache-Control: private"]), LENGTH, Err(WhyNotStored::Private));
    check(&STORE, ("GET", &[]), (200, &[FRESH, "Vary: *"]), LENGTH, Err(WhyNotStored::VaryAny));
}

#[test]
fn a_post_is_stored_where_its_answer_names_its_target() {
    check(&Purpose::Pass, ("POST", &[]), (200, &[FRESH]), LENGTH, Err(WhyNotStored::Method));
    check(&Purpose::Pass, ("POST", &[]), (200, &[FRESH, "Content-Location: /a"]), LENGTH, Ok(None));
    check(&Purpose::Pass, ("DELETE", &[]), (200, &[FRESH]), LENGTH, Err(WhyNotStored::Method));
    check(&Purpose::Pass, ("HEAD", &[]), (200, &[FRESH]), LENGTH, Err(WhyNotStored::Method));
}

#[test]
fn a_part_is_stored_only_for_who_asked_for_one() {
    let part = [FRESH, "ETag: \"v1\"", "Content-Range: bytes 10-19/100"];
    let asked: &[&str] = &["Range: bytes=10-19"];
    check(&Purpose::Pass, ("GET", asked), (206, &part), LENGTH, Ok(Some((10, 20))));
    let slice = Purpose::Slice { range: 10..20, if_range: None };
    check(&slice, ("GET", asked), (206, &part), LENGTH, Ok(Some((10, 20))));
    check(&STORE, ("GET", asked), (206, &part), LENGTH, Err(WhyNotStored::Partial));
    check(&Purpose::Pass, ("GET", &[]), (206, &part), LENGTH, Err(WhyNotStored::Status));
}

#[test]
fn a_part_whose_body_is_not_as_long_as_its_range_is_nobodys() {
    let asked: &[&str] = &["Range: bytes=10-19"];
    let part = [FRESH, "ETag: \"v1\"", "Content-Range: bytes 10-19/100"];
    for framing in [ResponseBody::Length(9), ResponseBody::Chunked, ResponseBody::UntilClose] {
        check(&Purpose::Pass, ("GET", asked), (206, &part), framing, Err(WhyNotStored::ContentRange));
    }
    let weak = [FRESH, "ETag: W/\"v1\"", "Content-Range: bytes 10-19/100"];
    check(&Purpose::Pass, ("GET", asked), (206, &weak), LENGTH, Err(WhyNotStored::PartValidator));
}

#[test]
fn a_304_is_about_what_is_stored_if_their_validators_are_the_same() {
    let check = |stored: &[&str], update: &[&str], expect: bool| {
        let (head, update) = (response(200, stored), response(304, update));
        let facts = Facts { last_modified: Some(1), ..Facts::default() };
        assert_eq!(confirms(head.response(), &facts, update.fields.view()), expect, "{stored:?} {update:?}");
    };
    check(&["ETag: \"v1\""], &["ETag: \"v1\""], true);
    check(&["ETag: \"v1\""], &[], true);
    check(&["ETag: \"v1\""], &["ETag: \"v2\""], false);
    check(&["ETag: \"v1\""], &["ETag: W/\"v1\""], true);
    // What has no validator was not asked about.
    check(&[], &[], false);
    // It would belong elsewhere.
    check(&["ETag: \"v1\""], &["No-Vary-Search: key-order"], false);
}

#[test]
fn a_304_makes_a_stored_head_new_and_as_old_as_it_says() {
    let stored = response(200, &["ETag: \"v1\"", "Age: 50", "X-A: old", "X-B: kept", "Content-Length: 10"]);
    let update = response(304, &["Age: 5", "X-A: new", "Content-Length: 99", FRESH]);
    let (head, defaults) = (request("HEAD", &[]), StoreDefaults::default());
    let (merged, facts) = refreshed::merged(&head.request(), stored.response(), (&update, ARRIVAL), &defaults);
    assert_eq!(lines(&merged.fields), ["ETag: \"v1\"", "X-B: kept", "Content-Length: 10", "X-A: new", FRESH]);
    let facts = facts.expect("what is stored answers GET, whatever asked just now");
    assert_eq!((facts.initial_age_ms, facts.lifetime_ms), (5_000, 60_000));
}

#[test]
fn a_304_that_forbids_storing_takes_what_is_stored_away() {
    let stored = response(200, &["ETag: \"v1\"", FRESH]);
    let check = |update: &[&str], expect: WhyNotStored| {
        let (update, head) = (response(304, update), request("GET", &[]));
        let (_, facts) =
            refreshed::merged(&head.request(), stored.response(), (&update, ARRIVAL), &StoreDefaults::default());
        assert_eq!(facts.err(), Some(expect), "{update:?}");
    };
    check(&["Cache-Control: no-store"], WhyNotStored::NoStore);
    check(&["Cache-Control: private"], WhyNotStored::Private);
    check(&["Vary: *"], WhyNotStored::VaryAny);
}

#[test]
fn its_cookies_and_what_a_304_names_are_its_requesters_alone() {
    let update =
        response(304, &["Set-Cookie: a=1", "Cache-Control: private=\"X-Mine\"", "X-Mine: 1", "X-All: 1", "Age: 5"]);
    let own = refreshed::own_fields(&update, &StoreDefaults::default());
    assert_eq!(lines(&own), ["Set-Cookie: a=1", "X-Mine: 1"]);
    let shares = StoreDefaults { share_set_cookie: true, ..StoreDefaults::default() };
    assert_eq!(lines(&refreshed::own_fields(&update, &shares)), ["X-Mine: 1"]);
}

#[test]
fn the_first_requester_gets_what_is_its_own_and_everybody_else_does_not() {
    let answer =
        response(200, &["Set-Cookie: a=1", "Connection: X-Hop", "X-Hop: 1", "Age: 5", "X-All: 1", "Content-Length: 3"]);
    assert_eq!(lines(&leaders_head(&answer).fields), ["Set-Cookie: a=1", "Age: 5", "X-All: 1"]);
    assert_eq!(lines(&shared_head(&answer, &StoreDefaults::default()).fields), ["X-All: 1"]);
    let shares = StoreDefaults { share_set_cookie: true, ..StoreDefaults::default() };
    assert_eq!(lines(&shared_head(&answer, &shares).fields), ["Set-Cookie: a=1", "X-All: 1"]);
}

#[test]
fn what_is_selected_by_everything_is_selected_by_nothing() {
    assert_eq!(vary(fields(&["Vary: *"]).view()).err(), Some(WhyNotStored::VaryAny));
    let many = (0..200).map(|n| format!("x-{n}")).collect::<Vec<_>>().join(", ");
    assert_eq!(vary(fields(&[&format!("Vary: {many}")]).view()).err(), Some(WhyNotStored::VaryTooMany));
    assert!(vary(fields(&[]).view()).is_ok_and(|vary| vary.is_none()));
    assert!(vary(fields(&["Vary: Accept"]).view()).is_ok_and(|vary| vary.is_some()));
}

#[test]
fn what_is_not_stored_for_credentials_is_personal_only_to_who_sent_some() {
    let check = |asked: &[&str], why: WhyNotStored, expect: bool| {
        let head = request("GET", asked);
        let has_credentials = credentials::of_request(head.fields()).is_some();
        assert_eq!(is_personal(why, has_credentials), expect, "{asked:?} {why:?}");
    };
    check(&["Cookie: a=1"], WhyNotStored::Cookie, true);
    check(&["Authorization: Basic eA=="], WhyNotStored::Authorization, true);
    check(&["Cookie: a=1"], WhyNotStored::NoStore, false);
    check(&[], WhyNotStored::Cookie, false);
}
