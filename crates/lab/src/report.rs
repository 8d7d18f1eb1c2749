//! What a run has shown, as a person and as a program reads it. The headline is goodput: answers that passed.
//!
//! Our own form; those of ab, wrk and others are further printers of the same [`Outcome`], in `as_tool`. It computes nothing
//! that a run did not measure, and prints a dash where there are too few samples for the number asked for.

use std::fmt::Write;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::coded_pages::FormsSeen;
use crate::error_kind::ErrorKind;
use crate::limits::{BUSY_SHARE_MAX, CLOSE_GRACE};
use crate::report_of_load::{load_description, load_name, session_lines, sessions_json, things_started};
use crate::report_of_tls::{tls_json, tls_lines};
use crate::run::Outcome;
use crate::tally::{MemcachedTally, Second, Tally, percentile_of};
use crate::workload::{Arrivals, Checks, Connections, Load, StatusWanted, Workload};

/// Of the JSON; the number grows when a reader would have to change.
pub const REPORT_FORMAT: &str = "larder-bench/1";

const PERCENTILES: [(&str, f64); 5] = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9), ("p99.99", 99.99)];

type Row<'a> = (&'static str, &'a Histogram<u64>);

/// The report for a person.
pub fn text(url: &str, workload: &Workload, outcome: &Outcome) -> String {
    let tally = &outcome.tally;
    let seconds = outcome.elapsed.as_secs_f64();
    let mut out = format!("{url}\n{}\n\n", description(workload));
    let mut line = |name: &str, what: String| {
        let _ = writeln!(out, "{name:<14}{what}");
    };
    let good = per_second(tally.good, seconds);
    line(
        "goodput",
        format!("{good:.1} answers/s, {:.2} MiB/s of bodies", per_second(tally.body_bytes, seconds) / 1048576.0),
    );
    let failed = tally.failed();
    line("answers", format!("{} good, {failed} failed, in {seconds:.2} s; {}", tally.good, checked(&workload.checks)));
    if let Load::Open { per_second: asked, .. } = workload.load {
        line("rate", format!("{:.1}/s started of {asked:.1}/s on the timetable", per_second(tally.started, seconds)));
    }
    if let Some(sessions) = &tally.sessions {
        session_lines(sessions, seconds).into_iter().for_each(|(name, what)| line(name, what));
    }
    if let Some(memcached) = &tally.memcached {
        let MemcachedTally { hits, misses, stored } = memcached;
        line("memcached", format!("{hits} hits, {misses} misses, {stored} stored"));
    }
    if let Some(forms) = &outcome.forms {
        line("encoding", encoding_words(forms, tally));
    }
    line("connections", format!("{} opened for {} users", tally.connections, workload.users));
    if let Some(settings) = &workload.tls {
        tls_lines(settings, tally, seconds).into_iter().for_each(|(name, what)| line(name, what));
    }
    if let Some(http2) = tally.http2.filter(|http2| http2.gone_away > 0) {
        line("", format!("{} connections ended by GOAWAY", http2.gone_away));
    }
    line("client", format!("{} of a core, {:.2} µs for each answer", shares(outcome), client_micros(outcome)));
    out.push_str(&latencies(workload, tally));
    out.push_str(&errors(tally));
    for warning in warnings(workload, outcome) {
        let _ = writeln!(out, "warning: {warning}");
    }
    out
}

/// The line that is printed while it runs.
pub fn second_line(index: usize, second: &Second) -> String {
    let latency = |percentile| match second.from_intended.len() {
        0 => "–".to_owned(),
        _ => show(second.from_intended.value_at_percentile(percentile)),
    };
    format!(
        "{:>4} s  {:>8} good/s  {:>8.2} MiB/s  p50 {:>8}  p99 {:>8}  max {:>8}  {} failed",
        index + 1,
        second.good,
        second.body_bytes as f64 / 1048576.0,
        latency(50.0),
        latency(99.0),
        latency(100.0),
        second.failed,
    )
}

