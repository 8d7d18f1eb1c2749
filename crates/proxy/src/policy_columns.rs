//! What a line of the access log says only under a program: how long what was fetched lives and what decided
//! that, and the texts of `std.log`. In both formats they stand behind everything else, and only where there are any.

use message::write_decimal;

use crate::limits::{LOG_FIELD_BYTES_MAX, LOG_TEXTS_BYTES_MAX, LOG_TEXTS_MAX};
use crate::log_texts::{escape_combined, escape_json};

/// How long a fetched response lives. Who decided is a rule by its name (`max-age`, `default_ttl` …) or `FILE:LINE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    pub ttl_ms: i64,
    pub grace_ms: u64,
    pub keep_ms: u64,
    pub ttl_by: Box<str>,
    pub grace_by: Box<str>,
    pub keep_by: Box<str>,
    pub kept: Kept,
    /// Why it is not stored, where it is not.
    pub kept_by: Option<Box<str>>,
}

/// What the store keeps of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Stored,
    /// Only that requests for it are fetched side by side.
    HitForMiss,
    /// Only that requests for it are passed.
    HitForPass,
    No,
}

impl Kept {
    pub const fn token(self) -> &'static str {
        match self {
            Kept::Stored => "stored",
            Kept::HitForMiss => "hit-for-miss",
            Kept::HitForPass => "hit-for-pass",
            Kept::No => "not-stored",
        }
    }
}

/// What a program logged about one request, bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedTexts {
    texts: Vec<Box<[u8]>>,
    bytes: usize,
    left_out_count: u64,
}

impl LoggedTexts {
    /// One text more, if there is room for it.
    pub fn push(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(LOG_FIELD_BYTES_MAX + 1)];
        if self.texts.len() >= LOG_TEXTS_MAX || self.bytes + text.len() > LOG_TEXTS_BYTES_MAX {
            self.left_out_count += 1;
            return;
        }
        self.bytes += text.len();
        self.texts.push(text.into());
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.left_out_count == 0
    }

    /// All of them in one, if there are any.
    pub(crate) fn joined(&self) -> Option<Vec<u8>> {
        (!self.texts.is_empty()).then(|| self.texts.join(&b"; "[..]))
    }
}

/// ` life="ttl=60s max-age; grace=10s default_grace; keep=0s default_keep; stored" log="text" log="text"`.
#[cold]
pub(crate) fn write_combined_columns(out: &mut Vec<u8>, life: Option<&Life>, texts: Option<&LoggedTexts>) {
    if let Some(life) = life {
        out.extend_from_slice(b" life=\"ttl=");
        write_seconds(out, life.ttl_ms);
        for (name, ms, by) in [
            (" ", None, &life.ttl_by),
            ("; grace=", Some(life.grace_ms), &life.grace_by),
            ("; keep=", Some(life.keep_ms), &life.keep_by),
        ] {
            out.extend_from_slice(name.as_bytes());
            if let Some(ms) = ms {
                write_seconds(out, i64::try_from(ms).unwrap_or(i64::MAX));
                out.push(b' ');
            }
            escape_combined(out, by.as_bytes(), LOG_FIELD_BYTES_MAX);
        }
        out.extend_from_slice(b"; ");
        out.extend_from_slice(life.kept.token().as_bytes());
        if let Some(by) = &life.kept_by {
            out.push(b' ');
            escape_combined(out, by.as_bytes(), LOG_FIELD_BYTES_MAX);
        }
        out.push(b'"');
    }
    let Some(texts) = texts else { return };
    for text in &texts.texts {
        out.extend_from_slice(b" log=\"");
        escape_combined(out, text, LOG_FIELD_BYTES_MAX);
        out.push(b'"');
    }
    if texts.left_out_count > 0 {
        out.extend_from_slice(b" log-left-out=");
        write_decimal(out, texts.left_out_count);
    }
}

/// `,"life":{…},"log":[…]`.
#[cold]
pub(crate) fn write_json_columns(out: &mut Vec<u8>, life: Option<&Life>, texts: Option<&LoggedTexts>) {
    if let Some(life) = life {
        out.extend_from_slice(b",\"life\":{\"ttl_ms\":");
        write_signed(out, life.ttl_ms);
        out.extend_from_slice(b",\"grace_ms\":");
        write_decimal(out, life.grace_ms);
        out.extend_from_slice(b",\"keep_ms\":");
        write_decimal(out, life.keep_ms);
        let by = [("ttl_by", Some(&life.ttl_by)), ("grace_by", Some(&life.grace_by)), ("keep_by", Some(&life.keep_by))];
        let kept_by = [("kept_by", life.kept_by.as_ref())];
        for (name, text) in by.into_iter().chain(kept_by) {
            let Some(text) = text else { continue };
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":\"");
            escape_json(out, text.as_bytes(), LOG_FIELD_BYTES_MAX);
            out.push(b'"');
        }
        out.extend_from_slice(b",\"kept\":\"");
        out.extend_from_slice(life.kept.token().as_bytes());
        out.extend_from_slice(b"\"}");
    }
    let Some(texts) = texts.filter(|texts| !texts.is_empty()) else { return };
    out.extend_from_slice(b",\"log\":[");
    for (number, text) in texts.texts.iter().enumerate() {
        out.extend_from_slice(if number == 0 { b"\"" } else { b",\"" });
        escape_json(out, text, LOG_FIELD_BYTES_MAX);
        out.push(b'"');
    }
    out.push(b']');
    if texts.left_out_count > 0 {
        out.extend_from_slice(b",\"log_left_out\":");
        write_decimal(out, texts.left_out_count);
    }
}

