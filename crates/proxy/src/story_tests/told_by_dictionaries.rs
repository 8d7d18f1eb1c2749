//! Who is told that a text is a dictionary, and who gets what differs from one (RFC 9842).

use base64::Engine;
use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use rules::ContentCoding;
use sha2::{Digest, Sha256};
use zstd::stream::raw::{Decoder, Operation};

use super::*;
use crate::settings::{DictionaryPaths, Network, RouteCompression};

/// A trusted proxy's word that its client came over TLS.
const SECURE: &str = "X-Forwarded-Proto: https";
const BROWSER: &str = "Accept-Encoding: gzip, deflate, br, zstd, dcb, dcz";
const STORED: &[&str] = &["Cache-Control: max-age=60", "ETag: \"a\""];

/// A script of this version.
fn script(version: usize) -> String {
    let line = |n: usize| format!("function f{n}(x) {{ return x * {} + {}; }}\n", n * 7_919 % 1_000, n * 104_729 % 977);
    let mut lines: Vec<String> = (0..400).map(line).collect();
    lines[200] = format!("const VERSION = {version};\n");
    lines.concat()
}

fn origin_script(lines: &[&str], text: &str, coding: ContentCoding) -> MockedAnswer {
    let mut fields = vec![("Content-Type".to_owned(), "text/javascript".to_owned())];
    fields.extend(lines.iter().filter_map(|line| line.split_once(": ")).map(|(n, v)| (n.to_owned(), v.to_owned())));
    if coding != ContentCoding::Identity {
        fields.push(("Content-Encoding".to_owned(), coding.name().to_owned()));
    }
    let body = what_is_compressed::coded(text, coding);
    MockedAnswer::Given(AnswerParts { status: 200, reason: "OK".to_owned(), fields, body })
}

/// With dictionaries, behind a proxy that may say by which scheme its clients came.
fn story(change: impl FnOnce(&mut Settings)) -> Story {
    Story::with(|settings| {
        settings.compress.dictionaries = true;
        // The store gives way to coders, and one that has a dictionary takes some megabytes.
        settings.memory_bytes_max = 64 << 20;
        settings.trusted_proxies = Network::LOOPBACK.to_vec();
        change(settings);
    })
}

