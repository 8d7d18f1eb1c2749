//! What is known of a client's TLS, as programs ask for it: in the words in which a proxy before us would tell it, so that `vmod_proxy`
//! says the same of both.

use tls::{Protocol, Session, Version};
use wire::proxy_triples::{ProxyTriples, ToldCertificate, ToldTls};

/// Of a session whose handshake is over.
pub(crate) fn triples(session: &Session) -> ProxyTriples {
    let agreement = session.agreement();
    let (client, shown) = (session.client_certificate(), session.shown_facts().unwrap_or_default());
    let client = client.map(|certificate| certificate.facts());
    ProxyTriples::of_tls(&ToldTls {
        alpn: agreement.protocol.map(|protocol| match protocol {
            Protocol::Http1 => "http/1.1",
            Protocol::Http2 => "h2",
            Protocol::AcmeChallenge => "acme-tls/1",
        }),
        authority: session.server_name(),
        version: agreement.version.map_or("", |version| match version {
            Version::Tls12 => "TLSv1.2",
            Version::Tls13 => "TLSv1.3",
        }),
        cipher: agreement.suite.as_deref().unwrap_or_default(),
        certificate: client
            .as_ref()
            .map(|facts| ToldCertificate { name: facts.name.as_deref(), is_of_this_connection: !agreement.is_resumed }),
        signature: shown.signature,
        key: shown.key.as_deref(),
    })
}
