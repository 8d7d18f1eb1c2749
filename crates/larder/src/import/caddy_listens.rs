//! Where the sites of a Caddyfile listen, and by which certificates, as `[[listen]]`. Routes know no listeners: sites that listen elsewhere
//! than the first one are none of the same. What Caddy would order by itself is written down as comments: nothing is ordered unasked.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;

/// What `tls` of a site says of how it is spoken: larder's own choice is as good.
const OF_TLS: [&str; 8] = [
    "protocols",
    "ciphers",
    "curves",
    "alpn",
    "key_type",
    "reuse_private_keys",
    "renewal_window_ratio",
    "insecure_secrets_log",
];

/// Global options about listeners and certificates.
#[derive(Clone, Debug)]
pub struct PortOptions {
    pub http: u16,
    pub https: u16,
    pub redirects: bool,
    /// Where sites are bound that do not say it.
    pub binds: Vec<String>,
    /// Lines of `[acme]`.
    pub authority: Vec<String>,
}

impl Default for PortOptions {
    fn default() -> PortOptions {
        PortOptions { http: 80, https: 443, redirects: true, binds: Vec::new(), authority: Vec::new() }
    }
}

/// An address of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SiteAddress {
    is_tls: bool,
    /// `None`: all.
    host: Option<String>,
    port: u16,
}

/// What one site says of where it is.
#[derive(Clone, Debug, Default)]
pub struct SiteListens {
    addresses: Vec<SiteAddress>,
    binds: Vec<String>,
    certificate: Option<(PathBuf, PathBuf)>,
    only_newest: bool,
    /// Its certificate is none that an authority would give.
    is_internal: bool,
    /// Clients have to show certificates.
    pub asks_clients: bool,
    /// Hosts of addresses that cannot be read, which may be `*.NAME` for more than it; `None`: nobody knows which.
    unreadable: Vec<Option<String>>,
}

impl SiteListens {
    pub fn of(
        head: &Directive,
        directives: &[Directive],
        options: &PortOptions,
        folder: &Path,
        findings: &mut Findings,
    ) -> SiteListens {
        let mut listens = SiteListens::default();
        for directive in directives {
            match directive.name.as_str() {
                "bind" => listens.binds.extend(directive.arguments.iter().cloned()),
                "tls" => listens.take_tls(directive, folder, findings),
                _ => {}
            }
        }
        let has_tls = directives.iter().any(|directive| directive.name == "tls");
        for written in [&head.name].into_iter().chain(&head.arguments) {
            match address(written, has_tls, options) {
                Some(address) => listens.addresses.push(address),
                None => listens.unreadable.push(host_of(written)),
            }
        }
        if listens.binds.is_empty() {
            listens.binds.clone_from(&options.binds);
        }
        listens
    }

    fn take_tls(&mut self, tls: &Directive, folder: &Path, findings: &mut Findings) {
        match &tls.arguments[..] {
            [one] if one == "internal" => {
                self.is_internal = true;
                findings.leave(tls, "larder has no authority of its own: name a certificate in tls of [[listen]]");
            }
            [certificate, key] => {
                let (certificate, key) = (folder.join(certificate), folder.join(key));
                match File::open(&certificate).is_ok() && File::open(&key).is_ok() {
                    true => self.certificate = Some((certificate, key)),
                    false => findings.leave(tls, "the files are not here: write tls = { cert, key } of [[listen]]"),
                }
                self.is_internal = true;
            }
            [] => {}
            [email] if email.contains('@') => findings.note(tls, "email of [acme] says it"),
            _ => findings.leave(tls, "larder has no such source of certificates"),
        }
        for line in tls.children() {
            match line.name.as_str() {
                "client_auth" => {
                    self.asks_clients = true;
                    findings.leave(
                        line,
                        "closed: client_ca of tls of a [[listen]] asks clients for certificates, of all its routes",
                    );
                }
                "protocols" if line.argument(0) == "tls1.3" => self.only_newest = true,
                name if OF_TLS.contains(&name) => findings.note(line, "larder does so by itself, or has no need of it"),
                _ => findings.leave(line, "larder has no such source of certificates, or orders none so"),
            }
        }
    }

