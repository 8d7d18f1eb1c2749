//! The listener that is told of every object that is removed from memory.

use crate::object::Object;

/// Is told of each object that is removed from memory. Called with a shard locked: it must neither wait nor ask the cache.
pub trait RemovalListener: Send + Sync {
    fn removed(&self, object: &Object, why: RemovalCause);
}

/// Why it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalCause {
    /// Its life is over, it was invalidated, or another one takes its place.
    Over,
    /// To make room.
    Evicted,
}
