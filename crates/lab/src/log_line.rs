//! One line of an access log: when, what was asked, of which host. What a server wrote is not trusted to be whole.
//!
//! Targets come back as they were asked: `\x22`, `\"` and `\u00e9` are the log's ways to write what would leave its
//! quotes, and are written as URLs write it.

use std::borrow::Cow;

use serde::Deserialize;

use crate::log_times::{common_millis, epoch_millis, rfc3339_millis};

#[derive(Debug, PartialEq)]
pub struct LogLine<'a> {
    /// Since 1970.
    pub millis: u64,
    pub is_whole_second: bool,
    /// Empty when there was no request.
    pub method: &'a str,
    pub target: Cow<'a, str>,
    pub host: Option<&'a str>,
    /// How it was answered, if the line says so.
    pub status: Option<u16>,
    /// How many bytes the answer had; what a server counts, head and all or the body alone, is its own affair.
    pub bytes: Option<u64>,
    /// How larder answered, and why it stored nothing, in its own logs.
    pub verdict: Option<&'a str>,
    pub why: Option<&'a str>,
}

#[derive(Deserialize)]
struct JsonLine<'a> {
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    method: &'a str,
    #[serde(borrow)]
    target: Cow<'a, str>,
    #[serde(borrow)]
    host: Option<&'a str>,
    status: Option<u16>,
    bytes: Option<u64>,
    #[serde(borrow)]
    verdict: Option<&'a str>,
    #[serde(borrow)]
    why: Option<&'a str>,
}

/// What is wrong is a few words.
pub fn parse_line(line: &[u8]) -> Result<LogLine<'_>, String> {
    if line.starts_with(b"{") {
        return json(line);
    }
    // Names and agents may be anything; what is looked at must be text.
    let end = line.iter().position(|b| !b.is_ascii()).unwrap_or(line.len());
    let text = std::str::from_utf8(&line[..end]).map_err(|_| "no text".to_owned())?;
    match text.split_once(" [") {
        Some((_, rest)) => common(rest),
        None if text.starts_with(|c: char| c.is_ascii_digit()) && text.contains('/') => squid(text),
        None => Err("no date in brackets".to_owned()),
    }
}

/// From the bracket on: `10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" …`.
fn common(text: &str) -> Result<LogLine<'_>, String> {
    let (date, rest) = text.split_once("] \"").ok_or("no request in quotes behind the date")?;
    let millis = common_millis(date).ok_or("no date such as [10/Oct/2000:13:55:36 -0700]")?;
    let (request, behind) = rest.split_at(closing_quote(rest).ok_or("the request's quotes are not closed")?);
    let mut words = request.split(' ');
    let mut numbers = behind[1..].split_ascii_whitespace();
    let status = numbers.next().and_then(|word| word.parse().ok());
    let bytes = numbers.next().and_then(|word| word.parse().ok());
    let (verdict, why) = own_columns(behind).unwrap_or_default();
    let line = |method, target| LogLine {
        millis,
        is_whole_second: true,
        method,
        target,
        host: None,
        status,
        bytes,
        verdict,
        why,
    };
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(method), Some(target), version, None) if version.is_none_or(|version| version.starts_with("HTTP/")) => {
            Ok(line(method, unescaped(target)))
        }
        // `-`, or what somebody sent who speaks no HTTP.
        (Some(_), None, ..) => Ok(line("", Cow::Borrowed(""))),
        _ => Err("no request such as \"GET / HTTP/1.1\"".to_owned()),
    }
}

/// Behind the request: `" 200 6221 "REFERER" "AGENT" miss 1780 no-store`. `None`: another server's.
fn own_columns(behind: &str) -> Option<(Option<&str>, Option<&str>)> {
    let (_, rest) = behind[1..].split_once('"')?;
    let (_, rest) = rest.split_at(closing_quote(rest)?);
    let (_, rest) = rest[1..].split_once('"')?;
    let (_, rest) = rest.split_at(closing_quote(rest)?);
    let mut words = rest[1..].split_ascii_whitespace();
    let (verdict, micros) = (words.next()?, words.next()?);
    micros.parse::<u64>().ok()?;
    Some((Some(verdict), words.next().filter(|why| *why != "-")))
}

/// `time elapsed client code/status bytes method URL …`.
fn squid(text: &str) -> Result<LogLine<'_>, String> {
    let mut words = text.split_ascii_whitespace();
    let millis = words.next().and_then(epoch_millis);
    let status = words.nth(2).and_then(|word| word.rsplit('/').next()?.parse().ok());
    let bytes = words.next().and_then(|word| word.parse().ok());
    let (method, target) = (words.next(), words.next());
    match (millis, method, target) {
        (Some(millis), Some(method), Some(target)) => {
            let target = Cow::Borrowed(target);
            let (verdict, why) = (None, None);
            Ok(LogLine { millis, is_whole_second: false, method, target, host: None, status, bytes, verdict, why })
        }
        _ => Err("no date in brackets, and not squid's format".to_owned()),
    }
}

