//! `proxy_pass`, `fastcgi_pass` and `upstream` of nginx as `[origin.NAME]`: to whom a location's requests go, and which fields they
//! have.
//!
//! What larder cannot ask (names with variables) is no origin here, and its location stays shut. It knows no routes.

use std::path::Path;

use message::{Authority, Scheme};
use proxy::settings::FieldTemplate;

use crate::addresses::{parse_fastcgi, parse_origin};
use crate::config::may_be_set_in_requests;
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_fields::inline_table;
use crate::import::nginx_service::{self, ServiceWord};
use crate::limits::ORIGIN_WEIGHT_MAX;

/// What `proxy_*` directives say at one level. Header lines are inherited all together or not at all.
#[derive(Clone, Debug, Default)]
pub struct ProxyLevel {
    headers: Option<Vec<Directive>>,
    verifies: Option<bool>,
    /// An error of the origin's becomes one of nginx's own.
    intercepts: Option<bool>,
    /// After which failures another server of the group is asked.
    next: Option<Directive>,
}

/// Which other protocols an origin hears of that clients ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandedUpgrades {
    All,
    /// It is asked for this one whatever a client asks for.
    Only(String),
    None,
}

/// How proxying is done, and not what is answered.
const NEEDS_NOTHING: [&str; 18] = [
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
    "proxy_force_ranges",
    "proxy_pass_request_body",
    "proxy_pass_request_headers",
    "proxy_ssl_server_name",
    "proxy_ssl_session_reuse",
    "proxy_ssl_protocols",
];

/// Fields that larder writes by itself, or that belong to a connection.
const WRITTEN_ANYWAY: [&str; 10] = [
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "forwarded",
    "connection",
    "upgrade",
    "accept-encoding",
    "range",
    "if-range",
];

impl ProxyLevel {
    pub fn within(self, outer: &ProxyLevel) -> ProxyLevel {
        ProxyLevel {
            headers: self.headers.or_else(|| outer.headers.clone()),
            verifies: self.verifies.or(outer.verifies),
            intercepts: self.intercepts.or(outer.intercepts),
            next: self.next.or_else(|| outer.next.clone()),
        }
    }

