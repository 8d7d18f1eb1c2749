//! The Cache-Status field (RFC 9211): what we say of how a request was answered.

use std::io::Write;

/// Our member of the list. Members of caches closer to the origin stand before it (RFC 9211 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheStatus<'a> {
    /// Answered from the store, without the origin. `ttl_s` is negative when it was stale (§2.4).
    Hit { ttl_s: i64 },
    /// Sent on to the origin.
    Forwarded(Forwarded<'a>),
    /// Answered by ourselves, without store or origin: neither hit nor fwd.
    Generated { detail: &'a str },
}

/// RFC 9211 §2.2 to §2.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarded<'a> {
    pub reason: ForwardReason,
    /// The origin's status, when it is not the one the client gets.
    pub status: Option<u16>,
    pub stored: bool,
    /// It waited for another request's fetch.
    pub collapsed: bool,
    /// Seconds of freshness left of what was stored.
    pub ttl_s: Option<i64>,
    /// A stable token.
    pub detail: Option<&'a str>,
}

/// RFC 9211 §2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardReason {
    /// Configured not to handle this request.
    Bypass,
    /// The method's semantics require it.
    Method,
    /// Nothing stored under the URI.
    UriMiss,
    /// Something was, but Vary chose none of it.
    VaryMiss,
    /// Nothing, and nobody says of which of the two kinds.
    Miss,
    /// The request's own directives asked for it.
    Request,
    /// What was stored is stale.
    Stale,
    /// Only a part of it is stored.
    Partial,
}

impl ForwardReason {
    pub const fn token(self) -> &'static str {
        match self {
            ForwardReason::Bypass => "bypass",
            ForwardReason::Method => "method",
            ForwardReason::UriMiss => "uri-miss",
            ForwardReason::VaryMiss => "vary-miss",
            ForwardReason::Miss => "miss",
            ForwardReason::Request => "request",
            ForwardReason::Stale => "stale",
            ForwardReason::Partial => "partial",
        }
    }
}

impl CacheStatus<'_> {
    /// Appends the member. `cache` names us: a token, or else it is written as a string.
    pub fn write_to(&self, cache: &str, out: &mut Vec<u8>) {
        write_name(cache, out);
        match *self {
            CacheStatus::Hit { ttl_s } => put(out, format_args!("; hit; ttl={ttl_s}")),
            CacheStatus::Generated { detail } => put_detail(out, detail),
            CacheStatus::Forwarded(forwarded) => {
                put(out, format_args!("; fwd={}", forwarded.reason.token()));
                if let Some(status) = forwarded.status {
                    put(out, format_args!("; fwd-status={status}"));
                }
                if let Some(ttl_s) = forwarded.ttl_s {
                    put(out, format_args!("; ttl={ttl_s}"));
                }
                if forwarded.stored {
                    out.extend_from_slice(b"; stored");
                }
                if forwarded.collapsed {
                    out.extend_from_slice(b"; collapsed");
                }
                if let Some(detail) = forwarded.detail {
                    put_detail(out, detail);
                }
            }
        }
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a Vec cannot fail");
}

fn put_detail(out: &mut Vec<u8>, detail: &str) {
    out.extend_from_slice(b"; detail=");
    write_name(detail, out);
}

/// RFC 8941 §3.3.4 if it is a token, else §3.3.3 with what a string cannot hold left out.
fn write_name(text: &str, out: &mut Vec<u8>) {
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '*');
    let rest = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&b);
    if starts && text.bytes().all(rest) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes().filter(|b| (0x20..0x7f).contains(b)) {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cache: &str, status: CacheStatus<'_>, expect: &str) {
        let mut out = Vec::new();
        status.write_to(cache, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expect);
        let list = sfv::Parser::new(&out).parse::<sfv::List>();
        assert!(list.is_ok_and(|list| list.len() == 1), "{expect} is a list of one");
    }

    const MISS: Forwarded<'_> = Forwarded {
        reason: ForwardReason::UriMiss,
        status: None,
        stored: false,
        collapsed: false,
        ttl_s: None,
        detail: None,
    };

    /// The forms of RFC 9211 §3.
    #[test]
    fn members_are_written_as_structured_fields() {
        check("larder", CacheStatus::Hit { ttl_s: 376 }, "larder; hit; ttl=376");
        check("larder", CacheStatus::Hit { ttl_s: -412 }, "larder; hit; ttl=-412");
        check("larder", CacheStatus::Forwarded(MISS), "larder; fwd=uri-miss");
        check(
            "larder",
            CacheStatus::Forwarded(Forwarded {
                reason: ForwardReason::Stale,
                status: Some(304),
                stored: true,
                collapsed: true,
                ttl_s: Some(60),
                detail: Some("no-store"),
            }),
            "larder; fwd=stale; fwd-status=304; ttl=60; stored; collapsed; detail=no-store",
        );
        check("larder", CacheStatus::Generated { detail: "only-if-cached" }, "larder; detail=only-if-cached");
        check("c1", CacheStatus::Generated { detail: "1c" }, "c1; detail=\"1c\"");
        check("cache 1", CacheStatus::Generated { detail: "a \"b\" \\\n" }, "\"cache 1\"; detail=\"a \\\"b\\\" \\\\\"");
    }
}
