//! The streams of an HTTP/2 connection to an origin: what `http2_streams` has for both sides, and beside that the heads of answers, and
//! why a stream has ended before its time.
//!
//! Heads of requests are framed at once, in the order of their numbers (RFC 9113 §5.1.1). What came of a body counts as taken by the
//! connection when it is here: a stream whose reader is slow stops itself and no other, as long as not too much waits altogether.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::{Context, Poll};

use bytes::Bytes;
use cache::Cache;
use hashbrown::HashMap;
use message::{Fields, Method, Scheme};
use wire::http2::{ConnectionError, ConnectionEvent, ErrorCode, HeadArena, Http2Connection, Http2Options, StreamId};
use wire::limits::{ChunkedLimits, FRAME_PAYLOAD_BYTES_MIN, HeadLimits};

use crate::http2_streams::{Came, Http2Streams, Queued, take_control};
use crate::limits::{ORIGIN_UNTAKEN_BYTES_MAX, STREAM_FRAMED_BYTES_MAX};
use crate::reply_head::ReplyHead;

/// By what a connection is spoken over as long as it lasts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginTerms {
    pub(crate) response_head: HeadLimits,
    pub(crate) trailers: ChunkedLimits,
    pub(crate) streams_max: u32,
    /// Of the connection.
    pub(crate) scheme: Scheme,
}

impl OriginTerms {
    pub(crate) fn options(&self) -> Http2Options<'_> {
        Http2Options {
            head_limits: &self.response_head,
            trailer_limits: &self.trailers,
            scheme: self.scheme,
            believes_scheme: false,
            streams_max: self.streams_max,
            extended_connect: false,
            peer_frame_bytes_min: FRAME_PAYLOAD_BYTES_MIN,
        }
    }
}

/// One connection's.
pub(crate) struct OriginStreams {
    pub(crate) queues: Http2Streams,
    pub(crate) terms: OriginTerms,
    answers: RefCell<HashMap<StreamId, Answering>>,
    /// In their order, and not with the socket yet.
    pub(crate) framed: RefCell<Vec<u8>>,
}

/// What a stream has heard beside its body.
#[derive(Default)]
struct Answering {
    heads: VecDeque<Box<ReplyHead>>,
    heard: bool,
    loss: Option<StreamLoss>,
}

/// Why nothing more comes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamLoss {
    /// The connection has ended; `heard`: after a head.
    Closed {
        heard: bool,
    },
    /// What came on it, or on its connection, breaks this rule.
    Garbled(&'static str),
    Reset(ErrorCode),
    /// The origin has not worked on it (RFC 9113 §8.7).
    Unprocessed,
}

impl StreamLoss {
    fn of_reset(code: ErrorCode, token: &'static str) -> StreamLoss {
        match token {
            "reset-by-peer" if code.says_unprocessed() => StreamLoss::Unprocessed,
            "reset-by-peer" => StreamLoss::Reset(code),
            token => StreamLoss::Garbled(token),
        }
    }
}

/// The connection's side.
impl OriginStreams {
    pub(crate) fn new(terms: OriginTerms, cache: &Cache) -> OriginStreams {
        let machine = Http2Connection::to_origin(&terms.options());
        OriginStreams {
            queues: Http2Streams::new(machine, cache, terms.scheme == Scheme::Https),
            terms,
            answers: RefCell::default(),
            framed: RefCell::default(),
        }
    }

    /// How many exchanges may be under way.
    pub(crate) fn room(&self) -> u32 {
        match self.framed.borrow().len() < STREAM_FRAMED_BYTES_MAX {
            true => self.queues.machine.borrow().streams_max(&self.terms.options()),
            // It takes nothing at this moment.
            false => 0,
        }
    }

    /// Does the origin take no further request, at this moment or ever?
    pub(crate) fn takes_none(&self) -> bool {
        self.queues.machine.borrow().streams_max(&self.terms.options()) == 0
    }

    /// Takes what has come, and says how much of it is done with. An error ends the connection.
    pub(crate) fn receive(&self, bytes: &[u8], heads: &mut HeadArena, now_ms: u64) -> Result<usize, ConnectionError> {
        let options = self.terms.options();
        let mut at = 0;
        loop {
            let received = self.queues.machine.borrow_mut().receive(&bytes[at..], heads, &options, now_ms)?;
            let from = at;
            at += received.consumed;
            match received.event {
                None => return Ok(at),
                Some(ConnectionEvent::Data { stream, range, is_last }) => {
                    self.take_data(stream, &bytes[from + range.start..from + range.end], is_last);
                }
                Some(event) => self.take_event(event),
            }
        }
    }

