//! Deliver: from whatever answers the request to the head that goes out and the body behind it: conditions, ranges,
//! framing, and the fields that name us.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use cache::{Follower, Now, Object};
use message::{FieldName, FieldsView, Request, Response, ResponseHead, Status, Version};
use rules::conditions::{self, Holder, Outcome as Condition};
use rules::freshness::age_s;
use rules::range::{self, ContentRange, RangeSpecs, Ranges};
use wire::{HopByHop, ResponseBody};

use crate::access_log::CacheVerdict;
use crate::body_source::BodySource;
use crate::disk_read::DiskRead;
use crate::fetch::fill_by_policy;
use crate::fetch::origin_body::OriginBody;
use crate::limits::HEAD_BYTES_USUAL;
use crate::memcached_gateway::item_answer::{ItemAnswer, ItemBody};
use crate::policy::Seen;
use crate::sliced_read::SlicedRead;
use crate::static_files::open_file::OpenFile;
use crate::stored_head::{self, Fate, write_field, write_number_field, write_status_line};
use crate::transaction::synth::{self, Synth};
use crate::transaction::transmit::{Framing, OutBody, Outgoing};
use crate::transaction::{Step, Transaction, deliver_by_policy, hit};
use crate::vcl_story::scope_heads::MadeHead;

/// What answers the request.
pub(crate) enum Answer {
    Stored {
        object: Arc<Object>,
        why: hit::Why,
        /// Set where the body lies in slices, and goes out.
        slices: Option<Box<SlicedRead>>,
    },
    /// A fetch that is under way, ours or somebody else's.
    Followed {
        head: Arc<ResponseHead>,
        length: Option<u64>,
        follower: Follower,
        facts: Option<rules::Facts>,
        /// When the head came.
        received: cache::Now,
    },
    /// A file beneath a root.
    File(Arc<OpenFile>),
    /// What memcached replied.
    Item(ItemAnswer),
    /// The origin, past the store.
    Origin {
        head: ResponseHead,
        body: Box<OriginBody>,
    },
    Synth(Synth),
    /// An error of ours, for which the operator has a page.
    ErrorPage {
        synth: Synth,
        file: Arc<OpenFile>,
    },
    Made(Made),
    /// What the origin answered to a request that a policy pipes.
    Piped(Box<Answer>),
}

impl Answer {
    /// Is it known already that the connection ends with it?
    pub(crate) fn says_close(&self) -> bool {
        match self {
            Answer::Made(made) => made.made.head.fields.view().has_token(FieldName::Connection, "close"),
            _ => false,
        }
    }
}

/// What a policy made.
pub(crate) struct Made {
    pub(crate) made: MadeHead,
    pub(crate) body: Bytes,
    /// By vcl_synth: vcl_deliver does not see it.
    pub(crate) is_final: bool,
}

impl Made {
    /// When vcl_synth itself fails.
    pub(crate) fn bare_failure() -> Made {
        let mut head = ResponseHead::new(Status(500));
        head.fields.push(FieldName::Connection, "close");
        Made { made: MadeHead { head, status: 500 }, body: Bytes::new(), is_final: true }
    }
}

/// What of a stored response goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Whole,
    NotModified,
    Part(Range<u64>),
    Parts(Vec<Range<u64>>),
    Unsatisfiable,
}

/// Conditions first, then ranges (RFC 9110 §13.2.2).
pub(crate) fn plan(request: &Request<'_>, seen: Seen, object: &Object) -> Plan {
    let held = object.response();
    if conditions::evaluate(request, held, &object.facts(), Holder::Cache) == Condition::NotModified {
        return Plan::NotModified;
    }
    if let Some(part) = object.partial() {
        let wanted = RangeSpecs::of(request.fields).and_then(|specs| part.holds(specs.single()?));
        return Plan::Part(wanted.expect("the store gives a part only to who wants what it holds"));
    }
    plan_ranges(request, seen, held, &object.facts(), object.length())
}

