//! The numbers of the disk tier. What of them is part of the format is in docs/store-format.md too.

use std::time::Duration;

use crate::limits::BLOCK_BYTES;

/// The grain of places: every record and every extent begins at a multiple of it. It is the sector that a torn write
/// leaves whole. A page of 4 KiB would waste 2 KiB of each object on average, a third of a small site; nothing here
/// goes around the page cache, so nothing needs the page.
pub const UNIT_BYTES: u64 = 512;

/// A segment: what is written in one go and reclaimed in one go.
pub const SEGMENT_BYTES: u64 = 64 << 20;
/// Fewer make no log: one is written, one is being emptied, one is kept for what is written meanwhile.
pub const SEGMENTS_MIN: u64 = 4;
/// The smallest segment: a head and a small body with it.
pub const SEGMENT_BYTES_MIN: u64 = 16 << 10;
/// The largest: places within it fit in 32 bits.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 30;

/// A body goes to the disk in extents of this: whole blocks, so that every block lies in one extent.
pub const EXTENT_BYTES_MAX: usize = 16 * BLOCK_BYTES;

/// Pieces that are written at once: a record, the blocks of an extent, and what pads them.
pub const SLICES_A_WRITE: usize = EXTENT_BYTES_MAX / BLOCK_BYTES + 2;

/// One object takes at most this part of a disk (1/4): it must not push out all others.
pub const OBJECT_SHARE_SHIFT: u32 = 2;

/// The largest opaque head.
pub const HEAD_BYTES_MAX: usize = 1 << 20;
/// The largest record: an opaque head and the table of the extents of its body. 4 MiB are a body of some 50 GB.
pub const RECORD_BYTES_MAX: usize = 4 << 20;
/// What is read at once in the hope that it holds record and body.
pub const SPAN_UNITS_MAX: u64 = 192;

/// Members of one family: they are neighbours in the index, and a look-up walks past all of them.
pub const FAMILY_MEMBERS_MAX: usize = 64;
/// How often a record was asked for, as far as it is counted.
pub const USES_MAX: u8 = 3;
/// The room of an object for which index and checkpoints are laid out, unless a setting says otherwise.
pub const OBJECT_BYTES_MEAN_MIN: u64 = 4096;

/// The share of the store that each of the four copies of the journal gets: 1/256, within bounds.
pub const JOURNAL_SHARE_SHIFT: u32 = 8;
pub const JOURNAL_BYTES_MIN: u64 = 64 << 10;
pub const JOURNAL_BYTES_MAX: u64 = 64 << 20;
/// Entries in one block of the journal.
pub const JOURNAL_PAYLOAD_BYTES_MAX: usize = 32 << 10;
/// So many bytes of entries are written without waiting for the next tick.
pub const JOURNAL_DUE_BYTES: usize = 16 << 10;

/// A page of a checkpoint.
pub const PAGE_BYTES: usize = 64 << 10;
/// Written or read by one step of a checkpoint or a recovery, between two looks at the queue.
pub const PAGES_A_STEP: u64 = 16;
/// And of a checkpoint at most so many shards of the index; in tests few, so that much happens between them.
#[cfg(not(test))]
pub const SHARDS_A_STEP: usize = 64;
#[cfg(test)]
pub const SHARDS_A_STEP: usize = 5;

/// The text of one ban.
pub const BAN_TEXT_BYTES_MAX: usize = 16 << 10;
/// All bans together.
pub const BANS_BYTES_MAX: usize = 1 << 20;
/// Slots of tags and groups that have a number.
pub const SLOTS_MAX: usize = 64 << 10;

/// Bodies that wait to be written.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;
/// Commands that wait for the writer, whatever they are about.
pub const COMMANDS_QUEUED_MAX: usize = 64 << 10;
/// Reads that wait for a reader; the next is a miss.
pub const READS_QUEUED_MAX: usize = 1024;
/// Threads that read.
pub const READERS: usize = 4;

/// Segments that are kept free, so that a write seldom waits for a reclaim.
pub const SEGMENTS_FREE_MIN: usize = 2;
/// The part of a segment that reclaim may write anew, in percent: the rest is what it gains.
pub const REINSERTED_PERCENT_MAX: u64 = 50;

/// Reads that may fail one after another before the disk is dropped.
pub const READ_ERRORS_MAX: u32 = 8;
/// The writer looks around so often when there is nothing to do, in milliseconds …
pub const TICK_MS: u64 = 200;
/// … and tries a disk that was dropped every so many looks …
pub const PROBE_TICKS: u32 = 25;
/// … or, where it fails again each time that it was taken back, up to so many: what is said of it stays a few lines a minute.
pub const PROBE_TICKS_MAX: u32 = 300;

/// The largest piece of a file that a kernel caches as one: pages of 4 KiB make folios of up to 2 MiB, at multiples of their
/// size. When a range is punched out of a file, what of a folio at its edges lies in it is set to zero where it is, under
/// whatever socket refers to it. So what is nearer to a segment's ends than this is never sent from there.
pub const FOLIO_BYTES_MAX: u64 = 2 << 20;
/// Of larger pages than this the kernel makes larger folios: then nothing is leased.
pub const LEASED_PAGE_BYTES_MAX: usize = 4 << 10;
/// The part of the segments (1/2) that answers may keep from being reclaimed: the others are for what is written.
pub const LEASED_SHARE_SHIFT: u32 = 1;

/// How long the end of a process waits for a disk.
pub const CLOSE_PATIENCE: Duration = Duration::from_secs(30);

const _: () = assert!(FOLIO_BYTES_MAX.is_power_of_two() && LEASED_SHARE_SHIFT > 0);
const _: () = assert!(EXTENT_BYTES_MAX.is_multiple_of(BLOCK_BYTES) && (BLOCK_BYTES as u64).is_multiple_of(UNIT_BYTES));
const _: () =
    assert!(SEGMENT_BYTES_MIN.is_multiple_of(UNIT_BYTES) && SEGMENT_BYTES_MAX / UNIT_BYTES <= u32::MAX as u64);
const _: () = assert!(HEAD_BYTES_MAX < RECORD_BYTES_MAX && RECORD_BYTES_MAX as u64 / UNIT_BYTES <= u16::MAX as u64);
const _: () = assert!(BAN_TEXT_BYTES_MAX + 64 <= JOURNAL_PAYLOAD_BYTES_MAX && BAN_TEXT_BYTES_MAX <= BANS_BYTES_MAX);
const _: () =
    assert!(JOURNAL_PAYLOAD_BYTES_MAX as u64 * 2 <= JOURNAL_BYTES_MIN && JOURNAL_BYTES_MIN <= JOURNAL_BYTES_MAX);
