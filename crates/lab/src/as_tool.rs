//! The outcome of a run in the form of a tool that people know: `larder bench … --as ab`.
//!
//! Scripts read ab, siege, http_load, httperf, wrk, wrk2 and h2load by their labels, so each printer keeps its tool's
//! labels, their order, units and number formats, and its definitions: what ab calls complete may be no good answer to
//! us. What surrounds the labels is ours. A printer says nothing that a run did not measure; where a tool has no line
//! for what went wrong, [`unsaid`] is the sentence for it. Nothing here knows who prints, or where.

mod as_ab;
mod as_h2load;
mod as_http_load;
mod as_httperf;
mod as_numbers;
mod as_siege;
mod as_wrk;

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::error_kind::ErrorKind;
use crate::lab_url::LabUrl;
use crate::run::Outcome;
use crate::tally::Tally;
use crate::workload::{Checks, Connections, StatusWanted, Workload};

/// Whose form it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Ab,
    /// As JSON, which siege prints since 4.0.5 …
    Siege,
    /// … and as the table that it printed before, and prints with `json_output = false`.
    SiegeText,
    HttpLoad,
    Httperf,
    Wrk,
    Wrk2,
    H2load,
}

/// All that is printed about one run.
#[derive(Clone, Copy, Debug)]
pub struct ToolRun<'a> {
    pub url: &'a LabUrl,
    pub workload: &'a Workload,
    pub outcome: &'a Outcome,
    /// Of the bytes of a request, over all in the catalogue.
    pub request_bytes_mean: f64,
    /// Of this process, in user and in system mode, as far as the system tells them apart.
    pub cpu: (Duration, Duration),
    /// wrk prints its distribution only when asked.
    pub distribution: bool,
}

/// What a tool writes to its standard output and to its standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printed {
    pub out: String,
    pub err: String,
}

impl Tool {
    pub const ALL: [Tool; 8] =
        [Tool::Ab, Tool::Siege, Tool::SiegeText, Tool::HttpLoad, Tool::Httperf, Tool::Wrk, Tool::Wrk2, Tool::H2load];

    pub const fn name(self) -> &'static str {
        match self {
            Tool::Ab => "ab",
            Tool::Siege => "siege",
            Tool::SiegeText => "siege-text",
            Tool::HttpLoad => "http_load",
            Tool::Httperf => "httperf",
            Tool::Wrk => "wrk",
            Tool::Wrk2 => "wrk2",
            Tool::H2load => "h2load",
        }
    }

    pub fn named(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// All of them take an answer of any status for one. Bodies are compared all the same: see [`unsaid`].
    pub const CHECKS: Checks = Checks { status: StatusWanted::Any, length: true, bytes: true };

    /// Before the first connection.
    pub fn opening(self, url: &LabUrl, workload: &Workload) -> Printed {
        match self {
            Tool::Ab => as_ab::opening(url, workload),
            Tool::Siege | Tool::HttpLoad => Printed::default(),
            Tool::SiegeText => as_siege::opening(workload),
            Tool::Httperf => as_httperf::opening(url),
            Tool::Wrk | Tool::Wrk2 => as_wrk::opening(url, workload),
            Tool::H2load => as_h2load::opening(workload),
        }
    }

    /// When it is over.
    pub fn closing(self, run: &ToolRun<'_>) -> Printed {
        match self {
            Tool::Ab => as_ab::closing(run),
            Tool::Siege => as_siege::json(run),
            Tool::SiegeText => as_siege::text(run),
            Tool::HttpLoad => as_http_load::closing(run),
            Tool::Httperf => as_httperf::closing(run),
            Tool::Wrk => as_wrk::closing(run),
            Tool::Wrk2 => as_wrk::closing_corrected(run),
            Tool::H2load => as_h2load::closing(run),
        }
    }
}

/// How far a run is, told in tenths of its requests by those tools that do.
#[derive(Debug)]
pub struct Progress {
    tool: Tool,
    /// So many requests are told about at once; 0 is never.
    step: u64,
    total: u64,
    told: u64,
    done: u64,
}

impl Progress {
    pub fn new(tool: Tool, workload: &Workload) -> Progress {
        let total = workload.length.requests().unwrap_or(0);
        let step = match tool {
            Tool::Ab => as_ab::progress_step(total),
            Tool::H2load => total / 10,
            _ => 0,
        };
        Progress { tool, step, total, told: 0, done: 0 }
    }

