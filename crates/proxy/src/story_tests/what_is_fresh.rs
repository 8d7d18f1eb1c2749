//! What is served when its time is over, and what the origin is asked then.

use super::*;

const TAGGED: &[&str] = &["Cache-Control: max-age=1", "ETag: \"a\""];

/// A story in which `/` was stored with these lines, and so many seconds have passed.
fn after(lines: &[&str], seconds: u64, next: MockedAnswer) -> Story {
    let story = Story::builtin();
    story.origin([answer(200, lines, "old"), next]);
    story.get("/", &[]);
    story.pass_seconds(seconds);
    story
}

#[test]
fn what_is_stale_is_validated_by_its_tag() {
    let reply = after(TAGGED, 2, answer(304, &[], "")).get("/", &[]);
    assert_eq!((reply.body(), reply.asked_with("if-none-match")), ("old", Some("\"a\"")));
}

#[test]
fn what_is_stale_is_validated_by_its_date() {
    let date = "Thu, 01 Jan 2026 11:00:00 GMT";
    let lines = ["Cache-Control: max-age=1".to_owned(), format!("Last-Modified: {date}")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let reply = after(&lines, 2, answer(304, &[], "")).get("/", &[]);
    assert_eq!((reply.body(), reply.asked_with("if-modified-since")), ("old", Some(date)));
}

#[test]
fn a_confirmed_response_is_good_again_for_as_long_as_the_304_says() {
    let story = after(TAGGED, 2, answer(304, &["Cache-Control: max-age=60"], ""));
    story.get("/", &[]);
    story.pass_seconds(50);
    assert_eq!(story.get("/", &[]).verdict().0, CacheVerdict::Hit);
}

#[test]
fn another_representation_takes_the_place_of_the_old_one() {
    let new = answer(200, &["Cache-Control: max-age=600", "ETag: \"b\""], "new");
    let story = after(&["Cache-Control: max-age=1", "ETag: \"a\"", "X-Old: 1"], 2, new);
    let reply = story.get("/", &[]);
    assert_eq!(
        (reply.body(), reply.field("x-old"), reply.asked_with("if-none-match")),
        ("new", String::new(), Some("\"a\""))
    );
    let hit = story.get("/", &[]);
    assert_eq!((hit.body(), hit.field("etag"), hit.asked().len()), ("new", "\"b\"".to_owned(), 0));
}

/// RFC 9211 §2.2: what is stored and not fresh is no miss, whether the origin confirms it or answers with another.
#[test]
fn what_was_stale_is_called_so_whatever_the_origin_says() {
    let status = |next: MockedAnswer| {
        let story = after(TAGGED, 2, next);
        story.get("/", &[]).field("cache-status")
    };
    assert!(status(answer(304, &[], "")).starts_with("larder; fwd=stale; fwd-status=304"));
    assert_eq!(status(answer(200, &["Cache-Control: max-age=60"], "new")), "larder; fwd=stale; stored");
    assert_eq!(status(answer(200, &["Cache-Control: no-store"], "new")), "larder; fwd=stale; detail=no-store");
    let story = Story::builtin();
    story.origin([fresh(60, "first")]);
    assert_eq!(story.get("/", &[]).field("cache-status"), "larder; fwd=uri-miss; stored");
    // It is fresh, and its client wants it anew.
    story.origin([fresh(60, "second")]);
    let reload = story.get("/", &["Cache-Control: no-cache"]);
    assert_eq!((reload.body(), reload.field("cache-status").as_str()), ("second", "larder; fwd=request; stored"));
}

#[test]
fn a_reload_is_called_so_though_the_origin_confirms_what_is_fresh_or_fails() {
    let lines = ["Cache-Control: max-age=60, stale-if-error=60", "ETag: \"a\""];
    let replies = [
        (answer(304, &[], ""), "larder; fwd=request; fwd-status=304"),
        (answer(503, &[], "no"), "larder; fwd=request; fwd-status=503"),
        (MockedAnswer::Refused, "larder; fwd=request; detail=origin-connect"),
    ];
    for (next, status) in replies {
        let story = Story::builtin();
        story.origin([answer(200, &lines, "old"), next]);
        story.get("/", &[]);
        let reload = story.get("/", &["Cache-Control: max-age=0"]);
        assert!(reload.field("cache-status").starts_with(status), "{} for {status}", reload.field("cache-status"));
        assert_eq!(reload.body(), "old", "{status}");
    }
}

#[test]
fn what_vary_selects_for_others_is_no_miss_of_the_url() {
    let story = Story::builtin();
    let lines = ["Cache-Control: max-age=1", "Vary: Accept-Language"];
    story.origin([answer(200, &lines, "page"), answer(200, &lines, "Seite"), answer(200, &lines, "page again")]);
    let status = |language: &str| story.get("/", &[language]).field("cache-status");
    assert_eq!(status("Accept-Language: en"), "larder; fwd=uri-miss; stored");
    assert_eq!(status("Accept-Language: de"), "larder; fwd=vary-miss; stored");
    story.pass_seconds(2);
    assert_eq!(status("Accept-Language: en"), "larder; fwd=stale; stored");
}

#[test]
fn a_head_of_what_is_stored_and_stale_is_no_miss() {
    let story = after(&["Cache-Control: max-age=1"], 2, answer(200, &[], ""));
    assert_eq!(story.ask("HEAD /", &[], "").field("cache-status"), "larder; fwd=stale");
    story.origin([answer(200, &[], "")]);
    assert_eq!(story.ask("HEAD /other", &[], "").field("cache-status"), "larder; fwd=uri-miss");
}

#[test]
fn a_304_about_something_else_is_asked_again_without_conditions() {
    let story = Story::builtin();
    let new = answer(200, &["Cache-Control: max-age=60", "ETag: \"b\""], "new");
    story.origin([answer(200, TAGGED, "old"), answer(304, &["ETag: \"b\""], ""), new]);
    story.get("/", &[]);
    story.pass_seconds(2);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.field("etag")), (200, "new", "\"b\"".to_owned()));
    let conditions =
        [0, 1].map(|at: usize| reply.asked[at].request.as_ref().and_then(|sent| sent.field("if-none-match")));
    assert_eq!(conditions, [Some("\"a\""), None]);
}

