//! The origin's end of one exchange: what a fetch asks of its origin, whatever protocol the origin speaks.
//!
//! The counterpart of `downstream`, and as that a closed enum. An exchange over HTTP/1 or FastCGI has a connection of its own while it
//! lasts, one over HTTP/2 is a stream of a connection that the core shares. What the request says, and what is made of the answer, is not known here; nor is whether a request that was lost may be sent again.

mod block_read;
pub(crate) mod carriage;
mod error_stream;
pub(crate) mod fastcgi_exchange;
pub(crate) mod http1_exchange;
pub(crate) mod http2_exchange;
mod socket_queue;
mod upstream_tunnel;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use message::{Fields, Method};
use tokio::time::Sleep;
use wire::http2::ErrorCode;
use wire::limits::{ChunkedLimits, HeadLimits};
use wire::{Refusal, RequestBody, ResponseBody};

use crate::core::Core;
use crate::origin::{Address, CoreHandle, OpeningTimes, OriginConnection, OriginFailure};
use crate::reply_head::ReplyHead;
use crate::upstream::fastcgi_exchange::FastCgiExchange;
use crate::upstream::http1_exchange::Http1Exchange;
use crate::upstream::http2_exchange::Http2Exchange;

/// The origin of an exchange. Dropped before the answer has ended, it tells the origin to stop.
#[derive(Debug)]
pub(crate) enum Upstream {
    Http1(Box<Http1Exchange>),
    Http2(Box<Http2Exchange>),
    FastCgi(Box<FastCgiExchange>),
}

/// How answers are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerTerms<'l> {
    pub(crate) limits: &'l HeadLimits,
    /// That of the request.
    pub(crate) method: Method,
    /// The request asks for another protocol.
    pub(crate) is_upgrade: bool,
}

/// Why there is no head.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoAnswer {
    /// The connection ended; `heard`: behind something of an answer.
    Ended { heard: bool },
    /// What came is no answer.
    Garbled(Refusal),
    /// The origin has not worked on it (RFC 9113 §8.7).
    Unprocessed,
    /// It wants to be asked over HTTP/1.1.
    WantsHttp1,
    /// It has ended the stream, and says why.
    Reset(ErrorCode),
    /// The protocol has no place for something of the request, of which nothing was sent.
    Unsendable(Refusal),
}

/// What a pull at a body brings.
pub(crate) enum OriginPiece {
    Data(Bytes),
    /// Read into a block: it holds on to nothing but what else comes into the same.
    InBlock(Bytes),
    End(Option<Fields>),
}

/// Why a body has no end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BodyFault {
    Truncated,
    /// It is not framed as it should be.
    Garbled(Refusal),
}

/// What is left of a body that is given up.
pub(crate) enum Rest {
    /// Nothing more.
    Skipped,
    /// Little, which is not here yet.
    OnItsWay,
    /// More than is worth reading, or nothing that could be read to its end.
    TooMuch,
}

/// How long nothing has come. Whoever reads takes it away when something did.
pub(crate) type Silence = Option<Pin<Box<Sleep>>>;

impl From<OriginConnection> for Upstream {
    fn from(connection: OriginConnection) -> Upstream {
        Upstream::Http1(Box::new(Http1Exchange::new(connection)))
    }
}

/// What is behind it.
impl Upstream {
    /// Were requests sent on its connection before this one?
    pub(crate) fn is_reused(&self) -> bool {
        match self {
            Upstream::Http1(exchange) => exchange.connection.reused,
            Upstream::Http2(exchange) => exchange.stream.reused,
            Upstream::FastCgi(exchange) => exchange.connection.reused,
        }
    }

    /// The number of its connection's socket in this process.
    pub(crate) fn descriptor(&self) -> i32 {
        match self {
            Upstream::Http1(exchange) => exchange.connection.descriptor(),
            Upstream::Http2(exchange) => exchange.stream.descriptor(),
            Upstream::FastCgi(exchange) => exchange.connection.descriptor(),
        }
    }

    /// See [`OriginConnection::ends`].
    pub(crate) fn ends(&self) -> (SocketAddr, SocketAddr) {
        match self {
            Upstream::Http1(exchange) => exchange.connection.ends(),
            Upstream::Http2(exchange) => exchange.stream.ends(),
            Upstream::FastCgi(exchange) => exchange.connection.ends(),
        }
    }

