//! What this crate bounds, and at how much.

use std::time::Duration;

/// Of one value: what memcached takes unless it is told otherwise is 1 MiB with all that belongs to it. A longer record lies in pieces.
pub const VALUE_BYTES_MAX: usize = 1_000_000;

/// Bytes of a record's head: the fields of a response, and what is known of it.
pub const HEAD_BYTES_MAX: usize = 1 << 20;

/// A line of an answer, without what follows it.
pub const LINE_BYTES_MAX: usize = 2_048;

/// Questions under way at once; what comes beyond is not asked.
pub const QUESTIONS_MAX: usize = 4_096;

/// Records that are taken out, and rights that are given back, on their way at once.
pub const NOTES_UNDER_WAY_MAX: usize = 100_000;

/// How long a server may take to take a record.
pub const KEPT_WITHIN: Duration = Duration::from_secs(2);

pub const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long the right to fetch lasts whose holder does not give it back.
pub const RIGHT_LIFE: Duration = Duration::from_secs(10);

/// Who waits for another node's fetch looks after so long, and then after twice as long each time, up to …
pub const LOOK_PAUSE_MIN: Duration = Duration::from_millis(2);
/// … so long.
pub const LOOK_PAUSE_MAX: Duration = Duration::from_millis(40);

/// A server that failed so often in a row is left alone …
pub const FAILURES_MAX: u32 = 3;
/// … for so long, and for twice as long each time that it fails again, up to …
pub const ALONE_MIN: Duration = Duration::from_millis(500);
/// … so long.
pub const ALONE_MAX: Duration = Duration::from_secs(10);

/// A server that goes on failing is told of again after so long.
pub const TOLD_AGAIN: Duration = Duration::from_secs(60);

/// How long a record may lie unasked, whatever it says: what memcached takes for a number of seconds.
pub const LIFE_MAX_S: u64 = 30 * 24 * 3_600;

/// Of the bandwidth, what may be sent at once.
pub const BURST: Duration = Duration::from_millis(500);
