//! Records on their way from the workers into the shared log: a queue with a limit, and the thread that empties it.
//!
//! A worker copies what a transaction recorded into the queue and goes on; the thread writes all that has come in one piece. Between
//! two pieces it sleeps a little, so that a busy server wakes nobody for each request.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use proxy::{RecordKind, RecordSide, RecordSink, each_record};
use varnishd::ParameterBook;
use vsm::{LogMask, LogPiece, LogSegment, LogSide, LogTag, SegmentSet};

use super::log_tally::LogTally;
use crate::say::say;

/// What waits for the thread; what comes beyond is lost, and the log says how many transactions that were.
const QUEUE_BYTES_MAX: usize = 16 << 20;
/// How old a record may be before a reader sees it.
const WRITTEN_EVERY: Duration = Duration::from_millis(2);
/// Before the records of a transaction: its number, whose it is, and how many bytes follow.
const HEAD_BYTES: usize = 9;
/// In place of whose it is: a tag and a text.
const NOTE: u8 = 3;
/// `vsl_reclen` unless somebody says otherwise.
const RECORD_BYTES_USUAL: u32 = 255;

/// Where workers put records.
pub struct FrontLog {
    queue: Mutex<Queue>,
    came: Condvar,
    mask: Mutex<LogMask>,
    /// What is longer is cut.
    record_bytes_max: AtomicU32,
    storage: String,
    tags: Tags,
    tally: LogTally,
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    lost: u64,
    thread_waits: bool,
    is_over: bool,
}

impl FrontLog {
    /// `storages`: name and kind, of which the first is what records name. The error is about a parameter of the log's.
    pub fn new(storages: &[(String, String)], book: &ParameterBook) -> Result<FrontLog, String> {
        let storage = storages.first().map_or_else(String::new, |(name, kind)| format!("{kind} {name}"));
        let log = FrontLog::with_defaults(storage);
        for (name, value) in book.plain_values() {
            log.set_parameter(name, value).map_err(|why| format!("-p {name}={value}: {}", why.trim_end()))?;
        }
        Ok(log)
    }

    fn with_defaults(storage: String) -> FrontLog {
        FrontLog {
            queue: Mutex::default(),
            came: Condvar::new(),
            mask: Mutex::default(),
            record_bytes_max: AtomicU32::new(RECORD_BYTES_USUAL),
            storage,
            tags: Tags::new(),
            tally: LogTally::default(),
        }
    }

    /// What passed by, counted.
    pub fn tally(&self) -> &LogTally {
        &self.tally
    }

