//! What the streams of an HTTP/2 connection and the connection share: its machine, and for each stream what has come for it and what
//! waits to be sent. A stream is a task that fills and empties its queues; the connection's task moves bytes between these and the
//! socket, in the machine's order. It is the same for a client's connection and for one to an origin (`origin_streams.rs`).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Waker};

use bytes::{Buf, Bytes};
use cache::{Cache, Charge};
use hashbrown::HashMap;
use message::Fields;
use wire::http2::{ErrorCode, FRAME_HEAD_BYTES, Http2Connection, StreamId};

use crate::limits::{HTTP2_CONNECTION_BYTES, STREAM_FRAMED_BYTES_MAX, STREAM_QUEUED_BYTES_MAX};

/// One connection's.
pub(crate) struct Http2Streams {
    pub(crate) machine: RefCell<Http2Connection>,
    table: RefCell<HashMap<StreamId, Stream>>,
    /// Of the connection's task.
    waker: Cell<Option<Waker>>,
    /// What the connection costs beside the account's usual: its machine, bodies that have come and were not taken, and what its
    /// client does not take.
    held: RefCell<Charge>,
    came_bytes: Cell<usize>,
    /// Framed, for a socket that does not take it.
    framed_bytes: Cell<usize>,
    /// The connection is one over TLS of ours.
    pub(crate) is_secure: bool,
}

/// What came for a stream, and what it has to say.
#[derive(Default)]
struct Stream {
    /// Pieces of the request's body, not taken yet.
    came: VecDeque<Bytes>,
    /// All of the body has come, with what stands behind it.
    end: Option<Option<Fields>>,
    /// It is gone, by a reset of either side or with its connection.
    is_gone: bool,
    /// Waits to be framed.
    queue: VecDeque<Queued>,
    queued_bytes: usize,
    /// Its end has been framed.
    is_sent: bool,
    /// Bytes of its answer that have been framed.
    framed_bytes: u64,
    waker: Option<Waker>,
}

/// A part of an answer.
pub(crate) enum Queued {
    /// A header block.
    Head {
        block: Vec<u8>,
        is_last: bool,
    },
    Data {
        bytes: Bytes,
        is_last: bool,
    },
}

impl Queued {
    fn len(&self) -> usize {
        match self {
            Queued::Head { block, .. } => block.len(),
            Queued::Data { bytes, .. } => bytes.len(),
        }
    }
}

/// How far an answer has come.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sending {
    /// Of its parts, what waits to be framed.
    pub(crate) queued_bytes: usize,
    /// Of its body, what has been framed.
    pub(crate) framed_bytes: u64,
    /// Its end has been framed.
    pub(crate) is_sent: bool,
}

/// What a stream reads of its request's body.
pub(crate) enum Came {
    Data(Bytes),
    End(Option<Fields>),
    /// Nothing yet.
    Nothing,
    /// The stream is gone.
    Gone,
}

/// The connection's side.
impl Http2Streams {
    pub(crate) fn new(machine: Http2Connection, cache: &Cache, is_secure: bool) -> Http2Streams {
        Http2Streams {
            machine: RefCell::new(machine),
            table: RefCell::default(),
            waker: Cell::default(),
            held: RefCell::new(cache.account().charge(HTTP2_CONNECTION_BYTES)),
            came_bytes: Cell::new(0),
            framed_bytes: Cell::new(0),
            is_secure,
        }
    }

    /// So many bytes of bodies wait to be taken.
    fn set_came(&self, bytes: usize) {
        self.came_bytes.set(bytes);
        self.account();
    }

    /// So many bytes are framed and wait for the socket.
    pub(crate) fn set_framed(&self, bytes: usize) {
        if self.framed_bytes.replace(bytes) != bytes {
            self.account();
        }
    }

    fn account(&self) {
        self.held.borrow_mut().resize(HTTP2_CONNECTION_BYTES + self.came_bytes.get() + self.framed_bytes.get());
    }

