//! The head of a request, read in place: bytes in, a borrowed [`Request`] and its body's framing out.
//!
//! The first thing that happens to a client's bytes, and the hot path: no allocation, one pass by httparse and
//! one over the fields. Routing, policy and the cache see only what comes out of here.

use std::mem::MaybeUninit;

use message::{
    Authority, FieldName, FieldSpan, FieldsView, Method, Request, Scheme, TargetForm, Version, list_members,
};

use crate::connection_options::{ConnectionOptions, is_token, is_token_byte};
use crate::framing::{Framing, RequestBody};
use crate::head_lines::{NameSet, Side, closes_with_crlf, offset, refusal_of, take_fields};
use crate::limits::{FIELDS_CEILING, METHOD_BYTES_MAX};
use crate::request_target::resolve_target;
use crate::{HeadLimits, Refusal, refusals};

/// A request head as it was received, and what it says about the connection.
#[derive(Clone, Debug)]
pub struct ReceivedRequest<'a> {
    /// Its fields are all that were received, hop-by-hop ones and Host among them. Host in the forwarded request is
    /// printed from `authority`, which the target of an absolute-form request has overruled.
    pub request: Request<'a>,
    /// The port as it was given, the scheme's default too: for who learns that the scheme is another one.
    pub given_port: Option<u16>,
    pub body: RequestBody,
    /// May another request follow on this connection, as far as the client is concerned (RFC 9112 §9.3)?
    pub persistent: bool,
    /// The client waits for a 100 before it sends its body (RFC 9110 §10.1.1). Never for HTTP/1.0 or an empty body.
    pub expects_continue: bool,
    /// It asks for another protocol (RFC 9110 §7.8): HTTP/1.1, no body, and not h2c.
    pub upgrade: bool,
    /// Some of its names are not plain ([`message::is_plain_name`]).
    pub has_odd_names: bool,
    /// Bytes of the head, a skipped empty line included: the body begins here. Over HTTP/2, those of its header block.
    pub head_bytes: usize,
}

/// Reads the request head at the start of `buf`; `None` when its end has not been received yet.
///
/// `spans` is scratch space, so that its memory can be used again. The outcome does not depend on how many bytes
/// came at a time: what is refused in part is refused in whole, with the same token.
pub fn read_request<'a>(
    buf: &'a [u8],
    spans: &'a mut Vec<FieldSpan>,
    limits: &HeadLimits,
    scheme: Scheme,
) -> Result<Option<ReceivedRequest<'a>>, Refusal> {
    let skipped = match limits.lenient {
        true => leading_blanks(buf),
        false => match leading_empty_line(buf)? {
            Some(skipped) => skipped,
            None => return Ok(None),
        },
    };
    let text = &buf[skipped..buf.len().min(limits.head_bytes_max)];
    let mut room = [const { MaybeUninit::uninit() }; FIELDS_CEILING];
    let mut parsed = httparse::Request::new(&mut []);
    let fields_max = limits.fields_max.min(FIELDS_CEILING);
    let outcome = parsed.parse_with_uninit_headers(text, &mut room[..fields_max]);
    if let (Ok(httparse::Status::Complete(length)), Some(method), Some(target)) = (&outcome, parsed.method, parsed.path)
    {
        let line = RequestLine {
            method: method.as_bytes(),
            target: target.as_bytes(),
            version: if parsed.version == Some(1) { Version::Http11 } else { Version::Http10 },
        };
        return judge_request(buf, line, parsed.headers, skipped + length, spans, limits, scheme).map(Some);
    }
    if let Some(refusal) = too_long(text, limits) {
        return Err(refusal);
    }
    match outcome {
        Err(httparse::Error::Version) if limits.lenient => Err(refusals::VERSION_INVALID),
        Err(httparse::Error::Version) => read_other_version(buf, skipped, spans, limits, scheme),
        Err(error) => Err(refusal_of(error, Side::Request)),
        Ok(_) if buf.len() >= limits.head_bytes_max => Err(refusals::REQUEST_HEAD_TOO_LARGE),
        Ok(_) => Ok(None),
    }
}

