//! Who may use a forward proxy, and where it leads: squid's `http_access`, rule by rule, as `[forward]` says it. Squid's
//! rules are a program; what is usual of them has a key in larder, and the rest is left.

use std::collections::BTreeMap;

use crate::import_findings::{Findings, quoted};
use crate::nginx_conf::Directive;

/// What a name of squid's stands for; lines of one name add up.
#[derive(Clone, Debug, Default)]
pub struct Acl {
    pub kind: String,
    pub values: Vec<String>,
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
    if let Some(last) = rules.last().filter(|last| !made.ended && !made.closed && last.argument(0) == "deny") {
        // Squid does the opposite of its last rule where none fits.
        findings.note(last, "no rule is for the rest: whoever is not denied may come");
        made.clients = EVERYBODY.map(str::to_owned).to_vec();
    }
    let list = |values: &[String]| values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ");
    // Nobody has to be said as well: without this line it would be this machine.
    made.lines.insert(0, format!("allow_clients = [{}]", list(&made.clients)));
    if !made.denied.is_empty() {
        made.lines.push(format!("deny_destinations = [{}]", list(&made.denied)));
    }
    made.lines
}

const EVERYBODY: [&str; 2] = ["0.0.0.0/0", "::/0"];

#[derive(Default)]
struct Rules {
    has_users: bool,
    clients: Vec<String>,
    denied: Vec<String>,
    lines: Vec<String>,
    /// A rule for all has come: nobody gets to the next.
    ended: bool,
    /// Something is denied that could not be carried over: what is allowed behind it would be more than squid allows.
    closed: bool,
}

impl Rules {
    fn take(&mut self, rule: &Directive, acls: &BTreeMap<String, Acl>, findings: &mut Findings) {
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
            return findings.leave(rule, "a rule before it denies what [forward] has no key for: it admits nobody");
        }
        let carried = match (allows, kinds.as_slice()) {
            (_, kinds) if kinds.iter().any(|(not, kind)| !not && *kind == "manager") => {
                findings.note(rule, "squid's own pages: larder's are at the admin address");
                true
            }
            (false, [(false, "to_self")]) => {
                findings.note(rule, "so it is by itself");
                true
            }
            (false, [(true, "port")]) => self.ports("ports", values(0)),
            (false, [(false, "method"), (true, "port")]) if values(0) == ["CONNECT"] => {
                self.ports("connect_ports", values(1))
            }
            (false, [(false, "src")]) if values(0) == ["all"] => {
                self.ended = true;
                true
            }
            (false, [(false, "dstdomain")]) => {
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
                self.ended = values(0) == ["all"];
                self.admit(values(0))
            }
            _ => false,
        };
        if !carried {
            self.closed |= !allows;
            findings.leave(rule, "a rule that [forward] has no key for");
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

    /// `80`, `1025-65535`. False: one of them is none.
    fn ports(&mut self, key: &str, ports: &[String]) -> bool {
        let is_port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
        let is_range = |text: &str| text.split_once('-').is_some_and(|(from, to)| is_port(from) && is_port(to));
        let written = ports.iter().map(|port| match port.as_str() {
            port if is_port(port) => Some(port.to_owned()),
            port if is_range(port) => Some(quoted(port)),
            _ => None,
        });
        let written = written.collect::<Option<Vec<String>>>();
        written.map(|written| self.lines.push(format!("{key} = [{}]", written.join(", ")))).is_some()
    }
}

/// `None`: one of them is none.
fn networks(values: &[String]) -> Option<Vec<String>> {
    Some(values.iter().map(|value| network(value)).collect::<Option<Vec<_>>>()?.concat())
}

/// A source of squid's as networks: `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, an address, `all`.
fn network(text: &str) -> Option<Vec<String>> {
    if matches!(text, "all" | "0.0.0.0/0.0.0.0" | "0.0.0.0/0") {
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
    use crate::nginx_conf::Place;

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
            ("odd", "port", "x"),
            ("bad", "dstdomain", ".bad.test"),
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
            0,
        );
        let all = "allow_clients = [\"0.0.0.0/0\", \"::/0\"]";
        check(true, &["deny !users", "allow all"], &[all], 0);
        check(true, &["allow users", "deny all"], &[all], 0);
        check(true, &["allow ours users", "deny all"], &["allow_clients = [\"10.0.0.0/8\"]"], 0);
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
