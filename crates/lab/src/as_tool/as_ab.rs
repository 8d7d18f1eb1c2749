//! As ApacheBench: one URL, whole milliseconds, and a table of what a connection's time went into.
//!
//! ab's definitions: a request whose outcome is known is complete, whatever the outcome; an answer of a length other
//! than the first one's has failed; times count from the call to connect. Truncated bodies are failures of length to
//! ab too. Bytes that differ at the right length, which ab does not look at, stand under its Exceptions.

use std::fmt::Write;

use hdrhistogram::Histogram;

use super::as_numbers::whole_ms;
use super::{CONNECT_ERRORS, LENGTH_ERRORS, Printed, ToolRun, sum};
use crate::error_kind::ErrorKind;
use crate::lab_url::LabUrl;
use crate::workload::Workload;

/// Runs of so many requests or fewer end with "done" instead of with lines on the way.
const SILENT_MAX: u64 = 150;

pub(super) fn progress_step(requests: u64) -> u64 {
    if requests > SILENT_MAX { (requests / 10).max(100) } else { 0 }
}

pub(super) fn opening(url: &LabUrl, workload: &Workload) -> Printed {
    let end = if is_silent(workload) { "..." } else { "\n" };
    let out =
        format!("This is larder bench, in the form of ApacheBench\n\nBenchmarking {} (be patient){end}", url.host);
    Printed { out, err: String::new() }
}

fn is_silent(workload: &Workload) -> bool {
    workload.length.requests().is_some_and(|count| count <= SILENT_MAX)
}

pub(super) fn closing(run: &ToolRun<'_>) -> Printed {
    let (tally, seconds) = (run.tally(), run.seconds());
    let mut printed = Printed::default();
    match is_silent(run.workload) {
        true => printed.out.push_str("..done\n"),
        false => printed.err = format!("Finished {} requests\n", tally.finished),
    }
    printed.out.push_str("\n\n");
    let mut line = |name: &str, value: String| {
        let _ = writeln!(printed.out, "{name:<24}{value}");
    };
    line("Server Software:", run.first_field("Server").unwrap_or_default());
    line("Server Hostname:", run.url.host.clone());
    line("Server Port:", format!("{}\n", run.url.port));
    line("Document Path:", run.url.path.clone());
    line("Document Length:", format!("{} bytes\n", tally.first_length.unwrap_or(0)));
    line("Concurrency Level:", run.workload.users.to_string());
    line("Time taken for tests:", format!("{seconds:.3} seconds"));
    line("Complete requests:", tally.finished.to_string());
    printed.out.push_str(&failures(run));
    let mut line = |name: &str, value: String| {
        let _ = writeln!(printed.out, "{name:<24}{value}");
    };
    if run.keeps_connections() {
        line("Keep-Alive requests:", tally.kept.to_string());
    }
    line("Total transferred:", format!("{} bytes", tally.received_bytes));
    line("HTML transferred:", format!("{} bytes", tally.answer_bytes));
    if tally.finished > 0 {
        let each_ms = seconds * 1e3 / tally.finished as f64;
        line("Requests per second:", format!("{:.2} [#/sec] (mean)", tally.finished as f64 / seconds));
        line("Time per request:", format!("{:.3} [ms] (mean)", each_ms * run.workload.users as f64));
        line("Time per request:", format!("{each_ms:.3} [ms] (mean, across all concurrent requests)"));
        let rate = tally.received_bytes as f64 / 1024.0 / seconds;
        line("Transfer rate:", format!("{rate:.2} [Kbytes/sec] received"));
        printed.out.push_str(&times(run));
    }
    printed
}

