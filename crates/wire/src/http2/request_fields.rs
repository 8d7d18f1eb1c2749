//! The head of a request as HTTP/2 carries it (RFC 9113 §8): a header block in, the [`Request`] that HTTP/1 gives out.
//!
//! Lines are taken as they are decoded and judged when all are there. Whatever could be read in two ways once it is written
//! as HTTP/1 is refused here: this is where requests are smuggled by downgrade. Streams and frames are unknown here.

use message::{
    Authority, FieldName, FieldSpan, FieldsView, Method, Request, Scheme, TargetForm, Version, is_lookalike,
    is_plain_name,
};

use super::hpack::{
    BlockDecoder, CompressionFault, Excess, HeaderLine, LineName, ListLimits, NOT_IN_NAME, NOT_IN_VALUE,
    is_connection_specific,
};
use super::priority::Priority;
use crate::connection_options::is_token;
use crate::limits::METHOD_BYTES_MAX;
use crate::request_head::{Facts, JUDGED};
use crate::request_target::resolve_target;
use crate::trailer_section::may_trail;
use crate::{ChunkedLimits, HeadLimits, ReceivedRequest, Refusal, RequestBody, refusals};

/// Where heads are decoded: one for a whole core. What is in it is valid until the next head.
#[derive(Debug, Default)]
pub struct HeadArena {
    text: Vec<u8>,
    spans: Vec<FieldSpan>,
}

/// A request, and what HTTP/1 has no place for.
#[derive(Clone, Debug)]
pub struct Http2Request<'a> {
    /// As if it had come as HTTP/1.1: it has a Host; its cookies are one line; a body of unknown length counts as
    /// chunked. It is always persistent and never asks for an upgrade.
    pub received: ReceivedRequest<'a>,
    /// What an extended CONNECT asks for (RFC 8441 §4): `websocket`.
    pub protocol: Option<&'a [u8]>,
    /// What the field says, where there is one (RFC 9218 §5).
    pub priority: Option<Priority>,
}

impl HeadArena {
    /// Text and spans, without what was in them.
    pub(crate) fn emptied(&mut self) -> (&mut Vec<u8>, &mut Vec<FieldSpan>) {
        self.text.clear();
        self.spans.clear();
        (&mut self.text, &mut self.spans)
    }
}

/// What a block must be judged by beside its own lines.
#[derive(Clone, Copy, Debug)]
pub struct BlockContext<'l> {
    pub limits: &'l HeadLimits,
    /// That of the connection.
    pub scheme: Scheme,
    /// `:scheme` may name the other one, and then counts.
    pub believes_scheme: bool,
    /// No DATA follows.
    pub ends_stream: bool,
    /// We have announced extended CONNECT.
    pub extended_connect: bool,
}

impl BlockContext<'_> {
    /// With the scheme by which the client came.
    fn hearing(self, said: Option<&[u8]>) -> Self {
        let is = |known: Scheme| said.is_some_and(|said| said.eq_ignore_ascii_case(known.text().as_bytes()));
        match self.believes_scheme {
            true if is(Scheme::Http) => BlockContext { scheme: Scheme::Http, ..self },
            true if is(Scheme::Https) => BlockContext { scheme: Scheme::Https, ..self },
            _ => self,
        }
    }
}

type Place = (u32, u32);

/// The name of the Host field that stands for `:authority`; it lies at the start of the arena.
const HOST_NAME: &[u8] = b"host";

/// The lines so far.
#[derive(Default)]
struct Lines {
    method: Option<Place>,
    scheme: Option<Place>,
    path: Option<Place>,
    authority: Option<Place>,
    protocol: Option<Place>,
    has_fields: bool,
    cookies_count: usize,
    has_odd_names: bool,
    priority: Option<Priority>,
    /// The first thing that was wrong.
    refusal: Option<Refusal>,
}

