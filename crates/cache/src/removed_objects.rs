//! What was taken out of the directory, on its way to be freed.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::object::Object;

/// Objects that left the directory. They die under the shard's lock and are freed after it.
pub(crate) type RemovedObjects = SmallVec<[Arc<Object>; 2]>;
