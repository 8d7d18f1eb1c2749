//! Plays spec/bad-input/g.toml: frames of HTTP/2, written by the tables' own notation, to larder by prior knowledge. Every row
//! is played alone, before a marker request, cut in two at every offset when it is small, and byte by byte; what came back and what
//! the origin got is held against the row. LARDER_BAD_INPUT_ROW plays one row only.
//!
//! The tables of HTTP/1 are played by `bad_input`, with which this shares the notation, the lane and the origin.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;

use crate::bad_input::{brief_setup, start_lane};
use crate::http2_answers::{Frame, code_name, frames, goaway, of_stream};
use crate::http2_limits::{H2C, H2C_NAME};
use crate::lane::{Lane, PATIENCE_MS, Waited, now_ms};
use crate::notation::{self, Script, Step, push_bytes, script_bytes};
use crate::process_checks::{self, Counts};
use crate::raw_client::Client;
use crate::recording_origin::Behaviour;
use crate::subject::{Kind, Setup};

/// A number that no row uses.
const MARKER_STREAM: u32 = 2_000_001;
const MARKER: &str = "{HEADERS EH 2000001|{to}{= :path|/marker{n}}}";

const SPLIT_BYTES_MAX: usize = 300;
const TRICKLE_BYTES_MAX: usize = 160;
const LANES_COUNT: usize = 2;
const FAILURES_PER_ROW_MAX: usize = 3;
const SLOW_ROW_MS: u64 = 1_500;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FrameRow {
    /// It has said so: behind its last answer the connection ends.
    client_leaves: bool,
    pub id: String,
    pub why: String,
    /// Where the row is tested instead, or why it is not: as in the other tables.
    pub not_here: Option<String>,
    pub function: Option<String>,
    /// Behind the preface and an empty SETTINGS …
    send: String,
    /// … or from the first byte on.
    whole: String,
    /// `reset CODE`, `goaway CODE`, `close` (without a word of HTTP/2), a status, or `ignored`; codes may be several by `/`, outcomes by
    /// ` or `. After a GOAWAY the connection is closed; after all others the marker is answered.
    want: String,
    /// What GOAWAY's debug data says.
    says: Option<String>,
    /// Which stream it is about, if not 1.
    stream: Option<u32>,
    /// `METHOD target`, and behind a ¶ the body, of each request that reaches the origin; `any`: not looked at.
    at_origin: Vec<String>,
    /// Of those what came too late to be kept from it, or nothing.
    at_most: bool,
    /// `Name: value` that the first request has at the origin.
    origin_fields: Vec<String>,
    /// The request may have been begun at the origin, but is never completed there.
    aborted: bool,
    answers: Vec<String>,
    /// Of the answer.
    body_bytes: Option<usize>,
    /// Needs the program with short deadlines.
    brief: bool,
    /// No marker behind it.
    alone: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameTable {
    group: String,
    row: Vec<FrameRow>,
}

pub fn load() -> Vec<FrameRow> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/bad-input/g.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let table: FrameTable = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(table.group, "g");
    table.row
}

/// One way in which a row may end.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ending {
    Reset(Vec<String>),
    GoAway(Vec<String>),
    Close,
    Status(u16),
    Ignored,
}

fn read_endings(text: &str) -> Result<Vec<Ending>, String> {
    let codes = |text: &str| text.split('/').map(str::to_string).collect::<Vec<_>>();
    let read = |text: &str| match text.split_once(' ') {
        Some(("reset", list)) => Ok(Ending::Reset(codes(list))),
        Some(("goaway", list)) => Ok(Ending::GoAway(codes(list))),
        _ if text == "close" => Ok(Ending::Close),
        _ if text == "ignored" => Ok(Ending::Ignored),
        _ => text.parse().map(Ending::Status).map_err(|_| format!("{text:?} is no ending")),
    };
    text.split(" or ").map(read).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Alone,
    Marked,
    /// In two writes, the second with the marker.
    Split(usize),
    Trickle,
}

enum Judgement {
    Pass,
    NotYet(String),
    Wrong(String),
}

