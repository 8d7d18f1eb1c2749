//! What became of an answer.

/// How the sending ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// To the last byte.
    Sent,
    /// The client is gone.
    ClientLeft,
    /// The client took nothing for `limits.send_timeout`, or too little.
    ClientSlow,
    /// The client took nothing while memory was needed.
    MemoryNeeded,
    /// What was promised did not arrive; the token says why.
    Cut(&'static str),
    /// A tunnel has ended.
    TunnelClosed,
    /// There is no answer to a request with such a body; the token says why.
    Unanswered(&'static str),
}

/// What the log says of a body that is not in the coding that its head names, or not as long as it says itself.
pub(crate) const BODY_UNREADABLE: &str = "body-coding";
/// The same of one with something behind its end.
pub(crate) const BODY_HAS_MORE: &str = "body-coding-junk";

/// Does it say that a body is not in its coding?
pub(crate) fn is_of_coding(token: &str) -> bool {
    [BODY_UNREADABLE, BODY_HAS_MORE].contains(&token)
}

/// What became of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendOutcome {
    pub(crate) end: End,
    pub(crate) head_bytes: u64,
    /// Of the body, without what frames it. Of an answer whose client has left a little less: what frames the rest of the queue is taken
    /// off, too.
    pub(crate) body_bytes: u64,
    /// May the client ask again the same way, as far as the answer goes?
    pub(crate) persistent: bool,
}

impl SendOutcome {
    pub(crate) const NOTHING: SendOutcome =
        SendOutcome { end: End::Sent, head_bytes: 0, body_bytes: 0, persistent: true };
}
