//! `cargo xtask soak`: a long time under everything at once. Two larders as operators have them, with supervisor, sandbox, disk, log, TLS, HTTP/2, forward proxy, files and memcached, one by its
//! own rules and one by a VCL, are asked on every road, while they are reloaded, upgraded, killed, purged, given certificates, and while the origin, the disk and the log fail. Every answer is
//! judged byte by byte (`soak_books.rs`); what may fail is announced before; memory and descriptors are held against a line.
//!
//! The seed makes the same events in the same order, and the same clients; which request meets which event it does not make.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use crate::dice::Dice;
use crate::memory::line_bytes;
use crate::project::Project;
use crate::step_tally::Tally;

mod side_visitors;
mod soak_books;
mod soak_events;
mod soak_mounts;
mod soak_page;
mod soak_plot;
mod soak_report;
mod soak_schedule;
mod soak_site;
mod soak_stage;
mod soak_trust;
mod soak_watcher;
mod soak_writers;
mod soaked_larder;
mod stream_visitors;
mod text_visitors;

use soak_books::{LARDERS, SoakRoad};
use soak_events::EventDone;
use soak_report::SoakRun;
use soak_schedule::{SoakEventKind, SoakSchedule};
use soak_stage::{SoakPlant, SoakStage};
use soak_watcher::ProcessSample;

const MINUTES: f64 = 3.0;
/// In `make test`.
const SEED_IN_TESTS: u64 = 29;
/// Nothing is done before the first requests were answered.
const BEFORE_EVENTS: Duration = Duration::from_secs(5);
/// Nor at the end, so that what an event broke is seen.
const BEHIND_EVENTS_S: f64 = 5.0;
/// Of the planted leak.
const LEAKED_PER_SECOND: u32 = 20;

struct SoakWish {
    minutes: f64,
    seed: u64,
    planted: Option<SoakPlant>,
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let wish = read_options(options)?;
    let (lines, broken) = play(project, &wish)?;
    lines.iter().for_each(|line| println!("{line}"));
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n       ")) }
}

/// The short run of the tests.
pub fn run(project: &Project) -> Result<Tally, String> {
    let (mut lines, broken) = play(project, &SoakWish { minutes: MINUTES, seed: SEED_IN_TESTS, planted: None })?;
    let mut tally = Tally::of(broken);
    // What it was that went well is said in a line.
    lines.truncate(if tally.failed > 0 { lines.len() } else { 1 });
    tally.remarks.extend(lines);
    Ok(tally)
}

fn read_options(options: &[&str]) -> Result<SoakWish, String> {
    let mut wish = SoakWish { minutes: MINUTES, seed: Dice::drawn(), planted: None };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let value = *options.next().ok_or(format!("{option} needs a value"))?;
        let no_number = || format!("'{value}' is no number");
        match *option {
            "--hours" => wish.minutes = value.parse::<f64>().map_err(|_| no_number())? * 60.0,
            "--minutes" => wish.minutes = value.parse().map_err(|_| no_number())?,
            "--seed" => wish.seed = value.parse().map_err(|_| no_number())?,
            "--plant" => {
                let planted = SoakPlant::named(value).ok_or("--plant takes stale, truncate, leak or kill")?;
                wish.planted = Some(planted);
            }
            _ => {
                return Err(format!("'{option}' is no option of soak: --hours N, --minutes N, --seed S, --plant WORD"));
            }
        }
    }
    Ok(wish)
}

/// The report, and which bars were broken.
fn play(project: &Project, wish: &SoakWish) -> Result<(Vec<String>, Vec<String>), String> {
    let stage = SoakStage::start(project, &project.scratch("soak")?, wish.planted)?;
    let line_bytes = line_bytes(&stage.larders[0].admin())?;
    let mut dice = Dice::of(wish.seed);
    let (events, samples) = live(&stage, wish, &mut dice);
    if wish.planted == Some(SoakPlant::Kill) && !events.iter().any(|done| done.event.kind == SoakEventKind::Kill) {
        return Err("nothing was planted: it never came to a kill in so short a run".to_owned());
    }
    let run = SoakRun {
        seed: wish.seed,
        seconds: stage.books.clock.seconds(),
        books: &stage.books,
        events: &events,
        samples: &samples,
        line_bytes,
        mounts_missing: stage.mounts.missing.as_deref(),
    };
    let mut lines = run.lines();
    for (name, text) in [
        ("soak.svg", soak_plot::draw(&samples, &events, line_bytes)),
        ("soak.csv", soak_watcher::as_csv(&samples)),
        ("soak.log", run.log()),
    ] {
        let path = stage.folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        lines.push(path.display().to_string());
    }
    Ok((lines, run.broken()))
}

