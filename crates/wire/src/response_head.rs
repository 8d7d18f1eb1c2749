//! The head of a response, read in place: an origin's bytes in, a borrowed [`Response`] and its framing out.
//!
//! The counterpart of `request_head`, with the same strictness: an origin behind us may be as hostile as a client
//! in front. Every refusal is a 502. The reason phrase is checked and forgotten.

use std::mem::MaybeUninit;

use message::{FieldName, FieldSpan, FieldsView, Method, Response, Status, Version};

use crate::connection_options::ConnectionOptions;
use crate::framing::{Framing, ResponseBody};
use crate::head_lines::{NameSet, Side, closes_with_crlf, refusal_of, take_fields};
use crate::limits::FIELDS_CEILING;
use crate::{HeadLimits, Refusal, refusals};

/// A response head as it was received, and what it says about the connection.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedResponse<'a> {
    pub response: Response<'a>,
    pub body: ResponseBody,
    /// May the connection be used again once the body has ended?
    pub persistent: bool,
    pub head_bytes: usize,
}

/// Reads the response head at the start of `buf`; `None` when its end has not been received yet.
///
/// `method` is that of the request it answers (RFC 9112 §6.3); `upgrade_sent` says that the request asked for another
/// protocol, without which a 101 is refused. An interim response comes out as a response without a body: more follow.
pub fn read_response<'a>(
    buf: &'a [u8],
    spans: &'a mut Vec<FieldSpan>,
    limits: &HeadLimits,
    method: Method,
    upgrade_sent: bool,
) -> Result<Option<ReceivedResponse<'a>>, Refusal> {
    if matches!(buf.first(), Some(b'\r' | b'\n')) {
        return Err(refusals::STATUS_LINE_INVALID);
    }
    let text = &buf[..buf.len().min(limits.head_bytes_max)];
    let mut room = [const { MaybeUninit::uninit() }; FIELDS_CEILING];
    let mut parsed = httparse::Response::new(&mut []);
    let fields_max = limits.fields_max.min(FIELDS_CEILING);
    let config = httparse::ParserConfig::default();
    let outcome = config.parse_response_with_uninit_headers(&mut parsed, text, &mut room[..fields_max]);
    if let (Ok(httparse::Status::Complete(length)), Some(code)) = (&outcome, parsed.code) {
        let line = StatusLine {
            status: Status(code),
            version: if parsed.version == Some(1) { Version::Http11 } else { Version::Http10 },
        };
        return judge_response(buf, line, parsed.headers, *length, spans, limits, method, upgrade_sent).map(Some);
    }
    if parsed.code.is_some() && is_reason_too_long(text, limits) {
        return Err(refusals::REASON_TOO_LONG);
    }
    match outcome {
        Err(error) => Err(refusal_of(error, Side::Response)),
        Ok(_) if buf.len() >= limits.head_bytes_max => Err(refusals::RESPONSE_HEAD_TOO_LARGE),
        Ok(_) => Ok(None),
    }
}

/// `HTTP/1.1 200 `, before the reason phrase.
const STATUS_LINE_PREFIX: usize = 13;

static JUDGED: NameSet = NameSet::of(&[FieldName::Connection, FieldName::ContentLength, FieldName::TransferEncoding]);

struct StatusLine {
    status: Status,
    version: Version,
}

/// The reason phrase, unless it is what everybody says, or nothing.
fn unusual_reason(status: Status, reason: &[u8]) -> Option<&[u8]> {
    (!reason.is_empty() && reason != status.reason().as_bytes()).then_some(reason)
}

/// Is the reason phrase too long already, whether or not its end has come?
fn is_reason_too_long(text: &[u8], limits: &HeadLimits) -> bool {
    let reason = text.get(STATUS_LINE_PREFIX..).unwrap_or_default();
    reason.iter().take_while(|b| matches!(**b, b'\t' | b' '..=b'~' | 0x80..)).count() > limits.target_bytes_max
}

#[allow(
    clippy::too_many_arguments,
    reason = "the parts of a head and what it is judged by, in the one place that does"
)]
fn judge_response<'a>(
    buf: &'a [u8],
    line: StatusLine,
    lines: &[httparse::Header<'a>],
    head_bytes: usize,
    spans: &'a mut Vec<FieldSpan>,
    limits: &HeadLimits,
    method: Method,
    upgrade_sent: bool,
) -> Result<ReceivedResponse<'a>, Refusal> {
    if is_reason_too_long(buf, limits) {
        return Err(refusals::REASON_TOO_LONG);
    }
    // RFC 9112 §4: the space before the reason phrase is there even when the phrase is not.
    let line_end = buf.iter().position(|&b| b == b'\n').expect("a complete head has a first line");
    let (has_blank, has_return) = (buf[STATUS_LINE_PREFIX - 1] == b' ', buf[line_end - 1] == b'\r');
    if line.status.0 < 100 || !(has_blank && has_return || limits.lenient) {
        return Err(refusals::STATUS_LINE_INVALID);
    }
    let reason_end = if has_return { line_end - 1 } else { line_end };
    let mut framing = Framing::default();
    let mut options = ConnectionOptions::default();
    take_fields(buf, lines, limits, Side::Response, spans, &JUDGED, |name, value| match name {
        FieldName::Connection => options.take_from_response(value),
        FieldName::ContentLength if limits.lenient => framing.take_content_length_leniently(value),
        FieldName::ContentLength => framing.take_content_length(value),
        FieldName::TransferEncoding => framing.take_transfer_encoding(value),
        _ => Ok(()),
    })
    .map_err(Refusal::of_origin)?;
    if !closes_with_crlf(buf, head_bytes) && !limits.lenient {
        return Err(refusals::LINE_END_INVALID.of_origin());
    }
    let (body, more_may_follow) =
        framing.of_response(method, line.status, line.version, upgrade_sent).map_err(Refusal::of_origin)?;
    let delimited = !matches!(body, ResponseBody::UntilClose | ResponseBody::Tunnel);
    Ok(ReceivedResponse {
        response: Response {
            status: line.status,
            version: line.version,
            reason: unusual_reason(line.status, buf.get(STATUS_LINE_PREFIX..reason_end).unwrap_or_default()),
            fields: FieldsView::new(buf, spans),
        },
        body,
        persistent: delimited && !more_may_follow && options.persistent(line.version),
        head_bytes,
    })
}

#[cfg(test)]
#[path = "response_head_tests.rs"]
mod tests;
