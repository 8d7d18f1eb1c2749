//! Sends an answer over an HTTP/1 connection: its head as text, and the body framed, at the client's pace. Pulls pieces of the body as
//! the socket takes them, or has pages sent as they lie in a file, and gives up on a client that takes nothing.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::IoSlice;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use cache::Charge;
use message::Version;
use smallvec::SmallVec;
use wire::{BodyFraming, Persistence, write_framing, write_head_end, write_status_line};

use crate::body::{Body, BodyEvent, Wanted};
use crate::clock::{Moment, deadline_now_ms};
use crate::connection::Connection;
use crate::held_body::Pages;
use crate::limits::SLICES_MAX;
use crate::limits::{HEAD_BYTES_USUAL, LEASED_UNSENT_BYTES_MAX};
use crate::listener::UNSENT_BYTES_MAX;
use crate::outgoing::{Outgoing, OutgoingHead};
use crate::pace::Pace;
use crate::send_outcome::End;
use crate::send_outcome::SendOutcome;
use crate::slots::CloseReason;
use crate::unsent::Unsent;

/// The head, and pieces of the body.
const QUEUED_USUALLY: usize = 4;
/// Of a body that comes from an origin, or is copied from where it has landed, no more is queued for a client at once.
const QUEUED_BYTES_MAX: usize = 128 << 10;
/// What the pieces at both ends of such a queue hold beside themselves: they are parts of blocks.
const QUEUE_ENDS_BYTES: usize = 64 << 10;

/// An answer while it is sent.
struct AnswerTransfer {
    queue: VecDeque<Bytes>,
    /// What has gone of it before included.
    head_bytes: u64,
    head_bytes_left: usize,
    body: Body,
    wanted: Wanted,
    framing: BodyFraming,
    /// How the body ended; what is queued of it still goes out.
    end: Option<End>,
    /// What frames it included.
    body_bytes_sent: u64,
    /// What was queued to frame it: lengths of chunks, and what stands behind the last.
    framing_bytes: u64,
    pace: Pace,
    /// What the queue costs, once it was waited for.
    held: Option<Box<Charge>>,
}

/// Sends all of it to a client that speaks this version. `persistent`: the connection may be used again as far as the request goes.
pub(crate) async fn send(
    connection: &mut Connection,
    outgoing: Outgoing,
    version: Version,
    persistent: bool,
) -> SendOutcome {
    let began = Moment::now();
    let timeout_ms = connection.core.site_ref().settings.limits.send_timeout.as_millis() as u64;
    connection.slot.set_deadline(deadline_now_ms() + timeout_ms);
    let wanted = if connection.socket.takes_pages() { Wanted::BytesOrPages } else { Wanted::Bytes };
    let (mut sending, persistent) = AnswerTransfer::begin(outgoing, wanted, version, persistent);
    let head_bytes = sending.head_bytes;
    let is_leased = sending.body.is_leased();
    if is_leased {
        // The kernel has these pages whether they are sent or not, and each time that it has to be asked again costs more.
        connection.socket.set_unsent_max(LEASED_UNSENT_BYTES_MAX);
    }
    let end = poll_fn(|cx| sending.poll_send(connection, cx, began, timeout_ms)).await;
    connection.slot.waits_no_more();
    if end == End::MemoryNeeded {
        connection.socket.resets_when_closed();
    }
    if is_leased {
        connection.socket.set_unsent_max(UNSENT_BYTES_MAX);
    }
    SendOutcome {
        end,
        head_bytes,
        body_bytes: sending.body_bytes_sent.saturating_sub(sending.framing_bytes),
        persistent,
    }
}

impl AnswerTransfer {
    /// Renders the head. A body whose end only the connection's end can show makes that the last answer.
    fn begin(outgoing: Outgoing, wanted: Wanted, version: Version, persistent: bool) -> (AnswerTransfer, bool) {
        let Outgoing { head, body } = outgoing;
        let (text, framing, (head_bytes_sent, body_bytes_sent), persistent) = match head {
            OutgoingHead::Whole { head, content, sends_content } => {
                let rendered = head.rendered_text();
                let mut out = Vec::with_capacity(rendered.map_or(HEAD_BYTES_USUAL, |text| text.len() + 256));
                match rendered {
                    Some(text) => out.extend_from_slice(text),
                    None => write_status_line(&mut out, head.status, head.reason.as_deref()),
                }
                head.fields.view().write_lines(&mut out, |_| true);
                let framing = write_framing(&mut out, head.status, content, version, sends_content);
                let persistent = persistent && framing != BodyFraming::UntilClose;
                write_head_end(&mut out, Persistence::of(persistent, version));
                (out, framing, (0, 0), persistent)
            }
            OutgoingHead::Begun { rest, head_bytes_sent, body_bytes_sent, left } => {
                (rest, BodyFraming::Length { left }, (head_bytes_sent, body_bytes_sent), persistent)
            }
        };
        let head_bytes_left = text.len();
        let mut queue = VecDeque::with_capacity(QUEUED_USUALLY);
        if !text.is_empty() {
            queue.push_back(Bytes::from(text));
        }
        let (pace, held, end) = (Pace::default(), None, None);
        let head_bytes = head_bytes_sent + head_bytes_left as u64;
        let transfer = AnswerTransfer {
            queue,
            head_bytes,
            head_bytes_left,
            body,
            wanted,
            framing,
            end,
            body_bytes_sent,
            framing_bytes: 0,
            pace,
            held,
        };
        (transfer, persistent)
    }

