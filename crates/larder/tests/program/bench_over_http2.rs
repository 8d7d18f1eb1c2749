//! `larder bench --h2` before nginx and H2O, whose access logs are counts of their own, and before a server that ends streams and
//! connections in every way that HTTP/2 has: each under its own name.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench_command::{bench, report};
use crate::fake_http2::{FakeHttp2, STREAMS_OF_A_CONNECTION};
use crate::faulty_origin::FaultyOrigin;
use crate::peer_process::{Running, free_address, wait_until_it_listens};
use crate::secure_site::SecureSite;

/// The report, and whether the program was content.
fn report_of(url: &str, arguments: &str) -> (Value, bool) {
    let mut all: Vec<&str> = arguments.split_whitespace().collect();
    all.extend(["--json", "--h2", "--threads", "2", url]);
    let output = bench(&all);
    let said = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{url}: {error}\n{said}"));
    (json, output.status.success())
}

/// Good answers, and the errors by name.
#[track_caller]
fn check_at(address: SocketAddr, path: &str, arguments: &str, good: u64, errors: &[(&str, u64)]) -> Value {
    let (json, content) = report(address, path, &format!("--h2 {arguments}"));
    let got: Vec<(&str, u64)> = json["errors"]
        .as_object()
        .expect("errors are an object")
        .iter()
        .map(|(name, record)| (name.as_str(), record["count"].as_u64().expect("a count")))
        .collect();
    assert_eq!((json["good"].as_u64(), got.as_slice()), (Some(good), errors), "{path} {arguments}: {json:#}");
    assert_eq!(content, errors.is_empty(), "{path}: exit code");
    json
}

#[track_caller]
fn check(path: &str, arguments: &str, good: u64, errors: &[(&str, u64)]) -> Value {
    check_at(FakeHttp2::start().address, path, arguments, good, errors)
}

#[test]
fn nginx_has_logged_what_was_counted_over_http_2() {
    for (words, scheme) in [("http2", "http"), ("ssl http2", "https")] {
        let site = SecureSite::start(&format!("h2-{scheme}"), "127.0.0.1", 2099, words, "");
        let url = format!("{scheme}://{}/", site.address);
        let secure = if scheme == "https" { format!("--cacert {}", site.cacert) } else { String::new() };
        let common = format!("{secure} --urls {}", site.urls());
        // nginx ends each connection after its thousandth request; that is no error.
        let (many, many_content) = report_of(&url, &format!("-n 5000 -c 2 --streams 8 {common}"));
        let (one, one_content) = report_of(&url, &format!("-n 500 -c 4 --random {common}"));
        let (short, short_content) = report_of(&url, &format!("-n 200 -c 4 --short {common}"));
        let (paced, paced_content) = report_of(&url, &format!("-n 300 -c 3 --streams 4 --rate 3000 {common}"));
        let log = site.log();
        let all = [(&many, many_content, 5000), (&one, one_content, 500), (&short, short_content, 200)];
        for (json, content, good) in all.into_iter().chain([(&paced, paced_content, 300)]) {
            assert!(content && json["good"] == good, "{json:#}");
        }
        assert!(many["http2"]["gone_away"].as_u64().is_some_and(|count| (4..8).contains(&count)), "{many:#}");
        assert_eq!(short["connections_opened"], 200, "{short:#}");
        assert_eq!(log.iter().filter(|line| line.contains(" HTTP/2.0 ") && line.ends_with(" GET 200")).count(), 6000);
        let bytes: u64 = log.iter().filter_map(|line| line.split(' ').next()?.parse::<u64>().ok()).sum();
        let counted = [&many, &one, &short, &paced].map(|json| json["body_bytes"].as_u64().expect("a count"));
        assert_eq!(counted.iter().sum::<u64>(), bytes, "{scheme}");
    }
}

/// Only where it is installed: nothing else here needs it.
#[test]
fn h2o_has_logged_what_was_counted() {
    if Command::new("h2o").arg("--version").stdout(Stdio::null()).status().is_err() {
        return;
    }
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("h2o-{}", std::process::id()));
    std::fs::create_dir_all(place.join("root")).expect("the target folder can be written");
    std::fs::write(place.join("root/page.txt"), "0123456789\n".repeat(9_000))
        .expect("the target folder can be written");
    let (address, root) = (free_address(), place.join("root"));
    let (log, config) = (place.join("access.log"), place.join("h2o.conf"));
    let text = format!(
        "num-threads: 1\nlisten:\n  host: {}\n  port: {}\naccess-log:\n  path: {}\n  format: \"%H %s %b\"\n\
         hosts:\n  default:\n    paths:\n      /:\n        file.dir: {}\n",
        address.ip(),
        address.port(),
        log.display(),
        root.display()
    );
    std::fs::write(&config, text).expect("the target folder can be written");
    let mut command = Command::new("h2o");
    let h2o = command.arg("-c").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let h2o = Running(h2o.expect("it said its version"));
    wait_until_it_listens(address);
    let json = check_at(address, "/page.txt", "-n 2000 -c 3 --streams 20", 2000, &[]);
    assert_eq!(json["body_bytes"], 2000 * 99_000, "{json:#}");
    drop(h2o);
    let log = std::fs::read_to_string(&log).expect("H2O has written its log");
    assert_eq!(log.lines().filter(|line| *line == "HTTP/2 200 99000").count(), 2000);
    let _ = std::fs::remove_dir_all(&place);
}

