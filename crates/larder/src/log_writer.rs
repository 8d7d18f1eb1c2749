//! The thread that writes the access log, so that no worker ever waits for a disk or a pipe.
//!
//! Workers hand over finished lines; what does not fit into the queue is theirs to count as lost. What the file
//! refuses (a full disk, a closed pipe) is lost here, counted, and said once on stderr. HUP opens the file anew; one that could not be
//! opened at the start, because its disk was full or took no writes, is opened once that is over.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use proxy::{LineAllowance, LogSink, Moment, NOTICES_AT_ONCE, vital_thread};
use rustix::fs::{Mode, OFlags, fcntl_setfl};
use store::disk::is_passing_fault;

use crate::plan::LogTarget;
use crate::quantities::counted;
use crate::say::say;

/// What workers share with the writing thread.
pub struct LogWriter {
    queue: Mutex<Queue>,
    /// Told when there is something to do, and when all is done.
    changed: Condvar,
    lines_lost: AtomicU64,
    on: AtomicBool,
    queue_bytes_max: usize,
}

/// Where lines go. A file that could not be opened is tried again.
struct Opened {
    target: LogTarget,
    file: Option<File>,
}

#[derive(Default)]
struct Queue {
    orders: VecDeque<Order>,
    lines_bytes: usize,
    ended: bool,
}

enum Order {
    Write {
        lines: Vec<u8>,
        lines_count: u64,
    },
    /// Go on there; `None`: nowhere.
    Switch(Option<Opened>),
    End,
}

impl LogSink for LogWriter {
    fn write(&self, lines: Vec<u8>, lines_count: u64) -> Result<(), Vec<u8>> {
        if !self.on.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut queue = self.queue.lock();
        if queue.lines_bytes + lines.len() > self.queue_bytes_max {
            return Err(lines);
        }
        queue.lines_bytes += lines.len();
        queue.orders.push_back(Order::Write { lines, lines_count });
        drop(queue);
        self.changed.notify_all();
        Ok(())
    }

    fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }
}

impl LogWriter {
    /// Opens the target, if there is one, and starts the thread.
    pub fn start(target: Option<&LogTarget>, queue_bytes_max: usize) -> io::Result<(Arc<LogWriter>, JoinHandle<()>)> {
        let out = target.map(Output::begin).transpose()?;
        let writer = Arc::new(LogWriter {
            queue: Mutex::default(),
            changed: Condvar::new(),
            lines_lost: AtomicU64::new(0),
            on: AtomicBool::new(out.is_some()),
            queue_bytes_max,
        });
        let thread = vital_thread("larder-log", "what writes the log", {
            let writer = Arc::clone(&writer);
            move || writer.run(out.unwrap_or_default())
        })?;
        Ok((writer, thread))
    }

    /// Opens the target again, or another one; lines that wait go to the old one. On an error the old one stays.
    pub fn reopen(&self, target: Option<&LogTarget>) -> io::Result<()> {
        let opened = |target: &LogTarget| Ok(Opened { target: target.clone(), file: Some(open(target)?) });
        let opened = target.map(|target| opened(target).map_err(|error| named(target, &error))).transpose()?;
        self.on.store(opened.is_some(), Ordering::Relaxed);
        self.order(Order::Switch(opened));
        Ok(())
    }

    /// Lines that were taken and could not be written.
    pub fn lines_lost(&self) -> u64 {
        self.lines_lost.load(Ordering::Relaxed)
    }

    /// Writes what waits and ends the thread; gives up on a target that takes nothing for so long.
    pub fn finish(&self, patience: Duration) {
        self.order(Order::End);
        let mut queue = self.queue.lock();
        self.changed.wait_while_for(&mut queue, |queue| !queue.ended, patience);
        if !queue.ended {
            say!("error: the access log took no lines for {} s: those that waited are lost", patience.as_secs());
        }
    }

    fn order(&self, order: Order) {
        self.queue.lock().orders.push_back(order);
        self.changed.notify_all();
    }

