//! An exchange with an application over FastCGI, on a connection that is its own while it lasts: the request's records, its body in
//! pieces, and of the answer's records a head and a body.
//!
//! A body has ended when the application says so: a connection that ends before that has cut it. What is said on the error stream goes
//! to our own log, so much of it for each request, and never to a client.

use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use wire::fastcgi::{
    AnswerPart, AnswerReader, EndStatus, RECORD_CONTENT_BYTES_MAX, STDIN_END, read_cgi_head, stdin_head,
};
use wire::{Refusal, ResponseBody, may_end_now, refusals};

use crate::core::Core;
use crate::limits::FASTCGI_EXCESS_BYTES_MAX;
use crate::origin::{AwaitsAnswer, CoreHandle, FastCgiOrigin, OriginConnection};
use crate::reply_head::ReplyHead;
use crate::settings::FastCgiKeepAlive;
use crate::upstream::error_stream::ErrorStream;
use crate::upstream::{AnswerTerms, BodyFault, NoAnswer, OriginPiece, Rest, Silence, socket_queue};

#[derive(Debug)]
pub(crate) struct FastCgiExchange {
    pub(super) connection: OriginConnection,
    pub(super) origin: Arc<FastCgiOrigin>,
    /// Until the first byte of an answer, where no process of the application may have taken the connection yet.
    awaits: Option<AwaitsAnswer>,
    /// Something of an answer has come.
    heard: bool,
    reader: AnswerReader,
    /// How the application ended the request.
    end: Option<EndStatus>,
    /// Output that nobody has taken: the head, and behind it the beginning of the body.
    output: Vec<u8>,
    /// So many bytes of it were no whole head when they were last looked at.
    looked_at: usize,
    /// Of the request's body, in records, what the socket has not taken.
    upload: VecDeque<Bytes>,
    /// What is missing of a body whose length the head says.
    missing: Option<u64>,
    /// What came beyond that.
    excess_bytes: usize,
    errors: ErrorStream,
    /// Something came that is no part of the answer, or the application has closed: nothing may follow.
    is_spoilt: bool,
}

impl FastCgiExchange {
    pub(super) fn new(connection: OriginConnection, origin: &Arc<FastCgiOrigin>) -> FastCgiExchange {
        FastCgiExchange {
            awaits: (!connection.reused).then(|| AwaitsAnswer::begin(origin)),
            connection,
            origin: Arc::clone(origin),
            heard: false,
            reader: AnswerReader::default(),
            end: None,
            output: Vec::new(),
            looked_at: 0,
            upload: VecDeque::new(),
            missing: None,
            excess_bytes: 0,
            errors: ErrorStream::of(&origin.name),
            is_spoilt: false,
        }
    }
}

/// The request.
impl FastCgiExchange {
    /// Writes all of a request's head, and what may stand behind it.
    pub(crate) async fn send(&mut self, records: &[u8]) -> io::Result<()> {
        socket_queue::write_all(&mut self.connection, records).await
    }

    pub(super) fn upload(&mut self, data: Bytes) {
        frame(&mut self.upload, data);
    }

    pub(super) fn end_upload(&mut self) {
        self.upload.push_back(Bytes::from_static(&STDIN_END));
    }

    pub(super) fn holds_upload(&self) -> bool {
        !self.upload.is_empty()
    }

    pub(super) fn drop_upload(&mut self) {
        self.upload.clear();
    }

    /// Ready when the socket has all of it.
    pub(super) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        socket_queue::poll_queue(&mut self.connection, &mut self.upload, cx)
    }
}

/// A piece of a body as records.
fn frame(queue: &mut VecDeque<Bytes>, mut data: Bytes) {
    while !data.is_empty() {
        let piece = data.split_to(data.len().min(RECORD_CONTENT_BYTES_MAX));
        queue.push_back(Bytes::copy_from_slice(&stdin_head(piece.len())));
        queue.push_back(piece);
    }
}

