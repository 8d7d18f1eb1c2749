//! What is recorded of a fetch: the request to the backend, the connection it goes by, and what comes of it.

use std::rc::Rc;

use cache::{Failure, Now};
use coding::Coding;
use message::{FieldName, FieldsView, Request, ResponseHead, Version};
use rules::date::parse_date;
use rules::{Lifetimes, ResponseDirectives};
use vcl::Message;
use wire::{Refusal, RequestBody, ResponseBody, refusals};

use crate::clock::Moment;
use crate::core::Core;
use crate::filter_chain::{FilterKind, FilterTally};
use crate::records::RecordKind;
use crate::records::request_records;
use crate::records::task_records::TaskRecords;
use crate::upstream::Upstream;

/// Why somebody fetches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FetchReason {
    Miss,
    Pass,
    Background,
    Pipe,
}

impl FetchReason {
    fn name(self) -> &'static str {
        match self {
            FetchReason::Miss => "fetch",
            FetchReason::Pass => "pass",
            FetchReason::Background => "bgfetch",
            FetchReason::Pipe => "pipe",
        }
    }
}

/// A fetch for the request with these records.
pub(crate) fn begin(
    core: &Core,
    client: Option<&TaskRecords>,
    (xid, reason): (u64, FetchReason),
    program: &str,
    request: &Request<'_>,
) -> Option<Rc<TaskRecords>> {
    let records = TaskRecords::begin(core, Some(RecordKind::BereqAcct), xid, Moment::now())?;
    let reason = reason.name();
    if let Some(client) = client {
        client.write(RecordKind::Link, format_args!("bereq {xid} {reason}"));
    }
    records.write(RecordKind::Begin, format_args!("bereq {} {reason}", client.map_or(0, TaskRecords::xid)));
    records.put(RecordKind::VclUse, &[program.as_bytes()]);
    records.stamp("Start");
    // What we ask is HTTP/1.1, whatever we were asked; as in Varnish, where that was HTTP/2 it is there, too.
    if request.version == Version::Http2 {
        asked(&records, request, Version::Http2);
        records.put(RecordKind::BereqProtocol, &[request_records::version_text(Version::Http11)]);
    } else {
        asked(&records, request, Version::Http11);
    }
    Some(records)
}

/// The request as vcl_backend_fetch first sees it.
fn asked(records: &TaskRecords, request: &Request<'_>, version: Version) {
    request_records::request_line(records, Message::Bereq, request, version);
    request_records::fields(records, RecordKind::BereqHeader, request.fields);
}

/// A connection is there.
pub(crate) fn opened(records: &TaskRecords, backend: &str, upstream: &Upstream) {
    records.stamp("Connected");
    let (number, (remote, local)) = (upstream.descriptor(), upstream.ends());
    let how = if upstream.is_reused() { "reuse" } else { "connect" };
    records.write(
        RecordKind::BackendOpen,
        format_args!("{number} {backend} {} {} {} {} {how}", remote.ip(), remote.port(), local.ip(), local.port()),
    );
}

/// The request is on its way.
pub(crate) fn sent(records: &TaskRecords, head_bytes: usize, body: RequestBody) {
    records.stamp("Bereq");
    records.count(|carried| {
        carried.head_out += head_bytes as u64;
        if let RequestBody::Length(length) = body {
            carried.body_out += length;
        }
    });
}

/// And is given back, or not.
pub(crate) fn closed(records: &TaskRecords, backend: &str, GivenBack { number, is_kept }: GivenBack) {
    let how = if is_kept { "recycle" } else { "close RESP_CLOSE" };
    records.write(RecordKind::BackendClose, format_args!("{number} {backend} {how}"));
}

/// How a connection was given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenBack {
    number: i32,
    is_kept: bool,
}

impl GivenBack {
    pub(crate) fn of(upstream: &Upstream, is_kept: bool) -> GivenBack {
        GivenBack { number: upstream.descriptor(), is_kept }
    }
}

/// It broke before there was an answer. One that had lain in the pool may have been dead already.
pub(crate) fn lost(records: Option<&Rc<TaskRecords>>, backend: &str, upstream: &Upstream) {
    let Some(records) = records else { return };
    if upstream.is_reused() {
        records.put(RecordKind::FetchError, &[b"HTC eof (-1)"]);
    }
    closed(records, backend, GivenBack::of(upstream, false));
}

/// The answer's head as it came.
pub(crate) fn answered(records: &TaskRecords, head: &ResponseHead, head_bytes: usize) {
    let view = head.fields.view();
    let lines = view.iter().map(|field| (field.name_text, field.value));
    records.stamp("Beresp");
    request_records::response(records, Message::Beresp, (head.status.0, head.reason.as_deref()), lines);
    records.count(|carried| carried.head_in += head_bytes as u64);
}

/// How long it lives, and by whose word.
pub(crate) fn life(records: &TaskRecords, by: &str, life: &Lifetimes, is_uncacheable: bool, now: Now) {
    let whole = |ms: f64| ms / 1_000.0;
    let cacheable = if is_uncacheable { "uncacheable" } else { "cacheable" };
    records.write(
        RecordKind::Ttl,
        format_args!(
            "{by} {:.0} {:.0} {:.0} {:.0} {cacheable}",
            whole(life.ttl_ms as f64),
            whole(life.grace_ms as f64),
            whole(life.keep_ms as f64),
            whole(now.wall_ms as f64)
        ),
    );
}

