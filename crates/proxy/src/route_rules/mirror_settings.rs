//! `mirror`: to whom copies of a route's requests go.

/// Copies of requests for another origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirrorSettings {
    /// Index into `Settings::origins`.
    pub origin: usize,
    /// So many of a million requests are copied.
    pub millionths: u64,
}

impl MirrorSettings {
    /// All of them.
    pub const WHOLE: u64 = 1_000_000;
}