/// The same for a program. Latencies in microseconds, moments in seconds since the beginning.
pub fn json(url: &str, workload: &Workload, outcome: &Outcome) -> Value {
    let tally = &outcome.tally;
    let seconds = outcome.elapsed.as_secs_f64();
    let error = |kind: &ErrorKind| {
        let record = tally.error(*kind);
        (record.count > 0).then(|| {
            let fields = json!({
                "count": record.count, "is_failure": kind.is_failure(),
                "first_seconds": record.first_nanos as f64 / 1e9, "last_seconds": record.last_nanos as f64 / 1e9,
                "sample": record.sample,
            });
            (kind.name().to_owned(), fields)
        })
    };
    let classes = (1..10).map(|class| (format!("{class}xx"), tally.status_class(class).into()));
    json!({
        "format": REPORT_FORMAT,
        "url": url,
        "workload": workload_json(workload),
        "elapsed_seconds": seconds,
        "goodput_per_second": per_second(tally.good, seconds),
        "good": tally.good,
        "failed": tally.failed(),
        "started": tally.started,
        "body_bytes": tally.body_bytes,
        "received_bytes": tally.received_bytes,
        "connections_opened": tally.connections,
        "encoding": outcome.forms.as_ref().map(|forms| json!({
            "coding": forms.coding.name(), "text_bytes": tally.text_bytes, "ratio": ratio(tally),
            "forms": forms.forms, "decoded": forms.decoded,
        })),
        "tls": workload.tls.as_ref().map(|settings| tls_json(settings, tally, seconds)),
        "http2": tally.http2.map(|it| json!({
            "field_block_bytes": it.field_block_bytes, "gone_away": it.gone_away, "streams_allowed": it.streams_allowed,
        })),
        "sessions": tally.sessions.as_ref().map(|sessions| sessions_json(sessions, seconds)),
        "memcached": tally.memcached.as_ref()
            .map(|m| json!({ "hits": m.hits, "misses": m.misses, "stored": m.stored })),
        "statuses": classes.collect::<serde_json::Map<_, _>>(),
        "errors": ErrorKind::ALL.iter().filter_map(error).collect::<serde_json::Map<_, _>>(),
        "latency_micros": rows(workload, tally).map(|(name, values)| (name.replace(' ', "_"), histogram_json(values)))
            .collect::<serde_json::Map<_, _>>(),
        "seconds": outcome.seconds.iter().map(second_json).collect::<Vec<_>>(),
        "client_threads": outcome.threads.iter()
            .map(|t| json!({ "cpu_seconds": t.cpu.as_secs_f64(), "busy_share": t.busy_share })).collect::<Vec<_>>(),
        "warnings": warnings(workload, outcome),
    })
}

fn workload_json(workload: &Workload) -> Value {
    let plan = workload.load.rate_plan();
    let rate = plan.as_ref().map(|plan| plan.per_second[0]);
    let arrivals = plan.as_ref().map(|plan| match plan.arrivals {
        Arrivals::Constant => "constant",
        Arrivals::Jitter => "jitter",
        Arrivals::Poisson => "poisson",
    });
    let rates = plan.filter(|plan| plan.per_second.len() > 1);
    let depth = match workload.connections {
        Connections::Kept { depth } => Some(depth),
        Connections::Short => None,
    };
    json!({
        "loop": if workload.load.is_open() { "open" } else { "closed" }, "load": load_name(&workload.load),
        "rate_per_second": rate, "arrivals": arrivals,
        "rates_per_second": rates.as_ref().map(|plan| &plan.per_second),
        "step_seconds": rates.as_ref().map(|plan| plan.step.as_secs_f64()),
        "ramp_seconds": workload.ramp.as_secs_f64(), "think_seconds": workload.think.as_secs_f64(),
        "users": workload.users, "threads": workload.threads, "keep_alive": depth.is_some(),
        "http2": workload.http2, "pipeline": depth.filter(|_| !workload.http2), "streams": depth.filter(|_| workload.http2),
        "checks": checked(&workload.checks), "timeout_seconds": workload.timeout.as_secs_f64(), "seed": workload.seed,
    })
}

fn second_json(second: &Second) -> Value {
    let latency = |percentile| match second.from_intended.len() {
        0 => None,
        _ => Some(second.from_intended.value_at_percentile(percentile)),
    };
    json!({
        "good": second.good, "failed": second.failed, "body_bytes": second.body_bytes,
        "p50_micros": latency(50.0), "p99_micros": latency(99.0), "max_micros": latency(100.0),
    })
}

pub(crate) fn histogram_json(values: &Histogram<u64>) -> Value {
    let mut object = serde_json::Map::new();
    object.insert("count".to_owned(), values.len().into());
    if !values.is_empty() {
        object.insert("min".to_owned(), values.min().into());
        object.insert("mean".to_owned(), values.mean().into());
        object.insert("max".to_owned(), values.max().into());
    }
    for (name, percentile) in PERCENTILES {
        object.insert(name.to_owned(), percentile_of(values, percentile).into());
    }
    Value::Object(object)
}

/// Which latencies there are, with the one that users feel first.
fn rows<'a>(workload: &Workload, tally: &'a Tally) -> impl Iterator<Item = Row<'a>> {
    let handshake = tally.handshakes.as_ref().map(|handshakes| ("handshake", &handshakes.micros));
    let lag = workload.load.is_open().then_some(("send lag", &tally.send_lag));
    let rows = [
        ("from intended", &tally.from_intended),
        ("from send", &tally.from_send),
        ("first byte", &tally.first_byte),
        ("connect", &tally.connect),
    ];
    rows.into_iter().chain(handshake).chain(lag)
}

fn latencies(workload: &Workload, tally: &Tally) -> String {
    let mut out = format!("\n{:<14}", "latency");
    for name in ["mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"] {
        let _ = write!(out, "{name:>10}");
    }
    out.push('\n');
    for (name, values) in rows(workload, tally) {
        let _ = write!(out, "{name:<14}");
        let some = |micros: f64| if values.is_empty() { "–".to_owned() } else { show(micros as u64) };
        let _ = write!(out, "{:>10}", some(values.mean()));
        for (_, percentile) in PERCENTILES {
            let _ = write!(out, "{:>10}", percentile_of(values, percentile).map_or_else(|| "–".to_owned(), show));
        }
        let _ = writeln!(out, "{:>10}", some(values.max() as f64));
    }
    out.push('\n');
    out
}

