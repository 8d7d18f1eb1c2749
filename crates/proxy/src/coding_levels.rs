//! How hard a coding is tried, and which coder makes it.

use coding::Coding;
use rules::{ContentCoding, DeltaCoding};

use crate::limits::{BROTLI_BEST_BYTES_MAX, CODED_TEXT_RATIO};

/// How hard each coding is tried while somebody waits.
pub(crate) const fn quick_level(coding: Coding) -> u8 {
    match coding {
        Coding::Gzip => 5,
        Coding::Brotli => 4,
        Coding::Zstd => 3,
    }
}

/// How hard what differs from a dictionary is looked for: somebody waits, and it is made once.
pub(crate) const fn delta_level(coding: DeltaCoding) -> u8 {
    match coding {
        DeltaCoding::Brotli => 5,
        DeltaCoding::Zstd => 6,
    }
}

/// What a coding by a dictionary is made by.
pub(crate) const fn coder_of(coding: DeltaCoding) -> Coding {
    match coding {
        DeltaCoding::Brotli => Coding::Brotli,
        DeltaCoding::Zstd => Coding::Zstd,
    }
}

/// `None`: as it is.
pub(crate) const fn coding_of(coding: ContentCoding) -> Option<Coding> {
    match coding {
        ContentCoding::Identity => None,
        ContentCoding::Gzip => Some(Coding::Gzip),
        ContentCoding::Brotli => Some(Coding::Brotli),
        ContentCoding::Zstd => Some(Coding::Zstd),
    }
}

/// How long the text may be of what is so long in this coding: what is longer is coded as well, and not quite as short.
pub(crate) const fn text_bytes(coding: ContentCoding, length: u64) -> u64 {
    match coding {
        ContentCoding::Identity => length,
        _ => length.saturating_mul(CODED_TEXT_RATIO),
    }
}

/// How hard each coding is tried where nobody waits.
pub(crate) const fn best_level(coding: Coding, length: u64) -> u8 {
    match coding {
        Coding::Gzip => 9,
        Coding::Brotli if length <= BROTLI_BEST_BYTES_MAX => 11,
        Coding::Brotli => 9,
        Coding::Zstd => 19,
    }
}
