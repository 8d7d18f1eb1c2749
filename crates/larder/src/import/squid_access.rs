//! Who may use a forward proxy, and where it leads: squid's `http_access`, rule by rule, as `[forward]` says it. Squid's
//! rules are a program; what is usual of them has a key in larder, and the rest is left.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use proxy::settings::ForwardSettings;

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;

/// What a name of squid's stands for; lines of one name add up.
#[derive(Clone, Debug, Default)]
pub struct Acl {
    pub kind: String,
    pub values: Vec<String>,
}

impl Acl {
    /// For squid's own pages. Files of older versions say it by the scheme that these pages had.
    pub fn is_manager(&self) -> bool {
        self.kind == "manager" || self.kind == "proto" && self.values == ["cache_object"]
    }
}

/// The names that squid defines itself.
pub fn built_in() -> BTreeMap<String, Acl> {
    let acl = |kind: &str, values: &[&str]| Acl {
        kind: kind.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    [
        ("all", acl("src", &["all"])),
        ("localhost", acl("src", &["127.0.0.0/8", "::1"])),
        ("manager", acl("manager", &[])),
        ("to_localhost", acl("to_self", &[])),
        ("to_linklocal", acl("to_self", &[])),
        ("CONNECT", acl("method", &["CONNECT"])),
    ]
    .into_iter()
    .map(|(name, acl)| (name.to_owned(), acl))
    .collect()
}

/// The lines of `[forward]`. Users count only where their file was carried over: who may come with a password must not
/// come without one.
pub fn access(
    rules: &[&Directive],
    acls: &BTreeMap<String, Acl>,
    has_users: bool,
    findings: &mut Findings,
) -> Vec<String> {
    let mut made = Rules { has_users, ..Rules::default() };
    for rule in rules {
        made.take(rule, acls, findings);
    }
    // Squid does the opposite of its last rule where none fits.
    if let Some(last) = rules.last().filter(|last| !made.ended && last.argument(0) == "deny") {
        if !made.closed {
            findings.note(last, "no rule is for the rest: whoever is not denied may come");
            made.clients = EVERYBODY.map(str::to_owned).to_vec();
            made.admitting.get_or_insert(last);
        } else if !made.is_last_left {
            findings
                .leave(last, "no rule is for the rest, which squid lets in: with rules that are left out nobody is");
        }
    }
    if let (None, false, Some(rule)) = (&made.connect_ports, made.clients.is_empty(), made.admitting) {
        findings
            .leave(rule, "a tunnel (CONNECT) leads to port 443 alone: no rule names other ports; connect_ports does");
    }
    let list = |values: &[String]| values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ");
    // Nobody has to be said as well: without this line it would be this machine.
    made.lines.insert(0, format!("allow_clients = [{}]", list(&made.clients)));
    // Of a tunnel squid asks all that it asks of others: it leads where both rules let it.
    let tunnels = match (made.connect_ports.take(), &made.ports) {
        (Some(tunnels), Some(ports)) => Some(both(&tunnels, ports)),
        (None, Some(ports)) => {
            let own = ForwardSettings::default().connect_ports;
            Some(both(&own, ports)).filter(|left| *left != own)
        }
        (tunnels, None) => tunnels,
    };
    for (key, ports) in [("ports", &made.ports), ("connect_ports", &tunnels)] {
        made.lines.extend(ports.as_ref().map(|ports| format!("{key} = [{}]", written(ports))));
    }
    if !made.denied.is_empty() {
        made.lines.push(format!("deny_destinations = [{}]", list(&made.denied)));
    }
    made.lines
}

/// Are these conditions about requests by other methods alone, each of which is one of `others`?
pub fn is_of_other_methods(names: &[String], acls: &BTreeMap<String, Acl>, others: &[&str]) -> bool {
    let is_it = |acl: &Acl| {
        let are_others = acl.values.iter().all(|value| others.contains(&value.as_str()));
        acl.kind == "method" && !acl.values.is_empty() && are_others
    };
    names.iter().filter_map(|name| acls.get(name)).any(is_it)
}

/// Is a rule plainly about something else than who may have something purged: other methods, ports, squid's own pages?
fn spares_purges(rule: &Directive, acls: &BTreeMap<String, Acl>) -> bool {
    rule.arguments.iter().skip(1).any(|written| {
        let (is_not, name) = written.strip_prefix('!').map_or((false, written.as_str()), |name| (true, name));
        acls.get(name).is_some_and(|acl| match acl.kind.as_str() {
            "method" => !is_not && !acl.values.iter().any(|method| method.eq_ignore_ascii_case("PURGE")),
            "port" => true,
            "to_self" => !is_not,
            _ => !is_not && acl.is_manager(),
        })
    })
}

/// Who may have something purged: those networks to which a rule allows PURGE. Squid refuses it to everybody else, this machine among them.
pub fn purge_from(rules: &[&Directive], acls: &BTreeMap<String, Acl>) -> Vec<String> {
    let mut purgers = Vec::new();
    for rule in rules {
        if rule.argument(0) == "deny" {
            if spares_purges(rule, acls) {
                continue;
            }
            // What a later rule allows is less than it says.
            break;
        }
        let conditions: Option<Vec<&Acl>> = rule.arguments.iter().skip(1).map(|name| acls.get(name)).collect();
        let sources = match conditions.as_deref() {
            Some([method, source] | [source, method])
                if method.kind == "method" && method.values == ["PURGE"] && source.kind == "src" =>
            {
                source
            }
            _ => continue,
        };
        purgers.extend(networks(&sources.values).unwrap_or_default());
    }
    purgers
}

const EVERYBODY: [&str; 2] = ["0.0.0.0/0", "::/0"];
/// As squid writes that.
const ALL: [&str; 3] = ["all", "0.0.0.0/0.0.0.0", "0.0.0.0/0"];

pub fn is_everybody(values: &[String]) -> bool {
    values.iter().any(|value| ALL.contains(&value.as_str()))
}

/// In their order, none of them twice.
type Ports = Vec<RangeInclusive<u16>>;

#[derive(Default)]
struct Rules<'a> {
    /// The first rule that lets somebody in.
    admitting: Option<&'a Directive>,
    has_users: bool,
    clients: Vec<String>,
    denied: Vec<String>,
    ports: Option<Ports>,
    connect_ports: Option<Ports>,
    lines: Vec<String>,
    /// A rule for all has come: nobody gets to the next.
    ended: bool,
    /// Something is denied that could not be carried over: what is allowed behind it would be more than squid allows.
    closed: bool,
    /// The rule that was taken last is listed.
    is_last_left: bool,
}

