//! Does `larder bench` count what was? Each fault under its own name and as often as the origin's record has it, and
//! the same numbers as ab and h2load wherever the number of requests is fixed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bench_command::{Nginx, bench};
use crate::origin_process::{OriginProcess, Recorded};
use crate::peer_process::free_address;

fn report(url: &str, arguments: &str) -> Value {
    let mut all: Vec<&str> = arguments.split_whitespace().collect();
    all.extend(["--json", "--threads", "1", url]);
    let output = bench(&all);
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{url}: {error}\n{said}"))
}

fn errors(report: &Value) -> BTreeMap<String, u64> {
    let all = report["errors"].as_object().expect("errors are an object");
    all.iter().map(|(name, record)| (name.clone(), record["count"].as_u64().expect("a count"))).collect()
}

/// The name, and of which lines of the record that many there must be; all others are good answers.
#[track_caller]
fn check(target: &str, arguments: &str, name: &str, fails: impl Fn(&Recorded) -> bool) -> u64 {
    let origin = OriginProcess::start("");
    let report = report(&format!("http://{}{target}", origin.address), arguments);
    let record = origin.record();
    let failed = record.iter().filter(|row| fails(row)).count() as u64;
    let expect: BTreeMap<String, u64> = (failed > 0).then(|| (name.to_owned(), failed)).into_iter().collect();
    let good = record.len() as u64 - failed;
    assert_eq!((errors(&report), report["good"].as_u64()), (expect, Some(good)), "{target} {arguments}: {report:#}");
    failed
}

#[test]
fn every_fault_of_the_origin_has_its_name_and_its_number() {
    let all = |_: &Recorded| true;
    for connection in ["-n 40 -c 4", "-n 40 -c 4 --short"] {
        check("/f500.html?cut=100", connection, "short-body", all);
        check("/f500.html?k=1&cut=100", connection, "short-body", all);
        check("/f500.html?rst=head", connection, "read-reset", all);
        check("/f500.html?cut=head", connection, "no-answer", all);
        check("/f500.html?lie=9&C=1", connection, "short-body", all);
        check("/f500.html?e=1:500", connection, "bad-status", all);
        check("/f500.html?r=404", connection, "bad-status", all);
        for head in ["line", "field", "nul", "lengths"] {
            check(&format!("/f500.html?garble={head}"), connection, "protocol-error", all);
        }
    }
    check("/f500.html?lie=-9", "-n 40 -c 4", "long-body", all);
    check("/f500.html?extra=9", "-n 40 -c 4", "long-body", all);
    check("/f500.html?rst=100", "-n 40 -c 4", "read-reset", all);
    let patience = "-n 8 -c 4 --timeout 300ms";
    check("/f500.html?stop=head", patience, "first-byte-timeout", all);
    check("/f500.html?stop=100", patience, "idle-timeout", all);
    check("/f500.html?lie=9", patience, "idle-timeout", all);
}

#[test]
fn a_fault_now_and_then_is_counted_as_often_as_it_was() {
    let cut = |row: &Recorded| row.ending == "cut";
    assert_eq!(check("/f5000.html?cut=100&every=10", "-n 1000 -c 5", "short-body", cut), 100);
    assert_eq!(check("/f5000.html?cut=head&every=10", "-n 1000 -c 5", "no-answer", cut), 100);
    let reset = |row: &Recorded| row.ending == "reset";
    assert_eq!(check("/f5000.html?rst=head&every=4", "-n 1000 -c 5", "read-reset", reset), 250);
    let failed = check("/f5000.html?e=0.2:503", "-n 1000 -c 5", "bad-status", |row| row.status == 503);
    assert!((120..280).contains(&failed), "{failed}");
    let failed = check("/f5000.html?cut=100&share=0.1", "-n 1000 -c 5", "short-body", cut);
    assert!((40..180).contains(&failed), "{failed}");
}

/// The first answer is the measure of the others: its bytes, and its length.
#[test]
fn other_bytes_and_other_lengths_are_found() {
    let origin = OriginProcess::start("");
    let url = |target: &str| format!("http://{}{target}", origin.address);
    let flipped = report(&url("/f5000.html?flip=4999&every=2"), "-n 100 -c 1");
    assert_eq!(errors(&flipped), [("bad-bytes".to_owned(), 50)].into(), "{flipped:#}");
    let random = report(&url("/f5000.html?R=1"), "-n 100 -c 1");
    assert_eq!(errors(&random), [("bad-bytes".to_owned(), 99)].into(), "{random:#}");
    let lengths = report(&url("/x?s=100mr&r=200"), "-n 2 -c 1");
    assert_eq!(errors(&lengths), [("bad-length".to_owned(), 1)].into(), "{lengths:#}");
    for unseen in ["/f5000.html?flip=4999&every=2", "/f5000.html?R=1"] {
        let report = report(&url(unseen), "-n 100 -c 1 --check length");
        assert_eq!((report["good"].as_u64(), errors(&report).len()), (Some(100), 0), "{unseen}: {report:#}");
    }
    // By construction the same in the whole and in chunks, however they are cut.
    let whole = report(&url("/f300000.html?k=1"), "-n 20 -c 2");
    assert_eq!((whole["good"].as_u64(), whole["body_bytes"].as_u64()), (Some(20), Some(6_000_000)), "{whole:#}");
}

