//! The bounds of what these rules will consider. A thing beyond its bound is treated in the safe direction:
//! not stored, not normalised, or sent whole.

/// RFC 9111 §1.2.2: a greater number of seconds counts as 2^31.
pub const DELTA_SECONDS_MAX: u64 = 1 << 31;

/// A response whose Vary names more fields than this is not stored.
pub const VARY_NAMES_MAX: usize = 16;

/// An Accept-Encoding or Accept-Language with more members than this is compared as it was sent.
pub const NORMALISED_MEMBERS_MAX: usize = 24;

/// A Range with more ranges than this is ignored, which RFC 9110 §14.2 allows; the answer is the whole.
pub const RANGES_MAX: usize = 16;

/// A list of entity tags is read this far; what follows does not match.
pub const ENTITY_TAGS_MAX: usize = 256;

/// Members of a forwarding field that are looked at, from the right.
pub const FORWARDED_HOPS_MAX: usize = 32;

/// A No-Vary-Search that lists more parameters than this, or is longer, counts as not sent.
pub const VARIATION_KEYS_MAX: usize = 64;
pub const VARIATION_BYTES_MAX: usize = 1024;

/// A query of more parameters than this is not normalised by No-Vary-Search: a request must not cost the more, the more
/// of them it brings.
pub const VARIED_PARAMETERS_MAX: usize = 256;

/// A response that belongs to more cache groups than this is not stored. RFC 9875 §2 asks for 32 at least.
pub const GROUPS_MAX: usize = 128;

/// What is longer is no pattern of URLs that a dictionary is for, and what has more stars neither: a look at a URL takes no longer for them.
pub const URL_PATTERN_BYTES_MAX: usize = 1024;
pub const URL_PATTERN_STARS_MAX: usize = 8;

/// RFC 9842 §2.1.3: what a dictionary is called may have so many characters. One of our own fields that is longer than the rest of it counts
/// as not sent.
pub const DICTIONARY_ID_CHARS_MAX: usize = 1024;
pub const USE_AS_DICTIONARY_BYTES_MAX: usize = 4 * 1024;
pub const AVAILABLE_DICTIONARY_BYTES_MAX: usize = 128;

/// RFC 9110 §5.6.7: a two-digit year further ahead than this many years is in the past century.
pub const RFC850_YEARS_AHEAD_MAX: i64 = 50;

const _: () = assert!(DELTA_SECONDS_MAX < u64::MAX / 1000 / 4, "milliseconds of two of them must add up");
