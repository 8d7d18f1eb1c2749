//! `cargo xtask memory`: is the memory limit true? larder stands a mixed load under a small limit; what the kernel says it
//! occupies, the store's file in memory included, is looked at four times a second, written down and plotted. It fails when
//! the line was crossed, when there was a moment in which nothing came from the store, when a byte was wrong, when fewer URLs
//! were asked for than promised, and when larder ended.

use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::dice::Dice;
use crate::memory_load::{Load, Outcome, Target, ask_admin};
use crate::memory_plot;
use crate::memory_site::Site;
use crate::memory_stalled::{self, Stalled};
use crate::project::{Project, Stopwatch};
use crate::started_larder;
use crate::step_tally::Tally;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// 10 million in 20 minutes.
const URLS_PER_MINUTE: f64 = 500_000.0;
/// What is not judged: until then the pages that are asked for often come for the first time.
const WARM_SECONDS: u64 = 3;
/// Fewer requests say nothing of the hit ratio, and are taken together with those of the next second.
const REQUESTS_JUDGED_MIN: u64 = 200;
/// So many moments must have been judged, of however short a run.
const RATIOS_MIN: usize = 5;
/// What `cargo xtask test` asks for: the run is a short one, and how fast the machine is does not matter.
const MINUTES_IN_TESTS: f64 = 0.25;
const URLS_IN_TESTS: u64 = 2_000;
const MEMORY: &str = "256MiB";
/// Readers that do not read, or hardly, and the bytes a second that they take: what `cargo xtask test` asks for beside that.
const STALLED_IN_TESTS: [(usize, usize); 2] = [(200, 0), (200, 500)];
const STALLED_MEMORY: &str = "64MiB";
const STALLED_SECONDS: f64 = 6.0;

/// One second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub second: u64,
    /// The most of that second, the file in memory included.
    pub resident_bytes: u64,
    pub in_file_bytes: u64,
    /// VmHWM, which knows no file in memory.
    pub peak_bytes: u64,
    pub share_bytes: u64,
    pub used_bytes: u64,
    pub connections: u64,
    pub refused: u64,
    pub requests: u64,
    pub hits: u64,
}

struct Asked {
    minutes: f64,
    memory: String,
    seed: u64,
    /// Distinct ones that must have been answered.
    urls: Option<u64>,
    /// Readers that do not read, instead of the mixed load, or take so much.
    stalled: usize,
    bytes_per_second: usize,
}

impl Asked {
    fn usual() -> Asked {
        let (memory, seed) = (MEMORY.to_owned(), Dice::drawn());
        Asked { minutes: 1.0, memory, seed, urls: None, stalled: 0, bytes_per_second: 0 }
    }

    fn urls(&self) -> u64 {
        self.urls.unwrap_or((self.minutes * URLS_PER_MINUTE) as u64)
    }
}

/// A short run, for `cargo xtask test`.
pub fn run(project: &Project) -> Result<Tally, String> {
    let asked = Asked { minutes: MINUTES_IN_TESTS, urls: Some(URLS_IN_TESTS), ..Asked::usual() };
    let (summary, wrong) = measure(project, &asked)?;
    let mut tally = Tally::of(wrong);
    if tally.failed > 0 {
        tally.remarks.push(summary);
    }
    for (readers, bytes_per_second) in STALLED_IN_TESTS {
        let stalled = Stalled { readers, bytes_per_second, memory: STALLED_MEMORY, seconds: STALLED_SECONDS };
        tally.add(Tally::of(memory_stalled::measure(project, stalled)?.1));
    }
    Ok(tally)
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let asked = read_options(options)?;
    let (summary, wrong) = match asked.stalled {
        0 => measure(project, &asked)?,
        readers => {
            let (bytes_per_second, seconds) = (asked.bytes_per_second, asked.minutes * 60.0);
            let stalled = Stalled { readers, bytes_per_second, memory: &asked.memory, seconds };
            memory_stalled::measure(project, stalled)?
        }
    };
    println!("{summary}");
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n       ")) }
}

