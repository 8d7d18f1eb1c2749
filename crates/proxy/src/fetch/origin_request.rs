//! The request to an origin as bytes, or as a stream of HTTP/2 has it. The head is generated: what frames the message or belongs to a connection is
//! never copied.

use std::cell::Cell;

use bytes::Bytes;
use message::{Field, FieldName, Fields, FieldsView, Method, Request, Response, Scheme, TargetForm, Version};
use rules::conditions::{self, Validators};
use rules::{Facts, forwarded};
use wire::http2::hpack::PseudoFields;
use wire::http2::write_request_block;
use wire::{HopByHop, Refusal, RequestBody, write_field};

use crate::client_identity::ClientIdentity;
use crate::fetch::claims;
use crate::fetch::head_sink::HeadSink;
use crate::fetch::purpose::Purpose;
use crate::fleet::fleet_secret::FleetSecret;
use crate::fleet::node_proof::{NODE_FIELD, NodeClaim, Proof};
use crate::limits::HEAD_BYTES_USUAL;
use crate::records::request_records;
use crate::route_rules::RouteRules;
use crate::route_rules::auth_request::{ORIGINAL_METHOD, ORIGINAL_URI};
use crate::settings::ParentLogin;
use crate::traces::exchange_trace::TraceForOrigin;
use crate::traces::trace_parent::{TRACEPARENT, TRACESTATE};
use crate::upstream::http2_exchange::StreamRequest;
use crate::websocket_proof;

/// A request to an origin, before it is bytes.
pub(crate) struct OriginRequest<'a> {
    /// As the client sent it, or as the program left it.
    pub(crate) request: Request<'a>,
    pub(crate) purpose: &'a Purpose,
    /// A program has made the head: only framing, the fields of the connection, and Via are ours. Else it is what the client
    /// sent, less what is not for the origin, and who asks.
    pub(crate) is_program_s: bool,
    /// `None`: something stale is refreshed in the background.
    pub(crate) client: Option<ClientIdentity>,
    /// Its place in a trace, in place of what its client or the program says.
    pub(crate) trace: Option<TraceForOrigin<'a>>,
    /// A proxy is asked and not the origin itself, and maybe wants name and password.
    pub(crate) parent: Option<Option<&'a ParentLogin>>,
    /// Another node of the fleet is asked, which has the route, and knows its client, by what is said here.
    pub(crate) node: Option<NodeRequest<'a>>,
    /// The Host that the origin is configured to be asked with.
    pub(crate) host: Option<&'a str>,
    /// Which codings it may answer in, where that is ours to say.
    pub(crate) accept_encoding: Option<&'a str>,
    /// Our name, for origins that know surrogates …
    pub(crate) server_name: &'a str,
    /// … and in Via.
    pub(crate) pseudonym: &'a str,
    /// Its answer may be a page with parts (ESI).
    pub(crate) speaks_esi: bool,
    pub(crate) body: RequestBody,
    /// The body itself, where it was read before: it is sent behind the head.
    pub(crate) carried: Option<&'a Bytes>,
    pub(crate) expects_continue: bool,
    /// What its route says.
    pub(crate) rules: Option<&'a RouteRules>,
}

/// What another node of the fleet is told beside the request.
pub(crate) struct NodeRequest<'a> {
    pub(crate) claim: NodeClaim,
    pub(crate) secret: &'a FleetSecret,
    /// Where the proof is noted: the answer is about it.
    pub(crate) proof: &'a Cell<Proof>,
}

/// What a client says of codings that it takes, and of what it has for them.
const IS_FOR_OUR_CODINGS: [FieldName; 3] =
    [FieldName::AcceptEncoding, FieldName::AvailableDictionary, FieldName::DictionaryId];

