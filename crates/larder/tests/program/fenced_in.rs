//! The sandbox of `larder serve` as operators meet it: what of their work goes on, what of it a reload refuses, and how that is said.

use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use rustix::process::Signal;

use crate::fenced_larder::{FencedLarder, make_folder, spawn, write_config};
use crate::peer_process::wait_for;

const FILES: &str = "[[route]]\nroot = \"PLACE/site/current\"\n";

#[test]
fn every_thread_is_within_and_the_status_says_so() {
    let larder = FencedLarder::start("threads", &format!("{FILES}[[disk]]\npath = \"PLACE/disk\"\nsize = \"64MiB\"\n"));
    let threads = std::fs::read_dir(format!("/proc/{}/task", larder.child.0.id())).expect("it runs").flatten();
    let statuses = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    let all: Vec<String> = statuses.collect();
    assert!(all.len() > 5, "{} threads", all.len());
    for status in &all {
        // Both are of a thread and of those that it starts; landlock is, too, and put in force between the two.
        assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    }
    let told = larder.status()["sandbox"].clone();
    let has_fence = larder.has_fence();
    assert_eq!((told["files"].as_bool(), told["system_calls"].as_bool()), (Some(has_fence), Some(true)), "{told}");
    assert_eq!(!larder.said().contains("[process] sandbox"), has_fence, "{}", larder.said());
    drop(larder);
    let open = FencedLarder::start("off", &format!("[process]\nsandbox = \"off\"\n{FILES}"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", open.child.0.id())).expect("it runs");
    assert!(status.contains("Seccomp:\t0"), "{status}");
    assert_eq!(open.status()["sandbox"]["files"].as_bool(), Some(false));
}

#[test]
fn a_deploy_that_sets_the_link_of_a_root_anew_is_served() {
    let larder = FencedLarder::start("deploy", FILES);
    assert!(larder.get("/page.txt").ends_with("the first release\n"));
    std::fs::create_dir(larder.path("site/2")).expect("it is ours");
    std::fs::write(larder.path("site/2/page.txt"), "the second release\n").expect("it is ours");
    symlink("2", larder.path("site/next")).expect("it is ours");
    std::fs::rename(larder.path("site/next"), larder.path("site/current")).expect("it is ours");
    // Open files are looked at again once a second.
    wait_for("the second release is served", || larder.get("/page.txt").ends_with("the second release\n"));
}

#[test]
fn a_root_that_is_removed_and_made_anew_is_served() {
    let larder = FencedLarder::start("anew", "[[route]]\nroot = \"PLACE/site/1\"\n");
    assert!(larder.get("/page.txt").ends_with("the first release\n"));
    std::fs::rename(larder.path("site/1"), larder.path("site/former")).expect("it is ours");
    std::fs::create_dir(larder.path("site/1")).expect("it is ours");
    std::fs::write(larder.path("site/1/page.txt"), "the second release\n").expect("it is ours");
    // Open files are looked at again once a second.
    wait_for("the second release is served", || larder.get("/page.txt").ends_with("the second release\n"));
}

#[test]
fn a_log_that_was_moved_away_is_made_anew() {
    let larder = FencedLarder::start("rotation", FILES);
    larder.get("/page.txt?before");
    wait_for("the line is written", || larder.path("log/access.log").metadata().is_ok_and(|log| log.len() > 0));
    std::fs::rename(larder.path("log/access.log"), larder.path("log/access.log.1")).expect("it is ours");
    larder.reload(FILES, "reloaded: ");
    larder.get("/page.txt?behind");
    wait_for("the new log has the line", || {
        std::fs::read_to_string(larder.path("log/access.log")).is_ok_and(|log| log.contains("?behind"))
    });
    larder.signal(Signal::TERM);
    wait_for("larder ends, and takes its sockets away", || !larder.path("run/a.sock").exists());
    assert!(!larder.said().contains("error"), "{}", larder.said());
}

#[test]
fn a_reload_that_needs_files_outside_is_refused_whole_and_says_which() {
    let larder = FencedLarder::start("outside", FILES);
    if !larder.has_fence() {
        return;
    }
    let refused = "the new config is refused, the old one stays: ";
    for (config, named) in [
        ("[[route]]\nroot = \"PLACE/else/2\"\n", "else/2 ([[route]] root)"),
        (
            "[[listen]]\naddress = \"unix:PLACE/else/l.sock\"\n[[route]]\nroot = \"PLACE/site/1\"\n",
            "else/l.sock ([[listen]] address)",
        ),
    ] {
        larder.reload(config, refused);
        let said = larder.said();
        let line = said.lines().rev().find(|line| line.contains(refused)).expect("it was waited for");
        assert!(line.contains(named) && line.contains("[process] sandbox"), "{line}");
        assert!(line.contains("a restart with this config lets it"), "{line}");
    }
    // What is read with the config fails before, and is told of in its place.
    std::fs::write(larder.path("else/token"), "x".repeat(64)).expect("it is ours");
    larder.reload(
        &format!("{FILES}[fleet]\npeers = [\"http://192.0.2.9\"]\nsecret_file = \"PLACE/else/token\"\n"),
        "sandbox_reads",
    );
    assert!(larder.get("/page.txt").ends_with("the first release\n"), "the old one stays");
    // Opened from the start it is taken.
    let open = "[process]\nsandbox_reads = [\"PLACE/else\"]\nsandbox_writes = [\"PLACE/else\"]\n";
    let larder = FencedLarder::start("opened", &format!("{open}{FILES}"));
    larder.reload(
        &format!("{open}[[listen]]\naddress = \"unix:PLACE/else/l.sock\"\n[[route]]\nroot = \"PLACE/else/2\"\n"),
        "reloaded: ",
    );
    assert!(larder.path("else/l.sock").exists());
}

#[test]
fn an_origin_on_a_socket_that_no_config_named_is_asked_after_a_reload() {
    let larder = FencedLarder::start("origin", FILES);
    let listener = UnixListener::bind(larder.path("else/o.sock")).expect("it is ours");
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 4_096]);
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\norigin");
        }
    });
    larder.reload("[origin.near]\nurls = [\"unix:PLACE/else/o.sock\"]\n", "reloaded: ");
    assert!(larder.get("/").ends_with("origin"), "{}", larder.said());
}

#[test]
fn a_program_reads_files_beside_itself_and_is_told_why_no_others() {
    let program = |file: &str| {
        format!(
            "vcl 4.1;\nimport std;\nbackend none none;\nsub vcl_recv {{ return (synth(200)); }}\n\
             sub vcl_synth {{ set resp.body = std.fileread(\"{file}\"); return (deliver); }}\n"
        )
    };
    let config = "[policy]\nvcl = \"PLACE/etc/site.vcl\"\n";
    let folder = make_folder("fileread");
    let beside = folder.join("etc/body.html");
    std::fs::write(&beside, "the body\n").expect("it is ours");
    std::fs::write(folder.join("etc/site.vcl"), program(&beside.display().to_string())).expect("it is ours");
    write_config(&folder, config);
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    let child = spawn(&folder, command.args(["serve", "--no-supervisor"]));
    let larder = FencedLarder::running(folder, child);
    assert!(larder.get("/").ends_with("the body\n"), "{}", larder.said());
    if !larder.has_fence() {
        return;
    }
    let outside = larder.path("else/2/page.txt").display().to_string();
    std::fs::write(larder.path("etc/site.vcl"), program(&outside)).expect("it is ours");
    larder.reload(config, "reloaded: ");
    assert!(!larder.get("/").contains("from elsewhere"));
    larder.wait_for_word("[process] sandbox");
}