impl<'a> Rules<'a> {
    fn take(&mut self, rule: &'a Directive, acls: &BTreeMap<String, Acl>, findings: &mut Findings) {
        self.is_last_left = false;
        if self.ended {
            return findings.note(rule, "behind a rule for everybody nothing is reached");
        }
        let missing = Acl::default();
        let conditions: Vec<(bool, &Acl)> = rule.arguments[1.min(rule.arguments.len())..]
            .iter()
            .map(|name| match name.strip_prefix('!') {
                Some(name) => (true, acls.get(name).unwrap_or(&missing)),
                None => (false, acls.get(name.as_str()).unwrap_or(&missing)),
            })
            .collect();
        let kinds: Vec<(bool, &str)> = conditions.iter().map(|(not, acl)| (*not, acl.kind.as_str())).collect();
        let values = |at: usize| conditions[at].1.values.as_slice();
        // The file has users and no groups of them: a rule for some of them would be one for all.
        let is_all_users = |at: usize| self.has_users && values(at) == ["REQUIRED"];
        let allows = rule.argument(0) == "allow";
        if allows && self.closed {
            self.is_last_left = true;
            return findings.leave(rule, "a rule before it denies what [forward] has no key for: it admits nobody");
        }
        let carried = match (allows, kinds.as_slice()) {
            _ if conditions.iter().any(|(not, acl)| !not && acl.is_manager()) => {
                findings.note(rule, "squid's own pages: larder's are at the admin address");
                true
            }
            (false, [(false, "to_self")]) => {
                findings.note(rule, "so it is by itself");
                true
            }
            (false, [(true, "port")]) => narrow(&mut self.ports, values(0)),
            (false, [(false, "method"), (true, "port")]) if values(0).iter().all(|method| method == "CONNECT") => {
                narrow(&mut self.connect_ports, values(1))
            }
            (false, [(false, "src")]) if is_everybody(values(0)) => {
                self.ended = true;
                true
            }
            // A value with a slash is the name of a file that has them.
            (false, [(false, "dstdomain")]) if !values(0).iter().any(|name| name.contains('/')) => {
                self.denied.extend(values(0).iter().cloned());
                true
            }
            (false, [(false, "dst")]) => networks(values(0)).map(|all| self.denied.extend(all)).is_some(),
            // The file of users asks everybody.
            (false, [(true, "proxy_auth")]) => is_all_users(0),
            // From wherever they come.
            (true, [(false, "proxy_auth")]) if is_all_users(0) => self.admit(&["all".to_owned()]),
            (true, [(false, "src"), (false, "proxy_auth")]) if is_all_users(1) => self.admit(values(0)),
            (true, [(false, "proxy_auth"), (false, "src")]) if is_all_users(0) => self.admit(values(1)),
            (true, [(false, "src")]) => {
                self.ended = is_everybody(values(0));
                self.admit(values(0))
            }
            _ => false,
        };
        if !carried {
            self.is_last_left = true;
            self.closed |= !allows;
            return findings.leave(rule, "a rule that [forward] has no key for");
        }
        let is_let_in = !self.clients.is_empty();
        if allows && is_let_in {
            self.admitting.get_or_insert(rule);
        }
        // Ports and destinations are closed for everybody, in whatever order that is said.
        let closes = kinds.iter().any(|(_, kind)| matches!(*kind, "port" | "dstdomain" | "dst"));
        if !allows && is_let_in && closes {
            findings.leave(rule, "who is let in before this goes to what it closes; here nobody does");
        }
    }

