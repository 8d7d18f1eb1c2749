//! What a connection sends of its streams: new streams, heads of frames, within the windows, in the order of priorities.
//!
//! The bytes themselves are the caller's: a stored block, slices of a stored body. Here is said how many of them may go, and
//! what goes before them.

use message::Method;

use super::control_frames::write_rst_stream;
use super::error_code::ErrorCode;
use super::flood_score::FloodKind;
use super::frame::{END_HEADERS, END_STREAM, FRAME_HEAD_BYTES, FrameType, StreamId, frame_head};
use super::http2_connection::{Http2Connection, Http2Options, Leaving, Role};
use super::open_streams::{BodyLeft, Stream};
use super::priority::Priority;
use super::stream_states::StreamStep;
use crate::limits::{DATA_BYTES_PER_UPDATE, DATA_PAYLOAD_BYTES_MAX, FRAMES_BEHIND_RESET};

/// HPACK's "the table has no room": it goes before the first block when a peer has made its table smaller (RFC 7541 §4.2).
const SIZE_UPDATE: u8 = 0x20;

/// What goes before a piece of a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadFrame {
    bytes: [u8; FRAME_HEAD_BYTES + 1],
    len: u8,
    /// So many bytes of the block follow it.
    pub block_bytes: usize,
}

impl HeadFrame {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The frames of one header block: HEADERS, and CONTINUATION where it is longer than a frame may be. They are written in
/// one go: nothing else may stand between them.
#[derive(Clone, Debug)]
pub struct HeadFrames {
    stream: StreamId,
    left: usize,
    payload_bytes_max: usize,
    ends_stream: bool,
    says_size_update: bool,
    is_first: bool,
}

impl Iterator for HeadFrames {
    type Item = HeadFrame;

    #[inline]
    fn next(&mut self) -> Option<HeadFrame> {
        if self.left == 0 && !self.is_first {
            return None;
        }
        let update_bytes = usize::from(std::mem::take(&mut self.says_size_update));
        let block_bytes = self.left.min(self.payload_bytes_max - update_bytes);
        self.left -= block_bytes;
        let frame_type = if self.is_first { FrameType::Headers } else { FrameType::Continuation };
        let end_stream = if self.is_first && self.ends_stream { END_STREAM } else { 0 };
        let end_headers = if self.left == 0 { END_HEADERS } else { 0 };
        self.is_first = false;
        let mut bytes = [SIZE_UPDATE; FRAME_HEAD_BYTES + 1];
        let head = frame_head(frame_type, end_stream | end_headers, self.stream, block_bytes + update_bytes);
        bytes[..FRAME_HEAD_BYTES].copy_from_slice(&head);
        Some(HeadFrame { bytes, len: (FRAME_HEAD_BYTES + update_bytes) as u8, block_bytes })
    }
}

impl Http2Connection {
    /// May another request be sent to the origin?
    pub fn may_open(&self, options: &Http2Options<'_>) -> bool {
        self.streams.count() < self.streams_max(options) as usize
    }

    /// Requests that may be under way at the origin: no more than it has said, nor than we want. Before it has said anything it is
    /// one, for it may want no more.
    pub fn streams_max(&self, options: &Http2Options<'_>) -> u32 {
        let takes_more = self.role == Role::Client
            && !self.peer.has_gone_away
            && self.leaving == Leaving::No
            && self.last_stream.0 < StreamId::MAX.0 - 2;
        match takes_more {
            false => 0,
            true if !self.peer.has_spoken => options.streams_max.min(1),
            true => self.peer.streams_max.unwrap_or(u32::MAX).min(options.streams_max),
        }
    }

    /// Has the origin said its settings?
    pub fn has_spoken(&self) -> bool {
        self.peer.has_spoken
    }

    /// May the origin be asked with extended CONNECT (RFC 8441 §3)? Known once it has spoken.
    pub fn may_ask_extended_connect(&self) -> bool {
        self.peer.extended_connect
    }

    /// Sends a request, whose head has so many bytes; `None` when no more may be sent now. A whole one has no body.
    pub fn open_stream(
        &mut self,
        method: Method,
        block_bytes: usize,
        is_whole: bool,
        options: &Http2Options<'_>,
    ) -> Option<(StreamId, HeadFrames)> {
        if !self.may_open(options) {
            return None;
        }
        let id = StreamId(if self.last_stream.0 == 0 { 1 } else { self.last_stream.0 + 2 });
        self.last_stream = id;
        self.add_stream(id, BodyLeft::Unknown, Priority::default(), Some(method));
        Some((id, self.head_frames(id, block_bytes, is_whole)?))
    }

    /// Is the stream still there to be answered?
    #[inline]
    pub fn may_send(&self, stream: StreamId) -> bool {
        self.streams.get(stream).is_some_and(|stream| stream.state.may_send())
    }

