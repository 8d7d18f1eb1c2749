//! The flags of `larder bench`, and how their values are read. What they come to is `bench_job`'s.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lab::{ContentCoding, LabUrl, Tool, limits};

use crate::load_tool::bench_memcached::MemcachedFlags;
use crate::load_tool::bench_sources::SourceList;
use crate::load_tool::bench_tls::BenchTlsFlags;
use crate::quantities::parse_duration;

#[derive(Clone, Debug, Args)]
pub struct BenchFlags {
    /// What to ask for: http://HOST[:PORT][/PATH], the same with https, or memcached://HOST[:PORT]
    #[arg(value_name = "URL", required_unless_present = "urls", value_parser = LabUrl::parse)]
    pub url: Option<LabUrl>,

    /// Connections, each of a user who asks and waits [default: 10; for sessions, as many as may be open]
    #[arg(short = 'c', long, value_name = "N", value_parser = parse_connections)]
    pub connections: Option<usize>,

    /// How long to load: seconds, or 60S, 5M, 1H [default: 10]
    #[arg(short = 't', long, value_name = "TIME", value_parser = parse_time)]
    pub time: Option<Duration>,

    /// How many requests to send; with --time, whichever ends first
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,

    /// Start this many requests (or sessions) a second, however long answers take; several rates follow one another
    #[arg(long, value_name = "PER_SECOND,…", value_delimiter = ',', value_parser = parse_rate)]
    pub rate: Vec<f64>,

    /// How long each of several rates lasts
    #[arg(long, value_name = "TIME", requires = "rate", value_parser = parse_time)]
    pub step: Option<Duration>,

    /// Start requests at random intervals, as independent people come, instead of equal ones
    #[arg(long, requires = "rate")]
    pub poisson: bool,

    /// Start requests at intervals between 90 % and 110 % of equal ones
    #[arg(long, requires = "rate", conflicts_with = "poisson")]
    pub jitter: bool,

