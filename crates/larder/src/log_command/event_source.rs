//! Where exchanges are read from: a running larder, which is waited for while it restarts, or files.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proxy::Moment;
use proxy::events::EventQuery;

use crate::admin_client::{AdminFlags, AdminStream, Unfollowed, encoded, follow};
use crate::limits::{ADMIN_QUIET_MAX, EVENT_LINE_BYTES_MAX, LOG_RETRY_PAUSE};
use crate::log_command::recorded_event::RecordedEvent;

/// What comes next.
pub enum NextEvent {
    /// An exchange that meets the query, and its line.
    Event {
        line: Vec<u8>,
        event: RecordedEvent,
    },
    /// So many met it and are not told.
    Lost(u64),
    /// The larder is gone: the next one is waited for.
    Interrupted,
    /// It is there again.
    Resumed,
    End,
    Failed(String),
}

/// How often it is looked whether it is enough, while nothing comes.
const LOOKS_PAUSE: Duration = Duration::from_millis(200);
/// A larder that has nothing to tell says so more often.
const SILENCE_MAX: Duration = ADMIN_QUIET_MAX.saturating_mul(3);
/// A file that begins with so many lines that are none of a record is none.
const BROKEN_LINES_MAX: u64 = 3;

/// The end of a span that has begun.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    begun: Moment,
    span: Duration,
}

impl Until {
    pub fn begin(span: Duration) -> Until {
        Until { begun: Moment::now(), span }
    }

    fn left(self) -> Duration {
        self.span.saturating_sub(Duration::from_micros(self.begun.micros_until(Moment::now())))
    }
}

pub enum EventSource {
    Live(Box<Live>),
    Record(Box<Record>),
}

/// A running larder.
pub struct Live {
    larder: AdminFlags,
    target: String,
    /// `None` while there is no larder.
    lines: Option<BufReader<AdminStream>>,
    /// What has come of a line.
    begun: Vec<u8>,
    /// When something came last.
    heard: Moment,
    until: Option<Until>,
    /// Somebody has said that it is enough.
    stop: Arc<AtomicBool>,
}

/// Files, one after the other.
pub struct Record {
    query: EventQuery,
    left: VecDeque<PathBuf>,
    lines: Option<(PathBuf, u64, Box<dyn BufRead + Send>)>,
    /// Lines that are none of a record, or were cut: passed over.
    broken: u64,
}

/// How a line came.
enum LineRead {
    Whole(Vec<u8>),
    /// Nobody is there any more.
    Ended,
    /// Nothing came within a moment.
    Nothing,
}

impl EventSource {
    /// What a running larder tells, at most so many a second. It ends when `stop` is set.
    pub fn live(
        larder: &AdminFlags,
        query: &str,
        rate: u32,
        (until, stop): (Option<Until>, &Arc<AtomicBool>),
    ) -> Result<EventSource, String> {
        let target = format!("/log?rate={rate}&q={}", encoded(query));
        match follow(larder, &target, LOOKS_PAUSE) {
            Ok(lines) => Ok(EventSource::Live(Box::new(Live {
                larder: larder.clone(),
                target,
                lines: Some(lines),
                begun: Vec::new(),
                heard: Moment::now(),
                until,
                stop: Arc::clone(stop),
            }))),
            Err(Unfollowed::Unreachable(why) | Unfollowed::Refused(why)) => Err(why),
        }
    }

    /// What stands in files.
    pub fn of_files(files: &[PathBuf], query: EventQuery) -> EventSource {
        let left = files.iter().cloned().collect();
        EventSource::Record(Box::new(Record { query, left, lines: None, broken: 0 }))
    }

    pub fn has_more_at_once(&self) -> bool {
        match self {
            EventSource::Live(live) => live.lines.as_ref().is_some_and(|lines| lines.buffer().contains(&b'\n')),
            // Of what another program writes there the next line may be long in coming.
            EventSource::Record(record) => record.lines.as_ref().is_none_or(|(path, ..)| path.as_os_str() != "-"),
        }
    }

