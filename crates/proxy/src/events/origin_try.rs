//! A try to be answered by an origin: where, how long each part of it took, and what came of it.

use std::sync::Arc;

use crate::origin::OpeningTimes;

/// One try. A fetch that goes elsewhere, or asks once more, has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginTry {
    /// The name of the origin, or of the backend of a program.
    pub origin: Arc<str>,
    /// Which of its addresses, once a connection was there.
    pub address: Option<Arc<str>>,
    /// The connection had carried other requests before.
    pub is_reused: bool,
    /// How long it took to come to a connection.
    pub opening: OpeningTimes,
    /// From then to the final head of an answer.
    pub first_byte_micros: Option<u64>,
    pub outcome: TryOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryOutcome {
    Answered {
        status: u16,
    },
    /// By this token.
    Failed(&'static str),
    /// It was given up.
    GivenUp,
}
