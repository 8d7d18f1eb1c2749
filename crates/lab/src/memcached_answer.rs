//! The reader of one connection's memcached answers, in the classic text protocol.
//!
//! The counterpart of `http_answer` for `get` of one key and `set`. Statuses are those a gateway would give: 200 for a
//! value, 201 for `STORED`, 404 for a key that is not there, 409 for what was not stored, 400 and 500 for errors.
//! A value must come under the key that was asked for. It knows no socket, and not which
//! value would be the right one.

use crate::answer::{Answer, BodySeen, Fault, Reading};
use crate::answer_coding::SaidCoding;
use crate::error_kind::ErrorKind;
use crate::limits::MEMCACHED_LINE_BYTES_MAX;

#[derive(Debug, Default)]
pub(crate) struct MemcachedAnswerReader {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Before,
    /// The beginning of a line that comes in parts.
    Line(Vec<u8>),
    Value(Value),
}

/// A value that comes in parts, and then [`AFTER_VALUE`].
#[derive(Debug)]
struct Value {
    line_bytes: u64,
    length: u64,
    left: u64,
    checksum: crc32fast::Hasher,
    /// Of [`AFTER_VALUE`], what has come.
    after: usize,
}

/// What stands behind a value: its own line end, and that there is no other.
const AFTER_VALUE: &[u8] = b"\r\nEND\r\n";

/// What a first line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Status(u16),
    Value { length: u64 },
}

impl MemcachedAnswerReader {
    /// Reads on, and takes what it read from the front of `input`: all of it, or as far as an answer ends.
    #[inline]
    pub(crate) fn read<'i>(&mut self, input: &mut &'i [u8], reading: Reading<'_>) -> Result<Option<Answer<'i>>, Fault> {
        loop {
            match &mut self.state {
                State::Value(value) => {
                    let answer = value.read(input, reading.sums)?;
                    if answer.is_some() {
                        self.state = State::Before;
                    }
                    return Ok(answer);
                }
                State::Before => {
                    let Some(line_end) = line_end(input)? else {
                        if !input.is_empty() {
                            self.state = State::Line(std::mem::take(input).to_vec());
                        }
                        return Ok(None);
                    };
                    let (line, rest) = input.split_at(line_end);
                    *input = rest;
                    let length = match read_line(line, reading.asked)? {
                        Line::Status(status) => return Ok(Some(of_line(status, line.trim_ascii_end(), line.len()))),
                        Line::Value { length } => length,
                    };
                    if let Some(whole) = take_whole(input, length) {
                        return Ok(Some(of_value(line.len() as u64, length, BodySeen::Whole(whole))));
                    }
                    self.state = State::Value(Value::new(line.len() as u64, length));
                }
                State::Line(held) => {
                    let held_before = held.len();
                    held.extend_from_slice(input);
                    let Some(line_end) = line_end(held)? else {
                        *input = &[];
                        return Ok(None);
                    };
                    *input = &input[line_end - held_before..];
                    let line = read_line(&held[..line_end], reading.asked)?;
                    self.state = match line {
                        Line::Value { length } => State::Value(Value::new(line_end as u64, length)),
                        Line::Status(status) => {
                            let answer = of_line(status, &[], line_end);
                            self.state = State::Before;
                            return Ok(Some(answer));
                        }
                    };
                }
            }
        }
    }

    /// The server has closed, which ends no answer in good order.
    pub(crate) fn end_of_input(&mut self) -> Fault {
        let (kind, text) = match std::mem::take(&mut self.state) {
            State::Before => (ErrorKind::NoAnswer, "closed before the first byte of an answer".to_owned()),
            State::Line(held) => (ErrorKind::NoAnswer, format!("closed after {} bytes of a line", held.len())),
            State::Value(value) => {
                let got = value.length - value.left;
                (ErrorKind::ShortBody, format!("{got} bytes of a value of {}", value.length))
            }
        };
        Fault { kind, text }
    }

    /// Has anything of the answer come?
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Before)
    }
}

impl Value {
    fn new(line_bytes: u64, length: u64) -> Value {
        Value { line_bytes, length, left: length, checksum: crc32fast::Hasher::new(), after: 0 }
    }

