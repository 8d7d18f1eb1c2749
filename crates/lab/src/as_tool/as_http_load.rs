//! As http_load: fetches, the two times of a connection in milliseconds, bad byte counts, and every status.
//!
//! http_load opens a connection for each fetch, so its "mean bytes/connection" is by fetch, also where ours were kept.
//! A fetch that timed out counts as one. Bytes that differ at the right length are among the bad byte counts.

use std::fmt::Write;

use hdrhistogram::Histogram;

use super::as_numbers::general;
use super::{LENGTH_ERRORS, Printed, TIMEOUTS, ToolRun, sum};
use crate::error_kind::ErrorKind;

pub(super) fn closing(run: &ToolRun<'_>) -> Printed {
    let (tally, seconds) = (run.tally(), run.seconds());
    let (fetches, bytes) = (tally.finished, tally.answer_bytes as f64);
    let mut out = format!(
        "{fetches} fetches, {} max parallel, {} bytes, in {} seconds\n",
        tally.lives.open_max,
        general(bytes),
        general(seconds)
    );
    if fetches > 0 {
        let _ = writeln!(out, "{} mean bytes/connection", general(bytes / fetches as f64));
    }
    let rates = (general(fetches as f64 / seconds), general(bytes / seconds));
    let _ = writeln!(out, "{} fetches/sec, {} bytes/sec", rates.0, rates.1);
    out.push_str(&times("msecs/connect", run.connect_times()));
    out.push_str(&times("msecs/first-response", &tally.first_byte));
    let bad = sum(tally, LENGTH_ERRORS) + tally.error(ErrorKind::BadBytes).count;
    for (count, what) in [(sum(tally, TIMEOUTS), "timeouts"), (bad, "bad byte counts")] {
        if count > 0 {
            let _ = writeln!(out, "{count} {what}");
        }
    }
    out.push_str("HTTP response codes:\n");
    for (status, count) in tally.status_codes.iter().enumerate().filter(|(_, count)| **count > 0) {
        let _ = writeln!(out, "  code {status:03} -- {count}");
    }
    Printed { out, err: String::new() }
}

fn times(name: &str, micros: &Histogram<u64>) -> String {
    if micros.is_empty() {
        return String::new();
    }
    let ms = |micros: f64| general(micros / 1e3);
    format!("{name}: {} mean, {} max, {} min\n", ms(micros.mean()), ms(micros.max() as f64), ms(micros.min() as f64))
}
