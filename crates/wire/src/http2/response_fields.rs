//! The head of a response as HTTP/2 carries it (RFC 9113 §8.3.2): a header block in, what HTTP/1 gives out.
//!
//! The counterpart of `request_fields`, with the same strictness: what an origin sends is written to clients that speak
//! HTTP/1. Every refusal is a 502.

use message::{FieldName, FieldsView, Method, Response, Status, Version, is_lookalike};

use super::hpack::{BlockDecoder, CompressionFault, Excess, LineName, ListLimits};
use super::request_fields::{HeadArena, check_field, span_of};
use crate::framing::Framing;
use crate::{HeadLimits, ReceivedResponse, Refusal, ResponseBody, refusals};

/// Reads the block of a response to `method`. A refusal is that of the response alone.
pub fn read_response_block<'a>(
    decoder: &mut BlockDecoder,
    block: &[u8],
    limits: &HeadLimits,
    method: Method,
    ends_stream: bool,
    arena: &'a mut HeadArena,
) -> Result<Result<ReceivedResponse<'a>, Refusal>, CompressionFault> {
    let (text, spans) = arena.emptied();
    let bounds = ListLimits { list_bytes_max: limits.head_bytes_max, lines_max: limits.fields_max };
    let (mut status, mut framing, mut verdict) = (None, Framing::default(), Ok(()));
    let excess = decoder.decode(block, bounds, text, |line, text| {
        let value = &text[line.value_at()..line.end()];
        let judged = match line.facts.name {
            LineName::Field(name) => check_field(name, line, text).and_then(|()| match name {
                _ if line.facts.text_bytes() > limits.field_bytes_max => Err(refusals::RESPONSE_FIELD_TOO_LARGE),
                FieldName::ContentLength => framing.take_content_length(value),
                _ => Ok(()),
            }),
            LineName::Status if status.is_none() && spans.is_empty() => {
                status = status_of(value);
                if status.is_some() { Ok(()) } else { Err(refusals::STATUS_LINE_INVALID) }
            }
            LineName::Status => Err(refusals::PSEUDO_FIELD_REPEATED),
            _ => Err(refusals::PSEUDO_FIELD_UNKNOWN),
        };
        if verdict.is_ok() {
            verdict = judged;
        }
        let LineName::Field(name) = line.facts.name else { return false };
        if verdict.is_err() || (name == FieldName::Other && is_lookalike(&text[line.at..line.value_at()])) {
            return false;
        }
        spans.push(span_of(name, line));
        true
    })?;
    Ok(match (excess, verdict, status) {
        (Some(Excess::ListBytes), ..) => Err(refusals::RESPONSE_HEAD_TOO_LARGE),
        (Some(Excess::Lines), ..) => Err(refusals::RESPONSE_FIELDS_TOO_MANY),
        (None, Err(refusal), _) => Err(refusal.of_origin()),
        (None, Ok(()), None) => Err(refusals::PSEUDO_FIELD_MISSING.of_origin()),
        (None, Ok(()), Some(status)) => body_of(framing, method, status, ends_stream).map(|body| ReceivedResponse {
            response: Response { status, version: Version::Http2, reason: None, fields: FieldsView::new(text, spans) },
            body,
            persistent: true,
            head_bytes: 0,
        }),
    })
}

/// Three digits (RFC 9110 §15).
fn status_of(value: &[u8]) -> Option<Status> {
    let [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = value else { return None };
    let digit = |digit: &u8| u16::from(digit - b'0');
    Some(Status(digit(hundreds) * 100 + digit(tens) * 10 + digit(ones)))
}

/// What HTTP/1 would call the framing.
fn body_of(framing: Framing, method: Method, status: Status, ends_stream: bool) -> Result<ResponseBody, Refusal> {
    // RFC 9113 §8.1: an interim response is never the last.
    if status.is_interim() && ends_stream {
        return Err(refusals::STATUS_LINE_INVALID.of_origin());
    }
    let (body, _) = framing.of_response(method, status, Version::Http11, false).map_err(Refusal::of_origin)?;
    match (body, ends_stream) {
        (ResponseBody::Length(length), true) if length > 0 => Err(refusals::CONTENT_LENGTH_UNTRUE.of_origin()),
        (ResponseBody::UntilClose, true) => Ok(ResponseBody::Length(0)),
        (ResponseBody::UntilClose, false) => Ok(ResponseBody::Chunked),
        (body, _) => Ok(body),
    }
}