    /// False: one of them is no network, and none is admitted.
    fn admit(&mut self, sources: &[String]) -> bool {
        let Some(networks) = networks(sources) else { return false };
        for network in networks {
            if !self.clients.contains(&network) {
                self.clients.push(network);
            }
        }
        true
    }
}

/// Only these, of those that are let by already. False: one of them is no port, and nothing is changed.
fn narrow(ports: &mut Option<Ports>, values: &[String]) -> bool {
    let Some(mut read) = values.iter().map(|value| port_range(value)).collect::<Option<Ports>>() else { return false };
    read.sort_by_key(|range| *range.start());
    let mut only: Ports = Vec::new();
    for range in read {
        match only.last_mut() {
            Some(last) if range.start() <= last.end() => *last = *last.start()..=*last.end().max(range.end()),
            _ => only.push(range),
        }
    }
    *ports = Some(match ports.take() {
        Some(known) => both(&known, &only),
        None => only,
    });
    true
}

/// What both have.
fn both(one: &[RangeInclusive<u16>], other: &[RangeInclusive<u16>]) -> Ports {
    let (mut at, mut of_other, mut found) = (0, 0, Vec::new());
    while let (Some(here), Some(there)) = (one.get(at), other.get(of_other)) {
        let (first, last) = (*here.start().max(there.start()), *here.end().min(there.end()));
        if first <= last {
            found.push(first..=last);
        }
        match here.end() <= there.end() {
            true => at += 1,
            false => of_other += 1,
        }
    }
    found
}

/// `80`, `1025-65535`.
fn port_range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.parse::<u16>().ok().filter(|&port| port > 0);
    let (first, last) = (port(first)?, port(last)?);
    (first <= last).then_some(first..=last)
}

