//! `cargo xtask allocators NAME=BINARY[,LIBRARY]…`: what larder takes and costs under one allocator and another, all of them
//! in one run: how much is resident for what is stored, with ten thousand connections, after them, and when everything is
//! purged, and the processor time of a hit and a miss as ratios to the first named. The first named twice shows the noise.
//!
//! A library is preloaded; a larder that takes what is preloaded is built with `--features system-allocator`.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::dice::Dice;
use crate::memory::{resident, status};
use crate::memory_line::Line;
use crate::memory_site::{Page, Site};
use crate::project::Project;
use crate::started_larder;

const MEMORY: &str = "4GiB";
/// What each has stored when it is looked at.
const FILLED_BYTES: u64 = 256 << 20;
const FILL_STEP: u64 = 10_000;
const LINES: usize = 16;
const BURST: usize = 10_000;
/// Longer than any of them keeps for later what was freed.
const SETTLING: Duration = Duration::from_secs(12);
const BLOCKS: usize = 16;
const HITS: u64 = 20_000;
const HOT_PAGES: u64 = 10_000;
const MISSES: u64 = 5_000;
const PATIENCE: Duration = Duration::from_secs(30);
const RESAMPLES: usize = 2_000;

struct Subject {
    name: String,
    folder: PathBuf,
    larder: Child,
    /// Pages below are stored, or were.
    pages: u64,
    seen: Seen,
    hit_ns: Vec<f64>,
    miss_ns: Vec<f64>,
}

/// Resident bytes, and what of them was accounted for.
#[derive(Default)]
struct Seen {
    idle: u64,
    idle_used: u64,
    full: u64,
    full_used: u64,
    burst: u64,
    burst_over: u64,
    purged: u64,
}

pub fn task(project: &Project, named: &[&str]) -> Result<(), String> {
    let folder = project.scratch("allocators")?;
    let socket = folder.join("origin.sock");
    let _ = fs::remove_file(&socket);
    let site = Site::new();
    site.serve(&socket).map_err(|error| format!("the origin: {error}"))?;
    let mut subjects = Vec::new();
    let measured = named
        .iter()
        .try_for_each(|text| Subject::start(text, &folder, &socket).map(|subject| subjects.push(subject)))
        .and_then(|()| if subjects.is_empty() { Err("name some: NAME=BINARY[,LIBRARY]".to_owned()) } else { Ok(()) })
        .and_then(|()| measure(&mut subjects, &site));
    for subject in &mut subjects {
        let _ = subject.larder.kill().and_then(|()| subject.larder.wait());
    }
    measured.map(|()| print!("{}", table(&subjects)))
}

fn measure(subjects: &mut [Subject], site: &Arc<Site>) -> Result<(), String> {
    for subject in &mut *subjects {
        (subject.seen.idle, subject.seen.idle_used) = (subject.resident()?, subject.used()?);
        while subject.used()? < subject.seen.idle_used + FILLED_BYTES {
            let pages = subject.pages..subject.pages + FILL_STEP;
            subject.ask(site, "GET", pages.map(Page::Small))?;
            subject.pages += FILL_STEP;
        }
    }
    thread::sleep(SETTLING);
    for subject in &mut *subjects {
        (subject.seen.full, subject.seen.full_used) = (subject.resident()?, subject.used()?);
    }
    let mut dice = Dice::of(1);
    in_blocks(subjects, &mut dice, |subject, dice| {
        let pages = (0..HITS).map(|_| Page::Small(dice.below(HOT_PAGES)));
        let spent = subject.ask(site, "GET", pages)?;
        subject.hit_ns.push(spent / HITS as f64);
        Ok(())
    })?;
    for subject in &mut *subjects {
        subject.seen.burst = subject.stand_a_burst()?;
    }
    thread::sleep(SETTLING);
    for subject in &mut *subjects {
        subject.seen.burst_over = subject.resident()?;
        subject.ask(site, "PURGE", (0..subject.pages).map(Page::Small))?;
    }
    thread::sleep(SETTLING);
    for subject in &mut *subjects {
        subject.seen.purged = subject.resident()?;
    }
    in_blocks(subjects, &mut dice, |subject, _| {
        let pages = subject.pages..subject.pages + MISSES;
        subject.pages = pages.end;
        let spent = subject.ask(site, "GET", pages.map(Page::Small))?;
        subject.miss_ns.push(spent / MISSES as f64);
        Ok(())
    })
}

/// Every subject once in a block, in an order drawn anew.
fn in_blocks(
    subjects: &mut [Subject],
    dice: &mut Dice,
    mut slice: impl FnMut(&mut Subject, &mut Dice) -> Result<(), String>,
) -> Result<(), String> {
    for _ in 0..BLOCKS {
        let mut order: Vec<usize> = (0..subjects.len()).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, dice.below(last as u64 + 1) as usize);
        }
        order.into_iter().try_for_each(|at| slice(&mut subjects[at], dice))?;
    }
    Ok(())
}

impl Subject {
    fn start(text: &str, folder: &Path, origin: &Path) -> Result<Subject, String> {
        let (name, program) = text.split_once('=').ok_or(format!("'{text}' is not NAME=BINARY[,LIBRARY]"))?;
        let (binary, library) = match program.split_once(',') {
            Some((binary, library)) => (binary, Some(library)),
            None => (program, None),
        };
        let found = |path: &str| fs::canonicalize(path).map_err(|error| format!("{path}: {error}"));
        let mut program = Command::new(found(binary)?);
        if let Some(library) = library {
            program.env("LD_PRELOAD", found(library)?);
        }
        let folder = folder.join(name);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let origin = format!("unix:{}", origin.display());
        let larder = started_larder::start_program(
            program,
            &folder,
            &["--workers", "1", "--origin", &origin, "--memory", MEMORY],
        )?;
        let (seen, hit_ns, miss_ns) = (Seen::default(), Vec::new(), Vec::new());
        Ok(Subject { name: name.to_owned(), folder, larder, pages: 0, seen, hit_ns, miss_ns })
    }

