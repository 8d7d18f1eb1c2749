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

/// What a server knows of the TLS that ends with it, in the words of the specification.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToldTls<'a> {
    pub alpn: Option<&'a str>,
    /// Which server the client asked for.
    pub authority: Option<&'a str>,
    pub version: &'a str,
    pub cipher: &'a str,
    /// The client has shown a certificate: when this connection began, or one before it that this one resumes.
    pub certificate: Option<ToldCertificate<'a>>,
    /// How the server's own certificate is signed, and the kind of its key.
    pub signature: Option<&'a str>,
    pub key: Option<&'a str>,
}

/// A client's certificate.
#[derive(Clone, Copy, Debug)]
pub struct ToldCertificate<'a> {
    pub name: Option<&'a str>,
    pub is_of_this_connection: bool,
}

/// The type-length-value triples of one header, or as many of a session of our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyTriples(Box<[u8]>);

impl ProxyTriples {
    /// Of a header that `read_proxy_header` took; `None` when it has none, as version 1 never has.
    pub fn of(header: &[u8]) -> Option<ProxyTriples> {
        let body = header.get(HEAD_BYTES..).filter(|_| header.starts_with(V2_SIGNATURE) && header[12] == PROXY)?;
        let triples = body.get(address_bytes(header[13])?..).filter(|triples| !triples.is_empty())?;
        Some(ProxyTriples(triples.into()))
    }

    /// The same of a session that ended here: who asks about one need not ask how it came.
    pub fn of_tls(told: &ToldTls<'_>) -> ProxyTriples {
        let flags = IS_TLS
            | told.certificate.map_or(0, |shown| match shown.is_of_this_connection {
                true => HAS_CERTIFICATE_IN_CONNECTION | HAS_CERTIFICATE_IN_SESSION,
                false => HAS_CERTIFICATE_IN_SESSION,
            });
        // Who was not verified is not here.
        let mut tls = vec![flags, 0, 0, 0, 0];
        put(&mut tls, TLS_VERSION, Some(told.version));
        put(&mut tls, TLS_CERTIFICATE_NAME, told.certificate.and_then(|shown| shown.name));
        put(&mut tls, TLS_CIPHER, Some(told.cipher));
        put(&mut tls, TLS_SIGNATURE, told.signature);
        put(&mut tls, TLS_KEY, told.key);
        let mut all = Vec::new();
        put(&mut all, ALPN, told.alpn);
        put(&mut all, AUTHORITY, told.authority);
        put(&mut all, TLS, Some(tls));
        ProxyTriples(all.into())
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

/// What is longer than a length can say is not said.
fn put(out: &mut Vec<u8>, kind: u8, value: Option<impl AsRef<[u8]>>) {
    let Some(value) = &value else { return };
    let value = value.as_ref();
    if let Ok(length) = u16::try_from(value.len()) {
        out.push(kind);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(value);
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
    fn a_session_of_our_own_is_told_as_a_proxy_would() {
        let told = ToldTls {
            alpn: Some("h2"),
            authority: Some("a.example"),
            version: "TLSv1.3",
            cipher: "TLS_AES_128_GCM_SHA256",
            certificate: Some(ToldCertificate { name: Some("Ann"), is_of_this_connection: false }),
            signature: Some("RSA-SHA256"),
            key: None,
        };
        let triples = ProxyTriples::of_tls(&told);
        assert_eq!(triples.value(ALPN), Some(&b"h2"[..]));
        assert_eq!(triples.value(AUTHORITY), Some(&b"a.example"[..]));
        assert_eq!((triples.tls_flags(), triples.tls_verify_result()), (IS_TLS | HAS_CERTIFICATE_IN_SESSION, 0));
        let kinds = [TLS_VERSION, TLS_CERTIFICATE_NAME, TLS_CIPHER, TLS_SIGNATURE, TLS_KEY];
        let values = kinds.map(|kind| triples.tls_value(kind).map(|value| str::from_utf8(value).unwrap()));
        let expect = [Some("TLSv1.3"), Some("Ann"), Some("TLS_AES_128_GCM_SHA256"), Some("RSA-SHA256"), None];
        assert_eq!(values, expect);
        assert_eq!(ProxyTriples::of_tls(&ToldTls { certificate: None, ..told }).tls_flags(), IS_TLS);
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