fn plain(lines: &[&str], text: &str) -> MockedAnswer {
    origin_script(lines, text, ContentCoding::Identity)
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The line by which a client says that it has this text.
fn has(text: &str) -> String {
    format!("Available-Dictionary: :{}:", base64::engine::general_purpose::STANDARD.encode(hash(text)))
}

/// What an answer by a dictionary says, and in which coding it is.
fn told(reply: &Reply, dictionary: &str) -> (String, String) {
    let (coding, body) = (reply.field("content-encoding"), &reply.answer.as_ref().expect("it was answered").body);
    let mut text = vec![0; 1 << 20];
    let made = match &*coding {
        "dcz" => {
            let stream = body.strip_prefix(b"\x5e\x2a\x4d\x18\x20\x00\x00\x00").unwrap();
            let stream = stream.strip_prefix(&hash(dictionary)).unwrap();
            let mut decoder = Decoder::with_dictionary(dictionary.as_bytes()).unwrap();
            let step = decoder.run_on_buffers(stream, &mut text).unwrap();
            assert_eq!((step.bytes_read, step.remaining), (stream.len(), 0));
            step.bytes_written
        }
        "dcb" => {
            let stream = body.strip_prefix(b"\xffDCB").and_then(|rest| rest.strip_prefix(&hash(dictionary))).unwrap();
            let alloc = StandardAlloc::default;
            let dictionary = dictionary.as_bytes().to_vec().into();
            let mut state = BrotliState::new_with_custom_dictionary(alloc(), alloc(), alloc(), dictionary);
            let (mut left, mut taken, mut room, mut made, mut total) = (stream.len(), 0, text.len(), 0, 0);
            let result = BrotliDecompressStream(
                &mut left, &mut taken, stream, &mut room, &mut made, &mut text, &mut total, &mut state,
            );
            assert!(matches!(result, BrotliResult::ResultSuccess));
            made
        }
        other => {
            let text = what_is_compressed::text_of(body, other);
            return (coding, text);
        }
    };
    text.truncate(made);
    (coding, String::from_utf8(text).unwrap())
}

/// The first version was fetched and is replaced by the second.
fn replaced(story: &Story, lines: &[&str], coding: ContentCoding) {
    story.origin([origin_script(lines, &script(1), coding)]);
    let first = story.get("/app.js", &[SECURE, BROWSER]);
    assert_eq!(first.status(), 200);
    assert_eq!(story.ask("PURGE /app.js", &[SECURE], "").status(), 200);
    story.origin([origin_script(lines, &script(2), coding)]);
}

fn stats(story: &Story) -> cache::CacheStats {
    story.core.shared.cache.stats()
}

#[test]
fn a_text_that_was_replaced_is_a_dictionary_for_the_next() {
    for stored in ContentCoding::ALL {
        for (accepts, coding) in
            [("gzip, dcz", "dcz"), ("br, dcb", "dcb"), ("gzip, deflate, br, zstd, dcb, dcz", "dcz")]
        {
            let story = story(|_| {});
            replaced(&story, STORED, stored);
            let accepts = format!("Accept-Encoding: {accepts}");
            let lines = [SECURE, &accepts, &has(&script(1))];
            // The fetch itself, and what is stored then, and again by what was made.
            for verdict in [CacheVerdict::Miss, CacheVerdict::Hit, CacheVerdict::Hit] {
                let reply = story.get("/app.js", &lines);
                assert_eq!(reply.verdict().0, verdict);
                assert_eq!(told(&reply, &script(1)), (coding.to_owned(), script(2)), "{stored:?}");
                assert_eq!(reply.field("vary"), "Accept-Encoding, Available-Dictionary");
                assert_eq!(reply.field("etag"), "W/\"a\"");
                assert_eq!(reply.field("use-as-dictionary"), "match=\"/app.js\"", "it is one, too");
                let length = reply.answer.as_ref().unwrap().body.len();
                assert!(length < 200, "{coding}: {length} bytes");
            }
            assert_eq!(stats(&story).deltas_made, 1, "it was made once");
        }
    }
}

#[test]
fn who_has_no_dictionary_is_answered_as_before() {
    let story = story(|_| {});
    replaced(&story, STORED, ContentCoding::Identity);
    story.get("/app.js", &[SECURE, BROWSER, &has(&script(1))]);
    for lines in [&[SECURE, BROWSER][..], &[SECURE, BROWSER], &[SECURE, "Accept-Encoding: gzip", &has(&script(1))]] {
        let reply = story.get("/app.js", lines);
        let (coding, text) = told(&reply, "");
        assert!(["zstd", "gzip"].contains(&&*coding) && text == script(2), "{lines:?}: {coding}");
        assert_eq!(reply.field("vary"), "Accept-Encoding, Available-Dictionary");
    }
    let reply = story.get("/app.js", &[SECURE]);
    assert_eq!((reply.body(), reply.field("content-encoding")), (&*script(2), String::new()));
}

#[test]
fn it_is_said_of_what_is_stored_for_all_and_comes_over_tls() {
    let said = |change: fn(&mut Settings), lines: &[&str], asks: &[&str], path: &str| {
        let story = story(change);
        story.origin([plain(lines, &script(1))]);
        let [first, hit] = [(); 2].map(|()| story.get(path, asks));
        assert_eq!(first.field("use-as-dictionary"), hit.field("use-as-dictionary"), "{lines:?} {asks:?}");
        (hit.field("use-as-dictionary"), hit.field("vary"))
    };
    let yes = |pattern: &str| (format!("match=\"{pattern}\""), "Accept-Encoding, Available-Dictionary".to_owned());
    let no = |vary: &str| (String::new(), vary.to_owned());
    let usual = |lines: &[&str], asks: &[&str]| said(|_| {}, lines, asks, "/app.js");
    assert_eq!(usual(STORED, &[SECURE]), yes("/app.js"));
    assert_eq!(said(|_| {}, STORED, &[SECURE], "/a+b/(1).js?v=2"), yes("/a\\\\+b/\\\\(1\\\\).js"));
    assert_eq!(usual(STORED, &[]), no("Accept-Encoding"));
    assert_eq!(usual(&["Cache-Control: no-store"], &[SECURE]), no(""));
    assert_eq!(usual(&["Cache-Control: private, max-age=60"], &[SECURE]), no(""));
    assert_eq!(usual(&["Cache-Control: max-age=60", "Vary: Cookie"], &[SECURE]), no("Cookie, Accept-Encoding"));
    assert_eq!(usual(&["Cache-Control: max-age=60, no-transform"], &[SECURE]), no(""));
    let off: fn(&mut Settings) = |settings| settings.compress.dictionaries = false;
    assert_eq!(said(off, STORED, &[SECURE], "/app.js"), no("Accept-Encoding"));
    let of_route: fn(&mut Settings) = |settings| settings.routes[0].compression = RouteCompression::Off;
    assert_eq!(said(of_route, STORED, &[SECURE], "/app.js"), no(""));
    let gzip_alone: fn(&mut Settings) = |settings| settings.compress.codings = vec![ContentCoding::Gzip];
    assert_eq!(said(gzip_alone, STORED, &[SECURE], "/app.js"), no("Accept-Encoding"));
    // The origin knows better.
    let own = &["Cache-Control: max-age=60", "Use-As-Dictionary: match=\"/js/*\", id=\"x\""];
    assert_eq!(usual(own, &[SECURE]).0, "match=\"/js/*\", id=\"x\"");
    let paths: fn(&mut Settings) = |settings| {
        let paths = ["/static/app.*.js", "/app*"].map(|written| DictionaryPaths::parse(written).unwrap());
        settings.routes[0].dictionary_paths = paths.into();
    };
    assert_eq!(said(paths, STORED, &[SECURE], "/app.1.js"), yes("/app*"));
    assert_eq!(said(paths, STORED, &[SECURE], "/static/app.1.js"), yes("/static/app.*.js"));
    assert_eq!(said(paths, STORED, &[SECURE], "/other.js"), yes("/other.js"));
}

#[test]
fn what_is_stored_is_a_dictionary_for_other_urls_of_its_pattern() {
    let versioned = |story: &Story, first: &str, second: &str, lines: &[&str]| {
        story.origin([plain(lines, &script(1))]);
        story.get(first, &[SECURE, BROWSER]);
        story.origin([plain(lines, &script(2))]);
        told(&story.get(second, &[SECURE, BROWSER, &has(&script(1))]), &script(1)).0
    };
    assert_eq!(versioned(&story(|_| {}), "/app.js?v=1", "/app.js?v=2", STORED), "dcz");
    assert_eq!(versioned(&story(|_| {}), "/app.1.js", "/app.2.js", STORED), "zstd");
    let named = || {
        story(|settings| settings.routes[0].dictionary_paths = [DictionaryPaths::parse("/app.*.js").unwrap()].into())
    };
    assert_eq!(versioned(&named(), "/app.1.js", "/app.2.js", STORED), "dcz");
    assert_eq!(versioned(&named(), "/app.1.js", "/lib.2.js", STORED), "zstd");
    let own = &["Cache-Control: max-age=60", "Use-As-Dictionary: match=\"app.*\""];
    assert_eq!(versioned(&story(|_| {}), "/js/app.1.js", "/js/app.2.js", own), "dcz");
    assert_eq!(versioned(&story(|_| {}), "/js/app.1.js", "/app.2.js", own), "zstd");
    for broken in ["match=\"/:x\"", "match=/app", "match=\"/*\", type=other", "match=\"https://b.test/*\""] {
        let lines = &["Cache-Control: max-age=60", &format!("Use-As-Dictionary: {broken}")];
        assert_eq!(versioned(&story(|_| {}), "/app.js?v=1", "/app.js?v=2", lines), "zstd", "{broken}");
    }
}

#[test]
fn a_dictionary_that_is_called_something_is_asked_for_by_that() {
    let lines = &["Cache-Control: max-age=60", "Use-As-Dictionary: match=\"/app*\", id=\"one\""];
    for (id, coding) in [(&["Dictionary-ID: \"one\""][..], "dcz"), (&["Dictionary-ID: \"two\""], "zstd"), (&[], "zstd")]
    {
        let story = story(|_| {});
        replaced(&story, lines, ContentCoding::Identity);
        let has = has(&script(1));
        let asked = [&[SECURE, BROWSER, &has], id].concat();
        assert_eq!(story.get("/app.js", &asked).field("content-encoding"), coding, "{id:?}");
    }
    let story = story(|_| {});
    replaced(&story, STORED, ContentCoding::Identity);
    let reply = story.get("/app.js", &[SECURE, BROWSER, &has(&script(1)), "Dictionary-ID: \"one\""]);
    assert_eq!(reply.field("content-encoding"), "zstd", "it was not called anything");
}

/// What is wrong with an offer costs its client the dictionary, and nothing else.
#[test]
fn an_offer_that_is_wrong_is_no_offer() {
    let (good, other) = (has(&script(1)), has(&script(3)));
    let cases: [(&str, &[&str]); 11] = [
        ("in the clear", &[BROWSER, &good]),
        ("unknown", &[SECURE, BROWSER, &other]),
        ("two", &[SECURE, BROWSER, &good, &good]),
        ("no hash", &[SECURE, BROWSER, "Available-Dictionary: :AAAA:"]),
        ("no bytes", &[SECURE, BROWSER, "Available-Dictionary: ::"]),
        ("no field", &[SECURE, BROWSER, "Available-Dictionary: \"x\""]),
        ("not wanted", &[SECURE, "Accept-Encoding: zstd, dcz;q=0", &good]),
        ("less wanted", &[SECURE, "Accept-Encoding: zstd, dcz;q=0.5", &good]),
        ("not named", &[SECURE, "Accept-Encoding: zstd, *", &good]),
        ("not readable", &[SECURE, BROWSER, &good, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"]),
        (
            "not shared",
            &[SECURE, BROWSER, &good, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors", "Origin: https://b"],
        ),
    ];
    for (name, lines) in cases {
        let story = story(|_| {});
        replaced(&story, STORED, ContentCoding::Identity);
        for _ in 0..2 {
            let (coding, text) = told(&story.get("/app.js", lines), "");
            assert_eq!((&*coding, text == script(2)), ("zstd", true), "{name}");
        }
        assert_eq!(stats(&story).deltas_made, 0, "{name}");
    }
    let story = story(|_| {});
    replaced(&story, &["Cache-Control: max-age=60", "Access-Control-Allow-Origin: *"], ContentCoding::Identity);
    let shared = [SECURE, BROWSER, &good, "Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors", "Origin: https://b"];
    assert_eq!(story.get("/app.js", &shared).field("content-encoding"), "dcz");
}

#[test]
fn a_text_is_known_to_its_own_host_alone() {
    let story = story(|_| {});
    replaced(&story, STORED, ContentCoding::Identity);
    let ask = |host: &str| {
        let head =
            format!("GET /app.js HTTP/1.1\r\nHost: {host}\r\n{SECURE}\r\n{BROWSER}\r\n{}\r\n\r\n", has(&script(1)));
        story.send(head.as_bytes()).field("content-encoding")
    };
    assert_eq!([ask("b.test"), ask("a.test:8443"), ask("a.test"), ask("A.test:443")], ["zstd", "zstd", "dcz", "dcz"]);
}

#[test]
fn what_is_not_stored_is_never_told_by_a_dictionary() {
    let no_store = &["Cache-Control: no-store"][..];
    let with_cookie = &["Cache-Control: max-age=60", "Set-Cookie: a=1"][..];
    for (lines, asks) in [(no_store, &[][..]), (with_cookie, &[]), (&["Cache-Control: private"], &["Cookie: a=1"])] {
        let story = story(|settings| settings.routes[0].compression = RouteCompression::Always);
        replaced(&story, STORED, ContentCoding::Identity);
        story.origin([plain(lines, &script(2))]);
        let has = has(&script(1));
        for _ in 0..2 {
            let reply = story.get("/app.js", &[&[SECURE, BROWSER, &has], asks].concat());
            assert_eq!(
                (reply.field("content-encoding"), reply.field("use-as-dictionary")),
                ("zstd".into(), String::new())
            );
        }
        assert_eq!(stats(&story).deltas_made, 0, "{lines:?}");
    }
}

#[test]
fn conditions_ranges_and_heads_are_about_what_differs() {
    let story = story(|_| {});
    replaced(&story, STORED, ContentCoding::Identity);
    let has = has(&script(1));
    let lines = [SECURE, BROWSER, &has];
    let whole = story.get("/app.js", &lines).answer.unwrap().body;
    let with = |more: &str| story.get("/app.js", &[&lines[..], &[more]].concat());
    let head = story.ask("HEAD /app.js", &lines, "");
    assert_eq!((head.field("content-encoding"), head.field("content-length")), ("dcz".into(), whole.len().to_string()));
    for tag in ["\"a\"", "W/\"a\""] {
        let reply = with(&format!("If-None-Match: {tag}"));
        assert_eq!((reply.status(), reply.field("vary")), (304, "Accept-Encoding, Available-Dictionary".into()));
    }
    let part = with("Range: bytes=4-19");
    assert_eq!((part.status(), part.field("content-range")), (206, format!("bytes 4-19/{}", whole.len())));
    assert_eq!((&part.answer.as_ref().unwrap().body[..], &*part.field("content-encoding")), (&whole[4..20], "dcz"));
    let conditional = story.get("/app.js", &[&lines[..], &["Range: bytes=4-19", "If-Range: \"a\""]].concat());
    assert_eq!(conditional.status(), 200, "what was made here is never a strong validator");
    assert_eq!(stats(&story).deltas_made, 1);
}

#[test]
fn what_was_made_lives_as_long_as_what_it_was_made_of() {
    let story = story(|_| {});
    replaced(&story, STORED, ContentCoding::Identity);
    let has = has(&script(1));
    let ask = || story.get("/app.js", &[SECURE, BROWSER, &has]);
    assert_eq!(told(&ask(), &script(1)), ("dcz".to_owned(), script(2)));
    story.pass_seconds(61);
    story.origin([answer(304, &["ETag: \"a\"", "Cache-Control: max-age=60", "X-New: 1"], "")]);
    let confirmed = ask();
    assert_eq!((told(&confirmed, &script(1)), &*confirmed.field("x-new")), (("dcz".to_owned(), script(2)), "1"));
    assert_eq!(stats(&story).deltas_made, 1, "it was not made again");
    // The third version goes by the first, and by the second, which is known since it came.
    story.ask("PURGE /app.js", &[SECURE], "");
    story.origin([plain(STORED, &script(3))]);
    assert_eq!(told(&ask(), &script(1)), ("dcz".to_owned(), script(3)));
    let lines = [SECURE, BROWSER, &self::has(&script(2))];
    assert_eq!(told(&story.get("/app.js", &lines), &script(2)), ("dcz".to_owned(), script(3)));
    assert_eq!(stats(&story).deltas_made, 3);
}

#[test]
fn a_text_is_kept_within_its_bounds() {
    let versions = |change: fn(&mut Settings), ticks: bool| {
        let story = story(change);
        for version in 1..6 {
            story.origin([plain(STORED, &script(version))]);
            story.get("/app.js", &[SECURE, BROWSER]);
            story.ask("PURGE /app.js", &[SECURE], "");
            if ticks {
                story.core.shared.cache.note_time(story.core.now());
            }
        }
        story.origin([plain(STORED, &script(6))]);
        let coding =
            |version| story.get("/app.js", &[SECURE, BROWSER, &has(&script(version))]).field("content-encoding");
        (1..6).filter(|&version| coding(version) == "dcz").collect::<Vec<_>>()
    };
    assert_eq!(versions(|_| {}, false), [1, 2, 3, 4, 5]);
    assert_eq!(versions(|_| {}, true), [1, 2, 3, 4, 5]);
    assert_eq!(versions(|settings| settings.limits.dictionary_versions_max = 2, true), [4, 5]);
    assert_eq!(versions(|settings| settings.limits.dictionary_bytes_max = 1_000, true), [0; 0]);
    let three = |settings: &mut Settings| settings.limits.dictionaries_bytes_max = 3 * script(1).len() + 100;
    assert_eq!(versions(three, true), [3, 4, 5]);
    assert_eq!(versions(|settings| settings.compress.dictionaries = false, true), [0; 0]);
}

#[test]
fn a_text_is_forgotten_in_time() {
    let story = story(|settings| settings.limits.dictionary_age_max = Duration::from_secs(100));
    replaced(&story, &["Cache-Control: max-age=600"], ContentCoding::Identity);
    let tick = || story.core.shared.cache.note_time(story.core.now());
    tick();
    assert_eq!(stats(&story).dictionaries, 1);
    assert_eq!(stats(&story).dictionary_bytes as usize, script(1).len());
    let ask =
        || story.get("/app.js", &[SECURE, "Accept-Encoding: zstd, dcz", &has(&script(1))]).field("content-encoding");
    story.pass_seconds(100);
    tick();
    assert_eq!(ask(), "dcz");
    story.pass_seconds(1);
    tick();
    assert_eq!((ask(), stats(&story).dictionary_bytes, stats(&story).dictionaries_given_up), ("zstd".into(), 0, 1));
}

#[test]
fn origins_are_not_told_what_a_client_has() {
    let story = story(|_| {});
    story.origin([plain(STORED, &script(1))]);
    let lines = [SECURE, BROWSER, &has(&script(1)), "Dictionary-ID: \"a\""];
    let reply = story.get("/app.js", &lines);
    let asked = ["accept-encoding", "available-dictionary", "dictionary-id"].map(|name| reply.asked_with(name));
    assert_eq!(asked, [Some("gzip"), None, None]);
    let passed = story.ask("POST /app.js", &lines, "x");
    assert_eq!(passed.asked_with("available-dictionary"), lines[2].split_once(": ").map(|(_, value)| value));
}

#[test]
fn what_an_origin_tells_by_a_dictionary_is_passed_on_as_it_says() {
    let own = |lines: &[&str]| {
        let lines =
            [lines, &["Content-Type: text/javascript", "Content-Encoding: dcz", "Cache-Control: max-age=60"]].concat();
        answer(200, &lines, "what only its client can read")
    };
    let story = story(|_| {});
    story.origin([own(&["Vary: Available-Dictionary"])]);
    let ask = |text| story.get("/own.js", &[SECURE, BROWSER, &has(text)]);
    for (text, verdict) in [("a", CacheVerdict::Miss), ("a", CacheVerdict::Hit), ("b", CacheVerdict::Miss)] {
        let reply = ask(text);
        assert_eq!((reply.verdict().0, reply.body()), (verdict, "what only its client can read"), "{text}");
        assert_eq!((&*reply.field("content-encoding"), &*reply.field("vary")), ("dcz", "Available-Dictionary"));
    }
    // One that does not say for whom it is is for the one who asked.
    story.origin([own(&[])]);
    for _ in 0..2 {
        let reply = story.get("/hidden.js", &[SECURE, BROWSER, &has("a")]);
        assert_eq!((reply.asked().len(), &*reply.field("content-encoding")), (1, "dcz"));
    }
}
