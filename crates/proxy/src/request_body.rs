//! The body of the client's request, as an obligation: as long as it has not been read to its end, no other request
//! can be read from the connection.

use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use message::Fields;
use wire::{BodyDecoder, ChunkedLimits, Decoded, Event, Refusal, RequestBody};

use crate::clock::Moment;
use crate::connection::Connection;
use crate::fetch::Broken;
use crate::slots::Doom;

/// The body that a connection still owes us.
pub(crate) struct OwedBody {
    decoder: BodyDecoder,
    taken_bytes: u64,
    /// All of it has been read; only these are still to be handed on.
    trailers: Option<Fields>,
}

/// What reading brought.
pub(crate) enum BodyRead {
    Data(Bytes),
    End(Option<Fields>),
}

impl OwedBody {
    /// `None` when nothing is owed.
    pub(crate) fn of(body: RequestBody, limits: &ChunkedLimits) -> Option<Box<OwedBody>> {
        let decoder = BodyDecoder::for_request(body, limits);
        (!decoder.is_end()).then(|| Box::new(OwedBody { decoder, taken_bytes: 0, trailers: None }))
    }
}

impl Connection {
    /// The next bytes of the request's body.
    pub(crate) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyRead, Broken>> {
        match &mut self.owed {
            None => return Poll::Ready(Ok(BodyRead::End(None))),
            Some(owed) if owed.decoder.is_end() => {
                let trailers = owed.trailers.take();
                self.owed = None;
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
            let read = match self.wire.poll_read(cx, &mut scratch) {
                Poll::Pending => return self.wait_for_body(cx),
                Poll::Ready(Ok(read)) if read > 0 => read,
                // Half a body is no body (RFC 9112 §8).
                Poll::Ready(_) => return Poll::Ready(Err(Broken::ClientLeft)),
            };
            core.counters.bytes_in.add(read as u64);
            if !self.lingers {
                let limit = core.site_ref().settings.limits.request_body_timeout;
                self.slot.set_deadline(Moment::now().deadline_ms() + limit.as_millis() as u64);
            }
            if let Some(read) = self.decode_body(&scratch[..read]) {
                return Poll::Ready(read);
            }
        }
    }

    fn wait_for_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<BodyRead, Broken>> {
        match self.slot.doom() {
            Doom::Late => {
                return Poll::Ready(Err(Broken::ClientFault(Refusal {
                    status: 408,
                    token: "request-body-timeout",
                    limit: Some("limits.request_body_timeout"),
                })));
            }
            Doom::Now => return Poll::Ready(Err(Broken::ClientLeft)),
            Doom::None | Doom::Drain => {}
        }
        if self.slot.deadline() == u64::MAX {
            let limit = self.core.site_ref().settings.limits.request_body_timeout;
            self.slot.set_deadline(Moment::now().deadline_ms() + limit.as_millis() as u64);
        }
        self.slot.park(cx.waker());
        Poll::Pending
    }

    /// All the data of this input as one piece. What lies behind the body stays for the next request.
    fn decode_body(&mut self, input: &[u8]) -> Option<Result<BodyRead, Broken>> {
        let owed = self.owed.as_mut()?;
        let mut at = 0;
        let mut data = BytesMut::new();
        let mut ended = false;
        while !ended {
            match owed.decoder.decode(&input[at..]) {
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
        owed.taken_bytes += data.len() as u64;
        if owed.taken_bytes > self.core.site_ref().settings.limits.request_body_bytes_max {
            return Some(Err(Broken::ClientFault(Refusal {
                status: 413,
                token: "request-body-too-large",
                limit: Some("limits.request_body_bytes_max"),
            })));
        }
        if ended {
            owed.trailers = owed.decoder.trailers();
            self.pending.extend_from_slice(&input[at..]);
            self.exchange(Event::BodyRead);
        }
        if !data.is_empty() {
            return Some(Ok(BodyRead::Data(data.freeze())));
        }
        ended.then(|| Ok(BodyRead::End(self.owed.take().and_then(|owed| owed.trailers))))
    }
}