    /// Takes over `vsl_mask` or `vsl_reclen`. False: it is neither. The error says what is wrong.
    pub fn set_parameter(&self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "vsl_mask" => {
                let mut mask = self.mask.lock();
                *mask = mask.changed(value).map_err(|word| format!("Unknown VSL tag ({word})\n"))?;
            }
            "vsl_reclen" => {
                let bytes =
                    crate::quantities::parse_size(value.trim_end_matches('b')).map_err(|why| format!("{why}\n"))?;
                self.record_bytes_max.store(bytes.min(u64::from(u16::MAX)) as u32, Ordering::Relaxed);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A record of nobody's transaction.
    pub fn note(&self, tag: &str, text: &[u8]) {
        let tag = LogTag::named(tag).unwrap_or_else(|| panic!("the log has no tag {tag}"));
        self.push(0, NOTE, &[&[tag.number()], text]);
    }

    fn push(&self, xid: u64, side: u8, parts: &[&[u8]]) {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let mut queue = self.queue.lock();
        if queue.is_over {
            return;
        }
        if queue.bytes.len() + bytes > QUEUE_BYTES_MAX {
            queue.lost += 1;
            return;
        }
        queue.bytes.extend_from_slice(&(xid as u32).to_le_bytes());
        queue.bytes.push(side);
        queue.bytes.extend_from_slice(&(bytes as u32).to_le_bytes());
        parts.iter().for_each(|part| queue.bytes.extend_from_slice(part));
        if queue.thread_waits {
            queue.thread_waits = false;
            self.came.notify_one();
        }
    }
}

impl RecordSink for FrontLog {
    fn put(&self, xid: u64, side: RecordSide, records: &[u8]) {
        self.push(xid, side as u8, &[records]);
    }

    fn wants(&self, kind: RecordKind) -> bool {
        self.tags.of_kinds[kind as usize].is_some_and(|tag| self.mask.lock().allows(tag))
    }

    fn storage(&self) -> &str {
        &self.storage
    }
}

impl FrontLog {
    /// All that came since it was asked before, and how many transactions were lost. `None` when it is over.
    fn take(&self, into: &mut Vec<u8>) -> Option<u64> {
        into.clear();
        let mut queue = self.queue.lock();
        while queue.bytes.is_empty() {
            if queue.is_over {
                return None;
            }
            queue.thread_waits = true;
            self.came.wait(&mut queue);
        }
        std::mem::swap(&mut queue.bytes, into);
        Some(std::mem::take(&mut queue.lost))
    }

    /// Takes what comes from now on; the thread that writes it may begin later.
    pub fn open(&self) {
        self.queue.lock().is_over = false;
    }

    fn end(&self) {
        self.queue.lock().is_over = true;
        self.came.notify_one();
    }
}

/// The thread that writes; ends with what is dropped.
pub struct Writing {
    log: Arc<FrontLog>,
    thread: Option<JoinHandle<()>>,
}

impl Writing {
    pub fn begin(log: Arc<FrontLog>, set: &SegmentSet, bytes: u64) -> io::Result<Writing> {
        let segment = LogSegment::create(set, bytes)?;
        log.queue.lock().is_over = false;
        let queue = Arc::clone(&log);
        let thread = std::thread::Builder::new().name("records".into()).spawn(move || write_all(&queue, segment));
        Ok(Writing { log, thread: Some(thread?) })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.log.end();
        if let Some(thread) = self.thread.take() {
            // It has said what went wrong.
            let _ = thread.join();
        }
    }
}

fn write_all(log: &FrontLog, mut segment: LogSegment) {
    let tags = &log.tags;
    let (mut came, mut piece, mut is_failing) = (Vec::new(), LogPiece::default(), false);
    while let Some(lost) = log.take(&mut came) {
        let mask = *log.mask.lock();
        let record_bytes_max = log.record_bytes_max.load(Ordering::Relaxed) as usize;
        let mut written = Ok(());
        if lost > 0 {
            let text = format!("{lost} transactions are missing: the log was behind by more than QUEUE_BYTES_MAX");
            piece.alone(tags.lost, 0, LogSide::None, text.as_bytes());
        }
        let mut rest = &came[..];
        while rest.len() >= HEAD_BYTES {
            let (head, behind) = rest.split_at(HEAD_BYTES);
            let xid = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            let length = u32::from_le_bytes([head[5], head[6], head[7], head[8]]) as usize;
            let (records, behind) = behind.split_at(length);
            if head[4] != NOTE && xid != 0 {
                log.tally.read(xid, records);
            }
            encode(&mut piece, tags, mask, record_bytes_max, (xid, head[4]), records);
            rest = behind;
            if piece.bytes().len() >= segment.piece_bytes_max() / 2 || rest.is_empty() {
                written = written.and(segment.append_piece(piece.bytes()));
                piece.clear();
            }
        }
        if let Err(error) = &written
            && !is_failing
        {
            say!("warning: the log for varnishlog: {error}");
        }
        is_failing = written.is_err();
        std::thread::sleep(WRITTEN_EVERY);
    }
}

/// The log's tags for the proxy's kinds.
struct Tags {
    of_kinds: Vec<Option<LogTag>>,
    lost: LogTag,
}

impl Tags {
    fn new() -> Tags {
        Tags {
            of_kinds: RecordKind::ALL.iter().map(|kind| LogTag::named(kind.name())).collect(),
            lost: LogTag::named("VSL").expect("a tag of the log's"),
        }
    }
}

/// What a worker put into the queue, as it stands in the log.
fn encode(
    piece: &mut LogPiece,
    tags: &Tags,
    mask: LogMask,
    record_bytes_max: usize,
    (xid, side): (u32, u8),
    records: &[u8],
) {
    if side == NOTE {
        if let Some((number, text)) = records.split_first()
            && let Some(tag) = LogTag::numbered(*number)
            && mask.allows(tag)
        {
            piece.alone(tag, 0, LogSide::None, cut(text, record_bytes_max));
        }
        return;
    }
    let side = match side {
        _ if side == RecordSide::Client as u8 => LogSide::Client,
        _ if side == RecordSide::Backend as u8 => LogSide::Backend,
        _ => LogSide::None,
    };
    if xid == 0 {
        return each_record(records, |kind, text| {
            if let Some(tag) = tags.of_kinds[kind as usize]
                && mask.allows(tag)
            {
                piece.alone(tag, 0, side, cut(text, record_bytes_max));
            }
        });
    }
    let batch = piece.begin(xid, side);
    each_record(records, |kind, text| {
        if let Some(tag) = tags.of_kinds[kind as usize]
            && mask.allows(tag)
        {
            piece.record(&batch, tag, cut(text, record_bytes_max));
        }
    });
    piece.end(batch);
}

/// With its NUL it has so many bytes at most.
fn cut(text: &[u8], bytes_max: usize) -> &[u8] {
    &text[..text.len().min(bytes_max.saturating_sub(1))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_the_proxy_s_has_a_tag() {
        let tags = Tags::new();
        let without = RecordKind::ALL.iter().filter(|kind| tags.of_kinds[**kind as usize].is_none());
        assert_eq!(without.map(|kind| kind.name()).collect::<Vec<_>>(), Vec::<&str>::new());
    }

    #[test]
    fn what_is_too_much_for_the_queue_is_counted_and_the_rest_comes_out() {
        let log = FrontLog::with_defaults("malloc s0".to_owned());
        log.put(1, RecordSide::Client, &vec![0; QUEUE_BYTES_MAX - 100]);
        log.put(2, RecordSide::Client, &[0; 101]);
        log.put(3, RecordSide::Client, &[0; 50]);
        let mut came = Vec::new();
        assert_eq!(log.take(&mut came), Some(1));
        assert_eq!(came.len(), QUEUE_BYTES_MAX - 50 + 2 * HEAD_BYTES);
        log.end();
        assert_eq!(log.take(&mut came), None);
    }

    #[test]
    fn masked_kinds_are_left_out_and_long_texts_are_cut() {
        let log = FrontLog::with_defaults("malloc s0".to_owned());
        assert_eq!(log.set_parameter("vsl_mask", "-CLI"), Ok(true));
        assert_eq!(log.set_parameter("vsl_mask", "+Nonesuch"), Err("Unknown VSL tag (Nonesuch)\n".to_owned()));
        assert_eq!(log.set_parameter("vsl_reclen", "16b"), Ok(true));
        assert_eq!(log.set_parameter("default_ttl", "1"), Ok(false));
        log.note("CLI", b"Rd ping");
        log.note("Error", b"something that is too long");
        let mut came = Vec::new();
        log.take(&mut came);
        let (mut piece, tags) = (LogPiece::default(), Tags::new());
        let (mask, bytes_max) = (*log.mask.lock(), log.record_bytes_max.load(Ordering::Relaxed) as usize);
        let mut rest = &came[..];
        while let Some((head, behind)) = rest.split_at_checked(HEAD_BYTES) {
            let (records, behind) = behind.split_at(usize::from(head[5]));
            encode(&mut piece, &tags, mask, bytes_max, (0, head[4]), records);
            rest = behind;
        }
        assert_eq!(&piece.bytes()[8..], b"something that \0");
    }
}
