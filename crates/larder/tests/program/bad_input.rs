//! Plays the tables of spec/bad-input: every row alone, behind a good request, before a marker and between both,
//! small ones cut at every offset and byte by byte, and holds what came of it against the row. LARDER_BAD_INPUT_ROW
//! plays one row only and prints it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::input_table::{self, Act, Plan, Play, Row, Splits};
use crate::judge::{Around, Course, Verdict};
use crate::lane::{Lane, PATIENCE_MS, Waited, now_ms};
use crate::notation::{self, Names, Script, Step, push_bytes, script_bytes};
use crate::raw_client::Client;
use crate::recording_origin::{Behaviour, RecordingOrigin};
use crate::subject::{Kind, Setup, Subject};
use crate::wanted;

/// How the bytes of a row's main act are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Alone,
    /// After a good request on the same connection was answered.
    Behind,
    /// With the marker request in the same write.
    Marker,
    /// Good request, row and marker in one write.
    Pipelined,
    /// In two writes; the marker is in the second.
    Split(usize),
    /// One byte a write.
    Trickle,
}

/// Inputs up to this size are cut at every offset, or sent byte by byte.
const SPLIT_BYTES_MAX: usize = 2 << 10;
const TRICKLE_BYTES_MAX: usize = 160;
/// An input larger than this may be reset after its refusal: no drain swallows everything.
const DRAINED_BYTES_MAX: usize = 64 << 10;
/// A row that takes longer is named, so that the whole stays quick.
const SLOW_ROW_MS: u64 = 1_500;
/// A row that failed so often is not tried further.
const FAILURES_PER_ROW_MAX: usize = 3;

/// Plays one group and fails with a report of all that went wrong.
pub fn play_group(group: &str, kind: Kind) {
    play_group_with(group, kind, false);
}

fn play_group_with(group: &str, kind: Kind, forward: bool) {
    let (report, played) = report_on_group(group, kind, forward);
    println!("group {group}: {played} connections' worth of inputs played");
    match kind {
        Kind::Larder => assert!(report.is_empty(), "{} failures\n\n{}", report.len(), report.join("\n\n")),
        _ => println!("{} failures of {kind:?}\n\n{}", report.len(), report.join("\n\n")),
    }
}

/// The failures of a group, one text each, and how many cases were played.
pub fn report_on_group(group: &str, kind: Kind, forward: bool) -> (Vec<String>, usize) {
    let only = std::env::var("LARDER_BAD_INPUT_ROW").ok();
    let is_asked = |row: &Row| only.as_ref().is_none_or(|id| row.id == *id || row.id.starts_with(&format!("{id}.")));
    // A forward proxy has no routes.
    let is_of_a_route = |row: &Row| {
        let sends = |act: &Act| act.send.contains("/refused") || act.send.contains("files.test");
        matches!(&row.plan, Plan::Played(play) if play.before.iter().chain([&play.main]).any(sends))
    };
    let is_played = |row: &Row| is_asked(row) && !(forward && is_of_a_route(row));
    let rows: Vec<Row> = input_table::load(group, forward).rows.into_iter().filter(is_played).collect();
    let (brief, plain): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| matches!(&row.plan, Plan::Played(play) if play.brief));
    let (report, played) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..LANES_COUNT {
            scope.spawn(|| {
                run_lane(
                    kind,
                    &Setup { log_format: Some("combined"), files: !forward, forward, ..Setup::default() },
                    &plain,
                    &next,
                    &report,
                    &played,
                )
            });
        }
        if !brief.is_empty() {
            let own = AtomicUsize::new(0);
            run_lane(kind, &Setup { forward, ..brief_setup() }, &brief, &own, &report, &played);
        }
    });
    let mut report = report.into_inner().expect("no lane panicked");
    report.sort();
    (report, played.into_inner())
}

/// Lanes of a group; each is a process of ours and a thread, mostly waiting for one another.
const LANES_COUNT: usize = 2;

/// Every deadline so short that a row can wait for it.
pub fn brief_setup() -> Setup {
    const NAMES: [&str; 9] = [
        "request_head_timeout",
        "idle_timeout",
        "request_body_timeout",
        "send_timeout",
        "linger_timeout",
        "connect_timeout",
        "first_byte_timeout",
        "between_bytes_timeout",
        "reader_stall_max",
    ];
    let limits = NAMES.map(|name| format!("{name} = \"1s\"\n")).concat();
    Setup { limits, log_format: Some("combined"), ..Setup::default() }
}

