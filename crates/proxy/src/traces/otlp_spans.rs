//! The spans of an exchange as OTLP has them in JSON: its own, and one for each time that an origin was asked for it.

use message::write_decimal;

use crate::clock::{Clock, Moment};
use crate::events::exchange_event::ExchangeEvent;
use crate::events::origin_try::{OriginTry, TryOutcome};
use crate::limits::LOG_FIELD_BYTES_MAX;
use crate::log_texts::escape_json;
use crate::traces::exchange_trace::ExchangeTrace;
use crate::traces::otlp_attributes::{Attributes, METHODS};
use crate::traces::trace_ids::SpanId;
use crate::traces::try_span::TrySpan;

const SERVER: u64 = 2;
const CLIENT: u64 = 3;
/// Bits of `flags` above those of a traceparent: it is known whether the parent is another process', and it is.
const KNOWS_REMOTE: u64 = 0x100;
const IS_REMOTE: u64 = 0x200;

/// Appends the spans, with commas between them. Returns how many.
pub(crate) fn write_spans(
    out: &mut Vec<u8>,
    event: &ExchangeEvent<'_>,
    trace: &ExchangeTrace,
    (clock, ended): (Clock, Moment),
) -> u64 {
    let exchange = ExchangeSpans { event, trace, clock };
    exchange.write_server_span(out, ended);
    let mut count = 1;
    for (at, tried) in event.tries.iter().enumerate() {
        if let Some(span) = tried.span.as_deref() {
            out.push(b',');
            exchange.write_client_span(out, (at, tried), span);
            count += 1;
        }
    }
    count
}

struct ExchangeSpans<'a> {
    event: &'a ExchangeEvent<'a>,
    trace: &'a ExchangeTrace,
    clock: Clock,
}

impl ExchangeSpans<'_> {
    fn write_server_span(&self, out: &mut Vec<u8>, ended: Moment) {
        let event = self.event;
        let remote = if self.trace.parent.is_some() { IS_REMOTE } else { 0 };
        self.write_ids(out, (self.trace.span, self.trace.parent), remote);
        self.write_name(out, event.method, event.route);
        let begun = Moment { nanos: ended.nanos.saturating_sub(event.micros * 1_000) };
        self.write_times(out, SERVER, (begun, ended));
        let mut attributes = Attributes::begin(out);
        attributes.exchange(event);
        attributes.end();
        write_end(out, event.is_error());
    }

    fn write_client_span(&self, out: &mut Vec<u8>, (at, tried): (usize, &OriginTry), span: &TrySpan) {
        self.write_ids(out, (span.id, Some(self.trace.span)), 0);
        self.write_name(out, &span.method, "");
        self.write_times(out, CLIENT, (span.begun, span.ended));
        let mut attributes = Attributes::begin(out);
        attributes.method(&span.method);
        attributes.long_text("url.full", &span.url);
        match tried.address.as_deref() {
            Some(address) => attributes.origin_address(address),
            None => attributes.text("server.address", tried.origin.as_bytes()),
        }
        attributes.text("larder.origin", tried.origin.as_bytes());
        if at > 0 {
            attributes.number("http.request.resend_count", at as u64);
        }
        let (status, token) = match tried.outcome {
            TryOutcome::Answered { status } => (status, ""),
            TryOutcome::Failed(token) => (0, token),
            TryOutcome::GivenUp => (0, "given-up"),
        };
        if status > 0 {
            attributes.number("http.response.status_code", status.into());
        }
        let opening = tried.opening;
        for (name, micros) in [
            ("larder.time.lookup", u64::from(opening.lookup_micros)),
            ("larder.time.queue", opening.queue_micros.into()),
            ("larder.time.connect", opening.connect_micros.into()),
            ("larder.time.tls", opening.tls_micros.into()),
            ("larder.time.origin", tried.first_byte_micros.unwrap_or(0)),
        ] {
            if micros > 0 {
                attributes.number(name, micros);
            }
        }
        // By the conventions what a client is told of its own mistakes is an error of its, too.
        let is_error = status >= 400 || !token.is_empty();
        if is_error {
            attributes.error(token, status);
        }
        attributes.end();
        write_end(out, is_error);
    }

    fn write_ids(&self, out: &mut Vec<u8>, (span, parent): (SpanId, Option<SpanId>), remote: u64) {
        out.extend_from_slice(b"{\"traceId\":\"");
        out.extend_from_slice(&self.trace.trace.digits());
        out.extend_from_slice(b"\",\"spanId\":\"");
        out.extend_from_slice(&span.digits());
        if let Some(parent) = parent {
            out.extend_from_slice(b"\",\"parentSpanId\":\"");
            out.extend_from_slice(&parent.digits());
        }
        if let Some(state) = &self.trace.state {
            out.extend_from_slice(b"\",\"traceState\":\"");
            escape_json(out, state, state.len());
        }
        out.extend_from_slice(b"\",\"flags\":");
        write_decimal(out, KNOWS_REMOTE | remote | u64::from(self.trace.is_sampled));
    }

    /// `GET /shop`: a route has few names, a path may have any.
    fn write_name(&self, out: &mut Vec<u8>, method: &[u8], route: &str) {
        out.extend_from_slice(b",\"name\":\"");
        out.extend_from_slice(if METHODS.contains(&method) { method } else { b"HTTP" });
        if !route.is_empty() {
            out.push(b' ');
            escape_json(out, route.as_bytes(), LOG_FIELD_BYTES_MAX);
        }
        out.push(b'"');
    }

    fn write_times(&self, out: &mut Vec<u8>, kind: u64, (begun, ended): (Moment, Moment)) {
        out.extend_from_slice(b",\"kind\":");
        write_decimal(out, kind);
        for (name, moment) in [(&b",\"startTimeUnixNano\":\""[..], begun), (b",\"endTimeUnixNano\":\"", ended)] {
            out.extend_from_slice(name);
            write_decimal(out, wall_nanos(self.clock, moment));
            out.push(b'"');
        }
    }
}

/// As OTLP has times.
pub(super) fn wall_nanos(clock: Clock, moment: Moment) -> u64 {
    clock.wall_micros(moment) * 1_000 + moment.nanos % 1_000
}

/// `status`: 0 leaves it open whether it went well, as these conventions want it.
fn write_end(out: &mut Vec<u8>, is_error: bool) {
    out.extend_from_slice(if is_error { b",\"status\":{\"code\":2}}" } else { b"}" });
}

#[cfg(test)]
#[path = "otlp_spans_tests.rs"]
mod tests;