impl OriginRequest<'_> {
    /// The head, and the body behind it if that is here already.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD_BYTES_USUAL);
        self.write_request_line(&mut out);
        self.write_fields(&mut out);
        self.write_connection(&mut out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.carried.map_or(&[][..], |carried| carried));
        out
    }

    /// The same as a stream of HTTP/2 has it, on a connection of this scheme. A refusal: HTTP/2 has no place for something of it.
    pub(crate) fn to_stream(&self, scheme: Scheme) -> Result<StreamRequest, Refusal> {
        let mut fields = Fields::default();
        self.write_fields(&mut fields);
        if self.request.fields.has_token(FieldName::Te, "trailers") {
            fields.push(FieldName::Te, "trailers");
        }
        let is_websocket = matches!(self.purpose, Purpose::Upgrade);
        let key = fields.view().get_all_named(websocket_proof::KEY).next().map(websocket_proof::of);
        let proof = key.filter(|_| is_websocket);
        if is_websocket {
            fields.retain(|field| !field.name_text.eq_ignore_ascii_case(websocket_proof::KEY));
        }
        let mut target = Vec::new();
        self.request.write_target(&mut target);
        let line = PseudoFields {
            method: if is_websocket { b"CONNECT" } else { self.request.method_text },
            target: (self.request.form != TargetForm::Authority).then_some((scheme, &target[..])),
            authority: fields.view().get(FieldName::Host),
            protocol: is_websocket.then_some(&b"websocket"[..]),
        };
        let mut block = Vec::with_capacity(HEAD_BYTES_USUAL);
        write_request_block(&line, fields.view(), &mut block)?;
        Ok(StreamRequest {
            method: if is_websocket { Method::Connect } else { self.request.method },
            block,
            goes_on: self.body.follows() || is_websocket,
            carried: self.carried.cloned(),
            proof,
        })
    }

    /// All fields but those of the connection.
    fn write_fields(&self, out: &mut impl HeadSink) {
        let kept = without_nominated(self.request.fields);
        let fields = kept.as_ref().map_or(self.request.fields, Fields::view);
        if self.is_program_s {
            self.write_program_fields(out);
        } else {
            self.write_host(out);
            self.write_client_fields(out);
            write_range_and_conditions(self.purpose, out);
            match &self.node {
                None => self.write_forwarding(fields, out),
                Some(node) => self.write_for_node(node, fields, out),
            }
        }
        out.field_of("Via", |out| forwarded::write_via(fields, self.request.version, self.pseudonym, out));
        match (self.body, self.carried) {
            (RequestBody::None, None) | (RequestBody::Chunked, _) => {}
            (RequestBody::None, Some(carried)) => out.number("Content-Length", carried.len() as u64),
            (RequestBody::Length(length), _) => out.number("Content-Length", length),
        }
        if self.expects_continue && self.body != RequestBody::None {
            out.field(b"Expect", b"100-continue");
        }
    }

    /// The fields that a server tells a program of: what it asks for, without those of proxies on the way.
    pub(super) fn write_server_fields(&self, out: &mut impl HeadSink) {
        if self.host.is_some() || !self.request.authority.host.is_empty() {
            self.write_host(out);
        }
        self.write_client_fields(out);
        write_range_and_conditions(self.purpose, out);
        self.write_capability(out);
    }

    fn write_request_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.request.method_text);
        out.push(b' ');
        self.write_target(out);
        out.push(b' ');
        // Who answers to an unframed connection must know what its other end understands.
        let version = if self.is_raw() { self.request.version } else { Version::Http11 };
        out.extend_from_slice(request_records::version_text(version));
        out.extend_from_slice(b"\r\n");
    }

    /// RFC 9112 §3.2: a proxy is asked for the whole URL, and for a tunnel by host and port.
    fn write_target(&self, out: &mut Vec<u8>) {
        let request = &self.request;
        if request.form == TargetForm::Authority {
            return request.authority.write_to(out);
        }
        if self.parent.is_some() {
            out.extend_from_slice(request.scheme.text().as_bytes());
            out.extend_from_slice(b"://");
            request.authority.write_to(out);
        }
        match request.form.at_origin(request.path) {
            TargetForm::Asterisk if self.parent.is_some() => {}
            _ => request.write_target(out),
        }
    }

    fn write_host(&self, out: &mut impl HeadSink) {
        out.field_of("Host", |out| match self.host {
            Some(host) => out.extend_from_slice(host.as_bytes()),
            None => self.request.authority.write_to(out),
        });
        if let Some(login) = self.parent.flatten() {
            out.field(b"Proxy-Authorization", login.credentials());
        }
    }

    /// What the client sent, less what is not for the origin.
    fn write_client_fields(&self, out: &mut impl HeadSink) {
        let request = &self.request;
        let for_many = self.purpose.is_for_many();
        let trusted = self.client.is_some_and(|client| client.peer_is_trusted);
        // One answer for all, whatever the one takes who asks first: what it lies in we change.
        let asks_codings = self.accept_encoding.filter(|_| for_many);
        let hop_by_hop = HopByHop::of(request.fields);
        for field in request.fields.iter() {
            if hop_by_hop.drops(&field) || is_ours_to_write(field.name) || self.is_told_of_trace(&field) {
                continue;
            }
            let is_route_s = || self.rules.is_some_and(|rules| rules.puts(&field));
            // A service is told by us alone, and an origin by its route; a stranger's own word is nobody's.
            let is_told_anew = || matches!(self.purpose, Purpose::Question) || !trusted && !is_route_s();
            if for_many && is_kept_from_shared_fetch(field.name) || field.name == FieldName::XRealIp && is_told_anew() {
                continue;
            }
            if claims::is_of_clients_address(&field) && self.is_contradicted(&field) && !is_route_s() {
                continue;
            }
            if asks_codings.is_some() && IS_FOR_OUR_CODINGS.contains(&field.name) {
                continue;
            }
            if field.name == FieldName::Other
                && claims::is_kept_from_origins(&field, for_many, trusted)
                && !is_route_s()
            {
                continue;
            }
            if field.name == FieldName::MaxForwards && request.method == Method::Options {
                write_fewer_forwards(field.value, out);
                continue;
            }
            out.field(field.name_text, field.value);
        }
        if let Some(codings) = asks_codings {
            out.field(b"Accept-Encoding", codings.as_bytes());
        }
        self.write_trace(out);
    }

    /// Does the field say what is said by us?
    fn is_told_of_trace(&self, field: &Field<'_>) -> bool {
        let is_one_of = || [TRACEPARENT, TRACESTATE].iter().any(|name| field.name_text.eq_ignore_ascii_case(name));
        field.name == FieldName::Other && self.trace.is_some() && is_one_of()
    }

    fn write_trace(&self, out: &mut impl HeadSink) {
        let Some(trace) = &self.trace else { return };
        out.field(TRACEPARENT, trace.traceparent().as_ref());
        if let Some(state) = trace.tracestate() {
            out.field(TRACESTATE, state);
        }
    }

    /// Is an address, which a trusted proxy hands on, another one than it names in X-Forwarded-For or Forwarded? Then it is what came to the proxy,
    /// which writes one of the fields and leaves the others as they are.
    fn is_contradicted(&self, field: &Field<'_>) -> bool {
        let fields = self.request.fields;
        let is_named = fields.contains(FieldName::XForwardedFor) || fields.contains(FieldName::Forwarded);
        // The route may have taken both out since.
        let contradicts = |client: &ClientIdentity| is_named || client.peer.ip() != client.ip;
        let client = self.client.filter(|client| contradicts(client));
        client.is_some_and(|client| forwarded::node_address(field.value) != Some(client.ip))
    }

    fn write_program_fields(&self, out: &mut impl HeadSink) {
        let fields = self.request.fields;
        if let Some(host) = self.host.filter(|_| !fields.contains(FieldName::Host)) {
            out.field(b"Host", host.as_bytes());
        }
        let hop_by_hop = HopByHop::of(fields);
        for field in fields.iter() {
            let is_ours = matches!(
                field.name,
                FieldName::ContentLength | FieldName::TransferEncoding | FieldName::Expect | FieldName::Via
            );
            // Of what is piped the program alone says what its connection is.
            if !is_ours && !self.is_told_of_trace(&field) && (self.is_raw() || !hop_by_hop.drops(&field)) {
                out.field(field.name_text, field.value);
            }
        }
        self.write_trace(out);
    }

    /// The same to another node of the fleet, which believes it by the proof.
    fn write_for_node(&self, node: &NodeRequest<'_>, fields: FieldsView<'_>, out: &mut impl HeadSink) {
        let mut forwarding = Fields::default();
        self.write_senders(fields, &mut forwarding);
        self.write_site(fields, &mut forwarding);
        let proof = node.claim.proof(node.secret, &self.request, forwarding.view());
        node.proof.set(proof);
        forwarding.view().iter().for_each(|field| out.field(field.name_text, field.value));
        out.field(NODE_FIELD.as_bytes(), node.claim.said(&proof).as_bytes());
    }

    /// Who asked, through whom. An untrusted peer's own claims are replaced, and the destinations of a forward proxy, which do
    /// not know us, are told nothing of who asks.
    fn write_forwarding(&self, fields: FieldsView<'_>, out: &mut impl HeadSink) {
        let request = &self.request;
        if matches!(request.form, TargetForm::Absolute | TargetForm::Authority) {
            return;
        }
        match self.client {
            // The node that sends it on has said all of it.
            Some(client) if client.is_node => {
                let said = fields.iter().filter(|field| SENDERS.contains(&field.name));
                said.for_each(|field| out.field(field.name_text, field.value));
                self.write_capability(out);
            }
            _ => {
                self.write_senders(fields, out);
                self.write_capability(out);
                self.write_site(fields, out);
            }
        }
        if matches!(self.purpose, Purpose::Question) {
            if let Some(client) = self.client {
                out.field_of("X-Real-IP", |out| message::write_address(out, client.ip));
            }
            for (name, original) in [(&b"X-Forwarded-Uri"[..], ORIGINAL_URI), (b"X-Forwarded-Method", ORIGINAL_METHOD)]
            {
                fields.get_all_named(original).for_each(|value| out.field(name, value));
            }
        }
    }

    /// The client, and who is between it and us.
    fn write_senders(&self, fields: FieldsView<'_>, out: &mut impl HeadSink) {
        let request = &self.request;
        let trusted = self.client.is_some_and(|client| client.peer_is_trusted);
        if let Some(peer) = self.client.map(|client| client.peer.ip()) {
            out.field_of("X-Forwarded-For", |out| forwarded::write_forwarded_for(peer, trusted, fields, out));
            let mut host = Vec::new();
            request.authority.write_to(&mut host);
            out.field_of("Forwarded", |out| {
                forwarded::write_forwarded(peer, trusted, fields, &host, request.scheme, out)
            });
        }
    }

    /// The site as its client knows it.
    fn write_site(&self, fields: FieldsView<'_>, out: &mut impl HeadSink) {
        let request = &self.request;
        let trusted = self.client.is_some_and(|client| client.peer_is_trusted);
        out.field(b"X-Forwarded-Proto", request.scheme.text().as_bytes());
        match fields.get(FieldName::XForwardedHost).filter(|_| trusted) {
            Some(host) => out.field(b"X-Forwarded-Host", host),
            None if request.authority.host.is_empty() => {}
            None => out.field_of("X-Forwarded-Host", |out| request.authority.write_to(out)),
        }
    }

    /// Edge Architecture 1.0: origins that know it answer with a Surrogate-Control meant for us.
    fn write_capability(&self, out: &mut impl HeadSink) {
        if self.purpose.is_for_many() || self.speaks_esi {
            let esi = if self.speaks_esi { " ESI/1.0" } else { "" };
            let capability = format!("{}=\"Surrogate/1.0{esi}\"", self.server_name);
            out.field(b"Surrogate-Capability", capability.as_bytes());
        }
    }

    /// What HTTP/1 says of the connection, and of a body of unknown length.
    fn write_connection(&self, out: &mut Vec<u8>) {
        if self.body == RequestBody::Chunked {
            write_field(out, b"Transfer-Encoding", b"chunked");
        }
        if is_last(self.purpose, self.is_program_s, self.request.fields) && !self.is_raw() {
            write_field(out, b"Connection", b"close");
        }
        if matches!(self.purpose, Purpose::Upgrade) {
            write_field(out, b"Connection", b"Upgrade");
            for protocol in self.request.fields.get_all(FieldName::Upgrade) {
                write_field(out, b"Upgrade", protocol);
            }
        }
    }

    fn is_raw(&self) -> bool {
        matches!(self.purpose, Purpose::Raw)
    }
}

