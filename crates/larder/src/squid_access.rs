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

/// The lines of `[forward]`.
#[derive(Debug, Default)]
pub struct Access {
    pub lines: Vec<String>,
}

pub fn access(rules: &[&Directive], acls: &BTreeMap<String, Acl>, findings: &mut Findings) -> Access {
    let mut made = Rules { clients: Vec::new(), denied: Vec::new(), lines: Vec::new(), ended: false };
    for rule in rules {
        made.take(rule, acls, findings);
    }
    if let Some(last) = rules.last().filter(|last| !made.ended && last.argument(0) == "deny") {
        // Squid does the opposite of its last rule where none fits.
        findings.note(last, "no rule is for the rest: whoever is not denied may come");
        made.clients = EVERYBODY.map(str::to_owned).to_vec();
    }
    let list = |values: &[String]| values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ");
    if !made.clients.is_empty() {
        made.lines.insert(0, format!("allow_clients = [{}]", list(&made.clients)));
    }
    if !made.denied.is_empty() {
        made.lines.push(format!("deny_destinations = [{}]", list(&made.denied)));
    }
    Access { lines: made.lines }
}

const EVERYBODY: [&str; 2] = ["0.0.0.0/0", "::/0"];

struct Rules {
    clients: Vec<String>,
    denied: Vec<String>,
    lines: Vec<String>,
    /// A rule for all has come: nobody gets to the next.
    ended: bool,
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
        let is_connect = |at: usize| values(at) == ["CONNECT"];
        match (rule.argument(0), kinds.as_slice()) {
            (_, kinds) if kinds.iter().any(|(not, kind)| !not && *kind == "manager") => {
                findings.note(rule, "squid's own pages: larder's are at the admin address");
            }
            ("deny", [(false, "to_self")]) => findings.note(rule, "so it is by itself"),
            ("deny", [(true, "port")]) => self.ports("ports", values(0), rule, findings),
            ("deny", [(false, "method"), (true, "port")]) if is_connect(0) => {
                self.ports("connect_ports", values(1), rule, findings);
            }
            ("deny", [(false, "src")]) if values(0) == ["all"] => self.ended = true,
            ("deny", [(false, "dstdomain" | "dst")]) => self.denied.extend(values(0).iter().cloned()),
            ("deny", [(true, "proxy_auth")]) | ("allow", [(false, "proxy_auth")]) => {
                // Whoever has a password may come from anywhere; the password file asks for it.
                if rule.argument(0) == "allow" {
                    self.clients = EVERYBODY.map(str::to_owned).to_vec();
                }
            }
            ("allow", [(false, "src")] | [(false, "src"), (false, "proxy_auth")]) => {
                self.ended |= values(0) == ["all"];
                self.admit(values(0), rule, findings);
            }
            ("allow", [(false, "proxy_auth"), (false, "src")]) => self.admit(values(1), rule, findings),
            _ => findings.leave(rule, "a rule that [forward] has no key for"),
        }
    }

    fn admit(&mut self, sources: &[String], rule: &Directive, findings: &mut Findings) {
        for source in sources {
            match network(source) {
                Some(networks) => self
                    .clients
                    .extend(networks.into_iter().filter(|one| !self.clients.contains(one)).collect::<Vec<_>>()),
                None => findings.leave(rule, "a source that is no network"),
            }
        }
    }

    /// `80`, `1025-65535`.
    fn ports(&mut self, key: &str, ports: &[String], rule: &Directive, findings: &mut Findings) {
        let is_port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
        let is_range = |text: &str| text.split_once('-').is_some_and(|(from, to)| is_port(from) && is_port(to));
        let written = ports.iter().map(|port| match port.as_str() {
            port if is_port(port) => Some(port.to_owned()),
            port if is_range(port) => Some(quoted(port)),
            _ => None,
        });
        match written.collect::<Option<Vec<String>>>() {
            Some(written) => self.lines.push(format!("{key} = [{}]", written.join(", "))),
            None => findings.leave(rule, "a port that is no number"),
        }
    }
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
}
