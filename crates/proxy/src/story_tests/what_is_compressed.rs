//! In which coding an answer goes out, and that it is the same text in each.

use coding::{Bounds, Coding, Decoder, Encoder};
use rules::ContentCoding;

use super::*;
use crate::coding_levels::coding_of;
use crate::limits::Limits;
use crate::settings::RouteCompression;

const BROWSER: &str = "Accept-Encoding: gzip, deflate, br, zstd";

/// A page of some size.
fn page() -> String {
    (0..300).map(|n| format!("<p>paragraph {n} of many</p>\n")).collect()
}

pub(super) fn coded(text: &str, coding: ContentCoding) -> Vec<u8> {
    let Some(coding) = coding_of(coding) else { return text.as_bytes().to_vec() };
    let (mut encoder, mut out) = (Encoder::new(coding, 4).unwrap(), Vec::new());
    encoder.encode(text.as_bytes(), &mut out).unwrap();
    encoder.finish(&mut out).unwrap();
    out
}

/// What a body says that is in the coding of this name.
pub(super) fn text_of(body: &[u8], coding: &str) -> String {
    let Some(coding) = Coding::of(coding.as_bytes()) else { return String::from_utf8(body.to_vec()).unwrap() };
    let (mut decoder, mut out) = (Decoder::new(coding, Bounds::NONE).unwrap(), Vec::new());
    let mut rest = body;
    loop {
        let step = decoder.decode(rest, 1 << 20, &mut out).unwrap();
        rest = &rest[step.taken..];
        if rest.is_empty() && step.is_drained {
            break;
        }
    }
    decoder.finish().unwrap();
    String::from_utf8(out).unwrap()
}

fn bytes(reply: &Reply) -> &[u8] {
    &reply.answer.as_ref().expect("it was answered").body
}

/// An origin's page with these lines, in this coding.
fn origin_page(lines: &[&str], coding: ContentCoding) -> MockedAnswer {
    let mut fields = vec![("Content-Type".to_owned(), "text/html; charset=utf-8".to_owned())];
    fields.extend(lines.iter().filter_map(|line| line.split_once(": ")).map(|(n, v)| (n.to_owned(), v.to_owned())));
    if coding != ContentCoding::Identity {
        fields.push(("Content-Encoding".to_owned(), coding.name().to_owned()));
    }
    MockedAnswer::Given(AnswerParts { status: 200, reason: "OK".to_owned(), fields, body: coded(&page(), coding) })
}

const STORED: &[&str] = &["Cache-Control: max-age=60", "ETag: \"a\"", "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT"];

fn before(lines: &[&str]) -> Story {
    let story = Story::builtin();
    story.origin([origin_page(lines, ContentCoding::Identity)]);
    story
}

#[test]
fn a_browser_gets_zstd_from_the_first_answer_on() {
    let story = before(STORED);
    for verdict in [CacheVerdict::Miss, CacheVerdict::Hit, CacheVerdict::Hit] {
        let reply = story.get("/", &[BROWSER]);
        assert_eq!((reply.field("content-encoding"), reply.verdict().0), ("zstd".to_owned(), verdict));
        assert_eq!(text_of(bytes(&reply), "zstd"), page());
        assert_eq!((reply.field("vary"), reply.field("etag")), ("Accept-Encoding".to_owned(), "W/\"a\"".to_owned()));
    }
    assert_eq!(story.core.shared.cache.stats().encodings_made, 1);
}

#[test]
fn who_takes_nothing_gets_the_text_and_is_told_that_others_do_not() {
    let story = before(STORED);
    for _ in 0..2 {
        let reply = story.get("/", &[]);
        assert_eq!((reply.body(), reply.field("content-encoding")), (&*page(), String::new()));
        assert_eq!((reply.field("vary"), reply.field("etag")), ("Accept-Encoding".to_owned(), "\"a\"".to_owned()));
    }
    assert_eq!(story.core.shared.cache.stats().encodings_made, 0);
}

