//! The spans of an exchange as OTLP has them in JSON: its own, and one for each time that an origin was asked for it.
//!
//! Names of attributes are those of OpenTelemetry's conventions for HTTP; what they have no name for begins with `larder.`.

use message::{write_address, write_decimal};

use crate::clock::{Clock, Moment};
use crate::events::exchange_event::ExchangeEvent;
use crate::events::origin_try::{OriginTry, TryOutcome};
use crate::limits::{LOG_FIELD_BYTES_MAX, LOG_TARGET_BYTES_MAX};
use crate::log_texts::escape_json;
use crate::traces::exchange_trace::ExchangeTrace;
use crate::traces::query_redaction::redacted;
use crate::traces::trace_ids::SpanId;
use crate::traces::try_span::TrySpan;

const SERVER: u64 = 2;
const CLIENT: u64 = 3;
/// Bits of `flags` above those of a traceparent: it is known whether the parent is another process', and it is.
const KNOWS_REMOTE: u64 = 0x100;
const IS_REMOTE: u64 = 0x200;

/// What these conventions know as methods.
const METHODS: [&[u8]; 9] = [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH"];

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
        attributes.method(event.method);
        attributes.text("url.scheme", event.scheme.text().as_bytes());
        attributes.long_text("url.path", event.path);
        if let Some(query) = event.query {
            attributes.long_text("url.query", &redacted(query));
        }
        if event.route.starts_with('/') {
            attributes.text("http.route", event.route.as_bytes());
        }
        if let Some(host) = event.host {
            attributes.host(host);
        }
        attributes.address("client.address", event.client);
        if let Some(agent) = event.user_agent {
            attributes.text("user_agent.original", agent);
        }
        attributes.text("network.protocol.version", event.version.number().as_bytes());
        if event.status > 0 {
            attributes.number("http.response.status_code", event.status.into());
        }
        attributes.number("http.response.body.size", event.body_bytes);
        if let Some(tls) = event.tls {
            attributes.text("tls.protocol.version", tls.version.trim_start_matches("TLSv").as_bytes());
        }
        attributes.text("larder.class", event.verdict.token().as_bytes());
        attributes.text("larder.reason", event.why.as_bytes());
        attributes.text("larder.route", event.route.as_bytes());
        attributes.text("larder.forwarded", event.forwarded.unwrap_or_default().as_bytes());
        if let Some(micros) = event.first_byte_micros {
            attributes.number("larder.time.first_byte", micros);
        }
        let is_error = event.is_error();
        if is_error {
            attributes.error(event.why, event.status);
        }
        attributes.end();
        write_end(out, is_error);
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
            write_decimal(out, self.clock.wall_micros(moment) * 1_000 + moment.nanos % 1_000);
            out.push(b'"');
        }
    }
}

/// `status`: 0 leaves it open whether it went well, as these conventions want it.
fn write_end(out: &mut Vec<u8>, is_error: bool) {
    out.extend_from_slice(if is_error { b",\"status\":{\"code\":2}}" } else { b"}" });
}

/// `,"attributes":[{"key":…,"value":{…}},…]`
struct Attributes<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl Attributes<'_> {
    fn begin(out: &mut Vec<u8>) -> Attributes<'_> {
        out.extend_from_slice(b",\"attributes\":[");
        Attributes { out, is_first: true }
    }

    fn key(&mut self, name: &str) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(b"{\"key\":\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\",\"value\":{");
    }

    /// What is empty is not there.
    fn text(&mut self, name: &str, text: &[u8]) {
        self.text_up_to(name, text, LOG_FIELD_BYTES_MAX);
    }

    fn long_text(&mut self, name: &str, text: &[u8]) {
        self.text_up_to(name, text, LOG_TARGET_BYTES_MAX);
    }

    fn text_up_to(&mut self, name: &str, text: &[u8], bytes_max: usize) {
        if !text.is_empty() {
            self.key(name);
            self.out.extend_from_slice(b"\"stringValue\":\"");
            escape_json(self.out, text, bytes_max);
            self.out.extend_from_slice(b"\"}}");
        }
    }

    fn number(&mut self, name: &str, number: u64) {
        self.key(name);
        self.out.extend_from_slice(b"\"intValue\":\"");
        write_decimal(self.out, number);
        self.out.extend_from_slice(b"\"}}");
    }

    fn address(&mut self, name: &str, address: std::net::IpAddr) {
        let mut text = Vec::new();
        write_address(&mut text, address);
        self.text(name, &text);
    }

    fn method(&mut self, method: &[u8]) {
        match METHODS.contains(&method) {
            true => self.text("http.request.method", method),
            false => {
                self.text("http.request.method", b"_OTHER");
                self.text("http.request.method_original", method);
            }
        }
    }

    /// Host, with a port or without.
    fn host(&mut self, host: &[u8]) {
        let text = String::from_utf8_lossy(host);
        match text.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse::<u16>().ok()?))) {
            Some((name, port)) => {
                self.text("server.address", name.as_bytes());
                self.number("server.port", port.into());
            }
            None => self.text("server.address", host),
        }
    }

    /// IP:PORT, or the path of a UNIX socket.
    fn origin_address(&mut self, label: &str) {
        match label.parse::<std::net::SocketAddr>() {
            Ok(address) => {
                for (address_key, port_key) in
                    [("server.address", "server.port"), ("network.peer.address", "network.peer.port")]
                {
                    self.address(address_key, address.ip());
                    self.number(port_key, address.port().into());
                }
            }
            Err(_) => self.text("server.address", label.as_bytes()),
        }
    }

    /// A token of ours, or the status.
    fn error(&mut self, token: &str, status: u16) {
        match token {
            "" => self.text("error.type", status.to_string().as_bytes()),
            token => self.text("error.type", token.as_bytes()),
        }
    }

    fn end(self) {
        self.out.push(b']');
    }
}

#[cfg(test)]
#[path = "otlp_spans_tests.rs"]
mod tests;
