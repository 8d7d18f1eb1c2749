//! An exchange with an origin over HTTP/1, on a connection that is its own while it lasts: the request's bytes, the body behind them in
//! its framing, heads as they come, and the body of the answer.
//!
//! Bytes are read into the core's buffer and copied out in pieces of their own size: a piece that somebody keeps
//! pins nothing else. What flows into the store is read into its blocks at once (`block_read.rs`).

use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use message::Fields;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use wire::limits::{ChunkedLimits, HeadLimits};
use wire::{
    BodyDecoder, BodyFraming, Decoded, ReceivedResponse, Refusal, RequestBody, ResponseBody, may_end_now,
    read_response, unfolded,
};

use crate::core::Core;
use crate::origin::OriginConnection;
use crate::reply_head::ReplyHead;
use crate::upstream::block_read::BlockRoom;
use crate::upstream::socket_queue;
use crate::upstream::{AnswerTerms, BodyFault, NoAnswer, OriginPiece, Rest, Silence};

#[derive(Debug)]
pub(crate) struct Http1Exchange {
    pub(super) connection: OriginConnection,
    /// What came and was not taken: heads, and behind the final one the beginning of the body.
    pub(super) unread: UnreadBytes,
    /// Something of an answer has come.
    heard: bool,
    /// The request's body has no length, and goes out in chunks.
    is_chunked: bool,
    /// Of the request's body, framed, what the socket has not taken.
    upload: VecDeque<Bytes>,
    pub(super) decoder: BodyDecoder,
    /// What is left of the block that is read into.
    pub(super) block: Option<BlockRoom>,
    /// What the last read brought, or what came with the head.
    pub(super) brought: usize,
    /// Something came that is no part of the answer, or the origin has closed: nothing may follow.
    is_spoilt: bool,
}

/// Bytes of answers that have not been read as heads yet.
#[derive(Debug, Default)]
pub(super) struct UnreadBytes {
    pub(super) bytes: Vec<u8>,
    /// So many of them were no whole head when they were last looked at.
    looked_at: usize,
}

impl Http1Exchange {
    pub(super) fn new(connection: OriginConnection) -> Http1Exchange {
        Http1Exchange {
            connection,
            unread: UnreadBytes::default(),
            heard: false,
            is_chunked: false,
            upload: VecDeque::new(),
            decoder: BodyDecoder::Ended { trailers: None },
            block: None,
            brought: 0,
            is_spoilt: false,
        }
    }
}

