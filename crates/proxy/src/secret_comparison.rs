//! Whether what somebody has sent is a secret.

/// Takes as long for a near miss as for a far one.
pub fn is_same_secret(given: &[u8], secret: &[u8]) -> bool {
    given.len() == secret.len() && given.iter().zip(secret).fold(0, |differs, (x, y)| differs | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        assert!(is_same_secret(b"", b"") && is_same_secret(b"abc", b"abc"));
        for given in [&b"abd"[..], b"bbc", b"ab", b"abcd", b""] {
            assert!(!is_same_secret(given, b"abc"));
        }
    }
}
