//! `larder bench --encoding`: against a server that lies about what it sends, each lie under its own name; and against larder and
//! nginx, who do not, over HTTP/1.1, HTTPS and HTTP/2.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use coding::{Coding, Encoder};
use serde_json::Value;

use crate::bench_command::{bench, report};
use crate::origin_process::OriginProcess;
use crate::peer_process::free_address;
use crate::subject::{Kind, Setup, Subject};
use crate::tls_site::TlsSite;

/// Of the looks before the load, which are answered well: one for each page as it is, and one in the coding.
const LOOKS: u64 = 2;

/// A server of one page in gzip. From its third answer on each second one is as the path says.
fn liar() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    let address = listener.local_addr().expect("a bound listener has an address");
    let asked = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let asked = Arc::clone(&asked);
            std::thread::spawn(move || serve(stream, &asked));
        }
    });
    address
}

fn page() -> Vec<u8> {
    b"a page says the same again and again, as pages do; ".repeat(60)
}

fn gzip(text: &[u8], level: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(Coding::Gzip, level).expect("a level that there is");
    encoder.encode(text, &mut out).expect("an open encoder takes text");
    encoder.finish(&mut out).expect("and an end");
    out
}

fn serve(mut stream: TcpStream, asked: &AtomicU64) {
    let mut received = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut part) {
        received.extend_from_slice(&part[..count]);
        while let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).to_lowercase();
            received.drain(..end + 4);
            let number = asked.fetch_add(1, Ordering::SeqCst);
            let path = head.split(' ').nth(1).unwrap_or_default();
            let is_lie = number >= LOOKS && number % 2 == 1;
            let way = if is_lie { path } else { "/honest" };
            let (answer, goes_on) = answer(way, head.contains("accept-encoding: gzip"), number);
            if stream.write_all(&answer).is_err() || !goes_on {
                return;
            }
        }
    }
}

/// What is sent, and whether the connection stays.
fn answer(way: &str, takes_gzip: bool, number: u64) -> (Vec<u8>, bool) {
    let text = page();
    let mut other = text.clone();
    other[17] ^= 1;
    let good = gzip(&text, 6);
    let whole = |field: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\nVary: Accept-Encoding\r\n{field}Content-Length: {}\r\n\r\n", body.len());
        ([head.as_bytes(), body].concat(), true)
    };
    let said = "Content-Encoding: gzip\r\n";
    match way {
        _ if !takes_gzip => whole("", &text),
        "/plain" => whole("", &text),
        "/other-name" => whole("Content-Encoding: br\r\n", &good),
        "/twice" => whole("Content-Encoding: gzip, gzip\r\n", &good),
        "/not-coded" => whole(said, &text),
        "/other-page" => whole(said, &gzip(&other, 6)),
        "/longer-page" => whole(said, &gzip(&[&text[..], b"!"].concat(), 6)),
        "/cut" => whole(said, &good[..good.len() - 3]),
        "/bomb" => whole(said, &gzip(&vec![0; 8 << 20], 9)),
        "/broken-off" => {
            let (mut all, _) = whole(said, &good);
            all.truncate(all.len() - 5);
            (all, false)
        }
        // A coding that is made anew, and better, is as good a one; and so is one that comes in parts.
        "/better" => whole(said, &gzip(&text, 1 + (number % 9) as u8)),
        "/in-chunks" => {
            let mut all = format!("HTTP/1.1 200 OK\r\n{said}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
            for chunk in good.chunks(11) {
                all.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                all.extend_from_slice(chunk);
                all.extend_from_slice(b"\r\n");
            }
            all.extend_from_slice(b"0\r\n\r\n");
            (all, true)
        }
        _ => whole(said, &good),
    }
}

/// Twenty requests of one user: ten are answered well.
#[track_caller]
fn check(path: &str, error: Option<&str>) -> Value {
    let (json, content) = report(liar(), path, "--encoding gzip -n 20 -c 1");
    let expect = if error.is_some() { 10 } else { 20 };
    let errors = json["errors"].as_object().expect("errors are an object");
    let names: Vec<&str> = errors.keys().map(String::as_str).collect();
    assert_eq!((json["good"].as_u64(), names), (Some(expect), error.into_iter().collect()), "{path}: {json:#}");
    assert_eq!(content, error.is_none(), "{path}: exit code");
    json
}