fn failures(run: &ToolRun<'_>) -> String {
    let tally = run.tally();
    let connect = sum(tally, CONNECT_ERRORS);
    let length = sum(tally, LENGTH_ERRORS);
    let receive =
        sum(tally, &[ErrorKind::ReadReset, ErrorKind::NoAnswer, ErrorKind::FirstByteTimeout, ErrorKind::IdleTimeout]);
    let exceptions = sum(tally, &[ErrorKind::ProtocolError, ErrorKind::BadBytes, ErrorKind::Other]);
    let failed = connect + receive + length + exceptions;
    let mut out = format!("{:<24}{failed}\n", "Failed requests:");
    if failed > 0 {
        let _ =
            writeln!(out, "   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: {exceptions})");
    }
    let write_errors = tally.error(ErrorKind::WriteError).count;
    if write_errors > 0 {
        let _ = writeln!(out, "{:<24}{write_errors}", "Write errors:");
    }
    let other = tally.answers() - tally.status_class(2);
    if other > 0 {
        let _ = writeln!(out, "{:<24}{other}", "Non-2xx responses:");
    }
    out
}

/// One row of the table, in microseconds.
struct Row {
    min: f64,
    mean: f64,
    deviation: f64,
    median: f64,
    max: f64,
}

impl Row {
    fn of(values: &Histogram<u64>) -> Row {
        if values.is_empty() {
            return Row { min: 0.0, mean: 0.0, deviation: 0.0, median: 0.0, max: 0.0 };
        }
        let median = values.value_at_quantile(0.5);
        let (min, median, max) = (values.min() as f64, median as f64, values.max() as f64);
        Row { min, mean: values.mean(), deviation: values.stdev(), median, max }
    }

    /// The same with so many zeros beside the values: requests on a kept connection connect in no time.
    fn with_zeros(values: &Histogram<u64>, zeros: u64) -> Row {
        let row = Row::of(values);
        if zeros == 0 {
            return row;
        }
        let (count, all) = (values.len() as f64, (values.len() + zeros) as f64);
        let mean = row.mean * count / all;
        let square_mean = (row.deviation * row.deviation + row.mean * row.mean) * count / all;
        let rank = (0.5 - zeros as f64 / all) * all / count.max(1.0);
        let median = if rank <= 0.0 { 0.0 } else { values.value_at_quantile(rank) as f64 };
        Row { min: 0.0, mean, deviation: (square_mean - mean * mean).max(0.0).sqrt(), median, max: row.max }
    }

    fn text(&self, name: &str) -> String {
        format!(
            "{name:<12}{:>5} {:>4} {:>5.1} {:>6} {:>7}\n",
            whole_ms(self.min),
            whole_ms(self.mean),
            self.deviation / 1e3,
            whole_ms(self.median),
            whole_ms(self.max)
        )
    }

    /// ab's own doubt in its numbers, in the milliseconds that it prints.
    fn doubt(&self, what: &str) -> String {
        let apart = whole_ms(self.mean).abs_diff(whole_ms(self.median)) as f64;
        let deviation = self.deviation / 1e3;
        let (word, bound) = match apart {
            apart if apart > 2.0 * deviation => ("ERROR", "two standard deviations"),
            apart if apart > deviation => ("WARNING", "a standard deviation"),
            _ => return String::new(),
        };
        format!("{word}: The median and mean for {what} are more than {bound} apart\n")
    }
}

fn times(run: &ToolRun<'_>) -> String {
    let tally = run.tally();
    let (total, connect) = (&tally.from_intended, run.connect_times());
    let rows = [
        (
            "Connect:",
            "the initial connection time",
            Row::with_zeros(connect, total.len().saturating_sub(connect.len())),
        ),
        ("Processing:", "the processing time", Row::of(&tally.from_send)),
        ("Waiting:", "the waiting time", Row::of(&tally.first_byte)),
        ("Total:", "the total time", Row::of(total)),
    ];
    let mut out = "\nConnection Times (ms)\n              min  mean[+/-sd] median   max\n".to_owned();
    rows.iter().for_each(|(name, _, row)| out.push_str(&row.text(name)));
    rows.iter().for_each(|(_, what, row)| out.push_str(&row.doubt(what)));
    if total.len() > 1 {
        out.push_str("\nPercentage of the requests served within a certain time (ms)\n");
        for percent in [50, 66, 75, 80, 90, 95, 98, 99] {
            let micros = total.value_at_quantile(f64::from(percent) / 100.0);
            let _ = writeln!(out, "  {percent}%  {:>5}", whole_ms(micros as f64));
        }
        let _ = writeln!(out, " 100%  {:>5} (longest request)", whole_ms(total.max() as f64));
    }
    out
}