    fn run(&self, mut out: Output) {
        loop {
            let mut queue = self.queue.lock();
            self.changed.wait_while(&mut queue, |queue| queue.orders.is_empty());
            let orders = std::mem::take(&mut queue.orders);
            queue.lines_bytes = 0;
            drop(queue);
            for order in orders {
                match order {
                    Order::Write { lines, lines_count } => {
                        let lost = out.write(&lines, lines_count);
                        self.lines_lost.fetch_add(lost, Ordering::Relaxed);
                    }
                    Order::Switch(opened) => out.switch(opened),
                    Order::End => {
                        self.queue.lock().ended = true;
                        self.changed.notify_all();
                        return;
                    }
                }
            }
        }
    }
}

/// Where lines go, and what happened there last.
struct Output {
    opened: Option<Opened>,
    /// The last write ended inside a line.
    mid_line: bool,
    /// That it fails was said, and not yet that it does no more.
    is_told: bool,
    /// Since it was last said how many were.
    lines_lost: u64,
    allowance: LineAllowance,
}

impl Default for Output {
    fn default() -> Output {
        let allowance = LineAllowance::of(NOTICES_AT_ONCE);
        Output { opened: None, mid_line: false, is_told: false, lines_lost: 0, allowance }
    }
}

impl Output {
    /// A disk that is full or takes no writes is no reason not to serve; a path that is wrong is one to say so.
    fn begin(target: &LogTarget) -> io::Result<Output> {
        let mut out = Output::default();
        let file = match open(target) {
            Err(error) if is_passing_fault(&error) => {
                out.fails(target, &error, 0);
                None
            }
            opened => Some(opened.map_err(|error| named(target, &error))?),
        };
        out.opened = Some(Opened { target: target.clone(), file });
        Ok(out)
    }

    fn switch(&mut self, opened: Option<Opened>) {
        (self.opened, self.mid_line) = (opened, false);
    }

    /// How many lines were lost.
    fn write(&mut self, lines: &[u8], lines_count: u64) -> u64 {
        let Some(mut opened) = self.opened.take() else { return 0 };
        let (lost, result) = match opened.file.take().map_or_else(|| open(&opened.target), Ok) {
            Ok(file) => self.write_into(opened.file.insert(file), lines, lines_count),
            Err(error) => (lines_count, Err(error)),
        };
        match result {
            Ok(()) => self.works(&opened.target),
            Err(error) => self.fails(&opened.target, &error, lost),
        }
        self.opened = Some(opened);
        lost
    }

    fn write_into(&mut self, file: &mut File, lines: &[u8], lines_count: u64) -> (u64, io::Result<()>) {
        // A piece that a full disk cut in the middle must not run together with the next line.
        let prefix = usize::from(self.mid_line);
        let piece = if self.mid_line { Cow::Owned([b"\n", lines].concat()) } else { Cow::Borrowed(lines) };
        let (written, result) = write_some(file, &piece);
        if written > 0 {
            self.mid_line = piece[written - 1] != b'\n';
        }
        let lost = match &result {
            Ok(()) => 0,
            Err(_) => lines_count.saturating_sub(count_lines(&piece[prefix.min(written)..written])),
        };
        (lost, result)
    }

    fn fails(&mut self, target: &LogTarget, error: &io::Error, lost: u64) {
        self.lines_lost += lost;
        if !self.is_told && self.allowance.take(Moment::now().millis()) {
            self.is_told = true;
            let shown = show(target);
            say!("error: the access log {shown} cannot be written: {error}; lines are lost until it can ([log] path)");
        }
    }

    fn works(&mut self, target: &LogTarget) {
        if std::mem::take(&mut self.is_told) {
            let lost = counted(std::mem::take(&mut self.lines_lost), "line");
            say!("the access log {} can be written again; lost: {lost}", show(target));
        }
    }
}

fn show(target: &LogTarget) -> String {
    match target {
        LogTarget::Stdout => "on standard output".to_owned(),
        LogTarget::File(path) => path.display().to_string(),
    }
}

fn named(target: &LogTarget, error: &io::Error) -> io::Error {
    io::Error::other(format!("{}: {error}", show(target)))
}

fn count_lines(lines: &[u8]) -> u64 {
    lines.iter().filter(|&&b| b == b'\n').count() as u64
}

