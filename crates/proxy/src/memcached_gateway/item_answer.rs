//! What HTTP's answer is to what memcached replied, in the clean mode: an item is a representation with an ETag, a
//! command that does something has no body, and every failure a status of its own.

use std::borrow::Cow;

use bytes::Bytes;
use message::{FieldName, Fields, Request, ResponseHead, Status};
use rules::conditions::{self, Holder, Outcome as Condition};
use wire::memcached::{Blame, Item, Reply};

use crate::memcached_gateway::chunked_read::ChunkedRead;
use crate::memcached_gateway::gateway_call::ReceivedReply;
use crate::memcached_gateway::gateway_settings::{MemcachedCommand, MemcachedSettings};
use crate::memcached_gateway::memcached_request::{MemcachedRequest, long_key, tag_of_cas};
use crate::static_files::file_types::{UNKNOWN, content_type_of_item, type_by_name};
use crate::transaction::synth::Synth;

/// A value up to here is copied: it would hold a whole buffer of the lane's for as long as the client takes.
const COPIED_VALUE_BYTES_MAX: usize = 16 << 10;

/// An answer, but for its framing, its date and what it says of the connection.
#[derive(Debug)]
pub(crate) struct ItemAnswer {
    pub(crate) status: u16,
    pub(crate) fields: Fields,
    pub(crate) body: ItemBody,
}

#[derive(Debug)]
pub(crate) enum ItemBody {
    Whole(Bytes),
    /// It is not wanted, and would have so many bytes.
    Unsaid(u64),
    Chunked(Box<ChunkedRead>),
}

impl ItemBody {
    pub(crate) fn length(&self) -> u64 {
        match self {
            ItemBody::Whole(bytes) => bytes.len() as u64,
            ItemBody::Unsaid(length) => *length,
            ItemBody::Chunked(read) => read.value_bytes(),
        }
    }
}

impl ItemAnswer {
    pub(crate) fn text(status: u16, content_type: &[u8], body: Bytes) -> ItemAnswer {
        let mut fields = Fields::default();
        fields.push(FieldName::ContentType, content_type);
        ItemAnswer { status, fields, body: ItemBody::Whole(body) }
    }

    pub(crate) fn empty(status: u16) -> ItemAnswer {
        ItemAnswer { status, fields: Fields::default(), body: ItemBody::Whole(Bytes::new()) }
    }
}

/// There is no such item. Not an error: an origin behind may have what is asked for.
pub(crate) fn missed() -> Synth {
    Synth::memcached(404, "memcached-miss", "memcached has no such item.")
}

pub(crate) fn answer(
    request: &Request<'_>,
    wanted: &MemcachedRequest,
    settings: &MemcachedSettings,
    got: ReceivedReply,
    now_s: i64,
) -> Result<ItemAnswer, Synth> {
    let unmet = |status: u16, token, text| match wanted.by_condition {
        true => Synth::memcached(412, "precondition-failed", "The item is not the one that the request is about."),
        false => Synth::memcached(status, token, text),
    };
    match &got.reply {
        Reply::Item(item) => item_answer(request, wanted, settings, item, &got.bytes, now_s),
        Reply::Miss | Reply::NotFound if wanted.by_condition || wanted.cas.is_some() => Err(unmet_cas()),
        Reply::Miss | Reply::NotFound => Err(missed()),
        Reply::Exists => Err(unmet_cas()),
        Reply::NotStored if wanted.command == MemcachedCommand::Add => {
            Err(unmet(409, "memcached-exists", "There is such an item already."))
        }
        Reply::NotStored => Err(unmet(404, "memcached-miss", "memcached has no such item.")),
        Reply::Stored { cas } => Ok(stored(wanted, *cas)),
        Reply::Deleted | Reply::Done => Ok(ItemAnswer::empty(204)),
        Reply::Number { digits } => {
            let text = [&got.bytes[digits.clone()], b"\n"].concat();
            Ok(ItemAnswer::text(200, TEXT, text.into()))
        }
        Reply::Debug { text } => Ok(ItemAnswer::text(200, TEXT, [&got.bytes[text.clone()], b"\n"].concat().into())),
        Reply::Lines => Ok(ItemAnswer::text(200, TEXT, got.bytes)),
        Reply::Version { text } => Ok(ItemAnswer::text(200, TEXT, [&got.bytes[text.clone()], b"\n"].concat().into())),
        Reply::Error { of, text } => Err(error(wanted, *of, &got.bytes[text.clone()])),
    }
}

const TEXT: &[u8] = b"text/plain; charset=utf-8";

fn unmet_cas() -> Synth {
    Synth::memcached(412, "precondition-failed", "The item is not the one that the request is about.")
}

fn stored(wanted: &MemcachedRequest, cas: Option<u64>) -> ItemAnswer {
    let status = if wanted.command == MemcachedCommand::Add { 201 } else { 204 };
    let mut answer = ItemAnswer::empty(status);
    if let Some(cas) = cas.filter(|&cas| cas != 0 && wanted.command.stores().is_some()) {
        answer.fields.push(FieldName::Etag, tag_of_cas(cas));
    }
    answer
}