#[test]
fn an_origin_is_asked_for_what_we_can_read_whoever_asks() {
    for lines in [&[][..], &["Accept-Encoding: br, gzip;q=0.1"]] {
        let reply = before(STORED).get("/", lines);
        assert_eq!(reply.asked_with("accept-encoding"), Some("gzip"), "{lines:?}");
    }
    // What is one client's alone is asked for as that asks.
    let passed = before(STORED).ask("POST /", &["Accept-Encoding: br"], "x");
    assert_eq!(passed.asked_with("accept-encoding"), Some("br"));
}

#[test]
fn one_answer_serves_all_though_its_origin_says_that_it_varies() {
    let story = before(&["Cache-Control: max-age=60", "Vary: Accept-Encoding"]);
    story.get("/", &["Accept-Encoding: gzip"]);
    for accepts in ["br", "zstd", "identity", "gzip, br"] {
        let reply = story.get("/", &[&format!("Accept-Encoding: {accepts}")]);
        assert!(reply.asked().is_empty(), "{accepts}");
        assert_eq!(text_of(bytes(&reply), &reply.field("content-encoding")), page());
    }
    assert_eq!(story.core.shared.cache.stats().objects, 1);
}

/// Every pair of what is stored and what is asked for, with conditions and ranges, twice: what has just been made, and what was.
#[test]
fn whatever_is_stored_and_whatever_is_asked_for_it_is_the_same_text() {
    let accepts =
        ["", "gzip", "br", "zstd", "gzip, deflate, br, zstd", "identity", "gzip;q=0.1, br;q=0", "*;q=0", "deflate"];
    let mut checked = 0;
    for stored in ContentCoding::ALL {
        for accept in accepts {
            let story = Story::builtin();
            story.origin([origin_page(STORED, stored)]);
            let accept_line = format!("Accept-Encoding: {accept}");
            let asked = |more: &[&str], method: &str| {
                let accept_line = (!accept.is_empty()).then_some(&*accept_line);
                let lines: Vec<&str> = accept_line.into_iter().chain(more.iter().copied()).collect();
                story.ask(&format!("{method} /"), &lines, "")
            };
            for _ in 0..2 {
                let whole = asked(&[], "GET");
                let context = format!("{stored:?} for {accept:?}");
                let coding = whole.field("content-encoding");
                assert_eq!(text_of(bytes(&whole), &coding), page(), "{context}");
                let is_taken =
                    coding.is_empty() || accept.contains(&coding) && !accept.contains(&format!("{coding};q=0,"));
                assert!(is_taken || accept == "*;q=0", "{context}: {coding}");
                let is_as_stored = coding == if stored == ContentCoding::Identity { "" } else { stored.name() };
                let tag = if is_as_stored { "\"a\"" } else { "W/\"a\"" };
                assert_eq!((whole.field("etag"), whole.field("vary")), (tag.to_owned(), "Accept-Encoding".to_owned()));
                check_conditions(&asked, &whole, is_as_stored, &context);
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 2 * 4 * accepts.len());
}

/// `whole`: what is answered without conditions.
fn check_conditions(asked: &impl Fn(&[&str], &str) -> Reply, whole: &Reply, is_as_stored: bool, context: &str) {
    let head = asked(&[], "HEAD");
    assert_eq!((head.status(), bytes(&head).len()), (200, 0), "{context}");
    assert_eq!(head.field("content-encoding"), whole.field("content-encoding"), "{context}");
    for (lines, status) in [
        (&["If-None-Match: \"a\""][..], 304),
        (&["If-None-Match: W/\"a\""], 304),
        (&["If-None-Match: \"b\""], 200),
        (&["If-Modified-Since: Wed, 01 Jan 2020 00:00:00 GMT"], 304),
        (&["If-Modified-Since: Wed, 01 Jan 2019 00:00:00 GMT"], 200),
    ] {
        let reply = asked(lines, "GET");
        assert_eq!((reply.status(), reply.field("etag")), (status, whole.field("etag")), "{context} {lines:?}");
        assert_eq!(bytes(&reply), if status == 200 { bytes(whole) } else { b"" }, "{context} {lines:?}");
    }
    let part = asked(&["Range: bytes=10-19"], "GET");
    assert_eq!((part.status(), bytes(&part)), (206, &bytes(whole)[10..20]), "{context}");
    assert_eq!(part.field("content-range"), format!("bytes 10-19/{}", bytes(whole).len()), "{context}");
    for validator in ["\"a\"", "Wed, 01 Jan 2020 00:00:00 GMT"] {
        // What was made may be made anew, of other bytes.
        let part = asked(&["Range: bytes=10-19", &format!("If-Range: {validator}")], "GET");
        assert_eq!(part.status(), if is_as_stored { 206 } else { 200 }, "{context} {validator}");
    }
}

#[test]
fn what_is_short_coded_already_or_not_to_be_touched_goes_out_as_it_is() {
    let page = page();
    for (lines, body) in [
        (&["Content-Type: text/html"][..], "short"),
        (&["Content-Type: image/png"], &page),
        (&["Content-Type: text/event-stream"], &page),
        (&["Content-Type: text/html", "Content-Encoding: deflate"], &page),
        (&["Content-Type: text/html", "Cache-Control: max-age=60, no-transform"], &page),
        (&[], &page),
    ] {
        let story = Story::builtin();
        let all: Vec<&str> = lines.iter().copied().chain(["Cache-Control: max-age=60"]).collect();
        story.origin([answer(200, &all, body)]);
        for _ in 0..2 {
            assert_eq!(story.get("/", &[BROWSER]).body(), body, "{lines:?}");
        }
        assert_eq!(story.core.shared.cache.stats().encodings_made, 0, "{lines:?}");
    }
}

#[test]
fn what_is_not_stored_is_compressed_for_its_client_unless_there_are_secrets_on_either_side() {
    let private = |lines: &[&str], origin_lines: &[&str]| {
        let lines: Vec<&str> = [BROWSER].into_iter().chain(lines.iter().copied()).collect();
        let reply = before(origin_lines).get("/", &lines);
        assert_eq!(text_of(bytes(&reply), &reply.field("content-encoding")), page());
        reply.field("content-encoding")
    };
    assert_eq!(private(&[], &["Cache-Control: no-store"]), "zstd");
    assert_eq!(private(&["Cookie: a=1"], &["Cache-Control: no-store"]), "");
    assert_eq!(private(&["Authorization: Basic eDp5"], &["Cache-Control: no-store"]), "");
    assert_eq!(private(&[], &["Cache-Control: no-store", "Set-Cookie: a=1"]), "");
    // What everybody gets holds nobody's secrets.
    assert_eq!(private(&["Cookie: a=1"], STORED), "zstd");
}

#[test]
fn a_route_says_otherwise() {
    let of = |compression, lines: &[&str]| {
        let story = Story::with(|settings| settings.routes[0].compression = compression);
        story.origin([origin_page(&["Cache-Control: no-store"], ContentCoding::Identity)]);
        let reply = story.get("/", lines);
        (reply.field("content-encoding"), reply.asked_with("accept-encoding").map(str::to_owned))
    };
    let browser = BROWSER.split_once(": ").unwrap().1.to_owned();
    assert_eq!(of(RouteCompression::Off, &[BROWSER]), (String::new(), Some(browser)));
    assert_eq!(of(RouteCompression::Always, &[BROWSER, "Cookie: a=1"]).0, "zstd");
}

#[test]
fn switched_off_it_changes_nothing() {
    let story = Story::with(|settings| settings.compress.is_on = false);
    story.origin([origin_page(STORED, ContentCoding::Identity)]);
    let reply = story.get("/", &[BROWSER]);
    assert_eq!((reply.body(), reply.field("vary"), reply.field("etag")), (&*page(), String::new(), "\"a\"".to_owned()));
    assert_eq!(reply.asked_with("accept-encoding"), BROWSER.split_once(": ").map(|(_, value)| value));
}

#[test]
fn what_was_made_holds_as_long_as_the_origin_confirms_what_it_was_made_of() {
    let story = before(STORED);
    story.get("/", &[BROWSER]);
    story.pass_seconds(61);
    story.origin([answer(304, &["ETag: \"a\"", "Cache-Control: max-age=60", "X-New: 1"], "")]);
    let reply = story.get("/", &[BROWSER]);
    assert_eq!((reply.asked_with("if-none-match"), &*reply.field("x-new")), (Some("\"a\""), "1"));
    assert_eq!(text_of(bytes(&reply), &reply.field("content-encoding")), page());
    assert_eq!((reply.field("vary"), reply.field("etag")), ("Accept-Encoding".to_owned(), "W/\"a\"".to_owned()));
    assert_eq!(story.core.shared.cache.stats().encodings_made, 1, "it was not made again");
    let hit = story.get("/", &[BROWSER]);
    assert_eq!((hit.field("x-new"), hit.field("content-encoding")), ("1".to_owned(), "zstd".to_owned()));
}

#[test]
fn what_is_not_in_the_coding_that_it_names_is_cut_once_and_then_sent_as_it_is() {
    let story = Story::builtin();
    let lines = ["Content-Type: text/html", "Content-Encoding: gzip", "Cache-Control: max-age=60"];
    story.origin([answer(200, &lines, "no gzip at all")]);
    assert_eq!(story.get("/", &[]).end(), End::Cut("body-coding"));
    let reply = story.get("/", &[]);
    assert_eq!((reply.body(), reply.field("content-encoding")), ("no gzip at all", "gzip".to_owned()));
}

#[test]
fn two_who_ask_at_once_read_what_is_made_for_one() {
    let story = Story::builtin();
    story.origin([origin_page(STORED, ContentCoding::Gzip)]);
    let (texts, asked) = story.get_together("/");
    assert_eq!((texts, asked), ([page(), page()], 1));
    assert_eq!(story.core.shared.cache.stats().encodings_made, 1);
}

#[test]
fn what_lies_in_slices_is_taken_out_of_its_coding_for_who_does_not_take_that() {
    let story = bodies_in_slices::in_slices();
    story.origin([origin_page(
        &["Cache-Control: max-age=60", "ETag: \"a\"", "Accept-Ranges: bytes"],
        ContentCoding::Gzip,
    )]);
    for (accepts, coding) in [("gzip", "gzip"), ("identity", ""), ("br", ""), ("gzip", "gzip")] {
        let reply = story.get("/", &[&format!("Accept-Encoding: {accepts}")]);
        assert_eq!(reply.field("content-encoding"), coding, "{accepts}");
        assert_eq!(text_of(bytes(&reply), coding), page(), "{accepts}");
    }
}

#[test]
fn a_part_answers_those_alone_who_take_what_it_was_asked_in() {
    let story = Story::with(|settings| settings.limits.range_ahead_bytes_max = 5);
    let part = |coding: &[&str], text: &str| {
        let lines =
            ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 10-11/40", "Vary: Accept-Encoding"];
        answer(206, &[&lines, coding].concat(), text)
    };
    let zipped = || part(&["Content-Encoding: gzip"], "zz");
    // The first one was asked for as a slice, and is none.
    story.origin([zipped(), zipped(), part(&[], "aa")]);
    for (accepts, body, asked) in [("gzip", "zz", 2), ("gzip", "zz", 0), ("identity", "aa", 1), ("gzip", "zz", 0)] {
        let reply = story.get("/", &[&format!("Accept-Encoding: {accepts}"), "Range: bytes=10-11"]);
        assert_eq!((reply.status(), reply.body(), reply.asked().len()), (206, body, asked), "{accepts}");
    }
}

#[test]
fn who_comes_while_coders_hold_the_memory_that_they_may_has_the_response_as_it_is() {
    for lines in [STORED, &["Cache-Control: no-store"]] {
        let story = Story::builtin();
        story.origin([(); 2].map(|()| origin_page(lines, ContentCoding::Identity)));
        let coders = &story.core.shared.coders;
        let others = coders.charge(Limits::default().coding_memory_bytes_max - 1_000);
        for (others, coding) in [(Some(others), ""), (None, "zstd")] {
            let before = coders.used();
            let reply = story.get("/", &[BROWSER]);
            assert_eq!(reply.field("content-encoding"), coding, "{lines:?}");
            assert_eq!(text_of(bytes(&reply), coding), page());
            assert_eq!(coders.used(), before, "what is done holds nothing");
            assert_eq!(coders.refused(), 1, "{lines:?}");
            drop(others);
        }
    }
}
