//! `larder bench`: from what was typed to a workload, and from its outcome to a report. The load itself is `lab`'s.

use std::fs::File;
use std::io::Read;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use lab::{
    Arrivals, Catalogue, Checks, Connections, LabUrl, Length, Load, Order, Outcome, Recipe, StatusWanted, Tool,
    Workload, limits,
};
use tokio::sync::oneshot;

use crate::bench_show::Show;
use crate::bench_sources::{SourceList, sources};
use crate::open_files;
use crate::quantities::parse_duration;
use crate::say::say;
use crate::signals::{Signals, Told};

#[derive(Clone, Debug, Args)]
pub struct BenchFlags {
    /// What to ask for: http://HOST[:PORT][/PATH]
    #[arg(value_name = "URL", required_unless_present = "urls", value_parser = LabUrl::parse)]
    pub url: Option<LabUrl>,

    /// Connections, each of a user who asks and waits
    #[arg(short = 'c', long, value_name = "N", default_value = "10", value_parser = parse_connections)]
    pub connections: usize,

    /// How long: seconds, or 60S, 5M, 1H [default: 10]
    #[arg(short = 't', long, value_name = "TIME", value_parser = parse_time, conflicts_with = "requests")]
    pub time: Option<Duration>,

    /// How many requests instead
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,

    /// Start so many requests a second, however long answers take
    #[arg(long, value_name = "PER_SECOND", value_parser = parse_rate)]
    pub rate: Option<f64>,

    /// At random distances, as independent people come, instead of equal ones
    #[arg(long, requires = "rate")]
    pub poisson: bool,

    /// Keep connections: the default, understood because ab asks for it so
    #[arg(short = 'k', conflicts_with = "short")]
    pub keep_alive: bool,

    /// A new connection for each request
    #[arg(long)]
    pub short: bool,

    /// Requests under way at once on one connection
    #[arg(long, value_name = "DEPTH", default_value = "1", value_parser = parse_depth, conflicts_with = "short")]
    pub pipeline: usize,

    /// Ask for the URLs of a file: a path or a URL of the same server on each line
    #[arg(long, value_name = "FILE")]
    pub urls: Option<PathBuf>,

    /// In random order, instead of one after another
    #[arg(long, requires = "urls")]
    pub random: bool,

    /// A header field for every request
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub fields: Vec<String>,

    /// What an answer must have to count: its status, the length of its URL's first answer, that one's bytes
    #[arg(long, value_name = "UP_TO", default_value = "bytes")]
    pub check: CheckFlag,

    /// The only status that is an answer [default: 2xx and 3xx]
    #[arg(long, value_name = "CODE", value_parser = clap::value_parser!(u16).range(100..1000))]
    pub status: Option<u16>,

    /// For a connection, for the first byte of an answer, and between two reads of it
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = parse_time)]
    pub timeout: Duration,

    /// Threads of the load generator [default: one for every second core]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub threads: Option<usize>,

    /// Connect from these addresses, one user after another: ADDR, ADDR,ADDR or ADDR-ADDR; may be given several times
    #[arg(long = "source", value_name = "ADDRS", value_parser = SourceList::parse)]
    pub sources: Vec<SourceList>,

    /// Connect from the addresses of a file, one on each line
    #[arg(long, value_name = "FILE")]
    pub sources_file: Option<PathBuf>,

    /// Keep the threads of the load generator on these processors, one after another
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub cpus: Vec<usize>,

    /// Of all that is random: the same seed asks the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Print the report as JSON
    #[arg(long, conflicts_with = "tool")]
    pub json: bool,

    /// Print what this tool prints, and count as it counts: ab, siege, siege-text, http_load, httperf, wrk, wrk2, h2load
    #[arg(long = "as", value_name = "TOOL", value_parser = parse_tool)]
    pub tool: Option<Tool>,

    /// The latency distribution too, in the forms of wrk and wrk2
    #[arg(long, requires = "tool")]
    pub latency: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFlag {
    None,
    Status,
    Length,
    Bytes,
}

/// What is to be run.
pub struct Job {
    pub url: LabUrl,
    pub workload: Workload,
    pub catalogue: Catalogue,
}

