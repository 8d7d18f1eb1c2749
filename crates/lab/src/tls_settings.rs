//! How a run speaks TLS: whose certificates it believes, up to which version, and whether it resumes sessions.
//!
//! Plain values, filled in by the program from its flags. What is made of them is `tls_client`.

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::SupportedKxGroup;
use tokio_rustls::rustls::crypto::aws_lc_rs::{ALL_KX_GROUPS, kx_group};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// What the certificate has to be for, and what the server is told that it is asked for.
    pub name: TlsName,
    /// `None`: a certificate of anybody's will do.
    pub authorities: Option<Authorities>,
    /// Does a user's next connection go on with the session of its last one? Otherwise every handshake is a full one.
    pub resume: bool,
    pub version_max: TlsVersion,
    /// For the exchange of keys; the first one's keys are sent at once.
    pub groups: Vec<TlsGroup>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

/// A group in which keys are exchanged.
#[derive(Clone, Copy, Debug)]
pub struct TlsGroup(pub(crate) &'static dyn SupportedKxGroup);

impl TlsGroup {
    /// Said here and not left to rustls, whose order follows from how it was built.
    pub fn usual() -> Vec<TlsGroup> {
        vec![
            TlsGroup(kx_group::X25519),
            TlsGroup(kx_group::SECP256R1),
            TlsGroup(kx_group::SECP384R1),
            TlsGroup(kx_group::X25519MLKEM768),
        ]
    }

    /// By the name that IANA gives, in letters of either case.
    pub fn parse(name: &str) -> Result<TlsGroup, String> {
        let group = ALL_KX_GROUPS.iter().find(|group| group_name(**group).eq_ignore_ascii_case(name));
        group.map(|group| TlsGroup(*group)).ok_or_else(|| {
            let all: Vec<&str> = ALL_KX_GROUPS.iter().map(|group| group_name(*group)).collect();
            format!("one of {}", all.join(", "))
        })
    }
}

fn group_name(group: &dyn SupportedKxGroup) -> &'static str {
    group.name().as_str().unwrap_or("?")
}

/// A host name or an address that a certificate can be for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsName(pub(crate) ServerName<'static>);

impl TlsName {
    pub fn parse(host: &str) -> Result<TlsName, String> {
        let name = ServerName::try_from(host).map_err(|_| format!("no certificate can be for `{host}`"))?;
        Ok(TlsName(name.to_owned()))
    }
}

/// Certificates by which others are believed.
#[derive(Clone, Debug)]
pub struct Authorities(pub(crate) RootCertStore);

/// Where systems keep those that they trust, each in one file.
pub const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

impl Authorities {
    pub fn none() -> Authorities {
        Authorities(RootCertStore::empty())
    }

    /// Those of a file in PEM. One that cannot be read is an error, unless it is among the many of a system.
    pub fn add(&mut self, pem: &[u8], is_systems: bool) -> Result<(), &'static str> {
        let before = self.0.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let added = certificate
                .map_err(|_| "it is no PEM")
                .and_then(|certificate| self.0.add(certificate).map_err(|_| "a certificate in it cannot be read"));
            if !is_systems {
                added?;
            }
        }
        if self.0.len() > before { Ok(()) } else { Err("there is no certificate in it") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_are_certificates() {
        let check = |text: &str, is_systems, why: &str| {
            assert_eq!(Authorities::none().add(text.as_bytes(), is_systems), Err(why), "{text}");
        };
        let unreadable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        check("", false, "there is no certificate in it");
        check("hello", false, "there is no certificate in it");
        check(unreadable, false, "a certificate in it cannot be read");
        check(unreadable, true, "there is no certificate in it");
        check("-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n", false, "it is no PEM");
    }

    #[test]
    fn groups_have_the_names_of_iana() {
        for name in ["x25519", "X25519MLKEM768", "secp256r1"] {
            assert!(group_name(TlsGroup::parse(name).unwrap().0).eq_ignore_ascii_case(name), "{name}");
        }
        assert!(TlsGroup::parse("rot13").unwrap_err().starts_with("one of "));
    }

    #[test]
    fn a_certificate_is_for_a_name_or_an_address() {
        for (name, is_one) in [("cache.example", true), ("127.0.0.1", true), ("::1", true), ("", false), ("a b", false)]
        {
            assert_eq!(TlsName::parse(name).is_ok(), is_one, "{name}");
        }
    }
}
