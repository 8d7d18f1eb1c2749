//! What is recorded of a client's request and of the answer to it.

use std::net::SocketAddr;
use std::rc::Rc;

use message::{FieldName, FieldsView, Request, Version, write_address, write_decimal};
use vcl::Message;
use wire::{ReceivedRequest, Refusal, refusals};

use crate::clock::Moment;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::records::RecordKind;
use crate::records::record_kind::HeadPart;
use crate::records::record_text::{write_seconds, write_signed_seconds, write_status};
use crate::records::session_records::SessionRecords;
use crate::records::task_records::TaskRecords;
use crate::send_outcome::{self, SendOutcome};
use crate::vcl_story::scope_heads::usual_reason;
use crate::vcl_story::stored_view::StoredView;
use crate::vcl_story::xids;

/// Where Varnish keeps what it does not store.
pub(crate) const TRANSIENT: &[u8] = b"malloc Transient";

pub(crate) fn version_text(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
    }
}

/// A request as it came, and as a program first sees it.
pub(crate) fn begin(
    core: &Core,
    (session, xid): (Option<&SessionRecords>, u64),
    addresses: &ConnectionAddresses,
    program: &str,
    (received, expected, moment): (&ReceivedRequest<'_>, Option<&[u8]>, Moment),
) -> Option<Rc<TaskRecords>> {
    let records = TaskRecords::begin(core, Some(RecordKind::ReqAcct), xid, moment)?;
    let request = &received.request;
    let listener = announce(&records, session, request.version, moment);
    records.put(RecordKind::VclUse, &[program.as_bytes()]);
    if let Some(expected) = expected {
        records.field(RecordKind::ReqUnset, b"Expect", expected);
    }
    started(&records, addresses.client, listener);
    request_line(&records, Message::Req, request, request.version);
    fields(&records, RecordKind::ReqHeader, request.fields);
    completion(&records, request.fields, &addresses.peer);
    records.count(|carried| {
        carried.head_in = received.head_bytes as u64;
        if let wire::RequestBody::Length(length) = received.body {
            carried.body_in = length;
        }
    });
    Some(records)
}

/// Who asks, and where: of a request as it came, and of each restart of it.
pub(crate) fn started(records: &TaskRecords, client: SocketAddr, listener: &str) {
    records.record(RecordKind::ReqStart, |text| {
        write_address(text, client.ip());
        text.push(b' ');
        write_decimal(text, client.port().into());
        text.push(b' ');
        text.extend_from_slice(listener.as_bytes());
    });
}

/// The request for what a page includes, as its program first sees it.
pub(crate) fn begin_included(
    core: &Core,
    (parent, parent_xid): (&TaskRecords, u64),
    (xid, level): (u64, u32),
    (listener, program): (&str, &str),
    client: SocketAddr,
    request: &Request<'_>,
) -> Option<Rc<TaskRecords>> {
    let records = TaskRecords::begin(core, Some(RecordKind::ReqAcct), xid, Moment::now())?;
    parent.write(RecordKind::Link, format_args!("req {xid} esi {level}"));
    records.write(RecordKind::Begin, format_args!("req {parent_xid} esi {level}"));
    records.stamp("Start");
    started(&records, client, listener);
    records.put(RecordKind::VclUse, &[program.as_bytes()]);
    request_line(&records, Message::Req, request, request.version);
    fields(&records, RecordKind::ReqHeader, request.fields);
    Some(records)
}

/// Returns the listener's name.
fn announce<'s>(
    records: &TaskRecords,
    session: Option<&'s SessionRecords>,
    version: Version,
    moment: Moment,
) -> &'s str {
    let xid = records.xid();
    if let Some(session) = session {
        session.link(xid);
    }
    received_as(records, RecordKind::Begin, session.map_or(0, SessionRecords::xid));
    records.stamp_at("Start", moment);
    if version == Version::Http2 {
        records.put(RecordKind::ReqProtocol, &[version_text(version)]);
    }
    records.stamp_at("Req", moment);
    session.map_or("a0", SessionRecords::listener)
}

/// A request and its session name each other.
pub(crate) fn received_as(records: &TaskRecords, kind: RecordKind, other: u64) {
    records.record(kind, |text| {
        text.extend_from_slice(b"req ");
        write_decimal(text, other);
        text.extend_from_slice(b" rxreq");
    });
}

