//! Processes of `larder serve` that come and go while clients ask: upgrades in place, and a serving process that dies.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::process::Signal;

use crate::peer_process::wait_for;
use crate::supervised_larder::{HeldOrigin, SupervisedLarder, echoes};

/// Upgrades that are made under load.
const UPGRADES: usize = 5;

fn load(words: &[&str], url: &str) -> Child {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(url).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it is installed")
}

/// Over HTTP/2, each on a connection of its own, until it is over: how many were asked, and how many answered.
fn ask_by_curl(url: String, is_over: Arc<AtomicBool>) -> JoinHandle<(u32, u32)> {
    std::thread::spawn(move || {
        let (mut asked, mut answered) = (0, 0);
        while !is_over.load(Ordering::SeqCst) {
            let mut command = Command::new("curl");
            command.args([
                "--silent",
                "--show-error",
                "--fail",
                "--http2-prior-knowledge",
                "--output",
                "/dev/null",
                &url,
            ]);
            asked += 1;
            answered += u32::from(command.status().is_ok_and(|ended| ended.success()));
        }
        (asked, answered)
    })
}

fn report(child: Child) -> String {
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn upgrade(larder: &SupervisedLarder) {
    let output = larder.command(&["upgrade"]);
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.starts_with("upgraded: process "), "{said}{errors}\n{}", larder.said());
    assert!(said.contains(concat!("version ", env!("CARGO_PKG_VERSION"))), "{said}");
}

#[test]
fn upgrades_under_load_fail_no_request_and_cut_nothing() {
    let origin = HeldOrigin::start();
    let larder = SupervisedLarder::start("load", &origin, "");
    assert!(larder.get("/page").expect("answered").starts_with("HTTP/1.1 200"));
    let url = format!("http://{}/page", larder.address);
    let wrk = load(&["wrk", "-t1", "-c16", "-d6s"], &url);
    let http2 = load(&["h2load", "-c4", "-m8", "-D6"], &url);
    let is_over = Arc::new(AtomicBool::new(false));
    let curl = ask_by_curl(url.clone(), Arc::clone(&is_over));
    let mut socket = larder.websocket();
    let mut download = larder.begin("GET", "/held").expect("larder listens");
    echoes(&mut socket, "before");
    wait_for("the download is under way", || origin.count("GET /held") == 1);
    let first = larder.serving();
    for at in 0..UPGRADES {
        upgrade(&larder);
        echoes(&mut socket, &format!("behind upgrade {at}"));
    }
    let (wrk, http2) = (report(wrk), report(http2));
    is_over.store(true, Ordering::SeqCst);
    assert!(!wrk.contains("Socket errors") && !wrk.contains("Non-2xx"), "{wrk}");
    assert!(http2.contains(" 0 timeout") && http2.contains(" 0 3xx, 0 4xx, 0 5xx"), "{http2}");
    // h2load counts as errors what it had queued, and not sent, when GOAWAY came: behind a reload of nginx's it does so too. It never has to
    // where nothing is queued.
    let (asked, answered) = curl.join().expect("no panic");
    assert_eq!(asked, answered, "by curl, one request after the other");
    origin.let_go();
    let mut answer = Vec::new();
    download.read_to_end(&mut answer).expect("it is whole");
    assert!(answer.ends_with(&[b'x'; 6_221]), "{} bytes of the download", answer.len());
    echoes(&mut socket, "still");
    assert!(larder.serving().contains(&first[0]), "the process that has the socket is still there");
    drop(socket);
    wait_for("the former processes end when nobody is left", || larder.serving().len() == 1);
    assert_eq!(larder.end(), Some(0));
}

