//! Backends and probes: their attributes, each at most once, each of its type.

use std::collections::HashMap;

use super::Checker;
use crate::acl_entries::is_host_name;
use crate::codes::Code;
use crate::diagnostics::Diagnostic;
use crate::foreign;
use crate::limits::PROBE_WINDOW_MAX;
use crate::near_names::nearest;
use crate::source_files::{Sources, Span};
use crate::syntax::{Attribute, AttributeValue, Backend, Definition, Identifier};
use crate::typed_program::{Address, BackendId, Endpoint, Probe, ProbeId, ProbeRequest, Tls, ValueKind};
use crate::types::Type;

const BACKEND_ATTRIBUTES: [&str; 22] = [
    "host",
    "port",
    "path",
    "host_header",
    "connect_timeout",
    "first_byte_timeout",
    "between_bytes_timeout",
    "probe",
    "max_connections",
    "proxy_header",
    "preamble",
    "via",
    "authority",
    "wait_limit",
    "wait_timeout",
    "ssl",
    "ssl_sni",
    "ssl_nosni",
    "ssl_noverify",
    "ssl_verify_peer",
    "ssl_verify_host",
    "http2",
];

const PROBE_ATTRIBUTES: [&str; 9] =
    ["url", "request", "expected_response", "timeout", "interval", "window", "threshold", "initial", "expect_close"];

/// A probe that says nothing of itself.
pub(super) fn default_probe(name: Option<String>) -> Probe {
    Probe {
        name,
        request: ProbeRequest::Url("/".to_owned()),
        expected_status: 200,
        expect_close: true,
        timeout_s: 2.0,
        interval_s: 5.0,
        window: 8,
        threshold: 3,
        initial: 2,
    }
}

/// The attributes of one definition, by name.
type Attributes<'a> = HashMap<&'a str, &'a Attribute>;

