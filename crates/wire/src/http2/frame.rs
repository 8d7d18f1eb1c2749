//! The head of a frame (RFC 9113 §4.1), and what each type of frame demands of it (§6).
//!
//! Everything that can be said from nine bytes is said here: on which stream a frame may come and how long it may be. What
//! its payload does is the business of the connection.

use super::error_code::ConnectionError;
use crate::limits::FRAME_PAYLOAD_BYTES_MAX;

pub const FRAME_HEAD_BYTES: usize = 9;

pub const END_STREAM: u8 = 0x1;
pub const ACK: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
pub const PADDED: u8 = 0x8;
pub const PRIORITY_GIVEN: u8 = 0x20;

/// A stream's number; 0 is the connection itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

impl StreamId {
    pub const CONNECTION: StreamId = StreamId(0);
    pub const MAX: StreamId = StreamId(u32::MAX >> 1);
}

/// RFC 9113 §6, RFC 9218 §7.1. Types that are not known are ignored (§5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameType {
    Data = 0x0,
    Headers = 0x1,
    Priority = 0x2,
    RstStream = 0x3,
    Settings = 0x4,
    PushPromise = 0x5,
    Ping = 0x6,
    GoAway = 0x7,
    WindowUpdate = 0x8,
    Continuation = 0x9,
    PriorityUpdate = 0x10,
    Unknown = 0xff,
}

impl FrameType {
    #[inline]
    fn of_number(number: u8) -> FrameType {
        use FrameType::*;
        const KNOWN: [FrameType; 10] =
            [Data, Headers, Priority, RstStream, Settings, PushPromise, Ping, GoAway, WindowUpdate, Continuation];
        match number {
            0x10 => PriorityUpdate,
            _ => KNOWN.get(usize::from(number)).copied().unwrap_or(Unknown),
        }
    }
}

/// Where a frame may come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Stream,
    Connection,
    Either,
}

/// How long it may be.
#[derive(Clone, Copy)]
enum Size {
    Exactly(usize),
    AtLeast(usize),
    MultipleOf(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    pub frame_type: FrameType,
    pub flags: u8,
    pub stream: StreamId,
    pub payload_bytes: usize,
}

impl FrameHead {
    /// The head at the start of `input`, when it is whole.
    #[inline]
    pub fn read(input: &[u8]) -> Option<FrameHead> {
        let head = input.first_chunk::<FRAME_HEAD_BYTES>()?;
        let [a, b, c, frame_type, flags, s, t, u, v] = *head;
        Some(FrameHead {
            frame_type: FrameType::of_number(frame_type),
            flags,
            // The highest bit is reserved (RFC 9113 §4.1).
            stream: StreamId(u32::from_be_bytes([s, t, u, v]) & StreamId::MAX.0),
            payload_bytes: u32::from_be_bytes([0, a, b, c]) as usize,
        })
    }

    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// What RFC 9113 §6 demands of every frame of this type. A violation ends the connection, also where it would be enough to
    /// end the stream: whoever counts bytes wrongly will do so again.
    #[inline]
    pub fn check(&self) -> Result<(), ConnectionError> {
        if self.payload_bytes > FRAME_PAYLOAD_BYTES_MAX {
            return Err(ConnectionError::frame_size("frame-too-large"));
        }
        let (on, size) = self.demands();
        if (on == On::Stream && self.stream.0 == 0) || (on == On::Connection && self.stream.0 != 0) {
            return Err(ConnectionError::protocol("frame-on-wrong-stream"));
        }
        let fits = match size {
            Size::Exactly(bytes) => self.payload_bytes == bytes,
            Size::AtLeast(bytes) => self.payload_bytes >= bytes,
            Size::MultipleOf(bytes) => self.payload_bytes.is_multiple_of(bytes),
        };
        if fits { Ok(()) } else { Err(ConnectionError::frame_size("frame-size-wrong")) }
    }

