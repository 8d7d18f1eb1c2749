//! The log record of an exchange as OTLP has it in JSON: one line for people, and beside it the attributes of its span, in whose trace it is.

use message::write_decimal;

use crate::clock::{Clock, Moment};
use crate::events::exchange_event::ExchangeEvent;
use crate::limits::{LOG_FIELD_BYTES_MAX, LOG_TARGET_BYTES_MAX};
use crate::log_texts::escape_json;
use crate::traces::exchange_trace::ExchangeTrace;
use crate::traces::otlp_attributes::Attributes;
use crate::traces::otlp_spans::wall_nanos;
use crate::traces::query_redaction::redacted;

/// How bad it is, by the numbers that OpenTelemetry has for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Info = 9,
    Warn = 13,
    Error = 17,
}

impl Severity {
    /// A client's mistake is none of ours, and may be ours all the same.
    fn of(event: &ExchangeEvent<'_>) -> Severity {
        match event.status {
            _ if event.is_error() => Severity::Error,
            400.. => Severity::Warn,
            _ => Severity::Info,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Severity::Info => "INFO",
            Severity::Warn => "WARN",
            Severity::Error => "ERROR",
        }
    }
}

/// Appends one.
pub(crate) fn write_record(
    out: &mut Vec<u8>,
    event: &ExchangeEvent<'_>,
    trace: &ExchangeTrace,
    (clock, ended): (Clock, Moment),
) {
    out.push(b'{');
    for name in ["\"timeUnixNano\":\"", "\"observedTimeUnixNano\":\""] {
        out.extend_from_slice(name.as_bytes());
        write_decimal(out, wall_nanos(clock, ended));
        out.extend_from_slice(b"\",");
    }
    let severity = Severity::of(event);
    out.extend_from_slice(b"\"severityNumber\":");
    write_decimal(out, severity as u64);
    out.extend_from_slice(b",\"severityText\":\"");
    out.extend_from_slice(severity.text().as_bytes());
    out.extend_from_slice(b"\",\"body\":{\"stringValue\":\"");
    write_line(out, event);
    out.extend_from_slice(b"\"}");
    let mut attributes = Attributes::begin(out);
    attributes.exchange(event);
    if let Some(note) = event.error {
        attributes.text("larder.id", note.id.to_string().as_bytes());
        attributes.text("larder.error.detail", note.detail.as_deref().unwrap_or_default().as_bytes());
    }
    attributes.end();
    out.extend_from_slice(b",\"traceId\":\"");
    out.extend_from_slice(&trace.trace.digits());
    out.extend_from_slice(b"\",\"spanId\":\"");
    out.extend_from_slice(&trace.span.digits());
    out.extend_from_slice(b"\",\"flags\":");
    write_decimal(out, u64::from(trace.is_sampled));
    out.push(b'}');
}

