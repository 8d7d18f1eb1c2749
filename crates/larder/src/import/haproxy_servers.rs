//! `server` lines of a backend of HAProxy's as the URLs of an `[origin.NAME]`, and what they say of TLS, checks and connections.

use std::path::{Path, PathBuf};

use crate::addresses::parse_origin;
use crate::import::haproxy_times::quoted_time;
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::limits::ORIGIN_WEIGHT_MAX;

/// `server-template` stands for so many at most.
const TEMPLATE_SERVERS_MAX: usize = 1_000;

/// Words with a value behind them that larder has no need of, or chooses by itself.
const NEEDS_NO_VALUE: [&str; 22] = [
    "resolvers",
    "init-addr",
    "resolve-prefer",
    "resolve-opts",
    "on-marked-down",
    "on-marked-up",
    "on-error",
    "error-limit",
    "observe",
    "id",
    "track",
    "pool-max-conn",
    "pool-purge-delay",
    "pool-low-conn",
    "ciphers",
    "ciphersuites",
    "minconn",
    "maxqueue",
    "fastinter",
    "downinter",
    "log-proto",
    "hash-key",
];

/// The same without a value.
const NEEDS_NOTHING: [&str; 12] = [
    "check",
    "no-ssl-reuse",
    "ssl-reuse",
    "force-tlsv12",
    "force-tlsv13",
    "no-sslv3",
    "no-tls-tickets",
    "tfo",
    "enabled",
    "stick",
    "check-ssl",
    "no-tlsv10",
];

/// Without these another program is asked, or differently.
const CLOSE: [&str; 9] = [
    "send-proxy",
    "send-proxy-v2",
    "send-proxy-v2-ssl",
    "send-proxy-v2-ssl-cn",
    "proxy-v2-options",
    "socks4",
    "redir",
    "usesrc",
    "set-proxy-v2-tlv-fmt",
];

/// What the servers of a backend come to.
#[derive(Clone, Debug, Default)]
pub struct BackendServers {
    /// Each with its weight, or that it is a backup.
    pub urls: Vec<String>,
    /// The keys of `tls`, without those that the first server does not have.
    tls: Option<Vec<String>>,
    pub is_http2: bool,
    pub is_checked: bool,
    pub interval: Option<String>,
    pub rise: Option<u32>,
    pub fall: Option<u32>,
    pub slow_start: Option<String>,
    connections: Vec<Option<u32>>,
}

/// One server's words.
#[derive(Default)]
struct ServerWords {
    is_tls: bool,
    is_h2: bool,
    is_backup: bool,
    is_off: bool,
    weight: Option<u32>,
    connections: Option<u32>,
    tls: Vec<String>,
}

/// Where names of certificates begin.
#[derive(Clone, Debug, Default)]
pub struct CertificateFolders {
    pub certificates: PathBuf,
    pub authorities: PathBuf,
}

impl BackendServers {
    /// `None`: one of them cannot be asked as HAProxy does, which has been said.
    pub fn read(lines: &[Directive], folders: &CertificateFolders, findings: &mut Findings) -> Option<BackendServers> {
        let mut servers = BackendServers::default();
        let mut usual: Vec<String> = Vec::new();
        for line in lines {
            let at = match line.name.as_str() {
                "default-server" => {
                    usual.extend(line.arguments.iter().cloned());
                    continue;
                }
                "server" => 1,
                "server-template" => 2,
                "dispatch" | "transparent" => {
                    findings.leave(line, "closed: larder asks servers that are named");
                    return None;
                }
                _ => continue,
            };
            let words: Vec<String> =
                usual.iter().chain(line.arguments.get(at + 1..).unwrap_or_default()).cloned().collect();
            let own = servers.words(line, &words, folders, findings)?;
            if own.is_off {
                findings.note(line, "it is disabled, and left out");
                continue;
            }
            servers.add(line, line.argument(at), own, findings)?;
        }
        Some(servers)
    }

