//! An answer on its way out, as every protocol gets it: a head, what is known of the content, and the body.

use wire::Content;

use crate::answer_head::AnswerHead;
use crate::body::Body;

/// An answer on its way out.
pub(crate) struct Outgoing {
    pub(crate) head: OutgoingHead,
    pub(crate) body: Body,
}

/// What of its head is still to go out.
pub(crate) enum OutgoingHead {
    Whole {
        head: AnswerHead,
        content: Content,
        /// False to HEAD, and where the status has no content.
        sends_content: bool,
    },
    /// What the client was answered with at once and did not take: the rest of its head, in the form of its protocol, and `left` bytes of
    /// the body. So many bytes of both have gone.
    Begun { rest: Vec<u8>, head_bytes_sent: u64, body_bytes_sent: u64, left: u64 },
}

impl Outgoing {
    /// An answer whose body goes out.
    pub(crate) fn new(head: AnswerHead, content: Content, body: impl Into<Body>) -> Outgoing {
        Outgoing { head: OutgoingHead::Whole { head, content, sends_content: true }, body: body.into() }
    }

    /// The same head, and no body behind it.
    pub(crate) fn without_body(head: AnswerHead, content: Content) -> Outgoing {
        Outgoing { head: OutgoingHead::Whole { head, content, sends_content: false }, body: Body::empty() }
    }
}
