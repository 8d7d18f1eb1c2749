//! When something happens: by both clocks, and in the sequence of invalidations.

/// Both clocks, read once a turn by whoever calls. Freshness counts on `mono_ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    pub wall_ms: u64,
    pub mono_ms: u64,
}

/// The invalidation number under which a fetch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began(pub(crate) u64);

impl Began {
    /// Before anything was invalidated.
    pub const FIRST: Began = Began(0);
}
