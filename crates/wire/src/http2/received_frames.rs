//! What each frame of a peer does to its connection (RFC 9113 §6).
//!
//! The loop is [`Http2Connection::read_steps`]: one step for a frame, or for a piece of a DATA frame. A step says how much it
//! consumed and what is to be told; a header block is read last, because its event borrows the arena.

use std::ops::Range;

use super::control_frames::{write_ping_ack, write_rst_stream, write_settings_ack};
use super::error_code::{ConnectionError, ErrorCode};
use super::flood_score::FloodKind;
use super::flow_control::WindowOverflow;
use super::frame::{
    ACK, END_HEADERS, END_STREAM, FRAME_HEAD_BYTES, FrameHead, FrameType, GOAWAY_BYTES, PADDED, PING_BYTES, StreamId,
};
use super::header_fragments::{HeaderFragments, check_dependency, fragment_of};
use super::http2_connection::{
    Awaited, ConnectionEvent, Http2Connection, Http2Options, Leaving, PREFACE, Received, Role, UnreadData,
    write_wider_window,
};
use super::open_streams::{BodyLeft, StreamFault};
use super::priority::Priority;
use super::request_fields::HeadArena;
use super::stream_states::StreamStep;
use crate::head_lines::offset;
use crate::limits::DATA_BYTES_FAIR;