/// Can reading again be worth it? `seen` bytes of `buf` were there when [`read_request`], or
/// [`read_response`](crate::read_response), last said `None`. Without this question a peer that sends a large head byte
/// by byte makes us parse it once per byte.
pub fn may_end_now(buf: &[u8], seen: usize, limits: &HeadLimits) -> bool {
    buf.len() >= limits.head_bytes_max
        || buf.len() >= seen.saturating_mul(2)
        || buf[seen.min(buf.len())..].contains(&b'\n')
}

struct RequestLine<'a> {
    method: &'a [u8],
    target: &'a [u8],
    version: Version,
}

/// How many bytes to skip: RFC 9112 §2.2 wants at least one empty line ignored, so exactly one is.
#[inline(always)]
fn leading_empty_line(buf: &[u8]) -> Result<Option<usize>, Refusal> {
    match buf {
        [b'\r', b'\n', b'\r' | b'\n', ..] | [b'\n', ..] => Err(refusals::EMPTY_LINES),
        [b'\r', b'\n', ..] => Ok(Some(2)),
        [b'\r'] | [] => Ok(None),
        [b'\r', ..] => Err(refusals::LINE_END_INVALID),
        _ => Ok(Some(0)),
    }
}

/// How many bytes stand before a request where any number of blanks and empty lines may.
pub fn leading_blanks(buf: &[u8]) -> usize {
    buf.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count()
}

/// The same head, of a request or a response, with lines that go on in the next one joined to it by blanks (RFC 9112 §5.2), byte for
/// byte as long; `None` when there is no such line.
pub fn unfolded(buf: &[u8]) -> Option<Vec<u8>> {
    let mut joined: Option<Vec<u8>> = None;
    let (mut at, mut is_first) = (0, true);
    while let Some(length) = buf[at..].iter().position(|byte| *byte == b'\n') {
        let end = at + length;
        let line = buf[at..end].strip_suffix(b"\r").unwrap_or(&buf[at..end]);
        if line.is_empty() && !is_first {
            break;
        }
        let blanks = buf[end + 1..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if blanks > 0 && !is_first {
            let text = joined.get_or_insert_with(|| buf.to_vec());
            text[at + line.len()..=end + blanks].fill(b' ');
        }
        is_first = false;
        at = end + 1;
    }
    joined
}

/// Everything that is decided once the lines are known.
#[inline(always)]
fn judge_request<'a>(
    buf: &'a [u8],
    line: RequestLine<'a>,
    lines: &[httparse::Header<'a>],
    head_bytes: usize,
    spans: &'a mut Vec<FieldSpan>,
    limits: &HeadLimits,
    scheme: Scheme,
) -> Result<ReceivedRequest<'a>, Refusal> {
    if line.method.len() > METHOD_BYTES_MAX {
        return Err(refusals::METHOD_TOO_LONG);
    }
    if line.target.len() > limits.target_bytes_max {
        return Err(refusals::TARGET_TOO_LONG);
    }
    // One space and the eight bytes of the version lie between the target and the line's end.
    let line_end = offset(buf, line.target) + line.target.len() + " HTTP/1.1".len();
    if buf.get(line_end) != Some(&b'\r') && !limits.lenient {
        return Err(refusals::LINE_END_INVALID);
    }
    let mut facts = Facts { lenient: limits.lenient, ..Facts::default() };
    let names = take_fields(buf, lines, limits, Side::Request, spans, &JUDGED, |name, value| facts.take(name, value))?;
    if !closes_with_crlf(buf, head_bytes) && !limits.lenient {
        return Err(refusals::LINE_END_INVALID);
    }
    let method = Method::classify(line.method);
    let target = resolve_target(line.target, method, scheme)?;
    let host = facts.authority(line.version, limits.lenient)?;
    let authority = target.authority.unwrap_or(host);
    let given_port = authority.port;
    // RFC 9112 §3.2.3: an authority-form names its port, whichever it is.
    let authority = if target.form == TargetForm::Authority { authority } else { authority.under(scheme) };
    let body = facts.framing.of_request(method, line.version)?;
    let is_http11 = line.version == Version::Http11;
    // RFC 1945 §8.3; here it would be a body of nothing.
    if limits.lenient && !is_http11 && body == RequestBody::None && matches!(method, Method::Post | Method::Put) {
        return Err(refusals::CONTENT_LENGTH_MISSING);
    }
    let has_body = body.follows();
    Ok(ReceivedRequest {
        request: Request {
            method,
            method_text: line.method,
            version: line.version,
            form: target.form,
            scheme,
            authority,
            path: target.path,
            query: target.query,
            fields: FieldsView::new(buf, spans),
        },
        given_port,
        body,
        persistent: facts.options.persistent(line.version),
        expects_continue: facts.expects_continue && is_http11 && has_body,
        upgrade: facts.asks_to_upgrade() && is_http11 && !has_body,
        has_odd_names: names.has_odd,
        head_bytes,
    })
}

