//! The SSD tier: an append-only log of segments on preallocated files, that survives restarts and crashes.
//!
//! Read `disk/tier.rs` first: its verbs are all that the cache uses. A record's way: `disk_writer.rs` on the caller's
//! thread, a queue (`disk_queue.rs`), the log on its own (`disk_log.rs`, `open_segment.rs`), the index (`disk_index.rs`), the
//! journal (`journal.rs`); back through `reading.rs` and `stored.rs`. At a start: `recovery.rs`. What lies where:
//! `geometry.rs` and docs/store-format.md.
//!
//! What must stay true. Every record is checksummed, and its name compared, before it is handed out. What was invalidated does not come
//! back; after a crash neither, if the invalidation was acknowledged. No segment is written again while somebody reads in it, nor before
//! its pages were detached from the sockets that they were leased to. No caller ever waits for a disk. A disk that fails costs hits and
//! nothing else.
//!
//! It knows no HTTP: names are digests that somebody made, heads, bodies and the texts of bans are bytes.

mod body_on_disk;
mod body_stretch;
mod checkpoint;
mod checkpointing;
mod device;
mod disk_command;
mod disk_digest;
mod disk_event;
mod disk_index;
mod disk_invalidation;
mod disk_log;
mod disk_queue;
mod disk_settings;
mod disk_stats;
mod disk_threads;
mod disk_writer;
mod encoding;
mod faulty_device;
mod file_device;
mod geometry;
mod head_record;
mod journal;
mod journal_entry;
mod knowledge;
mod late_device;
pub mod limits;
mod one_disk;
mod open_segment;
mod promise;
mod reading;
mod reclaimer;
mod recovery;
mod refused;
mod segment_table;
mod simulated_device;
mod stored;
mod syncer;
mod tier;

pub use body_on_disk::{BodyOnDisk, LeasedBody, Place};
pub use device::{Device, Renewed};
pub use disk_digest::Digest;
pub use disk_event::{DiskEvent, WhyDiscarded};
pub use disk_invalidation::Invalidation;
pub use disk_settings::DiskSettings;
pub use disk_stats::DiskStats;
pub use disk_writer::{Acknowledged, Placing, Writer};
pub use faulty_device::{Faults, FaultyDevice};
pub use file_device::disk_file;
pub use geometry::FORMAT_VERSION;
pub use head_record::RecordFacts;
pub use knowledge::Ban;
pub use late_device::is_passing_fault;
pub use one_disk::{DiskState, Told};
pub use promise::wait;
pub use reading::{Candidate, Reading};
pub use refused::{Lost, NotDurable, Refused};
pub use simulated_device::SimulatedDevice;
pub use stored::Stored;
pub use tier::{OpenError, Recovered, Tier, WhyNotOpened};

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
