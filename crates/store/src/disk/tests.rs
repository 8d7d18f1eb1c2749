//! The log on devices that fail, step by step and without threads, so that a seed decides everything.
//!
//! A file for each kind of hazard; what they share is here: a small store, and verbs to use it by.

mod crashes;
mod file_hazards;
mod format_fixture;
mod hazards;
mod leased_segments;
mod log_life;
mod tier_life;

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::device::Device;
use super::disk_command::{Body, Command, Rest};
use super::disk_digest::Digest;
use super::disk_event::DiskEvent;
use super::disk_invalidation::Invalidation;
use super::disk_log::DiskLog;
use super::disk_settings::DiskSettings;
use super::geometry::Geometry;
use super::head_record::RecordFacts;
use super::promise::{Awaited, promise, wait};
use super::recovery;
use super::refused::{Lost, NotDurable, Refused};
use super::simulated_device::SimulatedDevice;
use super::stored::{Patience, ReadOutcome, Stored, open};
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::Relaxed;

pub const SEED: [u8; 16] = *b"sixteen bytes it";

pub fn small(segments: u64, segment_bytes: u64) -> DiskSettings {
    let mut settings = DiskSettings::new("small", 0);
    settings.segment_bytes = segment_bytes;
    (settings.objects_max, settings.slots_max, settings.bans_bytes_max) = (3000, 64, 4096);
    while Geometry::of(&settings).is_none_or(|geometry| u64::from(geometry.segments) < segments) {
        settings.bytes += 4096;
    }
    settings
}

pub struct Stage {
    pub log: DiskLog,
    pub events: Arc<Mutex<Vec<DiskEvent>>>,
}

impl Stage {
    pub fn open(settings: &DiskSettings, device: Arc<dyn Device>, nonce: u64) -> Stage {
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let geometry = Geometry::of(settings).expect("large enough");
        let told = Arc::new(move |event| heard.lock().push(event));
        let log = recovery::open(device, settings.clone(), geometry, SEED, nonce, told);
        Stage { log, events }
    }

    /// On an empty device.
    pub fn new(settings: &DiskSettings) -> (Stage, Arc<SimulatedDevice>) {
        let device = Arc::new(SimulatedDevice::new(settings.bytes, 1));
        (Stage::open(settings, Arc::clone(&device) as Arc<dyn Device>, 1), device)
    }

    /// All of the index is back.
    pub fn recovered(mut self) -> Stage {
        while self.log.recovering.is_some() {
            self.log.recover_some();
        }
        self
    }

    pub fn sequence(&self) -> u64 {
        self.log.disk.sequence.fetch_add(1, Relaxed) + 1
    }

    pub fn put(&mut self, digest: Digest, head: &[u8], body: &[u8], facts: RecordFacts) -> Result<u64, Refused> {
        let (sequence, (done, awaited)) = (self.sequence(), promise());
        // As a writer does it: extents of whole blocks first.
        let mut rest = body;
        while rest.len() > super::limits::EXTENT_BYTES_MAX {
            let (extent, behind) = rest.split_at(super::limits::EXTENT_BYTES_MAX);
            self.log.apply(Command::Extent { digest, sequence, pieces: vec![Bytes::copy_from_slice(extent)] });
            rest = behind;
        }
        let body = Body { bytes: body.len() as u64, rest: Rest::Pieces(vec![Bytes::copy_from_slice(rest)]) };
        let head = Bytes::copy_from_slice(head);
        self.log.apply(Command::Finish { digest, sequence, body, head, facts, done });
        wait(awaited).expect("the log answers").map(|()| sequence)
    }

    pub fn refresh(&mut self, digest: Digest, sequence: u64, head: &[u8], facts: RecordFacts) -> Result<(), Refused> {
        let (done, awaited) = promise();
        let head = Bytes::copy_from_slice(head);
        self.log.apply(Command::Refresh { digest, body_sequence: sequence, head, facts, done });
        wait(awaited).expect("the log answers")
    }

    /// As the tier does it: out of the index first, then in its turn.
    pub fn invalidate(&mut self, what: Invalidation) -> Awaited<Result<(), NotDurable>> {
        let index = &self.log.disk.index;
        match &what {
            Invalidation::Delete(digest) => drop(index.delete(digest.family, Some(digest.member))),
            Invalidation::DeleteFamily(family) => drop(index.delete(*family, None)),
            Invalidation::Clear => index.clear(),
            _ => {}
        }
        let (done, awaited) = promise();
        self.log.apply(Command::Invalidate { what, done });
        awaited
    }

    /// Invalidates, and waits until it is durable.
    pub fn invalidated(&mut self, what: Invalidation) -> Result<(), NotDurable> {
        let awaited = self.invalidate(what);
        self.log.commit_if_due(false);
        wait(awaited).expect("the log answers")
    }

    pub fn open_record(&self, digest: Digest) -> Result<Stored, Lost> {
        match open(&self.log.disk, digest.short(), Patience::Waits) {
            ReadOutcome::Read(stored) => Ok(stored),
            ReadOutcome::Lost(lost) => Err(lost),
            ReadOutcome::NotAtHand => unreachable!("who waits gets an answer"),
        }
    }

    pub fn get(&self, digest: Digest) -> Result<(Bytes, Vec<u8>), Lost> {
        let stored = self.open_record(digest)?;
        let body = body_of(&stored)?;
        Ok((stored.head().clone(), body))
    }

    pub fn close(&mut self) {
        let (done, _awaited) = promise();
        self.log.apply(Command::Close { done });
    }

    pub fn heard(&self, is_it: impl Fn(&DiskEvent) -> bool) -> bool {
        self.events.lock().iter().any(is_it)
    }
}

pub fn body_of(stored: &Stored) -> Result<Vec<u8>, Lost> {
    match stored.read_all_now(Patience::Waits) {
        ReadOutcome::Read(blocks) => Ok(blocks.pieces(0, u64::MAX).collect::<Vec<_>>().concat()),
        ReadOutcome::Lost(lost) => Err(lost),
        ReadOutcome::NotAtHand => unreachable!("who waits gets an answer"),
    }
}

pub fn digest(n: u64) -> Digest {
    Digest { family: recovery::mixed(n), member: 7 }
}

/// A body that tells whose it is, at every place in it.
pub fn body(of: u64, len: usize) -> Vec<u8> {
    let words = (0u64..).flat_map(|at| recovery::mixed(of << 20 ^ at).to_le_bytes());
    words.take(len).collect()
}

pub const NO_FACTS: RecordFacts = RecordFacts { expires: u64::MAX, number: 0 };
