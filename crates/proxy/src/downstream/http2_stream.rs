//! The client of one exchange over HTTP/2: a stream of its connection.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use message::{FieldName, Fields};
use tokio::time::{Instant, Sleep};
use wire::http2::{ErrorCode, StreamId, hpack};
use wire::{Content, Refusal, has_length};

use crate::answer_head::AnswerHead;
use crate::body::{Body, BodyEvent, Wanted};
use crate::core::Core;
use crate::fetch::broken::Broken;
use crate::http2_streams::{Came, Http2Streams, Queued};
use crate::limits::STREAM_QUEUED_BYTES_MAX;
use crate::outgoing::{Outgoing, OutgoingHead};
use crate::records::task_records::TaskRecords;
use crate::request_body::BodyRead;
use crate::send_outcome::{End, SendOutcome};
use crate::slots::Slot;

/// One stream.
pub(crate) struct Http2Stream {
    core: Rc<Core>,
    streams: Rc<Http2Streams>,
    /// Of the connection: why it must end.
    slot: Rc<Slot>,
    id: StreamId,
    unread: Unread,
    /// How long the client may keep us waiting.
    patience: Patience,
}

/// What is known of the request's body.
struct Unread {
    /// Some of it is still to be read.
    is_unread: bool,
    taken_bytes: u64,
    records: Option<Rc<TaskRecords>>,
}

/// A limit on waiting for a client that begins anew whenever something moves.
#[derive(Default)]
struct Patience {
    moved: u64,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// Is the time up? `moved` is what has moved so far; if that has not changed since the last look, the time goes on.
    fn is_over(&mut self, cx: &mut Context<'_>, moved: u64, time: Duration) -> bool {
        if self.moved != moved || self.sleep.is_none() {
            self.moved = moved;
            let until = Instant::now() + time;
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(until),
                none => *none = Some(Box::pin(tokio::time::sleep_until(until))),
            }
        }
        self.sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready())
    }

    fn ends(&mut self) {
        self.sleep = None;
    }
}

impl Http2Stream {
    pub(crate) fn new(
        core: &Rc<Core>,
        streams: &Rc<Http2Streams>,
        slot: &Rc<Slot>,
        id: StreamId,
        is_whole: bool,
    ) -> Self {
        Http2Stream {
            core: Rc::clone(core),
            streams: Rc::clone(streams),
            slot: Rc::clone(slot),
            id,
            unread: Unread { is_unread: !is_whole, taken_bytes: 0, records: None },
            patience: Patience::default(),
        }
    }
}

/// The request's body.
impl Http2Stream {
    pub(super) fn has_unread_body(&self) -> bool {
        self.unread.is_unread
    }

    pub(super) fn has_untouched_body(&self) -> bool {
        self.unread.is_unread && self.unread.taken_bytes == 0
    }

    pub(super) fn has_begun_body(&self) -> bool {
        self.streams.has_come(self.id)
    }

    pub(super) fn record_body(&mut self, records: &Rc<TaskRecords>) {
        if self.unread.is_unread {
            self.unread.records = Some(Rc::clone(records));
        }
    }

    pub(super) fn drop_body(&mut self) {
        self.unread.is_unread = false;
    }

    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyRead, Broken>> {
        if !self.unread.is_unread {
            return Poll::Ready(Ok(BodyRead::End(None)));
        }
        match self.streams.read(self.id, Some(cx)) {
            Came::Data(bytes) => {
                self.patience.ends();
                self.unread.taken_bytes += bytes.len() as u64;
                let bytes_max = self.core.site_ref().settings.limits.request_body_bytes_max;
                if self.unread.taken_bytes > bytes_max {
                    let (token, limit) = ("request-body-too-large", Some("limits.request_body_bytes_max"));
                    return Poll::Ready(Err(Broken::ClientFault(Refusal { status: 413, token, limit })));
                }
                Poll::Ready(Ok(BodyRead::Data(bytes)))
            }
            Came::End(trailers) => {
                self.patience.ends();
                self.unread.is_unread = false;
                if let Some(records) = self.unread.records.take() {
                    records.stamp("ReqBody");
                }
                Poll::Ready(Ok(BodyRead::End(trailers)))
            }
            Came::Gone => Poll::Ready(Err(Broken::ClientLeft)),
            Came::Nothing => self.wait_for_body(cx),
        }
    }

    pub(super) fn poll_body_begun(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        if self.has_begun_body() || !self.unread.is_unread {
            return Poll::Ready(Ok(()));
        }
        if !self.streams.is_there(self.id, cx) {
            return Poll::Ready(Err(Broken::ClientLeft));
        }
        self.wait_for_body(cx)
    }

    fn wait_for_body<T>(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, Broken>> {
        let time = self.core.site_ref().settings.limits.request_body_timeout;
        if self.slot.must_end() {
            return Poll::Ready(Err(Broken::ClientLeft));
        }
        if self.patience.is_over(cx, self.unread.taken_bytes, time) {
            let (token, limit) = ("request-body-timeout", Some("limits.request_body_timeout"));
            return Poll::Ready(Err(Broken::ClientFault(Refusal { status: 408, token, limit })));
        }
        Poll::Pending
    }

    /// Reads what is left and throws it away. False: it is too long, or too late.
    pub(super) async fn drain_body(&mut self, timeout_ms: u64, bytes_max: u64) -> bool {
        let drain = poll_fn(|cx| {
            loop {
                match ready!(self.poll_body(cx)) {
                    Ok(BodyRead::End(_)) => return Poll::Ready(true),
                    Ok(BodyRead::Data(_)) if self.unread.taken_bytes > bytes_max => return Poll::Ready(false),
                    Ok(BodyRead::Data(_)) => {}
                    Err(_) => return Poll::Ready(false),
                }
            }
        });
        tokio::time::timeout(Duration::from_millis(timeout_ms), drain).await.unwrap_or(false)
    }
}

/// The answer.
impl Http2Stream {
    pub(super) fn has_left(&mut self, cx: &Context<'_>) -> bool {
        !self.streams.is_there(self.id, cx) || self.slot.must_end()
    }

    pub(super) fn cut(&mut self) {
        self.streams.reset(self.id, ErrorCode::InternalError);
    }

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

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.streams.close(self.id);
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
