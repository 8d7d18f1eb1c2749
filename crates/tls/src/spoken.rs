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
    /// As IANA's list of ALPN has it.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Http1 => "http/1.1",
            Protocol::Http2 => "h2",
            Protocol::AcmeChallenge => "acme-tls/1",
        }
    }

    pub(crate) fn of(name: &[u8]) -> Option<Protocol> {
        [Protocol::Http1, Protocol::Http2, Protocol::AcmeChallenge]
            .into_iter()
            .find(|one| one.name().as_bytes() == name)
    }
}

/// Versions that are spoken at all. Those before are broken (RFC 8996).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    #[default]
    Tls12,
    Tls13,
}

impl Version {
    /// As OpenSSL and the PROXY protocol write it.
    pub const fn name(self) -> &'static str {
        match self {
            Version::Tls12 => "TLSv1.2",
            Version::Tls13 => "TLSv1.3",
        }
    }
}

/// As the RFCs write it: rustls puts the version in front of those of TLS 1.3.
pub(crate) fn suite_name(suite: &rustls::SupportedCipherSuite) -> String {
    let name = format!("{:?}", suite.suite());
    name.strip_prefix("TLS13_").map_or(name.clone(), |rest| format!("TLS_{rest}"))
}