    /// Queues the next piece of the body, framed, or notes its end. `Pending` also where it is sent as pages.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.queue.len();
        match ready!(self.body.poll_bytes(&mut self.queue, cx, self.wanted)) {
            BodyEvent::Pages => return Poll::Pending,
            BodyEvent::More => self.frame_from(at),
            BodyEvent::Broken(end) => self.end = Some(end),
            BodyEvent::End(trailers) => match self.framing.end(trailers.as_deref().map(|trailers| trailers.view())) {
                Some(last) if last.is_empty() => self.end = Some(End::Sent),
                Some(last) => {
                    self.framing_bytes += last.len() as u64;
                    self.queue.push_back(Bytes::from(last));
                    self.end = Some(End::Sent);
                }
                None => self.end = Some(End::Cut("body-too-short")),
            },
        }
        Poll::Ready(())
    }

    /// Frames what was queued from this place on. When all that was promised is there, that is the end.
    fn frame_from(&mut self, at: usize) {
        let length: usize = self.queue.iter().skip(at).map(Bytes::len).sum();
        if length == 0 {
            self.queue.truncate(at);
            return;
        }
        let framed = self.framing.frame(length);
        if framed.taken < length {
            let mut left = framed.taken;
            for piece in self.queue.iter_mut().skip(at) {
                piece.truncate(left);
                left -= piece.len();
            }
            while self.queue.len() > at && self.queue.back().is_some_and(Bytes::is_empty) {
                self.queue.pop_back();
            }
        }
        if !framed.before().is_empty() {
            self.framing_bytes += (framed.before().len() + framed.after().len()) as u64;
            self.queue.insert(at, Bytes::copy_from_slice(framed.before()));
            self.queue.push_back(Bytes::from_static(framed.after()));
        }
        if framed.is_complete && self.body.is_streamed() {
            // Whoever brings it is not waited for any longer.
            self.body = Body::empty();
            self.end = Some(End::Sent);
        }
    }

    fn poll_send(
        &mut self,
        connection: &mut Connection,
        cx: &mut Context<'_>,
        began: Moment,
        timeout_ms: u64,
    ) -> Poll<End> {
        loop {
            while !self.has_enough() && !self.is_all_queued() && self.end.is_none() {
                if self.poll_body(cx).is_pending() {
                    break;
                }
            }
            if self.queue.is_empty() && self.pages().is_none() {
                if let Some(end) = self.end {
                    return self.poll_sent(connection, cx, (began, timeout_ms)).map(|sent| sent.unwrap_or(end));
                }
                return self.wait_for_body(connection, cx, began);
            }
            if self.pace.is_starved() {
                self.pace.feed(began.micros_until(Moment::now()));
            }
            if self.queue.is_empty() {
                match self.body.poll_at_hand(cx) {
                    Poll::Pending => return self.wait_for_body(connection, cx, began),
                    Poll::Ready(Err(token)) => return Poll::Ready(End::Cut(token)),
                    Poll::Ready(Ok(())) => {}
                }
            }
            if self.queue.is_empty()
                && let Some((pages, from, to)) = pages_of(&mut self.body, self.wanted)
            {
                match connection.socket.poll_send_pages(cx, pages, *from, to) {
                    // The file has become shorter than it was when its length was said.
                    Poll::Ready(Ok(0)) => return Poll::Ready(End::Cut("file-cut-short")),
                    Poll::Ready(Ok(sent)) => {
                        *from += sent as u64;
                        self.framing.frame(sent);
                        connection.core.counters.bytes_out.add(sent as u64);
                        self.body_bytes_sent += sent as u64;
                        connection.slot.set_deadline(deadline_now_ms() + timeout_ms);
                        continue;
                    }
                    Poll::Ready(Err(error)) => {
                        self.body.failed(&error);
                        return Poll::Ready(End::ClientLeft);
                    }
                    Poll::Pending => return self.wait_for_client(connection, cx, began, timeout_ms),
                }
            }
            let slices: SmallVec<[IoSlice<'_>; SLICES_MAX]> =
                self.queue.iter().take(SLICES_MAX).map(|piece| IoSlice::new(piece)).collect();
            match connection.socket.poll_write(cx, &slices) {
                Poll::Ready(Ok(written)) => {
                    drop(slices);
                    self.advance(connection, written);
                    if !(self.queue.is_empty() && self.end.is_some()) {
                        connection.slot.set_deadline(deadline_now_ms() + timeout_ms);
                    }
                }
                Poll::Ready(Err(_)) => return Poll::Ready(End::ClientLeft),
                Poll::Pending => {
                    drop(slices);
                    self.account_for(connection);
                    return self.wait_for_client(connection, cx, began, timeout_ms);
                }
            }
        }
    }

    /// What comes next, if it is sent as it lies in a file.
    fn pages(&mut self) -> Option<(Pages<'_>, &mut u64, u64)> {
        pages_of(&mut self.body, self.wanted)
    }

    /// All has been written. Ready when the kernel has it, or with another end where it never will.
    fn poll_sent(
        &self,
        connection: &mut Connection,
        cx: &mut Context<'_>,
        (began, timeout_ms): (Moment, u64),
    ) -> Poll<Option<End>> {
        match connection.socket.poll_sent(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(None),
            Poll::Ready(Err(_)) => Poll::Ready(Some(End::ClientLeft)),
            Poll::Pending => self.wait_for_client(connection, cx, began, timeout_ms).map(Some),
        }
    }

    /// Is there as much as one write takes? Of what nobody else holds, less: each slow client costs so much.
    fn has_enough(&self) -> bool {
        if self.queue.len() >= SLICES_MAX {
            return true;
        }
        self.body.is_handed_over() && self.queue.iter().map(Bytes::len).sum::<usize>() >= QUEUED_BYTES_MAX
    }

    /// Is the rest of what somebody else holds in the queue? It is held on to until it has gone: what is queued of it is on
    /// its account.
    fn is_all_queued(&self) -> bool {
        !self.queue.is_empty() && self.body.is_all_taken()
    }

    /// What the queue holds and nobody else.
    fn own_bytes(&self) -> usize {
        if self.body.is_accounted_for() {
            return 0;
        }
        let bytes: usize = self.queue.iter().map(Bytes::len).sum();
        bytes + bytes.min(QUEUE_ENDS_BYTES)
    }

    /// A client that has to be waited for keeps what is queued for it.
    fn account_for(&mut self, connection: &Connection) {
        let bytes = self.own_bytes();
        if bytes > 0 || self.held.is_some() {
            let account = connection.core.shared.cache.account();
            self.held.get_or_insert_with(|| Box::new(account.charge(0))).resize(bytes);
        }
    }

    /// The origin is slow, not the client: its own limits count. But the client may leave meanwhile.
    fn wait_for_body(&mut self, connection: &mut Connection, cx: &mut Context<'_>, began: Moment) -> Poll<End> {
        if connection.has_left(cx) {
            return Poll::Ready(End::ClientLeft);
        }
        connection.slot.waits_no_more();
        connection.slot.set_deadline(u64::MAX);
        if !self.pace.is_starved() {
            self.pace.starve(began.micros_until(Moment::now()));
        }
        Poll::Pending
    }

    fn wait_for_client(
        &self,
        connection: &Connection,
        cx: &mut Context<'_>,
        began: Moment,
        timeout_ms: u64,
    ) -> Poll<End> {
        if connection.slot.deadline() == u64::MAX {
            // We waited for the origin before; now it is the client's turn.
            connection.slot.set_deadline(deadline_now_ms() + timeout_ms);
        }
        if connection.slot.close_reason() == CloseReason::Memory {
            return Poll::Ready(End::MemoryNeeded);
        }
        if connection.slot.must_end() || self.is_too_slow(connection, began, timeout_ms) {
            return Poll::Ready(End::ClientSlow);
        }
        // Of the head too.
        let sent_bytes = self.body_bytes_sent.wrapping_sub(self.head_bytes_left as u64);
        connection.slot.waits_for_client(|before| {
            let queued_bytes = self.own_bytes() + connection.socket.unsent_bytes();
            Unsent::new(before, (sent_bytes, queued_bytes), self.body.rest(), deadline_now_ms())
        });
        connection.slot.park(cx.waker());
        Poll::Pending
    }

    fn advance(&mut self, connection: &Connection, written: usize) {
        connection.core.counters.bytes_out.add(written as u64);
        let of_head = written.min(self.head_bytes_left);
        self.head_bytes_left -= of_head;
        self.body_bytes_sent += (written - of_head) as u64;
        let mut left = written;
        while let Some(first) = self.queue.front_mut() {
            if left < first.len() {
                let _ = first.split_to(left);
                return;
            }
            left -= first.len();
            self.queue.pop_front();
        }
    }

    fn is_too_slow(&self, connection: &Connection, began: Moment, timeout_ms: u64) -> bool {
        let rate_min = connection.core.site_ref().settings.limits.send_rate_min;
        let at_micros = began.micros_until(Moment::now());
        self.pace.is_too_slow(at_micros, self.body_bytes_sent, rate_min, timeout_ms)
    }
}

fn pages_of(body: &mut Body, wanted: Wanted) -> Option<(Pages<'_>, &mut u64, u64)> {
    if wanted == Wanted::BytesOrPages { body.pages() } else { None }
}