#[test]
fn every_end_of_a_stream_is_counted_under_its_own_name() {
    for streams in ["-n 20 -c 3", "-n 20 -c 3 --streams 5"] {
        check("/refused", streams, 0, &[("stream-refused", 20)]);
        check("/reset", streams, 0, &[("stream-reset", 20)]);
        check("/reset-later", streams, 0, &[("stream-reset", 20)]);
        check("/busy", streams, 0, &[("bad-status", 20)]);
        check("/truncated", streams, 0, &[("protocol-error", 20)]);
        check("/large", streams, 20, &[]);
    }
    check("/cut", "-n 20 -c 3", 0, &[("short-body", 20)]);
    check("/silent", "-n 4 -c 2 --timeout 200ms", 0, &[("first-byte-timeout", 4)]);
    check("/stalled", "-n 4 -c 2 --timeout 200ms", 0, &[("idle-timeout", 4)]);
}

#[test]
fn a_goaway_in_good_order_costs_no_answer() {
    for arguments in ["-n 1000 -c 2", "-n 1000 -c 2 --streams 7", "-n 1000 -c 2 --streams 7 --rate 20000"] {
        let server = FakeHttp2::start();
        let json = check_at(server.address, "/goaway", arguments, 1000, &[]);
        // What a GOAWAY left undone was asked again, and is answered once.
        let gone_away = json["http2"]["gone_away"].as_u64().expect("a count");
        assert!((1000 / 20..=1000 / STREAMS_OF_A_CONNECTION).contains(&gone_away), "{arguments}: {json:#}");
        assert!(server.asked() >= 1000 && server.connections() >= gone_away, "{arguments}: {}", server.asked());
    }
}

#[test]
fn a_goaway_with_an_error_fails_what_was_under_way() {
    // The tenth stream of each connection meets it.
    check("/abrupt", "-n 200 -c 1", 180, &[("goaway", 20)]);
    check("/abrupt", "-n 10 -c 1 --short", 10, &[]);
    // In good order, but without an answer: asking again might never end.
    check("/at-once", "-n 20 -c 2", 0, &[("goaway", 20)]);
}

#[test]
fn a_stream_that_stands_still_fails_alone() {
    let list = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("streams-{}", std::process::id()));
    std::fs::write(&list, "/silent\n/ok\n/ok?1\n/ok?2\n").expect("the target folder can be written");
    let list = list.to_str().expect("a plain path");
    let server = FakeHttp2::start();
    let arguments = format!("-n 8 -c 1 --streams 3 --timeout 300ms --urls {list}");
    check_at(server.address, "/", &arguments, 6, &[("first-byte-timeout", 2)]);
}

/// One that says nothing at all is given up after a time-out, and not once for each stream.
#[test]
fn a_connection_that_stands_still_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    let address = silent.local_addr().expect("a bound listener has an address");
    let json = check_at(address, "/", "-n 3 -c 1 --streams 2 --timeout 200ms", 0, &[("first-byte-timeout", 3)]);
    assert_eq!(json["connections_opened"], 3, "{json:#}");
}

#[test]
fn the_server_has_the_last_word_about_how_many_streams_there_are() {
    let json = check("/ok", "-n 2000 -c 1 --streams 200", 2000, &[]);
    assert!(json["warnings"].to_string().contains("the server allows 50 streams at once"), "{json:#}");
    assert_eq!(json["workload"]["streams"], 200);
}

#[test]
fn bodies_and_sessions_go_over_streams_as_over_connections() {
    let body = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("body-{}", std::process::id()));
    std::fs::write(&body, "0123456789".repeat(20_000)).expect("the target folder can be written");
    let json = check("/echo", &format!("-n 20 -c 2 --streams 3 --body {}", body.display()), 20, &[]);
    assert_eq!(json["body_bytes"], 20 * 200_000);
    let server = FakeHttp2::start();
    let json = check_at(server.address, "/ok", "--wsess 12,5,0 --burst-length 2 -c 3", 60, &[]);
    // One more was a look whether anybody is there.
    assert_eq!((&json["sessions"]["completed"], server.connections()), (&12.into(), 13), "{json:#}");
}

#[test]
fn who_does_not_speak_http_2_is_no_server_of_it() {
    check_at(FaultyOrigin::start().address, "/rubbish", "-n 6 -c 2", 0, &[("protocol-error", 6)]);
    let site = SecureSite::start("no-h2", "127.0.0.1", 2099, "ssl", "");
    let (json, _) =
        report_of(&format!("https://{}/1.txt", site.address), &format!("-n 6 -c 2 --cacert {}", site.cacert));
    let said = ["tls-alert", "tls-protocol"].map(|name| json["errors"][name]["count"].as_u64().unwrap_or(0));
    assert_eq!((said[0] + said[1], &json["good"]), (6, &0.into()), "{json:#}");
}
