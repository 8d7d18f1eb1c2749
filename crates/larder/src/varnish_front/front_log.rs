//! Records on their way from the workers into the shared log: a queue with a limit, and the thread that empties it.
//!
//! Workers write records as they stand in the log, and copy what a transaction recorded into the queue. The thread counts what passes
//! by (`log_tally.rs`) and writes all that has come in one piece. Between two pieces it sleeps a little, so that a busy server wakes nobody
//! for each request.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use proxy::{HeardKinds, RecordSink};
use varnishd::ParameterBook;
use vsm::{LogPiece, LogSegment, LogTag, SegmentSet};

use super::log_choice::LogChoice;
use super::log_tally::LogTally;
use crate::say::say;

/// What waits for the thread; what comes beyond is lost, and the log says how many transactions that were.
const QUEUE_BYTES_MAX: usize = 16 << 20;
/// How old a record may be before a reader sees it.
const WRITTEN_EVERY: Duration = Duration::from_millis(2);

/// Where workers put records.
pub struct FrontLog {
    queue: Mutex<Queue>,
    came: Condvar,
    choice: Mutex<LogChoice>,
    heard: Arc<HeardKinds>,
    storage: String,
    tally: LogTally,
}

#[derive(Default)]
struct Queue {
    piece: LogPiece,
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
        let (choice, heard) = (LogChoice::default(), Arc::new(HeardKinds::default()));
        choice.tell(&heard);
        FrontLog {
            queue: Mutex::default(),
            came: Condvar::new(),
            choice: Mutex::new(choice),
            heard,
            storage,
            tally: LogTally::default(),
        }
    }

    /// What passed by, counted.
    pub fn tally(&self) -> &LogTally {
        &self.tally
    }

    /// Takes over `vsl_mask` or `vsl_reclen`. False: it is neither. The error says what is wrong.
    pub fn set_parameter(&self, name: &str, value: &str) -> Result<bool, String> {
        let mut choice = self.choice.lock();
        match name {
            "vsl_mask" => {
                choice.mask = choice.mask.changed(value).map_err(|word| format!("Unknown VSL tag ({word})\n"))?;
            }
            "vsl_reclen" => {
                let bytes =
                    crate::quantities::parse_size(value.trim_end_matches('b')).map_err(|why| format!("{why}\n"))?;
                choice.record_bytes_max = bytes.min(u64::from(u16::MAX)) as usize;
            }
            _ => return Ok(false),
        }
        choice.tell(&self.heard);
        Ok(true)
    }

    /// A record of nobody's transaction.
    pub fn note(&self, tag: &str, text: &[u8]) {
        let tag = LogTag::named(tag).unwrap_or_else(|| panic!("the log has no tag {tag}"));
        let choice = *self.choice.lock();
        if choice.mask.allows(tag) {
            self.push(text.len(), |piece| piece.alone(tag, choice.cut(text)));
        }
    }

    fn push(&self, bytes: usize, put: impl FnOnce(&mut LogPiece)) {
        let mut queue = self.queue.lock();
        if queue.is_over {
            return;
        }
        if queue.piece.bytes().len() + bytes > QUEUE_BYTES_MAX {
            queue.lost += 1;
            return;
        }
        put(&mut queue.piece);
        if queue.thread_waits {
            queue.thread_waits = false;
            self.came.notify_one();
        }
    }
}

impl RecordSink for FrontLog {
    fn put(&self, records: &[u8]) {
        self.push(records.len(), |piece| piece.records(records));
    }

    fn heard(&self) -> Arc<HeardKinds> {
        Arc::clone(&self.heard)
    }

    fn storage(&self) -> &str {
        &self.storage
    }
}

impl FrontLog {
    /// All that came since it was asked before, and how many transactions were lost. `None` when it is over.
    fn take(&self, into: &mut LogPiece) -> Option<u64> {
        into.clear();
        let mut queue = self.queue.lock();
        while queue.piece.bytes().is_empty() {
            if queue.is_over {
                return None;
            }
            queue.thread_waits = true;
            self.came.wait(&mut queue);
        }
        std::mem::swap(&mut queue.piece, into);
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
    let (mut came, mut piece, mut is_failing) = (LogPiece::default(), LogPiece::default(), false);
    let lost_tag = LogTag::named("VSL").expect("a tag of the log's");
    while let Some(lost) = log.take(&mut came) {
        let choice = *log.choice.lock();
        piece.clear();
        if lost > 0 {
            let text = format!("{lost} transactions are missing: the log was behind by more than QUEUE_BYTES_MAX");
            piece.alone(lost_tag, text.as_bytes());
        }
        let mut written = segment.append(&piece);
        // Seldom: what is counted, and is not to be seen or not whole.
        let seen = match log.tally.read_all(&came, |record| choice.shows(record)) {
            true => &came,
            false => {
                piece.clear();
                choice.pick(&came, &mut piece);
                &piece
            }
        };
        written = written.and(segment.append(seen));
        if let Err(error) = &written
            && !is_failing
        {
            say!("warning: the log for varnishlog: {error}");
        }
        is_failing = written.is_err();
        std::thread::sleep(WRITTEN_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy::{RecordKind, RecordView};

    /// The first text of each transaction that has come.
    fn texts(piece: &LogPiece) -> Vec<String> {
        let first = |records| RecordView::split_first(records).unwrap().0;
        piece.units().map(|unit| String::from_utf8_lossy(first(unit.records).text()).into_owned()).collect()
    }

    /// A request's record of a kind.
    fn recorded(kind: RecordKind, text: &[u8]) -> Vec<u8> {
        let mut record = Vec::new();
        vsm::append_record(&mut record, LogTag::named(kind.name()).unwrap(), 1 << 30 | 7, text);
        record
    }

    #[test]
    fn records_of_the_proxy_s_stand_as_the_log_has_them() {
        let record = recorded(RecordKind::ReqUrl, b"/a");
        let (view, behind) = RecordView::split_first(&record).unwrap();
        let number = LogTag::named("ReqURL").unwrap().number();
        assert_eq!((view.number, view.transaction, view.text()), (number, 1 << 30 | 7, &b"/a"[..]));
        assert!(behind.is_empty());
    }

    #[test]
    fn what_is_too_much_for_the_queue_is_counted_and_the_rest_comes_out() {
        let log = FrontLog::with_defaults("malloc s0".to_owned());
        let many = recorded(RecordKind::ReqUrl, b"/abcdefghijklmn").repeat(QUEUE_BYTES_MAX / 24 - 4);
        log.put(&many);
        log.put(&recorded(RecordKind::ReqUrl, &[b'a'; 200]));
        log.put(&recorded(RecordKind::ReqUrl, b"/b"));
        let mut came = LogPiece::default();
        assert_eq!(log.take(&mut came), Some(1));
        assert_eq!(texts(&came).last().unwrap(), "/b");
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
        let mut came = LogPiece::default();
        log.take(&mut came);
        assert_eq!(texts(&came), ["something that "]);
    }
}
