//! The fake origin over real sockets, byte by byte.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::constructed_body::{append_constructed, body_rule};
use crate::fake_origin::{FakeOrigin, OriginSettings, Stalls};
use crate::lab_clock::Nanos;

fn start() -> FakeOrigin {
    FakeOrigin::start("127.0.0.1:0".parse().unwrap(), OriginSettings::default()).unwrap()
}

fn body(path: &str, from: u64, to: u64) -> Vec<u8> {
    let mut out = Vec::new();
    append_constructed(&mut out, body_rule(path), from, to);
    out
}

/// All that comes until the origin closes, which each request here asks for.
fn exchange(origin: &FakeOrigin, request: &str) -> Vec<u8> {
    let mut client = TcpStream::connect(origin.address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
    let mut got = Vec::new();
    // A reset is an end too.
    let _ = client.read_to_end(&mut got);
    got
}

/// The head must have these lines, the body be this one.
#[track_caller]
fn check(origin: &FakeOrigin, request: &str, lines: &[&str], body: &[u8]) {
    let got = exchange(origin, request);
    let end = got.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&got[..end]);
    for line in lines {
        assert!(head.split("\r\n").any(|have| have.starts_with(line)), "{request:?}: no {line} in {head}");
    }
    let same = got[end..] == *body;
    assert!(same, "{request:?}: {head}{}", String::from_utf8_lossy(&got[end..got.len().min(end + 400)]));
}

const CLOSE: &str = "HTTP/1.1\nHost: a\nConnection: close\n";

#[test]
fn answers_are_what_path_and_query_ask_for() {
    let origin = start();
    let ask = |method: &str, target: &str, rest: &str| format!("{method} {target} {CLOSE}{rest}");
    let usual =
        ["HTTP/1.1 200 OK", "Content-Length: 500", "Cache-Control: max-age=3600", "ETag: \"", "Last-Modified: "];
    check(&origin, &ask("GET", "/f500.html", "\n"), &usual, &body("/f500.html", 0, 500));
    check(&origin, &ask("HEAD", "/f500.html", "\n"), &usual, b"");
    check(&origin, &ask("POST", "/f500.html", "Content-Length: 5\n\nhello"), &usual, &body("/f500.html", 0, 500));
    let chunks = "Transfer-Encoding: chunked\n\n3\nabc\n0\n\n";
    check(&origin, &ask("PUT", "/f500.html", chunks), &usual, &body("/f500.html", 0, 500));
    check(&origin, &ask("GET", "/x?r=404&s=3", "\n"), &["HTTP/1.1 404 Not Found"], &body("/x", 0, 3));
    check(&origin, &ask("GET", "/x?r=204&s=3", "\n"), &["HTTP/1.1 204"], b"");
    check(&origin, &ask("GET", "/x?s=3&c=0", "\n"), &["Cache-Control: no-store"], &body("/x", 0, 3));
    check(&origin, &ask("GET", "/x?s=3&vary=a&etag=weak", "\n"), &["Vary: a", "ETag: W/\""], &body("/x", 0, 3));
    let mut chunked = b"9\r\n".to_vec();
    chunked.extend_from_slice(&body("/x", 0, 9));
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    check(&origin, &ask("GET", "/x?s=9&k=1", "\n"), &["Transfer-Encoding: chunked"], &chunked);
    check(&origin, &ask("GET", "/x?s=0&k=1", "\n"), &["Transfer-Encoding: chunked"], b"0\r\n\r\n");
    check(&origin, &ask("HEAD", "/x?s=9&k=1", "\n"), &["Transfer-Encoding: chunked"], b"");
    check(&origin, "GET /x?s=9&k=1 HTTP/1.0\n\n", &["Connection: close"], &body("/x", 0, 9));
    check(&origin, &ask("GET", "/f500.html", "Range: bytes=10-19\n\n"), &["HTTP/1.1 206"], &body("/f500.html", 10, 20));
    check(
        &origin,
        &ask("GET", "/f500.html", "Range: bytes=900-\n\n"),
        &["HTTP/1.1 416", "Content-Range: bytes */500"],
        b"",
    );
    check(&origin, &ask("GET", "/f500.html", "If-None-Match: *\n\n"), &["HTTP/1.1 304", "ETag: \"", "Date: "], b"");
    check(&origin, &ask("GET", "/f3000000.html", "\n"), &["HTTP/1.1 200"], &body("/f3000000.html", 0, 3_000_000));
    check(&origin, &ask("GET", "/lab-requests", "\n"), &["HTTP/1.1 200"], b"16\n");
    assert_eq!(origin.requests(), 16);
}

