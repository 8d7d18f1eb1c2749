//! The frames that steer a connection, as they are written (RFC 9113 §6).

use super::error_code::ErrorCode;
use super::frame::{ACK, FrameType, GOAWAY_BYTES, PING_BYTES, SETTING_BYTES, StreamId, frame_head};

/// What a connection's setting is called by number (RFC 9113 §6.5.2, RFC 8441 §3, RFC 9218 §2.1).
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 0x1;
    pub const ENABLE_PUSH: u16 = 0x2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;
    pub const INITIAL_WINDOW_SIZE: u16 = 0x4;
    pub const MAX_FRAME_SIZE: u16 = 0x5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 0x6;
    pub const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
    pub const NO_RFC7540_PRIORITIES: u16 = 0x9;
}

pub fn write_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    let payload_bytes = settings.len() * SETTING_BYTES;
    out.extend_from_slice(&frame_head(FrameType::Settings, 0, StreamId::CONNECTION, payload_bytes));
    for (setting, value) in settings {
        out.extend_from_slice(&setting.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub fn write_settings_ack(out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_head(FrameType::Settings, ACK, StreamId::CONNECTION, 0));
}

pub fn write_ping(opaque: &[u8; PING_BYTES], out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_head(FrameType::Ping, 0, StreamId::CONNECTION, PING_BYTES));
    out.extend_from_slice(opaque);
}

pub fn write_ping_ack(opaque: &[u8; PING_BYTES], out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_head(FrameType::Ping, ACK, StreamId::CONNECTION, PING_BYTES));
    out.extend_from_slice(opaque);
}

pub fn write_window_update(stream: StreamId, bytes: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_head(FrameType::WindowUpdate, 0, stream, 4));
    out.extend_from_slice(&bytes.to_be_bytes());
}

pub fn write_rst_stream(stream: StreamId, code: ErrorCode, out: &mut Vec<u8>) {
    out.extend_from_slice(&frame_head(FrameType::RstStream, 0, stream, 4));
    out.extend_from_slice(&u32::from(code as u8).to_be_bytes());
}

/// `last` is the last stream that was, or may yet be, worked on.
pub fn write_goaway(last: StreamId, code: ErrorCode, debug: &str, out: &mut Vec<u8>) {
    let payload_bytes = GOAWAY_BYTES + debug.len();
    out.extend_from_slice(&frame_head(FrameType::GoAway, 0, StreamId::CONNECTION, payload_bytes));
    out.extend_from_slice(&last.0.to_be_bytes());
    out.extend_from_slice(&u32::from(code as u8).to_be_bytes());
    out.extend_from_slice(debug.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_written_as_the_rfc_lays_them_out() {
        let mut out = Vec::new();
        write_settings(&[(setting::MAX_CONCURRENT_STREAMS, 100)], &mut out);
        write_settings_ack(&mut out);
        write_ping(b"87654321", &mut out);
        write_ping_ack(b"12345678", &mut out);
        write_window_update(StreamId(3), 0x10000, &mut out);
        write_rst_stream(StreamId(3), ErrorCode::Cancel, &mut out);
        write_goaway(StreamId(5), ErrorCode::EnhanceYourCalm, "why", &mut out);
        let expect = [
            &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100][..],
            &[0, 0, 0, 4, 1, 0, 0, 0, 0],
            b"\0\0\x08\x06\0\0\0\0\x0087654321",
            b"\0\0\x08\x06\x01\0\0\0\x0012345678",
            &[0, 0, 4, 8, 0, 0, 0, 0, 3, 0, 1, 0, 0],
            &[0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8],
            b"\0\0\x0b\x07\0\0\0\0\0\0\0\0\x05\0\0\0\x0bwhy",
        ];
        assert_eq!(out, expect.concat());
    }
}
