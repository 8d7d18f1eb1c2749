//! `larder serve` as its users start it, with a supervisor, before an origin that can be held up: for tests of processes that come and go.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::peer_process::{Running, free_address, wait_for};

/// The origin. Every answer to a GET may be stored for an hour. That of `/held` waits in its middle until it is let go, and that to whatever
/// is posted before its first byte; what is to become a WebSocket echoes.
pub struct HeldOrigin {
    pub address: SocketAddr,
    seen: Arc<Mutex<HashMap<String, u32>>>,
    is_let_go: Arc<AtomicBool>,
}

impl HeldOrigin {
    pub fn start() -> HeldOrigin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let origin = HeldOrigin {
            address: listener.local_addr().expect("it is bound"),
            seen: Arc::default(),
            is_let_go: Arc::default(),
        };
        let (seen, is_let_go) = (Arc::clone(&origin.seen), Arc::clone(&origin.is_let_go));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, is_let_go) = (Arc::clone(&seen), Arc::clone(&is_let_go));
                // A client that is gone is no failure of this origin.
                std::thread::spawn(move || drop(answer(stream, &seen, &is_let_go)));
            }
        });
        origin
    }

    /// How often it was asked, such as `GET /a`.
    pub fn count(&self, request: &str) -> u32 {
        self.seen.lock().unwrap().get(request).copied().unwrap_or_default()
    }

    pub fn let_go(&self) {
        self.is_let_go.store(true, Ordering::SeqCst);
    }
}

fn answer(stream: TcpStream, seen: &Mutex<HashMap<String, u32>>, is_let_go: &AtomicBool) -> std::io::Result<()> {
    let (mut reader, mut out) = (BufReader::new(stream.try_clone()?), stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let request = head.rsplit_once(" HTTP/1.1\r\n").map_or("", |_| head.lines().next().unwrap_or_default());
        let request = request.trim_end_matches(" HTTP/1.1").to_owned();
        *seen.lock().unwrap().entry(request.clone()).or_default() += 1;
        if head.to_ascii_lowercase().contains("\r\nupgrade: websocket") {
            out.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")?;
            let mut bytes = [0; 1_024];
            loop {
                match reader.read(&mut bytes)? {
                    0 => return Ok(()),
                    count => out.write_all(&bytes[..count])?,
                }
            }
        }
        let let_go = || wait_for("the test lets go", || is_let_go.load(Ordering::SeqCst));
        if request.starts_with("POST ") {
            let_go();
        }
        let body = vec![b'x'; if request.starts_with("GET /large") { 100_000 } else { 6_221 }];
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {}\r\n\r\n", body.len());
        out.write_all(head.as_bytes())?;
        out.write_all(&body[..1_000])?;
        if request == "GET /held" {
            let_go();
        }
        out.write_all(&body[1_000..])?;
    }
}

pub struct SupervisedLarder {
    pub folder: PathBuf,
    pub address: SocketAddr,
    supervisor: Running,
}

impl SupervisedLarder {
    /// With a disk, on one address, and with `more` in its larder.toml.
    pub fn start(name: &str, origin: &HeldOrigin, more: &str) -> SupervisedLarder {
        SupervisedLarder::start_behind(name, origin, more, "")
    }

    /// The same behind shell commands, such as `ulimit -n 64;`.
    pub fn start_behind(name: &str, origin: &HeldOrigin, more: &str, shell: &str) -> SupervisedLarder {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("supervised-{name}"));
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        let address = free_address();
        let text = format!(
            "workers = 2\n[[listen]]\naddress = \"{address}\"\nh2c = true\n[origin.a]\nurls = [\"http://{}\"]\n\
             [admin]\naddress = \"unix:admin.sock\"\n[[disk]]\npath = \"disk\"\nsize = \"64MiB\"\n{more}",
            origin.address
        );
        std::fs::write(folder.join("larder.toml"), text).expect("the target folder can be written");
        let said = std::fs::File::create(folder.join("said")).expect("the target folder can be written");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{shell} exec \"$0\" serve --config larder.toml"), env!("CARGO_BIN_EXE_larder")]);
        command.current_dir(&folder);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn();
        let larder = SupervisedLarder { folder, address, supervisor: Running(child.expect("larder can be started")) };
        wait_for("larder serves", || larder.said().contains("version "));
        larder
    }

    /// All that it has said so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.folder.join("said")).unwrap_or_default()
    }

    pub fn command(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        let command = command.args(words).args(["--config", "larder.toml"]).current_dir(&self.folder);
        command.output().expect("larder can be started")
    }

    pub fn supervisor(&self) -> Pid {
        Pid::from_child(&self.supervisor.0)
    }

    /// The processes below the supervisor, oldest first.
    pub fn serving(&self) -> Vec<Pid> {
        let supervisor = self.supervisor().as_raw_pid();
        let children = std::fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"));
        let pids = children.unwrap_or_default();
        pids.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    }

    /// Status, fields and body of an answer on a connection of its own.
    pub fn get(&self, target: &str) -> std::io::Result<String> {
        self.ask("GET", target)
    }

    pub fn ask(&self, method: &str, target: &str) -> std::io::Result<String> {
        let mut stream = self.begin(method, target)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// A request whose answer is read later.
    pub fn begin(&self, method: &str, target: &str) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
        write!(stream, "{method} {target} HTTP/1.1\r\nHost: a.example\r\n{length}Connection: close\r\n\r\n")?;
        Ok(stream)
    }

    /// A WebSocket that is open.
    pub fn websocket(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("larder listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("it has a timeout");
        let head = "GET /socket HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(head.as_bytes()).expect("larder reads");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("larder answers");
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
        stream
    }

    pub fn signal(&self, process: Pid, signal: Signal) {
        kill_process(process, signal).expect("it runs");
    }

    /// Ends it in good order, and returns its exit code.
    pub fn end(mut self) -> Option<i32> {
        self.signal(self.supervisor(), Signal::TERM);
        self.supervisor.0.wait().expect("it ends").code()
    }
}

/// What is sent comes back.
pub fn echoes(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).expect("the tunnel is open");
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).expect("the tunnel is open");
    assert_eq!(back, text.as_bytes());
}
