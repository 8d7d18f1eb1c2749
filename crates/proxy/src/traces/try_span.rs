//! The span of one question to an origin.

use crate::clock::Moment;
use crate::traces::trace_ids::SpanId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrySpan {
    /// What its origin was told as the span that it works for.
    pub(crate) id: SpanId,
    pub(crate) method: Box<[u8]>,
    pub(crate) url: Box<[u8]>,
    pub(crate) begun: Moment,
    /// When the head of an answer was there, or none was to come.
    pub(crate) ended: Moment,
}