/// As values of a key.
fn written(ports: &[RangeInclusive<u16>]) -> String {
    let one = |range: &RangeInclusive<u16>| match (range.start(), range.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => quoted(&format!("{first}-{last}")),
    };
    ports.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `None`: one of them is none.
pub fn networks(values: &[String]) -> Option<Vec<String>> {
    Some(values.iter().map(|value| network(value)).collect::<Option<Vec<_>>>()?.concat())
}

/// A source of squid's as networks: `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, an address, `all`.
fn network(text: &str) -> Option<Vec<String>> {
    if ALL.contains(&text) {
        return Some(EVERYBODY.map(str::to_owned).to_vec());
    }
    let (address, mask) = text.split_once('/').unwrap_or((text, ""));
    let is_address = address.parse::<std::net::IpAddr>().is_ok();
    let bits = match mask.parse::<std::net::Ipv4Addr>() {
        Ok(mask) if mask.to_bits().leading_ones() == mask.to_bits().count_ones() => Some(mask.to_bits().count_ones()),
        Ok(_) => return None,
        Err(_) if mask.is_empty() => None,
        Err(_) => Some(mask.parse().ok().filter(|&bits: &u32| bits <= 128)?),
    };
    is_address.then(|| vec![bits.map_or_else(|| address.to_owned(), |bits| format!("{address}/{bits}"))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::Place;

    #[test]
    fn sources_are_networks() {
        let check = |text: &str, expect: Option<&[&str]>| {
            let expect = expect.map(|all| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
            assert_eq!(network(text), expect, "{text}");
        };
        check("10.0.0.0/8", Some(&["10.0.0.0/8"]));
        check("10.0.0.0/255.255.0.0", Some(&["10.0.0.0/16"]));
        check("0.0.0.0/0.0.0.0", Some(&EVERYBODY));
        check("fc00::/7", Some(&["fc00::/7"]));
        check("192.0.2.7", Some(&["192.0.2.7"]));
        check("10.0.0.0/255.0.255.0", None);
        check("10.0.0.1-10.0.0.9", None);
        check("host.example", None);
    }

    fn check(has_users: bool, rules: &[&str], expect: &[&str], left_count: usize) {
        let mut acls = built_in();
        for (name, kind, values) in [
            ("ours", "src", "10.0.0.0/8"),
            ("users", "proxy_auth", "REQUIRED"),
            ("admins", "proxy_auth", "ann bob"),
            ("Safe", "port", "80 1025-65535"),
            ("SSL", "port", "443 563 8443"),
            ("low", "port", "80"),
            ("odd", "port", "x"),
            ("bad", "dstdomain", ".bad.test"),
            ("listed", "dstdomain", "/etc/squid/bad.txt"),
            ("far", "dst", "192.0.2.0/255.255.255.0"),
            ("browser", "browser", "x"),
        ] {
            let values = values.split(' ').map(str::to_owned).collect();
            acls.insert(name.to_owned(), Acl { kind: kind.to_owned(), values });
        }
        let rule = |text: &&str| Directive {
            name: "http_access".to_owned(),
            arguments: text.split(' ').map(str::to_owned).collect(),
            block: None,
            place: Place { file: "s".into(), line: 1 },
        };
        let directives: Vec<Directive> = rules.iter().map(rule).collect();
        let mut findings = Findings::default();
        let lines = access(&directives.iter().collect::<Vec<_>>(), &acls, has_users, &mut findings);
        assert_eq!(
            (lines, findings.left_count()),
            (expect.iter().map(|s| (*s).to_owned()).collect(), left_count),
            "{rules:?}"
        );
    }

    #[test]
    fn usual_rules_have_keys() {
        check(
            false,
            &[
                "deny !Safe",
                "deny CONNECT !Safe",
                "deny manager",
                "deny bad",
                "deny far",
                "allow ours",
                "deny all",
                "allow all",
            ],
            &[
                "allow_clients = [\"10.0.0.0/8\"]",
                "ports = [80, \"1025-65535\"]",
                "connect_ports = [80, \"1025-65535\"]",
                "deny_destinations = [\".bad.test\", \"192.0.2.0/24\"]",
            ],
            0,
        );
        check(
            false,
            &["deny bad"],
            &["allow_clients = [\"0.0.0.0/0\", \"::/0\"]", "deny_destinations = [\".bad.test\"]"],
            1,
        );
        // No rule says to which ports a tunnel may lead: larder has 443 then, and that is said.
        let all = "allow_clients = [\"0.0.0.0/0\", \"::/0\"]";
        check(true, &["deny !users", "allow all"], &[all], 1);
        check(true, &["allow users", "deny all"], &[all], 1);
        check(true, &["allow ours users", "deny all"], &["allow_clients = [\"10.0.0.0/8\"]"], 1);
        let tunnels = "connect_ports = [443, 563, 8443]";
        check(true, &["deny CONNECT !SSL", "allow users", "deny all"], &[all, tunnels], 0);
    }

    /// Squid asks of a tunnel's port what it asks of every other.
    #[test]
    fn a_rule_on_ports_is_one_on_tunnels_too() {
        let nobody = "allow_clients = []";
        let (safe, end) = ("ports = [80, \"1025-65535\"]", "deny all");
        check(false, &["deny !Safe", "deny CONNECT !SSL", end], &[nobody, safe, "connect_ports = [8443]"], 0);
        check(false, &["deny CONNECT !SSL", "deny !Safe", end], &[nobody, safe, "connect_ports = [8443]"], 0);
        check(false, &["deny CONNECT !SSL", end], &[nobody, "connect_ports = [443, 563, 8443]"], 0);
        // 443, which is what larder has without a word, is not among them.
        check(false, &["deny !low", end], &[nobody, "ports = [80]", "connect_ports = []"], 0);
        check(false, &["deny !SSL", end], &[nobody, "ports = [443, 563, 8443]"], 0);
        check(
            false,
            &["deny !Safe", "deny !low", "deny CONNECT !low", end],
            &[nobody, "ports = [80]", "connect_ports = [80]"],
            0,
        );
    }

    /// Ports and destinations are closed for everybody: that is said where their rule stands behind one that lets somebody in.
    #[test]
    fn what_is_closed_behind_those_who_are_let_in_is_closed_for_them_too() {
        let ours = "allow_clients = [\"10.0.0.0/8\"]";
        let bad = "deny_destinations = [\".bad.test\"]";
        check(false, &["deny bad", "allow ours", "deny all"], &[ours, bad], 1);
        check(false, &["allow ours", "deny bad", "deny all"], &[ours, bad], 2);
        check(false, &["deny CONNECT !SSL", "allow ours", "deny all"], &[ours, "connect_ports = [443, 563, 8443]"], 0);
        check(false, &["allow ours", "deny CONNECT !SSL", "deny all"], &[ours, "connect_ports = [443, 563, 8443]"], 1);
    }

    /// What could not be carried over never leaves more open than it was, and what admits nobody says so: without a word
    /// larder admits its own machine.
    #[test]
    fn nobody_is_admitted_by_what_is_left() {
        let nobody = &["allow_clients = []"];
        check(false, &["allow users", "deny all"], nobody, 1);
        check(false, &["allow ours users", "deny all"], nobody, 1);
        check(false, &["deny !users", "allow all"], nobody, 2);
        check(false, &["deny browser", "allow ours", "deny all"], nobody, 2);
        check(false, &["deny !odd", "allow ours", "deny all"], nobody, 2);
        check(false, &["deny browser"], nobody, 1);
        check(false, &["deny listed", "allow ours", "deny all"], nobody, 2);
        check(false, &["allow unknown", "deny all"], nobody, 1);
        check(false, &["deny all"], nobody, 0);
        check(false, &[], nobody, 0);
    }

    /// The file of users has no subsets: who is not among the named must not come with another's rule.
    #[test]
    fn some_users_are_not_all_users() {
        let nobody = &["allow_clients = []"];
        check(true, &["allow admins", "deny all"], nobody, 1);
        check(true, &["allow ours admins", "deny all"], nobody, 1);
        check(true, &["allow admins ours", "deny all"], nobody, 1);
        check(true, &["deny !admins", "allow all"], nobody, 2);
    }
}