    /// Let users begin evenly over this time, instead of all at once
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["rate", "wsess", "wsesslog", "replay"])]
    pub ramp: Option<Duration>,

    /// Let a user wait before it asks again: a time drawn evenly between 0 and this
    #[arg(long, value_name = "TIME", value_parser = parse_time,
        conflicts_with_all = ["rate", "wsess", "wsesslog", "replay", "pipeline", "streams"])]
    pub think: Option<Duration>,

    /// Sessions: how many, calls of each, seconds to think between two bursts; --rate says how many begin a second,
    /// without it each begins when a user has ended the one before
    #[arg(long, value_name = "N,CALLS,SECONDS", value_parser = Sessions::parse, conflicts_with_all = ["requests", "pipeline", "streams"])]
    pub wsess: Option<Sessions>,

    /// Calls in a burst: the others follow at once when the first one was answered
    #[arg(long, value_name = "N", default_value = "1", requires = "wsess", value_parser = parse_burst)]
    pub burst_length: u32,

    /// Sessions from a file in httperf's format: how many sessions, seconds to think, the file
    #[arg(long, value_name = "N,SECONDS,FILE", value_parser = SessionFile::parse,
        conflicts_with_all = ["wsess", "requests", "pipeline", "streams", "urls"])]
    pub wsesslog: Option<SessionFile>,

    /// Repeat the requests of an access log, at the same intervals
    #[arg(long, value_name = "FILE", conflicts_with_all = ["urls", "rate", "wsess", "wsesslog", "method", "body"])]
    pub replay: Option<PathBuf>,

    /// How many times as fast as the log; 0: in its order, as fast as the connections allow
    #[arg(long, value_name = "TIMES", default_value = "1", requires = "replay", value_parser = parse_speed)]
    pub speed: f64,

    /// Keep connections open: the default; ab has this flag
    #[arg(short = 'k', conflicts_with = "short")]
    pub keep_alive: bool,

    /// Open a new connection for each request
    #[arg(long)]
    pub short: bool,

    /// Ask through a forward proxy: connect there, and name the whole URL in requests
    #[arg(long, value_name = "HOST:PORT", value_parser = LabUrl::parse)]
    pub proxy: Option<LabUrl>,

    /// Connect to this UNIX socket instead of the URL's host and port, which the Host field still names
    #[arg(long, value_name = "PATH", conflicts_with_all = ["proxy", "sources", "sources_file"])]
    pub unix: Option<PathBuf>,

    /// The method of the requests [default: GET; POST with --body]
    #[arg(long, value_name = "METHOD", ignore_case = true)]
    pub method: Option<MethodFlag>,

    /// Send this file as the body of each request
    #[arg(long, value_name = "FILE")]
    pub body: Option<PathBuf>,

    /// How many requests may be under way at once on one connection
    #[arg(long, value_name = "DEPTH", default_value = "1", value_parser = parse_depth, conflicts_with = "short")]
    pub pipeline: usize,

    /// Speak HTTP/2: to https by ALPN, to http by prior knowledge
    #[arg(long, conflicts_with = "pipeline")]
    pub h2: bool,

    /// How many requests may be under way at once on one HTTP/2 connection, each in a stream of its own [default: 1]
    #[arg(long, value_name = "N", requires = "h2", value_parser = parse_streams, conflicts_with = "short")]
    pub streams: Option<usize>,

    /// Ask for the URLs of a file: a path or a URL of the same server on each line; with --proxy, of any server
    #[arg(long, value_name = "FILE")]
    pub urls: Option<PathBuf>,

    /// Ask for the URLs in random order, instead of one after another
    #[arg(long, requires = "urls")]
    pub random: bool,

    /// Ask for the URLs by popularity: the k-th of the list in proportion to 1/k^ALPHA (0.6 to 1.2 on the web)
    #[arg(long, value_name = "ALPHA", requires = "urls", conflicts_with = "random", value_parser = parse_alpha)]
    pub zipf: Option<f64>,

    /// Send this header field with every request; repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub fields: Vec<String>,

    /// Ask for the pages in a content coding, gzip, br or zstd. Each answer must be in it, and become the page when it is undone
    #[arg(long, value_name = "CODING", value_parser = parse_coding,
        conflicts_with_all = ["tool", "method", "body"])]
    pub encoding: Option<ContentCoding>,

    /// What is checked of an answer: nothing, its status, also the length, also the bytes of its URL's first answer
    #[arg(long, value_name = "UP_TO", default_value = "bytes")]
    pub check: CheckFlag,

    /// The only status that counts as an answer [default: 2xx and 3xx]
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u16).range(100..1000))]
    pub status: Option<u16>,

    /// Time-out of a connection, of the first byte of an answer, and between two reads of it
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = parse_time)]
    pub timeout: Duration,

    /// Threads of the load generator [default: one for every second core]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub threads: Option<usize>,

    /// Connect from these addresses, one user after another: ADDR, ADDR,ADDR or ADDR-ADDR; repeatable
    #[arg(long = "source", value_name = "ADDRS", value_parser = SourceList::parse)]
    pub sources: Vec<SourceList>,

    /// Connect from the addresses in this file, one on each line
    #[arg(long, value_name = "FILE")]
    pub sources_file: Option<PathBuf>,

    /// Keep the threads of the load generator on these processors, one after another
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub cpus: Vec<usize>,

    /// Seed of all that is random: the same seed asks the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Print the report as JSON
    #[arg(long, conflicts_with = "tool")]
    pub json: bool,

    /// Print a line each second instead of the screen that a terminal gets
    #[arg(long)]
    pub plain: bool,

    /// Show what this process and its children use: give the server's process id, if it runs on this machine
    #[arg(long, value_name = "PID", conflicts_with = "tool")]
    pub server_pid: Option<u32>,

    /// Print what this tool prints, and count as it counts: ab, siege, siege-text, http_load, httperf, wrk, wrk2, h2load
    #[arg(long = "as", value_name = "TOOL", value_parser = parse_tool)]
    pub tool: Option<Tool>,

    /// Print the latency distribution too, with --as wrk and wrk2
    #[arg(long, requires = "tool")]
    pub latency: bool,

    #[command(flatten)]
    pub tls: BenchTlsFlags,

    #[command(flatten)]
    pub memcached: MemcachedFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFlag {
    None,
    Status,
    Length,
    Bytes,
}

/// Written as curl writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum MethodFlag {
    Get,
    Head,
    Post,
}

/// As httperf writes it: `2000,10,2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sessions {
    pub count: u64,
    pub calls: u32,
    pub think: Duration,
}

impl Sessions {
    fn parse(text: &str) -> Result<Sessions, String> {
        let mut parts = text.split(',');
        let parsed = (parts.next().map(parse_sessions), parts.next().map(parse_calls), parts.next().map(parse_think));
        match (parsed, parts.next()) {
            ((Some(count), Some(calls), Some(think)), None) => {
                Ok(Sessions { count: count?, calls: calls?, think: think? })
            }
            _ => Err("write three numbers with commas: sessions, calls of each, seconds to think".to_owned()),
        }
    }
}

/// As httperf writes it: `2000,2,FILE`; or `FILE` alone, each of its sessions once.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionFile {
    pub count: Option<u64>,
    pub think: Duration,
    pub path: PathBuf,
}

impl SessionFile {
    fn parse(text: &str) -> Result<SessionFile, String> {
        match text.splitn(3, ',').collect::<Vec<_>>()[..] {
            [count, think, path] => {
                Ok(SessionFile { count: Some(parse_sessions(count)?), think: parse_think(think)?, path: path.into() })
            }
            _ => Ok(SessionFile { count: None, think: Duration::ZERO, path: text.into() }),
        }
    }
}

