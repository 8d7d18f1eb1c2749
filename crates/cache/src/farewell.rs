//! Who hears of objects that leave, if anybody does.

use crate::object::Object;

/// Hears of each object that leaves memory. Called with a shard locked: it must neither wait nor ask the cache.
pub trait Farewell: Send + Sync {
    fn left(&self, object: &Object, why: Leaving);
}

/// Why it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Its life is over, it was invalidated, or another one takes its place.
    Over,
    /// To make room.
    Evicted,
}
