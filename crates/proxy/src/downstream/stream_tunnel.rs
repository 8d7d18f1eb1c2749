//! A stream of HTTP/2 whose bytes flow freely (RFC 8441 §5): what DATA frames bring and take, and an end for each direction.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use message::{FieldName, Status};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::Content;

use crate::answer_head::AnswerHead;
use crate::downstream::http2_stream::Http2Stream;
use crate::downstream::stream_sending::block;
use crate::http2_streams::{Came, Queued};
use crate::tunnel_flow::{self, Tunnel, TunnelEnd};

/// What proves to a client of HTTP/1.1 that its upgrade was read, of a key that this one did not send (RFC 8441 §5).
const PROOF: &[u8] = b"Sec-WebSocket-Accept";

impl Http2Stream {
    /// Says that the tunnel is there, as an origin's 101 said it. False: the client left.
    pub(super) fn begin_tunnel(&mut self, switching: &AnswerHead) -> bool {
        let mut head = AnswerHead::new(Status::OK);
        let is_kept = |name: FieldName, text: &[u8]| name != FieldName::Upgrade && !text.eq_ignore_ascii_case(PROOF);
        let fields = switching.fields.view();
        fields
            .iter()
            .filter(|field| is_kept(field.name, field.name_text))
            .for_each(|field| head.fields.push_field(&field));
        self.streams.queue(self.id, Queued::Head { block: block(&head, Content::Unsaid), is_last: false });
        self.streams.exists(self.id)
    }

    pub(super) async fn carry(&mut self, tunnel: Tunnel) -> u64 {
        let core = std::rc::Rc::clone(&self.core);
        let mut end = StreamEnd { stream: self, came: Bytes::new(), has_shut: false };
        tunnel_flow::carry(&core, &mut end, Vec::new(), tunnel).await
    }
}

/// The client's end.
struct StreamEnd<'s> {
    stream: &'s mut Http2Stream,
    /// Taken of the stream, and not read yet.
    came: Bytes,
    /// That nothing more comes from us is queued.
    has_shut: bool,
}

impl AsyncRead for StreamEnd<'_> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.came.is_empty() {
            match self.stream.streams.read(self.stream.id, Some(cx)) {
                Came::Data(bytes) => self.came = bytes,
                Came::End(_) => return Poll::Ready(Ok(())),
                Came::Gone => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                Came::Nothing => return Poll::Pending,
            }
        }
        let length = self.came.len().min(into.remaining());
        into.put_slice(&self.came[..length]);
        self.came.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for StreamEnd<'_> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let (streams, id) = (&self.stream.streams, self.stream.id);
        if !streams.is_there(id, cx) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if !streams.has_room(id) {
            return Poll::Pending;
        }
        streams.queue(id, Queued::Data { bytes: Bytes::copy_from_slice(bytes), is_last: false });
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ready when all of it is framed: nothing is, once the stream is let go.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.stream.streams.is_there(self.stream.id, cx) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if !std::mem::replace(&mut self.has_shut, true) {
            self.stream.streams.queue(self.stream.id, Queued::Data { bytes: Bytes::new(), is_last: true });
        }
        if self.stream.streams.sending(self.stream.id).is_sent { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

impl TunnelEnd for StreamEnd<'_> {
    fn must_end(&mut self, cx: &mut Context<'_>, deadline_ms: u64) -> bool {
        self.stream.slot.must_end() || self.stream.alarm.has_rung(cx, deadline_ms)
    }
}
