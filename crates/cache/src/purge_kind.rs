//! How a purge goes about it, whether it is of a key, of tags, or a ban's.

/// What a purge does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purge {
    Hard,
    /// Leaves it so much of its lifetimes from now on, and never more than it has. `None` leaves it all.
    Soft {
        ttl_ms: u64,
        grace_ms: Option<u64>,
        keep_ms: Option<u64>,
    },
}

impl Purge {
    /// Stale from now on; grace and keep as they are.
    pub const SOFT: Purge = Purge::Soft { ttl_ms: 0, grace_ms: None, keep_ms: None };
}
