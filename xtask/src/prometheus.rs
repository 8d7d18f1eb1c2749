//! Prometheus 3, the real one, scrapes larder and makes native histograms of its classic ones, as docs/metrics.md says it: what it answers
//! of them is held against what larder itself shows.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::go_peer::{self, Started, start};
use crate::original_scenario::Answer;
use crate::ports;
use crate::project::{Project, Stopwatch};
use crate::scenario_origin::RecordingOrigin;

/// With what it is made of pinned.
const SOURCES: &str = "spec/prometheus";
const BUILT: [&str; 3] = ["-tags", "remove_all_sd", "github.com/prometheus/prometheus/cmd/prometheus"];
const PAGE: &str = "docs/metrics.md";
const PATIENCE_S: f64 = 30.0;
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Requests: some of them miss, all others hit.
const MISSES: usize = 20;
const HITS: usize = 2_000;
/// Which histogram, and of which share of it.
const HISTOGRAM: &str = "larder_response_seconds";
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

pub fn task(project: &Project) -> Result<(), String> {
    project.build_larder()?;
    let program = go_peer::build(project, "prometheus", SOURCES, &BUILT)?;
    let folder = project.scratch("prometheus")?;
    let page = Answer { headers: vec!["Cache-Control: max-age=600".to_owned()], ..Answer::default() };
    let origin = RecordingOrigin::start(vec![page])?;
    let (larder, admin, prometheus) = (ports::free()?, ports::free()?, ports::free()?);
    let _larder = start_larder(project, &folder, [larder, admin, origin.port])?;
    load(larder)?;
    let shown = get(admin, "/metrics")?;
    let _prometheus = start_prometheus((project, &program), &folder, (prometheus, admin))?;
    let mut faults = Vec::new();
    for class in ["hit", "miss"] {
        let classic = ClassicBuckets::of(&shown, class)?;
        let count = once(prometheus, &format!("histogram_count({HISTOGRAM}{{class=\"{class}\"}})"))?;
        faults.extend(differs(&format!("the count of {class}"), count, classic.count()));
        for quantile in QUANTILES {
            let asked = format!("histogram_quantile({quantile}, {HISTOGRAM}{{class=\"{class}\"}})");
            let (found, right) = (once(prometheus, &asked)?, classic.quantile(quantile));
            println!("{asked} = {found} s, {right} s by the buckets");
            faults.extend(differs(&asked, found, right));
        }
    }
    let of_classic = query(prometheus, &format!("count({HISTOGRAM}_bucket)"))?;
    if of_classic.is_some() {
        faults.push("the classic buckets are kept as series, too".to_owned());
    }
    faults.iter().for_each(|fault| println!("{fault}"));
    if faults.is_empty() { Ok(()) } else { Err(format!("{} faults", faults.len())) }
}

fn differs(of: &str, found: f64, right: f64) -> Option<String> {
    let is_right = (found - right).abs() <= right.abs() * 1e-9;
    (!is_right).then(|| format!("{of}: {found} and not {right}"))
}

fn start_larder(project: &Project, folder: &Path, [port, admin, origin]: [u16; 3]) -> Result<Started, String> {
    let mut command = Command::new(project.larder());
    command.args([
        "serve",
        "--no-supervisor",
        "--listen",
        &format!("127.0.0.1:{port}"),
        "--admin",
        &format!("127.0.0.1:{admin}"),
    ]);
    start(command.args(["--origin", &format!("http://127.0.0.1:{origin}")]), &folder.join("larder.log"), port)
}

