//! A try to be answered by an origin: where, how long each part of it took, and what came of it.

use std::sync::Arc;

use crate::origin::OpeningTimes;
use crate::traces::try_span::TrySpan;

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
    /// Where it is a part of a trace that may be told of.
    pub span: Option<Box<TrySpan>>,
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One that found nobody.
    pub(crate) fn failed() -> OriginTry {
        OriginTry {
            origin: "app".into(),
            address: None,
            is_reused: false,
            opening: OpeningTimes::default(),
            first_byte_micros: None,
            outcome: TryOutcome::Failed("origin-connect"),
            span: None,
        }
    }

    /// One that was answered in so long.
    pub(crate) fn answered(status: u16, opening: OpeningTimes, first_byte_micros: u64) -> OriginTry {
        OriginTry {
            address: Some("10.0.0.2:80".into()),
            opening,
            first_byte_micros: Some(first_byte_micros),
            outcome: TryOutcome::Answered { status },
            ..failed()
        }
    }
}
