//! Attributes of spans and log records, as OTLP has them in JSON.
//!
//! Names are those of OpenTelemetry's conventions for HTTP; what they have no name for begins with `larder.`.

use message::{write_address, write_decimal};

use crate::events::exchange_event::ExchangeEvent;
use crate::limits::{LOG_FIELD_BYTES_MAX, LOG_TARGET_BYTES_MAX};
use crate::log_texts::escape_json;
use crate::traces::query_redaction::redacted;

/// What these conventions know as methods.
pub(super) const METHODS: [&[u8]; 9] =
    [b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH"];

/// `,"attributes":[{"key":…,"value":{…}},…]`
pub(super) struct Attributes<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl Attributes<'_> {
    pub(super) fn begin(out: &mut Vec<u8>) -> Attributes<'_> {
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

    /// What is known of an exchange.
    pub(super) fn exchange(&mut self, event: &ExchangeEvent<'_>) {
        self.method(event.method);
        self.text("url.scheme", event.scheme.text().as_bytes());
        self.long_text("url.path", event.path);
        if let Some(query) = event.query {
            self.long_text("url.query", &redacted(query));
        }
        if event.route.starts_with('/') {
            self.text("http.route", event.route.as_bytes());
        }
        if let Some(host) = event.host {
            self.host(host);
        }
        self.address("client.address", event.client);
        if let Some(agent) = event.user_agent {
            self.text("user_agent.original", agent);
        }
        self.text("network.protocol.version", event.version.number().as_bytes());
        if event.status > 0 {
            self.number("http.response.status_code", event.status.into());
        }
        self.number("http.response.body.size", event.body_bytes);
        if let Some(tls) = event.tls {
            self.text("tls.protocol.version", tls.version.trim_start_matches("TLSv").as_bytes());
        }
        self.text("larder.class", event.verdict.token().as_bytes());
        self.text("larder.reason", event.why.as_bytes());
        self.text("larder.route", event.route.as_bytes());
        self.text("larder.forwarded", event.forwarded.unwrap_or_default().as_bytes());
        if let Some(micros) = event.first_byte_micros {
            self.number("larder.time.first_byte", micros);
        }
        if event.is_error() {
            self.error(event.why, event.status);
        }
    }

    /// What is empty is not there.
    pub(super) fn text(&mut self, name: &str, text: &[u8]) {
        self.text_up_to(name, text, LOG_FIELD_BYTES_MAX);
    }

    pub(super) fn long_text(&mut self, name: &str, text: &[u8]) {
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

    pub(super) fn number(&mut self, name: &str, number: u64) {
        self.key(name);
        self.out.extend_from_slice(b"\"intValue\":\"");
        write_decimal(self.out, number);
        self.out.extend_from_slice(b"\"}}");
    }

    pub(super) fn address(&mut self, name: &str, address: std::net::IpAddr) {
        let mut text = Vec::new();
        write_address(&mut text, address);
        self.text(name, &text);
    }

    pub(super) fn method(&mut self, method: &[u8]) {
        match METHODS.contains(&method) {
            true => self.text("http.request.method", method),
            false => {
                self.text("http.request.method", b"_OTHER");
                self.text("http.request.method_original", method);
            }
        }
    }

    /// Host, with a port or without.
    pub(super) fn host(&mut self, host: &[u8]) {
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
    pub(super) fn origin_address(&mut self, label: &str) {
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
    pub(super) fn error(&mut self, token: &str, status: u16) {
        match token {
            "" => self.text("error.type", status.to_string().as_bytes()),
            token => self.text("error.type", token.as_bytes()),
        }
    }

    pub(super) fn end(self) {
        self.out.push(b']');
    }
}
