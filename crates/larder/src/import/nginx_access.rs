//! Who may ask, and with what body: `allow` and `deny`, `auth_basic` and `client_max_body_size` of nginx as the words of a
//! `[[route]]`. What cannot be said closes the route. How often and how much at a time is in `nginx_limits.rs`.

use std::path::Path;

use crate::bounded_file;
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_limits::{LimitLevel, LimitZones};
use crate::import::nginx_times::bytes;

/// More than this is no file of passwords.
const PASSWORD_FILE_BYTES_MAX: u64 = 1 << 20;

/// nginx takes no longer body unless it is told to.
pub const BODY_BYTES_USUAL: u64 = 1 << 20;

/// What a level says of clients and the levels inside it inherit.
#[derive(Clone, Debug, Default)]
pub struct AccessLevel {
    rules: Option<AccessRules>,
    realm: Option<Directive>,
    users: Option<Directive>,
    limits: LimitLevel,
    satisfies_any: Option<bool>,
    body_bytes_max: Option<u64>,
    /// Who asks is said by a field, and not by where the connection comes from.
    is_told_who_asks: bool,
}

impl AccessLevel {
    pub fn within(self, outer: &AccessLevel) -> AccessLevel {
        AccessLevel {
            rules: self.rules.or_else(|| outer.rules.clone()),
            realm: self.realm.or_else(|| outer.realm.clone()),
            users: self.users.or_else(|| outer.users.clone()),
            limits: self.limits.within(&outer.limits),
            satisfies_any: self.satisfies_any.or(outer.satisfies_any),
            body_bytes_max: self.body_bytes_max.or(outer.body_bytes_max),
            is_told_who_asks: self.is_told_who_asks || outer.is_told_who_asks,
        }
    }

    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) -> bool {
        match directive.name.as_str() {
            "allow" | "deny" => self.rules.get_or_insert_default().take(directive),
            "auth_basic" => self.realm = Some(directive.clone()),
            "auth_basic_user_file" => self.users = Some(directive.clone()),
            "satisfy" => self.satisfies_any = Some(directive.argument(0) == "any"),
            "client_max_body_size" => match bytes(directive.argument(0)) {
                Some(size) => self.body_bytes_max = Some(size),
                None => findings.leave(directive, "no size"),
            },
            _ => return self.limits.take(directive, findings),
        }
        true
    }

    /// Looks at what makes clients of others' words, wherever it stands. Who takes it in is another's affair.
    pub fn look_at(&mut self, directive: &Directive) {
        self.is_told_who_asks |= matches!(directive.name.as_str(), "set_real_ip_from" | "real_ip_header");
    }

    pub fn is_told_who_asks(&self) -> bool {
        self.is_told_who_asks
    }

    /// Of request bodies; `None`: no limit.
    pub fn body_bytes_max(&self) -> Option<u64> {
        Some(self.body_bytes_max.unwrap_or(BODY_BYTES_USUAL)).filter(|max| *max > 0)
    }

    /// Is it enough that one of several guards lets somebody in?
    pub fn is_satisfied_by_any(&self) -> bool {
        self.satisfies_any == Some(true)
    }

    /// Those who are let in, by networks in CIDR form, where no others are.
    pub fn admitted(&self) -> Vec<String> {
        self.rules.clone().unwrap_or_default().admitted()
    }

    /// The lines of a route. `None`: nobody can be answered. `folder`: where names of files begin.
    pub fn lines(&self, folder: &Path, zones: &LimitZones, findings: &mut Findings) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        let login = self.login();
        if let (Some(rules), true, true) = (&self.rules, login.is_some(), self.satisfies_any == Some(true)) {
            rules.first().iter().for_each(|rule| {
                findings
                    .leave(rule, "closed: larder cannot let in some by network and others by password (satisfy any)");
            });
            return None;
        }
        if let (Some(rules), true) = (&self.rules, self.is_told_who_asks) {
            rules.first().iter().for_each(|rule| {
                findings
                    .leave(rule, "closed: nginx is told by a field who asks; say trusted_proxies, and allow or deny");
            });
            return None;
        }
        if let Some(rules) = &self.rules {
            lines.extend(rules.lines(findings)?);
        }
        if let Some(realm) = login {
            lines.push(self.login_line(realm, folder, findings)?);
        }
        lines.extend(self.limits.lines(zones, findings));
        Some(lines)
    }

    fn login(&self) -> Option<&Directive> {
        self.realm.as_ref().filter(|realm| realm.argument(0) != "off")
    }

    fn login_line(&self, realm: &Directive, folder: &Path, findings: &mut Findings) -> Option<String> {
        let Some(users) = self.users.as_ref().filter(|users| !users.argument(0).contains('$')) else {
            findings.leave(realm, "closed: no file says who the users are");
            return None;
        };
        let file = folder.join(users.argument(0));
        match bounded_file::read(&file, PASSWORD_FILE_BYTES_MAX) {
            Ok(text) if !is_by_bcrypt(&String::from_utf8_lossy(&text)) => {
                findings.leave(users, "closed: larder reads bcrypt alone, as `htpasswd -B` writes it");
                return None;
            }
            Ok(_) => {}
            Err(_) => findings.note(users, "the file is not here: it must be as `htpasswd -B` writes it"),
        }
        let is_plain = |c: char| (' '..='~').contains(&c) && !"\"\\".contains(c);
        let said: String = realm.argument(0).chars().filter(|c| is_plain(*c)).collect();
        let said = if said.is_empty() { "larder".to_owned() } else { said };
        Some(format!("basic_auth = {{ file = {}, realm = {} }}", quoted(&file.display().to_string()), quoted(&said)))
    }
}

