//! What the built-in policy stores, and for whom.

use super::*;

/// How many requests an origin sees of two, when it answers with these lines.
fn asked_of_two(lines: &[&str], request: &[&str]) -> usize {
    let story = Story::builtin();
    story.origin([answer(200, lines, "page")]);
    let first = story.get("/", request).asked().len();
    first + story.get("/", request).asked().len()
}

fn check_stored(lines: &[&str]) {
    assert_eq!(asked_of_two(lines, &[]), 1, "{lines:?}");
}

fn check_not_stored(lines: &[&str]) {
    assert_eq!(asked_of_two(lines, &[]), 2, "{lines:?}");
}

#[test]
fn what_says_how_long_it_is_good_is_stored() {
    check_stored(&["Cache-Control: max-age=9"]);
    check_stored(&["Cache-Control: s-maxage=9"]);
    check_stored(&["Expires: Thu, 01 Jan 2026 12:01:00 GMT"]);
}

#[test]
fn what_forbids_it_is_not_stored() {
    check_not_stored(&["Cache-Control: no-store, max-age=9"]);
    check_not_stored(&["Cache-Control: private, max-age=9"]);
}

#[test]
fn a_tenth_of_its_age_is_guessed_for_what_says_nothing() {
    check_stored(&["Last-Modified: Wed, 31 Dec 2025 12:00:00 GMT"]);
    check_not_stored(&[]);
}

#[test]
fn cdn_cache_control_goes_before_cache_control() {
    check_stored(&["CDN-Cache-Control: max-age=9", "Cache-Control: no-store"]);
    check_not_stored(&["CDN-Cache-Control: no-store", "Cache-Control: max-age=9"]);
}

#[test]
fn an_answer_that_sets_a_cookie_is_shared_only_where_it_says_so() {
    check_not_stored(&["Set-Cookie: a=b", "Last-Modified: Wed, 31 Dec 2025 12:00:00 GMT"]);
}

#[test]
fn what_was_asked_with_a_cookie_is_shared_only_where_the_answer_says_so() {
    let heuristic = "Last-Modified: Wed, 31 Dec 2025 12:00:00 GMT";
    assert_eq!(asked_of_two(&[heuristic], &["Cookie: a=b"]), 2);
    assert_eq!(asked_of_two(&["Cache-Control: max-age=9"], &["Cookie: a=b"]), 1);
    // Then no lifetime is guessed.
    assert_eq!(asked_of_two(&["Cache-Control: public", heuristic], &["Cookie: a=b"]), 2);
    assert_eq!(asked_of_two(&["Cache-Control: public, max-age=9"], &["Cookie: a=b"]), 1);
}

/// Where max-age is meant for browsers alone.
#[test]
fn max_age_says_nothing_of_others_where_it_is_not_to() {
    let asked = |lines: &[&str], request: &[&str]| {
        let story = Story::with(|settings| settings.policy.share_by_max_age = false);
        story.origin([answer(200, lines, "page")]);
        let first = story.get("/", request).asked().len();
        first + story.get("/", &[]).asked().len()
    };
    let expires = "Expires: Thu, 01 Jan 2026 12:01:00 GMT";
    for own in [&["Cache-Control: max-age=9", "Set-Cookie: a=b"][..], &[expires, "Set-Cookie: a=b"]] {
        assert_eq!(asked(own, &[]), 2, "{own:?}");
    }
    assert_eq!(asked(&["Cache-Control: max-age=9"], &["Cookie: a=b"]), 2);
    assert_eq!(asked(&["Cache-Control: max-age=9"], &[]), 1);
    for shared in ["Cache-Control: public, max-age=9", "Cache-Control: s-maxage=9", "CDN-Cache-Control: max-age=9"] {
        assert_eq!(asked(&[shared, "Set-Cookie: a=b"], &["Cookie: a=b"]), 1, "{shared}");
    }
}

#[test]
fn what_credentials_brought_is_for_others_only_where_its_origin_says_so() {
    let asked = |lines: &str| {
        let story = Story::builtin();
        story.origin([answer(200, &[lines], "page")]);
        let first = story.get("/", &["Authorization: Basic YTpi"]);
        assert_eq!(first.asked_with("authorization"), Some("Basic YTpi"));
        story.get("/", &[]).asked().len()
    };
    assert_eq!((asked("Cache-Control: max-age=9"), asked("Cache-Control: public, max-age=9")), (1, 0));
}

#[test]
fn an_error_that_says_how_long_is_stored() {
    for status in [404, 503] {
        let story = Story::builtin();
        story.origin([answer(status, &["Cache-Control: max-age=9"], "gone")]);
        story.get("/", &[]);
        let hit = story.get("/", &[]);
        assert_eq!((hit.status(), hit.body(), hit.asked().len()), (status, "gone", 0));
    }
}