    fn take_event(&self, event: ConnectionEvent<'_>) {
        match event {
            ConnectionEvent::Response { stream, head, is_whole } => {
                if let Some(answering) = self.answers.borrow_mut().get_mut(&stream) {
                    answering.heads.push_back(Box::new(head.into()));
                    answering.heard = true;
                }
                match is_whole {
                    true => self.queues.take_data(stream, &[], true),
                    false => self.queues.wake_stream(stream),
                }
            }
            ConnectionEvent::Trailers { stream, fields } => self.queues.take_trailers(stream, fields.to_fields()),
            ConnectionEvent::StreamEnded { stream, code, token } => {
                self.end(stream, StreamLoss::of_reset(code, token));
            }
            ConnectionEvent::GoneAway { last, .. } => {
                let beyond: Vec<StreamId> = self.answers.borrow().keys().copied().filter(|id| *id > last).collect();
                beyond.into_iter().for_each(|id| self.end(id, StreamLoss::Unprocessed));
            }
            // What may be written now is looked at after every read; and no client opens a stream here.
            ConnectionEvent::WindowOpened { .. }
            | ConnectionEvent::Data { .. }
            | ConnectionEvent::Request { .. }
            | ConnectionEvent::Refused { .. } => {}
        }
    }

    fn take_data(&self, id: StreamId, bytes: &[u8], is_last: bool) {
        if self.queues.came_bytes() < ORIGIN_UNTAKEN_BYTES_MAX {
            self.queues.machine.borrow_mut().release(StreamId::CONNECTION, bytes.len());
        }
        self.queues.take_data(id, bytes, is_last);
    }

    fn end(&self, id: StreamId, loss: StreamLoss) {
        if let Some(answering) = self.answers.borrow_mut().get_mut(&id) {
            answering.loss = Some(loss);
        }
        self.queues.take_reset(id);
    }

    /// The connection is over; `garbled`: for a mistake of the origin's.
    pub(crate) fn end_all(&self, garbled: Option<&'static str>) {
        for answering in self.answers.borrow_mut().values_mut() {
            let closed = StreamLoss::Closed { heard: answering.heard };
            answering.loss.get_or_insert(garbled.map_or(closed, StreamLoss::Garbled));
        }
        self.queues.end_all();
    }

    /// Frames what may be sent now.
    pub(crate) fn frame(&self) {
        self.queues.frame(&mut self.framed.borrow_mut());
    }
}

/// A stream's side.
impl OriginStreams {
    /// Sends the head of a request; `None` when the origin takes no more.
    pub(crate) fn open(&self, method: Method, block: &[u8], is_whole: bool) -> Option<StreamId> {
        let mut machine = self.queues.machine.borrow_mut();
        let (id, frames) = machine.open_stream(method, block.len(), is_whole, &self.terms.options())?;
        let mut framed = self.framed.borrow_mut();
        take_control(&mut machine, &mut framed);
        let mut rest = block;
        for frame in frames {
            let (part, behind) = rest.split_at(frame.block_bytes);
            framed.extend_from_slice(frame.bytes());
            framed.extend_from_slice(part);
            rest = behind;
        }
        drop(machine);
        self.queues.open(id, false);
        self.answers.borrow_mut().insert(id, Answering::default());
        self.queues.wake();
        Some(id)
    }

    /// The next head.
    pub(crate) fn poll_head(&self, id: StreamId, cx: &Context<'_>) -> Poll<Result<Box<ReplyHead>, StreamLoss>> {
        if let Some(head) = self.answers.borrow_mut().get_mut(&id).and_then(|answering| answering.heads.pop_front()) {
            return Poll::Ready(Ok(head));
        }
        match self.queues.is_there(id, cx) {
            true => Poll::Pending,
            false => Poll::Ready(Err(self.loss(id))),
        }
    }

    /// The next of the body; its end with what stands behind it.
    pub(crate) fn poll_body(
        &self,
        id: StreamId,
        cx: &Context<'_>,
    ) -> Poll<Result<Result<Bytes, Option<Fields>>, StreamLoss>> {
        match self.queues.read(id, Some(cx)) {
            Came::Data(bytes) => Poll::Ready(Ok(Ok(bytes))),
            Came::End(trailers) => Poll::Ready(Ok(Err(trailers))),
            Came::Nothing => Poll::Pending,
            Came::Gone => Poll::Ready(Err(self.loss(id))),
        }
    }

    fn loss(&self, id: StreamId) -> StreamLoss {
        let answers = self.answers.borrow();
        answers.get(&id).and_then(|answering| answering.loss).unwrap_or(StreamLoss::Closed { heard: false })
    }

    pub(crate) fn queue(&self, id: StreamId, part: Queued) {
        self.queues.queue(id, part);
    }

    /// Nobody wants more of it.
    pub(crate) fn close(&self, id: StreamId) {
        self.answers.borrow_mut().remove(&id);
        self.queues.cancel(id);
    }
}

#[cfg(test)]
#[path = "origin_streams_tests.rs"]
mod tests;