    /// Hosts, or none where it is for all.
    pub fn hosts(&self) -> Vec<String> {
        match self.addresses.iter().any(|address| address.host.is_none()) {
            true => Vec::new(),
            false => {
                let hosts: BTreeSet<String> =
                    self.addresses.iter().filter_map(|address| address.host.clone()).collect();
                hosts.into_iter().collect()
            }
        }
    }

    /// Those for which nobody is answered where the site is not carried over: `None` stands for all.
    pub fn shut_hosts(&self) -> Vec<Option<String>> {
        self.unreadable.iter().cloned().chain(self.addresses.iter().map(|address| address.host.clone())).collect()
    }

    pub fn is_unreadable(&self) -> bool {
        !self.unreadable.is_empty()
    }

    pub fn is_secure(&self) -> bool {
        self.addresses.iter().any(|address| address.is_tls)
    }

    /// Where it is: all addresses of a port are one place, and so are the two ports of the web, where the one leads to the other.
    fn places(&self, options: &PortOptions) -> BTreeSet<String> {
        let of = |address: &SiteAddress| {
            let port = place_of(address, options);
            self.at().iter().map(|at| format!("{at}:{port}")).collect::<Vec<_>>()
        };
        self.addresses.iter().flat_map(of).collect()
    }

    /// Is one of its hosts at one place, and another at another?
    fn is_divided(&self, options: &PortOptions) -> bool {
        let places = |host: &Option<String>| -> BTreeSet<String> {
            let its = self.addresses.iter().filter(|address| address.host == *host);
            its.map(|address| place_of(address, options)).collect()
        };
        let all: BTreeSet<_> = self.addresses.iter().map(|address| places(&address.host)).collect();
        all.len() > 1
    }

    /// Is all of it served by TLS, or all in the clear?
    pub fn protocol(&self) -> Option<bool> {
        let first = self.addresses.first()?.is_tls;
        self.addresses.iter().all(|address| address.is_tls == first).then_some(first)
    }

    /// What stands before the port.
    fn at(&self) -> Vec<String> {
        let all = |bind: &String| match bind.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) if !address.is_unspecified() => format!("[{address}]"),
            Ok(address) if !address.is_unspecified() => address.to_string(),
            _ => "*".to_owned(),
        };
        if self.binds.is_empty() { vec!["*".to_owned()] } else { self.binds.iter().map(all).collect() }
    }

    fn is_bound_by_name(&self) -> bool {
        self.binds.iter().any(|bind| bind.parse::<IpAddr>().is_err())
    }
}

/// `[SCHEME://][HOST][:PORT]`. `None`: it is something else.
fn address(written: &str, has_tls: bool, options: &PortOptions) -> Option<SiteAddress> {
    let (scheme, rest) = match written.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => (Some(scheme), rest),
        Some(_) => return None,
        None => (None, written),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port.parse::<u16>().ok()?)),
        _ => (rest, None),
    };
    let is_host = |host: &str| {
        let name = host.strip_prefix("*.").unwrap_or(host);
        let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._[]:".contains(&b));
        is_name && !name.is_empty() && !name.ends_with('.')
    };
    let host = match host {
        "" | "*" => None,
        host if is_host(host) => Some(host.to_lowercase()),
        _ => return None,
    };
    let is_tls = match (scheme, port) {
        (Some(scheme), _) => scheme == "https",
        (None, Some(port)) if port == options.http => false,
        (None, Some(port)) if port == options.https => true,
        (None, port) => has_tls || host.is_some() || port.is_none() && host.is_some(),
    };
    let port = port.unwrap_or(if is_tls { options.https } else { options.http });
    Some(SiteAddress { is_tls, host, port })
}

fn place_of(address: &SiteAddress, options: &PortOptions) -> String {
    let is_web = address.port == if address.is_tls { options.https } else { options.http };
    match (is_web && options.redirects, address.is_tls) {
        (true, _) => "web".to_owned(),
        (false, true) => format!("{} by TLS", address.port),
        (false, false) => address.port.to_string(),
    }
}

