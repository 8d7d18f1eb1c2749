//! Replies of a memcached: bytes in, one whole reply out, or how many bytes it will have, or what is wrong with it.
//!
//! A reply is read in the light of what was asked: a word that answers another command, a value of another key, or one
//! that does not end where its line says is a fault, after which nothing that follows can be trusted. It holds nothing
//! between two calls and reserves nothing: a caller that is told `More` calls again with more behind the same bytes.

use std::ops::Range;

use crate::limits::{MEMCACHED_LINE_BYTES_MAX, MEMCACHED_LINES_BYTES_MAX};
use crate::memcached::command_text::{Expected, is_said};

/// How far the bytes go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not a whole reply yet; it will have at least so many bytes.
    More { whole_bytes_min: usize },
    Whole {
        reply: Reply,
        /// Bytes of the input that it is; without a value, this is its text.
        consumed: usize,
    },
}

/// A reply. Ranges are into the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Item(Item),
    /// There is no such item.
    Miss,
    Stored {
        cas: Option<u64>,
    },
    /// The condition of `add`, `replace`, `append` or `prepend` does not hold.
    NotStored,
    /// The item is another one by now.
    Exists,
    NotFound,
    Deleted,
    /// `OK`, and `HD` of what stores no value.
    Done,
    Number {
        digits: Range<usize>,
    },
    /// `STAT` lines with their `END`, or the one word that answers some of them.
    Lines,
    Version {
        text: Range<usize>,
    },
    /// What memcached remembers of an item.
    Debug {
        text: Range<usize>,
    },
    /// `ERROR`, `CLIENT_ERROR` or `SERVER_ERROR`.
    Error {
        of: Blame,
        text: Range<usize>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    pub flags: u32,
    pub cas: Option<u64>,
    /// Seconds that it has left to live; −1: for good. Only the meta protocol says so.
    pub ttl_s: Option<i64>,
    pub value: Range<usize>,
    /// Of the value, whether it was asked for or not.
    pub value_bytes: u64,
    /// It was marked as stale, and this reader is the one who is to fetch it anew.
    pub is_stale: bool,
    pub is_won: bool,
}

/// Who is wrong, by the server's own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// It knows no such command.
    Command,
    Client,
    Server,
}

/// What a reply is read against.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub expected: Expected,
    /// As it was sent.
    pub key: &'a [u8],
    pub value_bytes_max: usize,
}

/// Why bytes are no reply to what was asked. The connection cannot be used any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyFault {
    LineTooLong,
    /// A line ends in CR LF.
    LineEnd,
    /// No reply at all, or one to another command.
    Unexpected,
    OtherKey,
    /// Numbers or flags of a value's line.
    ValueLine,
    ValueTooLarge,
    /// The value is longer or shorter than its line says.
    ValueEnd,
    LinesTooLong,
}

impl ReplyFault {
    pub const fn token(self) -> &'static str {
        match self {
            ReplyFault::LineTooLong => "memcached-line-too-long",
            ReplyFault::LineEnd => "memcached-line-end",
            ReplyFault::Unexpected => "memcached-reply-unexpected",
            ReplyFault::OtherKey => "memcached-other-key",
            ReplyFault::ValueLine => "memcached-value-line",
            ReplyFault::ValueTooLarge => "memcached-value-too-large",
            ReplyFault::ValueEnd => "memcached-value-end",
            ReplyFault::LinesTooLong => "memcached-lines-too-long",
        }
    }
}

/// Reads one reply at the start of `input`.
pub fn read_reply(input: &[u8], asked: &Asked<'_>) -> Result<Progress, ReplyFault> {
    let Some(line_end) = line_end(input)? else { return Ok(Progress::More { whole_bytes_min: input.len() + 1 }) };
    let line = &input[..line_end - 2];
    if asked.expected == Expected::Silence {
        return read_silence(input);
    }
    if let Some(reply) = read_error(line) {
        return Ok(Progress::Whole { reply, consumed: line_end });
    }
    let reply = match asked.expected {
        Expected::Value if line == b"END" => Reply::Miss,
        Expected::Value => return read_value(input, line_end, asked),
        Expected::MetaValue if is_meta_miss(line, asked.key)? => Reply::Miss,
        Expected::MetaValue => return read_meta_value(input, line_end, asked),
        Expected::MetaFacts if is_meta_miss(line, asked.key)? => Reply::Miss,
        Expected::MetaFacts => Reply::Item(read_meta_facts(line, asked)?),
        Expected::MetaNumber if line.starts_with(b"VA ") => return read_meta_number(input, line_end),
        Expected::Lines if line != b"OK" && line != b"RESET" => return read_lines(input),
        _ => read_word(line, asked.expected).ok_or(ReplyFault::Unexpected)?,
    };
    Ok(Progress::Whole { reply, consumed: line_end })
}