fn errors(tally: &Tally) -> String {
    let mut out = String::new();
    for kind in ErrorKind::ALL {
        let record = tally.error(*kind);
        if record.count > 0 {
            let (first, last) = (record.first_nanos as f64 / 1e9, record.last_nanos as f64 / 1e9);
            let _ = writeln!(
                out,
                "{:<20}{:>9}   from {first:.3} s to {last:.3} s: {}",
                kind.name(),
                record.count,
                kind.meaning()
            );
            let _ = writeln!(out, "{:<32}first: {}", "", record.sample);
        }
    }
    out
}

/// Why the numbers may not be the target's.
fn warnings(workload: &Workload, outcome: &Outcome) -> Vec<String> {
    let tally = &outcome.tally;
    let mut warnings = Vec::new();
    let busiest = outcome.threads.iter().map(|thread| thread.busy_share).fold(0.0, f64::max);
    if busiest > BUSY_SHARE_MAX {
        let percent = busiest * 100.0;
        warnings.push(format!(
            "client-bound: a thread of ours used {percent:.0} % of its core; more --threads, or these are our numbers, not the target's"
        ));
    }
    if tally.left_open > 0 {
        let count = tally.left_open;
        warnings.push(format!(
            "{count} connections were announced to close and left open: each kept its user for {CLOSE_GRACE:?}"
        ));
    }
    if let (Some(allowed), Connections::Kept { depth }) =
        (tally.http2.and_then(|http2| http2.streams_allowed), workload.connections)
    {
        warnings.push(format!("the server allows {allowed} streams at once: there were never {depth} on a connection"));
    }
    let dropped = tally.error(ErrorKind::Dropped).count;
    if dropped > 0 {
        let what = things_started(&workload.load);
        warnings.push(format!("the timetable was not kept: {dropped} {what} were due and never sent"));
    }
    if let (true, Some(lag), Some(median)) =
        (workload.load.is_open(), percentile_of(&tally.send_lag, 99.0), percentile_of(&tally.from_send, 50.0))
        && lag * 10 > median
    {
        warnings.push(format!("1 % of the requests were sent {} late or more: 'from intended' holds that", show(lag)));
    }
    warnings
}

fn description(workload: &Workload) -> String {
    let load = load_description(workload);
    let connections = match workload.connections {
        Connections::Kept { depth: 1 } => "connections kept".to_owned(),
        Connections::Kept { depth } if workload.http2 => format!("connections kept, {depth} streams each"),
        Connections::Kept { depth } => format!("connections kept, {depth} requests deep"),
        Connections::Short => "a connection for each request".to_owned(),
    };
    let http2 = if workload.http2 { ", HTTP/2" } else { "" };
    let threads = if workload.threads == 1 { "thread" } else { "threads" };
    format!("{load}, {} users{http2}, {connections}, {} {threads}", workload.users, workload.threads)
}

fn checked(checks: &Checks) -> String {
    let status = match checks.status {
        StatusWanted::Any => None,
        StatusWanted::NonError => Some("status 2xx or 3xx".to_owned()),
        StatusWanted::NonErrorOrMiss => Some("no error".to_owned()),
        StatusWanted::Exactly(status) => Some(format!("status {status}")),
    };
    let rest = [checks.length.then(|| "length".to_owned()), checks.bytes.then(|| "bytes".to_owned())];
    let checks: Vec<String> = status.into_iter().chain(rest.into_iter().flatten()).collect();
    if checks.is_empty() { "nothing checked".to_owned() } else { format!("checked: {}", checks.join(", ")) }
}

/// How many times shorter the bodies were than the pages.
fn ratio(tally: &Tally) -> Option<f64> {
    (tally.body_bytes > 0).then(|| tally.text_bytes as f64 / tally.body_bytes as f64)
}

fn encoding_words(forms: &FormsSeen, tally: &Tally) -> String {
    let mean = |bytes: u64| bytes as f64 / tally.good.max(1) as f64;
    let ratio = ratio(tally).map_or_else(String::new, |ratio| format!(", {ratio:.2} times as short"));
    format!(
        "{}: {:.0} bytes of {:.0} on average{ratio}; {} forms, {} bodies undone and compared",
        forms.coding.name(),
        mean(tally.body_bytes),
        mean(tally.text_bytes),
        forms.forms,
        forms.decoded,
    )
}

pub(crate) fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds.max(1e-9)
}

fn client_micros(outcome: &Outcome) -> f64 {
    let cpu: Duration = outcome.threads.iter().map(|thread| thread.cpu).sum();
    cpu.as_secs_f64() * 1e6 / outcome.tally.finished.max(1) as f64
}

fn shares(outcome: &Outcome) -> String {
    let shares: Vec<String> =
        outcome.threads.iter().map(|thread| format!("{:.0} %", thread.busy_share * 100.0)).collect();
    shares.join(" + ")
}

/// Microseconds, in the unit that a reader wants.
pub fn show(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{:.2} ms", micros as f64 / 1e3),
        10_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
