//! The one framing decision: what, in a head, says where the body ends (RFC 9112 §6).
//!
//! `request_head` and `response_head` feed it the two fields; nobody else looks at them. A message that two
//! readers could frame in two ways is refused, never repaired: that is how requests are smuggled.

use message::{Method, Status, Version, list_members};

use crate::connection_options::is_token;
use crate::{Refusal, refusals};

/// How the body of a request is delimited. A request is never delimited by the end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    None,
    /// As `Content-Length` says; may be 0.
    Length(u64),
    Chunked,
}

impl RequestBody {
    /// Does anything follow the head? Chunks do, even if the first of them is the last.
    #[inline]
    pub fn follows(self) -> bool {
        !matches!(self, RequestBody::None | RequestBody::Length(0))
    }
}

/// How the body of a response is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseBody {
    /// No body, whatever the fields say: HEAD, 1xx, 204, 304.
    None,
    Length(u64),
    Chunked,
    UntilClose,
    /// What follows is no longer HTTP: 101 to an upgrade we sent, or 2xx to CONNECT.
    Tunnel,
}

/// What the framing fields of one head have said so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Framing {
    length: Option<u64>,
    chunked: bool,
}

impl Framing {
    /// RFC 9112 §6.3 case 5, RFC 9110 §8.6. The list form (`5, 5`) may be refused, so it is.
    pub(crate) fn take_content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.length.is_some() {
            return Err(refusals::CONTENT_LENGTH_REPEATED);
        }
        self.length = Some(parse_content_length(value).ok_or(refusals::CONTENT_LENGTH_INVALID)?);
        Ok(())
    }

    /// The same of a response that is read leniently: zeros may stand before it, and it may say the same twice (RFC 9112 §6.3). Both mean one
    /// thing to all who read them, and what is forwarded is written anew.
    pub(crate) fn take_content_length_leniently(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let zeros = value.iter().take_while(|digit| **digit == b'0').count();
        let digits = &value[zeros.min(value.len().saturating_sub(1))..];
        let length = parse_content_length(digits).ok_or(refusals::CONTENT_LENGTH_INVALID)?;
        match self.length.replace(length) {
            Some(other) if other != length => Err(refusals::CONTENT_LENGTH_REPEATED),
            _ => Ok(()),
        }
    }

    /// RFC 9112 §6.1. Only `chunked`, once and alone, is a coding that we read.
    pub(crate) fn take_transfer_encoding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.chunked {
            return Err(refusals::TRANSFER_ENCODING_REPEATED);
        }
        if !value.eq_ignore_ascii_case(b"chunked") {
            return Err(other_transfer_encoding(value));
        }
        self.chunked = true;
        Ok(())
    }

    fn check(&self, version: Version) -> Result<(), Refusal> {
        match (self.chunked, self.length, version) {
            (true, _, Version::Http10) => Err(refusals::TRANSFER_ENCODING_IN_HTTP10),
            (true, Some(_), _) => Err(refusals::LENGTH_AND_TRANSFER_ENCODING),
            _ => Ok(()),
        }
    }

    /// RFC 9112 §6.3 for a request.
    #[inline]
    pub(crate) fn of_request(&self, method: Method, version: Version) -> Result<RequestBody, Refusal> {
        self.check(version)?;
        let body = match (self.chunked, self.length) {
            (true, _) => RequestBody::Chunked,
            (false, Some(length)) => RequestBody::Length(length),
            (false, None) => RequestBody::None,
        };
        // RFC 9110 §9.3.6: CONNECT has no content; what frames it is a trap.
        if method == Method::Connect && body != RequestBody::None {
            return Err(refusals::CONNECT_WITH_BODY);
        }
        Ok(body)
    }

    /// RFC 9112 §6.3 for a response to `method`. The flag says whether bytes may follow that the head promised
    /// and the status forbids, so that the connection must not be used again.
    pub(crate) fn of_response(
        &self,
        method: Method,
        status: Status,
        version: Version,
        upgrade_sent: bool,
    ) -> Result<(ResponseBody, bool), Refusal> {
        self.check(version)?;
        if status.0 == 101 {
            return if upgrade_sent { Ok((ResponseBody::Tunnel, false)) } else { Err(refusals::SWITCHING_UNASKED) };
        }
        if method == Method::Connect && status.is_success() {
            return Ok((ResponseBody::Tunnel, false));
        }
        if status.is_interim() || status.0 == 204 {
            // RFC 9110 §8.6, RFC 9112 §6.1: neither field may stand here; a zero harms nobody.
            return Ok((ResponseBody::None, self.chunked || self.length.is_some_and(|length| length > 0)));
        }
        if method == Method::Head || status.0 == 304 {
            return Ok((ResponseBody::None, false));
        }
        let body = match (self.chunked, self.length) {
            (true, _) => ResponseBody::Chunked,
            (false, Some(length)) => ResponseBody::Length(length),
            (false, None) => ResponseBody::UntilClose,
        };
        Ok((body, false))
    }
}

/// Digits alone, without leading zeros (others read them as octal), at most 2^63 − 1.
fn parse_content_length(value: &[u8]) -> Option<u64> {
    if value.len() > 19 || (value.len() > 1 && value[0] == b'0') || value.is_empty() {
        return None;
    }
    let mut length: u64 = 0;
    for &digit in value {
        if !digit.is_ascii_digit() {
            return None;
        }
        length = length * 10 + u64::from(digit - b'0'); // 19 digits stay below 2^64
    }
    i64::try_from(length).is_ok().then_some(length)
}

/// RFC 9112 §6.3 case 4: where chunked is not the last coding the length is unknown, which is a bad request; where
/// it is, the codings before it are merely ones that we do not know.
#[cold]
fn other_transfer_encoding(value: &[u8]) -> Refusal {
    let has_empty_member = value.split(|&b| b == b',').any(|member| member.trim_ascii().is_empty());
    let mut codings = list_members(value).collect::<Vec<_>>();
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let ends_chunked = codings.pop().is_some_and(is_chunked);
    let plain = codings.iter().all(|coding| is_token(coding) && !is_chunked(coding) && *coding != b"identity");
    if ends_chunked && plain && !has_empty_member {
        refusals::TRANSFER_ENCODING_UNSUPPORTED
    } else {
        refusals::TRANSFER_ENCODING_INVALID
    }
}
