//! Disks that are full, that take no writes and that stall, under the store and under the access log: by real file systems, in the sandbox.
//! Each is said once with its setting, answers go on, and all is as before once the disk is; without a restart.

use crate::fenced_larder::FencedLarder;
use crate::mounted_larder::{Stalled, fill, may_mount, place, run_inside, start};
use crate::peer_process::wait_long;
use crate::supervised_larder::HeldOrigin;

const ANSWER: &str = "[[route]]\nrespond = { status = 200, body = \"hello\" }\n";
/// A file system that cannot reserve room, so that it is full when something is written.
const WITHOUT_RESERVING: &str =
    "truncate -s 48M PLACE/image; mke2fs -q -t ext2 -m 0 PLACE/image; mount -o loop PLACE/image PLACE/disk";
/// One under the disk and the log.
const JOURNALLED: &str = "truncate -s 64M PLACE/image; mke2fs -q -t ext4 PLACE/image; mount -o loop,errors=remount-ro PLACE/image PLACE/disk; \
                          mkdir PLACE/disk/log; mount --bind PLACE/disk/log PLACE/log";

/// A site before this origin, with a disk, and with memory for a part of what is asked for here.
fn site(origin: &HeldOrigin, size: &str) -> String {
    format!(
        "[origin.a]\nurls = [\"http://{}\"]\n[memory]\nsize = \"8MiB\"\n[[disk]]\npath = \"PLACE/disk/store\"\nsize = \"{size}\"\n",
        origin.address
    )
}

#[track_caller]
fn answered(larder: &FencedLarder, path: &str) {
    let answer = larder.get(path);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
}

#[track_caller]
fn says_in_time(larder: &FencedLarder, word: &str) {
    wait_long(&format!("larder says {word:?}"), || larder.said().contains(word));
}

#[track_caller]
fn says_once(larder: &FencedLarder, line: &str) {
    let said = larder.said();
    assert_eq!(said.matches(line).count(), 1, "{line:?} in {said}");
}

#[test]
fn a_log_whose_disk_fills_is_written_again_when_there_is_room() {
    if !may_mount(false) {
        return;
    }
    let larder = start("log-full", "mount -t tmpfs -o size=256k tmpfs PLACE/log", ANSWER);
    answered(&larder, "/before");
    let log = place(&larder).join("log/access.log");
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    wait_long("the first line", || lines().contains("/before"));
    fill(&place(&larder).join("log/filling"));
    let shown = larder.path("log/access.log");
    // What is left of the last page takes some lines.
    wait_long("lines are lost", || {
        answered(&larder, "/meanwhile");
        larder.metric("larder_log_lines_lost_total") >= 20.0
    });
    let failing = "No space left on device (os error 28); lines are lost until it can ([log] path)";
    says_once(&larder, &format!("error: the access log {} cannot be written: {failing}", shown.display()));
    std::fs::remove_file(place(&larder).join("log/filling")).expect("it is there");
    answered(&larder, "/after");
    says_in_time(&larder, &format!("the access log {} can be written again; lost: ", shown.display()));
    wait_long("the line behind it", || lines().lines().any(|line| line.contains("GET /after ")));
    let torn = |line: &str| !line.starts_with("127.0.0.1 ") && !"127.0.0.1 ".starts_with(line);
    assert!(!lines().lines().any(torn), "{}", lines());
    says_once(&larder, "can be written again");
}

#[test]
fn file_systems_that_take_no_writes_at_the_start_are_used_when_they_do() {
    if !may_mount(false) {
        return;
    }
    let origin = HeldOrigin::start();
    let read_only = |folder: &str| format!("mount -t tmpfs -o ro,size=40m tmpfs PLACE/{folder}");
    let mounts = format!("{}; {}", read_only("log"), read_only("disk"));
    let larder = start("read-only", &mounts, &site(&origin, "32MiB"));
    answered(&larder, "/a");
    let place = larder.folder.display().to_string();
    let why = "Read-only file system (os error 30)";
    says_in_time(
        &larder,
        &format!(
            "disk {place}/disk/store: dropped, its objects are misses until it can be used again: {why} ([[disk]] path)"
        ),
    );
    says_in_time(
        &larder,
        &format!(
            "error: the access log {place}/log/access.log cannot be written: {why}; lines are lost until it can ([log] path)"
        ),
    );
    assert_eq!(larder.metric("larder_disk_up"), 0.0);
    run_inside(&larder, "mount -o remount,rw PLACE/log; mount -o remount,rw PLACE/disk");
    says_in_time(&larder, &format!("disk {place}/disk/store: taken back"));
    assert_eq!(larder.metric("larder_disk_up"), 1.0);
    answered(&larder, "/b");
    says_in_time(&larder, &format!("the access log {place}/log/access.log can be written again; lost: "));
    wait_long("/b is on the disk", || larder.metric("larder_disk_objects") >= 1.0);
    for line in ["dropped, its objects", "taken back", "cannot be written", "can be written again"] {
        says_once(&larder, line);
    }
}

