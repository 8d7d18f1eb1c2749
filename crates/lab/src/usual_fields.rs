//! What stands in the fields of the lab's own servers, unless a query asks for something else.
//!
//! All but the date follows from the path and the length, so each server of ours says the same of the same body.

use std::time::{Duration, UNIX_EPOCH};

/// Of all bodies: they have been so ever since.
pub(crate) const LAST_MODIFIED: &str = "Mon, 01 Jan 2024 00:00:00 GMT";
/// The same moment, in seconds of the UNIX epoch.
pub(crate) const LAST_MODIFIED_SECONDS: u64 = 1_704_067_200;
pub(crate) const MAX_AGE_SECONDS: u64 = 3_600;

pub(crate) fn append_date(out: &mut Vec<u8>, wall_seconds: u64) {
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(wall_seconds));
    out.extend_from_slice(format!("Date: {date}\r\n").as_bytes());
}

/// Other for another path or another length.
pub(crate) fn etag(seed: u64, size: u64) -> String {
    format!("\"{seed:016x}-{size:x}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moment_is_the_same_in_both_forms() {
        let mut out = Vec::new();
        append_date(&mut out, LAST_MODIFIED_SECONDS);
        assert_eq!(out, format!("Date: {LAST_MODIFIED}\r\n").into_bytes());
    }
}