/// Has every user a hash that larder reads?
fn is_by_bcrypt(text: &str) -> bool {
    let is_user = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let mut users = text.lines().filter(is_user);
    users.all(|line| line.split_once(':').is_some_and(|(_, hash)| hash.starts_with("$2")))
}

/// `allow` and `deny` of one level: the first that fits a client counts.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    rules: Vec<Directive>,
}

impl AccessRules {
    pub fn take(&mut self, directive: &Directive) {
        self.rules.push(directive.clone());
    }

    fn first(&self) -> Option<&Directive> {
        self.rules.first()
    }

    /// Those before the first that is for everybody, and whether that lets in the rest.
    fn split(&self) -> (&[Directive], bool) {
        let end = self.rules.iter().position(|rule| rule.argument(0) == "all");
        (&self.rules[..end.unwrap_or(self.rules.len())], end.is_none_or(|end| self.rules[end].name == "allow"))
    }

    /// Networks that are let in, each of them or all.
    pub fn admitted(&self) -> Vec<String> {
        let (some, lets_in_the_rest) = self.split();
        if lets_in_the_rest && !some.iter().any(|rule| rule.name == "deny") {
            return ["0.0.0.0/0", "::/0"].map(str::to_owned).into();
        }
        let admitted = some.iter().filter(|rule| rule.name == "allow").map(|rule| rule.argument(0));
        admitted.filter(|network| is_network(network)).map(str::to_owned).collect()
    }

    /// `None`: nobody is let in, or it cannot be said who is.
    fn lines(&self, findings: &mut Findings) -> Option<Vec<String>> {
        let (some, lets_in_the_rest) = self.split();
        let is_network = |rule: &&Directive| is_network(rule.argument(0));
        if let Some(rule) = some.iter().find(|rule| rule.name == "deny" && !is_network(rule)) {
            findings.leave(rule, "closed: only networks can be kept out");
            return None;
        }
        for rule in some.iter().filter(|rule| !is_network(rule)) {
            findings.leave(rule, "only networks can be let in");
        }
        let named = |name: &str| -> Vec<String> {
            some.iter()
                .filter(is_network)
                .filter(|rule| rule.name == name)
                .map(|rule| quoted(rule.argument(0)))
                .collect()
        };
        let (allowed, denied) = (named("allow"), named("deny"));
        let last_deny = some.iter().rposition(|rule| rule.name == "deny").unwrap_or(0);
        for rule in some[..last_deny].iter().filter(|rule| rule.name == "allow") {
            findings.leave(rule, "whom a later line keeps out is kept out, though this one lets them in");
        }
        let mut lines = Vec::new();
        if !lets_in_the_rest {
            if allowed.is_empty() {
                return None;
            }
            lines.push(format!("allow = [{}]", allowed.join(", ")));
        }
        if !denied.is_empty() {
            lines.push(format!("deny = [{}]", denied.join(", ")));
        }
        Some(lines)
    }
}

