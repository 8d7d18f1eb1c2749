//! The numbers of the memory tier.

/// The size of every block of a body but its last.
pub const BLOCK_BYTES: usize = 64 * 1024;

/// While a body grows, two neighbouring pieces that fit in this together become one, so that an origin that sends
/// single bytes cannot make a list of 65,536 pieces.
pub const PIECE_JOIN_BYTES_MAX: usize = 4 * 1024;

/// What is evicted but still held by a reader may exceed the limit by this part of it (1/16) before it makes
/// others leave. Without the slack, every admission would evict again for objects that the hot tables let go of
/// only at their next sweep.
pub const LEAVING_SLACK_SHIFT: u32 = 4;

/// The part of the limit that S3-FIFO's probation queue may hold, in percent (the paper's value).
pub const PROBATION_PERCENT: usize = 10;

/// Hits that an object needs while on probation to be moved to the main queue instead of out.
pub const PROMOTION_HITS: u8 = 2;

/// Where the hit counter of a seat stops: S3-FIFO's two bits.
pub const SEAT_HITS_MAX: u8 = 3;

/// Tenants that one search for a victim may pass over. The policy is locked meanwhile, and a shard may wait for it:
/// 256 are some 25 µs. Then the next one leaves, however often it was used.
pub const PASSED_OVER_MAX: usize = 256;

/// The ghost queue remembers at most as many keys as there are tenants, and never fewer than this …
pub const GHOSTS_MIN: usize = 1024;
/// … nor more than this (24 MiB of keys).
pub const GHOSTS_MAX: usize = 1 << 20;

const _: () = assert!(PROMOTION_HITS <= SEAT_HITS_MAX && GHOSTS_MIN <= GHOSTS_MAX);
const _: () = assert!(PIECE_JOIN_BYTES_MAX * 4 <= BLOCK_BYTES && PROBATION_PERCENT < 100);

/// Bodies from this size on lie in the page file: sending them without a copy saves more than the second system call
/// costs.
pub const PAGES_BYTES_MIN: u64 = 48 << 10;
/// Larger ones stay in the blocks in which they arrived: while a body is promoted both copies take memory, and a range of it may
/// be copied out again.
pub const PAGES_BYTES_MAX: u64 = 2 << 20;
const _: () = assert!(PAGES_BYTES_MIN <= PAGES_BYTES_MAX);
