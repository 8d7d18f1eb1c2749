//! The load of `cargo xtask memory`: what a limit of memory has to stand, all at once. Pages that are asked for once and
//! pages that are asked for often, small and large, stored and not, readers that hardly read, and connections that come
//! by thousands and go again. Every body is compared. Where answers are taken apart is in `memory_line.rs`.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::dice::Dice;
use crate::memory_line::{Line, end_of_head, status_and_length};
use crate::memory_site::{Page, Site};

/// Threads that ask for small pages, connections of each, and requests under way on each of those. While a thread reads one
/// connection's answers those of the others gather: so a read brings many, and the rate is not one of waking up.
const FLOODS: usize = 4;
const LINES: usize = 12;
const PIPELINE: usize = 24;
/// Small pages that are asked for again and again; all others once.
const HOT_PAGES: u64 = 20_000;
/// Further small pages, of connections that do not read their answer.
const UNREAD_PAGES: u64 = 1 << 40;
const LARGE_CLIENTS: usize = 2;
const LARGE_PAGES: u64 = 500;
/// After each: the load is to be a mixed one.
const LARGE_PAUSE: Duration = Duration::from_millis(50);
/// Clients that take a little of a large page now and then.
const SLOW_READERS: usize = 400;
const SLOW_BYTES: usize = 16 << 10;
const SLOW_PAUSE: Duration = Duration::from_millis(200);
/// How many of them come at once.
const SLOW_NEW_MAX: usize = 8;
/// Connections of one burst, and how many there are in a second on the whole: the ports of those that ended are not to be
/// had for a minute.
const BURST_MAX: u64 = 6_000;
const CHURN_PER_SECOND: u64 = 200;
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// What became of it.
#[derive(Default)]
pub struct Outcome {
    /// URLs that were asked for once, and answered right.
    pub distinct: AtomicU64,
    /// Answers compared and right.
    pub answered: AtomicU64,
    /// Answers that were an error's.
    pub refused: AtomicU64,
    /// Connections that ended, or were not to be had, before their answer.
    pub broken: AtomicU64,
    pub connections: AtomicU64,
    pub slow_bytes: AtomicU64,
    pub wrong: AtomicU64,
    next_page: AtomicU64,
    stopped: AtomicBool,
}

/// Where larder is.
#[derive(Clone)]
pub struct Target {
    pub socket: PathBuf,
    pub port: u16,
}

pub struct Load {
    pub outcome: Arc<Outcome>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    pub fn start(target: &Target, site: &Arc<Site>, seed: u64) -> Load {
        let outcome = Arc::<Outcome>::default();
        let mut dice = Dice::of(seed);
        let mut threads = Vec::new();
        let mut start = |play: fn(&Player, Dice)| {
            let player = Player { target: target.clone(), site: Arc::clone(site), outcome: Arc::clone(&outcome) };
            let dice = Dice::of(dice.next());
            threads.push(thread::spawn(move || play(&player, dice)));
        };
        (0..FLOODS).for_each(|_| start(flood));
        (0..LARGE_CLIENTS).for_each(|_| start(read_large));
        start(read_slowly);
        start(come_and_go);
        Load { outcome, threads }
    }

    pub fn stop(self) -> Arc<Outcome> {
        self.outcome.stopped.store(true, Relaxed);
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
        self.outcome
    }
}

struct Player {
    target: Target,
    site: Arc<Site>,
    outcome: Arc<Outcome>,
}

/// A connection, and what was asked for on it and has not been answered.
struct Asked {
    line: Line<UnixStream>,
    pages: Vec<Page>,
}

impl Player {
    fn goes_on(&self) -> bool {
        !self.outcome.stopped.load(Relaxed)
    }

    fn connect(&self) -> io::Result<Asked> {
        let socket = UnixStream::connect(&self.target.socket)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        self.outcome.connections.fetch_add(1, Relaxed);
        Ok(Asked { line: Line::new(socket), pages: Vec::new() })
    }

    fn connect_tcp(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, self.target.port))?;
        self.outcome.connections.fetch_add(1, Relaxed);
        Ok(socket)
    }

    /// Reads what was asked for and asks for more, on one connection after the other.
    fn turn(&self, lines: &mut [Option<Asked>], mut next: impl FnMut(&mut Vec<Page>)) {
        for line in lines {
            let asked = line.take().map_or_else(|| self.connect(), Ok).and_then(|mut asked| {
                self.compare(&mut asked)?;
                next(&mut asked.pages);
                asked
                    .line
                    .socket
                    .write_all(asked.pages.iter().map(|&page| request(page)).collect::<String>().as_bytes())?;
                Ok(asked)
            });
            match asked {
                Ok(asked) => *line = Some(asked),
                Err(_) => {
                    self.outcome.broken.fetch_add(1, Relaxed);
                    thread::sleep(PAUSE);
                }
            }
        }
    }

    fn compare(&self, asked: &mut Asked) -> io::Result<()> {
        for page in asked.pages.drain(..) {
            match asked.line.head()? {
                (200, length) => {
                    let is_right = asked.line.body_is(length, self.site.body(page))?;
                    self.outcome.count(page, is_right);
                }
                (_, length) => {
                    asked.line.body(length, |_| {})?;
                    self.outcome.refused.fetch_add(1, Relaxed);
                }
            }
        }
        Ok(())
    }
}

impl Outcome {
    fn count(&self, page: Page, is_right: bool) {
        if !is_right {
            self.wrong.fetch_add(1, Relaxed);
            return;
        }
        self.answered.fetch_add(1, Relaxed);
        if matches!(page, Page::Small(HOT_PAGES..)) {
            self.distinct.fetch_add(1, Relaxed);
        }
    }
}

