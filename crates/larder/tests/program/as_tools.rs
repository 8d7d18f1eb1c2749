//! `larder bench --as TOOL` beside the tool itself, before one nginx: the same labels in the same order, and where a
//! number of requests was asked for, the same counts to the last byte.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bench_command::{Nginx, bench};
use crate::peer_process::free_address;

/// An nginx with one page, and a place for what tools want to write.
struct Ground {
    nginx: Nginx,
    place: PathBuf,
    host: String,
    port: String,
    url: String,
}

impl Ground {
    /// `words`: behind nginx's `listen`.
    fn new(name: &str, words: &str) -> Ground {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("as-{name}-{}", std::process::id()));
        std::fs::create_dir_all(place.join("root")).expect("the target folder can be written");
        std::fs::write(place.join("root/page.txt"), "0123456789\n".repeat(200))
            .expect("the target folder can be written");
        let address = free_address();
        let nginx = Nginx::start_with(&place, address, words, "");
        let (host, port) = (address.ip().to_string(), address.port().to_string());
        Ground { nginx, place, host, port, url: format!("http://{address}") }
    }

    /// What the tool prints, with `URL`, `HOST` and `PORT` in its arguments filled in.
    fn tool(&self, line: &str) -> String {
        let filled = self.fill(line);
        let mut words = filled.split_whitespace();
        let name = words.next().expect("the tool's name");
        let mut command = Command::new(name);
        let output = command.args(words).env("HOME", &self.place).stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("{name}: {error}; see ./setup"));
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    fn ours(&self, line: &str) -> String {
        let filled = self.fill(line);
        let words: Vec<&str> = filled.split_whitespace().collect();
        let output = bench(&words);
        assert!(output.status.success(), "bench {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    fn fill(&self, line: &str) -> String {
        line.replace("URL", &self.url).replace("HOST", &self.host).replace("PORT", &self.port)
    }

    /// The same labels from the line that begins with `from` on; the same lines where they begin with one of `exact`.
    #[track_caller]
    fn check(&self, tool: &str, ours: &str, from: &str, exact: &[&str]) {
        let (theirs, mine) = (self.tool(tool), self.ours(ours));
        let (labels, my_labels) = (labels(&theirs, from), labels(&mine, from));
        assert!(labels.len() > 8, "{tool}: {theirs}");
        assert_eq!(my_labels, labels, "{ours} beside {tool}:\n{mine}\n{theirs}");
        for start in exact {
            let line = |text: &str| text.lines().map(str::trim).find(|line| line.starts_with(start)).map(str::to_owned);
            assert!(line(&theirs).is_some(), "{tool} has no line {start}: {theirs}");
            assert_eq!(line(&mine), line(&theirs), "{ours} beside {tool}");
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.nginx.stop();
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

/// Lines without their numbers and what stands directly at them. Doubts and progress come as times have it.
fn labels(text: &str, from: &str) -> Vec<String> {
    let is_chance = |line: &str| {
        let doubts = ["WARNING", "ERROR", "progress:", "        ", "       deviation apart", "httperf: warning"];
        doubts.iter().any(|start| line.starts_with(start))
    };
    let lines = text.lines().skip_while(|line| !line.starts_with(from)).filter(|line| !is_chance(line));
    let mut lines: Vec<String> =
        lines.map(|line| line.split_whitespace().map(label).collect::<Vec<_>>().join(" ")).collect();
    // Standard error stands behind standard output here; siege ends it with an empty line.
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

fn label(word: &str) -> &str {
    match (word.split_once('='), word.trim_start_matches(['(', '<', '-']).starts_with(|c: char| c.is_ascii_digit())) {
        (Some((name, _)), _) => name,
        (None, true) => "#",
        (None, false) => word,
    }
}

#[test]
fn ab_prints_the_same() {
    let ground = Ground::new("ab", "");
    let exact = [
        "Server Software:",
        "Server Hostname:",
        "Server Port:",
        "Document Path:",
        "Document Length:",
        "Concurrency Level:",
        "Complete requests:",
        "Failed requests:",
        "Total transferred:",
        "HTML transferred:",
        "Completed 200 requests",
        "Finished 2000 requests",
    ];
    let kept = [&exact[..], &["Keep-Alive requests:"]].concat();
    ground.check("ab -kc 5 -n 2000 URL/page.txt", "-kc 5 -n 2000 URL/page.txt --as ab", "Benchmarking", &kept);
    ground.check("ab -c 5 -n 2000 URL/page.txt", "-c 5 -n 2000 URL/page.txt --as ab", "Benchmarking", &exact);
    let missing = ["Non-2xx responses:", "Failed requests:", "Complete requests:", "Total transferred:"];
    ground.check("ab -k -c 5 -n 100 URL/none", "-k -c 5 -n 100 URL/none --as ab", "Benchmarking", &missing);
}

#[test]
fn siege_prints_the_same() {
    let ground = Ground::new("siege", "");
    let settings = |json: bool| {
        let path = ground.place.join(format!("siegerc-{json}"));
        let text =
            format!("json_output = {json}\nverbose = false\nparser = false\nlogging = false\nprotocol = HTTP/1.1\n");
        std::fs::write(&path, text).expect("the target folder can be written");
        path.display().to_string()
    };
    let json =
        ["{\t\"transactions\":", "\"availability\":", "\"successful_transactions\":", "\"failed_transactions\":"];
    let tool = format!("siege -R {} -b -c 5 -r 40 URL/page.txt", settings(true));
    ground.check(&tool, "-b -c 5 -r 40 URL/page.txt --as siege", "{", &json);
    let text =
        ["Transactions:", "Availability:", "Data transferred:", "Successful transactions:", "Failed transactions:"];
    let tool = format!("siege -R {} -b -c 5 -r 40 URL/page.txt", settings(false));
    ground.check(&tool, "-b -c 5 -r 40 URL/page.txt --as siege-text", "** Preparing", &text);
}

#[test]
fn httperf_prints_the_same() {
    let ground = Ground::new("httperf", "");
    let exact = ["Connection length", "Reply status:", "Reply size", "Errors: total", "Errors: fd-unavail"];
    ground.check(
        "httperf --hog --server HOST --port PORT --uri /page.txt --num-conns 1 --num-calls 500",
        "-c 1 -n 500 URL/page.txt --as httperf",
        "Maximum connect",
        &exact,
    );
    // Word for word what httperf takes.
    let words = "--hog --server HOST --port PORT --uri /page.txt --wsess 20,10,0 --rate 100";
    let total = [&exact[..], &["Session: avg", "Session length histogram:"]].concat();
    ground.check(&format!("httperf {words}"), &format!("{words} --as httperf"), "Maximum connect", &total);
}

#[test]
fn h2load_prints_the_same() {
    let ground = Ground::new("h2load", "");
    let exact = ["requests:", "status codes:", "traffic:"];
    ground.check(
        "h2load --h1 -c 5 -n 500 URL/page.txt",
        "--h1 -c 5 -n 500 URL/page.txt --as h2load",
        "Application",
        &exact,
    );
    ground.check("h2load --h1 -c 5 -n 500 URL/none", "--h1 -c 5 -n 500 URL/none --as h2load", "Application", &exact);
}

/// Frame for frame: what it received is the same to the last byte.
#[test]
fn h2load_prints_the_same_over_http_2() {
    let ground = Ground::new("h2load-2", "http2");
    let exact = ["Application protocol:", "requests:", "status codes:", "traffic:"];
    let asked = "h2load -c 5 -m 3 -n 500 URL/page.txt";
    ground.check(asked, "-c 5 -m 3 -n 500 URL/page.txt --as h2load", "Application", &exact);
    let asked = "h2load -p h2c -c 2 -n 500 URL/none";
    ground.check(asked, "-p h2c -c 2 -n 500 URL/none --as h2load", "Application", &exact);
}

#[test]
fn wrk_prints_the_same() {
    let ground = Ground::new("wrk", "");
    ground.check(
        "wrk --latency -t 1 -c 5 -d 1s URL/page.txt",
        "--latency -t 1 -c 5 -d 1s URL/page.txt --as wrk",
        "Running",
        &["1 threads and 5 connections"],
    );
    ground.check("wrk -t 1 -c 5 -d 1s URL/none", "-t 1 -c 5 -d 1s URL/none --as wrk", "Running", &["1 threads"]);
}
