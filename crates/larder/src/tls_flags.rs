//! `--tls`, `--cert`, `--key` and what goes with them: where `larder serve` speaks TLS, with which certificates, and who is sent there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgGroup, Args};
use proxy::settings::{ListenAddress, ListenMode, ListenerSettings, ListenerTls};

use crate::acme_flags::AcmeFlags;
use crate::addresses::{parse_listen, show_listen};
use crate::hsts::{HSTS_FORM, parse_hsts};
use crate::plan::https_port_of;
use crate::tls_files::{CertificateFiles, TlsFiles};

#[derive(Clone, Debug, Default, Args)]
#[command(group(ArgGroup::new("shown").args(["certificates", "domains"]).multiple(true)))]
pub struct TlsFlags {
    /// Where to listen with TLS, for https://; with --cert or --acme-domain; repeatable
    #[arg(id = "tls", long = "tls", value_name = "ADDRESS", value_parser = parse_listen, requires = "shown")]
    pub addresses: Vec<ListenAddress>,

    /// A certificate for --tls with those that lead to its authority, in PEM; repeatable: the client's server name chooses
    #[arg(long = "cert", value_name = "FILE", requires = "tls")]
    pub certificates: Vec<PathBuf>,

    /// The key of each --cert, in the same order [default: in the file of the certificate]
    #[arg(long = "key", value_name = "FILE", requires = "certificates")]
    pub keys: Vec<PathBuf>,

    /// Where to answer http:// with a redirect to https:// at the first --tls; repeatable
    #[arg(long = "redirect-http", value_name = "ADDRESS", value_parser = parse_listen, requires = "tls")]
    pub redirect_http: Vec<ListenAddress>,

    /// Say Strict-Transport-Security: VALUE in every answer over TLS, such as max-age=31536000
    #[arg(long, value_name = "VALUE", value_parser = hsts_value)]
    pub hsts: Option<Arc<str>>,

    #[command(flatten)]
    pub acme: AcmeFlags,
}

fn hsts_value(written: &str) -> Result<Arc<str>, String> {
    parse_hsts(written).ok_or_else(|| format!("write it {HSTS_FORM}"))
}

impl TlsFlags {
    /// Those who listen there. What is wrong with the files is a sentence. `ordered`: where a certificate will be.
    pub fn load(&self, ordered: Option<&Path>) -> Result<Vec<ListenerSettings>, String> {
        if !self.keys.is_empty() && self.keys.len() != self.certificates.len() {
            let (certificates, keys) = (self.certificates.len(), self.keys.len());
            return Err(format!("{certificates} --cert and {keys} --key: each certificate has a key"));
        }
        let listener = |(address, files): (ListenAddress, TlsFiles)| {
            let wrong = |fault| format!("--tls {}: {fault}", show_listen(&address));
            let tls = Some(ListenerTls::new(files.load().map_err(wrong)?));
            Ok(ListenerSettings { tls, ..ListenerSettings::at(address) })
        };
        let with_tls: Result<Vec<_>, String> = self.files_of_each(ordered).into_iter().map(listener).collect();
        let mut listeners = with_tls?;
        let mode = ListenMode::Redirect { https_port: https_port_of(&listeners) };
        let redirects = self.redirect_http.iter();
        listeners.extend(redirects.map(|address| ListenerSettings { mode, ..ListenerSettings::at(address.clone()) }));
        Ok(listeners)
    }

    /// Every address shows all the certificates.
    pub fn files_of_each(&self, ordered: Option<&Path>) -> Vec<(ListenAddress, TlsFiles)> {
        let keys = if self.keys.is_empty() { &self.certificates } else { &self.keys };
        let pair = |(certificate, key): (&PathBuf, &PathBuf)| CertificateFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            ocsp: None,
        };
        let certificates: Vec<_> = self.certificates.iter().zip(keys).map(pair).collect();
        let ordered = ordered.map(Path::to_owned).into_iter().collect();
        let files = TlsFiles { certificates, ordered, ..TlsFiles::default() }.seen_now();
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
            ..TlsFlags::default()
        };
        let why = flags(&["/a", "/b"], &["/c"]).load(None).unwrap_err();
        assert_eq!(why, "2 --cert and 1 --key: each certificate has a key");
        let why = flags(&["/nowhere/a"], &[]).load(None).unwrap_err();
        assert_eq!(why, "--tls 127.0.0.1:0: /nowhere/a: No such file or directory (os error 2)");
        let (_, files) = flags(&["/a"], &[]).files_of_each(None).remove(0);
        assert_eq!(files.certificates[0].key, PathBuf::from("/a"), "one file may have both");
    }
}
