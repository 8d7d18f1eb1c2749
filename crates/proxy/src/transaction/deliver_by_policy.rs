//! Deliver under a policy: the head that answers the request goes through vcl_deliver, and what the program left of it
//! goes out, with conditions and ranges judged afterwards.
//!
//! Framing and the connection's fate stay ours to say; a program that sets `Connection: close` is heard.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use cache::{Follower, Object};
use message::{FieldName, Fields, Method, Request, Response, ResponseHead, Status};
use rules::Facts;
use rules::conditions::{self, Holder, Outcome as Condition};
use rules::date::parse_date;
use rules::range::{self, ContentRange, Ranges};
use wire::{HopByHop, ResponseBody};

use crate::body_source::BodySource;
use crate::disk_read::DiskRead;
use crate::fetch::fill_by_policy;
use crate::fetch::origin_body::OriginBody;
use crate::limits::HEAD_BYTES_USUAL;
use crate::records::{RecordKind, request_records};
use crate::sliced_read::SlicedRead;
use crate::stored_head::{self, Fate, is_of_connection, write_field, write_number_field, write_status_and_reason};
use crate::transaction::deliver::{Answer, Held, Made, framing_of, in_slices, multipart};
use crate::transaction::transmit::{Framing, OutBody, Outgoing};
use crate::transaction::{Step, Transaction};
use crate::vcl_story::client_steps;
use crate::vcl_story::scope_heads::{MadeHead, sent_status};
use crate::vcl_story::stored_view::StoredView;

/// The body that is there to be sent, whatever part of it will be.
enum Source {
    /// With what was borrowed of it, if it lies on a disk, and what reads it, if it lies in slices.
    Object(Arc<Object>, Option<DiskRead>, Option<Box<SlicedRead>>),
    Follower(Follower, Option<u64>),
    Origin(Box<OriginBody>),
    Bytes(Bytes),
}

pub(crate) fn run(tx: &mut Transaction, answer: Answer) -> Step {
    match head_of(tx, answer) {
        Ok((made, source, facts)) => {
            let outgoing = write(tx, made, source, facts);
            Step::Transmit(Box::new(outgoing))
        }
        Err(step) => step,
    }
}

/// The head as the program leaves it, and the body behind it. The facts are those of what is stored.
fn head_of(tx: &mut Transaction, answer: Answer) -> Result<(MadeHead, Source, Option<Facts>), Step> {
    let now = tx.core.now();
    match answer {
        Answer::Stored { object, why, slices } => {
            let head = object.response().to_head();
            let fetched_by = (!why.is_brought()).then(|| fetched_by(&head)).flatten();
            let mut fields = head.fields.clone();
            prepare(tx, &mut fields, &head, fetched_by, object.age_s(now), Some(object.length()));
            accept_ranges(tx, &mut fields, &head);
            let view = StoredView::of(&object, now);
            let made = client_steps::deliver(tx, Some(view), head.status.0, head.reason.as_deref(), &fields)?;
            let facts = object.facts();
            Ok((made, Source::Object(object, tx.leased.clone(), slices), Some(facts)))
        }
        Answer::Followed { head, length, follower, facts, received } => {
            let mut fields = HopByHop::end_to_end(head.fields.view());
            let resident_ms = now.mono_ms.saturating_sub(received.mono_ms);
            let age_s = match &facts {
                Some(facts) => facts.age_ms(resident_ms) / 1_000,
                None => age_said(tx, &fields),
            };
            // Who waited for somebody else's fetch has hit what that brought.
            let fetched_by = if follower.is_leader() { None } else { fetched_by(&head) };
            prepare(tx, &mut fields, &head, fetched_by, age_s, length);
            accept_ranges(tx, &mut fields, &head);
            note_streaming(tx, follower.is_under_way());
            let view = StoredView { hits: follower.hits(), ..arrived(tx, &head, facts.as_ref(), resident_ms) };
            let made = client_steps::deliver(tx, Some(view), head.status.0, head.reason.as_deref(), &fields)?;
            Ok((made, Source::Follower(follower, length), facts))
        }
        Answer::Origin { head, body } => {
            let length = match body.framing() {
                ResponseBody::Length(length) => Some(length),
                _ => None,
            };
            let mut fields = HopByHop::end_to_end(head.fields.view());
            let age_s = age_said(tx, &fields);
            let length_said = head.fields.view().get(FieldName::ContentLength).and_then(seconds);
            prepare(tx, &mut fields, &head, passed_by(tx), age_s, length.or(length_said));
            note_streaming(tx, body.framing() != ResponseBody::None);
            let view = arrived(tx, &head, None, 0);
            let made = client_steps::deliver(tx, Some(view), head.status.0, head.reason.as_deref(), &fields)?;
            Ok((made, Source::Origin(body), None))
        }
        Answer::Made(Made { made, body, is_final: true }) => Ok((made, Source::Bytes(body), None)),
        Answer::Made(Made { made, body, .. }) => {
            let mut fields = made.head.fields.clone();
            let age_s = age_said(tx, &fields);
            prepare(tx, &mut fields, &made.head, passed_by(tx), age_s, Some(body.len() as u64));
            let view = arrived(tx, &made.head, None, 0);
            let made = client_steps::deliver(tx, Some(view), made.status, made.head.reason.as_deref(), &fields)?;
            Ok((made, Source::Bytes(body), None))
        }
        Answer::Synth(_) | Answer::Piped(_) => unreachable!("these go by vcl_deliver"),
        Answer::File(_) | Answer::ErrorPage { .. } => unreachable!("a policy knows no roots"),
        Answer::Item(_) => unreachable!("a policy knows no memcached"),
    }
}

