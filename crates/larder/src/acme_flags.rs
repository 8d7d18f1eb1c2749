//! `--acme-…`: certificates that `larder serve` orders by itself.

use std::path::PathBuf;

use acme::{Directory, NameSet};
use clap::Args;

use crate::acme_plan::{AcmeSettings, AcmeWords, TERMS, is_email};

#[derive(Clone, Debug, Default, Args)]
pub struct AcmeFlags {
    /// Order a certificate for this name, and renew it; with --tls; repeatable: one certificate is for all of them
    #[arg(long = "acme-domain", value_name = "NAME", requires = "tls")]
    pub domains: Vec<String>,

    /// Agree to the terms of the authority; without this nothing is ordered
    #[arg(long = "acme-agree-terms", requires = "domains")]
    pub agree_terms: bool,

    /// Where the authority may write to about the certificate
    #[arg(long = "acme-email", value_name = "ADDRESS", requires = "domains", value_parser = parse_email)]
    pub email: Option<String>,

    /// The authority: letsencrypt, letsencrypt-staging, or the URL of a directory [default: letsencrypt]
    #[arg(long = "acme-directory", value_name = "NAME|URL", requires = "domains", value_parser = Directory::parse)]
    pub directory: Option<Directory>,

    /// Who has signed the authority's own certificate, in PEM, where this system does not know
    #[arg(long = "acme-ca", value_name = "FILE", requires = "domains")]
    pub ca: Option<PathBuf>,

    /// Where accounts, keys and certificates are kept [default: /var/lib/larder/acme]
    #[arg(long = "acme-folder", value_name = "DIR", requires = "domains")]
    pub folder: Option<PathBuf>,
}

impl AcmeFlags {
    /// What is ordered, if anything is. What is wrong is a sentence.
    pub fn read(&self) -> Result<Option<(AcmeSettings, NameSet)>, String> {
        if self.domains.is_empty() {
            return Ok(None);
        }
        let names =
            NameSet::new(self.domains.iter().map(String::as_str)).map_err(|why| format!("--acme-domain: {why}"))?;
        if !self.agree_terms {
            return Err(format!("{TERMS}: read them, and give --acme-agree-terms"));
        }
        let words = AcmeWords {
            directory: self.directory.clone().unwrap_or_default(),
            email: self.email.clone(),
            authorities: self.ca.clone(),
            folder: self.folder.clone(),
            ..AcmeWords::default()
        };
        let settings = words.settings().map_err(|why| format!("--acme-ca: {why}"))?;
        Ok(Some((settings, names)))
    }
}

fn parse_email(written: &str) -> Result<String, String> {
    if is_email(written) { Ok(written.to_owned()) } else { Err("must be such as admin@example.org".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_ordered_for_who_did_not_agree() {
        let flags = |domain: &str, agree_terms| AcmeFlags {
            domains: vec![domain.to_owned()],
            agree_terms,
            ca: Some("/nowhere/ca.pem".into()),
            ..AcmeFlags::default()
        };
        assert!(AcmeFlags::default().read().unwrap().is_none());
        let why = |flags: AcmeFlags| flags.read().map(|_| ()).unwrap_err();
        assert!(why(flags("example.org", false)).contains("give --acme-agree-terms"));
        assert!(why(flags("*.example.org", true)).contains("--acme-domain: `*.example.org` is a wildcard"));
        assert!(why(flags("example.org", true)).contains("--acme-ca: /nowhere/ca.pem: "));
    }

    #[test]
    fn an_address_is_one_that_can_be_written_to() {
        for (written, is_one) in [
            ("admin@example.org", true),
            ("a+b@x.example", true),
            ("admin", false),
            ("@example.org", false),
            ("a@b@c.d", false),
            ("a b@c.d", false),
            ("a@localhost", false),
            ("a@b.c?x=y", false),
        ] {
            assert_eq!(is_email(written), is_one, "{written}");
        }
    }
}
