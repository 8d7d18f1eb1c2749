//! What a run of the matrix leaves behind: servers × rows, and everything somebody needs to believe it or repeat it.
//!
//! Plain values with one JSON form, written by `matrix`, read by the reports and by a comparison of two runs. The
//! numbers are what was measured in each block; what follows from them (medians, intervals, colours, ranks) is
//! beside them, computed once, so that all reports say the same. Nothing here measures or prints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Of the JSON; the number grows when a reader would have to change.
pub const RESULTS_FORMAT: &str = "larder-lab/1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabResults {
    /// [`RESULTS_FORMAT`].
    pub format: String,
    pub title: String,
    /// What the run is to show, in the words of the lab file.
    pub about: String,
    /// Fewer and shorter blocks than a publication needs.
    pub smoke: bool,
    /// Some cells were not reached.
    pub interrupted: bool,
    /// RFC 3339, UTC.
    pub begun: String,
    pub elapsed_seconds: f64,
    /// The command that repeats it.
    pub repeat: String,
    pub lab_file: NamedText,
    pub machine: Machine,
    pub method: MethodUsed,
    pub servers: Vec<ServerUsed>,
    /// What stands behind the caches.
    #[serde(default)]
    pub origin: Option<ServerUsed>,
    pub rows: Vec<RowUsed>,
    /// One for each server and row, rows outermost.
    pub cells: Vec<Cell>,
    pub differences: Vec<Difference>,
    /// What the same server twice differed by; one for each metric.
    pub noise: Vec<Noise>,
    /// About the whole run.
    pub warnings: Vec<String>,
}

