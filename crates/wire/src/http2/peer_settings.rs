//! What the peer has said of itself in SETTINGS (RFC 9113 §6.5), as far as it binds us.

use super::control_frames::setting;
use super::error_code::ConnectionError;
use super::frame::SETTING_BYTES;
use crate::limits::{FRAME_PAYLOAD_BYTES_MIN, HPACK_TABLE_BYTES_MAX};

#[derive(Clone, Copy, Debug)]
pub struct PeerSettings {
    /// What each of its streams lets us send at first; more than 2^31 − 1 no window may be (RFC 9113 §6.9.1).
    pub initial_window: i32,
    pub frame_payload_bytes_max: u32,
    /// It gives our encoder less than HPACK's default, so the next block must begin by saying that we use none
    /// (RFC 7541 §4.2).
    pub owes_size_update: bool,
    /// It may be asked with extended CONNECT (RFC 8441 §3); said by servers.
    pub extended_connect: bool,
    /// Said by servers; `None` as long as they have not.
    pub streams_max: Option<u32>,
    /// It has sent GOAWAY.
    pub has_gone_away: bool,
    /// Its first SETTINGS have come.
    pub has_spoken: bool,
    /// The shortest frames that it may ask for.
    pub frame_payload_bytes_min: u32,
}

impl PeerSettings {
    /// What holds until a peer says otherwise.
    pub const DEFAULT: PeerSettings = PeerSettings {
        initial_window: 65_535,
        frame_payload_bytes_max: 16_384,
        owes_size_update: false,
        extended_connect: false,
        streams_max: None,
        has_gone_away: false,
        has_spoken: false,
        frame_payload_bytes_min: FRAME_PAYLOAD_BYTES_MIN,
    };

    /// Takes the payload of one SETTINGS frame, in order.
    pub fn take(&mut self, payload: &[u8], peer_is_server: bool) -> Result<(), ConnectionError> {
        self.has_spoken = true;
        for entry in payload.chunks_exact(SETTING_BYTES) {
            let [a, b, v @ ..] = entry else { continue };
            let value = v.first_chunk::<4>().map_or(0, |value| u32::from_be_bytes(*value));
            self.take_one(u16::from_be_bytes([*a, *b]), value, peer_is_server)?;
        }
        Ok(())
    }

    fn take_one(&mut self, number: u16, value: u32, peer_is_server: bool) -> Result<(), ConnectionError> {
        match number {
            // What we send needs no table, so what a peer offers is never used up (RFC 7541 §4.2).
            setting::HEADER_TABLE_SIZE => self.owes_size_update |= (value as usize) < HPACK_TABLE_BYTES_MAX,
            setting::ENABLE_PUSH if value > 1 || (peer_is_server && value == 1) => {
                return Err(ConnectionError::protocol("setting-enable-push"));
            }
            setting::MAX_CONCURRENT_STREAMS => self.streams_max = Some(value),
            setting::INITIAL_WINDOW_SIZE => {
                let window = i32::try_from(value);
                self.initial_window = window.map_err(|_| ConnectionError::flow_control("setting-initial-window"))?;
            }
            setting::MAX_FRAME_SIZE if !(self.frame_payload_bytes_min..1 << 24).contains(&value) => {
                return Err(ConnectionError::protocol("setting-frame-size"));
            }
            setting::MAX_FRAME_SIZE => self.frame_payload_bytes_max = value,
            // RFC 8441 §3: once said, it stays.
            setting::ENABLE_CONNECT_PROTOCOL if value > 1 || (self.extended_connect && value == 0) => {
                return Err(ConnectionError::protocol("setting-enable-connect-protocol"));
            }
            setting::ENABLE_CONNECT_PROTOCOL => self.extended_connect = value == 1,
            setting::NO_RFC7540_PRIORITIES if value > 1 => {
                return Err(ConnectionError::protocol("setting-no-rfc7540-priorities"));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::ErrorCode;
    use crate::limits::UNCHECKED_FRAME_PAYLOAD_BYTES_MIN;

    fn check(number: u16, value: u32, peer_is_server: bool, expect: Option<ErrorCode>) {
        let payload = [&number.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let mut settings = PeerSettings::DEFAULT;
        let taken = settings.take(&payload, peer_is_server);
        assert_eq!(taken.err().map(|error| error.code), expect, "{number} {value}");
    }

    /// bad-inputs G06.
    #[test]
    fn values_have_their_bounds() {
        use ErrorCode::{FlowControlError, ProtocolError};
        check(setting::ENABLE_PUSH, 2, false, Some(ProtocolError));
        check(setting::ENABLE_PUSH, 1, true, Some(ProtocolError));
        check(setting::ENABLE_PUSH, 1, false, None);
        check(setting::INITIAL_WINDOW_SIZE, 1 << 31, false, Some(FlowControlError));
        check(setting::INITIAL_WINDOW_SIZE, (1 << 31) - 1, false, None);
        check(setting::MAX_FRAME_SIZE, 1, false, Some(ProtocolError));
        check(setting::MAX_FRAME_SIZE, 1 << 24, false, Some(ProtocolError));
        check(setting::MAX_FRAME_SIZE, (1 << 24) - 1, false, None);
        check(setting::ENABLE_CONNECT_PROTOCOL, 2, true, Some(ProtocolError));
        check(setting::NO_RFC7540_PRIORITIES, 2, false, Some(ProtocolError));
        check(0xbeef, u32::MAX, false, None);
    }

    #[test]
    fn shorter_frames_may_be_asked_for_where_that_is_not_looked_at() {
        let frame_payload_bytes_min = UNCHECKED_FRAME_PAYLOAD_BYTES_MIN;
        let mut settings = PeerSettings { frame_payload_bytes_min, ..PeerSettings::DEFAULT };
        let mut ask = |bytes: u8| settings.take(&[0, 5, 0, 0, 0, bytes], false);
        assert!(ask(15).is_err() && ask(16).is_ok());
        assert_eq!(settings.frame_payload_bytes_max, 16);
    }

    /// bad-inputs G39.
    #[test]
    fn a_table_that_shrinks_is_answered_once_and_one_that_grows_never() {
        let mut settings = PeerSettings::DEFAULT;
        settings.take(&[0, 1, 0xff, 0xff, 0xff, 0xff], false).expect("any size");
        assert!(!settings.owes_size_update);
        settings.take(&[0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0x10, 0], false).expect("any size");
        assert!(settings.owes_size_update, "the smallest that it was counts");
    }
}
