//! Each form of one made-up outcome, in full: what a script of somebody else would see.

use super::*;
use crate::answer::{Answer, BodySeen};
use crate::answer_coding::SaidCoding;
use crate::lab_clock::Nanos;
use crate::session_tally::SessionTally;
use crate::tally::{Life, Second, Stamps};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nServer: made-up/1\r\nContent-Length: 1000\r\n\r\n";

/// Two users, each with a connection of two seconds; 2,000 answers of 1,000 bytes, of which ten are 503s; two failures.
fn outcome() -> Outcome {
    let mut tally = Tally::default();
    (tally.started, tally.connections) = (2002, 2);
    for n in 0..2000 {
        let answer = Answer {
            status: if n % 200 == 7 { 503 } else { 200 },
            length: 1000,
            body: BodySeen::Summed(0),
            persistent: true,
            coding: SaidCoding::None,
            head_bytes: 58,
            framing_bytes: 0,
        };
        tally.note_received(&[HEAD, &[b'x'; 1000]].concat());
        tally.note_answer(&answer);
        let (sent, micros) = (Nanos(100_000), 1_000 + n);
        let last_byte = Nanos(sent.0 + micros * 1_000);
        tally.note_good(&Stamps { intended: Nanos(0), sent, first_byte: Nanos(600_000), last_byte }, 1000);
    }
    for kind in [ErrorKind::ShortBody, ErrorKind::FirstByteTimeout] {
        tally.note_failed(kind, Nanos(0), String::new);
    }
    for _ in 0..2 {
        tally.connect.record(100).unwrap();
        tally.lives.begin();
    }
    for _ in 0..2 {
        tally
            .lives
            .end(&Life { begun: Nanos(0), first_byte: Some(Nanos(700_000)), answers: 1000 }, Nanos(2_000_000_000));
    }
    let mut sessions = SessionTally::new(3);
    sessions.begun = 2;
    sessions.note_completed(1_500_000_000, 1_500_000_000, 2);
    tally.sessions = Some(Box::new(sessions));
    let second = Second { good: 1000, ..Second::default() };
    Outcome {
        elapsed: Duration::from_secs(2),
        tally,
        seconds: vec![second.clone(), second],
        threads: Vec::new(),
        forms: None,
    }
}

fn workload() -> Workload {
    let address = "127.0.0.1:81".parse().unwrap();
    Workload {
        length: crate::workload::Length::Requests(2002),
        users: 2,
        checks: Tool::CHECKS,
        ..Workload::new(address)
    }
}

/// All forms, one below the other.
fn forms() -> String {
    let (url, workload, outcome) = (LabUrl::parse("http://a:81/b").unwrap(), workload(), outcome());
    let cpu = (Duration::from_millis(500), Duration::from_secs(1));
    let run = ToolRun {
        url: &url,
        workload: &workload,
        outcome: &outcome,
        request_bytes_mean: 60.0,
        cpu,
        distribution: true,
    };
    let mut all = String::new();
    for tool in Tool::ALL {
        let (opening, closing) = (tool.opening(&url, &workload), tool.closing(&run));
        let (out, err) = (opening.out + &closing.out, opening.err + &closing.err);
        all.push_str(&format!("=== {}\n{out}--- standard error\n{err}", tool.name()));
    }
    all
}

#[test]
fn every_form_is_as_it_was() {
    let (got, expect) = (forms(), include_str!("forms.txt"));
    let differ = got.lines().zip(expect.lines()).position(|(got, expect)| got != expect);
    assert!(got == expect, "from line {differ:?} on the forms are now:\n{got}");
}

#[test]
fn progress_is_told_in_tenths() {
    let told = |tool, parts: &[u64]| {
        let mut progress = Progress::new(tool, &workload());
        parts.iter().map(|part| progress.add(*part)).fold(String::new(), |all, p| all + &p.out + &p.err + "|")
    };
    assert_eq!(told(Tool::Ab, &[150, 260, 1]), "|Completed 200 requests\nCompleted 400 requests\n||");
    assert_eq!(told(Tool::H2load, &[199, 1, 2000]).matches("done").count(), 10);
    assert_eq!(told(Tool::Wrk, &[2002]), "|");
}

#[test]
fn what_a_form_has_no_line_for_is_said_beside_it() {
    let (url, workload, mut outcome) = (LabUrl::parse("a").unwrap(), workload(), outcome());
    outcome.tally.note_failed(ErrorKind::BadBytes, Nanos(0), String::new);
    let cpu = (Duration::ZERO, Duration::ZERO);
    let run =
        ToolRun { url: &url, workload: &workload, outcome: &outcome, request_bytes_mean: 0.0, cpu, distribution: true };
    let sentences = |tool| unsaid(tool, &run).join("\n");
    assert_eq!(sentences(Tool::HttpLoad), "");
    assert_eq!(
        sentences(Tool::Wrk),
        "1 answers had other bytes than the first one of their URL, for which wrk has no line\n\
         1 bodies were truncated, for which wrk has no line"
    );
}

#[test]
fn one_deviation_holds_two_thirds_of_what_is_spread_as_a_bell() {
    let mut values = Histogram::<u64>::new(3).unwrap();
    assert_eq!(within_deviation_percent(&values), 0.0);
    (0..=10)
        .for_each(|n| values.record_n(n * 10, [1, 10, 45, 120, 210, 252, 210, 120, 45, 10, 1][n as usize]).unwrap());
    // Mean 50, deviation 15.8: 40, 50 and 60 lie within.
    assert_eq!(within_deviation_percent(&values), 672.0 * 100.0 / 1024.0);
}
