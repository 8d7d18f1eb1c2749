//! The table of requests that a configuration is asked: for every server, at each of its ports and names, all probe files, and for
//! every location a path within and paths just outside, in several spellings, with other methods, and with a login.

use std::collections::BTreeSet;

use crate::import_corpus::made_to_run::PublishedServer;
use crate::import_corpus::probe_files;

/// ann:secret
pub const LOGIN: &str = "Basic YW5uOnNlY3JldA==";
const OTHER_METHODS: [&str; 4] = ["HEAD", "POST", "OPTIONS", "DELETE"];
/// What a client may ask an origin for in place of HTTP.
const UPGRADES: [&str; 3] = ["websocket", "h2c", "TLS/1.0"];
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
/// What sites refuse, in one name.
const ROBOT: &str =
    "AhrefsBot SemrushBot MJ12bot Baiduspider GPTBot bot Scrapy python-requests curl/8.0 Wget sqlmap nikto HTTrack";
/// No server has more that are worth asking.
const LOCATIONS_MAX: usize = 60;
const SERVERS_MAX: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probe {
    /// Where it is asked, as the configuration has it.
    pub listen: String,
    pub host: String,
    pub method: &'static str,
    pub path: String,
    pub has_login: bool,
    pub upgrade: Option<&'static str>,
    /// Its field `User-Agent`.
    pub agent: Option<&'static str>,
    /// Its field `X-Key`, by which some are let in.
    pub key: Option<&'static str>,
}

pub fn probes(servers: &[PublishedServer]) -> Vec<Probe> {
    let mut found = BTreeSet::new();
    // What a server shows at one port is asked for at all others, too.
    let everywhere: BTreeSet<&String> = servers.iter().flat_map(|server| &server.listens).collect();
    for server in servers.iter().take(SERVERS_MAX) {
        let host = server.hosts.first().map_or("elsewhere.test", String::as_str);
        let main = server.listens.iter().rfind(|listen| listen.ends_with(":443")).or(server.listens.last());
        let Some(main) = main else { continue };
        let probe = |listen: &str, method, path: &str, has_login| Probe {
            listen: listen.to_owned(),
            host: host.to_owned(),
            method,
            path: path.to_owned(),
            has_login,
            upgrade: None,
            agent: Some(BROWSER),
            key: None,
        };
        found.extend(probe_files::paths().iter().map(|path| probe(main, "GET", path, false)));
        for sample in server.locations.iter().take(LOCATIONS_MAX).filter_map(|words| sample(words)) {
            found.extend(around(&sample).iter().map(|path| probe(main, "GET", path, false)));
            found.extend(OTHER_METHODS.map(|method| probe(main, method, &sample, false)));
            found.insert(probe(main, "GET", &sample, true));
            let get = || probe(main, "GET", &sample, false);
            found.extend(UPGRADES.map(|upgrade| Probe { upgrade: Some(upgrade), ..get() }));
            found.extend([Some(ROBOT), None].map(|agent| Probe { agent, ..get() }));
            found.extend(["k", "other"].map(|key| Probe { key: Some(key), ..get() }));
        }
        for listen in &everywhere {
            for other in server.hosts.iter().map(String::as_str).chain(["elsewhere.test"]) {
                let plain = ["/", "/a.html", "/index.php", "/.git/config", "/none"];
                let at = |path: &str| Probe { host: other.to_owned(), ..probe(listen, "GET", path, false) };
                found.extend(plain.map(at));
            }
        }
    }
    found.into_iter().collect()
}

impl Probe {
    pub fn said(&self) -> String {
        let login = if self.has_login { " with a login" } else { "" };
        let upgrade = self.upgrade.map(|protocol| format!(" for {protocol}")).unwrap_or_default();
        let agent = match self.agent {
            Some(BROWSER) => "",
            Some(_) => " by a robot",
            None => " by nobody",
        };
        let key = self.key.map(|key| format!(" with X-Key {key}")).unwrap_or_default();
        format!("{} {}{} at {}{login}{upgrade}{agent}{key}", self.method, self.host, self.path, self.listen)
    }

    /// The same of paths that are beside it and lead to nothing: whoever is asked for those is asked for whatever a client says. Where a
    /// directory takes no such method, the script that would be its index.
    pub fn beside(&self, status: u16) -> Vec<Probe> {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut paths = vec![format!("{folder}/nothing-is-here")];
        if !self.is_plainly_spelled() {
            paths.push("/nothing-is-here".to_owned());
        }
        if self.names_a_directory() {
            paths.push("/nothing-is-here/".to_owned());
            paths.extend((status == 405).then(|| format!("{folder}/index.php")));
        }
        paths.into_iter().map(|path| Probe { path, ..self.clone() }).collect()
    }

    /// The lines of its fields, but for `Host`, `Connection` and those that a run adds.
    pub fn field_lines(&self) -> String {
        let login = self.has_login.then_some(("Authorization", LOGIN));
        let length = (self.method == "POST").then_some(("Content-Length", "0"));
        let upgrade = self.upgrade.map(|protocol| ("Upgrade", protocol));
        let said =
            [login, length, upgrade, self.agent.map(|agent| ("User-Agent", agent)), self.key.map(|key| ("X-Key", key))];
        said.into_iter().flatten().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
    }

    /// Does it say by itself that it is a directory's?
    pub fn names_a_directory(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        ["/", "/.", "/.."].iter().any(|end| path.ends_with(end))
    }

