//! What a hit costs while a ban by a pattern is worked off over all that is stored: processor time of larder's workers alone, for a hit of
//! a steady load, before it and meanwhile. One kind of ban is left to the thread that works them off in the background, the other is an
//! order that is answered when it is done.

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::many_articles::{BODY, PATIENCE};
use crate::memory_line::Line;
use crate::memory_load::ask_admin;
use crate::project::Stopwatch;
use crate::purge_cost::{ORDERS, SECTIONS, posted};

/// Connections of the steady load, and what each asks for a second.
const LINES: u64 = 8;
const HITS_A_LINE: f64 = 1_000.0;
/// Articles that are asked for: none is of a section that is banned.
const HOT: u64 = 1_000;
/// Bans of each kind.
const BANS: u64 = 5;
const BEFORE: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(5);
const WORKED_OFF_S_MAX: f64 = 300.0;
/// Sections beneath this one are those that may be purged and banned.
const BANNED_SECTIONS: u64 = SECTIONS / 2;
const _: () = assert!(2 * ORDERS + 2 * BANS <= BANNED_SECTIONS, "each has a section of its own");

/// Who asks, until it is dropped.
struct SteadyLoad {
    hits: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    lines: Vec<JoinHandle<io::Result<()>>>,
}

impl SteadyLoad {
    fn begin(socket: &Path, objects: u64) -> io::Result<SteadyLoad> {
        let mut load = SteadyLoad { hits: Arc::default(), is_over: Arc::default(), lines: Vec::new() };
        for number in 0..LINES {
            let socket = UnixStream::connect(socket)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            let (hits, is_over) = (Arc::clone(&load.hits), Arc::clone(&load.is_over));
            load.lines.push(thread::spawn(move || ask_on(Line::new(socket), (number, objects), &hits, &is_over)));
        }
        Ok(load)
    }

    fn end(self) -> io::Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        self.lines.into_iter().try_for_each(|line| line.join().map_err(|_| io::Error::other("a line broke"))?)
    }
}

/// At a steady rate; who was late catches up.
fn ask_on(
    mut line: Line<UnixStream>,
    (number, objects): (u64, u64),
    hits: &AtomicU64,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let (begun, mut asked) = (Stopwatch::start(), 0);
    while !is_over.load(Ordering::Relaxed) {
        let wait = asked as f64 / HITS_A_LINE - begun.seconds();
        if wait > 0.0 {
            thread::sleep(Duration::from_secs_f64(wait));
        }
        let article = hot_article(asked * LINES + number, objects);
        write!(line.socket, "GET /articles/{article:08} HTTP/1.1\r\nHost: o.test\r\n\r\n")?;
        let (status, length) = line.head()?;
        if status != 200 || !line.body_is(length, &BODY)? {
            return Err(io::Error::other(format!("a hit of {status} that is not the origin's")));
        }
        asked += 1;
        hits.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// One of those that are asked for, in a section that nobody bans, all over the store.
fn hot_article(turn: u64, objects: u64) -> u64 {
    let rows = (objects / SECTIONS).max(1);
    let (row, section) = (turn % HOT * rows / HOT, BANNED_SECTIONS + turn % (SECTIONS - BANNED_SECTIONS));
    row * SECTIONS + section
}

/// What was served by a moment, and what it took the workers.
#[derive(Clone, Copy)]
struct ServedSoFar {
    hits: u64,
    processor_ns: u64,
}

impl ServedSoFar {
    fn of(larder: u32, load: &SteadyLoad) -> ServedSoFar {
        ServedSoFar { hits: load.hits.load(Ordering::Relaxed), processor_ns: workers_ns(larder) }
    }

    /// Microseconds for a hit.
    fn micros_until(self, later: ServedSoFar) -> f64 {
        (later.processor_ns - self.processor_ns) as f64 / 1_000.0 / (later.hits - self.hits).max(1) as f64
    }
}

/// Of the threads that serve (proc(5), schedstat): `larder-0`, `larder-1`, …
fn workers_ns(larder: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{larder}/task")).into_iter().flatten().flatten();
    let spent = |thread: fs::DirEntry| {
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        let index = name.trim_end().strip_prefix("larder-")?;
        index.parse::<u32>().ok()?;
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    threads.filter_map(spent).sum()
}

/// Prints a line for each kind of ban.
pub fn measure(folder: &Path, larder: u32, objects: u64) -> Result<(), String> {
    let load = SteadyLoad::begin(&folder.join("l.sock"), objects).map_err(|error| format!("the load: {error}"))?;
    thread::sleep(BEFORE);
    let admin = folder.join("a.sock");
    let in_background = |section: u64| {
        let ban = format!("obj.http.X-Section ~ ^section-{section}$");
        posted(&admin, "/ban", &ban).and_then(|_| await_end(&admin))
    };
    let at_once = |section: u64| {
        let order = format!(r#"{{"regex":"^/articles/[0-9]+{section:02}$"}}"#);
        posted(&admin, "/purge", &order).map(drop)
    };
    show("in the background", 2 * ORDERS, (larder, &load), in_background)?;
    show("at once", 2 * ORDERS + BANS, (larder, &load), at_once)?;
    load.end().map_err(|error| format!("the load: {error}"))
}

fn show(
    kind: &str,
    first_section: u64,
    (larder, load): (u32, &SteadyLoad),
    ban: impl Fn(u64) -> io::Result<()>,
) -> Result<(), String> {
    let (mut ratios, mut costs, mut took) = (Vec::new(), Vec::new(), Vec::new());
    for section in first_section..first_section + BANS {
        let begun = ServedSoFar::of(larder, load);
        thread::sleep(BEFORE);
        let (before, watch) = (ServedSoFar::of(larder, load), Stopwatch::start());
        ban(section).map_err(|error| format!("the admin address: {error}"))?;
        let (after, seconds) = (ServedSoFar::of(larder, load), watch.seconds());
        let (plain, meanwhile) = (begun.micros_until(before), before.micros_until(after));
        ratios.push(meanwhile / plain);
        costs.push([plain, meanwhile]);
        took.push(seconds);
    }
    let [ratio, seconds] = [&mut ratios, &mut took].map(|all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    });
    let costs: Vec<String> = costs.iter().map(|[plain, meanwhile]| format!("{plain:.2} -> {meanwhile:.2}")).collect();
    println!(
        "a ban by a pattern, {kind}: {seconds:.2} s, and a hit takes the workers {ratio:.3} x as long meanwhile [{:.3}, {:.3}] (us: {})",
        ratios[0],
        ratios[ratios.len() - 1],
        costs.join(", ")
    );
    Ok(())
}

/// Until no ban is left to be worked off.
fn await_end(admin: &Path) -> io::Result<()> {
    let watch = Stopwatch::start();
    loop {
        let bans: serde_json::Value = serde_json::from_str(&ask_admin(admin, "/bans")?)?;
        let all = bans["bans"].as_array().cloned().unwrap_or_default();
        if all.iter().all(|ban| ban["done"] == true) {
            return Ok(());
        }
        if watch.seconds() > WORKED_OFF_S_MAX {
            return Err(io::Error::other(format!("not worked off: {bans}")));
        }
        thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_asks_for_what_is_banned() {
        let articles: Vec<u64> = (0..3 * HOT).map(|turn| hot_article(turn, 1_000_000)).collect();
        assert!(articles.iter().all(|article| article % SECTIONS >= BANNED_SECTIONS && *article < 1_000_000));
        let different: std::collections::BTreeSet<&u64> = articles.iter().collect();
        assert_eq!(different.len() as u64, HOT);
    }
}