/// Behind the LF of the first line; `None` when it has not come.
fn line_end(input: &[u8]) -> Result<Option<usize>, ReplyFault> {
    let searched = &input[..input.len().min(MEMCACHED_LINE_BYTES_MAX)];
    match searched.iter().position(|&b| b == b'\n') {
        Some(at) if at > 0 && input[at - 1] == b'\r' => Ok(Some(at + 1)),
        Some(_) => Err(ReplyFault::LineEnd),
        None if searched.len() == MEMCACHED_LINE_BYTES_MAX => Err(ReplyFault::LineTooLong),
        None => Ok(None),
    }
}

fn read_error(line: &[u8]) -> Option<Reply> {
    let of = match line {
        b"ERROR" => Blame::Command,
        _ if line.starts_with(b"ERROR ") => Blame::Command,
        _ if line.starts_with(b"CLIENT_ERROR ") => Blame::Client,
        _ if line.starts_with(b"SERVER_ERROR ") => Blame::Server,
        _ => return None,
    };
    Some(Reply::Error { of, text: 0..line.len() })
}

/// The replies of one line.
fn read_word(line: &[u8], expected: Expected) -> Option<Reply> {
    Some(match (expected, line) {
        (Expected::Stored, b"STORED") => Reply::Stored { cas: None },
        (Expected::Stored, b"NOT_STORED") => Reply::NotStored,
        (Expected::Stored, b"EXISTS") => Reply::Exists,
        (Expected::Stored | Expected::Deleted | Expected::Number, b"NOT_FOUND") => Reply::NotFound,
        (Expected::Deleted, b"DELETED") => Reply::Deleted,
        (Expected::Done, b"OK") => Reply::Done,
        (Expected::Lines, b"OK" | b"RESET") => Reply::Lines,
        (Expected::Number, digits) if is_digits(digits) => Reply::Number { digits: 0..digits.len() },
        (Expected::Version, _) => {
            Reply::Version { text: VERSION.len()..line.strip_prefix(VERSION)?.len() + VERSION.len() }
        }
        (Expected::MetaStatus | Expected::MetaNumber, _) => return read_meta_status(line),
        (Expected::Noop, b"MN") => Reply::Done,
        (Expected::MetaDebug, b"EN") => Reply::Miss,
        (Expected::MetaDebug, _) => Reply::Debug { text: 3..line.strip_prefix(b"ME ")?.len() + 3 },
        _ => return None,
    })
}

const VERSION: &[u8] = b"VERSION ";

/// `EN`, behind which old servers say the key that was asked for.
fn is_meta_miss(line: &[u8], key: &[u8]) -> Result<bool, ReplyFault> {
    match line.strip_prefix(b"EN").map(|rest| rest.strip_prefix(b" k")) {
        None => Ok(false),
        Some(None) => Ok(line == b"EN"),
        Some(Some(said)) => match said.strip_suffix(b" b") {
            Some(encoded) if is_said(encoded, true, key) => Ok(true),
            None if is_said(said, false, key) => Ok(true),
            _ => Err(ReplyFault::OtherKey),
        },
    }
}

/// What a quiet command has to say, up to the `MN` behind it: its failure, if it failed.
fn read_silence(input: &[u8]) -> Result<Progress, ReplyFault> {
    let (mut at, mut failure) = (0, None);
    while let Some(length) = line_end(&input[at..])? {
        let line = &input[at..at + length - 2];
        let text = at..at + length - 2;
        at += length;
        match (read_error(line), read_meta_status(line)) {
            _ if line == b"MN" => {
                return Ok(Progress::Whole { reply: failure.unwrap_or(Reply::Done), consumed: at });
            }
            (Some(Reply::Error { of, .. }), _) => failure = Some(Reply::Error { of, text }),
            (_, Some(reply)) => failure = Some(reply),
            _ => return Err(ReplyFault::Unexpected),
        }
        if at > MEMCACHED_LINE_BYTES_MAX {
            return Err(ReplyFault::LinesTooLong);
        }
    }
    Ok(Progress::More { whole_bytes_min: input.len() + 1 })
}