fn play_all() {
    let only = std::env::var("LARDER_BAD_INPUT_ROW").ok();
    let is_asked = |row: &FrameRow| {
        let is_elsewhere = row.not_here.is_some() || row.function.is_some();
        let is_named = only.as_ref().is_none_or(|id| row.id == *id || row.id.starts_with(&format!("{id}.")));
        !is_elsewhere && is_named
    };
    let rows: Vec<FrameRow> = load().into_iter().filter(is_asked).collect();
    let (brief, plain): (Vec<&FrameRow>, Vec<&FrameRow>) = rows.iter().partition(|row| row.brief);
    let (report, played, next) = (Mutex::new(Vec::new()), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..LANES_COUNT {
            scope.spawn(|| run_lane(&Setup::default(), &plain, &next, &report, &played));
        }
    });
    run_lane(&brief_setup(), &brief, &AtomicUsize::new(0), &report, &played);
    let mut report = report.into_inner().expect("no lane panicked");
    report.sort();
    println!("group g: {} connections' worth of frames played", played.into_inner());
    assert!(report.is_empty(), "{} failures\n\n{}", report.len(), report.join("\n\n"));
}

fn run_lane(setup: &Setup, rows: &[&FrameRow], next: &AtomicUsize, report: &Mutex<Vec<String>>, played: &AtomicUsize) {
    if rows.is_empty() {
        return;
    }
    let setup = Setup { log_format: Some("combined"), extra: H2C.to_string(), ..setup.clone() };
    let mut lane = start_lane(Kind::Larder, &setup);
    let rss_before_kib = lane.subject.process_number("VmRSS");
    while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
        let (failures, count) = play_row(&mut lane, row);
        played.fetch_add(count, Ordering::Relaxed);
        report.lock().expect("no lane panicked").extend(failures);
        if !lane.subject.is_alive() {
            let text = format!("{}: the process ended: {}", row.id, lane.subject.errors());
            report.lock().expect("no lane panicked").push(text);
            return;
        }
    }
    let failures = process_checks::after_the_rows(&mut lane, rss_before_kib);
    report.lock().expect("no lane panicked").extend(failures);
}

fn play_row(lane: &mut Lane, row: &FrameRow) -> (Vec<String>, usize) {
    lane.subject.stillness.refresh();
    let (before, started_ms) = (Counts::of(lane), now_ms());
    let (mut failures, mut count) = (Vec::new(), 0);
    for way in ways_of(lane, row) {
        count += 1;
        if let Err(text) = play_once(lane, row, way, failures.is_empty()) {
            failures.push(format!("{} {way:?}\n{text}\n  why      {}", row.id, row.why));
        }
        if failures.len() >= FAILURES_PER_ROW_MAX || !lane.subject.is_alive() {
            break;
        }
    }
    let took_ms = now_ms() - started_ms;
    if took_ms > SLOW_ROW_MS {
        println!("{}: {took_ms} ms for {count} connections", row.id);
    }
    let is_refused = row.at_origin.is_empty() && !row.aborted;
    failures.extend(before.check(lane, is_refused).into_iter().map(|text| format!("{} {text}", row.id)));
    (failures, count)
}

fn ways_of(lane: &Lane, row: &FrameRow) -> Vec<Way> {
    let own = own_script(lane, row);
    let mut ways = vec![Way::Alone];
    if row.alone || row.brief {
        return ways;
    }
    ways.push(Way::Marked);
    let bytes = script_bytes(&own);
    if own.len() == 1 && bytes <= SPLIT_BYTES_MAX {
        ways.extend((1..bytes).map(Way::Split));
        ways.extend((bytes <= TRICKLE_BYTES_MAX).then_some(Way::Trickle));
    }
    ways
}

fn read(lane: &Lane, text: &str) -> Script {
    notation::read(text, &lane.names).unwrap_or_else(|error| panic!("{error}"))
}

fn own_script(lane: &Lane, row: &FrameRow) -> Script {
    read(lane, if row.whole.is_empty() { &row.send } else { &row.whole })
}

