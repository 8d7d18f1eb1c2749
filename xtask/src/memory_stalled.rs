//! `cargo xtask memory --stalled N`: readers that do not read. Each of N clients has a receive buffer of 2 KiB, asks for a page
//! of 2 MB of its own that may be stored, and takes nothing of it, or a few bytes a second; who is cut comes again. Beside them one client
//! opens a connection for each small page that it asks for. The run fails when that client was not answered every
//! time, when the memory line was crossed, and when larder ended.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::memory::{self, FileInMemory};
use crate::memory_line::Line;
use crate::memory_site::{Page, Site};
use crate::project::{Project, Stopwatch};
use crate::started_larder;

/// What a reader's kernel takes for it.
const RECEIVE_BYTES: usize = 2 << 10;
/// The page that is asked for again and again.
const GOOD_PAGE: Page = Page::Small(1);
const GOOD_PAUSE: Duration = Duration::from_millis(50);
/// A client that waits longer goes away.
const GOOD_PATIENCE: Duration = Duration::from_secs(3);
/// How often a reader takes what it takes.
const TURN: Duration = Duration::from_millis(100);
/// Readers that come again in one turn; at the beginning all of them come at once.
const COMING_MAX: usize = 60;
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What nobody has to answer before the readers are there.
const SETTLE: Duration = Duration::from_millis(200);

/// Who reads how much, and beneath which limit.
#[derive(Clone, Copy, Debug)]
pub struct Stalled<'a> {
    pub readers: usize,
    pub bytes_per_second: usize,
    pub memory: &'a str,
    pub seconds: f64,
}

/// What was seen.
#[derive(Default)]
struct Seen {
    stopped: AtomicBool,
    asked: AtomicU64,
    answered: AtomicU64,
    worst_ms: AtomicU64,
    taken_bytes: AtomicU64,
    /// Answers to readers that ended before they were whole.
    cut: AtomicU64,
    most_bytes: AtomicU64,
}

/// What was seen in words, and what of it is wrong.
pub fn measure(project: &Project, stalled: Stalled<'_>) -> Result<(String, Vec<String>), String> {
    let folder = project.scratch("memory-stalled")?;
    let _ = std::fs::remove_file(folder.join("origin.sock"));
    let site = Site::new();
    site.serve(&folder.join("origin.sock")).map_err(|error| format!("the origin: {error}"))?;
    let wanted = ["--listen", "127.0.0.1:0", "--origin", "unix:origin.sock", "--memory", stalled.memory];
    let mut larder = started_larder::start(project, &folder, &wanted)?;
    let seen = Arc::<Seen>::default();
    let played = play(&mut larder, &folder, &site, stalled, &seen);
    let ended_by_itself = larder.try_wait().is_ok_and(|ended| ended.is_some());
    let _ = larder.kill().and_then(|()| larder.wait());
    let (line_bytes, counted) = played?;
    let (asked, answered, most) =
        (seen.asked.load(Relaxed), seen.answered.load(Relaxed), seen.most_bytes.load(Relaxed));
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let summary = format!(
        "--memory {}, {} readers of {} B/s for {:.0} s: {answered} of {asked} good requests answered, the slowest in {} ms; at \
         most {:.1} MiB resident, the file in memory included, and the line is {:.1}; readers took {:.1} MiB and were cut {} times; {counted}",
        stalled.memory,
        stalled.readers,
        stalled.bytes_per_second,
        stalled.seconds,
        seen.worst_ms.load(Relaxed),
        mib(most),
        mib(line_bytes),
        mib(seen.taken_bytes.load(Relaxed)),
        seen.cut.load(Relaxed),
    );
    let mut wrong = Vec::new();
    if ended_by_itself {
        wrong.push("larder ended".to_owned());
    }
    if answered < asked || asked == 0 {
        wrong.push(format!("{answered} of {asked} good requests were answered beside stalled readers: {summary}"));
    }
    if most > line_bytes {
        wrong.push(format!("stalled readers made larder cross its memory line: {summary}"));
    }
    Ok((summary, wrong))
}