/// `GET t.test/a?b=1 503 error origin-status`: what was asked, how it was answered and why.
fn write_line(out: &mut Vec<u8>, event: &ExchangeEvent<'_>) {
    let mut word = |text: &[u8], bytes_max: usize| {
        if !text.is_empty() {
            escape_json(out, text, bytes_max);
            out.push(b' ');
        }
    };
    word(event.method, LOG_FIELD_BYTES_MAX);
    let mut target = event.host.filter(|_| event.path.starts_with(b"/")).unwrap_or_default().to_vec();
    target.extend_from_slice(&event.path[..event.path.len().min(LOG_TARGET_BYTES_MAX)]);
    if let Some(query) = event.query {
        target.push(b'?');
        target.extend_from_slice(&redacted(query));
    }
    word(&target, LOG_TARGET_BYTES_MAX);
    word(event.status.to_string().as_bytes(), LOG_FIELD_BYTES_MAX);
    word(event.verdict.token().as_bytes(), LOG_FIELD_BYTES_MAX);
    word(event.why.as_bytes(), LOG_FIELD_BYTES_MAX);
    out.pop();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::CacheVerdict;
    use crate::error_note::{ErrorNote, RequestId};
    use crate::events::exchange_event::tests::sample;
    use crate::traces::trace_ids::TraceDice;

    fn record(event: &ExchangeEvent<'_>) -> (ExchangeTrace, String) {
        let trace = ExchangeTrace::untold(&TraceDice::default());
        let mut out = Vec::new();
        let clock = Clock::standing(5_000, 971_186_136_007);
        write_record(&mut out, event, &trace, (clock, Moment { nanos: 5_000_000_123 }));
        let text = String::from_utf8(out).unwrap();
        assert!(!text.chars().any(char::is_control), "{text}");
        (trace, text)
    }

    #[test]
    fn a_record_stands_in_the_trace_of_its_exchange() {
        let (trace, text) = record(&sample());
        let (before, rest) = text.split_once(",\"attributes\":[").unwrap();
        let expect = "{\"timeUnixNano\":\"971186136007000123\",\"observedTimeUnixNano\":\"971186136007000123\",\
             \"severityNumber\":9,\"severityText\":\"INFO\",\"body\":{\"stringValue\":\"GET t.test/a?b=1 200 hit\"}";
        assert_eq!(before, expect);
        let digits = |digits: &[u8]| String::from_utf8(digits.to_vec()).unwrap();
        let (id, span) = (digits(&trace.trace.digits()), digits(&trace.span.digits()));
        assert!(rest.ends_with(&format!("],\"traceId\":\"{id}\",\"spanId\":\"{span}\",\"flags\":0}}")), "{rest}");
        assert!(rest.contains("{\"key\":\"larder.class\",\"value\":{\"stringValue\":\"hit\"}}"), "{rest}");
        assert!(!rest.contains("larder.id"), "{rest}");
    }

    #[track_caller]
    fn check(event: &ExchangeEvent<'_>, number: u64, text: &str, line: &str) {
        let (_, record) = record(event);
        let expect =
            format!("\"severityNumber\":{number},\"severityText\":\"{text}\",\"body\":{{\"stringValue\":\"{line}\"}},");
        assert!(record.contains(&expect), "{record}");
    }

    #[test]
    fn how_bad_it_is_goes_by_what_became_of_it() {
        check(&ExchangeEvent { status: 399, ..sample() }, 9, "INFO", "GET t.test/a?b=1 399 hit");
        check(&ExchangeEvent { status: 400, ..sample() }, 13, "WARN", "GET t.test/a?b=1 400 hit");
        check(&ExchangeEvent { status: 500, query: None, ..sample() }, 17, "ERROR", "GET t.test/a 500 hit");
        check(&ExchangeEvent { is_cut: true, why: "x", ..sample() }, 17, "ERROR", "GET t.test/a?b=1 200 hit x");
        let proxied = ExchangeEvent { path: b"http://far.test/x", query: None, ..sample() };
        check(&proxied, 9, "INFO", "GET http://far.test/x 200 hit");
        let refused = ExchangeEvent {
            method: b"",
            path: b"",
            host: None,
            query: None,
            status: 400,
            verdict: CacheVerdict::Refused,
            why: "line-invalid",
            ..sample()
        };
        check(&refused, 13, "WARN", "400 refused line-invalid");
    }

    #[test]
    fn an_error_says_what_failed_and_nobodys_secret() {
        let note = ErrorNote { id: RequestId::of(0x2a), detail: Some("the origin \"app\"".into()) };
        let query = &b"sig=secret&\"\n\x1b"[..];
        let (_, record) = record(&ExchangeEvent { error: Some(&note), query: Some(query), ..sample() });
        let attribute = |key: &str, value: &str| format!("\"{key}\",\"value\":{{\"stringValue\":\"{value}\"}}");
        assert!(record.contains(&attribute("larder.id", "000000000000002a")), "{record}");
        assert!(record.contains(&attribute("larder.error.detail", "the origin \\\"app\\\"")), "{record}");
        assert!(!record.contains("secret"), "{record}");
    }
}
