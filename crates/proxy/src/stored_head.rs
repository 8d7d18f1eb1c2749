//! The head of a stored response: HTTP/1.1 text that is made once, when the response is stored (`stored_blocks.rs` makes it a
//! header block of HTTP/2), and a tail of the few fields that differ from answer to answer, in the client's form.

use bytes::Bytes;
use cache::{Now, Object};
use message::{Field, FieldName, Fields, FieldsView, ResponseHead, Status, Version, write_decimal};
use wire::{Persistence, has_length, write_field, write_status_line};

use crate::head_form::{AGE, CACHE_STATUS, CONTENT_LENGTH, HeadForm};
use crate::parsed_request::ParsedRequest;
use crate::route_rules::answer_fields::AnswerFields;
use crate::route_rules::field_template::TemplateSource;
use crate::site::Site;
use crate::transport_security;
use crate::vcl_story::scope_heads::usual_reason;

/// The status line and the fields of a response to be stored, `Via` of ours included; no Content-Length, no Age,
/// no empty line. `is_surrogate`: Surrogate-Control was said to us, and is nothing for those who come behind us (Edge Architecture §2.2).
/// `is_removed`: which of them its route lets nobody see.
pub(crate) fn render(
    head: &ResponseHead,
    site: &Site,
    is_surrogate: bool,
    is_removed: impl Fn(&Field<'_>) -> bool,
) -> Bytes {
    let is_ours = |field: &Field<'_>| is_surrogate && field.name == FieldName::SurrogateControl;
    render_without(head, site, None, |field| is_ours(field) || is_removed(field))
}

/// The same for what was fetched under a program: without X-Varnish, in which every answer has its own number, and
/// Accept-Ranges, which we say.
pub(crate) fn render_for_program(head: &ResponseHead, site: &Site) -> Bytes {
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
    write_status_line(&mut out, head.status, reason);
    for field in head.fields.view().iter() {
        if matches!(field.name, FieldName::ContentLength | FieldName::Age) || is_left_out(&field) {
            continue;
        }
        write_field(&mut out, field.name_text, field.value);
    }
    let via = via(head.version, site);
    if !is_left_out(&Field { name: FieldName::Via, name_text: b"Via", value: &via }) {
        write_field(&mut out, b"Via", &via);
    }
    Bytes::from(out.into_boxed_slice())
}

/// What `Via` says: it names us behind whoever the message came through (RFC 9110 §7.6.3).
pub(crate) fn via(version: Version, site: &Site) -> Vec<u8> {
    [version.number().as_bytes(), b" ", site.pseudonym.as_bytes()].concat()
}

/// The same, behind the fields of an answer.
pub(crate) fn push_via(fields: &mut Fields, version: Version, site: &Site) {
    fields.push_joined(FieldName::Via, &[version.number().as_bytes(), b" ", site.pseudonym.as_bytes()]);
}

/// The fields about the connection or the framing, which are ours to write.
pub(crate) const OF_CONNECTION: [FieldName; 4] =
    [FieldName::Connection, FieldName::TransferEncoding, FieldName::KeepAlive, FieldName::Upgrade];

#[inline]
pub(crate) fn is_of_connection(name: FieldName) -> bool {
    OF_CONNECTION.contains(&name)
}

/// What a whole answer from the store ends its head with: length, Age, Cache-Status, Connection, the empty line.
#[inline]
pub(crate) fn write_tail<F: HeadForm>(
    out: &mut Vec<u8>,
    site: &Site,
    object: &Object,
    now: Now,
    (parsed, edits): (&ParsedRequest<'_>, Option<&AnswerFields>),
) {
    if has_length(object.status()) {
        F::number(out, CONTENT_LENGTH, object.length());
    }
    let age_s = object.age_s(now);
    F::number(out, AGE, age_s);
    if edits.is_none_or(|edits| !edits.hides(FieldName::CacheStatus)) {
        F::made(out, CACHE_STATUS, |out| write_hit_status(out, site, object, age_s));
    }
    write_end::<F>(out, site, (object.status(), object.fields()), (parsed, edits));
}

/// What the route adds to these fields, what is said of the connection, and the end of the head.
#[inline]
pub(crate) fn write_end<F: HeadForm>(
    out: &mut Vec<u8>,
    site: &Site,
    (status, fields): (Status, FieldsView<'_>),
    (parsed, edits): (&ParsedRequest<'_>, Option<&AnswerFields>),
) {
    if let Some(edits) = edits {
        edits.write::<F>(&TemplateSource::of(&parsed.received.request, &parsed.client), (status, fields), out);
    }
    transport_security::write::<F>(out, site, parsed.tls.is_some(), || transport_security::is_said_by(fields));
    F::end(out, Persistence::of(parsed.persistent, parsed.received.request.version));
}

/// Date, in answers of our own.
#[inline]
pub(crate) fn date(now: Now) -> [u8; rules::date::DATE_BYTES] {
    rules::date::write_date((now.wall_ms / 1000) as i64)
}

/// What Cache-Status says of a hit.
#[inline]
pub(crate) fn write_hit_status(out: &mut Vec<u8>, site: &Site, object: &Object, age_s: u64) {
    let lifetime_s = object.facts().lifetime_ms / 1000;
    out.extend_from_slice(site.hit_status.as_bytes());
    if age_s > lifetime_s {
        // RFC 9211 §2.4: negative when stale.
        out.push(b'-');
    }
    write_decimal(out, lifetime_s.abs_diff(age_s));
}
