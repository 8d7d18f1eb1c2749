//! Writing a checkpoint piece by piece, while the store goes on; and taking a disk back with one.

use std::io;

use super::checkpoint::{Checkpoint, ENTRIES_A_PAGE, encode_page, void_slot};
use super::device::{Device, Renewed, sync_whole, write_whole};
use super::disk_event::{DiskEvent, WhyDiscarded};
use super::disk_index::Kept;
use super::disk_log::DiskLog;
use super::geometry::{Found, Superblock};
use super::journal::JournalEnd;
use super::limits::{PAGES_A_STEP, SHARDS_A_STEP};
use super::one_disk::DiskState;
use super::syncer::Syncer;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};

pub struct CheckpointUnderWay {
    /// Where the journal went over to its other half.
    journal: JournalEnd,
    next_shard: usize,
    waiting: Vec<Kept>,
    pages: u32,
    records: u64,
}

impl DiskLog {
    /// Is it time for a checkpoint? While it is written the journal needs the rest of its half.
    pub(super) fn journal_is_long(&self) -> bool {
        self.journal_is_ahead() || self.journal.end().position > self.disk.geometry.journal_bytes / 2
    }

    /// Is it in the half of a checkpoint that was begun, in this life or the last, and is not whole?
    pub(super) fn journal_is_ahead(&self) -> bool {
        self.journal.end().epoch != self.base_epoch
    }

    pub(super) fn begin_checkpoint(&mut self) -> io::Result<()> {
        assert!(self.checkpoint.is_none(), "one checkpoint at a time");
        while self.recovering.is_some() {
            self.recover_some();
        }
        void_slot(&*self.disk.device, &self.disk.geometry, self.base_epoch + 1)?;
        // One that was not finished is made again: going on to the next would write over the last that is whole.
        if !self.journal_is_ahead() {
            self.journal.switch();
        }
        let journal = self.journal.start();
        assert_eq!(journal.epoch, self.base_epoch + 1, "two slots take turns");
        self.checkpoint =
            Some(CheckpointUnderWay { journal, next_shard: 0, waiting: Vec::new(), pages: 0, records: 0 });
        Ok(())
    }

    /// Some pages of it; the last piece makes it the newest.
    pub(super) fn checkpoint_some(&mut self) -> io::Result<()> {
        let Some(mut run) = self.checkpoint.take() else { return Ok(()) };
        let pages_end = u64::from(run.pages) + PAGES_A_STEP;
        let shards_end = self.disk.index.shards_count().min(run.next_shard + SHARDS_A_STEP);
        while u64::from(run.pages) < pages_end && run.next_shard < shards_end {
            run.waiting.extend(self.disk.index.shard_kept(run.next_shard));
            run.next_shard += 1;
            while run.waiting.len() >= ENTRIES_A_PAGE {
                let page: Vec<Kept> = run.waiting.drain(..ENTRIES_A_PAGE).collect();
                self.write_page(&mut run, &page)?;
            }
        }
        if run.next_shard < self.disk.index.shards_count() {
            self.checkpoint = Some(run);
            return Ok(());
        }
        let last = std::mem::take(&mut run.waiting);
        if !last.is_empty() {
            self.write_page(&mut run, &last)?;
        }
        self.complete(run)
    }

    fn write_page(&self, run: &mut CheckpointUnderWay, records: &[Kept]) -> io::Result<()> {
        let disk = &self.disk;
        // More than there is room for: while it was written some came in behind and others left in front.
        if u64::from(run.pages) >= disk.geometry.pages {
            return Ok(());
        }
        let epoch = run.journal.epoch;
        let place = disk.geometry.page_at(epoch % 2, u64::from(run.pages));
        let page = encode_page(disk.store(), place, epoch, run.pages, records);
        write_whole(&*disk.device, &page, place)?;
        run.pages += 1;
        run.records += records.len() as u64;
        Ok(())
    }

