//! The paces of `larder bench` before real sockets: sessions, logs, steps, ramps, pauses, a proxy, other methods. What
//! was asked is held against the origin's own count.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::bench_command::{Nginx, bench, report};
use crate::faulty_origin::FaultyOrigin;
use crate::peer_process::free_address;

fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("paces-{}-{name}", std::process::id()));
    std::fs::write(&path, text).expect("the target folder can be written");
    path
}

/// The report, whether the program was content, and how often the origin was asked.
fn run(path: &str, arguments: &str) -> (Value, bool, u64) {
    let origin = FaultyOrigin::start();
    let (json, content) = report(origin.address, path, arguments);
    (json, content, origin.asked())
}

/// Sessions begun, completed, failed, by their answers; requests asked; connections.
#[track_caller]
fn check_sessions(path: &str, arguments: &str, sessions: [u64; 3], by_replies: &[u64], asked: u64, connections: u64) {
    let (json, content, origin_asked) = run(path, arguments);
    let got = &json["sessions"];
    assert_eq!([&got["begun"], &got["completed"], &got["failed"]], sessions.map(Value::from).each_ref(), "{json:#}");
    assert_eq!(got["by_replies"], json!(by_replies), "{json:#}");
    assert_eq!((origin_asked, &json["connections_opened"]), (asked, &connections.into()), "{json:#}");
    assert_eq!(content, sessions[2] == 0, "exit code");
}

#[test]
fn sessions_ask_all_their_calls_on_a_connection_of_their_own() {
    check_sessions("/ok", "--wsess 20,5,0.01 --rate 400", [20, 20, 0], &[0, 0, 0, 0, 0, 20], 100, 20);
    check_sessions("/ok", "--wsess 20,5,0.01 --burst-length 3 -c 4", [20, 20, 0], &[0, 0, 0, 0, 0, 20], 100, 20);
    // Without a rate: one after another.
    check_sessions("/ok", "--wsess 3,2,0", [3, 3, 0], &[0, 0, 3], 6, 3);
    check_sessions("/ok", "--wsess 5,3,0 --short", [5, 5, 0], &[0, 0, 0, 5], 15, 15);
}

#[test]
fn a_session_ends_with_its_first_request_that_fails() {
    // Every second answer has other bytes than the first.
    check_sessions("/other-bytes", "--wsess 4,5,0", [4, 0, 4], &[0, 4, 0, 0, 0, 0], 8, 4);
    check_sessions("/closed", "--wsess 4,5,0 -c 2", [4, 0, 4], &[4, 0, 0, 0, 0, 0], 4, 4);
    check_sessions("/silent", "--wsess 4,5,0 -c 4 --timeout 100ms", [4, 0, 4], &[4, 0, 0, 0, 0, 0], 4, 4);
}

#[test]
fn thinking_takes_its_time_and_is_in_no_latency() {
    let (json, content, _) = run("/ok", "--wsess 5,3,0.1 --rate 1000");
    let lifetime = json["sessions"]["lifetime_millis"]["mean"].as_f64().expect("a mean");
    assert!(content && lifetime >= 200.0, "two pauses of 100 ms in {lifetime} ms");
    let latency = json["latency_micros"]["from_intended"]["mean"].as_f64().expect("a mean");
    assert!(latency < 90_000.0, "{latency} µs");
}

#[test]
fn sessions_that_find_no_connection_wait_and_are_dropped_in_the_end() {
    let (json, content, asked) = run("/silent", "--wsess 50,2,0 --rate 100 -c 2 -t 1");
    assert_eq!((&json["errors"]["dropped"]["count"], asked, content), (&48.into(), 2, false), "{json:#}");
    assert_eq!((&json["sessions"]["begun"], &json["sessions"]["cut"]), (&2.into(), &2.into()));
}

#[test]
fn sessions_of_a_file_are_taken_in_turn() {
    let file = written("sessions", "# first\n/ok think=0.05\n /ok\n\t/ok\n/ok\n\n/ok\n");
    let file = file.to_str().expect("a plain path");
    check_sessions("/", &format!("--wsesslog {file}"), [2, 2, 0], &[0, 1, 0, 0, 1], 5, 2);
    check_sessions("/", &format!("--wsesslog 5,0,{file} --rate 100"), [5, 5, 0], &[0, 2, 0, 0, 3], 14, 5);
}