/// What was seen, and what of it is wrong.
fn measure(project: &Project, asked: &Asked) -> Result<(String, Vec<String>), String> {
    let folder = project.scratch("memory")?;
    let site = Site::new();
    let _ = fs::remove_file(folder.join("origin.sock"));
    site.serve(&folder.join("origin.sock")).map_err(|error| format!("the origin: {error}"))?;
    let mut larder = start(project, &folder, &asked.memory)?;
    let watched = watch(&mut larder, &folder, &site, asked);
    let ended_by_itself = larder.try_wait().is_ok_and(|ended| ended.is_some());
    let _ = larder.kill().and_then(|()| larder.wait());
    let (line_bytes, samples, outcome) = watched?;
    let (csv, svg) = (folder.join("memory.csv"), folder.join("memory.svg"));
    let written = |path: &Path, text: String| fs::write(path, text).map_err(|error| error.to_string());
    written(&csv, as_csv(&samples))?;
    written(&svg, memory_plot::draw(&samples, line_bytes, &asked.memory))?;
    let summary = format!("{}\n{}\n{}", summary(&samples, line_bytes, &outcome, asked), csv.display(), svg.display());
    Ok((summary, complaints(&samples, line_bytes, &outcome, asked.urls(), ended_by_itself)))
}

fn read_options(options: &[&str]) -> Result<Asked, String> {
    let mut asked = Asked::usual();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let value = *options.next().ok_or(format!("{option} needs a value"))?;
        let not_a_number = || format!("'{value}' is no number");
        match *option {
            "--minutes" => asked.minutes = value.parse().map_err(|_| not_a_number())?,
            "--seed" => asked.seed = value.parse().map_err(|_| not_a_number())?,
            "--urls" => asked.urls = Some(value.parse().map_err(|_| not_a_number())?),
            "--memory" => asked.memory = value.to_owned(),
            "--stalled" => asked.stalled = value.parse().map_err(|_| not_a_number())?,
            "--bytes-per-second" => asked.bytes_per_second = value.parse().map_err(|_| not_a_number())?,
            _ => {
                return Err(format!(
                    "'{option}' is no option of memory: --minutes N, --memory SIZE, --seed N, --urls N, --stalled N, \
                     --bytes-per-second N"
                ));
            }
        }
    }
    Ok(asked)
}

fn start(project: &Project, folder: &Path, memory: &str) -> Result<Child, String> {
    let wanted = ["--listen", "127.0.0.1:0", "--origin", "unix:origin.sock", "--memory", memory];
    started_larder::start(project, folder, &wanted)
}

type Watched = (u64, Vec<Sample>, std::sync::Arc<Outcome>);

fn watch(larder: &mut Child, folder: &Path, site: &std::sync::Arc<Site>, asked: &Asked) -> Result<Watched, String> {
    let ports = fs::read_to_string(folder.join("up")).map_err(|error| error.to_string())?;
    let port = tcp_address(&ports).ok_or("the ports file names no address")?.port();
    let admin = folder.join("a.sock");
    let line_bytes = line_bytes(&admin)?;
    let in_memory = FileInMemory::of(larder.id());
    let load = Load::start(&Target { socket: folder.join("l.sock"), port }, site, asked.seed);
    let (mut samples, mut sample) = (Vec::new(), Sample::default());
    let begun = Stopwatch::start();
    while begun.seconds() < asked.minutes * 60.0 && larder.try_wait().is_ok_and(|ended| ended.is_none()) {
        thread::sleep(LOOK_EVERY);
        let in_file_bytes = in_memory.bytes();
        let Some((resident, peak_bytes)) = resident(larder.id()) else { break };
        if resident + in_file_bytes > sample.resident_bytes {
            sample = Sample { resident_bytes: resident + in_file_bytes, in_file_bytes, peak_bytes, ..sample };
        }
        let second = begun.seconds() as u64;
        if second > sample.second {
            if let Ok(status) = status(&admin) {
                samples.push(of_status(sample, &status));
            }
            sample = Sample { second, ..Sample::default() };
        }
    }
    Ok((line_bytes, samples, load.stop()))
}

/// The first of the listeners that is no path: `listen ADDRESS`, or `listen.1` and so on.
pub fn tcp_address(ports: &str) -> Option<SocketAddr> {
    ports.lines().find_map(|line| line.strip_prefix("listen")?.split_once(' ')?.1.parse().ok())
}

