//! `cargo xtask large`: one large file, asked for in ranges by many clients at once, cold and warm, and as players ask: the
//! first bytes, the last, and from the middle on. Every byte is compared, and the origin may be asked for little more than
//! the file, while memory holds a small part of it.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::memory::{self, FileInMemory};
use crate::plain_exchange::{Message, Unframed};
use crate::project::{Project, Stopwatch};
use crate::started_larder;
use crate::step_tally::Tally;

/// Of `cargo xtask test`.
const MIB_IN_TESTS: u64 = 512;
const CLIENTS_IN_TESTS: u64 = 24;
/// Little for so many: what they read and what comes next of it has no room at once.
const MEMORY_MIB_IN_TESTS: u64 = 64;
const PATIENCE: Duration = Duration::from_secs(30);
const MIB: u64 = 1 << 20;
/// The file repeats itself after so many bytes, a prime: so no two slices of it are the same.
const PATTERN_BYTES: usize = 8_388_593;
/// The counters that are shown.
const COUNTED: [&str; 6] = [
    "larder_slices_",
    "larder_origin_requests_",
    "larder_disk_refused",
    "larder_disk_timeouts",
    "larder_disk_damaged",
    "larder_overflowed",
];
const PIECE_BYTES: usize = 64 << 10;
/// Of the file, what the origin may send over both rounds.
const ORIGIN_SHARE_MAX: f64 = 1.05;
const SOCKETS_BYTES: u64 = 16 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How much, and with what.
#[derive(Clone, Copy)]
struct Plan {
    file: u64,
    clients: u64,
    memory_mib: u64,
}

struct Scene {
    folder: PathBuf,
    plan: Plan,
    pattern: Vec<u8>,
    sent: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let mut plan = Plan { file: 5 << 30, clients: 50, memory_mib: 256 };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let number = options.next().and_then(|text| text.parse::<u64>().ok()).filter(|&number| number > 0);
        let number = number.ok_or(format!("{option} needs a number"))?;
        match *option {
            "--mib" => plan.file = number * MIB,
            "--clients" => plan.clients = number,
            "--memory-mib" => plan.memory_mib = number,
            _ => return Err(format!("'{option}' is no option of large: --mib N, --clients N, --memory-mib N")),
        }
    }
    let tally = large(project, plan)?;
    tally.remarks.iter().for_each(|remark| println!("{remark}"));
    if tally.failed == 0 { Ok(()) } else { Err(format!("{} things were not as they should be", tally.failed)) }
}

/// The short run of the tests.
pub fn run(project: &Project) -> Result<Tally, String> {
    large(
        project,
        Plan { file: MIB_IN_TESTS * MIB + 12_345, clients: CLIENTS_IN_TESTS, memory_mib: MEMORY_MIB_IN_TESTS },
    )
}

fn large(project: &Project, plan: Plan) -> Result<Tally, String> {
    let folder = project.scratch("large")?;
    let _ = std::fs::remove_file(folder.join("store"));
    let (sent, wrong) = (AtomicU64::new(0), Mutex::default());
    let scene = Arc::new(Scene { folder, plan, pattern: pattern(), sent, wrong });
    let origin = serve_origin(&scene).map_err(|error| format!("the origin: {error}"))?;
    let mut larder = start(project, &scene, origin)?;
    let line_bytes = memory::line_bytes(&scene.folder.join("a.sock"));
    let watch = Watch::start(larder.id());
    let cold_s = scene.round();
    let cold = scene.sent.load(SeqCst);
    let warm_s = scene.round();
    scene.play();
    let occupied_bytes = watch.stop();
    let counted = scene.counted().unwrap_or_default();
    let _ = larder.kill().and_then(|()| larder.wait());
    let line_bytes = line_bytes?;
    let _ = std::fs::remove_file(scene.folder.join("store"));
    let (all, file) = (scene.sent.load(SeqCst), plan.file as f64);
    let (share, read) = (all as f64 / file, 2 * plan.file / MIB);
    let mut remarks = vec![format!(
        "{} MiB, {} clients: {read} MiB read cold in {cold_s:.1} s and warm in {warm_s:.1} s; of the origin {:.3} of the file cold, {share:.3} \
         in all; {:.1} MiB resident at most, the file in memory included, and the line of --memory {} MiB is {:.1}",
        plan.file / MIB,
        plan.clients,
        cold as f64 / file,
        occupied_bytes as f64 / MIB as f64,
        plan.memory_mib,
        line_bytes as f64 / MIB as f64
    )];
    remarks.push(counted);
    let mut wrong = std::mem::take(&mut *scene.wrong.lock().expect("nobody panicked"));
    // Of a small file what lies in the sockets of a body that is given up is a large part.
    if all > (file * ORIGIN_SHARE_MAX) as u64 + if plan.file < 1 << 30 { SOCKETS_BYTES } else { 0 } {
        wrong.push(format!("the origin sent more than {ORIGIN_SHARE_MAX} of the file"));
    }
    if occupied_bytes == 0 || occupied_bytes > line_bytes {
        wrong.push(format!("{occupied_bytes} bytes resident of {line_bytes}"));
    }
    let failed = wrong.len();
    remarks.extend(wrong.into_iter().take(10));
    Ok(Tally { passed: 2 * plan.clients as usize, failed, remarks })
}