/// Reads the block of a request. A refusal is that of the request alone: the connection's table has followed.
pub fn read_request_block<'a>(
    decoder: &mut BlockDecoder,
    block: &[u8],
    context: BlockContext<'_>,
    arena: &'a mut HeadArena,
) -> Result<Result<Http2Request<'a>, Refusal>, CompressionFault> {
    let (text, spans) = arena.emptied();
    text.extend_from_slice(HOST_NAME);
    // Its value is found when all lines are there.
    spans.push(span(FieldName::Host, 0, HOST_NAME.len() as u16, 0, 0));
    let limits = context.limits;
    let bounds = ListLimits { list_bytes_max: limits.head_bytes_max, lines_max: limits.fields_max };
    let mut lines = Lines::default();
    let excess = decoder.decode(block, bounds, text, |line, text| match lines.take(line, text, limits, spans) {
        Ok(is_kept) => is_kept,
        Err(refusal) => {
            lines.refusal.get_or_insert(refusal);
            false
        }
    })?;
    if let Some(excess) = excess {
        return Ok(Err(too_much(excess)));
    }
    if let Some(refusal) = lines.refusal {
        return Ok(Err(refusal));
    }
    if lines.cookies_count > 1 {
        join_cookies(text, spans);
    }
    let mut judged = judge(lines, text, spans, context);
    if let Ok(head) = &mut judged {
        head.received.head_bytes = block.len();
    }
    Ok(judged)
}

fn too_much(excess: Excess) -> Refusal {
    match excess {
        Excess::ListBytes => refusals::REQUEST_HEAD_TOO_LARGE,
        Excess::Lines => refusals::REQUEST_FIELDS_TOO_MANY,
    }
}

fn span(name: FieldName, name_at: u32, name_len: u16, value_at: u32, value_len: u32) -> FieldSpan {
    FieldSpan { name, name_len, name_at, value_at, value_len }
}

pub(super) fn span_of(name: FieldName, line: HeaderLine) -> FieldSpan {
    span(name, line.at as u32, line.facts.name_len, line.value_at() as u32, line.facts.value_len)
}

impl Lines {
    /// Does the line stay in the text?
    #[inline]
    fn take(
        &mut self,
        line: HeaderLine,
        text: &[u8],
        limits: &HeadLimits,
        spans: &mut Vec<FieldSpan>,
    ) -> Result<bool, Refusal> {
        let LineName::Field(name) = line.facts.name else {
            self.take_pseudo(line, limits)?;
            return Ok(true);
        };
        self.has_fields = true;
        check_field(name, line, text)?;
        if line.facts.text_bytes() > limits.field_bytes_max {
            return Err(refusals::REQUEST_FIELD_TOO_LARGE);
        }
        match name {
            FieldName::Cookie => self.cookies_count += 1,
            FieldName::Other => {
                let name_text = &text[line.at..line.value_at()];
                if !is_plain_name(name_text) {
                    if is_lookalike(name_text) {
                        return Ok(false);
                    }
                    self.has_odd_names = true;
                }
                if name_text == b"priority" {
                    self.priority = Some(Priority::parse(&text[line.value_at()..line.end()]));
                }
            }
            _ => {}
        }
        spans.push(span_of(name, line));
        Ok(true)
    }

    /// RFC 9113 §8.3: each at most once, before all fields, and none that is not defined. The head is judged when all of it is there, so
    /// their place changes nothing of what it says: where heads are read leniently it may be any.
    fn take_pseudo(&mut self, line: HeaderLine, limits: &HeadLimits) -> Result<(), Refusal> {
        let known = match line.facts.name {
            LineName::Method => &mut self.method,
            LineName::Scheme => &mut self.scheme,
            LineName::Path => &mut self.path,
            LineName::Authority => &mut self.authority,
            LineName::Protocol => &mut self.protocol,
            _ => return Err(refusals::PSEUDO_FIELD_UNKNOWN),
        };
        if self.has_fields && !limits.lenient {
            return Err(refusals::PSEUDO_FIELD_LATE);
        }
        if line.facts.value_kinds & NOT_IN_VALUE != 0 {
            return Err(refusals::FIELD_VALUE_INVALID);
        }
        match known.replace((line.value_at() as u32, line.end() as u32)) {
            Some(_) => Err(refusals::PSEUDO_FIELD_REPEATED),
            None => Ok(()),
        }
    }
}

/// RFC 9113 §8.2.1 and §8.2.2.
#[inline]
pub(super) fn check_field(name: FieldName, line: HeaderLine, text: &[u8]) -> Result<(), Refusal> {
    if line.facts.name_kinds & NOT_IN_NAME != 0 || line.facts.name_len == 0 {
        return Err(refusals::FIELD_NAME_INVALID);
    }
    let value = &text[line.value_at()..line.end()];
    let has_blank_end = matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']);
    if line.facts.value_kinds & NOT_IN_VALUE != 0 || has_blank_end {
        return Err(refusals::FIELD_VALUE_INVALID);
    }
    let is_allowed = !is_connection_specific(name) || (name == FieldName::Te && value == b"trailers");
    if is_allowed { Ok(()) } else { Err(refusals::CONNECTION_FIELD_IN_HTTP2) }
}

