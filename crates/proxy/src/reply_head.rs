//! The head of an origin's answer, as it is read of whatever protocol the origin speaks.

use message::ResponseHead;
use wire::{ReceivedResponse, ResponseBody};

/// Room for what we say of an answer: Via, Age, Cache-Status, Date.
pub(crate) const OUR_LINES: usize = 4;
pub(crate) const OUR_BYTES: usize = 160;

/// One answer's head, an interim one or the final one.
#[derive(Debug)]
pub(crate) struct ReplyHead {
    pub(crate) head: ResponseHead,
    pub(crate) body: ResponseBody,
    /// May another request follow on the connection?
    pub(crate) persistent: bool,
    /// As it came.
    pub(crate) head_bytes: usize,
}

impl From<ReceivedResponse<'_>> for ReplyHead {
    /// A copy, with room for what is added of ours.
    fn from(received: ReceivedResponse<'_>) -> ReplyHead {
        let ReceivedResponse { response, body, persistent, head_bytes } = received;
        ReplyHead { head: response.to_head_with_room(OUR_LINES, OUR_BYTES), body, persistent, head_bytes }
    }
}