    pub(crate) fn address(&self) -> &Arc<Address> {
        match self {
            Upstream::Http1(exchange) => exchange.connection.address(),
            Upstream::Http2(exchange) => exchange.stream.address(),
            Upstream::FastCgi(exchange) => exchange.connection.address(),
        }
    }

    /// The address in text.
    pub(crate) fn label(&self) -> &Arc<str> {
        match self {
            Upstream::Http1(exchange) => exchange.connection.label(),
            Upstream::Http2(exchange) => exchange.stream.label(),
            Upstream::FastCgi(exchange) => exchange.connection.label(),
        }
    }

    /// How long it took to come to its connection, where that was made for it.
    pub(crate) fn opening_times(&self) -> OpeningTimes {
        match self {
            Upstream::Http1(exchange) => exchange.connection.opening,
            Upstream::Http2(exchange) => exchange.opening,
            Upstream::FastCgi(exchange) => exchange.connection.opening,
        }
    }

    /// See [`OriginConnection::succeeded`].
    pub(crate) fn succeeded(&self, now_ms: impl FnOnce() -> u64) {
        match self {
            Upstream::Http1(exchange) => exchange.connection.succeeded(now_ms),
            Upstream::Http2(exchange) => exchange.stream.succeeded(now_ms),
            Upstream::FastCgi(exchange) => exchange.connection.succeeded(now_ms),
        }
    }

    /// See [`OriginConnection::failed`].
    pub(crate) fn failed(&self, handle: &CoreHandle<'_>, failure: OriginFailure) {
        match self {
            Upstream::Http1(exchange) => exchange.connection.failed(handle, failure),
            Upstream::Http2(exchange) => exchange.stream.failed(handle, failure),
            Upstream::FastCgi(exchange) => exchange.connection.failed(handle, failure),
        }
    }

    /// Does it say itself when it wants a body that its client keeps back? An application over FastCGI has no word for it.
    pub(crate) fn says_continue(&self) -> bool {
        !matches!(self, Upstream::FastCgi(_))
    }

    /// Is it a stream of HTTP/2?
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Upstream::Http2(_))
    }

    /// The exchange ended cleanly: what it went by may serve the next.
    pub(crate) fn into_pool(self, handle: &CoreHandle<'_>) {
        match self {
            Upstream::Http1(exchange) => exchange.connection.into_pool(handle),
            // Its connection is everybody's already.
            Upstream::Http2(exchange) => drop(exchange),
            Upstream::FastCgi(exchange) => exchange.into_pool(handle),
        }
    }
}

/// The request's body, behind its head.
impl Upstream {
    /// Said once, before any of it.
    pub(crate) fn begin_upload(&mut self, body: RequestBody) {
        match self {
            Upstream::Http1(exchange) => exchange.begin_upload(body),
            Upstream::Http2(_) | Upstream::FastCgi(_) => {}
        }
    }

    /// Ready when the origin takes more; an error when it takes no more at all.
    pub(crate) fn poll_takes_upload(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Upstream::Http1(exchange) => exchange.poll_upload(cx),
            Upstream::Http2(exchange) => exchange.poll_takes_upload(cx),
            Upstream::FastCgi(exchange) => exchange.poll_upload(cx),
        }
    }

    /// Ready when all of it is on its way.
    pub(crate) fn poll_uploaded(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Upstream::Http1(exchange) => exchange.poll_upload(cx),
            Upstream::Http2(exchange) => exchange.poll_uploaded(cx),
            Upstream::FastCgi(exchange) => exchange.poll_upload(cx),
        }
    }

    /// Does some of it wait for the origin?
    pub(crate) fn holds_upload(&self) -> bool {
        match self {
            Upstream::Http1(exchange) => exchange.holds_upload(),
            Upstream::Http2(exchange) => exchange.holds_upload(),
            Upstream::FastCgi(exchange) => exchange.holds_upload(),
        }
    }

    pub(crate) fn upload(&mut self, data: Bytes) {
        match self {
            Upstream::Http1(exchange) => exchange.upload(data),
            Upstream::Http2(exchange) => exchange.upload(data),
            Upstream::FastCgi(exchange) => exchange.upload(data),
        }
    }

    pub(crate) fn end_upload(&mut self, trailers: Option<&Fields>) {
        match self {
            Upstream::Http1(exchange) => exchange.end_upload(trailers),
            Upstream::Http2(exchange) => exchange.end_upload(trailers),
            // CGI has no place for trailers.
            Upstream::FastCgi(exchange) => exchange.end_upload(),
        }
    }

    pub(crate) fn drop_upload(&mut self) {
        match self {
            Upstream::Http1(exchange) => exchange.drop_upload(),
            // What is queued goes with its stream.
            Upstream::Http2(_) => {}
            Upstream::FastCgi(exchange) => exchange.drop_upload(),
        }
    }
}

