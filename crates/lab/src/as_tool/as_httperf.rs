//! As httperf: connections, requests and replies each with its rate, its time and its size, and errors by kind.
//!
//! httperf samples the reply rate every five seconds; so do we, out of whole seconds. What fails after a connection
//! stands is client-timo when our patience ended and connreset when theirs did. Sessions have their lines when there were
//! any: completed, and of how many begun.

use std::fmt::Write;

use hdrhistogram::Histogram;

use super::as_numbers::ratio;
use super::{Printed, ToolRun, sum};
use crate::error_kind::ErrorKind;
use crate::lab_url::LabUrl;

const SAMPLE_SECONDS: usize = 5;

pub(super) fn opening(url: &LabUrl) -> Printed {
    let out =
        format!("larder bench, in the form of httperf: --server={} --port={} --uri={}\n", url.host, url.port, url.path);
    Printed { out, err: String::new() }
}

pub(super) fn closing(run: &ToolRun<'_>) -> Printed {
    let (tally, seconds) = (run.tally(), run.seconds());
    let (connections, requests, replies) = (tally.connections as f64, tally.started as f64, tally.answers() as f64);
    let mut out = format!(
        "Maximum connect burst length: 1\n\nTotal: connections {connections} requests {requests} replies {replies} test-duration {seconds:.3} s\n\n"
    );
    out.push_str(&connection_lines(run));
    let _ = writeln!(
        out,
        "Request rate: {:.1} req/s ({:.1} ms/req)\nRequest size [B]: {:.1}\n",
        requests / seconds,
        ratio(seconds * 1e3, requests),
        run.request_bytes_mean
    );
    out.push_str(&reply_lines(run));
    let (user, system) = (run.cpu.0.as_secs_f64(), run.cpu.1.as_secs_f64());
    let percent = |time: f64| 100.0 * time / seconds;
    let _ = writeln!(
        out,
        "CPU time [s]: user {user:.2} system {system:.2} (user {:.1}% system {:.1}% total {:.1}%)",
        percent(user),
        percent(system),
        percent(user + system)
    );
    let bytes_per_second = (requests * run.request_bytes_mean + tally.received_bytes as f64) / seconds;
    let _ = writeln!(
        out,
        "Net I/O: {:.1} KB/s ({:.1}*10^6 bps)\n",
        bytes_per_second / 1024.0,
        bytes_per_second * 8.0 / 1e6
    );
    out.push_str(&error_lines(run));
    out.push_str(&session_lines(run));
    Printed { out, err: String::new() }
}

fn connection_lines(run: &ToolRun<'_>) -> String {
    let (tally, seconds) = (run.tally(), run.seconds());
    let (connections, lives) = (tally.connections as f64, &tally.lives);
    let ms = |micros: f64| micros / 1e3;
    let (min, mean, median) = match lives.lifetime.is_empty() {
        true => (0.0, 0.0, 0.0),
        false => (lives.lifetime.min() as f64, lives.lifetime.mean(), lives.lifetime.value_at_quantile(0.5) as f64),
    };
    let connect = run.connect_times();
    let connect = if connect.is_empty() { 0.0 } else { connect.mean() };
    format!(
        "Connection rate: {:.1} conn/s ({:.1} ms/conn, <={} concurrent connections)\n\
         Connection time [ms]: min {:.1} avg {:.1} max {:.1} median {:.1} stddev {:.1}\n\
         Connection time [ms]: connect {:.1}\n\
         Connection length [replies/conn]: {:.3}\n\n",
        connections / seconds,
        ratio(seconds * 1e3, connections),
        lives.open_max,
        ms(min),
        ms(mean),
        ms(lives.lifetime.max() as f64),
        ms(median),
        ms(lives.lifetime.stdev()),
        ms(connect),
        ratio(tally.answers() as f64, connections),
    )
}

fn reply_lines(run: &ToolRun<'_>) -> String {
    let tally = run.tally();
    let rates = Rates::of(&samples(run));
    let mean_ms = |values: &Histogram<u64>| if values.is_empty() { 0.0 } else { values.mean() / 1e3 };
    let (response, whole) = (mean_ms(&tally.first_byte), mean_ms(&tally.from_send));
    let replies = tally.answers() as f64;
    let content = ratio(tally.answer_bytes as f64, replies);
    let header = ratio(tally.received_bytes.saturating_sub(tally.answer_bytes) as f64, replies);
    let mut out = format!(
        "Reply rate [replies/s]: min {:.1} avg {:.1} max {:.1} stddev {:.1} ({} samples)\n\
         Reply time [ms]: response {response:.1} transfer {:.1}\n\
         Reply size [B]: header {header:.1} content {content:.1} footer 0.0 (total {:.1})\n\
         Reply status:",
        rates.min,
        rates.mean,
        rates.max,
        rates.deviation,
        rates.samples,
        (whole - response).max(0.0),
        header + content
    );
    for digit in 1..=5 {
        let _ = write!(out, " {digit}xx={}", tally.status_class(digit));
    }
    out.push_str("\n\n");
    out
}