    #[inline]
    fn demands(&self) -> (On, Size) {
        let padding = usize::from(self.has(PADDED));
        match self.frame_type {
            FrameType::Data => (On::Stream, Size::AtLeast(padding)),
            FrameType::Headers => {
                let priority = if self.has(PRIORITY_GIVEN) { PRIORITY_BYTES } else { 0 };
                (On::Stream, Size::AtLeast(padding + priority))
            }
            FrameType::Priority => (On::Stream, Size::Exactly(PRIORITY_BYTES)),
            FrameType::RstStream => (On::Stream, Size::Exactly(4)),
            FrameType::Settings if self.has(ACK) => (On::Connection, Size::Exactly(0)),
            FrameType::Settings => (On::Connection, Size::MultipleOf(SETTING_BYTES)),
            FrameType::PushPromise => (On::Stream, Size::AtLeast(padding + 4)),
            FrameType::Ping => (On::Connection, Size::Exactly(PING_BYTES)),
            FrameType::GoAway => (On::Connection, Size::AtLeast(GOAWAY_BYTES)),
            FrameType::WindowUpdate => (On::Either, Size::Exactly(4)),
            FrameType::Continuation => (On::Stream, Size::AtLeast(0)),
            FrameType::PriorityUpdate => (On::Connection, Size::AtLeast(4)),
            FrameType::Unknown => (On::Either, Size::AtLeast(0)),
        }
    }
}

/// A dependency and a weight, which RFC 9113 has withdrawn.
pub const PRIORITY_BYTES: usize = 5;
pub const SETTING_BYTES: usize = 6;
pub const PING_BYTES: usize = 8;
/// Without the debug data.
pub const GOAWAY_BYTES: usize = 8;

/// The head of a frame that we send.
#[inline]
pub fn frame_head(frame_type: FrameType, flags: u8, stream: StreamId, payload_bytes: usize) -> [u8; FRAME_HEAD_BYTES] {
    debug_assert!(payload_bytes < 1 << 24);
    let [_, a, b, c] = (payload_bytes as u32).to_be_bytes();
    let [s, t, u, v] = stream.0.to_be_bytes();
    [a, b, c, frame_type as u8, flags, s, t, u, v]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::ErrorCode;

    #[test]
    fn a_head_comes_back_and_the_reserved_bit_is_ignored() {
        let mut bytes = frame_head(FrameType::Headers, END_STREAM | END_HEADERS, StreamId(5), 70_000);
        bytes[5] |= 0x80;
        let head = FrameHead::read(&bytes).expect("nine bytes");
        assert_eq!((head.frame_type, head.stream, head.payload_bytes), (FrameType::Headers, StreamId(5), 70_000));
        assert!(head.has(END_HEADERS) && !head.has(PADDED));
        assert_eq!(FrameHead::read(&bytes[..8]), None);
    }

    #[test]
    fn types_have_the_numbers_of_the_rfc() {
        for number in 0..=255 {
            let frame_type = FrameType::of_number(number);
            assert!(frame_type as u8 == number || frame_type == FrameType::Unknown);
            assert_eq!(frame_type != FrameType::Unknown, number < 10 || number == 0x10);
        }
    }

    /// bad-inputs G05 to G07, G10, G12.
    #[test]
    fn each_type_has_its_stream_and_its_size() {
        use ErrorCode::{FrameSizeError, ProtocolError};
        use FrameType::*;
        for (frame_type, flags, stream, payload_bytes, expect) in [
            (Data, 0, 1, 16_384, None),
            (Data, 0, 1, 16_385, Some(FrameSizeError)),
            (Data, 0, 0, 1, Some(ProtocolError)),
            (Data, PADDED, 1, 0, Some(FrameSizeError)),
            (Headers, 0, 0, 1, Some(ProtocolError)),
            (Headers, PRIORITY_GIVEN, 1, 4, Some(FrameSizeError)),
            (Headers, PRIORITY_GIVEN | PADDED, 1, 5, Some(FrameSizeError)),
            (Priority, 0, 1, 4, Some(FrameSizeError)),
            (Priority, 0, 0, 5, Some(ProtocolError)),
            (RstStream, 0, 1, 3, Some(FrameSizeError)),
            (RstStream, 0, 0, 4, Some(ProtocolError)),
            (Settings, ACK, 0, 6, Some(FrameSizeError)),
            (Settings, 0, 0, 5, Some(FrameSizeError)),
            (Settings, 0, 1, 6, Some(ProtocolError)),
            (Settings, 0, 0, 0, None),
            (Ping, 0, 0, 6, Some(FrameSizeError)),
            (Ping, 0, 1, 8, Some(ProtocolError)),
            (GoAway, 0, 1, 8, Some(ProtocolError)),
            (GoAway, 0, 0, 7, Some(FrameSizeError)),
            (WindowUpdate, 0, 0, 4, None),
            (WindowUpdate, 0, 1, 3, Some(FrameSizeError)),
            (Continuation, 0, 0, 1, Some(ProtocolError)),
            (PriorityUpdate, 0, 1, 4, Some(ProtocolError)),
            (PriorityUpdate, 0, 0, 3, Some(FrameSizeError)),
            (Unknown, 0xff, 7, 0, None),
            (Unknown, 0, 0, 16_385, Some(FrameSizeError)),
        ] {
            let head = FrameHead { frame_type, flags, stream: StreamId(stream), payload_bytes };
            assert_eq!(head.check().err().map(|error| error.code), expect, "{head:?}");
        }
    }
}
