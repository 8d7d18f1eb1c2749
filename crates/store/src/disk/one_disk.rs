//! One disk as all its threads see it: its device, where everything is on it, how it is, and what it counts.
//!
//! Only the log (`disk_log.rs`), on a thread of its own, writes to the device.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::device::Device;
use super::disk_event::DiskEvent;
use super::disk_index::DiskIndex;
use super::disk_settings::DiskSettings;
use super::geometry::{Geometry, Superblock};
use super::limits::READ_ERRORS_MAX;
use super::refused::Refused;
use super::segment_table::SegmentTable;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

pub type Told = Arc<dyn Fn(DiskEvent) + Send + Sync>;

/// How a disk is.
///
/// | it is | read | written | leaves by |
/// |---|---|---|---|
/// | `Up` | yes | yes | an error of a write: `ReadOnly` or `Dropped`; errors of reads, or of a sync: `Dropped` |
/// | `ReadOnly` | yes | no | a probe that succeeds: `Up`; errors of reads: `Dropped` |
/// | `Dropped` | no | no | a probe that succeeds: `Up` |
/// | `Closed` | yes | no | `HandedOver` |
/// | `HandedOver` | yes | no, another process may | taken back: `Dropped` |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskState {
    Up,
    ReadOnly,
    Dropped,
    Closed,
    HandedOver,
}

impl DiskState {
    const ALL: [DiskState; 5] =
        [DiskState::Up, DiskState::ReadOnly, DiskState::Dropped, DiskState::Closed, DiskState::HandedOver];

    pub const fn token(self) -> &'static str {
        match self {
            DiskState::Up => "up",
            DiskState::ReadOnly => "read-only",
            DiskState::Dropped => "dropped",
            DiskState::Closed => "closed",
            DiskState::HandedOver => "handed-over",
        }
    }
}

/// Figures since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Records that were read.
    pub hits: AtomicU64,
    pub blocks_read: AtomicU64,
    /// Of both, what was in memory.
    pub hits_at_hand: AtomicU64,
    /// Answers that were sent from the file.
    pub leased: AtomicU64,
    /// Pages of the checkpoint that the index came from, or comes from, and those that were read.
    pub index_pages: AtomicU64,
    pub index_pages_read: AtomicU64,
    pub lost_gone: AtomicU64,
    pub lost_damaged: AtomicU64,
    pub lost_busy: AtomicU64,
    pub lost_failed: AtomicU64,
    pub bytes_read: AtomicU64,
    pub stored: AtomicU64,
    pub refreshed: AtomicU64,
    pub refused: [AtomicU64; Refused::ALL.len()],
    pub bytes_written: AtomicU64,
    pub deleted: AtomicU64,
    pub acknowledged: AtomicU64,
    pub reclaimed_segments: AtomicU64,
    pub reinserted: AtomicU64,
    pub checkpoints: AtomicU64,
    pub commits: AtomicU64,
    pub dropped: AtomicU64,
    pub taken_back: AtomicU64,
}

/// See the module.
pub struct OneDisk {
    pub device: Arc<dyn Device>,
    pub path: PathBuf,
    pub settings: DiskSettings,
    pub superblock: Mutex<Superblock>,
    store: AtomicU64,
    pub geometry: Geometry,
    pub index: DiskIndex,
    pub segments: SegmentTable,
    pub counters: Counters,
    /// The last sequence number given to a record.
    pub sequence: AtomicU64,
    /// The greatest of a record that was written, or refused.
    pub settled: AtomicU64,
    /// The caller's time, in its units.
    pub now: AtomicU64,
    /// Part of the index is still to be read.
    pub recovering: AtomicBool,
    /// Another process may still read what was written before this one: nothing of it is written over.
    pub spares: AtomicBool,
    state: AtomicU8,
    read_errors: AtomicU32,
    told: Told,
}

impl OneDisk {
    pub fn new(
        device: Arc<dyn Device>,
        settings: DiskSettings,
        superblock: Superblock,
        state: DiskState,
        told: Told,
    ) -> OneDisk {
        OneDisk {
            device,
            path: settings.path.clone(),
            index: DiskIndex::new(settings.objects_max),
            segments: SegmentTable::new(superblock.geometry.segments),
            geometry: superblock.geometry,
            superblock: Mutex::new(superblock),
            store: AtomicU64::new(superblock.store),
            spares: AtomicBool::new(settings.follows),
            settings,
            counters: Counters::default(),
            sequence: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            now: AtomicU64::new(0),
            recovering: AtomicBool::new(false),
            state: AtomicU8::new(state as u8),
            read_errors: AtomicU32::new(0),
            told,
        }
    }

