//! The load of `cargo xtask memory`: what a limit of memory has to stand, all at once. Pages that are asked for once and
//! pages that are asked for often, small and large, stored and not, readers that hardly read, and connections that come
//! by thousands and go again.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::dice::Dice;
use crate::memory_site::{Page, Site};

/// Connections that ask for small pages, and how many at once.
const FLOODS: usize = 24;
const PIPELINE: usize = 24;
/// Small pages that are asked for again and again; all others once.
const HOT_PAGES: u64 = 20_000;
const LARGE_CLIENTS: usize = 2;
const LARGE_PAGES: u64 = 500;
/// Clients that take a little of a large page now and then.
const SLOW_READERS: usize = 400;
const SLOW_BYTES: usize = 16 << 10;
const SLOW_PAUSE: Duration = Duration::from_millis(200);
/// Connections of one burst, and how many there are in a second on the whole: the ports of those that ended are not to be
/// had for a minute.
const BURST_MAX: u64 = 6_000;
const CHURN_PER_SECOND: u64 = 200;
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// What became of it.
#[derive(Default)]
pub struct Outcome {
    pub distinct: AtomicU64,
    pub answered: AtomicU64,
    pub refused: AtomicU64,
    /// Connections that ended, or were not to be had, before their answer.
    pub broken: AtomicU64,
    pub connections: AtomicU64,
    pub slow_bytes: AtomicU64,
    pub wrong: AtomicU64,
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

impl Player {
    fn goes_on(&self) -> bool {
        !self.outcome.stopped.load(Relaxed)
    }

    fn connect(&self) -> io::Result<Line<UnixStream>> {
        let socket = UnixStream::connect(&self.target.socket)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        self.outcome.connections.fetch_add(1, Relaxed);
        Ok(Line { socket, bytes: Vec::new(), read: 0 })
    }

    fn connect_tcp(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, self.target.port))?;
        self.outcome.connections.fetch_add(1, Relaxed);
        Ok(socket)
    }

    /// Asks for pages on one connection after the other, until told to stop.
    fn ask_for_ever(&self, mut next: impl FnMut() -> Vec<Page>) {
        let mut line = None;
        while self.goes_on() {
            let asked = line.take().map_or_else(|| self.connect(), Ok).and_then(|mut line| {
                self.ask(&mut line, &next())?;
                Ok(line)
            });
            match asked {
                Ok(whole) => line = Some(whole),
                Err(_) => {
                    self.outcome.broken.fetch_add(1, Relaxed);
                    thread::sleep(PAUSE);
                }
            }
        }
    }

    fn ask(&self, line: &mut Line<UnixStream>, pages: &[Page]) -> io::Result<()> {
        let requests: String = pages.iter().map(|&page| request(page)).collect();
        line.socket.write_all(requests.as_bytes())?;
        for &page in pages {
            match line.answer()? {
                (200, body) if body == self.site.body(page) => self.outcome.answered.fetch_add(1, Relaxed),
                (200, _) => self.outcome.wrong.fetch_add(1, Relaxed),
                _ => self.outcome.refused.fetch_add(1, Relaxed),
            };
        }
        Ok(())
    }
}

fn request(page: Page) -> String {
    format!("GET {} HTTP/1.1\r\nHost: m.test\r\n\r\n", page.path())
}

/// Three small pages that nobody asked for before, and one that many ask for.
fn flood(player: &Player, mut dice: Dice) {
    player.ask_for_ever(|| {
        let page = |_| match dice.below(4) {
            0 => Page::Small(dice.often_small(HOT_PAGES)),
            _ => Page::Small(HOT_PAGES + player.outcome.distinct.fetch_add(1, Relaxed)),
        };
        (0..PIPELINE).map(page).collect()
    });
}

fn read_large(player: &Player, mut dice: Dice) {
    player.ask_for_ever(|| {
        vec![match dice.below(8) {
            0 => Page::Private(dice.below(LARGE_PAGES)),
            _ => Page::Large(dice.often_small(LARGE_PAGES)),
        }]
    });
}

/// Many connections that ask for a large page each and take it by drips.
fn read_slowly(player: &Player, mut dice: Dice) {
    let mut readers: Vec<Option<TcpStream>> = (0..SLOW_READERS).map(|_| None).collect();
    let mut scratch = vec![0; SLOW_BYTES];
    while player.goes_on() {
        for reader in &mut readers {
            let Some(socket) = reader else {
                *reader = ask_slowly(player, &mut dice).ok();
                continue;
            };
            match socket.read(&mut scratch) {
                Ok(read) if read > 0 => drop(player.outcome.slow_bytes.fetch_add(read as u64, Relaxed)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                _ => *reader = None,
            }
            // Some lose interest in the middle.
            if dice.below(2_000) == 0 {
                *reader = None;
            }
        }
        thread::sleep(SLOW_PAUSE);
    }
}

fn ask_slowly(player: &Player, dice: &mut Dice) -> io::Result<TcpStream> {
    let page = match dice.below(2) {
        0 => Page::Private(dice.below(1 << 40)),
        _ => Page::Large(dice.below(1 << 40)),
    };
    let mut socket = player.connect_tcp()?;
    socket.write_all(request(page).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").as_bytes())?;
    socket.set_nonblocking(true)?;
    Ok(socket)
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
                1 => request(Page::Small((1 << 40) + dice.below(1 << 20))),
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

/// One kept connection, read as answers.
pub struct Line<S> {
    socket: S,
    bytes: Vec<u8>,
    /// How much of `bytes` was answered already.
    read: usize,
}

impl<S: Read> Line<S> {
    /// The status and the body.
    fn answer(&mut self) -> io::Result<(u16, &[u8])> {
        let head_bytes = loop {
            let here = &self.bytes[self.read..];
            if let Some(end) = here.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            self.more(4 << 10)?;
        };
        let head = String::from_utf8_lossy(&self.bytes[self.read..self.read + head_bytes]).to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: Option<usize> = length.and_then(|value| value.trim().parse().ok());
        let (Some(status), Some(length)) = (status, length) else { return Err(ErrorKind::InvalidData.into()) };
        let from = self.read + head_bytes;
        let end = from + length;
        while self.bytes.len() < end {
            self.more(end - self.bytes.len())?;
        }
        self.read = end;
        Ok((status, &self.bytes[from..end]))
    }

    fn more(&mut self, wanted: usize) -> io::Result<()> {
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.read = 0;
        }
        let had = self.bytes.len();
        self.bytes.resize(had + wanted.max(32 << 10), 0);
        let read = self.socket.read(&mut self.bytes[had..]);
        self.bytes.truncate(had + read.as_ref().map_or(0, |read| *read));
        if read? == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

/// What the admin says at this path.
pub fn ask_admin(socket: &Path, path: &str) -> io::Result<String> {
    let mut socket = UnixStream::connect(socket)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    write!(socket, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    let mut line = Line { socket, bytes: Vec::new(), read: 0 };
    match line.answer()? {
        (200, body) => Ok(String::from_utf8_lossy(body).into_owned()),
        (status, _) => Err(io::Error::other(format!("{path} is answered by {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_follow_one_another_on_a_connection() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n";
        let mut line = Line { socket: &bytes[..], bytes: Vec::new(), read: 0 };
        assert_eq!(line.answer().unwrap(), (200, &b"abc"[..]));
        assert_eq!(line.answer().unwrap(), (503, &b""[..]));
        assert!(line.answer().is_err());
    }
}
