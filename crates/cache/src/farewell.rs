//! Who hears of objects that leave, if anybody does.

use std::sync::Arc;

use crate::cache::Cache;
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

impl Cache {
    /// From here on. The first who asks is told, and nobody else.
    pub fn tell_of_leavers(&self, farewell: Arc<dyn Farewell>) {
        let _ = self.farewell.set(farewell);
    }

    pub(crate) fn note_leaver(&self, object: &Object, why: Leaving) {
        if let Some(farewell) = self.farewell.get() {
            farewell.left(object, why);
        }
    }
}
