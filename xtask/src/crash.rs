//! `cargo xtask crash`: kill -9 at random moments under load, again and again on one disk, with purges and bans among the
//! requests. After each restart everything that is stored is asked for and compared with what the origin sent in full for
//! that very key: no byte may be wrong, and nothing may be back that was purged or banned when that was answered.
//!
//! A kill keeps what the kernel has in its page cache: what a loss of power does is for the simulated device in `store`'s
//! own tests.

use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::crash_bodies::{body_of, is_text, undone};
use crate::dice::Dice;
use crate::plain_exchange::{Message, Unframed};
use crate::project::{Project, Stopwatch};
use crate::seeded_run;
use crate::started_larder;
use crate::step_tally::Tally;

/// Of `cargo xtask test`.
const RUNS_IN_TESTS: usize = 5;
const RUNS: u64 = 100;
const KEYS: usize = 400;
/// A ban hits one key in so many.
const KINDS: usize = 20;
const CLIENTS: usize = 4;
/// How often as many kills there may be, until something was tested.
const RUNS_MORE_MAX: usize = 4;
const CODINGS: &str = "Accept-Encoding: br, zstd\r\n";
const LIFE_MS_MAX: u64 = 700;
const PATIENCE: Duration = Duration::from_secs(10);

/// What the origin and the clients know together.
struct Truth {
    /// Of each key: the newest version that was handed out.
    newest: [AtomicU64; KEYS],
    /// Of each key: nothing up to this version may be served any more.
    gone: [AtomicU64; KEYS],
    checked: AtomicU64,
    purged: AtomicU64,
    stopped: AtomicBool,
    wrong: std::sync::Mutex<Vec<String>>,
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    seeded_run::task("crash", ("--runs", RUNS), options, |runs, seed| crash(project, runs as usize, seed))
}

/// The short run of the tests.
pub fn run(project: &Project) -> Result<Tally, String> {
    crash(project, RUNS_IN_TESTS, Dice::drawn())
}

fn crash(project: &Project, runs: usize, seed: u64) -> Result<Tally, String> {
    let folder = project.scratch("crash")?;
    let _ = std::fs::remove_file(folder.join("store"));
    let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
    let truth = Arc::new(Truth {
        newest: zeros(),
        gone: zeros(),
        checked: AtomicU64::new(0),
        purged: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
        wrong: std::sync::Mutex::default(),
    });
    let origin = serve_origin(&truth).map_err(|error| format!("the origin: {error}"))?;
    let mut dice = Dice::of(seed);
    let (mut found, mut encodings, mut kills) = (0, 0, 0);
    loop {
        let larder = start(project, &folder, origin)?;
        found += look_at_all(&folder, &truth, kills)?;
        encodings += encodings_recalled(&folder)?;
        // Where the machine has much else to do, nothing may have been coded before a kill: then there are more of them.
        let is_over = kills >= runs && (found > 0 && encodings > 0 || kills >= runs * RUNS_MORE_MAX);
        if !is_over {
            live(&folder, &truth, &mut dice);
            kills += 1;
        }
        kill(larder)?;
        if is_over || !truth.wrong.lock().expect("nobody panicked").is_empty() {
            break;
        }
    }
    let wrong = std::mem::take(&mut *truth.wrong.lock().expect("nobody panicked"));
    let (checked, purged) = (truth.checked.load(SeqCst), truth.purged.load(SeqCst));
    let mut remarks = vec![format!(
        "{kills} kills, seed {seed}: {checked} bodies compared, {found} of them found after a restart, with {encodings} encodings; {purged} purges and bans"
    )];
    let is_untested = found == 0 || encodings == 0;
    let failed = wrong.len() + usize::from(is_untested);
    if is_untested {
        remarks.push("nothing was found after any restart: nothing was tested".to_owned());
    }
    remarks.extend(wrong);
    Ok(Tally { passed: kills, failed, remarks })
}

fn start(project: &Project, folder: &Path, origin: u16) -> Result<Child, String> {
    let origin = format!("http://127.0.0.1:{origin}");
    started_larder::start(project, folder, &["--origin", &origin, "--memory", "4MiB", "--disk", "store:32MiB"])
}

fn kill(mut larder: Child) -> Result<(), String> {
    larder.kill().and_then(|()| larder.wait()).map(|_| ()).map_err(|error| format!("kill: {error}"))
}

/// Everything that is there without the origin, after the index is back.
fn look_at_all(folder: &Path, truth: &Arc<Truth>, run: usize) -> Result<u64, String> {
    let mut client = Client::new(folder.join("l.sock"));
    let begun = Stopwatch::start();
    let is_back = |log: &str| run == 0 || log.contains("the index is back");
    while !is_back(&std::fs::read_to_string(folder.join("larder.log")).unwrap_or_default()) {
        if begun.seconds() > PATIENCE.as_secs_f64() {
            return Err(format!("the index does not come back: {}", folder.join("larder.log").display()));
        }
        thread::sleep(Duration::from_millis(5));
    }
    let mut found = 0;
    for key in 0..KEYS {
        let fields = format!("Cache-Control: only-if-cached\r\n{CODINGS}");
        let answer = client.ask("GET", key, &fields).map_err(|error| error.to_string())?;
        if !answer.start.contains(" 504 ") {
            truth.judge(key, truth.gone[key].load(SeqCst), &answer, "after a restart");
            found += 1;
        }
    }
    Ok(found)
}

