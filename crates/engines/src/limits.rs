//! What this crate bounds, and at how much.

/// Sentinels that one URL names.
pub const SENTINELS_MAX: usize = 16;