pub fn status(admin: &Path) -> Result<Value, String> {
    let text = ask_admin(admin, "/status").map_err(|error| format!("the admin address: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("/status: {error}"))
}

/// What the process may occupy: what was configured, and what any process takes.
pub fn line_bytes(admin: &Path) -> Result<u64, String> {
    let memory = status(admin)?["memory"].clone();
    Ok(number(&memory["limit_bytes"]) + number(&memory["base_bytes"]))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn of_status(sample: Sample, status: &Value) -> Sample {
    let (memory, connections) = (&status["memory"], &status["connections"]);
    Sample {
        share_bytes: number(&memory["share_bytes"]),
        used_bytes: number(&memory["used_bytes"]),
        connections: number(&connections["active"]),
        refused: number(&connections["refused"]),
        requests: number(&status["requests"]),
        hits: number(&status["hits"]),
        ..sample
    }
}

/// Pages of files beyond these are clean, and the kernel drops them when it needs room: larder does not count them (docs/memory.md).
const FILES_COUNTED_KIB: u64 = 16 << 10;

/// VmRSS and VmHWM, less what of files is not counted.
pub fn resident(process: u32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let not_counted = kib("RssFile")?.saturating_sub(FILES_COUNTED_KIB);
    let counted = |name: &str| Some(kib(name)?.saturating_sub(not_counted) << 10);
    Some((counted("VmRSS")?, counted("VmHWM")?))
}

/// The files in memory that a process holds: no mapping shows them, so its resident size does not know them.
pub struct FileInMemory(Vec<PathBuf>);

impl FileInMemory {
    pub fn of(process: u32) -> FileInMemory {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let is_in_memory =
            |path: &PathBuf| fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:"));
        FileInMemory(files.map(|file| file.path()).filter(is_in_memory).collect())
    }

    pub fn bytes(&self) -> u64 {
        self.0.iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.blocks() * 512).sum()
    }
}

fn as_csv(samples: &[Sample]) -> String {
    let mut text =
        "second,resident_bytes,in_file_bytes,vmhwm_bytes,share_bytes,used_bytes,connections,refused,requests,hits\n"
            .to_owned();
    for s in samples {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{}",
            s.second,
            s.resident_bytes,
            s.in_file_bytes,
            s.peak_bytes,
            s.share_bytes,
            s.used_bytes,
            s.connections,
            s.refused,
            s.requests,
            s.hits
        );
    }
    text
}

/// Hits of all requests from one moment that is judged to the next, and the second of it.
fn judged_ratios(samples: &[Sample]) -> Vec<(u64, f64)> {
    let mut samples = samples.iter().filter(|sample| sample.second >= WARM_SECONDS);
    let Some(mut was) = samples.next() else { return Vec::new() };
    let mut judged = Vec::new();
    for is in samples.filter(|is| is.requests > 0) {
        let requests = is.requests.saturating_sub(was.requests);
        if requests >= REQUESTS_JUDGED_MIN {
            judged.push((is.second, is.hits.saturating_sub(was.hits) as f64 / requests as f64));
            was = is;
        }
    }
    judged
}

/// Hits of all requests between each sample and the one before; `None` where nobody asked.
pub fn hit_ratios(samples: &[Sample]) -> Vec<Option<f64>> {
    let before = std::iter::once(Sample::default()).chain(samples.iter().copied());
    let ratio = |(was, is): (Sample, &Sample)| {
        let (hits, requests) = (is.hits.saturating_sub(was.hits), is.requests.saturating_sub(was.requests));
        (requests > 0).then(|| hits as f64 / requests as f64)
    };
    before.zip(samples).map(ratio).collect()
}

fn most(samples: &[Sample], figure: fn(&Sample) -> u64) -> u64 {
    samples.iter().map(figure).max().unwrap_or_default()
}

fn summary(samples: &[Sample], line_bytes: u64, outcome: &Outcome, asked: &Asked) -> String {
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let last = samples.last().copied().unwrap_or_default();
    let least = judged_ratios(samples).into_iter().map(|(_, ratio)| ratio).fold(f64::INFINITY, f64::min);
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Relaxed);
    format!(
        "--memory {}, seed {}, {} s: the line is {}; at most {} were resident, {} of them in the file; VmHWM {}\n\
         {} distinct URLs of {} promised, {} answers compared, {} more an error's, {} wrong; {} connections, at most {} at \
         once, {} refused, {} broken; slow readers took {}\n{} of {} requests hit, {:.1} % in the driest second",
        asked.memory,
        asked.seed,
        last.second,
        mib(line_bytes),
        mib(most(samples, |s| s.resident_bytes)),
        mib(most(samples, |s| s.in_file_bytes)),
        mib(most(samples, |s| s.peak_bytes)),
        count(&outcome.distinct),
        asked.urls(),
        count(&outcome.answered),
        count(&outcome.refused),
        count(&outcome.wrong),
        count(&outcome.connections),
        most(samples, |s| s.connections),
        last.refused,
        count(&outcome.broken),
        mib(count(&outcome.slow_bytes)),
        last.hits,
        last.requests,
        least * 100.0
    )
}