    /// Takes a directive in that may stand at any level. False: it is another one.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) -> bool {
        match directive.name.as_str() {
            "proxy_set_header" => self.headers.get_or_insert_default().push(directive.clone()),
            "proxy_next_upstream" => self.next = Some(directive.clone()),
            "proxy_ssl_verify" => self.verifies = Some(directive.argument(0) == "on"),
            "proxy_redirect" if directive.argument(0) == "off" => findings.note(directive, "larder does so by itself"),
            "proxy_intercept_errors" => {
                self.intercepts = Some(directive.argument(0) == "on");
                match self.intercepts {
                    Some(true) => findings.leave(directive, "an origin's errors are passed on as they are"),
                    _ => findings.note(directive, "larder does so by itself"),
                }
            }
            "proxy_pass_request_body" | "proxy_pass_request_headers" if directive.argument(0) == "off" => return false,
            name if NEEDS_NOTHING.contains(&name) => findings.note(directive, "larder does so by itself"),
            _ => return false,
        }
        true
    }

    /// What is said of fields.
    pub fn headers(&self) -> impl Iterator<Item = &Directive> {
        self.headers.iter().flatten()
    }

    /// Which other protocols an origin hears of that a client asks for. Without a line of its own nginx tells it nothing of that.
    pub fn handed_upgrades(&self) -> HandedUpgrades {
        let said = self.headers().filter(|line| line.argument(0).eq_ignore_ascii_case("upgrade"));
        match said.last().map(|line| line.argument(1)) {
            Some("$http_upgrade") => HandedUpgrades::All,
            Some(protocol) if !protocol.is_empty() && !protocol.contains('$') => {
                HandedUpgrades::Only(protocol.to_owned())
            }
            _ => HandedUpgrades::None,
        }
    }

    pub fn intercepts_errors(&self) -> bool {
        self.intercepts == Some(true)
    }

    /// The line of an origin with several servers that says after what another one is asked.
    fn retry_line(&self, findings: &mut Findings) -> String {
        let usual = ["error", "timeout"].map(str::to_owned);
        let said = self.next.as_ref().map_or(&usual[..], |next| &next.arguments);
        let mut words: Vec<String> = Vec::new();
        for word in said {
            match (word.as_str(), word.strip_prefix("http_").map(str::parse::<u16>)) {
                ("error", _) => words.extend(["connect", "closed"].map(quoted)),
                ("timeout", _) => words.push(quoted("timeout")),
                ("invalid_header", _) => words.push(quoted("closed")),
                ("off", _) => words.clear(),
                (_, Some(Ok(status))) => words.push(status.to_string()),
                _ => {
                    let why = "of a request that may not be sent twice nobody else is asked";
                    self.next.iter().for_each(|next| findings.leave(next, why));
                }
            }
        }
        words.sort_unstable();
        words.dedup();
        format!("retry_on = [{}]", words.join(", "))
    }

    /// The Host that an origin gets: `None` for the client's own.
    fn host(&self, of_origin: &str) -> Option<String> {
        let mut host = Some(of_origin.to_owned());
        for line in self.headers.iter().flatten().filter(|line| line.argument(0).eq_ignore_ascii_case("host")) {
            match line.argument(1) {
                "$host" | "$http_host" | "$host:$server_port" | "$http_host:$server_port" => host = None,
                "$proxy_host" => host = Some(of_origin.to_owned()),
                value if !value.contains('$') => host = Some(value.to_owned()),
                _ => {}
            }
        }
        host
    }

    /// The lines of a route that say which fields its origin gets. `words`: variables that a service has the values of.
    pub fn route_lines(&self, words: &[ServiceWord], findings: &mut Findings) -> Vec<String> {
        let (mut set, mut removed): (Vec<(String, String)>, Vec<String>) = (Vec::new(), Vec::new());
        for line in self.headers.iter().flatten() {
            let (name, value) = (line.argument(0), line.argument(1));
            let value = nginx_service::said_by(&value.replace("$server_name", "$host"), words);
            match name.to_lowercase().as_str() {
                "host" if matches!(&*value, "$host" | "$http_host" | "$proxy_host" | "$host:$server_port") => {}
                "host" if !value.contains('$') => {}
                lower if WRITTEN_ANYWAY.contains(&lower) => findings.note(line, "larder writes this field by itself"),
                lower if !may_be_set_in_requests(lower) => findings.leave(line, "a field that larder does not write"),
                _ if set.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) => {
                    findings.leave(line, "a route says a field once");
                }
                _ if value.is_empty() => removed.push(quoted(name)),
                _ if FieldTemplate::parse(&value).is_ok_and(|value| !value.has_groups()) => {
                    set.push((name.to_owned(), value));
                }
                _ => {
                    // What nginx says there no client may say in its place.
                    removed.push(quoted(name));
                    findings
                        .leave(line, "a variable that a field of a request cannot have; nobody else says the field");
                }
            }
        }
        let mut tables = Vec::new();
        if !set.is_empty() {
            tables.push(format!("set = {}", inline_table(&set)));
        }
        if !removed.is_empty() {
            tables.push(format!("remove = [{}]", removed.join(", ")));
        }
        if tables.is_empty() { Vec::new() } else { vec![format!("request_headers = {{ {} }}", tables.join(", "))] }
    }
}

/// The origins that are being made, and the groups of servers that may become some.
#[derive(Debug, Default)]
pub struct Origins {
    upstreams: Vec<Directive>,
    made: Vec<MadeOrigin>,
}

#[derive(Debug, PartialEq, Eq)]
struct MadeOrigin {
    name: String,
    /// The keys of its section.
    lines: Vec<String>,
}

/// Who is asked, and by which rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Served {
    /// Each with its weight, or that it is a backup.
    urls: Vec<String>,
    /// Lines of the section.
    balance: Vec<String>,
}

/// An origin for a `proxy_pass`, and what becomes of the path there.
#[derive(Debug, PartialEq, Eq)]
pub struct AskedOrigin {
    pub origin: String,
    /// What stands in place of the location's own path.
    pub replaced_by: Option<String>,
}

impl Origins {
    pub fn know(&mut self, upstream: &Directive) {
        self.upstreams.push(upstream.clone());
    }

    fn upstream(&self, name: &str) -> Option<Directive> {
        self.upstreams.iter().find(|upstream| upstream.argument(0) == name).cloned()
    }

