//! A body that stays on its disk and is sent from there: where it lies, and what an answer needs that sends it.
//!
//! Every block of it was read and summed when it was found. From then on its bytes are trusted as long as its segments are what
//! they were and the disk was not out: a file that its kernel holds in memory is not summed for each answer. What the kernel has
//! let go of is read, and summed again, by a reader's thread before it is sent.
//!
//! The law (design §3): a segment is not written again while an answer is sent from it, nor are the pages that sockets may
//! still refer to when it has been sent: they are detached first (`open_segment.rs`).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::device::read_whole_at_hand;
use super::disk_digest::Digest;
use super::disk_queue::QuestionQueue;
use super::head_record::BodyExtent;
use super::limits::UNIT_BYTES;
use super::one_disk::OneDisk;
use super::reading::Reading;
use super::refused::Lost;
use super::stored::{Patience, ReadOutcome, Stored, read_summed};
use crate::limits::BLOCK_BYTES;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};

/// Where a body lies. It keeps nothing from being reclaimed: whoever is about to send it finds out whether it is still there.
pub struct BodyOnDisk {
    disk: Arc<OneDisk>,
    readers: Arc<QuestionQueue>,
    digest: Digest,
    unit: u64,
    /// How often the disk had been out when it was summed.
    era: u64,
    extents: Vec<BodyExtent>,
    /// Those that it lies in, with their generations.
    segments: Vec<(u32, u32)>,
    len: u64,
}

/// A body that is being sent from its file: its segments stay what they are as long as this lives. A clone shares it.
#[derive(Clone)]
pub struct LeasedBody {
    inner: Arc<Lease>,
}

struct Lease {
    body: Arc<BodyOnDisk>,
    file: Arc<File>,
}

/// Bytes of a body that lie side by side in its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub offset: u64,
    pub len: u64,
}

impl Stored {
    /// The body where it lies, every block of it read and summed by a reader's thread. `None` if it cannot be sent from there.
    pub fn verify_in_place(&self) -> Option<Reading<Arc<BodyOnDisk>>> {
        let disk = self.disk();
        let body = BodyOnDisk {
            readers: Arc::clone(self.readers()?),
            digest: self.digest(),
            unit: self.unit(),
            era: disk.counters.taken_back.load(SeqCst),
            extents: self.record().extents.clone(),
            segments: segments_of(disk, &self.record().extents),
            len: self.body_len(),
            disk: Arc::clone(disk),
        };
        let is_inside = |extent: &BodyExtent| {
            disk.geometry.is_inside(extent.offset, u64::from(extent.bytes), disk.settings.folio_bytes_max)
        };
        let may_be_leased = disk.leased_file().is_some() && body.extents.iter().all(is_inside);
        if !may_be_leased || !disk.segments.may_lease(&body.segments) {
            return None;
        }
        let (body, stored) = (Arc::new(body), self.clone());
        Some(self.asking_readers(move || {
            // It is pinned meanwhile.
            let _pinned = &stored;
            match body.read_and_sum(0, body.len) {
                ReadOutcome::Read(()) => ReadOutcome::Read(Arc::clone(&body)),
                ReadOutcome::NotAtHand => ReadOutcome::NotAtHand,
                ReadOutcome::Lost(lost) => ReadOutcome::Lost(lost),
            }
        }))
    }
}

fn segments_of(disk: &OneDisk, extents: &[BodyExtent]) -> Vec<(u32, u32)> {
    let mut segments: Vec<(u32, u32)> = Vec::new();
    for extent in extents {
        let Some(segment) = disk.geometry.segment_of(extent.offset) else { continue };
        if !segments.contains(&(segment, extent.generation)) {
            segments.push((segment, extent.generation));
        }
    }
    segments
}

impl BodyOnDisk {
    #[expect(clippy::len_without_is_empty, reason = "an empty body comes with its head")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// What knowing it takes of memory.
    pub fn heap_bytes(&self) -> usize {
        let sums: usize = self.extents.iter().map(|extent| size_of::<BodyExtent>() + 4 * extent.sums.len()).sum();
        size_of::<BodyOnDisk>() + sums + self.segments.len() * size_of::<(u32, u32)>()
    }