#[test]
fn stale_while_revalidate_is_served_at_once_and_refreshed_behind() {
    let story = after(&["Cache-Control: max-age=1, stale-while-revalidate=9"], 2, fresh(60, "new"));
    let stale = story.get("/", &[]);
    assert_eq!((stale.body(), stale.verdict().0), ("old", CacheVerdict::Stale));
    assert_eq!((story.get("/", &[]).body(), story.get("/", &[]).asked().len()), ("new", 0));
}

#[test]
fn stale_if_error_is_served_when_the_origin_refuses() {
    let reply = after(&["Cache-Control: max-age=1, stale-if-error=9"], 2, MockedAnswer::Refused).get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.verdict().0), (200, "old", CacheVerdict::Stale));
    assert!(reply.field("cache-status").contains("fwd=stale"), "{}", reply.field("cache-status"));
}

#[test]
fn stale_if_error_is_served_when_the_origin_answers_503() {
    let reply = after(&["Cache-Control: max-age=1, stale-if-error=9"], 2, answer(503, &[], "no")).get("/", &[]);
    assert_eq!((reply.status(), reply.body()), (200, "old"));
    assert!(reply.field("cache-status").contains("fwd-status=503"), "{}", reply.field("cache-status"));
}

#[test]
fn must_revalidate_serves_nothing_stale() {
    let lines = ["Cache-Control: max-age=1, must-revalidate, stale-if-error=9"];
    assert_eq!(after(&lines, 2, MockedAnswer::Refused).get("/", &[]).status(), 502);
}

