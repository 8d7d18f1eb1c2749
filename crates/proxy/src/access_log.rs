//! One line for each answer: Apache's combined format with our own columns behind it, or one JSON object.
//!
//! The last step of the story. It runs for every hit, so there is no `fmt` machinery, the date is text made once
//! a second, and a field that needs no escaping is one scan and one copy. Whatever a client sent stays on its
//! one line and inside its quotes. It does not know who writes the lines, or where to.

use std::cell::Cell;
use std::net::IpAddr;

use message::{Version, write_address};

use crate::limits;
use crate::settings::LogFormat;

/// What the log says of one answer.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub wall_ms: u64,
    /// The client's address; one on a UNIX socket has loopback's.
    pub client: IpAddr,
    /// Empty when no request line could be read.
    pub method: &'a [u8],
    pub path: &'a [u8],
    pub query: Option<&'a [u8]>,
    pub version: Version,
    pub host: Option<&'a [u8]>,
    pub referer: Option<&'a [u8]>,
    pub user_agent: Option<&'a [u8]>,
    pub status: u16,
    /// Bytes of the body that went out.
    pub body_bytes: u64,
    pub verdict: CacheVerdict,
    pub micros: u64,
    /// The token of a refusal, a failure or a reason not to store; empty when there is nothing to say.
    pub why: &'static str,
}

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheVerdict {
    Hit,
    /// A hit on an object that was no longer fresh.
    Stale,
    /// The origin confirmed what was stored.
    Revalidated,
    Miss,
    /// Served from a fetch that somebody else had begun.
    Coalesced,
    Pass,
    Pipe,
    Purge,
    /// Made by us on purpose.
    Synth,
    /// Made by us because an origin failed.
    Error,
    /// Malformed, over a limit, or not allowed.
    Refused,
}

impl CacheVerdict {
    pub const fn token(self) -> &'static str {
        match self {
            CacheVerdict::Hit => "hit",
            CacheVerdict::Stale => "stale",
            CacheVerdict::Revalidated => "revalidated",
            CacheVerdict::Miss => "miss",
            CacheVerdict::Coalesced => "coalesced",
            CacheVerdict::Pass => "pass",
            CacheVerdict::Pipe => "pipe",
            CacheVerdict::Purge => "purge",
            CacheVerdict::Synth => "synth",
            CacheVerdict::Error => "error",
            CacheVerdict::Refused => "refused",
        }
    }
}

/// Appends the record's line, line feed included.
#[inline]
pub fn write_record(out: &mut Vec<u8>, record: &Record<'_>, dates: &DateCache, format: LogFormat) {
    match format {
        LogFormat::Combined => write_combined(out, record, dates),
        LogFormat::Json => write_json(out, record, dates),
    }
}

/// `client - - [date] "METHOD target HTTP/x" status bytes "referer" "user agent" verdict micros why`.
/// Nothing to say is `-`; times are UTC.
pub fn write_combined(out: &mut Vec<u8>, record: &Record<'_>, dates: &DateCache) {
    write_address(out, record.client);
    out.extend_from_slice(&dates.of(record.wall_ms).combined);
    if record.method.is_empty() {
        out.push(b'-');
    } else {
        escape_combined(out, record.method, limits::LOG_METHOD_BYTES_MAX);
        out.push(b' ');
        write_target(out, record, escape_combined);
        out.extend_from_slice(match record.version {
            Version::Http10 => b" HTTP/1.0",
            Version::Http11 => b" HTTP/1.1",
        });
    }
    out.extend_from_slice(b"\" ");
    write_number(out, u64::from(record.status));
    out.push(b' ');
    write_number(out, record.body_bytes);
    out.extend_from_slice(b" \"");
    escape_combined(out, or_dash(record.referer), limits::LOG_FIELD_BYTES_MAX);
    out.extend_from_slice(b"\" \"");
    escape_combined(out, or_dash(record.user_agent), limits::LOG_FIELD_BYTES_MAX);
    out.extend_from_slice(b"\" ");
    out.extend_from_slice(record.verdict.token().as_bytes());
    out.push(b' ');
    write_number(out, record.micros);
    out.push(b' ');
    out.extend_from_slice(if record.why.is_empty() { b"-" } else { record.why.as_bytes() });
    out.push(b'\n');
}