/// With the lines of the page, but for where larder is.
fn start_prometheus(
    (project, program): (&Project, &Path),
    folder: &Path,
    (port, admin): (u16, u16),
) -> Result<Started, String> {
    let page = fs::read_to_string(project.root.join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    let told = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let told = told.ok_or_else(|| format!("{PAGE} says nothing in YAML"))?;
    let text =
        format!("global: {{ scrape_interval: 1s }}\n{}", told.replace("127.0.0.1:9180", &format!("127.0.0.1:{admin}")));
    let config = folder.join("prometheus.yml");
    fs::write(&config, text).map_err(|error| format!("{}: {error}", config.display()))?;
    let mut command = Command::new(program);
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
    start(command.arg(format!("--web.listen-address=127.0.0.1:{port}")), &folder.join("prometheus.log"), port)
}

fn load(port: u16) -> Result<(), String> {
    for at in 0..MISSES + HITS {
        get(port, &format!("/{}", at % MISSES))?;
    }
    Ok(())
}

/// The body of the answer.
fn get(port: u16, target: &str) -> Result<String, String> {
    let asked = || {
        let mut client = TcpStream::connect(("127.0.0.1", port))?;
        write!(client, "GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        client.read_to_string(&mut answer).map(|_| answer)
    };
    let answer = asked().map_err(|error| format!("{target}: {error}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.starts_with("HTTP/1.1 200 ") { Ok(body.to_owned()) } else { Err(format!("{target}: {head}")) }
}

/// What Prometheus answers, as soon as it has scraped.
fn once(port: u16, asked: &str) -> Result<f64, String> {
    let begun = Stopwatch::start();
    loop {
        match query(port, asked)? {
            Some(value) => return Ok(value),
            None if begun.seconds() > PATIENCE_S => return Err(format!("Prometheus answers nothing to {asked}")),
            None => thread::sleep(LOOK_EVERY),
        }
    }
}

fn query(port: u16, asked: &str) -> Result<Option<f64>, String> {
    let encoded: String = asked.bytes().map(|byte| format!("%{byte:02X}")).collect();
    // It may be that it has not begun to answer.
    let Ok(body) = get(port, &format!("/api/v1/query?query={encoded}")) else { return Ok(None) };
    let body = body.find('{').map_or("", |at| &body[at..]);
    let answer: Value = serde_json::Deserializer::from_str(body)
        .into_iter()
        .next()
        .and_then(Result::ok)
        .ok_or_else(|| format!("{asked}: {body}"))?;
    Ok(answer["data"]["result"][0]["value"][1].as_str().and_then(|value| value.parse().ok()))
}

/// Of one class, as `/metrics` shows it: bounds, and how many are at most that.
struct ClassicBuckets(Vec<(f64, f64)>);

impl ClassicBuckets {
    fn of(shown: &str, class: &str) -> Result<ClassicBuckets, String> {
        let begins = format!("{HISTOGRAM}_bucket{{class=\"{class}\",le=\"");
        let bucket = |line: &str| {
            let (bound, count) = line.strip_prefix(&begins)?.split_once("\"} ")?;
            Some((bound.parse().ok()?, count.parse().ok()?))
        };
        let buckets: Vec<_> = shown.lines().filter_map(bucket).collect();
        if buckets.is_empty() {
            Err(format!("larder shows no {HISTOGRAM} of {class}"))
        } else {
            Ok(ClassicBuckets(buckets))
        }
    }

    fn count(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, count)| *count)
    }

    /// As Prometheus has it: as if those of a bucket lay evenly in it.
    fn quantile(&self, quantile: f64) -> f64 {
        let rank = quantile * self.count();
        let (mut lower, mut below) = (0.0, 0.0);
        for &(bound, count) in &self.0 {
            if count >= rank && count > below {
                return if bound.is_finite() {
                    lower + (bound - lower) * (rank - below) / (count - below)
                } else {
                    lower
                };
            }
            (lower, below) = (bound, count);
        }
        lower
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_in_its_bucket() {
        let line = |le: &str, count: u32| format!("{HISTOGRAM}_bucket{{class=\"hit\",le=\"{le}\"}} {count}\n");
        let other = format!("{HISTOGRAM}_bucket{{class=\"miss\",le=\"1\"}} 7\n");
        let shown =
            [line("0.000001", 0), line("0.000003", 50), line("0.000015", 100), line("+Inf", 100), other].concat();
        let buckets = ClassicBuckets::of(&shown, "hit").unwrap();
        assert_eq!(buckets.count(), 100.0);
        assert!((buckets.quantile(0.75) - 0.000_009).abs() < 1e-12);
        assert!((buckets.quantile(0.25) - 0.000_002).abs() < 1e-12);
        assert!(ClassicBuckets::of(&shown, "stale").is_err());
    }
}
