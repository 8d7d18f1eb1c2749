//! What is said of a disk at start: where, how large, and how its work is bounded.

use std::path::PathBuf;

use super::limits::{
    BANS_BYTES_MAX, FOLIO_BYTES_MAX, OBJECT_BYTES_MEAN_MIN, QUEUE_BYTES_MAX, READERS, READS_QUEUED_MAX, SEGMENT_BYTES,
    SEGMENTS_MIN, SLOTS_MAX,
};

#[derive(Clone, Debug)]
pub struct DiskSettings {
    /// A file, made if there is none, a raw partition, or a directory for a file.
    pub path: PathBuf,
    pub bytes: u64,
    pub segment_bytes: u64,
    /// Objects for which there is room in index and checkpoints.
    pub objects_max: u64,
    /// Slots that may have a number; see `Invalidation::Slot`.
    pub slots_max: usize,
    pub bans_bytes_max: usize,
    /// Threads that read.
    pub readers: usize,
    pub reads_queued_max: usize,
    /// Bytes of bodies that may wait to be written.
    pub queue_bytes_max: usize,
    /// Bodies may be sent from the file without a copy.
    pub leases: bool,
    /// What the digests of all disks are made with. `None`: what those of most were.
    pub seed: Option<[u8; 16]>,
    /// Another process, which has let go of the disk, may still read what lies there, until [`former_has_left`](super::Tier::former_has_left)
    /// says otherwise: nothing is written over meanwhile.
    pub follows: bool,
    /// Tests have small segments.
    pub folio_bytes_max: u64,
}

impl DiskSettings {
    pub fn new(path: impl Into<PathBuf>, bytes: u64) -> DiskSettings {
        DiskSettings {
            path: path.into(),
            bytes,
            // A small store gets small segments: what one reclaim frees should be a small part of the whole.
            segment_bytes: (bytes / (SEGMENTS_MIN * 8)).clamp(1 << 20, SEGMENT_BYTES).next_power_of_two(),
            objects_max: bytes / OBJECT_BYTES_MEAN_MIN,
            slots_max: SLOTS_MAX,
            bans_bytes_max: BANS_BYTES_MAX,
            readers: READERS,
            reads_queued_max: READS_QUEUED_MAX,
            queue_bytes_max: QUEUE_BYTES_MAX,
            leases: false,
            seed: None,
            follows: false,
            folio_bytes_max: FOLIO_BYTES_MAX,
        }
    }
}