/// One JSON object (RFC 8259); a field the client did not send is left out.
pub fn write_json(out: &mut Vec<u8>, record: &Record<'_>, dates: &DateCache) {
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(&dates.of(record.wall_ms).iso);
    out.push(b'.');
    let millis = (record.wall_ms % 1_000) as usize;
    out.extend_from_slice(&[digit(millis / 100), digit(millis / 10 % 10), digit(millis % 10)]);
    out.extend_from_slice(b"Z\",\"client\":\"");
    write_address(out, record.client);
    if !record.method.is_empty() {
        out.extend_from_slice(b"\",\"method\":\"");
        escape_json(out, record.method, limits::LOG_METHOD_BYTES_MAX);
        out.extend_from_slice(b"\",\"target\":\"");
        write_target(out, record, escape_json);
        out.extend_from_slice(b"\",\"version\":\"");
        out.extend_from_slice(record.version.number().as_bytes());
    }
    out.extend_from_slice(b"\",\"status\":");
    write_number(out, u64::from(record.status));
    out.extend_from_slice(b",\"bytes\":");
    write_number(out, record.body_bytes);
    out.extend_from_slice(b",\"verdict\":\"");
    out.extend_from_slice(record.verdict.token().as_bytes());
    out.extend_from_slice(b"\",\"micros\":");
    write_number(out, record.micros);
    if !record.why.is_empty() {
        out.extend_from_slice(b",\"why\":\"");
        out.extend_from_slice(record.why.as_bytes());
        out.push(b'"');
    }
    for (name, value) in [
        (&b",\"host\":\""[..], record.host),
        (b",\"referer\":\"", record.referer),
        (b",\"user_agent\":\"", record.user_agent),
    ] {
        if let Some(value) = value {
            out.extend_from_slice(name);
            escape_json(out, value, limits::LOG_FIELD_BYTES_MAX);
            out.push(b'"');
        }
    }
    out.extend_from_slice(b"}\n");
}

#[inline]
fn or_dash(value: Option<&[u8]>) -> &[u8] {
    value.filter(|v| !v.is_empty()).unwrap_or(b"-")
}

#[inline]
fn write_target(out: &mut Vec<u8>, record: &Record<'_>, escape: impl Fn(&mut Vec<u8>, &[u8], usize)) {
    escape(out, record.path, limits::LOG_TARGET_BYTES_MAX);
    if let Some(query) = record.query {
        out.push(b'?');
        escape(out, query, limits::LOG_TARGET_BYTES_MAX.saturating_sub(record.path.len()));
    }
}

/// What stands where a field was cut.
const CUT: &[u8] = b"...";

#[inline]
fn is_plain(b: u8) -> bool {
    (b' '..0x7f).contains(&b) & (b != b'"') & (b != b'\\')
}

/// A fold without an early end: the compiler makes vector instructions of it.
#[inline]
fn all_plain(text: &[u8]) -> bool {
    text.iter().fold(true, |plain, &b| plain & is_plain(b))
}

#[inline]
fn escape_combined(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) {
    if text.len() <= bytes_max && all_plain(text) {
        out.extend_from_slice(text);
    } else {
        escape_combined_slowly(out, text, bytes_max);
    }
}

#[cold]
fn escape_combined_slowly(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) {
    for &b in &text[..text.len().min(bytes_max)] {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            b if is_plain(b) => out.push(b),
            b => out.extend_from_slice(&[b'\\', b'x', hex(b >> 4), hex(b & 15)]),
        }
    }
    if text.len() > bytes_max {
        out.extend_from_slice(CUT);
    }
}

#[inline]
fn escape_json(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) {
    if text.len() <= bytes_max && all_plain(text) {
        out.extend_from_slice(text);
    } else {
        escape_json_slowly(out, text, bytes_max);
    }
}

/// UTF-8 stays as it is, but for control characters. A byte that is no UTF-8 reads `\xHH` once the JSON is decoded,
/// as it does in the combined format.
#[cold]
fn escape_json_slowly(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) {
    let kept = &text[..text.len().min(bytes_max)];
    let mut chunks = kept.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => out.extend_from_slice(&[b'\\', c as u8]),
                // C0, DEL and C1: a terminal may act on any of them.
                c if c.is_control() => {
                    out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(c as u8 >> 4), hex(c as u8 & 15)]);
                }
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        let cut_by_us = chunks.peek().is_none() && text.len() > bytes_max;
        for &b in chunk.invalid().iter().filter(|_| !cut_by_us) {
            out.extend_from_slice(&[b'\\', b'\\', b'x', hex(b >> 4), hex(b & 15)]);
        }
    }
    if text.len() > bytes_max {
        out.extend_from_slice(CUT);
    }
}

