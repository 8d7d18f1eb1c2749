//! The head of a response as a CGI program writes it (RFC 3875 §6): fields without a status line.
//!
//! The fields are held to what `response_head` holds an origin's to. Two things are of this form alone: a line may end with LF, for a
//! program writes its lines as its system does; and the status is a field, or follows from `Location`.

use message::{FieldName, FieldSpan, FieldsView, Method, Response, Status, Version};

use crate::framing::{Framing, ResponseBody};
use crate::head_lines::{NameSet, Side, refusal_of, take_fields};
use crate::limits::FIELDS_CEILING;
use crate::response_head::ReceivedResponse;
use crate::{HeadLimits, Refusal, refusals};

static JUDGED: NameSet = NameSet::of(&[FieldName::ContentLength, FieldName::TransferEncoding]);

const STATUS: &[u8] = b"status";

/// Reads the head at the start of `output`; `None` when its end has not been received yet.
///
/// `method` is that of the request it answers. A body of unknown length comes out as [`ResponseBody::Chunked`]: records delimit it.
pub fn read_cgi_head<'a>(
    output: &'a [u8],
    spans: &'a mut Vec<FieldSpan>,
    limits: &HeadLimits,
    method: Method,
) -> Result<Option<ReceivedResponse<'a>>, Refusal> {
    read_in_room::<FIELDS_USUAL>(output, spans, limits, method)
}

/// Most heads have fewer fields, and room for as many as there may be is not cleared for each of them.
const FIELDS_USUAL: usize = 24;

fn read_in_room<'a, const ROOM: usize>(
    output: &'a [u8],
    spans: &'a mut Vec<FieldSpan>,
    limits: &HeadLimits,
    method: Method,
) -> Result<Option<ReceivedResponse<'a>>, Refusal> {
    let text = &output[..output.len().min(limits.head_bytes_max)];
    let mut room = [httparse::EMPTY_HEADER; ROOM];
    let fields_max = limits.fields_max.min(FIELDS_CEILING);
    match httparse::parse_headers(text, &mut room[..fields_max.min(ROOM)]) {
        Ok(httparse::Status::Complete((head_bytes, lines))) => {
            judge(output, lines, head_bytes, spans, limits, method).map(Some)
        }
        Err(httparse::Error::TooManyHeaders) if ROOM < fields_max => {
            read_in_room::<FIELDS_CEILING>(output, spans, limits, method)
        }
        Ok(httparse::Status::Partial) if output.len() >= limits.head_bytes_max => {
            Err(refusals::RESPONSE_HEAD_TOO_LARGE)
        }
        Ok(httparse::Status::Partial) => Ok(None),
        Err(error) => Err(refusal_of(error, Side::Response)),
    }
}

fn judge<'a>(
    output: &'a [u8],
    lines: &[httparse::Header<'a>],
    head_bytes: usize,
    spans: &'a mut Vec<FieldSpan>,
    limits: &HeadLimits,
    method: Method,
) -> Result<ReceivedResponse<'a>, Refusal> {
    let mut framing = Framing::default();
    let lines_may_end_with_lf = HeadLimits { lenient: true, ..*limits };
    take_fields(output, lines, &lines_may_end_with_lf, Side::Response, spans, &JUDGED, |name, value| match name {
        FieldName::ContentLength => framing.take_content_length(value),
        // How the answer is delimited is the connection's affair, not the program's (RFC 3875 §6.3.4).
        _ => Err(refusals::CGI_TRANSFER_ENCODING),
    })
    .map_err(Refusal::of_origin)?;
    let said = take_status(output, spans)?;
    let has_location = spans.iter().any(|span| span.name == FieldName::Location);
    let (status, reason) = match said {
        Some(value) => status_of(value, limits)?,
        // §6.2.3 and §6.2.4 say what a client is to be told; that a path alone be asked for here, as §6.2.2 has it, no server does.
        None if has_location => (Status(302), None),
        None => (Status::OK, None),
    };
    let (body, _) = framing.of_response(method, status, Version::Http11, false).map_err(Refusal::of_origin)?;
    let body = if body == ResponseBody::UntilClose { ResponseBody::Chunked } else { body };
    Ok(ReceivedResponse {
        response: Response { status, version: Version::Http11, reason, fields: FieldsView::new(output, spans) },
        body,
        persistent: true,
        head_bytes,
    })
}

/// Takes the field out that is the status, and nothing for a client.
fn take_status<'a>(output: &'a [u8], spans: &mut Vec<FieldSpan>) -> Result<Option<&'a [u8]>, Refusal> {
    let mut said = None;
    let mut is_repeated = false;
    spans.retain(|span| {
        let name = &output[span.name_at as usize..][..usize::from(span.name_len)];
        let is_status = span.name == FieldName::Other && name.eq_ignore_ascii_case(STATUS);
        if is_status {
            let value = &output[span.value_at as usize..][..span.value_len as usize];
            is_repeated |= said.replace(value).is_some();
        }
        !is_status
    });
    if is_repeated { Err(refusals::CGI_STATUS_REPEATED) } else { Ok(said) }
}

/// Three digits of a final status, and maybe a blank and a phrase (§6.3.3).
fn status_of<'a>(value: &'a [u8], limits: &HeadLimits) -> Result<(Status, Option<&'a [u8]>), Refusal> {
    let (digits, behind) = value.split_at(value.len().min(3));
    let reason = match behind {
        [] => behind,
        [b' ', reason @ ..] => reason,
        _ => return Err(refusals::CGI_STATUS_INVALID),
    };
    let [b'2'..=b'9', b'0'..=b'9', b'0'..=b'9'] = digits else { return Err(refusals::CGI_STATUS_INVALID) };
    if reason.len() > limits.target_bytes_max {
        return Err(refusals::REASON_TOO_LONG);
    }
    let status = Status(digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')));
    let is_unusual = !reason.is_empty() && reason != status.reason().as_bytes();
    Ok((status, is_unusual.then_some(reason)))
}

#[cfg(test)]
#[path = "cgi_head_tests.rs"]
mod tests;