    fn words(
        &mut self,
        line: &Directive,
        words: &[String],
        folders: &CertificateFolders,
        findings: &mut Findings,
    ) -> Option<ServerWords> {
        let (mut own, mut words) = (ServerWords::default(), words.iter().map(String::as_str));
        let file = |folder: &Path, name: &str| quoted(&folder.join(name).display().to_string());
        while let Some(word) = words.next() {
            match word {
                "ssl" => own.is_tls = true,
                "backup" => own.is_backup = true,
                "disabled" => own.is_off = true,
                "check" => self.is_checked = true,
                "weight" => own.weight = words.next()?.parse().ok(),
                "maxconn" => own.connections = words.next()?.parse().ok().filter(|max| *max > 0),
                "inter" => self.interval = words.next().and_then(quoted_time),
                "rise" => self.rise = words.next()?.parse().ok(),
                "fall" => self.fall = words.next()?.parse().ok(),
                "slowstart" => self.slow_start = words.next().and_then(quoted_time),
                "cookie" | "ssl-min-ver" | "ssl-max-ver" | "check-proto" | "check-alpn" | "ws" => drop(words.next()),
                "verify" if words.next() == Some("none") => own.tls.push("verify = false".to_owned()),
                "verify" => {}
                "ca-file" => own.tls.push(format!("ca = {}", file(&folders.authorities, words.next()?))),
                "crt" => own.tls.push(format!("cert = {}", file(&folders.certificates, words.next()?))),
                "verifyhost" => own.tls.push(format!("name = {}", quoted(words.next()?))),
                "sni" => match words.next()?.strip_prefix("str(").and_then(|rest| rest.strip_suffix(')')) {
                    Some(name) if !own.tls.iter().any(|key| key.starts_with("name")) => {
                        own.tls.push(format!("name = {}", quoted(name)));
                    }
                    Some(_) => {}
                    None => findings.leave(line, "servers are told the name of their URL (tls.name), not the client's"),
                },
                "alpn" | "proto" => own.is_h2 |= words.next()?.split(',').any(|name| name == "h2"),
                word if CLOSE.contains(&word) => {
                    findings.leave(line, "closed: larder does not speak so to servers");
                    return None;
                }
                word if NEEDS_NO_VALUE.contains(&word) => drop(words.next()),
                word if NEEDS_NOTHING.contains(&word) || word.starts_with("no-") => {}
                _ => findings.leave(line, "a word of this server that larder has not"),
            }
        }
        Some(own)
    }

    fn add(&mut self, line: &Directive, address: &str, own: ServerWords, findings: &mut Findings) -> Option<()> {
        let scheme = match (own.is_tls, own.is_h2) {
            (true, _) => "https://",
            (false, true) => "h2://",
            (false, false) => "http://",
        };
        let url = server_url(address, scheme).filter(|url| parse_origin(url).is_ok());
        let Some(url) = url.filter(|url| !(url.starts_with("unix:") && (own.is_tls || own.is_h2))) else {
            findings.leave(line, "closed: larder asks HOST:PORT or a socket of a path, with a port");
            return None;
        };
        let tls = own.is_tls.then(|| own.tls.clone());
        if !self.urls.is_empty() && (tls.clone().unwrap_or_default() != self.tls.clone().unwrap_or_default()) {
            findings.leave(line, "closed: servers of an origin are known by one tls = { … }");
            return None;
        }
        self.tls = self.tls.take().or(tls);
        self.is_http2 |= own.is_tls && own.is_h2;
        let weight = own.weight.filter(|weight| *weight <= ORIGIN_WEIGHT_MAX && *weight != 1);
        let weight = weight.map(|weight| format!(" weight={weight}")).unwrap_or_default();
        let count = match line.name.as_str() {
            "server-template" => template_count(line.argument(1)).unwrap_or(1),
            _ => 1,
        };
        if count > 1 {
            findings.note(line, "larder asks all addresses of a name by itself");
        }
        self.urls.push(match own.is_backup {
            true => format!("{url} backup"),
            false => format!("{url}{weight}"),
        });
        self.connections.push(own.connections);
        Some(())
    }

    /// Of all servers together, where each has a limit.
    pub fn max_connections(&self) -> Option<u32> {
        let each: Option<Vec<u32>> = self.connections.iter().copied().collect();
        each.filter(|each| !each.is_empty()).map(|each| each.iter().fold(0, |sum: u32, one| sum.saturating_add(*one)))
    }

