//! The head of a record, and what numbers mean in it (FastCGI 1.0 §3.3, §8).
//!
//! There is one request at a time on a connection of ours, so it always has the same number. No server that people run takes more.

use crate::{Refusal, refusals};

/// Every record begins with so many bytes.
pub const RECORD_HEAD_BYTES: usize = 8;

/// The most that one record carries: its length has 16 bits.
pub const RECORD_CONTENT_BYTES_MAX: usize = 65_535;

/// The content of END_REQUEST.
pub(super) const END_BYTES: usize = 8;

const VERSION: u8 = 1;
/// The number of our request. That of the connection itself is 0.
const REQUEST_ID: u16 = 1;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordType {
    BeginRequest = 1,
    EndRequest = 3,
    Params = 4,
    Stdin = 5,
    Stdout = 6,
    Stderr = 7,
}

/// What the head of a record says that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceivedRecord {
    pub(super) kind: RecordType,
    pub(super) content_bytes: u16,
    pub(super) padding_bytes: u8,
}

/// The head of a record of our request, without padding. `content_bytes` is at most [`RECORD_CONTENT_BYTES_MAX`].
pub fn record_head(kind: RecordType, content_bytes: usize) -> [u8; RECORD_HEAD_BYTES] {
    debug_assert!(content_bytes <= RECORD_CONTENT_BYTES_MAX);
    let [id_high, id_low] = REQUEST_ID.to_be_bytes();
    let [length_high, length_low] = (content_bytes as u16).to_be_bytes();
    [VERSION, kind as u8, id_high, id_low, length_high, length_low, 0, 0]
}

/// Reads the head of a record of an answer. Whatever is no answer to our request is refused.
pub(super) fn read_record_head(head: [u8; RECORD_HEAD_BYTES]) -> Result<ReceivedRecord, Refusal> {
    let [version, kind, id_high, id_low, length_high, length_low, padding_bytes, _reserved] = head;
    if version != VERSION {
        return Err(refusals::FASTCGI_VERSION_WRONG);
    }
    if u16::from_be_bytes([id_high, id_low]) != REQUEST_ID {
        return Err(refusals::FASTCGI_ID_WRONG);
    }
    let kind = match kind {
        3 => RecordType::EndRequest,
        6 => RecordType::Stdout,
        7 => RecordType::Stderr,
        _ => return Err(refusals::FASTCGI_RECORD_UNEXPECTED),
    };
    let content_bytes = u16::from_be_bytes([length_high, length_low]);
    if kind == RecordType::EndRequest && usize::from(content_bytes) != END_BYTES {
        return Err(refusals::FASTCGI_END_INVALID);
    }
    Ok(ReceivedRecord { kind, content_bytes, padding_bytes })
}
