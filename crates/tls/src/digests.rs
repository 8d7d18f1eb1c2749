//! Digests that protocols ask for by name.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA1_OUTPUT_LEN, digest};

/// SHA-1, for those that prove with it that something was read (RFC 6455 §1.3), and never for who somebody is.
pub fn sha1(bytes: &[u8]) -> [u8; SHA1_OUTPUT_LEN] {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    digest.as_ref().first_chunk().copied().unwrap_or([0; SHA1_OUTPUT_LEN])
}
