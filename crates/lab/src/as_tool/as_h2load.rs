//! As h2load: requests by what came of them, and four times with their spread.
//!
//! h2load's definitions: failed is what is no 2xx or 3xx, errored (which failed holds) what brought no answer, and
//! timeout a part of that. The bytes of header fields are counted as it counts them, names and values without what
//! stands around them, by the head of the first answer. A client is a connection.

use std::fmt::Write;

use hdrhistogram::Histogram;

use super::as_numbers::in_units;
use super::{Printed, TIMEOUTS, ToolRun, first_head, sum, within_deviation_percent};
use crate::error_kind::ErrorKind;
use crate::workload::Workload;

pub(super) fn opening(workload: &Workload) -> Printed {
    let length = match (workload.length.requests(), workload.length.time()) {
        (Some(count), _) => format!("{count} total requests"),
        (None, time) => format!("{}s of main duration for measurements", time.unwrap_or_default().as_secs()),
    };
    let mut out = format!(
        "starting benchmark...\nlarder bench, in the form of h2load: {} total client(s). {length}\n",
        workload.users
    );
    match (&workload.tls, workload.http2) {
        // Told when it was agreed on.
        (Some(_), _) => {}
        (None, true) => out.push_str("Application protocol: h2c\n"),
        (None, false) => out.push_str("Application protocol: http/1.1\n"),
    }
    Printed { out, err: String::new() }
}

/// What TLS agreed on, on the first connection.
fn agreed(run: &ToolRun<'_>) -> String {
    let Some((agreed, _)) = run.tally().handshakes.as_ref().and_then(|handshakes| handshakes.agreed.first()) else {
        return String::new();
    };
    let mut out = format!("TLS Protocol: {}\nCipher: {}\n", agreed.version_name(), agreed.suite_name());
    match agreed.group {
        None => {}
        Some("X25519") => out.push_str("Server Temp Key: X25519 253 bits\n"),
        Some("secp256r1") => out.push_str("Server Temp Key: ECDH P-256 256 bits\n"),
        Some("secp384r1") => out.push_str("Server Temp Key: ECDH P-384 384 bits\n"),
        Some(other) => out.push_str(&format!("Server Temp Key: {other}\n")),
    }
    let protocol = if run.workload.http2 { "h2" } else { "http/1.1" };
    out + &format!("Application protocol: {protocol}\n")
}

pub(super) fn closing(run: &ToolRun<'_>) -> Printed {
    let (tally, seconds) = (run.tally(), run.seconds());
    let (answers, received) = (tally.answers(), tally.received_bytes as f64);
    let mut out = agreed(run);
    out += &format!(
        "\nfinished in {}, {:.2} req/s, {}B/s\n",
        duration(seconds * 1e6),
        answers as f64 / seconds,
        bytes(received / seconds)
    );
    let whole = [ErrorKind::BadStatus, ErrorKind::BadLength, ErrorKind::BadBytes, ErrorKind::Dropped];
    let errored = tally.failed() - sum(tally, &whole);
    let succeeded = tally.status_class(2) + tally.status_class(3);
    let total = run.workload.length.requests().unwrap_or(tally.finished);
    let _ = writeln!(
        out,
        "requests: {total} total, {} started, {} done, {succeeded} succeeded, {} failed, {errored} errored, {} timeout",
        tally.started,
        tally.finished,
        errored + answers - succeeded,
        sum(tally, TIMEOUTS)
    );
    let [two, three, four, five] = [2, 3, 4, 5].map(|digit| tally.status_class(digit));
    let _ = writeln!(out, "status codes: {two} 2xx, {three} 3xx, {four} 4xx, {five} 5xx");
    let (fields, savings) = match tally.http2 {
        Some(http2) => {
            let sent = http2.field_block_bytes;
            (sent, 100.0 - sent as f64 * 100.0 / tally.head_bytes.max(1) as f64)
        }
        None => (field_bytes(run), 0.0),
    };
    let _ = writeln!(
        out,
        "traffic: {}B ({received}) total, {}B ({fields}) headers (space savings {savings:.2}%), {}B ({}) data",
        bytes(received),
        bytes(fields as f64),
        bytes(tally.answer_bytes as f64),
        tally.answer_bytes
    );
    let _ = writeln!(out, "{:>24}{:>12}{:>13}{:>11}{:>14}", "min", "max", "mean", "sd", "+/- sd");
    out.push_str(&row("time for request:", &tally.from_send, duration));
    out.push_str(&row("time for connect:", run.connect_times(), duration));
    out.push_str(&row("time to 1st byte:", &tally.lives.first_byte, duration));
    out.push_str(&row("req/s           :", &tally.lives.rate, |rate| format!("{:.2}", rate / 1e3)));
    Printed { out, err: String::new() }
}

fn row(name: &str, values: &Histogram<u64>, show: impl Fn(f64) -> String) -> String {
    let some = |value: f64| show(if values.is_empty() { 0.0 } else { value });
    format!(
        "{name} {:>10}  {:>10}  {:>10}  {:>10}{:>9.2}%\n",
        some(values.min() as f64),
        some(values.max() as f64),
        some(values.mean()),
        some(values.stdev()),
        within_deviation_percent(values)
    )
}

/// All heads, less for each answer what stands around its fields: the status line, colons, spaces and line ends.
fn field_bytes(run: &ToolRun<'_>) -> u64 {
    let tally = run.tally();
    let head = first_head(&tally.first_read);
    let around = match head.is_empty() {
        true => 0,
        false => {
            let status_line = head.iter().position(|byte| *byte == b'\r').map_or(head.len(), |end| end + 2);
            let fields = head.iter().filter(|byte| **byte == b'\n').count();
            status_line + 4 * fields + 2
        }
    };
    let heads = tally.received_bytes.saturating_sub(tally.answer_bytes);
    heads.saturating_sub(tally.answers() * around as u64)
}

fn duration(micros: f64) -> String {
    match micros {
        micros if micros >= 1e6 => format!("{:.2}s", micros / 1e6),
        micros if micros >= 1e3 => format!("{:.2}ms", micros / 1e3),
        micros => format!("{:.0}us", micros.floor()),
    }
}

/// Without the `B` of the unit.
fn bytes(count: f64) -> String {
    if count < 1024.0 { format!("{count:.0}") } else { in_units(count, 1024.0, 1.0, &["", "K", "M", "G"], 2) }
}
