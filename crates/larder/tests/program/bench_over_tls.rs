//! `larder bench https://…` before nginx, which counts requests and resumed sessions by itself, and before peers that do
//! not finish a handshake: each failure under its own name.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench_command::bench;
use crate::peer_process::{Running, free_address, wait_until_it_listens};
use crate::secure_site::{SecureSite, TestAuthority};

/// The report, and whether the program was content.
fn report(address: SocketAddr, path: &str, arguments: &str) -> (Value, bool) {
    let url = format!("https://{address}{path}");
    let mut all: Vec<&str> = arguments.split_whitespace().collect();
    all.extend(["--json", "--threads", "2", &url]);
    let output = bench(&all);
    let said = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{url}: {error}\n{said}"));
    (json, output.status.success())
}

#[track_caller]
fn check_failed(address: SocketAddr, arguments: &str, name: &str, part: &str) {
    let (json, content) = report(address, "/1.txt", &format!("-n 12 -c 4 {arguments}"));
    let error = &json["errors"][name];
    assert!(!content && json["failed"] == 12 && error["count"] == 12, "{arguments}: {json:#}");
    assert!(error["sample"].as_str().is_some_and(|sample| sample.contains(part)), "{part}: {error:#}");
    assert_eq!(json["tls"]["handshakes"], 0, "a handshake that failed is none: {json:#}");
}

#[test]
fn nginx_has_logged_what_was_counted_over_tls() {
    let site = SecureSite::start("counts", "127.0.0.1", 2099, "ssl", "");
    let common = format!("--cacert {} --urls {}", site.cacert, site.urls());
    let (kept, kept_content) = report(site.address, "/", &format!("-n 2000 -c 4 {common}"));
    let (deep, deep_content) = report(site.address, "/", &format!("-n 2000 -c 4 --pipeline 8 {common}"));
    let (short, short_content) = report(site.address, "/", &format!("-n 200 -c 4 --short {common}"));
    let log = site.log();
    for (json, content, good) in
        [(&kept, kept_content, 2000), (&deep, deep_content, 2000), (&short, short_content, 200)]
    {
        assert!(content && json["good"] == good, "{json:#}");
        assert_eq!(json["tls"]["handshakes"], json["connections_opened"], "{json:#}");
        assert_eq!((&json["tls"]["resumed"], &json["tls"]["verified"]), (&0.into(), &true.into()), "{json:#}");
        assert_eq!(json["latency_micros"]["handshake"]["count"], json["connections_opened"], "{json:#}");
    }
    assert_eq!(short["tls"]["agreed"][0]["version"], "TLSv1.3");
    assert_eq!(log.iter().filter(|line| line.ends_with(" HTTP/1.1 . GET 200")).count(), 4200);
    let bytes: u64 = log.iter().filter_map(|line| line.split(' ').next()?.parse::<u64>().ok()).sum();
    let counted = [&kept, &deep, &short].map(|json| json["body_bytes"].as_u64().expect("a count"));
    assert_eq!(counted.iter().sum::<u64>(), bytes);
}

#[test]
fn sessions_are_resumed_when_that_is_asked_for_and_never_else() {
    for version in ["1.2", "1.3"] {
        let site = SecureSite::start(&format!("resume-{version}"), "127.0.0.1", 2099, "ssl", "");
        let common = format!("--short --cacert {} --tls-max {version}", site.cacert);
        let (resumed, content) = report(site.address, "/1.txt", &format!("-n 400 -c 4 --tls-resume {common}"));
        let (full, full_content) = report(site.address, "/1.txt", &format!("-n 100 -c 4 {common}"));
        let log = site.log();
        assert!(content && full_content, "{resumed:#}\n{full:#}");
        // All but the first connection of each user.
        let count = resumed["tls"]["resumed"].as_u64().expect("a count");
        assert!((396..400).contains(&count), "{version}: {resumed:#}");
        assert_eq!((&full["tls"]["resumed"], &full["tls"]["handshakes"]), (&0.into(), &100.into()), "{full:#}");
        assert_eq!(log.iter().filter(|line| line.contains(" r GET 200")).count() as u64, count, "{version}");
        assert_eq!(resumed["tls"]["agreed"][0]["version"], format!("TLSv{version}"));
    }
}

