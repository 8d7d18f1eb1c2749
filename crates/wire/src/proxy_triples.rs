//! What version 2 of the PROXY protocol says beside addresses: the client's ALPN and the name it asked for, and of the
//! TLS that ended before us its version, cipher and certificate. Kept as it came, and looked up when somebody asks.
//!
//! `read_proxy_header` has checked the form of what it took; what the words mean is for the program that asks.

use crate::proxy_protocol::{V2_SIGNATURE, address_bytes};

/// The kinds of the specification, §2.2.
pub const ALPN: u8 = 0x01;
pub const AUTHORITY: u8 = 0x02;
const TLS: u8 = 0x20;
/// Within what is said of TLS.
pub const TLS_VERSION: u8 = 0x21;
pub const TLS_CERTIFICATE_NAME: u8 = 0x22;
pub const TLS_CIPHER: u8 = 0x23;
pub const TLS_SIGNATURE: u8 = 0x24;
pub const TLS_KEY: u8 = 0x25;
/// Bits of the client's flags.
pub const IS_TLS: u8 = 0x01;
pub const HAS_CERTIFICATE_IN_CONNECTION: u8 = 0x02;
pub const HAS_CERTIFICATE_IN_SESSION: u8 = 0x04;

const HEAD_BYTES: usize = 16;
/// Version 2, and a command that is not LOCAL: of a proxy's own connection nothing is believed.
const PROXY: u8 = 0x21;
const TLS_HEAD_BYTES: usize = 5;

/// The type-length-value triples of one header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyTriples(Box<[u8]>);

impl ProxyTriples {
    /// Of a header that `read_proxy_header` took; `None` when it has none, as version 1 never has.
    pub fn of(header: &[u8]) -> Option<ProxyTriples> {
        let body = header.get(HEAD_BYTES..).filter(|_| header.starts_with(V2_SIGNATURE) && header[12] == PROXY)?;
        let triples = body.get(address_bytes(header[13])?..).filter(|triples| !triples.is_empty())?;
        Some(ProxyTriples(triples.into()))
    }

    /// The value of that kind.
    pub fn value(&self, kind: u8) -> Option<&[u8]> {
        find(&self.0, kind)
    }

    /// The value of that kind within what is said of TLS.
    pub fn tls_value(&self, kind: u8) -> Option<&[u8]> {
        find(self.value(TLS)?.get(TLS_HEAD_BYTES..)?, kind)
    }

    /// The client's flags.
    pub fn tls_flags(&self) -> u8 {
        self.value(TLS).and_then(|tls| tls.first().copied()).unwrap_or(0)
    }

    /// 0 when the client's certificate was verified, and when there is none.
    pub fn tls_verify_result(&self) -> u32 {
        let bytes = self.value(TLS).and_then(|tls| tls.get(1..TLS_HEAD_BYTES)?.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    }
}

fn find(mut rest: &[u8], kind: u8) -> Option<&[u8]> {
    while let Some((&[this, high, low], after)) = rest.split_first_chunk::<3>() {
        let (value, behind) = after.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
        if this == kind {
            return Some(value);
        }
        rest = behind;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(family: u8, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len()).expect("short").to_be_bytes();
        [V2_SIGNATURE, &[0x21, family], &length, body].concat()
    }

    fn check(body: &[u8], kind: u8, expect: Option<&[u8]>) {
        let triples = ProxyTriples::of(&header(0x11, &[&[0; 12], body].concat()));
        assert_eq!(triples.as_ref().and_then(|triples| triples.value(kind)), expect);
    }

    #[test]
    fn values_are_found_by_their_kind() {
        check(b"", ALPN, None);
        check(b"\x01\x00\x02h2", ALPN, Some(b"h2"));
        check(b"\x02\x00\x01a\x01\x00\x02h2", ALPN, Some(b"h2"));
        check(b"\x02\x00\x01a", ALPN, None);
        check(b"\x01\x00\x09h2", ALPN, None);
        assert_eq!(ProxyTriples::of(b"PROXY UNKNOWN\r\n"), None);
        assert_eq!(ProxyTriples::of(&header(0x31, b"short")), None);
        // Of a proxy's own connection, by LOCAL, nothing is believed.
        let mut local = header(0x11, &[&[0; 12], &b"\x01\x00\x02h2"[..]].concat());
        assert!(ProxyTriples::of(&local).is_some());
        local[12] = 0x20;
        assert_eq!(ProxyTriples::of(&local), None);
    }

    #[test]
    fn what_is_said_of_tls_is_nested() {
        let triples = |tls: &[u8]| {
            let length = u16::try_from(tls.len()).expect("short").to_be_bytes();
            ProxyTriples::of(&header(0x00, &[b"\x20", &length[..], tls].concat())).expect("triples")
        };
        let whole = triples(b"\x05\x00\x00\x01\x02\x21\x00\x07TLSv1.3");
        assert_eq!(whole.tls_value(TLS_VERSION), Some(&b"TLSv1.3"[..]));
        assert_eq!((whole.tls_value(TLS_KEY), whole.value(TLS_VERSION)), (None, None));
        assert_eq!((whole.tls_flags(), whole.tls_verify_result()), (IS_TLS | HAS_CERTIFICATE_IN_SESSION, 258));
        let cut = triples(b"\x01\x00");
        assert_eq!((cut.tls_flags(), cut.tls_verify_result(), cut.tls_value(TLS_KEY)), (1, 0, None));
    }
}