/// `60s`, `0.5s`, `-1s`.
fn write_seconds(out: &mut Vec<u8>, ms: i64) {
    if ms < 0 {
        out.push(b'-');
    }
    let ms = ms.unsigned_abs();
    write_decimal(out, ms / 1_000);
    if !ms.is_multiple_of(1_000) {
        let thousandths = format!(".{:03}", ms % 1_000);
        out.extend_from_slice(thousandths.trim_end_matches('0').as_bytes());
    }
    out.push(b's');
}

fn write_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    write_decimal(out, number.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life() -> Life {
        Life {
            ttl_ms: 60_000,
            grace_ms: 10_000,
            keep_ms: 0,
            ttl_by: "max-age".into(),
            grace_by: "a\".vcl:31".into(),
            keep_by: "default_keep".into(),
            kept: Kept::Stored,
            kept_by: None,
        }
    }

    #[track_caller]
    fn check(life: Option<&Life>, texts: &[&str], combined: &str, json: &str) {
        let mut logged = LoggedTexts::default();
        texts.iter().for_each(|text| logged.push(text.as_bytes()));
        let (mut line, mut object) = (Vec::new(), Vec::new());
        write_combined_columns(&mut line, life, Some(&logged));
        write_json_columns(&mut object, life, Some(&logged));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!((text(line).as_str(), text(object).as_str()), (combined, json));
    }

    #[test]
    fn a_life_is_told_with_what_decided_it() {
        check(
            Some(&life()),
            &[],
            " life=\"ttl=60s max-age; grace=10s a\\\".vcl:31; keep=0s default_keep; stored\"",
            ",\"life\":{\"ttl_ms\":60000,\"grace_ms\":10000,\"keep_ms\":0,\"ttl_by\":\"max-age\",\
             \"grace_by\":\"a\\\".vcl:31\",\"keep_by\":\"default_keep\",\"kept\":\"stored\"}",
        );
        let private = Life {
            ttl_ms: -1_500,
            kept: Kept::HitForMiss,
            kept_by: Some("b.vcl:7".into()),
            grace_by: "x".into(),
            ..life()
        };
        check(
            Some(&private),
            &[],
            " life=\"ttl=-1.5s max-age; grace=10s x; keep=0s default_keep; hit-for-miss b.vcl:7\"",
            ",\"life\":{\"ttl_ms\":-1500,\"grace_ms\":10000,\"keep_ms\":0,\"ttl_by\":\"max-age\",\"grace_by\":\"x\",\
             \"keep_by\":\"default_keep\",\"kept_by\":\"b.vcl:7\",\"kept\":\"hit-for-miss\"}",
        );
    }

    #[test]
    fn texts_stay_in_their_quotes_and_on_their_line() {
        check(None, &[], "", "");
        check(None, &["a", "b\"\n"], " log=\"a\" log=\"b\\\"\\x0a\"", ",\"log\":[\"a\",\"b\\\"\\u000a\"]");
    }

    #[test]
    fn texts_are_bounded_in_number_and_length() {
        let mut logged = LoggedTexts::default();
        (0..LOG_TEXTS_MAX + 3).for_each(|_| logged.push(b"a"));
        let mut line = Vec::new();
        write_combined_columns(&mut line, None, Some(&logged));
        let line = String::from_utf8(line).unwrap();
        assert_eq!((line.matches(" log=\"a\"").count(), line.ends_with(" log-left-out=3")), (LOG_TEXTS_MAX, true));
        let mut logged = LoggedTexts::default();
        (0..3).for_each(|_| logged.push(&vec![b'b'; LOG_TEXTS_BYTES_MAX]));
        let mut object = Vec::new();
        write_json_columns(&mut object, None, Some(&logged));
        let object = String::from_utf8(object).unwrap();
        assert!(object.len() < LOG_TEXTS_BYTES_MAX + 100, "{}", object.len());
        assert!(object.ends_with("...\"],\"log_left_out\":2}".trim_end_matches('}')), "{object}");
    }
}