impl Checker<'_> {
    pub(super) fn definitions(&mut self, definitions: &[Definition]) {
        let (mut acls, mut backends, mut probes) = (0, 0, 0);
        for definition in definitions {
            match definition {
                Definition::Acl(acl) => {
                    self.acl(acls, acl);
                    acls += 1;
                }
                Definition::Probe { name, attributes } => {
                    self.probe(ProbeId(probes), name.span, attributes);
                    probes += 1;
                }
                Definition::Backend(backend) => {
                    let endpoint = self.backend(backend, BackendId(backends));
                    self.program.backends[backends as usize].endpoint = endpoint;
                    backends += 1;
                }
                _ => {}
            }
        }
        self.ways_through_backends(definitions);
    }

    /// The attributes by name; unknown ones and second ones are reported.
    fn attributes<'s>(&mut self, of: &str, known: &[&str], attributes: &'s [Attribute]) -> Attributes<'s> {
        let mut found: Attributes<'s> = HashMap::new();
        for attribute in attributes {
            let name = attribute.name.text.as_str();
            if !known.contains(&name) {
                let report = Diagnostic::new(
                    Code::UnknownAttribute,
                    attribute.name.span,
                    format!("a {of} has no attribute `.{name}`"),
                );
                let report = match nearest(name, known.iter().copied()) {
                    Some(near) => report.did_you_mean(Some(near)),
                    None => report.note(format!("it has .{}", known.join(", ."))),
                };
                self.report(report);
            } else if let Some(first) = found.insert(name, attribute) {
                let report = Diagnostic::new(Code::Duplicate, attribute.name.span, format!("`.{name}` is given twice"))
                    .note_at(first.name.span, "the first is here");
                self.report(report);
            }
        }
        found
    }

    fn backend(&mut self, backend: &Backend, id: BackendId) -> Option<Endpoint> {
        let attributes = self.attributes("backend", &BACKEND_ATTRIBUTES, backend.attributes.as_ref()?);
        let get = |name: &str| attributes.get(name).copied();
        let address = self.address(&backend.name, get("host"), get("port"), get("path"));
        let proxy_header = get("proxy_header").and_then(|attribute| {
            let version = self.attribute_integer(attribute)?;
            if !(1..=2).contains(&version) {
                let what = "`.proxy_header` is 1 or 2, the versions of the PROXY protocol";
                self.report(Diagnostic::new(Code::BadBackend, attribute.span, what));
            }
            Some(version as u8)
        });
        let endpoint = Endpoint {
            address: address.unwrap_or_default(),
            host_header: get("host_header").and_then(|attribute| self.attribute_text(attribute)),
            connect_timeout_s: get("connect_timeout").and_then(|attribute| self.attribute_seconds(attribute)),
            first_byte_timeout_s: get("first_byte_timeout").and_then(|attribute| self.attribute_seconds(attribute)),
            between_bytes_timeout_s: get("between_bytes_timeout")
                .and_then(|attribute| self.attribute_seconds(attribute)),
            wait_timeout_s: get("wait_timeout").and_then(|attribute| self.attribute_seconds(attribute)),
            connections_max: get("max_connections").and_then(|attribute| self.attribute_integer(attribute)),
            waiting_max: get("wait_limit").and_then(|attribute| self.attribute_integer(attribute)),
            proxy_header,
            preamble: get("preamble").and_then(|attribute| self.attribute_blob(attribute)),
            probe: get("probe").and_then(|attribute| self.attribute_probe(attribute)).or(self.default_probe),
            via: get("via").and_then(|attribute| self.attribute_backend(attribute, id)),
            authority: get("authority").and_then(|attribute| self.attribute_text(attribute)),
            tls: self.tls(&attributes),
            http2: get("http2").is_some_and(|attribute| self.http2(attribute, &attributes)),
        };
        Some(endpoint)
    }

    /// larder's own: HTTP/2, as the server agrees to it over TLS, and without TLS by prior knowledge.
    fn http2(&mut self, said: &Attribute, attributes: &Attributes<'_>) -> bool {
        if self.attribute_flag(said) != Some(true) {
            return false;
        }
        // A connection carries many clients, to a host; and probes are HTTP/1.
        let is_clear = attributes.get("ssl").is_none_or(|ssl| self.attribute_flag(ssl) != Some(true));
        let others = ["proxy_header", "preamble", "via"].into_iter().chain(is_clear.then_some("path"));
        let others = others.chain(is_clear.then_some("probe"));
        for name in others {
            if let Some(other) = attributes.get(name) {
                let what = format!("`.{name}` and `.http2` cannot both be had");
                let report = Diagnostic::new(Code::BadBackend, said.span, what).note_at(other.span, "it is here");
                self.report(report);
            }
        }
        true
    }

    fn tls(&mut self, attributes: &Attributes<'_>) -> Tls {
        let mut flag = |name: &str| attributes.get(name).and_then(|attribute| self.attribute_flag(attribute));
        let (on, sni, no_sni) = (flag("ssl"), flag("ssl_sni"), flag("ssl_nosni"));
        let (no_verify, peer, host) = (flag("ssl_noverify"), flag("ssl_verify_peer"), flag("ssl_verify_host"));
        let contradicts = sni == Some(true) && no_sni == Some(true)
            || no_verify == Some(true) && (peer == Some(true) || host == Some(true));
        if let (true, Some(attribute)) = (contradicts, attributes.get("ssl_nosni").or(attributes.get("ssl_noverify"))) {
            self.report(Diagnostic::new(Code::BadBackend, attribute.span, "this contradicts another attribute"));
        }
        Tls {
            on: on == Some(true),
            without_sni: no_sni == Some(true) || sni == Some(false),
            without_verification: no_verify == Some(true) || peer == Some(false) && host == Some(false),
        }
    }

    fn address(
        &mut self,
        name: &Identifier,
        host: Option<&Attribute>,
        port: Option<&Attribute>,
        path: Option<&Attribute>,
    ) -> Option<Address> {
        let (Some(address), other) = (host.or(path), host.and(path)) else {
            let report =
                Diagnostic::new(Code::BadBackend, name.span, format!("backend `{}` has no address", name.text))
                    .way_out("give it `.host = \"name or address\";`, or `.path = \"/path/of/socket\";`");
            self.report(report);
            return None;
        };
        if let Some(path) = other {
            let what = "a backend has `.host` or `.path`, not both";
            self.report(Diagnostic::new(Code::Duplicate, path.span, what).note_at(address.span, "the other is here"));
        }
        if host.is_none() {
            let text = self.attribute_text(address)?;
            if !(text.starts_with('/') || text.starts_with('@') && text.len() > 1) {
                let what = "`.path` must be absolute, or begin with `@` for an abstract socket";
                self.report(Diagnostic::new(Code::BadBackend, address.span, what));
            }
            return Some(Address::Path(text));
        }
        let host = self.attribute_text(address)?;
        if foreign::has_placeholder(host.as_bytes()) {
            let report = Diagnostic::new(Code::Template, address.span, "this file is a template")
                .label("to be filled in by the program that the file belongs to")
                .way_out("check the file that the template makes");
            self.report(report);
        } else if host.is_empty() {
            self.report(Diagnostic::new(Code::BadBackend, address.span, "the host is empty"));
        } else if !is_host(&host) {
            let what = format!("`{host}` is no name and no address");
            self.report(Diagnostic::new(Code::BadBackend, address.span, what));
        }
        let port = port.and_then(|attribute| {
            let port = self.attribute_text(attribute)?;
            if port.is_empty() {
                return None; // the same as no port, as in Varnish
            }
            let good = port.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            if !good || port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_err() {
                self.report(Diagnostic::new(Code::BadBackend, attribute.span, format!("`{port}` is no port")));
            }
            Some(port)
        });
        Some(Address::Host { host, port })
    }

    fn attribute_probe(&mut self, attribute: &Attribute) -> Option<ProbeId> {
        match &attribute.value {
            AttributeValue::Probe(attributes) => {
                let id = ProbeId(self.program.probes.len() as u32);
                self.program.probes.push(default_probe(None));
                self.probe(id, attribute.name.span, attributes);
                Some(id)
            }
            AttributeValue::Expression(expression) => {
                let value = self.value(expression, Type::Probe)?;
                match value.kind {
                    ValueKind::Probe(id) => Some(id),
                    ValueKind::DefaultProbe(id) => id,
                    _ => None,
                }
            }
            AttributeValue::Texts(_) => {
                let what = "`.probe` is the name of a probe, or a probe in braces";
                self.report(Diagnostic::new(Code::TypeMismatch, attribute.span, what));
                None
            }
        }
    }

    fn attribute_backend(&mut self, attribute: &Attribute, of: BackendId) -> Option<BackendId> {
        let AttributeValue::Expression(expression) = &attribute.value else {
            self.report(Diagnostic::new(Code::TypeMismatch, attribute.span, "`.via` is the name of a backend"));
            return None;
        };
        match self.value(expression, Type::Backend)?.kind {
            ValueKind::Backend(id) if id == of => {
                self.report(Diagnostic::new(Code::BadBackend, attribute.span, "a backend cannot go through itself"));
                None
            }
            ValueKind::Backend(id) => Some(id),
            _ => None,
        }
    }

    fn probe(&mut self, id: ProbeId, place: Span, attributes: &[Attribute]) {
        let found = self.attributes("probe", &PROBE_ATTRIBUTES, attributes);
        let get = |name: &str| found.get(name).copied();
        let mut probe = default_probe(self.program.probes[id.index()].name.clone());
        if let (Some(url), Some(request)) = (get("url"), get("request")) {
            let report = Diagnostic::new(Code::BadProbe, request.span, "a probe has `.url` or `.request`, not both")
                .note_at(url.span, "the other is here")
                .in_varnish("Probe request redefinition at:");
            self.report(report);
        }
        if let Some(url) = get("url").and_then(|attribute| self.attribute_text(attribute)) {
            probe.request = ProbeRequest::Url(url);
        }
        if let Some(attribute) = get("request") {
            match &attribute.value {
                AttributeValue::Texts(texts) => {
                    probe.request = ProbeRequest::Lines(texts.iter().map(|(text, _)| text.clone()).collect());
                }
                _ => self.report(mismatch(attribute, "one or more strings")),
            }
        }
        if let Some(status) = get("expected_response").and_then(|attribute| self.attribute_integer(attribute)) {
            probe.expected_status = status.try_into().unwrap_or(0);
            if !(100..=999).contains(&status) {
                let span = get("expected_response").map_or(place, |attribute| attribute.span);
                self.report(Diagnostic::new(Code::BadProbe, span, "a status has three digits"));
            }
        }
        probe.timeout_s = get("timeout").and_then(|a| self.attribute_seconds(a)).unwrap_or(probe.timeout_s);
        probe.interval_s = get("interval").and_then(|a| self.attribute_seconds(a)).unwrap_or(probe.interval_s);
        probe.expect_close = get("expect_close").and_then(|a| self.attribute_flag(a)).unwrap_or(true);
        self.probe_window(&mut probe, get("window"), get("threshold"));
        probe.initial = probe.threshold.saturating_sub(1);
        if let Some(initial) = get("initial").and_then(|attribute| self.attribute_integer(attribute)) {
            probe.initial = initial.min(u64::from(probe.window)) as u32;
        }
        self.program.probes[id.index()] = probe;
    }

    fn probe_window(&mut self, probe: &mut Probe, window: Option<&Attribute>, threshold: Option<&Attribute>) {
        let given = |checker: &mut Self, attribute: Option<&Attribute>| {
            attribute.and_then(|attribute| checker.attribute_integer(attribute)).map(|n| n.min(u32::MAX.into()) as u32)
        };
        let (window_given, threshold_given) = (given(self, window), given(self, threshold));
        let window_max = u64::from(PROBE_WINDOW_MAX);
        match (window_given, threshold_given) {
            (Some(_), None) => {
                if let Some(window) = window {
                    let report = Diagnostic::new(Code::BadProbe, window.span, "`.window` without `.threshold`")
                        .way_out("say how many of the last probes must have been good: `.threshold = 3;`");
                    self.report(report);
                }
            }
            (window_given, Some(threshold_n)) => {
                probe.threshold = threshold_n;
                probe.window = window_given.unwrap_or(threshold_n.saturating_add(1));
            }
            (None, None) => {}
        }
        let too_big = [(window, window_given), (threshold, threshold_given)]
            .into_iter()
            .find_map(|(attribute, n)| attribute.filter(|_| n.is_some_and(|n| u64::from(n) > window_max)));
        if let Some(attribute) = too_big {
            self.report(Diagnostic::new(
                Code::BadProbe,
                attribute.span,
                format!("at most {window_max} probes are remembered"),
            ));
        } else if let (Some(threshold), true) = (threshold, probe.threshold > probe.window) {
            let what = "`.threshold` is more than `.window`: the backend would never be healthy";
            self.report(Diagnostic::new(Code::BadProbe, threshold.span, what));
        }
    }

    fn attribute_text(&mut self, attribute: &Attribute) -> Option<String> {
        match &attribute.value {
            AttributeValue::Texts(texts) => texts.first().map(|(text, _)| String::from_utf8_lossy(text).into_owned()),
            _ => {
                self.report(mismatch(attribute, "a string"));
                None
            }
        }
    }

    fn attribute_integer(&mut self, attribute: &Attribute) -> Option<u64> {
        let AttributeValue::Expression(expression) = &attribute.value else {
            self.report(quoted(self.sources, attribute, "a number without quotes"));
            return None;
        };
        match self.value(expression, Type::Int)?.kind {
            ValueKind::Int(number) if number >= 0 => Some(number as u64),
            _ => {
                self.report(mismatch(attribute, "a number"));
                None
            }
        }
    }

    fn attribute_seconds(&mut self, attribute: &Attribute) -> Option<f64> {
        let AttributeValue::Expression(expression) = &attribute.value else {
            self.report(quoted(self.sources, attribute, "a duration such as 5s, without quotes"));
            return None;
        };
        match self.value(expression, Type::Duration)?.kind {
            ValueKind::Duration(seconds) => Some(seconds),
            _ => {
                self.report(mismatch(attribute, "a duration such as 5s"));
                None
            }
        }
    }

    /// `true`, `false`, 1 or 0.
    fn attribute_flag(&mut self, attribute: &Attribute) -> Option<bool> {
        let AttributeValue::Expression(expression) = &attribute.value else {
            self.report(mismatch(attribute, "true or false"));
            return None;
        };
        let value = self.raw(expression, Type::Bool)?;
        match value.kind {
            ValueKind::Bool(flag) => Some(flag),
            ValueKind::Int(number) => Some(number != 0),
            _ => {
                self.report(mismatch(attribute, "true or false"));
                None
            }
        }
    }

    fn attribute_blob(&mut self, attribute: &Attribute) -> Option<Vec<u8>> {
        if let AttributeValue::Expression(expression) = &attribute.value
            && let ValueKind::Blob(bytes) = self.value(expression, Type::Blob)?.kind
        {
            return Some(bytes.into_vec());
        }
        self.report(mismatch(attribute, "a BLOB such as :3q2+7w==:"));
        None
    }
}

fn mismatch(attribute: &Attribute, wanted: &str) -> Diagnostic {
    Diagnostic::new(Code::TypeMismatch, attribute.span, format!("`.{}` is {wanted}", attribute.name.text))
}

/// A text where a number is wanted.
fn quoted(sources: &Sources, attribute: &Attribute, wanted: &str) -> Diagnostic {
    let report = mismatch(attribute, wanted);
    match &attribute.value {
        AttributeValue::Texts(texts) if !texts.is_empty() => {
            report.in_varnish(format!("Expected CNUM got '{}'", sources.text(texts[0].1)))
        }
        _ => report,
    }
}

/// A name or an address, with or without a port: `[::1]:80`, `name:port`, `name port`.
fn is_host(host: &str) -> bool {
    if is_address(host) {
        return true;
    }
    let name = host.split_once([':', ' ']).map_or(host, |(name, _)| name);
    is_host_name(name)
}

/// Numbers, not a name.
pub(super) fn is_address(host: &str) -> bool {
    if host.parse::<std::net::IpAddr>().is_ok() || host.parse::<std::net::SocketAddr>().is_ok() {
        return true;
    }
    let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inside.is_some_and(|inside| inside.parse::<std::net::Ipv6Addr>().is_ok())
}
