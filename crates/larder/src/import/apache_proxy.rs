//! `ProxyPass`, balancers and `SetHandler "proxy:…"` of Apache: who is asked, and for which path.

use std::collections::BTreeMap;

use crate::addresses::{parse_fastcgi, parse_origin};
use crate::import::apache_conf::name_of;
use crate::import::apache_paths::PathBeginning;
use crate::import::apache_words::is_harmless;
use crate::import::import_findings::quoted;
use crate::import::nginx_conf::Directive;
use crate::import::nginx_upstream::Origins;
use crate::limits::ORIGIN_WEIGHT_MAX;

/// Options of a connection, and not of what is answered.
const NEEDS_NOTHING: [&str; 20] = [
    "acquire",
    "connectiontimeout",
    "disablereuse",
    "enablereuse",
    "flushpackets",
    "flushwait",
    "iobuffersize",
    "keepalive",
    "max",
    "min",
    "nocanon",
    "ping",
    "receivebuffersize",
    "retry",
    "smax",
    "timeout",
    "ttl",
    "upgrade",
    "nofailover",
    "maxattempts",
];

/// More of them, of balancers: which member is asked.
const OF_BALANCERS: [&str; 6] =
    ["lbmethod", "stickysession", "stickysessionsep", "scolonpathdelim", "route", "redirect"];

/// What a `ProxyPass` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyWord {
    /// `!`: nobody is asked.
    Files,
    /// It cannot be said.
    Closed,
    Asks(ProxyAsked),
}

/// Who is asked, and for what in place of the path's beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyAsked {
    /// `http://HOST`, `https://HOST`, `unix:/PATH` or `balancer://NAME`.
    server: String,
    /// What the Host would be.
    host: String,
    /// The path of the URL, with no slash at its end where the URL had none.
    pub path: String,
    /// Without the word Apache answers as if nobody had asked.
    pub upgrades: Upgrades,
}

/// The protocols that are handed on where a client asks for one: `upgrade=websocket`, `upgrade=ANY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upgrades {
    All,
    Named(Vec<String>),
}

impl Upgrades {
    fn read(word: &str) -> Upgrades {
        let is = |known: &str| word.eq_ignore_ascii_case(known);
        let is_token =
            |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
        match () {
            () if is("any") || is("*") => Upgrades::All,
            () if is("none") => Upgrades::Named(Vec::new()),
            () => Upgrades::Named(word.split([',', ' ']).filter(is_token).map(str::to_owned).collect()),
        }
    }

    /// This one, too.
    pub fn add(&mut self, protocol: &str) {
        if let Upgrades::Named(names) = self
            && !names.iter().any(|name| name.eq_ignore_ascii_case(protocol))
        {
            names.push(protocol.to_owned());
        }
    }
}

/// Balancers by their names; `None`: one that cannot be said.
pub type Balancers = BTreeMap<String, Option<Vec<String>>>;

/// `URL [KEY=VALUE …]`, behind the path.
pub fn word(words: &[String]) -> ProxyWord {
    let Some((url, options)) = words.split_first() else { return ProxyWord::Closed };
    if url == "!" {
        return if options.is_empty() { ProxyWord::Files } else { ProxyWord::Closed };
    }
    let is_known = |option: &String| {
        let name = option.split('=').next().unwrap_or_default().to_ascii_lowercase();
        NEEDS_NOTHING.contains(&name.as_str()) || OF_BALANCERS.contains(&name.as_str())
    };
    if !options.iter().all(is_known) {
        return ProxyWord::Closed;
    }
    let upgrade = options
        .iter()
        .filter_map(|option| option.split_once('='))
        .rfind(|(name, _)| name.eq_ignore_ascii_case("upgrade"));
    let upgrades = Upgrades::read(upgrade.map_or("none", |(_, protocols)| protocols));
    read(url).map_or(ProxyWord::Closed, |asked| ProxyWord::Asks(ProxyAsked { upgrades, ..asked }))
}

fn read(url: &str) -> Option<ProxyAsked> {
    let (socket, url) = match url.strip_prefix("unix:") {
        Some(rest) => rest.split_once('|').map(|(socket, url)| (Some(socket), url))?,
        None => (None, url),
    };
    let (scheme, rest) = url.split_once("://")?;
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_host) || !path.is_empty() && PathBeginning::new(path).is_none() {
        return None;
    }
    let server = match (scheme.to_ascii_lowercase().as_str(), socket) {
        ("http", Some(socket)) if socket.starts_with('/') && !socket.contains('$') => format!("unix:{socket}"),
        (scheme @ ("http" | "https" | "balancer"), None) => format!("{scheme}://{host}"),
        _ => return None,
    };
    let is_url = server.starts_with("balancer:") || parse_origin(&server).is_ok();
    is_url.then(|| ProxyAsked {
        server,
        host: host.to_owned(),
        path: path.to_owned(),
        upgrades: Upgrades::Named(Vec::new()),
    })
}

