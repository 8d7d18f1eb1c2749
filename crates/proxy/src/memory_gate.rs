//! What the memory warden tells the cores, and the cores and the operator the warden.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::limits::{MEMORY_BASE_BYTES, MEMORY_WORKER_BYTES, STALLED_SHARE_SHIFT};
use crate::mailbox::{Mailbox, Message};
use crate::memory_share::MemoryLimit;

/// What the warden tells the cores, and the cores and the operator the warden.
#[derive(Debug)]
pub(crate) struct MemoryGate {
    base_bytes: u64,
    limit_bytes: AtomicU64,
    pub(crate) occupied_bytes: AtomicU64,
    pub(crate) refuses: AtomicBool,
    /// Answers that were cut so far, on all cores.
    pub(crate) cut: AtomicU64,
    /// Cores that were asked to cut some and have not come to it.
    pub(crate) asked: AtomicUsize,
}

/// Figures of this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatus {
    /// What the process may take beside its base.
    pub limit_bytes: u64,
    /// What a process takes anyway.
    pub base_bytes: u64,
    /// What it occupies at the last look, the store's file in memory included; 0 before the first.
    pub occupied_bytes: u64,
    /// New connections are refused.
    pub refuses: bool,
}

/// What a process with so many workers takes beside its limit.
pub fn memory_base_bytes(workers: usize) -> u64 {
    MEMORY_BASE_BYTES + workers.saturating_sub(1) as u64 * MEMORY_WORKER_BYTES
}

impl MemoryGate {
    pub(crate) fn new(limit_bytes: usize, workers: usize) -> MemoryGate {
        MemoryGate {
            base_bytes: memory_base_bytes(workers),
            limit_bytes: AtomicU64::new(limit_bytes as u64),
            occupied_bytes: AtomicU64::new(0),
            refuses: AtomicBool::new(false),
            cut: AtomicU64::new(0),
            asked: AtomicUsize::new(0),
        }
    }

    pub(crate) fn set_limit(&self, limit_bytes: usize) {
        self.limit_bytes.store(limit_bytes as u64, Relaxed);
    }

    /// May no further connection come?
    #[inline]
    pub(crate) fn refuses(&self) -> bool {
        self.refuses.load(Relaxed)
    }

    /// So much more is accounted for than the limit is.
    #[inline]
    pub(crate) fn overdraft(&self, used_bytes: usize) -> u64 {
        (used_bytes as u64).saturating_sub(self.limit_bytes.load(Relaxed))
    }

    /// What may be kept for clients that take nothing of their answers.
    pub(crate) fn stalled_bytes_max(&self) -> u64 {
        self.limit_bytes.load(Relaxed) >> STALLED_SHARE_SHIFT
    }

    /// Asks a core to cut answers whose clients take nothing of them, until so many bytes are free.
    pub(crate) fn ask_to_cut(&self, mailbox: &Mailbox, bytes: u64) {
        self.asked.fetch_add(1, Relaxed);
        mailbox.post(Message::CutStalled(bytes));
    }

    /// Were cores asked to cut, and have not all of them done so yet?
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed) > 0
    }

    /// A core has done what it was asked.
    pub(crate) fn note_asked(&self) {
        self.asked.fetch_sub(1, Relaxed);
    }

    /// So many answers were cut whose clients take nothing.
    pub(crate) fn note_cut(&self, answers: u64) {
        self.cut.fetch_add(answers, Relaxed);
    }

    /// A limit of what is buffered for clients, which may not be a larger part of the memory than a quarter.
    pub(crate) fn buffers_max(&self, limit: usize) -> usize {
        limit.min((self.limit_bytes.load(Relaxed) / 4) as usize)
    }

    pub(crate) fn status(&self) -> MemoryStatus {
        MemoryStatus {
            limit_bytes: self.limit_bytes.load(Relaxed),
            base_bytes: self.base_bytes,
            occupied_bytes: self.occupied_bytes.load(Relaxed),
            refuses: self.refuses(),
        }
    }

    pub(crate) fn limit(&self) -> MemoryLimit {
        MemoryLimit { base_bytes: self.base_bytes, limit_bytes: self.limit_bytes.load(Relaxed) }
    }
}
