//! What a thread has seen: counts, latencies, and the errors by kind. Merged once, when the run is over.
//!
//! A request that failed is counted under its kind and in no latency: a fast refusal must not look like a fast
//! answer. The current second is kept apart and handed over whole when it is over.

use hdrhistogram::Histogram;

use crate::answer::Answer;
use crate::error_kind::ErrorKind;
use crate::frame_meter::FrameMeter;
use crate::handshake_tally::HandshakeTally;
use crate::lab_clock::Nanos;
use crate::limits::{
    FIRST_READ_BYTES_MAX, LATENCY_DIGITS, LATENCY_MICROS_MAX, SAMPLE_BYTES_MAX, SAMPLES_BEYOND_MIN, SECOND_DIGITS,
    STATUS_MAX,
};
use crate::session_tally::SessionTally;

#[derive(Clone, Debug)]
pub struct Tally {
    /// Requests that were begun, and those whose outcome is known.
    pub started: u64,
    pub finished: u64,
    /// Answers that passed every check: goodput.
    pub good: u64,
    pub body_bytes: u64,
    /// Of the texts behind the bodies that came in a coding that was asked for.
    pub text_bytes: u64,
    /// Heads and framing of whole answers, good or not; all that was received.
    pub head_bytes: u64,
    pub framing_bytes: u64,
    pub received_bytes: u64,
    pub connections: u64,
    /// Connections that an answer announced to close, and that its server left open.
    pub left_open: u64,
    /// Whole answers, good or not, by their status.
    pub status_codes: Box<[u64; STATUS_MAX + 1]>,
    /// Of their bodies.
    pub answer_bytes: u64,
    /// Those after which the connection could be used again.
    pub kept: u64,
    /// Of the first one's body.
    pub first_length: Option<u64>,
    /// What was read first of all, as far as it is kept: the head of an answer as this target writes it.
    pub first_read: Vec<u8>,
    pub lives: ConnectionTally,
    /// Of a memcached only.
    pub memcached: Option<MemcachedTally>,
    /// By [`ErrorKind`].
    pub errors: Vec<ErrorRecord>,
    /// Microseconds from the intended start of a good answer to its last byte …
    pub from_intended: Histogram<u64>,
    /// … from when it was really sent …
    pub from_send: Histogram<u64>,
    /// … and from there to the first byte.
    pub first_byte: Histogram<u64>,
    pub connect: Histogram<u64>,
    /// Of HTTP/2, as soon as it was spoken.
    pub http2: Option<Http2Tally>,
    /// Of TLS, as soon as there was one.
    pub handshakes: Option<Box<HandshakeTally>>,
    /// How late requests were sent.
    pub send_lag: Histogram<u64>,
    /// Of a load of sessions.
    pub sessions: Option<Box<SessionTally>>,
    second: Second,
}

/// Connections, as whole lives. Each is noted once, when it is over.
#[derive(Clone, Debug)]
pub struct ConnectionTally {
    pub(crate) open: u64,
    /// At once; of several threads the sum of what each had.
    pub open_max: u64,
    /// Microseconds from the call to connect to the end …
    pub lifetime: Histogram<u64>,
    /// … and to the first byte that came.
    pub first_byte: Histogram<u64>,
    /// Answers on one connection.
    pub answers: Histogram<u64>,
    /// Answers in a thousand seconds.
    pub rate: Histogram<u64>,
}

/// What a memcached answered, errors aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemcachedTally {
    pub hits: u64,
    pub misses: u64,
    pub stored: u64,
}

/// What is only HTTP/2's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Http2Tally {
    /// Of answers' heads, as they were sent.
    pub field_block_bytes: u64,
    /// Connections that the server ended with a GOAWAY.
    pub gone_away: u64,
    /// The fewest streams that a server allowed, where they are fewer than were to be under way.
    pub streams_allowed: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorRecord {
    pub count: u64,
    /// Nanoseconds since the run began.
    pub first_nanos: u64,
    pub last_nanos: u64,
    /// What the first one was.
    pub sample: String,
}

/// One second of one thread, or of all.
#[derive(Clone, Debug)]
pub struct Second {
    pub good: u64,
    pub failed: u64,
    /// By [`ErrorKind`].
    pub errors: [u64; ErrorKind::ALL.len()],
    pub body_bytes: u64,
    /// Open at its end.
    pub connections: u64,
    pub from_intended: Histogram<u64>,
}

/// One connection until now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) begun: Nanos,
    pub(crate) first_byte: Option<Nanos>,
    pub(crate) answers: u64,
}

