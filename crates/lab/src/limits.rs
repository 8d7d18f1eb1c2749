//! The generator's bounds, and what it takes for granted.

use std::time::Duration;

/// Connections of one run; more than one address offers ports for need several source addresses.
pub const CONNECTIONS_MAX: usize = 60_000;
pub const THREADS_MAX: usize = 256;
pub const PIPELINE_MAX: usize = 1_000;
/// Starts a second of an open loop.
pub const RATE_MAX: f64 = 10_000_000.0;
pub const DURATION_MAX: Duration = Duration::from_secs(7 * 86_400);

/// A URL list is read whole.
pub const URL_LIST_BYTES_MAX: u64 = 1 << 30;
pub const URLS_MAX: usize = 10_000_000;
/// As much as our own server takes.
pub const URL_BYTES_MAX: usize = 8_000;

/// The buffer that all reads of a thread share.
pub const SCRATCH_BYTES: usize = 64 << 10;

/// The head of an answer; beyond it an answer is none.
pub const ANSWER_HEAD_BYTES_MAX: usize = 128 << 10;
/// Answers with a status of 1xx before the one that counts.
pub const INTERIM_ANSWERS_MAX: usize = 32;
/// Extensions of one chunk; all trailers.
pub const CHUNK_FRAMING_BYTES_MAX: u32 = 16 << 10;
/// A longer head is read each time, though it be the same.
pub const HEAD_MEMO_BYTES_MAX: usize = 4 << 10;

/// Learned bodies that are kept to compare others with; those beyond are known by their checksum.
pub const LEARNED_BYTES_MAX: usize = 16 << 20;
pub const LEARNED_BODIES_MAX: usize = 1 << 16;

/// Latencies are kept in microseconds up to this, with this many significant digits; a longer one counts as this.
pub const LATENCY_MICROS_MAX: u64 = 60_000_000;
pub const LATENCY_DIGITS: u8 = 3;
/// The histogram of one second, for the line that is printed while it runs.
pub const SECOND_DIGITS: u8 = 2;

/// Lives of sessions are kept in milliseconds, up to the longest run.
pub const SESSION_MILLIS_MAX: u64 = DURATION_MAX.as_secs() * 1_000;
pub const SESSION_DIGITS: u8 = 3;
pub const SESSIONS_MAX: u64 = 1_000_000_000;
/// Of one session.
pub const SESSION_CALLS_MAX: u32 = 100_000;
/// Rates of one run that follow one another.
pub const RATES_MAX: usize = 1_000;

/// A percentile is shown when so many requests lie beyond it; with fewer it says more about luck than about the server.
pub const SAMPLES_BEYOND_MIN: f64 = 100.0;

/// After a connection that could not be opened, its user waits this long: a target that is down is no race.
pub const CONNECT_PAUSE: Duration = Duration::from_millis(10);
/// How often a thread looks whether it was told to stop.
pub const STOP_LOOK: Duration = Duration::from_millis(50);
/// The share of a core from which on the client may be what is measured.
pub const BUSY_SHARE_MAX: f64 = 0.8;
/// Statuses are counted one by one up to this.
pub const STATUS_MAX: usize = 999;
/// Of the first answer's head, for reports that print what is in it.
pub const FIRST_READ_BYTES_MAX: usize = 4 << 10;
/// Of the text of an error's sample.
pub const SAMPLE_BYTES_MAX: usize = 200;

const _: () = assert!(SECOND_DIGITS < LATENCY_DIGITS);