#[inline]
fn hex(nibble: u8) -> u8 {
    b"0123456789abcdef"[usize::from(nibble & 15)]
}

#[inline]
fn digit(n: usize) -> u8 {
    b'0' + (n % 10) as u8
}

const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

#[inline]
fn write_number(out: &mut Vec<u8>, mut n: u64) {
    let mut text = [0u8; 20];
    let mut at = text.len();
    while n >= 10 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[(n % 100) as usize]);
        n /= 100;
    }
    if n > 0 || at == text.len() {
        at -= 1;
        text[at] = digit(n as usize);
    }
    out.extend_from_slice(&text[at..]);
}

/// The texts of the last second asked for. One per core.
#[derive(Debug, Default)]
pub struct DateCache {
    last: Cell<DateTexts>,
}

#[derive(Clone, Copy, Debug)]
struct DateTexts {
    second: u64,
    /// ` - - [10/Oct/2000:13:55:36 +0000] "`
    combined: [u8; 35],
    /// `2000-10-10T13:55:36`
    iso: [u8; 19],
}

impl Default for DateTexts {
    fn default() -> DateTexts {
        DateTexts::of_second(0)
    }
}

impl DateCache {
    #[inline]
    fn of(&self, wall_ms: u64) -> DateTexts {
        let second = wall_ms / 1_000;
        let last = self.last.get();
        if last.second == second {
            return last;
        }
        let texts = DateTexts::of_second(second);
        self.last.set(texts);
        texts
    }
}

impl DateTexts {
    #[cold]
    fn of_second(second: u64) -> DateTexts {
        const MONTHS: [&[u8; 3]; 12] =
            [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
        let (year, month, day) = civil_from_days(second / 86_400);
        let of_day = (second % 86_400) as usize;
        let [h, m, s] = [of_day / 3_600, of_day / 60 % 60, of_day % 60].map(|n| PAIRS[n]);
        let [century, of_century, d, mon] = [year / 100 % 100, year % 100, day, month].map(|n| PAIRS[n]);

        let mut combined = *b" - - [00/Jan/0000:00:00:00 +0000] \"";
        combined[6..8].copy_from_slice(&d);
        combined[9..12].copy_from_slice(MONTHS[month - 1]);
        combined[13..15].copy_from_slice(&century);
        combined[15..17].copy_from_slice(&of_century);
        combined[18..20].copy_from_slice(&h);
        combined[21..23].copy_from_slice(&m);
        combined[24..26].copy_from_slice(&s);

        let mut iso = *b"0000-00-00T00:00:00";
        for (at, pair) in [(0, century), (2, of_century), (5, mon), (8, d), (11, h), (14, m), (17, s)] {
            iso[at..at + 2].copy_from_slice(&pair);
        }
        DateTexts { second, combined, iso }
    }
}

/// Year, month and day of the proleptic Gregorian calendar; the year starts in March so that the leap day is last.
fn civil_from_days(days_since_1970: u64) -> (usize, usize, usize) {
    let days = days_since_1970 as usize + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + usize::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Record<'static> {
        Record {
            wall_ms: 971_186_136_007,
            client: IpAddr::from([192, 0, 2, 7]),
            method: b"GET",
            path: b"/a",
            query: Some(b"b=1"),
            version: Version::Http11,
            host: Some(b"t.test"),
            referer: None,
            user_agent: Some(b"curl/8.14"),
            status: 200,
            body_bytes: 6221,
            verdict: CacheVerdict::Hit,
            micros: 17,
            why: "",
        }
    }

    fn lines(record: &Record<'_>) -> (String, String) {
        let (mut combined, mut json) = (Vec::new(), Vec::new());
        write_combined(&mut combined, record, &DateCache::default());
        write_json(&mut json, record, &DateCache::default());
        (String::from_utf8(combined).unwrap(), String::from_utf8(json).unwrap())
    }

    #[test]
    fn a_line_says_who_asked_what_and_how_it_went() {
        let (combined, json) = lines(&sample());
        assert_eq!(
            combined,
            "192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \"GET /a?b=1 HTTP/1.1\" 200 6221 \"-\" \"curl/8.14\" hit 17 -\n"
        );
        assert_eq!(
            json,
            "{\"time\":\"2000-10-10T13:55:36.007Z\",\"client\":\"192.0.2.7\",\"method\":\"GET\",\"target\":\"/a?b=1\",\
             \"version\":\"1.1\",\"status\":200,\"bytes\":6221,\"verdict\":\"hit\",\"micros\":17,\"host\":\"t.test\",\
             \"user_agent\":\"curl/8.14\"}\n"
        );
    }