/// RFC 9113 §8.2.3: they are one field, cut up so that its parts can be indexed.
fn join_cookies(text: &mut Vec<u8>, spans: &mut Vec<FieldSpan>) {
    let from = text.len();
    for crumb in spans.iter().filter(|span| span.name == FieldName::Cookie) {
        if text.len() > from {
            text.extend_from_slice(b"; ");
        }
        let value_at = crumb.value_at as usize;
        text.extend_from_within(value_at..value_at + crumb.value_len as usize);
    }
    let (value_at, value_len) = (from as u32, (text.len() - from) as u32);
    let mut is_first = true;
    spans.retain_mut(|span| {
        if span.name != FieldName::Cookie {
            return true;
        }
        (span.value_at, span.value_len) = (value_at, value_len);
        std::mem::take(&mut is_first)
    });
}

/// Everything that is decided once all lines are there.
fn judge<'a>(
    lines: Lines,
    text: &'a [u8],
    spans: &'a mut Vec<FieldSpan>,
    context: BlockContext<'_>,
) -> Result<Http2Request<'a>, Refusal> {
    let at = |place: Place| &text[place.0 as usize..place.1 as usize];
    let context = context.hearing(lines.scheme.map(at));
    let method_text = lines.method.map(at).ok_or(refusals::PSEUDO_FIELD_MISSING)?;
    if method_text.len() > METHOD_BYTES_MAX {
        return Err(refusals::METHOD_TOO_LONG);
    }
    if !is_token(method_text) {
        return Err(refusals::METHOD_INVALID);
    }
    let method = Method::classify(method_text);
    let protocol = lines.protocol.map(at);
    if protocol.is_some_and(|name| method != Method::Connect || !context.extended_connect || !is_token(name)) {
        return Err(refusals::EXTENDED_CONNECT_INVALID);
    }
    let facts = facts_of(text, &spans[1..])?;
    let target = match (method, protocol) {
        (Method::Connect, None) => connect_target(&lines, text)?,
        _ => target_of(&lines, method, text, context)?,
    };
    let authority = authority_of(lines.authority.map(at), facts.host, context)?;
    match (facts.host, lines.authority) {
        (None, Some(place)) => (spans[0].value_at, spans[0].value_len) = (place.0, place.1 - place.0),
        _ => drop(spans.remove(0)),
    }
    let body = body_of(&facts, method, context.ends_stream)?;
    Ok(Http2Request {
        received: ReceivedRequest {
            given_port: authority.port,
            request: Request {
                method,
                method_text,
                version: Version::Http2,
                form: target.form,
                scheme: context.scheme,
                // RFC 9112 §3.2.3: an authority-form names its port, whichever it is.
                authority: match target.form {
                    TargetForm::Authority => authority,
                    _ => authority.under(context.scheme),
                },
                path: target.path,
                query: target.query,
                fields: FieldsView::new(text, spans),
            },
            body,
            persistent: true,
            expects_continue: facts.expects_continue && !context.ends_stream,
            upgrade: false,
            has_odd_names: lines.has_odd_names,
            head_bytes: 0,
        },
        protocol,
        priority: lines.priority,
    })
}

fn facts_of<'a>(text: &'a [u8], spans: &[FieldSpan]) -> Result<Facts<'a>, Refusal> {
    let mut facts = Facts::default();
    for span in spans.iter().filter(|span| JUDGED.contains(span.name)) {
        facts.take(span.name, &text[span.value_at as usize..][..span.value_len as usize])?;
    }
    Ok(facts)
}

/// Form, path and query.
struct RequestedTarget<'a> {
    form: TargetForm,
    path: &'a [u8],
    query: Option<&'a [u8]>,
}

/// RFC 9113 §8.5: the authority is all there is, and it names a port.
fn connect_target<'a>(lines: &Lines, text: &'a [u8]) -> Result<RequestedTarget<'a>, Refusal> {
    if lines.scheme.is_some() || lines.path.is_some() {
        return Err(refusals::TARGET_FORM);
    }
    let (from, to) = lines.authority.ok_or(refusals::PSEUDO_FIELD_MISSING)?;
    let target = resolve_target(&text[from as usize..to as usize], Method::Connect, Scheme::Https)?;
    Ok(RequestedTarget { form: target.form, path: target.path, query: target.query })
}

