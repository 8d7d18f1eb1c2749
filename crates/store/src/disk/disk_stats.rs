//! The figures of a disk, for status pages and metrics.

use std::path::PathBuf;

use super::one_disk::{DiskState, OneDisk};
use super::refused::Refused;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};

#[derive(Clone, Debug)]
pub struct DiskStats {
    pub path: PathBuf,
    pub state: DiskState,
    pub bytes: u64,
    pub segments: u64,
    pub segments_free: u64,
    pub objects: u64,
    pub objects_max: u64,
    pub index_bytes: u64,
    /// All that was stored before the start can be found; and how much of the index has been read.
    pub index_is_back: bool,
    pub index_percent: u64,
    /// Bodies that wait to be written.
    pub queued_bytes: u64,
    /// Records that were read …
    pub hits: u64,
    /// … and blocks of bodies that did not come with them …
    pub blocks_read: u64,
    /// … and those of both that the kernel had in memory.
    pub hits_at_hand: u64,
    pub bytes_read: u64,
    /// Answers that were sent from the file without a copy.
    pub leased: u64,
    pub lost_gone: u64,
    pub lost_damaged: u64,
    pub lost_busy: u64,
    pub lost_failed: u64,
    pub stored: u64,
    pub refreshed: u64,
    /// Why what was not stored was not, each with its count.
    pub refused: [(Refused, u64); Refused::ALL.len()],
    pub bytes_written: u64,
    /// Records that deletions hit.
    pub deleted: u64,
    /// Invalidations that were made durable for somebody who waited.
    pub acknowledged: u64,
    pub commits: u64,
    pub checkpoints: u64,
    pub reclaimed_segments: u64,
    pub reinserted: u64,
    pub dropped: u64,
    pub taken_back: u64,
}

impl DiskStats {
    pub(super) fn of(disk: &OneDisk, queued_bytes: usize) -> DiskStats {
        let counters = &disk.counters;
        let mut refused = Refused::ALL.map(|refused| (refused, 0));
        for (at, counter) in counters.refused.iter().enumerate() {
            refused[at].1 = counter.load(Relaxed);
        }
        let index_is_back = !disk.recovering.load(SeqCst);
        let (pages, read) = (counters.index_pages.load(Relaxed), counters.index_pages_read.load(Relaxed));
        DiskStats {
            path: disk.path.clone(),
            state: disk.state(),
            bytes: disk.geometry.bytes,
            segments: u64::from(disk.geometry.segments),
            segments_free: disk.segments.free_count() as u64,
            objects: disk.index.count(),
            objects_max: disk.settings.objects_max,
            index_bytes: disk.index.heap_bytes() as u64,
            index_is_back,
            index_percent: if index_is_back { 100 } else { (read * 100).checked_div(pages).unwrap_or(0).min(99) },
            queued_bytes: queued_bytes as u64,
            hits: counters.hits.load(Relaxed),
            blocks_read: counters.blocks_read.load(Relaxed),
            hits_at_hand: counters.hits_at_hand.load(Relaxed),
            bytes_read: counters.bytes_read.load(Relaxed),
            leased: counters.leased.load(Relaxed),
            lost_gone: counters.lost_gone.load(Relaxed),
            lost_damaged: counters.lost_damaged.load(Relaxed),
            lost_busy: counters.lost_busy.load(Relaxed),
            lost_failed: counters.lost_failed.load(Relaxed),
            stored: counters.stored.load(Relaxed),
            refreshed: counters.refreshed.load(Relaxed),
            refused,
            bytes_written: counters.bytes_written.load(Relaxed),
            deleted: counters.deleted.load(Relaxed),
            acknowledged: counters.acknowledged.load(Relaxed),
            commits: counters.commits.load(Relaxed),
            checkpoints: counters.checkpoints.load(Relaxed),
            reclaimed_segments: counters.reclaimed_segments.load(Relaxed),
            reinserted: counters.reinserted.load(Relaxed),
            dropped: counters.dropped.load(Relaxed),
            taken_back: counters.taken_back.load(Relaxed),
        }
    }
}
