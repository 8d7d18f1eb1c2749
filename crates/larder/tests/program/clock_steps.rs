//! A wall clock that is set, forwards and backwards, under a larder that serves: by libfaketime, which stands between it and the kernel's
//! clock. Freshness counts on a clock that nobody sets, and dates go with the wall.

use std::path::Path;
use std::process::Command;

use crate::fenced_larder::{FencedLarder, make_folder, spawn, write_config};
use crate::peer_process::wait_long;
use crate::supervised_larder::HeldOrigin;

const DAY_S: i64 = 86_400;

/// Of Debian's package faketime, whatever the machine's kind.
fn library() -> Option<String> {
    let found = Command::new("sh").args(["-c", "ls /usr/lib/*/faketime/libfaketimeMT.so.1"]).output().ok()?;
    let path = String::from_utf8(found.stdout).ok()?.lines().next().map(str::to_owned);
    if path.is_none() {
        println!("not run: there is no libfaketime");
    }
    path
}

/// larder's clock is the machine's and so many days.
fn set(folder: &Path, days: i64) {
    std::fs::write(folder.join("etc/clock.new"), format!("{days:+}d\n")).expect("it is ours");
    std::fs::rename(folder.join("etc/clock.new"), folder.join("etc/clock")).expect("it is ours");
}

fn field(answer: &str, name: &str) -> Option<String> {
    let line = answer.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Days from today to the Date of a page that is fetched for this.
fn days_ahead(larder: &FencedLarder, page: &str) -> i64 {
    let date = field(&larder.get(page), "date").expect("it has a date");
    let read = |words: &[&str]| {
        let told = Command::new("date").args(["-u", "+%s"]).args(words).output().expect("date is there");
        String::from_utf8_lossy(&told.stdout).trim().parse::<i64>().expect("a number")
    };
    (read(&["-d", &date]) - read(&[]) + DAY_S / 2).div_euclid(DAY_S)
}

#[test]
fn a_clock_that_is_set_expires_nothing_and_keeps_nothing_for_longer() {
    let Some(library) = library() else { return };
    let origin = HeldOrigin::start();
    let folder = make_folder("clock-steps");
    let config = format!(
        "[origin.a]\nurls = [\"http://{}\"]\n[[disk]]\npath = \"PLACE/disk/store\"\nsize = \"16MiB\"\n",
        origin.address
    );
    write_config(&folder, &config);
    set(&folder, 0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(["serve", "--no-supervisor"]).env("LD_PRELOAD", library).env("FAKETIME_NO_CACHE", "1");
    command.env("FAKETIME_TIMESTAMP_FILE", folder.join("etc/clock")).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let child = spawn(&folder, &mut command);
    let larder = FencedLarder::running(folder.clone(), child);
    larder.get("/stored");
    for (step, days) in [2, -2, 400, -400, 0].into_iter().enumerate() {
        set(&folder, days);
        let mut page = 0;
        wait_long(&format!("dates are {days} days ahead"), || {
            page += 1;
            days_ahead(&larder, &format!("/step{step}/{page}")) == days
        });
        let answer = larder.get("/stored");
        let age: i64 = field(&answer, "age").expect(&answer).parse().expect("a number");
        assert!((0..600).contains(&age), "{days} days: {answer}");
        assert_eq!(origin.count("GET /stored"), 1, "{days} days: it was fetched again");
        // What was fetched before the step is as old as it is, too.
        let before = larder.get(&format!("/step{step}/1"));
        assert!(field(&before, "age").is_some(), "{before}");
    }
    // Its time has to end all the same: an hour and a minute on the clock that freshness counts on.
    assert_eq!(larder.metric("larder_panics_total"), 0.0);
    assert_eq!(larder.metric("larder_disk_up"), 1.0);
}
