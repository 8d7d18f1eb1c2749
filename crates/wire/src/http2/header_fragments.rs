//! A header block that came in pieces (RFC 9113 §4.3): HEADERS without END_HEADERS, and the CONTINUATION frames behind it.
//!
//! Only such a block is copied; one that comes in one frame is decoded where it lies. How many pieces there may be, and how
//! much they may come to, is bounded before anything is decoded.

use super::error_code::ConnectionError;
use super::frame::{END_HEADERS, END_STREAM, FrameHead, PADDED, PRIORITY_BYTES, PRIORITY_GIVEN, StreamId};
use crate::limits::{HEADER_BLOCK_BYTES_MAX, HEADER_BLOCK_CONTINUATIONS_MAX};

/// The fragment in a HEADERS frame's payload, without padding and priority.
pub fn fragment_of<'p>(head: &FrameHead, payload: &'p [u8]) -> Result<&'p [u8], ConnectionError> {
    let mut fragment = payload;
    if head.has(PADDED) {
        let (padding, rest) = payload.split_first().ok_or(ConnectionError::frame_size("frame-size-wrong"))?;
        let kept = rest.len().checked_sub(usize::from(*padding));
        fragment = &rest[..kept.ok_or(ConnectionError::protocol("padding-too-long"))?];
    }
    if head.has(PRIORITY_GIVEN) {
        let (priority, rest) =
            fragment.split_at_checked(PRIORITY_BYTES).ok_or(ConnectionError::frame_size("frame-size-wrong"))?;
        check_dependency(head.stream, priority)?;
        fragment = rest;
    }
    Ok(fragment)
}

/// A stream that depends on itself; the rest of these priorities means nothing any more (RFC 9113 §5.3.2).
pub fn check_dependency(stream: StreamId, priority: &[u8]) -> Result<(), ConnectionError> {
    let dependency = priority.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes) & StreamId::MAX.0);
    if dependency == Some(stream.0) { Err(ConnectionError::protocol("priority-on-itself")) } else { Ok(()) }
}

/// A block whose end has not come.
#[derive(Debug)]
pub struct HeaderFragments {
    pub stream: StreamId,
    pub ends_stream: bool,
    pub block: Vec<u8>,
    continuations_count: u32,
}

impl HeaderFragments {
    /// `head` is that of HEADERS without END_HEADERS.
    pub fn begin(head: &FrameHead, fragment: &[u8]) -> HeaderFragments {
        HeaderFragments {
            stream: head.stream,
            ends_stream: head.has(END_STREAM),
            block: fragment.to_vec(),
            continuations_count: 0,
        }
    }

    /// Takes the payload of CONTINUATION; is the block whole?
    pub fn go_on(&mut self, head: &FrameHead, payload: &[u8]) -> Result<bool, ConnectionError> {
        self.continuations_count += 1;
        if self.continuations_count > HEADER_BLOCK_CONTINUATIONS_MAX
            || self.block.len() + payload.len() > HEADER_BLOCK_BYTES_MAX
        {
            return Err(ConnectionError::calm("header-block-too-large"));
        }
        self.block.extend_from_slice(payload);
        Ok(head.has(END_HEADERS))
    }
}
