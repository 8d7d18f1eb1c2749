//! What an origin's header block does: it brings a response, or trailers behind one.

use message::{Method, Status};

use super::error_code::ConnectionError;
use super::frame::StreamId;
use super::http2_connection::{ConnectionEvent, Http2Connection, Http2Options};
use super::open_streams::{BodyLeft, StreamFault};
use super::request_blocks::lost;
use super::request_fields::HeadArena;
use super::response_fields::read_response_block;
use super::stream_states::StreamStep;
use crate::ResponseBody;

impl Http2Connection {
    /// Has this block nobody to go to? An origin answers only what it was asked.
    pub(super) fn drops_response_block(&mut self, id: StreamId, now_ms: u64) -> Result<bool, ConnectionError> {
        if self.is_idle_stream(id) {
            return Err(ConnectionError::protocol("response-unasked"));
        }
        if self.streams.get(id).is_some() {
            return Ok(false);
        }
        self.ignore_on_closed(id, now_ms)?;
        Ok(true)
    }

    /// A block of a stream that [`Http2Connection::drops_response_block`] has let through.
    pub(super) fn read_response_block<'a>(
        &mut self,
        id: StreamId,
        ends_stream: bool,
        block: &[u8],
        arena: &'a mut HeadArena,
        options: &Http2Options<'_>,
        now_ms: u64,
    ) -> Result<ConnectionEvent<'a>, ConnectionError> {
        let asked = self.streams.get(id).filter(|stream| stream.state.may_receive()).and_then(|stream| stream.asked);
        let Some(method) = asked else {
            return self.read_trailers(id, ends_stream, block, arena, options, now_ms);
        };
        let read = read_response_block(&mut self.decoder, block, options.head_limits, method, ends_stream, arena);
        match read.map_err(lost)? {
            Ok(mut head) => {
                head.head_bytes = block.len();
                if !head.response.status.is_interim() {
                    self.take_answer(id, body_left(head.body, method, head.response.status), ends_stream);
                }
                Ok(ConnectionEvent::Response { stream: id, head, is_whole: ends_stream })
            }
            Err(refusal) => self.end_stream_for(id, StreamFault::protocol(refusal.token), now_ms),
        }
    }

    fn take_answer(&mut self, id: StreamId, body_left: BodyLeft, ends_stream: bool) {
        if let Some(stream) = self.streams.get_mut(id) {
            (stream.asked, stream.body_left) = (None, body_left);
        }
        if ends_stream {
            self.streams.step(id, StreamStep::RemoteEnded);
        }
    }
}

fn body_left(body: ResponseBody, method: Method, status: Status) -> BodyLeft {
    match body {
        ResponseBody::None => BodyLeft::Length(0),
        ResponseBody::Length(length) => BodyLeft::Length(length),
        ResponseBody::Tunnel if method == Method::Connect && status.is_success() => BodyLeft::Tunnel,
        _ => BodyLeft::Unknown,
    }
}

#[cfg(test)]
#[path = "response_blocks_tests.rs"]
mod tests;