    /// Who is to be woken when a stream has something to be written.
    pub(crate) fn park(&self, cx: &Context<'_>) {
        match self.waker.take() {
            Some(known) if known.will_wake(cx.waker()) => self.waker.set(Some(known)),
            _ => self.waker.set(Some(cx.waker().clone())),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.borrow().is_empty()
    }

    pub(crate) fn open(&self, id: StreamId, is_whole: bool) {
        let stream = Stream { end: is_whole.then_some(None), ..Stream::default() };
        self.table.borrow_mut().insert(id, stream);
    }

    /// A piece of a body. What nobody waits for any more is given back at once.
    pub(crate) fn take_data(&self, id: StreamId, bytes: &[u8], is_last: bool) {
        let mut table = self.table.borrow_mut();
        let Some(stream) = table.get_mut(&id).filter(|stream| !stream.is_gone) else {
            return self.machine.borrow_mut().release(id, bytes.len());
        };
        if !bytes.is_empty() {
            stream.came.push_back(Bytes::copy_from_slice(bytes));
            self.set_came(self.came_bytes.get() + bytes.len());
        }
        if is_last {
            stream.end = Some(None);
        }
        stream.wake();
    }

    /// Bodies that have come and were not taken.
    pub(crate) fn came_bytes(&self) -> usize {
        self.came_bytes.get()
    }

    /// Something of it has come that is not in its queue.
    pub(crate) fn wake_stream(&self, id: StreamId) {
        if let Some(stream) = self.table.borrow_mut().get_mut(&id) {
            stream.wake();
        }
    }

    pub(crate) fn take_trailers(&self, id: StreamId, fields: Fields) {
        if let Some(stream) = self.table.borrow_mut().get_mut(&id) {
            stream.end = Some(Some(fields));
            stream.wake();
        }
    }

    /// It was reset. False: there was no request on it.
    pub(crate) fn take_reset(&self, id: StreamId) -> bool {
        let mut table = self.table.borrow_mut();
        let Some(stream) = table.get_mut(&id) else { return false };
        stream.is_gone = true;
        stream.wake();
        true
    }

    /// The connection is over, and all its streams.
    pub(crate) fn end_all(&self) {
        for stream in self.table.borrow_mut().values_mut() {
            stream.is_gone = true;
            stream.wake();
        }
    }

    /// Frames what may be sent now, the connection's own frames first.
    pub(crate) fn frame(&self, out: &mut Vec<u8>) {
        let mut machine = self.machine.borrow_mut();
        let mut table = self.table.borrow_mut();
        take_control(&mut machine, out);
        while out.len() < STREAM_FRAMED_BYTES_MAX {
            let needs_window = |id| table.get(&id).is_some_and(Stream::needs_window);
            let Some(id) = machine.next_to_write(needs_window) else { return };
            match table.get_mut(&id) {
                Some(stream) => stream.frame_next(id, &mut machine, out),
                None => machine.set_ready(id, false),
            }
        }
    }
}

/// Answers that are framed at once.
impl Http2Streams {
    /// Frames a head of these parts, behind the connection's own frames. Returns how many bytes it has.
    pub(crate) fn frame_at_once(&self, id: StreamId, head: [&[u8]; 2], is_last: bool, out: &mut Vec<u8>) -> usize {
        let mut machine = self.machine.borrow_mut();
        take_control(&mut machine, out);
        let [stored, tail] = head;
        let bytes = stored.len() + tail.len();
        let Some(frames) = machine.head_frames(id, bytes, is_last) else { return 0 };
        let mut at = 0;
        for frame in frames {
            let to = at + frame.block_bytes;
            out.extend_from_slice(frame.bytes());
            out.extend_from_slice(&stored[at.min(stored.len())..to.min(stored.len())]);
            out.extend_from_slice(&tail[at.saturating_sub(stored.len())..to.saturating_sub(stored.len())]);
            at = to;
        }
        bytes
    }

    /// Of a body of so many bytes, how many may go at once where there is so much room: as many as the windows let through. Where those are
    /// several frames none of them goes before other streams that wait to write, which may be more urgent.
    #[inline]
    pub(crate) fn goes_at_once(&self, id: StreamId, length: u64, room: usize) -> usize {
        let machine = self.machine.borrow();
        let bytes = usize::try_from(length).unwrap_or(usize::MAX).min(machine.window(id)).min(room);
        if bytes > machine.sendable(id) && machine.has_ready() { 0 } else { bytes }
    }

