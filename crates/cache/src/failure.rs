//! How a fetch failed, as all who waited for it are told.

use std::sync::Arc;

/// Why there is no response, or no more of it. All who wait get the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The status to answer with when nothing may stand in.
    pub status: u16,
    /// Stable, for the log.
    pub token: &'static str,
    /// For people: the origin, the phase, the limit.
    pub text: Arc<str>,
    /// How long others get this answer without asking the origin again; 0 for not at all.
    pub remember_ms: u64,
}
