//! As wrk and as wrk2: latency and requests a second for each thread, and for wrk2 the whole distribution.
//!
//! wrk measures from when a request was sent, wrk2 from when it was meant to be. Requests a second are sampled each
//! second (wrk: each 100 ms), as the run's mean over its threads. wrk2's calibration lines are printed for scripts that
//! skip them; nothing is calibrated, and the first ten seconds count. The spectrum is what hdrhistogram.org's plotter
//! reads.

use std::fmt::Write;

use hdrhistogram::Histogram;

use super::as_numbers::in_units;
use super::{CONNECT_ERRORS, Printed, TIMEOUTS, ToolRun, sum, within_deviation_percent};
use crate::error_kind::ErrorKind;
use crate::lab_url::LabUrl;
use crate::workload::Workload;

/// The share of the next unit from which on it is used.
const UNIT_SHARE: f64 = 0.85;
/// Steps of the spectrum between a percentile and the one that is half as far from the end.
const SPECTRUM_STEPS: u32 = 5;

pub(super) fn opening(url: &LabUrl, workload: &Workload) -> Printed {
    let length = match (workload.length.requests(), workload.length.time()) {
        (Some(count), _) => format!("{count} requests"),
        (None, time) => in_units(time.unwrap_or_default().as_secs_f64(), 60.0, UNIT_SHARE, &["s", "m", "h"], 0),
    };
    let out = format!(
        "Running {length} test @ http://{}{}\n  {} threads and {} connections\n",
        url.authority, url.path, workload.threads, workload.users
    );
    Printed { out, err: String::new() }
}

pub(super) fn closing(run: &ToolRun<'_>) -> Printed {
    let latency = &run.tally().from_send;
    let mut out = thread_stats(run, latency);
    if run.distribution {
        out.push_str("  Latency Distribution\n");
        for percent in [50.0, 75.0, 90.0, 99.0] {
            let _ = writeln!(out, "{percent:>7}%{}", aligned(&time(at(latency, percent)), 10));
        }
    }
    out.push_str(&totals(run));
    Printed { out, err: String::new() }
}

pub(super) fn closing_corrected(run: &ToolRun<'_>) -> Printed {
    let latency = &run.tally().from_intended;
    let mut out = String::new();
    for _ in 0..run.workload.threads {
        let mean_ms = if latency.is_empty() { 0.0 } else { latency.mean() / 1e3 };
        let _ = writeln!(out, "  Thread calibration: mean lat.: {mean_ms:.3}ms, rate sampling interval: 1000ms");
    }
    out.push_str(&thread_stats(run, latency));
    if run.distribution {
        out.push_str("  Latency Distribution (HdrHistogram - Recorded Latency)\n");
        for percent in [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0] {
            let _ = writeln!(out, "{percent:>7.3}%{}", aligned(&time(at(latency, percent)), 10));
        }
        out.push_str(&spectrum(latency));
        out.push_str("----------------------------------------------------------\n");
    }
    out.push_str(&totals(run));
    Printed { out, err: String::new() }
}

fn at(values: &Histogram<u64>, percent: f64) -> f64 {
    values.value_at_quantile(percent / 100.0) as f64
}

fn thread_stats(run: &ToolRun<'_>, latency: &Histogram<u64>) -> String {
    let threads = run.workload.threads.max(1) as u64;
    let mut rates = Histogram::<u64>::new(3).expect("a constant that fits");
    // Only whole seconds are rates; a run without one has the rate of all of it.
    let whole_seconds = run.seconds() as usize;
    for second in run.outcome.seconds.iter().take(whole_seconds) {
        rates.record((second.good + second.failed) / threads).expect("a histogram without bounds");
    }
    if rates.is_empty() {
        let rate = run.tally().finished as f64 / run.seconds();
        rates.record(rate as u64 / threads).expect("a histogram without bounds");
    }
    let mut out = format!("  Thread Stats{:>6}{:>11}{:>8}{:>12}\n", "Avg", "Stdev", "Max", "+/- Stdev");
    for (name, values, show) in
        [("Latency", latency, time as fn(f64) -> String), ("Req/Sec", &rates, metric as fn(f64) -> String)]
    {
        let mean = if values.is_empty() { 0.0 } else { values.mean() };
        let _ = writeln!(
            out,
            "    {name:<10}{}{}{}{:>8.2}%",
            aligned(&show(mean), 8),
            aligned(&show(values.stdev()), 10),
            aligned(&show(values.max() as f64), 9),
            within_deviation_percent(values)
        );
    }
    out
}

