//! `cargo xtask memory`: is the memory limit true? larder stands a mixed load under a small limit; what the kernel says it
//! occupies, the store's file in memory included, is looked at four times a second, written down and plotted. It fails when
//! the line was crossed, when nothing came from the store for a while, when a byte was wrong, and when larder ended.

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
use crate::project::{Project, Stopwatch};
use crate::started_larder;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Nothing from the store in so many seconds with requests is nothing at all.
const DRY_SECONDS_MAX: usize = 10;

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
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let asked = read_options(options)?;
    let folder = project.scratch("memory")?;
    let site = Site::new();
    let _ = fs::remove_file(folder.join("origin.sock"));
    site.serve(&folder.join("origin.sock")).map_err(|error| format!("the origin: {error}"))?;
    let mut larder = start(project, &folder, &asked.memory)?;
    let watched = watch(&mut larder, &folder, &site, &asked);
    let ended_by_itself = larder.try_wait().is_ok_and(|ended| ended.is_some());
    let _ = larder.kill().and_then(|()| larder.wait());
    let (line_bytes, samples, outcome) = watched?;
    let (csv, svg) = (folder.join("memory.csv"), folder.join("memory.svg"));
    let written = |path: &Path, text: String| fs::write(path, text).map_err(|error| error.to_string());
    written(&csv, as_csv(&samples))?;
    written(&svg, memory_plot::draw(&samples, line_bytes, &asked.memory))?;
    println!("{}\n{}\n{}", summary(&samples, line_bytes, &outcome, &asked), csv.display(), svg.display());
    let wrong = complaints(&samples, line_bytes, &outcome, ended_by_itself);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n       ")) }
}

fn read_options(options: &[&str]) -> Result<Asked, String> {
    let mut asked = Asked { minutes: 1.0, memory: "256MiB".to_owned(), seed: Dice::drawn() };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let value = *options.next().ok_or(format!("{option} needs a value"))?;
        let not_a_number = || format!("'{value}' is no number");
        match *option {
            "--minutes" => asked.minutes = value.parse().map_err(|_| not_a_number())?,
            "--seed" => asked.seed = value.parse().map_err(|_| not_a_number())?,
            "--memory" => asked.memory = value.to_owned(),
            _ => return Err(format!("'{option}' is no option of memory: --minutes N, --memory SIZE, --seed N")),
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
    let address = ports.lines().find_map(|line| line.strip_prefix("listen ")?.parse::<SocketAddr>().ok());
    let port = address.ok_or("the ports file names no address")?.port();
    let admin = folder.join("a.sock");
    let memory = status(&admin)?["memory"].clone();
    let line_bytes = number(&memory["limit_bytes"]) + number(&memory["base_bytes"]);
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

fn status(admin: &Path) -> Result<Value, String> {
    let text = ask_admin(admin, "/status").map_err(|error| format!("the admin address: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("/status: {error}"))
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

/// VmRSS and VmHWM.
fn resident(process: u32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    Some((kib("VmRSS")? << 10, kib("VmHWM")? << 10))
}

/// The files in memory that a process holds: no mapping shows them, so its resident size does not know them.
struct FileInMemory(Vec<PathBuf>);

impl FileInMemory {
    fn of(process: u32) -> FileInMemory {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let is_in_memory =
            |path: &PathBuf| fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:"));
        FileInMemory(files.map(|file| file.path()).filter(is_in_memory).collect())
    }

    fn bytes(&self) -> u64 {
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
    let ratios: Vec<f64> = hit_ratios(samples).into_iter().flatten().collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Relaxed);
    format!(
        "--memory {}, seed {}, {} s: the line is {}; at most {} were resident, {} of them in the file; VmHWM {}\n\
         {} distinct URLs, {} answers compared, {} wrong; {} connections, at most {} at once, {} refused, {} broken; slow \
         readers took {}\n{} of {} requests hit, {:.1} % in the driest second",
        asked.memory,
        asked.seed,
        last.second,
        mib(line_bytes),
        mib(most(samples, |s| s.resident_bytes)),
        mib(most(samples, |s| s.in_file_bytes)),
        mib(most(samples, |s| s.peak_bytes)),
        count(&outcome.distinct),
        count(&outcome.answered),
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

fn complaints(samples: &[Sample], line_bytes: u64, outcome: &Outcome, ended: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    if ended {
        wrong.push("larder ended".to_owned());
    }
    if let Some(over) = samples.iter().find(|sample| sample.resident_bytes.max(sample.peak_bytes) > line_bytes) {
        wrong.push(format!("over the line at second {}: {over:?}", over.second));
    }
    let asked: Vec<f64> = hit_ratios(samples).into_iter().flatten().collect();
    let is_dry = |some: &[f64]| some.iter().all(|ratio| *ratio == 0.0);
    if asked.len() < DRY_SECONDS_MAX || asked.windows(DRY_SECONDS_MAX).any(is_dry) {
        wrong.push("there was a time without a hit, or there were too few seconds to say".to_owned());
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
        let second = |n| Sample { second: n, resident_bytes: 90, requests: n * 10, hits: n, ..Sample::default() };
        (1..40).map(second).collect()
    }

    fn check(change: impl FnOnce(&mut Vec<Sample>), outcome: Outcome, complaint: Option<&str>) {
        let mut samples = steady();
        change(&mut samples);
        let wrong = complaints(&samples, 100, &outcome, false);
        assert_eq!(wrong.len(), usize::from(complaint.is_some()), "{wrong:?}");
        assert!(complaint.is_none_or(|words| wrong[0].contains(words)), "{wrong:?}");
    }

    #[test]
    fn a_run_is_judged_by_its_worst_second() {
        check(|_| {}, Outcome::default(), None);
        check(|samples| samples[20].resident_bytes = 101, Outcome::default(), Some("second 21"));
        check(|samples| samples[5].peak_bytes = 101, Outcome::default(), Some("second 6"));
        check(|samples| samples[20..].iter_mut().for_each(|s| s.hits = 20), Outcome::default(), Some("without a hit"));
        check(|samples| samples.truncate(3), Outcome::default(), Some("too few"));
        let outcome = Outcome::default();
        outcome.wrong.store(1, Relaxed);
        check(|_| {}, outcome, Some("1 answers were wrong"));
    }
}
