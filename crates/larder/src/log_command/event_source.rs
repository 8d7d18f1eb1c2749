//! Where exchanges are read from: a running larder, which is waited for while it restarts, or files.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
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
    until: Option<Until>,
}

/// Files, one after the other.
pub struct Record {
    query: EventQuery,
    left: VecDeque<PathBuf>,
    lines: Option<(PathBuf, u64, Box<dyn BufRead + Send>)>,
}

/// How a line came.
enum LineRead {
    Whole(Vec<u8>),
    /// Nobody is there any more.
    Ended,
    TooLate,
}

impl EventSource {
    /// What a running larder tells, at most so many a second.
    pub fn live(larder: &AdminFlags, query: &str, rate: u32, until: Option<Until>) -> Result<EventSource, String> {
        let target = format!("/log?rate={rate}&q={}", encoded(query));
        match follow(larder, &target, patience(until)) {
            Ok(lines) => {
                let live = Live { larder: larder.clone(), target, lines: Some(lines), until };
                Ok(EventSource::Live(Box::new(live)))
            }
            Err(Unfollowed::Unreachable(why) | Unfollowed::Refused(why)) => Err(why),
        }
    }

    /// What stands in files.
    pub fn of_files(files: &[PathBuf], query: EventQuery) -> EventSource {
        let left = files.iter().cloned().collect();
        EventSource::Record(Box::new(Record { query, left, lines: None }))
    }

    pub fn has_more_at_once(&self) -> bool {
        match self {
            EventSource::Live(live) => live.lines.as_ref().is_some_and(|lines| lines.buffer().contains(&b'\n')),
            EventSource::Record(_) => true,
        }
    }

    pub fn next(&mut self) -> NextEvent {
        match self {
            EventSource::Live(live) => live.next(),
            EventSource::Record(record) => record.next(),
        }
    }
}

/// A larder that has nothing to tell says so now and then.
fn patience(until: Option<Until>) -> Duration {
    let longest = ADMIN_QUIET_MAX * 3;
    let left = until.map_or(longest, |until| until.left().min(longest));
    left.max(Duration::from_millis(1))
}

impl Live {
    fn next(&mut self) -> NextEvent {
        loop {
            if self.is_over() {
                return NextEvent::End;
            }
            let Some(lines) = &mut self.lines else { return self.wait_for_larder() };
            match read_line(lines) {
                LineRead::Whole(line) => {
                    let Some(event) = RecordedEvent::parse(&line) else { continue };
                    if let Some(count) = event.lost() {
                        return NextEvent::Lost(count);
                    }
                    if event.is_exchange() {
                        return NextEvent::Event { line, event };
                    }
                }
                LineRead::TooLate if self.is_over() => return NextEvent::End,
                LineRead::Ended | LineRead::TooLate => {
                    self.lines = None;
                    return NextEvent::Interrupted;
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.until.is_some_and(|until| until.left().is_zero())
    }

    /// It has ended, restarts, or has given our place to somebody else: it is asked again until it is there.
    fn wait_for_larder(&mut self) -> NextEvent {
        while !self.is_over() {
            std::thread::sleep(LOG_RETRY_PAUSE);
            match follow(&self.larder, &self.target, patience(self.until)) {
                Ok(lines) => {
                    self.lines = Some(lines);
                    return NextEvent::Resumed;
                }
                Err(Unfollowed::Unreachable(_)) => {}
                Err(Unfollowed::Refused(why)) => return NextEvent::Failed(why),
            }
        }
        NextEvent::End
    }
}

fn read_line(lines: &mut BufReader<AdminStream>) -> LineRead {
    let mut line = Vec::new();
    match lines.take(EVENT_LINE_BYTES_MAX as u64).read_until(b'\n', &mut line) {
        Ok(_) if line.ends_with(b"\n") => LineRead::Whole(line),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => LineRead::TooLate,
        Ok(_) | Err(_) => LineRead::Ended,
    }
}

impl Record {
    fn next(&mut self) -> NextEvent {
        loop {
            let Some((path, number, lines)) = &mut self.lines else {
                match self.left.pop_front() {
                    None => return NextEvent::End,
                    Some(path) => match open(&path) {
                        Ok(lines) => self.lines = Some((path, 0, lines)),
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
                // A record that was cut by a crash ends in the middle of a line.
                if line.ends_with(b"\n") {
                    return NextEvent::Failed(format!("{}:{number}: no line of `larder log --record`", path.display()));
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