#[test]
fn a_disk_without_room_at_the_start_is_made_when_there_is_some() {
    if !may_mount(false) {
        return;
    }
    let origin = HeldOrigin::start();
    let larder = start("no-room", "mount -t tmpfs -o size=16m tmpfs PLACE/disk", &site(&origin, "32MiB"));
    says_in_time(
        &larder,
        "dropped, its objects are misses until it can be used again: no space: 33554432 bytes are wanted",
    );
    answered(&larder, "/a");
    run_inside(&larder, "mount -o remount,size=40m PLACE/disk");
    says_in_time(&larder, "disk/store: taken back");
    answered(&larder, "/b");
    wait_long("/b is on the disk", || larder.metric("larder_disk_objects") >= 1.0);
    says_once(&larder, "dropped");
}

#[test]
fn a_disk_that_fills_under_a_store_is_still_read_and_written_again_when_there_is_room() {
    if !may_mount(true) {
        return;
    }
    let origin = HeldOrigin::start();
    let larder = start("full", WITHOUT_RESERVING, &site(&origin, "32MiB"));
    // More than memory keeps.
    let pages = |from: u32, to: u32| (from..to).for_each(|page| answered(&larder, &format!("/large{page}")));
    pages(0, 160);
    wait_long("pages are on the disk", || larder.metric("larder_disk_objects") >= 160.0);
    fill(&place(&larder).join("disk/filling"));
    pages(160, 320);
    says_in_time(
        &larder,
        "disk/store: not written any more, what it holds is served: No space left on device (os error 28) ([[disk]] path)",
    );
    assert_eq!(larder.metric("larder_disk_up"), 0.0);
    // Of the first ones, which left memory long ago.
    let asked = origin.count("GET /large7");
    answered(&larder, "/large7");
    assert_eq!((asked, origin.count("GET /large7")), (1, 1), "what lies on a full disk is served");
    // The dashboard's history lies beside it.
    says_in_time(&larder, "disk/store.history cannot be written: No space left on device (os error 28)");
    std::fs::remove_file(place(&larder).join("disk/filling")).expect("it is there");
    says_in_time(&larder, "disk/store: taken back");
    assert_eq!(larder.metric("larder_disk_up"), 1.0);
    says_in_time(&larder, "disk/store.history can be written again");
    says_once(&larder, "not written any more");
    says_once(&larder, "store.history cannot be written");
}

/// As an ext4 on a disk with a bad sector does it, under open files.
#[test]
fn a_file_system_that_becomes_read_only_costs_hits_and_lines_of_the_log() {
    if !may_mount(true) {
        return;
    }
    let origin = HeldOrigin::start();
    let larder = start("becomes-read-only", JOURNALLED, &site(&origin, "32MiB"));
    (0..50).for_each(|page| answered(&larder, &format!("/page{page}")));
    wait_long("pages are on the disk", || larder.metric("larder_disk_objects") >= 50.0);
    run_inside(&larder, "echo 1 > /sys/fs/ext4/$(basename $(findmnt -no SOURCE PLACE/disk))/trigger_fs_error");
    let mut page = 50;
    wait_long("larder has seen it", || {
        page += 1;
        answered(&larder, &format!("/page{page}"));
        larder.metric("larder_disk_up") == 0.0 && larder.metric("larder_log_lines_lost_total") > 0.0
    });
    println!("{}", larder.said());
    says_in_time(&larder, "Read-only file system (os error 30) ([[disk]] path)");
    says_once(
        &larder,
        "access.log cannot be written: Read-only file system (os error 30); lines are lost until it can ([log] path)",
    );
    answered(&larder, "/page7");
}

#[test]
fn a_disk_that_stalls_holds_up_no_answer() {
    if !may_mount(true) {
        return;
    }
    let origin = HeldOrigin::start();
    let larder = start("stalls", JOURNALLED, &site(&origin, "32MiB"));
    (0..50).for_each(|page| answered(&larder, &format!("/page{page}")));
    wait_long("pages are on the disk", || larder.metric("larder_disk_objects") >= 50.0);
    let stalled = Stalled::at(&place(&larder).join("disk"));
    for page in 50..150 {
        answered(&larder, &format!("/large{page}"));
        answered(&larder, "/page7");
    }
    assert_eq!(origin.count("GET /page7"), 1, "memory has it");
    wait_long("what is to be written waits", || larder.metric("larder_disk_queued_bytes") > 1_000_000.0);
    says_in_time(&larder, "warning: disk ");
    says_in_time(&larder, "disk/store: has written nothing for 1");
    assert_eq!(larder.metric("larder_panics_total"), 0.0);
    drop(stalled);
    says_in_time(&larder, "disk/store: writes again after ");
    says_once(&larder, "has written nothing");
    wait_long("all of it is written", || larder.metric("larder_disk_objects") >= 150.0);
    answered(&larder, "/page2000");
}
