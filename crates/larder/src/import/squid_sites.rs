//! Who may ask the sites of a squid that is an accelerator: `http_access`, rule by rule, as the guards of the routes of an origin. Squid's
//! rules are a program. What of it says that everybody may come, or some networks, or who asks for some hosts, is carried over; any other
//! rule that keeps somebody out closes.

use std::collections::{BTreeMap, BTreeSet};

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::squid_access::{Acl, is_everybody, is_of_other_methods, networks};

/// Rules that keep people out beside `http_access`.
pub const OTHER_RULES: [&str; 3] = ["miss_access", "http_reply_access", "adapted_http_access"];

const NO_RULE: &str = "closed: no http_access says who may come, and squid lets nobody in";
const UNSAID_ALLOW: &str = "a rule that routes have no key for: whom it alone lets in is refused";
const UNSAID_DENY: &str = "closed: a rule that routes have no key for keeps somebody out";
const BEHIND_ALL: &str = "behind a rule for everybody nothing is reached";
const BEHIND_UNSAID: &str = "nobody is let in behind a rule that could not be carried over";
const BY_HOST: &str = "the routes of these hosts have it";
const BY_NETWORK: &str = "allow of the routes says it";

/// The rules of a file, and what is to be said of each of them when all routes are made.
pub struct SiteRules<'a> {
    rules: Vec<(&'a Directive, SiteRule)>,
    /// Something beside these rules keeps people out.
    is_shut: bool,
    left: BTreeSet<usize>,
}

/// What a rule is about.
#[derive(Debug, PartialEq, Eq)]
enum SiteRule {
    AllowAll,
    DenyAll,
    Allow(Vec<String>),
    AllowHosts(Vec<String>),
    DenyHosts(Vec<String>),
    /// It is about requests that no route answers.
    OfNoRoute,
    /// It lets some in, or keeps some out, in a way that routes have not.
    UnsaidAllow,
    UnsaidDeny,
}

impl SiteRule {
    fn of(rule: &Directive, acls: &BTreeMap<String, Acl>) -> SiteRule {
        let allows = rule.argument(0) == "allow";
        let names = &rule.arguments[1.min(rule.arguments.len())..];
        let is_of_squid = names.iter().filter_map(|name| acls.get(name)).any(Acl::is_manager);
        if is_of_squid || is_of_other_methods(names, acls, &["CONNECT", "PURGE"]) {
            return SiteRule::OfNoRoute;
        }
        let only = match names {
            [name] => acls.get(name),
            _ => None,
        };
        match (allows, only) {
            (true, Some(acl)) if acl.kind == "src" && is_everybody(&acl.values) => SiteRule::AllowAll,
            (false, Some(acl)) if acl.kind == "src" && is_everybody(&acl.values) => SiteRule::DenyAll,
            (true, Some(acl)) if acl.kind == "src" => {
                networks(&acl.values).map_or(SiteRule::UnsaidAllow, SiteRule::Allow)
            }
            (true, Some(acl)) if acl.kind == "dstdomain" => SiteRule::AllowHosts(acl.values.clone()),
            (false, Some(acl)) if acl.kind == "dstdomain" => SiteRule::DenyHosts(acl.values.clone()),
            (true, _) => SiteRule::UnsaidAllow,
            (false, _) => SiteRule::UnsaidDeny,
        }
    }
}

/// Do hosts of a route lie among names of squid's?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    All,
    None,
    Some,
}

/// `hosts` as a route has them: `*.a.test` is what lies beneath `a.test`. Squid's `.a.test` is that with `a.test` itself.
fn among(hosts: &[String], names: &[String]) -> Among {
    let names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let has = |host: &str| {
        let (below, own) = host.strip_prefix('*').map_or((false, host), |rest| (true, rest));
        names.iter().any(|name| match name.strip_prefix('.') {
            Some(above) => !below && own == above || own.ends_with(name.as_str()),
            None => !below && own == name,
        })
    };
    let meets = |host: &str| {
        let beneath = host.strip_prefix('*');
        has(host) || beneath.is_some_and(|beneath| names.iter().any(|name| name.ends_with(beneath)))
    };
    match () {
        () if hosts.is_empty() || names.iter().any(|name| name.starts_with('-')) => Among::Some,
        () if hosts.iter().all(|host| has(host)) => Among::All,
        () if !hosts.iter().any(|host| meets(host)) => Among::None,
        () => Among::Some,
    }
}