    /// So many more are done.
    pub fn add(&mut self, requests: u64) -> Printed {
        self.done += requests;
        let mut printed = Printed::default();
        while self.step > 0 && self.told + self.step <= self.done.min(self.total) {
            self.told += self.step;
            match self.tool {
                Tool::Ab => printed.err.push_str(&format!("Completed {} requests\n", self.told)),
                _ => printed.out.push_str(&format!("progress: {}% done\n", self.told * 100 / self.total)),
            }
        }
        printed
    }
}

/// What went wrong and has no line in this tool's form: each a sentence.
pub fn unsaid(tool: Tool, run: &ToolRun<'_>) -> Vec<String> {
    let count = |kind| run.outcome.tally.error(kind).count;
    let mut sentences = Vec::new();
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            sentences.push(format!("{count} {what}, for which {} has no line", tool.name()));
        }
    };
    // ab counts them among its exceptions, http_load among its bad byte counts.
    if !matches!(tool, Tool::Ab | Tool::HttpLoad) {
        say(count(ErrorKind::BadLength), "answers were not as long as the first one of their URL");
        say(count(ErrorKind::BadBytes), "answers had other bytes than the first one of their URL");
    }
    say(count(ErrorKind::Dropped), "requests were due by the timetable and never sent");
    if matches!(tool, Tool::Wrk | Tool::Wrk2) {
        say(count(ErrorKind::ShortBody), "bodies were truncated");
    }
    if run.workload.tls.as_ref().is_some_and(|settings| settings.authorities.is_none()) {
        sentences.push("whose certificates these are was not verified".to_owned());
    }
    sentences
}

fn sum(tally: &Tally, kinds: &[ErrorKind]) -> u64 {
    kinds.iter().map(|kind| tally.error(*kind).count).sum()
}

/// No connection came about.
const CONNECT_ERRORS: &[ErrorKind] = &[
    ErrorKind::ConnRefused,
    ErrorKind::ConnReset,
    ErrorKind::ConnTimeout,
    ErrorKind::TlsCertificate,
    ErrorKind::TlsAlert,
    ErrorKind::TlsClosed,
    ErrorKind::TlsTimeout,
    ErrorKind::TlsProtocol,
    ErrorKind::FdUnavail,
    ErrorKind::AddrUnavail,
];
const TIMEOUTS: &[ErrorKind] =
    &[ErrorKind::ConnTimeout, ErrorKind::TlsTimeout, ErrorKind::FirstByteTimeout, ErrorKind::IdleTimeout];
/// The body has another length than it should.
const LENGTH_ERRORS: &[ErrorKind] = &[ErrorKind::BadLength, ErrorKind::ShortBody, ErrorKind::LongBody];

impl ToolRun<'_> {
    fn tally(&self) -> &Tally {
        &self.outcome.tally
    }

    fn seconds(&self) -> f64 {
        self.outcome.elapsed.as_secs_f64().max(1e-9)
    }

    /// All of the tools count the handshake of TLS into the time of a connection.
    fn connect_times(&self) -> &Histogram<u64> {
        self.tally().handshakes.as_ref().map_or(&self.tally().connect, |handshakes| &handshakes.with_connect)
    }

    fn keeps_connections(&self) -> bool {
        matches!(self.workload.connections, Connections::Kept { .. })
    }

    /// The text of a field in the head of the first answer.
    fn first_field(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(first_head(&self.tally().first_read)).into_owned();
        let mut fields = text.lines().skip(1).filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))?;
        Some(value.trim().chars().filter(|c| !c.is_control()).collect())
    }
}

/// The head of an answer, without the empty line; nothing when it does not end in what is there.
fn first_head(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    &bytes[..end.unwrap_or(0)]
}

/// The share in percent of what lies within one standard deviation of the mean.
fn within_deviation_percent(values: &Histogram<u64>) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let (mean, deviation) = (values.mean(), values.stdev());
    let from = (mean - deviation).max(0.0).ceil() as u64;
    let to = (mean + deviation).floor() as u64;
    let count: u64 = values
        .iter_recorded()
        .map(|step| (step.value_iterated_to(), step.count_at_value()))
        // A step names the highest value of its bucket; all of the bucket counts when its middle lies within.
        .filter(|(value, _)| (from..=to).contains(&values.median_equivalent(*value)))
        .map(|(_, count)| count)
        .sum();
    count as f64 * 100.0 / values.len() as f64
}

#[cfg(test)]
#[path = "as_tool/as_tool_tests.rs"]
mod tests;