    /// How much one frame of the stream may hold now.
    #[inline]
    pub(crate) fn sendable(&self, id: StreamId) -> usize {
        self.machine.borrow().sendable(id)
    }

    /// The head of a frame whose bytes follow. `None`: they may not be sent.
    #[inline]
    pub(crate) fn data_frame(&self, id: StreamId, bytes: usize, ends: bool) -> Option<[u8; FRAME_HEAD_BYTES]> {
        self.machine.borrow_mut().data_frame(id, bytes, ends)
    }
}

pub(crate) fn take_control(machine: &mut Http2Connection, out: &mut Vec<u8>) {
    let control = machine.control().len();
    if control > 0 {
        out.extend_from_slice(machine.control());
        machine.control_written(control);
    }
}

/// A stream's side.
impl Http2Streams {
    /// Something of a stream has changed that the connection has to look at.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn queue(&self, id: StreamId, part: Queued) {
        if let Some(stream) = self.table.borrow_mut().get_mut(&id) {
            stream.queued_bytes += part.len();
            stream.queue.push_back(part);
        }
        self.machine.borrow_mut().set_ready(id, true);
        self.wake();
    }

    /// The next of the request's body; who is to be woken where there is nothing.
    pub(crate) fn read(&self, id: StreamId, cx: Option<&Context<'_>>) -> Came {
        let mut table = self.table.borrow_mut();
        let Some(stream) = table.get_mut(&id) else { return Came::Gone };
        if let Some(bytes) = stream.came.pop_front() {
            self.machine.borrow_mut().release(id, bytes.len());
            self.set_came(self.came_bytes.get() - bytes.len());
            self.wake();
            return Came::Data(bytes);
        }
        if let Some(end) = &mut stream.end {
            return Came::End(end.take());
        }
        if stream.is_gone {
            return Came::Gone;
        }
        stream.waker = cx.map(|cx| cx.waker().clone()).or(stream.waker.take());
        Came::Nothing
    }

    /// Has all of the body come, and been taken?
    pub(crate) fn is_at_end(&self, id: StreamId) -> bool {
        self.table.borrow().get(&id).is_some_and(|stream| stream.came.is_empty() && stream.end.is_some())
    }

    /// Has something of the body come that nobody has taken?
    pub(crate) fn has_come(&self, id: StreamId) -> bool {
        self.table.borrow().get(&id).is_some_and(|stream| !stream.came.is_empty() || stream.end.is_some())
    }

    /// Does somebody still read what is sent? If so, the task is woken when that changes.
    pub(crate) fn is_there(&self, id: StreamId, cx: &Context<'_>) -> bool {
        let mut table = self.table.borrow_mut();
        let Some(stream) = table.get_mut(&id).filter(|stream| !stream.is_gone) else { return false };
        stream.waker = Some(cx.waker().clone());
        true
    }

    /// Has neither side reset it?
    pub(crate) fn exists(&self, id: StreamId) -> bool {
        self.table.borrow().get(&id).is_some_and(|stream| !stream.is_gone)
    }

    pub(crate) fn sending(&self, id: StreamId) -> Sending {
        let sending =
            |it: &Stream| Sending { queued_bytes: it.queued_bytes, framed_bytes: it.framed_bytes, is_sent: it.is_sent };
        self.table.borrow().get(&id).map(sending).unwrap_or_default()
    }

    /// May more of the answer be queued? Where the client opens no window, one piece waits and no more.
    pub(crate) fn has_room(&self, id: StreamId) -> bool {
        let queued_bytes = self.sending(id).queued_bytes;
        let bytes_max = if self.sendable(id) > 0 { STREAM_QUEUED_BYTES_MAX } else { 1 };
        queued_bytes < bytes_max
    }