    /// To be sent from its file. `None` if it is there no more, or the disk is out, or answers keep enough segments already.
    pub fn lease(self: &Arc<Self>) -> Option<LeasedBody> {
        let disk = &self.disk;
        // First the file: one that took the place of another is no use before the disk was taken back.
        let file = disk.leased_file()?;
        if !disk.segments.lease(&self.segments) {
            return None;
        }
        let leased = LeasedBody { inner: Arc::new(Lease { body: Arc::clone(self), file }) };
        if !self.is_trusted() {
            return None;
        }
        // It is still asked for: reclaim keeps it.
        disk.index.ask(self.digest.short(), true, |_| ());
        disk.counters.leased.fetch_add(1, Relaxed);
        Some(leased)
    }

    /// Has the disk been well since it was summed?
    fn is_trusted(&self) -> bool {
        self.disk.is_read() && self.disk.counters.taken_back.load(SeqCst) == self.era
    }

    /// The bytes at a position, as far as they lie side by side.
    fn place_at(&self, position: u64) -> Place {
        let mut at = 0;
        for extent in &self.extents {
            let end = at + u64::from(extent.bytes);
            if position < end {
                return Place { offset: extent.offset + position - at, len: end - position };
            }
            at = end;
        }
        Place { offset: 0, len: 0 }
    }

    /// Reads the blocks that `from..to` lies in, so that the kernel has them, and sums them.
    fn read_and_sum(&self, from: u64, to: u64) -> ReadOutcome<()> {
        let mut at = 0;
        for extent in &self.extents {
            for block in 0..extent.sums.len() {
                let (offset, len, sum) = extent.block(block);
                let begin = at;
                at += len as u64;
                if at <= from || begin >= to {
                    continue;
                }
                match read_summed(&self.disk, (offset, len), sum, Patience::Waits) {
                    ReadOutcome::Read(_) => {}
                    ReadOutcome::NotAtHand => return ReadOutcome::NotAtHand,
                    ReadOutcome::Lost(lost) => {
                        if lost == Lost::Damaged {
                            self.disk.index.remove_at(self.digest.short(), self.unit);
                        }
                        return ReadOutcome::Lost(lost);
                    }
                }
            }
        }
        ReadOutcome::Read(())
    }
}

impl LeasedBody {
    pub fn len(&self) -> u64 {
        self.inner.body.len
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.inner.file.as_fd()
    }

    /// Where the byte at a position lies, and how many from there on lie side by side; none behind the end.
    pub fn place_at(&self, position: u64) -> Place {
        self.inner.body.place_at(position)
    }

    /// Is it this one?
    pub fn is_of(&self, body: &Arc<BodyOnDisk>) -> bool {
        Arc::ptr_eq(&self.inner.body, body)
    }

    /// May it be sent still? Not once its disk was out.
    pub fn is_trusted(&self) -> bool {
        self.inner.body.is_trusted()
    }

    /// Has the kernel `from..to` in memory? One byte in each `step` is looked at, and the last: what was read together is
    /// let go of together.
    pub fn is_at_hand(&self, from: u64, to: u64, step: u64) -> bool {
        let device = &*self.inner.body.disk.device;
        let is_there = |position: u64| {
            let place = self.place_at(position);
            place.len > 0 && read_whole_at_hand(device, &mut [0], place.offset)
        };
        let mut position = from;
        while position < to {
            if !is_there(position) {
                return false;
            }
            position = position.saturating_add(step.max(UNIT_BYTES));
        }
        from >= to || is_there(to - 1)
    }

    /// Has `from..to` read by a reader's thread, and summed: then it is at hand.
    pub fn bring(&self, from: u64, to: u64) -> Reading<()> {
        let leased = self.clone();
        let (disk, readers) = (&self.inner.body.disk, &self.inner.body.readers);
        // Whole blocks are summed.
        let from = from / BLOCK_BYTES as u64 * BLOCK_BYTES as u64;
        Reading::behind(disk, readers, Arc::new(move || leased.inner.body.read_and_sum(from, to)))
    }

    /// Sending failed because of the file.
    pub fn failed(&self, error: &io::Error) {
        self.inner.body.disk.read_failed(error);
    }

    /// The file ended before the body did.
    pub fn was_cut(&self, position: u64) {
        self.inner.body.disk.found_damage(self.place_at(position).offset);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.body.disk.segments.release(&self.body.segments);
    }
}

impl std::fmt::Debug for BodyOnDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let BodyOnDisk { digest, extents, .. } = self;
        f.debug_struct("BodyOnDisk").field("digest", digest).field("extents", extents).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for LeasedBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LeasedBody").field(&self.inner.body).finish()
    }
}
