//! The same bytes given to larder's reader and to hyper's server: both must see the same requests.
//!
//! Two proxies in a row that read one stream differently is what request smuggling is. Where larder accepts a request,
//! hyper must have read the same one, to the last byte of its body; where the two differ, the difference is on the closed
//! list of [`Difference`], with the reason why it is harmless. Anything else panics.

use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::rt::ReadBufCursor;
use message::{FieldName, Scheme};
use wire::{BodyDecoder, ChunkedLimits, Decoded, HeadLimits, read_request};

/// Panics when the two differ in a way that is not on the list.
pub fn run(data: &[u8]) {
    difference(data);
}

/// How the two differ over these bytes; `None` when they read the same. Panics when that is not on the list.
pub fn difference(data: &[u8]) -> Option<Difference> {
    let ours = read_all(data);
    let theirs = read_all_by_hyper(data);
    for (n, our) in ours.requests.iter().enumerate() {
        let their = theirs.get(n);
        if their.is_some_and(|their| our.is(their)) {
            continue;
        }
        let difference = explain_accepted(our, their);
        assert!(difference.is_some(), "request {n}\n ours: {our:?}\n hyper: {their:?}");
        return difference;
    }
    let their = theirs.get(ours.requests.len())?;
    let difference = explain_refused(&ours.end);
    assert!(difference.is_some(), "after {} requests\n ours: {:?}\n hyper: {their:?}", ours.requests.len(), ours.end);
    difference
}

/// How larder and hyper may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// We refuse what hyper reads. Nothing is forwarded and the connection is closed, so nobody reads it twice. The
    /// tokens are those in [`STRICTER`], each with its reason.
    WeAreStricter(&'static str),
    /// RFC 9110 §2.5: a higher minor version is read as 1.1; hyper refuses it.
    HigherMinorVersion,
    /// hyper's URI type refuses bytes that browsers send in queries and that delimit nothing.
    HyperRefusesTarget,
}

/// Refusals that hyper does not share.
pub const STRICTER: &[(&str, &str)] = &[
    ("empty-lines", "RFC 9112 §2.2 asks for one empty line to be skipped, hyper skips any number"),
    (
        "line-end-invalid",
        "RFC 9112 §2.2 lets a recipient take a bare LF for a line end; errata and smugglers say not to",
    ),
    ("target-invalid", "RFC 3986: not ASCII, a quote or angle bracket, or a backslash in the path"),
    ("target-fragment", "RFC 9112 §3.2: a fragment is no part of a target; hyper cuts it off"),
    ("target-form", "RFC 9112 §3.2: the form does not fit the method; hyper leaves that to the service"),
    ("target-authority-invalid", "RFC 9110 §4.2: no host, or one that is none; hyper leaves that to the service"),
    ("target-scheme-unsupported", "we serve http and https; hyper leaves that to the service"),
    ("target-scheme-mismatch", "an https target on a clear connection; hyper leaves that to the service"),
    ("target-userinfo", "RFC 9110 §4.2.4: userinfo in a target is treated as an error"),
    ("method-too-long", "a limit of ours"),
    ("target-too-long", "a limit of ours"),
    ("request-fields-too-many", "a limit of ours"),
    ("request-field-too-large", "a limit of ours"),
    ("request-head-too-large", "a limit of ours"),
    ("host-missing", "RFC 9112 §3.2; hyper leaves that to the service"),
    ("host-repeated", "RFC 9112 §3.2; hyper leaves that to the service"),
    ("host-invalid", "RFC 9112 §3.2; hyper leaves that to the service"),
    ("field-repeated", "RFC 9110 §5.3: a singleton stands once; hyper leaves that to the service"),
    ("connection-invalid", "RFC 9110 §7.6.1: options are tokens; hyper looks only for two of them"),
    ("connection-options-too-many", "a limit of ours"),
    ("connection-names-framing", "RFC 9110 §7.6.1: never for fields that all recipients need"),
    ("expectation-unknown", "RFC 9110 §10.1.1 allows 417; hyper ignores it"),
    (
        "content-length-invalid",
        "RFC 9112 §6.3 lets equal lengths be merged, and leading zeros are read as octal by some",
    ),
    ("content-length-repeated", "RFC 9110 §8.6 lets two equal lengths count as one; or refuse them"),
    ("length-and-transfer-encoding", "RFC 9112 §6.1 lets both be read as chunked and closed, or refused"),
    ("transfer-encoding-invalid", "hyper looks for chunked at the end, whatever stands before it"),
    ("transfer-encoding-repeated", "hyper looks for chunked at the end, whatever stands before it"),
    ("transfer-encoding-unsupported", "hyper hands an encoded body to the service; we know no other coding"),
    ("connect-with-body", "RFC 9110 §9.3.6: CONNECT has no content; hyper ignores what frames it"),
    ("chunk-size-too-large", "sixteen digits, leading zeros among them; hyper counts only the value"),
    ("chunk-extension-invalid", "RFC 9112 §7.1.1: hyper skips everything up to the line end"),
    ("chunk-extensions-too-large", "a limit of ours"),
    ("chunk-overhead-too-large", "a limit of ours"),
    ("trailer-invalid", "hyper reads trailers by httparse, which takes a bare LF"),
    ("trailers-too-large", "a limit of ours"),
    ("trailers-too-many", "a limit of ours"),
];