#[test]
fn a_port_that_nobody_listens_at_is_refused_and_counted() {
    // At an address of its own: whoever started beside it on the same port would be asked in its place.
    let origin = OriginProcess::start_at("127.0.91.1:0", "");
    let url = format!("http://{}/f100.html", origin.address);
    let ended = std::thread::spawn({
        let url = url.clone();
        move || report(&url, "-t 3 -c 2 --short")
    });
    while origin.count() < 20 {
        std::thread::yield_now();
    }
    let record = origin.record();
    let report = ended.join().expect("the run ends");
    let refused = report["errors"]["conn-refused"]["count"].as_u64();
    assert!(refused.is_some_and(|count| count > 0), "{report:#}");
    // What was under way when it ended was answered, reset or cut; all before was good.
    let good = report["good"].as_u64().expect("a count");
    assert!(
        good <= record.len() as u64 && good + 2 >= record.len() as u64,
        "{} in the record: {report:#}",
        record.len()
    );
}

/// What another tool prints.
fn tool(line: &str) -> String {
    let mut words = line.split_whitespace();
    let name = words.next().expect("the tool's name");
    let output = Command::new(name).args(words).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}; see ./setup"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The first number of the line that begins so; 0 without one, as ab prints no line of nothing.
fn number(text: &str, begins: &str) -> u64 {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(begins));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn a_fixed_number_of_requests_is_the_same_number_to_ab_and_h2load() {
    for (query, fails) in [("", false), ("?e=0.3:500", true)] {
        let origin = OriginProcess::start("");
        let url = format!("http://{}/f500.html{query}", origin.address);
        let ours = report(&url, "-n 700 -c 7");
        let record = origin.record();
        let of = |record: &[Recorded]| record.iter().filter(|row| row.status == 500).count() as u64;
        let failed = errors(&ours).get("bad-status").copied().unwrap_or(0);
        assert_eq!((ours["good"].as_u64(), failed), (Some(700 - of(&record)), of(&record)), "{ours:#}");
        let bytes: u64 = record.iter().filter(|row| row.status == 200).map(|row| row.body_bytes).sum();
        assert_eq!(ours["body_bytes"].as_u64(), Some(bytes), "{ours:#}");

        let origin = OriginProcess::start("");
        let ab = tool(&format!("ab -q -k -n 700 -c 7 http://{}/f500.html{query}", origin.address));
        let (count, record) = (origin.count(), origin.record());
        assert_eq!((count, record.len()), (700, 700), "{ab}");
        assert_eq!(number(&ab, "Complete requests:"), 700, "{ab}");
        assert_eq!(number(&ab, "Non-2xx responses:"), of(&record), "{ab}");
        assert_eq!(number(&ab, "HTML transferred:"), 350_000, "{ab}");
        assert_eq!(fails, of(&record) > 0);
        if !fails {
            assert_eq!(ours["body_bytes"], number(&ab, "HTML transferred:"), "{ab}");
        }

        let origin = OriginProcess::start("");
        let h2load = tool(&format!("h2load --h1 -n 700 -c 7 http://{}/f500.html{query}", origin.address));
        let record = origin.record();
        assert!(h2load.contains(&format!("{} succeeded, {} failed", 700 - of(&record), of(&record))), "{h2load}");
        assert!(h2load.contains(&format!("{} 2xx, 0 3xx, 0 4xx, {} 5xx", 700 - of(&record), of(&record))), "{h2load}");
    }
}

/// nginx knows none of us: what its access log has for each tool is what each tool says.
#[test]
fn nginx_has_logged_the_same_for_each_tool() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("counts-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("root")).expect("the target folder can be written");
    std::fs::write(directory.join("root/page.txt"), "0123456789".repeat(50)).expect("the target folder can be written");
    let address = free_address();
    let url = format!("http://{address}/page.txt");
    let logged = |run: &dyn Fn() -> String| {
        let mut nginx = Nginx::start(&directory, address);
        let said = run();
        nginx.stop();
        let log = std::fs::read_to_string(directory.join("access.log")).expect("nginx has written its log");
        let _ = std::fs::remove_file(directory.join("access.log"));
        let good = log.lines().filter(|line| line.starts_with("500 ") && line.ends_with(" 200"));
        (said, good.count() as u64, log.lines().count() as u64)
    };
    let (ours, good, all) = logged(&|| report(&url, "-n 900 -c 9").to_string());
    let ours: Value = serde_json::from_str(&ours).expect("it was JSON");
    assert_eq!((ours["good"].as_u64(), good, all), (Some(900), 900, 900), "{ours:#}");
    assert_eq!(ours["body_bytes"], 450_000);
    let (ab, good, all) = logged(&|| tool(&format!("ab -q -k -n 900 -c 9 {url}")));
    assert_eq!((number(&ab, "Complete requests:"), good, all), (900, 900, 900), "{ab}");
    let (h2load, good, all) = logged(&|| tool(&format!("h2load --h1 -n 900 -c 9 {url}")));
    assert!(h2load.contains("900 succeeded, 0 failed") && (good, all) == (900, 900), "{h2load}");
    // wrk takes a last look when its time is up, and leaves with what is under way: the same but for a few.
    let (wrk, good, _) = logged(&|| tool(&format!("wrk -t 1 -c 9 -d 1 {url}")));
    let said = wrk.lines().find_map(|line| line.trim().split_once(" requests in ")?.0.parse::<u64>().ok());
    assert!(said.is_some_and(|said| said.abs_diff(good) <= 18), "{good} in the log: {wrk}");
    // Ours says what it cut off: at most one request of each connection.
    let (ours, good, all) = logged(&|| report(&url, "-t 1 -c 9").to_string());
    let ours: Value = serde_json::from_str(&ours).expect("it was JSON");
    let said = ours["good"].as_u64().expect("a count");
    assert!(said <= good && all <= said + 9, "{all} in the log: {ours:#}");
    let _ = std::fs::remove_dir_all(&directory);
}