    fn complete(&mut self, run: CheckpointUnderWay) -> io::Result<()> {
        // An error is told once, and to whoever syncs first.
        self.syncer.as_mut().map_or(Ok(()), Syncer::wait)?;
        let disk = &self.disk;
        sync_whole(&*disk.device)?;
        let checkpoint = Checkpoint {
            journal: run.journal,
            pages: run.pages,
            records: run.records,
            sequence: disk.sequence.load(Relaxed),
            order: self.order,
            segments: disk.segments.all(),
            knowledge: self.knowledge.clone(),
        };
        checkpoint.write(&*disk.device, &disk.geometry, disk.store())?;
        self.base_epoch = run.journal.epoch;
        disk.counters.checkpoints.fetch_add(1, Relaxed);
        Ok(())
    }

    pub(super) fn finish_checkpoint(&mut self) -> io::Result<()> {
        while self.checkpoint.is_some() {
            self.checkpoint_some()?;
        }
        Ok(())
    }

    /// A whole checkpoint, at once.
    pub(super) fn checkpoint_now(&mut self) -> io::Result<()> {
        self.finish_checkpoint()?;
        self.begin_checkpoint()?;
        self.finish_checkpoint()
    }

    /// Is what lies under it still there? A file that was replaced or cut takes everything and loses it.
    pub fn look_after(&mut self) {
        let synced = self.syncer.as_mut().map_or(Ok(()), Syncer::look);
        if self.disk.is_up()
            && let Err(error) = synced.and_then(|()| self.disk.device.check())
        {
            self.disk.drop_it(&error);
        }
    }

    /// Tries a disk that is not written. All that holds now is said anew; only then it is used again.
    pub fn probe(&mut self) -> bool {
        // Making it anew would write where another process still reads.
        let is_spared = self.disk.spares.load(Relaxed);
        if is_spared || !matches!(self.disk.state(), DiskState::ReadOnly | DiskState::Dropped) {
            return false;
        }
        let result = self.try_take_back();
        if result.is_ok() {
            self.disk.take_back();
        }
        result.is_ok()
    }

    fn try_take_back(&mut self) -> io::Result<()> {
        let disk = self.disk.clone();
        // One that was handed over and failed here since is another process's: it is read at most, and written by nobody else.
        disk.device.lock()?;
        let renewed = disk.device.renew()?;
        if renewed == Renewed::Another || !self.was_opened {
            if self.was_opened {
                let (path, why) = (disk.path.clone(), WhyDiscarded::Replaced);
                disk.tell(DiskEvent::Discarded { path, why });
            }
            return self.begin_anew();
        }
        // What was acknowledged is in memory, and what was not too; what is pending is said by the checkpoint.
        self.checkpoint = None;
        self.journal.drop_pending();
        // Nor what was begun: its half says less than what holds now.
        self.journal.return_to(self.base_epoch);
        let superblock = *disk.superblock.lock();
        write_and_read(&*disk.device, &superblock)?;
        self.checkpoint_now()
    }

    /// Another file, or one that could not be read at the start: an empty store.
    fn begin_anew(&mut self) -> io::Result<()> {
        let superblock = Superblock { store: super::recovery::drawn(), ..*self.disk.superblock.lock() };
        write_and_read(&*self.disk.device, &superblock)?;
        let (journal, checkpoint) = super::recovery::format(&*self.disk.device, &superblock, self.knowledge.clone())?;
        self.disk.index.empty();
        // Those who still read hold pins: the segments stay theirs until they are done.
        self.disk.segments.leave_all();
        // The file may be one whose pages a process before this one has lent to sockets.
        self.disk.distrust_sockets();
        self.disk.renew(superblock);
        (self.journal, self.order) = (journal, self.order.max(checkpoint.order));
        (self.open, self.checkpoint, self.recovering) = (None, None, None);
        self.disk.recovering.store(false, SeqCst);
        self.base_epoch = checkpoint.journal.epoch;
        self.drafts.clear();
        self.was_opened = true;
        Ok(())
    }
}

/// A device that takes everything and gives nothing back is no use.
fn write_and_read(device: &dyn Device, superblock: &Superblock) -> io::Result<()> {
    superblock.write(device)?;
    match Superblock::read(device)? {
        Found::Ours(found) if found == *superblock => Ok(()),
        _ => Err(io::Error::other("what is written is not what is read")),
    }
}