/// The host of an address that cannot be read, as far as it can.
fn host_of(written: &str) -> Option<String> {
    let rest = written.split_once("://").map_or(written, |(_, rest)| rest);
    let host = rest.split(['/', '?']).next()?.to_lowercase();
    let host = host.rsplit_once(':').map_or(host.clone(), |(host, _)| host.to_owned());
    let host = host.strip_suffix('.').map_or(host.clone(), str::to_owned);
    let host = match host.rsplit_once("*.") {
        Some((_, name)) => format!("*.{name}"),
        None => host,
    };
    let name = host.strip_prefix("*.").unwrap_or(&host);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_name)).then_some(host)
}

/// May an authority be asked to say that a name is ours?
fn is_public(host: &str) -> bool {
    let is_local = ["localhost", "local", "internal", "test", "home.arpa"]
        .iter()
        .any(|end| host == *end || host.ends_with(&format!(".{end}")));
    host.contains('.')
        && !is_local
        && host.trim_matches(['[', ']']).parse::<IpAddr>().is_err()
        && !host.starts_with('*')
}

/// The listeners of a configuration.
#[derive(Debug, Default)]
pub struct CaddyListens {
    first: Option<BTreeSet<String>>,
    plain: BTreeSet<String>,
    secure: BTreeSet<String>,
    certificates: Vec<(PathBuf, PathBuf)>,
    only_newest: bool,
    /// Names for which Caddy would order a certificate, by site.
    ordered: Vec<Vec<String>>,
    redirecting: BTreeSet<String>,
}

impl CaddyListens {
    /// Would a site that is not carried over be asked where larder listens?
    pub fn meet(&self, site: &SiteListens, options: &PortOptions) -> bool {
        let port = |place: &String| place.rsplit(':').next().unwrap_or_default().to_owned();
        let Some(first) = &self.first else { return true };
        let ports: BTreeSet<String> = first.iter().map(port).collect();
        let is_everywhere = first.iter().any(|place| place.starts_with("*:"));
        let places = site.places(options);
        site.is_unreadable()
            || places.iter().any(|place| ports.contains(&port(place)) && (is_everywhere || first.contains(place)))
            || site.is_bound_by_name()
    }

    /// Does a site listen where the first one does?
    pub fn take(
        &mut self,
        head: &Directive,
        site: &SiteListens,
        options: &PortOptions,
        findings: &mut Findings,
    ) -> bool {
        if site.is_bound_by_name() {
            findings.leave(head, "not carried over: it is bound to what is no IP address");
            return false;
        }
        if site.is_divided(options) {
            findings.leave(head, "not carried over: its hosts are at different ports, and routes know no listeners");
            return false;
        }
        let places = site.places(options);
        match &self.first {
            None => self.first = Some(places),
            Some(first) if *first != places => {
                findings.leave(
                    head,
                    "not carried over: it listens elsewhere than the first site, and routes know no listeners",
                );
                return false;
            }
            Some(_) => {}
        }
        for address in &site.addresses {
            for at in site.at() {
                let to = if address.is_tls { &mut self.secure } else { &mut self.plain };
                to.insert(format!("{at}:{}", address.port));
                if address.is_tls && address.port == options.https && options.redirects {
                    self.redirecting.insert(format!("{at}:{}", options.http));
                }
            }
        }
        if site.is_secure() {
            self.only_newest |= site.only_newest;
            findings.speak_tls();
            self.take_certificate(head, site, findings);
        }
        true
    }

    fn take_certificate(&mut self, head: &Directive, site: &SiteListens, findings: &mut Findings) {
        if let Some(pair) = &site.certificate {
            if !self.certificates.contains(pair) {
                self.certificates.push(pair.clone());
            }
            return;
        }
        if site.is_internal {
            return;
        }
        let names: Vec<String> = site.hosts().into_iter().filter(|host| is_public(host)).collect();
        match names.is_empty() {
            true => findings.leave(head, "it has no certificate here: nobody listens for it by TLS until you name one"),
            false => {
                self.ordered.push(names);
                let why =
                    "its certificate is not ordered unasked: agree to the terms in [acme], as the end of the file says";
                findings.leave(head, why);
            }
        }
    }