/// What the fields say that the codec itself must know.
#[derive(Default)]
pub(crate) struct Facts<'a> {
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) framing: Framing,
    options: ConnectionOptions,
    lenient: bool,
    upgrade_offered: bool,
    h2c_offered: bool,
    pub(crate) expects_continue: bool,
    /// One bit for each singleton seen, by its discriminant.
    singletons: u64,
}

/// A field that is known to be for more than one hop. Varnish refuses to be told otherwise; else it is left out.
fn names_more_than_one_hop(option: &[u8]) -> bool {
    use FieldName::*;
    !matches!(
        FieldName::classify(option),
        Other | AcceptRanges | Connection | Http2Settings | KeepAlive | ProxyConnection | Te | Trailer | Upgrade
    )
}

/// Fields that stand once and that routing, caching or access rules read (RFC 9110 §5.3): of two lines, two readers may
/// pick one each.
const SINGLETONS: [FieldName; 9] = [
    FieldName::Authorization,
    FieldName::ProxyAuthorization,
    FieldName::ContentType,
    FieldName::ContentRange,
    FieldName::Range,
    FieldName::IfRange,
    FieldName::IfModifiedSince,
    FieldName::IfUnmodifiedSince,
    FieldName::MaxForwards,
];

/// What [`Facts::take`] is asked about.
pub(crate) static JUDGED: NameSet = {
    let [a, b, c, d, e, f, g, h, i] = SINGLETONS;
    assert!((FieldName::MaxForwards as usize) < 64, "one bit each");
    use FieldName::{Connection, ContentLength, Expect, Host, TransferEncoding, Upgrade};
    NameSet::of(&[Host, Connection, ContentLength, TransferEncoding, Upgrade, Expect, a, b, c, d, e, f, g, h, i])
};

impl<'a> Facts<'a> {
    pub(crate) fn take(&mut self, name: FieldName, value: &'a [u8]) -> Result<(), Refusal> {
        match name {
            FieldName::Host => match self.host.replace(value) {
                Some(_) => Err(refusals::HOST_REPEATED), // RFC 9112 §3.2, even when both say the same
                None => Ok(()),
            },
            FieldName::Connection if self.lenient && list_members(value).any(names_more_than_one_hop) => {
                Err(refusals::CONNECTION_NAMES_FRAMING)
            }
            FieldName::Connection => self.options.take_from_request(value),
            FieldName::ContentLength => self.framing.take_content_length(value),
            FieldName::TransferEncoding => self.framing.take_transfer_encoding(value),
            FieldName::Upgrade => {
                self.take_upgrade(value);
                Ok(())
            }
            FieldName::Expect => self.take_expect(value),
            _ => self.take_singleton(name),
        }
    }

    fn take_singleton(&mut self, name: FieldName) -> Result<(), Refusal> {
        let bit = 1 << (name as u32);
        let repeated = self.singletons & bit != 0;
        self.singletons |= bit;
        if repeated { Err(refusals::FIELD_REPEATED) } else { Ok(()) }
    }

    /// h2c is a second way around whoever checks requests in front of the origin; RFC 9113 has withdrawn it. A request
    /// that offers it beside others is not upgraded at all: the origin might choose it.
    fn take_upgrade(&mut self, value: &[u8]) {
        for protocol in list_members(value) {
            self.upgrade_offered = true;
            self.h2c_offered |= protocol.eq_ignore_ascii_case(b"h2c");
        }
    }

    /// RFC 9110 §10.1.1: an expectation other than 100-continue may be answered with 417, so it is.
    fn take_expect(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let mut members = list_members(value).peekable();
        if members.peek().is_none() || members.any(|member| !member.eq_ignore_ascii_case(b"100-continue")) {
            return Err(refusals::EXPECTATION_UNKNOWN);
        }
        self.expects_continue = true;
        Ok(())
    }

