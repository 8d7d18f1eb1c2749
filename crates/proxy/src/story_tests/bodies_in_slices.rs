//! Bodies that are too large to be kept in one piece.

use std::sync::atomic::Ordering;

use super::*;
use crate::fetch::fetch_states::{FetchState, edge_of};

const FILM: &str = "0123456789abcdefghijklmnopqrstuvwxyz";
const LINES: [&str; 3] = ["Cache-Control: max-age=60, stale-if-error=600", "ETag: \"v1\"", "Accept-Ranges: bytes"];

/// Two slices are too much for one piece.
pub(super) fn in_slices() -> Story {
    Story::with(|settings| {
        settings.limits.object_bytes_max = 20;
        settings.limits.slice_bytes = 10;
        settings.limits.range_ahead_bytes_max = 5;
    })
}

fn whole() -> MockedAnswer {
    answer(200, &LINES, FILM)
}

/// The slice that begins there, of this version of the film.
fn slice(from: usize, version: &str) -> MockedAnswer {
    let to = (from + 10).min(FILM.len());
    let (tag, range) = (format!("ETag: \"{version}\""), format!("Content-Range: bytes {from}-{}/36", to - 1));
    answer(206, &["Cache-Control: max-age=60", &tag, &range], &FILM[from..to])
}

/// A story in which the slice from byte 20 is stored, and no other.
pub(super) fn third_slice_stored(next: impl IntoIterator<Item = MockedAnswer>) -> Story {
    let story = in_slices();
    story.origin([slice(20, "v1")].into_iter().chain(next));
    let reply = story.get("/film", &["Range: bytes=20-21"]);
    assert_eq!((reply.status(), reply.body(), reply.verdict()), (206, "kl", (CacheVerdict::Miss, "range-ahead")));
    assert_eq!(reply.asked_ranges(), [Some("bytes=20-29")]);
    story
}

fn taken(story: &Story, from: FetchState, to: FetchState) -> u64 {
    edge_of(from, to).map_or(0, |edge| story.core.edges.fetch[edge].load(Ordering::Relaxed))
}

#[test]
fn a_large_body_is_fetched_once_and_answers_whole_and_in_ranges() {
    let story = in_slices();
    story.origin([whole()]);
    let reply = story.get("/film", &[]);
    assert_eq!((reply.status(), reply.body(), reply.asked_ranges()), (200, FILM, vec![None]));
    assert_eq!(reply.verdict(), (CacheVerdict::Miss, ""));
    let hit = story.get("/film", &[]);
    assert_eq!((hit.body(), hit.verdict().0, hit.asked().len()), (FILM, CacheVerdict::Hit, 0));
    let range = story.get("/film", &["Range: bytes=8-21"]);
    assert_eq!((range.status(), range.body(), range.asked().len()), (206, &FILM[8..22], 0));
    let head = story.ask("HEAD /film", &[], "");
    assert_eq!((head.field("content-length"), head.body()), ("36".to_owned(), ""));
}

#[test]
fn slices_that_are_missing_are_asked_for_by_their_ranges_and_the_tag_of_the_others() {
    let story = third_slice_stored([slice(0, "v1"), slice(10, "v1"), slice(30, "v1")]);
    let reply = story.get("/film", &[]);
    assert_eq!((reply.status(), reply.body(), reply.verdict().1), (200, FILM, "slices-missing"));
    assert_eq!(reply.asked_ranges(), [Some("bytes=0-9"), Some("bytes=10-19"), Some("bytes=30-35")]);
    assert_eq!(reply.asked_with("if-range"), Some("\"v1\""));
}

#[test]
fn only_if_cached_gets_the_slices_that_are_there_and_504_for_others() {
    let story = third_slice_stored([]);
    let stored = story.get("/film", &["Range: bytes=25-29", "Cache-Control: only-if-cached"]);
    assert_eq!((stored.status(), stored.body()), (206, "pqrst"));
    let missing = story.get("/film", &["Range: bytes=0-3", "Cache-Control: only-if-cached"]);
    assert_eq!((missing.status(), missing.asked().len()), (504, 0));
}

#[test]
fn a_slice_of_another_version_is_put_beside_no_other_and_the_new_one_is_asked_for() {
    let new = answer(200, &["Cache-Control: max-age=60", "ETag: \"v2\""], "NEW3456789");
    let story = third_slice_stored([new.clone(), new]);
    let reply = story.get("/film", &["Range: bytes=0-3"]);
    assert_eq!((reply.status(), reply.body(), reply.field("etag")), (206, "NEW3", "\"v2\"".to_owned()));
    assert_eq!(reply.asked_ranges(), [Some("bytes=0-9"), None]);
    assert_eq!(taken(&story, FetchState::Reply, FetchState::Failed), 1);
}

#[test]
fn an_origin_that_answers_503_to_a_slice_is_503_and_what_is_stored_is_served_still() {
    let story = third_slice_stored([answer(503, &[], "no")]);
    let reply = story.get("/film", &["Range: bytes=10-12"]);
    assert_eq!((reply.status(), reply.verdict()), (503, (CacheVerdict::Error, "origin-server-error")));
    assert_eq!(taken(&story, FetchState::Reply, FetchState::Failed), 1);
    assert_eq!(story.get("/film", &["Range: bytes=25-29"]).body(), "pqrst");
}

#[test]
fn a_slice_is_brought_although_its_client_leaves_and_serves_the_next() {
    let story = third_slice_stored([slice(0, "v1")]);
    let left = story.leave("/film", &["Range: bytes=0-3"]);
    assert_eq!((left.status(), left.verdict().1, left.asked_ranges()), (0, "client-left", vec![Some("bytes=0-9")]));
    let next = story.get("/film", &["Range: bytes=0-3"]);
    assert_eq!((next.status(), next.body(), next.asked().len()), (206, "0123", 0));
}

#[test]
fn an_origin_that_breaks_off_a_large_body_is_asked_for_the_rest_by_ranges() {
    let story = in_slices();
    let head = LINES.join("\r\n");
    let cut = format!("HTTP/1.1 200 OK\r\n{head}\r\nContent-Length: 36\r\n\r\n{}", &FILM[..22]);
    story.origin([wire(&cut, Then::Closes), slice(30, "v1"), slice(20, "v1")]);
    let reply = story.get("/film", &[]);
    assert_eq!((reply.status(), reply.body(), reply.end()), (200, FILM, End::Sent));
    assert_eq!(reply.asked_ranges(), [None, Some("bytes=30-35"), Some("bytes=20-29")], "one ahead");
    assert_eq!(taken(&story, FetchState::Fill, FetchState::Failed), 1);
}

#[test]
fn a_stale_body_in_slices_is_served_whole_when_the_origin_refuses() {
    let story = in_slices();
    story.origin([whole(), MockedAnswer::Refused]);
    story.get("/film", &[]);
    story.pass_seconds(61);
    let reply = story.get("/film", &[]);
    assert_eq!((reply.status(), reply.body(), reply.verdict().0), (200, FILM, CacheVerdict::Stale));
    assert_eq!(reply.asked(), ["refused"]);
}

#[test]
fn a_large_body_that_may_be_stored_after_all_is_a_miss_and_its_slices_are_hits() {
    let story = in_slices();
    story.origin([answer(200, &["Cache-Control: no-store"], "no"), whole()]);
    story.get("/film", &[]);
    let reply = story.get("/film", &[]);
    assert_eq!((reply.body(), reply.verdict().0), (FILM, CacheVerdict::Miss));
    let hit = story.get("/film", &[]);
    assert_eq!((hit.body(), hit.asked().len()), (FILM, 0));
}