#[test]
fn faults_are_what_is_seen() {
    let origin = start();
    let ask = |target: &str| format!("GET {target} {CLOSE}\n");
    let mut flipped = body("/x", 0, 100);
    check(&origin, &ask("/x?s=100&cut=7"), &["Content-Length: 100"], &flipped[..7]);
    check(&origin, &ask("/x?s=100&lie=-7"), &["Content-Length: 93"], &flipped);
    check(&origin, &ask("/x?s=100&lie=7"), &["Content-Length: 107"], &flipped);
    check(&origin, &ask("/x?s=100&drip=1000"), &["Content-Length: 100"], &flipped);
    let mut longer = flipped.clone();
    longer.extend_from_slice(b"+++");
    check(&origin, &ask("/x?s=100&extra=3"), &["Content-Length: 100"], &longer);
    flipped[50] ^= 1;
    check(&origin, &ask("/x?s=100&flip=50&every=2"), &["HTTP/1.1 200"], &body("/x", 0, 100));
    check(&origin, &ask("/x?s=100&flip=50&every=2"), &["HTTP/1.1 200"], &flipped);
    check(&origin, &ask("/x?s=3&garble=field"), &["a line without a colon"], &body("/x", 0, 3));
    check(&origin, &ask("/x?s=3&garble=lengths"), &["Content-Length: 3", "Content-Length: 4"], &body("/x", 0, 3));
    check(&origin, &ask("/x?s=3&e=1:503"), &["HTTP/1.1 503", "Cache-Control: no-store"], &body("/x", 0, 3));
    check(&origin, &ask("/x?s=oops"), &["HTTP/1.1 400"], b"`s=oops`: no value for this word; s=20k is one\n");
    assert_eq!(exchange(&origin, &ask("/x?s=3&cut=head")), b"");
    assert_eq!(exchange(&origin, &ask("/x?s=3&rst=head")), b"");
    assert!(exchange(&origin, "GET / HTTP/1.1\nHost: a\nHost: b\n\n").starts_with(b"HTTP/1.1 400 "));
    assert!(exchange(&origin, "CONNECT a:1 HTTP/1.1\nHost: a:1\n\n").starts_with(b"HTTP/1.1 400 "));
}

#[test]
fn requests_in_one_segment_are_answered_in_their_order() {
    let origin = start();
    let request = format!("GET /a?s=3&t=20 HTTP/1.1\nHost: a\n\nGET /b?s=3 HTTP/1.1\nHost: a\n\nGET /c?s=3 {CLOSE}\n");
    let got = String::from_utf8(exchange(&origin, &request)).unwrap();
    let bodies: Vec<&str> = got.split("\r\n\r\n").skip(1).map(|part| &part[..3]).collect();
    let expect = ["/a", "/b", "/c"].map(|path| String::from_utf8(body(path, 0, 3)).unwrap());
    assert_eq!(bodies, expect);
}

#[test]
fn a_body_is_invited_and_an_early_answer_does_not_wait_for_it() {
    let origin = start();
    let expects = "Expect: 100-continue\nContent-Length: 2\n\n";
    let got = exchange(&origin, &format!("POST /x?s=3 {CLOSE}{expects}ok"));
    assert!(got.starts_with(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&got));
    let mut client = TcpStream::connect(origin.address).unwrap();
    client.write_all(b"POST /x?s=3&A=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n").unwrap();
    let mut got = [0; 15];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"HTTP/1.1 200 OK");
}

#[test]
fn delays_and_stalls_hold_an_answer_back() {
    let stalls = Some(Stalls { every: Duration::from_millis(300), lasts: Duration::from_millis(200) });
    let settings = OriginSettings { stalls, ..OriginSettings::default() };
    let begun = Nanos::now();
    let origin = FakeOrigin::start("127.0.0.1:0".parse().unwrap(), settings).unwrap();
    for _ in 0..30 {
        let asked = Nanos::now();
        assert!(exchange(&origin, &format!("GET /x?t=25 {CLOSE}\n")).starts_with(b"HTTP/1.1 200"));
        assert!(asked.until(Nanos::now()) >= Duration::from_millis(25));
    }
    // Of answers 25 ms apart 12 fit before the first stall and at most 5 between two: the last is behind the fourth.
    let took = begun.until(Nanos::now());
    assert!(took >= Duration::from_millis(1_400), "{took:?}");
}
