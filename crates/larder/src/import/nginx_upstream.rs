//! `proxy_pass` and `upstream` of nginx as `[origin.NAME]`: to whom a location's requests go, and what Host they say.
//!
//! What larder's routes cannot say (another path at the origin, TLS, names with variables) is no origin here, and its
//! location stays shut. It knows no routes.

use std::path::Path;

use message::{Authority, Scheme};

use crate::addresses::parse_origin;
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::limits::ORIGIN_WEIGHT_MAX;

/// What `proxy_*` directives say at one level. Header lines are inherited all together or not at all.
#[derive(Clone, Debug, Default)]
pub struct ProxyLevel {
    headers: Option<Vec<Directive>>,
}

/// How proxying is done, and not what is answered.
const NEEDS_NOTHING: [&str; 12] = [
    "proxy_http_version",
    "proxy_buffering",
    "proxy_request_buffering",
    "proxy_buffers",
    "proxy_buffer_size",
    "proxy_busy_buffers_size",
    "proxy_max_temp_file_size",
    "proxy_temp_file_write_size",
    "proxy_socket_keepalive",
    "proxy_headers_hash_max_size",
    "proxy_headers_hash_bucket_size",
    "proxy_ignore_client_abort",
];

/// Fields that larder writes by itself, or that belong to a connection.
const WRITTEN_ANYWAY: [&str; 6] =
    ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "connection", "upgrade", "accept-encoding"];

impl ProxyLevel {
    pub fn within(self, outer: &ProxyLevel) -> ProxyLevel {
        ProxyLevel { headers: self.headers.or_else(|| outer.headers.clone()) }
    }

    /// Takes a directive in that may stand at any level. False: it is another one.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) -> bool {
        match directive.name.as_str() {
            "proxy_set_header" => self.headers.get_or_insert_default().push(directive.clone()),
            "proxy_redirect" if directive.argument(0) == "off" => findings.note(directive, "larder does so by itself"),
            "proxy_intercept_errors" if directive.argument(0) == "off" => {
                findings.note(directive, "larder does so by itself")
            }
            name if NEEDS_NOTHING.contains(&name) => findings.note(directive, "larder does so by itself"),
            _ => return false,
        }
        true
    }

    /// The Host that an origin gets: `None` for the client's own.
    fn host(&self, of_origin: &str, findings: &mut Findings) -> Option<String> {
        let mut host = Some(of_origin.to_owned());
        for line in self.headers.iter().flatten() {
            let (name, value) = (line.argument(0).to_lowercase(), line.argument(1));
            match (name.as_str(), value) {
                ("host", "$host" | "$http_host") => host = None,
                ("host", "$proxy_host") => host = Some(of_origin.to_owned()),
                ("host", value) if !value.contains('$') => host = Some(value.to_owned()),
                (name, _) if WRITTEN_ANYWAY.contains(&name) => {
                    findings.note(line, "larder writes this field by itself");
                }
                _ => findings.leave(line, "a field that larder does not write"),
            }
        }
        host
    }
}

/// The origins that are being made, and the groups of servers that may become some.
#[derive(Debug, Default)]
pub struct Origins {
    upstreams: Vec<Directive>,
    made: Vec<Made>,
}

#[derive(Debug, PartialEq, Eq)]
struct Made {
    name: String,
    served: Served,
    host: Option<String>,
}

/// Who is asked, and by which rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Served {
    /// Each with its weight, or that it is a backup.
    urls: Vec<String>,
    /// Lines of the section.
    balance: Vec<String>,
}

impl Origins {
    pub fn know(&mut self, upstream: &Directive) {
        self.upstreams.push(upstream.clone());
    }

    pub fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// The name of the origin for this `proxy_pass` in a location with this path. `None`: it cannot be one, which has been
    /// said.
    pub fn of(&mut self, pass: &Directive, path: &str, level: &ProxyLevel, findings: &mut Findings) -> Option<String> {
        let Some((authority, uri)) = target(pass.argument(0)) else {
            findings.leave(pass, "closed: an origin must be http, with a name without variables");
            return None;
        };
        if uri.is_some_and(|uri| uri != path) {
            findings.leave(pass, "closed: larder sends an origin the path that the client asked for");
            return None;
        }
        let upstream = self.upstreams.iter().find(|upstream| upstream.argument(0) == authority).cloned();
        let (served, of_origin) = match &upstream {
            Some(upstream) => (served_by(upstream, findings), authority.clone()),
            None => (Served { urls: vec![format!("http://{authority}")], ..Served::default() }, host_of(&authority)),
        };
        let is_url = |url: &String| parse_origin(url.split_once(' ').map_or(url, |(url, _)| url)).is_ok();
        if served.urls.is_empty() || !served.urls.iter().all(is_url) {
            findings.leave(pass, "closed: the upstream has no server that larder can ask");
            return None;
        }
        findings.note(pass, "what an origin lets be stored is stored; nginx stores nothing without proxy_cache");
        let host = level.host(&of_origin, findings);
        let is_said = |host: &String| Authority::parse(host.as_bytes(), Scheme::Http).is_some();
        if host.as_ref().is_some_and(|host| !is_said(host)) {
            findings.leave(pass, "this is not a valid Host: set host in [origin.NAME], or pass on the client's");
            return None;
        }
        if host.is_some() {
            findings.note(pass, "a redirect that names the origin is passed on as it is");
        }
        Some(self.named(authority, served, host))
    }