#[test]
fn every_lie_has_its_name() {
    for path in ["/plain", "/other-name", "/twice"] {
        check(path, Some("bad-encoding"));
    }
    for path in ["/not-coded", "/other-page", "/longer-page", "/cut", "/bomb"] {
        check(path, Some("bad-decoded"));
    }
    check("/broken-off", Some("short-body"));
    let json = check("/other-page", Some("bad-decoded"));
    let sample = json["errors"]["bad-decoded"]["sample"].as_str().expect("a sample");
    assert!(sample.contains("/other-page: the bytes that come out of it are not those of the page"), "{sample}");
}

#[test]
fn a_page_may_come_in_several_right_forms() {
    let json = check("/better", None);
    assert!(json["encoding"]["forms"].as_u64() > Some(1), "{json:#}");
    let json = check("/in-chunks", None);
    assert_eq!((&json["encoding"]["forms"], &json["encoding"]["decoded"]), (&1.into(), &1.into()), "{json:#}");
    let (good, text) = (gzip(&page(), 6).len() as f64, page().len() as f64);
    let ratio = json["encoding"]["ratio"].as_f64().expect("a ratio");
    assert!((ratio - text / good).abs() < 0.001, "{ratio} of {text} / {good}");
}

#[test]
fn what_is_not_there_in_the_coding_is_not_loaded() {
    let check = |arguments: &[&str], part: &str| {
        let output = bench(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(part), "{arguments:?}: {said}");
    };
    let url = format!("http://{}/", liar());
    let look =
        "before the load the pages are looked at in zstd: 0 of 1 were good; bad-encoding: /: no Content-Encoding";
    check(&["--encoding", "zstd", "-n", "1", &url], look);
    check(&["--encoding", "deflate", &url], "one of gzip, br, zstd");
    check(&["--encoding", "gzip", "--as", "ab", &url], "cannot be used with");
    check(&["--encoding", "gzip", "-H", "accept-encoding: br", &url], "no -H of that name");
    check(&["--encoding", "gzip", "--method", "HEAD", &url], "cannot be used with");
    check(&["--encoding", "gzip", &format!("memcached://{}", free_address())], "--encoding is for http://");
}

/// Larder before the lab's origin.
#[test]
fn larder_is_found_right_in_every_coding() {
    let origin = OriginProcess::start("");
    let larder = Subject::start(Kind::Larder, origin.address, &Setup::default());
    for coding in ["gzip", "br", "zstd"] {
        for path in ["/t75356.html", "/t75356.html?k=1&x=chunked", "/t3000.html"] {
            let path = format!("{path}{}for={coding}", if path.contains('?') { '&' } else { '?' });
            let (json, content) = report(larder.address, &path, &format!("--encoding {coding} -n 300 -c 8"));
            assert!(content && json["good"] == 300, "{path}: {json:#}");
            let ratio = json["encoding"]["ratio"].as_f64();
            assert!(ratio > Some(2.5), "{path} in {coding}: {ratio:?}");
        }
    }
}

/// The same over HTTPS, with HTTP/1.1 and HTTP/2.
#[test]
fn a_coding_is_judged_over_tls_and_http_2() {
    let origin = OriginProcess::start("");
    let mut larder = TlsSite::start("", "[[listen]]\naddress = \"127.0.0.1:0\"");
    let echo = larder.origin.to_string();
    larder.change(|config| config.replace(&echo, &origin.address.to_string()));
    for (coding, over) in [("gzip", ""), ("zstd", "--h2 --streams 4"), ("br", "--h2 --streams 4")] {
        let url = format!("https://127.0.0.1:{}/t75356.html?over={}", larder.tls.port(), over.len());
        let flags = format!("--encoding {coding} -n 200 -c 3 --insecure --json {over}");
        let output = bench(&flags.split_whitespace().chain([&*url]).collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stderr);
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        assert!(output.status.success() && json["good"] == 200, "{coding} {over}: {json:#}");
        assert!(json["encoding"]["ratio"].as_f64() > Some(2.5), "{coding} {over}: {json:#}");
    }
}