    /// Ends a stream before its time.
    pub(crate) fn reset(&self, id: StreamId, code: ErrorCode) {
        self.machine.borrow_mut().reset(id, code);
        if let Some(stream) = self.table.borrow_mut().get_mut(&id) {
            stream.is_gone = true;
            stream.queue.clear();
            stream.queued_bytes = 0;
        }
        self.wake();
    }

    /// Of a client's: the exchange is over.
    pub(crate) fn close(&self, id: StreamId) {
        if !self.forget(id) {
            return;
        }
        let mut machine = self.machine.borrow_mut();
        if machine.may_send(id) {
            // It ended without an end of its answer.
            machine.reset(id, ErrorCode::InternalError);
        } else if machine.awaits_body(id) {
            // RFC 9113 §8.1: the answer is whole, and the rest of the request is not wanted.
            machine.reset(id, ErrorCode::NoError);
        }
        drop(machine);
        self.wake();
    }

    /// Of an origin's: nobody wants more of it. Where anything of it is missing the origin is told to stop.
    pub(crate) fn cancel(&self, id: StreamId) {
        if self.forget(id) {
            self.machine.borrow_mut().reset(id, ErrorCode::Cancel);
            self.wake();
        }
    }

    /// Takes a stream out of the table. What came and nobody took is given back.
    fn forget(&self, id: StreamId) -> bool {
        let Some(stream) = self.table.borrow_mut().remove(&id) else { return false };
        let unread: usize = stream.came.iter().map(Bytes::len).sum();
        if unread > 0 {
            self.machine.borrow_mut().release(id, unread);
            self.set_came(self.came_bytes.get() - unread);
        }
        true
    }
}

impl Stream {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn needs_window(&self) -> bool {
        matches!(self.queue.front(), Some(Queued::Data { .. })) && self.next_frame(0).is_none()
    }

    /// Frames heads, and behind them one frame of data.
    fn frame_next(&mut self, id: StreamId, machine: &mut Http2Connection, out: &mut Vec<u8>) {
        while let Some(Queued::Head { block, is_last }) = self.queue.front() {
            let Some(frames) = machine.head_frames(id, block.len(), *is_last) else { break };
            let mut rest = &block[..];
            for frame in frames {
                let (part, behind) = rest.split_at(frame.block_bytes);
                out.extend_from_slice(frame.bytes());
                out.extend_from_slice(part);
                rest = behind;
            }
            self.is_sent = *is_last;
            self.queued_bytes -= block.len();
            self.queue.pop_front();
        }
        self.frame_data(id, machine, out);
        if self.queue.is_empty() {
            machine.set_ready(id, false);
        }
        self.wake();
    }

    /// One frame of data, of as many of the queued pieces as go into it: some clients take many small frames for a flood.
    fn frame_data(&mut self, id: StreamId, machine: &mut Http2Connection, out: &mut Vec<u8>) {
        let Some((length, ends)) = self.next_frame(machine.sendable(id)) else { return };
        let Some(head) = machine.data_frame(id, length, ends) else { return };
        out.extend_from_slice(&head);
        self.queued_bytes -= length;
        self.framed_bytes += length as u64;
        self.is_sent = ends;
        let mut left = length;
        while let Some(Queued::Data { bytes, .. }) = self.queue.front_mut() {
            let now = bytes.len().min(left);
            out.extend_from_slice(&bytes[..now]);
            bytes.advance(now);
            left -= now;
            if !bytes.is_empty() {
                break;
            }
            self.queue.pop_front();
        }
    }

    /// How many of the queued bytes the next frame takes, where there is room for so many, and whether it ends the answer. `None`: there are none
    /// to be sent now.
    fn next_frame(&self, room: usize) -> Option<(usize, bool)> {
        let mut length = None;
        for queued in &self.queue {
            let Queued::Data { bytes, is_last } = queued else { break };
            let before = length.unwrap_or(0);
            if bytes.len() > room - before {
                return Some((room, false)).filter(|_| room > 0);
            }
            length = Some(before + bytes.len());
            if *is_last {
                return length.map(|length| (length, true));
            }
        }
        length.map(|length| (length, false))
    }
}