    pub fn tls_line(&self) -> Option<String> {
        let keys = self.tls.as_ref().filter(|keys| !keys.is_empty())?;
        Some(format!("tls = {{ {} }}", keys.join(", ")))
    }
}

/// `1-5` or `5` servers.
fn template_count(range: &str) -> Option<usize> {
    let (first, last) = range.split_once('-').unwrap_or(("1", range));
    let count = (last.parse::<usize>().ok()? + 1).checked_sub(first.parse().ok()?)?;
    (1..=TEMPLATE_SERVERS_MAX).contains(&count).then_some(count)
}

fn server_url(address: &str, scheme: &str) -> Option<String> {
    if let Some(path) = address.strip_prefix("unix@") {
        return Some(format!("unix:{path}"));
    }
    if address.starts_with('/') {
        return Some(format!("unix:{address}"));
    }
    let address = address.strip_prefix("ipv4@").or(address.strip_prefix("ipv6@")).unwrap_or(address);
    let (host, port) = address.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port > 0)?;
    let is_any = matches!(host, "" | "*" | "0.0.0.0" | "::") || host.contains(['@', '$']);
    let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    (!is_any).then(|| format!("{scheme}{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn check(lines: &[&str], urls: Option<&[&str]>, tls: Option<&str>, left: usize) {
        let lines: Vec<Directive> = lines.iter().map(|line| directive(line)).collect();
        let mut findings = Findings::default();
        let folders = CertificateFolders { certificates: "/c".into(), authorities: "/a".into() };
        let servers = BackendServers::read(&lines, &folders, &mut findings);
        let found = servers.as_ref().map(|servers| servers.urls.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(found.as_deref(), urls, "{lines:?}");
        assert_eq!(servers.and_then(|servers| servers.tls_line()).as_deref(), tls, "{lines:?}");
        assert_eq!(findings.left_count(), left, "{lines:?} {findings:?}");
    }

    #[test]
    fn servers_are_urls() {
        let plain = [
            "server a 10.0.0.1:80 check weight 5",
            "server b [::1]:81 backup",
            "server c unix@/run/c",
            "server d ::1:82",
        ];
        let urls = ["http://10.0.0.1:80 weight=5", "http://[::1]:81 backup", "unix:/run/c", "http://[::1]:82"];
        check(&plain, Some(&urls), None, 0);
        let tls =
            ["default-server ssl verify required ca-file ca.pem", "server a a.test:443 sni str(b.test) check inter 5s"];
        let keys = "tls = { ca = \"/a/ca.pem\", name = \"b.test\" }";
        check(&tls, Some(&["https://a.test:443"]), Some(keys), 0);
        check(&["server a a:80", "server b b:80 disabled"], Some(&["http://a:80"]), None, 0);
        check(&["server a a:80 proto h2"], Some(&["h2://a:80"]), None, 0);
        check(&["server-template web 3 web.test:80 check resolvers dns"], Some(&["http://web.test:80"]), None, 0);
        check(
            &["server a a:443 ssl verify none sni req.hdr(host)"],
            Some(&["https://a:443"]),
            Some("tls = { verify = false }"),
            1,
        );
    }

    #[test]
    fn what_cannot_be_asked_closes() {
        for line in
            ["server a a:80 send-proxy", "server a a", "server a 0.0.0.0:80", "server a ${A}:80", "dispatch a:80"]
        {
            check(&[line], None, None, 1);
        }
        check(&["server a a:80", "server b b:443 ssl verify none"], None, None, 1);
    }

    #[test]
    fn limits_of_servers_are_one() {
        let of = |lines: &[&str]| {
            let lines: Vec<Directive> = lines.iter().map(|line| directive(line)).collect();
            BackendServers::read(&lines, &CertificateFolders::default(), &mut Findings::default())?.max_connections()
        };
        assert_eq!(of(&["server a a:80 maxconn 5", "server b b:80 maxconn 7"]), Some(12));
        assert_eq!(of(&["server a a:80 maxconn 5", "server b b:80"]), None);
    }
}
