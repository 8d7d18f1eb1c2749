//! Header blocks of requests, read by larder's codec and by the crate `h2`'s server: what both take is the same request, what one alone
//! takes is on a list of reasons, and HPACK is broken for both or for neither.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use message::{FieldName, Scheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::http2::hpack::BlockDecoder;
use wire::http2::{BlockContext, HeadArena, PREFACE, read_request_block};
use wire::{HeadLimits, Refusal};

/// One frame holds the block: so many bytes at most.
const BLOCK_BYTES_MAX: usize = 16_384;

/// What became of a block.
#[derive(Debug, PartialEq, Eq)]
enum Reading {
    Taken(Head),
    /// The request is malformed, or too much.
    Refused(String),
    /// The table is lost.
    Broken,
}

/// A request's method, path with query, and its fields but `host` and cookies, which HTTP/1 has in another form.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    method: String,
    target: String,
    fields: Vec<(String, Vec<u8>)>,
}

/// Reasons for which larder refuses what h2 gives to its caller: that is whom h2 leaves them to.
const STRICTER: &[&str] = &[
    "content-length-invalid",
    "content-length-repeated",
    "content-length-untrue",
    "connect-with-body",
    "connection-field-in-http2",
    "expectation-unknown",
    "extended-connect-invalid",
    "field-repeated",
    "field-value-invalid",
    "host-differs-from-authority",
    "host-invalid",
    "host-missing",
    "host-repeated",
    "length-and-transfer-encoding",
    "method-too-long",
    "request-field-too-large",
    "request-fields-too-many",
    "request-head-too-large",
    "target-authority-invalid",
    "target-form",
    "target-fragment",
    "target-invalid",
    "target-scheme-mismatch",
    "target-scheme-unsupported",
    "target-too-long",
    "target-userinfo",
    "transfer-encoding-invalid",
    "transfer-encoding-repeated",
    "transfer-encoding-unsupported",
];

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let block = &data[..data.len().min(BLOCK_BYTES_MAX)];
    match (ours(block), of_h2(block)) {
        (Reading::Taken(ours), Reading::Taken(theirs)) => assert_eq!(ours, theirs, "left is larder's"),
        (Reading::Broken, Reading::Broken) | (Reading::Refused(_), Reading::Refused(_)) => {}
        // h2 says of lines that no request has that the block is broken, or stops at the first.
        (Reading::Refused(_), Reading::Broken) | (Reading::Broken, Reading::Refused(_)) => {}
        (Reading::Refused(token), Reading::Taken(theirs)) => {
            assert!(STRICTER.contains(&&*token), "larder alone refuses by {token}: {theirs:?}");
        }
        // Browsers escape it in a path, and other clients do not: nobody reads it as anything else. h2's URLs do not have it.
        (Reading::Taken(ours), Reading::Refused(_)) if ours.target.contains('`') => {}
        (ours, theirs) => panic!("larder: {ours:?}\nh2: {theirs:?}"),
    }
}

fn ours(block: &[u8]) -> Reading {
    let (mut decoder, mut arena) = (BlockDecoder::new(), HeadArena::default());
    let context = BlockContext {
        limits: &HeadLimits::REQUEST,
        scheme: Scheme::Http,
        believes_scheme: false,
        ends_stream: true,
        extended_connect: false,
    };
    match read_request_block(&mut decoder, block, context, &mut arena) {
        Err(_) => Reading::Broken,
        Ok(Err(Refusal { token, .. })) => Reading::Refused(token.to_string()),
        Ok(Ok(head)) => {
            let request = &head.received.request;
            let mut target = request.path.to_vec();
            if let Some(query) = request.query {
                target.push(b'?');
                target.extend_from_slice(query);
            }
            let told = request.fields.iter().filter(|field| !matches!(field.name, FieldName::Host | FieldName::Cookie));
            let fields = told
                .map(|field| (String::from_utf8_lossy(field.name_text).into_owned(), field.value.to_vec()))
                .collect();
            let method = String::from_utf8_lossy(request.method_text).into_owned();
            Reading::Taken(sorted(Head { method, target: String::from_utf8_lossy(&target).into_owned(), fields }))
        }
    }
}

/// h2 gives fields back by name.
fn sorted(mut head: Head) -> Head {
    head.fields.sort_by(|a, b| a.0.cmp(&b.0));
    head
}

/// A client that has said all this, and hears.
struct Said {
    unread: Vec<u8>,
    heard: Vec<u8>,
}

impl AsyncRead for Said {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let length = into.remaining().min(self.unread.len());
        into.put_slice(&self.unread.drain(..length).collect::<Vec<u8>>());
        if length == 0 { Poll::Pending } else { Poll::Ready(Ok(())) }
    }
}

impl AsyncWrite for Said {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.heard.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn of_h2(block: &[u8]) -> Reading {
    let length = (block.len() as u32).to_be_bytes();
    let head = [&length[1..], &[1, 5, 0, 0, 0, 1]].concat();
    let unread = [PREFACE, &[0, 0, 0, 4, 0, 0, 0, 0, 0], &head, block].concat();
    let mut cx = Context::from_waker(Waker::noop());
    let mut handshake = pin!(
        h2::server::Builder::new()
            .max_header_list_size(1 << 24)
            .handshake::<_, Bytes>(Said { unread, heard: Vec::new() })
    );
    let Poll::Ready(Ok(mut connection)) = handshake.as_mut().poll(&mut cx) else { return Reading::Broken };
    for _ in 0..4 {
        match connection.poll_accept(&mut cx) {
            Poll::Ready(Some(Ok((request, _)))) => return Reading::Taken(head_of(&request)),
            Poll::Ready(Some(Err(error))) => {
                let is_lost = error.reason() == Some(h2::Reason::COMPRESSION_ERROR);
                return if is_lost { Reading::Broken } else { Reading::Refused(error.to_string()) };
            }
            Poll::Ready(None) | Poll::Pending => {}
        }
    }
    Reading::Refused("reset".to_string())
}

fn head_of(request: &http::Request<h2::RecvStream>) -> Head {
    let target = request.uri().path_and_query().map_or_else(String::new, |target| target.to_string());
    let told = request.headers().iter().filter(|(name, _)| !matches!(name.as_str(), "host" | "cookie"));
    let fields = told.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
    sorted(Head { method: request.method().to_string(), target, fields })
}
