//! `larder lab origin` as a process, and the record that it writes of what it was asked and when it answered.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use crate::lane::now_ms;

pub struct OriginProcess {
    pub address: SocketAddr,
    child: Child,
    log: PathBuf,
}

/// A line of the record.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub received_nanos: u64,
    pub answered_nanos: u64,
    pub status: u16,
    pub body_bytes: u64,
    pub ending: String,
}

static STARTED: AtomicU32 = AtomicU32::new(0);

impl OriginProcess {
    /// On a free port, until it is stopped or dropped.
    pub fn start(flags: &str) -> OriginProcess {
        OriginProcess::start_at("127.0.0.1:0", flags)
    }

    pub fn start_at(listen: &str, flags: &str) -> OriginProcess {
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("origin-{}-{number}", std::process::id());
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let (log, ports) = (place.with_extension("log"), place.with_extension("ports"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["lab", "origin", "--listen", listen]).args(flags.split_whitespace());
        command.arg("--log").arg(&log).arg("--ports-file").arg(&ports);
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("larder can be started");
        let started_ms = now_ms();
        let address = loop {
            if let Ok(text) = std::fs::read_to_string(&ports) {
                break text.trim().strip_prefix("listen ").and_then(|it| it.parse().ok()).expect("a ports file");
            }
            assert!(now_ms() - started_ms < 20_000, "the origin does not listen");
            std::thread::yield_now();
        };
        let _ = std::fs::remove_file(&ports);
        OriginProcess { address, child, log }
    }

    /// What it says itself of how often it was asked.
    pub fn count(&self) -> u64 {
        let mut client = TcpStream::connect(self.address).expect("the origin answers");
        client.write_all(b"GET /lab-requests HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut text = String::new();
        client.read_to_string(&mut text).expect("it answers");
        text.lines().last().and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    }

    /// Ends it in good order, and reads what it has written.
    pub fn record(mut self) -> Vec<Recorded> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("it is there");
        assert!(self.child.wait().expect("it ends").success(), "the origin failed");
        let text = std::fs::read_to_string(&self.log).expect("the origin has written its record");
        text.lines().skip(1).map(Recorded::read).collect()
    }
}

impl Drop for OriginProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

impl Recorded {
    fn read(line: &str) -> Recorded {
        let columns: Vec<&str> = line.split('\t').collect();
        let [received, answered, _, _, _, status, bytes, ending] = columns[..] else { panic!("{line}") };
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
        Recorded {
            received_nanos: number(received),
            answered_nanos: number(answered),
            status: number(status) as u16,
            body_bytes: number(bytes),
            ending: ending.to_owned(),
        }
    }

    pub fn service_nanos(&self) -> u64 {
        self.answered_nanos - self.received_nanos
    }
}