fn explain_accepted(our: &Seen, their: Option<&Seen>) -> Option<Difference> {
    match their {
        None if our.minor_version > 1 => Some(Difference::HigherMinorVersion),
        None if our.has_odd_target() => Some(Difference::HyperRefusesTarget),
        _ => None,
    }
}

fn explain_refused(end: &End) -> Option<Difference> {
    match end {
        End::Refused(token) if STRICTER.iter().any(|(known, _)| known == token) => {
            Some(Difference::WeAreStricter(token))
        }
        End::Refused(_) | End::Incomplete | End::Closed => None,
    }
}

/// Small, so that short inputs reach them.
const HEAD_LIMITS: HeadLimits =
    HeadLimits { head_bytes_max: 1 << 10, fields_max: 12, field_bytes_max: 256, target_bytes_max: 128, lenient: false };
const CHUNKED_LIMITS: ChunkedLimits = ChunkedLimits {
    extension_bytes_max: 48,
    overhead_bytes_free: 64,
    overhead_per_data_byte: 2,
    trailer_bytes_max: 96,
    trailer_fields_max: 4,
};

/// One request as somebody read it.
#[derive(Debug)]
struct Seen {
    method: Vec<u8>,
    /// As it was sent.
    minor_version: u8,
    /// hyper knows one only when the target names it.
    authority: Option<Vec<u8>>,
    target: Vec<u8>,
    /// By name, in lower case; values of one name in the order in which they came.
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
}

impl Seen {
    fn is(&self, their: &Seen) -> bool {
        let same_authority = their.authority.is_none() || their.authority == self.authority;
        // RFC 9112 §3.2.4: OPTIONS for a whole server, in absolute-form.
        let same_target = self.target == their.target || (self.target == b"*" && their.authority.is_some());
        self.method == their.method
            && self.minor_version == their.minor_version
            && same_authority
            && same_target
            && self.fields == their.fields
            && self.body == their.body
    }

    /// Does the target hold bytes that RFC 3986 leaves out?
    fn has_odd_target(&self) -> bool {
        self.target.iter().any(|b| b"{}|^`[]\\".contains(b))
    }
}

/// Without those that larder drops because CGI would read another name.
fn comparable(fields: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut fields: Vec<_> = fields
        .filter(|(name, _)| {
            let dashed: Vec<u8> = name.iter().map(|b| if *b == b'_' { b'-' } else { *b }).collect();
            dashed == *name || FieldName::classify(&dashed) == FieldName::Other
        })
        .collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields
}

