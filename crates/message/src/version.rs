//! The two versions of HTTP/1 that larder speaks.

/// RFC 9112 §2.3. A sender of `HTTP/1.2` is treated as 1.1 (RFC 9110 §2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    Http10,
    Http11,
    /// RFC 9113.
    Http2,
}

impl Version {
    /// In the order of their numbers.
    pub const ALL: [Version; 3] = [Version::Http10, Version::Http11, Version::Http2];

    /// As it stands in `Via` (RFC 9110 §7.6.3).
    pub const fn number(self) -> &'static str {
        match self {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2.0",
        }
    }
}
