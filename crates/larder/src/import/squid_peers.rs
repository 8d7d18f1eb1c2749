//! Whom squid asks: `cache_peer`, `cache_peer_access` and `cache_peer_domain`, as origins with their routes and as parents of
//! the forward proxy. It knows no ports and no clients.

use std::collections::{BTreeMap, BTreeSet};

use proxy::settings::ParentLogin;

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::squid_access::Acl;

/// Why a rule on a parent is left.
const ALL_HOSTS: &str = "a parent is asked for all hosts, these and others: forward.always_direct names exceptions";

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
    weight: Option<String>,
    connections_max: Option<String>,
    balance: Option<&'static str>,
    hosts: Vec<String>,
    /// Where name and password for it are to be written.
    login_file: Option<String>,
}

impl Peer {
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
        let harmless = ["originserver", "no-query", "default", "no-digest", "no-netdb-exchange", "round-robin"];
        let by_hash = has("sourcehash") || has("carp") || has("userhash");
        for option in options {
            let name = option.split('=').next().unwrap_or_default();
            if !known.contains(&name)
                && !harmless.contains(&name)
                && !matches!(name, "sourcehash" | "carp" | "userhash")
            {
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
        if has("originserver") && value("weight").is_some_and(|weight| weight != "1") {
            findings.leave(directive, "every server of an origin gets as many requests as the others");
        }
        self.0.push(Peer {
            login_file: has_login.then(|| format!("{name}.login")),
            name,
            address: format!("{host}:{port}"),
            is_origin: has("originserver"),
            is_shut: false,
            directive: directive.clone(),
            weight: value("weight"),
            connections_max: value("max-conn"),
            balance: if by_hash {
                Some("hash")
            } else if has("round-robin") {
                Some("round-robin")
            } else {
                None
            },
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

    /// Routes and origins: headings and keys.
    pub fn origins(&self) -> Vec<(String, Vec<String>)> {
        let origins: Vec<&Peer> = self.0.iter().filter(|peer| peer.is_origin && !peer.is_shut).collect();
        let mut sections = Vec::new();
        for (at, peer) in origins.iter().enumerate() {
            // Squid asks the first that is up; who stands behind it for the same hosts waits for it to fail.
            if origins[..at].iter().any(|other| other.hosts == peer.hosts) {
                continue;
            }
            let hosts: Vec<String> = peer.hosts.iter().map(|host| quoted(host)).collect();
            let host = (!hosts.is_empty()).then(|| format!("host = [{}]", hosts.join(", ")));
            let lines = host.into_iter().chain([format!("origin = {}", quoted(&peer.name))]).collect();
            sections.push(("\n[[route]]\n".to_owned(), lines));
            let equals = origins.iter().filter(|other| other.hosts == peer.hosts);
            let urls: Vec<String> = equals.map(|other| quoted(&format!("http://{}", other.address))).collect();
            let connections = peer.connections_max.as_ref().map(|max| format!("max_connections = {max}"));
            let lines = [format!("urls = [{}]", urls.join(", "))].into_iter().chain(connections).collect();
            sections.push((format!("\n[origin.{}]\n", quoted(&peer.name)), lines));
        }
        sections
    }

    /// The keys of each parent.
    pub fn parents(&self) -> impl Iterator<Item = Vec<String>> {
        self.0.iter().filter(|peer| !peer.is_origin).map(|peer| {
            let weight = peer.weight.as_ref().map(|weight| format!("weight = {weight}"));
            let login = peer.login_file.as_ref().map(|file| format!("login_file = {}", quoted(file)));
            let address = format!("address = {}", quoted(&peer.address));
            [address].into_iter().chain(weight).chain(login).collect()
        })
    }

    /// How parents share the requests.
    pub fn balance(&self) -> Option<&'static str> {
        self.0.iter().filter(|peer| !peer.is_origin).find_map(|peer| peer.balance)
    }
}

/// `login=NAME:PASSWORD`; `PASS`, `PASSTHRU` and a `*` for the client's own name are something else.
fn login_of(directive: &Directive) -> Option<ParentLogin> {
    let login = directive.arguments.iter().find_map(|word| word.strip_prefix("login="))?;
    ParentLogin::of(login).filter(|_| !login.starts_with('*'))
}
