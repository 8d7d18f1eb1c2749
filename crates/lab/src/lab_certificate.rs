//! Certificates that the lab makes: one for all servers of a comparison, and those of the fake origin, good and bad.
//!
//! All have keys on P-256, as most sites have. Nothing here reads a clock: what is valid is valid for centuries, and what
//! has expired did so years ago.

use rcgen::{BasicConstraints, CertificateParams, DnType, Error, IsCa, Issuer, KeyPair, date_time_ymd};

/// A chain of one certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub(crate) struct LabCertificate {
    pub(crate) chain: String,
    pub(crate) key: String,
}

/// Signs certificates; only who was given its own believes them.
pub(crate) struct LabAuthority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// When a certificate ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertificateEnd {
    FarAway,
    /// At the end of 2020.
    LongAgo,
}

impl LabAuthority {
    pub(crate) fn new() -> Result<LabAuthority, Error> {
        let mut params = params(&[], "larder lab's authority", CertificateEnd::FarAway)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(LabAuthority { issuer: Issuer::new(params, key), pem })
    }

    /// For host names and addresses.
    pub(crate) fn sign(&self, names: &[String], end: CertificateEnd) -> Result<LabCertificate, Error> {
        let key = KeyPair::generate()?;
        let chain = params(names, "larder lab", end)?.signed_by(&key, &self.issuer)?.pem();
        Ok(LabCertificate { chain, key: key.serialize_pem() })
    }
}

impl LabCertificate {
    /// Its own authority, for whoever was given it.
    pub(crate) fn self_signed(names: &[String]) -> Result<LabCertificate, Error> {
        let key = KeyPair::generate()?;
        let chain = params(names, "larder lab", CertificateEnd::FarAway)?.self_signed(&key)?.pem();
        Ok(LabCertificate { chain, key: key.serialize_pem() })
    }
}

fn params(names: &[String], called: &str, end: CertificateEnd) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, called);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = match end {
        CertificateEnd::FarAway => date_time_ymd(2200, 1, 1),
        CertificateEnd::LongAgo => date_time_ymd(2020, 12, 31),
    };
    Ok(params)
}