#[test]
fn a_client_that_takes_stale_answers_gets_one_without_a_request() {
    let reply = after(&["Cache-Control: max-age=1"], 5, fresh(60, "new")).get("/", &["Cache-Control: max-stale=9"]);
    assert_eq!((reply.body(), reply.asked().len()), ("old", 0));
}

#[test]
fn a_client_may_want_it_younger_than_its_lifetime() {
    let story = after(&["Cache-Control: max-age=60"], 5, fresh(60, "new"));
    assert_eq!(story.get("/", &["Cache-Control: max-age=9"]).body(), "old");
    assert_eq!(story.get("/", &["Cache-Control: max-age=3"]).body(), "new");
}

#[test]
fn no_cache_is_stored_and_validated_each_time() {
    let story = Story::builtin();
    story.origin([answer(200, &["Cache-Control: no-cache", "ETag: \"a\""], "old"), answer(304, &[], "")]);
    story.get("/", &[]);
    for _ in 0..2 {
        let reply = story.get("/", &[]);
        assert_eq!((reply.body(), reply.asked_with("if-none-match")), ("old", Some("\"a\"")));
    }
}

#[test]
fn the_age_that_it_came_with_counts() {
    let story = after(&["Cache-Control: max-age=60", "Age: 59"], 2, fresh(60, "new"));
    assert_eq!(story.get("/", &[]).body(), "new");
}

#[test]
fn a_failure_is_not_told_to_others_before_a_second_one() {
    let story = Story::builtin();
    story.origin([MockedAnswer::Refused, fresh(60, "page")]);
    assert_eq!(story.get("/", &[]).status(), 502);
    assert_eq!(story.get("/", &[]).body(), "page");
}

#[test]
fn a_304_that_says_private_is_its_requesters_alone() {
    let private = answer(304, &["Cache-Control: private", "X-User: a"], "");
    let story = Story::builtin();
    story.origin([answer(200, TAGGED, "old"), private, fresh(60, "new")]);
    story.get("/", &[]);
    story.pass_seconds(2);
    assert_eq!(story.get("/", &[]).body(), "old");
    let next = story.get("/", &[]);
    assert_eq!((next.asked().len(), next.field("x-user")), (1, String::new()));
}

#[test]
fn head_is_answered_from_what_get_stored() {
    let story = after(&["Cache-Control: max-age=60"], 5, fresh(60, "new"));
    let reply = story.ask("HEAD /", &[], "");
    assert_eq!((reply.field("content-length"), reply.body(), reply.asked().len()), ("3".to_owned(), "", 0));
}

#[test]
fn an_error_behind_the_window_of_stale_if_error_is_served_itself() {
    for seconds in [5, 105] {
        let lines = ["Cache-Control: max-age=1, stale-if-error=60"];
        let reply = after(&lines, seconds, answer(500, &[], "bad")).get("/", &[]);
        let expect = if seconds == 5 { (200, "old") } else { (500, "bad") };
        assert_eq!((reply.status(), reply.body()), expect);
    }
}

#[test]
fn behind_the_window_of_stale_while_revalidate_clients_wait_for_the_origin() {
    let lines = ["Cache-Control: max-age=1, stale-while-revalidate=10", "ETag: \"a\""];
    let reply = after(&lines, 20, fresh(60, "new")).get("/", &[]);
    assert_eq!((reply.body(), reply.asked_with("if-none-match")), ("new", Some("\"a\"")));
}

#[test]
fn an_origin_that_hangs_up_is_answered_for_with_what_is_stale() {
    let reply = after(&["Cache-Control: max-age=1"], 5, wire("", Then::Closes)).get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.field("age")), (200, "old", "5".to_owned()));
}

#[test]
fn nothing_stale_is_served_under_must_revalidate_or_s_maxage() {
    for lines in ["Cache-Control: max-age=1, must-revalidate", "Cache-Control: max-age=1, s-maxage=1"] {
        let reply = after(&[lines], 5, wire("", Then::Closes)).get("/", &[]);
        assert_eq!(reply.status(), 502, "{lines}");
        assert!(!reply.body().contains("old"), "{lines}");
    }
}
