//! Ways out, tried by a process that has entered the very same sandbox: this test program, started once more. All are refused, also to
//! root; and what a larder needs goes on.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::errno::Errno;
use nix::mount::MsFlags;
use nix::sched::CloneFlags;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use proxy::settings::{ListenAddress, ListenerSettings, RootSettings};
use rustix::net::{AddressFamily, SocketType};

use super::{enter, state};
use crate::plan::{LogTarget, Plan};

/// Where the child is told its folder.
const FOLDER: &str = "LARDER_ESCAPE_FOLDER";

/// A site, what a larder beside it may have, and what not.
fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("larder-escapes-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    for made in ["etc", "log", "run", "releases/1", "else", "old"] {
        std::fs::create_dir_all(folder.join(made)).expect("a folder");
    }
    for (file, text) in [("etc/larder.toml", ""), ("releases/1/page", "one"), ("else/secret", "s"), ("old/page", "p")] {
        std::fs::write(folder.join(file), text).expect("a file");
    }
    symlink("releases/1", folder.join("current")).expect("a link");
    folder
}

fn plan(folder: &Path) -> Plan {
    let mut plan = Plan { log: Some(LogTarget::File(folder.join("log/access.log"))), ..Plan::default() };
    plan.settings.roots = vec![RootSettings::of(folder.join("current"))];
    plan.settings.listeners = vec![ListenerSettings::at(ListenAddress::Unix(folder.join("run/l.sock")))];
    plan.sandbox.config = Some(folder.join("etc/larder.toml"));
    plan
}

/// Without a sandbox all of these succeed, or fail otherwise.
#[test]
fn every_way_out_is_refused_and_serving_goes_on() {
    let folder = folder();
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let child = "sandbox::escape_tests::tried_by_a_child";
    command.args(["--exact", child, "--ignored", "--test-threads=1", "--nocapture"]).env(FOLDER, &folder);
    let done = command.output().expect("it can be started once more");
    let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    std::fs::remove_dir_all(&folder).expect("it is ours");
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "every_way_out_is_refused_and_serving_goes_on starts it, in a process of its own"]
fn tried_by_a_child() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("the parent says where"));
    // Opened before; as root it could be done.
    let parent = getppid();
    enter(&plan(&folder));
    let held = state();
    if held.files.is_some() {
        files_stay_closed(&folder);
    } else {
        println!("not run: this kernel has no landlock");
    }
    assert!(held.calls, "this kernel filters no system calls");
    programs_and_processes_are_out_of_reach(parent);
    the_kernel_is_out_of_reach();
    serving_goes_on(&folder);
}

#[track_caller]
fn refused<T>(what: &str, tried: io::Result<T>, expect: Errno) {
    let got = tried.err().and_then(|error| error.raw_os_error());
    assert_eq!(got.map(Errno::from_raw), Some(expect), "{what}");
}

fn files_stay_closed(folder: &Path) {
    let closed = Errno::EACCES;
    refused("reading /etc/shadow", File::open("/etc/shadow"), closed);
    refused("reading another's file", File::open(folder.join("else/secret")), closed);
    refused("through a link", File::open(folder.join("log/../else/secret")), closed);
    refused("reading where logs are written", File::open(folder.join("log")), closed);
    refused("looking into a folder", std::fs::read_dir(folder.join("else")), closed);
    refused("writing", File::create(folder.join("else/new")), closed);
    refused("writing in a root", File::create(folder.join("releases/1/new")), closed);
    refused("writing the config", File::options().append(true).open(folder.join("etc/larder.toml")), closed);
    refused("emptying a page", File::options().write(true).truncate(true).open(folder.join("releases/1/page")), closed);
    refused("removing", std::fs::remove_file(folder.join("else/secret")), closed);
    refused("making a folder", std::fs::create_dir(folder.join("log/folder")), closed);
    let moved = std::fs::rename(folder.join("else/secret"), folder.join("log/secret"));
    assert!(matches!(moved.map_err(|error| error.raw_os_error()), Err(Some(libc::EACCES | libc::EXDEV))), "moving in");
    refused("another process", File::open(format!("/proc/{}/environ", getppid())), closed);
    refused("memory", File::open("/dev/mem").or_else(|_| File::open("/dev/kmsg")), closed);
}

fn programs_and_processes_are_out_of_reach(parent: Pid) {
    let forbidden = Errno::EPERM;
    refused("another process", Command::new("/bin/true").spawn(), forbidden);
    refused("another program", Err::<(), _>(Command::new("/bin/true").exec()), forbidden);
    refused("tracing", ptrace::attach(parent).map_err(io::Error::from), forbidden);
    refused("tracing itself", ptrace::traceme().map_err(io::Error::from), forbidden);
    refused("a signal", kill(parent, Signal::SIGCONT).map_err(io::Error::from), forbidden);
    // Of this thread alone: the C library would have all threads do it, and one is outside.
    let root = rustix::thread::set_thread_uid(rustix::process::Uid::ROOT);
    refused("being root", root.map_err(io::Error::from), forbidden);
}

fn the_kernel_is_out_of_reach() {
    let forbidden = Errno::EPERM;
    for family in [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, libc::AF_BLUETOOTH] {
        let family = AddressFamily::from_raw(family as u16);
        let tried = rustix::net::socket(family, SocketType::SEQPACKET, None).map_err(io::Error::from);
        refused(&format!("a socket of {family:?}"), tried, forbidden);
    }
    let netlink =
        rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, Some(rustix::net::netlink::KOBJECT_UEVENT));
    refused("netlink", netlink.map_err(io::Error::from), forbidden);
    let none: Option<&str> = None;
    let mounted = nix::mount::mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none);
    refused("mounting", mounted.map_err(io::Error::from), forbidden);
    let apart = nix::sched::unshare(CloneFlags::CLONE_NEWUSER);
    refused("a namespace", apart.map_err(io::Error::from), forbidden);
}

fn serving_goes_on(folder: &Path) {
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).expect("it is open");
    assert_eq!(read("current/page"), "one");
    // The log is made, and another file in the place of the config can be read.
    let log = File::options().append(true).create(true).open(folder.join("log/access.log"));
    io::Write::write_all(&mut log.expect("it is larder's"), b"line\n").expect("there is room");
    // A thread, a listener, a client, an origin on a UNIX socket that nobody named.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("sockets are served");
    let address = listener.local_addr().expect("it has one");
    let client = std::thread::spawn(move || TcpStream::connect(address));
    listener.accept().expect("somebody asks");
    client.join().expect("a thread").expect("it is let in");
    let socket = UnixListener::bind(folder.join("run/l.sock")).expect("its folder is larder's");
    UnixStream::connect(folder.join("run/l.sock")).expect("it listens");
    drop(socket);
    std::fs::remove_file(folder.join("run/l.sock")).expect("its folder is larder's");
    assert!(crate::process_memory::resident_bytes().is_some(), "/proc/self is open");
    // Names are looked up, from a thread as the program does it.
    let found = std::thread::spawn(|| std::net::ToSocketAddrs::to_socket_addrs("localhost:80").map(|all| all.count()));
    assert!(found.join().expect("a thread").is_ok_and(|count| count > 0), "localhost has an address");
}