fn request(page: Page) -> String {
    format!("GET {} HTTP/1.1\r\nHost: m.test\r\n\r\n", page.path())
}

/// Three small pages that nobody asked for before, and one that many ask for.
fn flood(player: &Player, mut dice: Dice) {
    let mut lines: [Option<Asked>; LINES] = Default::default();
    while player.goes_on() {
        player.turn(&mut lines, |pages| {
            pages.extend((0..PIPELINE).map(|_| match dice.below(4) {
                0 => Page::Small(dice.often_small(HOT_PAGES)),
                _ => Page::Small(HOT_PAGES + player.outcome.next_page.fetch_add(1, Relaxed)),
            }));
        });
    }
}

fn read_large(player: &Player, mut dice: Dice) {
    let mut line = [None];
    while player.goes_on() {
        player.turn(&mut line, |pages| {
            pages.push(match dice.below(8) {
                0 => Page::Private(dice.below(LARGE_PAGES)),
                _ => Page::Large(dice.often_small(LARGE_PAGES)),
            });
        });
        thread::sleep(LARGE_PAUSE);
    }
}

/// Many connections that ask for a large page each and take it by drips.
fn read_slowly(player: &Player, mut dice: Dice) {
    let mut readers: Vec<Option<SlowReader>> = (0..SLOW_READERS).map(|_| None).collect();
    let mut scratch = vec![0; SLOW_BYTES];
    while player.goes_on() {
        let mut new = 0;
        for reader in &mut readers {
            let Some(slow) = reader else {
                if new < SLOW_NEW_MAX {
                    *reader = SlowReader::ask(player, &mut dice).ok();
                    new += 1;
                }
                continue;
            };
            // Some lose interest in the middle.
            if !slow.take(player, &mut scratch) || dice.below(2_000) == 0 {
                *reader = None;
            }
        }
        thread::sleep(SLOW_PAUSE);
    }
}

struct SlowReader {
    socket: TcpStream,
    page: Page,
    /// How much of the body has come; `None` before the head has.
    taken: Option<usize>,
}

impl SlowReader {
    fn ask(player: &Player, dice: &mut Dice) -> io::Result<SlowReader> {
        let page = match dice.below(2) {
            0 => Page::Private(dice.below(1 << 40)),
            _ => Page::Large(dice.below(1 << 40)),
        };
        let mut socket = player.connect_tcp()?;
        socket.write_all(request(page).as_bytes())?;
        socket.set_nonblocking(true)?;
        Ok(SlowReader { socket, page, taken: None })
    }

    /// Takes a little. False when this was the end.
    fn take(&mut self, player: &Player, scratch: &mut [u8]) -> bool {
        let outcome = &player.outcome;
        let read = match self.socket.read(scratch) {
            Ok(read) if read > 0 => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            _ => {
                outcome.broken.fetch_add(1, Relaxed);
                return false;
            }
        };
        outcome.slow_bytes.fetch_add(read as u64, Relaxed);
        let (mut piece, body) = (&scratch[..read], player.site.body(self.page));
        if self.taken.is_none() {
            // A head comes in one piece, or this is no answer.
            let head_bytes = end_of_head(piece).unwrap_or_default();
            match status_and_length(&piece[..head_bytes]) {
                Some((200, length)) if length == body.len() => piece = &piece[head_bytes..],
                Some((200, _)) | None => {
                    outcome.count(self.page, false);
                    return false;
                }
                Some(_) => {
                    outcome.refused.fetch_add(1, Relaxed);
                    return false;
                }
            }
        }
        let taken = self.taken.unwrap_or_default();
        let end = taken + piece.len();
        self.taken = Some(end);
        let is_right = body.get(taken..end) == Some(piece);
        if !is_right || end == body.len() {
            outcome.count(self.page, is_right);
        }
        is_right && end < body.len()
    }
}

/// Bursts of connections, most of which ask for something, some of which begin to, and all of which leave at once.
fn come_and_go(player: &Player, mut dice: Dice) {
    while player.goes_on() {
        let count = 100 + dice.below(BURST_MAX);
        let mut burst = Vec::new();
        for _ in 0..count {
            if !player.goes_on() {
                return;
            }
            let Ok(mut socket) = player.connect_tcp() else {
                player.outcome.broken.fetch_add(1, Relaxed);
                continue;
            };
            let asks = match dice.below(4) {
                0 => "GET /s/1 HTTP/1.1\r\nHost: m.test\r\nX-Unfinished: ".to_owned() + &"a".repeat(2_000),
                1 => request(Page::Small(UNREAD_PAGES + dice.below(1 << 20))),
                _ => request(Page::Small(dice.often_small(HOT_PAGES))),
            };
            // Refused ones are closed already.
            let _ = socket.write_all(asks.as_bytes());
            burst.push(socket);
        }
        let seconds = Duration::from_millis(count * 1_000 / CHURN_PER_SECOND);
        wait(player, seconds / 2);
        burst.clear();
        wait(player, seconds / 2);
    }
}

fn wait(player: &Player, time: Duration) {
    let mut left = time;
    while player.goes_on() && !left.is_zero() {
        let part = left.min(SLOW_PAUSE);
        thread::sleep(part);
        left -= part;
    }
}

/// What the admin says at this path.
pub fn ask_admin(socket: &Path, path: &str) -> io::Result<String> {
    let mut socket = UnixStream::connect(socket)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    write!(socket, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    let (mut line, mut body) = (Line::new(socket), Vec::new());
    let (status, length) = line.head()?;
    line.body(length, |piece| body.extend_from_slice(piece))?;
    match status {
        200 => Ok(String::from_utf8_lossy(&body).into_owned()),
        _ => Err(io::Error::other(format!("{path} is answered by {status}"))),
    }
}