/// What was made before, and came back from the disk.
fn encodings_recalled(folder: &Path) -> Result<u64, String> {
    let ask = || {
        let mut socket = UnixStream::connect(folder.join("a.sock"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
        Message::read(&mut BufReader::new(socket), Unframed::UntilEnd, true)
    };
    let answer = ask().map_err(|error: io::Error| format!("the figures: {error}"))?;
    let text = answer.map_or_else(String::new, |answer| String::from_utf8_lossy(&answer.body).into_owned());
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("larder_encodings_recalled_total "));
    lines.next().and_then(|count| count.parse().ok()).ok_or_else(|| "/metrics has no such line".to_owned())
}

/// Clients ask until the process is about to be killed, and some of them beyond.
fn live(folder: &Path, truth: &Arc<Truth>, dice: &mut Dice) {
    truth.stopped.store(false, SeqCst);
    let threads: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (truth, folder, dice) = (Arc::clone(truth), folder.to_owned(), Dice::of(dice.next()));
            thread::spawn(move || use_it(&folder, &truth, dice))
        })
        .collect();
    thread::sleep(Duration::from_millis(dice.below(LIFE_MS_MAX)));
    // The last answers may come after this: what they promise must hold too.
    truth.stopped.store(true, SeqCst);
    if dice.below(2) == 0 {
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

fn use_it(folder: &Path, truth: &Truth, mut dice: Dice) {
    let mut client = Client::new(folder.join("l.sock"));
    while !truth.stopped.load(SeqCst) {
        let key = dice.below(KEYS as u64) as usize;
        let done = match dice.below(20) {
            0 => {
                // What was handed out before the purge was sent is gone when it is answered.
                let before = truth.newest[key].load(SeqCst);
                client.ask("PURGE", key, "").map(|answer| {
                    if answer.start.contains(" 200 ") {
                        truth.note_gone(key, before);
                    }
                })
            }
            1 if dice.below(4) == 0 => ban(folder, truth, key % KINDS),
            _ => {
                let gone = truth.gone[key].load(SeqCst);
                let codings = if dice.below(3) == 0 { "" } else { CODINGS };
                client.ask("GET", key, codings).map(|answer| truth.judge(key, gone, &answer, "while it ran"))
            }
        };
        if done.is_err() {
            return;
        }
    }
}

fn ban(folder: &Path, truth: &Truth, kind: usize) -> io::Result<()> {
    let keys = || (kind..KEYS).step_by(KINDS);
    let before: Vec<u64> = keys().map(|key| truth.newest[key].load(SeqCst)).collect();
    let mut socket = UnixStream::connect(folder.join("a.sock"))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let text = format!("obj.http.X-Kind == {kind}");
    write!(
        socket,
        "POST /ban HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )?;
    let answer = Message::read(&mut BufReader::new(socket), Unframed::UntilEnd, true)?;
    if answer.is_some_and(|answer| answer.start.contains(" 200 ")) {
        keys().zip(before).for_each(|(key, before)| truth.note_gone(key, before));
    }
    Ok(())
}

impl Truth {
    fn note_gone(&self, key: usize, version: u64) {
        self.gone[key].fetch_max(version, SeqCst);
        self.purged.fetch_add(1, SeqCst);
    }

    fn judge(&self, key: usize, gone: u64, answer: &Message, when: &str) {
        self.checked.fetch_add(1, SeqCst);
        let version = answer.field("x-version").and_then(|text| text.parse::<u64>().ok());
        let what = match version {
            None => format!("{} without a version", answer.start),
            Some(version) if version <= gone => {
                format!("version {version} is back, though all up to {gone} were purged")
            }
            Some(version) if undone(answer).as_deref() != Ok(&body_of(key, version)) => {
                let coding = answer.field("content-encoding").unwrap_or("no coding");
                format!("wrong bytes in version {version}, in {coding}")
            }
            Some(_) => return,
        };
        self.wrong.lock().expect("nobody panicked").push(format!("key {key}, {when}: {what}"));
    }
}

fn serve_origin(truth: &Arc<Truth>) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let truth = Arc::clone(truth);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let truth = Arc::clone(&truth);
            thread::spawn(move || answer_all(socket, &truth));
        }
    });
    Ok(port)
}

fn answer_all(mut socket: TcpStream, truth: &Truth) -> io::Result<()> {
    let mut from = BufReader::new(socket.try_clone()?);
    while let Some(request) = Message::read(&mut from, Unframed::Empty, true)? {
        let path = request.start.split(' ').nth(1).unwrap_or_default();
        let key: usize = path.trim_start_matches("/k/").parse().map_err(io::Error::other)?;
        let version = truth.newest[key].fetch_add(1, SeqCst) + 1;
        let body = body_of(key, version);
        let kind = if is_text(key) { "Content-Type: text/html\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 200 OK\r\n{kind}Cache-Control: max-age=100000\r\nX-Version: {version}\r\nX-Kind: {}\r\nContent-Length: {}\r\n\r\n",
            key % KINDS,
            body.len()
        );
        socket.write_all(&[head.as_bytes(), &body].concat())?;
    }
    Ok(())
}

/// One connection, made anew when it is lost.
struct Client {
    path: PathBuf,
    connection: Option<BufReader<UnixStream>>,
}

impl Client {
    fn new(path: PathBuf) -> Client {
        Client { path, connection: None }
    }

    fn ask(&mut self, method: &str, key: usize, fields: &str) -> io::Result<Message> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let socket = UnixStream::connect(&self.path)?;
                socket.set_read_timeout(Some(PATIENCE))?;
                BufReader::new(socket)
            }
        };
        write!(connection.get_mut(), "{method} /k/{key} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")?;
        let answer = Message::read(&mut connection, Unframed::UntilEnd, true)?;
        let answer = answer.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        self.connection = Some(connection);
        Ok(answer)
    }
}
