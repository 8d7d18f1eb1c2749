//! The form in which a protocol has the head of an answer that goes out at once: text of HTTP/1.1, or a header block of HTTP/2. What
//! is said there is the same, and said once, by whoever makes the head.

use message::{FieldName, Status, write_decimal};
use wire::http2::hpack;
use wire::{Persistence, write_field, write_head_end, write_status_line};

use crate::vcl_story::field_bits::{FieldBits, Name};
use crate::vcl_story::head_edits::EditedHead;

pub(crate) const ACCEPT_RANGES: Name<'static> = Name::of_known(FieldName::AcceptRanges);
pub(crate) const AGE: Name<'static> = Name::of_known(FieldName::Age);
pub(crate) const CACHE_STATUS: Name<'static> = Name::of_known(FieldName::CacheStatus);
pub(crate) const CONTENT_LENGTH: Name<'static> = Name::of_known(FieldName::ContentLength);
pub(crate) const DATE: Name<'static> = Name::of_known(FieldName::Date);
pub(crate) const STRICT_TRANSPORT_SECURITY: Name<'static> = Name::of_known(FieldName::StrictTransportSecurity);
pub(crate) const X_VARNISH: Name<'static> = Name::classified(FieldName::Other, b"X-Varnish");

/// Writes heads.
pub(crate) trait HeadForm {
    /// What stands first. Not every protocol has a reason.
    fn status(out: &mut Vec<u8>, status: Status, reason: Option<&[u8]>);

    /// A field whose value `write` appends.
    fn made(out: &mut Vec<u8>, name: Name<'_>, write: impl FnOnce(&mut Vec<u8>));

    /// What a program left of a head, but for the fields that somebody else writes.
    fn edited(out: &mut Vec<u8>, fields: &EditedHead<'_>, without: FieldBits);

    /// What is said of the connection, where the protocol has words for that, and the end of the head.
    fn end(out: &mut Vec<u8>, persistence: Persistence);

    #[inline]
    fn field(out: &mut Vec<u8>, name: Name<'_>, value: &[u8]) {
        Self::made(out, name, |out| out.extend_from_slice(value));
    }

    #[inline]
    fn number(out: &mut Vec<u8>, name: Name<'_>, value: u64) {
        Self::made(out, name, |out| write_decimal(out, value));
    }
}

/// HTTP/1.1.
pub(crate) struct TextForm;

impl HeadForm for TextForm {
    #[inline]
    fn status(out: &mut Vec<u8>, status: Status, reason: Option<&[u8]>) {
        write_status_line(out, status, reason);
    }

    #[inline]
    fn made(out: &mut Vec<u8>, name: Name<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        out.extend_from_slice(name.text);
        out.extend_from_slice(b": ");
        write(out);
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn field(out: &mut Vec<u8>, name: Name<'_>, value: &[u8]) {
        write_field(out, name.text, value);
    }

    #[inline]
    fn edited(out: &mut Vec<u8>, fields: &EditedHead<'_>, without: FieldBits) {
        fields.write(out, without);
    }

    #[inline]
    fn end(out: &mut Vec<u8>, persistence: Persistence) {
        write_head_end(out, persistence);
    }
}

/// HTTP/2: a block that is valid on any connection.
pub(crate) struct BlockForm;

impl HeadForm for BlockForm {
    fn status(out: &mut Vec<u8>, status: Status, _: Option<&[u8]>) {
        hpack::write_status(status, out);
    }

    #[inline]
    fn made(out: &mut Vec<u8>, name: Name<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        hpack::write_made_field(name.known(), name.text, out, write);
    }

    fn edited(out: &mut Vec<u8>, fields: &EditedHead<'_>, without: FieldBits) {
        fields.each_without(without, |known, name, value| hpack::write_plain_field(known, name, value, out));
    }

    fn end(_: &mut Vec<u8>, _: Persistence) {}
}
