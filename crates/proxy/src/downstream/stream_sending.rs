//! An answer to a stream of HTTP/2: its head as a header block, and pieces of its body as the stream's queue takes them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use cache::Charge;
use message::{FieldName, Fields};
use wire::http2::{ErrorCode, hpack};
use wire::{Content, has_length};

use crate::answer_head::AnswerHead;
use crate::body::{Body, BodyEvent, Wanted};
use crate::clock::{Moment, deadline_now_ms};
use crate::core::Core;
use crate::downstream::http2_stream::Http2Stream;
use crate::http2_streams::Queued;
use crate::outgoing::{Outgoing, OutgoingHead};
use crate::pace::Pace;
use crate::send_outcome::{End, SendOutcome};
use crate::slots::{CloseReason, Slot};
use crate::unsent::Unsent;

impl Http2Stream {
    /// An interim response. False: the client left.
    pub(super) async fn send_interim(&mut self, head: &AnswerHead) -> bool {
        self.streams.queue(self.id, Queued::Head { block: block(head, Content::Unsaid), is_last: false });
        poll_fn(|cx| Poll::Ready(self.streams.is_there(self.id, cx))).await
    }

    pub(crate) async fn send(&mut self, outgoing: Outgoing) -> SendOutcome {
        let Outgoing { head, body } = outgoing;
        let (block, (head_bytes_sent, body_bytes_sent), left, is_queued) = match head {
            OutgoingHead::Whole { head, content, sends_content } => {
                let left = match content {
                    Content::Length(length) => Some(length),
                    Content::Unknown | Content::Unsaid => None,
                };
                (block(&head, content), (0, 0), left, !sends_content || left == Some(0))
            }
            OutgoingHead::Begun { rest, head_bytes_sent, body_bytes_sent, left } => {
                (rest, (head_bytes_sent, body_bytes_sent), Some(left), left == 0)
            }
        };
        let head_bytes_left = block.len() as u64;
        if head_bytes_left > 0 {
            self.streams.queue(self.id, Queued::Head { block, is_last: is_queued });
        }
        let mut transfer = StreamTransfer {
            body,
            pieces: VecDeque::new(),
            left,
            is_queued,
            broken: None,
            pace: Pace::default(),
            began: Moment::now(),
            moved: (0, deadline_now_ms()),
            held: None,
            place: None,
        };
        let end = poll_fn(|cx| transfer.poll_send(self, cx)).await;
        self.alarm.off();
        match end {
            End::Sent => {}
            // It was not wanted, or not enough; our answer is as good as ever.
            End::ClientSlow => self.streams.reset(self.id, ErrorCode::Cancel),
            // What the client keeps us from letting go of is needed.
            End::MemoryNeeded => self.streams.reset(self.id, ErrorCode::EnhanceYourCalm),
            _ => self.streams.reset(self.id, ErrorCode::InternalError),
        }
        let framed_bytes = self.streams.sending(self.id).framed_bytes;
        let (head_bytes, body_bytes) = (head_bytes_sent + head_bytes_left, body_bytes_sent + framed_bytes);
        SendOutcome { end, head_bytes, body_bytes, persistent: true }
    }
}

/// The place of a stream among all whom the core may tell to end, while its client has to be waited for.
struct StreamPlace {
    core: Rc<Core>,
    slot: Rc<Slot>,
}

impl StreamPlace {
    fn open(core: &Rc<Core>) -> StreamPlace {
        StreamPlace { core: Rc::clone(core), slot: core.slots.open_stream() }
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.core.slots.close(&self.slot);
    }
}

/// An answer while it is queued.
struct StreamTransfer {
    body: Body,
    pieces: VecDeque<Bytes>,
    /// Of what was promised, what has not been queued.
    left: Option<u64>,
    /// All of it is queued.
    is_queued: bool,
    /// How the body broke off; what is queued of it still goes out.
    broken: Option<End>,
    pace: Pace,
    began: Moment,
    /// How much had been framed when that last changed, and when that was.
    moved: (u64, u64),
    /// What the queue costs, once it is waited for.
    held: Option<Charge>,
    /// Set once the client has to be waited for.
    place: Option<StreamPlace>,
}