fn complaints(samples: &[Sample], line_bytes: u64, outcome: &Outcome, urls: u64, ended: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    if ended {
        wrong.push("larder ended".to_owned());
    }
    if let Some(over) = samples.iter().find(|sample| sample.resident_bytes.max(sample.peak_bytes) > line_bytes) {
        wrong.push(format!("over the line at second {}: {over:?}", over.second));
    }
    let ratios = judged_ratios(samples);
    if ratios.len() < RATIOS_MIN {
        wrong.push(format!("there were too few seconds with requests to say anything: {}", ratios.len()));
    }
    if let Some((second, _)) = ratios.iter().find(|(_, ratio)| *ratio == 0.0) {
        wrong.push(format!("nothing came from the store before second {second}"));
    }
    match outcome.distinct.load(Relaxed) {
        count if count < urls => {
            wrong.push(format!("{count} distinct URLs were answered and {urls} promised: --urls N"))
        }
        _ => {}
    }
    match outcome.wrong.load(Relaxed) {
        0 => {}
        count => wrong.push(format!("{count} answers were wrong")),
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady() -> Vec<Sample> {
        let second = |n| Sample { second: n, resident_bytes: 90, requests: n * 1_000, hits: n, ..Sample::default() };
        (1..40).map(second).collect()
    }

    fn asked(distinct: u64, wrong: u64) -> Outcome {
        let outcome = Outcome::default();
        outcome.distinct.store(distinct, Relaxed);
        outcome.wrong.store(wrong, Relaxed);
        outcome
    }

    fn check(change: impl FnOnce(&mut Vec<Sample>), outcome: &Outcome, complaint: Option<&str>) {
        let mut samples = steady();
        change(&mut samples);
        let wrong = complaints(&samples, 100, outcome, 500, false);
        assert_eq!(wrong.len(), usize::from(complaint.is_some()), "{wrong:?}");
        assert!(complaint.is_none_or(|words| wrong[0].contains(words)), "{wrong:?}");
    }

    #[test]
    fn a_run_is_judged_by_its_worst_second() {
        let right = asked(500, 0);
        check(|_| {}, &right, None);
        check(|samples| samples[20].resident_bytes = 101, &right, Some("second 21"));
        check(|samples| samples[5].peak_bytes = 101, &right, Some("second 6"));
        check(|samples| samples[20].hits = 20, &right, Some("before second 21"));
        check(|samples| samples.iter_mut().take(3).for_each(|s| s.hits = 0), &right, None);
        check(|samples| samples.truncate(3), &right, Some("too few"));
        check(|_| {}, &asked(500, 1), Some("1 answers were wrong"));
        check(|_| {}, &asked(499, 0), Some("499 distinct URLs"));
    }

    #[test]
    fn the_port_is_found_wherever_it_is_listed() {
        for (ports, port) in [
            ("listen unix:l.sock\nlisten.1 127.0.0.1:7\nadmin 127.0.0.1:8\n", Some(7)),
            ("listen 127.0.0.1:7\nlisten.1 unix:l.sock\n", Some(7)),
            ("listen unix:l.sock\nadmin 127.0.0.1:8\n", None),
        ] {
            assert_eq!(tcp_address(ports).map(|address| address.port()), port, "{ports}");
        }
    }

    #[test]
    fn seconds_with_few_requests_are_judged_together() {
        let quiet = |samples: &mut Vec<Sample>| {
            for s in &mut samples[20..25] {
                (s.requests, s.hits) = (20_000 + s.second, 20);
            }
        };
        check(quiet, &asked(500, 0), None);
    }
}