    /// The frames for a head of so many bytes: an interim answer, the answer, or, with `ends_stream`, trailers or an answer
    /// without a body. `None` when the stream is gone.
    #[inline]
    pub fn head_frames(&mut self, stream: StreamId, block_bytes: usize, ends_stream: bool) -> Option<HeadFrames> {
        if !self.may_send(stream) {
            return None;
        }
        if ends_stream {
            self.end(stream);
        }
        Some(HeadFrames {
            stream,
            left: block_bytes,
            payload_bytes_max: self.peer.frame_payload_bytes_max as usize,
            ends_stream,
            says_size_update: std::mem::take(&mut self.peer.owes_size_update),
            is_first: true,
        })
    }

    /// How much of its body the stream may send in one frame now.
    #[inline]
    pub fn sendable(&self, stream: StreamId) -> usize {
        let Some(stream) = self.streams.get(stream).filter(|stream| stream.state.may_send()) else { return 0 };
        self.room_of(stream)
    }

    /// How much of its body the stream may send now, in however many frames.
    #[inline]
    pub fn window(&self, stream: StreamId) -> usize {
        let stream = self.streams.get(stream).filter(|stream| stream.state.may_send());
        stream.map_or(0, |stream| self.window_of(stream))
    }

    #[inline]
    fn window_of(&self, stream: &Stream) -> usize {
        stream.send_window.bytes().min(self.send_window.bytes())
    }

    fn room_of(&self, stream: &Stream) -> usize {
        self.window_of(stream).min(DATA_PAYLOAD_BYTES_MAX).min(self.peer.frame_payload_bytes_max as usize)
    }

    /// The head of a DATA frame of so many bytes, which are spent. `None` when they are more than may be sent now, or
    /// the stream is gone. A frame of no bytes may always be sent.
    #[inline]
    pub fn data_frame(&mut self, id: StreamId, bytes: usize, ends_stream: bool) -> Option<[u8; FRAME_HEAD_BYTES]> {
        if bytes > self.sendable(id) || !self.may_send(id) {
            return None;
        }
        self.send_window.spend(bytes);
        self.streams.get_mut(id)?.send_window.spend(bytes);
        // The peer says that it has taken them, and some measure with a PING how long they took.
        self.floods.earn(FloodKind::WindowUpdate, 2 + (bytes / DATA_BYTES_PER_UPDATE) as u32);
        self.floods.earn(FloodKind::Ping, 1);
        if ends_stream {
            self.end(id);
        }
        Some(frame_head(FrameType::Data, if ends_stream { END_STREAM } else { 0 }, id, bytes))
    }

    fn end(&mut self, id: StreamId) {
        self.streams.step(id, StreamStep::LocalEnded);
        self.floods.earn(FloodKind::PeerReset, 1);
        self.floods.earn(FloodKind::Priority, 2);
        if let Some(stream) = self.streams.get_mut(id) {
            stream.is_ready = false;
        }
    }

    /// Is more of the request's body to come, though the answer may have ended? Then it is waited for, or cut off by
    /// [`Http2Connection::reset`] with NO_ERROR (RFC 9113 §8.1).
    pub fn awaits_body(&self, stream: StreamId) -> bool {
        self.streams.get(stream).is_some_and(|stream| stream.state.may_receive())
    }

    /// Ends a stream before its time. Nothing happens when it is gone.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        if self.streams.step(stream, StreamStep::Reset) {
            self.streams.remember_reset(stream);
            // What is on its way already is none of the peer's faults.
            self.floods.earn(FloodKind::Ignored, FRAMES_BEHIND_RESET);
            self.queue_unasked(|out| write_rst_stream(stream, code, out));
        }
    }

    /// Something of the stream waits to be written, or does not any more.
    pub fn set_ready(&mut self, stream: StreamId, is_ready: bool) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.is_ready = is_ready;
        }
    }

    /// Does any stream wait to be written?
    pub fn has_ready(&self) -> bool {
        self.streams.iter().any(|stream| stream.is_ready && stream.state.may_send())
    }

    /// Which of the ready streams writes next (RFC 9218 §10). The most urgent; of those the oldest, and incremental ones in
    /// turn. `needs_window` says of a ready stream whether it can write only with a window.
    pub fn next_to_write(&mut self, needs_window: impl Fn(StreamId) -> bool) -> Option<StreamId> {
        let may_write = |stream: &&Stream| {
            stream.is_ready && stream.state.may_send() && (self.room_of(stream) > 0 || !needs_window(stream.id))
        };
        let urgency = self.streams.iter().filter(may_write).map(|stream| stream.priority.urgency).min()?;
        let mut urgent = self.streams.iter().filter(may_write).filter(|stream| stream.priority.urgency == urgency);
        let first = urgent.next()?;
        if !first.priority.incremental {
            return Some(first.id);
        }
        let mut in_turn = urgent.filter(|stream| stream.priority.incremental);
        let had = self.turn_had;
        let chosen =
            if first.id > had { first.id } else { in_turn.find(|it| it.id > had).map_or(first.id, |it| it.id) };
        self.turn_had = chosen;
        Some(chosen)
    }
}

#[cfg(test)]
#[path = "sent_frames_tests.rs"]
mod tests;