    /// One of its own for each Host, by the name that it has in nginx if that is free.
    fn named(&mut self, authority: String, served: Served, host: Option<String>) -> String {
        if let Some(known) = self.made.iter().find(|made| made.served == served && made.host == host) {
            return known.name.clone();
        }
        let names = (1..).map(|n| if n == 1 { authority.clone() } else { format!("{authority}-{n}") });
        let is_free = |name: &String| !self.made.iter().any(|made| made.name == *name);
        let name = names.into_iter().find(is_free).expect("there are more names than origins");
        self.made.push(Made { name: name.clone(), served, host });
        name
    }

    /// The sections.
    pub fn write(&self, out: &mut String) {
        for Made { name, served, host } in &self.made {
            let urls: Vec<String> = served.urls.iter().map(|url| quoted(url)).collect();
            out.push_str(&format!("\n[origin.{}]\nurls = [{}]\n", quoted(name), urls.join(", ")));
            if let Some(host) = host {
                out.push_str(&format!("host = {}\n", quoted(host)));
            }
            served.balance.iter().for_each(|line| out.push_str(&format!("{line}\n")));
        }
    }
}

/// `http://AUTHORITY[URI]`; a socket is `http://unix:/path:URI`, which is left to others.
fn target(written: &str) -> Option<(String, Option<&str>)> {
    let rest = written.strip_prefix("http://").filter(|rest| !rest.contains('$') && !rest.starts_with("unix:"))?;
    let (authority, uri) = match rest.find('/') {
        Some(at) => (&rest[..at], Some(&rest[at..])),
        None => (rest, None),
    };
    (!authority.is_empty()).then(|| (authority.to_owned(), uri))
}

/// `$proxy_host`: the usual port is left out.
fn host_of(authority: &str) -> String {
    authority.strip_suffix(":80").unwrap_or(authority).to_owned()
}

/// The servers of a group, and how they share what is asked.
fn served_by(upstream: &Directive, findings: &mut Findings) -> Served {
    let mut served = Served::default();
    for directive in upstream.children() {
        match (directive.name.as_str(), directive.argument(0)) {
            ("server", _) => served.urls.extend(url_of(directive, findings)),
            ("keepalive" | "keepalive_requests" | "keepalive_timeout" | "zone", _) => {
                findings.note(directive, "larder does so by itself");
            }
            ("least_conn", _) => served.balance = vec!["balance = \"least-conn\"".to_owned()],
            ("random", "two") => served.balance = vec!["balance = \"two-choices\"".to_owned()],
            ("ip_hash", _) => {
                findings.note(directive, "by hash of the client's whole address: other clients share a server");
                served.balance = by_hash("client");
            }
            ("hash", key) => match hash_key(key) {
                Some(key) => {
                    findings.note(directive, "by larder's own hash: other keys share a server");
                    served.balance = by_hash(&key);
                }
                None => findings.leave(directive, "no key by which larder balances; the servers take turns"),
            },
            _ => findings.leave(directive, "the servers of an origin take turns"),
        }
    }
    served
}

fn by_hash(key: &str) -> Vec<String> {
    vec!["balance = \"hash\"".to_owned(), format!("hash = {}", quoted(key))]
}

/// One variable, as larder calls what it stands for.
fn hash_key(written: &str) -> Option<String> {
    let named = |prefix: &str, kind: &str| {
        let name = written.strip_prefix(prefix)?;
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        is_name.then(|| format!("{kind}:{}", if kind == "header" { name.replace('_', "-") } else { name.to_owned() }))
    };
    match written {
        "$request_uri" => Some("url".to_owned()),
        "$remote_addr" | "$binary_remote_addr" => Some("client".to_owned()),
        _ => named("$cookie_", "cookie").or_else(|| named("$http_", "header")),
    }
}

