//! How much an authority may ask of us, and how often we ask it.

use std::time::Duration;

/// Names of one certificate; Let's Encrypt takes no more.
pub const NAMES_MAX: usize = 100;
/// An answer of an authority: a chain of certificates, or a directory, is far smaller.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;
/// For one request to an authority, from the name's look-up to the last byte.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// For an order from its first request to the certificate.
pub const ORDER_TIMEOUT: Duration = Duration::from_secs(300);
/// For an authority to look at what it asked for, and to sign.
pub const POLL_TIMEOUT: Duration = Duration::from_secs(120);
/// Orders of one process that are under way at once.
pub const ORDERS_MAX: usize = 4;
/// What an authority says of a failure, as far as it is repeated.
pub const REASON_CHARS_MAX: usize = 400;

/// How long a node gives the others that share its folder to hear of a challenge before it asks to be looked at, and how often they
/// look.
pub const CHALLENGE_SPREAD: Duration = Duration::from_millis(1_500);
pub const CHALLENGE_LOOK_EVERY: Duration = Duration::from_millis(500);
/// A challenge that a node left behind when it crashed is not answered any more.
pub const CHALLENGE_LIFE_S: u64 = 600;
/// Challenges of others that are looked at.
pub const CHALLENGES_MAX: usize = 1_000;

/// The pause after the first failure doubles with each further one.
pub const PAUSE_FIRST: Duration = Duration::from_secs(300);
pub const PAUSE_MIN: Duration = Duration::from_secs(1);
pub const PAUSE_MAX: Duration = Duration::from_secs(6 * 3_600);
/// An authority may put us off for no longer: Let's Encrypt's longest is a week.
pub const RETRY_AFTER_MAX_S: u64 = 8 * 86_400;
/// How often an authority is asked when it wants a certificate renewed, where it does not say, and within which bounds where it
/// does (RFC 9773 §4.3.2).
pub const RENEWAL_INFO_EVERY_S: u64 = 6 * 3_600;
pub const RENEWAL_INFO_EVERY_MIN_S: u64 = 60;
pub const RENEWAL_INFO_EVERY_MAX_S: u64 = 86_400;
/// The clocks of nodes that share a folder are no further apart: what was noted for later than any pause and this was noted by a clock that
/// went ahead and has been set back since.
pub const CLOCKS_APART_MAX_S: u64 = 3_600;
/// The folder is looked at this often though nothing is due: clocks jump, and others write.
pub const LOOK_EVERY: Duration = Duration::from_secs(30);
/// While somebody else orders.
pub const LOCK_LOOK_EVERY: Duration = Duration::from_secs(2);

/// A file of the folder.
pub const STATE_FILE_BYTES_MAX: u64 = 1 << 20;

const _: () =
    assert!(RENEWAL_INFO_EVERY_MIN_S < RENEWAL_INFO_EVERY_S && RENEWAL_INFO_EVERY_S < RENEWAL_INFO_EVERY_MAX_S);
const _: () = assert!(POLL_TIMEOUT.as_secs() * 2 < ORDER_TIMEOUT.as_secs());
const _: () = assert!(CHALLENGE_LOOK_EVERY.as_millis() * 2 < CHALLENGE_SPREAD.as_millis());
const _: () = assert!(ORDER_TIMEOUT.as_secs() < CHALLENGE_LIFE_S);
