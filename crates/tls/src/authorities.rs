//! Whose word counts for who somebody is.

use aws_lc_rs::digest::{Digest, SHA256, digest};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};

/// Certificates by which others are known.
#[derive(Debug, PartialEq, Eq)]
pub struct Authorities(Vec<Vec<u8>>);

impl Authorities {
    /// Where systems keep the authorities that they trust, each in one file.
    pub const OF_SYSTEM: [&str; 4] = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ];

    /// Of a file in PEM.
    pub fn read(pem: &[u8]) -> Result<Authorities, &'static str> {
        let mut all = Vec::new();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|_| "it is no PEM")?;
            roots.add(certificate.clone()).map_err(|_| "a certificate in it cannot be read")?;
            all.push(certificate.to_vec());
        }
        if all.is_empty() { Err("there is no certificate in it") } else { Ok(Authorities(all)) }
    }

    /// Each in DER.
    pub fn certificates(&self) -> &[Vec<u8>] {
        &self.0
    }

    /// Tells these from others, in whatever order they stand.
    pub(crate) fn digest(&self) -> Digest {
        let mut each: Vec<Digest> = self.0.iter().map(|der| digest(&SHA256, der)).collect();
        each.sort_by(|one, other| one.as_ref().cmp(other.as_ref()));
        let all: Vec<u8> = each.iter().flat_map(|one| one.as_ref().to_vec()).collect();
        digest(&SHA256, &all)
    }

    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(self.0.iter().map(|der| CertificateDer::from(der.clone())));
        roots
    }
}

/// May a certificate be for this: a name, or an address?
pub fn is_server_name(name: &str) -> bool {
    ServerName::try_from(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_certificates() {
        let check = |text: &str, why: &str| assert_eq!(Authorities::read(text.as_bytes()), Err(why), "{text}");
        check("", "there is no certificate in it");
        check("hello", "there is no certificate in it");
        check("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "a certificate in it cannot be read");
        check("-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n", "it is no PEM");
    }

    #[test]
    fn a_server_has_a_name_or_an_address() {
        for (name, is_one) in [("cache.example", true), ("127.0.0.1", true), ("::1", true), ("", false), ("a b", false)]
        {
            assert_eq!(is_server_name(name), is_one, "{name}");
        }
    }
}