fn run_lane(
    kind: Kind,
    setup: &Setup,
    rows: &[&Row],
    next: &AtomicUsize,
    report: &Mutex<Vec<String>>,
    played: &AtomicUsize,
) {
    let mut lane = start_lane(kind, setup);
    let rss_before_kib = lane.subject.process_number("VmRSS");
    while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
        let Plan::Played(play) = &row.plan else { continue };
        let (failures, count) = play_row(&mut lane, row, play);
        played.fetch_add(count, Ordering::Relaxed);
        report.lock().expect("no lane panicked").extend(failures);
        if !lane.subject.is_alive() {
            let text = format!("{}: the process ended: {}", row.id, lane.subject.errors());
            report.lock().expect("no lane panicked").push(text);
            lane = start_lane(kind, setup);
        }
    }
    let failures = crate::process_checks::after_the_rows(&mut lane, rss_before_kib);
    report.lock().expect("no lane panicked").extend(failures);
}

/// Starts a program and its origin; one good request tells that all is well, and what our `Via` is.
pub fn start_lane(kind: Kind, setup: &Setup) -> Lane {
    let origin = RecordingOrigin::start();
    let subject = Subject::start(kind, origin.address(), setup);
    let mut lane = Lane::new(subject, origin);
    lane.names.forwarded_to = setup.forward.then(|| lane.origin.address().to_string());
    let script = notation::read("{good}", &lane.names).expect("a macro");
    let mut clients = [Client::connect(lane.subject.address, script).expect("it listens")];
    let waited = lane.wait_until(&mut clients, PATIENCE_MS, |_, clients| clients[0].received.ends_with(b"000000\n"));
    assert_eq!(waited, Waited::Met, "the first request got {}", notation::show(&clients[0].received, 400));
    let via = lane.origin.seen.first().and_then(|seen| seen.fields.iter().find(|f| f.name.eq_ignore_ascii_case("via")));
    lane.names.via = via.map(|field| String::from_utf8_lossy(&field.value).into_owned()).unwrap_or_default();
    lane.subject.stillness.refresh();
    lane
}

/// Plays a row in all its modes. Returns the failures and how many cases were played.
fn play_row(lane: &mut Lane, row: &Row, play: &Play) -> (Vec<String>, usize) {
    let mut failures = Vec::new();
    let mut count = 0;
    lane.subject.stillness.refresh();
    let before = crate::process_checks::Counts::of(lane);
    let started_ms = now_ms();
    for mode in modes_of(lane, play) {
        count += 1;
        if let Err(text) = play_once(lane, play, mode, failures.is_empty()) {
            failures.push(format!("{} {mode:?}\n{text}\n  why      {}", row.id, row.why));
        }
        if failures.len() >= FAILURES_PER_ROW_MAX || !lane.subject.is_alive() {
            break;
        }
    }
    let took_ms = now_ms() - started_ms;
    if took_ms > SLOW_ROW_MS {
        println!("{}: {took_ms} ms for {count} connections", row.id);
    }
    let forwards = wanted::read(&play.main.want).unwrap_or_default().iter().any(|outcome| outcome.forwards);
    let is_refused = !forwards && play.before.is_empty() && play.after.is_empty();
    failures.extend(before.check(lane, is_refused).into_iter().map(|text| format!("{} {text}", row.id)));
    (failures, count)
}

/// Which modes fit a row.
fn modes_of(lane: &Lane, play: &Play) -> Vec<Mode> {
    let text = if play.is_answer { play.main.answers.first() } else { Some(&play.main.send) };
    let script = text.and_then(|text| notation::read(text, &lane.names).ok()).unwrap_or_default();
    let stays_open = !script.iter().any(|step| matches!(step, Step::Eof | Step::Reset)) || play.is_answer;
    let is_allowed = |name: &str| play.modes.is_empty() || play.modes.iter().any(|mode| mode == name);
    let mut modes = Vec::new();
    for (name, mode, needs_open) in [
        ("alone", Mode::Alone, false),
        ("behind", Mode::Behind, false),
        ("marker", Mode::Marker, true),
        ("pipelined", Mode::Pipelined, true),
    ] {
        // A PROXY header stands at the start of a connection only.
        let fits = !play.main.proxied || matches!(mode, Mode::Alone | Mode::Marker);
        if is_allowed(name) && fits && (stays_open || !needs_open) {
            modes.push(mode);
        }
    }
    let len = script_bytes(&script);
    let is_simple = script.len() == 1 && play.before.is_empty() && play.after.is_empty() && !play.brief;
    let splits = match play.splits {
        Splits::Automatic => is_simple && len <= SPLIT_BYTES_MAX && is_allowed("marker"),
        Splits::Every => true,
        Splits::None => false,
    };
    if splits {
        modes.extend((1..len).map(Mode::Split));
        modes.extend((len <= TRICKLE_BYTES_MAX).then_some(Mode::Trickle));
    }
    modes
}

