//! A WebSocket over a stream of HTTP/2 (RFC 8441): the extended CONNECT becomes the request by which HTTP/1.1 asks for the same, so that
//! routes, programs and origins see what they know.

use std::hash::{BuildHasher, RandomState};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use message::{FieldName, Fields, Method, Request, Version};
use wire::{ReceivedRequest, Refusal, RequestBody};

/// What `:protocol` may name here.
const WEBSOCKET: &[u8] = b"websocket";

/// RFC 8441 §3 leaves open what else may be asked for; RFC 9220 §3 answers so.
const PROTOCOL_UNKNOWN: Refusal = Refusal { status: 501, token: "connect-protocol-unknown", limit: None };

/// What an upgrade says and an extended CONNECT does not: the fields of the request, with these.
pub(crate) fn upgrade_fields(request: &Request<'_>, protocol: &[u8]) -> Result<Fields, Refusal> {
    if !protocol.eq_ignore_ascii_case(WEBSOCKET) {
        return Err(PROTOCOL_UNKNOWN);
    }
    let mut fields = Fields::default();
    request.fields.iter().for_each(|field| fields.push_field(&field));
    fields.push(FieldName::Connection, "Upgrade");
    fields.push(FieldName::Upgrade, "websocket");
    fields.push_named(b"Sec-WebSocket-Key", nonce().as_bytes());
    Ok(fields)
}

/// RFC 6455 §4.1: sixteen bytes that nobody has chosen, in base64.
fn nonce() -> String {
    let mut bytes = [0; 16];
    for half in bytes.chunks_exact_mut(8) {
        half.copy_from_slice(&RandomState::new().hash_one(0).to_be_bytes());
    }
    STANDARD.encode(bytes)
}

/// The request as HTTP/1.1 would bring it. What follows on the stream is no body of it.
pub(crate) fn as_upgrade<'a>(received: &ReceivedRequest<'a>, fields: &'a Fields) -> ReceivedRequest<'a> {
    let request = Request {
        method: Method::Get,
        method_text: b"GET",
        fields: fields.view(),
        version: Version::Http2,
        ..received.request.clone()
    };
    ReceivedRequest { request, body: RequestBody::None, expects_continue: false, upgrade: true, ..received.clone() }
}