/// The request.
impl Http1Exchange {
    /// Writes all of a head, and what may stand behind it.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        socket_queue::write_all(&mut self.connection, bytes).await
    }

    pub(super) fn begin_upload(&mut self, body: RequestBody) {
        self.is_chunked = body == RequestBody::Chunked;
    }

    pub(super) fn upload(&mut self, data: Bytes) {
        frame(&mut self.upload, data, self.is_chunked);
    }

    pub(super) fn end_upload(&mut self, trailers: Option<&Fields>) {
        if self.is_chunked {
            self.upload.extend(BodyFraming::Chunked.end(trailers.map(Fields::view)).map(Bytes::from));
        }
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

/// Bodies of unknown length are framed anew.
fn frame(queue: &mut VecDeque<Bytes>, data: Bytes, is_chunked: bool) {
    if !is_chunked {
        queue.push_back(data);
        return;
    }
    let framed = BodyFraming::Chunked.frame(data.len());
    queue.push_back(Bytes::copy_from_slice(framed.before()));
    queue.push_back(data);
    queue.push_back(Bytes::from_static(framed.after()));
}

/// Heads.
impl Http1Exchange {
    /// The next head, from what is there or from the socket.
    pub(super) fn poll_answer(
        &mut self,
        core: &Core,
        terms: AnswerTerms<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Box<ReplyHead>, NoAnswer>> {
        if !self.unread.bytes.is_empty() && self.unread.looked_at == 0 {
            match self.unread.take_answer(core, terms, &[]) {
                Ok(None) => {}
                Ok(Some(answer)) => return Poll::Ready(Ok(answer)),
                Err(refusal) => return Poll::Ready(Err(NoAnswer::Garbled(refusal))),
            }
        }
        loop {
            let mut scratch = core.scratch.borrow_mut();
            let mut buffer = ReadBuf::new(&mut scratch[..core.origin_read_bytes_max()]);
            match ready!(Pin::new(&mut self.connection.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                Ok(()) | Err(_) => return Poll::Ready(Err(NoAnswer::Ended { heard: self.heard })),
            }
            self.heard = true;
            self.connection.carried().received(&core.counters, buffer.filled().len());
            match self.unread.take_answer(core, terms, buffer.filled()) {
                Ok(None) => {}
                Ok(Some(answer)) => return Poll::Ready(Ok(answer)),
                Err(refusal) => return Poll::Ready(Err(NoAnswer::Garbled(refusal))),
            }
        }
    }
}

fn owned(received: ReceivedResponse<'_>) -> (Box<ReplyHead>, usize) {
    let head_bytes = received.head_bytes;
    (Box::new(ReplyHead::from(received)), head_bytes)
}

/// An answer with lines that went on in the next one.
#[cold]
fn read_unfolded(text: &[u8], terms: AnswerTerms<'_>) -> Result<Option<(Box<ReplyHead>, usize)>, Refusal> {
    let mut spans = Vec::new();
    Ok(read_response(text, &mut spans, terms.limits, terms.method, terms.is_upgrade)?.map(owned))
}

impl UnreadBytes {
    fn take_answer(
        &mut self,
        core: &Core,
        terms: AnswerTerms<'_>,
        new: &[u8],
    ) -> Result<Option<Box<ReplyHead>>, Refusal> {
        self.take(new, terms.limits, |bytes| {
            let mut spans = core.spans.borrow_mut();
            match read_response(bytes, &mut spans, terms.limits, terms.method, terms.is_upgrade) {
                Ok(received) => Ok(received.map(owned)),
                Err(refusal) => match unfolded(bytes).filter(|_| terms.limits.lenient) {
                    Some(text) => read_unfolded(&text, terms),
                    None => Err(refusal),
                },
            }
        })
    }

    /// Reads a head from what was kept and what is new, and keeps what is behind it. An origin that sends its head byte
    /// by byte has it read once a line, not once a byte.
    fn take<T>(
        &mut self,
        new: &[u8],
        limits: &HeadLimits,
        read: impl FnOnce(&[u8]) -> Result<Option<(T, usize)>, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        if self.bytes.is_empty() {
            let taken = read(new)?;
            let (head, head_bytes) = taken.map_or((None, 0), |(head, head_bytes)| (Some(head), head_bytes));
            self.bytes.extend_from_slice(&new[head_bytes..]);
            self.looked_at = if head.is_none() { self.bytes.len() } else { 0 };
            return Ok(head);
        }
        self.bytes.extend_from_slice(new);
        if !may_end_now(&self.bytes, self.looked_at, limits) {
            return Ok(None);
        }
        let Some((head, head_bytes)) = read(&self.bytes)? else {
            self.looked_at = self.bytes.len();
            return Ok(None);
        };
        self.bytes.drain(..head_bytes);
        self.looked_at = 0;
        Ok(Some(head))
    }
}

/// The answer's body.
impl Http1Exchange {
    pub(super) fn begin_body(&mut self, framing: ResponseBody, limits: &ChunkedLimits) {
        self.decoder = BodyDecoder::for_response(framing, limits);
        self.brought = self.unread.bytes.len();
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.decoder.is_end()
    }

    pub(super) fn is_clean(&self) -> bool {
        !self.is_spoilt
    }

    pub(super) fn take_trailers(&mut self) -> Option<Fields> {
        self.decoder.trailers()
    }

    /// After a 101: what was sent behind it already. False when there is nothing.
    pub(super) fn read_early(&mut self, into: &mut ReadBuf<'_>) -> bool {
        let early = &mut self.unread.bytes;
        let length = early.len().min(into.remaining());
        into.put_slice(&early[..length]);
        early.drain(..length);
        length > 0
    }

    /// The next piece.
    pub(super) fn poll_data(
        &mut self,
        core: &Core,
        cx: &mut Context<'_>,
        silence: &mut Silence,
    ) -> Poll<Result<OriginPiece, BodyFault>> {
        if !self.unread.bytes.is_empty() {
            let early = std::mem::take(&mut self.unread.bytes);
            if self.take_whole(&early)? {
                return Poll::Ready(Ok(OriginPiece::Data(Bytes::from(early))));
            }
            if let Some(piece) = self.decode(&early)? {
                return Poll::Ready(Ok(piece));
            }
        }
        if self.decoder.is_end() {
            return Poll::Ready(Ok(OriginPiece::End(self.decoder.trailers())));
        }
        self.block = None;
        loop {
            let mut scratch = core.scratch.borrow_mut();
            let read = ready!(self.poll_read(core, cx, &mut &mut scratch[..core.origin_read_bytes_max()], silence))?;
            if read == 0 {
                return Poll::Ready(self.closed());
            }
            if let Some(piece) = self.decode(&scratch[..read])? {
                return Poll::Ready(Ok(piece));
            }
        }
    }

    /// Unframed data that is all of the input needs no copy: the usual case of a small answer that came at once.
    fn take_whole(&mut self, input: &[u8]) -> Result<bool, BodyFault> {
        let fits = match &self.decoder {
            BodyDecoder::Length { remaining } => *remaining >= input.len() as u64,
            BodyDecoder::UntilClose => true,
            BodyDecoder::Ended { .. } | BodyDecoder::Chunked(_) => false,
        };
        if fits {
            self.decoder.decode(input).map_err(BodyFault::Garbled)?;
        }
        Ok(fits)
    }

    /// The origin has closed the connection: was that the end of the body?
    pub(super) fn closed(&mut self) -> Result<OriginPiece, BodyFault> {
        self.is_spoilt = true;
        match self.decoder.end_of_input() {
            Ok(()) => Ok(OriginPiece::End(self.decoder.trailers())),
            Err(_) => Err(BodyFault::Truncated),
        }
    }

    /// Reads once, as much as `into` has room for.
    pub(super) fn poll_read(
        &mut self,
        core: &Core,
        cx: &mut Context<'_>,
        into: &mut (impl BufMut + Unpin),
        silence: &mut Silence,
    ) -> Poll<Result<usize, BodyFault>> {
        match ready!(pin!(self.connection.stream.read_buf(into)).poll(cx)) {
            Ok(read) => {
                *silence = None;
                self.brought = read;
                self.connection.carried().received(&core.counters, read);
                Poll::Ready(Ok(read))
            }
            Err(_) => Poll::Ready(Err(BodyFault::Truncated)),
        }
    }

    /// All the data of this input as one piece; the end, when there is no data before it.
    fn decode(&mut self, input: &[u8]) -> Result<Option<OriginPiece>, BodyFault> {
        let mut at = 0;
        let mut data = BytesMut::new();
        loop {
            match self.decoder.decode(&input[at..]) {
                Ok(Decoded::Data { from, to }) => {
                    if data.is_empty() {
                        data.reserve(input.len() - at);
                    }
                    data.extend_from_slice(&input[at + from..at + to]);
                    at += to;
                }
                Ok(Decoded::More { .. }) => break,
                Ok(Decoded::End { consumed }) => {
                    at += consumed;
                    // Bytes behind the answer are nobody's answer: the connection is not used again (O-06).
                    self.is_spoilt |= at != input.len();
                    if data.is_empty() {
                        return Ok(Some(OriginPiece::End(self.decoder.trailers())));
                    }
                    break;
                }
                Err(refusal) => return Err(BodyFault::Garbled(refusal)),
            }
        }
        Ok((!data.is_empty()).then(|| OriginPiece::Data(data.freeze())))
    }
}

/// What nobody wants any more.
impl Http1Exchange {
    pub(super) fn skip_rest(&mut self, core: &Core, left: &mut usize) -> Rest {
        let early = std::mem::take(&mut self.unread.bytes);
        if self.skip(&early).is_none() {
            return Rest::TooMuch;
        }
        while !self.decoder.is_end() {
            let is_too_long = self.decoder.remaining().is_some_and(|remaining| remaining > *left as u64);
            let Ok(mut scratch) = core.scratch.try_borrow_mut() else { return Rest::TooMuch };
            let room = scratch.len().min(*left);
            if is_too_long || room == 0 {
                return Rest::TooMuch;
            }
            match self.connection.stream.try_read(&mut scratch[..room]) {
                Ok(read @ 1..) => {
                    self.connection.carried().received(&core.counters, read);
                    *left -= read;
                    if self.skip(&scratch[..read]).is_none() {
                        return Rest::TooMuch;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Rest::OnItsWay,
                _ => return Rest::TooMuch,
            }
        }
        Rest::Skipped
    }

    /// Takes input that nobody wants. `None`: it is no body, or there is more than that.
    fn skip(&mut self, mut input: &[u8]) -> Option<()> {
        while !input.is_empty() {
            match self.decoder.decode(input).ok()? {
                Decoded::Data { to, .. } => {
                    input = &input[to..];
                    if self.decoder.is_end() {
                        return input.is_empty().then_some(());
                    }
                }
                Decoded::More { .. } => break,
                Decoded::End { consumed } => return (consumed == input.len()).then_some(()),
            }
        }
        Some(())
    }
}

#[cfg(test)]
#[path = "http1_exchange_tests.rs"]
mod tests;
