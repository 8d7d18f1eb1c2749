//! When something happens: by both clocks, and in the sequence of invalidations.

/// Both clocks, read once a turn by whoever calls. Freshness counts on `mono_ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    pub wall_ms: u64,
    pub mono_ms: u64,
}

/// The moment of a question, and what holds in it: [`Cache::now`](crate::Cache::now) says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    pub wall_ms: u64,
    pub mono_ms: u64,
    /// What was fetched under an earlier number of the invalidation sequence has to be confirmed by the origin before it is served:
    /// others may have purged it unheard ([`FleetLease`](crate::FleetLease)). 0: nothing has to be.
    pub confirmed_from: u64,
}

impl Now {
    /// When that is.
    pub fn stamp(self) -> Stamp {
        Stamp { wall_ms: self.wall_ms, mono_ms: self.mono_ms }
    }
}

/// A moment in which nothing has to be confirmed.
impl From<Stamp> for Now {
    fn from(at: Stamp) -> Now {
        Now { wall_ms: at.wall_ms, mono_ms: at.mono_ms, confirmed_from: 0 }
    }
}

/// The invalidation number under which a fetch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began(pub(crate) u64);

impl Began {
    /// Before anything was invalidated.
    pub const FIRST: Began = Began(0);
}
