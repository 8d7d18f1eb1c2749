//! The origin's own record: when each request was read and when its answer was given away.
//!
//! In nanoseconds of CLOCK_MONOTONIC, which on one machine is also the client's clock, so that what a client claims
//! can be held against what has happened. Each thread gathers lines and appends them together.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::lab_clock::Nanos;
use crate::limits::LOG_BUFFER_BYTES;

/// The names of its columns, which are also its first line.
pub const LOG_COLUMNS: &str = "received_nanos\tanswered_nanos\tconnection\tmethod\ttarget\tstatus\tbody_bytes\tending";

/// A request and what came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogLine<'a> {
    /// When its head was read.
    pub(crate) received: Nanos,
    /// When the last byte of its answer was about to be given to the kernel.
    pub(crate) answered: Nanos,
    pub(crate) connection: u64,
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    /// 0: none was sent.
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    /// `whole`, `cut`, `reset`, `stopped`, or `gone` when the client was.
    pub(crate) ending: &'static str,
}

pub(crate) fn create(path: &Path) -> io::Result<Arc<File>> {
    let mut file = File::options().create(true).write(true).truncate(true).open(path)?;
    writeln!(file, "{LOG_COLUMNS}")?;
    Ok(Arc::new(File::options().append(true).open(path)?))
}

#[derive(Debug)]
pub(crate) struct OriginLog {
    file: Option<Arc<File>>,
    lines: String,
}

impl OriginLog {
    pub(crate) fn new(file: Option<Arc<File>>) -> OriginLog {
        OriginLog { file, lines: String::new() }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.file.is_some()
    }

    pub(crate) fn note(&mut self, line: &LogLine<'_>) {
        let LogLine { received, answered, connection, method, target, status, body_bytes, ending } = line;
        let (from, to) = (received.0, answered.0);
        let _ =
            writeln!(self.lines, "{from}\t{to}\t{connection}\t{method}\t{target}\t{status}\t{body_bytes}\t{ending}");
        if self.lines.len() >= LOG_BUFFER_BYTES {
            self.flush();
        }
    }

    /// A disk that is full costs lines, not answers.
    pub(crate) fn flush(&mut self) {
        if let (Some(file), false) = (&self.file, self.lines.is_empty()) {
            let _ = (&**file).write_all(self.lines.as_bytes());
            self.lines.clear();
        }
    }
}

impl Drop for OriginLog {
    fn drop(&mut self) {
        self.flush();
    }
}