fn script_of(lane: &Lane, row: &FrameRow, way: Way) -> Script {
    let mut script = if row.whole.is_empty() { read(lane, "{preface}") } else { Script::new() };
    let mut left = match way {
        Way::Split(at) => at,
        Way::Trickle => 1,
        Way::Alone | Way::Marked => usize::MAX,
    };
    for step in own_script(lane, row) {
        let Step::Bytes(bytes) = step else {
            script.push_back(step);
            continue;
        };
        let mut rest = &bytes[..];
        while rest.len() > left {
            let (now, later) = rest.split_at(left);
            push_bytes(&mut script, now);
            script.push_back(Step::Wait);
            rest = later;
            left = if way == Way::Trickle { 1 } else { usize::MAX };
        }
        push_bytes(&mut script, rest);
    }
    if way != Way::Alone {
        for step in read(lane, MARKER) {
            if let Step::Bytes(bytes) = step {
                push_bytes(&mut script, &bytes);
            }
        }
    }
    script
}

fn play_once(lane: &mut Lane, row: &FrameRow, way: Way, patient: bool) -> Result<(), String> {
    lane.names.run += 1;
    let answers = row.answers.iter().map(|text| read(lane, text)).collect();
    lane.origin.begin(Behaviour { answers, ..Behaviour::default() });
    let script = script_of(lane, row, way);
    let sent = notation::show_script(&script, 200);
    let address = lane.subject.listener(H2C_NAME).ok_or("  no listener for HTTP/2")?;
    let client = Client::connect(address, script).map_err(|error| format!("  connect: {error}"))?;
    let mut clients = [client];
    let endings = read_endings(&row.want).unwrap_or_else(|error| panic!("{}: {error}", row.id));
    let mut judgement = Judgement::NotYet("nothing happened".to_string());
    let patience_ms = if patient { PATIENCE_MS } else { PATIENCE_MS / 5 };
    let waited = lane.wait_until(&mut clients, patience_ms, |lane, clients| {
        judgement = judge(lane, row, way, &endings, &clients[0]);
        !matches!(judgement, Judgement::NotYet(_))
    });
    let because = match (judgement, waited) {
        (_, Waited::Spinning) => "the program never comes to rest".to_string(),
        (Judgement::Pass, _) => String::new(),
        (Judgement::Wrong(because), _) => because,
        (Judgement::NotYet(because), _) => format!("{because}, and nothing more came"),
    };
    let result = if because.is_empty() { Ok(()) } else { Err(describe(lane, row, &sent, &clients[0], &because)) };
    clients[0].close();
    lane.settle(&mut clients);
    result
}

fn judge(lane: &Lane, row: &FrameRow, way: Way, endings: &[Ending], client: &Client) -> Judgement {
    let mut first = None;
    for ending in endings {
        match judge_ending(lane, row, way, ending, client) {
            Judgement::Pass => return Judgement::Pass,
            other => _ = first.get_or_insert(other),
        }
    }
    first.unwrap_or(Judgement::Pass)
}