    pub fn next(&mut self) -> NextEvent {
        match self {
            EventSource::Live(live) => live.next(),
            EventSource::Record(record) => record.next(),
        }
    }
}

impl Live {
    fn next(&mut self) -> NextEvent {
        loop {
            if self.is_over() {
                return NextEvent::End;
            }
            if self.lines.is_none() {
                return self.wait_for_larder();
            }
            match self.read_line() {
                LineRead::Whole(line) => {
                    let Some(event) = RecordedEvent::parse(&line) else { continue };
                    if let Some(count) = event.lost() {
                        return NextEvent::Lost(count);
                    }
                    if event.is_exchange() {
                        return NextEvent::Event { line, event };
                    }
                }
                LineRead::Nothing if self.heard.micros_until(Moment::now()) < SILENCE_MAX.as_micros() as u64 => {}
                LineRead::Ended | LineRead::Nothing => {
                    self.lines = None;
                    self.begun.clear();
                    return NextEvent::Interrupted;
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.until.is_some_and(|until| until.left().is_zero())
    }

    fn read_line(&mut self) -> LineRead {
        let Some(lines) = &mut self.lines else { return LineRead::Ended };
        let room = EVENT_LINE_BYTES_MAX.saturating_sub(self.begun.len()) as u64;
        match lines.take(room).read_until(b'\n', &mut self.begun) {
            Ok(_) if self.begun.ends_with(b"\n") => {
                self.heard = Moment::now();
                LineRead::Whole(std::mem::take(&mut self.begun))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                LineRead::Nothing
            }
            Ok(_) | Err(_) => LineRead::Ended,
        }
    }

    /// It has ended, restarts, or has given our place to somebody else: it is asked again until it is there.
    fn wait_for_larder(&mut self) -> NextEvent {
        while !self.is_over() {
            std::thread::sleep(LOG_RETRY_PAUSE);
            match follow(&self.larder, &self.target, LOOKS_PAUSE) {
                Ok(lines) => {
                    (self.lines, self.heard) = (Some(lines), Moment::now());
                    return NextEvent::Resumed;
                }
                Err(Unfollowed::Unreachable(_)) => {}
                Err(Unfollowed::Refused(why)) => return NextEvent::Failed(why),
            }
        }
        NextEvent::End
    }
}

impl Record {
    fn next(&mut self) -> NextEvent {
        loop {
            let Some((path, number, lines)) = &mut self.lines else {
                match self.left.pop_front() {
                    None => return NextEvent::End,
                    Some(path) => match open(&path) {
                        Ok(lines) => (self.lines, self.broken) = (Some((path, 0, lines)), 0),
                        Err(error) => return NextEvent::Failed(format!("{}: {error}", path.display())),
                    },
                }
                continue;
            };
            let mut line = Vec::new();
            match lines.take(EVENT_LINE_BYTES_MAX as u64).read_until(b'\n', &mut line) {
                Ok(0) => {
                    self.lines = None;
                    continue;
                }
                Ok(_) => *number += 1,
                Err(error) => return NextEvent::Failed(format!("{}: {error}", path.display())),
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let Some(event) = RecordedEvent::parse(&line) else {
                // A crash or a full disk cuts lines; what has no line of ours at all is no record.
                self.broken += 1;
                if *number == self.broken && self.broken >= BROKEN_LINES_MAX {
                    return NextEvent::Failed(format!("{}: no record of `larder log --record`", path.display()));
                }
                continue;
            };
            if let Some(count) = event.lost() {
                return NextEvent::Lost(count);
            }
            if event.is_exchange() && self.query.is_met(|field| event.value(field)) {
                if !line.ends_with(b"\n") {
                    line.push(b'\n');
                }
                return NextEvent::Event { line, event };
            }
        }
    }
}

fn open(path: &PathBuf) -> io::Result<Box<dyn BufRead + Send>> {
    match path.as_os_str() == "-" {
        true => Ok(Box::new(BufReader::new(io::stdin()))),
        false => Ok(Box::new(BufReader::new(File::open(path)?))),
    }
}