/// What was added before any program saw it: see `completed_fields::complete`.
fn completion(records: &TaskRecords, view: FieldsView<'_>, peer: &[u8]) {
    const NAME: &[u8] = b"X-Forwarded-For";
    let mut joined: Vec<u8> = Vec::new();
    for line in view.get_all(FieldName::XForwardedFor) {
        records.field(RecordKind::ReqUnset, NAME, line);
        joined.extend_from_slice(line);
        joined.extend_from_slice(b", ");
    }
    joined.extend_from_slice(peer);
    records.field(RecordKind::ReqHeader, NAME, &joined);
}

/// Method, URL and protocol of `req` or `bereq`.
pub(crate) fn request_line(records: &TaskRecords, of: Message, request: &Request<'_>, version: Version) {
    let put = |kind: RecordKind, parts: &[&[u8]]| records.put(kind, parts);
    let (method, url, protocol) = match of {
        Message::Bereq => (RecordKind::BereqMethod, RecordKind::BereqUrl, RecordKind::BereqProtocol),
        _ => (RecordKind::ReqMethod, RecordKind::ReqUrl, RecordKind::ReqProtocol),
    };
    put(method, &[request.method_text]);
    match request.query {
        None => put(url, &[request.path]),
        Some(query) => put(url, &[request.path, b"?", query]),
    }
    records.word(protocol, version_text(version));
}

pub(crate) fn fields(records: &TaskRecords, kind: RecordKind, fields: FieldsView<'_>) {
    fields.iter().for_each(|field| records.field(kind, field.name_text, field.value));
}

/// The head of `resp` or `beresp`.
pub(crate) fn response<'f>(
    records: &TaskRecords,
    of: Message,
    (status, reason): (u16, Option<&[u8]>),
    lines: impl Iterator<Item = (&'f [u8], &'f [u8])>,
) {
    let header = if of == Message::Beresp { RecordKind::BerespHeader } else { RecordKind::RespHeader };
    response_begins(records, of, (status, reason));
    lines.for_each(|(name, value)| records.field(header, name, value));
}

/// The same without its fields.
pub(crate) fn response_begins(records: &TaskRecords, of: Message, (status, reason): (u16, Option<&[u8]>)) {
    let protocol = if of == Message::Beresp { RecordKind::BerespProtocol } else { RecordKind::RespProtocol };
    records.word(protocol, b"HTTP/1.1");
    status_line(records, of, status, reason);
}

/// Status and reason of `resp` or `beresp`, which may change.
pub(crate) fn status_line(records: &TaskRecords, of: Message, status: u16, reason: Option<&[u8]>) {
    let kinds = (RecordKind::of_head(of, HeadPart::Status), RecordKind::of_head(of, HeadPart::Reason));
    if let (Some(of_status), Some(of_reason)) = kinds {
        records.record(of_status, |text| write_status(text, status));
        match reason {
            Some(reason) => records.put(of_reason, &[reason]),
            None => records.word(of_reason, usual_reason(status)),
        }
    }
}

/// 100 (Continue) goes to the client.
pub(crate) fn continued(records: &TaskRecords) {
    response(records, Message::Resp, (100, None), std::iter::empty());
}

/// The request's body is about to be read, past the store.
pub(crate) fn body_begins(records: &TaskRecords) {
    records.put(RecordKind::Storage, &[TRANSIENT]);
}

/// What is stored answers the request.
pub(crate) fn hit(records: &TaskRecords, stored: &StoredView<'_>, arriving: Option<(u64, Option<u64>)>) {
    let (life, xid) = (stored.lifetimes, stored_xid(stored.fields));
    records.record(RecordKind::Hit, |text| {
        write_decimal(text, xid);
        text.push(b' ');
        write_signed_seconds(text, left(life.ttl_ms));
        for ms in [life.grace_ms, life.keep_ms] {
            text.push(b' ');
            write_seconds(text, ms.saturating_mul(1_000));
        }
        let (so_far, length) = arriving.map_or((None, None), |(so_far, length)| (Some(so_far), length));
        for bytes in [so_far, length].into_iter().flatten() {
            text.push(b' ');
            write_decimal(text, bytes);
        }
    });
}

/// In microseconds. Freshness counts whole milliseconds, and is in the middle of one: nobody hits with all of a ttl left.
fn left(ttl_ms: i64) -> i64 {
    ttl_ms.saturating_mul(1_000).saturating_sub(500)
}

/// The number of the fetch that brought it.
pub(crate) fn stored_xid(fields: FieldsView<'_>) -> u64 {
    let text = fields.get_all_named(b"x-varnish").next();
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let appended = |number: u64, byte: &u8| number.checked_mul(10)?.checked_add(digit(byte)?);
    text.and_then(|text| text.iter().try_fold(0, appended)).unwrap_or(0)
}