/// What memcached calls an error, in HTTP's terms: its own words may hold anything, so they are not passed on.
pub(crate) fn error(wanted: &MemcachedRequest, of: Blame, text: &[u8]) -> Synth {
    match of {
        Blame::Client if text.ends_with(b"non-numeric value") => {
            Synth::memcached(409, "memcached-no-number", "The item is no number.")
        }
        Blame::Server if text.starts_with(b"SERVER_ERROR object too large") => {
            Synth::memcached(413, "memcached-item-too-large", "memcached takes no item of this size (its option -I).")
        }
        Blame::Server if text.starts_with(b"SERVER_ERROR out of memory") => {
            Synth::memcached_error(503, "memcached-out-of-memory", "memcached has no room for this item.")
        }
        Blame::Command => {
            let text =
                "This memcached does not know the command: larder wants 1.6.10 or newer, or mode = \"nginx-memc\".";
            Synth::memcached_error(502, "memcached-command-unknown", text)
        }
        _ if wanted.keys.iter().any(|key| !wire::memcached::is_meta_key(&key.name)) => long_key(414),
        _ => Synth::memcached_error(502, "memcached-error", "memcached answered with an error."),
    }
}

/// The item as a representation, or what the request's conditions make of it.
fn item_answer(
    request: &Request<'_>,
    wanted: &MemcachedRequest,
    settings: &MemcachedSettings,
    item: &Item,
    bytes: &Bytes,
    now_s: i64,
) -> Result<ItemAnswer, Synth> {
    let key = &wanted.keys[0];
    let stored = &bytes[item.value.clone()];
    // Somebody else's, under the same hash.
    let begins = key.unwrap(stored).ok_or_else(missed)?;
    if stored.len() - begins > settings.value_bytes_max {
        return Err(value_too_large(settings.value_bytes_max));
    }
    let modified_s = (settings.flags_as_time && item.flags != 0).then_some(i64::from(item.flags));
    let tag = item.cas.filter(|&cas| cas != 0).map(tag_of_cas);
    let condition = condition(request, tag.as_deref(), modified_s, now_s);
    if condition == Condition::PreconditionFailed {
        return Err(unmet_cas());
    }
    let mut fields = Fields::default();
    if let Some(tag) = &tag {
        fields.push(FieldName::Etag, tag);
    }
    if let Some(modified_s) = modified_s {
        fields.push(FieldName::LastModified, rules::date::write_date(modified_s));
    }
    // The item's time to live, which is the answer's as well.
    if let Some(ttl_s) = item.ttl_s.and_then(|ttl_s| u64::try_from(ttl_s).ok()) {
        fields.push(FieldName::CacheControl, format!("max-age={ttl_s}"));
    }
    if condition == Condition::NotModified {
        return Ok(ItemAnswer { fields, ..ItemAnswer::empty(304) });
    }
    let name = if key.is_long() { &b""[..] } else { &key.name };
    fields.push(FieldName::ContentType, content_type(name, settings).as_bytes());
    if item.flags & settings.gzip_flag != 0 {
        fields.push(FieldName::ContentEncoding, "gzip");
    }
    if item.flags != 0 && modified_s.is_none() {
        fields.push_named(b"Memcached-Flags", item.flags.to_string().as_bytes());
    }
    if item.is_stale || item.is_won {
        let state: &[u8] = match (item.is_stale, item.is_won) {
            (true, true) => b"stale, won",
            (true, false) => b"stale",
            _ => b"won",
        };
        fields.push_named(b"Memcached-State", state);
    }
    let value = item.value.start + begins..item.value.end;
    let body = match value.len() {
        // By the facts alone.
        0 => ItemBody::Unsaid(item.value_bytes - begins as u64),
        1..=COPIED_VALUE_BYTES_MAX => ItemBody::Whole(Bytes::copy_from_slice(&bytes[value])),
        _ => ItemBody::Whole(bytes.slice(value)),
    };
    Ok(ItemAnswer { status: 200, fields, body })
}

/// What an item of this name is.
pub(crate) fn content_type<'a>(name: &[u8], settings: &'a MemcachedSettings) -> Cow<'a, str> {
    match (&settings.content_type, &settings.named_types) {
        (Some(kind), _) => Cow::Borrowed(kind),
        (None, Some(types)) => Cow::Owned(content_type_of_item(name, types)),
        (None, None) if name.contains(&b'.') => Cow::Borrowed(type_by_name(name)),
        (None, None) => Cow::Borrowed(UNKNOWN),
    }
}

/// What stands where the value was looked for is too much of it.
pub(crate) fn value_too_large(bytes_max: usize) -> Synth {
    let text = format!("The value is larger than {bytes_max} B (value_bytes_max of the [[route]]).");
    Synth::memcached_error(502, "memcached-value-too-large", text)
}

/// A reply's value is more than the route takes at once.
pub(crate) fn item_too_large(settings: &MemcachedSettings) -> Synth {
    if settings.chunk_bytes.is_none() {
        return value_too_large(settings.value_bytes_max);
    }
    let bytes_max = settings.item_bytes_max(b"");
    let text = format!("An item is larger than {bytes_max} B (chunk_bytes of the [[route]]).");
    Synth::memcached_error(502, "memcached-value-too-large", text)
}

/// RFC 9110 §13.2.2: an item is a resource of ours.
pub(crate) fn condition(request: &Request<'_>, tag: Option<&str>, modified_s: Option<i64>, now_s: i64) -> Condition {
    const NAMES: [FieldName; 4] =
        [FieldName::IfMatch, FieldName::IfNoneMatch, FieldName::IfModifiedSince, FieldName::IfUnmodifiedSince];
    if !NAMES.iter().any(|&name| request.fields.contains(name)) {
        return Condition::Proceed;
    }
    let mut head = ResponseHead::new(Status(200));
    if let Some(tag) = tag {
        head.fields.push(FieldName::Etag, tag);
    }
    let facts = rules::Facts { last_modified: modified_s, date: now_s, ..rules::Facts::default() };
    conditions::evaluate(request, head.response(), &facts, Holder::Origin)
}