#[test]
fn a_certificate_that_proves_nothing_is_an_error_of_its_own() {
    let site = SecureSite::start("good", "127.0.0.1", 2099, "ssl", "");
    check_failed(site.address, "", "tls-certificate", "UnknownIssuer");
    let named = SecureSite::start("name", "other.example", 2099, "ssl", "");
    check_failed(named.address, &format!("--cacert {}", named.cacert), "tls-certificate", "not valid for name");
    let expired = SecureSite::start("expired", "127.0.0.1", 2021, "ssl", "");
    check_failed(expired.address, &format!("--cacert {}", expired.cacert), "tls-certificate", "expired");
    for site in [site, named, expired] {
        let (json, content) = report(site.address, "/1.txt", "-n 12 -c 4 --insecure");
        assert!(content && json["good"] == 12 && json["tls"]["verified"] == false, "{json:#}");
    }
}

#[test]
fn a_handshake_that_fails_is_counted_by_how_it_failed() {
    let site = SecureSite::start("modern", "127.0.0.1", 2099, "ssl", "ssl_protocols TLSv1.3;");
    let groups = format!("-n 12 -c 4 --cacert {} --tls-groups secp384r1", site.cacert);
    let (json, content) = report(site.address, "/1.txt", &groups);
    assert!(content && json["tls"]["agreed"][0]["group"] == "secp384r1", "{json:#}");
    check_failed(site.address, &format!("--cacert {} --tls-max 1.2", site.cacert), "tls-alert", "ProtocolVersion");
    let plain = peer(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    check_failed(plain, "--insecure", "tls-protocol", "InvalidContentType");
    let closing = peer(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
    });
    check_failed(closing, "--insecure", "tls-closed", "eof");
    let silent = peer(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    check_failed(silent, "--insecure --timeout 200ms", "tls-timeout", "after 200ms");
}

/// In TLS 1.3 the client has ended its handshake when the server finds that a certificate of the client's is missing.
#[test]
fn an_alert_behind_the_handshake_is_an_alert() {
    let authority = TestAuthority::new();
    let certificate = authority.certificate("127.0.0.1", 2099);
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (chain, key) = (place.join(format!("alert-{}.pem", std::process::id())), place.join("alert.key"));
    std::fs::write(&chain, certificate.chain).expect("the target folder can be written");
    std::fs::write(&key, certificate.key).expect("the target folder can be written");
    let address = free_address();
    let mut server = Command::new("openssl");
    server.args([
        "s_server",
        "-www",
        "-Verify",
        "1",
        "-tls1_3",
        "-alpn",
        "h2,http/1.1",
        "-accept",
        &address.to_string(),
    ]);
    server.arg("-cert").arg(&chain).arg("-key").arg(&key);
    let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _server = Running(server.expect("openssl is installed: see ./setup"));
    wait_until_it_listens(address);
    for protocol in ["", "--h2"] {
        let (json, _) = report(address, "/", &format!("-n 3 -c 1 --insecure {protocol}"));
        let error = &json["errors"]["tls-alert"];
        assert!(
            error["count"] == 3 && error["sample"].as_str().is_some_and(|it| it.contains("CertificateRequired")),
            "{json:#}"
        );
    }
}

/// Does this with each connection, until the tests end.
fn peer(with: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    let address = listener.local_addr().expect("a bound listener has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let with = with.clone();
            std::thread::spawn(move || with(stream));
        }
    });
    address
}

#[test]
fn what_tls_cannot_be_asked_is_said_in_a_sentence() {
    let check = |arguments: &[&str], part: &str| {
        let output = bench(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(part), "{arguments:?}: {said}");
    };
    check(&["--insecure", "http://127.0.0.1/"], "--insecure is for https:// targets");
    check(&["--cacert", "nowhere.pem", "https://127.0.0.1/"], "--cacert nowhere.pem: No such file");
    check(&["--cacert", "Cargo.toml", "https://127.0.0.1/"], "--cacert Cargo.toml: there is no certificate in it");
    check(&["--proxy", "127.0.0.1:1", "https://127.0.0.1/"], "not asked for through a --proxy");
}
