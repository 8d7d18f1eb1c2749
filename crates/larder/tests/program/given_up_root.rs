//! `--user` and `[process] user` as root starts them: no thread keeps anything of root, what was bound as root answers on, what is opened
//! later is opened as that user. Where the tests are no root's, they say that they were not run.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::peer_process::{Running, free_address, wait_for, wait_until_it_listens};

/// `nobody` and `nogroup` of Debian.
const NOBODY: u32 = 65_534;
const PAGE: &str = "what nobody may read\n";

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("not run: only root can give up root");
    }
    is_root
}

/// Where `nobody` may go, too: folders of a build may be closed to it.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("larder-root-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(folder.join("nobodys")).expect("there is a folder for temporary files");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).expect("it is ours");
    std::os::unix::fs::chown(folder.join("nobodys"), Some(NOBODY), Some(NOBODY)).expect("root may");
    std::fs::create_dir_all(folder.join("site")).expect("it is ours");
    std::fs::write(folder.join("site/page.txt"), PAGE).expect("it is ours");
    folder
}

/// One that only root, or who has CAP_NET_BIND_SERVICE, may listen on.
fn low_address() -> SocketAddr {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let port = (600..1_000).rev().find(is_free).expect("a port below 1024 is free");
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn serve(folder: &Path, words: &[&str]) -> Running {
    let said = std::fs::File::create(folder.join("said")).expect("it is ours");
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(["serve", "--no-supervisor"]).args(words).current_dir(folder).stderr(said).stdout(Stdio::null());
    Running(command.spawn().expect("larder can be started"))
}

fn said(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("said")).unwrap_or_default()
}

fn wait_for_word(folder: &Path, word: &str) {
    wait_for(&format!("larder says {word:?}, not\n{}", said(folder)), || said(folder).contains(word));
}

fn answer(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("larder listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("larder reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("larder answers");
    answer
}

/// The words of a line of `/proc/PID/task/*/status`, of each thread.
fn of_threads(process: u32, name: &str) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs").flatten();
    let statuses = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    let line = |status: String| status.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
    let all: Vec<String> = statuses.filter_map(line).map(|words| words.trim().replace('\t', " ")).collect();
    assert!(all.len() > 3, "{name} of only {} threads", all.len());
    all
}

#[test]
fn no_thread_keeps_anything_of_root() {
    if !is_root() {
        return;
    }
    let (folder, low) = (folder("threads"), low_address());
    let place = folder.display();
    let config = |more: &str| {
        let text = format!(
            "[process]\nuser = \"nobody:nogroup\"\n[[listen]]\naddress = \"{low}\"\n[[listen]]\naddress = \"unix:{place}/l.sock\"\n{more}\
             [admin]\naddress = \"unix:{place}/a.sock\"\n[log]\npath = \"{place}/nobodys/access.log\"\n\
             [[disk]]\npath = \"{place}/nobodys/disk\"\nsize = \"64MiB\"\n[[route]]\nroot = \"{place}/site\"\n"
        );
        std::fs::write(folder.join("larder.toml"), text).expect("it is ours");
    };
    config("");
    let larder = serve(&folder, &["--config", "larder.toml", "--workers", "2"]);
    wait_until_it_listens(low);
    wait_for_word(&folder, "listening on");
    let process = larder.0.id();
    let id = NOBODY.to_string();
    for (name, expect) in [
        ("Uid:", [id.as_str(); 4].join(" ")),
        ("Gid:", [id.as_str(); 4].join(" ")),
        ("Groups:", id.clone()),
        ("CapPrm:", "0000000000000000".to_owned()),
        ("CapEff:", "0000000000000000".to_owned()),
    ] {
        let all = of_threads(process, name);
        assert!(all.iter().all(|words| *words == expect), "{name} {all:?}");
    }
    assert!(answer(low, "/page.txt").ends_with(PAGE), "{}", said(&folder));
    for file in ["l.sock", "a.sock", "nobodys/access.log", "nobodys/disk"] {
        let owner = std::fs::metadata(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}")).uid();
        assert_eq!(owner, NOBODY, "{file}");
    }
    assert!(!said(&folder).contains("warning"), "{}", said(&folder));
    // A reload keeps what is bound, and cannot bind what only root may.
    let pid = Pid::from_child(&larder.0);
    kill_process(pid, Signal::HUP).expect("larder runs");
    wait_for_word(&folder, "reloaded: ");
    config(&format!("[[listen]]\naddress = \"{}\"\n", low_address()));
    kill_process(pid, Signal::HUP).expect("larder runs");
    wait_for_word(
        &folder,
        "larder has been nobody:nogroup since its start ([process] user), and only a restart binds as root",
    );
    assert!(answer(low, "/page.txt").ends_with(PAGE));
    drop(larder);
    std::fs::remove_dir_all(&folder).expect("it is ours");
}

/// As root it would start, and fail at the first reload or request.
#[test]
fn what_the_user_may_not_is_said_at_the_start() {
    if !is_root() {
        return;
    }
    let (folder, address) = (folder("refused"), free_address());
    let listen = address.to_string();
    let words = ["--listen", &listen, "--admin", "off", "--root", "site", "--user", "nobody"];
    let refused = |more: &[&str], expect: &str| {
        let mut larder = serve(&folder, &[&words, more].concat());
        wait_for("larder gives up", || larder.0.try_wait().is_ok_and(|ended| ended.is_some()));
        assert_eq!(larder.0.wait().expect("it is our child").code(), Some(1));
        assert!(said(&folder).contains(expect), "{}", said(&folder));
    };
    refused(
        &["--log", "site/access.log"],
        "cannot open the access log (--log, [log] path): site/access.log: Permission denied",
    );
    std::fs::set_permissions(folder.join("site"), PermissionsExt::from_mode(0o700)).expect("it is ours");
    refused(&[], "the root site cannot be read (Permission denied");
    std::fs::set_permissions(folder.join("site"), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let mut unknown = words;
    unknown[7] = "no-such-user";
    let mut larder = serve(&folder, &unknown);
    wait_for("larder gives up", || larder.0.try_wait().is_ok_and(|ended| ended.is_some()));
    assert!(said(&folder).contains("this machine has no user no-such-user"), "{}", said(&folder));
    std::fs::remove_dir_all(&folder).expect("it is ours");
}

#[test]
fn root_is_warned_of_unless_it_is_meant() {
    if !is_root() {
        return;
    }
    let (folder, address) = (folder("meant"), free_address());
    let listen = address.to_string();
    let words = ["--listen", &listen, "--admin", "off", "--root", "site"];
    for (more, is_warned) in [(&[] as &[&str], true), (&["--user", "root"], false)] {
        let larder = serve(&folder, &[&words, more].concat());
        wait_for_word(&folder, "listening on");
        assert_eq!(said(&folder).contains("warning: larder runs as root"), is_warned, "{}", said(&folder));
        drop(larder);
    }
    // Nobody else becomes anybody.
    let program = folder.join("larder");
    std::fs::copy(env!("CARGO_BIN_EXE_larder"), &program).expect("there is room for a copy");
    let mut command = Command::new(&program);
    command
        .args(["serve", "--no-supervisor"])
        .args(words)
        .args(["--user", "root"])
        .current_dir(&folder)
        .uid(NOBODY)
        .gid(NOBODY);
    let done = command.output().expect("larder can be started");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("only root may become another user"), "{said}");
    std::fs::remove_dir_all(&folder).expect("it is ours");
}