    #[inline]
    fn asks_to_upgrade(&self) -> bool {
        self.options.upgrade && self.upgrade_offered && !self.h2c_offered
    }

    /// RFC 9112 §3.2: exactly one valid Host. An empty one names no http resource (RFC 9110 §4.2.1).
    #[inline]
    fn authority(&self, version: Version, lenient: bool) -> Result<Authority<'a>, Refusal> {
        match self.host {
            Some(host) => Authority::parse_as_given(host).ok_or(refusals::HOST_INVALID),
            None if version == Version::Http10 || lenient => Ok(Authority::EMPTY),
            None => Err(refusals::HOST_MISSING),
        }
    }
}

/// A method or target that is too long already, whether or not its end has come.
#[cold]
fn too_long(text: &[u8], limits: &HeadLimits) -> Option<Refusal> {
    let method_bytes = text.iter().take_while(|b| is_token_byte(**b)).count();
    if method_bytes > METHOD_BYTES_MAX {
        return Some(refusals::METHOD_TOO_LONG);
    }
    let target = text[method_bytes..].strip_prefix(b" ")?;
    let target_bytes = target.iter().take_while(|b| **b > b' ' && **b != 0x7f).count();
    (target_bytes > limits.target_bytes_max).then_some(refusals::TARGET_TOO_LONG)
}

/// httparse knows two versions. A higher minor version of HTTP/1 is read as 1.1 (RFC 9110 §2.5); another major
/// version is refused with 505 (RFC 9110 §15.6.6).
#[cold]
fn read_other_version<'a>(
    buf: &'a [u8],
    skipped: usize,
    spans: &'a mut Vec<FieldSpan>,
    limits: &HeadLimits,
    scheme: Scheme,
) -> Result<Option<ReceivedRequest<'a>>, Refusal> {
    let text = &buf[skipped..buf.len().min(limits.head_bytes_max)];
    let mut words = text.splitn(3, |&b| b == b' ');
    let (Some(method), Some(target), Some(rest)) = (words.next(), words.next(), words.next()) else {
        return Err(refusals::REQUEST_LINE_INVALID);
    };
    let Some(minor) = other_version(rest)? else {
        return if buf.len() >= limits.head_bytes_max { Err(refusals::REQUEST_HEAD_TOO_LARGE) } else { Ok(None) };
    };
    debug_assert!(minor > 1 && is_token(method) && !target.is_empty());
    let fields_at = offset(buf, rest) + "HTTP/1.2\r\n".len();
    let mut room = [httparse::EMPTY_HEADER; FIELDS_CEILING];
    let fields_max = limits.fields_max.min(FIELDS_CEILING);
    match httparse::parse_headers(&buf[fields_at..buf.len().min(limits.head_bytes_max)], &mut room[..fields_max]) {
        Ok(httparse::Status::Complete((length, lines))) => {
            let line = RequestLine { method, target, version: Version::Http11 };
            judge_request(buf, line, lines, fields_at + length, spans, limits, scheme).map(Some)
        }
        Err(error) => Err(refusal_of(error, Side::Request)),
        Ok(_) if buf.len() >= limits.head_bytes_max => Err(refusals::REQUEST_HEAD_TOO_LARGE),
        Ok(_) => Ok(None),
    }
}

/// The minor version in `HTTP/1.n\r\n`, n from 2 to 9; `None` when that much has not come yet.
fn other_version(rest: &[u8]) -> Result<Option<u8>, Refusal> {
    let shape = b"HTTP/0.0\r\n";
    let fits = |(got, want): (&u8, &u8)| if *want == b'0' { got.is_ascii_digit() } else { got == want };
    if !rest.iter().zip(shape).all(fits) {
        return Err(refusals::VERSION_INVALID);
    }
    match rest {
        [_, _, _, _, _, b'1', _, minor, b'\r', b'\n', ..] => Ok(Some(minor - b'0')),
        [_, _, _, _, _, major, ..] if *major != b'1' && rest.len() >= shape.len() => Err(refusals::VERSION_UNSUPPORTED),
        _ => Ok(None),
    }
}

#[cfg(test)]
#[path = "request_head_tests.rs"]
mod tests;
