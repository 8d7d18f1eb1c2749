//! The certificate that a client has shown, and what is said of it elsewhere: in programs, logs, and headers.

use x509_parser::oid_registry::{
    OID_PKCS1_SHA256WITHRSA, OID_PKCS1_SHA384WITHRSA, OID_PKCS1_SHA512WITHRSA, OID_SIG_ECDSA_WITH_SHA256,
    OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512, OID_SIG_ED25519,
};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;

/// A client's own certificate, which an authority of ours has signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    der: Box<[u8]>,
}

/// What is read of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The common name of its subject (RFC 5280 §4.1.2.6).
    pub name: Option<String>,
    /// How it was signed, such as `ecdsa-with-SHA256`.
    pub signature: Option<&'static str>,
    /// The kind of its key, and how many bits that has, such as `EC256`.
    pub key: Option<String>,
}

impl ClientCertificate {
    pub(crate) fn of(der: &[u8]) -> ClientCertificate {
        ClientCertificate { der: der.into() }
    }

    /// The certificate in DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    pub fn facts(&self) -> CertificateFacts {
        CertificateFacts::of(&self.der)
    }
}

impl CertificateFacts {
    /// Of a certificate in DER. What cannot be read is not said.
    pub(crate) fn of(der: &[u8]) -> CertificateFacts {
        let Ok((_, certificate)) = X509Certificate::from_der(der) else { return CertificateFacts::default() };
        let name = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
        let signed_by = &certificate.signature_algorithm.algorithm;
        let signature = SIGNATURES.iter().find(|(oid, _)| oid == signed_by).map(|&(_, name)| name);
        let key = certificate.public_key().parsed().ok().and_then(|key| match key {
            PublicKey::RSA(key) => Some(format!("RSA{}", key.key_size())),
            PublicKey::EC(point) => Some(format!("EC{}", point.key_size())),
            _ if *signed_by == OID_SIG_ED25519 => Some("ED25519".to_owned()),
            _ => None,
        });
        CertificateFacts { name: name.map(str::to_owned), signature, key }
    }
}

/// By the names that OpenSSL gives them.
const SIGNATURES: [(x509_parser::der_parser::Oid<'static>, &str); 7] = [
    (OID_SIG_ECDSA_WITH_SHA256, "ecdsa-with-SHA256"),
    (OID_SIG_ECDSA_WITH_SHA384, "ecdsa-with-SHA384"),
    (OID_SIG_ECDSA_WITH_SHA512, "ecdsa-with-SHA512"),
    (OID_PKCS1_SHA256WITHRSA, "RSA-SHA256"),
    (OID_PKCS1_SHA384WITHRSA, "RSA-SHA384"),
    (OID_PKCS1_SHA512WITHRSA, "RSA-SHA512"),
    (OID_SIG_ED25519, "ED25519"),
];
