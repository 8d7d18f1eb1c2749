//! An exchange with an origin over HTTP/2: a stream of a connection that others share.
//!
//! A WebSocket is asked for by extended CONNECT (RFC 8441), and its answer is told as the 101 by which HTTP/1.1 would give it.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use message::{FieldName, Fields, Method, Status};
use tokio::io::ReadBuf;
use wire::http2::{ErrorCode, StreamId, hpack};
use wire::{Refusal, ResponseBody};

use crate::http2_streams::{Came, Queued};
use crate::origin::{OpeningTimes, SharedStream};
use crate::origin_streams::StreamLoss;
use crate::reply_head::ReplyHead;
use crate::upstream::{BodyFault, NoAnswer, OriginPiece, Silence};
use crate::websocket_proof;

#[derive(Debug)]
pub(crate) struct Http2Exchange {
    pub(super) stream: SharedStream,
    /// Of its connection, where that was made for it.
    pub(super) opening: OpeningTimes,
    /// `None` before the request is sent.
    id: Option<StreamId>,
    /// The end of the request is queued.
    is_asked: bool,
    /// All of the answer has come, or there is nothing behind its head.
    is_at_end: bool,
    /// A WebSocket's proof that is told with its 101.
    proof: Option<String>,
    /// Of a tunnel, taken of the stream and not read yet.
    early: Bytes,
}

/// A request as a stream has it.
#[derive(Debug)]
pub(crate) struct StreamRequest {
    pub(crate) method: Method,
    pub(crate) block: Vec<u8>,
    /// A body follows, or a tunnel.
    pub(crate) goes_on: bool,
    /// The whole body, where it is here already.
    pub(crate) carried: Option<Bytes>,
    /// What a WebSocket's server proves to have read, as HTTP/1.1 says it.
    pub(crate) proof: Option<String>,
}

impl Http2Exchange {
    pub(super) fn new(stream: SharedStream, opening: OpeningTimes) -> Http2Exchange {
        Http2Exchange { stream, opening, id: None, is_asked: false, is_at_end: false, proof: None, early: Bytes::new() }
    }

    /// Of the connection: `http` or `https`, whatever the client came by.
    pub(crate) fn scheme(&self) -> message::Scheme {
        self.stream.connection.streams.terms.scheme
    }

    /// May the origin be asked for a WebSocket? Known once it has spoken.
    pub(crate) async fn takes_websockets(&self) -> bool {
        self.stream.connection.settled().await;
        self.stream.connection.streams.queues.machine.borrow().may_ask_extended_connect()
    }

    fn streams(&self) -> &crate::origin_streams::OriginStreams {
        &self.stream.connection.streams
    }
}

/// The request.
impl Http2Exchange {
    /// Sends the head, and the body where it is here already. Returns how many bytes the head has.
    pub(crate) fn send(&mut self, request: StreamRequest) -> Result<usize, NoAnswer> {
        let StreamRequest { method, block, goes_on, carried, proof } = request;
        let is_whole = !goes_on && carried.is_none();
        let Some(id) = self.streams().open(method, &block, is_whole) else {
            // The origin has taken leave since the stream was promised, or its connection has ended.
            return Err(NoAnswer::Unprocessed);
        };
        if let Some(bytes) = carried {
            self.streams().queue(id, Queued::Data { bytes, is_last: !goes_on });
        }
        (self.id, self.is_asked, self.proof) = (Some(id), !goes_on, proof);
        Ok(block.len())
    }