fn json(line: &[u8]) -> Result<LogLine<'_>, String> {
    let wrong = |_| "no JSON object with time, method and target".to_owned();
    let read: JsonLine<'_> = serde_json::from_slice(line).map_err(wrong)?;
    let JsonLine { time, method, target, host, status, bytes, verdict, why } = read;
    let millis = rfc3339_millis(&time).ok_or("no time such as 2000-10-10T13:55:36.007Z")?;
    let plain = target.bytes().all(|b| b.is_ascii_graphic());
    let target = if plain { target } else { Cow::Owned(percent(target.as_bytes())) };
    let host = host.filter(|host| !host.is_empty());
    Ok(LogLine { millis, is_whole_second: false, method, target, host, status, bytes, verdict, why })
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|b| {
        let closes = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        closes
    })
}

fn unescaped(target: &str) -> Cow<'_, str> {
    if !target.contains('\\') {
        return Cow::Borrowed(target);
    }
    let mut bytes = Vec::with_capacity(target.len());
    let mut rest = target;
    while let Some((before, behind)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let hex = behind.strip_prefix('x').and_then(|digits| digits.get(..2));
        match (hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()), behind.chars().next()) {
            (Some(byte), _) => {
                bytes.push(byte);
                rest = &behind[3..];
            }
            (None, Some(c)) => {
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &behind[c.len_utf8()..];
            }
            (None, None) => rest = behind,
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Cow::Owned(percent(&bytes))
}

/// What may not stand in a URL as %XX.
fn percent(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | b'#' => text.push_str(&format!("%{byte:02X}")),
            byte if byte.is_ascii_graphic() => text.push(byte.into()),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "[10/Oct/2000:13:55:36 +0000]";

    #[track_caller]
    fn check(line: &str, expect: Result<(&str, &str), &str>) {
        let got = parse_line(line.as_bytes());
        match (&got, expect) {
            (Ok(got), Ok(expected)) => assert_eq!((got.method, &*got.target), expected, "{line}"),
            (Err(what), Err(part)) => assert!(what.contains(part), "{line}: {what}"),
            _ => panic!("{line}: {got:?} instead of {expect:?}"),
        }
    }

    #[test]
    fn lines_are_read_as_servers_write_them() {
        let common = |request: &str| format!("192.0.2.1 - bob {DATE} \"{request}\" 200 5");
        check(&common("GET /a?b HTTP/1.1"), Ok(("GET", "/a?b")));
        check(&common("GET /old"), Ok(("GET", "/old")));
        check(&format!("www.example:80 192.0.2.1 - - {DATE} \"HEAD / HTTP/1.0\" 200 5 \"-\" \"é\""), Ok(("HEAD", "/")));
        check(&common("GET /a\\x22\\xE4\\\"\\\\ HTTP/1.1"), Ok(("GET", "/a%22%E4%22%5C")));
        check(&common("-"), Ok(("", "")));
        check(&common(""), Ok(("", "")));
        check(&common("GET /a b HTTP/1.1"), Err("no request such as"));
        check(&common("a b c"), Err("no request such as"));
        check(&format!("x - - {DATE} \"GET / HTTP/1.1"), Err("not closed"));
        check(&format!("x - - {DATE} GET /"), Err("no request in quotes"));
        check("x - - [yesterday] \"GET / HTTP/1.1\" 200 5", Err("no date such as"));
        check("1286536308.779    180 192.0.2.1 TCP_MISS/200 411 GET http://a/b -", Ok(("GET", "http://a/b")));
        check("1 2/3", Err("not squid's"));
        check(
            "{\"time\":\"2000-10-10T13:55:36.007Z\",\"method\":\"GET\",\"target\":\"/\\u00e9\"}",
            Ok(("GET", "/%C3%A9")),
        );
        check("{\"time\":1}", Err("no JSON object"));
        check("", Err("no date"));
    }

    #[test]
    fn our_own_logs_say_how_it_was_answered_and_why_nothing_was_stored() {
        let columns = |end: &str| {
            let line = format!("192.0.2.1 - - {DATE} \"GET / HTTP/1.1\" 200 5 \"-\" \"a \\\"b\\\" c\"{end}");
            let read = parse_line(line.as_bytes()).unwrap();
            (read.verdict.map(str::to_owned), read.why.map(str::to_owned))
        };
        let own = |verdict: &str, why: Option<&str>| (Some(verdict.to_owned()), why.map(str::to_owned));
        assert_eq!(columns(" pass 1780 cookie life=\"x\""), own("pass", Some("cookie")));
        assert_eq!(columns(" hit 17 -"), own("hit", None));
        for others in ["", " \"192.0.2.9\"", " 0.003 upstream"] {
            assert_eq!(columns(others), (None, None), "{others}");
        }
        let json =
            br#"{"time":"2000-10-10T13:55:36.007Z","method":"GET","target":"/","verdict":"miss","why":"private"}"#;
        let read = parse_line(json).unwrap();
        assert_eq!((read.verdict, read.why), (Some("miss"), Some("private")));
    }
}
