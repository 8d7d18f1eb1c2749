//! An event as a line of JSON: what readers get, and what a record of them is made of.
//!
//! The names are those of the fields of queries, flat; what is absent is left out. Times are in microseconds. A fetch that tried more
//! than once has all its tries in `tries`.

use message::{write_address, write_decimal};

use crate::events::event_fields::{EVENT_FIELDS, FieldValue};
use crate::events::exchange_event::ExchangeEvent;
use crate::events::origin_try::{OriginTry, TryOutcome};
use crate::limits::{LOG_FIELD_BYTES_MAX, LOG_TARGET_BYTES_MAX};
use crate::log_texts::{DateCache, escape_json};

/// The first field of each line, `v`: it changes when a field changes its meaning, and not when one is added.
pub const EVENT_VERSION: u32 = 1;

/// Appends the line, line feed included.
pub(crate) fn write_event(out: &mut Vec<u8>, event: &ExchangeEvent<'_>, dates: &DateCache) {
    out.extend_from_slice(b"{\"v\":");
    write_decimal(out, EVENT_VERSION.into());
    out.extend_from_slice(b",\"time\":\"");
    dates.write_iso(out, event.wall_ms);
    out.push(b'"');
    for field in EVENT_FIELDS {
        let Some(value) = (field.of)(event) else { continue };
        write_name(out, field.name);
        match value {
            FieldValue::Number(number) => write_decimal(out, number),
            FieldValue::Address(address) => {
                out.push(b'"');
                write_address(out, address);
                out.push(b'"');
            }
            FieldValue::Text(text) => write_text(out, &text, bytes_max_of(field.name)),
        }
    }
    if event.tries.len() > 1 {
        write_tries(out, event.tries);
    }
    out.extend_from_slice(b"}\n");
}

/// What was asked for is told in full, so far as the access log does.
fn bytes_max_of(name: &str) -> usize {
    match name {
        "url" | "path" | "query" => LOG_TARGET_BYTES_MAX,
        _ => LOG_FIELD_BYTES_MAX,
    }
}

fn write_name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn write_text(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) {
    out.push(b'"');
    escape_json(out, text, bytes_max);
    out.push(b'"');
}

/// `,"tries":[{"origin":"app","address":"…","error":"…","time.connect":40},{…}]`
fn write_tries(out: &mut Vec<u8>, tries: &[OriginTry]) {
    write_name(out, "tries");
    for (at, tried) in tries.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"[{\"origin\":" } else { b",{\"origin\":" });
        write_text(out, tried.origin.as_bytes(), LOG_FIELD_BYTES_MAX);
        if let Some(address) = &tried.address {
            write_name(out, "address");
            write_text(out, address.as_bytes(), LOG_FIELD_BYTES_MAX);
        }
        match tried.outcome {
            TryOutcome::Answered { status } => {
                write_name(out, "status");
                write_decimal(out, status.into());
            }
            TryOutcome::Failed(token) => {
                write_name(out, "error");
                write_text(out, token.as_bytes(), LOG_FIELD_BYTES_MAX);
            }
            TryOutcome::GivenUp => {}
        }
        let opening = tried.opening;
        for (name, micros) in [
            ("time.lookup", u64::from(opening.lookup_micros)),
            ("time.queue", opening.queue_micros.into()),
            ("time.connect", opening.connect_micros.into()),
            ("time.tls", opening.tls_micros.into()),
            ("time.origin", tried.first_byte_micros.unwrap_or(0)),
        ] {
            if micros > 0 {
                write_name(out, name);
                write_decimal(out, micros);
            }
        }
        out.push(b'}');
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::exchange_event::tests::sample;
    use crate::events::origin_try::tests::{answered, failed};
    use crate::origin::OpeningTimes;

    fn line(event: &ExchangeEvent<'_>) -> String {
        let mut out = Vec::new();
        write_event(&mut out, event, &DateCache::default());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_hit_is_one_line_of_what_there_is() {
        assert_eq!(
            line(&sample()),
            "{\"v\":1,\"time\":\"2000-10-10T13:55:36.007Z\",\"client\":\"192.0.2.7\",\"method\":\"GET\",\"host\":\"t.test\",\
             \"path\":\"/a\",\"query\":\"b=1\",\"url\":\"t.test/a?b=1\",\"protocol\":\"1.1\",\"agent\":\"curl/8.14\",\
             \"route\":\"/\",\"status\":200,\"bytes\":6221,\"class\":\"hit\",\"time.whole\":17,\"time.first_byte\":17}\n"
        );
    }

    #[test]
    fn several_tries_are_told_one_by_one() {
        let opening = OpeningTimes { queue_micros: 3, ..OpeningTimes::default() };
        let tries = [failed(), answered(200, opening, 900)];
        assert!(line(&ExchangeEvent { tries: &tries, ..sample() }).ends_with(
            "\"origin.tries\":2,\"time.queue\":3,\"time.origin\":900,\"tries\":[{\"origin\":\"app\",\
                 \"error\":\"origin-connect\"},{\"origin\":\"app\",\"address\":\"10.0.0.2:80\",\"status\":200,\
                 \"time.queue\":3,\"time.origin\":900}]}\n"
        ));
    }

    #[test]
    fn what_a_client_sent_stays_in_its_quotes_and_on_its_line() {
        let hostile = b"\"}\n{\"v\":1\x1b[2J\xff\xe2\x80\xae";
        let text = line(&ExchangeEvent { user_agent: Some(hostile), path: hostile, host: Some(hostile), ..sample() });
        assert_eq!(text.matches('\n').count(), 1);
        assert!(!text.trim_end().chars().any(char::is_control), "{text}");
    }
}