fn url_of(server: &Directive, findings: &mut Findings) -> Option<String> {
    let address = server.argument(0);
    let mut share = String::new();
    for option in &server.arguments[1.min(server.arguments.len())..] {
        match option.split_once('=').map_or((option.as_str(), ""), |(name, value)| (name, value)) {
            ("down", _) => {
                findings.note(server, "left out: it is down");
                return None;
            }
            ("backup", _) => share.push_str(" backup"),
            ("weight", "1") => {}
            ("weight", weight) if weight.parse().is_ok_and(|weight: u32| (1..=ORIGIN_WEIGHT_MAX).contains(&weight)) => {
                share.push_str(&format!(" weight={weight}"));
            }
            ("max_fails" | "fail_timeout", _) => {
                findings.note(server, "ejection_failures and ejection_time of [origin.NAME] say this");
            }
            _ => findings.leave(server, "no option of a server of an origin"),
        }
    }
    Some(match address.strip_prefix("unix:") {
        Some(path) if Path::new(path).is_absolute() => format!("{address}{share}"),
        _ => format!("http://{address}{share}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    /// What becomes of a `proxy_pass` in a location: the sections, and how much is left.
    fn check(path: &str, pass: &str, headers: &[&str], upstream: &[&str], expect: Option<&str>, left: usize) {
        let (mut origins, mut level, mut findings) = (Origins::default(), ProxyLevel::default(), Findings::default());
        let block = upstream.iter().map(|line| directive(line)).collect();
        origins.know(&Directive { block: Some(block), ..directive("upstream app") });
        for header in headers {
            assert!(level.take(&directive(&format!("proxy_set_header {header}")), &mut findings));
        }
        let name = origins.of(&directive(&format!("proxy_pass {pass}")), path, &level, &mut findings);
        let mut text = String::new();
        origins.write(&mut text);
        assert_eq!(name.map(|_| text.trim_start()), expect, "{pass}");
        assert_eq!(findings.left_count(), left, "{pass}: {findings:?}");
    }

    #[test]
    fn an_upstream_is_an_origin() {
        let two = ["server 10.0.0.1:3000", "server unix:/run/b.sock max_fails=2", "keepalive 16"];
        let app = "[origin.\"app\"]\nurls = [\"http://10.0.0.1:3000\", \"unix:/run/b.sock\"]\n";
        check("/", "http://app", &["Host $host"], &two, Some(app), 0);
        check("/", "http://app", &[], &two, Some(&format!("{app}host = \"app\"\n")), 0);
        let direct = "[origin.\"10.0.0.9:80\"]\nurls = [\"http://10.0.0.9:80\"]\nhost = \"10.0.0.9\"\n";
        check("/", "http://10.0.0.9:80", &[], &[], Some(direct), 0);
        let direct = "[origin.\"a.test:81\"]\nurls = [\"http://a.test:81\"]\nhost = \"b.test\"\n";
        check("/", "http://a.test:81", &["Host b.test"], &[], Some(direct), 0);
    }

    #[test]
    fn servers_share_what_is_asked_as_they_do_in_nginx() {
        let check = |lines: &[&str], urls: &str, balance: &str| {
            let app = format!("[origin.\"app\"]\nurls = [{urls}]\n{balance}");
            check("/", "http://app", &["Host $host"], lines, Some(&app), 0);
            assert!(crate::config::read(&app).is_ok(), "{app}");
        };
        let weighed = ["server 10.0.0.1 weight=3", "server unix:/run/b.sock backup", "least_conn"];
        let urls = "\"http://10.0.0.1 weight=3\", \"unix:/run/b.sock backup\"";
        check(&weighed, urls, "balance = \"least-conn\"\n");
        let one = |line| ["server a", line];
        check(&one("random two least_conn"), "\"http://a\"", "balance = \"two-choices\"\n");
        for (line, key) in [
            ("ip_hash", "client"),
            ("hash $request_uri consistent", "url"),
            ("hash $cookie_sid", "cookie:sid"),
            ("hash $http_x_tenant", "header:x-tenant"),
        ] {
            check(&one(line), "\"http://a\"", &format!("balance = \"hash\"\nhash = \"{key}\"\n"));
        }
    }

    #[test]
    fn what_is_otherwise_is_left() {
        let one = ["server 10.0.0.1:3000"];
        let app = "[origin.\"app\"]\nurls = [\"http://10.0.0.1:3000\"]\n";
        // The same path there as here, or none.
        check("/api/", "http://app/api/", &["Host $host"], &one, Some(app), 0);
        check("/", "http://app/", &["Host $host"], &one, Some(app), 0);
        check("/api/", "http://app/", &["Host $host"], &one, None, 1);
        for pass in ["https://app", "http://$backend", "http://unix:/run/a.sock", "app", "http://"] {
            check("/", pass, &[], &one, None, 1);
        }
        check("/", "http://app", &["Host $host", "X-Real-IP $remote_addr"], &one, Some(app), 1);
        check("/", "http://app", &["Host $host", "X-Forwarded-For $proxy_add_x_forwarded_for"], &one, Some(app), 0);
        // Balanced otherwise.
        let others = ["server 10.0.0.1:3000 max_conns=3", "least_time header", "hash $scheme$request_uri"];
        check("/", "http://app", &["Host $host"], &others, Some(app), 3);
        check("/", "http://app", &[], &["server a down"], None, 1);
    }
}