pub fn bench(flags: &BenchFlags) -> ExitCode {
    let outcome = job(flags).and_then(|job| {
        let signals = Signals::listen().map_err(|error| format!("cannot listen for signals: {error}"))?;
        let show = Show::begin(flags, &job);
        run(job, show, signals)
    });
    match outcome {
        Ok((mut show, outcome)) => {
            show.end(&outcome);
            let all_good = outcome.tally.failed() == 0 && outcome.tally.answers() > 0;
            if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(sentence) => {
            say!("error: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Runs in a thread of its own while this one listens for signals: the first one ends the run, and the report follows.
fn run(job: Job, show: Show, mut signals: Signals) -> Result<(Show, Outcome), String> {
    let stop = Arc::new(AtomicBool::new(false));
    let (ended_sender, mut ended) = oneshot::channel();
    let running = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            let mut show = show;
            let outcome = lab::run(job.workload, job.catalogue, &stop, &mut |index, second| show.second(index, second));
            let _ = ended_sender.send(());
            (show, outcome)
        })
    };
    loop {
        match signals.wait(&mut ended, None) {
            Told::End => stop.store(true, Ordering::Relaxed),
            Told::Ended => break,
            Told::Reload | Told::Nothing => {}
        }
    }
    let (show, outcome) = running.join().map_err(|_| "the run panicked".to_owned())?;
    Ok((show, outcome.map_err(|error| error.to_string())?))
}

fn job(flags: &BenchFlags) -> Result<Job, String> {
    let list = flags.urls.as_ref().map(|path| {
        let complain = |what: String| format!("{}: {what}", path.display());
        read_list(path).map_err(complain).map(|text| (path, text))
    });
    let list = list.transpose()?;
    let url = match (&flags.url, &list) {
        (Some(url), _) => url.clone(),
        (None, Some((path, text))) => first_url(text).map_err(|what| format!("{}: {what}", path.display()))?,
        (None, None) => return Err("no URL was given".to_owned()),
    };
    let recipe = Recipe { fields: flags.fields.clone(), short: flags.short, ..Recipe::default() };
    let catalogue = match &list {
        None => Catalogue::of_url(&url, &recipe).map_err(|error| error.to_string())?,
        Some((path, text)) => {
            Catalogue::of_list(&url, text, &recipe).map_err(|error| format!("{}: {error}", path.display()))?
        }
    };
    let address = (url.host.as_str(), url.port).to_socket_addrs().map_err(|error| error.to_string());
    let address = address.and_then(|mut all| all.next().ok_or_else(|| "it has no address".to_owned()));
    let address = address.map_err(|error| format!("cannot resolve {}: {error}", url.host))?;
    if let Some(files) = open_files::raise_limit()
        && open_files::connections_that_fit(flags.connections, Some(files)) < flags.connections
    {
        return Err(format!("{} connections do not fit into {files} open files (ulimit -n)", flags.connections));
    }
    let workload = Workload { sources: sources(flags)?, cpus: flags.cpus.clone(), ..workload(flags, address) };
    Ok(Job { url, workload, catalogue })
}

fn workload(flags: &BenchFlags, address: std::net::SocketAddr) -> Workload {
    let arrivals = if flags.poisson { Arrivals::Poisson } else { Arrivals::Constant };
    let status = match (flags.status, flags.check) {
        (Some(status), _) => StatusWanted::Exactly(status),
        (None, CheckFlag::None) => StatusWanted::Any,
        (None, _) => flags.tool.map_or(Checks::ALL, |_| Tool::CHECKS).status,
    };
    let bytes = flags.check == CheckFlag::Bytes;
    Workload {
        load: flags.rate.map_or(Load::Closed, |per_second| Load::Open { per_second, arrivals }),
        length: flags.requests.map_or(Length::Time(flags.time.unwrap_or(TIME_DEFAULT)), Length::Requests),
        users: flags.connections,
        threads: flags.threads.unwrap_or_else(|| threads_default(flags.cpus.len())).min(flags.connections),
        connections: match flags.short {
            true => Connections::Short,
            false => Connections::Kept { pipeline: flags.pipeline },
        },
        order: if flags.random { Order::Random } else { Order::InTurn },
        checks: Checks { status, length: bytes || flags.check == CheckFlag::Length, bytes },
        timeout: flags.timeout,
        seed: flags.seed,
        ..Workload::new(address)
    }
}

const TIME_DEFAULT: Duration = Duration::from_secs(10);

/// One for each processor that was named. Otherwise the other half of the machine is the server's, when it is here too.
fn threads_default(cpus_named: usize) -> usize {
    if cpus_named > 0 {
        return cpus_named.min(limits::THREADS_MAX);
    }
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1)).min(limits::THREADS_MAX)
}

fn read_list(path: &PathBuf) -> Result<String, String> {
    let mut text = String::new();
    let max = limits::URL_LIST_BYTES_MAX;
    let read = File::open(path).and_then(|file| file.take(max + 1).read_to_string(&mut text));
    match read {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err("is no text".to_owned()),
        Err(error) => Err(error.to_string()),
        Ok(bytes) if bytes as u64 > max => Err(format!("larger than {max} bytes")),
        Ok(_) => Ok(text),
    }
}

/// Without a URL among the flags, the first one of the list names the target.
fn first_url(text: &str) -> Result<LabUrl, String> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    match lines.find(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        None => Err("holds no URL".to_owned()),
        Some((number, line)) if line.starts_with('/') => {
            Err(format!("line {number} is a path: give a URL too, whose host is asked"))
        }
        Some((number, line)) => LabUrl::parse(line).map_err(|what| format!("line {number}: {what}")),
    }
}

/// Seconds as ab takes them, or siege's `60S`, `5M`, `1H`, or a duration as everywhere else in larder.
fn parse_time(text: &str) -> Result<Duration, String> {
    let form = || "a time is seconds, or such as 60S, 5M, 1H, 500ms".to_owned();
    let time = match text.strip_suffix(['s', 'S']).unwrap_or(text).parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => parse_duration(&text.to_ascii_lowercase()).map_err(|_| form())?,
    };
    match time {
        Duration::ZERO => Err("a time is longer than nothing".to_owned()),
        time if time > limits::DURATION_MAX => Err("a week at most".to_owned()),
        time => Ok(time),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let max = limits::RATE_MAX;
    text.parse()
        .ok()
        .filter(|&rate| rate > 0.0 && rate <= max)
        .ok_or_else(|| format!("must be more than 0, up to {max}"))
}

fn parse_tool(text: &str) -> Result<Tool, String> {
    Tool::named(text).ok_or_else(|| format!("one of {}", Tool::ALL.map(Tool::name).join(", ")))
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
    fn a_list_alone_names_its_target() {
        assert_eq!(first_url("# x\n\nhttp://a:81/b\n/c").unwrap().port, 81);
        assert!(first_url("/c\n").unwrap_err().contains("line 1 is a path"));
        assert!(first_url("#\n").unwrap_err().contains("no URL"));
    }
}