#[test]
fn fields_about_the_connection_are_not_stored() {
    let story = Story::builtin();
    story.origin([answer(
        200,
        &["Cache-Control: max-age=9", "Connection: X-Hop", "X-Hop: 1", "Keep-Alive: 5"],
        "page",
    )]);
    story.get("/", &[]);
    let hit = story.get("/", &[]);
    assert_eq!((hit.field("x-hop"), hit.field("keep-alive")), (String::new(), String::new()));
}

#[test]
fn host_and_query_are_parts_of_the_key() {
    let story = Story::builtin();
    story.origin([fresh(60, "page")]);
    story.get("/?a=1", &[]);
    assert_eq!(story.get("/?a=1", &[]).asked().len(), 0);
    assert_eq!(story.get("/?a=2", &[]).asked().len(), 1);
    assert_eq!(story.send(b"GET /?a=1 HTTP/1.1\r\nHost: b.test\r\n\r\n").asked().len(), 1);
}

#[test]
fn variants_are_told_apart_by_what_vary_names() {
    let story = Story::builtin();
    let varied = |body| answer(200, &["Cache-Control: max-age=60", "Vary: X-A"], body);
    story.origin([varied("one"), varied("two")]);
    assert_eq!(story.get("/", &["X-A: 1"]).body(), "one");
    assert_eq!(story.get("/", &["X-A: 2"]).body(), "two");
    assert_eq!(story.get("/", &["X-A: 1"]).body(), "one");
    assert_eq!(story.get("/", &["X-A: 2"]).verdict().0, CacheVerdict::Hit);
}

#[test]
fn vary_star_is_for_nobody_else() {
    check_not_stored(&["Cache-Control: max-age=60", "Vary: *"]);
}

#[test]
fn no_vary_search_lets_a_query_share_a_response() {
    let story = Story::builtin();
    story.origin([answer(200, &["Cache-Control: max-age=60", "No-Vary-Search: params=(\"utm\")"], "page")]);
    story.get("/?utm=1", &[]);
    assert_eq!(story.get("/?utm=2", &[]).asked().len(), 0);
}

#[test]
fn ignored_parameters_reach_neither_key_nor_origin() {
    let story = Story::with(|settings| ignore_query(settings, "utm_*"));
    story.origin([fresh(60, "page")]);
    assert_eq!(story.get("/?utm_a=1&b=2", &[]).asked(), ["GET /?b=2"]);
    assert_eq!(story.get("/?b=2&utm_c=3", &[]).asked().len(), 0);
}

#[test]
fn a_client_that_wants_no_stored_answer_gets_none() {
    let story = Story::builtin();
    story.origin([fresh(60, "old"), fresh(60, "new")]);
    story.get("/", &[]);
    assert_eq!(story.get("/", &["Cache-Control: no-cache"]).body(), "new");
    let hit = story.get("/", &[]);
    assert_eq!((hit.body(), hit.asked().len()), ("new", 0));
}

#[test]
fn a_part_that_was_passed_answers_the_same_range_again() {
    let story = Story::builtin();
    let part = ["Cache-Control: max-age=60", "Content-Range: bytes 5000000-5000003/9000000", "ETag: \"a\""];
    story.origin([answer(206, &part, "part")]);
    let lines = ["Range: bytes=5000000-5000003"];
    assert_eq!((story.get("/", &lines).status(), story.get("/", &lines).asked().len()), (206, 0));
}

#[test]
fn vary_star_among_other_names_is_for_nobody_else() {
    check_not_stored(&["Cache-Control: max-age=60", "Vary: Accept, *"]);
}

#[test]
fn a_cdn_cache_control_that_cannot_be_read_leaves_the_word_to_cache_control() {
    check_stored(&["CDN-Cache-Control: no-store, &", "Cache-Control: max-age=9"]);
}

#[test]
fn fields_that_connection_names_go_neither_way_and_are_not_stored() {
    let story = Story::builtin();
    let lines = ["Cache-Control: max-age=9", "Connection: X-Hop", "X-Hop: goes", "X-End: stays"];
    story.origin([answer(200, &lines, "page")]);
    let first = story.get("/", &["Connection: X-Hop", "X-Hop: goes", "X-End: stays"]);
    assert_eq!((first.asked_with("x-hop"), first.asked_with("x-end")), (None, Some("stays")));
    let hit = story.get("/", &[]);
    assert_eq!(hit.asked().len(), 0);
    for reply in [first, hit] {
        assert_eq!((reply.field("x-hop"), reply.field("x-end")), (String::new(), "stays".to_owned()));
    }
}
