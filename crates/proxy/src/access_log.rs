//! One line for each answer: Apache's combined format with our own columns behind it, or one JSON object.
//!
//! What the last step of the story (`transaction/log.rs`) writes. It runs for every hit; how texts are written quickly is
//! `log_texts`. Whatever a client sent stays on its one line and inside its quotes. It does not know who writes the lines, or where to.

use message::{Version, write_address, write_decimal};

use crate::error_note::ErrorNote;
use crate::events::exchange_event::ExchangeEvent;
use crate::limits;
pub use crate::log_texts::DateCache;
use crate::log_texts::{NO_USER, escape_combined, escape_json, escape_word};
use crate::policy_columns::{write_combined_columns, write_json_columns};
use crate::settings::LogFormat;
use crate::tls_columns::{write_combined_tls, write_json_tls};

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheVerdict {
    Hit,
    /// A file beneath a root.
    File,
    /// Of memcached's.
    Memcached,
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
    /// In the order of their numbers.
    pub const ALL: [CacheVerdict; 13] = [
        CacheVerdict::Hit,
        CacheVerdict::File,
        CacheVerdict::Memcached,
        CacheVerdict::Stale,
        CacheVerdict::Revalidated,
        CacheVerdict::Miss,
        CacheVerdict::Coalesced,
        CacheVerdict::Pass,
        CacheVerdict::Pipe,
        CacheVerdict::Purge,
        CacheVerdict::Synth,
        CacheVerdict::Error,
        CacheVerdict::Refused,
    ];

    pub const fn token(self) -> &'static str {
        match self {
            CacheVerdict::Hit => "hit",
            CacheVerdict::File => "file",
            CacheVerdict::Memcached => "memcached",
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

/// Appends the event's line, line feed included.
#[inline]
pub fn write_line(out: &mut Vec<u8>, event: &ExchangeEvent<'_>, dates: &DateCache, format: LogFormat) {
    match format {
        LogFormat::Combined => write_combined(out, event, dates),
        LogFormat::Json => write_json(out, event, dates),
    }
}

/// `client - user [date] "METHOD target HTTP/x" status bytes "referer" "user agent" verdict micros why`, and what
/// `tls_columns` and `policy_columns` add.
/// Nothing to say is `-`; times are UTC.
pub fn write_combined(out: &mut Vec<u8>, event: &ExchangeEvent<'_>, dates: &DateCache) {
    write_address(out, event.client);
    let date = dates.of(event.wall_ms).combined;
    match event.user {
        None => out.extend_from_slice(&date),
        Some(user) => {
            out.extend_from_slice(&date[..NO_USER.len() - 1]);
            escape_word(out, user, limits::LOG_USER_BYTES_MAX);
            out.extend_from_slice(&date[NO_USER.len()..]);
        }
    }
    if event.method.is_empty() {
        out.push(b'-');
    } else {
        escape_combined(out, event.method, limits::LOG_METHOD_BYTES_MAX);
        out.push(b' ');
        write_target(out, event, escape_combined);
        out.extend_from_slice(match event.version {
            Version::Http10 => b" HTTP/1.0",
            Version::Http11 => b" HTTP/1.1",
            Version::Http2 => b" HTTP/2.0",
        });
    }
    out.extend_from_slice(b"\" ");
    write_decimal(out, u64::from(event.status));
    out.push(b' ');
    write_decimal(out, event.body_bytes);
    out.extend_from_slice(b" \"");
    escape_combined(out, or_dash(event.referer), limits::LOG_FIELD_BYTES_MAX);
    out.extend_from_slice(b"\" \"");
    escape_combined(out, or_dash(event.user_agent), limits::LOG_FIELD_BYTES_MAX);
    out.extend_from_slice(b"\" ");
    out.extend_from_slice(event.verdict.token().as_bytes());
    out.push(b' ');
    write_decimal(out, event.micros);
    out.push(b' ');
    out.extend_from_slice(if event.why.is_empty() { b"-" } else { event.why.as_bytes() });
    if let Some(error) = event.error {
        write_error(out, error, [" id=", "", " detail=\""], escape_combined);
    }
    if let Some(facts) = event.tls {
        write_combined_tls(out, facts);
    }
    if event.life.is_some() || event.logged.is_some() {
        write_combined_columns(out, event.life, event.logged);
    }
    out.push(b'\n');
}

/// One JSON object (RFC 8259); a field the client did not send is left out.
pub fn write_json(out: &mut Vec<u8>, event: &ExchangeEvent<'_>, dates: &DateCache) {
    out.extend_from_slice(b"{\"time\":\"");
    dates.write_iso(out, event.wall_ms);
    out.extend_from_slice(b"\",\"client\":\"");
    write_address(out, event.client);
    if let Some(user) = event.user {
        out.extend_from_slice(b"\",\"user\":\"");
        escape_json(out, user, limits::LOG_USER_BYTES_MAX);
    }
    if !event.method.is_empty() {
        out.extend_from_slice(b"\",\"method\":\"");
        escape_json(out, event.method, limits::LOG_METHOD_BYTES_MAX);
        out.extend_from_slice(b"\",\"target\":\"");
        write_target(out, event, escape_json);
        out.extend_from_slice(b"\",\"version\":\"");
        out.extend_from_slice(event.version.number().as_bytes());
    }
    out.extend_from_slice(b"\",\"status\":");
    write_decimal(out, u64::from(event.status));
    out.extend_from_slice(b",\"bytes\":");
    write_decimal(out, event.body_bytes);
    out.extend_from_slice(b",\"verdict\":\"");
    out.extend_from_slice(event.verdict.token().as_bytes());
    out.extend_from_slice(b"\",\"micros\":");
    write_decimal(out, event.micros);
    if !event.why.is_empty() {
        out.extend_from_slice(b",\"why\":\"");
        out.extend_from_slice(event.why.as_bytes());
        out.push(b'"');
    }
    if let Some(error) = event.error {
        write_error(out, error, [",\"id\":\"", "\"", ",\"detail\":\""], escape_json);
    }
    for (name, value) in [
        (&b",\"host\":\""[..], event.host),
        (b",\"referer\":\"", event.referer),
        (b",\"user_agent\":\"", event.user_agent),
    ] {
        if let Some(value) = value {
            out.extend_from_slice(name);
            escape_json(out, value, limits::LOG_FIELD_BYTES_MAX);
            out.push(b'"');
        }
    }
    if let Some(facts) = event.tls {
        write_json_tls(out, facts);
    }
    if event.life.is_some() || event.logged.is_some() {
        write_json_columns(out, event.life, event.logged);
    }
    out.extend_from_slice(b"}\n");
}

/// The number of an error and what is known of it. `around`: before the number, behind it, before the text.
fn write_error(out: &mut Vec<u8>, error: &ErrorNote, around: [&str; 3], escape: impl Fn(&mut Vec<u8>, &[u8], usize)) {
    let [before_id, behind_id, before_detail] = around;
    out.extend_from_slice(format!("{before_id}{}{behind_id}", error.id).as_bytes());
    if let Some(detail) = &error.detail {
        out.extend_from_slice(before_detail.as_bytes());
        escape(out, detail.as_bytes(), limits::LOG_FIELD_BYTES_MAX);
        out.push(b'"');
    }
}

#[inline]
fn or_dash(value: Option<&[u8]>) -> &[u8] {
    value.filter(|v| !v.is_empty()).unwrap_or(b"-")
}

#[inline]
fn write_target(out: &mut Vec<u8>, event: &ExchangeEvent<'_>, escape: impl Fn(&mut Vec<u8>, &[u8], usize)) {
    escape(out, event.path, limits::LOG_TARGET_BYTES_MAX);
    if let Some(query) = event.query {
        out.push(b'?');
        escape(out, query, limits::LOG_TARGET_BYTES_MAX.saturating_sub(event.path.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::exchange_event::tests::sample;

    fn lines(event: &ExchangeEvent<'_>) -> (String, String) {
        let (mut combined, mut json) = (Vec::new(), Vec::new());
        write_combined(&mut combined, event, &DateCache::default());
        write_json(&mut json, event, &DateCache::default());
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
    fn a_user_has_a_name_that_stays_one_word() {
        for (name, word, text) in [
            ("ann", "ann", "ann"),
            ("Ann B", "Ann\\x20B", "Ann B"),
            ("-", "\\x2d", "-"),
            ("a-b", "a-b", "a-b"),
            ("a\"\n[", "a\\\"\\x0a[", "a\\\"\\u000a["),
            ("", "\"\"", ""),
        ] {
            let (combined, json) = lines(&ExchangeEvent { user: Some(name.as_bytes()), ..sample() });
            assert!(
                combined.starts_with(&format!("192.0.2.7 - {word} [10/Oct/2000:13:55:36 +0000] \"GET")),
                "{combined}"
            );
            assert!(json.contains(&format!("\"client\":\"192.0.2.7\",\"user\":\"{text}\",\"method\"")), "{json}");
        }
        let (combined, _) = lines(&ExchangeEvent { user: Some(&[b' '; 9_000]), ..sample() });
        assert!(combined.len() < 1_500, "{}", combined.len());
    }

    #[test]
    fn a_request_that_could_not_be_read_has_a_line_too() {
        let refused = ExchangeEvent {
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
        let record = ExchangeEvent { user_agent: Some(agent), ..sample() };
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
        let record = ExchangeEvent { query: Some(&huge), ..sample() };
        let (combined, json) = lines(&record);
        assert!(combined.len() < limits::LOG_TARGET_BYTES_MAX + 256 && json.len() < limits::LOG_TARGET_BYTES_MAX + 512);
        assert!(combined.contains("q... HTTP/1.1"));
    }
}
