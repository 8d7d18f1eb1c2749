//! The thread that writes the access log, so that no worker ever waits for a disk or a pipe.
//!
//! Workers hand over finished lines; what does not fit into the queue is theirs to count as lost. What the file
//! refuses (a full disk, a closed pipe) is lost here, counted, and said once on stderr. HUP opens the file anew.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use proxy::{LogSink, vital_thread};
use rustix::fs::{Mode, OFlags, fcntl_setfl};

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
    /// Go on in this file; `None`: nowhere.
    Switch(Option<File>),
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
        let file = target.map(open).transpose()?;
        let writer = Arc::new(LogWriter {
            queue: Mutex::default(),
            changed: Condvar::new(),
            lines_lost: AtomicU64::new(0),
            on: AtomicBool::new(file.is_some()),
            queue_bytes_max,
        });
        let thread = vital_thread("larder-log", "what writes the log", {
            let writer = Arc::clone(&writer);
            move || writer.run(file)
        })?;
        Ok((writer, thread))
    }

    /// Opens the target again, or another one; lines that wait go to the old one. On an error the old one stays.
    pub fn reopen(&self, target: Option<&LogTarget>) -> io::Result<()> {
        let file = target.map(open).transpose()?;
        self.on.store(file.is_some(), Ordering::Relaxed);
        self.order(Order::Switch(file));
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

    fn run(&self, file: Option<File>) {
        let mut out = Output { file, mid_line: false, failing: None };
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
                    Order::Switch(file) => out = Output { file, mid_line: false, failing: None },
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

/// The open file, and what happened to it last.
struct Output {
    file: Option<File>,
    /// The last write ended inside a line.
    mid_line: bool,
    /// Lines lost since writing began to fail.
    failing: Option<u64>,
}

impl Output {
    /// How many lines were lost.
    fn write(&mut self, lines: &[u8], lines_count: u64) -> u64 {
        let Some(file) = &mut self.file else { return 0 };
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
        match result {
            Ok(()) => {
                if let Some(lost) = self.failing.take() {
                    say!("the access log can be written again; lost: {}", counted(lost, "line"));
                }
            }
            Err(error) => {
                if self.failing.is_none() {
                    say!("error: the access log cannot be written: {error}; lines are lost until it can");
                }
                *self.failing.get_or_insert(0) += lost;
            }
        }
        lost
    }
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
            let file = rustix::fs::open(path, flags | OFlags::NONBLOCK, mode)
                .map_err(|e| io::Error::other(format!("{}: {}", path.display(), io::Error::from(e))))?;
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