    /// Is all that is asked in the clear led to TLS?
    pub fn leads_to_tls(&self) -> bool {
        !self.redirecting.is_empty()
    }

    /// The sections, and comments with those that somebody has to agree to.
    pub fn sections(&self, options: &PortOptions) -> (Vec<String>, Vec<String>) {
        let mut sections = Vec::new();
        let is_led = |address: &String| self.redirecting.contains(address);
        for address in self.redirecting.iter().chain(self.plain.iter().filter(|address| !is_led(address))) {
            let mode = if is_led(address) { "\nmode = \"redirect\"" } else { "" };
            sections.push(format!("address = {}{mode}", quoted(address)));
        }
        let version = if self.only_newest { ", min_version = \"1.3\"" } else { "" };
        if self.certificates.is_empty() {
            return (sections, self.comments(options, version));
        }
        let list = |of: &dyn Fn(&(PathBuf, PathBuf)) -> String| {
            self.certificates.iter().map(|pair| quoted(&of(pair))).collect::<Vec<_>>().join(", ")
        };
        let (files, keys) = (list(&|pair| pair.0.display().to_string()), list(&|pair| pair.1.display().to_string()));
        for address in &self.secure {
            let tls = format!("tls = {{ cert = [{files}], key = [{keys}]{version} }}");
            sections.push(format!("address = {}\n{tls}", quoted(address)));
        }
        (sections, Vec::new())
    }