impl<'a> SiteRules<'a> {
    /// `is_shut`: something beside these rules keeps people out, which has been said.
    pub fn new(rules: &[&'a Directive], acls: &BTreeMap<String, Acl>, is_shut: bool) -> SiteRules<'a> {
        let rules = rules.iter().map(|rule| (*rule, SiteRule::of(rule, acls))).collect();
        SiteRules { rules, is_shut, left: BTreeSet::new() }
    }

    /// The guard of the routes for these hosts, or for all where there are none. `Some(None)`: everybody may come. `None`: nobody.
    pub fn guard(&mut self, hosts: &[String]) -> Option<Option<String>> {
        let mut allowed: Vec<String> = Vec::new();
        for (at, (_, rule)) in self.rules.iter().enumerate() {
            match (rule, rule.hosts().map(|names| among(hosts, names))) {
                (SiteRule::AllowAll, _) | (SiteRule::AllowHosts(_), Some(Among::All)) => {
                    return (!self.is_shut).then_some(None);
                }
                (SiteRule::DenyAll, _) | (SiteRule::DenyHosts(_), Some(Among::All)) => break,
                (SiteRule::Allow(networks), _) => {
                    let new: Vec<String> = networks.iter().filter(|new| !allowed.contains(new)).cloned().collect();
                    allowed.extend(new);
                }
                (SiteRule::OfNoRoute, _) | (_, Some(Among::None)) => {}
                (SiteRule::UnsaidAllow | SiteRule::AllowHosts(_), _) => drop(self.left.insert(at)),
                // What stands behind it would let in whom it keeps out.
                (SiteRule::UnsaidDeny | SiteRule::DenyHosts(_), _) => {
                    self.left.insert(at);
                    break;
                }
            }
        }
        let list: Vec<String> = allowed.iter().map(|network| quoted(network)).collect();
        (!list.is_empty() && !self.is_shut).then(|| Some(format!("allow = [{}]", list.join(", "))))
    }

    /// Says of each rule what became of it. `listener`: where nothing else could be named.
    pub fn say(&self, listener: &Directive, findings: &mut Findings) {
        if self.rules.is_empty() {
            findings.leave(listener, NO_RULE);
        }
        let (mut is_ended, mut is_closed) = (false, self.is_shut);
        for (at, (directive, rule)) in self.rules.iter().enumerate() {
            match (is_ended, rule) {
                (true, _) => findings.note(directive, BEHIND_ALL),
                (_, SiteRule::UnsaidDeny) => findings.leave(directive, UNSAID_DENY),
                (_, SiteRule::DenyHosts(_)) if self.left.contains(&at) => findings.leave(directive, UNSAID_DENY),
                (_, SiteRule::UnsaidAllow) => findings.leave(directive, UNSAID_ALLOW),
                (_, SiteRule::AllowHosts(_)) if self.left.contains(&at) => findings.leave(directive, UNSAID_ALLOW),
                (_, SiteRule::AllowAll | SiteRule::Allow(_)) if is_closed => findings.note(directive, BEHIND_UNSAID),
                (_, SiteRule::AllowAll) => findings.note(directive, "whoever can reach the listener may come"),
                (_, SiteRule::DenyAll) => findings.note(directive, "nobody else may come"),
                (_, SiteRule::Allow(_)) => findings.note(directive, BY_NETWORK),
                (_, SiteRule::AllowHosts(_) | SiteRule::DenyHosts(_)) => findings.note(directive, BY_HOST),
                (_, SiteRule::OfNoRoute) => findings.note(directive, "no route answers such requests"),
            }
            is_closed |= *rule == SiteRule::UnsaidDeny;
            is_ended |= matches!(rule, SiteRule::AllowAll | SiteRule::DenyAll);
        }
        // Squid does the opposite of its last rule where none fits; what it lets in so has no word of its own here.
        if let Some((last, SiteRule::DenyHosts(_) | SiteRule::OfNoRoute)) =
            self.rules.last().filter(|(last, _)| !is_ended && last.argument(0) == "deny")
        {
            findings.leave(last, "closed: no rule is for the rest, which squid lets in: write http_access allow all");
        }
    }
}

impl SiteRule {
    fn hosts(&self) -> Option<&[String]> {
        match self {
            SiteRule::AllowHosts(names) | SiteRule::DenyHosts(names) => Some(names),
            _ => None,
        }
    }
}

/// Does a rule beside `http_access` keep somebody out, of what is answered or of what is fetched? larder has none of them.
pub fn is_shut_by_others(directives: &[Directive], findings: &mut Findings) -> bool {
    let mut is_shut = false;
    for name in OTHER_RULES {
        let rules: Vec<&Directive> = directives.iter().filter(|one| one.name == name).collect();
        let is_for_all = |rule: &&&Directive| rule.arguments == ["allow", "all"];
        let before = rules.iter().take_while(|rule| rule.argument(0) == "allow");
        let is_open = rules.is_empty() || before.filter(is_for_all).count() > 0;
        for rule in rules {
            match is_open {
                true => findings.note(rule, "so it is by itself"),
                false => findings.leave(rule, "closed: larder asks once who may come, by http_access"),
            }
        }
        is_shut |= !is_open;
    }
    is_shut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;
    use crate::import::squid_access::built_in;

    /// The guard of a route, as it is written, or `closed`; and how many lines are listed.
    fn guard(hosts: &[&str], rules: &[&str]) -> (String, usize) {
        let mut acls = built_in();
        for (name, kind, values) in [
            ("local", "src", "10.0.0.0/8 192.0.2.7"),
            ("admin", "urlpath_regex", "^/admin"),
            ("sites", "dstdomain", "a.test .b.test"),
            ("purge", "method", "PURGE"),
            ("get", "method", "GET"),
        ] {
            let values = values.split(' ').map(str::to_owned).collect();
            acls.insert(name.to_owned(), Acl { kind: kind.to_owned(), values });
        }
        let directives: Vec<Directive> = rules.iter().map(|rule| directive(&format!("http_access {rule}"))).collect();
        let mut made = SiteRules::new(&directives.iter().collect::<Vec<_>>(), &acls, false);
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let guard = made.guard(&hosts);
        let mut findings = Findings::default();
        made.say(&directive("http_port 80 accel"), &mut findings);
        (guard.map_or("closed".to_owned(), Option::unwrap_or_default), findings.left_count())
    }

    #[test]
    fn a_site_is_open_to_whom_its_rules_let_in() {
        let local = "allow = [\"10.0.0.0/8\", \"192.0.2.7\"]";
        for (rules, expect, left) in [
            (&["allow all"][..], "", 0),
            (&[], "closed", 1),
            (&["deny all"], "closed", 0),
            (&["allow local", "deny all"], local, 0),
            (&["allow local"], local, 0),
            (&["deny CONNECT", "allow purge localhost", "deny purge", "allow all"], "", 0),
            // Somebody is kept out of something: what stands behind it lets in too many.
            (&["deny admin !local", "allow local", "deny all"], "closed", 1),
            (&["deny local", "allow all"], "closed", 1),
            (&["deny get", "allow all"], "closed", 1),
            (&["allow local", "deny admin", "allow all"], local, 1),
            (&["deny all", "allow all"], "closed", 0),
            (&["deny purge"], "closed", 1),
            // Whom a rule alone lets in is refused, and that is all.
            (&["allow admin", "allow local", "deny all"], local, 1),
            (&["allow admin local", "deny all"], "closed", 1),
            (&["allow !local"], "closed", 1),
            (&["allow unknown"], "closed", 1),
        ] {
            assert_eq!(guard(&[], rules), (expect.to_owned(), left), "{rules:?}");
        }
    }

    #[test]
    fn a_rule_for_hosts_is_one_of_their_routes() {
        let rules: &[&str] = &["allow sites", "deny all"];
        for (hosts, expect, left) in [
            (&["a.test"][..], "", 0),
            (&["b.test", "*.b.test", "www.b.test"], "", 0),
            (&["c.test"], "closed", 0),
            (&["a.test", "c.test"], "closed", 1),
            (&["*.a.test"], "closed", 0),
            (&["*.test"], "closed", 1),
            (&[], "closed", 1),
        ] {
            assert_eq!(guard(hosts, rules), (expect.to_owned(), left), "{hosts:?}");
        }
        assert_eq!(guard(&["c.test"], &["deny sites", "allow all"]), (String::new(), 0));
        assert_eq!(guard(&["a.test"], &["deny sites", "allow all"]), ("closed".to_owned(), 0));
        assert_eq!(guard(&[], &["deny sites", "allow all"]), ("closed".to_owned(), 1));
    }
}