/// The moments of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    pub(crate) intended: Nanos,
    pub(crate) sent: Nanos,
    pub(crate) first_byte: Nanos,
    pub(crate) last_byte: Nanos,
}

fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MICROS_MAX, digits).expect("the bounds are constants that fit")
}

impl Default for Tally {
    fn default() -> Tally {
        let latency = || histogram(LATENCY_DIGITS);
        Tally {
            started: 0,
            finished: 0,
            good: 0,
            body_bytes: 0,
            text_bytes: 0,
            head_bytes: 0,
            framing_bytes: 0,
            received_bytes: 0,
            connections: 0,
            left_open: 0,
            status_codes: Box::new([0; STATUS_MAX + 1]),
            answer_bytes: 0,
            kept: 0,
            first_length: None,
            first_read: Vec::new(),
            lives: ConnectionTally::default(),
            memcached: None,
            errors: vec![ErrorRecord::default(); ErrorKind::ALL.len()],
            from_intended: latency(),
            from_send: latency(),
            first_byte: latency(),
            connect: latency(),
            http2: None,
            handshakes: None,
            send_lag: latency(),
            sessions: None,
            second: Second::default(),
        }
    }
}

impl Default for ConnectionTally {
    fn default() -> ConnectionTally {
        // These grow as they must: a connection may live as long as the run.
        let unbounded = || Histogram::new(LATENCY_DIGITS).expect("a constant that fits");
        let [lifetime, first_byte, answers, rate] = std::array::from_fn(|_| unbounded());
        ConnectionTally { open: 0, open_max: 0, lifetime, first_byte, answers, rate }
    }
}

impl ConnectionTally {
    pub(crate) fn begin(&mut self) {
        self.open += 1;
        self.open_max = self.open_max.max(self.open);
    }

    pub(crate) fn end(&mut self, life: &Life, ended: Nanos) {
        self.open -= 1;
        let micros = life.begun.micros_until(ended);
        let rate = life.answers.saturating_mul(1_000_000_000) / micros.max(1);
        let first_byte = life.first_byte.map(|moment| (&mut self.first_byte, life.begun.micros_until(moment)));
        for (histogram, value) in
            [(&mut self.lifetime, micros), (&mut self.answers, life.answers), (&mut self.rate, rate)]
                .into_iter()
                .chain(first_byte)
        {
            histogram.record(value).expect("a histogram without bounds");
        }
    }

    fn add(&mut self, other: &ConnectionTally) {
        self.open_max += other.open_max;
        for (mine, theirs) in [
            (&mut self.lifetime, &other.lifetime),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.answers, &other.answers),
            (&mut self.rate, &other.rate),
        ] {
            mine.add(theirs).expect("a histogram without bounds");
        }
    }
}

impl Http2Tally {
    pub(crate) fn note(&mut self, frames: &FrameMeter, allowed: Option<usize>) {
        let gone_away = u64::from(frames.goaway.is_some());
        self.add(&Http2Tally { field_block_bytes: frames.field_block_bytes, gone_away, streams_allowed: allowed });
    }

    fn add(&mut self, other: &Http2Tally) {
        self.field_block_bytes += other.field_block_bytes;
        self.gone_away += other.gone_away;
        self.streams_allowed = self.streams_allowed.into_iter().chain(other.streams_allowed).min();
    }
}

impl Default for Second {
    fn default() -> Second {
        let errors = [0; ErrorKind::ALL.len()];
        Second { good: 0, failed: 0, errors, body_bytes: 0, connections: 0, from_intended: histogram(SECOND_DIGITS) }
    }
}

impl Tally {
    /// A whole answer, whatever it is worth.
    #[inline]
    pub(crate) fn note_answer(&mut self, answer: &Answer<'_>) {
        self.status_codes[usize::from(answer.status).min(STATUS_MAX)] += 1;
        self.answer_bytes += answer.length;
        self.head_bytes += answer.head_bytes;
        self.framing_bytes += answer.framing_bytes;
        self.kept += u64::from(answer.persistent);
        self.first_length.get_or_insert(answer.length);
    }

    #[inline]
    pub(crate) fn note_received(&mut self, bytes: &[u8]) {
        if self.received_bytes == 0 {
            self.first_read = bytes[..bytes.len().min(FIRST_READ_BYTES_MAX)].to_vec();
        }
        self.received_bytes += bytes.len() as u64;
    }

    pub(crate) fn note_head(&mut self, text: impl FnOnce() -> Vec<u8>) {
        if self.first_read.is_empty() {
            self.first_read = text();
            self.first_read.truncate(FIRST_READ_BYTES_MAX);
        }
    }

