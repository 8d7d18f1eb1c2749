//! The streams of a connection that are open, and what must be known of those that are not any more.
//!
//! Numbers only ascend (RFC 9113 §5.1.1), so a stream is idle, open or closed by its number and by whether it is here. Of closed
//! ones only those are remembered that we have reset: frames for them may still be on their way.

use std::collections::VecDeque;

use message::Method;

use super::error_code::ErrorCode;
use super::flow_control::{ReceiveWindow, SendWindow};
use super::frame::StreamId;
use super::priority::Priority;
use super::stream_states::{StreamState, StreamStep};
use crate::limits::RESET_STREAMS_REMEMBERED_MAX;

/// What may still come of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLeft {
    /// Its end will say.
    Unknown,
    /// As Content-Length says.
    Length(u64),
    /// CONNECT: what comes is no body.
    Tunnel,
}

/// The body is not as long as its length says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntrueLength;

impl BodyLeft {
    /// So many bytes have come, or are about to; `is_last`: and no more will.
    #[inline]
    pub fn take(&mut self, bytes: usize, is_last: bool) -> Result<(), UntrueLength> {
        let BodyLeft::Length(left) = self else { return Ok(()) };
        *left = left.checked_sub(bytes as u64).ok_or(UntrueLength)?;
        if is_last && !self.may_end() { Err(UntrueLength) } else { Ok(()) }
    }

    /// Is nothing missing?
    pub fn may_end(self) -> bool {
        matches!(self, BodyLeft::Unknown | BodyLeft::Tunnel | BodyLeft::Length(0))
    }
}

#[derive(Clone, Debug)]
pub struct Stream {
    pub id: StreamId,
    pub state: StreamState,
    pub send_window: SendWindow,
    pub receive_window: ReceiveWindow,
    pub body_left: BodyLeft,
    pub priority: Priority,
    /// Something of it waits to be written.
    pub is_ready: bool,
    /// What we have asked, as long as the final response has not come.
    pub asked: Option<Method>,
}

#[derive(Debug)]
pub struct OpenStreams {
    /// By number.
    streams: Vec<Stream>,
    /// Those that we reset last.
    reset: VecDeque<StreamId>,
    /// The highest number that has left that list.
    forgotten: StreamId,
}

impl OpenStreams {
    pub const fn new() -> OpenStreams {
        OpenStreams { streams: Vec::new(), reset: VecDeque::new(), forgotten: StreamId::CONNECTION }
    }

    pub fn count(&self) -> usize {
        self.streams.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.streams.iter_mut()
    }

    #[inline]
    pub fn get(&self, id: StreamId) -> Option<&Stream> {
        self.streams.get(self.place(id)?)
    }

    #[inline]
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let place = self.place(id)?;
        self.streams.get_mut(place)
    }

    #[inline]
    fn place(&self, id: StreamId) -> Option<usize> {
        self.streams.binary_search_by_key(&id, |stream| stream.id).ok()
    }

    /// Its number is higher than that of any before.
    pub fn open(&mut self, stream: Stream) {
        debug_assert!(self.streams.last().is_none_or(|last| last.id < stream.id));
        self.streams.push(stream);
    }

    /// Takes the step; a stream that is closed by it is gone. `false`: the table has no such step, or there is no such stream.
    pub fn step(&mut self, id: StreamId, step: StreamStep) -> bool {
        let Some(place) = self.place(id) else { return false };
        let Some(state) = self.streams[place].state.after(step) else { return false };
        self.streams[place].state = state;
        if state == StreamState::Closed {
            self.streams.remove(place);
        }
        true
    }

    /// The peer will not work on those beyond `last`; nothing more is said about them.
    pub fn end_beyond(&mut self, last: StreamId) {
        let kept = self.streams.partition_point(|stream| stream.id <= last);
        self.streams.truncate(kept);
    }

    /// We have reset it, or refused to open it.
    pub fn remember_reset(&mut self, id: StreamId) {
        if self.reset.len() == RESET_STREAMS_REMEMBERED_MAX {
            self.forgotten = self.forgotten.max(self.reset.pop_front().unwrap_or(StreamId::CONNECTION));
        }
        self.reset.push_back(id);
    }

    /// May frames for this stream, which is closed, have been sent before its peer knew? Of those that are forgotten it is
    /// assumed.
    pub fn may_have_been_reset(&self, id: StreamId) -> bool {
        id <= self.forgotten || self.reset.contains(&id)
    }

    /// Gives memory back that an idle connection has no use for.
    pub fn shrink(&mut self) {
        self.streams.shrink_to_fit();
        if self.streams.is_empty() {
            self.forgotten = self.reset.iter().copied().fold(self.forgotten, StreamId::max);
            self.reset = VecDeque::new();
        }
    }

    pub fn heap_bytes(&self) -> usize {
        self.streams.capacity() * size_of::<Stream>() + self.reset.capacity() * size_of::<StreamId>()
    }
}

/// Why a stream ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFault {
    pub code: ErrorCode,
    pub token: &'static str,
}

impl StreamFault {
    pub const fn protocol(token: &'static str) -> StreamFault {
        StreamFault { code: ErrorCode::ProtocolError, token }
    }

    pub const fn closed(token: &'static str) -> StreamFault {
        StreamFault { code: ErrorCode::StreamClosed, token }
    }

    pub const fn flow_control(token: &'static str) -> StreamFault {
        StreamFault { code: ErrorCode::FlowControlError, token }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(streams: &mut OpenStreams, id: u32) {
        streams.open(Stream {
            id: StreamId(id),
            state: StreamState::Open,
            send_window: SendWindow::new(1),
            receive_window: ReceiveWindow::new(1, 1),
            body_left: BodyLeft::Unknown,
            priority: Priority::default(),
            is_ready: false,
            asked: None,
        });
    }

    #[test]
    fn a_stream_is_here_until_both_sides_have_ended() {
        let mut streams = OpenStreams::new();
        (1..9).step_by(2).for_each(|id| open(&mut streams, id));
        assert!(streams.step(StreamId(3), StreamStep::RemoteEnded));
        assert!(!streams.step(StreamId(3), StreamStep::RemoteEnded), "the table has no such step");
        assert!(streams.step(StreamId(3), StreamStep::LocalEnded));
        assert!(streams.get(StreamId(3)).is_none() && streams.get(StreamId(5)).is_some());
        assert_eq!(streams.count(), 3);
    }

    #[test]
    fn resets_are_remembered_as_long_as_there_is_room_and_then_assumed() {
        let mut streams = OpenStreams::new();
        for id in 0..RESET_STREAMS_REMEMBERED_MAX as u32 {
            streams.remember_reset(StreamId(id * 4 + 1));
        }
        assert!(streams.may_have_been_reset(StreamId(5)) && !streams.may_have_been_reset(StreamId(3)));
        streams.remember_reset(StreamId(1001));
        streams.remember_reset(StreamId(1005));
        assert!(streams.may_have_been_reset(StreamId(3)), "5 is forgotten");
        streams.shrink();
        assert!(streams.may_have_been_reset(StreamId(1005)) && !streams.may_have_been_reset(StreamId(1007)));
        assert_eq!(streams.heap_bytes(), 0);
    }

    #[test]
    fn a_length_is_kept_to_the_byte() {
        let mut left = BodyLeft::Length(5);
        assert_eq!((left.take(3, false), left.take(0, true)), (Ok(()), Err(UntrueLength)));
        assert_eq!((left.take(2, true), left.take(1, false)), (Ok(()), Err(UntrueLength)));
        assert_eq!(BodyLeft::Unknown.take(1 << 30, true), Ok(()));
    }
}
