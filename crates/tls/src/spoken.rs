//! What is spoken: versions, suites, and what goes on inside.

/// What is spoken inside (RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
    /// Nothing: an authority looks at the certificate, and leaves (RFC 8737).
    AcmeChallenge,
}

impl Protocol {
    pub(crate) const fn name(self) -> &'static [u8] {
        match self {
            Protocol::Http1 => b"http/1.1",
            Protocol::Http2 => b"h2",
            Protocol::AcmeChallenge => b"acme-tls/1",
        }
    }

    pub(crate) fn of(name: &[u8]) -> Option<Protocol> {
        [Protocol::Http1, Protocol::Http2, Protocol::AcmeChallenge].into_iter().find(|one| one.name() == name)
    }
}

/// Versions that are spoken at all. Those before are broken (RFC 8996).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    #[default]
    Tls12,
    Tls13,
}

/// As the RFCs write it: rustls puts the version in front of those of TLS 1.3.
pub(crate) fn suite_name(suite: &rustls::SupportedCipherSuite) -> String {
    let name = format!("{:?}", suite.suite());
    name.strip_prefix("TLS13_").map_or(name.clone(), |rest| format!("TLS_{rest}"))
}
