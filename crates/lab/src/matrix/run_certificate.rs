//! What the servers of a run show to who speaks TLS: one certificate for all of them, made for this run, in its own
//! folder; and how the load believes it.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::lab_certificate::LabCertificate;
use crate::tls_settings::{Authorities, TlsGroup, TlsName, TlsSettings, TlsVersion};

/// The host that servers are asked for over TLS: an address would be told to none of them.
pub(crate) const TLS_HOST: &str = "localhost";

/// As files, because each server wants them in its own way.
#[derive(Clone, Debug)]
pub(crate) struct CertificateFiles {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    /// The chain, and the key behind it.
    pub(crate) both: PathBuf,
}

#[derive(Clone, Debug)]
pub(crate) struct RunCertificate {
    pub(crate) files: CertificateFiles,
    client: TlsSettings,
}

impl RunCertificate {
    /// Of this run alone: what an earlier one has left is written over.
    pub(crate) fn make(dir: &Path) -> Result<RunCertificate, String> {
        let names = [TLS_HOST.to_owned(), "127.0.0.1".to_owned()];
        let made = LabCertificate::self_signed(&names).map_err(|error| format!("no certificate: {error}"))?;
        let files = CertificateFiles {
            chain: dir.join("certificate.pem"),
            key: dir.join("certificate.key"),
            both: dir.join("certificate-and-key.pem"),
        };
        write_privately(&files.chain, &made.chain)?;
        write_privately(&files.key, &made.key)?;
        write_privately(&files.both, &format!("{}{}", made.chain, made.key))?;
        let mut authorities = Authorities::none();
        authorities.add(made.chain.as_bytes(), false).map_err(str::to_owned)?;
        let client = TlsSettings {
            name: TlsName::parse(TLS_HOST)?,
            authorities: Some(authorities),
            resume: false,
            version_max: TlsVersion::Tls13,
            groups: TlsGroup::usual(),
        };
        Ok(RunCertificate { files, client })
    }

    /// How the load speaks to whoever shows it.
    pub(crate) fn client(&self, resume: bool) -> TlsSettings {
        TlsSettings { resume, ..self.client.clone() }
    }
}

/// For its owner alone: servers that drop their rights have read it before.
fn write_privately(path: &Path, text: &str) -> Result<(), String> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| format!("{}: {error}", path.display()))
}