/// For `resp.is_streaming`.
fn note_streaming(tx: &Transaction, is_streaming: bool) {
    if let Some(state) = &tx.vcl {
        state.is_streaming.set(is_streaming);
    }
}

/// The fetch that stored it.
fn fetched_by(head: &ResponseHead) -> Option<u64> {
    seconds(head.fields.view().get_all_named(b"x-varnish").next()?)
}

/// As in Varnish, who passes a hit names two transactions, of which the second is the pass.
fn passed_by(tx: &Transaction) -> Option<u64> {
    tx.vcl.as_deref().filter(|state| state.passes_hit.get()).and_then(|state| state.passed_by.get())
}

fn seconds(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `obj` of an answer that the request itself caused, so long after its head came.
fn arrived<'h>(tx: &Transaction, head: &'h ResponseHead, facts: Option<&Facts>, resident_ms: u64) -> StoredView<'h> {
    let view = StoredView::arriving(head, facts);
    let brought = tx.vcl.as_deref().and_then(|state| state.brought.get());
    let lifetimes = brought.unwrap_or(view.lifetimes).after(resident_ms);
    StoredView { lifetimes, resident_ms, ..view }
}

/// What the origin said, whatever the program made of the field.
fn age_said(tx: &Transaction, fields: &Fields) -> u64 {
    let brought = tx.vcl.as_deref().and_then(|state| state.brought.get());
    let said_now = || fields.view().get(FieldName::Age).and_then(seconds).unwrap_or(0);
    brought.map_or_else(said_now, |lifetimes| lifetimes.age_ms / 1_000)
}

/// What the program sees beside the answer's own fields.
fn prepare(
    tx: &Transaction,
    fields: &mut Fields,
    head: &ResponseHead,
    fetched_by: Option<u64>,
    age_s: u64,
    length: Option<u64>,
) {
    fields.retain(|field| {
        let is_ours = matches!(field.name, FieldName::Age | FieldName::ContentLength | FieldName::Via);
        !is_ours && !field.name_text.eq_ignore_ascii_case(b"x-varnish")
    });
    for via in head.fields.view().get_all(FieldName::Via) {
        fields.push(FieldName::Via, via);
    }
    client_steps::add_ours(tx, fields, head.version, fetched_by, age_s);
    if let Some(length) = length.filter(|_| stored_head::has_length(head.status.0)) {
        fields.push(FieldName::ContentLength, length.to_string());
    }
}

/// Of what did not go past the store any part can be asked for, kept or not.
fn accept_ranges(tx: &Transaction, fields: &mut Fields, head: &ResponseHead) {
    if tx.site.settings.vcl.http_range_support && head.status == Status::OK {
        fields.set(FieldName::AcceptRanges, "bytes");
    }
}

/// What of the body goes out.
enum Part {
    Whole,
    NotModified,
    One(Range<u64>, Option<u64>),
    Many(Vec<Range<u64>>),
    Unsatisfiable(u64),
}