    fn read(&mut self, input: &mut &[u8], sums: bool) -> Result<Option<Answer<'static>>, Fault> {
        let length = usize::try_from(self.left).map_or(input.len(), |left| left.min(input.len()));
        let (data, rest) = input.split_at(length);
        self.left -= length as u64;
        if sums {
            self.checksum.update(data);
        }
        let due = &AFTER_VALUE[self.after..];
        let known = due.len().min(rest.len());
        if rest[..known] != due[..known] {
            return Err(Fault::protocol("a value that does not end where its line says", rest));
        }
        *input = &rest[known..];
        self.after += known;
        let body = || BodySeen::Summed(self.checksum.clone().finalize());
        Ok((self.after == AFTER_VALUE.len()).then(|| of_value(self.line_bytes, self.length, body())))
    }
}

/// The value, if all of it and what must stand behind it is there.
fn take_whole<'i>(input: &mut &'i [u8], length: u64) -> Option<&'i [u8]> {
    let length = usize::try_from(length).ok().filter(|&length| length <= input.len())?;
    let (value, rest) = input.split_at(length);
    *input = rest.strip_prefix(AFTER_VALUE)?;
    Some(value)
}

/// Behind the LF of the first line; `None` when it has not come.
fn line_end(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let searched = &bytes[..bytes.len().min(MEMCACHED_LINE_BYTES_MAX)];
    match searched.iter().position(|&b| b == b'\n') {
        Some(at) if at > 0 && bytes[at - 1] == b'\r' => Ok(Some(at + 1)),
        Some(at) => Err(Fault::protocol("a line that ends with LF alone", &bytes[..at])),
        None if searched.len() == MEMCACHED_LINE_BYTES_MAX => {
            Err(Fault::protocol(&format!("a line of more than {MEMCACHED_LINE_BYTES_MAX} bytes"), bytes))
        }
        None => Ok(None),
    }
}

/// With its line end. What may come depends on what was asked.
fn read_line(line: &[u8], asked: &[u8]) -> Result<Line, Fault> {
    let text = &line[..line.len() - 2];
    let key = asked.strip_prefix(b"get ").map(|rest| &rest[..rest.len().saturating_sub(2)]);
    let status = match (text, key) {
        (b"END", Some(_)) => 404,
        (b"STORED", None) => 201,
        (b"NOT_STORED" | b"EXISTS" | b"NOT_FOUND", None) => 409,
        (b"ERROR", _) => 400,
        (_, Some(key)) if text.starts_with(b"VALUE ") => return read_value_line(text, key),
        _ if text.starts_with(b"CLIENT_ERROR ") => 400,
        _ if text.starts_with(b"SERVER_ERROR ") => 500,
        _ => return Err(Fault::protocol("no answer of memcached's to this", text)),
    };
    Ok(Line::Status(status))
}

/// `VALUE <key> <flags> <bytes>`; nothing asked for a fifth word.
fn read_value_line(text: &[u8], key: &[u8]) -> Result<Line, Fault> {
    let mut words = text.split(|&b| b == b' ').skip(1);
    if words.next() != Some(key) {
        return Err(Fault::protocol("a value of another key", text));
    }
    let number = |word: Option<&[u8]>| {
        let digits = word.filter(|word| !word.is_empty() && word.iter().all(u8::is_ascii_digit))?;
        std::str::from_utf8(digits).ok()?.parse::<u32>().ok()
    };
    match (number(words.next()), number(words.next()), words.next()) {
        (Some(_), Some(length), None) => Ok(Line::Value { length: u64::from(length) }),
        _ => Err(Fault::protocol("a VALUE line of another form", text)),
    }
}

/// No value: but the line itself stands for it where it can, so that a report may quote it.
fn of_line(status: u16, line: &[u8], line_bytes: usize) -> Answer<'_> {
    let (body, head_bytes) = (BodySeen::Whole(line), line_bytes as u64);
    Answer { status, length: 0, body, persistent: true, coding: SaidCoding::None, head_bytes, framing_bytes: 0 }
}

