//! The limits of the origin side that are not for operators to set: bounds on what name servers may tell us and on
//! how often we try again. Those that operators set are in the crate's `limits.rs` and in `OriginSettings`.

use std::time::Duration;

/// Addresses tried for one request before its client is told that the origin is not there.
pub const DIAL_ATTEMPTS_MAX: usize = 3;
/// Whoever comes back gets so many thousandths of its share at least, or it would never be seen to answer.
pub const SLOW_PERMILLE_MIN: u32 = 50;
/// Turns in a round of addresses of different weights, and one more for each that weighs very little.
pub const TURNS_MAX: u64 = 1 << 14;
/// Where several addresses are tried beside one another, each is alone for so long (RFC 8305 §8 recommends it).
pub const DIAL_HEAD_START: Duration = Duration::from_millis(250);
/// Records taken from one name of a service; each has a name that is looked up.
pub const SERVICE_RECORDS_MAX: usize = 32;
/// Addresses taken from one name.
pub const ADDRESSES_PER_NAME_MAX: usize = 64;
/// An answer's time to live is not believed below this: a TTL of 0 would mean a lookup per request.
pub const TTL_MIN_MS: u64 = 1_000;
/// Nor above this: a mistyped TTL of a week must not outlive the operator's patience.
pub const TTL_MAX_MS: u64 = 3_600_000;
/// The hosts file is read again so often.
pub const HOSTS_FILE_TTL_MS: u64 = 10_000;
/// After a lookup failed the next one waits so long; meanwhile old addresses are used, or the failure is the answer.
pub const RESOLVE_RETRY_MS: u64 = 1_000;
/// Requests wait so long for new addresses of a name whose old ones expired, then use the old ones.
pub const STALE_WAIT_MS: u64 = 500;
/// One question to one name server.
pub const QUESTION_TIMEOUT: Duration = Duration::from_secs(2);
/// Rounds of questions before a lookup has failed.
pub const QUESTION_ROUNDS_MAX: usize = 2;
/// A hosts file larger than this is not read.
pub const HOSTS_FILE_BYTES_MAX: u64 = 4 << 20;
/// A UNIX socket whose backlog is full refuses at once instead of waiting as TCP does: we try again so often.
pub const UNIX_BACKLOG_PAUSE: Duration = Duration::from_millis(5);
/// Shelves an address has for its idle connections: one per core of the machine within these bounds (there may be more
/// workers than cores). Workers beyond share them.
pub const SHELVES_MIN: usize = 16;
pub const SHELVES_MAX: usize = 64;
/// A question without any answer after so long is lost, and is asked again.
pub const QUESTION_LOST_MS: u64 = 60_000;

const _: () = assert!(TTL_MIN_MS < TTL_MAX_MS && HOSTS_FILE_TTL_MS <= TTL_MAX_MS && STALE_WAIT_MS < TTL_MIN_MS);
const _: () =
    assert!(DIAL_ATTEMPTS_MAX > 0 && SHELVES_MIN > 0 && SHELVES_MIN <= SHELVES_MAX && ADDRESSES_PER_NAME_MAX > 0);