    /// The origin for this `proxy_pass`, whose variables have been put in. `None`: it cannot be one, which has been said.
    pub fn of(&mut self, pass: &Directive, level: &ProxyLevel, findings: &mut Findings) -> Option<AskedOrigin> {
        let Some(target) = ProxyTarget::read(pass.argument(0)) else {
            findings.leave(pass, "closed: an origin must be http or https, with a name without variables");
            return None;
        };
        let ProxyTarget { is_tls, authority, uri } = target;
        let scheme = if is_tls { "https" } else { "http" };
        let (served, of_origin) = match self.upstream(&authority) {
            Some(upstream) => (served_by(&upstream, scheme, findings), authority.clone()),
            None if authority.starts_with("unix:") => {
                (Served { urls: vec![authority.clone()], ..Served::default() }, "localhost".to_owned())
            }
            None => {
                (Served { urls: vec![format!("{scheme}://{authority}")], ..Served::default() }, host_of(&authority))
            }
        };
        let is_url = |url: &String| parse_origin(url.split_once(' ').map_or(url, |(url, _)| url)).is_ok();
        if served.urls.is_empty() || !served.urls.iter().all(is_url) {
            findings.leave(pass, "closed: the upstream has no server that larder can ask");
            return None;
        }
        findings.note(pass, "what an origin lets be stored is stored; nginx stores nothing without proxy_cache");
        let host = level.host(&of_origin);
        let is_said = |host: &String| Authority::parse(host.as_bytes(), Scheme::Http).is_some();
        if host.as_ref().is_some_and(|host| !is_said(host)) {
            findings.leave(pass, "closed: this is no valid Host: set host in [origin.NAME], or pass on the client's");
            return None;
        }
        if host.is_some() {
            findings.note(pass, "a redirect that names the origin is passed on as it is");
        }
        let urls: Vec<String> = served.urls.iter().map(|url| quoted(url)).collect();
        let mut lines = vec![format!("urls = [{}]", urls.join(", "))];
        lines.extend(host.map(|host| format!("host = {}", quoted(&host))));
        if is_tls && level.verifies != Some(true) {
            lines.push("tls = { verify = false }".to_owned());
            findings.note(pass, "as with nginx nobody looks at its certificate: take out verify = false if it has one");
        }
        lines.extend((served.urls.len() > 1).then(|| level.retry_line(findings)));
        lines.extend(served.balance);
        Some(AskedOrigin { origin: self.named(authority.trim_start_matches("unix:"), lines), replaced_by: uri })
    }

    /// The application behind a `fastcgi_pass`, with these keys besides. `None`: it cannot be asked, which has been said.
    pub fn of_application(&mut self, pass: &Directive, keys: Vec<String>, findings: &mut Findings) -> Option<String> {
        let target = pass.argument(0);
        let servers: Vec<String> = match self.upstream(target) {
            Some(upstream) => {
                let servers = upstream.children().iter().filter(|child| child.name == "server");
                servers.map(|server| server.argument(0).to_owned()).collect()
            }
            None => vec![target.to_owned()],
        };
        if servers.is_empty() || servers.iter().any(|server| parse_fastcgi(server).is_err()) {
            findings.leave(pass, "closed: an application is unix:/PATH or HOST:PORT");
            return None;
        }
        let servers: Vec<String> = servers.iter().map(|server| quoted(server)).collect();
        let mut lines = vec![format!("fastcgi = [{}]", servers.join(", "))];
        lines.extend(keys);
        let name = if self.upstream(target).is_some() { target } else { "php" };
        Some(self.named(name, lines))
    }

    /// One of its own for all that is said of it, by the name that it has in nginx if that is free.
    pub fn named(&mut self, wanted: &str, lines: Vec<String>) -> String {
        if let Some(known) = self.made.iter().find(|made| made.lines == lines) {
            return known.name.clone();
        }
        let names = (1..).map(|n| if n == 1 { wanted.to_owned() } else { format!("{wanted}-{n}") });
        let is_free = |name: &String| !self.made.iter().any(|made| made.name == *name);
        let name = names.into_iter().find(is_free).expect("there are more names than origins");
        self.made.push(MadeOrigin { name: name.clone(), lines });
        name
    }

    /// The sections.
    pub fn write(&self, out: &mut String) {
        for MadeOrigin { name, lines } in &self.made {
            out.push_str(&format!("\n[origin.{}]\n{}\n", quoted(name), lines.join("\n")));
        }
    }
}