fn of_value(line_bytes: u64, length: u64, body: BodySeen<'_>) -> Answer<'_> {
    let framing_bytes = AFTER_VALUE.len() as u64;
    Answer {
        status: 200,
        length,
        body,
        persistent: true,
        coding: SaidCoding::None,
        head_bytes: line_bytes,
        framing_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status and value, or what is wrong, wherever the text is split.
    type Expected<'t> = Result<(u16, &'t str), (ErrorKind, &'t str)>;

    fn check(asked: &str, text: &str, expect: &[Expected<'_>]) {
        let reading = Reading { asked: asked.as_bytes(), sums: true, keeps: false };
        for split in 0..=text.len() {
            let (mut reader, mut got) = (MemcachedAnswerReader::default(), Vec::new());
            'parts: for part in [&text.as_bytes()[..split], &text.as_bytes()[split..]] {
                let mut input = part;
                while !input.is_empty() {
                    match reader.read(&mut input, reading) {
                        Ok(None) => assert!(input.is_empty()),
                        Ok(Some(answer)) => {
                            let sum = if answer.status == 200 { answer.body.checksum() } else { 0 };
                            got.push(Ok((answer.status, answer.length, sum)));
                        }
                        Err(fault) => {
                            got.push(Err(fault));
                            reader = MemcachedAnswerReader::default();
                            break 'parts;
                        }
                    }
                }
            }
            if reader.has_begun() {
                got.push(Err(reader.end_of_input()));
            }
            let shown = format!("{text:?} split at {split}: {got:?}");
            assert_eq!(got.len(), expect.len(), "{shown}");
            for pair in got.into_iter().zip(expect) {
                match pair {
                    (Ok(got), &Ok((status, value))) => {
                        let sum = crc32fast::hash(value.as_bytes());
                        assert_eq!(got, (status, value.len() as u64, sum), "{shown}");
                    }
                    (Err(fault), Err((kind, part))) => {
                        assert!(fault.kind == *kind && fault.text.contains(part), "{shown}");
                    }
                    _ => panic!("{shown}"),
                }
            }
        }
    }

    #[test]
    fn answers_are_read() {
        check("get k\r\n", "VALUE k 0 5\r\na\r\nbc\r\nEND\r\n", &[Ok((200, "a\r\nbc"))]);
        check("get k\r\n", "END\r\nVALUE k 7 0\r\n\r\nEND\r\n", &[Ok((404, "")), Ok((200, ""))]);
        check("set k 0 0 1\r\nx\r\n", "STORED\r\nNOT_STORED\r\n", &[Ok((201, "")), Ok((409, ""))]);
        check("set k 0 0 1\r\nx\r\n", "SERVER_ERROR out of memory\r\nERROR\r\n", &[Ok((500, "")), Ok((400, ""))]);
        check("get k\r\n", "CLIENT_ERROR bad\r\n", &[Ok((400, ""))]);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let refused =
            |asked: &str, text: &str, part: &str| check(asked, text, &[Err((ErrorKind::ProtocolError, part))]);
        refused("get k\r\n", "VALUE l 0 1\r\n", "another key");
        refused("get k\r\n", "VALUE k 0\r\n", "another form");
        refused("get k\r\n", "VALUE k 0 1 9\r\n", "another form");
        refused("get k\r\n", "VALUE k x 1\r\n", "another form");
        refused("get k\r\n", "VALUE k 0 99999999999\r\n", "another form");
        refused("get k\r\n", "VALUE k 0 1\r\nab\r\nEND\r\n", "does not end");
        refused("get k\r\n", "VALUE k 0 1\r\na\r\nVALUE", "does not end");
        refused("get k\r\n", "STORED\r\n", "no answer");
        refused("set k 0 0 1\r\nx\r\n", "END\r\n", "no answer");
        refused("get k\r\n", "END\n", "LF alone");
        refused("get k\r\n", "\n", "LF alone");
        refused("get k\r\n", "HTTP/1.1 400 Bad\r\n", "no answer");
        let long = "x".repeat(MEMCACHED_LINE_BYTES_MAX);
        refused("get k\r\n", &long, "more than 2048");
    }

    #[test]
    fn what_ends_early_is_told_apart() {
        check("get k\r\n", "VALUE k 0 5\r\nabc", &[Err((ErrorKind::ShortBody, "3 bytes of a value of 5"))]);
        check("get k\r\n", "VALUE k 0 3\r\nabc\r\nEN", &[Err((ErrorKind::ShortBody, "3 bytes of a value of 3"))]);
        check("get k\r\n", "VALUE", &[Err((ErrorKind::NoAnswer, "5 bytes of a line"))]);
    }
}
