//! `bind` lines of HAProxy's as `[[listen]]`.

use std::path::{Path, PathBuf};

use crate::bounded_file;
use crate::import::haproxy_servers::CertificateFolders;
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;

/// A file of certificates, or a list of such files.
const LIST_BYTES_MAX: u64 = 1 << 20;
const CERTIFICATES_MAX: usize = 10_000;

/// Files beside certificates that are none.
const BESIDE: [&str; 6] = ["key", "issuer", "ocsp", "sctl", "dh", "crt-list"];

/// Words with a value that larder has no need of, or chooses by itself.
const NEEDS_NO_VALUE: [&str; 13] = [
    "name",
    "process",
    "thread",
    "mss",
    "backlog",
    "maxconn",
    "nice",
    "id",
    "level",
    "ciphers",
    "ciphersuites",
    "curves",
    "tcp-ut",
];

/// The addresses of one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundAddresses {
    pub addresses: Vec<String>,
    pub is_secure: bool,
    /// The lines of a section but for its address.
    pub lines: Vec<String>,
}

impl BoundAddresses {
    /// `None`: nobody can listen so, which has been said.
    pub fn read(line: &Directive, folders: &CertificateFolders, findings: &mut Findings) -> Option<BoundAddresses> {
        let mut bound = BoundAddresses::default();
        for address in line.argument(0).split(',') {
            match listen_address(address) {
                Some(address) => bound.addresses.push(address),
                None => {
                    findings.leave(line, "nobody listens: larder listens at IP:PORT, *:PORT or unix:/PATH");
                    return None;
                }
            }
        }
        let words = line.arguments.get(1..).unwrap_or_default();
        bound.is_secure = words.iter().any(|word| word == "ssl");
        let mut certificates = Vec::new();
        let mut tls = Vec::new();
        let mut words = words.iter().map(String::as_str);
        let mut verifies = None;
        while let Some(word) = words.next() {
            match word {
                "crt" => certificates.extend(certificates_at(&folders.certificates.join(words.next()?))),
                "crt-list" => match listed_certificates(&folders.certificates.join(words.next()?), folders) {
                    Some(listed) => certificates.extend(listed),
                    None => findings.leave(line, "a list with options of its own, or none that is here"),
                },
                "accept-proxy" => bound.lines.push("proxy_protocol = true".to_owned()),
                "alpn" | "npn" if !words.next()?.split(',').any(|name| name == "h2") => {
                    tls.push("http2 = false".to_owned())
                }
                "proto" if words.next() == Some("h2") && !bound.is_secure => bound.lines.push("h2c = true".to_owned()),
                "ssl-min-ver" if words.next() == Some("TLSv1.3") => tls.push("min_version = \"1.3\"".to_owned()),
                // Their values have been taken.
                "alpn" | "npn" | "proto" | "ssl-min-ver" => {}
                "ssl-max-ver" => drop(words.next()),
                "ca-file" => tls.push(format!("client_ca = {}", shown(&folders.authorities.join(words.next()?)))),
                "verify" => verifies = words.next(),
                "crl-file" | "interface" | "namespace" | "v6only" | "crt-ignore-err" | "ca-ignore-err" => {
                    findings.leave(line, "nobody listens: larder has no word for who is kept out so");
                    return None;
                }
                "ca-verify-file" | "tls-ticket-keys" | "mode" | "uid" | "gid" | "user" | "group" => {
                    words.next();
                    findings.leave(line, "a word of this listener that larder has not");
                }
                word if NEEDS_NO_VALUE.contains(&word) => drop(words.next()),
                _ => {}
            }
        }
        bound.finish(line, certificates, tls, (verifies, findings))
    }

    fn finish(
        mut self,
        line: &Directive,
        mut certificates: Vec<(PathBuf, Option<PathBuf>)>,
        mut tls: Vec<String>,
        (verifies, findings): (Option<&str>, &mut Findings),
    ) -> Option<BoundAddresses> {
        if !self.is_secure {
            return Some(self);
        }
        findings.speak_tls();
        certificates.dedup();
        let is_here = |path: &PathBuf| std::fs::File::open(path).is_ok();
        certificates.retain(|(certificate, key)| is_here(certificate) && key.as_ref().is_none_or(is_here));
        if certificates.is_empty() || certificates.len() > CERTIFICATES_MAX {
            findings
                .leave(line, "nobody listens: its certificates are not here: write tls = { cert, key } of [[listen]]");
            return None;
        }
        let has_authority = tls.iter().any(|key| key.starts_with("client_ca"));
        match verifies {
            Some("required") if has_authority => {}
            Some("optional") if has_authority => tls.push("client_cert = \"optional\"".to_owned()),
            Some("none") | None => tls.retain(|key| !key.starts_with("client_ca")),
            Some(_) => {
                findings.leave(line, "nobody listens: no ca-file says whose certificates clients must show");
                return None;
            }
        }
        let list = |paths: Vec<&PathBuf>| paths.iter().map(|path| shown(path)).collect::<Vec<_>>().join(", ");
        let keys = certificates.iter().map(|(certificate, key)| key.as_ref().unwrap_or(certificate)).collect();
        let files = list(certificates.iter().map(|(certificate, _)| certificate).collect());
        tls.insert(0, format!("cert = [{files}], key = [{}]", list(keys)));
        self.lines.push(format!("tls = {{ {} }}", tls.join(", ")));
        Some(self)
    }
}