/// The answer.
impl FastCgiExchange {
    /// The head: there is one, and it is final.
    pub(super) fn poll_answer(
        &mut self,
        core: &Core,
        terms: AnswerTerms<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Box<ReplyHead>, NoAnswer>> {
        loop {
            let mut scratch = core.scratch.borrow_mut();
            let mut buffer = ReadBuf::new(&mut scratch[..core.origin_read_bytes_max()]);
            match ready!(Pin::new(&mut self.connection.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                Ok(()) | Err(_) => return Poll::Ready(Err(NoAnswer::Ended { heard: self.heard })),
            }
            (self.awaits, self.heard) = (None, true);
            self.connection.carried().received(&core.counters, buffer.filled().len());
            let taken = self.absorb(buffer.filled()).and_then(|()| self.take_head(core, terms));
            match (taken, self.end) {
                (Err(refusal), _) => return Poll::Ready(Err(NoAnswer::Garbled(refusal))),
                (Ok(Some(answer)), _) => return Poll::Ready(Ok(answer)),
                (Ok(None), None) => {}
                (Ok(None), Some(end)) => return Poll::Ready(Err(without_head(end))),
            }
        }
    }

    fn take_head(&mut self, core: &Core, terms: AnswerTerms<'_>) -> Result<Option<Box<ReplyHead>>, Refusal> {
        if self.output.is_empty() || !may_end_now(&self.output, self.looked_at, terms.limits) {
            return Ok(None);
        }
        let mut spans = core.spans.borrow_mut();
        let Some(received) = read_cgi_head(&self.output, &mut spans, terms.limits, terms.method)? else {
            self.looked_at = self.output.len();
            return Ok(None);
        };
        let head_bytes = received.head_bytes;
        let mut answer = Box::new(ReplyHead::from(received));
        answer.persistent = self.origin.settings.keep_alive != FastCgiKeepAlive::Never;
        self.output.drain(..head_bytes);
        Ok(Some(answer))
    }

    pub(super) fn begin_body(&mut self, framing: ResponseBody) {
        self.missing = match framing {
            ResponseBody::None => Some(0),
            ResponseBody::Length(length) => Some(length),
            ResponseBody::Chunked | ResponseBody::UntilClose | ResponseBody::Tunnel => None,
        };
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.end == Some(EndStatus::Complete) && self.output.is_empty() && self.missing.unwrap_or(0) == 0
    }

    pub(super) fn is_clean(&self) -> bool {
        !self.is_spoilt && self.end == Some(EndStatus::Complete)
    }

    /// The next piece.
    pub(super) fn poll_data(
        &mut self,
        core: &Core,
        cx: &mut Context<'_>,
        silence: &mut Silence,
    ) -> Poll<Result<OriginPiece, BodyFault>> {
        loop {
            if let Some(piece) = self.take_output()? {
                return Poll::Ready(Ok(OriginPiece::Data(piece)));
            }
            if let Some(end) = self.end {
                return Poll::Ready(self.ended(end));
            }
            let mut scratch = core.scratch.borrow_mut();
            let read = match ready!(
                pin!(self.connection.stream.read_buf(&mut &mut scratch[..core.origin_read_bytes_max()])).poll(cx)
            ) {
                Ok(read @ 1..) => read,
                Ok(_) | Err(_) => {
                    self.is_spoilt = true;
                    return Poll::Ready(Err(BodyFault::Truncated));
                }
            };
            *silence = None;
            self.connection.carried().received(&core.counters, read);
            self.absorb(&scratch[..read]).map_err(BodyFault::Garbled)?;
        }
    }

    fn ended(&mut self, end: EndStatus) -> Result<OriginPiece, BodyFault> {
        match end {
            EndStatus::Complete if self.missing.unwrap_or(0) == 0 => Ok(OriginPiece::End(None)),
            EndStatus::Complete => Err(BodyFault::Truncated),
            _ => Err(BodyFault::Garbled(refusals::FASTCGI_END_INVALID)),
        }
    }

    /// What is there of the body. What a program writes beyond the length that it has said itself is nothing: scripts end with a line break
    /// that nobody meant.
    fn take_output(&mut self) -> Result<Option<Bytes>, BodyFault> {
        if self.output.is_empty() {
            return Ok(None);
        }
        let mut output = std::mem::take(&mut self.output);
        if let Some(missing) = &mut self.missing {
            let wanted = output.len().min(usize::try_from(*missing).unwrap_or(usize::MAX));
            *missing -= wanted as u64;
            self.excess_bytes += output.len() - wanted;
            if self.excess_bytes > FASTCGI_EXCESS_BYTES_MAX {
                return Err(BodyFault::Garbled(refusals::CONTENT_LENGTH_UNTRUE.of_origin()));
            }
            output.truncate(wanted);
        }
        Ok((!output.is_empty()).then(|| Bytes::from(output)))
    }

    /// Takes what came apart.
    fn absorb(&mut self, input: &[u8]) -> Result<(), Refusal> {
        let mut at = 0;
        while at < input.len() && self.end.is_none() {
            match self.reader.read(&input[at..])? {
                AnswerPart::Output { from, to } => {
                    if self.output.is_empty() {
                        self.output.reserve(input.len() - at);
                    }
                    self.output.extend_from_slice(&input[at + from..at + to]);
                    at += to;
                }
                AnswerPart::Errors { from, to } => {
                    self.errors.take(&input[at + from..at + to]);
                    at += to;
                }
                AnswerPart::More => at = input.len(),
                AnswerPart::End { consumed, status } => {
                    self.end = Some(status);
                    at += consumed;
                }
            }
        }
        // Bytes behind the answer are nobody's answer.
        self.is_spoilt |= at != input.len();
        Ok(())
    }
}

/// What nobody wants any more.
impl FastCgiExchange {
    /// The exchange ended cleanly: its connection may serve the next, unless somebody waits for the process that it holds.
    pub(super) fn into_pool(self, handle: &CoreHandle<'_>) {
        if self.origin.may_keep(self.connection.open_beside()) {
            self.connection.into_pool(handle);
        }
    }

    pub(super) fn skip_rest(&mut self, core: &Core, left: &mut usize) -> Rest {
        self.output.clear();
        while self.end.is_none() {
            let Ok(mut scratch) = core.scratch.try_borrow_mut() else { return Rest::TooMuch };
            let room = scratch.len().min(*left);
            if room == 0 {
                return Rest::TooMuch;
            }
            match self.connection.stream.try_read(&mut scratch[..room]) {
                Ok(read @ 1..) => {
                    self.connection.carried().received(&core.counters, read);
                    *left -= read;
                    if self.absorb(&scratch[..read]).is_err() {
                        return Rest::TooMuch;
                    }
                    self.output.clear();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Rest::OnItsWay,
                _ => return Rest::TooMuch,
            }
        }
        if self.is_clean() { Rest::Skipped } else { Rest::TooMuch }
    }
}

/// The request has ended before there was a head.
fn without_head(end: EndStatus) -> NoAnswer {
    match end {
        EndStatus::Complete => NoAnswer::Garbled(refusals::CGI_HEAD_MISSING),
        EndStatus::CannotMultiplex | EndStatus::Overloaded => NoAnswer::Unprocessed,
        EndStatus::UnknownRole => NoAnswer::Garbled(refusals::FASTCGI_ROLE_UNKNOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_goes_up_in_records_none_of_which_is_empty() {
        let mut queue = VecDeque::new();
        frame(&mut queue, Bytes::new());
        assert!(queue.is_empty());
        frame(&mut queue, Bytes::from(vec![b'x'; RECORD_CONTENT_BYTES_MAX + 1]));
        let lengths: Vec<_> = queue.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [8, RECORD_CONTENT_BYTES_MAX, 8, 1]);
        assert_eq!(queue[0][..], [1, 5, 0, 1, 255, 255, 0, 0]);
    }
}