impl ProxyAsked {
    /// The name of its origin. `None`: there is none.
    pub fn origin(
        &self,
        balancers: &Balancers,
        keeps_host: bool,
        verifies: bool,
        origins: &mut Origins,
    ) -> Option<String> {
        let urls = match self.server.strip_prefix("balancer://") {
            Some(name) => balancers.get(&name.to_ascii_lowercase())?.clone()?,
            None => vec![self.server.clone()],
        };
        // Apache asks each member by the name of its own.
        if urls.is_empty() || !keeps_host && urls.len() > 1 && self.server.starts_with("balancer://") {
            return None;
        }
        let first = urls[0].split(' ').next().unwrap_or_default();
        let of_first = first.split_once("://").map_or(self.host.as_str(), |(_, host)| host);
        let quoted_urls: Vec<String> = urls.iter().map(|url| quoted(url)).collect();
        let mut lines = vec![format!("urls = [{}]", quoted_urls.join(", "))];
        if !keeps_host {
            lines.push(format!("host = {}", quoted(of_first)));
        }
        if urls.iter().any(|url| url.starts_with("https:")) && !verifies {
            lines.push("tls = { verify = false }".to_owned());
        }
        Some(origins.named(&self.host, lines))
    }

    /// Where its WebSockets are, if it is asked for the path as it is.
    pub fn socket_url(&self) -> Option<String> {
        let host = self.server.strip_prefix("http://").filter(|_| self.path == "/")?;
        Some(format!("ws://{host}"))
    }

    /// What the route has beside `origin`: its pattern, with the group of what stands behind the beginning, and `rewrite`. `None`: Apache
    /// asks for a path that is put together otherwise.
    pub fn path_lines(&self, of: &PathBeginning, region: &PathBeginning) -> Option<(String, Vec<String>)> {
        let (from, to) = (of.text(), self.path.as_str());
        if from == to || from == "/" && to == "/" {
            return Some((region.regex(), Vec::new()));
        }
        let ahead = region.regex().replacen('^', "(?=", 1);
        let (behind, text) = match (from.ends_with('/'), to.ends_with('/')) {
            (true, true) => ("(.*)$", format!("{to}$1")),
            (false, false) if to.is_empty() => ("/?(.*)$", "/$1".to_owned()),
            (false, false) => ("(.*)$", format!("{to}$1")),
            _ => return None,
        };
        let from = crate::import::nginx_order::escaped(from);
        Some((format!("^{ahead}){from}{behind}"), vec![format!("rewrite = {}", quoted(&text))]))
    }
}

/// A `<Proxy …>` container. False: it says something that cannot be said here.
pub fn take_container(container: &Directive, balancers: &mut Balancers) -> bool {
    let on = container.argument(0);
    let Some(name) =
        on.to_ascii_lowercase().strip_prefix("balancer://").map(|name| name.trim_end_matches('/').to_owned())
    else {
        let is_plain = |child: &Directive| {
            let words: Vec<String> = child.arguments.iter().map(|word| word.to_ascii_lowercase()).collect();
            let grants = name_of(child) == "require" && words == ["all", "granted"];
            grants || is_harmless(child) || name_of(child) == "proxyset" && set_is_known(child)
        };
        return container.children().iter().all(is_plain);
    };
    let mut members = Vec::new();
    let mut is_sayable = container.arguments.len() == 1 && !balancers.contains_key(&name);
    for child in container.children() {
        match name_of(child).as_str() {
            "balancermember" => match member(child) {
                Some(member) => members.push(member),
                None => is_sayable = false,
            },
            "proxyset" => is_sayable &= set_is_known(child),
            _ if is_harmless(child) => {}
            _ => return false,
        }
    }
    balancers.insert(name, is_sayable.then_some(members));
    true
}

fn set_is_known(set: &Directive) -> bool {
    set.arguments.iter().all(|option| {
        let name = option.split('=').next().unwrap_or_default().to_ascii_lowercase();
        option.contains('=') && (NEEDS_NOTHING.contains(&name.as_str()) || OF_BALANCERS.contains(&name.as_str()))
    })
}

fn member(directive: &Directive) -> Option<String> {
    let (url, options) = directive.arguments.split_first()?;
    let asked = read(url)?;
    if !asked.path.is_empty() || asked.server.starts_with("balancer:") {
        return None;
    }
    let mut weight = String::new();
    for option in options {
        let (name, value) = option.split_once('=')?;
        match name.to_ascii_lowercase().as_str() {
            "loadfactor" => {
                let share: u32 = value.parse().ok().filter(|share| (1..=ORIGIN_WEIGHT_MAX).contains(share))?;
                weight = format!(" weight={share}");
            }
            "route" => {}
            known if NEEDS_NOTHING.contains(&known) => {}
            _ => return None,
        }
    }
    Some(format!("{}{weight}", asked.server))
}

