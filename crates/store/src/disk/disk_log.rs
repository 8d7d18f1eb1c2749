//! The log: the only writer of a disk. It takes commands in order, puts bodies and records into segments, says in the
//! journal what changed, and acknowledges what is durable.
//!
//! It runs on a thread of its own (`disk_threads.rs`), or step by step in a test. Its parts: where bytes go
//! (`open_segment.rs`), what makes room (`reclaimer.rs`), checkpoints (`checkpointing.rs`), and how all was found again
//! (`recovery.rs`).

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;

use super::body_stretch::BodyStretch;
use super::checkpointing::CheckpointUnderWay;
use super::disk_command::{Body, Command, Placed, Rest};
use super::disk_digest::Digest;
use super::disk_index::{Kept, Rule, Spot};
use super::disk_invalidation::Invalidation;
use super::head_record::{BodyExtent, HeadRecord, RecordFacts};
use super::journal::Journal;
use super::journal_entry::JournalEntry;
use super::knowledge::Knowledge;
use super::limits::{HEAD_BYTES_MAX, JOURNAL_DUE_BYTES, RECORD_BYTES_MAX, UNIT_BYTES};
use super::one_disk::{DiskState, OneDisk};
use super::open_segment::OpenSegment;
use super::promise::Promise;
use super::recovery::Recovering;
use super::refused::{NotDurable, Refused};
use super::stored::{Patience, Pins, ReadOutcome, open_at};
use super::syncer::Syncer;
use crate::Blocks;
use crate::sync::atomic::Ordering::Relaxed;

/// See the module.
pub struct DiskLog {
    pub(super) disk: Arc<OneDisk>,
    pub(super) journal: Journal,
    pub(super) knowledge: Knowledge,
    pub(super) open: Option<OpenSegment>,
    /// The order of the segment opened last.
    pub(super) order: u64,
    /// Drawn at every start: generations of segments are made of it.
    pub(super) nonce: u64,
    /// `None` for one of which a part could not be written.
    pub(super) drafts: HashMap<u64, Option<DraftOnDisk>>,
    pub(super) acks: Vec<Promise<Result<(), NotDurable>>>,
    pub(super) checkpoint: Option<CheckpointUnderWay>,
    /// Of the last checkpoint that is whole: its slot, and its half, must stay until the next is.
    pub(super) base_epoch: u64,
    pub(super) recovering: Option<Recovering>,
    /// There was a store, or one was made: else the first probe makes one.
    pub(super) was_opened: bool,
    /// Room is being made: what that writes must not have room made for it.
    pub(super) is_reclaiming: bool,
    /// What lies in the file in memory is copied into it on its way, and it is used again for the next.
    pub(super) buffer: Vec<u8>,
    /// Without one, as in tests, the log waits itself.
    pub(super) syncer: Option<Syncer>,
    /// Tests show with this that they would notice.
    #[cfg(test)]
    pub(super) acknowledges_early: bool,
}

/// A body that is being written.
pub(super) struct DraftOnDisk {
    pub extents: Vec<BodyExtent>,
    pub pins: Pins,
}