fn parse_sessions(text: &str) -> Result<u64, String> {
    let max = limits::SESSIONS_MAX;
    text.parse().ok().filter(|n| (1..=max).contains(n)).ok_or_else(|| format!("`{text}` sessions: must be 1 to {max}"))
}

fn parse_calls(text: &str) -> Result<u32, String> {
    let max = limits::SESSION_CALLS_MAX;
    text.parse().ok().filter(|n| (1..=max).contains(n)).ok_or_else(|| format!("`{text}` calls: must be 1 to {max}"))
}

fn parse_think(text: &str) -> Result<Duration, String> {
    let think = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    think
        .filter(|&think| think <= limits::DURATION_MAX)
        .ok_or_else(|| format!("`{text}` is no time to think in seconds"))
}

fn parse_burst(text: &str) -> Result<u32, String> {
    parse_count(text, limits::PIPELINE_MAX).map(|burst| burst as u32)
}

fn parse_speed(text: &str) -> Result<f64, String> {
    let max = limits::SPEED_MAX;
    text.parse().ok().filter(|&speed| (0.0..=max).contains(&speed)).ok_or_else(|| format!("must be 0 to {max}"))
}

/// Seconds as ab takes them, or siege's `60S`, `5M`, `1H`, or a duration as everywhere else in larder.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let form = || "a time is seconds, or such as 60S, 5M, 1H, 500ms".to_owned();
    let time = match text.strip_suffix(['s', 'S']).unwrap_or(text).parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => parse_duration(&text.to_ascii_lowercase()).map_err(|_| form())?,
    };
    match time {
        Duration::ZERO => Err("a time must be longer than 0".to_owned()),
        time if time > limits::DURATION_MAX => Err("a time must be a week at most".to_owned()),
        time => Ok(time),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let max = limits::RATE_MAX;
    text.parse().ok().filter(|&rate| (0.0..=max).contains(&rate)).ok_or_else(|| format!("must be a number up to {max}"))
}

fn parse_tool(text: &str) -> Result<Tool, String> {
    Tool::named(text).ok_or_else(|| format!("one of {}", Tool::ALL.map(Tool::name).join(", ")))
}

fn parse_coding(text: &str) -> Result<ContentCoding, String> {
    let known = || ContentCoding::ALL.map(ContentCoding::name).join(", ");
    ContentCoding::named(text).ok_or_else(|| format!("one of {}", known()))
}

fn parse_alpha(text: &str) -> Result<f64, String> {
    let max = limits::ZIPF_ALPHA_MAX;
    text.parse().ok().filter(|alpha| (0.0..=max).contains(alpha)).ok_or_else(|| format!("must be 0 to {max}"))
}

fn parse_connections(text: &str) -> Result<usize, String> {
    parse_count(text, limits::CONNECTIONS_MAX)
}

fn parse_threads(text: &str) -> Result<usize, String> {
    parse_count(text, limits::THREADS_MAX)
}

fn parse_depth(text: &str) -> Result<usize, String> {
    parse_count(text, limits::PIPELINE_MAX)
}

fn parse_streams(text: &str) -> Result<usize, String> {
    parse_count(text, limits::STREAMS_MAX)
}

fn parse_count(text: &str, max: usize) -> Result<usize, String> {
    text.parse().ok().filter(|n| (1..=max).contains(n)).ok_or_else(|| format!("must be 1 to {max}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_ab_and_siege_write_them() {
        for (text, seconds) in [("60", 60.0), ("60S", 60.0), ("5m", 300.0), ("1H", 3600.0), ("500ms", 0.5)] {
            assert_eq!(parse_time(text).unwrap().as_secs_f64(), seconds, "{text}");
        }
        for text in ["", "S", "-1", "1.5", "60x", "0", "99999999"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sessions_are_read_as_httperf_writes_them() {
        let half = Duration::from_millis(500);
        assert_eq!(Sessions::parse("20,10,0.5"), Ok(Sessions { count: 20, calls: 10, think: half }));
        for text in ["", "20", "20,10", "20,10,2,3", "0,10,2", "20,0,2", "20,10,-1", "a,10,2", "20,10,nan"] {
            assert!(Sessions::parse(text).is_err(), "{text}");
        }
        let file = |count, think, path: &str| Ok(SessionFile { count, think, path: path.into() });
        assert_eq!(SessionFile::parse("20,0.5,a,b"), file(Some(20), half, "a,b"));
        assert_eq!(SessionFile::parse("a.log"), file(None, Duration::ZERO, "a.log"));
        assert!(SessionFile::parse("x,1,a").is_err() && SessionFile::parse("1,x,a").is_err());
    }
}