/// `proxy:unix:/PATH|fcgi://HOST` or `proxy:fcgi://HOST:PORT`: the address of an application.
pub fn application(handler: &str) -> Option<String> {
    let target = handler.strip_prefix("proxy:")?;
    let address = match target.strip_prefix("unix:") {
        Some(rest) => {
            let (socket, url) = rest.split_once('|')?;
            let host = url.strip_prefix("fcgi://")?;
            (!host.contains('$')).then(|| format!("unix:{socket}"))?
        }
        None => target.strip_prefix("fcgi://")?.trim_end_matches('/').to_owned(),
    };
    parse_fastcgi(&address).is_ok().then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn asked(line: &str) -> ProxyWord {
        word(&directive(&format!("ProxyPass {line}")).arguments)
    }

    #[test]
    fn urls_are_asked_or_closed() {
        assert_eq!(asked("!"), ProxyWord::Files);
        let is_asked = |line: &str| matches!(asked(line), ProxyWord::Asks(_));
        for line in [
            "http://a:1/",
            "https://a/b retry=0 timeout=5",
            "unix:/run/a.sock|http://localhost/",
            "balancer://x/ stickysession=a",
        ] {
            assert!(is_asked(line), "{line}");
        }
        for line in [
            "http://a/b?c",
            "ajp://a/",
            "fcgi://a/",
            "ws://a/",
            "http://a/$1",
            "http://a/ status=+D",
            "http://u@a/",
            "h2://a/",
            "",
        ] {
            assert_eq!(asked(line), ProxyWord::Closed, "{line}");
        }
    }

    #[test]
    fn upgrades_are_those_that_are_named() {
        let check = |options: &str, expect: Option<&[&str]>| {
            let ProxyWord::Asks(asked) = asked(&format!("http://a/ {options}")) else { panic!("{options}") };
            let expect = expect.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            assert_eq!(asked.upgrades, expect.map_or(Upgrades::All, Upgrades::Named), "{options}");
        };
        check("retry=0", Some(&[]));
        check("upgrade=NONE", Some(&[]));
        check("upgrade=websocket", Some(&["websocket"]));
        check("Upgrade=any", None);
        check("upgrade=any upgrade=websocket", Some(&["websocket"]));
        check("upgrade=web*", Some(&[]));
    }

    #[test]
    fn paths_are_put_together_as_apache_does() {
        let check = |from: &str, url: &str, expect: Option<(&str, Option<&str>)>| {
            let ProxyWord::Asks(asked) = asked(url) else { panic!("{url}") };
            let from = PathBeginning::new(from).unwrap();
            let lines = asked.path_lines(&from, &from);
            let lines = lines.map(|(pattern, lines)| (pattern, lines.first().cloned()));
            let expect = expect.map(|(pattern, line)| (pattern.to_owned(), line.map(str::to_owned)));
            assert_eq!(lines, expect, "{from:?} {url}");
        };
        check("/", "http://a/", Some(("^/", None)));
        check("/", "http://a", None);
        check("/x", "http://a/x", Some(("^/x(?:/|$)", None)));
        check("/x/", "http://a/y/", Some(("^(?=/x/)/x/(.*)$", Some("rewrite = \"/y/$1\""))));
        check("/x", "http://a", Some(("^(?=/x(?:/|$))/x/?(.*)$", Some("rewrite = \"/$1\""))));
        check("/x", "http://a/y", Some(("^(?=/x(?:/|$))/x(.*)$", Some("rewrite = \"/y$1\""))));
        check("/x", "http://a/", None);
    }

    #[test]
    fn members_are_servers() {
        let of = |line: &str| member(&directive(line));
        assert_eq!(of("BalancerMember http://a:1 loadfactor=3 route=x").as_deref(), Some("http://a:1 weight=3"));
        assert_eq!(of("BalancerMember http://a:1/path"), None);
        assert_eq!(of("BalancerMember http://a:1 status=+H"), None);
    }

    #[test]
    fn applications_are_addresses() {
        assert_eq!(application("proxy:unix:/run/php.sock|fcgi://localhost").as_deref(), Some("unix:/run/php.sock"));
        assert_eq!(application("proxy:fcgi://127.0.0.1:9000/").as_deref(), Some("127.0.0.1:9000"));
        assert_eq!(application("application/x-httpd-php"), None);
        assert_eq!(application("proxy:http://a"), None);
    }
}
