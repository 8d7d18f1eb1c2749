//! The body of the client's request, as an obligation: as long as it has not been read to its end, no other request
//! can be read from the connection.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use message::Fields;
use wire::{BodyDecoder, ChunkedLimits, Decoded, Event, Reading, Refusal, RequestBody};

use crate::clock::deadline_now_ms;
use crate::connection::Connection;
use crate::fetch::broken::Broken;
use crate::records::task_records::TaskRecords;
use crate::slots::CloseReason;
use crate::upload_pace::{PaceLimits, UploadPace};

/// What of a request's body has not been read from its connection yet.
pub(crate) struct UnreadBody {
    decoder: BodyDecoder,
    taken_bytes: u64,
    pace: UploadPace,
    /// Its first bytes, which somebody waited for and nobody has taken yet.
    ahead: Option<Bytes>,
    /// Told when all of it has come.
    records: Option<Rc<TaskRecords>>,
    /// All of it has been read; only these are still to be handed on.
    trailers: Option<Fields>,
}

/// What reading brought.
pub(crate) enum BodyRead {
    Data(Bytes),
    End(Option<Fields>),
}

impl UnreadBody {
    /// `None` when there is none.
    pub(crate) fn of(body: RequestBody, limits: &ChunkedLimits) -> Option<Box<UnreadBody>> {
        let decoder = BodyDecoder::for_request(body, limits);
        (!decoder.is_end()).then(|| Box::new(UnreadBody::over(decoder, None)))
    }

    fn over(decoder: BodyDecoder, trailers: Option<Fields>) -> UnreadBody {
        UnreadBody { decoder, taken_bytes: 0, pace: UploadPace::default(), ahead: None, records: None, trailers }
    }

    /// Has nobody taken anything of it? What was waited for and lies ready can still be taken.
    pub(crate) fn is_untouched(&self) -> bool {
        self.taken_bytes == self.ahead.as_ref().map_or(0, |ahead| ahead.len() as u64)
    }

    /// Who wants to know when all of it has come.
    pub(crate) fn is_recorded_by(&mut self, records: &Rc<TaskRecords>) {
        self.records = Some(Rc::clone(records));
    }
}

impl Connection {
    /// The next bytes of the request's body.
    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyRead, Broken>> {
        match &mut self.unread {
            None => return Poll::Ready(Ok(BodyRead::End(None))),
            Some(unread) if unread.ahead.is_some() => {
                return Poll::Ready(Ok(BodyRead::Data(unread.ahead.take().unwrap_or_default())));
            }
            Some(unread) if unread.decoder.is_end() => {
                let trailers = unread.trailers.take();
                self.unread = None;
                return Poll::Ready(Ok(BodyRead::End(trailers)));
            }
            Some(_) => {}
        }
        if !self.pending.is_empty() {
            let bytes = std::mem::take(&mut self.pending);
            if let Some(read) = self.decode_body(&bytes) {
                return Poll::Ready(read);
            }
        }
        let core = std::rc::Rc::clone(&self.core);
        loop {
            let mut scratch = core.scratch.borrow_mut();
            let read = match self.socket.poll_read(cx, &mut scratch) {
                Poll::Pending => return self.wait_for_body(cx),
                Poll::Ready(Ok(read)) if read > 0 => read,
                // Half a body is no body (RFC 9112 §8).
                Poll::Ready(_) => return Poll::Ready(Err(Broken::ClientLeft)),
            };
            core.counters.bytes_in.add(read as u64);
            self.stop_waiting_for_body();
            if let Some(read) = self.decode_body(&scratch[..read]) {
                return Poll::Ready(read);
            }
        }
    }