/// The line, and what larder counted.
fn play(
    larder: &mut Child,
    folder: &Path,
    site: &Arc<Site>,
    stalled: Stalled<'_>,
    seen: &Arc<Seen>,
) -> Result<(u64, String), String> {
    let ports = std::fs::read_to_string(folder.join("up")).map_err(|error| error.to_string())?;
    let address = memory::tcp_address(&ports).ok_or("the ports file names no address")?;
    let admin = folder.join("a.sock");
    let line_bytes = memory::line_bytes(&admin)?;
    let (process, in_memory) = (larder.id(), FileInMemory::of(larder.id()));
    let mut threads = Vec::new();
    let watched = Arc::clone(seen);
    threads.push(thread::spawn(move || watch(process, &in_memory, &watched)));
    for _ in 0..3 {
        get_small(address, site).map_err(|error| format!("the first request: {error}"))?;
    }
    let reading = Arc::clone(seen);
    let (readers, bytes_per_second) = (stalled.readers, stalled.bytes_per_second);
    threads.push(thread::spawn(move || read_little(address, readers, bytes_per_second, &reading)));
    thread::sleep(SETTLE);
    let begun = Stopwatch::start();
    while begun.seconds() < stalled.seconds && larder.try_wait().is_ok_and(|ended| ended.is_none()) {
        let each = Stopwatch::start();
        seen.asked.fetch_add(1, Relaxed);
        if get_small(address, site).is_ok() {
            seen.answered.fetch_add(1, Relaxed);
        }
        seen.worst_ms.fetch_max((each.seconds() * 1_000.0) as u64, Relaxed);
        thread::sleep(GOOD_PAUSE);
    }
    let counted = memory::status(&admin).map_or_else(
        |error| error,
        |status| {
            format!(
                "larder cut {} for memory and refused {} connections",
                status["answers_cut_memory"], status["connections"]["refused_memory"]
            )
        },
    );
    seen.stopped.store(true, Relaxed);
    threads.into_iter().for_each(|thread| drop(thread.join()));
    Ok((line_bytes, counted))
}

fn watch(process: u32, in_memory: &FileInMemory, seen: &Seen) {
    while !seen.stopped.load(Relaxed) {
        if let Some((resident, peak)) = memory::resident(process) {
            seen.most_bytes.fetch_max(peak.max(resident + in_memory.bytes()), Relaxed);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// One small page over a connection of its own.
fn get_small(address: SocketAddr, site: &Site) -> io::Result<()> {
    let mut socket = TcpStream::connect_timeout(&address, GOOD_PATIENCE)?;
    socket.set_read_timeout(Some(GOOD_PATIENCE))?;
    write!(socket, "GET {} HTTP/1.1\r\nHost: m.test\r\nConnection: close\r\n\r\n", GOOD_PAGE.path())?;
    let mut line = Line::new(socket);
    let (status, length) = line.head()?;
    match status == 200 && line.body_is(length, site.body(GOOD_PAGE))? {
        true => Ok(()),
        false => Err(ErrorKind::InvalidData.into()),
    }
}

/// All the readers, by one thread: each takes a little now and then, and comes again when it is cut.
fn read_little(address: SocketAddr, readers: usize, bytes_per_second: usize, seen: &Seen) {
    let mut sockets: Vec<Option<TcpStream>> = (0..readers).map(|_| None).collect();
    let (mut next_page, mut coming_max) = (0, readers);
    let turn_bytes = bytes_per_second * TURN.as_millis() as usize / 1_000;
    let mut scratch = vec![0; turn_bytes];
    while !seen.stopped.load(Relaxed) {
        let mut coming = 0;
        for reader in &mut sockets {
            let Some(socket) = reader else {
                if coming < coming_max {
                    coming += 1;
                    next_page += 1;
                    *reader = begin(address, Page::Even(next_page)).ok();
                }
                continue;
            };
            if !goes_on(socket, &mut scratch, seen) {
                seen.cut.fetch_add(1, Relaxed);
                *reader = None;
            }
        }
        coming_max = COMING_MAX;
        thread::sleep(TURN);
    }
}

fn begin(address: SocketAddr, page: Page) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // Before it is connected, or a larger window has been offered already.
    socket.set_recv_buffer_size(RECEIVE_BYTES)?;
    socket.connect(&address.into())?;
    let mut socket = TcpStream::from(socket);
    write!(socket, "GET {} HTTP/1.1\r\nHost: m.test\r\n\r\n", page.path())?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Takes a little, or only looks whether the connection is there.
fn goes_on(socket: &mut TcpStream, scratch: &mut [u8], seen: &Seen) -> bool {
    if scratch.is_empty() {
        return socket.take_error().is_ok_and(|error| error.is_none());
    }
    match socket.read(scratch) {
        Ok(0) => false,
        Ok(read) => {
            seen.taken_bytes.fetch_add(read as u64, Relaxed);
            true
        }
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}