#[test]
fn a_log_is_replayed_at_its_gaps_times_the_speed() {
    let line = |second: u32, request: &str| {
        format!("192.0.2.1 - - [10/Oct/2000:13:55:{second:02} +0200] \"{request}\" 200 5 \"-\" \"x\"\n")
    };
    let log: String = (10..13).flat_map(|s| [line(s, "GET /ok HTTP/1.1"), line(s, "GET /pause HTTP/1.1")]).collect();
    let log = log + &line(12, "POST /ok HTTP/1.1") + "nonsense\n";
    let path = written("access.log", &log);
    let path = path.to_str().expect("a plain path");
    let origin = FaultyOrigin::start();
    let url = format!("http://{}/", origin.address);
    let output = bench(&["--replay", path, "--speed", "4", "--json", &url]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(said.contains("8 lines, 6 requests for 2 URLs") && said.contains("1 POST"), "{said}");
    assert!(said.contains("1 lines are no log lines: line 8: no date in brackets"), "{said}");
    // The last one is half a second after the second second.
    let elapsed = json["elapsed_seconds"].as_f64().expect("a number");
    assert!((2.5 / 4.0..2.0).contains(&elapsed) && origin.asked() == 6 && json["good"] == 6, "{json:#}");
    let (json, content) = report(origin.address, "/", &format!("--replay {path} --speed 0 -c 2"));
    assert!(content && json["good"] == 6 && json["elapsed_seconds"].as_f64() < Some(0.6), "{json:#}");
}

#[test]
fn rates_follow_one_another() {
    let (json, content, asked) = run("/ok", "--rate 50,0,100 --step 400ms --jitter");
    // 20, none, 40; the end of the run may come a moment late, and cut one off.
    assert!(content && (55..=75).contains(&asked), "{asked}: {json:#}");
    assert_eq!(json["workload"]["rates_per_second"], json!([50.0, 0.0, 100.0]));
}

#[test]
fn users_of_a_ramp_pause_between_requests() {
    let (json, content, asked) = run("/ok", "-c 8 -n 100 --think 40ms --ramp 200ms");
    // A hundred pauses of 20 ms on average by eight users.
    let elapsed = json["elapsed_seconds"].as_f64().expect("a number");
    assert!(content && asked == 100 && json["connections_opened"] == 8 && elapsed > 0.15, "{json:#}");
}

#[test]
fn a_proxy_is_asked_for_urls_of_many_hosts() {
    let origin = FaultyOrigin::start();
    let list = written("hosts", "http://one.invalid/ok\nhttp://two.invalid:81/ok\n");
    let proxy = origin.address.to_string();
    let list = list.to_str().expect("a plain path");
    let output = bench(&["-n", "20", "--urls", list, "--proxy", &proxy, "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert!(output.status.success() && json["good"] == 20 && origin.asked() == 20, "{json:#}");
}

#[test]
fn a_unix_socket_is_asked_in_place_of_the_host() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("the target folder can be written");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let (mut reader, mut line) = (BufReader::new(stream.try_clone().expect("a handle")), String::new());
                while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
                    // The empty line ends a head; the Host field is told back.
                    if line.ends_with("\r\n\r\n") {
                        let status = if line.contains("Host: site.invalid\r\n") { "200 OK" } else { "400 No" };
                        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
                        stream.write_all(answer.as_bytes()).expect("the client reads");
                        line.clear();
                    }
                }
            });
        }
    });
    let socket = path.to_str().expect("a plain path");
    let output =
        bench(&["-n", "200", "-c", "3", "--pipeline", "4", "--unix", socket, "--json", "http://site.invalid/"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("a report");
    assert!(output.status.success() && json["good"] == 200 && json["connections_opened"] == 3, "{json:#}");
}

#[test]
fn nginx_has_logged_the_methods_that_were_asked() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-methods-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("root")).expect("the target folder can be written");
    std::fs::write(directory.join("root/a"), "x".repeat(5_000)).expect("the target folder can be written");
    let body = written("body", "a=b");
    let address = free_address();
    let mut nginx = Nginx::start(&directory, address);
    let (head, head_content) = report(address, "/a", "-n 50 -c 2 --pipeline 3 --method head");
    let body = body.to_str().expect("a plain path");
    // It serves no file to a POST.
    let (post, post_content) = report(address, "/a", &format!("-n 40 -c 2 --body {body} --status 405"));
    nginx.stop();
    assert!(head_content && head["good"] == 50 && head["body_bytes"] == 0, "{head:#}");
    assert!(post_content && post["good"] == 40, "{post:#}");
    let log = std::fs::read_to_string(directory.join("access.log")).expect("nginx has written its log");
    let count = |part: &str| log.lines().filter(|line| line.ends_with(part)).count();
    assert_eq!((count(" HEAD 200"), count(" POST 405"), log.lines().count()), (50, 40, 90));
}

#[test]
fn what_cannot_be_read_is_said_in_a_sentence() {
    let check = |arguments: &[&str], part: &str| {
        let output = bench(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(part), "{arguments:?}: {said}");
    };
    let rubbish = written("rubbish", "this\nis\nno\nlog\n");
    let rubbish = rubbish.to_str().expect("a plain path");
    check(&["--replay", rubbish, "http://127.0.0.1:1/"], "is no access log: 4 lines, 0 requests");
    check(&["--replay", rubbish, "http://127.0.0.1:1/"], "line 1: no date in brackets");
    check(&["--replay", "nowhere.log", "http://127.0.0.1:1/"], "nowhere.log: No such file");
    let posts = written("posts", "/a\n/b method=POST contents='x'\n");
    let posts = posts.to_str().expect("a plain path");
    check(&["--wsesslog", posts, "http://127.0.0.1:1/"], "line 2: method=POST is not supported");
    check(&["--rate", "1,2", "http://127.0.0.1:1/"], "--step TIME");
    check(&["--rate", "1,0", "--step", "1S", "http://127.0.0.1:1/"], "a pause, which may not be the last");
    let nobody = free_address().to_string();
    check(&["--proxy", &nobody, "http://one.invalid/"], &format!("cannot connect to {nobody}"));
    check(&["--unix", "/nowhere.sock", "http://a/"], "cannot connect to /nowhere.sock: No such file");
    check(&["--wsess", "5,5,1", &format!("http://{nobody}/")], &format!("cannot connect to {nobody}"));
}