/// What the origin's head says of its life, before any program has its say.
pub(crate) fn announced(records: &TaskRecords, said: &Lifetimes, is_uncacheable: bool, head: &ResponseHead, now: Now) {
    let now_s = (now.wall_ms / 1_000) as i64;
    let date_of = |name| head.fields.view().get(name).and_then(|text| parse_date(text, now_s)).unwrap_or(0);
    let directives = ResponseDirectives::parse(head.fields.view());
    let max_age = directives.s_maxage_s.or(directives.max_age_s).unwrap_or(0);
    let age_s = said.age_ms as i64 / 1_000;
    let cacheable = if is_uncacheable { "uncacheable" } else { "cacheable" };
    records.write(
        RecordKind::Ttl,
        format_args!(
            "RFC {:.0} {:.0} {:.0} {now_s} {} {} {} {max_age} {cacheable}",
            (said.ttl_ms + said.age_ms as i64) as f64 / 1_000.0,
            said.grace_ms as f64 / 1_000.0,
            said.keep_ms as f64 / 1_000.0,
            now_s - age_s,
            date_of(FieldName::Date),
            date_of(FieldName::Expires),
        ),
    );
}

/// What went through a filter: how, its direction, bytes in and out. What Varnish tells of the bits of a deflated text nobody needs here.
pub(crate) fn filtered(records: &TaskRecords, tally: &FilterTally) {
    let how = match tally.filter {
        FilterKind::Encode(Coding::Gzip, _) => "G F -",
        FilterKind::Decode(Coding::Gzip) => "U F -",
        FilterKind::Check(Coding::Gzip) => "u F -",
        _ => return,
    };
    records.write(RecordKind::Gzip, format_args!("{how} {} {} 80 80 0", tally.bytes_in, tally.bytes_out));
}

/// Where the body goes, and, where it comes from a backend, how.
pub(crate) fn body_begins(
    records: &TaskRecords,
    (framing, filters): (Option<ResponseBody>, &str),
    streams: bool,
    is_stored: bool,
) {
    records.stamp("Process");
    records.put(RecordKind::Filters, &[filters.as_bytes()]);
    let storage = if is_stored { records.storage().as_bytes() } else { request_records::TRANSIENT };
    records.put(RecordKind::Storage, &[storage]);
    let Some(framing) = framing else { return };
    let (number, mode) = match framing {
        ResponseBody::None | ResponseBody::Tunnel => (0, "none"),
        ResponseBody::Length(0) => (0, "none"),
        ResponseBody::Length(_) => (3, "length"),
        ResponseBody::Chunked => (2, "chunked"),
        ResponseBody::UntilClose => (4, "eof"),
    };
    let streams = if streams { "stream" } else { "-" };
    records.write(RecordKind::FetchBody, format_args!("{number} {mode} {streams}"));
}

/// All of it is there.
pub(crate) fn body_ended(records: &TaskRecords) {
    records.stamp("BerespBody");
    records.write(RecordKind::Length, format_args!("{}", records.carried.get().body_in));
}

/// There is no answer, or not all of it. Where Varnish has words of its own they are said.
pub(crate) fn failed(records: &TaskRecords, backend: &str, failure: &Failure) {
    let (of_backend, words) = match failure.token {
        "origin-first-byte-timeout" => ("", "first byte timeout"),
        "origin-closed" => ("", "backend closed"),
        "origin-body-truncated" => ("", "eof socket closed"),
        "origin-between-bytes-timeout" => ("", "timeout"),
        "origin-queue-full" | "origin-queue-timeout" => ("busy", &*failure.text),
        "origin-resolve" | "origin-connect" | "origin-connect-timeout" | "origin-exhausted" => ("fail", &*failure.text),
        _ => ("", &*failure.text),
    };
    match of_backend {
        "" => records.put(RecordKind::FetchError, &[words.as_bytes()]),
        how => records.write(RecordKind::FetchError, format_args!("backend {backend}: {how}: {words}")),
    }
    if UNFETCHABLE.contains(&failure.token) {
        records.put(RecordKind::Error, &[b"Body cannot be fetched"]);
    }
}

/// The head of an answer that says nothing by which its end could be found.
const UNFETCHABLE: [&str; 5] = [
    refusals::CONTENT_LENGTH_INVALID.token,
    refusals::CONTENT_LENGTH_REPEATED.token,
    refusals::TRANSFER_ENCODING_INVALID.token,
    refusals::TRANSFER_ENCODING_UNSUPPORTED.token,
    refusals::LENGTH_AND_TRANSFER_ENCODING.token,
];

/// The client's body broke off, or was none.
pub(crate) fn body_broken(records: &TaskRecords, refusal: &Refusal) {
    records.write(RecordKind::FetchError, format_args!("req.body read error: {}", refusal.token));
}

/// vcl_backend_error is about to make an answer.
pub(crate) fn error(records: &TaskRecords, status: u16, reason: Option<&[u8]>, fields: FieldsView<'_>) {
    records.stamp("Error");
    let lines = fields.iter().map(|field| (field.name_text, field.value));
    request_records::response(records, Message::Beresp, (status, reason), lines);
}

/// The same reason once more, as another transaction.
pub(crate) fn again(records: &TaskRecords, xid: u64, request: &Request<'_>) {
    const NAME: &[u8] = b"X-Varnish";
    let before = records.xid();
    records.stamp("Retry");
    records.go_on_as(xid, "bereq", "retry");
    records.stamp("Start");
    asked(records, request, Version::Http11);
    records.field(RecordKind::BereqUnset, NAME, before.to_string().as_bytes());
    records.field(RecordKind::BereqHeader, NAME, xid.to_string().as_bytes());
}