fn pattern() -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..PATTERN_BYTES.div_ceil(8)).flat_map(|_| next()).take(PATTERN_BYTES).collect()
}

fn start(project: &Project, scene: &Scene, origin: u16) -> Result<Child, String> {
    let origin = format!("http://127.0.0.1:{origin}");
    let (memory, disk_mib) = (format!("{}MiB", scene.plan.memory_mib), scene.plan.file / MIB * 5 / 4 + 64);
    let disk = format!("store:{disk_mib}MiB");
    let wanted = ["--origin", &origin, "--memory", &memory, "--disk", &disk, "--log", "access.log"];
    started_larder::start(project, &scene.folder, &wanted)
}

/// Looks again and again at what a process occupies, its file in memory included.
struct Watch {
    is_over: Arc<AtomicBool>,
    thread: thread::JoinHandle<u64>,
}

impl Watch {
    fn start(process: u32) -> Watch {
        let (is_over, in_memory) = (Arc::new(AtomicBool::new(false)), FileInMemory::of(process));
        let over = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut most = 0;
            while !over.load(SeqCst) {
                let (resident, peak) = memory::resident(process).unwrap_or_default();
                most = most.max(resident + in_memory.bytes()).max(peak);
                thread::sleep(LOOK_EVERY);
            }
            most
        });
        Watch { is_over, thread }
    }

    /// The most that was seen; 0 if nothing was.
    fn stop(self) -> u64 {
        self.is_over.store(true, SeqCst);
        self.thread.join().unwrap_or(0)
    }
}

impl Scene {
    /// All clients at once: each byte of the file is wanted by two of them. Returns how long it took, in seconds.
    fn round(self: &Arc<Self>) -> f64 {
        let begun = Stopwatch::start();
        let threads: Vec<_> = (0..self.plan.clients)
            .map(|number| {
                let scene = Arc::clone(self);
                thread::spawn(move || scene.read_stretch(number))
            })
            .collect();
        for thread in threads {
            if thread.join().is_err() {
                self.note("a client panicked".to_owned());
            }
        }
        begun.seconds()
    }

    /// Its own part of the file and the next one's, in ranges that begin anywhere.
    fn read_stretch(&self, number: u64) {
        let share = self.plan.file.div_ceil(self.plan.clients);
        let (mut at, mut left) = (share * number % self.plan.file, share * 2);
        let range_bytes = (share / 3 + 12_347).min(8 * MIB);
        while left > 0 {
            let end = (at + range_bytes.min(left)).min(self.plan.file);
            if let Err(error) = self.read(&format!("bytes={at}-{}", end - 1), &(at..end), u64::MAX) {
                return self.note(format!("{at}-{end}: {error}"));
            }
            left = left.saturating_sub(end - at);
            at = if end == self.plan.file { 0 } else { end };
        }
    }