/// What was made of the next bytes.
enum Step {
    /// More are needed.
    More,
    /// So many are consumed, and there is nothing to tell.
    Done(usize),
    Told(usize, ConnectionEvent<'static>),
    /// A header block is whole.
    Block(usize, WholeBlock),
}

/// Where a header block lies.
enum WholeBlock {
    InPlace { stream: StreamId, ends_stream: bool, range: Range<usize> },
    Collected(Box<HeaderFragments>),
}

impl Http2Connection {
    pub(super) fn read_steps<'a>(
        &mut self,
        input: &[u8],
        arena: &'a mut HeadArena,
        options: &Http2Options<'_>,
        now_ms: u64,
    ) -> Result<Received<'a>, ConnectionError> {
        let mut consumed = 0;
        loop {
            let unread = &input[consumed..];
            match self.read_step(unread, options, now_ms)? {
                Step::More => return Ok(Received { consumed, event: None }),
                Step::Done(bytes) => consumed += bytes,
                Step::Told(bytes, mut event) => {
                    if let ConnectionEvent::Data { range, .. } = &mut event {
                        *range = consumed + range.start..consumed + range.end;
                    }
                    return Ok(Received { consumed: consumed + bytes, event: Some(event) });
                }
                Step::Block(bytes, block) => {
                    consumed += bytes;
                    let (stream, ends_stream, block) = match &block {
                        WholeBlock::InPlace { stream, ends_stream, range } => {
                            (*stream, *ends_stream, &unread[range.clone()])
                        }
                        WholeBlock::Collected(whole) => (whole.stream, whole.ends_stream, &whole.block[..]),
                    };
                    let is_dropped = match self.role {
                        Role::Server => self.drops_request_block(stream, options, now_ms)?,
                        Role::Client => self.drops_response_block(stream, now_ms)?,
                    };
                    if is_dropped {
                        self.drop_block(block, arena)?;
                        self.pay_for_lines(now_ms)?;
                        continue;
                    }
                    let event = match self.role {
                        Role::Server => self.read_request_block(stream, ends_stream, block, arena, options, now_ms)?,
                        Role::Client => self.read_response_block(stream, ends_stream, block, arena, options, now_ms)?,
                    };
                    self.pay_for_lines(now_ms)?;
                    return Ok(Received { consumed, event: Some(event) });
                }
            }
        }
    }

    /// RFC 9113 §10.5.1: what is over the limits of a head is decoded all the same, so that the table follows.
    #[inline]
    fn pay_for_lines(&mut self, now_ms: u64) -> Result<(), ConnectionError> {
        match self.decoder.take_lines_over() {
            0 => Ok(()),
            lines => self.floods.spend(FloodKind::LinesOver, lines, now_ms),
        }
    }

    #[inline]
    fn read_step(&mut self, unread: &[u8], options: &Http2Options<'_>, now_ms: u64) -> Result<Step, ConnectionError> {
        match self.awaited {
            Awaited::Head => self.read_frame(unread, now_ms),
            Awaited::Data(data) => Ok(self.read_data(data, unread)),
            Awaited::Skipped { left } => {
                let bytes = unread.len().min(left as usize);
                self.skip(left as usize - bytes);
                Ok(if bytes == 0 && left > 0 { Step::More } else { Step::Done(bytes) })
            }
            Awaited::Preface { matched } => self.read_preface(usize::from(matched), unread),
            Awaited::FirstHead => self.read_first_head(unread, options),
        }
    }

    /// RFC 9113 §3.4.
    fn read_preface(&mut self, matched: usize, unread: &[u8]) -> Result<Step, ConnectionError> {
        let bytes = unread.len().min(PREFACE.len() - matched);
        if unread[..bytes] != PREFACE[matched..matched + bytes] {
            return Err(ConnectionError::protocol("preface-invalid"));
        }
        if bytes == 0 {
            return Ok(Step::More);
        }
        self.awaited = match matched + bytes {
            all if all == PREFACE.len() => Awaited::FirstHead,
            part => Awaited::Preface { matched: part as u8 },
        };
        Ok(Step::Done(bytes))
    }

    /// Who leaves his settings as they are by default may say nothing of them, where heads are read leniently.
    fn read_first_head(&mut self, unread: &[u8], options: &Http2Options<'_>) -> Result<Step, ConnectionError> {
        let Some(head) = FrameHead::read(unread) else { return Ok(Step::More) };
        let says_settings = head.frame_type == FrameType::Settings && !head.has(ACK);
        if !says_settings && !options.head_limits.lenient {
            return Err(ConnectionError::protocol("settings-missing"));
        }
        self.awaited = Awaited::Head;
        Ok(Step::Done(0))
    }

    #[inline]
    fn read_frame(&mut self, unread: &[u8], now_ms: u64) -> Result<Step, ConnectionError> {
        let Some(head) = FrameHead::read(unread) else { return Ok(Step::More) };
        head.check()?;
        if let Some(fragments) = &self.fragments
            && (head.frame_type != FrameType::Continuation || head.stream != fragments.stream)
        {
            return Err(ConnectionError::protocol("header-block-interrupted"));
        }
        let behind = &unread[FRAME_HEAD_BYTES..];
        match head.frame_type {
            FrameType::Data => return self.begin_data(&head, behind, now_ms),
            FrameType::GoAway => return Ok(self.take_goaway(&head, behind)),
            FrameType::Unknown => {
                self.floods.spend(FloodKind::Ignored, 1, now_ms)?;
                self.skip(head.payload_bytes);
                return Ok(Step::Done(FRAME_HEAD_BYTES));
            }
            FrameType::PushPromise => return Err(ConnectionError::protocol("push-unasked")),
            _ => {}
        }
        let Some(payload) = behind.get(..head.payload_bytes) else { return Ok(Step::More) };
        let event = match head.frame_type {
            FrameType::Headers => return self.take_headers(&head, payload),
            FrameType::Continuation => return self.take_continuation(&head, payload, now_ms),
            FrameType::Settings => self.take_settings(&head, payload, now_ms)?,
            FrameType::Ping => self.take_ping(&head, payload, now_ms)?,
            FrameType::WindowUpdate => self.take_window_update(&head, payload, now_ms)?,
            FrameType::RstStream => self.take_reset(&head, payload, now_ms)?,
            FrameType::PriorityUpdate => self.take_priority_update(payload, now_ms)?,
            _ => {
                self.floods.spend(FloodKind::Priority, 1, now_ms)?;
                if head.stream.0.is_multiple_of(2) {
                    return Err(ConnectionError::protocol("stream-number-even"));
                }
                check_dependency(head.stream, payload)?;
                None
            }
        };
        let bytes = FRAME_HEAD_BYTES + head.payload_bytes;
        Ok(event.map_or(Step::Done(bytes), |event| Step::Told(bytes, event)))
    }

    fn skip(&mut self, bytes: usize) {
        self.awaited = if bytes == 0 { Awaited::Head } else { Awaited::Skipped { left: bytes as u32 } };
    }

    /// Numbers of a client are odd (RFC 9113 §5.1.1), and what it has not used is idle.
    pub(super) fn is_idle_stream(&self, stream: StreamId) -> bool {
        stream > self.last_stream || stream.0.is_multiple_of(2)
    }

    /// May frames for this stream, which is closed, have been sent before its peer knew?
    pub(super) fn may_be_on_its_way(&self, stream: StreamId) -> bool {
        let is_beyond = matches!(self.leaving, Leaving::After(last) if stream > last);
        is_beyond || self.streams.may_have_been_reset(stream)
    }

    /// A frame for a stream that is closed. When it was on its way before we reset the stream it is ignored, and paid for.
    pub(super) fn ignore_on_closed(&mut self, stream: StreamId, now_ms: u64) -> Result<(), ConnectionError> {
        if self.may_be_on_its_way(stream) {
            return self.floods.spend(FloodKind::Ignored, 1, now_ms);
        }
        Err(ConnectionError { code: ErrorCode::StreamClosed, token: "frame-on-closed-stream" })
    }

    /// The peer's mistake ends its stream.
    pub(super) fn end_stream_for(
        &mut self,
        stream: StreamId,
        fault: StreamFault,
        now_ms: u64,
    ) -> Result<ConnectionEvent<'static>, ConnectionError> {
        self.floods.spend(FloodKind::ForcedReset, 1, now_ms)?;
        self.queue(|out| write_rst_stream(stream, fault.code, out))?;
        self.streams.step(stream, StreamStep::Reset);
        self.streams.remember_reset(stream);
        Ok(ConnectionEvent::StreamEnded { stream, code: fault.code, token: fault.token })
    }

    /// RFC 9113 §6.1: everything that can be said of a DATA frame before its bytes come.
    #[inline]
    fn begin_data(&mut self, head: &FrameHead, behind: &[u8], now_ms: u64) -> Result<Step, ConnectionError> {
        let (length_byte, padding) = match (head.has(PADDED), behind.first()) {
            (false, _) => (0, 0),
            (true, Some(padding)) => (1, *padding),
            (true, None) => return Ok(Step::More),
        };
        let overhead = length_byte + usize::from(padding);
        let left = head.payload_bytes.checked_sub(overhead).ok_or(ConnectionError::protocol("padding-too-long"))?;
        if self.receive_window.spend(head.payload_bytes).is_err() {
            return Err(ConnectionError::flow_control("connection-window-exceeded"));
        }
        if std::mem::take(&mut self.owes_window) {
            self.queue_unasked(write_wider_window);
        }
        let ends_stream = head.has(END_STREAM);
        if let Err(fault) = self.admit_data(head, left, ends_stream, now_ms)? {
            self.release(StreamId::CONNECTION, head.payload_bytes);
            self.skip(head.payload_bytes);
            let Some(fault) = fault else { return Ok(Step::Done(FRAME_HEAD_BYTES)) };
            return Ok(Step::Told(FRAME_HEAD_BYTES, self.end_stream_for(head.stream, fault, now_ms)?));
        }
        // Nobody reads the padding.
        if overhead > 0 {
            self.release(head.stream, overhead);
        }
        let left = left as u32;
        self.awaited = Awaited::Data(UnreadData { stream: head.stream, left, padding, ends_stream });
        Ok(Step::Done(FRAME_HEAD_BYTES + length_byte))
    }

    /// May this frame come, of which `bytes` are not padding? If not it is skipped; `Some` fault ends its stream.
    #[inline]
    fn admit_data(
        &mut self,
        head: &FrameHead,
        bytes: usize,
        ends_stream: bool,
        now_ms: u64,
    ) -> Result<Result<(), Option<StreamFault>>, ConnectionError> {
        let Some(stream) = self.streams.get_mut(head.stream) else {
            if self.is_idle_stream(head.stream) {
                return Err(ConnectionError::protocol("data-on-idle-stream"));
            }
            self.ignore_on_closed(head.stream, now_ms)?;
            return Ok(Err(None));
        };
        if !stream.state.may_receive() {
            return Ok(Err(Some(StreamFault::closed("data-behind-end"))));
        }
        if stream.asked.is_some() {
            return Ok(Err(Some(StreamFault::protocol("data-before-response"))));
        }
        if stream.receive_window.spend(head.payload_bytes).is_err() {
            return Ok(Err(Some(StreamFault::flow_control("stream-window-exceeded"))));
        }
        if stream.body_left.take(bytes, ends_stream).is_err() {
            return Ok(Err(Some(StreamFault::protocol("content-length-untrue"))));
        }
        // What is said through a tunnel is said in small pieces, and forwarded; and so are the events of an origin, of which we have
        // asked for many streams.
        let is_forwarded = bytes > 0 && (stream.body_left == BodyLeft::Tunnel || self.role == Role::Client);
        if bytes < DATA_BYTES_FAIR && !ends_stream && !is_forwarded {
            self.floods.spend(FloodKind::SmallData, (DATA_BYTES_FAIR - bytes) as u32, now_ms)?;
        } else {
            self.floods.earn(FloodKind::SmallData, bytes.saturating_sub(DATA_BYTES_FAIR) as u32);
        }
        Ok(Ok(()))
    }

    #[inline]
    fn read_data(&mut self, data: UnreadData, unread: &[u8]) -> Step {
        let bytes = unread.len().min(data.left as usize);
        if bytes == 0 && data.left > 0 {
            return Step::More;
        }
        let left = data.left - bytes as u32;
        let is_last = left == 0 && data.ends_stream;
        match left {
            0 => self.skip(usize::from(data.padding)),
            _ => self.awaited = Awaited::Data(UnreadData { left, ..data }),
        }
        // It was reset while its frame came.
        if self.streams.get(data.stream).is_none() {
            self.release(StreamId::CONNECTION, bytes);
            return Step::Done(bytes);
        }
        if is_last {
            self.streams.step(data.stream, StreamStep::RemoteEnded);
        } else if bytes == 0 {
            return Step::Done(0);
        }
        Step::Told(bytes, ConnectionEvent::Data { stream: data.stream, range: 0..bytes, is_last })
    }

    /// RFC 9113 §6.2. What becomes of the block is decided when it is whole.
    #[inline]
    fn take_headers(&mut self, head: &FrameHead, payload: &[u8]) -> Result<Step, ConnectionError> {
        if head.stream.0.is_multiple_of(2) {
            return Err(ConnectionError::protocol("stream-number-even"));
        }
        let fragment = fragment_of(head, payload)?;
        let bytes = FRAME_HEAD_BYTES + head.payload_bytes;
        if !head.has(END_HEADERS) {
            self.fragments = Some(Box::new(HeaderFragments::begin(head, fragment)));
            return Ok(Step::Done(bytes));
        }
        let from = FRAME_HEAD_BYTES + offset(payload, fragment);
        let range = from..from + fragment.len();
        Ok(Step::Block(bytes, WholeBlock::InPlace { stream: head.stream, ends_stream: head.has(END_STREAM), range }))
    }

    /// RFC 9113 §6.10.
    fn take_continuation(&mut self, head: &FrameHead, payload: &[u8], now_ms: u64) -> Result<Step, ConnectionError> {
        let Some(fragments) = &mut self.fragments else {
            return Err(ConnectionError::protocol("continuation-without-headers"));
        };
        self.floods.spend(FloodKind::Continuation, 1, now_ms)?;
        let bytes = FRAME_HEAD_BYTES + payload.len();
        let is_whole = fragments.go_on(head, payload)?;
        match self.fragments.take_if(|_| is_whole) {
            Some(whole) => Ok(Step::Block(bytes, WholeBlock::Collected(whole))),
            None => Ok(Step::Done(bytes)),
        }
    }

    /// RFC 9113 §6.5.
    fn take_settings(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<ConnectionEvent<'static>>, ConnectionError> {
        self.floods.spend(FloodKind::Settings, 1, now_ms)?;
        if head.has(ACK) {
            return Ok(None);
        }
        let window_before = self.peer.initial_window;
        self.peer.take(payload, self.role == Role::Client)?;
        self.queue(write_settings_ack)?;
        let by = i64::from(self.peer.initial_window) - i64::from(window_before);
        for stream in self.streams.iter_mut() {
            let shifted = stream.send_window.shift(by);
            shifted.map_err(|WindowOverflow| ConnectionError::flow_control("stream-window-overflow"))?;
        }
        let has_opened = by > 0 && self.streams.count() > 0;
        Ok(has_opened.then_some(ConnectionEvent::WindowOpened { stream: None }))
    }

    /// RFC 9113 §6.7.
    fn take_ping(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<ConnectionEvent<'static>>, ConnectionError> {
        self.floods.spend(FloodKind::Ping, 1, now_ms)?;
        if let (false, Some(opaque)) = (head.has(ACK), payload.first_chunk::<PING_BYTES>()) {
            self.queue(|out| write_ping_ack(opaque, out))?;
        }
        Ok(None)
    }

    /// RFC 9113 §6.9.
    fn take_window_update(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<ConnectionEvent<'static>>, ConnectionError> {
        self.floods.spend(FloodKind::WindowUpdate, 1, now_ms)?;
        let by = number(payload) & StreamId::MAX.0;
        if head.stream == StreamId::CONNECTION {
            if by == 0 {
                return Err(ConnectionError::protocol("window-update-of-nothing"));
            }
            let shifted = self.send_window.shift(i64::from(by));
            shifted.map_err(|WindowOverflow| ConnectionError::flow_control("connection-window-overflow"))?;
            return Ok(Some(ConnectionEvent::WindowOpened { stream: None }));
        }
        if self.is_idle_stream(head.stream) {
            return Err(ConnectionError::protocol("window-update-on-idle-stream"));
        }
        let Some(stream) = self.streams.get_mut(head.stream) else { return Ok(None) };
        let fault = match stream.send_window.shift(i64::from(by)) {
            _ if by == 0 => StreamFault::protocol("window-update-of-nothing"),
            Ok(()) => return Ok(Some(ConnectionEvent::WindowOpened { stream: Some(head.stream) })),
            Err(WindowOverflow) => StreamFault::flow_control("stream-window-overflow"),
        };
        self.end_stream_for(head.stream, fault, now_ms).map(Some)
    }

    /// RFC 9113 §6.4. A request that is not answered is paid for: it may have cost an origin much.
    fn take_reset(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<ConnectionEvent<'static>>, ConnectionError> {
        if self.is_idle_stream(head.stream) {
            return Err(ConnectionError::protocol("reset-on-idle-stream"));
        }
        if !self.streams.step(head.stream, StreamStep::Reset) {
            self.floods.spend(FloodKind::Ignored, 1, now_ms)?;
            return Ok(None);
        }
        self.floods.spend(FloodKind::PeerReset, 1, now_ms)?;
        let code = ErrorCode::of_number(number(payload));
        Ok(Some(ConnectionEvent::StreamEnded { stream: head.stream, code, token: "reset-by-peer" }))
    }

    /// RFC 9218 §7.1. Of streams that are not open yet one is remembered.
    fn take_priority_update(
        &mut self,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<ConnectionEvent<'static>>, ConnectionError> {
        self.floods.spend(FloodKind::Priority, 1, now_ms)?;
        let id = StreamId(number(payload) & StreamId::MAX.0);
        if id.0.is_multiple_of(2) || self.role == Role::Client {
            return Err(ConnectionError::protocol("priority-update-on-wrong-stream"));
        }
        let priority = Priority::parse(payload.get(4..).unwrap_or_default());
        if let Some(stream) = self.streams.get_mut(id) {
            stream.priority = priority;
        } else if self.is_idle_stream(id) {
            self.early_priority = Some((id, priority));
        }
        Ok(None)
    }

    /// RFC 9113 §6.8. Its debug data is skipped.
    fn take_goaway(&mut self, head: &FrameHead, behind: &[u8]) -> Step {
        let Some(payload) = behind.get(..GOAWAY_BYTES) else { return Step::More };
        self.skip(head.payload_bytes - GOAWAY_BYTES);
        let last = StreamId(number(payload) & StreamId::MAX.0);
        let code = ErrorCode::of_number(number(&payload[4..]));
        if self.role == Role::Client {
            self.peer.has_gone_away = true;
            self.streams.end_beyond(last);
        }
        Step::Told(FRAME_HEAD_BYTES + GOAWAY_BYTES, ConnectionEvent::GoneAway { last, code })
    }
}

/// The number that a payload begins with.
fn number(payload: &[u8]) -> u32 {
    payload.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
#[path = "received_frames_tests.rs"]
mod tests;
