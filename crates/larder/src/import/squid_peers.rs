//! Whom squid asks: `cache_peer`, `cache_peer_access` and `cache_peer_domain`, as origins with their routes and as parents of
//! the forward proxy. It knows no ports and no clients.

use std::collections::{BTreeMap, BTreeSet};

use proxy::settings::ParentLogin;

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::squid_access::Acl;
use crate::import::squid_words::ImportedWords;
use crate::limits::ORIGIN_WEIGHT_MAX;

/// Options without a value that change nothing here, or say by what a peer is chosen.
const PLAIN_OPTIONS: [&str; 10] = [
    "originserver",
    "no-query",
    "default",
    "no-digest",
    "no-netdb-exchange",
    "round-robin",
    "weighted-round-robin",
    "sourcehash",
    "carp",
    "userhash",
];

/// Why a rule on a parent is left.
const ALL_HOSTS: &str = "a parent is asked for all hosts, these and others: forward.always_direct names exceptions";

/// What keeps people out of the routes for these hosts. `Some(None)`: nothing; `None`: nobody is let in.
pub type SiteGuards = BTreeMap<Vec<String>, Option<Option<String>>>;

/// In the order of the file.
#[derive(Default)]
pub struct Peers(Vec<Peer>);

struct Peer {
    directive: Directive,
    name: String,
    address: String,
    is_origin: bool,
    /// No request is for it.
    is_shut: bool,
    weight: Option<u32>,
    connections_max: Option<String>,
    choice: Choice,
    hosts: Vec<String>,
    /// Where name and password for it are to be written.
    login_file: Option<String>,
}

/// How squid chooses among peers of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// Nothing is said: the first that is there.
    First,
    RoundRobin,
    /// `sourcehash`
    ByClient,
    /// `carp`
    ByUrl,
    /// `userhash`
    ByUser,
}

impl Choice {
    fn of(options: &[String]) -> Choice {
        let has = |name: &str| options.iter().any(|option| option == name);
        match () {
            () if has("userhash") => Choice::ByUser,
            () if has("sourcehash") => Choice::ByClient,
            () if has("carp") => Choice::ByUrl,
            () if has("round-robin") || has("weighted-round-robin") => Choice::RoundRobin,
            () => Choice::First,
        }
    }

    /// The lines of an origin with several servers.
    fn lines(self) -> Vec<String> {
        let balance = |how: &str| format!("balance = \"{how}\"");
        let by = |what: &str| vec![balance("hash"), format!("hash = \"{what}\"")];
        match self {
            Choice::First => vec![balance("first")],
            Choice::ByClient => by("client"),
            Choice::ByUrl => by("url"),
            Choice::RoundRobin | Choice::ByUser => Vec::new(),
        }
    }

    /// `forward.balance`.
    fn of_parents(self) -> Option<&'static str> {
        match self {
            Choice::ByUrl => Some("hash"),
            Choice::RoundRobin => Some("round-robin"),
            Choice::First | Choice::ByClient | Choice::ByUser => None,
        }
    }
}

impl Peer {
    /// Its URL, with its share beside `others`. All of one weight are alike.
    fn url(&self, others: &[&Peer]) -> String {
        let has_weights = others.iter().any(|other| other.weight != self.weight);
        let weight = self.weight.filter(|_| has_weights && self.choice != Choice::First);
        let weight = weight.map_or(String::new(), |weight| format!(" weight={weight}"));
        format!("http://{}{weight}", self.address)
    }

    /// Hosts that lead to it, and to no other origin but one of the same.
    fn has_route_hosts(&self) -> bool {
        self.is_origin && !self.is_shut && !self.hosts.is_empty()
    }
}