    /// The statuses of a memcached by their own names.
    pub(crate) fn name_memcached(&mut self) {
        let [hits, misses, stored] = [200, 404, 201].map(|status| self.status_codes[status]);
        self.memcached = Some(MemcachedTally { hits, misses, stored });
    }

    /// Whole answers by the first digit of their status.
    pub fn status_class(&self, digit: usize) -> u64 {
        self.status_codes.iter().skip(digit * 100).take(100).sum()
    }

    /// Whole answers, good or not.
    pub fn answers(&self) -> u64 {
        self.status_codes.iter().sum()
    }

    #[inline]
    pub(crate) fn note_good(&mut self, stamps: &Stamps, body_bytes: u64) {
        self.finished += 1;
        self.good += 1;
        self.body_bytes += body_bytes;
        self.second.good += 1;
        self.second.body_bytes += body_bytes;
        let whole_micros = stamps.intended.micros_until(stamps.last_byte);
        self.from_intended.saturating_record(whole_micros);
        self.second.from_intended.saturating_record(whole_micros);
        self.from_send.saturating_record(stamps.sent.micros_until(stamps.last_byte));
        self.first_byte.saturating_record(stamps.sent.micros_until(stamps.first_byte));
    }

    /// A request that has failed.
    pub(crate) fn note_failed(&mut self, kind: ErrorKind, since_begin: Nanos, text: impl FnOnce() -> String) {
        self.finished += 1;
        self.note_error(kind, 1, since_begin, text);
    }

    /// Errors that belong to no request of their own.
    pub(crate) fn note_error(&mut self, kind: ErrorKind, count: u64, at: Nanos, text: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        let record = &mut self.errors[kind as usize];
        if record.count == 0 {
            record.first_nanos = at.0;
            record.sample = shortened(text());
        }
        record.count += count;
        record.last_nanos = at.0;
        self.second.errors[kind as usize] += count;
        if kind.is_failure() {
            self.second.failed += count;
        }
    }

    pub fn error(&self, kind: ErrorKind) -> &ErrorRecord {
        &self.errors[kind as usize]
    }

    /// All that went wrong; what the end of the run cut off did not.
    pub fn failed(&self) -> u64 {
        ErrorKind::ALL.iter().filter(|kind| kind.is_failure()).map(|kind| self.error(*kind).count).sum()
    }

    /// The second that is over; the next one begins.
    pub(crate) fn turn_second(&mut self) -> Second {
        self.second.connections = self.lives.open;
        std::mem::take(&mut self.second)
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        for (mine, theirs) in [
            (&mut self.started, other.started),
            (&mut self.finished, other.finished),
            (&mut self.good, other.good),
            (&mut self.body_bytes, other.body_bytes),
            (&mut self.text_bytes, other.text_bytes),
            (&mut self.head_bytes, other.head_bytes),
            (&mut self.framing_bytes, other.framing_bytes),
            (&mut self.received_bytes, other.received_bytes),
            (&mut self.connections, other.connections),
            (&mut self.left_open, other.left_open),
            (&mut self.answer_bytes, other.answer_bytes),
            (&mut self.kept, other.kept),
        ] {
            *mine += theirs;
        }
        self.status_codes.iter_mut().zip(other.status_codes.iter()).for_each(|(mine, theirs)| *mine += theirs);
        self.first_length = self.first_length.or(other.first_length);
        if self.first_read.is_empty() {
            self.first_read.clone_from(&other.first_read);
        }
        self.lives.add(&other.lives);
        if let Some(theirs) = &other.http2 {
            self.http2.get_or_insert_default().add(theirs);
        }
        if let Some(theirs) = &other.handshakes {
            self.handshakes.get_or_insert_default().add(theirs);
        }
        if let Some(theirs) = other.memcached {
            let mine = self.memcached.get_or_insert_default();
            mine.hits += theirs.hits;
            mine.misses += theirs.misses;
            mine.stored += theirs.stored;
        }
        self.errors.iter_mut().zip(&other.errors).for_each(|(mine, theirs)| mine.add(theirs));
        for (mine, theirs) in [
            (&mut self.from_intended, &other.from_intended),
            (&mut self.from_send, &other.from_send),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.connect, &other.connect),
            (&mut self.send_lag, &other.send_lag),
        ] {
            mine.add(theirs).expect("all tallies have the same bounds");
        }
        match (&mut self.sessions, &other.sessions) {
            (Some(mine), Some(theirs)) => mine.add(theirs),
            (None, theirs) => self.sessions.clone_from(theirs),
            (Some(_), None) => {}
        }
    }
}