/// The same for a file. That a condition fails by which nothing is to be sent at all has been seen before.
pub(crate) fn plan_file(request: &Request<'_>, seen: Seen, file: &OpenFile) -> Plan {
    let held = file.head().response();
    match conditions::evaluate(request, held, file.facts(), Holder::Origin) {
        Condition::NotModified => Plan::NotModified,
        _ => plan_ranges(request, seen, held, file.facts(), file.length()),
    }
}

fn plan_ranges(request: &Request<'_>, seen: Seen, held: Response<'_>, facts: &rules::Facts, length: u64) -> Plan {
    if !seen.has(FieldName::Range) {
        return Plan::Whole;
    }
    match range::wanted(request, held, facts, length) {
        Ranges::Whole => Plan::Whole,
        Ranges::One(range) => Plan::Part(range),
        Ranges::Many(ranges) => Plan::Parts(ranges),
        Ranges::Unsatisfiable => Plan::Unsatisfiable,
    }
}

pub(crate) fn run(tx: &mut Transaction, answer: Answer) -> Step {
    if tx.vcl.is_some() && !matches!(answer, Answer::Synth(_) | Answer::Piped(_)) {
        return deliver_by_policy::run(tx, answer);
    }
    let head_only = tx.wants_head_only();
    let outgoing = match answer {
        Answer::Stored { object, why, slices } => stored(tx, &object, why, slices, head_only),
        Answer::Followed { head, length, follower, facts, received } => {
            followed(tx, &head, length, follower, (facts.as_ref(), received), head_only)
        }
        Answer::File(file) => file_beneath(tx, &file, head_only),
        Answer::Item(item) => item_of_memcached(tx, item, head_only),
        Answer::Origin { head, body } => passed(tx, &head, body, head_only),
        Answer::Synth(synth) => {
            tx.outcome.status = synth.status;
            synth::deliver(tx, synth, head_only)
        }
        Answer::ErrorPage { synth, file } => error_page(tx, &synth, &file, head_only),
        Answer::Piped(answer) => match *answer {
            Answer::Origin { head, body } => passed(tx, &head, body, head_only),
            _ => unreachable!("only what an origin answered is piped"),
        },
        Answer::Made(_) => unreachable!("only a policy makes answers"),
    };
    Step::Transmit(Box::new(outgoing))
}

fn stored(
    tx: &mut Transaction,
    object: &Arc<Object>,
    why: hit::Why,
    slices: Option<Box<SlicedRead>>,
    head_only: bool,
) -> Outgoing {
    let site = Arc::clone(&tx.site);
    let now = tx.core.now();
    let plan = plan(&tx.head.request(), tx.seen, object);
    let mut out = Vec::with_capacity(object.rendered().len() + 256);
    let held = Held::of_object(object, tx.lent.as_ref());
    let (status, body) = match plan {
        Plan::Whole => {
            out.extend_from_slice(object.rendered());
            if stored_head::has_length(object.status().0) {
                write_number_field(&mut out, "Content-Length", object.length());
            }
            (object.status().0, held.body(held.offset..held.offset + object.length()))
        }
        Plan::Unsatisfiable => write_planned(&mut out, &held, Plan::Unsatisfiable),
        plan => {
            let planned = write_planned(&mut out, &held, plan);
            stored_head::write_via(&mut out, held.head.version, &site);
            planned
        }
    };
    tx.outcome.status = status;
    match forwarded(tx, why) {
        Some(how) => {
            write_number_field(&mut out, "Age", object.age_s(now));
            write_cache_status(&mut out, tx, &how);
        }
        None => stored_head::write_freshness(&mut out, &site, object, now),
    }
    for field in std::mem::take(&mut tx.own_fields).view().iter() {
        write_field(&mut out, field.name_text, field.value);
    }
    let body = in_slices(slices, body);
    finish(tx, out, if head_only { OutBody::Empty } else { body }, false)
}

