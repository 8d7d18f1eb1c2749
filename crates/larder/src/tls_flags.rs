//! `--tls`, `--cert` and `--key`: where `larder serve` speaks TLS, and with which certificates.

use std::path::PathBuf;

use clap::Args;
use proxy::settings::{ListenAddress, ListenerSettings, ListenerTls};

use crate::addresses::{parse_listen, show_listen};
use crate::tls_files::{CertificateFiles, TlsFiles};

#[derive(Clone, Debug, Default, Args)]
pub struct TlsFlags {
    /// Where to listen with TLS, for https://; with --cert; repeatable
    #[arg(id = "tls", long = "tls", value_name = "ADDRESS", value_parser = parse_listen, requires = "certificates")]
    pub addresses: Vec<ListenAddress>,

    /// A certificate for --tls with those that lead to its authority, in PEM; repeatable: the client's server name chooses
    #[arg(long = "cert", value_name = "FILE", requires = "tls")]
    pub certificates: Vec<PathBuf>,

    /// The key of each --cert, in the same order [default: in the file of the certificate]
    #[arg(long = "key", value_name = "FILE", requires = "certificates")]
    pub keys: Vec<PathBuf>,
}

impl TlsFlags {
    /// Those who listen there. What is wrong with the files is a sentence.
    pub fn load(&self) -> Result<Vec<ListenerSettings>, String> {
        if !self.keys.is_empty() && self.keys.len() != self.certificates.len() {
            let (certificates, keys) = (self.certificates.len(), self.keys.len());
            return Err(format!("{certificates} --cert and {keys} --key: each certificate has a key"));
        }
        let listener = |(address, files): (ListenAddress, TlsFiles)| {
            let wrong = |fault| format!("--tls {}: {fault}", show_listen(&address));
            let tls = Some(ListenerTls::new(files.load().map_err(wrong)?));
            Ok(ListenerSettings { tls, ..ListenerSettings::at(address) })
        };
        self.files_of_each().into_iter().map(listener).collect()
    }

    /// Every address shows all the certificates.
    pub fn files_of_each(&self) -> Vec<(ListenAddress, TlsFiles)> {
        let keys = if self.keys.is_empty() { &self.certificates } else { &self.keys };
        let pair = |(certificate, key): (&PathBuf, &PathBuf)| CertificateFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        };
        let certificates: Vec<_> = self.certificates.iter().zip(keys).map(pair).collect();
        let files = TlsFiles { certificates, ..TlsFiles::default() };
        self.addresses.iter().map(|address| (address.clone(), files.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_certificate_has_a_key() {
        let flags = |certificates: &[&str], keys: &[&str]| TlsFlags {
            addresses: vec![parse_listen("127.0.0.1:0").unwrap()],
            certificates: certificates.iter().map(PathBuf::from).collect(),
            keys: keys.iter().map(PathBuf::from).collect(),
        };
        let why = flags(&["/a", "/b"], &["/c"]).load().unwrap_err();
        assert_eq!(why, "2 --cert and 1 --key: each certificate has a key");
        let why = flags(&["/nowhere/a"], &[]).load().unwrap_err();
        assert_eq!(why, "--tls 127.0.0.1:0: /nowhere/a: No such file or directory (os error 2)");
        let (_, files) = flags(&["/a"], &[]).files_of_each().remove(0);
        assert_eq!(files.certificates[0].key, PathBuf::from("/a"), "one file may have both");
    }
}