/// Nothing follows on the origin's connection: it pipes without an Upgrade, or the program says `Connection: close`.
pub(super) fn is_last(purpose: &Purpose, is_program_s: bool, fields: FieldsView<'_>) -> bool {
    matches!(purpose, Purpose::Piped) || (is_program_s && fields.has_token(FieldName::Connection, "close"))
}

/// In these is said who asked, through whom.
const SENDERS: [FieldName; 4] =
    [FieldName::XForwardedFor, FieldName::Forwarded, FieldName::XForwardedProto, FieldName::XForwardedHost];

/// Fields that every forwarded head gets anew.
fn is_ours_to_write(name: FieldName) -> bool {
    matches!(
        name,
        FieldName::Host
            | FieldName::ContentLength
            | FieldName::TransferEncoding
            | FieldName::Expect
            | FieldName::Via
            | FieldName::Forwarded
            | FieldName::XForwardedFor
            | FieldName::XForwardedHost
            | FieldName::XForwardedProto
            | FieldName::XForwardedPort
            | FieldName::Upgrade
    )
}

/// A response that many will get must not depend on one client's conditions, nor on fields that applications obey
/// and keys do not hold (bad-inputs J02).
fn is_kept_from_shared_fetch(name: FieldName) -> bool {
    conditions::is_condition(name)
        || matches!(
            name,
            FieldName::Range
                | FieldName::IfRange
                | FieldName::XOriginalUrl
                | FieldName::XRewriteUrl
                | FieldName::XHttpMethodOverride
        )
}