impl LabResults {
    /// From the bytes of a `results.json`; the error says what is wrong with them.
    pub fn parse(json: &[u8]) -> Result<LabResults, String> {
        let value: serde_json::Value =
            serde_json::from_slice(json).map_err(|error| format!("is no results file: no JSON ({error})"))?;
        match value.get("format").and_then(|format| format.as_str()) {
            Some(RESULTS_FORMAT) => {}
            Some(format) => return Err(format!("has the format '{format}'; this larder reads '{RESULTS_FORMAT}'")),
            None => {
                return Err("is no results file: it names no format; `larder lab run` writes results.json".to_owned());
            }
        }
        serde_json::from_value(value).map_err(|error| format!("calls itself {RESULTS_FORMAT} and is broken: {error}"))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedText {
    pub name: String,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu_model: String,
    pub cpus: usize,
    pub memory_bytes: u64,
    pub kernel: String,
    pub open_files_max: u64,
    /// Load averages over a minute.
    pub load_before: f64,
    pub load_after: f64,
    /// The share of processor time that other guests of the host took while it ran.
    pub steal_share: f64,
    /// What else bears on speed: governor, mitigations, sysctls, by name.
    pub settings: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodUsed {
    pub blocks: usize,
    pub slice_seconds: f64,
    pub warm_seconds_max: f64,
    /// A server is started anew before every so many blocks; 0 never.
    pub restart_every: usize,
    pub seed: u64,
    pub client_cpus: Vec<usize>,
    pub server_cpus: Vec<usize>,
    pub client_threads: usize,
    /// The server that all others are compared with.
    pub reference: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUsed {
    /// Unique in the run.
    pub name: String,
    pub profile: String,
    /// As it says itself.
    pub version: String,
    pub command: Vec<String>,
    pub configs: Vec<NamedText>,
    pub binary_sha256: String,
    /// The name of the server of which this one is the second copy, which measures the noise.
    pub twin_of: Option<String>,
    /// Why it took no part, and what would change that.
    pub skipped: Option<String>,
    /// The server behind it that is a part of it, as a cache is behind what ends TLS for it: what both use is counted.
    #[serde(default)]
    pub behind: Option<Box<ServerUsed>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowUsed {
    /// Unique in the run: `6221 B, 100 connections, kept`.
    pub name: String,
    /// What rows of one curve have in common: `6221 B, kept`.
    pub family: String,
    /// Of one body, when all are of one size.
    pub size_bytes: Option<u64>,
    pub urls: u64,
    pub connections: usize,
    pub keep_alive: bool,
    /// Over TLS; otherwise in the clear.
    #[serde(default)]
    pub tls: bool,
    /// Over HTTP/2; otherwise over HTTP/1.1, or as the kind of the servers has it.
    #[serde(default)]
    pub http2: bool,
    /// Requests under way at once on each connection of HTTP/2.
    #[serde(default)]
    pub streams: Option<usize>,
    /// A user's next connection resumes the TLS session of its last one.
    #[serde(default)]
    pub resume: bool,
    /// The content coding that its answers are asked for in.
    #[serde(default)]
    pub encoding: Option<String>,
    /// Starts a second of an open loop; none in a closed one.
    pub rate_per_second: Option<f64>,
    /// The whole load in words.
    pub load: String,
    #[serde(default)]
    pub kind: RowKind,
    /// What our client gets from a server that does nothing but write one prebuilt answer; where nobody can be faster.
    #[serde(default)]
    pub null_ceiling_per_second: Option<f64>,
}

/// What a row asks of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowKind {
    /// All from what it holds.
    #[default]
    Hit,
    /// The origin answers every request.
    Pass,
    /// Every request is for a URL that was never asked for: fetched, stored and answered.
    Miss,
    /// Connections that ask once and are then held, and one that asks while they are.
    Idle,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub server: String,
    pub row: String,
    pub colour: Colour,
    pub bound: Bound,
    /// May its throughput be ranked? Light yellow and green cells that the client did not bound may.
    pub ranks_throughput: bool,
    /// The metrics in which it may stand beside other cells of its row.
    #[serde(default)]
    pub comparable_in: Vec<Metric>,
    /// Sentences on why it is coloured, bounded or not ranked as it is.
    pub why: Vec<String>,
    pub blocks: Vec<Block>,
    /// Medians over the blocks.
    pub goodput_per_second: Option<Estimate>,
    pub server_micros_per_answer: Option<Estimate>,
    pub p50_micros: Option<Estimate>,
    pub p99_micros: Option<Estimate>,
    /// Of an idle row: memory that a held connection costs.
    #[serde(default)]
    pub bytes_per_connection: Option<Estimate>,
    /// The look at every URL before anything was measured.
    #[serde(default)]
    pub gate: Option<Gate>,
    /// Had it settled when it was measured? None where nothing warms up.
    #[serde(default)]
    pub steady: Option<bool>,
    /// Over all blocks, merged: percentile (50.0 …) and microseconds from the intended start; without those that have
    /// too few samples behind them.
    pub spectrum: Vec<(f64, u64)>,
    /// The same from the real send.
    pub spectrum_from_send: Vec<(f64, u64)>,
    /// By the stable names of kinds of error.
    pub errors: BTreeMap<String, ErrorSeen>,
}

/// What came of asking for each URL once and comparing every byte with the rule that makes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    pub urls: u64,
    pub bytes: u64,
    /// What was wrong, the first few; empty when nothing was.
    pub bad: Vec<String>,
}

/// How trustworthy a cell is: the share of requests that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Colour {
    /// Nothing failed.
    Clean,
    /// Fewer than 0.1 %.
    LightYellow,
    /// Fewer than 10 %.
    Orange,
    /// 10 % or more, or a single bad byte, or the server died.
    Red,
    /// Not run: the words are in `why`.
    White,
}

/// What limited it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    Server,
    Client,
    Origin,
    /// Nobody was busy: more concurrency would have helped, or the timetable asked for no more.
    Latency,
    Unknown,
}

/// One server's slice of one block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Block {
    pub block: usize,
    /// Seconds since the run began.
    pub at_seconds: f64,
    pub elapsed_seconds: f64,
    pub good: u64,
    pub failed: u64,
    pub body_bytes: u64,
    /// Of the texts behind them, where they came in a content coding.
    #[serde(default)]
    pub text_bytes: Option<u64>,
    pub p50_micros: Option<u64>,
    pub p99_micros: Option<u64>,
    pub max_micros: Option<u64>,
    pub connections_opened: u64,
    pub client_busy_share: f64,
    /// Of the server's processes together.
    pub server: ServerCost,
    /// Requests that reached the origin.
    pub origin_requests: Option<u64>,
    /// Of the processors that the load and the origin share.
    #[serde(default)]
    pub origin_busy_share: Option<f64>,
    /// Was the server started anew before this block?
    pub restarted: bool,
    /// Of an open loop: how late the last hundredth of the requests was sent.
    #[serde(default)]
    pub send_lag_p99_micros: Option<u64>,
    /// The server, or a process of it that should stay, was gone at the end.
    #[serde(default)]
    pub server_died: bool,
    #[serde(default)]
    pub held: Option<Held>,
    #[serde(default)]
    pub sessions: Option<SessionsSeen>,
    #[serde(default)]
    pub handshakes: Option<HandshakesSeen>,
    /// What was sampled while it ran, oldest first.
    pub samples: Vec<Sample>,
}