fn judge_ending(lane: &Lane, row: &FrameRow, way: Way, ending: &Ending, client: &Client) -> Judgement {
    use Judgement::{NotYet, Wrong};
    let seen = frames(&client.received);
    let (left, own) = (goaway(&seen), of_stream(&seen, row.stream.unwrap_or(1)));
    let said = left.as_ref().map(|left| format!("GOAWAY {} {:?}", code_name(left.code), left.words));
    let reset = own.reset.map(code_name);
    match ending {
        Ending::Close | Ending::GoAway(_) => {
            if let Ending::GoAway(codes) = ending {
                let Some(left) = &left else {
                    return if client.end.is_some() {
                        Wrong("it was closed without GOAWAY".into())
                    } else {
                        NotYet("no GOAWAY".into())
                    };
                };
                let is_said = row.says.as_ref().is_none_or(|says| *says == left.words);
                if !codes.contains(&code_name(left.code)) || !is_said {
                    return Wrong(said.unwrap_or_default());
                }
            } else if let Some(said) = said {
                return Wrong(said);
            }
            if client.end.is_none() {
                return NotYet("the connection is not closed".into());
            }
            if of_stream(&seen, MARKER_STREAM).status.is_some() {
                return Wrong("the marker was answered".into());
            }
            return judge_origin(lane, row, false);
        }
        _ if said.is_some() => return Wrong(said.unwrap_or_default()),
        _ if client.end.is_some() && !row.client_leaves => return Wrong("the connection was closed".into()),
        Ending::Reset(codes) => match reset {
            None => {
                return NotYet(format!(
                    "stream {} is not reset, its status is {:?}",
                    row.stream.unwrap_or(1),
                    own.status
                ));
            }
            Some(code) if !codes.contains(&code) => return Wrong(format!("reset {code}")),
            // RFC 9113 §8.1.1 lets a 400 come first.
            Some(_)
                if own.status.is_some_and(|status| status != 400)
                    && !row.at_origin.iter().any(|line| line == "any") =>
            {
                return Wrong(format!("answered {:?} before the reset", own.status));
            }
            Some(_) => {}
        },
        Ending::Status(status) => match (own.status, &reset) {
            (_, Some(code)) if code != "NO_ERROR" => return Wrong(format!("reset {code}")),
            (Some(got), _) if got != *status => return Wrong(format!("status {got}")),
            (Some(_), _) if own.is_whole => {
                if let Some(bytes) = row.body_bytes.filter(|bytes| *bytes != own.body.len()) {
                    return Wrong(format!("{} bytes of {bytes} came", own.body.len()));
                }
            }
            _ => return NotYet("the answer is not whole".into()),
        },
        Ending::Ignored if own.status.is_some() || reset.is_some() => return Wrong("it was not ignored".into()),
        Ending::Ignored => {}
    }
    let marker = of_stream(&seen, MARKER_STREAM);
    if way != Way::Alone && !(marker.status == Some(200) && marker.is_whole) {
        return NotYet(format!("the marker is not answered: {:?} {:?}", marker.status, marker.reset.map(code_name)));
    }
    if row.client_leaves && client.end.is_none() {
        return NotYet("the connection is not closed".into());
    }
    judge_origin(lane, row, way != Way::Alone)
}

/// Method, target, body.
type OriginRequest = (String, String, Vec<u8>);

fn judge_origin(lane: &Lane, row: &FrameRow, marked: bool) -> Judgement {
    use Judgement::{NotYet, Wrong};
    let run = format!("{:06}", lane.names.run);
    let mut wanted: Vec<OriginRequest> = Vec::new();
    for line in &row.at_origin {
        let bytes = notation::read_bytes(line, &lane.names).unwrap_or_else(|error| panic!("{}: {error}", row.id));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n").unwrap_or((&text, ""));
        let (method, target) = head.split_once(' ').unwrap_or((head, ""));
        wanted.push((method.to_string(), target.to_string(), body.as_bytes().to_vec()));
    }
    if marked {
        wanted.push(("GET".to_string(), format!("/marker{run}"), Vec::new()));
    }
    for request in &lane.origin.seen {
        if let Some(problem) = request.problems.first() {
            return Wrong(format!("at the origin: {problem}"));
        }
        if request.target.contains("smuggled") {
            return Wrong("a smuggled request reached the origin".into());
        }
    }
    if let Some(bytes) = lane.origin.leftovers().next() {
        return Wrong(format!("the origin got half a head: {}", notation::show(bytes, 120)));
    }
    let mut seen: Vec<_> = lane.origin.seen.iter().collect();
    if row.aborted {
        if let Some(open) = seen.iter().find(|s| !s.complete && !lane.origin.is_closed(s.connection)) {
            return NotYet(format!("{} {} still stands open at the origin", open.method, open.target));
        }
        seen.retain(|request| request.complete);
    }
    if row.at_origin.iter().any(|line| line == "any") {
        return Judgement::Pass;
    }
    let mut found: Vec<OriginRequest> =
        seen.iter().map(|seen| (seen.method.clone(), seen.target.clone(), seen.body.clone())).collect();
    // Streams are side by side.
    found.sort();
    wanted.sort();
    if row.at_most {
        wanted.retain(|request| found.contains(request) || request.1.contains("/marker"));
    }
    if found.len() < wanted.len() || seen.iter().any(|request| !request.complete) {
        return NotYet(format!("the origin got {found:?} and not {wanted:?}"));
    }
    if found != wanted {
        return Wrong(format!("the origin got {found:?} and not {wanted:?}"));
    }
    let own = seen.iter().find(|request| !request.target.contains("/marker"));
    for line in &row.origin_fields {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        let is_there = |field: &crate::strict_head::FieldLine| {
            field.name.eq_ignore_ascii_case(name) && field.value == value.as_bytes()
        };
        if !own.is_some_and(|own| own.fields.iter().any(is_there)) {
            return Wrong(format!("the origin got no {line}"));
        }
    }
    Judgement::Pass
}

