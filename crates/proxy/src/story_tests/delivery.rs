//! How much of an answer goes out, and under which head.

use super::*;

const STORED: &[&str] = &["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Type: text/plain"];

/// A story in which `/` is stored with ten bytes.
fn stored() -> Story {
    let story = Story::builtin();
    story.origin([answer(200, STORED, "0123456789")]);
    assert_eq!(story.get("/", &[]).status(), 200);
    story
}

#[test]
fn a_miss_is_stored_and_the_next_is_a_hit() {
    let story = stored();
    let hit = story.get("/", &[]);
    assert_eq!((hit.status(), hit.body(), hit.verdict()), (200, "0123456789", (CacheVerdict::Hit, "")));
    assert!(hit.asked().is_empty());
}

#[test]
fn a_hit_says_its_age_and_how_long_it_is_good() {
    let story = stored();
    story.pass_seconds(7);
    let hit = story.get("/", &[]);
    assert_eq!((hit.field("age"), hit.field("cache-status")), ("7".to_owned(), "larder; hit; ttl=53".to_owned()));
}

#[test]
fn head_gets_the_head_of_the_whole_and_no_body() {
    let head = stored().ask("HEAD /", &[], "");
    assert_eq!((head.status(), head.body(), head.field("content-length")), (200, "", "10".to_owned()));
}

#[test]
fn a_matching_tag_is_304_without_what_describes_content() {
    let reply = stored().get("/", &["If-None-Match: \"a\""]);
    assert_eq!((reply.status(), reply.body(), reply.field("content-type")), (304, "", String::new()));
    assert_eq!(reply.field("etag"), "\"a\"");
}

#[test]
fn one_range_is_206_with_where_it_lies() {
    let reply = stored().get("/", &["Range: bytes=2-4"]);
    assert_eq!((reply.status(), reply.body()), (206, "234"));
    assert_eq!((reply.field("content-range"), reply.field("content-length")), ("bytes 2-4/10".into(), "3".into()));
}

#[test]
fn several_ranges_are_parts_between_boundaries() {
    let reply = stored().get("/", &["Range: bytes=0-0,9-9"]);
    assert_eq!(reply.status(), 206);
    let kind = reply.field("content-type");
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
    let part = |range: &str, body: &str| {
        format!("\r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes {range}/10\r\n\r\n{body}")
    };
    assert_eq!(reply.body(), format!("{}{}\r\n--{boundary}--\r\n", part("0-0", "0"), part("9-9", "9")));
    assert_eq!(reply.field("content-length"), reply.body().len().to_string());
}

#[test]
fn a_range_behind_the_end_is_416_with_the_length() {
    let reply = stored().get("/", &["Range: bytes=10-"]);
    assert_eq!((reply.status(), reply.body(), reply.field("content-range")), (416, "", "bytes */10".to_owned()));
    assert_eq!(reply.field("content-length"), "0");
}

#[test]
fn an_age_that_came_with_the_answer_is_said_once() {
    let story = Story::builtin();
    story.origin([answer(200, &["Cache-Control: max-age=60", "Age: 5", "ETag: \"a\""], "0123456789")]);
    assert_eq!(story.get("/", &[]).field("age"), "5");
    story.pass_seconds(2);
    for lines in [&[][..], &["Range: bytes=0-1"], &["Range: bytes=0-0,9-9"], &["If-None-Match: \"a\""]] {
        assert_eq!(story.get("/", lines).field("age"), "7", "{lines:?}");
    }
}

#[test]
fn a_program_sees_the_answer_before_it_is_cut_and_may_leave_it_whole() {
    let story = Story::vcl(
        "sub vcl_deliver { set resp.http.X-Status = resp.status; if (req.http.whole) { unset req.http.Range; } }",
    );
    story.origin([fresh(60, "0123456789")]);
    let part = story.get("/", &["Range: bytes=2-4"]);
    assert_eq!((part.status(), part.body(), part.field("x-status")), (206, "234", "200".to_owned()));
    let whole = story.get("/", &["Range: bytes=2-4", "whole: yes"]);
    assert_eq!((whole.status(), whole.body()), (200, "0123456789"));
}

#[test]
fn a_program_that_says_close_among_other_options_closes_on_a_miss_and_on_a_hit() {
    let story = Story::vcl("sub vcl_deliver { set resp.http.Connection = \"close, x\"; }");
    story.origin([fresh(60, "page")]);
    for _ in 0..3 {
        assert_eq!(story.get("/", &[]).field("connection"), "close");
    }
}

#[test]
fn conditions_are_judged_by_the_date_that_a_program_left_and_by_what_is_stored_where_it_left_none() {
    let (before, stored, after) =
        ("Wed, 31 Dec 2014 00:00:00 GMT", "Thu, 01 Jan 2015 00:00:00 GMT", "Fri, 02 Jan 2015 00:00:00 GMT");
    for (left, expect) in [
        ("unset resp.http.Last-Modified;".to_owned(), [200, 304, 304]),
        (format!("set resp.http.Last-Modified = \"{after}\";"), [200, 200, 304]),
        (format!("set resp.http.Last-Modified = \"{before}\";"), [304, 304, 304]),
        ("set resp.http.Last-Modified = \"soon\";".to_owned(), [200, 200, 200]),
    ] {
        let story = Story::vcl(&format!("sub vcl_deliver {{ {left} }}"));
        story.origin([answer(200, &["Cache-Control: max-age=60", &format!("Last-Modified: {stored}")], "page")]);
        story.get("/", &[]);
        for (since, status) in [before, stored, after].into_iter().zip(expect) {
            let reply = story.get("/", &[&format!("If-Modified-Since: {since}")]);
            assert_eq!(reply.status(), status, "{left} {since}");
        }
    }
}