/// Of an idle row: the connections that were held. The block's latencies are those of the probe meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    pub asked: u64,
    /// Still open at the end.
    pub alive: u64,
    pub pss_before_bytes: u64,
    pub pss_held_bytes: u64,
}

/// Of a row of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionsSeen {
    pub begun: u64,
    /// All their requests were answered well.
    pub completed: u64,
    /// Ended at their first request that failed.
    pub failed: u64,
}

/// Of a row over TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HandshakesSeen {
    pub made: u64,
    /// Those that went on with an earlier session.
    pub resumed: u64,
    /// From the first byte of TLS to when the connection can be used.
    pub p50_micros: Option<u64>,
    pub p99_micros: Option<u64>,
}

/// What the server's processes used in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCost {
    pub cpu_seconds: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    /// Of the cores it was given.
    pub busy_share: f64,
    pub pss_bytes: u64,
    pub fds: u64,
    pub threads: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Since the slice began.
    pub at_seconds: f64,
    pub good_per_second: f64,
    pub failed: u64,
    pub p99_micros: Option<u64>,
    pub server_busy_share: f64,
    pub server_pss_bytes: u64,
}

/// A median over blocks, with the 95 % bootstrap interval of that median.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub min: f64,
    pub max: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorSeen {
    pub count: u64,
    /// Seconds since the run began.
    pub first_seconds: f64,
    pub last_seconds: f64,
    pub sample: String,
}

/// `server` against `against` in one row, by ratios within blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    pub row: String,
    pub metric: Metric,
    pub server: String,
    pub against: String,
    pub ratio: Estimate,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// More is better.
    Goodput,
    /// Less is better, as for all below.
    ServerMicrosPerAnswer,
    P50,
    P99,
    /// Memory for each held connection.
    BytesPerConnection,
}

impl Metric {
    /// In the order in which they are shown: what a small machine can say of a server comes first.
    pub const ALL: [Metric; 5] =
        [Metric::ServerMicrosPerAnswer, Metric::P99, Metric::P50, Metric::Goodput, Metric::BytesPerConnection];

    /// As people call it.
    pub fn words(self) -> &'static str {
        match self {
            Metric::Goodput => "goodput",
            Metric::ServerMicrosPerAnswer => "CPU for each answer",
            Metric::P50 => "p50",
            Metric::P99 => "p99",
            Metric::BytesPerConnection => "memory for each held connection",
        }
    }

    /// Is a ratio on the better side of 1?
    pub fn is_better(self, ratio: f64) -> bool {
        (self == Metric::Goodput) == (ratio > 1.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval excludes 1 and the gap is larger than the noise.
    Better,
    Worse,
    NoDifferenceShown,
    /// One of the two cells may not be compared in this metric.
    NotRanked,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    pub row: String,
    pub metric: Metric,
    pub ratio: Estimate,
    /// How far the ratio of the two copies is from 1, at the worse end of its interval.
    pub gap: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_results_file_is_refused_with_a_reason() {
        for (json, expect) in [
            ("", "no JSON"),
            ("{", "no JSON"),
            ("[1]", "names no format"),
            ("{\"format\": \"larder-bench/1\"}", "has the format 'larder-bench/1'; this larder reads 'larder-lab/1'"),
            ("{\"format\": \"larder-lab/1\"}", "is broken: missing field `title`"),
        ] {
            let error = LabResults::parse(json.as_bytes()).unwrap_err();
            assert!(error.contains(expect), "{error}");
        }
    }
}
