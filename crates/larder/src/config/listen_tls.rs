//! `tls` of a `[[listen]]`: the certificates that clients are shown, and what is asked of them. The files are read here, so that what is
//! wrong with one is a complaint about a line. Those that are ordered from an authority come later.

use std::path::PathBuf;

use acme::NameSet;
use proxy::limits::CERTIFICATES_BYTES_MAX;
use proxy::settings::{ListenMode, ListenerTls};
use tls::CertificateFault;

use super::acme_section;
use super::choices::{CLIENT_CERTIFICATES, TLS_VERSIONS};
use super::complaint::Complaint;
use super::section::{Node, Section, choice, file, path, switch, text};
use crate::acme_plan::AcmeSettings;
use crate::bounded_file;
use crate::tls_files::{CertificateFiles, TlsFiles};

/// The files of a section, and where each is named.
fn named_files(section: &mut Section<'_>) -> Vec<(PathBuf, std::ops::Range<usize>)> {
    let mut named = Vec::new();
    for key in ["cert", "key", "client_ca", "ticket_secret"] {
        let Some(node) = section.get(key) else { continue };
        let nodes: Vec<Node<'_>> = match node.get_ref() {
            toml::de::DeValue::Array(items) => items.iter().collect(),
            _ => vec![node],
        };
        let complaints = section.complaints();
        let of = |node: &Node<'_>| Some((complaints.beside(path(text(node).ok()?)?), node.span()));
        named.extend(nodes.iter().filter_map(of));
    }
    named
}

/// What it says, and what came of reading it; and the names for which certificates are ordered. `mode` is `None` where redirects go to a
/// port that is not known yet.
pub fn read(
    listen: &mut Section<'_>,
    mode: Option<ListenMode>,
    acme: Option<&AcmeSettings>,
) -> Option<(TlsFiles, ListenerTls, Vec<NameSet>)> {
    let mut section = listen.section("tls")?;
    if matches!(mode, None | Some(ListenMode::Redirect { .. })) {
        let complaint =
            Complaint::new(section.span(), "whoever asks here is redirected to TLS", "they would come again");
        section.complaints().add(complaint.suggest("leave tls out, or mode = \"redirect\""));
    }
    let complaints = section.complaints();
    let file = |node: Node<'_>| file(node, complaints);
    let certificates = section.read_list("cert", file).unwrap_or_default();
    let keys = section.read_list("key", file).unwrap_or_else(|| certificates.clone());
    // One for each, or "" for a certificate that has none.
    let staples = section
        .read_list("ocsp", |node| text(node).map(|written| path(written).map(|file| complaints.beside(file))))
        .unwrap_or_default();
    let version_min = section.read("min_version", |node| choice(node, &TLS_VERSIONS));
    let suites = section.read_list("ciphers", |node| text(node).map(str::to_owned));
    let client_ca = section.read("client_ca", file);
    let required = section.read("client_cert", |node| choice(node, &CLIENT_CERTIFICATES));
    let ticket_secret = section.read("ticket_secret", file);
    let early_data = section.read("early_data", switch).unwrap_or(false);
    // A forward proxy is asked for tunnels, which HTTP/1.1 alone has here.
    let http2 = section.read("http2", switch).unwrap_or(true) && mode == Some(ListenMode::Accelerate);
    let sets = acme_section::name_sets(&mut section);
    let is_ordered = section.get("acme").is_some();
    if !is_ordered {
        section.require(
            "cert",
            "write cert = \"FILE\", a certificate and those that lead to its authority, in PEM; or acme = [\"NAME\"]",
        );
    }
    if let (Some(_), None) = (&sets, acme) {
        let complaint = Complaint::new(section.span(), "`acme` needs [acme]", "from whom is it to come?");
        section.complaints().add(complaint.suggest("add a section [acme] with terms_agreed = true and email = \"…\""));
    }
    let sets = sets.unwrap_or_default();
    if certificates.len() != keys.len() {
        let what = format!("there are {} certificates and {} keys", certificates.len(), keys.len());
        let complaint = Complaint::new(section.span(), what, "each certificate has a key");
        section.complaints().add(complaint.suggest("list the keys in the order of the certificates"));
        return None;
    }
    if !staples.is_empty() && certificates.len() != staples.len() {
        let what = format!("there are {} certificates and {} OCSP responses", certificates.len(), staples.len());
        let complaint = Complaint::new(section.span(), what, "each is about one certificate");
        section.complaints().add(complaint.suggest("list them in the order of the certificates, \"\" for one without"));
        return None;
    }
    if early_data && ticket_secret.is_some() {
        let why = "sessions with early data are kept, each to be resumed once, and have no tickets";
        let complaint = Complaint::new(section.span(), "`early_data` leaves no use for ticket_secret", why);
        section.complaints().add(complaint.suggest("leave one of the two out"));
    }
    if let (Some(_), None) = (required, &client_ca) {
        let complaint = Complaint::new(section.span(), "`client_cert` needs client_ca", "nobody is known here");
        section.complaints().add(complaint.suggest("add client_ca = \"FILE\", those who sign clients' certificates"));
    }
    let staples = staples.into_iter().chain(std::iter::repeat(None));
    let files_of =
        |((certificate, key), ocsp): ((PathBuf, PathBuf), Option<PathBuf>)| CertificateFiles { certificate, key, ocsp };
    let files = TlsFiles {
        certificates: certificates.into_iter().zip(keys).zip(staples).map(files_of).collect(),
        ordered: acme.map_or(Vec::new(), |acme| sets.iter().map(|names| acme.certificate_path(names)).collect()),
        version_min: version_min.unwrap_or_default(),
        suites,
        clients: client_ca.map(|file| (file, required.unwrap_or(true))),
        without_http2: !http2,
        ticket_secret,
        early_data,
        seen: Vec::new(),
    };
    let files = files.seen_now();
    let named = named_files(&mut section);
    let (span, has_key) = (section.span(), section.get("key").is_some() || is_ordered);
    section.end();
    if files.certificates.is_empty() && files.ordered.is_empty() {
        return None;
    }
    match files.load() {
        Ok(tls) => Some((files, ListenerTls::new(tls), sets)),
        Err(fault) => {
            let at = fault.file.as_ref().and_then(|file| named.iter().find(|(named, _)| named == file));
            let span = at.map_or(span, |(_, at)| at.clone());
            let complaint = Complaint::new(span, fault.to_string(), "no TLS can be spoken with this");
            let is_swapped = fault.why == CertificateFault::NoCertificate.to_string()
                && fault.file.as_deref().is_some_and(|file| {
                    bounded_file::read_text(file, CERTIFICATES_BYTES_MAX).is_ok_and(|text| text.contains("PRIVATE KEY"))
                });
            if is_swapped {
                let meant = "it is the file of a key: are cert and key in each other's place?";
                complaints.add(complaint.suggest(meant));
                return None;
            }
            let misses_key = !has_key && fault.to_string().contains(&CertificateFault::NoKey.to_string());
            complaints.add(match misses_key {
                true => complaint
                    .suggest("add key = \"FILE\": without it the key is looked for in the file of the certificate"),
                false => complaint,
            });
            None
        }
    }
}