fn shown(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// A file, or each of a folder, with the key beside it where it has none in itself.
fn certificates_at(path: &Path) -> Vec<(PathBuf, Option<PathBuf>)> {
    let with_key = |path: PathBuf| {
        let beside = path.with_file_name(format!("{}.key", path.file_name().unwrap_or_default().to_string_lossy()));
        let key = beside.is_file().then_some(beside);
        (path, key)
    };
    if !path.is_dir() {
        return vec![with_key(path.to_owned())];
    }
    let is_one = |path: &PathBuf| {
        let end = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        path.is_file() && !BESIDE.contains(&end.as_str())
    };
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(is_one).take(CERTIFICATES_MAX + 1).collect();
    files.sort();
    files.into_iter().map(with_key).collect()
}

/// The files of a list. `None`: it is not here, or says more of one than its name.
fn listed_certificates(path: &Path, folders: &CertificateFolders) -> Option<Vec<(PathBuf, Option<PathBuf>)>> {
    let bytes = bounded_file::read(path, LIST_BYTES_MAX).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut all = Vec::new();
    for line in lines {
        if line.contains('[') {
            return None;
        }
        all.extend(certificates_at(&folders.certificates.join(line.split_whitespace().next()?)));
    }
    Some(all)
}

fn listen_address(address: &str) -> Option<String> {
    if let Some(path) = address.strip_prefix("unix@").or(address.starts_with('/').then_some(address)) {
        return Some(format!("unix:{path}"));
    }
    let address = address.strip_prefix("ipv4@").or(address.strip_prefix("ipv6@")).unwrap_or(address);
    let (host, port) = address.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host {
        "" | "*" | "0.0.0.0" | "::" => Some(format!("*:{port}")),
        host if host.parse::<std::net::Ipv4Addr>().is_ok() => Some(format!("{host}:{port}")),
        host if host.parse::<std::net::Ipv6Addr>().is_ok() => Some(format!("[{host}]:{port}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn bound(line: &str, folder: &Path) -> (Option<BoundAddresses>, usize) {
        let folders = CertificateFolders { certificates: folder.to_owned(), authorities: folder.to_owned() };
        let mut findings = Findings::default();
        let bound = BoundAddresses::read(&directive(line), &folders, &mut findings);
        (bound, findings.left_count())
    }

    #[test]
    fn addresses_are_those_of_listeners() {
        let check = |line: &str, expect: Option<&[&str]>| {
            let (bound, left) = bound(line, Path::new("/"));
            let found = bound.map(|bound| bound.addresses);
            assert_eq!(found, expect.map(|all| all.iter().map(|&one| one.to_owned()).collect()), "{line}");
            assert_eq!(left, usize::from(expect.is_none()), "{line}");
        };
        check("bind *:80", Some(&["*:80"]));
        check("bind :80,127.0.0.1:8080", Some(&["*:80", "127.0.0.1:8080"]));
        check("bind [::]:80 v4v6", Some(&["*:80"]));
        check("bind ::1:80", Some(&["[::1]:80"]));
        check("bind /run/a.sock", Some(&["unix:/run/a.sock"]));
        check("bind :8000-8010", None);
        check("bind abns@x", None);
        check("bind *:80 interface lo", None);
        check("bind :::80 v6only", None);
    }

    #[test]
    fn certificates_that_are_here_are_shown() {
        let folder = std::env::temp_dir().join(format!("larder-binds-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("all")).unwrap();
        for name in ["a.pem", "all/b.pem", "all/c.pem", "all/c.pem.key", "ca.pem"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        let at = |name: &str| format!("\"{}\"", folder.join(name).display());
        let tls = |line: &str| bound(line, &folder).0.map(|bound| bound.lines.join("; "));
        let one = format!("tls = {{ cert = [{0}], key = [{0}] }}", at("a.pem"));
        assert_eq!(tls("bind :443 ssl crt a.pem alpn h2,http/1.1"), Some(one));
        let all = format!(
            "tls = {{ cert = [{0}, {1}], key = [{0}, {2}] }}",
            at("all/b.pem"),
            at("all/c.pem"),
            at("all/c.pem.key")
        );
        assert_eq!(tls("bind :443 ssl crt all"), Some(all));
        let of_clients = format!("tls = {{ cert = [{0}], key = [{0}], client_ca = {1} }}", at("a.pem"), at("ca.pem"));
        assert_eq!(tls("bind :443 ssl crt a.pem ca-file ca.pem verify required"), Some(of_clients));
        assert_eq!(bound("bind :443 ssl crt none.pem", &folder), (None, 1));
        assert_eq!(bound("bind :443 ssl crt a.pem verify required", &folder), (None, 1));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