/// What stands behind `proxy_pass`.
struct ProxyTarget {
    is_tls: bool,
    /// Or `unix:/path`.
    authority: String,
    uri: Option<String>,
}

impl ProxyTarget {
    /// `http://AUTHORITY[URI]`; a socket is `http://unix:/path[:URI]`.
    fn read(written: &str) -> Option<ProxyTarget> {
        let (is_tls, rest) = match written.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, written.strip_prefix("http://")?),
        };
        // Where a variable says what is asked for, it is what the client asked for.
        let rest = rest.strip_suffix("$request_uri").unwrap_or(rest);
        if rest.contains('$') {
            return None;
        }
        let (authority, uri) = match rest.strip_prefix("unix:") {
            Some(socket) => {
                let (path, uri) = socket.split_once(':').map_or((socket, None), |(path, uri)| (path, Some(uri)));
                (format!("unix:{path}"), uri)
            }
            None => match rest.find('/') {
                Some(at) => (rest[..at].to_owned(), Some(&rest[at..])),
                None => (rest.to_owned(), None),
            },
        };
        let uri = uri.map(str::to_owned).filter(|uri| !uri.is_empty());
        (!authority.is_empty()).then_some(ProxyTarget { is_tls, authority, uri })
    }
}

/// `$proxy_host`: the usual port is left out.
fn host_of(authority: &str) -> String {
    authority.strip_suffix(":80").or(authority.strip_suffix(":443")).unwrap_or(authority).to_owned()
}

