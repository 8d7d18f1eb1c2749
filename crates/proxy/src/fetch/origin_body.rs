//! The body of an origin's answer, pulled piece by piece; at its end the connection goes back to the pool.
//!
//! Bytes are read into the core's buffer and copied out in pieces of their own size: a piece that somebody keeps
//! pins nothing else. What flows into the store is read into its blocks at once (`block_read.rs`).

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use cache::Failure;
use message::Fields;
use tokio::io::AsyncReadExt;
use tokio::time::Sleep;
use wire::{BodyDecoder, Decoded, ResponseBody};

use crate::core::Core;
use crate::fetch::block_read::BlockRoom;
use crate::fetch::failed;
use crate::filter_chain::FilterChain;
use crate::limits::{GIVEN_UP_BYTES_MAX, GIVEN_UP_WAIT};
use crate::origin::{OriginConnection, OriginFailure};
use crate::records::fetch_records;
use crate::records::task_records::TaskRecords;

/// A body that has begun to arrive, and that nobody pulls yet.
pub(crate) struct Arriving {
    pub(crate) connection: OriginConnection,
    pub(crate) framing: ResponseBody,
    /// The connection may be used again after a clean end.
    pub(crate) persistent: bool,
    /// What came behind the head.
    pub(crate) early: Vec<u8>,
    /// What the policy wants it to go through.
    pub(crate) filters: Option<FilterChain>,
}

/// What a pull brings.
pub(crate) enum OriginPiece {
    Data(Bytes),
    /// Read into a block: it holds on to nothing but what else comes into the same.
    InBlock(Bytes),
    End(Option<Fields>),
}

/// What is left of a body that is given up.
enum Rest {
    /// Nothing more.
    Skipped,
    /// Little, which is not here yet.
    OnItsWay,
    /// More than is worth reading, or nothing that could be read to its end.
    TooMuch,
}

pub(crate) struct OriginBody {
    pub(super) core: Rc<Core>,
    pub(super) connection: Option<OriginConnection>,
    pub(super) framing: ResponseBody,
    pub(super) decoder: BodyDecoder,
    pub(super) persistent: bool,
    pub(super) early: Vec<u8>,
    /// What is left of the block that is read into.
    pub(super) block: Option<BlockRoom>,
    /// What the last read brought, or what came with the head.
    pub(super) brought: usize,
    pub(super) origin: Arc<str>,
    pub(super) shows_address: bool,
    pub(super) timeout: Duration,
    pub(super) timer: Option<Pin<Box<Sleep>>>,
    /// Of the fetch, if anybody wants them.
    pub(super) records: Option<Rc<TaskRecords>>,
}

impl Arriving {
    /// If it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.framing {
            ResponseBody::Length(_) if self.filters.as_ref().is_some_and(|chain| !chain.keeps_length()) => None,
            ResponseBody::Length(length) => Some(length),
            ResponseBody::None => Some(0),
            ResponseBody::Chunked | ResponseBody::UntilClose | ResponseBody::Tunnel => None,
        }
    }

    /// After a 101: the connection, and what was sent on it already.
    pub(crate) fn into_tunnel(self) -> (OriginConnection, Vec<u8>) {
        (self.connection, self.early)
    }
}

impl OriginBody {
    pub(crate) fn framing(&self) -> ResponseBody {
        self.framing
    }

    /// Nobody wants more of it, or it has no body. The connection serves the next request once the rest was read and thrown
    /// away, if that is little and comes soon; otherwise it is closed, which tells the origin to stop.
    pub(crate) fn finish(mut self) {
        let mut left = GIVEN_UP_BYTES_MAX;
        match self.skip_rest(&mut left) {
            Rest::Skipped => self.release(),
            Rest::TooMuch => {
                self.persistent = false;
                self.release();
            }
            Rest::OnItsWay => {
                // The fetch is over for its records.
                if let (Some(records), Some(connection)) = (self.records.take(), &self.connection) {
                    fetch_records::closed(&records, &self.origin, connection, false);
                    fetch_records::body_ended(&records);
                }
                tokio::task::spawn_local(self.finish_later(left));
            }
        }
    }

    async fn finish_later(mut self, mut left: usize) {
        let skipping = poll_fn(|cx| {
            loop {
                match self.skip_rest(&mut left) {
                    Rest::Skipped => return Poll::Ready(true),
                    Rest::TooMuch => return Poll::Ready(false),
                    Rest::OnItsWay => {}
                }
                let Some(connection) = &self.connection else { return Poll::Ready(false) };
                if ready!(connection.stream.poll_read_ready(cx)).is_err() {
                    return Poll::Ready(false);
                }
            }
        });
        self.persistent = tokio::time::timeout(GIVEN_UP_WAIT, skipping).await.unwrap_or(false);
        self.release();
    }

