//! The head of a stored response as HTTP/1.1 bytes: a block that is made once, when the response is stored, and a
//! tail of the few fields that differ from answer to answer.

use bytes::Bytes;
use cache::{Now, Object};
use message::{Field, FieldName, ResponseHead, Version, list_members, write_decimal};

use crate::site::Site;
use crate::vcl_story::scope_heads::usual_reason;

/// The status line and the fields of a response to be stored, `Via` of ours included; no Content-Length, no Age,
/// no empty line.
pub(crate) fn render(head: &ResponseHead, site: &Site) -> Bytes {
    render_without(head, site, None, |_| false)
}

/// The same for what was fetched under a program: without X-Varnish, in which every answer has its own number, and
/// Accept-Ranges, which we say.
pub(crate) fn render_by_policy(head: &ResponseHead, site: &Site) -> Bytes {
    render_without(head, site, Some(usual_reason(head.status.0)), |field| {
        field.name == FieldName::AcceptRanges || field.name_text.eq_ignore_ascii_case(b"x-varnish")
    })
}

fn render_without(
    head: &ResponseHead,
    site: &Site,
    reason: Option<&[u8]>,
    is_left_out: impl Fn(&Field<'_>) -> bool,
) -> Bytes {
    let mut out = Vec::with_capacity(512);
    match reason {
        Some(_) => write_status_and_reason(&mut out, head.status.0, reason),
        None => write_status_line(&mut out, head.status.0),
    }
    for field in head.fields.view().iter() {
        if matches!(field.name, FieldName::ContentLength | FieldName::Age) || is_left_out(&field) {
            continue;
        }
        write_field(&mut out, field.name_text, field.value);
    }
    write_via(&mut out, head.version, site);
    Bytes::from(out.into_boxed_slice())
}

/// `Via` names us behind whoever the message came through (RFC 9110 §7.6.3).
pub(crate) fn write_via(out: &mut Vec<u8>, version: Version, site: &Site) {
    out.extend_from_slice(b"Via: ");
    out.extend_from_slice(version.number().as_bytes());
    out.push(b' ');
    out.extend_from_slice(site.pseudonym.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// What we say in `Via`.
pub(crate) fn via(version: Version, site: &Site) -> Vec<u8> {
    [version.number().as_bytes(), b" ", site.pseudonym.as_bytes()].concat()
}

/// The first line, with the usual words unless others are given.
pub(crate) fn write_status_and_reason(out: &mut Vec<u8>, status: u16, reason: Option<&[u8]>) {
    let reason = reason.unwrap_or_else(|| usual_reason(status));
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn write_status_line(out: &mut Vec<u8>, status: u16) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(message::Status(status).reason().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The fields about the connection or the framing, which are ours to write.
pub(crate) const OF_CONNECTION: [FieldName; 4] =
    [FieldName::Connection, FieldName::TransferEncoding, FieldName::KeepAlive, FieldName::Upgrade];

#[inline]
pub(crate) fn is_of_connection(name: FieldName) -> bool {
    OF_CONNECTION.contains(&name)
}

#[inline]
pub(crate) fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[inline]
pub(crate) fn write_number_field(out: &mut Vec<u8>, name: &str, value: u64) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    write_decimal(out, value);
    out.extend_from_slice(b"\r\n");
}

/// What a whole answer from the store ends its head with: length, Age, Cache-Status, Connection, the empty line.
#[inline]
pub(crate) fn write_tail(out: &mut Vec<u8>, site: &Site, object: &Object, now: Now, fate: Fate) {
    if has_length(object.status().0) {
        write_number_field(out, "Content-Length", object.length());
    }
    write_freshness(out, site, object, now);
    write_fate(out, fate);
}

/// Date, in answers of our own.
#[inline]
pub(crate) fn write_date(out: &mut Vec<u8>, now: Now) {
    write_field(out, b"Date", &rules::date::write_date((now.wall_ms / 1000) as i64));
}

/// What an answer says of its connection (RFC 9112 §9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// HTTP/1.1's silence.
    Stays,
    /// HTTP/1.0 has to be told.
    KeepAlive,
    Closes,
}

/// Does this line of Connection end it? One option among others does, too.
pub(crate) fn says_close(value: &[u8]) -> bool {
    list_members(value).any(|option| option.eq_ignore_ascii_case(b"close"))
}

impl Fate {
    #[inline]
    pub(crate) fn of(persistent: bool, version: Version) -> Fate {
        match (persistent, version) {
            (false, _) => Fate::Closes,
            (true, Version::Http11) => Fate::Stays,
            (true, Version::Http10) => Fate::KeepAlive,
        }
    }
}

/// The last line of a head, and its end.
#[inline]
pub(crate) fn write_fate(out: &mut Vec<u8>, fate: Fate) {
    out.extend_from_slice(match fate {
        Fate::Stays => b"\r\n",
        Fate::KeepAlive => b"Connection: keep-alive\r\n\r\n",
        Fate::Closes => b"Connection: close\r\n\r\n",
    });
}

/// Age and Cache-Status of a hit.
#[inline]
pub(crate) fn write_freshness(out: &mut Vec<u8>, site: &Site, object: &Object, now: Now) {
    let facts = object.facts();
    let age_s = object.age_s(now);
    write_number_field(out, "Age", age_s);
    out.extend_from_slice(b"Cache-Status: ");
    out.extend_from_slice(site.hit_status.as_bytes());
    let lifetime_s = facts.lifetime_ms / 1000;
    if age_s > lifetime_s {
        // RFC 9211 §2.4: negative when stale.
        out.push(b'-');
    }
    write_decimal(out, lifetime_s.abs_diff(age_s));
    out.extend_from_slice(b"\r\n");
}

/// RFC 9110 §8.6: a 204 or 304 carries no Content-Length.
#[inline]
pub(crate) fn has_length(status: u16) -> bool {
    status != 204 && status != 304
}
