//! `tls` of an `[origin.NAME]`: how servers of its `https://` URLs are known, and what larder shows them. The files are read here, so
//! that what is wrong with one is a complaint about a line.

use std::path::PathBuf;

use proxy::settings::{OriginTls, OriginUrl, Verification};
use tls::is_server_name;

use super::complaint::Complaint;
use super::section::{Section, file, parsed, switch};
use crate::authority_files;
use crate::tls_files::{CertificateFiles, certificate};

pub fn read(origin: &mut Section<'_>, urls: &[OriginUrl]) -> OriginTls {
    let speaks_tls = urls.iter().any(|url| matches!(url, OriginUrl::Tls { .. }));
    let mut tls = OriginTls::default();
    let Some(mut section) = origin.section("tls") else {
        if speaks_tls && let Err(why) = authority_files::of_system() {
            let complaint = Complaint::new(origin.span(), why, "nobody says who these servers are");
            origin.complaints().add(complaint.suggest("add tls = { ca = \"FILE\" }, certificates in PEM"));
        }
        return tls;
    };
    let complaints = section.complaints();
    let file = |node| file(node, complaints);
    let verifies = section.read("verify", switch).unwrap_or(true);
    let ca = section.read("ca", file);
    tls.name = section.read("name", |node| {
        let form = "what the servers' certificates are for: a name or an address";
        parsed(node, "name of a server", form, |name| is_server_name(name).then(|| name.to_owned()))
    });
    let (shown, key) = (section.read("cert", file), section.read("key", file));
    let span = section.span();
    if !speaks_tls {
        complaints.add(Complaint::new(span.clone(), "`tls` is for https:// URLs", "this origin has none"));
    }
    tls.verification = match (verifies, &ca) {
        (false, None) => Verification::Off,
        (false, Some(_)) => {
            complaints.add(Complaint::new(span.clone(), "`ca` and verify = false", "one of both"));
            Verification::Off
        }
        (true, None) => Verification::System,
        (true, Some(file)) => match authority_files::in_file(file) {
            Ok(authorities) => Verification::By(authorities),
            Err(why) => {
                complaints.add(Complaint::new(span.clone(), why, "who may sign the servers' certificates"));
                Verification::System
            }
        },
    };
    if let Some(shown) = shown {
        let files =
            CertificateFiles { key: key.unwrap_or_else(|| PathBuf::from(&shown)), certificate: shown, ocsp: None };
        match certificate(&files) {
            Ok(certificate) => tls.certificate = Some(certificate),
            Err(fault) => complaints.add(Complaint::new(span, fault.to_string(), "what servers are shown of us")),
        }
    }
    section.end();
    tls
}
