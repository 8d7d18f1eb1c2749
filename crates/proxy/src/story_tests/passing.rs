//! What an origin is asked, and what of its answer goes on.

use super::*;

#[test]
fn the_origin_hears_who_asks_and_through_whom() {
    let story = Story::builtin();
    story.origin([fresh(60, "page")]);
    let reply = story.get("/", &["X-Forwarded-For: 192.0.2.9"]);
    assert_eq!(reply.asked_with("host"), Some("a.test"));
    assert_eq!(reply.asked_with("x-forwarded-for"), Some("127.0.0.1"));
    assert!(reply.asked_with("via").is_some_and(|via| via.starts_with("1.1 ")));
}

#[test]
fn fields_of_the_connection_stay_on_their_side() {
    let story = Story::builtin();
    story.origin([fresh(60, "page")]);
    let reply = story.get("/", &["Connection: X-Hop", "X-Hop: 1", "TE: trailers", "Keep-Alive: 5"]);
    assert_eq!((reply.asked_with("x-hop"), reply.asked_with("te"), reply.asked_with("keep-alive")), (None, None, None));
}

#[test]
fn names_that_read_as_ours_never_reach_an_origin() {
    let story = Story::builtin();
    story.origin([fresh(60, "page")]);
    let reply = story.get("/", &["X-Forwarded_For: 192.0.2.9", "X.Real~IP: 192.0.2.9"]);
    assert_eq!((reply.asked_with("x-forwarded_for"), reply.asked_with("x.real~ip")), (None, None));
}

#[test]
fn a_miss_asks_for_the_whole_without_the_clients_conditions() {
    let story = Story::builtin();
    story.origin([answer(200, &["Cache-Control: max-age=60", "ETag: \"b\""], "page")]);
    let reply = story.get("/", &["If-None-Match: \"a\"", "Range: bytes=0-1"]);
    assert_eq!((reply.asked_with("if-none-match"), reply.asked_with("range")), (None, None));
    assert_eq!((reply.status(), reply.body()), (206, "pa"));
}

#[test]
fn a_pass_keeps_the_clients_conditions() {
    let story = Story::builtin();
    story.origin([answer(200, &[], "page")]);
    let reply = story.ask("POST /", &["If-Match: \"a\""], "x");
    assert_eq!(reply.asked_with("if-match"), Some("\"a\""));
    assert!(reply.field("via").starts_with("1.1 "), "and its answer says through whom it came");
}

#[test]
fn head_of_what_is_not_stored_goes_to_the_origin_and_no_get_is_answered_from_it() {
    let story = Story::builtin();
    let lines = ["Cache-Control: max-age=60", "Content-Length: 5"];
    story.origin([answer(200, &lines, ""), fresh(60, "hello")]);
    let head = story.ask("HEAD /", &[], "");
    assert_eq!(
        (head.status(), head.field("content-length"), head.asked()),
        (200, "5".into(), vec!["HEAD /".to_owned()])
    );
    let get = story.get("/", &[]);
    assert_eq!((get.body(), get.asked()), ("hello", vec!["GET /".to_owned()]));
}

#[test]
fn a_range_far_ahead_asks_for_the_slice_that_it_begins_in_and_goes_as_it_is_where_there_are_none() {
    let story = Story::builtin();
    let part = ["Content-Range: bytes 5000000-5000003/9000000"];
    story.origin([answer(206, &part, "part")]);
    let reply = story.get("/", &["Range: bytes=5000000-5000003"]);
    assert_eq!((reply.status(), reply.body()), (206, "part"));
    assert_eq!(reply.asked_ranges(), [Some("bytes=4194304-5242879"), Some("bytes=5000000-5000003")]);
}

#[test]
fn an_answer_past_the_store_says_so() {
    let story = Story::builtin();
    story.origin([answer(200, &[], "done")]);
    assert_eq!(story.ask("POST /", &[], "x").field("cache-status"), "larder; fwd=method");
}

#[test]
fn a_chunked_answer_arrives_whole_and_is_stored() {
    let story = Story::builtin();
    story.origin([answer(200, &["Cache-Control: max-age=60", "Transfer-Encoding: chunked"], "chunks")]);
    assert_eq!(story.get("/", &[]).body(), "chunks");
    let hit = story.get("/", &[]);
    assert_eq!((hit.body(), hit.field("content-length")), ("chunks", "6".to_owned()));
}

#[test]
fn a_body_in_a_coding_that_nobody_reads_is_502_and_not_stored() {
    let story = Story::builtin();
    let cut = answer(200, &["Cache-Control: max-age=60", "Transfer-Encoding: chunked, x"], "");
    story.origin([cut]);
    assert_eq!(story.get("/", &[]).status(), 502);
    assert_eq!(story.get("/", &["Cache-Control: only-if-cached"]).status(), 504);
}

#[test]
fn an_answer_without_a_date_is_dated() {
    let story = Story::builtin();
    story.origin([answer(200, &[], "page")]);
    assert_eq!(story.get("/", &[]).field("date"), "Thu, 01 Jan 2026 12:00:00 GMT");
}

#[test]
fn a_204_has_neither_length_nor_body() {
    let story = Story::builtin();
    story.origin([answer(204, &[], "")]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.field("content-length")), (204, "", String::new()));
}

#[test]
fn a_304_to_the_clients_own_condition_is_passed_on() {
    let story = Story::builtin();
    story.origin([answer(304, &["ETag: \"a\""], "")]);
    let reply = story.ask("DELETE /", &["If-None-Match: \"a\""], "");
    assert_eq!((reply.status(), reply.body()), (304, ""));
}

#[test]
fn what_was_not_to_be_stored_is_remembered_and_passed() {
    let story = Story::builtin();
    story.origin([answer(200, &["Cache-Control: no-store"], "page")]);
    assert_eq!(story.get("/", &[]).verdict().0, CacheVerdict::Miss);
    assert_eq!(story.get("/", &[]).verdict(), (CacheVerdict::Pass, "hit-for-miss"));
}

#[test]
fn a_pass_that_may_be_stored_after_all_is() {
    let story = Story::builtin();
    story.origin([answer(200, &["Cache-Control: no-store"], "no"), fresh(60, "yes")]);
    story.get("/", &[]);
    assert_eq!(story.get("/", &[]).body(), "yes");
    assert_eq!(story.get("/", &[]).verdict().0, CacheVerdict::Hit);
}

#[test]
fn a_range_of_a_miss_is_cut_out_of_the_whole_which_is_stored() {
    let story = Story::builtin();
    story.origin([fresh(60, "0123456789")]);
    let reply = story.get("/", &["Range: bytes=2-4"]);
    assert_eq!((reply.status(), reply.body(), reply.asked_with("range")), (206, "234", None));
    assert_eq!(reply.field("content-range"), "bytes 2-4/10");
    let whole = story.get("/", &[]);
    assert_eq!((whole.status(), whole.body(), whole.asked().len()), (200, "0123456789", 0));
}