    /// Whether there is a body at all is known when its first bytes have come. They stay, for `poll_body`.
    pub(crate) fn poll_body_begun(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        if self.unread.as_ref().is_none_or(|unread| unread.ahead.is_some() || unread.decoder.is_end()) {
            return Poll::Ready(Ok(()));
        }
        match ready!(self.poll_body(cx))? {
            BodyRead::Data(data) => {
                if let Some(unread) = &mut self.unread {
                    unread.ahead = Some(data);
                }
            }
            BodyRead::End(trailers) => {
                let none = BodyDecoder::for_request(RequestBody::None, &ChunkedLimits::DEFAULT);
                self.unread = trailers.map(|trailers| Box::new(UnreadBody::over(none, Some(trailers))));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// What came as the body is none: nothing that follows is a request.
    pub(crate) fn body_broke(&mut self) {
        self.exchange(Event::ReadBroken);
        self.unread = None;
        self.pending = Vec::new();
    }

    /// Did it break before?
    pub(crate) fn has_broken_body(&self) -> bool {
        self.exchange.reading() == Reading::Broken
    }

    fn wait_for_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyRead, Broken>> {
        let now_ms = deadline_now_ms();
        let settings = &self.core.site_ref().settings;
        let limits = &settings.limits;
        let timeout_ms = match settings.as_varnishd {
            true => self.idle_ms(limits),
            false => limits.request_body_timeout.as_millis() as u64,
        };
        let limits = PaceLimits { timeout_ms, rate_min: limits.request_body_rate_min };
        let Some(unread) = &mut self.unread else { return Poll::Ready(Ok(BodyRead::End(None))) };
        match self.slot.close_reason() {
            CloseReason::Late => return Poll::Ready(Err(Broken::ClientFault(unread.pace.refusal(now_ms, limits)))),
            CloseReason::Now => return Poll::Ready(Err(Broken::ClientLeft)),
            CloseReason::None | CloseReason::Drain | CloseReason::Memory => {}
        }
        if self.slot.deadline() == u64::MAX {
            self.slot.set_deadline(unread.pace.wait(now_ms, unread.taken_bytes, limits));
        }
        self.slot.park(cx.waker());
        Poll::Pending
    }

    /// Something came: until we wait for more, the client has no deadline. Who lingers has one for all of it.
    fn stop_waiting_for_body(&mut self) {
        if self.lingers {
            return;
        }
        self.slot.set_deadline(u64::MAX);
        if let Some(unread) = &mut self.unread {
            unread.pace.go_on(deadline_now_ms());
        }
    }

    /// All the data of this input as one piece. What lies behind the body stays for the next request.
    fn decode_body(&mut self, input: &[u8]) -> Option<Result<BodyRead, Broken>> {
        let unread = self.unread.as_mut()?;
        let mut at = 0;
        let mut data = BytesMut::new();
        let mut ended = false;
        while !ended {
            match unread.decoder.decode(&input[at..]) {
                Ok(Decoded::Data { from, to }) => {
                    data.extend_from_slice(&input[at + from..at + to]);
                    at += to;
                }
                Ok(Decoded::More { .. }) => break,
                Ok(Decoded::End { consumed }) => {
                    at += consumed;
                    ended = true;
                }
                Err(refusal) => return Some(Err(Broken::ClientFault(refusal))),
            }
        }
        unread.taken_bytes += data.len() as u64;
        if unread.taken_bytes > self.core.site_ref().settings.limits.request_body_bytes_max {
            return Some(Err(Broken::ClientFault(Refusal {
                status: 413,
                token: "request-body-too-large",
                limit: Some("limits.request_body_bytes_max"),
            })));
        }
        if ended {
            unread.trailers = unread.decoder.trailers();
            if let Some(records) = unread.records.take() {
                records.stamp("ReqBody");
                // Its head need not have said how long it is.
                records.count(|carried| carried.body_in = unread.taken_bytes);
            }
            self.pending.extend_from_slice(&input[at..]);
            self.exchange(Event::BodyRead);
        }
        if !data.is_empty() {
            return Some(Ok(BodyRead::Data(data.freeze())));
        }
        ended.then(|| Ok(BodyRead::End(self.unread.take().and_then(|unread| unread.trailers))))
    }
}