    #[test]
    fn a_request_that_could_not_be_read_has_a_line_too() {
        let refused = Record {
            method: b"",
            path: b"",
            query: None,
            host: None,
            user_agent: None,
            status: 400,
            body_bytes: 0,
            verdict: CacheVerdict::Refused,
            why: "host-missing",
            ..sample()
        };
        let (combined, json) = lines(&refused);
        assert!(combined.ends_with("] \"-\" 400 0 \"-\" \"-\" refused 17 host-missing\n"), "{combined}");
        assert!(
            json.ends_with(
                "\"status\":400,\"bytes\":0,\"verdict\":\"refused\",\"micros\":17,\"why\":\"host-missing\"}\n"
            )
        );
    }

    /// The user agent between its quotes, in both formats.
    fn check(agent: &[u8], combined: &str, json: &str) {
        let record = Record { user_agent: Some(agent), ..sample() };
        let (line, object) = lines(&record);
        assert!(line.ends_with(&format!("\"-\" \"{combined}\" hit 17 -\n")), "{line}");
        assert!(object.ends_with(&format!(",\"user_agent\":\"{json}\"}}\n")), "{object}");
        assert_eq!(line.matches('\n').count() + object.matches('\n').count(), 2);
        assert!(line.trim_end().bytes().all(|b| (b' '..0x7f).contains(&b)), "{line}");
        assert!(object.trim_end().chars().all(|c| !c.is_control()), "{object}");
    }

    #[test]
    fn nothing_leaves_its_quotes_or_its_line() {
        check(b"a b", "a b", "a b");
        check(b"\" - \"", "\\\" - \\\"", "\\\" - \\\"");
        check(b"\\", "\\\\", "\\\\");
        check(b"a\r\nb", "a\\x0d\\x0ab", "a\\u000d\\u000ab");
        check(b"\x1b[31m\0", "\\x1b[31m\\x00", "\\u001b[31m\\u0000");
        check("caf\u{e9} \u{9b}31m".as_bytes(), "caf\\xc3\\xa9 \\xc2\\x9b31m", "caf\u{e9} \\u009b31m");
        check(b"\xff\xc3", "\\xff\\xc3", "\\\\xff\\\\xc3");
        check(b"\x7f\xed\xa0\x80", "\\x7f\\xed\\xa0\\x80", "\\u007f\\\\xed\\\\xa0\\\\x80");
        check(b"", "-", "");
    }

    #[test]
    fn fields_are_cut_at_their_limit() {
        let max = limits::LOG_FIELD_BYTES_MAX;
        let (fits, kept) = (vec![b'a'; max], "a".repeat(max));
        check(&fits, &kept, &kept);
        let cut = format!("{kept}...");
        check(&vec![b'a'; 64 << 10], &cut, &cut);
        // The cut is in the middle of a character.
        let mut long = vec![b'a'; max - 1];
        long.extend_from_slice("\u{e9}\u{e9}".as_bytes());
        check(&long, &format!("{}\\xc3...", &kept[1..]), &format!("{}...", &kept[1..]));
    }

    #[test]
    fn a_huge_target_is_bounded_over_path_and_query_together() {
        let huge = vec![b'q'; 64 << 10];
        let record = Record { query: Some(&huge), ..sample() };
        let (combined, json) = lines(&record);
        assert!(combined.len() < limits::LOG_TARGET_BYTES_MAX + 256 && json.len() < limits::LOG_TARGET_BYTES_MAX + 512);
        assert!(combined.contains("q... HTTP/1.1"));
    }

    #[test]
    fn numbers_are_decimal() {
        for n in [0, 1, 9, 10, 11, 99, 100, 101, 999, 1_000, 65_535, 1_000_000, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            write_number(&mut out, n);
            assert_eq!(out, n.to_string().as_bytes());
        }
    }

    #[test]
    fn dates_follow_the_calendar() {
        let dates = DateCache::default();
        for (second, iso) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_798_761_599, "2026-12-31T23:59:59"),
            (1_798_761_600, "2027-01-01T00:00:00"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            let texts = dates.of(second * 1_000 + 999);
            assert_eq!(std::str::from_utf8(&texts.iso), Ok(iso));
            assert_eq!(dates.of(second * 1_000).iso, texts.iso);
        }
    }
}