/// RFC 9211 §2.2: what Cache-Status says of a stored response for which the origin was asked; `None` where it was not.
fn forwarded(tx: &Transaction, why: hit::Why) -> Option<Cow<'static, str>> {
    let detail = tx.outcome.why;
    Some(match why {
        hit::Why::Revalidated => "fwd=stale; fwd-status=304".into(),
        hit::Why::RevalidatedAlone => format!("fwd=stale; fwd-status=304; detail={detail}").into(),
        hit::Why::OriginFailed { status, is_collapsed } => {
            let collapsed = if is_collapsed { "; collapsed" } else { "" };
            match status {
                Some(status) => format!("fwd=stale; fwd-status={status}{collapsed}").into(),
                None => format!("fwd=stale{collapsed}; detail={detail}").into(),
            }
        }
        hit::Why::Collapsed => "fwd=uri-miss; collapsed".into(),
        hit::Why::Fetched => "fwd=uri-miss; stored".into(),
        hit::Why::Incomplete => "fwd=partial".into(),
        hit::Why::Fresh | hit::Why::Stale => return None,
    })
}

/// What was planned of a body, read from its slices if it lies in such.
pub(crate) fn in_slices(slices: Option<Box<SlicedRead>>, body: OutBody) -> OutBody {
    let Some(mut slices) = slices else { return body };
    match body {
        OutBody::Held { from, to, .. } => slices.set_parts(VecDeque::from([(Vec::new(), from..to)])),
        OutBody::Parts { parts, .. } => slices.set_parts(parts),
        other => return other,
    }
    OutBody::Slices(slices)
}

/// A file, whole or in part. We are its origin: no Via, no Age, no Cache-Status.
fn file_beneath(tx: &mut Transaction, file: &Arc<OpenFile>, head_only: bool) -> Outgoing {
    let mut out = Vec::with_capacity(HEAD_BYTES_USUAL);
    let held = Held::of_file(file);
    let (status, body) = match plan_file(&tx.head.request(), tx.seen, file) {
        Plan::Whole => {
            out.extend_from_slice(file.rendered());
            (200, held.body(0..file.length()))
        }
        plan => write_planned(&mut out, &held, plan),
    };
    tx.outcome.status = status;
    stored_head::write_date(&mut out, tx.core.now());
    finish(tx, out, if head_only { OutBody::Empty } else { body }, false)
}

/// The operator's page for an error of ours: the whole of it, whatever conditions and ranges the request names. What is
/// true of the page as a file of its own is not said, but its tag, as by nginx.
fn error_page(tx: &mut Transaction, synth: &Synth, file: &Arc<OpenFile>, head_only: bool) -> Outgoing {
    let file = file.chosen(tx.head.request().fields);
    let mut out = Vec::with_capacity(HEAD_BYTES_USUAL);
    synth.write_start(&mut out, &tx.core);
    write_fields_but(
        &mut out,
        file.head().fields.view(),
        &[FieldName::LastModified, FieldName::CacheControl, FieldName::AcceptRanges],
    );
    synth.write_rest(&mut out, &tx.core, file.length());
    tx.outcome.status = synth.status;
    let body = if head_only { OutBody::Empty } else { Held::of_file(file).body(0..file.length()) };
    finish(tx, out, body, false)
}

/// What memcached has. We are its origin as we are a file's.
fn item_of_memcached(tx: &mut Transaction, item: ItemAnswer, head_only: bool) -> Outgoing {
    let mut out = Vec::with_capacity(item.fields.len() + 160);
    write_status_line(&mut out, item.status);
    stored_head::write_date(&mut out, tx.core.now());
    out.extend_from_slice(&item.fields);
    if stored_head::has_length(item.status) {
        write_number_field(&mut out, "Content-Length", item.body.length());
    }
    tx.outcome.status = item.status;
    let body = match item.body {
        ItemBody::Whole(bytes) if !bytes.is_empty() && !head_only => OutBody::Bytes(bytes),
        ItemBody::Chunked(read) if !head_only => OutBody::Chunks(read),
        _ => OutBody::Empty,
    };
    finish(tx, out, body, false)
}

/// What is there as a whole, or as a part that begins somewhere.
pub(crate) struct Held<'a> {
    head: Response<'a>,
    source: BodySource,
    /// Of the body that is held.
    length: u64,
    /// Where that begins in the complete one, and how long the complete one is, if that is known.
    offset: u64,
    complete: Option<u64>,
    /// A body might hold any text: a boundary is made of what its author cannot have known.
    secret: String,
}