#[test]
fn what_was_stored_is_found_behind_an_upgrade_and_behind_a_crash() {
    let origin = HeldOrigin::start();
    let larder = SupervisedLarder::start("crash", &origin, "");
    assert!(larder.get("/page").expect("answered").starts_with("HTTP/1.1 200"));
    let is_hit = || larder.get("/page").is_ok_and(|answer| answer.contains("; hit;"));
    wait_for("it is a hit", is_hit);
    upgrade(&larder);
    wait_for("the former process has ended", || larder.serving().len() == 1);
    assert!(is_hit(), "{}", larder.said());
    let serving = larder.serving();
    larder.signal(serving[0], Signal::KILL);
    // Who connects meanwhile waits, and is refused by nobody.
    let answer = larder.get("/page").expect("answered by the next process");
    assert!(answer.contains("; hit;"), "{answer}\n{}", larder.said());
    assert_eq!(origin.count("GET /page"), 1);
    assert!(!larder.serving().contains(&serving[0]));
    assert!(larder.said().contains("was ended by signal 9; another one is started"), "{}", larder.said());
    let figures = String::from_utf8_lossy(&larder.command(&["stat", "--once"]).stdout).into_owned();
    let deaths = figures.lines().find(|line| line.starts_with("processes.deaths "));
    assert!(deaths.is_some_and(|line| line.ends_with(" 1")), "{deaths:?}");
    assert_eq!(larder.end(), Some(0));
}