/// Why we read no further.
#[derive(Debug)]
enum End {
    Incomplete,
    Closed,
    Refused(&'static str),
}

struct Ours {
    requests: Vec<Seen>,
    end: End,
}

fn read_all(data: &[u8]) -> Ours {
    let mut requests = Vec::new();
    let mut rest = data;
    let end = loop {
        match read_one(rest) {
            Ok((seen, consumed, persistent)) => {
                requests.push(seen);
                rest = &rest[consumed..];
                if !persistent {
                    break End::Closed;
                }
            }
            Err(end) => break end,
        }
    };
    Ours { requests, end }
}

/// The request at the start, how many bytes it takes, and whether another may follow.
fn read_one(data: &[u8]) -> Result<(Seen, usize, bool), End> {
    let mut spans = Vec::new();
    let received = read_request(data, &mut spans, &HEAD_LIMITS, Scheme::Http)
        .map_err(|refusal| End::Refused(refusal.token))?
        .ok_or(End::Incomplete)?;
    let request = &received.request;
    let mut decoder = BodyDecoder::for_request(received.body, &CHUNKED_LIMITS);
    let mut body = Vec::new();
    let mut at = received.head_bytes;
    loop {
        match decoder.decode(&data[at..]).map_err(|refusal| End::Refused(refusal.token))? {
            Decoded::Data { from, to } => {
                body.extend_from_slice(&data[at + from..at + to]);
                at += to;
            }
            Decoded::More { .. } => return Err(End::Incomplete),
            Decoded::End { consumed } => {
                at += consumed;
                break;
            }
        }
    }
    let mut target = Vec::new();
    let mut authority = Vec::new();
    request.authority.write_to(&mut authority);
    request.write_target(&mut target);
    let line_end = data[2..].iter().position(|b| *b == b'\r').expect("a head has lines") + 2;
    let seen = Seen {
        method: request.method_text.to_vec(),
        minor_version: data[line_end - 1] - b'0',
        authority: Some(authority),
        target,
        fields: comparable(request.fields.iter().map(|f| (f.name_text.to_ascii_lowercase(), f.value.to_vec()))),
        body,
    };
    Ok((seen, at, received.persistent))
}

/// The requests that hyper reads to their end.
fn read_all_by_hyper(data: &[u8]) -> Vec<Seen> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let service = hyper::service::service_fn(|request: hyper::Request<Incoming>| {
        let seen = Rc::clone(&seen);
        async move {
            let (head, body) = request.into_parts();
            if let Ok(body) = body.collect().await {
                seen.borrow_mut().push(seen_by_hyper(&head, body.to_bytes()));
            }
            let status = if head.method == hyper::Method::CONNECT { 405 } else { 200 };
            let answer = hyper::Response::builder().status(status).body(Empty::<Bytes>::new());
            Ok::<_, Infallible>(answer.expect("a plain answer"))
        }
    });
    let memory = Memory { input: data.to_vec(), at: 0 };
    let mut connection =
        pin!(hyper::server::conn::http1::Builder::new().half_close(true).serve_connection(memory, service));
    // Reading and writing memory is always ready, so a few rounds are enough; the waker has nobody to wake.
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..64 + data.len() {
        if connection.as_mut().poll(&mut context).is_ready() {
            break;
        }
    }
    seen.take()
}

fn seen_by_hyper(head: &hyper::http::request::Parts, body: Bytes) -> Seen {
    let is_connect = head.method == hyper::Method::CONNECT;
    let authority = head.uri.authority().map(|authority| normal(authority.as_str(), is_connect));
    let mut target = head.uri.path().as_bytes().to_vec();
    if let Some(query) = head.uri.query() {
        target.push(b'?');
        target.extend_from_slice(query.as_bytes());
    }
    Seen {
        method: head.method.as_str().as_bytes().to_vec(),
        minor_version: u8::from(head.version == hyper::Version::HTTP_11),
        authority,
        target,
        fields: comparable(head.headers.iter().map(|(n, v)| (n.as_str().as_bytes().to_vec(), v.as_bytes().to_vec()))),
        body: body.to_vec(),
    }
}

/// As larder prints it: in lower case, and without a port that says nothing, except to CONNECT.
fn normal(authority: &str, is_connect: bool) -> Vec<u8> {
    let Some(mut parsed) = message::Authority::parse(authority.as_bytes(), Scheme::Http) else {
        return authority.as_bytes().to_vec();
    };
    if is_connect {
        parsed.port = authority.rsplit(':').next().and_then(|digits| digits.parse().ok());
    }
    let mut text = Vec::new();
    parsed.write_to(&mut text);
    text
}

/// A client that has sent all it will, and does not listen.
struct Memory {
    input: Vec<u8>,
    at: usize,
}

impl hyper::rt::Read for Memory {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        let rest = &self.input[self.at..];
        let taken = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..taken]);
        self.at += taken;
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Memory {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
