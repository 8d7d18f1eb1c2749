//! What an authority asks before it signs: a file over HTTP (RFC 8555 §8.3), or a certificate over TLS (RFC 8737).

use aws_lc_rs::digest::{SHA256, digest};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use serde::{Deserialize, Serialize};

/// In which of its two ways the authority looks whether we are who we say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChallengeKind {
    /// HTTP-01: it comes to port 80.
    Http,
    /// TLS-ALPN-01: it comes to port 443.
    Alpn,
}

impl std::fmt::Display for ChallengeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ChallengeKind::Http => "http-01",
            ChallengeKind::Alpn => "tls-alpn-01",
        })
    }
}

/// One that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    pub kind: ChallengeKind,
    pub name: String,
    pub token: String,
    /// The key authorization (RFC 8555 §8.1).
    pub answer: String,
    /// In seconds since 1970: from then on it matters to nobody.
    pub until_s: u64,
}

impl Challenge {
    /// What TLS-ALPN-01 is answered with: a certificate in DER, and its key as PKCS #8.
    pub fn certificate(&self) -> Result<(Vec<u8>, Vec<u8>), String> {
        let failed = |error: rcgen::Error| format!("no certificate can be made for {}: {error}", self.name);
        let mut params = CertificateParams::new(vec![self.name.clone()]).map_err(failed)?;
        let sum = digest(&SHA256, self.answer.as_bytes());
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(sum.as_ref())];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok((certificate.der().to_vec(), key.serialize_der()))
    }
}

/// Who answers the authority: the listeners.
pub trait ChallengeSink {
    fn offer(&self, challenge: &Challenge) -> Result<(), String>;
    fn withdraw(&self, challenge: &Challenge);
}