    /// Ready when the stream takes more; an error when it is gone.
    pub(super) fn poll_takes_upload(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let id = self.there(cx)?;
        if self.streams().queues.has_room(id) { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Ready when all of it is framed.
    pub(super) fn poll_uploaded(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let id = self.there(cx)?;
        if self.streams().queues.sending(id).is_sent { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// The stream, if it is still there; then the task is woken when it changes.
    fn there(&self, cx: &Context<'_>) -> io::Result<StreamId> {
        let there = self.id.filter(|id| self.streams().queues.is_there(*id, cx));
        there.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    pub(super) fn holds_upload(&self) -> bool {
        self.id.is_some_and(|id| !self.streams().queues.has_room(id))
    }

    pub(super) fn upload(&mut self, bytes: Bytes) {
        if let Some(id) = self.id {
            self.streams().queue(id, Queued::Data { bytes, is_last: false });
        }
    }

    pub(super) fn end_upload(&mut self, trailers: Option<&Fields>) {
        let Some(id) = self.id.filter(|_| !std::mem::replace(&mut self.is_asked, true)) else { return };
        let part = match trailers {
            Some(trailers) if trailers.view().count() > 0 => {
                let mut block = Vec::new();
                hpack::write_fields(trailers.view(), &mut block);
                Queued::Head { block, is_last: true }
            }
            _ => Queued::Data { bytes: Bytes::new(), is_last: true },
        };
        self.streams().queue(id, part);
    }
}

/// The answer.
impl Http2Exchange {
    /// The next head.
    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<Box<ReplyHead>, NoAnswer>> {
        let Some(id) = self.id else { return Poll::Ready(Err(NoAnswer::Ended { heard: false })) };
        let mut answer = ready!(self.streams().poll_head(id, cx)).map_err(unanswered)?;
        if let Some(proof) = self.proof.take_if(|_| !answer.head.status.is_interim()) {
            tell_as_upgrade(&mut answer, &proof);
        }
        Poll::Ready(Ok(answer))
    }

    pub(super) fn begin_body(&mut self, framing: ResponseBody) {
        self.is_at_end = matches!(framing, ResponseBody::None | ResponseBody::Length(0));
    }

    pub(super) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        silence: &mut Silence,
    ) -> Poll<Result<OriginPiece, BodyFault>> {
        let Some(id) = self.id.filter(|_| !self.is_at_end) else { return Poll::Ready(Ok(OriginPiece::End(None))) };
        let pulled = ready!(self.streams().poll_body(id, cx));
        *silence = None;
        Poll::Ready(match pulled {
            Ok(Ok(bytes)) => Ok(OriginPiece::Data(bytes)),
            Ok(Err(trailers)) => {
                self.is_at_end = true;
                Ok(OriginPiece::End(trailers))
            }
            Err(loss) => Err(body_fault(loss)),
        })
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.is_at_end || self.id.is_some_and(|id| self.streams().queues.is_at_end(id))
    }

    pub(super) fn take_trailers(&mut self) -> Option<Fields> {
        let id = self.id.filter(|_| !self.is_at_end)?;
        match self.streams().queues.read(id, None) {
            Came::End(trailers) => trailers,
            Came::Data(_) | Came::Nothing | Came::Gone => None,
        }
    }
}

/// A tunnel.
impl Http2Exchange {
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.early.is_empty() {
            match ready!(self.poll_piece(cx, &mut None)) {
                Ok(OriginPiece::Data(bytes) | OriginPiece::InBlock(bytes)) => self.early = bytes,
                Ok(OriginPiece::End(_)) => return Poll::Ready(Ok(())),
                Err(_) => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            }
        }
        let length = self.early.len().min(into.remaining());
        into.put_slice(&self.early[..length]);
        self.early.advance(length);
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_takes_upload(cx))?;
        self.upload(Bytes::copy_from_slice(bytes));
        Poll::Ready(Ok(bytes.len()))
    }

    /// Ready when the end is framed: nothing is, once the stream is let go.
    pub(super) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end_upload(None);
        self.poll_uploaded(cx)
    }
}

/// What of an exchange is missing is not wanted any more.
impl Drop for Http2Exchange {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.streams().close(id);
        }
    }
}

/// A success is what HTTP/1.1 says with 101; anything else is said as it came (RFC 8441 §5).
fn tell_as_upgrade(answer: &mut ReplyHead, proof: &str) {
    if !answer.head.status.is_success() {
        return;
    }
    answer.head.status = Status(101);
    answer.head.fields.push(FieldName::Upgrade, "websocket");
    answer.head.fields.push_named(websocket_proof::ACCEPT, proof.as_bytes());
    answer.body = ResponseBody::Tunnel;
}

fn unanswered(loss: StreamLoss) -> NoAnswer {
    match loss {
        StreamLoss::Closed { heard } => NoAnswer::Ended { heard },
        StreamLoss::Garbled(token) => NoAnswer::Garbled(refused(token)),
        StreamLoss::Unprocessed => NoAnswer::Unprocessed,
        StreamLoss::Reset(ErrorCode::Http11Required) => NoAnswer::WantsHttp1,
        StreamLoss::Reset(code) => NoAnswer::Reset(code),
    }
}

fn body_fault(loss: StreamLoss) -> BodyFault {
    match loss {
        StreamLoss::Garbled(token) => BodyFault::Garbled(refused(token)),
        StreamLoss::Closed { .. } | StreamLoss::Unprocessed | StreamLoss::Reset(_) => BodyFault::Truncated,
    }
}

/// What the machine has refused of the origin.
fn refused(token: &'static str) -> Refusal {
    Refusal { status: 502, token, limit: None }
}
