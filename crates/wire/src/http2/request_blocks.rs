//! What a client's header block does: it opens a stream, ends one with trailers, or is decoded for the table's sake alone.

use message::Method;

use super::control_frames::write_rst_stream;
use super::error_code::{ConnectionError, ErrorCode};
use super::flood_score::FloodKind;
use super::flow_control::{ReceiveWindow, SendWindow};
use super::frame::StreamId;
use super::hpack::{CompressionFault, ListLimits};
use super::http2_connection::{ConnectionEvent, Http2Connection, Http2Options, Leaving, Role};
use super::open_streams::{BodyLeft, Stream, StreamFault};
use super::priority::Priority;
use super::request_fields::{BlockContext, HeadArena, Http2Request, read_request_block, read_trailer_block};
use super::stream_states::{StreamState, StreamStep};
use crate::limits::{ORIGIN_STREAM_WINDOW_BYTES, STREAM_WINDOW_BYTES, STREAM_WINDOW_BYTES_MAX};
use crate::{RequestBody, refusals};

/// A table that has lost its peer decodes nothing any more.
pub(super) fn lost(fault: CompressionFault) -> ConnectionError {
    ConnectionError { code: ErrorCode::CompressionError, token: fault.token }
}

impl Http2Connection {
    /// Has this block nobody to go to? What is due for it is queued.
    #[inline]
    pub(super) fn drops_request_block(
        &mut self,
        id: StreamId,
        options: &Http2Options<'_>,
        now_ms: u64,
    ) -> Result<bool, ConnectionError> {
        if id <= self.last_stream {
            return self.drops_second_block(id, now_ms);
        }
        self.last_stream = id;
        if matches!(self.leaving, Leaving::After(_)) {
            return Ok(true);
        }
        if self.streams.count() < options.streams_max as usize {
            return Ok(false);
        }
        // RFC 9113 §5.1.2: it may be sent again, on another connection or later.
        self.floods.spend(FloodKind::ForcedReset, 1, now_ms)?;
        self.queue(|out| write_rst_stream(id, ErrorCode::RefusedStream, out))?;
        self.streams.remember_reset(id);
        Ok(true)
    }

    /// The number was used before: these are trailers, or come too late.
    fn drops_second_block(&mut self, id: StreamId, now_ms: u64) -> Result<bool, ConnectionError> {
        match self.streams.get(id) {
            Some(_) => Ok(false),
            None if self.streams.may_have_been_reset(id)
                || matches!(self.leaving, Leaving::After(last) if id > last) =>
            {
                self.floods.spend(FloodKind::Ignored, 1, now_ms)?;
                Ok(true)
            }
            // RFC 9113 §5.1.1: a number that was passed over counts as closed.
            None => Err(ConnectionError::protocol("stream-number-not-ascending")),
        }
    }

    pub(super) fn drop_block(&mut self, block: &[u8], arena: &mut HeadArena) -> Result<(), ConnectionError> {
        let nothing = ListLimits { list_bytes_max: 0, lines_max: 0 };
        self.decoder.decode(block, nothing, arena.emptied().0, |_, _| false).map_err(lost)?;
        Ok(())
    }

    /// A block of a stream that [`Http2Connection::drops_request_block`] has let through.
    #[inline]
    pub(super) fn read_request_block<'a>(
        &mut self,
        id: StreamId,
        ends_stream: bool,
        block: &[u8],
        arena: &'a mut HeadArena,
        options: &Http2Options<'_>,
        now_ms: u64,
    ) -> Result<ConnectionEvent<'a>, ConnectionError> {
        if self.streams.get(id).is_some() {
            return self.read_trailers(id, ends_stream, block, arena, options, now_ms);
        }
        let context = BlockContext {
            limits: options.head_limits,
            scheme: options.scheme,
            ends_stream,
            believes_scheme: options.believes_scheme,
            extended_connect: options.extended_connect,
        };
        match read_request_block(&mut self.decoder, block, context, arena).map_err(lost)? {
            Ok(head) => {
                self.open(id, body_left(&head), head.priority, ends_stream);
                Ok(ConnectionEvent::Request { stream: id, head, is_whole: ends_stream })
            }
            // RFC 9113 §8.1.1: what is malformed is a stream error …
            Err(refusal) if refusal.status == 400 && refusal != refusals::HOST_REPEATED => {
                self.end_stream_for(id, StreamFault::protocol(refusal.token), now_ms)
            }
            // … and what is merely too much, or not to be had here, is answered; and so is who names two hosts, by the word of RFC 9110 §7.2.
            Err(refusal) => {
                self.open(id, BodyLeft::Unknown, None, ends_stream);
                Ok(ConnectionEvent::Refused { stream: id, refusal, is_whole: ends_stream })
            }
        }
    }

    fn open(&mut self, id: StreamId, body_left: BodyLeft, given: Option<Priority>, ends_stream: bool) {
        // RFC 9218 §7.1: the frame counts more than the field.
        let early = self.early_priority.take_if(|(stream, _)| *stream <= id).filter(|(stream, _)| *stream == id);
        let priority = early.map(|(_, priority)| priority).or(given).unwrap_or_default();
        self.add_stream(id, body_left, priority, None);
        if ends_stream {
            self.streams.step(id, StreamStep::RemoteEnded);
        }
    }

    pub(super) fn add_stream(&mut self, id: StreamId, body_left: BodyLeft, priority: Priority, asked: Option<Method>) {
        let window_bytes = match self.role {
            Role::Server => STREAM_WINDOW_BYTES,
            Role::Client => ORIGIN_STREAM_WINDOW_BYTES,
        };
        self.streams.open(Stream {
            id,
            state: StreamState::Open,
            send_window: SendWindow::new(self.peer.initial_window),
            receive_window: ReceiveWindow::new(window_bytes, STREAM_WINDOW_BYTES_MAX),
            body_left,
            priority,
            is_ready: false,
            asked,
        });
    }

    /// RFC 9113 §8.1: a second block is the last thing that comes of a stream.
    pub(super) fn read_trailers<'a>(
        &mut self,
        id: StreamId,
        ends_stream: bool,
        block: &[u8],
        arena: &'a mut HeadArena,
        options: &Http2Options<'_>,
        now_ms: u64,
    ) -> Result<ConnectionEvent<'a>, ConnectionError> {
        let read = read_trailer_block(&mut self.decoder, block, options.trailer_limits, arena).map_err(lost)?;
        let judged = match self.streams.get_mut(id) {
            Some(stream) if !stream.state.may_receive() => Err(StreamFault::closed("headers-behind-end")),
            Some(_) if !ends_stream => Err(StreamFault::protocol("trailers-without-end")),
            Some(stream) if !stream.body_left.may_end() => Err(StreamFault::protocol("content-length-untrue")),
            _ => read.map_err(|refusal| StreamFault::protocol(refusal.token)),
        };
        match judged {
            Ok(fields) => {
                self.streams.step(id, StreamStep::RemoteEnded);
                Ok(ConnectionEvent::Trailers { stream: id, fields })
            }
            Err(fault) => self.end_stream_for(id, fault, now_ms),
        }
    }
}

fn body_left(head: &Http2Request<'_>) -> BodyLeft {
    match (head.received.request.method, head.received.body) {
        (Method::Connect, _) => BodyLeft::Tunnel,
        (_, RequestBody::Length(length)) => BodyLeft::Length(length),
        _ => BodyLeft::Unknown,
    }
}