fn read_meta_status(line: &[u8]) -> Option<Reply> {
    let (word, rest) = line.split_at_checked(2)?;
    let mut cas = None;
    for flag in words(rest) {
        match flag.split_first()? {
            (b'c', digits) => cas = Some(number::<u64>(digits)?),
            // Of a stale item: this one, or another, is to fetch it anew. And that the key came as base64.
            (b'W' | b'X' | b'Z' | b'b', b"") => {}
            _ => return None,
        }
    }
    if !(rest.is_empty() || rest[0] == b' ') {
        return None;
    }
    Some(match word {
        b"HD" => Reply::Stored { cas },
        b"NS" => Reply::NotStored,
        b"EX" => Reply::Exists,
        b"NF" => Reply::NotFound,
        b"EN" => Reply::Miss,
        _ => return None,
    })
}

/// `VALUE <key> <flags> <bytes> [<cas>]`, the value, and `END`.
fn read_value(input: &[u8], line_end: usize, asked: &Asked<'_>) -> Result<Progress, ReplyFault> {
    let line = input[..line_end - 2].strip_prefix(b"VALUE ").ok_or(ReplyFault::Unexpected)?;
    let mut words = line.split(|&b| b == b' ');
    if words.next() != Some(asked.key) {
        return Err(ReplyFault::OtherKey);
    }
    let flags = words.next().and_then(number::<u32>).ok_or(ReplyFault::ValueLine)?;
    let length = words.next().and_then(number::<u64>).ok_or(ReplyFault::ValueLine)?;
    let cas = match words.next() {
        None => None,
        Some(word) => Some(number::<u64>(word).ok_or(ReplyFault::ValueLine)?),
    };
    if words.next().is_some() {
        return Err(ReplyFault::ValueLine);
    }
    let item = Item { flags, cas, value_bytes: length, ..Item::default() };
    end_value(input, line_end, length, b"\r\nEND\r\n", asked, item)
}

/// `VA <bytes> <flags>*` and the value. What was asked for must be said, and once.
fn read_meta_value(input: &[u8], line_end: usize, asked: &Asked<'_>) -> Result<Progress, ReplyFault> {
    let line = input[..line_end - 2].strip_prefix(b"VA ").ok_or(ReplyFault::Unexpected)?;
    let (word, rest) = line.iter().position(|&b| b == b' ').map_or((line, &b""[..]), |at| line.split_at(at));
    let length = number::<u64>(word).ok_or(ReplyFault::ValueLine)?;
    let item = read_facts(rest, Some(length), asked)?;
    end_value(input, line_end, length, b"\r\n", asked, item)
}

/// `HD <flags>*`
fn read_meta_facts(line: &[u8], asked: &Asked<'_>) -> Result<Item, ReplyFault> {
    read_facts(line.strip_prefix(b"HD").ok_or(ReplyFault::Unexpected)?, None, asked)
}