    /// Which store it is: part of every checksum.
    #[inline]
    pub fn store(&self) -> u64 {
        self.store.load(Relaxed)
    }

    /// The file that bodies may be sent from without a copy.
    pub fn leased_file(&self) -> Option<Arc<File>> {
        self.device.file().filter(|_| self.settings.leases)
    }

    /// Whoever had the file before may have sent from it, and sockets outlive a process: what is written first to a segment
    /// must not be seen through them.
    pub fn distrust_sockets(&self) {
        if self.leased_file().is_some() {
            self.segments.distrust_all();
        }
    }

    /// It is another store from now on.
    pub fn renew(&self, superblock: Superblock) {
        *self.superblock.lock() = superblock;
        self.store.store(superblock.store, Relaxed);
    }

    #[inline]
    pub fn state(&self) -> DiskState {
        DiskState::ALL[usize::from(self.state.load(SeqCst))]
    }

    /// Goes over from one of these states. False if it was in none of them.
    fn leave(&self, states: &[DiskState], to: DiskState) -> bool {
        let leave = |state: &DiskState| self.state.compare_exchange(*state as u8, to as u8, SeqCst, SeqCst).is_ok();
        states.iter().any(leave)
    }

    pub fn is_up(&self) -> bool {
        self.state() == DiskState::Up
    }

    pub fn is_read(&self) -> bool {
        self.state() != DiskState::Dropped
    }

    pub fn tell(&self, event: DiskEvent) {
        (self.told)(event);
    }

    pub fn count_refusal(&self, refused: Refused) {
        let at = Refused::ALL.iter().position(|other| *other == refused).expect("it lists all");
        self.counters.refused[at].fetch_add(1, Relaxed);
    }

    /// A write failed. A full or write-protected disk is still good to read; anything else is not to be trusted.
    pub fn write_failed(&self, error: &io::Error) {
        use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded | ReadOnlyFilesystem => self.stop_writing(error),
            _ => self.drop_it(error),
        }
    }

    fn stop_writing(&self, error: &io::Error) {
        if self.leave(&[DiskState::Up], DiskState::ReadOnly) {
            self.tell(DiskEvent::ReadOnly { path: self.path.clone(), error: error.to_string() });
        }
    }

    /// It is neither read nor written until a probe succeeds.
    pub fn drop_it(&self, error: &io::Error) {
        if self.leave(&[DiskState::Up, DiskState::ReadOnly, DiskState::HandedOver, DiskState::Up], DiskState::Dropped) {
            self.counters.dropped.fetch_add(1, Relaxed);
            self.tell(DiskEvent::Dropped { path: self.path.clone(), error: error.to_string() });
        }
    }

    pub fn take_back(&self) {
        // Counted first: what was trusted before is not, from the moment on in which it can be read again.
        self.counters.taken_back.fetch_add(1, SeqCst);
        self.state.store(DiskState::Up as u8, SeqCst);
        self.read_errors.store(0, Relaxed);
        self.tell(DiskEvent::TakenBack { path: self.path.clone() });
    }

    pub fn close(&self) {
        self.leave(&[DiskState::Up, DiskState::ReadOnly], DiskState::Closed);
    }

    /// From here on another process may have it.
    pub fn hand_over(&self) {
        self.leave(&[DiskState::Closed, DiskState::Dropped], DiskState::HandedOver);
    }

    /// A read failed: once is a bad sector, again and again is a bad disk.
    pub fn read_failed(&self, error: &io::Error) {
        if self.read_errors.fetch_add(1, Relaxed) + 1 >= READ_ERRORS_MAX {
            self.drop_it(error);
        }
    }

    pub fn read_succeeded(&self) {
        if self.read_errors.load(Relaxed) != 0 {
            self.read_errors.store(0, Relaxed);
        }
    }

    /// What was read is not what was written.
    pub fn found_damage(&self, offset: u64) {
        // The first, the second, the fourth: a row of them is told in a few lines.
        if (self.counters.lost_damaged.fetch_add(1, Relaxed) + 1).is_power_of_two() {
            self.tell(DiskEvent::Damaged { path: self.path.clone(), offset });
        }
    }
}
