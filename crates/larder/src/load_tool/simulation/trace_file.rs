//! A trace of requests, read from an access log, a CSV file or libCacheSim's oracleGeneral format. What comes out knows
//! objects by number; names are only compared by a digest of 64 bits.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::io::{BufRead, Read};

use hashbrown::HashMap;
use lab::parse_log_line;
use store::Ask;

use crate::limits::{REASONS_TOLD_MAX, SIMULATED_REQUESTS_MAX, TRACE_LINE_BYTES_MAX};

/// A record of oracleGeneral: seconds (u32), object (u64), bytes (u32), number of the next request for it (i64), all
/// little-endian and without gaps.
const ORACLE_RECORD_BYTES: usize = 24;

/// How much is looked at to tell the format.
const LOOKED_AT_BYTES: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TraceFormat {
    /// Common, combined, JSON of larder, or squid's own
    Log,
    /// Lines of seconds, key, bytes
    Csv,
    /// libCacheSim's binary format, unpacked
    OracleGeneral,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Trace {
    pub asks: Vec<Ask>,
    /// How many different objects.
    pub objects: u32,
    /// Requests that no cache stores: other methods, other statuses.
    pub not_cacheable: u64,
    /// What larder did not store, in its own logs, by the reason that it gave: how many requests. They are left out, but for …
    pub not_stored: BTreeMap<String, u64>,
    /// … those whose reasons are to be looked past: for each request, whether it is one. Empty where there is none.
    pub would_be_stored: Vec<bool>,
    /// Lines that are none of the format's.
    pub not_understood: u64,
}

impl Trace {
    /// Bytes of all objects, each as long as it was at last.
    pub fn footprint_bytes(&self) -> u64 {
        let mut lengths = vec![0u32; self.objects as usize];
        self.asks.iter().for_each(|ask| lengths[ask.object as usize] = ask.bytes);
        lengths.into_iter().map(u64::from).sum()
    }
}

/// How a trace is read.
#[derive(Clone, Debug, Default)]
pub struct ReadAs {
    /// Told by its first bytes without.
    pub format: Option<TraceFormat>,
    /// At most so many requests.
    pub first: Option<u64>,
    /// Reasons for which larder stored nothing, that are taken not to hold.
    pub if_stored: Vec<String>,
}

/// Reads a trace. The error is a sentence.
pub fn read(from: impl Read, read_as: &ReadAs) -> Result<Trace, String> {
    let mut from = std::io::BufReader::with_capacity(LOOKED_AT_BYTES, from);
    let start = from.fill_buf().map_err(|error| error.to_string())?;
    if start.is_empty() {
        return Err("is empty".to_owned());
    }
    let format = match read_as.format {
        Some(format) => format,
        None => told_by(start)?,
    };
    let requests_max = read_as.first.unwrap_or(u64::MAX);
    let mut reading = Reading { requests_max, if_stored: read_as.if_stored.clone(), ..Reading::default() };
    match format {
        TraceFormat::OracleGeneral => reading.oracle_general(from)?,
        TraceFormat::Csv => reading.lines(from, Reading::csv_line)?,
        TraceFormat::Log => reading.lines(from, Reading::log_line)?,
    }
    let trace = reading.into_trace(format == TraceFormat::Log);
    if !read_as.if_stored.is_empty() && !trace.would_be_stored.contains(&true) {
        let reasons: Vec<&str> = trace.not_stored.keys().map(String::as_str).collect();
        let reasons = if reasons.is_empty() { "none".to_owned() } else { reasons.join(", ") };
        return Err(format!(
            "has no request that larder did not store for `{}`; its reasons are: {reasons}",
            read_as.if_stored.join("`, `")
        ));
    }
    match trace.asks.is_empty() {
        true => Err(format!(
            "has no request that a cache could answer: {} lines were not understood, {} are not cacheable",
            trace.not_understood, trace.not_cacheable
        )),
        false => Ok(trace),
    }
}

/// Packed files are named, since they look like the binary format.
fn told_by(start: &[u8]) -> Result<TraceFormat, String> {
    for (magic, unpack) in [(&b"\x1f\x8b"[..], "gzip -dc"), (b"\x28\xb5\x2f\xfd", "zstd -dc"), (b"\xfd7zXZ", "xz -dc")]
    {
        if start.starts_with(magic) {
            return Err(format!("is packed: unpack it first, as in `{unpack} FILE | larder lab simulate -`"));
        }
    }
    let first = start.split(|b| *b == b'\n').next().unwrap_or(start);
    if first.contains(&0) {
        return Ok(TraceFormat::OracleGeneral);
    }
    let is_log = parse_log_line(first).is_ok();
    let fields = first.split(|b| *b == b',').count();
    Ok(if !is_log && fields >= 3 { TraceFormat::Csv } else { TraceFormat::Log })
}

#[derive(Default)]
struct Reading {
    if_stored: Vec<String>,
    not_stored: BTreeMap<String, u64>,
    would_be_stored: Vec<bool>,
    asks: Vec<Ask>,
    numbers: HashMap<u64, u32, foldhash::fast::FixedState>,
    /// For logs: how long each object was in its longest whole answer.
    lengths: Vec<u32>,
    began: Option<u64>,
    requests_max: u64,
    not_cacheable: u64,
    not_understood: u64,
    lines_count: u64,
}

impl Reading {
    fn is_full(&self) -> bool {
        self.asks.len() as u64 >= self.requests_max
    }

    fn number(&mut self, digest: u64) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(digest).or_insert(next)
    }

    /// Times that run backwards count as the latest before them.
    fn take(&mut self, digest: u64, bytes: u64, seconds: u64) -> Result<u32, String> {
        if self.asks.len() as u64 >= SIMULATED_REQUESTS_MAX {
            return Err(format!(
                "has more than {SIMULATED_REQUESTS_MAX} requests (SIMULATED_REQUESTS_MAX): take a part of it with --first"
            ));
        }
        let object = self.number(digest);
        let since = seconds.saturating_sub(*self.began.get_or_insert(seconds));
        let at_s = u32::try_from(since).unwrap_or(u32::MAX).max(self.asks.last().map_or(0, |ask| ask.at_s));
        self.asks.push(Ask { object, bytes: u32::try_from(bytes).unwrap_or(u32::MAX), at_s });
        Ok(object)
    }

    fn lines(
        &mut self,
        mut from: impl BufRead,
        read_line: fn(&mut Reading, &[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut line = Vec::new();
        while !self.is_full() {
            line.clear();
            let taken = (&mut from).take(TRACE_LINE_BYTES_MAX).read_until(b'\n', &mut line);
            if taken.map_err(|error| error.to_string())? == 0 {
                return Ok(());
            }
            self.lines_count += 1;
            let whole = line.strip_suffix(b"\n").unwrap_or(&line).trim_ascii_end();
            match line.len() as u64 == TRACE_LINE_BYTES_MAX && line.last() != Some(&b'\n') {
                true => {
                    self.not_understood += 1;
                    from.skip_until(b'\n').map_err(|error| error.to_string())?;
                }
                false if whole.is_empty() => {}
                false => read_line(self, whole)?,
            }
        }
        Ok(())
    }

    fn log_line(&mut self, line: &[u8]) -> Result<(), String> {
        let Ok(line) = parse_log_line(line) else {
            self.not_understood += 1;
            return Ok(());
        };
        // What caches keep by default, and the answers that stand for it. A line without a status is taken as it is.
        let is_whole = matches!(line.status, None | Some(200 | 203 | 301 | 308 | 404 | 410));
        let is_cacheable =
            matches!(line.method, "GET" | "HEAD") && (is_whole || matches!(line.status, Some(206 | 304)));
        if !is_cacheable {
            self.not_cacheable += 1;
            return Ok(());
        }
        let reason = match (line.verdict, line.why) {
            (Some("pass"), why) => Some(why.unwrap_or("pass")),
            (Some("miss"), why) => why,
            _ => None,
        };
        let would_be = reason.is_some_and(|reason| self.if_stored.iter().any(|looked_past| looked_past == reason));
        if let Some(reason) = reason.filter(|_| !would_be) {
            self.leave_out(reason);
            return Ok(());
        }
        let digest = digest(&[line.host.unwrap_or_default().as_bytes(), line.target.as_bytes()]);
        let bytes = line.bytes.unwrap_or(0);
        let object = self.take(digest, bytes, line.millis / 1_000)? as usize;
        if !self.if_stored.is_empty() {
            self.would_be_stored.push(would_be);
        }
        if self.lengths.len() <= object {
            self.lengths.resize(object + 1, 0);
        }
        // A part shows at least how long the whole is.
        self.lengths[object] = self.lengths[object].max(u32::try_from(bytes).unwrap_or(u32::MAX));
        Ok(())
    }

    fn leave_out(&mut self, reason: &str) {
        let is_room = self.not_stored.len() < REASONS_TOLD_MAX || self.not_stored.contains_key(reason);
        let reason = if is_room { reason } else { "others" };
        *self.not_stored.entry(reason.to_owned()).or_default() += 1;
    }

    /// The key may hold commas. The first line may be a heading.
    fn csv_line(&mut self, line: &[u8]) -> Result<(), String> {
        let parts = std::str::from_utf8(line).ok().and_then(|line| {
            let (time, rest) = line.split_once(',')?;
            let (key, size) = rest.rsplit_once(',')?;
            let seconds: f64 = time.trim().parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0)?;
            Some((seconds as u64, key.trim(), size.trim().parse::<u64>().ok()?))
        });
        match parts {
            Some((seconds, key, size)) => self.take(digest(&[key.as_bytes()]), size, seconds).map(drop),
            None => {
                self.not_understood += u64::from(self.lines_count > 1);
                Ok(())
            }
        }
    }

    fn oracle_general(&mut self, mut from: impl BufRead) -> Result<(), String> {
        let mut record = [0u8; ORACLE_RECORD_BYTES];
        while !self.is_full() {
            let mut filled = 0;
            while filled < record.len() {
                match from.read(&mut record[filled..]).map_err(|error| error.to_string())? {
                    0 => break,
                    count => filled += count,
                }
            }
            match filled {
                0 => return Ok(()),
                ORACLE_RECORD_BYTES => {}
                _ => {
                    return Err(format!(
                        "ends within a record of {ORACLE_RECORD_BYTES} bytes: it is cut off, or no oracleGeneral"
                    ));
                }
            }
            let number = |from: usize| u32::from_le_bytes(record[from..from + 4].try_into().expect("four bytes"));
            let object = u64::from_le_bytes(record[4..12].try_into().expect("eight bytes"));
            self.take(digest(&[&object.to_le_bytes()]), u64::from(number(12)), u64::from(number(0)))?;
        }
        Ok(())
    }

    fn into_trace(mut self, is_log: bool) -> Trace {
        if is_log {
            // What a log counts is what was sent: nothing for HEAD and 304, less for a part.
            self.asks.iter_mut().for_each(|ask| ask.bytes = self.lengths[ask.object as usize]);
        }
        Trace {
            asks: self.asks,
            objects: self.numbers.len() as u32,
            not_cacheable: self.not_cacheable,
            not_stored: self.not_stored,
            would_be_stored: self.would_be_stored,
            not_understood: self.not_understood,
        }
    }
}

fn digest(parts: &[&[u8]]) -> u64 {
    foldhash::quality::FixedState::default().hash_one(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(text: &[u8]) -> Vec<(u32, u32, u32)> {
        let trace = read(text, &ReadAs::default()).expect("it is a trace");
        trace.asks.iter().map(|ask| (ask.object, ask.bytes, ask.at_s)).collect()
    }

    #[test]
    fn logs_say_which_object_and_how_long_it_is() {
        let line = |second: u32, request: &str, end: &str| {
            format!("192.0.2.1 - - [10/Oct/2000:13:55:{second:02} +0000] \"{request} HTTP/1.1\" {end} \"-\" \"x\"\n")
        };
        let log = [
            line(36, "GET /a", "206 10"),
            line(37, "GET /b", "200 7"),
            line(36, "GET /a", "200 500"),
            line(39, "HEAD /a", "200 0"),
            line(40, "GET /a", "304 0"),
            line(41, "POST /a", "200 1"),
            line(41, "GET /c", "500 1"),
            "nonsense\n".to_owned(),
        ]
        .concat();
        assert_eq!(asks(log.as_bytes()), [(0, 500, 0), (1, 7, 1), (0, 500, 1), (0, 500, 3), (0, 500, 4)]);
        let trace = read(log.as_bytes(), &ReadAs { first: Some(2), ..ReadAs::default() }).unwrap();
        assert_eq!((trace.asks.len(), trace.objects), (2, 2));
        let trace = read(log.as_bytes(), &ReadAs::default()).unwrap();
        assert_eq!((trace.not_cacheable, trace.not_understood, trace.footprint_bytes()), (2, 1, 507));
    }

    #[test]
    fn what_larder_did_not_store_is_left_out_unless_it_is_asked_what_if_it_were() {
        let line = |target: &str, end: &str| {
            format!("192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"GET {target} HTTP/1.1\" 200 10 \"-\" \"x\" {end}\n")
        };
        let log = [
            line("/a", "miss 9 -"),
            line("/a", "hit 9 -"),
            line("/b", "pass 9 cookie"),
            line("/b", "miss 9 cookie"),
            line("/c", "pass 9 -"),
        ]
        .concat();
        let trace = read(log.as_bytes(), &ReadAs::default()).unwrap();
        assert_eq!((trace.asks.len(), trace.would_be_stored.len()), (2, 0));
        assert_eq!(trace.not_stored, BTreeMap::from([("cookie".to_owned(), 2), ("pass".to_owned(), 1)]));
        let if_stored = |reason: &str| ReadAs { if_stored: vec![reason.to_owned()], ..ReadAs::default() };
        let trace = read(log.as_bytes(), &if_stored("cookie")).unwrap();
        assert_eq!(trace.would_be_stored, [false, false, true, true]);
        let why = read(log.as_bytes(), &if_stored("private")).unwrap_err();
        assert!(why.contains("its reasons are: cookie, pass"), "{why}");
    }

    #[test]
    fn so_many_reasons_are_told_apart_and_no_more() {
        let line = |why: usize| {
            format!(
                "192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 10 \"-\" \"x\" miss 9 why-{why}\n"
            )
        };
        let stored = "192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"GET /b HTTP/1.1\" 200 10 \"-\" \"x\" miss 9 -\n";
        let log: String = (0..REASONS_TOLD_MAX + 3).map(line).chain([line(0), stored.to_owned()]).collect();
        let trace = read(log.as_bytes(), &ReadAs::default()).unwrap();
        assert_eq!((trace.not_stored.len(), trace.not_stored["others"], trace.not_stored["why-0"]), (65, 3, 2));
    }

    #[test]
    fn lines_of_csv_are_seconds_key_and_bytes() {
        let csv = b"time,key,size\n10,a,5\n11.5, b,c ,6\r\n?\n12,a,5\n";
        assert_eq!(asks(csv), [(0, 5, 0), (1, 6, 1), (0, 5, 2)]);
        assert_eq!(read(&csv[..], &ReadAs::default()).unwrap().not_understood, 1, "a heading is none");
    }

    #[test]
    fn records_of_oracle_general_are_read_and_must_be_whole() {
        let record = |s: u32, object: u64, bytes: u32| {
            [&s.to_le_bytes()[..], &object.to_le_bytes(), &bytes.to_le_bytes(), &(-1i64).to_le_bytes()].concat()
        };
        let whole = [record(100, 7 << 40, 5), record(103, 1, 6), record(103, 7 << 40, 5)].concat();
        assert_eq!(asks(&whole), [(0, 5, 0), (1, 6, 3), (0, 5, 3)]);
        let why = read(&whole[..50], &ReadAs::default()).unwrap_err();
        assert!(why.contains("within a record"), "{why}");
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        for (text, part) in [
            (&b""[..], "is empty"),
            (b"\x1f\x8b\x08", "gzip -dc"),
            (b"\x28\xb5\x2f\xfd\x00", "zstd -dc"),
            (b"a\nb\n", "2 lines were not understood"),
        ] {
            let why = read(text, &ReadAs::default()).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        let long = [vec![b'x'; TRACE_LINE_BYTES_MAX as usize + 9], b"\n1,a,2\n".to_vec()].concat();
        let trace = read(&long[..], &ReadAs { format: Some(TraceFormat::Csv), ..ReadAs::default() }).unwrap();
        assert_eq!((trace.asks.len(), trace.not_understood), (1, 1));
    }
}
