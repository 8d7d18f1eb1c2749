//! An answer to a stream of HTTP/2: its head as a header block, and pieces of its body as the stream's queue takes them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

use bytes::Bytes;
use message::{FieldName, Fields};
use wire::http2::{ErrorCode, hpack};
use wire::{Content, has_length};

use crate::answer_head::AnswerHead;
use crate::body::{Body, BodyEvent, Wanted};
use crate::downstream::http2_stream::Http2Stream;
use crate::http2_streams::Queued;
use crate::limits::STREAM_QUEUED_BYTES_MAX;
use crate::outgoing::{Outgoing, OutgoingHead};
use crate::send_outcome::{End, SendOutcome};

impl Http2Stream {
    /// An interim response. False: the client left.
    pub(super) async fn send_interim(&mut self, head: &AnswerHead) -> bool {
        self.streams.queue(self.id, Queued::Head { block: block(head, Content::Unsaid), is_last: false });
        poll_fn(|cx| Poll::Ready(self.streams.is_there(self.id, cx))).await
    }

    pub(crate) async fn send(&mut self, outgoing: Outgoing) -> SendOutcome {
        let Outgoing { head, mut body } = outgoing;
        let OutgoingHead::Whole { head, content, sends_content } = head else {
            unreachable!("only an HTTP/1 connection begins with a head and goes on elsewhere")
        };
        let block = block(&head, content);
        let head_bytes = block.len() as u64;
        let is_last = !sends_content || content == Content::Length(0);
        self.streams.queue(self.id, Queued::Head { block, is_last });
        let mut left = match content {
            Content::Length(length) => Some(length),
            Content::Unknown | Content::Unsaid => None,
        };
        let mut pieces = VecDeque::new();
        let mut is_queued = is_last;
        let end = poll_fn(|cx| self.poll_send(&mut body, &mut pieces, &mut left, &mut is_queued, cx)).await;
        self.patience.ends();
        if end != End::Sent {
            self.streams.reset(self.id, ErrorCode::InternalError);
        }
        let (_, body_bytes, _) = self.streams.sending(self.id);
        self.core.counters.bytes_out.add(head_bytes + body_bytes);
        SendOutcome { end, head_bytes, body_bytes, persistent: true }
    }

    fn poll_send(
        &mut self,
        body: &mut Body,
        pieces: &mut VecDeque<Bytes>,
        left: &mut Option<u64>,
        is_queued: &mut bool,
        cx: &mut Context<'_>,
    ) -> Poll<End> {
        if !self.streams.is_there(self.id, cx) {
            return Poll::Ready(End::ClientLeft);
        }
        let mut waits_for_body = false;
        while !*is_queued && self.streams.sending(self.id).0 < STREAM_QUEUED_BYTES_MAX {
            match body.poll_bytes(pieces, cx, Wanted::Bytes) {
                Poll::Pending => {
                    waits_for_body = true;
                    break;
                }
                Poll::Ready(BodyEvent::More) => self.queue_pieces(pieces, left, is_queued),
                Poll::Ready(BodyEvent::Broken(end)) => return Poll::Ready(end),
                Poll::Ready(BodyEvent::End(_)) if left.is_some_and(|left| left > 0) => {
                    return Poll::Ready(End::Cut("body-too-short"));
                }
                Poll::Ready(BodyEvent::End(trailers)) => {
                    *is_queued = true;
                    self.streams.queue(self.id, last_part(trailers.as_deref()));
                }
                Poll::Ready(BodyEvent::Pages) => unreachable!("bytes are wanted"),
            }
        }
        let (queued_bytes, framed_bytes, is_sent) = self.streams.sending(self.id);
        if is_sent {
            return Poll::Ready(End::Sent);
        }
        if self.slot.must_end() {
            return Poll::Ready(End::ClientSlow);
        }
        // Who waits for an origin goes by its limits.
        if waits_for_body && queued_bytes == 0 {
            self.patience.ends();
            return Poll::Pending;
        }
        let time = self.core.site_ref().settings.limits.send_timeout;
        if self.patience.is_over(cx, framed_bytes, time) { Poll::Ready(End::ClientSlow) } else { Poll::Pending }
    }

    /// Queues pieces of the body, no more than was promised.
    fn queue_pieces(&self, pieces: &mut VecDeque<Bytes>, left: &mut Option<u64>, is_queued: &mut bool) {
        for mut bytes in pieces.drain(..) {
            if let Some(left) = left {
                bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= bytes.len() as u64;
            }
            let is_last = *left == Some(0);
            if !bytes.is_empty() && !*is_queued {
                self.streams.queue(self.id, Queued::Data { bytes, is_last });
                *is_queued = is_last;
            }
        }
    }
}

/// What ends an answer of whose length nothing was said.
fn last_part(trailers: Option<&Fields>) -> Queued {
    match trailers {
        Some(trailers) if trailers.view().count() > 0 => {
            let mut block = Vec::new();
            hpack::write_fields(trailers.view(), &mut block);
            Queued::Head { block, is_last: true }
        }
        _ => Queued::Data { bytes: Bytes::new(), is_last: true },
    }
}

/// A head as a header block, with what is said of the content.
fn block(head: &AnswerHead, content: Content) -> Vec<u8> {
    let mut fields = Fields::default();
    head.each_field(|name, value| fields.push_named(name, value));
    let mut block = Vec::new();
    hpack::write_status(head.status, &mut block);
    hpack::write_fields(fields.view(), &mut block);
    if let Content::Length(length) = content
        && has_length(head.status)
    {
        hpack::write_known_number(FieldName::ContentLength, length, &mut block);
    }
    block
}