fn part_of(tx: &Transaction, made: &MadeHead, source: &Source, facts: Option<Facts>) -> Part {
    let request = tx.head.request();
    if made.status != 200 || !matches!(request.method, Method::Get | Method::Head) {
        return Part::Whole;
    }
    let held = made.head.response();
    let holder = if facts.is_some() { Holder::Cache } else { Holder::Relay };
    let facts = facts.unwrap_or_else(|| fill_by_policy::dates(&made.head, tx.core.now()));
    // The program may have changed what it is judged by.
    let last_modified = held.fields.get(FieldName::LastModified).and_then(|text| parse_date(text, facts.date));
    let facts = &Facts { last_modified, ..facts };
    let is_unchanged = conditions::evaluate(&request, held, facts, holder) == Condition::NotModified;
    if is_unchanged && !wants_part_of_weak(tx, &request, held) {
        return Part::NotModified;
    }
    let length = match source {
        Source::Object(object, ..) => Some(object.length()),
        Source::Follower(_, length) => *length,
        Source::Bytes(body) => Some(body.len() as u64),
        Source::Origin(_) => None,
    };
    let Some(length) = length.filter(|_| tx.site.settings.vcl.http_range_support) else { return Part::Whole };
    if !request.fields.contains(FieldName::Range) {
        return Part::Whole;
    }
    match range::wanted(&request, held, facts, length) {
        Ranges::Whole if is_no_range(tx, &request, held) => Part::Unsatisfiable(length),
        Ranges::Whole => Part::Whole,
        Ranges::One(range) => Part::One(range, Some(length)),
        Ranges::Many(ranges) if matches!(source, Source::Object(..)) => Part::Many(ranges),
        Ranges::Many(_) => Part::Whole,
        Ranges::Unsatisfiable => Part::Unsatisfiable(length),
    }
}

/// A part is asked for in a way that means nothing, which Varnish refuses where RFC 9110 §14.2 would have it ignored.
/// Where a range is not heard of at all, as with HEAD or a 404, that holds for one that means nothing, too.
fn is_no_range(tx: &Transaction, request: &Request<'_>, held: Response<'_>) -> bool {
    let asks_for_one = |range: &[u8]| !range.contains(&b',');
    tx.site.settings.as_varnishd
        && request.method == Method::Get
        && held.status == Status::OK
        && !request.fields.contains(FieldName::IfRange)
        && request.fields.get(FieldName::Range).is_some_and(asks_for_one)
}

/// Varnish takes a weak validator for none where a part is asked for.
fn wants_part_of_weak(tx: &Transaction, request: &Request<'_>, held: Response<'_>) -> bool {
    let is_weak = |tag: &[u8]| tag.starts_with(b"W/");
    let fields = request.fields;
    let held_is_weak = held.fields.get(FieldName::Etag).is_some_and(is_weak);
    let asked_is_weak = fields.get(FieldName::IfNoneMatch).is_some_and(is_weak);
    tx.site.settings.vcl.http_range_support
        && fields.contains(FieldName::Range)
        && fields.contains(FieldName::IfNoneMatch)
        && (held_is_weak || asked_is_weak)
}

/// The answer as it goes out.
fn write(tx: &mut Transaction, made: MadeHead, source: Source, facts: Option<Facts>) -> Outgoing {
    let head_only = tx.wants_head_only();
    let part = part_of(tx, &made, &source, facts);
    let mut out = Vec::with_capacity(HEAD_BYTES_USUAL);
    let (status, body, until_close) = match part {
        Part::Whole => whole(tx, &made, source, head_only, &mut out),
        Part::NotModified => {
            write_status_and_reason(&mut out, 304, None);
            write_kept(&made, &mut out, |name| !matches!(name, FieldName::ContentLength | FieldName::ContentType));
            (304, OutBody::Empty, false)
        }
        Part::One(range, complete) => {
            write_status_and_reason(&mut out, 206, None);
            write_kept(&made, &mut out, |name| !matches!(name, FieldName::ContentLength | FieldName::ContentRange));
            let mut value = Vec::new();
            ContentRange { range: range.clone(), complete_length: complete }.write_to(&mut value);
            write_field(&mut out, b"Content-Range", &value);
            write_number_field(&mut out, "Content-Length", range.end - range.start);
            (206, source.range(range), false)
        }
        Part::Many(ranges) => {
            write_status_and_reason(&mut out, 206, None);
            let Source::Object(object, leased, slices) = source else {
                unreachable!("only a stored body is sent in pieces")
            };
            let (fields, body) = multipart(&Held::of_object(&object, leased.as_ref()), &ranges);
            let body = in_slices(slices, body);
            write_kept(&made, &mut out, |name| !matches!(name, FieldName::ContentLength | FieldName::ContentType));
            out.extend_from_slice(&fields);
            (206, body, false)
        }
        Part::Unsatisfiable(length) => {
            write_status_and_reason(&mut out, 416, None);
            // With what the program said: a script of another site has to be let in to read the refusal.
            write_kept(&made, &mut out, |name| !is_of_content(name));
            let mut value = Vec::new();
            range::write_unsatisfied(length, &mut value);
            write_field(&mut out, b"Content-Range", &value);
            write_number_field(&mut out, "Content-Length", 0);
            (416, OutBody::Empty, false)
        }
    };
    if let Some(records) = tx.vcl.as_deref().and_then(|state| state.records.as_ref()) {
        records.put(RecordKind::Filters, &[]);
        if status != sent_status(made.status) {
            request_records::status_line(records, vcl::Message::Resp, status, None);
        }
    }
    tx.outcome.status = status;
    tx.persistent &= !until_close && !made.head.fields.view().has_token(FieldName::Connection, "close");
    stored_head::write_fate(&mut out, Fate::of(tx.persistent, tx.head.version));
    // Where an origin's answer has no body, its end is still to be seen, so that the connection can be used again.
    let is_bodiless = matches!(&body, OutBody::Origin { body, .. } if body.framing() == ResponseBody::None);
    Outgoing::new(out, if head_only && !is_bodiless { OutBody::Empty } else { body })
}