/// Like `write_all`, but it says how far it came.
fn write_some(file: &mut impl Write, mut bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => {
                written += n;
                bytes = &bytes[n..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// Opened without waiting, so that a pipe without a reader is an error and not a silent stop; written with waiting.
fn open(target: &LogTarget) -> io::Result<File> {
    match target {
        LogTarget::Stdout => Ok(File::from(rustix::io::dup(rustix::stdio::stdout())?)),
        LogTarget::File(path) => {
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP;
            let file = rustix::fs::open(path, flags | OFlags::NONBLOCK, mode)?;
            fcntl_setfl(&file, OFlags::APPEND)?;
            Ok(File::from(file))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("larder-log-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn lines_go_to_the_file_and_after_a_reopen_to_the_new_one() {
        let (old, new) = (temporary("old"), temporary("new"));
        let (writer, thread) = LogWriter::start(Some(&LogTarget::File(old.clone())), 1 << 20).unwrap();
        writer.write(b"one\n".to_vec(), 1).unwrap();
        writer.reopen(Some(&LogTarget::File(new.clone()))).unwrap();
        writer.write(b"two\nthree\n".to_vec(), 2).unwrap();
        writer.finish(Duration::from_secs(10));
        thread.join().unwrap();
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "one\n");
        assert_eq!(std::fs::read_to_string(&new).unwrap(), "two\nthree\n");
        assert_eq!(writer.lines_lost(), 0);
        for path in [old, new] {
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn a_full_disk_loses_lines_and_nothing_else() {
        let (writer, thread) = LogWriter::start(Some(&LogTarget::File("/dev/full".into())), 1 << 20).unwrap();
        writer.write(b"one\ntwo\n".to_vec(), 2).unwrap();
        writer.finish(Duration::from_secs(10));
        thread.join().unwrap();
        assert_eq!(writer.lines_lost(), 2);
    }

    #[test]
    fn a_disk_that_fills_and_has_room_again_all_the_time_gets_a_few_lines() {
        let target = LogTarget::File("/dev/null".into());
        let mut out = Output::begin(&target).unwrap();
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let told = (0..100).filter(|_| {
            out.fails(&target, &full, 1);
            let is_told = out.is_told;
            out.works(&target);
            is_told
        });
        assert_eq!(told.count() as u64, NOTICES_AT_ONCE);
    }

    /// A pipe that nobody reads: the thread is stuck in its write, so the queue fills.
    #[test]
    fn a_stalled_pipe_gives_lines_back_instead_of_blocking() {
        let path = temporary("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let target = LogTarget::File(path.clone());
        assert!(LogWriter::start(Some(&target), 1 << 20).is_err(), "a pipe without a reader is refused");
        let reader = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let (writer, _thread) = LogWriter::start(Some(&target), 1 << 20).unwrap();
        let lines = vec![b'\n'; 64 << 10];
        let taken = (0..100).take_while(|_| writer.write(lines.clone(), 64 << 10).is_ok()).count();
        assert!(taken < 100, "the queue has no end");
        writer.finish(Duration::from_millis(1));
        drop(reader);
        std::fs::remove_file(path).unwrap();
    }

    /// A writer that takes a few bytes and then fails, as a disk does that fills up.
    struct Filling(Vec<u8>, usize);

    impl Write for Filling {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.1 - self.0.len();
            self.0.extend_from_slice(&bytes[..room.min(bytes.len())]);
            if room == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(room.min(bytes.len())) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_cut_write_says_how_far_it_came() {
        let mut out = Filling(Vec::new(), 6);
        let (written, result) = write_some(&mut out, b"one\ntwo\n");
        assert_eq!((written, result.unwrap_err().kind()), (6, io::ErrorKind::StorageFull));
        assert_eq!(count_lines(&b"one\ntwo\n"[..written]), 1);
    }

    #[test]
    fn switched_off_it_takes_lines_and_drops_them() {
        let (writer, thread) = LogWriter::start(None, 4).unwrap();
        assert_eq!(writer.write(b"a long line\n".to_vec(), 1), Ok(()));
        writer.finish(Duration::from_secs(10));
        thread.join().unwrap();
    }
}
