//! The report of a run that was made up, so that every number in it is known.

use super::*;
use crate::lab_clock::Nanos;
use crate::run::ThreadCost;
use crate::tally::Stamps;

fn workload(load: Load) -> Workload {
    Workload {
        load,
        length: crate::Length::Time(Duration::from_secs(2)),
        users: 3,
        timeout: Duration::from_secs(5),
        ..Workload::new(([127, 0, 0, 1], 80).into())
    }
}

/// A thousand answers of 1 to 1,000 ms, each sent half a millisecond late; and errors of two kinds.
fn outcome(busy_share: f64) -> Outcome {
    let mut tally = Tally::default();
    for n in 1..=1000u64 {
        let moment = |micros: u64| Nanos(micros * 1_000);
        let stamps =
            Stamps { intended: moment(0), sent: moment(500), first_byte: moment(600), last_byte: moment(n * 1_000) };
        tally.started += 1;
        tally.note_good(&stamps, 1024);
        tally.send_lag.saturating_record(500);
    }
    tally.note_failed(ErrorKind::ShortBody, Nanos(1_500_000_000), || "/x: 3 bytes of a body of 5".to_owned());
    tally.note_error(ErrorKind::ClientDeadline, 2, Nanos(2_000_000_000), || "cut".to_owned());
    let cpu = Duration::from_secs_f64(2.0 * busy_share);
    Outcome {
        elapsed: Duration::from_secs(2),
        seconds: vec![tally.turn_second()],
        tally,
        threads: vec![ThreadCost { cpu, busy_share }],
        forms: None,
    }
}

const OPEN: Load = Load::Open { per_second: 500.0, arrivals: Arrivals::Poisson };

#[test]
fn the_headline_is_goodput_and_errors_stand_apart() {
    let text = text("http://a/", &workload(Load::Closed), &outcome(0.5));
    for part in [
        "closed loop, 3 users, connections kept, 1 thread\n",
        "goodput       500.0 answers/s, 0.49 MiB/s of bodies\n",
        "1000 good, 1 failed, in 2.00 s; checked: status 2xx or 3xx, length, bytes\n",
        "short-body                  1   from 1.500 s to 1.500 s: closed before the body's end",
        "first: /x: 3 bytes of a body of 5\n",
        "client-deadline             2 ",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("warning") && !text.contains("send lag"), "{text}");
}

#[test]
fn both_latencies_are_shown_and_a_dash_where_samples_are_few() {
    let text = text("http://a/", &workload(OPEN), &outcome(0.5));
    let row = |name: &str| -> Vec<String> {
        let label = format!("{name:<14}");
        let line = text.lines().find(|line| line.starts_with(&label)).unwrap_or_else(|| panic!("{name}\n{text}"));
        line[name.len()..].split("  ").map(str::trim).filter(|w| !w.is_empty()).map(str::to_owned).collect()
    };
    // 1,000 samples: 100 lie beyond p90, 10 beyond p99.
    assert_eq!(row("from intended"), ["500.5 ms", "500.2 ms", "900.1 ms", "–", "–", "–", "1.00 s"]);
    assert_eq!(row("from send")[1], "499.7 ms");
    assert_eq!(row("first byte")[0], "100 µs");
    assert_eq!(row("connect"), ["–"; 7]);
    assert_eq!(row("send lag")[1], "500 µs");
}

#[test]
fn what_may_be_ours_is_warned_of() {
    let mut outcome = outcome(0.9);
    outcome.tally.note_error(ErrorKind::Dropped, 7, Nanos(0), String::new);
    for _ in 0..20_000 {
        outcome.tally.send_lag.saturating_record(900_000);
    }
    let warnings = warnings(&workload(OPEN), &outcome);
    for (warning, part) in warnings.iter().zip(["client-bound", "7 requests were due", "900.1 ms late"]) {
        assert!(warning.contains(part), "{warning}");
    }
    assert_eq!(warnings.len(), 3);
}

#[test]
fn the_json_has_the_same_numbers() {
    let json = json("http://a/", &workload(OPEN), &outcome(0.5));
    assert_eq!(json["format"], REPORT_FORMAT);
    assert_eq!((&json["good"], &json["failed"], &json["goodput_per_second"]), (&1000.into(), &1.into(), &500.0.into()));
    assert_eq!(json["errors"]["short-body"]["count"], 1);
    assert_eq!(json["errors"]["client-deadline"]["is_failure"], false);
    assert!(json["errors"]["bad-bytes"].is_null());
    assert_eq!(json["latency_micros"]["from_intended"]["max"], 1_000_447);
    assert!(json["latency_micros"]["from_intended"]["p99"].is_null());
    assert_eq!(json["seconds"][0]["good"], 1000);
    assert_eq!(json["workload"]["arrivals"], "poisson");
}

#[test]
fn a_coding_is_told_with_what_it_saves() {
    let mut outcome = outcome(0.5);
    outcome.forms = Some(FormsSeen { coding: crate::ContentCoding::Brotli, forms: 2, decoded: 3 });
    outcome.tally.text_bytes = 4 * outcome.tally.body_bytes;
    let text = text("http://a/", &workload(Load::Closed), &outcome);
    let line =
        "encoding      br: 1024 bytes of 4096 on average, 4.00 times as short; 2 forms, 3 bodies undone and compared\n";
    assert!(text.contains(line), "{text}");
    let json = json("http://a/", &workload(Load::Closed), &outcome);
    assert_eq!((&json["encoding"]["coding"], &json["encoding"]["ratio"]), (&"br".into(), &4.0.into()));
    assert!(json["encoding"]["decoded"] == 3 && json["encoding"]["text_bytes"] == 4_096_000);
}

#[test]
fn a_second_is_one_line() {
    let line = second_line(0, &outcome(0.5).seconds[0]);
    assert!(line.starts_with("   1 s      1000 good/s") && line.ends_with("1 failed"), "{line}");
    assert!(second_line(1, &Second::default()).contains("p50        –"));
}