fn play_once(lane: &mut Lane, play: &Play, mode: Mode, is_first_failure: bool) -> Result<(), String> {
    lane.names.run += 1;
    for act in &play.before {
        play_act(lane, act, Mode::Alone, false, is_first_failure)
            .map_err(|text| format!("  (an act before)\n{text}"))?;
    }
    play_act(lane, &play.main, mode, play.is_answer, is_first_failure)?;
    for act in &play.after {
        play_act(lane, act, Mode::Alone, false, is_first_failure)
            .map_err(|text| format!("  (an act after)\n{text}"))?;
    }
    if play.is_answer {
        let marker = Act {
            send: "{M}".into(),
            want: "OK".into(),
            at_origin: Some(vec!["GET /marker{n}".into()]),
            ..Act::default()
        };
        play_act(lane, &marker, Mode::Alone, false, is_first_failure)
            .map_err(|text| format!("  (a good request on a new connection after it)\n{text}"))?;
    }
    Ok(())
}

/// Plays one act; an error is its report.
fn play_act(lane: &mut Lane, act: &Act, mode: Mode, is_answer: bool, patient: bool) -> Result<(), String> {
    let names = lane.names.clone();
    let read = |text: &str| notation::read(text, &names).unwrap_or_else(|error| panic!("{error}"));
    let own = read(&whole_urls(&act.send, &names));
    let mut answers: Vec<Script> = act.answers.iter().map(|text| read(text)).collect();
    let client_mode = match (is_answer, mode) {
        (true, Mode::Split(_) | Mode::Trickle) => {
            answers[0] = cut(&answers[0], mode);
            Mode::Alone
        }
        _ => mode,
    };
    let around = Around {
        good: matches!(client_mode, Mode::Behind | Mode::Pipelined),
        marker: matches!(client_mode, Mode::Marker | Mode::Pipelined | Mode::Split(_)),
    };
    let script = client_script(own, client_mode, around, &read);
    let shown = notation::show_script(&script, 300);
    let may_reset = script_bytes(&script) > DRAINED_BYTES_MAX;
    lane.origin.begin(Behaviour {
        answers,
        early: act.early,
        greeting: act.greeting.as_deref().map(read),
        slam: act.slam,
        mute: act.mute,
    });
    let address = if act.proxied { lane.subject.proxied } else { Some(lane.subject.address) };
    let address = address.ok_or("  the program has no such listener")?;
    let client = Client::connect(address, script).map_err(|error| format!("  connect: {error}"))?;
    let mut clients = [client];
    let outcomes = wanted::read(&act.want).unwrap_or_else(|error| panic!("{error}"));
    let mut verdict = Verdict::NotYet("nothing happened".into());
    let patience_ms = match (lane.subject.kind, patient) {
        (Kind::Larder, true) => PATIENCE_MS,
        (Kind::Larder, false) => PATIENCE_MS / 5,
        _ => PATIENCE_MS / 50,
    };
    let waited = lane.wait_until(&mut clients, patience_ms, |lane, clients| {
        let course = Course {
            act,
            outcomes: &outcomes,
            names: &names,
            around,
            may_reset,
            client: &clients[0],
            origin: &lane.origin,
        };
        verdict = course.judge();
        !matches!(verdict, Verdict::NotYet(_))
    });
    let because = match (verdict, waited) {
        (_, Waited::Spinning) => "the program never comes to rest".to_string(),
        (Verdict::Pass, _) => String::new(),
        (Verdict::Wrong(because), _) => because,
        (Verdict::NotYet(because), _) => format!("{because}, and nothing more came"),
    };
    let result = match because.is_empty() {
        true => Ok(()),
        false => Err(describe(lane, act, &shown, &clients[0], &because)),
    };
    clients[0].close();
    lane.settle(&mut clients);
    result
}

/// What begins with a method and a path is asked of a forward proxy by a whole URL. Of what else a row says to a proxy it
/// says so itself.
fn whole_urls(send: &str, names: &Names) -> String {
    let methods_end = send.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(0);
    match &names.forwarded_to {
        Some(origin) if send[methods_end..].starts_with(" /") && methods_end > 0 => {
            format!("{} http://{origin}{}", &send[..methods_end], &send[methods_end + 1..])
        }
        _ => send.to_owned(),
    }
}