fn totals(run: &ToolRun<'_>) -> String {
    let (tally, seconds) = (run.tally(), run.seconds());
    let answers = tally.answers();
    let elapsed = time(seconds * 1e6);
    let mut out = format!("  {answers} requests in {elapsed}, {}B read\n", binary(tally.received_bytes as f64));
    let connect = sum(tally, CONNECT_ERRORS) - sum(tally, &[ErrorKind::ConnTimeout, ErrorKind::TlsTimeout]);
    let timeouts = sum(tally, TIMEOUTS);
    let write = tally.error(ErrorKind::WriteError).count;
    let read = sum(
        tally,
        &[
            ErrorKind::ReadReset,
            ErrorKind::NoAnswer,
            ErrorKind::ShortBody,
            ErrorKind::LongBody,
            ErrorKind::ProtocolError,
            ErrorKind::Other,
        ],
    );
    if connect + read + write + timeouts > 0 {
        let _ = writeln!(out, "  Socket errors: connect {connect}, read {read}, write {write}, timeout {timeouts}");
    }
    let errors: u64 = (4..10).map(|digit| tally.status_class(digit)).sum();
    if errors > 0 {
        let _ = writeln!(out, "  Non-2xx or 3xx responses: {errors}");
    }
    let _ = writeln!(out, "Requests/sec: {:>9.2}", answers as f64 / seconds);
    let _ = writeln!(out, "Transfer/sec: {:>10}B", binary(tally.received_bytes as f64 / seconds));
    out
}

/// The distribution as HdrHistogram prints it, in milliseconds.
fn spectrum(values: &Histogram<u64>) -> String {
    let mut out = "\n  Detailed Percentile spectrum:\n".to_owned();
    let _ = writeln!(out, "{:>12} {:>12} {:>12} {:>12}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut count = 0;
    for step in values.iter_quantiles(SPECTRUM_STEPS) {
        count += step.count_since_last_iteration();
        let quantile = step.quantile_iterated_to();
        let (value, beyond) = (step.value_iterated_to() as f64 / 1e3, 1.0 / (1.0 - quantile));
        let _ = writeln!(out, "{value:>12.3} {quantile:>12.6} {count:>12} {beyond:>12.2}");
    }
    let (mean, deviation) = if values.is_empty() { (0.0, 0.0) } else { (values.mean() / 1e3, values.stdev() / 1e3) };
    let (max, total) = (values.max() as f64 / 1e3, values.len());
    // Of a histogram with three digits up to our longest latency; a plotter reads over them.
    let (buckets, sub_buckets) = (values.buckets(), 2048);
    let _ = writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]");
    let _ = writeln!(out, "#[Max     = {max:>12.3}, Total count    = {total:>12}]");
    let _ = writeln!(out, "#[Buckets = {buckets:>12}, SubBuckets     = {sub_buckets:>12}]");
    out
}

fn time(micros: f64) -> String {
    if micros >= 1e6 {
        in_units(micros / 1e6, 60.0, UNIT_SHARE, &["s", "m", "h"], 2)
    } else {
        in_units(micros, 1000.0, UNIT_SHARE, &["us", "ms"], 2)
    }
}

fn metric(value: f64) -> String {
    in_units(value, 1000.0, UNIT_SHARE, &["", "k", "M", "G", "T", "P"], 2)
}

fn binary(bytes: f64) -> String {
    in_units(bytes, 1024.0, UNIT_SHARE, &["", "K", "M", "G", "T", "P"], 2)
}

/// To the right, with a place for each of two letters of a unit: the digits stand below each other.
fn aligned(text: &str, width: usize) -> String {
    let letters = text.bytes().rev().take(2).filter(u8::is_ascii_alphabetic).count();
    let pad = 2 - letters;
    let width = width - pad;
    format!("{text:>width$}{:pad$}", "")
}
