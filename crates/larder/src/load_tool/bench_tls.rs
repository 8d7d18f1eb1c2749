//! `larder bench https://…`: its own flags, and what they come to. The files of authorities are read here.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lab::{Authorities, LabUrl, SYSTEM_AUTHORITIES, TlsGroup, TlsName, TlsSettings, TlsVersion, limits};

use crate::bounded_file;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "For https:// targets")]
pub struct BenchTlsFlags {
    /// Believe the authorities in this PEM file too, besides the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub cacert: Option<PathBuf>,

    /// Believe any certificate; the report says so
    #[arg(long)]
    pub insecure: bool,

    /// Let a user's next connection resume the TLS session of its last one, instead of a full handshake
    #[arg(long)]
    pub tls_resume: bool,

    /// The latest version of TLS to speak [default: 1.3]
    #[arg(long, value_name = "VERSION")]
    pub tls_max: Option<VersionFlag>,

    /// Groups to exchange keys in, the first one's at once [default: X25519,secp256r1,secp384r1,X25519MLKEM768]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = TlsGroup::parse)]
    pub tls_groups: Vec<TlsGroup>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VersionFlag {
    #[value(name = "1.2")]
    Tls12,
    #[value(name = "1.3")]
    Tls13,
}

impl BenchTlsFlags {
    /// The first of them that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--cacert", self.cacert.is_some()),
            ("--insecure", self.insecure),
            ("--tls-resume", self.tls_resume),
            ("--tls-max", self.tls_max.is_some()),
            ("--tls-groups", !self.tls_groups.is_empty()),
        ];
        given.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name)
    }

    /// `is_form`: of another tool, none of which verifies a certificate.
    pub fn settings(&self, url: &LabUrl, is_form: bool) -> Result<TlsSettings, String> {
        let anybody = self.insecure || (is_form && self.cacert.is_none());
        Ok(TlsSettings {
            name: TlsName::parse(&url.host)?,
            authorities: if anybody { None } else { Some(authorities(self.cacert.as_deref())?) },
            resume: self.tls_resume,
            groups: if self.tls_groups.is_empty() { TlsGroup::usual() } else { self.tls_groups.clone() },
            version_max: match self.tls_max {
                Some(VersionFlag::Tls12) => TlsVersion::Tls12,
                Some(VersionFlag::Tls13) | None => TlsVersion::Tls13,
            },
        })
    }
}

/// The system's, and those of a file.
fn authorities(file: Option<&Path>) -> Result<Authorities, String> {
    let mut all = Authorities::none();
    let mut add = |path: &Path, is_systems| {
        let pem = bounded_file::read(path, limits::AUTHORITIES_BYTES_MAX);
        let added = pem.and_then(|pem| all.add(&pem, is_systems).map_err(str::to_owned));
        added.map_err(|why| format!("{}: {why}", path.display()))
    };
    match SYSTEM_AUTHORITIES.map(Path::new).into_iter().find(|path| path.exists()) {
        // A system's file that is of no use is no harm where another one is given.
        Some(path) if file.is_some() => drop(add(path, true)),
        Some(path) => add(path, true)?,
        None if file.is_some() => {}
        None => {
            let places = SYSTEM_AUTHORITIES.join(", ");
            return Err(format!("no authorities are known, for none of these is there: {places}; see --cacert"));
        }
    }
    file.map_or(Ok(()), |path| add(path, false).map_err(|why| format!("--cacert {why}")))?;
    Ok(all)
}