fn client_script(own: Script, mode: Mode, around: Around, read: &dyn Fn(&str) -> Script) -> Script {
    let mut script = if around.good { read("{good}") } else { Script::new() };
    if mode == Mode::Behind {
        script.push_back(Step::Wait);
    }
    for step in cut(&own, mode) {
        match step {
            Step::Bytes(bytes) => push_bytes(&mut script, &bytes),
            step => script.push_back(step),
        }
    }
    if around.marker {
        for step in read("{M}") {
            if let Step::Bytes(bytes) = step {
                push_bytes(&mut script, &bytes);
            }
        }
    }
    script
}

/// Puts pauses into a script's bytes.
fn cut(script: &Script, mode: Mode) -> Script {
    let mut out = Script::new();
    let mut at = 0;
    for step in script {
        let Step::Bytes(bytes) = step else {
            out.push_back(step.clone());
            continue;
        };
        let mut rest = &bytes[..];
        while let Some(next) = match mode {
            Mode::Trickle => (rest.len() > 1).then_some(1),
            Mode::Split(offset) => (offset > at && offset < at + rest.len()).then(|| offset - at),
            _ => None,
        } {
            out.extend([Step::Bytes(rest[..next].to_vec()), Step::Wait]);
            rest = &rest[next..];
            at += next;
        }
        out.push_back(Step::Bytes(rest.to_vec()));
        at += rest.len();
    }
    out
}

fn describe(lane: &Lane, act: &Act, sent: &str, client: &Client, because: &str) -> String {
    let requests: Vec<_> = lane
        .origin
        .seen
        .iter()
        .take(4)
        .map(|s| {
            format!(
                "[{}{}] {}",
                s.connection,
                if s.complete { "" } else { ", incomplete" },
                notation::show(&s.raw, 500)
            )
        })
        .collect();
    let origin = if requests.is_empty() { "nothing".into() } else { requests.join("\n           ") };
    let answers: Vec<_> =
        act.answers.iter().take(2).map(|answer| answer.chars().take(200).collect::<String>()).collect();
    let end = client.end.map_or("open".to_string(), |end| format!("{end:?}"));
    let answered = if answers.is_empty() { String::new() } else { format!("\n  answered {}", answers.join(" | ")) };
    format!(
        "  because  {because}\n  wanted   {}\n  sent     {sent}{answered}\n  got      {} ({end})\n  origin   {origin}",
        act.want,
        notation::show(&client.received, 500),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_line() {
        play_group("a", Kind::from_environment());
    }

    #[test]
    fn b_host_and_fields() {
        play_group("b", Kind::from_environment());
    }

    #[test]
    fn c_content_length() {
        play_group("c", Kind::from_environment());
    }

    #[test]
    fn d_transfer_encoding() {
        play_group("d", Kind::from_environment());
    }

    #[test]
    fn e_chunked_bodies() {
        play_group("e", Kind::from_environment());
    }

    #[test]
    fn f_connections() {
        play_group("f", Kind::from_environment());
    }

    #[test]
    fn j_cache() {
        play_group("j", Kind::from_environment());
    }

    #[test]
    fn k_static_files() {
        play_group("k", Kind::from_environment());
    }

    #[test]
    fn m_memcached() {
        play_group("m", Kind::from_environment());
    }

    #[test]
    fn o_hostile_origins() {
        play_group("o", Kind::from_environment());
    }

    #[test]
    fn l_forward_proxy() {
        play_group_with("l", Kind::Larder, true);
    }

    /// What is read, and what frames a body, is as strict where a proxy is asked for it.
    #[test]
    fn a_and_b_at_a_forward_proxy() {
        ["a", "b"].iter().for_each(|group| play_group_with(group, Kind::Larder, true));
    }

    #[test]
    fn c_and_d_at_a_forward_proxy() {
        ["c", "d"].iter().for_each(|group| play_group_with(group, Kind::Larder, true));
    }

    #[test]
    fn e_and_f_at_a_forward_proxy() {
        ["e", "f"].iter().for_each(|group| play_group_with(group, Kind::Larder, true));
    }

    #[test]
    fn n_error_pages() {
        play_group("nx", Kind::from_environment());
    }

    /// A harness that cannot fail is worthless: a proxy that copies bytes fails wherever strictness is asked.
    #[test]
    fn a_proxy_that_copies_is_caught() {
        let (report, played) = report_on_group("d", Kind::Copier, false);
        let rows: std::collections::BTreeSet<_> = report.iter().filter_map(|text| text.split(' ').next()).collect();
        for id in ["D01.1", "D02.1", "D03.1", "D06.1", "D10.1", "D16.1", "D19.1"] {
            assert!(rows.contains(id), "{id} is not among {rows:?} of {played}");
        }
    }
}
