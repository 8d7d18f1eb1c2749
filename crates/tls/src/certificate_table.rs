//! Which certificate a client is shown: by the name it asks for, and among several for that name by the kinds of keys it knows.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::{Certificate, parent_of};
use crate::hello::Hello;

/// The certificates of one listener.
#[derive(Debug)]
pub(crate) struct CertificateTable {
    by_name: HashMap<String, Vec<Certificate>>,
    /// Shown to who names no server, or one that nobody knows: the first that was given, and the others for its names.
    default: Vec<Certificate>,
}

impl CertificateTable {
    /// In the order in which they were given. Where two are for one name and of one kind, the first is shown.
    pub(crate) fn new(certificates: &[Certificate]) -> CertificateTable {
        let mut by_name: HashMap<String, Vec<Certificate>> = HashMap::new();
        for certificate in certificates {
            for name in certificate.names() {
                by_name.entry(name.clone()).or_default().push(certificate.clone());
            }
        }
        // The sort is stable.
        by_name.values_mut().for_each(|those| those.sort_by_key(|one| !one.is_elliptic));
        let first = certificates.first();
        let same = first.and_then(|first| first.names().first()).and_then(|name| by_name.get(name)).cloned();
        let default = same.unwrap_or_else(|| first.cloned().into_iter().collect());
        CertificateTable { by_name, default }
    }

    fn of(&self, name: Option<&str>) -> &[Certificate] {
        let Some(name) = name else { return &self.default };
        let exact = self.by_name.get(name);
        let wildcard = || self.by_name.get(&format!("*.{}", parent_of(name)?));
        exact.or_else(wildcard).unwrap_or(&self.default)
    }

    fn choose(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Option<&Certificate> {
        let those = self.of(name);
        // Who knows none of them is told so by the handshake.
        those.iter().find(|one| one.key.key.choose_scheme(schemes).is_some()).or(those.first())
    }

    /// Is one of the certificates for this name?
    pub(crate) fn covers(&self, name: &str) -> bool {
        let is_known = |name: &str| self.by_name.contains_key(name);
        is_known(name) || parent_of(name).is_some_and(|parent| is_known(&format!("*.{parent}")))
    }
}

impl ResolvesServerCert for CertificateTable {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // It comes in lower case.
        let chosen = self.choose(hello.server_name(), hello.signature_schemes())?;
        Hello { server_name: hello.server_name().map(Into::into), shown: chosen.clone() }.leave();
        Some(Arc::clone(&chosen.key))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};

    use super::*;

    fn certificate(names: &[&str], kind: &'static rcgen::SignatureAlgorithm) -> Certificate {
        let key = KeyPair::generate_for(kind).unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        Certificate::read(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap()
    }

    fn table() -> CertificateTable {
        CertificateTable::new(&[
            certificate(&["a.example", "www.a.example"], &PKCS_ECDSA_P256_SHA256),
            certificate(&["*.b.example", "b.example"], &PKCS_ECDSA_P256_SHA256),
            certificate(&["a.example"], &PKCS_ED25519),
        ])
    }

    #[test]
    fn the_name_chooses_and_the_first_is_for_everybody_else() {
        let table = table();
        let shown = |name| table.of(name)[0].names()[0].as_str();
        for (name, expect) in [
            (Some("a.example"), "a.example"),
            (Some("www.a.example"), "a.example"),
            (Some("b.example"), "*.b.example"),
            (Some("x.b.example"), "*.b.example"),
            // A wildcard stands for one label.
            (Some("x.y.b.example"), "a.example"),
            (Some("c.example"), "a.example"),
            (None, "a.example"),
        ] {
            assert_eq!(shown(name), expect, "{name:?}");
        }
        assert!(table.covers("x.b.example") && !table.covers("c.example") && !table.covers("x.y.b.example"));
    }

    #[test]
    fn of_several_kinds_the_one_that_the_client_knows_is_shown() {
        let table = table();
        let kind = |scheme| table.choose(Some("a.example"), &[scheme]).unwrap().key.key.algorithm();
        assert_eq!(kind(SignatureScheme::ECDSA_NISTP256_SHA256), rustls::SignatureAlgorithm::ECDSA);
        assert_eq!(kind(SignatureScheme::ED25519), rustls::SignatureAlgorithm::ED25519);
        assert_eq!(table.of(None).len(), 2, "who names nobody has the same choice");
    }
}