    fn comments(&self, options: &PortOptions, version: &str) -> Vec<String> {
        if self.secure.is_empty() {
            return Vec::new();
        }
        let names: Vec<String> = self
            .ordered
            .iter()
            .map(|names| format!("[{}]", names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")))
            .collect();
        let says = "# Nobody listens by TLS yet. Take the signs off, where";
        let mut lines = vec![match names.is_empty() {
            true => format!("{says} there are a certificate and its key."),
            false => format!("{says} you have read the authority's terms and agree to them."),
        }];
        for address in &self.secure {
            let tls = match names.is_empty() {
                true => "cert = \"/etc/larder/site.pem\", key = \"/etc/larder/site.key\"".to_owned(),
                false => format!("acme = [{}]", names.join(", ")),
            };
            lines.extend([
                "#[[listen]]".to_owned(),
                format!("#address = {}", quoted(address)),
                format!("#tls = {{ {tls}{version} }}"),
            ]);
        }
        if !names.is_empty() {
            lines.extend(["#".to_owned(), "#[acme]".to_owned(), "#terms_agreed = true".to_owned()]);
            lines.extend(options.authority.iter().map(|line| format!("#{line}")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn site(head: &str, directives: &[&str]) -> (Directive, SiteListens) {
        let directives: Vec<Directive> = directives.iter().map(|line| directive(line)).collect();
        let head = directive(head);
        let listens =
            SiteListens::of(&head, &directives, &PortOptions::default(), Path::new("/none"), &mut Findings::default());
        (head, listens)
    }

    #[test]
    fn addresses_say_where_and_whether_by_tls() {
        let check = |written: &str, expect: Option<(bool, Option<&str>, u16)>| {
            let found = address(written, false, &PortOptions::default());
            let found = found.map(|address| (address.is_tls, address.host, address.port));
            assert_eq!(found, expect.map(|(tls, host, port)| (tls, host.map(str::to_owned), port)), "{written}");
        };
        check("a.test", Some((true, Some("a.test"), 443)));
        check("http://A.test", Some((false, Some("a.test"), 80)));
        check(":80", Some((false, None, 80)));
        check(":8080", Some((false, None, 8080)));
        check(":443", Some((true, None, 443)));
        check("a.test:8443", Some((true, Some("a.test"), 8443)));
        check("http://a.test:8080", Some((false, Some("a.test"), 8080)));
        check("*.a.test", Some((true, Some("*.a.test"), 443)));
        check("http://", Some((false, None, 80)));
        for (written, expect) in [
            ("http://A.test:80/secret*", Some("a.test")),
            ("*.*.a.test", Some("*.a.test")),
            ("a.*.b.test:8080", Some("*.b.test")),
            ("http://a.test.:80", Some("a.test")),
            ("{$NAME}", None),
            (":80/secret", None),
            ("{$NAME}.a.test", None),
        ] {
            assert_eq!(host_of(written), expect.map(str::to_owned), "{written}");
        }
        for none in ["{$NAME}", "a.test/path", "ftp://a", "a:b", "*.*.test", "http://a.test."] {
            check(none, None);
        }
    }

    /// The sections and the comments of these sites.
    fn sections(sites: &[(&str, &[&str])]) -> (Vec<String>, String, usize) {
        let (mut listens, mut findings, options) =
            (CaddyListens::default(), Findings::default(), PortOptions::default());
        for (head, directives) in sites {
            let (head, site) = site(head, directives);
            listens.take(&head, &site, &options, &mut findings);
        }
        let (sections, comments) = listens.sections(&options);
        (sections, comments.join("\n"), findings.left_count())
    }

    #[test]
    fn nothing_is_ordered_unasked() {
        let (made, comments, left) = sections(&[("a.example.org www.example.org", &[])]);
        assert_eq!(made, ["address = \"*:80\"\nmode = \"redirect\""]);
        let expect = "#[[listen]]\n#address = \"*:443\"\n#tls = { acme = [[\"a.example.org\", \"www.example.org\"]] }\n#\n#[acme]\n#terms_agreed = true";
        assert!(comments.ends_with(expect), "{comments}");
        assert_eq!(left, 1);
        let uncommented: String = comments.lines().skip(1).map(|line| format!("{}\n", &line[1..])).collect();
        assert!(crate::config::read(&format!("{uncommented}[[route]]\nrespond = \"\"\n")).is_ok(), "{uncommented}");
        let (_, comments, left) = sections(&[("localhost", &[])]);
        assert!(comments.contains("#tls = { cert = ") && left == 1, "{comments}");
    }

    #[test]
    fn sites_elsewhere_are_none_of_the_same() {
        let (made, _, left) = sections(&[(":8080", &[]), (":9090", &[]), ("http://a.test:8080", &[])]);
        assert_eq!((made, left), (vec!["address = \"*:8080\"".to_owned()], 1));
        let (made, _, left) = sections(&[(":8080", &["bind 127.0.0.1"]), (":8080", &[])]);
        assert_eq!((made, left), (vec!["address = \"127.0.0.1:8080\"".to_owned()], 1));
        let (made, _, _) = sections(&[("http://a.test", &[]), ("b.example.org", &[])]);
        assert_eq!(made, ["address = \"*:80\"\nmode = \"redirect\""]);
        let (made, _, left) = sections(&[("http://a.test:8080 http://b.test:8081", &[])]);
        assert_eq!((made.len(), left), (0, 1));
        let (made, _, left) = sections(&[("https://a.test:8443", &[]), ("http://b.test", &[])]);
        assert_eq!((made.len(), left), (0, 2), "one is not what the other is");
    }

    #[test]
    fn what_is_not_carried_over_is_met_where_larder_listens() {
        let options = PortOptions::default();
        let check = |first: (&str, &[&str]), other: (&str, &[&str]), expect: bool| {
            let mut listens = CaddyListens::default();
            let (head, first) = site(first.0, first.1);
            listens.take(&head, &first, &options, &mut Findings::default());
            assert_eq!(listens.meet(&site(other.0, other.1).1, &options), expect, "{other:?}");
        };
        check((":80", &[]), (":9090", &[]), false);
        check((":80", &[]), (":80", &["bind 127.0.0.1"]), true);
        check((":80", &["bind 127.0.0.1"]), (":80", &[]), false);
        check((":80", &[]), ("http://a.test:80/x", &[]), true);
    }
}