    /// What larder counted of slices and of the disk.
    fn counted(&self) -> io::Result<String> {
        let mut socket = UnixStream::connect(self.folder.join("a.sock"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        write!(socket, "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        socket.read_to_string(&mut text)?;
        let is_ours = |line: &&str| COUNTED.iter().any(|name| line.starts_with(name)) && !line.ends_with(" 0");
        Ok(text.lines().filter(is_ours).map(|line| line.trim_start_matches("larder_")).collect::<Vec<_>>().join(", "))
    }

    /// As a player asks.
    fn play(&self) {
        let (file, middle) = (self.plan.file, self.plan.file / 2 + 4_321);
        let asked = [
            ("bytes=0-".to_owned(), 0..file, 300_000),
            (format!("bytes={}-", file - 65_536), file - 65_536..file, u64::MAX),
            ("bytes=-1000".to_owned(), file - 1_000..file, u64::MAX),
            (format!("bytes={middle}-"), middle..file, 3_000_000),
            ("bytes=0-0".to_owned(), 0..1, u64::MAX),
        ];
        for (range, expect, bytes_max) in asked {
            if let Err(error) = self.read(&range, &expect, bytes_max) {
                self.note(format!("{range}: {error}"));
            }
        }
    }

    /// Asks for a range and compares what comes, up to some bytes; then it leaves.
    fn read(&self, range: &str, expect: &Range<u64>, bytes_max: u64) -> io::Result<()> {
        let mut socket = UnixStream::connect(self.folder.join("l.sock"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        write!(socket, "GET /film HTTP/1.1\r\nHost: a\r\nRange: {range}\r\nConnection: close\r\n\r\n")?;
        let mut from = BufReader::with_capacity(PIECE_BYTES, socket);
        let head = Message::read(&mut from, Unframed::Empty, false)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let said = format!("bytes {}-{}/{}", expect.start, expect.end - 1, self.plan.file);
        if head.second_word() != "206" || head.field("content-range") != Some(&said) {
            return Err(io::Error::other(format!("{} {:?}", head.start, head.field("content-range"))));
        }
        let (mut at, end) = (expect.start, expect.end.min(expect.start.saturating_add(bytes_max)));
        let mut piece = vec![0; PIECE_BYTES];
        while at < end {
            let read = from.read(&mut piece[..(end - at).min(PIECE_BYTES as u64) as usize])?;
            if read == 0 {
                return Err(io::Error::other(format!("ends at {at}")));
            }
            if !self.is_content(at, &piece[..read]) {
                return Err(io::Error::other(format!("wrong bytes within {at}-{}", at + read as u64)));
            }
            at += read as u64;
        }
        Ok(())
    }

    fn is_content(&self, mut at: u64, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let expect = self.content(at, bytes.len());
            if !bytes.starts_with(expect) {
                return false;
            }
            bytes = &bytes[expect.len()..];
            at += expect.len() as u64;
        }
        true
    }

    /// Bytes of the file, at most so many.
    fn content(&self, at: u64, bytes_max: usize) -> &[u8] {
        let from = (at % PATTERN_BYTES as u64) as usize;
        &self.pattern[from..(from + bytes_max).min(PATTERN_BYTES)]
    }

    fn note(&self, what: String) {
        self.wrong.lock().expect("nobody panicked").push(what);
    }
}

fn serve_origin(scene: &Arc<Scene>) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let scene = Arc::clone(scene);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let scene = Arc::clone(&scene);
            thread::spawn(move || answer_all(socket, &scene));
        }
    });
    Ok(port)
}

fn answer_all(mut socket: TcpStream, scene: &Scene) -> io::Result<()> {
    let mut from = BufReader::new(socket.try_clone()?);
    while let Some(request) = Message::read(&mut from, Unframed::Empty, true)? {
        let asked = request.field("range").and_then(|range| asked_for(range, scene.plan.file));
        let range = asked.clone().unwrap_or(0..scene.plan.file);
        let status = match asked {
            None => "200 OK".to_owned(),
            Some(range) => {
                let (first, last, file) = (range.start, range.end - 1, scene.plan.file);
                format!("206 Partial Content\r\nContent-Range: bytes {first}-{last}/{file}")
            }
        };
        let length = range.end - range.start;
        let fields = "Cache-Control: max-age=100000\r\nETag: \"1\"\r\nAccept-Ranges: bytes";
        write!(socket, "HTTP/1.1 {status}\r\n{fields}\r\nContent-Length: {length}\r\n\r\n")?;
        let mut at = range.start;
        while at < range.end {
            let piece = scene.content(at, (range.end - at).min(PIECE_BYTES as u64) as usize);
            let written = socket.write(piece)?;
            scene.sent.fetch_add(written as u64, SeqCst);
            at += written as u64;
        }
    }
    Ok(())
}

/// `first-last`, `first-` and `-length`.
fn asked_for(range: &str, file: u64) -> Option<Range<u64>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    Some(match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) => first..(last + 1).min(file),
        (Ok(first), Err(_)) => first..file,
        (Err(_), Ok(length)) => file.saturating_sub(length)..file,
        _ => return None,
    })
}
