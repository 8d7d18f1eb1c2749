//! What is known of a client's TLS: for the log, read once when the handshake is over; and as programs ask for it, in the words in
//! which a proxy before us would tell it, so that `vmod_proxy` says the same of both.

use tls::{Protocol, Session, Version};
use wire::proxy_triples::{ProxyTriples, ToldCertificate, ToldTls};

/// What a line of the log says of the session that it came by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFacts {
    /// `TLSv1.3`.
    pub version: &'static str,
    /// As the RFCs write it.
    pub suite: Box<str>,
    /// What both agreed to speak inside, as ALPN has it.
    pub protocol: Option<&'static str>,
    /// No certificate was shown: both knew each other.
    pub is_resumed: bool,
    /// The server that the client asked for, in lower case.
    pub server_name: Option<Box<str>>,
    /// The common name in the certificate that the client has shown, then or before; empty where it has none.
    pub client: Option<Box<str>>,
}

impl TlsFacts {
    /// Of a session whose handshake is over.
    pub(crate) fn of(session: &Session) -> TlsFacts {
        let agreement = session.agreement();
        TlsFacts {
            version: agreement.version.map_or("", Version::name),
            suite: agreement.suite.unwrap_or_default().into(),
            protocol: agreement.protocol.map(Protocol::name),
            is_resumed: agreement.is_resumed,
            server_name: session.server_name().map(Box::from),
            client: session.client_certificate().map(|client| client.facts().name.unwrap_or_default().into()),
        }
    }
}

/// Of a session whose handshake is over.
pub(crate) fn triples(session: &Session) -> ProxyTriples {
    let agreement = session.agreement();
    let (client, shown) = (session.client_certificate(), session.shown_facts().unwrap_or_default());
    let client = client.map(|certificate| certificate.facts());
    ProxyTriples::of_tls(&ToldTls {
        alpn: agreement.protocol.map(Protocol::name),
        authority: session.server_name(),
        version: agreement.version.map_or("", Version::name),
        cipher: agreement.suite.as_deref().unwrap_or_default(),
        certificate: client
            .as_ref()
            .map(|facts| ToldCertificate { name: facts.name.as_deref(), is_of_this_connection: !agreement.is_resumed }),
        signature: shown.signature,
        key: shown.key.as_deref(),
    })
}