fn whole(
    tx: &Transaction,
    made: &MadeHead,
    source: Source,
    head_only: bool,
    out: &mut Vec<u8>,
) -> (u16, OutBody, bool) {
    let status = sent_status(made.status);
    write_status_and_reason(out, status, made.head.reason.as_deref());
    let bodiless_origin = matches!(&source, Source::Origin(body) if body.framing() == ResponseBody::None);
    // To HEAD the length is a fact about the representation; elsewhere framing is ours to say.
    let says_length = head_only && bodiless_origin && stored_head::has_length(status);
    write_kept(made, out, |name| name != FieldName::ContentLength || says_length);
    let length = source.length();
    let framing = match bodiless_origin {
        true => Framing::Length { left: 0 },
        false => framing_of(status, length, tx.head.version, head_only),
    };
    let until_close = framing == Framing::UntilClose;
    match framing {
        _ if says_length => {}
        Framing::Length { left } if stored_head::has_length(status) => {
            write_number_field(out, "Content-Length", left);
        }
        Framing::Chunked => write_field(out, b"Transfer-Encoding", b"chunked"),
        _ => {}
    }
    let keeps_body = stored_head::has_length(status) || bodiless_origin;
    let body = if keeps_body { source.whole(framing) } else { OutBody::Empty };
    (status, body, until_close)
}

impl Source {
    fn length(&self) -> Option<u64> {
        match self {
            Source::Object(object, ..) => Some(object.length()),
            Source::Follower(_, length) => *length,
            Source::Bytes(body) => Some(body.len() as u64),
            Source::Origin(body) => match body.framing() {
                ResponseBody::Length(length) => Some(length),
                ResponseBody::None => Some(0),
                _ => None,
            },
        }
    }

    fn whole(self, framing: Framing) -> OutBody {
        match self {
            Source::Object(ref object, ..) => {
                let to = object.length();
                self.range(0..to)
            }
            Source::Follower(follower, _) => OutBody::Follow { follower, framing },
            Source::Bytes(body) if body.is_empty() => OutBody::Empty,
            Source::Bytes(body) => OutBody::Bytes(body),
            Source::Origin(body) => OutBody::Origin { body, framing },
        }
    }

    fn range(self, range: Range<u64>) -> OutBody {
        match self {
            Source::Object(object, leased, slices) => {
                let source = BodySource::stored(&object, leased.as_ref());
                in_slices(slices, OutBody::Held { source, from: range.start, to: range.end })
            }
            Source::Follower(mut follower, _) => {
                follower.seek(range.start);
                let left = range.end - range.start;
                OutBody::Follow { follower, framing: Framing::Length { left } }
            }
            Source::Bytes(body) => OutBody::Bytes(body.slice(range.start as usize..range.end as usize)),
            Source::Origin(_) => unreachable!("an origin's body is passed on whole"),
        }
    }
}

/// What describes content that is not sent.
fn is_of_content(name: FieldName) -> bool {
    matches!(
        name,
        FieldName::ContentLength | FieldName::ContentRange | FieldName::ContentType | FieldName::ContentEncoding
    )
}

/// The fields that the program left, without those that frame the message or belong to the connection.
fn write_kept(made: &MadeHead, out: &mut Vec<u8>, keeps: impl Fn(FieldName) -> bool) {
    let fields = made.head.fields.view();
    for field in fields.iter() {
        if !is_of_connection(field.name) && keeps(field.name) {
            write_field(out, field.name_text, field.value);
        }
    }
}
