//! What the service manager hears of `larder serve` on a datagram socket of its own: ready when it answers, reloading, what was refused,
//! that it lives, and that it ends.

use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::peer_process::{Running, free_address, wait_for};

const PATIENCE: Duration = Duration::from_secs(60);

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("notices-{name}"));
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

fn config(folder: &Path, address: SocketAddr, more: &str) {
    let text =
        format!("[[listen]]\naddress = \"{address}\"\n[admin]\naddress = \"off\"\n[[route]]\nroot = \".\"\n{more}");
    std::fs::write(folder.join("larder.toml"), text).expect("the target folder can be written");
}

/// A larder that is told by its environment who wants to hear of it.
fn serve(folder: &Path, notify: &str, watchdog: Option<Duration>) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(["serve", "--config", "larder.toml"]).current_dir(folder).stderr(Stdio::null());
    command.env("NOTIFY_SOCKET", notify).env_remove("WATCHDOG_PID").env_remove("WATCHDOG_USEC");
    watchdog.iter().for_each(|time| {
        command.env("WATCHDOG_USEC", time.as_micros().to_string());
    });
    command.spawn().expect("larder can be started")
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("larder runs");
}

/// The next datagram that is no beat, and how many of these came before it.
fn next(heard: &UnixDatagram) -> (String, u32) {
    let mut beats = 0;
    loop {
        let mut bytes = [0; 4_096];
        let count = heard.recv(&mut bytes).expect("larder says more");
        match String::from_utf8(bytes[..count].to_vec()).expect("it is text") {
            beat if beat == "WATCHDOG=1" => beats += 1,
            said => return (said, beats),
        }
    }
}

#[test]
fn a_path_hears_all_that_happens() {
    let (folder, address) = (folder("path"), free_address());
    config(&folder, address, "");
    let path = folder.join("notify");
    let heard = UnixDatagram::bind(&path).expect("the target folder can be written");
    heard.set_read_timeout(Some(PATIENCE)).expect("it has a timeout");
    let mut larder = Running(serve(&folder, &path.display().to_string(), Some(Duration::from_millis(400))));
    let (ready, _) = next(&heard);
    assert!(ready.starts_with("READY=1\nSTATUS=") && ready.contains("of memory"), "{ready}");
    TcpStream::connect(address).expect("who is ready answers");
    // Each beat is an answer of all workers to the question of the one before.
    let mut bytes = [0; 64];
    for _ in 0..4 {
        let count = heard.recv(&mut bytes).expect("it lives");
        assert_eq!(&bytes[..count], b"WATCHDOG=1");
    }
    signal(&larder.0, Signal::HUP);
    let (reloading, _) = next(&heard);
    let began = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect(&reloading);
    assert!(began.lines().next().is_some_and(|us| us.parse::<u64>().is_ok_and(|us| us > 0)), "{reloading}");
    let (ready, _) = next(&heard);
    assert!(ready.starts_with("READY=1\n") && !ready.contains("refused"), "{ready}");
    config(&folder, address, "[nonsense]\n");
    signal(&larder.0, Signal::HUP);
    assert!(next(&heard).0.starts_with("RELOADING=1\n"));
    let (ready, _) = next(&heard);
    assert!(ready.starts_with("READY=1\nSTATUS=the last reload was refused: "), "{ready}");
    signal(&larder.0, Signal::TERM);
    let (stopping, _) = next(&heard);
    let grace = proxy::limits::Limits::default().drain_grace;
    let extended = stopping.lines().find_map(|line| line.strip_prefix("EXTEND_TIMEOUT_USEC=")).expect(&stopping);
    assert!(stopping.starts_with("STOPPING=1\n"), "{stopping}");
    assert!(extended.parse::<u128>().is_ok_and(|usec| usec > grace.as_micros()), "{stopping}");
    let ended = larder.0.wait().expect("it is our child");
    assert!(ended.success(), "{ended}");
}

/// As systemd within a container has it. Without a watchdog there is no beat.
#[test]
fn an_abstract_socket_hears_it_too() {
    let (folder, address) = (folder("abstract"), free_address());
    config(&folder, address, "");
    let name = format!("larder-notices-{}", std::process::id());
    let at = std::os::unix::net::SocketAddr::from_abstract_name(name.as_bytes()).expect("a name");
    let heard = UnixDatagram::bind_addr(&at).expect("the name is free");
    heard.set_read_timeout(Some(PATIENCE)).expect("it has a timeout");
    let mut larder = Running(serve(&folder, &format!("@{name}"), None));
    let (ready, beats) = next(&heard);
    assert!(ready.starts_with("READY=1\n") && beats == 0, "{ready}");
    signal(&larder.0, Signal::TERM);
    let (stopping, beats) = next(&heard);
    assert!(stopping.starts_with("STOPPING=1\n") && beats == 0, "{stopping}");
    assert!(larder.0.wait().is_ok_and(|ended| ended.success()));
}

#[test]
fn who_cannot_listen_is_never_ready() {
    let folder = folder("taken");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    config(&folder, taken.local_addr().expect("it is bound"), "");
    let path = folder.join("notify");
    let heard = UnixDatagram::bind(&path).expect("the target folder can be written");
    heard.set_nonblocking(true).expect("a socket may be asked without waiting");
    let mut larder = Running(serve(&folder, &path.display().to_string(), Some(Duration::from_millis(400))));
    wait_for("larder gives up", || larder.0.try_wait().is_ok_and(|ended| ended.is_some()));
    assert_eq!(larder.0.wait().expect("it is our child").code(), Some(1));
    assert!(heard.recv(&mut [0; 64]).is_err(), "it said something");
}