/// The servers of a group, and how they share what is asked.
fn served_by(upstream: &Directive, scheme: &str, findings: &mut Findings) -> Served {
    let mut served = Served::default();
    for directive in upstream.children() {
        match (directive.name.as_str(), directive.argument(0)) {
            ("server", _) => served.urls.extend(url_of(directive, scheme, findings)),
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

fn url_of(server: &Directive, scheme: &str, findings: &mut Findings) -> Option<String> {
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
            ("resolve", _) => findings.note(server, "larder asks for names anew by itself"),
            ("max_fails" | "fail_timeout", _) => {
                findings.note(server, "ejection_failures and ejection_time of [origin.NAME] say this");
            }
            _ => findings.leave(server, "no option of a server of an origin"),
        }
    }
    Some(match address.strip_prefix("unix:") {
        Some(path) if Path::new(path).is_absolute() => format!("{address}{share}"),
        _ => format!("{scheme}://{address}{share}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    /// What becomes of a `proxy_pass` in a location: the sections, and how much is left.
    fn check(pass: &str, headers: &[&str], upstream: &[&str], expect: Option<&str>, left: usize) {
        let (mut origins, mut level, mut findings) = (Origins::default(), ProxyLevel::default(), Findings::default());
        let block = upstream.iter().map(|line| directive(line)).collect();
        origins.know(&Directive { block: Some(block), ..directive("upstream app") });
        for header in headers {
            assert!(level.take(&directive(&format!("proxy_set_header {header}")), &mut findings));
        }
        let asked = origins.of(&directive(&format!("proxy_pass {pass}")), &level, &mut findings);
        level.route_lines(&[], &mut findings);
        let mut text = String::new();
        origins.write(&mut text);
        assert_eq!(asked.map(|_| text.trim_start()), expect, "{pass}");
        assert_eq!(findings.left_count(), left, "{pass}: {findings:?}");
    }

    /// When nginx asks another server unless somebody says otherwise.
    const AS_NGINX: &str = "retry_on = [\"closed\", \"connect\", \"timeout\"]\n";

    #[test]
    fn another_server_is_asked_when_nginx_asks_one() {
        for (said, expect, left) in [
            ("off", "retry_on = []", 0),
            ("error http_502 http_503", "retry_on = [\"closed\", \"connect\", 502, 503]", 0),
            ("timeout invalid_header", "retry_on = [\"closed\", \"timeout\"]", 0),
            ("error non_idempotent", "retry_on = [\"closed\", \"connect\"]", 1),
        ] {
            let (mut level, mut findings) = (ProxyLevel::default(), Findings::default());
            assert!(level.take(&directive(&format!("proxy_next_upstream {said}")), &mut findings));
            assert_eq!(ProxyLevel::default().within(&level).retry_line(&mut findings), expect, "{said}");
            assert_eq!(findings.left_count(), left, "{said}");
            let origin = format!("[origin.a]\nurls = [\"http://a\", \"http://b\"]\n{expect}\n[[route]]\n");
            assert!(crate::config::read(&origin).is_ok(), "{origin}");
        }
        assert_eq!(format!("{}\n", ProxyLevel::default().retry_line(&mut Findings::default())), AS_NGINX);
    }

    #[test]
    fn an_upstream_is_an_origin() {
        let two = ["server 10.0.0.1:3000", "server unix:/run/b.sock max_fails=2", "keepalive 16"];
        let app = "[origin.\"app\"]\nurls = [\"http://10.0.0.1:3000\", \"unix:/run/b.sock\"]\n";
        check("http://app", &["Host $host"], &two, Some(&format!("{app}{AS_NGINX}")), 0);
        check("http://app", &[], &two, Some(&format!("{app}host = \"app\"\n{AS_NGINX}")), 0);
        let direct = "[origin.\"10.0.0.9:80\"]\nurls = [\"http://10.0.0.9:80\"]\nhost = \"10.0.0.9\"\n";
        check("http://10.0.0.9:80", &[], &[], Some(direct), 0);
        let direct = "[origin.\"a.test:81\"]\nurls = [\"http://a.test:81\"]\nhost = \"b.test\"\n";
        check("http://a.test:81", &["Host b.test"], &[], Some(direct), 0);
    }

    #[test]
    fn servers_share_what_is_asked_as_they_do_in_nginx() {
        let check = |lines: &[&str], urls: &str, balance: &str| {
            let app = format!("[origin.\"app\"]\nurls = [{urls}]\n{balance}");
            check("http://app", &["Host $host"], lines, Some(&app), 0);
            assert!(crate::config::read(&app).is_ok(), "{app}");
        };
        let weighed = ["server 10.0.0.1 weight=3", "server unix:/run/b.sock backup", "least_conn"];
        let urls = "\"http://10.0.0.1 weight=3\", \"unix:/run/b.sock backup\"";
        check(&weighed, urls, &format!("{AS_NGINX}balance = \"least-conn\"\n"));
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
    fn sockets_tls_and_other_paths_are_asked() {
        let asked = |pass: &str| {
            let mut origins = Origins::default();
            let asked = origins.of(&directive(pass), &ProxyLevel::default(), &mut Findings::default());
            let mut text = String::new();
            origins.write(&mut text);
            assert!(crate::config::read(&format!("{text}[[route]]\nrespond = \"\"\n")).is_ok(), "{text}");
            (asked.and_then(|asked| asked.replaced_by), text.trim_start().to_owned())
        };
        let socket = "[origin.\"/run/a.sock\"]\nurls = [\"unix:/run/a.sock\"]\nhost = \"localhost\"\n";
        assert_eq!(asked("proxy_pass http://unix:/run/a.sock"), (None, socket.to_owned()));
        assert_eq!(asked("proxy_pass http://unix:/run/a.sock:/x/"), (Some("/x/".to_owned()), socket.to_owned()));
        let tls = "[origin.\"a.test\"]\nurls = [\"https://a.test\"]\nhost = \"a.test\"\ntls = { verify = false }\n";
        assert_eq!(asked("proxy_pass https://a.test/other/"), (Some("/other/".to_owned()), tls.to_owned()));
        let as_asked = "proxy_pass https://a.test$request_uri";
        assert_eq!(asked(as_asked), (None, tls.to_owned()));
    }

    /// nginx takes the last line of a name, and that of the level around where there is none of any name.
    #[test]
    fn an_upgrade_is_handed_on_where_a_line_says_so() {
        let level = |lines: &[&str]| {
            let mut level = ProxyLevel::default();
            for line in lines {
                let mut line = directive(&format!("proxy_set_header {line}"));
                line.arguments.iter_mut().for_each(|word| *word = word.replace('"', ""));
                assert!(level.take(&line, &mut Findings::default()));
            }
            level
        };
        let around = level(&["UPGRADE $http_upgrade"]);
        assert_eq!(around.handed_upgrades(), HandedUpgrades::All);
        assert_eq!(level(&[]).within(&around).handed_upgrades(), HandedUpgrades::All);
        assert_eq!(level(&["Host $host"]).within(&around).handed_upgrades(), HandedUpgrades::None);
        for none in [&["Upgrade \"\""][..], &["Upgrade $of_a_map"], &[]] {
            assert_eq!(level(none).handed_upgrades(), HandedUpgrades::None, "{none:?}");
        }
        assert_eq!(level(&["Upgrade websocket"]).handed_upgrades(), HandedUpgrades::Only("websocket".to_owned()));
    }

    #[test]
    fn fields_of_requests_are_words_of_the_route() {
        let (mut level, mut findings) = (ProxyLevel::default(), Findings::default());
        for line in ["X-Tenant a", "X-Host $http_host", "Cookie \"\"", "X-Forwarded-Proto https", "Host $host"] {
            let mut line = directive(&format!("proxy_set_header {line}"));
            line.arguments.iter_mut().for_each(|word| *word = word.replace('"', ""));
            assert!(level.take(&line, &mut findings));
        }
        let line =
            "request_headers = { set = { \"X-Tenant\" = \"a\", \"X-Host\" = \"$http_host\" }, remove = [\"Cookie\"] }";
        assert_eq!(level.route_lines(&[], &mut findings), [line]);
        assert_eq!(findings.left_count(), 0);
    }

    /// Who reads such a field believes nginx, and would believe a client.
    #[test]
    fn a_clients_address_goes_on_as_nginx_says_it() {
        let (mut level, mut findings) = (ProxyLevel::default(), Findings::default());
        assert!(level.take(&directive("proxy_set_header X-Real-IP $remote_addr"), &mut findings));
        let set = "request_headers = { set = { \"X-Real-IP\" = \"$remote_addr\" } }";
        assert_eq!(level.route_lines(&[], &mut findings), [set]);
        assert_eq!(findings.left_count(), 0);
        assert!(crate::config::read(&format!("[origin.a]\nurls = \"http://a\"\n[[route]]\n{set}\n")).is_ok());
    }

    #[test]
    fn a_field_that_cannot_be_said_is_said_by_no_client() {
        let (mut level, mut findings) = (ProxyLevel::default(), Findings::default());
        assert!(level.take(&directive("proxy_set_header X-Client $ssl_client_s_dn"), &mut findings));
        assert_eq!(level.route_lines(&[], &mut findings), ["request_headers = { remove = [\"X-Client\"] }"]);
        assert_eq!(findings.left_count(), 1);
    }

    #[test]
    fn applications_are_asked_over_fastcgi() {
        let (mut origins, mut findings) = (Origins::default(), Findings::default());
        origins.know(&Directive { block: Some(vec![directive("server app:9000")]), ..directive("upstream fpm") });
        let mut of = |pass: &str, keys: &[&str]| {
            let keys = keys.iter().map(|&key| key.to_owned()).collect();
            origins.of_application(&directive(pass), keys, &mut findings)
        };
        assert_eq!(of("fastcgi_pass fpm", &[]).as_deref(), Some("fpm"));
        assert_eq!(of("fastcgi_pass unix:/run/php.sock", &[]).as_deref(), Some("php"));
        assert_eq!(of("fastcgi_pass unix:/run/php.sock", &["index = \"a.php\""]).as_deref(), Some("php-2"));
        assert_eq!(of("fastcgi_pass $app", &[]), None);
        let mut text = String::new();
        origins.write(&mut text);
        assert!(text.starts_with("\n[origin.\"fpm\"]\nfastcgi = [\"app:9000\"]\n"), "{text}");
    }

    #[test]
    fn what_is_otherwise_is_left() {
        let one = ["server 10.0.0.1:3000"];
        let app = "[origin.\"app\"]\nurls = [\"http://10.0.0.1:3000\"]\n";
        for pass in ["http://$backend", "app", "http://", "ftp://app"] {
            check(pass, &[], &one, None, 1);
        }
        check("http://app", &["Host $host", "X-Real-IP $remote_addr"], &one, Some(app), 0);
        check("http://app", &["Host $host", "X-User $geoip_city"], &one, Some(app), 1);
        check("http://app", &["Host $host", "X-Forwarded-For $proxy_add_x_forwarded_for"], &one, Some(app), 0);
        // Balanced otherwise.
        let others = ["server 10.0.0.1:3000 max_conns=3", "least_time header", "hash $scheme$request_uri"];
        check("http://app", &["Host $host"], &others, Some(app), 3);
        check("http://app", &[], &["server a down"], None, 1);
    }
}