impl StreamTransfer {
    fn poll_send(&mut self, stream: &mut Http2Stream, cx: &mut Context<'_>) -> Poll<End> {
        if !stream.streams.is_there(stream.id, cx) {
            return Poll::Ready(End::ClientLeft);
        }
        let waits_for_body = self.fill(stream, cx).is_pending();
        let sending = stream.streams.sending(stream.id);
        if sending.is_sent {
            return Poll::Ready(End::Sent);
        }
        if let Some(end) = self.broken.filter(|_| sending.queued_bytes == 0) {
            return Poll::Ready(end);
        }
        if stream.slot.must_end() {
            return Poll::Ready(End::ClientSlow);
        }
        let at_micros = self.began.micros_until(Moment::now());
        // Who waits for an origin goes by its limits.
        if waits_for_body && sending.queued_bytes == 0 {
            self.pace.starve(at_micros);
            self.place = None;
            return Poll::Pending;
        }
        self.pace.feed(at_micros);
        self.account_for(stream, sending.queued_bytes);
        self.wait_for_client(stream, cx, (sending.framed_bytes, at_micros))
    }

    /// Queues the body as far as the stream takes it: a piece, where its client opens no window. Pending where it waits for more of it.
    fn fill(&mut self, stream: &Http2Stream, cx: &mut Context<'_>) -> Poll<()> {
        while !self.is_queued && self.broken.is_none() && stream.streams.has_room(stream.id) {
            match ready!(self.body.poll_bytes(&mut self.pieces, cx, Wanted::Bytes)) {
                BodyEvent::More => self.queue_pieces(stream),
                BodyEvent::Broken(end) => self.broken = Some(end),
                BodyEvent::End(_) if self.left.is_some_and(|left| left > 0) => {
                    self.broken = Some(End::Cut("body-too-short"));
                }
                BodyEvent::End(trailers) => {
                    self.is_queued = true;
                    stream.streams.queue(stream.id, last_part(trailers.as_deref()));
                }
                BodyEvent::Pages => unreachable!("bytes are wanted"),
            }
        }
        Poll::Ready(())
    }

    /// Queues pieces of the body, no more than was promised.
    fn queue_pieces(&mut self, stream: &Http2Stream) {
        for mut bytes in self.pieces.drain(..) {
            if let Some(left) = &mut self.left {
                bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= bytes.len() as u64;
            }
            let is_last = self.left == Some(0);
            if !bytes.is_empty() && !self.is_queued {
                stream.streams.queue(stream.id, Queued::Data { bytes, is_last });
                self.is_queued = is_last;
            }
        }
    }

    /// A client that has to be waited for keeps what is queued for it.
    fn account_for(&mut self, stream: &Http2Stream, queued_bytes: usize) {
        let bytes = if self.body.is_accounted_for() { 0 } else { queued_bytes };
        if bytes > 0 || self.held.is_some() {
            let account = stream.core.shared.cache.account();
            self.held.get_or_insert_with(|| account.charge(0)).resize(bytes);
        }
    }

    fn wait_for_client(
        &mut self,
        stream: &mut Http2Stream,
        cx: &mut Context<'_>,
        (framed_bytes, at_micros): (u64, u64),
    ) -> Poll<End> {
        let (timeout_ms, rate_min) = {
            let limits = &stream.core.site_ref().settings.limits;
            (limits.send_timeout.as_millis() as u64, limits.send_rate_min)
        };
        let place = self.place.get_or_insert_with(|| StreamPlace::open(&stream.core));
        if self.moved.0 != framed_bytes {
            self.moved = (framed_bytes, deadline_now_ms());
            // Who takes something is not cut any more.
            place.slot.set_deadline(u64::MAX);
        }
        if place.slot.close_reason() == CloseReason::Memory {
            return Poll::Ready(End::MemoryNeeded);
        }
        let queued_bytes = self.held.as_ref().map_or(0, Charge::bytes);
        let rest = self.body.rest();
        place
            .slot
            .waits_for_client(|before| Unsent::new(before, (framed_bytes, queued_bytes), rest, deadline_now_ms()));
        place.slot.park(cx.waker());
        let is_over = stream.alarm.has_rung(cx, self.moved.1 + timeout_ms);
        let is_too_slow = self.pace.is_too_slow(at_micros, framed_bytes, rate_min, timeout_ms);
        if is_over || is_too_slow { Poll::Ready(End::ClientSlow) } else { Poll::Pending }
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
pub(super) fn block(head: &AnswerHead, content: Content) -> Vec<u8> {
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
