//! Slices that were stored and wait for their disk. One of them that is evicted meanwhile is in no place where it could be
//! found, though the disk's queue holds its body: whoever asks has it from here, and not from the origin once more.

use std::collections::VecDeque;
use std::sync::Arc;

use store::sync::Mutex;

use crate::disk_level::DiskLevel;
use crate::key::Key;
use crate::limits::UNWRITTEN_SLICES_MAX;
use crate::object::Object;

/// Those that the disks may not have written, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Unwritten(Mutex<VecDeque<Arc<Object>>>);

impl Unwritten {
    /// A slice has been stored. One too many is not held; it may be asked of the origin again.
    pub fn note(&self, disk: &DiskLevel, slice: &Arc<Object>) {
        self.sweep(disk);
        if disk.is_waiting(slice) {
            let mut waiting = self.0.lock();
            if waiting.len() < UNWRITTEN_SLICES_MAX {
                waiting.push_back(Arc::clone(slice));
            }
        }
    }

    pub fn find(&self, key: Key) -> Option<Arc<Object>> {
        self.0.lock().iter().find(|slice| slice.key() == key).cloned()
    }

    /// Lets go of what has been written, or will not be.
    pub fn sweep(&self, disk: &DiskLevel) {
        let mut waiting = self.0.lock();
        let written: Vec<_> = waiting.iter().filter(|slice| !disk.is_waiting(slice)).cloned().collect();
        waiting.retain(|slice| !written.iter().any(|it| Arc::ptr_eq(it, slice)));
        drop(waiting);
        // What was the last to hold a body gives it back with nothing locked.
        drop(written);
    }
}