#[test]
fn a_program_that_cannot_serve_changes_nothing() {
    let origin = HeldOrigin::start();
    let larder = SupervisedLarder::start("refused", &origin, "");
    let serving = larder.serving();
    let config = larder.folder.join("larder.toml");
    let good = std::fs::read_to_string(&config).expect("it is there");
    // The command needs the admin address from it, which still stands there.
    std::fs::write(&config, format!("{good}\n[[route]]\nroot = \"/nowhere/at/all\"\n")).expect("it can be written");
    let output = larder.command(&["upgrade"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("not upgraded, the process that serves goes on: process "), "{errors}");
    assert!(larder.said().contains("/nowhere/at/all"), "and the one that could not says why: {}", larder.said());
    assert_eq!(larder.serving(), serving);
    assert!(larder.get("/page").expect("answered").starts_with("HTTP/1.1 200"));
    std::fs::write(&config, good).expect("it can be written");
    larder.signal(larder.supervisor(), Signal::USR2);
    wait_for("another one serves", || larder.said().contains(" serves from here on"));
    wait_for("the former process has ended", || larder.serving().len() == 1);
    // Who orders the next one is answered, though one was refused before in the very process that makes way.
    let refused = larder.folder.join("larder.toml");
    let text = std::fs::read_to_string(&refused).expect("it is there");
    std::fs::write(&refused, format!("{text}\n[[route]]\nroot = \"/nowhere/at/all\"\n")).expect("it can be written");
    assert_eq!(larder.command(&["upgrade"]).status.code(), Some(1));
    std::fs::write(&refused, text).expect("it can be written");
    upgrade(&larder);
    assert!(larder.get("/page").expect("answered").contains("; hit;"));
    assert_eq!(larder.end(), Some(0));
}

/// A socket that is bound for a config that is refused is nobody's, and the mended config has it.
#[test]
fn a_reload_that_is_refused_leaves_no_address_on_which_nobody_accepts() {
    let origin = HeldOrigin::start();
    let larder = SupervisedLarder::start("address", &origin, "");
    let (config, added) = (larder.folder.join("larder.toml"), crate::peer_process::free_address());
    let good = std::fs::read_to_string(&config).expect("it is there");
    let with = |more: &str| format!("{good}\n[[listen]]\naddress = \"{added}\"\n{more}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let refused = with(&format!("[[listen]]\naddress = \"{}\"\n", taken.local_addr().expect("it is bound")));
    std::fs::write(&config, refused).expect("it can be written");
    for words in [&["reload"][..], &["upgrade"]] {
        let output = larder.command(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(std::net::TcpStream::connect(added).is_err(), "{words:?}: somebody listens on {added}");
    }
    std::fs::write(&config, with("")).expect("it can be written");
    let output = larder.command(&["reload"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::net::TcpStream::connect(added).expect("it is listened on");
    upgrade(&larder);
    std::net::TcpStream::connect(added).expect("by the next process, too");
    std::fs::write(&config, good).expect("it can be written");
    assert!(larder.command(&["reload"]).status.success(), "{}", larder.said());
    wait_for("it is listened on no longer", || std::net::TcpStream::connect(added).is_err());
    assert_eq!(larder.end(), Some(0));
}

/// Its path is the next process's, and goes with the last one.
#[test]
fn a_unix_socket_is_there_through_an_upgrade_and_behind_a_drain_by_somebody_else() {
    let origin = HeldOrigin::start();
    let larder = SupervisedLarder::start("unix", &origin, "[[listen]]\naddress = \"unix:l.sock\"\n");
    let connects = || std::os::unix::net::UnixStream::connect(larder.folder.join("l.sock")).is_ok();
    assert!(connects());
    upgrade(&larder);
    wait_for("the former process has ended", || larder.serving().len() == 1);
    assert!(connects(), "{}", larder.said());
    // Who ends the serving process alone ends what it has bound by a path; the next one binds anew.
    larder.signal(larder.serving()[0], Signal::TERM);
    wait_for("another one serves", connects);
    assert!(larder.get("/page").expect("answered").starts_with("HTTP/1.1 200"));
    let path = larder.folder.join("l.sock");
    assert_eq!(larder.end(), Some(0));
    assert!(!path.exists(), "it is left behind");
}

/// A POST that began before an upgrade and ends behind it: what it changes is not what the next process has stored.
#[test]
fn what_the_former_process_invalidates_is_invalidated_in_the_next() {
    let origin = HeldOrigin::start();
    let larder = SupervisedLarder::start("invalidated", &origin, "");
    let mut posted = larder.begin("POST", "/form").expect("larder listens");
    wait_for("the POST is under way", || origin.count("POST /form") == 1);
    upgrade(&larder);
    let is_hit = || larder.get("/form").is_ok_and(|answer| answer.contains("; hit;"));
    wait_for("the next process has the form", is_hit);
    assert_eq!(origin.count("GET /form"), 1);
    origin.let_go();
    let mut answer = String::new();
    posted.read_to_string(&mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    wait_for("it is fetched again", || larder.get("/form").is_ok() && origin.count("GET /form") == 2);
    assert_eq!(larder.end(), Some(0));
}

#[test]
fn a_first_start_that_fails_ends_with_its_own_code() {
    for (words, code, sentence) in [
        (&["serve"][..], 2, "there is nothing to serve"),
        (&["serve", "--root", "/nowhere/at/all", "--admin", "off"], 1, "/nowhere/at/all"),
        (&["serve", "--supervised", "--no-supervisor"], 2, "cannot be used with"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_larder")).args(words).output().expect("larder can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {errors}");
        assert!(errors.contains(sentence), "{words:?}: {errors}");
    }
}

#[test]
fn who_kills_the_supervisor_ends_larder() {
    let origin = HeldOrigin::start();
    let larder = SupervisedLarder::start("orphan", &origin, "");
    let serving = larder.serving();
    larder.signal(larder.supervisor(), Signal::KILL);
    let is_gone = || !std::path::Path::new(&format!("/proc/{}/fd", serving[0].as_raw_pid())).exists();
    wait_for("the serving process is gone", is_gone);
    assert!(larder.get("/page").is_err(), "nobody listens");
    assert!(larder.said().contains("the supervisor is gone"), "{}", larder.said());
}

/// As systemd does it for a socket unit.
#[test]
fn a_socket_of_the_service_manager_is_listened_on() {
    let origin = HeldOrigin::start();
    let (address, other) = (crate::peer_process::free_address(), crate::peer_process::free_address());
    for more in [&[][..], &["--no-supervisor"]] {
        let mut command = Command::new("systemd-socket-activate");
        command.args(["-l", &address.to_string(), "-l", &other.to_string(), env!("CARGO_BIN_EXE_larder"), "serve"]);
        command.args(["--listen", &address.to_string(), "--admin", "off"]).args(more);
        command.args(["--origin", &format!("http://{}", origin.address)]);
        let child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().expect("it is installed");
        let mut child = crate::peer_process::Running(child);
        let mut stream = None;
        wait_for("it listens", || {
            stream = std::net::TcpStream::connect(address).ok();
            stream.is_some()
        });
        let mut stream = stream.expect("it is connected");
        std::io::Write::write_all(&mut stream, b"GET /page HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
            .expect("larder reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("larder answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        rustix::process::kill_process(rustix::process::Pid::from_child(&child.0), Signal::TERM).expect("it runs");
        let mut said = String::new();
        child.0.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        assert!(said.contains(&format!("tcp {other} is listened on no longer")), "{said}");
    }
}