fn describe(lane: &Lane, row: &FrameRow, sent: &str, client: &Client, because: &str) -> String {
    let shown = |frame: &Frame| {
        format!("[{} {:x} {}] {}", frame.number, frame.flags, frame.stream, notation::show(&frame.payload, 60))
    };
    let got: Vec<String> = frames(&client.received).iter().take(12).map(shown).collect();
    let got = if got.is_empty() { notation::show(&client.received, 200) } else { got.join(" ") };
    let at_origin = lane.origin.seen.iter().take(4).map(|seen| notation::show(&seen.raw, 300)).collect::<Vec<_>>();
    let end = client.end.map_or("open".to_string(), |end| format!("{end:?}"));
    format!(
        "  because  {because}\n  wanted   {}\n  sent     {sent}\n  got      {got} ({end})\n  origin   {}",
        row.want,
        at_origin.join("\n           ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::Names;

    #[test]
    fn g_frames_of_http2() {
        play_all();
    }

    /// Last number of the group, and how many inputs the lists inside its rows hold at least.
    const LAST: u32 = 43;
    const LISTS: &[(u32, usize)] = &[
        (1, 3),
        (2, 3),
        (3, 3),
        (4, 2),
        (6, 6),
        (7, 5),
        (8, 2),
        (9, 2),
        (10, 2),
        (11, 2),
        (12, 2),
        (15, 7),
        (16, 10),
        (17, 7),
        (18, 3),
        (19, 4),
        (20, 3),
        (21, 9),
        (22, 6),
        (23, 3),
        (24, 2),
        (25, 3),
        (26, 2),
        (28, 4),
        (30, 2),
        (35, 5),
        (40, 2),
        (42, 2),
    ];

    #[test]
    fn every_row_of_g_is_there_and_can_be_read() {
        let rows = load();
        let mut ids = std::collections::BTreeSet::new();
        for row in &rows {
            assert!(ids.insert(&row.id), "{} twice", row.id);
            if let Some(reason) = &row.not_here {
                assert!(reason.split_whitespace().count() >= 3, "{}: {reason:?}", row.id);
                continue;
            }
            if let Some(function) = &row.function {
                const SOURCES: [&str; 2] = [include_str!("http2_clients.rs"), include_str!("http2_limits.rs")];
                let text = format!("fn {function}()");
                assert!(SOURCES.iter().any(|source| source.contains(&text)), "{}: no {function}", row.id);
                continue;
            }
            assert!(row.send.is_empty() != row.whole.is_empty(), "{}: either send or whole", row.id);
            read_endings(&row.want).unwrap_or_else(|error| panic!("{}: {error}", row.id));
            for text in [&row.send, &row.whole] {
                notation::read(text, &Names::default()).unwrap_or_else(|error| panic!("{}: {error}", row.id));
            }
        }
        for number in 1..=LAST {
            let (id, family) = (format!("G{number:02}"), format!("G{number:02}."));
            let count = rows.iter().filter(|row| row.id == id || row.id.starts_with(&family)).count();
            let wanted = LISTS.iter().find(|(of, _)| *of == number).map_or(1, |(_, count)| *count);
            assert!(count >= wanted, "{id}: {count} of {wanted} inputs");
        }
    }
}