impl ErrorRecord {
    fn add(&mut self, other: &ErrorRecord) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 || other.first_nanos < self.first_nanos {
            self.first_nanos = other.first_nanos;
            self.sample.clone_from(&other.sample);
        }
        self.last_nanos = self.last_nanos.max(other.last_nanos);
        self.count += other.count;
    }
}

impl Second {
    pub(crate) fn add(&mut self, other: &Second) {
        self.good += other.good;
        self.failed += other.failed;
        self.errors.iter_mut().zip(other.errors).for_each(|(mine, theirs)| *mine += theirs);
        self.body_bytes += other.body_bytes;
        self.connections += other.connections;
        self.from_intended.add(&other.from_intended).expect("all seconds have the same bounds");
    }
}

/// Samples come from the target: bounded, and without what would move a terminal's cursor.
/// Only where enough samples lie beyond it.
pub(crate) fn percentile_of(values: &Histogram<u64>, percentile: f64) -> Option<u64> {
    let beyond = values.len() as f64 * (100.0 - percentile) / 100.0;
    // Hundredths are no binary fractions: 100,000 times 0.1 % must count as 100.
    (beyond + 1e-6 >= SAMPLES_BEYOND_MIN).then(|| values.value_at_percentile(percentile))
}

fn shortened(text: String) -> String {
    text.chars().filter(|c| !c.is_control()).take(SAMPLE_BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::BodySeen;
    use crate::answer_coding::SaidCoding;

    #[test]
    fn tallies_add_up_and_keep_the_first_sample() {
        let stamps = |micros: u64| Stamps {
            intended: Nanos(1_000),
            sent: Nanos(51_000),
            first_byte: Nanos(61_000),
            last_byte: Nanos(1_000 + micros * 1_000),
        };
        let (mut one, mut two) = (Tally::default(), Tally::default());
        one.note_good(&stamps(100), 10);
        two.note_good(&stamps(300), 20);
        one.note_failed(ErrorKind::BadBytes, Nanos(9), || "later\r\n".to_owned());
        two.note_failed(ErrorKind::BadBytes, Nanos(5), || "first\x1b[2J".to_owned());
        two.note_failed(ErrorKind::BadBytes, Nanos(7), || unreachable!("only the first is described"));
        two.note_error(ErrorKind::ClientDeadline, 3, Nanos(8), String::new);
        assert_eq!((two.turn_second().failed, two.turn_second().failed), (2, 0));
        one.add(&two);
        assert_eq!((one.good, one.body_bytes, one.failed(), one.finished), (2, 30, 3, 5));
        let expect = ErrorRecord { count: 3, first_nanos: 5, last_nanos: 9, sample: "first[2J".to_owned() };
        assert_eq!(one.error(ErrorKind::BadBytes), &expect);
        assert_eq!((one.from_intended.max(), one.from_send.max(), one.first_byte.max()), (300, 250, 10));
        assert_eq!(one.from_intended.len(), 2, "errors are in no latency");
    }

    #[test]
    fn answers_are_counted_by_status_and_connections_as_lives() {
        let answer = |status, length| {
            let (body, persistent) = (BodySeen::Summed(0), status == 200);
            Answer { status, length, body, persistent, coding: SaidCoding::None, head_bytes: 50, framing_bytes: 1 }
        };
        let (mut one, mut two) = (Tally::default(), Tally::default());
        one.note_answer(&answer(200, 10));
        one.note_answer(&answer(503, 3));
        two.note_answer(&answer(200, 10));
        two.note_answer(&answer(9_999, 0));
        two.note_received(b"HTTP/1.1 200 OK");
        two.note_received(b"\r\n");
        for (tally, answers) in [(&mut one, 2), (&mut two, 0)] {
            tally.lives.begin();
            assert_eq!(tally.turn_second().connections, 1);
            let first_byte = (answers > 0).then_some(Nanos(3_001_000));
            tally.lives.end(&Life { begun: Nanos(1_000), first_byte, answers }, Nanos(500_001_000));
        }
        one.add(&two);
        assert_eq!((one.answers(), one.answer_bytes, one.kept, one.first_length), (4, 23, 2, Some(10)));
        assert_eq!((one.head_bytes, one.framing_bytes), (200, 4));
        assert_eq!([2, 5, 9].map(|digit| one.status_class(digit)), [2, 1, 1]);
        assert_eq!((&*one.first_read, one.received_bytes), (&b"HTTP/1.1 200 OK"[..], 17));
        let lives = &one.lives;
        assert_eq!((lives.open_max, lives.lifetime.len(), lives.answers.max(), lives.first_byte.len()), (2, 2, 2, 1));
        assert!(lives.rate.equivalent(lives.rate.max(), 4_000), "2 answers in half a second");
    }
}