/// RFC 9110 §7.6.2: one fewer.
fn write_fewer_forwards(value: &[u8], out: &mut impl HeadSink) {
    let left = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(left) = left {
        out.number("Max-Forwards", left.saturating_sub(1));
    }
}

fn write_range_and_conditions(purpose: &Purpose, out: &mut impl HeadSink) {
    let mut added = Fields::default();
    add_range(purpose, &mut added);
    if let Purpose::Store(Some(stale)) = purpose {
        add_conditions(stale.response(), &stale.facts(), &mut added);
    }
    added.view().iter().for_each(|field| out.field(field.name_text, field.value));
}

/// What a slice is asked for by (RFC 9110 §13.1.5, §14.2).
pub(crate) fn add_range(purpose: &Purpose, fields: &mut Fields) {
    let Purpose::Slice { range, if_range } = purpose else { return };
    fields.push(FieldName::Range, format!("bytes={}-{}", range.start, range.end - 1));
    if let Some(etag) = if_range {
        fields.push(FieldName::IfRange, etag);
    }
}

/// By what a stored response is to be confirmed (RFC 9111 §4.3.1).
pub(crate) fn add_conditions(stored: Response<'_>, facts: &Facts, fields: &mut Fields) {
    let Some(validators) = Validators::of(stored, facts) else { return };
    if let Some(etag) = validators.if_none_match {
        fields.push(FieldName::IfNoneMatch, etag);
    }
    if let Some(date) = validators.if_modified_since {
        fields.push(FieldName::IfModifiedSince, date);
    }
}

/// What Connection names ends here, forwarding fields included, before ours are added (RFC 9110 §7.6.1). `None` when
/// it names none of them.
fn without_nominated(fields: FieldsView<'_>) -> Option<Fields> {
    let tells_the_way = |name: FieldName| {
        matches!(
            name,
            FieldName::Via
                | FieldName::Forwarded
                | FieldName::XForwardedFor
                | FieldName::XForwardedHost
                | FieldName::XForwardedProto
        )
    };
    if !fields.names().any(tells_the_way) {
        return None;
    }
    let hop_by_hop = HopByHop::of(fields);
    if !fields.iter().any(|field| tells_the_way(field.name) && hop_by_hop.drops(&field)) {
        return None;
    }
    Some(HopByHop::end_to_end(fields))
}

#[cfg(test)]
#[path = "origin_request_tests.rs"]
mod tests;
