//! Why a stream or a connection ended: the codes of RFC 9113 §7, and the error that ends a connection.

use super::flood_score::FloodKind;

/// RFC 9113 §7; a code that is not defined there counts as INTERNAL_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorCode {
    NoError,
    ProtocolError,
    InternalError,
    FlowControlError,
    SettingsTimeout,
    StreamClosed,
    FrameSizeError,
    RefusedStream,
    Cancel,
    CompressionError,
    ConnectError,
    EnhanceYourCalm,
    InadequateSecurity,
    Http11Required,
}

const CODES: [ErrorCode; 14] = {
    use ErrorCode::*;
    [
        NoError,
        ProtocolError,
        InternalError,
        FlowControlError,
        SettingsTimeout,
        StreamClosed,
        FrameSizeError,
        RefusedStream,
        Cancel,
        CompressionError,
        ConnectError,
        EnhanceYourCalm,
        InadequateSecurity,
        Http11Required,
    ]
};

impl ErrorCode {
    pub fn of_number(number: u32) -> ErrorCode {
        let known = usize::try_from(number).ok().and_then(|place| CODES.get(place));
        known.copied().unwrap_or(ErrorCode::InternalError)
    }

    /// Was the request not worked on, so that any request may be sent again (RFC 9113 §8.7)?
    pub fn says_unprocessed(self) -> bool {
        self == ErrorCode::RefusedStream
    }
}

/// The connection is over. A GOAWAY that says so has been queued; when it is written, the socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    pub code: ErrorCode,
    /// For the log, and for the peer in GOAWAY's debug data. Stable.
    pub token: &'static str,
}

impl ConnectionError {
    /// Did streams end too soon and too often, by the peer's resets or by its mistakes?
    pub fn is_rapid_reset(&self) -> bool {
        [FloodKind::PeerReset, FloodKind::ForcedReset].iter().any(|kind| kind.token() == self.token)
    }

    pub(crate) const fn protocol(token: &'static str) -> ConnectionError {
        ConnectionError { code: ErrorCode::ProtocolError, token }
    }

    pub(crate) const fn frame_size(token: &'static str) -> ConnectionError {
        ConnectionError { code: ErrorCode::FrameSizeError, token }
    }

    pub(crate) const fn flow_control(token: &'static str) -> ConnectionError {
        ConnectionError { code: ErrorCode::FlowControlError, token }
    }

    pub(crate) const fn calm(token: &'static str) -> ConnectionError {
        ConnectionError { code: ErrorCode::EnhanceYourCalm, token }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_numbers_of_the_rfc() {
        for (number, code) in CODES.iter().enumerate() {
            assert_eq!((ErrorCode::of_number(number as u32), *code as usize), (*code, number));
        }
        assert_eq!(ErrorCode::Http11Required as u8, 0xd);
        assert_eq!(ErrorCode::of_number(0xdead_beef), ErrorCode::InternalError);
    }
}