pub fn is_network(text: &str) -> bool {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let Ok(address) = address.parse::<std::net::IpAddr>() else { return false };
    bits.is_none_or(|bits| bits.parse().is_ok_and(|bits: u8| bits <= if address.is_ipv4() { 32 } else { 128 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn level(lines: &[&str]) -> AccessLevel {
        let (mut level, mut findings) = (AccessLevel::default(), Findings::default());
        assert!(lines.iter().all(|line| level.take(&directive(line), &mut findings)));
        level
    }

    fn check(lines: &[&str], expect: Option<&[&str]>, left: usize) {
        let mut findings = Findings::default();
        let made = level(lines).lines(Path::new("/etc/nginx"), &LimitZones::default(), &mut findings);
        assert_eq!(
            made.as_deref(),
            expect.map(|lines| lines.iter().map(|&l| l.to_owned()).collect::<Vec<_>>()).as_deref(),
            "{lines:?}"
        );
        assert_eq!(findings.left_count(), left, "{lines:?}: {findings:?}");
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        check(&["allow all"], Some(&[]), 0);
        check(&["allow all", "deny all"], Some(&[]), 0);
        check(&["allow 10.0.0.0/8"], Some(&[]), 0);
        check(&["allow 10.0.0.0/8", "deny all"], Some(&["allow = [\"10.0.0.0/8\"]"]), 0);
        check(&["deny 10.0.0.1", "allow all"], Some(&["deny = [\"10.0.0.1\"]"]), 0);
        let both = ["deny 10.0.0.1", "allow 10.0.0.0/8", "deny all"];
        check(&both, Some(&["allow = [\"10.0.0.0/8\"]", "deny = [\"10.0.0.1\"]"]), 0);
        check(&["deny all"], None, 0);
        check(&["deny all", "allow 10.0.0.0/8"], None, 0);
        // Kept out here, let in there: who is in both is told so.
        check(&["allow 10.0.0.1", "deny 10.0.0.0/8"], Some(&["deny = [\"10.0.0.0/8\"]"]), 1);
        check(&["deny unix:", "allow all"], None, 1);
        check(&["allow office.example", "deny all"], None, 1);
    }

    #[test]
    fn levels_inside_say_it_anew() {
        let outer = level(&["deny all", "auth_basic x"]);
        let inner = level(&["allow all", "auth_basic off"]).within(&outer);
        let lines = inner.lines(Path::new("/"), &LimitZones::default(), &mut Findings::default());
        assert_eq!(lines, Some(Vec::new()));
        assert_eq!(
            level(&[]).within(&outer).lines(Path::new("/"), &LimitZones::default(), &mut Findings::default()),
            None
        );
    }

    #[test]
    fn users_come_with_a_password_of_their_file() {
        let line = "basic_auth = { file = \"/etc/nginx/none\", realm = \"ours\" }";
        check(&["auth_basic ours", "auth_basic_user_file none"], Some(&[line]), 0);
        check(&["auth_basic ours"], None, 1);
        check(&["auth_basic ours", "auth_basic_user_file $users"], None, 1);
        let any = ["satisfy any", "allow 10.0.0.0/8", "deny all", "auth_basic ours", "auth_basic_user_file none"];
        check(&any, None, 1);
        assert!(is_by_bcrypt("# users\nann:$2y$05$x\n\nben:$2b$05$y\n") && !is_by_bcrypt("ann:$apr1$x$y\n"));
    }

    #[test]
    fn numbers_are_for_those_who_are_let_in() {
        let admitted = |lines: &[&str]| level(lines).admitted();
        assert_eq!(admitted(&["allow 127.0.0.1", "deny all"]), ["127.0.0.1"]);
        assert_eq!(admitted(&["allow 127.0.0.1", "allow office.example", "allow unix:", "deny all"]), ["127.0.0.1"]);
        assert_eq!(admitted(&[]), ["0.0.0.0/0", "::/0"]);
        assert!(admitted(&["deny all"]).is_empty());
    }
}
