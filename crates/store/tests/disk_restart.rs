//! How soon a disk serves after a restart: a measurement, not a check of one.
//!
//! `cargo test --release -p store --test disk_restart -- --ignored --nocapture`, with `LARDER_RESTART_DIR` for where,
//! `LARDER_RESTART_OBJECTS` for how many (1,000,000) and `LARDER_RESTART_SHRINK` for what their 1 to 64 KiB are divided by (8).
#![cfg(not(feature = "shuttle"))]
#![expect(clippy::disallowed_methods, reason = "what is measured is how long something takes")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use store::Blocks;
use store::disk::{Digest, DiskEvent, DiskSettings, RecordFacts, Refused, Tier, wait};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

fn digest(n: u64) -> Digest {
    Digest { family: mixed(n + 1), member: 0 }
}

fn body(n: u64) -> Vec<u8> {
    let shrink = number("LARDER_RESTART_SHRINK", 8);
    let len = (1024 + mixed(n ^ 0xB0D7) % (63 * 1024)) / shrink;
    let words = (0u64..).flat_map(|at| mixed(n << 20 ^ at).to_le_bytes());
    words.take(len as usize).collect()
}

fn settings(path: &Path, objects: u64) -> DiskSettings {
    let bytes = objects * (33 * 1024 / number("LARDER_RESTART_SHRINK", 8) + 1024) * 11 / 10 + (256 << 20);
    DiskSettings { objects_max: objects * 5 / 4, ..DiskSettings::new(path, bytes) }
}

fn open(path: &Path, objects: u64) -> Arc<Tier> {
    let told = |event: DiskEvent| println!("  {event}");
    Tier::open(vec![settings(path, objects)], told).expect("the disk can be opened").0
}

fn fill(tier: &Tier, numbers: std::ops::Range<u64>) {
    let facts = RecordFacts { expires: u64::MAX, number: 0 };
    for n in numbers {
        let blocks = Blocks::copy_of(&body(n));
        let head = Bytes::from(vec![b'h'; 300]);
        loop {
            match tier.put(digest(n), head.clone(), &blocks, facts) {
                Ok(_) => break,
                Err(Refused::Busy) => std::thread::sleep(Duration::from_millis(1)),
                Err(refused) => panic!("{refused:?}"),
            }
        }
    }
    assert!(wait(tier.invalidate(store::disk::Invalidation::Number(1))).is_ok());
}

fn is_right(tier: &Tier, n: u64) -> bool {
    let Some(candidate) = tier.find(digest(n)) else { return false };
    let Ok(stored) = wait(tier.open_record(candidate)) else { return false };
    let blocks = wait(stored.read_all()).expect("it is whole");
    assert!(blocks.pieces(0, u64::MAX).collect::<Vec<_>>().concat() == body(n), "object {n}");
    true
}

fn count(tier: &Tier) -> u64 {
    tier.stats()[0].objects
}

/// Nothing of the file is in memory any more.
fn forget_pages(path: &Path) {
    let file = std::fs::File::open(path).expect("it is there");
    file.sync_all().expect("synced");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
}

fn restart(path: &Path, objects: u64, what: &str) {
    let began = Instant::now();
    let tier = open(path, objects);
    let opened = began.elapsed();
    let mut n = objects - 1;
    while !is_right(&tier, n) {
        n = (n + objects - 1) % objects;
    }
    let first = began.elapsed();
    while count(&tier) < objects {
        std::thread::sleep(Duration::from_micros(200));
    }
    let whole = began.elapsed();
    println!("{what}: opened after {opened:?}, first hit after {first:?}, whole index after {whole:?}");
    let bytes = tier.memory_bytes();
    println!("  {:.1} bytes of memory an object", bytes as f64 / objects as f64);
    let sample = objects.min(5_000);
    let right = (0..sample).filter(|at| is_right(&tier, mixed(*at) % objects)).count() as u64;
    assert_eq!(right, sample, "of a sample all are there, byte by byte");
    let closing = Instant::now();
    assert!(tier.close(Duration::from_secs(60)));
    println!("  closed, with a checkpoint, after {:?}", closing.elapsed());
}

#[test]
#[ignore = "a measurement that takes minutes and gigabytes"]
fn a_restart_of_a_million_objects() {
    let objects = number("LARDER_RESTART_OBJECTS", 1_000_000);
    let folder = std::env::var("LARDER_RESTART_DIR").map_or_else(|_| std::env::temp_dir(), PathBuf::from);
    let path = folder.join("restart.larder");
    if let Ok(what) = std::env::var("LARDER_RESTART_CHILD") {
        // A process that ends as if it had been killed.
        let tier = open(&path, objects);
        let numbers = if what == "fill" { 0..objects } else { objects - objects / 20..objects };
        let (began, bytes): (_, u64) = (Instant::now(), numbers.clone().map(|n| body(n).len() as u64).sum());
        let making = began.elapsed();
        let began = Instant::now();
        fill(&tier, numbers);
        // The bodies are made anew while they are stored.
        let took = began.elapsed().saturating_sub(making);
        println!("  {bytes} bytes of bodies stored in {took:?}: {:.0} MB/s", bytes as f64 / took.as_secs_f64() / 1e6);
        std::process::abort();
    }
    let _ = std::fs::remove_file(&path);
    let child = |what: &str| {
        let mut child = std::process::Command::new(std::env::current_exe().expect("a program"));
        child.args(["--ignored", "--nocapture", "a_restart_of_a_million_objects"]).env("LARDER_RESTART_CHILD", what);
        let _ = child.status().expect("it runs");
    };
    child("fill");
    restart(&path, objects, "killed after the fill, pages in memory");
    forget_pages(&path);
    restart(&path, objects, "closed well, nothing in memory");
    child("some");
    forget_pages(&path);
    restart(&path, objects, "killed after a twentieth was stored anew, nothing in memory");
    std::fs::remove_file(&path).expect("removed");
}