    fn resident(&self) -> Result<u64, String> {
        let (bytes, _) = resident(self.larder.id()).ok_or(format!("{} ended", self.name))?;
        Ok(bytes)
    }

    fn used(&self) -> Result<u64, String> {
        let status = status(&self.folder.join("a.sock"))?;
        status["memory"]["used_bytes"].as_u64().ok_or("/status has no memory.used_bytes".to_owned())
    }

    fn connect(&self) -> std::io::Result<UnixStream> {
        let socket = UnixStream::connect(self.folder.join("l.sock"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(socket)
    }

    /// Asks for these pages on a few connections at once, compares what comes, and says how much processor time larder took.
    fn ask(&self, site: &Site, method: &str, pages: impl Iterator<Item = Page>) -> Result<f64, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.name);
        let mut lines = Vec::new();
        for _ in 0..LINES {
            lines.push(Line::new(self.connect().map_err(failed)?));
        }
        let (mut pages, before) = (pages, self.processor_ns());
        loop {
            let round: Vec<Page> = pages.by_ref().take(LINES).collect();
            for (line, page) in lines.iter_mut().zip(&round) {
                line.socket.write_all(request(method, *page).as_bytes()).map_err(failed)?;
            }
            for (line, page) in lines.iter_mut().zip(&round) {
                let (status, length) = line.head().map_err(failed)?;
                let is_page = line.body_is(length, site.body(*page)).map_err(failed)?;
                if status != 200 || method == "GET" && !is_page {
                    return Err(format!("{}: {method} {} is answered by {status}, or wrong", self.name, page.path()));
                }
            }
            if round.len() < LINES {
                return Ok((self.processor_ns() - before) as f64);
            }
        }
    }

    /// Of all threads (proc(5), schedstat).
    fn processor_ns(&self) -> u64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.larder.id())).into_iter().flatten().flatten();
        let spent = |thread: fs::DirEntry| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        threads.filter_map(spent).sum()
    }

    /// What is resident while ten thousand connections are open that were all answered.
    fn stand_a_burst(&self) -> Result<u64, String> {
        let failed = |error: std::io::Error| format!("{}, a burst of connections: {error}", self.name);
        let mut burst = Vec::new();
        for number in 0..BURST {
            let mut socket = self.connect().map_err(failed)?;
            socket.write_all(request("GET", Page::Small(number as u64)).as_bytes()).map_err(failed)?;
            burst.push(socket);
        }
        let mut answer = [0; 4096];
        for socket in &mut burst {
            let read = socket.read(&mut answer).map_err(failed)?;
            if !answer[..read].starts_with(b"HTTP/1.1 200 ") {
                return Err(format!("{}: a connection of the burst was not answered", self.name));
            }
        }
        self.resident()
    }
}

fn request(method: &str, page: Page) -> String {
    format!("{method} {} HTTP/1.1\r\nHost: m.test\r\n\r\n", page.path())
}

fn table(subjects: &[Subject]) -> String {
    let mut text = format!(
        "| | idle | resident for an accounted byte | a connection of {BURST} | 12 s after them | everything purged | a hit | a \
         miss |\n|---|---|---|---|---|---|---|---|\n"
    );
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    for subject in subjects {
        let seen = &subject.seen;
        let waste = (seen.full - seen.idle) as f64 / (seen.full_used - seen.idle_used) as f64;
        let for_one = seen.burst.saturating_sub(seen.full) / BURST as u64;
        let (after, left) = (seen.burst_over as f64 / seen.full as f64, mib(seen.purged));
        text += &format!(
            "| {} | {} | {waste:.3} | {for_one} B | {after:.3} × before | {left} |",
            subject.name,
            mib(seen.idle)
        );
        for times in [|subject: &Subject| subject.hit_ns.clone(), |subject: &Subject| subject.miss_ns.clone()] {
            let ratios: Vec<f64> =
                times(subject).iter().zip(times(&subjects[0])).map(|(own, first)| own / first).collect();
            let (median_ns, (low, middle, high)) = (median(times(subject)), interval(&ratios));
            text += &format!(" {middle:.3} [{low:.3}, {high:.3}] ({:.2} µs) |", median_ns / 1_000.0);
        }
        text += "\n";
    }
    text
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median, between what 95 of 100 resamplings of the blocks make of it.
fn interval(ratios: &[f64]) -> (f64, f64, f64) {
    let mut dice = Dice::of(1);
    let mut drawn = || median((0..ratios.len()).map(|_| ratios[dice.below(ratios.len() as u64) as usize]).collect());
    let mut medians: Vec<f64> = (0..RESAMPLES).map(|_| drawn()).collect();
    medians.sort_by(f64::total_cmp);
    (medians[RESAMPLES / 40], median(ratios.to_vec()), medians[RESAMPLES - RESAMPLES / 40])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ratios: &[f64], middle: f64, between: (f64, f64)) {
        let (low, found, high) = interval(ratios);
        assert_eq!(found, middle);
        assert!(low <= middle && middle <= high && low >= between.0 && high <= between.1, "{low} {high}");
    }

    #[test]
    fn an_interval_holds_its_median_and_is_as_wide_as_the_blocks_differ() {
        check(&[1.0; 16], 1.0, (1.0, 1.0));
        check(&[1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6], 1.3, (1.0, 1.6));
    }
}