fn session_lines(run: &ToolRun<'_>) -> String {
    let tally = run.tally();
    let Some(sessions) = &tally.sessions else { return String::new() };
    let completed: Vec<f64> = sessions.completed_by_second.iter().map(|count| *count as f64).collect();
    let rates = Rates::of(&sample_means(&completed));
    let mean_seconds = |millis: &Histogram<u64>| if millis.is_empty() { 0.0 } else { millis.mean() / 1e3 };
    let mut out = format!(
        "\nSession rate [sess/s]: min {:.2} avg {:.2} max {:.2} stddev {:.2} ({}/{})\n\
         Session: avg {:.2} connections/session\n\
         Session lifetime [s]: {:.1}\n\
         Session failtime [s]: {:.1}\n\
         Session length histogram:",
        rates.min,
        sessions.completed as f64 / run.seconds(),
        rates.max,
        rates.deviation,
        sessions.completed,
        sessions.begun,
        ratio(tally.connections as f64, sessions.begun as f64),
        mean_seconds(&sessions.lifetime_millis),
        mean_seconds(&sessions.failtime_millis),
    );
    // Up to the longest that occurred.
    let lengths = &sessions.by_replies[..sessions.by_replies.iter().rposition(|n| *n > 0).map_or(1, |last| last + 1)];
    for count in lengths {
        let _ = write!(out, " {count}");
    }
    out.push('\n');
    out
}

/// Replies a second over five of them each; what is left at the end is no sample.
fn samples(run: &ToolRun<'_>) -> Vec<f64> {
    let whole_seconds = run.seconds() as usize;
    let seconds = &run.outcome.seconds[..whole_seconds.min(run.outcome.seconds.len())];
    let replies: Vec<f64> = seconds.iter().map(|second| second.good as f64).collect();
    sample_means(&replies)
}

fn sample_means(by_second: &[f64]) -> Vec<f64> {
    by_second.chunks_exact(SAMPLE_SECONDS).map(|five| five.iter().sum::<f64>() / SAMPLE_SECONDS as f64).collect()
}

struct Rates {
    min: f64,
    mean: f64,
    max: f64,
    deviation: f64,
    samples: usize,
}

impl Rates {
    fn of(samples: &[f64]) -> Rates {
        if samples.is_empty() {
            return Rates { min: 0.0, mean: 0.0, max: 0.0, deviation: 0.0, samples: 0 };
        }
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|rate| (rate - mean).powi(2)).sum();
        let deviation = if samples.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        let min = samples.iter().copied().fold(f64::INFINITY, f64::min);
        let max = samples.iter().copied().fold(0.0, f64::max);
        Rates { min, mean, max, deviation, samples: samples.len() }
    }
}

fn error_lines(run: &ToolRun<'_>) -> String {
    let tally = run.tally();
    let count = |kind| tally.error(kind).count;
    let ours = sum(tally, &[ErrorKind::FirstByteTimeout, ErrorKind::IdleTimeout]);
    let theirs = sum(
        tally,
        &[ErrorKind::ConnReset, ErrorKind::ReadReset, ErrorKind::NoAnswer, ErrorKind::ShortBody, ErrorKind::WriteError],
    );
    let other = sum(tally, &[ErrorKind::ProtocolError, ErrorKind::LongBody, ErrorKind::Other]);
    let rest = [ErrorKind::ConnTimeout, ErrorKind::ConnRefused, ErrorKind::FdUnavail, ErrorKind::AddrUnavail];
    let total = ours + theirs + other + sum(tally, &rest);
    format!(
        "Errors: total {total} client-timo {ours} socket-timo {} connrefused {} connreset {theirs}\n\
         Errors: fd-unavail {} addrunavail {} ftab-full 0 other {other}\n",
        count(ErrorKind::ConnTimeout),
        count(ErrorKind::ConnRefused),
        count(ErrorKind::FdUnavail),
        count(ErrorKind::AddrUnavail),
    )
}