impl Peers {
    /// `cache_peer HOST parent PORT ICP-PORT …`.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) {
        let (host, kind, port) = (directive.argument(0), directive.argument(1), directive.argument(2));
        if kind != "parent" || port.parse::<u16>().is_err() {
            return findings.leave(directive, "larder asks parents and origins, and no neighbours");
        }
        let options = &directive.arguments[4.min(directive.arguments.len())..];
        let value = |name: &str| {
            options.iter().find_map(|option| Some(option.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
        };
        let has = |name: &str| options.iter().any(|option| option == name);
        let known = ["name", "weight", "max-conn", "login"];
        for option in options {
            let name = option.split('=').next().unwrap_or_default();
            if !known.contains(&name) && !PLAIN_OPTIONS.contains(&name) {
                findings.leave(directive, "an option that larder does not have for a peer");
                break;
            }
        }
        if !has("no-query") && directive.argument(3) != "0" {
            findings.note(directive, "nobody is asked by ICP what they have");
        }
        let name = value("name").unwrap_or_else(|| host.to_owned());
        let has_login = login_of(directive).is_some() && !has("originserver");
        match has_login {
            true => findings.leave(directive, "name and password belong into its login_file, as NAME:PASSWORD"),
            false if value("login").is_some() => {
                findings.leave(directive, "a parent is told one name and password, and an origin none");
            }
            false => {}
        }
        let weight = value("weight").map(|weight| weight.parse::<u32>().ok());
        let weight = weight.map(|weight| weight.filter(|weight| (1..=ORIGIN_WEIGHT_MAX).contains(weight)));
        if weight == Some(None) {
            findings.leave(directive, "a weight is a number from 1 to 1000");
        }
        let choice = Choice::of(options);
        match (choice, has("originserver")) {
            (Choice::ByUser, _) => findings.leave(directive, "a user's requests go to any peer, in turns"),
            (Choice::ByClient, false) => {
                findings.leave(directive, "parents take turns, or are chosen by URL: not by who asks");
            }
            (Choice::ByClient | Choice::ByUrl, true) => {
                findings.note(directive, "by larder's own hash: others share a server");
            }
            _ => {}
        }
        self.0.push(Peer {
            login_file: has_login.then(|| format!("{name}.login")),
            name,
            address: format!("{host}:{port}"),
            is_origin: has("originserver"),
            is_shut: false,
            directive: directive.clone(),
            weight: weight.flatten(),
            connections_max: value("max-conn"),
            choice,
            hosts: Vec::new(),
        });
    }

    /// `cache_peer_access PEER allow|deny ACL …`.
    pub fn access(&mut self, directive: &Directive, acls: &BTreeMap<String, Acl>, findings: &mut Findings) {
        let Some(peer) = self.0.iter_mut().find(|peer| peer.name == directive.argument(0)) else {
            return findings.leave(directive, "there is no such peer");
        };
        let has_hosts = !peer.hosts.is_empty();
        let acl = acls.get(directive.argument(2)).filter(|acl| acl.kind == "dstdomain").cloned();
        match (directive.argument(1), directive.argument(2), acl) {
            // Behind the hosts that it is asked for.
            ("deny", "all", _) if has_hosts => {}
            ("allow", "all", _) if !has_hosts => {}
            ("deny", "all", _) if peer.is_origin => {
                peer.is_shut = true;
                findings.leave(directive, "no request that could be carried over is for this origin");
            }
            ("allow", _, Some(acl)) if directive.arguments.len() == 3 => self.domain(directive, &acl.values, findings),
            _ if !peer.is_origin => findings.leave(directive, ALL_HOSTS),
            _ => findings.leave(directive, "only hosts decide which origin is asked"),
        }
    }

    /// Hosts for which a peer is asked.
    pub fn domain(&mut self, directive: &Directive, domains: &[String], findings: &mut Findings) {
        let Some(peer) = self.0.iter_mut().find(|peer| peer.name == directive.argument(0)) else {
            return findings.leave(directive, "there is no such peer");
        };
        if !peer.is_origin {
            return findings.leave(directive, ALL_HOSTS);
        }
        for domain in domains {
            match domain.strip_prefix('.') {
                Some(rest) => peer.hosts.extend([rest.to_lowercase(), format!("*.{}", rest.to_lowercase())]),
                None => peer.hosts.push(domain.to_lowercase()),
            }
        }
    }

    /// A host has one route. Of the origins that have it the first is asked, as squid does while that one is up; those of
    /// the same hosts are one origin.
    pub fn part_hosts(&mut self, findings: &mut Findings) {
        let mut taken = BTreeSet::new();
        for at in 0..self.0.len() {
            let (before, peer) = self.0.split_at_mut(at);
            let Some(peer) = peer.first_mut().filter(|peer| peer.has_route_hosts()) else { continue };
            peer.hosts.sort();
            peer.hosts.dedup();
            if before.iter().any(|other| other.has_route_hosts() && other.hosts == peer.hosts) {
                continue;
            }
            let count = peer.hosts.len();
            peer.hosts.retain(|host| taken.insert(host.clone()));
            if peer.hosts.len() < count {
                peer.is_shut = peer.hosts.is_empty();
                let why = "an origin before it has some of its hosts, and is the one that is asked for these";
                findings.leave(&peer.directive, why);
            }
        }
    }

    /// The hosts of each origin that is asked, or none for one of all hosts.
    pub fn hosts_of_origins(&self) -> impl Iterator<Item = &[String]> {
        self.0.iter().filter(|peer| peer.is_origin && !peer.is_shut).map(|peer| &peer.hosts[..])
    }

    /// Routes and origins: headings and keys. `guards`: the line that keeps people out, or that nobody is let in, by hosts; others are open.
    pub fn origins(&self, words: &ImportedWords, guards: &SiteGuards) -> Vec<(String, Vec<String>)> {
        let origins: Vec<&Peer> = self.0.iter().filter(|peer| peer.is_origin && !peer.is_shut).collect();
        let mut sections = Vec::new();
        for (at, peer) in origins.iter().enumerate() {
            // Squid asks the first that is up; who stands behind it for the same hosts waits for it to fail.
            if origins[..at].iter().any(|other| other.hosts == peer.hosts) {
                continue;
            }
            let hosts: Vec<String> = peer.hosts.iter().map(|host| quoted(host)).collect();
            let host = (!hosts.is_empty()).then(|| format!("host = [{}]", hosts.join(", ")));
            let heading = "\n[[route]]\n".to_owned();
            let Some(guard) = guards.get(&peer.hosts).cloned().unwrap_or(Some(None)) else {
                let closed = ["path = \"/\"", "closed = true"].map(str::to_owned);
                sections.push((heading, host.into_iter().chain(closed).collect()));
                continue;
            };
            for mut lines in words.routes(host, &peer.name) {
                lines.extend(guard.clone());
                sections.push((heading.clone(), lines));
            }
            let equals: Vec<&Peer> = origins.iter().copied().filter(|other| other.hosts == peer.hosts).collect();
            let urls: Vec<String> = equals.iter().map(|other| quoted(&other.url(&equals))).collect();
            let connections = peer.connections_max.as_ref().map(|max| format!("max_connections = {max}"));
            let balance = if equals.len() > 1 { peer.choice.lines() } else { Vec::new() };
            let lines =
                [format!("urls = [{}]", urls.join(", "))].into_iter().chain(balance).chain(connections).collect();
            sections.push((format!("\n[origin.{}]\n", quoted(&peer.name)), lines));
        }
        sections
    }

    /// The keys of each parent.
    pub fn parents(&self) -> impl Iterator<Item = Vec<String>> {
        self.0.iter().filter(|peer| !peer.is_origin).map(|peer| {
            let weight = peer.weight.map(|weight| format!("weight = {weight}"));
            let login = peer.login_file.as_ref().map(|file| format!("login_file = {}", quoted(file)));
            let address = format!("address = {}", quoted(&peer.address));
            [address].into_iter().chain(weight).chain(login).collect()
        })
    }

    /// How parents share the requests.
    pub fn balance(&self) -> Option<&'static str> {
        self.0.iter().filter(|peer| !peer.is_origin).find_map(|peer| peer.choice.of_parents())
    }
}

/// `login=NAME:PASSWORD`; `PASS`, `PASSTHRU` and a `*` for the client's own name are something else.
fn login_of(directive: &Directive) -> Option<ParentLogin> {
    let login = directive.arguments.iter().find_map(|word| word.strip_prefix("login="))?;
    ParentLogin::of(login).filter(|_| !login.starts_with('*'))
}
