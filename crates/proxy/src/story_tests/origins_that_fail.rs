//! Origins whose connections die, and whose answers end too early.

use super::*;

/// A story whose connection to the origin lies in the pool, behind an answer that is not stored.
fn with_a_pooled_connection(then: Then, next: impl IntoIterator<Item = MockedAnswer>) -> Story {
    let story = Story::builtin();
    let first = pooled(&["Cache-Control: no-store"], "first", then);
    story.origin([first].into_iter().chain(next));
    assert_eq!(story.get("/first", &[]).body(), "first");
    story
}

/// Connections that were opened to origins.
fn opened(story: &Story) -> u64 {
    story.core.counters.origin_connections_opened.get()
}

#[test]
fn an_origin_that_keeps_its_connection_is_asked_again_on_it() {
    let story = with_a_pooled_connection(Then::Listens, [fresh(60, "second")]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.asked()), (200, "second", vec!["GET /".to_owned()]));
    assert_eq!(opened(&story), 1);
}

#[test]
fn a_get_that_a_pooled_connection_loses_is_sent_again_on_a_new_one() {
    let story = with_a_pooled_connection(Then::Listens, [wire("", Then::Closes), fresh(60, "second")]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.verdict()), (200, "second", (CacheVerdict::Miss, "")));
    assert_eq!((reply.asked(), opened(&story)), (vec!["GET /".to_owned(), "GET /".to_owned()], 2));
}

#[test]
fn a_pooled_connection_that_died_unseen_costs_a_new_one_and_no_second_request() {
    let story = with_a_pooled_connection(Then::Rests, [fresh(60, "second")]);
    story.origins_hang_up();
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.asked()), (200, "second", vec!["GET /".to_owned()]));
    assert_eq!((opened(&story), story.core.counters.origin_retries.get()), (2, 1));
}

#[test]
fn a_post_that_a_pooled_connection_loses_is_502_and_is_not_sent_again() {
    let story = with_a_pooled_connection(Then::Listens, [wire("", Then::Closes), fresh(60, "second")]);
    let reply = story.ask("POST /", &[], "pie");
    assert_eq!((reply.status(), reply.verdict()), (502, (CacheVerdict::Error, "origin-closed")));
    assert_eq!(reply.asked(), ["POST /"]);
}

#[test]
fn an_origin_that_closes_a_new_connection_without_an_answer_is_502_and_is_asked_once() {
    let story = Story::builtin();
    story.origin([wire("", Then::Closes), fresh(60, "second")]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.verdict()), (502, (CacheVerdict::Error, "origin-closed")));
    assert_eq!(reply.asked(), ["GET /"]);
}

const CUT: [&str; 2] = ["Content-Length: 10\r\n\r\n0123", "Transfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n"];

/// An answer of which not all comes.
fn cut(framed: &str) -> MockedAnswer {
    wire(&format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{framed}"), Then::Closes)
}

#[test]
fn a_body_that_has_ended_too_early_before_its_head_went_out_is_502_and_asked_for_again() {
    for framed in CUT {
        let story = Story::builtin();
        story.origin([cut(framed), fresh(60, "0123456789")]);
        let reply = story.get("/", &[]);
        assert_eq!((reply.status(), reply.verdict()), (502, (CacheVerdict::Error, "origin-body-truncated")));
        let next = story.get("/", &[]);
        assert_eq!((next.body(), next.end(), next.asked().len()), ("0123456789", End::Sent, 1));
    }
}

#[test]
fn a_body_that_ends_too_early_behind_its_head_is_cut_for_who_was_passed() {
    for framed in CUT {
        let story = Story::builtin();
        story.origin([cut(framed)]);
        let reply = story.ask("POST /", &[], "pie");
        assert_eq!((reply.status(), reply.body(), reply.end()), (200, "0123", End::Cut("origin-body-truncated")));
        assert_eq!(reply.verdict(), (CacheVerdict::Pass, "origin-body-truncated"));
    }
}

#[test]
fn a_304_that_its_program_turns_down_leaves_its_connection_to_the_next_try() {
    let text = "sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 0s; set beresp.keep = 60s; } \
        sub vcl_backend_refresh { return (retry); }";
    let story = Story::vcl(text);
    let not_modified = wire("HTTP/1.1 304 Not Modified\r\n\r\n", Then::Listens);
    story.origin([pooled(&["ETag: \"a\""], "old", Then::Listens), not_modified, fresh(60, "new")]);
    assert_eq!(story.get("/", &[]).body(), "old");
    story.pass_seconds(2);
    assert_eq!(story.get("/", &[]).body(), "new");
    assert_eq!(opened(&story), 1);
    assert_eq!((story.core.counters.vcl_retries.get(), story.core.counters.origin_retries.get()), (1, 0));
}

#[test]
fn a_304_that_nobody_asked_for_is_503_under_a_program_and_leaves_its_connection_to_the_next_fetch() {
    let story = Story::vcl("");
    story.origin([wire("HTTP/1.1 304 Not Modified\r\n\r\n", Then::Listens), fresh(60, "page")]);
    assert_eq!(story.get("/one", &[]).status(), 503);
    assert_eq!((story.get("/other", &[]).body(), opened(&story)), ("page", 1));
}

#[test]
fn a_304_that_nobody_asked_for_is_502_and_not_stored() {
    let story = Story::builtin();
    story.origin([answer(304, &["Cache-Control: max-age=600", "ETag: \"a\""], "")]);
    assert_eq!(story.get("/", &[]).status(), 502);
    assert_eq!(story.get("/", &["Cache-Control: only-if-cached"]).status(), 504);
}

#[test]
fn a_304_that_nobody_asked_for_goes_through_backend_error() {
    let story = Story::vcl("sub vcl_backend_error { set beresp.http.by = \"error\"; }");
    story.origin([answer(304, &["ETag: \"a\""], "")]);
    let reply = story.get("/", &["If-None-Match: \"a\""]);
    assert_eq!((reply.status(), reply.field("by"), reply.asked_with("if-none-match")), (503, "error".to_owned(), None));
}
