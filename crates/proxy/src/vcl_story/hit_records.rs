//! What is recorded of a hit behind the look-up, and of subroutines that a program leaves to builtin.vcl: what these do with a hit is known,
//! so they are told of as if they had run.

use std::sync::Arc;

use cache::{Now, Object};
use message::{FieldName, Status};
use smallvec::SmallVec;
use vcl::{Arena, Fault};
use wire::has_length;

use crate::head_form::{ACCEPT_RANGES, AGE, CONTENT_LENGTH, X_VARNISH};
use crate::parsed_request::ParsedRequest;
use crate::records::task_records::TaskRecords;
use crate::records::{RecordKind, request_records};
use crate::site::Site;
use crate::vcl_story::field_bits::Name;
use crate::vcl_story::filter_names;
use crate::vcl_story::scope_heads::ResponseHalf;
use crate::vcl_story::stored_view::StoredView;

const VIA: Name<'static> = Name::of_known(FieldName::Via);
const ACCEPT_ENCODING: Name<'static> = Name::of_known(FieldName::AcceptEncoding);

/// `resp` as vcl_deliver first sees it: the stored head, with what every answer of ours carries.
pub(crate) fn begin_response<'a>(
    response: &ResponseHalf<'a>,
    (site, arena): (&'a Site, &'a Arena),
    object: &'a Object,
    (xid, now): (u64, Now),
) -> Result<(), Fault> {
    let fields = object.fields();
    response.begin(object.status().0, object.reason(), fields);
    let resp = &response.fields;
    let digits = &mut [0; message::DIGITS_MAX];
    let xids = match resp.first(X_VARNISH) {
        Some(fetch) => arena.join(&[message::decimal(digits, xid), b" ", fetch])?,
        None => arena.copy(message::decimal(digits, xid))?,
    };
    resp.set(X_VARNISH, xids);
    resp.set(AGE, arena.copy(message::decimal(digits, object.age_s(now)))?);
    resp.add(VIA, site.via.as_bytes());
    if object.status() == Status::OK && site.settings.vcl.http_range_support {
        resp.set(ACCEPT_RANGES, b"bytes");
    }
    if has_length(object.status()) {
        resp.set(CONTENT_LENGTH, arena.copy(message::decimal(digits, object.body_len()))?);
    }
    Ok(())
}

/// That head.
pub(crate) fn response(records: &TaskRecords, response: &ResponseHalf<'_>) {
    let status = (response.status.get(), response.reason.get());
    request_records::response_begins(records, vcl::Message::Resp, status);
    response.fields.each(|_, name, value| records.field(RecordKind::RespHeader, name, value));
}

/// A subroutine that says nothing but what it returns.
#[inline(always)]
fn subroutine(records: &TaskRecords, name: &[u8], action: &[u8]) {
    records.word(RecordKind::VclCall, name);
    records.word(RecordKind::VclReturn, action);
}

/// What builtin.vcl's vcl_hit says.
pub(crate) fn builtin_hit(records: &TaskRecords) {
    subroutine(records, b"HIT", b"deliver");
}

/// The head that goes out, vcl_deliver of builtin.vcl, and that the body goes as it is.
pub(crate) fn builtin_deliver(records: &TaskRecords, head: &ResponseHalf<'_>) {
    response(records, head);
    subroutine(records, b"DELIVER", b"deliver");
    records.stamp("Process");
    records.word(RecordKind::Filters, b"");
}

/// All of a hit that builtin.vcl alone decides: a GET or HEAD of a path at a host. With a fault nothing is recorded.
pub(crate) fn builtin(
    records: &TaskRecords,
    (site, arena): (&Site, &Arena),
    parsed: &ParsedRequest<'_>,
    object: &Arc<Object>,
    (xid, now): (u64, Now),
) -> Result<(), Fault> {
    let (request, head) = (&parsed.received.request, ResponseHalf::none());
    begin_response(&head, (site, arena), object, (xid, now))?;
    subroutine(records, b"RECV", b"hash");
    let lines: SmallVec<[&[u8]; 2]> = request.fields.get_all(FieldName::AcceptEncoding).collect();
    if site.settings.vcl.http_gzip_support && !is_plainly_gzip(&lines) {
        codings(records, &lines, filter_names::names_gzip(lines.iter().copied()));
    }
    records.word(RecordKind::VclCall, b"HASH");
    match request.query {
        None => records.put(RecordKind::Hash, &[request.path]),
        Some(query) => records.put(RecordKind::Hash, &[request.path, b"?", query]),
    }
    records.put(RecordKind::Hash, &[request.fields.get(FieldName::Host).unwrap_or_default()]);
    records.word(RecordKind::VclReturn, b"lookup");
    request_records::hit(records, &StoredView::of(object, now), None);
    builtin_hit(records);
    builtin_deliver(records, &head);
    Ok(())
}

/// Are these lines of Accept-Encoding as they stay?
pub(crate) fn is_plainly_gzip(lines: &[&[u8]]) -> bool {
    lines.is_empty() || *lines == [&b"gzip"[..]]
}

/// Behind vcl_recv these lines of Accept-Encoding are one that says gzip, or gone: see `client_steps::say_codings`.
pub(crate) fn codings(records: &TaskRecords, lines: &[&[u8]], takes_gzip: bool) {
    lines.iter().for_each(|line| records.field(RecordKind::ReqUnset, ACCEPT_ENCODING.text, line));
    if takes_gzip {
        records.field(RecordKind::ReqHeader, ACCEPT_ENCODING.text, b"gzip");
    }
}