    /// Has it a segment that ends in dots? Where its beginning is taken off, it is `.` or `..` at the origin.
    pub fn may_become_dots(&self) -> bool {
        let path = self.path.split('?').next().unwrap_or_default();
        path.split('/').any(|segment| segment.ends_with('.'))
    }

    /// Is the path written as nginx itself would write it?
    pub fn is_plainly_spelled(&self) -> bool {
        let has_turns = ["%", "//", "/./", "/../"].iter().any(|other| self.path.contains(other));
        !has_turns && !["/.", "/.."].iter().any(|end| self.path.ends_with(end))
    }
}

/// Within it, beside it, and files that lie there.
fn around(sample: &str) -> Vec<String> {
    let plain = sample.trim_end_matches('/');
    let mut found =
        vec![sample.to_owned(), plain.to_owned(), format!("{plain}/"), format!("{plain}x"), format!("{plain}/x")];
    found.extend(["a.txt", "a.php", ".env", "a.sql", "sub/a.html"].map(|name| format!("{plain}/{name}")));
    found.extend(probe_files::spellings(plain.trim_start_matches('/')));
    found.retain(|path| path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()));
    found
}

/// A path that a location is for. `None`: it has no paths.
pub fn sample(words: &[String]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [name] if name.starts_with('@') => None,
        ["~" | "~*", regex] => Some(sample_of(regex)),
        [_, path] | [path] if path.starts_with('/') => Some(path.to_owned()),
        [attached] => Some(sample_of(attached.trim_start_matches(['~', '*', '^', '=']))),
        _ => None,
    }
}

/// A text that a regex matches, of those that are written for paths; at worst one that is near to it.
fn sample_of(regex: &str) -> String {
    let mut chars = regex.trim_start_matches("(?i)").chars().peekable();
    let text = alternatives(&mut chars);
    if text.starts_with('/') { text } else { format!("/x{text}") }
}

/// The first of several.
fn alternatives(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let (mut out, mut is_past) = (String::new(), false);
    while let Some(c) = chars.next() {
        let piece = match c {
            ')' => break,
            '|' => {
                is_past = true;
                continue;
            }
            '(' => {
                let is_look = chars.next_if_eq(&'?').is_some() && chars.peek() != Some(&':');
                let is_negative = is_look && chars.clone().take(2).any(|c| c == '!');
                while is_look && chars.next_if(|c| !matches!(c, '!' | '=' | '>')).is_some() {}
                chars.next_if(|c| matches!(c, ':' | '!' | '=' | '>'));
                let inside = alternatives(chars);
                if is_negative { String::new() } else { inside }
            }
            '[' => {
                let class: String = chars.by_ref().take_while(|c| *c != ']').collect();
                let first = class.chars().find(|c| c.is_ascii_alphanumeric());
                if class.starts_with('^') { "q".to_owned() } else { first.unwrap_or('-').to_string() }
            }
            '\\' => match chars.next() {
                Some('d') => "1".to_owned(),
                Some('w') => "w".to_owned(),
                Some('s' | 'b') | None => String::new(),
                Some(other) => other.to_string(),
            },
            '.' => "z".to_owned(),
            '^' | '$' | '*' | '+' | '?' => String::new(),
            '{' => {
                chars.by_ref().take_while(|c| *c != '}').for_each(drop);
                String::new()
            }
            c => c.to_string(),
        };
        if !is_past {
            out.push_str(&piece);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &str, expect: Option<&str>) {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(sample(&words).as_deref(), expect, "{words:?}");
    }

    #[test]
    fn locations_have_paths() {
        check("/api/", Some("/api/"));
        check("= /x", Some("/x"));
        check("@app", None);
        check(r"~ \.php$", Some("/x.php"));
        check(r"~* \.(?:css|js)$", Some("/x.css"));
        check(r"~ ^/(?:build|tests)(?:$|/)", Some("/build"));
        check(r"~ ^/(?!well)(a|b)/[0-9]+/(.*)$", Some("/a/0/z"));
        check(r"~ /\.(?!well-known)", Some("/."));
        check(r"~/x", Some("/x"));
    }

    #[test]
    fn every_server_is_asked_at_each_of_its_names() {
        let server = PublishedServer {
            hosts: vec!["a.test".to_owned()],
            listens: vec!["*:443".to_owned(), "*:80".to_owned()],
            locations: vec![vec!["/api/".to_owned()]],
        };
        let found = probes(&[server]);
        let has = |listen: &str, host: &str, method: &str, path: &str, has_login: bool| {
            found.iter().any(|probe| {
                (&*probe.listen, &*probe.host, probe.method, &*probe.path, probe.has_login)
                    == (listen, host, method, path, has_login)
            })
        };
        assert!(has("*:443", "a.test", "GET", "/apix", false) && has("*:443", "a.test", "GET", "/%61pi", false));
        assert!(has("*:443", "a.test", "POST", "/api/", false) && has("*:443", "a.test", "GET", "/api/", true));
        assert!(has("*:80", "elsewhere.test", "GET", "/.git/config", false));
        let asks = |upgrade| found.iter().any(|probe| probe.upgrade == Some(upgrade) && probe.path == "/api/");
        assert!(asks("websocket") && asks("h2c"));
        let said: Vec<String> = found.iter().map(Probe::said).collect();
        for who in ["", " by a robot", " by nobody", " with X-Key k"] {
            assert!(said.contains(&format!("GET a.test/api/ at *:443{who}")), "{who}");
        }
        assert_eq!(said.iter().collect::<BTreeSet<_>>().len(), said.len(), "each row has a name of its own");
    }
}