/// Clients, writers and the watcher, until the last event is over.
fn live(stage: &SoakStage, wish: &SoakWish, dice: &mut Dice) -> (Vec<EventDone>, Vec<ProcessSample>) {
    thread::scope(|scope| {
        for larder in 0..LARDERS {
            let mut start = |play: fn(&SoakStage, usize, Dice)| {
                let dice = Dice::of(dice.next());
                scope.spawn(move || play(stage, larder, dice));
            };
            start(|stage, larder, dice| text_visitors::visit(stage, larder, SoakRoad::Kept, dice));
            start(|stage, larder, dice| text_visitors::visit(stage, larder, SoakRoad::Closing, dice));
            start(|stage, larder, dice| text_visitors::visit(stage, larder, SoakRoad::OverTls, dice));
            start(|stage, larder, dice| text_visitors::visit(stage, larder, SoakRoad::Range, dice));
            start(|stage, larder, dice| text_visitors::visit(stage, larder, SoakRoad::Slow, dice));
            start(|stage, larder, dice| text_visitors::visit(stage, larder, SoakRoad::Posted, dice));
            start(|stage, larder, dice| text_visitors::visit(stage, larder, SoakRoad::Forward, dice));
            start(|stage, larder, dice| stream_visitors::visit(stage, larder, SoakRoad::Streams, dice));
            start(|stage, larder, dice| stream_visitors::visit(stage, larder, SoakRoad::StreamsOverTls, dice));
            start(side_visitors::read_files);
            start(side_visitors::use_memcached);
            start(side_visitors::echo);
            start(side_visitors::echo_through_tunnels);
            start(soak_writers::write);
        }
        if wish.planted == Some(SoakPlant::Leak) {
            scope.spawn(|| leak(stage));
        }
        let watcher = scope.spawn(|| soak_watcher::watch(stage));
        let events = carry_out_all(stage, wish, dice);
        stage.is_over.store(true, SeqCst);
        (events, watcher.join().expect("no panic"))
    })
}

fn carry_out_all(stage: &SoakStage, wish: &SoakWish, dice: &mut Dice) -> Vec<EventDone> {
    let mut schedule = SoakSchedule::of(dice.next(), stage.mounts.missing.is_none());
    let seconds = wish.minutes * 60.0;
    let mut events = Vec::new();
    thread::sleep(BEFORE_EVENTS);
    loop {
        let event = schedule.next(stage.books.clock.seconds() > seconds / 2.0);
        thread::sleep(Duration::from_millis(event.pause_ms));
        if stage.books.clock.seconds() + BEHIND_EVENTS_S > seconds {
            break;
        }
        events.push(soak_events::carry_out(stage, event, dice));
    }
    let left = seconds - stage.books.clock.seconds();
    thread::sleep(Duration::from_secs_f64(left.max(0.0)));
    events
}

/// Connections that are asked for nothing whole, and that nobody closes.
fn leak(stage: &SoakStage) {
    let mut leaked = Vec::new();
    while !stage.is_over.load(SeqCst) {
        leaked.extend(side_visitors::open_socket(stage, leaked.len() % LARDERS, SoakRoad::WebSocket));
        thread::sleep(Duration::from_secs(1) / LEAKED_PER_SECOND);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soak_is_told_its_length_its_seed_and_what_is_planted() {
        let wish = read_options(&["--hours", "2", "--seed", "7", "--plant", "leak"]).expect("it is right");
        assert_eq!((wish.minutes, wish.seed, wish.planted), (120.0, 7, Some(SoakPlant::Leak)));
        assert_eq!(read_options(&[]).expect("it is right").minutes, MINUTES);
        for wrong in [&["--hours"][..], &["--hours", "x"], &["--plant", "rot"], &["--rounds", "3"]] {
            assert!(read_options(wrong).is_err(), "{wrong:?}");
        }
    }
}