impl DiskLog {
    pub fn apply(&mut self, command: Command) {
        self.obey(command);
        self.commit_if_long();
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Extent { digest, sequence, pieces } => self.extent(digest, sequence, &pieces),
            Command::Finish { digest, sequence, body, head, facts, done } => {
                let result = self.finish(digest, sequence, body, head, facts);
                if result.is_err() {
                    self.supersede(digest);
                }
                self.disk.settled.fetch_max(sequence, Relaxed);
                self.settle(result, done);
            }
            Command::GiveUp { sequence } => drop(self.drafts.remove(&sequence)),
            Command::Refresh { digest, body_sequence, head, facts, done } => {
                let result = self.refresh(digest, body_sequence, head, facts);
                // Of another body it says nothing.
                if result.is_err_and(|why| !matches!(why, Refused::Overtaken | Refused::NotThere)) {
                    self.supersede(digest);
                }
                self.settle(result, done);
            }
            Command::Invalidate { what, done } => self.invalidate(what, done),
            Command::HandOver { done } => {
                self.close();
                self.disk.device.release();
                self.disk.hand_over();
                done.keep(());
            }
            Command::TakeBack => self.take_back(),
            Command::Close { done } => {
                self.close();
                done.keep(());
            }
        }
    }

    fn settle(&self, result: Result<(), Refused>, done: Placed) {
        if let Err(refused) = result {
            self.disk.count_refusal(refused);
        }
        done.keep(result);
    }

    /// What should have been replaced is outdated, though its successor could not be written. It was taken out of the index
    /// when that was accepted, of which the journal knows nothing yet.
    fn supersede(&mut self, digest: Digest) {
        let Digest { family, member } = digest;
        self.disk.index.take_out(family, Some(member));
        self.journal.append(&JournalEntry::Delete { family, member: Some(member) });
        self.recovering.iter_mut().for_each(|recovering| recovering.note_deletion(family, Some(member)));
    }

    fn extent(&mut self, digest: Digest, sequence: u64, pieces: &[Bytes]) {
        let Some(mut draft) = self.take_draft(sequence) else {
            self.drafts.insert(sequence, None);
            return;
        };
        let written = self.write_body(digest, &stretch_of(pieces), &mut draft);
        // A body of which a part could not be written is no body: its finish will find that out.
        self.drafts.insert(sequence, written.is_ok().then_some(draft));
        if let Err(refused) = written {
            self.disk.count_refusal(refused);
        }
    }

    /// What was written of a body, if all of it could be.
    fn take_draft(&mut self, sequence: u64) -> Option<DraftOnDisk> {
        let none = || Some(DraftOnDisk { extents: Vec::new(), pins: Pins::new(&self.disk) });
        self.drafts.remove(&sequence).unwrap_or_else(none)
    }

    fn finish(
        &mut self,
        digest: Digest,
        sequence: u64,
        body: Body,
        head: Bytes,
        facts: RecordFacts,
    ) -> Result<(), Refused> {
        let mut draft = self.take_draft(sequence).ok_or(Refused::Down)?;
        if !self.disk.is_up() {
            return Err(Refused::Down);
        }
        if head.len() > HEAD_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        let record =
            HeadRecord { digest, record_sequence: sequence, body_sequence: sequence, facts, extents: Vec::new(), head };
        let mut buffer = std::mem::take(&mut self.buffer);
        let tail = match &body.rest {
            Rest::Pieces(pieces) => Ok(stretch_of(pieces)),
            Rest::Whole(blocks) => self.write_whole_blocks(digest, blocks, &mut draft, &mut buffer),
        };
        let placed = tail.and_then(|tail| {
            let written: u64 = draft.extents.iter().map(|extent| u64::from(extent.bytes)).sum();
            match written + tail.len() as u64 == body.bytes {
                true => self.place_record(record, draft, tail, Rule::Newest, 0),
                // The disk was begun anew in the middle of it: a body is stored whole or not at all.
                false => Err(Refused::Down),
            }
        });
        self.buffer = buffer;
        placed?;
        self.disk.counters.stored.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Writes all of a body that makes whole extents; returns what is left to go with the head.
    fn write_whole_blocks<'a>(
        &mut self,
        digest: Digest,
        blocks: &'a Blocks,
        draft: &mut DraftOnDisk,
        buffer: &'a mut Vec<u8>,
    ) -> Result<BodyStretch<'a>, Refused> {
        let extent = super::limits::EXTENT_BYTES_MAX as u64;
        let mut at = 0;
        while blocks.len() - at > extent {
            self.write_body(digest, &lying(blocks, at, at + extent, buffer), draft)?;
            at += extent;
        }
        Ok(lying(blocks, at, blocks.len(), buffer))
    }

    /// Writes a record, and the rest of its body with it, and lets it be found.
    pub(super) fn place_record(
        &mut self,
        mut record: HeadRecord,
        mut draft: DraftOnDisk,
        tail: BodyStretch<'_>,
        rule: Rule,
        uses: u8,
    ) -> Result<(), Refused> {
        record.extents = std::mem::take(&mut draft.extents);
        let placed = self.write_record(&mut record, tail, &mut draft)?;
        let segment = self.disk.geometry.segment_of(placed.place).expect("it was placed in one");
        let elsewhere = |extent: &BodyExtent| self.disk.geometry.segment_of(extent.offset) != Some(segment);
        let spot = Spot {
            unit: placed.place / UNIT_BYTES,
            span: placed.span_units,
            split: record.extents.iter().any(elsewhere),
        };
        let kept = Kept { name: record.digest.short(), spot, uses };
        self.disk.index.insert(kept, rule)?;
        if !self.disk.is_up() {
            // Given up meanwhile, with a deletion that will not have its turn.
            self.disk.index.remove_at(kept.name, kept.spot.unit);
            return Err(Refused::Down);
        }
        let (sequence, number) = (record.record_sequence, record.facts.number);
        self.knowledge.note_number(number);
        self.journal.append(&JournalEntry::Put { kept, generation: placed.generation, sequence, number });
        // Reclaim places many without a command.
        self.commit_if_long();
        Ok(())
    }

    /// A new head for a body that is stored already.
    fn refresh(&mut self, digest: Digest, body_sequence: u64, head: Bytes, facts: RecordFacts) -> Result<(), Refused> {
        if !self.disk.is_up() {
            return Err(Refused::Down);
        }
        if head.len() > HEAD_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        let (uses, spot) = self.disk.index.uses(digest.short()).ok_or(Refused::NotThere)?;
        let mut pins = Pins::new(&self.disk);
        let generation = pins.add(spot.unit * UNIT_BYTES, None).ok_or(Refused::NotThere)?;
        let stored = match open_at(&self.disk, spot, generation, pins, Patience::Waits) {
            ReadOutcome::Read(stored) => stored,
            _ => return Err(Refused::NotThere),
        };
        if stored.digest() != digest || stored.sequence() != body_sequence {
            return Err(Refused::Overtaken);
        }
        let sequence = self.disk.sequence.fetch_add(1, Relaxed) + 1;
        let extents = stored.record().extents.clone();
        let record = HeadRecord { digest, record_sequence: sequence, body_sequence, facts, extents: Vec::new(), head };
        let draft = DraftOnDisk { extents, pins: Pins::new(&self.disk) };
        self.place_record(record, draft, BodyStretch::default(), Rule::IfAt(spot.unit), uses)?;
        self.disk.counters.refreshed.fetch_add(1, Relaxed);
        Ok(())
    }

    /// What was deleted is out of the index already, by who asked; here it takes its place in the order of all changes.
    fn invalidate(&mut self, what: Invalidation, done: Promise<Result<(), NotDurable>>) {
        let entry = match what {
            Invalidation::Delete(digest) => {
                self.delete(digest.family, Some(digest.member));
                JournalEntry::Delete { family: digest.family, member: Some(digest.member) }
            }
            Invalidation::DeleteFamily(family) => {
                self.delete(family, None);
                JournalEntry::Delete { family, member: None }
            }
            Invalidation::Clear => {
                self.disk.index.empty();
                self.recovering.iter_mut().for_each(Recovering::note_clear);
                self.disk.index.cleared();
                JournalEntry::Clear
            }
            Invalidation::Slot { slot, number } => {
                if !self.knowledge.set_slot(slot, number, self.disk.settings.slots_max) {
                    done.keep(Err(self.not_durable("more slots have a number than the store has room for")));
                    return;
                }
                JournalEntry::Slot { slot, number }
            }
            Invalidation::Ban { number, text } => {
                if !self.knowledge.add_ban(number, &text, self.disk.settings.bans_bytes_max) {
                    done.keep(Err(self.not_durable("there are more bans than the store has room for")));
                    return;
                }
                JournalEntry::Ban { number, text }
            }
            Invalidation::RetireBans { through } => {
                let through = through.min(self.disk.segments.number_min());
                self.knowledge.retire_bans(through);
                JournalEntry::RetireBans { through }
            }
            Invalidation::Number(number) => {
                self.knowledge.note_number(number);
                JournalEntry::Number(number)
            }
        };
        self.journal.append(&entry);
        #[cfg(test)]
        if self.acknowledges_early {
            done.keep(Ok(()));
            return;
        }
        if !done.is_moot() {
            self.acks.push(done);
        }
    }

    fn delete(&mut self, family: u64, member: Option<u64>) {
        let gone = self.disk.index.take_out(family, member);
        self.recovering.iter_mut().for_each(|recovering| recovering.note_deletion(family, member));
        self.disk.index.deleted(family);
        self.disk.counters.deleted.fetch_add(gone as u64, Relaxed);
    }

    pub(super) fn not_durable(&self, why: &str) -> NotDurable {
        NotDurable(format!("disk {}: {why}", self.disk.path.display()))
    }

    /// Writes the journal if there is much of it: it must fit in a half.
    fn commit_if_long(&mut self) {
        if self.journal.pending_bytes() >= JOURNAL_DUE_BYTES {
            self.commit();
        }
    }

    /// Writes the journal if somebody waits for it. `is_idle`: nothing else is to be done.
    pub fn commit_if_due(&mut self, is_idle: bool) {
        if !self.acks.is_empty() || is_idle && self.journal.pending_bytes() > 0 {
            self.commit();
        }
    }

    /// Makes durable what was changed so far, and acknowledges it.
    pub fn commit(&mut self) {
        let result = match self.disk.state() {
            DiskState::Up | DiskState::Closed => self.try_commit().map_err(|error| {
                self.disk.write_failed(&error);
                error.to_string()
            }),
            state => {
                // What holds now is said by the checkpoint with which the disk is taken back.
                self.journal.drop_pending();
                Err(format!("it is {}", state.token()))
            }
        };
        for ack in std::mem::take(&mut self.acks) {
            match &result {
                Ok(()) => {
                    self.disk.counters.acknowledged.fetch_add(1, Relaxed);
                    ack.keep(Ok(()));
                }
                Err(why) => ack.keep(Err(self.not_durable(why))),
            }
        }
    }

    fn try_commit(&mut self) -> io::Result<()> {
        if !self.journal.fits(&self.disk.geometry) {
            // One under way says what half it began in; when it is done the other half is free.
            self.finish_checkpoint()?;
            if !self.journal.fits(&self.disk.geometry) && self.journal_is_ahead() {
                self.checkpoint_now()?;
            }
            if !self.journal.fits(&self.disk.geometry) {
                self.begin_checkpoint()?;
            }
        }
        self.journal.commit(&*self.disk.device, &self.disk.geometry)?;
        self.disk.counters.commits.fetch_add(1, Relaxed);
        Ok(())
    }

    /// A piece of what is to be done in the background. False when there is nothing.
    pub fn work(&mut self) -> bool {
        if !self.disk.is_up() {
            return false;
        }
        let more = if self.recovering.is_some() {
            self.recover_some();
            Ok(true)
        } else if self.checkpoint.is_some() {
            self.checkpoint_some().map(|()| true)
        } else if self.journal_is_long() {
            self.begin_checkpoint().map(|()| true)
        } else {
            Ok(self.reclaim_ahead())
        };
        more.unwrap_or_else(|error| {
            self.disk.write_failed(&error);
            false
        })
    }

    /// Ends with everything on the disk, and a checkpoint, so that the next start is short.
    /// What was invalidated meanwhile is said by the checkpoint with which a disk that was out is used again.
    fn take_back(&mut self) {
        if self.disk.state() == DiskState::HandedOver && self.disk.device.lock().is_ok() {
            self.disk.drop_it(&io::Error::other("it was let go of, and nobody took it"));
        }
    }

    fn close(&mut self) {
        while self.recovering.is_some() && self.disk.is_up() {
            self.recover_some();
        }
        if self.disk.is_up() {
            let all = self.seal_open().and_then(|()| self.checkpoint_now());
            if let Err(error) = all {
                self.disk.write_failed(&error);
            }
        }
        self.commit();
        self.disk.close();
    }
}

fn stretch_of(pieces: &[Bytes]) -> BodyStretch<'_> {
    BodyStretch::of(pieces.iter().map(|piece| &piece[..]))
}

/// The bytes `from..to` of a body: as they lie, or, of one in the file in memory, as they are copied into the buffer.
fn lying<'a>(blocks: &'a Blocks, from: u64, to: u64, buffer: &'a mut Vec<u8>) -> BodyStretch<'a> {
    match blocks.extent() {
        Some(extent) => {
            let bytes = (to - from) as usize;
            buffer.resize(buffer.len().max(bytes), 0);
            extent.copy_into(&mut buffer[..bytes], from);
            BodyStretch::of([&buffer[..bytes]])
        }
        None => BodyStretch::of(blocks.slices(from, to)),
    }
}

const _: () = assert!(RECORD_BYTES_MAX > HEAD_BYTES_MAX);