/// The answer.
impl Upstream {
    /// The next head, an interim one or the final one. `heard` becomes true with the first byte.
    pub(crate) fn poll_answer(
        &mut self,
        core: &Core,
        terms: AnswerTerms<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Box<ReplyHead>, NoAnswer>> {
        match self {
            Upstream::Http1(exchange) => exchange.poll_answer(core, terms, cx),
            Upstream::Http2(exchange) => exchange.poll_answer(cx),
            Upstream::FastCgi(exchange) => exchange.poll_answer(core, terms, cx),
        }
    }

    /// Behind the final head, once.
    pub(crate) fn begin_body(&mut self, framing: ResponseBody, limits: &ChunkedLimits) {
        match self {
            Upstream::Http1(exchange) => exchange.begin_body(framing, limits),
            Upstream::Http2(exchange) => exchange.begin_body(framing),
            Upstream::FastCgi(exchange) => exchange.begin_body(framing),
        }
    }

    /// The next of the body. `block_bytes_left`: it is kept, and so much more comes before the next block begins. Not to be asked again
    /// after its end or an error.
    pub(crate) fn poll_piece(
        &mut self,
        core: &Core,
        cx: &mut Context<'_>,
        block_bytes_left: Option<usize>,
        silence: &mut Silence,
    ) -> Poll<Result<OriginPiece, BodyFault>> {
        match (self, block_bytes_left) {
            (Upstream::Http1(exchange), Some(left)) => exchange.poll_kept(core, cx, left, silence),
            (Upstream::Http1(exchange), None) => exchange.poll_data(core, cx, silence),
            (Upstream::Http2(exchange), _) => exchange.poll_piece(cx, silence),
            (Upstream::FastCgi(exchange), _) => exchange.poll_data(core, cx, silence),
        }
    }

    /// Has all of the body come?
    pub(crate) fn is_at_end(&self) -> bool {
        match self {
            Upstream::Http1(exchange) => exchange.is_at_end(),
            Upstream::Http2(exchange) => exchange.is_at_end(),
            Upstream::FastCgi(exchange) => exchange.is_at_end(),
        }
    }

    /// Did nothing come that nobody asked for?
    pub(crate) fn is_clean(&self) -> bool {
        match self {
            Upstream::Http1(exchange) => exchange.is_clean(),
            Upstream::Http2(_) => true,
            Upstream::FastCgi(exchange) => exchange.is_clean(),
        }
    }

    /// What stands behind the body, once.
    pub(crate) fn take_trailers(&mut self) -> Option<Fields> {
        match self {
            Upstream::Http1(exchange) => exchange.take_trailers(),
            Upstream::Http2(exchange) => exchange.take_trailers(),
            Upstream::FastCgi(_) => None,
        }
    }

    /// Reads what is there of a body that is given up, `left` bytes at most.
    pub(crate) fn skip_rest(&mut self, core: &Core, left: &mut usize) -> Rest {
        match self {
            Upstream::Http1(exchange) => exchange.skip_rest(core, left),
            // A stream is ended without its connection.
            Upstream::Http2(exchange) if exchange.is_at_end() => Rest::Skipped,
            Upstream::Http2(_) => Rest::TooMuch,
            Upstream::FastCgi(exchange) => exchange.skip_rest(core, left),
        }
    }

    /// Ready when it is worth looking for more of that.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Upstream::Http1(exchange) => exchange.connection.stream.poll_read_ready(cx),
            Upstream::Http2(_) => Poll::Ready(Ok(())),
            Upstream::FastCgi(exchange) => exchange.connection.stream.poll_read_ready(cx),
        }
    }
}
