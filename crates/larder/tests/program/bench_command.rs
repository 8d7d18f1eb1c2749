//! `larder bench` against origins whose faults are known: each must be counted under its own name, and nothing else.
//! And against a real nginx, whose access log is a count that nobody of ours has made.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::faulty_origin::{FaultyOrigin, PAUSE_MS};
use crate::peer_process::free_address;

pub fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("bench").args(arguments).stdin(Stdio::null()).output().expect("larder can be started")
}

/// The report, and whether the program was content.
pub fn report(address: SocketAddr, path: &str, arguments: &str) -> (Value, bool) {
    let url = format!("http://{address}{path}");
    let mut all: Vec<&str> = arguments.split_whitespace().collect();
    all.extend(["--json", "--threads", "2", &url]);
    let output = bench(&all);
    let said = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{path}: {error}\n{said}"));
    (json, output.status.success())
}

/// Good answers, and the errors by name.
#[track_caller]
fn check(path: &str, arguments: &str, good: u64, errors: &[(&str, u64)]) {
    let origin = FaultyOrigin::start();
    let (json, content) = report(origin.address, path, arguments);
    let got: Vec<(&str, u64)> = json["errors"]
        .as_object()
        .expect("errors are an object")
        .iter()
        .map(|(name, record)| (name.as_str(), record["count"].as_u64().expect("a count")))
        .collect();
    assert_eq!((json["good"].as_u64(), got.as_slice()), (Some(good), errors), "{path} {arguments}: {json:#}");
    assert_eq!(content, errors.is_empty(), "{path}: exit code");
    for (name, _) in errors {
        let record = &json["errors"][name];
        assert!(!record["sample"].as_str().expect("a sample").is_empty(), "{record}");
        assert!(record["first_seconds"].as_f64() <= record["last_seconds"].as_f64(), "{record}");
    }
}

#[test]
fn every_fault_is_counted_under_its_own_name() {
    check("/truncated", "-n 20 -c 3", 0, &[("short-body", 20)]);
    check("/chunk-lost", "-n 20 -c 3", 0, &[("short-body", 20)]);
    check("/too-long", "-n 20 -c 3", 0, &[("long-body", 20)]);
    check("/other-length", "-n 20 -c 1", 10, &[("bad-length", 10)]);
    check("/other-bytes", "-n 20 -c 1", 10, &[("bad-bytes", 10)]);
    check("/busy", "-n 20 -c 3", 0, &[("bad-status", 20)]);
    check("/rubbish", "-n 20 -c 3", 0, &[("protocol-error", 20)]);
    check("/closed", "-n 20 -c 3", 0, &[("no-answer", 20)]);
    check("/reset", "-n 20 -c 3", 0, &[("read-reset", 20)]);
    check("/silent", "-n 4 -c 2 --timeout 200ms", 0, &[("first-byte-timeout", 4)]);
    check("/stalled", "-n 4 -c 2 --timeout 200ms", 0, &[("idle-timeout", 4)]);
}

/// With the time-out as the only limit each of the two users would ask once in this time.
#[test]
fn a_connection_that_is_announced_to_close_and_does_not_is_left() {
    let origin = FaultyOrigin::start();
    let (json, content) = report(origin.address, "/says-close", "-n 6 -c 2 --timeout 1H");
    assert!(content && json["good"] == 6, "{json:#}");
    let warnings = json["warnings"].to_string();
    assert!(warnings.contains("announced to close and left open"), "{warnings}");
}

#[test]
fn a_check_that_is_off_finds_nothing() {
    check("/other-bytes", "-n 20 -c 1 --check length", 20, &[]);
    check("/other-length", "-n 20 -c 1 --check status", 20, &[]);
    check("/busy", "-n 20 -c 3 --check none", 20, &[]);
    check("/busy", "-n 20 -c 3 --status 503", 20, &[]);
    check("/ok", "-n 20 -c 3 --status 404", 0, &[("bad-status", 20)]);
}

#[test]
fn what_the_end_cuts_off_and_what_was_never_sent_stand_apart() {
    let origin = FaultyOrigin::start();
    let (json, _) = report(origin.address, "/silent", "-t 1 -c 2");
    assert_eq!((&json["failed"], &json["errors"]["client-deadline"]["count"]), (&0.into(), &2.into()), "{json:#}");
    // Two users wait for ever, so all but two of the starts that were due are dropped.
    let (json, content) = report(origin.address, "/silent", "-t 1 -c 2 --rate 100");
    let dropped = json["errors"]["dropped"]["count"].as_u64();
    assert!(dropped.is_some_and(|count| (97..=99).contains(&count)) && !content, "{json:#}");
}

#[test]
fn the_number_of_requests_is_exact_whatever_the_connections() {
    for arguments in ["-n 1000 -c 7", "-n 1000 -c 7 --pipeline 5", "-n 1000 -c 7 --short", "-n 300 -c 7 --rate 3000"] {
        let origin = FaultyOrigin::start();
        let (json, content) = report(origin.address, "/ok", arguments);
        let (good, asked) = (json["good"].as_u64(), origin.asked());
        assert!(content && good == Some(asked), "{arguments}: {good:?} of {asked}: {json:#}");
        assert_eq!(asked, if arguments.contains("300 ") { 300 } else { 1000 }, "{arguments}");
        let connections = json["connections_opened"].as_u64();
        let expect = if arguments.contains("short") { 1000..=1000 } else { 1..=7 };
        assert!(connections.is_some_and(|count| expect.contains(&count)), "{arguments}: {connections:?}");
    }
}

