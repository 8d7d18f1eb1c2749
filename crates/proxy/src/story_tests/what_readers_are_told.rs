//! What those who read along are told of an exchange.

use super::*;
use crate::events::{EventQuery, EventReader};
use crate::settings::RetrySettings;

fn reader(story: &Story, query: &str) -> EventReader {
    let query = EventQuery::parse(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    story.core.shared.event_readers.add(query, 1_000).expect("there is room")
}

/// The lines that have come, of which there is one at least.
fn told(story: &Story, reader: &mut EventReader) -> Vec<String> {
    let piece = story.runtime.block_on(reader.next());
    assert_eq!(piece.lost, 0);
    String::from_utf8(piece.lines).unwrap().lines().map(str::to_owned).collect()
}

#[track_caller]
fn check(line: &str, has: &[&str], has_not: &[&str]) {
    for part in has {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    for part in has_not {
        assert!(!line.contains(part), "{part} is in {line}");
    }
}

#[test]
fn a_miss_names_its_origin_and_a_hit_has_none() {
    let story = Story::builtin();
    story.origin([fresh(60, "page")]);
    let mut reader = reader(&story, "");
    story.get("/a", &[]);
    story.get("/a", &[]);
    let lines = told(&story, &mut reader);
    let of_origin = ["\"origin\":\"shop\"", "\"origin.status\":200", "\"origin.reused\":\"no\"", "\"origin.tries\":1"];
    check(&lines[0], &of_origin, &["\"tries\":["]);
    check(
        &lines[0],
        &["\"class\":\"miss\"", "\"forwarded\":\"uri-miss\"", "\"url\":\"a.test/a\"", "\"time.origin\":"],
        &[],
    );
    check(&lines[1], &["\"class\":\"hit\"", "\"status\":200", "\"bytes\":4"], &["origin", "forwarded"]);
}

#[test]
fn under_a_program_as_much_is_told() {
    let story = Story::vcl("import std; sub vcl_deliver { std.log(\"seen\"); }");
    story.origin([fresh(60, "page")]);
    let mut reader = reader(&story, "");
    story.get("/a", &[]);
    story.get("/a", &[]);
    let lines = told(&story, &mut reader);
    check(
        &lines[0],
        &["\"class\":\"miss\"", "\"origin\":\"default\"", "\"origin.status\":200", "\"log\":\"seen\""],
        &[],
    );
    check(&lines[1], &["\"class\":\"hit\"", "\"log\":\"seen\""], &["origin"]);
}

#[test]
fn each_try_is_told_of_a_request_that_was_sent_again() {
    let story = Story::builtin();
    story.origin([
        pooled(&["Cache-Control: no-store"], "first", Then::Listens),
        wire("", Then::Closes),
        fresh(60, "second"),
    ]);
    story.get("/first", &[]);
    let mut reader = reader(&story, "");
    assert_eq!(story.get("/", &[]).body(), "second");
    let lines = told(&story, &mut reader);
    check(
        &lines[0],
        &["\"origin.tries\":2", "\"origin.status\":200", "\"tries\":[{", "\"error\":\"origin-closed\""],
        &[],
    );
}

#[test]
fn a_failure_says_by_which_token_and_whether_it_was_the_origins() {
    let story = Story::with(|settings| settings.origins[0].retries = RetrySettings::default());
    story.origin([MockedAnswer::Refused]);
    let mut reader = reader(&story, "status >= 500 and origin == shop");
    story.get("/", &[]);
    story.get("no-path", &[]);
    let lines = told(&story, &mut reader);
    assert_eq!(lines.len(), 1, "{lines:?}");
    check(
        &lines[0],
        &["\"class\":\"error\"", "\"origin.error\":\"origin-connect", "\"origin.address\":\"", "\"error.detail\":\""],
        &["time.origin"],
    );
}

#[test]
fn the_number_on_the_page_of_an_error_finds_its_event() {
    let story = Story::with(|settings| settings.origins[0].retries = RetrySettings::default());
    story.origin([MockedAnswer::Refused, MockedAnswer::Refused]);
    let mut all = reader(&story, "id");
    let pages = [story.get("/a", &[]), story.get("/b", &[])];
    for (page, line) in pages.iter().zip(told(&story, &mut all)) {
        let id = page.body().trim_end().rsplit(' ').next().unwrap_or_default();
        check(&line, &[&format!("\"id\":\"{id}\"")], &[]);
    }
}

#[test]
fn what_is_passed_or_confirmed_is_told_as_that() {
    let story = Story::builtin();
    story.origin([
        answer(200, &["Cache-Control: max-age=0", "ETag: \"1\""], "page"),
        answer(304, &["ETag: \"1\""], ""),
        answer(200, &[], "sent"),
    ]);
    let mut reader = reader(&story, "origin");
    story.get("/", &[]);
    story.get("/", &[]);
    story.ask("POST /", &[], "pie");
    let lines = told(&story, &mut reader);
    check(&lines[1], &["\"class\":\"revalidated\"", "\"forwarded\":\"stale\"", "\"origin.status\":304"], &[]);
    check(&lines[2], &["\"class\":\"pass\"", "\"forwarded\":\"method\"", "\"origin.status\":200"], &[]);
}

#[test]
fn nothing_of_it_is_noted_while_nobody_reads_along() {
    let story = Story::builtin();
    story.origin([fresh(60, "page")]);
    assert!(!story.core.shared.event_readers.any());
    story.get("/a", &[]);
    let mut reader = reader(&story, "");
    story.get("/a", &[]);
    let lines = told(&story, &mut reader);
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[test]
fn what_a_program_logs_is_told_without_an_access_log() {
    let story = Story::vcl(
        "import std; sub vcl_backend_response { std.log(\"fetched\"); } sub vcl_deliver { std.log(\"sent\"); }",
    );
    story.keep_no_log();
    story.origin([fresh(60, "page")]);
    let mut reader = reader(&story, "");
    assert_eq!(story.get("/a", &[]).log_lines, "");
    check(&told(&story, &mut reader)[0], &["\"log\":\"fetched; sent\""], &[]);
}

#[test]
fn a_request_that_begins_anew_tells_whom_it_asked_before() {
    let again = "sub vcl_deliver { if (req.restarts == 0) { return (restart); } }";
    let story = Story::vcl(&format!("sub vcl_recv {{ return (pass); }} {again}"));
    story.origin([answer(200, &[], "one"), answer(503, &[], "two")]);
    let mut reader = reader(&story, "");
    assert_eq!(story.get("/a", &[]).body(), "two");
    let lines = told(&story, &mut reader);
    check(&lines[0], &["\"origin.tries\":2", "\"origin.status\":503", "\"tries\":[{"], &[]);
}

#[test]
fn of_an_answer_that_was_cut_it_is_told_why_an_origin_was_asked() {
    let story = Story::builtin();
    story.origin([answer(200, &[], "sent")]);
    let mut reader = reader(&story, "");
    let bytes = b"POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n";
    story.send_as(bytes, Manner { leaves: true, ..Manner::default() });
    check(&told(&story, &mut reader)[0], &["\"why\":\"client-left\"", "\"forwarded\":\"method\""], &[]);
}
