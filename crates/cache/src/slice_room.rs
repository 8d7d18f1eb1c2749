//! Room in memory, and in the queue of a disk, for slices that are on their way.

use std::sync::Arc;

use store::sync::atomic::Ordering::Relaxed;

use crate::cache::Cache;
use crate::slice_layout::Sliced;

/// Room that a slice is about to take: what of it has come is charged where it lies.
#[must_use]
#[derive(Debug)]
pub struct SliceUnderWay {
    cache: Arc<Cache>,
    /// Of memory, still to be taken.
    bytes: usize,
    /// Until the disk's queue has it.
    for_disk: usize,
}

impl SliceUnderWay {
    /// It is fetched, and will be written.
    pub fn goes_to_disk(&mut self, sliced: Sliced) {
        let bytes = sliced.slice_bytes as usize;
        self.cache.slices_for_disk.fetch_add(bytes, Relaxed);
        self.for_disk += bytes;
    }

    /// So many bytes of the body have come.
    pub(crate) fn note_arrived(&mut self, body_bytes: usize) {
        let taken = self.bytes.min(body_bytes);
        self.bytes -= taken;
        self.cache.slices_under_way.fetch_sub(taken, Relaxed);
    }
}

impl Drop for SliceUnderWay {
    fn drop(&mut self) {
        self.cache.slices_under_way.fetch_sub(self.bytes, Relaxed);
        self.cache.slices_for_disk.fetch_sub(self.for_disk, Relaxed);
    }
}

impl Cache {
    /// A slice is about to be brought: as long as this lives it counts as one that needs room.
    pub fn slice_under_way(self: &Arc<Self>, sliced: Sliced) -> SliceUnderWay {
        let bytes = sliced.slice_bytes as usize;
        self.slices_under_way.fetch_add(bytes, Relaxed);
        SliceUnderWay { cache: Arc::clone(self), bytes, for_disk: 0 }
    }
}