#[test]
fn a_pause_of_the_server_is_in_the_latency_from_the_intended_start() {
    let origin = FaultyOrigin::start();
    let (json, content) = report(origin.address, "/pause", "-n 200 -c 1 --rate 200");
    let mean = |name: &str| json["latency_micros"][name]["mean"].as_f64().expect("a mean");
    // One user, a request each 5 ms: while the one waits for 400 ms, 80 more are due and late by 400, 395, … ms.
    let late_micros: u64 = (0..PAUSE_MS / 5).map(|n| (PAUSE_MS - 5 * n) * 1_000).sum();
    let (intended, sent) = (mean("from_intended"), mean("from_send"));
    assert!(content && intended >= late_micros as f64 / 200.0 * 0.99, "{intended} µs: {json:#}");
    assert!(sent * 3.0 < intended, "from send {sent} µs, from intended {intended} µs: {json:#}");
}

#[test]
fn what_cannot_be_run_is_said_in_a_sentence() {
    let check = |arguments: &[&str], part: &str| {
        let output = bench(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(part), "{arguments:?}: {said}");
    };
    let nobody = free_address();
    check(&["-n", "5", &format!("http://{nobody}/")], &format!("cannot connect to {nobody}: Connection refused"));
    let list = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("urls-{}", std::process::id()));
    std::fs::write(&list, "/a\n\n/b c\n").expect("the target folder can be written");
    let list = list.to_str().expect("a plain path");
    check(&["--urls", list, "http://127.0.0.1/"], "line 3: ' ' may not stand in a URL");
    check(&["--urls", list], "line 1 is a path");
    check(&["--urls", "nowhere.txt"], "nowhere.txt: No such file");
    check(&["-H", "nonsense", "http://127.0.0.1/"], "`nonsense` is no header field");
}

#[test]
fn nginx_has_logged_what_was_counted() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}", std::process::id()));
    let root = directory.join("root");
    std::fs::create_dir_all(&root).expect("the target folder can be written");
    let mut list = String::new();
    for number in 0..50 {
        std::fs::write(root.join(format!("{number}.txt")), format!("{number}\n").repeat(100 * number))
            .expect("the target folder can be written");
        list.push_str(&format!("/{number}.txt\n"));
    }
    let urls = directory.join("urls");
    std::fs::write(&urls, list).expect("the target folder can be written");
    let address = free_address();
    let mut nginx = Nginx::start(&directory, address);
    let urls = urls.to_str().expect("a plain path");
    // nginx closes each connection after its thousandth request; that is no error.
    let (json, content) = report(address, "/", &format!("-n 5000 -c 2 --pipeline 4 --urls {urls}"));
    let (random, random_content) = report(address, "/", &format!("-n 1000 -c 4 --random --short --urls {urls}"));
    nginx.stop();
    assert!(content && json["good"] == 5000, "{json:#}");
    assert!(random_content && random["good"] == 1000 && random["connections_opened"] == 1000, "{random:#}");
    assert!(json["connections_opened"].as_u64().is_some_and(|count| (5..100).contains(&count)), "{json:#}");
    let log = std::fs::read_to_string(directory.join("access.log")).expect("nginx has written its log");
    // What nginx did not answer on a connection that it closed is asked again, and logged once.
    assert_eq!(log.lines().filter(|line| line.ends_with(" GET 200")).count(), 6000);
    // In turn: 5,000 requests are 100 rounds of the list. Sizes as nginx has sent them are what was counted.
    let bytes: u64 = log.lines().take(5000).filter_map(|line| line.split(' ').next()?.parse::<u64>().ok()).sum();
    assert_eq!(json["body_bytes"].as_u64(), Some(bytes));
}

pub struct Nginx {
    child: Child,
}

impl Nginx {
    pub fn start(directory: &Path, address: SocketAddr) -> Nginx {
        Nginx::start_with(directory, address, "", "")
    }

    /// `listen`: words behind the address; `settings`: of the server.
    pub fn start_with(directory: &Path, address: SocketAddr, listen: &str, settings: &str) -> Nginx {
        let place = directory.display();
        let config = format!(
            "daemon off; master_process off; pid {place}/pid; error_log {place}/error.log;\n\
             events {{ worker_connections 256; }}\n\
             http {{ log_format f '$body_bytes_sent $server_protocol $ssl_session_reused $request_method $status'; access_log {place}/access.log f;\n\
             client_body_temp_path {place}/b; proxy_temp_path {place}/p;\n\
             fastcgi_temp_path {place}/f; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;\n\
             server {{ listen {address} {listen}; keepalive_requests 1000; root {place}/root; {settings} }} }}\n"
        );
        let path = directory.join("nginx.conf");
        std::fs::write(&path, config).expect("the target folder can be written");
        // Where Debian keeps it, which is in the PATH of administrators only.
        let path_with_sbin = format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("nginx");
        command.env("PATH", path_with_sbin);
        command.args(["-c", path.to_str().expect("a plain path"), "-e", "/dev/null"]);
        let nginx = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let nginx = Nginx { child: nginx.expect("nginx is installed: see ./setup") };
        let started = crate::lane::now_ms();
        while TcpStream::connect(address).is_err() {
            assert!(crate::lane::now_ms() - started < 20_000, "nginx does not listen");
            std::thread::yield_now();
        }
        nginx
    }

    /// Not by force: the last line of its log is written after the answer that it is about.
    pub fn stop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