/// ` <flags>*`, with the length among them where no value says it.
fn read_facts(text: &[u8], length: Option<u64>, asked: &Asked<'_>) -> Result<Item, ReplyFault> {
    if !(text.is_empty() || text[0] == b' ') {
        return Err(ReplyFault::Unexpected);
    }
    let (mut flags, mut cas, mut ttl_s, mut key, mut size) = (None, None, None, None, length);
    let (mut item, mut in_base64) = (Item::default(), false);
    for word in words(text) {
        let (letter, said) = word.split_first().ok_or(ReplyFault::ValueLine)?;
        let first = match letter {
            b'f' => flags.replace(number::<u32>(said).ok_or(ReplyFault::ValueLine)?).is_none(),
            b'c' => cas.replace(number::<u64>(said).ok_or(ReplyFault::ValueLine)?).is_none(),
            b't' => ttl_s.replace(seconds(said).ok_or(ReplyFault::ValueLine)?).is_none(),
            b's' => size.replace(number::<u64>(said).ok_or(ReplyFault::ValueLine)?).is_none(),
            b'k' => key.replace(said).is_none(),
            b'b' if said.is_empty() => !std::mem::replace(&mut in_base64, true),
            b'W' if said.is_empty() => !std::mem::replace(&mut item.is_won, true),
            b'X' if said.is_empty() => !std::mem::replace(&mut item.is_stale, true),
            // Somebody else has won already.
            b'Z' if said.is_empty() => true,
            _ => false,
        };
        if !first {
            return Err(ReplyFault::ValueLine);
        }
    }
    if !key.is_some_and(|said| is_said(said, in_base64, asked.key)) {
        return Err(ReplyFault::OtherKey);
    }
    let (Some(flags), Some(cas), Some(ttl_s), Some(value_bytes)) = (flags, cas, ttl_s, size) else {
        return Err(ReplyFault::ValueLine);
    };
    Ok(Item { flags, cas: Some(cas), ttl_s: Some(ttl_s), value_bytes, ..item })
}

/// The value, and that nothing but `after` stands behind it, as soon as that can be seen.
fn end_value(
    input: &[u8],
    line_end: usize,
    length: u64,
    after: &[u8],
    asked: &Asked<'_>,
    item: Item,
) -> Result<Progress, ReplyFault> {
    let length = usize::try_from(length).ok().filter(|&length| length <= asked.value_bytes_max);
    let length = length.ok_or(ReplyFault::ValueTooLarge)?;
    let value = line_end..line_end + length;
    let behind = input.get(value.end..).unwrap_or_default();
    let known = behind.len().min(after.len());
    if behind[..known] != after[..known] {
        return Err(ReplyFault::ValueEnd);
    }
    let consumed = value.end + after.len();
    Ok(match known == after.len() {
        true => Progress::Whole { reply: Reply::Item(Item { value, ..item }), consumed },
        false => Progress::More { whole_bytes_min: consumed },
    })
}

/// `VA <bytes> <flags>*` and a number.
fn read_meta_number(input: &[u8], line_end: usize) -> Result<Progress, ReplyFault> {
    const DIGITS_MAX: usize = 20;
    let mut words = input[3..line_end - 2].split(|&b| b == b' ');
    let length =
        words.next().and_then(number::<u8>).map(usize::from).filter(|length| (1..=DIGITS_MAX).contains(length));
    let length = length.ok_or(ReplyFault::ValueLine)?;
    for word in words {
        match word.split_first() {
            Some((b'c', said)) if is_digits(said) => {}
            _ => return Err(ReplyFault::ValueLine),
        }
    }
    let (digits, consumed) = (line_end..line_end + length, line_end + length + 2);
    if input.len() < consumed {
        return Ok(Progress::More { whole_bytes_min: consumed });
    }
    let is_whole = is_digits(&input[digits.clone()]) && &input[digits.end..consumed] == b"\r\n";
    is_whole.then_some(Progress::Whole { reply: Reply::Number { digits }, consumed }).ok_or(ReplyFault::ValueEnd)
}

/// `STAT` lines up to `END`. Some statistics answer with lines of other forms; all end alike.
fn read_lines(input: &[u8]) -> Result<Progress, ReplyFault> {
    let mut at = 0;
    while let Some(length) = line_end(&input[at..])? {
        let line = &input[at..at + length - 2];
        at += length;
        if at > MEMCACHED_LINES_BYTES_MAX {
            return Err(ReplyFault::LinesTooLong);
        }
        if line == b"END" {
            return Ok(Progress::Whole { reply: Reply::Lines, consumed: at });
        }
        if !line.starts_with(b"STAT ") {
            return Err(ReplyFault::Unexpected);
        }
    }
    Ok(Progress::More { whole_bytes_min: input.len() + 1 })
}

/// Behind a first word: each word with one blank before it.
fn words(rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    rest.split(|&b| b == b' ').skip(1)
}

fn is_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    if !is_digits(text) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Seconds to live; -1: for good.
fn seconds(text: &[u8]) -> Option<i64> {
    match text {
        b"-1" => Some(-1),
        _ => number(text),
    }
}

#[cfg(test)]
#[path = "reply_reader_tests.rs"]
mod tests;