impl<'a> Held<'a> {
    pub(crate) fn of_object(object: &'a Arc<Object>, lent: Option<&DiskRead>) -> Held<'a> {
        let length = object.length();
        Held {
            head: object.response(),
            source: BodySource::stored(object, lent),
            length,
            offset: object.partial().map_or(0, |part| part.from),
            complete: object.partial().map_or(Some(length), |part| part.complete),
            secret: format!("{:?}", object.key()),
        }
    }

    fn of_file(file: &'a Arc<OpenFile>) -> Held<'a> {
        let length = file.length();
        Held {
            head: file.head().response(),
            source: BodySource::File(Arc::clone(file)),
            length,
            offset: 0,
            complete: Some(length),
            secret: format!("{:016x}", RandomState::new().hash_one(length)),
        }
    }

    fn body(&self, range: Range<u64>) -> OutBody {
        let (from, to) = (range.start - self.offset, range.end - self.offset);
        OutBody::Held { source: self.source.clone(), from, to }
    }
}

/// Status line, fields and body of everything but the whole.
fn write_planned(out: &mut Vec<u8>, held: &Held<'_>, plan: Plan) -> (u16, OutBody) {
    match plan {
        Plan::Whole => unreachable!("the whole is sent with the head that was made for it"),
        Plan::NotModified => {
            write_status_line(out, 304);
            write_kept_in_304(out, held.head.fields);
            (304, OutBody::Empty)
        }
        Plan::Part(range) => {
            write_part_head(out, held.head.fields, &range, held.complete);
            (206, held.body(range))
        }
        Plan::Parts(ranges) => {
            write_status_line(out, 206);
            let (fields, body) = multipart(held, &ranges);
            write_fields_but(out, held.head.fields, &[FieldName::ContentType, FieldName::ContentLength]);
            out.extend_from_slice(&fields);
            (206, body)
        }
        Plan::Unsatisfiable => {
            write_status_line(out, 416);
            let mut value = Vec::new();
            range::write_unsatisfied(held.length, &mut value);
            write_field(out, b"Content-Range", &value);
            write_number_field(out, "Content-Length", 0);
            (416, OutBody::Empty)
        }
    }
}

/// A response that is still arriving. Its length may be unknown; its ranges then too.
fn followed(
    tx: &mut Transaction,
    head: &ResponseHead,
    length: Option<u64>,
    mut follower: Follower,
    (facts, received): (Option<&rules::Facts>, Now),
    head_only: bool,
) -> Outgoing {
    let site = Arc::clone(&tx.site);
    let request = tx.head.request();
    // RFC 9111 §5.1: who gets what another asked for is told how old it is. The leader has what the origin said.
    let resident_ms = tx.core.now().mono_ms.saturating_sub(received.mono_ms);
    let age_s = facts.filter(|_| !follower.is_leader()).map(|facts| age_s(facts, resident_ms));
    let is_stored = facts.is_some();
    let holder = if is_stored { Holder::Cache } else { Holder::Relay };
    let facts = facts.copied().unwrap_or_else(|| fill_by_policy::dates(head, tx.core.now()));
    let mut out = Vec::with_capacity(HEAD_BYTES_USUAL);
    let condition = conditions::evaluate(&request, head.response(), &facts, holder);
    let ranges = match length {
        Some(length) if tx.seen.has(FieldName::Range) => range::wanted(&request, head.response(), &facts, length),
        _ => Ranges::Whole,
    };
    let (status, body, until_close) = match (condition, ranges) {
        (Condition::NotModified, _) => {
            write_status_line(&mut out, 304);
            write_kept_in_304(&mut out, head.fields.view());
            follower.leave_content();
            (304, OutBody::Empty, false)
        }
        (_, Ranges::One(range)) => {
            write_part_head(&mut out, head.fields.view(), &range, length);
            follower.seek(range.start);
            let left = range.end - range.start;
            (206, OutBody::Follow { follower, framing: Framing::Length { left } }, false)
        }
        (_, Ranges::Unsatisfiable) => {
            write_status_line(&mut out, 416);
            let mut value = Vec::new();
            range::write_unsatisfied(length.unwrap_or(0), &mut value);
            write_field(&mut out, b"Content-Range", &value);
            write_number_field(&mut out, "Content-Length", 0);
            follower.leave_content();
            (416, OutBody::Empty, false)
        }
        // Several ranges of a body that is not here yet: the whole is always allowed (RFC 9110 §14.2).
        (_, Ranges::Whole | Ranges::Many(_)) => {
            let framing = framing_of(head.status.0, length, tx.head.version, head_only);
            write_whole_head(&mut out, head, &framing);
            let until_close = matches!(framing, Framing::UntilClose);
            (head.status.0, OutBody::Follow { follower, framing }, until_close)
        }
    };
    stored_head::write_via(&mut out, head.version, &site);
    if let Some(age_s) = age_s {
        write_number_field(&mut out, "Age", age_s);
    }
    tx.outcome.status = status;
    let how = match (tx.outcome.verdict == CacheVerdict::Coalesced, is_stored) {
        (true, _) => "fwd=uri-miss; collapsed",
        (false, true) => "fwd=uri-miss; stored",
        (false, false) => "fwd=uri-miss",
    };
    match tx.outcome.why {
        why if !is_stored && !why.is_empty() => write_cache_status(&mut out, tx, &format!("{how}; detail={why}")),
        _ => write_cache_status(&mut out, tx, how),
    }
    finish(tx, out, if head_only { OutBody::Empty } else { body }, until_close)
}

/// Past the store: what the origin said, less what concerns only its connection to us.
fn passed(tx: &mut Transaction, head: &ResponseHead, body: Box<OriginBody>, head_only: bool) -> Outgoing {
    let site = Arc::clone(&tx.site);
    let length = match body.framing() {
        ResponseBody::Length(length) => Some(length),
        ResponseBody::None => Some(0),
        _ => None,
    };
    let mut out = Vec::with_capacity(HEAD_BYTES_USUAL);
    let bodiless = body.framing() == ResponseBody::None;
    let framing = match bodiless {
        true => Framing::Length { left: 0 },
        false => framing_of(head.status.0, length, tx.head.version, head_only),
    };
    write_status_line(&mut out, head.status.0);
    let fields = head.fields.view();
    let hop_by_hop = HopByHop::of(fields);
    for field in fields.iter() {
        // To HEAD the length is a fact about the representation; elsewhere framing is ours to say.
        let is_fact = field.name == FieldName::ContentLength && head_only && stored_head::has_length(head.status.0);
        if is_fact || !hop_by_hop.drops(&field) {
            write_field(&mut out, field.name_text, field.value);
        }
    }
    if !bodiless {
        write_framing(&mut out, head.status.0, &framing);
    } else if !head_only && stored_head::has_length(head.status.0) && !fields.contains(FieldName::ContentLength) {
        write_number_field(&mut out, "Content-Length", 0);
    }
    stored_head::write_via(&mut out, head.version, &site);
    tx.outcome.status = head.status.0;
    match tx.outcome.why {
        "" => write_cache_status(&mut out, tx, "fwd=bypass"),
        "head" => write_cache_status(&mut out, tx, "fwd=uri-miss"),
        why => write_cache_status(&mut out, tx, &format!("fwd=bypass; detail={why}")),
    }
    let until_close = matches!(framing, Framing::UntilClose);
    let body = OutBody::Origin { body, framing };
    finish(tx, out, body, until_close)
}

/// The last line of a head and the connection's fate.
fn finish(tx: &mut Transaction, mut out: Vec<u8>, body: OutBody, until_close: bool) -> Outgoing {
    tx.persistent &= !until_close;
    stored_head::write_fate(&mut out, Fate::of(tx.persistent, tx.head.version));
    Outgoing::new(out, body)
}

/// How a body goes out whose length may be unknown. HTTP/1.0 knows no chunks.
pub(crate) fn framing_of(status: u16, length: Option<u64>, version: Version, head_only: bool) -> Framing {
    match length {
        Some(left) => Framing::Length { left },
        None if !stored_head::has_length(status) => Framing::Length { left: 0 },
        None if version == Version::Http11 => Framing::Chunked,
        None if head_only => Framing::Chunked,
        None => Framing::UntilClose,
    }
}

fn write_framing(out: &mut Vec<u8>, status: u16, framing: &Framing) {
    match framing {
        Framing::Length { left } if stored_head::has_length(status) => write_number_field(out, "Content-Length", *left),
        Framing::Chunked => write_field(out, b"Transfer-Encoding", b"chunked"),
        _ => {}
    }
}

fn write_whole_head(out: &mut Vec<u8>, head: &ResponseHead, framing: &Framing) {
    write_status_line(out, head.status.0);
    write_fields_but(out, head.fields.view(), &[FieldName::ContentLength, FieldName::Age]);
    // A response that has just arrived may have an age already: the one its sender gave it.
    if let Some(age) = head.fields.view().get(FieldName::Age) {
        write_field(out, b"Age", age);
    }
    write_framing(out, head.status.0, framing);
}

fn write_fields_but(out: &mut Vec<u8>, fields: FieldsView<'_>, left_out: &[FieldName]) {
    for field in fields.iter().filter(|field| !left_out.contains(&field.name)) {
        write_field(out, field.name_text, field.value);
    }
}

fn write_kept_in_304(out: &mut Vec<u8>, fields: FieldsView<'_>) {
    let has_etag = fields.contains(FieldName::Etag);
    for field in fields.iter().filter(|f| conditions::kept_in_304(f, has_etag) && f.name != FieldName::Age) {
        write_field(out, field.name_text, field.value);
    }
}

/// 206 with one part (RFC 9110 §15.3.7.1).
fn write_part_head(out: &mut Vec<u8>, fields: FieldsView<'_>, range: &Range<u64>, complete: Option<u64>) {
    write_status_line(out, 206);
    write_fields_but(out, fields, &[FieldName::ContentLength, FieldName::ContentRange, FieldName::Age]);
    let mut value = Vec::new();
    ContentRange { range: range.clone(), complete_length: complete }.write_to(&mut value);
    write_field(out, b"Content-Range", &value);
    write_number_field(out, "Content-Length", range.end - range.start);
}

/// 206 with several parts (RFC 9110 §15.3.7.2): the fields that differ, and the body with its part heads.
pub(crate) fn multipart(held: &Held<'_>, ranges: &[Range<u64>]) -> (Vec<u8>, OutBody) {
    let length = held.length;
    let boundary = format!("larder-{}", held.secret).replace(|c: char| !c.is_ascii_alphanumeric(), "");
    let boundary = &boundary[..boundary.len().min(60)];
    let mut parts = Vec::new();
    let mut total = 0;
    for range in ranges {
        let mut head = format!("\r\n--{boundary}\r\n").into_bytes();
        if let Some(kind) = held.head.fields.get(FieldName::ContentType) {
            write_field(&mut head, b"Content-Type", kind);
        }
        let mut value = Vec::new();
        ContentRange { range: range.clone(), complete_length: Some(length) }.write_to(&mut value);
        write_field(&mut head, b"Content-Range", &value);
        head.extend_from_slice(b"\r\n");
        total += head.len() as u64 + (range.end - range.start);
        parts.push((head, range.clone()));
    }
    let end = format!("\r\n--{boundary}--\r\n").into_bytes();
    total += end.len() as u64;
    let mut fields = Vec::new();
    write_field(&mut fields, b"Content-Type", format!("multipart/byteranges; boundary={boundary}").as_bytes());
    write_number_field(&mut fields, "Content-Length", total);
    parts.push((end, 0..0));
    (fields, OutBody::Parts { source: held.source.clone(), parts: parts.into() })
}

fn write_cache_status(out: &mut Vec<u8>, tx: &Transaction, how: &str) {
    out.extend_from_slice(b"Cache-Status: ");
    out.extend_from_slice(tx.site.settings.server_name.as_bytes());
    out.extend_from_slice(b"; ");
    out.extend_from_slice(how.as_bytes());
    out.extend_from_slice(b"\r\n");
}