/// RFC 9113 §8.3.1: a path that is not empty and begins with a slash, or the asterisk of OPTIONS.
fn target_of<'a>(
    lines: &Lines,
    method: Method,
    text: &'a [u8],
    context: BlockContext<'_>,
) -> Result<RequestedTarget<'a>, Refusal> {
    let at = |place: Place| &text[place.0 as usize..place.1 as usize];
    let (scheme, path) = lines.scheme.zip(lines.path).ok_or(refusals::PSEUDO_FIELD_MISSING)?;
    check_scheme(at(scheme), context.scheme)?;
    let path = at(path);
    if path.len() > context.limits.target_bytes_max {
        return Err(refusals::TARGET_TOO_LONG);
    }
    if path == b"*" && method == Method::Options {
        return Ok(RequestedTarget { form: TargetForm::Asterisk, path, query: None });
    }
    if path.first() != Some(&b'/') {
        return Err(refusals::TARGET_FORM);
    }
    // An extended CONNECT has a path as any other request has.
    let target = resolve_target(path, Method::Get, context.scheme)?;
    Ok(RequestedTarget { form: target.form, path: target.path, query: target.query })
}

fn check_scheme(given: &[u8], scheme: Scheme) -> Result<(), Refusal> {
    let is = |known: Scheme| given.eq_ignore_ascii_case(known.text().as_bytes());
    if is(scheme) {
        return Ok(());
    }
    let is_known = is(Scheme::Http) || is(Scheme::Https);
    Err(if is_known { refusals::TARGET_SCHEME_MISMATCH } else { refusals::TARGET_SCHEME_UNSUPPORTED })
}

/// RFC 9113 §8.3.1: Host beside `:authority` says the same, or two readers may follow one each. Without either it is an error as it
/// is over HTTP/1.1, and left to the program where that is.
fn authority_of<'a>(
    given: Option<&'a [u8]>,
    host: Option<&'a [u8]>,
    context: BlockContext<'_>,
) -> Result<Authority<'a>, Refusal> {
    let scheme = context.scheme;
    let of_host = host.map(|host| Authority::parse_as_given(host).ok_or(refusals::HOST_INVALID)).transpose()?;
    let Some(given) = given else {
        let unnamed = if context.limits.lenient { Ok(Authority::EMPTY) } else { Err(refusals::HOST_MISSING) };
        return of_host.map_or(unnamed, Ok);
    };
    if given.contains(&b'@') {
        return Err(refusals::TARGET_USERINFO);
    }
    let authority = Authority::parse_as_given(given).ok_or(refusals::TARGET_AUTHORITY_INVALID)?;
    match of_host {
        Some(other) if other.clone().under(scheme) != authority.clone().under(scheme) => Err(refusals::HOST_DIFFERS),
        _ => Ok(authority),
    }
}

/// What HTTP/1 would call the framing. Of what is not known to end yet, the frames will say the end.
fn body_of(facts: &Facts<'_>, method: Method, ends_stream: bool) -> Result<RequestBody, Refusal> {
    match (facts.framing.of_request(method, Version::Http11)?, ends_stream) {
        (RequestBody::Length(length), true) if length > 0 => Err(refusals::CONTENT_LENGTH_UNTRUE),
        (RequestBody::None, false) if method != Method::Connect => Ok(RequestBody::Chunked),
        (body, _) => Ok(body),
    }
}

/// Reads the block of trailers (RFC 9113 §8.1), and keeps those that may be passed on.
pub fn read_trailer_block<'a>(
    decoder: &mut BlockDecoder,
    block: &[u8],
    limits: &ChunkedLimits,
    arena: &'a mut HeadArena,
) -> Result<Result<FieldsView<'a>, Refusal>, CompressionFault> {
    let (text, spans) = arena.emptied();
    let bounds = ListLimits { list_bytes_max: limits.trailer_bytes_max, lines_max: limits.trailer_fields_max };
    let mut is_valid = true;
    let excess = decoder.decode(block, bounds, text, |line, text| {
        let LineName::Field(name) = line.facts.name else {
            is_valid = false;
            return false;
        };
        is_valid &= check_field(name, line, text).is_ok();
        let is_kept = is_valid && may_trail(&text[line.at..line.value_at()]);
        if is_kept {
            spans.push(span_of(name, line));
        }
        is_kept
    })?;
    Ok(match excess {
        Some(Excess::ListBytes) => Err(refusals::TRAILERS_TOO_LARGE),
        Some(Excess::Lines) => Err(refusals::TRAILERS_TOO_MANY),
        None if is_valid => Ok(FieldsView::new(text, spans)),
        None => Err(refusals::TRAILER_INVALID),
    })
}

#[cfg(test)]
#[path = "request_fields_tests.rs"]
mod tests;