    /// Reads what is there of a body that is given up, `left` bytes at most.
    fn skip_rest(&mut self, left: &mut usize) -> Rest {
        if !self.persistent {
            return Rest::TooMuch;
        }
        let early = std::mem::take(&mut self.early);
        if self.skip(&early).is_none() {
            return Rest::TooMuch;
        }
        let core = Rc::clone(&self.core);
        while !self.decoder.is_end() {
            let is_too_long = self.decoder.remaining().is_some_and(|remaining| remaining > *left as u64);
            let (Some(connection), Ok(mut scratch)) = (&mut self.connection, core.scratch.try_borrow_mut()) else {
                return Rest::TooMuch;
            };
            let room = scratch.len().min(*left);
            if is_too_long || room == 0 {
                return Rest::TooMuch;
            }
            match connection.stream.try_read(&mut scratch[..room]) {
                Ok(read @ 1..) => {
                    core.counters.origin_bytes_in.add(read as u64);
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

    /// The next piece. After `End` or an error it must not be asked again.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<OriginPiece, Failure>> {
        if !self.early.is_empty() {
            let early = std::mem::take(&mut self.early);
            if let Some(piece) = self.take_whole(&early)? {
                debug_assert_eq!(piece, early.len());
                return Poll::Ready(Ok(OriginPiece::Data(Bytes::from(early))));
            }
            if let Some(piece) = self.decode(&early)? {
                return Poll::Ready(Ok(piece));
            }
        }
        if self.decoder.is_end() {
            return Poll::Ready(Ok(self.end()));
        }
        self.block = None;
        loop {
            let core = Rc::clone(&self.core);
            let mut scratch = core.scratch.borrow_mut();
            let read = match ready!(self.poll_read(cx, &mut &mut scratch[..])) {
                Ok(read) => read,
                Err(failure) => return Poll::Ready(Err(failure)),
            };
            if read == 0 {
                return Poll::Ready(self.closed());
            }
            if let Some(piece) = self.decode(&scratch[..read])? {
                return Poll::Ready(Ok(piece));
            }
        }
    }

    /// Unframed data that is all of the input needs no copy: the usual case of a small answer that came at once.
    fn take_whole(&mut self, input: &[u8]) -> Result<Option<usize>, Failure> {
        let fits = match &self.decoder {
            BodyDecoder::Length { remaining } => *remaining >= input.len() as u64,
            BodyDecoder::UntilClose => true,
            BodyDecoder::Ended { .. } | BodyDecoder::Chunked(_) => false,
        };
        if !fits {
            return Ok(None);
        }
        self.count(input.len());
        match self.decoder.decode(input) {
            Ok(_) if self.decoder.is_end() => self.release(),
            Ok(_) => {}
            Err(refusal) => {
                return Err(self.fail(OriginFailure::Protocol, |o, l| failed::garbled_body(o, l, &refusal)));
            }
        }
        Ok(Some(input.len()))
    }

    /// The origin has closed the connection: was that the end of the body?
    pub(super) fn closed(&mut self) -> Result<OriginPiece, Failure> {
        if self.decoder.end_of_input().is_err() {
            return Err(self.fail(OriginFailure::Truncated, failed::truncated));
        }
        self.persistent = false;
        Ok(self.end())
    }

    /// Reads once, as much as `into` has room for.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut (impl BufMut + Unpin),
    ) -> Poll<Result<usize, Failure>> {
        let connection = self.connection.as_mut().expect("a body that has ended is not read");
        match pin!(connection.stream.read_buf(into)).poll(cx) {
            Poll::Ready(Ok(read)) => {
                self.timer = None;
                self.brought = read;
                self.core.counters.origin_bytes_in.add(read as u64);
                Poll::Ready(Ok(read))
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(self.fail(OriginFailure::Truncated, failed::truncated))),
            Poll::Pending => {
                let deadline = self.timeout;
                let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(deadline)));
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                Poll::Ready(Err(self.fail(OriginFailure::Truncated, |o, l| failed::stalled(o, l, deadline))))
            }
        }
    }

    /// All the data of this input as one piece; the end, when there is no data before it.
    fn decode(&mut self, input: &[u8]) -> Result<Option<OriginPiece>, Failure> {
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
                    self.persistent &= at == input.len();
                    if data.is_empty() {
                        return Ok(Some(self.end()));
                    }
                    break;
                }
                Err(refusal) => {
                    return Err(self.fail(OriginFailure::Protocol, |o, l| failed::garbled_body(o, l, &refusal)));
                }
            }
        }
        self.count(data.len());
        if self.decoder.is_end() {
            self.release();
        }
        Ok((!data.is_empty()).then(|| OriginPiece::Data(data.freeze())))
    }

    pub(super) fn count(&self, bytes: usize) {
        if let Some(records) = &self.records {
            records.count(|carried| carried.body_in += bytes as u64);
        }
    }

    pub(super) fn end(&mut self) -> OriginPiece {
        self.release();
        OriginPiece::End(self.decoder.trailers())
    }

    /// The body is whole: the connection may serve the next request, even while our client still takes this one.
    pub(super) fn release(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if let Some(records) = &self.records {
            fetch_records::closed(records, &self.origin, &connection, self.persistent);
            fetch_records::body_ended(records);
        }
        if self.persistent {
            connection.into_pool(&self.core.handle());
        }
    }

    fn fail(&mut self, kind: OriginFailure, failure: impl FnOnce(&str, &str) -> Failure) -> Failure {
        if let Some(connection) = &self.connection {
            connection.failed(&self.core.handle(), kind);
        }
        self.refuse(failure)
    }

    /// What came is not what its head says: nobody can use it. The connection is closed, which tells the origin to stop.
    pub(super) fn refuse(&mut self, failure: impl FnOnce(&str, &str) -> Failure) -> Failure {
        let label = match self.connection.take() {
            Some(connection) => {
                if let Some(records) = &self.records {
                    fetch_records::closed(records, &self.origin, &connection, false);
                }
                if self.shows_address { Arc::clone(connection.label()) } else { Arc::from("its address") }
            }
            None => Arc::from("closed"),
        };
        let failure = failure(&self.origin, &label);
        if let Some(records) = &self.records {
            fetch_records::failed(records, &self.origin, &failure);
        }
        failure
    }
}

/// Given up on the way: whoever it was for has left. Here nobody can wait for the rest.
impl Drop for OriginBody {
    fn drop(&mut self) {
        if self.connection.is_some()
            && matches!(self.skip_rest(&mut { GIVEN_UP_BYTES_MAX }), Rest::Skipped)
            && let Some(connection) = self.connection.take()
        {
            connection.into_pool(&self.core.handle());
        }
    }
}
