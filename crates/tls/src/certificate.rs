//! A certificate with its chain and its key, as files hold them.

use std::fmt;
use std::sync::Arc;

use crate::ocsp_staple::{self, StapleFault};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, SignatureAlgorithm};
use webpki::EndEntityCert;
use x509_parser::prelude::{FromDer, X509Certificate};

/// What a server, or a client, shows of itself.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub(crate) key: Arc<CertifiedKey>,
    /// Those it is for, in lower case; `*.` in front of one stands for one label.
    names: Arc<[String]>,
    /// Smaller and cheaper than RSA: shown to whoever knows it.
    pub(crate) is_elliptic: bool,
    validity: Validity,
    /// Until when what the authority says of it is shown.
    staple_until_s: Option<u64>,
}

/// From when to when a certificate is good, in seconds since 1970, both included (RFC 5280 §4.1.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub from_s: u64,
    pub until_s: u64,
}

impl PartialEq for Certificate {
    fn eq(&self, other: &Certificate) -> bool {
        self.key.cert == other.key.cert
    }
}

impl Eq for Certificate {}

/// Why a pair of files is no certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    CertificateNotPem,
    NoCertificate,
    CertificateUnreadable,
    KeyNotPem,
    /// None at all, or one that is locked by a password.
    NoKey,
    KeyUnreadable,
    /// The key is another certificate's.
    KeyOfAnother,
}

impl CertificateFault {
    /// Is it the file with the key that is wrong?
    pub const fn is_of_key(self) -> bool {
        matches!(self, Self::KeyNotPem | Self::NoKey | Self::KeyUnreadable | Self::KeyOfAnother)
    }
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CertificateNotPem | Self::KeyNotPem => "it is no PEM",
            Self::NoCertificate => "there is no certificate in it",
            Self::CertificateUnreadable => "its first certificate cannot be read",
            Self::NoKey => "there is no private key in it that can be read without a password",
            Self::KeyUnreadable => "its key is of no kind that TLS knows: RSA of 2,048 bits or more, ECDSA, Ed25519",
            Self::KeyOfAnother => "its key is not the certificate's",
        })
    }
}

impl Certificate {
    /// Of two texts in PEM: the server's certificate with those that lead to an authority behind it, and its key.
    pub fn read(chain: &[u8], key: &[u8]) -> Result<Certificate, CertificateFault> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|_| CertificateFault::CertificateNotPem)?;
        let own = chain.first().ok_or(CertificateFault::NoCertificate)?;
        let names = names(own).ok_or(CertificateFault::CertificateUnreadable)?;
        let validity = validity(own).ok_or(CertificateFault::CertificateUnreadable)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|fault| match fault {
            rustls::pki_types::pem::Error::NoItemsFound => CertificateFault::NoKey,
            _ => CertificateFault::KeyNotPem,
        })?;
        let key = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(|fault| match fault {
            Error::InconsistentKeys(_) => CertificateFault::KeyOfAnother,
            _ => CertificateFault::KeyUnreadable,
        })?;
        let is_elliptic = key.key.algorithm() != SignatureAlgorithm::RSA;
        Ok(Certificate { key: Arc::new(key), names: names.into(), is_elliptic, validity, staple_until_s: None })
    }

    /// Is it for this name, in lower case?
    pub fn covers(&self, name: &str) -> bool {
        let is_known = |name: &str| self.names.iter().any(|own| own == name);
        is_known(name) || parent_of(name).is_some_and(|parent| is_known(&format!("*.{parent}")))
    }

    /// The names it is for, in lower case.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// The same, shown with this OCSP response in DER, if that is about it and in its time.
    pub fn with_staple(&self, response: Vec<u8>, now_s: u64) -> Result<Certificate, StapleFault> {
        let staple_until_s = ocsp_staple::judge(&response, &self.key.cert, now_s)?;
        let mut key = CertifiedKey::clone(&self.key);
        key.ocsp = Some(response);
        Ok(Certificate { key: Arc::new(key), staple_until_s, ..self.clone() })
    }

    /// When it is to be shown without its OCSP response, in seconds since 1970: that counts no longer then.
    pub fn staple_until_s(&self) -> Option<u64> {
        self.staple_until_s
    }
}

/// What a `*.` stands in front of, for this name.
pub(crate) fn parent_of(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, parent)| parent)
}

fn names(certificate: &CertificateDer<'_>) -> Option<Vec<String>> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    Some(certificate.valid_dns_names().map(str::to_ascii_lowercase).collect())
}

fn validity(certificate: &CertificateDer<'_>) -> Option<Validity> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let validity = certificate.validity();
    let [from_s, until_s] = [&validity.not_before, &validity.not_after].map(|time| time.timestamp().max(0) as u64);
    Some(Validity { from_s, until_s })
}
