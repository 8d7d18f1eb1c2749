//! What no text that comes may pass.

/// A decoder of zstd remembers so much of what it has said, in powers of two: 8 MiB, as RFC 9659 §3 has it for HTTP.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// The window of a text that is coded to zstd and of which nobody knows how long it will be, in powers of two: 1 MiB.
pub(crate) const ZSTD_UNKNOWN_WINDOW_LOG: u32 = 20;

/// Beyond it windows are larger than clients need to have (RFC 9659 §3).
pub const ZSTD_LEVEL_MAX: u8 = 19;

/// What may come of a coded text however short it is. Beyond it the ratio counts.
pub const DECODED_FREE_BYTES: u64 = 16 << 20;

/// How many bytes one coded byte may stand for. Pages of real sites are below 100; a bomb of gzip has 1,030, one of brotli or zstd
/// as many as it likes.
pub const DECODED_RATIO_MAX: u64 = 250;

/// What one call of a codec may write before it is asked again.
pub(crate) const STEP_BYTES: usize = 32 << 10;

/// The window of a text that is coded to gzip: all that the format has, in powers of two.
pub(crate) const GZIP_WINDOW_LOG: u8 = 15;

/// The same while somebody waits: 512 KiB.
pub(crate) const BROTLI_QUICK_WINDOW_LOG: u32 = 19;

/// The window of a text that is coded to brotli, in powers of two: 4 MiB.
pub(crate) const BROTLI_WINDOW_LOG: u32 = 22;

/// A dictionary that is longer is none: its reader would have to remember it and the text in [`ZSTD_WINDOW_LOG_MAX`], of which a text that
/// has not grown much takes the other half (RFC 9842 §5 has 8 MiB or more).
pub const DICTIONARY_BYTES_MAX: usize = 4 << 20;

/// The smallest window of what is coded by a dictionary, in powers of two …
pub(crate) const DELTA_WINDOW_LOG_MIN: u32 = 16;

/// … and the largest in brotli: 16 MiB, as RFC 9842 §4 has it.
pub(crate) const BROTLI_DELTA_WINDOW_LOG_MAX: u32 = 24;

/// Beneath it brotli looks at no dictionary.
pub(crate) const BROTLI_DELTA_LEVEL_MIN: u8 = 2;