/// A mark that the look-up met: until when it says so.
pub(crate) fn marked(records: &TaskRecords, kind: RecordKind, mark: &StoredView<'_>) {
    records.record(kind, |text| {
        write_decimal(text, stored_xid(mark.fields));
        text.push(b' ');
        write_signed_seconds(text, left(mark.lifetimes.ttl_ms));
    });
}

/// It went out.
pub(crate) fn sent(records: &TaskRecords, version: Version, (head_bytes, body_bytes): (u64, u64), persistent: bool) {
    match (version, persistent) {
        (Version::Http2, _) => records.put(RecordKind::RespProtocol, &[version_text(version)]),
        (_, true) => records.field(RecordKind::RespHeader, b"Connection", b"keep-alive"),
        (_, false) => records.field(RecordKind::RespHeader, b"Connection", b"close"),
    }
    records.count(|carried| (carried.head_out, carried.body_out) = (head_bytes, body_bytes));
}

/// Of a body that could not be read in its coding, in Varnish's words, with the number that zlib has for it.
pub(crate) fn cut(records: &TaskRecords, token: &str) {
    let why = match token {
        send_outcome::BODY_HAS_MORE => "1 (junk after VGZ_END)",
        send_outcome::BODY_UNREADABLE => "-3 (it cannot be read)",
        _ => return,
    };
    records.write(RecordKind::Gzip, format_args!("G(un)zip error: {why}"));
}

/// The client's body broke off while a program waited for all of it.
pub(crate) fn body_broke_off(records: &TaskRecords, body: wire::RequestBody) {
    let how = if matches!(body, wire::RequestBody::Length(_)) { "straight" } else { "chunked" };
    records.write(RecordKind::FetchError, format_args!("{how} insufficient bytes"));
}

/// The last of it: what went either way.
pub(crate) fn end(records: &TaskRecords, ended: Moment) {
    records.stamp_at("Resp", ended);
    records.end();
}

/// Bytes that are no request, or one over a limit, and the answer to them.
pub(crate) fn begin_refused(
    core: &Core,
    (session, version): (Option<&SessionRecords>, Version),
    refusal: &Refusal,
    garbage: &[u8],
) -> Option<Rc<TaskRecords>> {
    let records = begin_none(core, session, version)?;
    if let Some(byte) = bogus_name_byte(refusal, garbage) {
        records.write(RecordKind::BogoHeader, format_args!("Illegal char 0x{byte:02x} in header name"));
    }
    let line_end = garbage.iter().position(|&byte| byte == b'\r' || byte == b'\n').unwrap_or(garbage.len());
    if line_end > 0 {
        records.put(RecordKind::HttpGarbage, &[&garbage[..line_end]]);
    }
    records.write(RecordKind::Error, format_args!("{}", refusal.token));
    response(&records, Message::Resp, (refusal.status, None), std::iter::empty());
    records.count(|carried| carried.head_in = garbage.len() as u64);
    Some(records)
}

/// The first byte that cannot be in the name of a field, if the head was refused for one.
fn bogus_name_byte(refusal: &Refusal, head: &[u8]) -> Option<u8> {
    if *refusal != refusals::FIELD_NAME_INVALID {
        return None;
    }
    let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let lines = head.split(|&byte| byte == b'\n').skip(1);
    let names = lines.filter_map(|line| line.iter().position(|&byte| byte == b':').map(|colon| &line[..colon]));
    names.flatten().copied().find(|byte| !is_of_token(byte))
}

/// The answer went out.
pub(crate) fn end_refused(records: &TaskRecords, sent: &SendOutcome) {
    records.count(|carried| (carried.head_out, carried.body_out) = (sent.head_bytes, sent.body_bytes));
    end(records, Moment::now());
}

/// A head that is none, of a stream that is reset without an answer.
pub(crate) fn malformed(core: &Core, session: Option<&SessionRecords>, refusal: &Refusal) {
    if let Some(records) = begin_none(core, session, Version::Http2) {
        records.put(RecordKind::BogoHeader, &[refusal.token.as_bytes()]);
        records.end();
    }
}

/// Something came that is no request.
fn begin_none(core: &Core, session: Option<&SessionRecords>, version: Version) -> Option<Rc<TaskRecords>> {
    core.records.as_ref()?;
    let moment = Moment::now();
    let records = TaskRecords::begin(core, Some(RecordKind::ReqAcct), xids::next(&core.xids), moment)?;
    announce(&records, session, version, moment);
    Some(records)
}
