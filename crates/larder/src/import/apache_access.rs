//! Who may come, as one section of Apache's says it with `Require` and a password: open, closed, or the lines of a route. What cannot be said
//! exactly closes the section.

use std::net::IpAddr;
use std::path::Path;

use crate::bounded_file;
use crate::import::apache_conf::name_of;
use crate::import::import_findings::quoted;
use crate::import::nginx_conf::Directive;

/// More than this is no file of passwords.
const PASSWORD_FILE_BYTES_MAX: u64 = 1 << 20;

/// What a section says of clients. A later one takes its place: sections do not add to one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessRule {
    Open,
    Closed,
    /// Lines of a route.
    Guarded(Vec<String>),
}

/// What one `Require` asks.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AskedClient {
    Anybody,
    Nobody,
    From(Vec<String>),
    NotFrom(Vec<String>),
    Login,
}

/// The words of one section that are about clients, as they are read.
#[derive(Clone, Debug, Default)]
pub struct AccessWords {
    asked: Vec<Option<AskedClient>>,
    /// `<RequireAll>` is all that the section has.
    all_of: Option<Vec<Option<AskedClient>>>,
    is_basic: bool,
    realm: Option<String>,
    users: Option<String>,
    says_login: bool,
    is_unsayable: bool,
}

impl AccessWords {
    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive) -> bool {
        let first = directive.argument(0);
        match name_of(directive).as_str() {
            "require" => self.asked.push(asked(&directive.arguments)),
            "<requireall" => {
                let is_require = |child: &Directive| name_of(child) == "require";
                self.is_unsayable |= self.all_of.is_some() || !directive.children().iter().all(is_require);
                self.all_of = Some(directive.children().iter().map(|child| asked(&child.arguments)).collect());
            }
            "authtype" => {
                self.says_login = true;
                self.is_basic = first.eq_ignore_ascii_case("basic");
            }
            "authname" => {
                self.says_login = true;
                self.realm = Some(first.to_owned());
            }
            "authuserfile" => {
                self.says_login = true;
                self.users = Some(first.to_owned());
            }
            "authbasicprovider" => {
                self.says_login = true;
                self.is_unsayable |= directive.arguments.len() != 1 || !first.eq_ignore_ascii_case("file");
            }
            _ => return false,
        }
        true
    }

    /// `home`: where names of files begin. `Ok(None)`: nothing is said; an error: it cannot be said.
    pub fn rule(&self, home: &Path) -> Result<Option<AccessRule>, &'static str> {
        if self.is_unsayable {
            return Err("closed: larder asks a file of users, and networks in one RequireAll");
        }
        let lines = match (&self.all_of, &self.asked[..]) {
            (None, []) if self.says_login => return Err("closed: a login counts where its own section says Require"),
            (None, []) => return Ok(None),
            (None, several) => self.any_of(several)?,
            (Some(all), []) => self.all_of(all)?,
            (Some(_), _) => return Err("closed: Require beside RequireAll"),
        };
        let Some(mut lines) = lines else { return Ok(Some(AccessRule::Closed)) };
        if let Some(at) = lines.iter().position(|line| line == LOGIN) {
            lines[at] = self.login(home)?;
        } else if self.says_login && !lines.is_empty() {
            return Err("closed: a login that nobody is asked for");
        }
        Ok(Some(if lines.is_empty() { AccessRule::Open } else { AccessRule::Guarded(lines) }))
    }

    /// One of these is enough. `None`: nobody is let in.
    fn any_of(&self, all: &[Option<AskedClient>]) -> Result<Option<Vec<String>>, &'static str> {
        let mut networks = Vec::new();
        for one in all {
            match (one, all.len()) {
                (Some(AskedClient::Anybody), 1) => return Ok(Some(Vec::new())),
                (Some(AskedClient::Nobody), 1) => return Ok(None),
                (Some(AskedClient::Login), 1) => return Ok(Some(vec![LOGIN.to_owned()])),
                (Some(AskedClient::From(some)), _) => networks.extend(some.iter().cloned()),
                _ => {
                    return Err("closed: larder asks for one of several networks, or for a user, and for nothing else");
                }
            }
        }
        Ok(Some(vec![line("allow", &networks)]))
    }

    /// All of these are asked.
    fn all_of(&self, all: &[Option<AskedClient>]) -> Result<Option<Vec<String>>, &'static str> {
        let (mut lines, mut denied, mut lets_in) = (Vec::new(), Vec::new(), 0);
        for one in all {
            match one {
                Some(AskedClient::Anybody) => lets_in += 1,
                Some(AskedClient::Nobody) => return Ok(None),
                Some(AskedClient::From(networks)) if !lines.iter().any(|line: &String| line.starts_with("allow")) => {
                    lets_in += 1;
                    lines.push(line("allow", networks));
                }
                Some(AskedClient::Login) if !lines.iter().any(|line| line == LOGIN) => {
                    lets_in += 1;
                    lines.push(LOGIN.to_owned());
                }
                Some(AskedClient::NotFrom(networks)) => denied.extend(networks.iter().cloned()),
                _ => return Err("closed: larder asks for networks once, and for a user, and for nothing else"),
            }
        }
        if lets_in == 0 {
            return Ok(None);
        }
        if !denied.is_empty() {
            lines.push(line("deny", &denied));
        }
        Ok(Some(lines))
    }

    fn login(&self, home: &Path) -> Result<String, &'static str> {
        let (true, Some(realm), Some(users)) = (self.is_basic, &self.realm, &self.users) else {
            return Err("closed: AuthType Basic, AuthName and AuthUserFile have to stand beside Require");
        };
        if users.contains("${") {
            return Err("closed: no file says who the users are");
        }
        let file = home.join(users);
        let text =
            bounded_file::read(&file, PASSWORD_FILE_BYTES_MAX).map_err(|_| "closed: the file of users is not here")?;
        if !is_by_bcrypt(&String::from_utf8_lossy(&text)) {
            return Err("closed: larder reads bcrypt alone, as `htpasswd -B` writes it");
        }
        let is_plain = |c: &char| (' '..='~').contains(c) && !"\"\\".contains(*c);
        let said: String = realm.chars().filter(is_plain).collect();
        let said = if said.is_empty() { "larder".to_owned() } else { said };
        Ok(format!("basic_auth = {{ file = {}, realm = {} }}", quoted(&file.display().to_string()), quoted(&said)))
    }
}

/// Stands where the line of a login will.
const LOGIN: &str = "basic_auth";

fn line(key: &str, networks: &[String]) -> String {
    let networks: Vec<String> = networks.iter().map(|network| quoted(network)).collect();
    format!("{key} = [{}]", networks.join(", "))
}

/// Has every user a hash that larder reads?
fn is_by_bcrypt(text: &str) -> bool {
    let mut users = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    users.all(|line| line.split_once(':').is_some_and(|(_, hash)| hash.starts_with("$2")))
}

/// `None`: larder cannot ask it.
fn asked(words: &[String]) -> Option<AskedClient> {
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    match &lower[..] {
        ["all", "granted"] => Some(AskedClient::Anybody),
        ["all", "denied"] => Some(AskedClient::Nobody),
        ["valid-user"] => Some(AskedClient::Login),
        ["local"] => Some(AskedClient::From(["127.0.0.0/8", "::1/128"].map(str::to_owned).to_vec())),
        ["ip", networks @ ..] if !networks.is_empty() => Some(AskedClient::From(all_networks(networks)?)),
        ["not", "ip", networks @ ..] if !networks.is_empty() => Some(AskedClient::NotFrom(all_networks(networks)?)),
        _ => None,
    }
}

fn all_networks(written: &[&str]) -> Option<Vec<String>> {
    written.iter().map(|one| network(one)).collect()
}

/// An address or a network, its other bits taken out as Apache does.
fn network(written: &str) -> Option<String> {
    let (address, bits) = match written.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
        None => (written, None),
    };
    match address.parse().ok()? {
        IpAddr::V4(address) => {
            let bits = bits.unwrap_or(32);
            let mask = if bits == 0 { 0 } else { u32::MAX.checked_shl(32_u32.checked_sub(bits)?)? };
            Some(format!("{}/{bits}", std::net::Ipv4Addr::from(u32::from(address) & mask)))
        }
        IpAddr::V6(address) => {
            let bits = bits.unwrap_or(128);
            let mask = if bits == 0 { 0 } else { u128::MAX.checked_shl(128_u32.checked_sub(bits)?)? };
            Some(format!("{}/{bits}", std::net::Ipv6Addr::from(u128::from(address) & mask)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn check(lines: &[&str], expect: Result<Option<AccessRule>, ()>) {
        let mut words = AccessWords::default();
        assert!(lines.iter().all(|line| words.take(&directive(line))), "{lines:?}");
        assert_eq!(words.rule(Path::new("/etc/apache2")).map_err(|_| ()), expect, "{lines:?}");
    }

    fn guarded(lines: &[&str]) -> Result<Option<AccessRule>, ()> {
        Ok(Some(AccessRule::Guarded(lines.iter().map(|&line| line.to_owned()).collect())))
    }

    #[test]
    fn what_is_asked_is_said_or_closed() {
        check(&[], Ok(None));
        check(&["Require all granted"], Ok(Some(AccessRule::Open)));
        check(&["Require ALL Denied"], Ok(Some(AccessRule::Closed)));
        check(&["Require ip 10.1.2.3/8 ::1"], guarded(&["allow = [\"10.0.0.0/8\", \"::1/128\"]"]));
        check(
            &["Require ip 10.0.0.1", "Require local"],
            guarded(&["allow = [\"10.0.0.1/32\", \"127.0.0.0/8\", \"::1/128\"]"]),
        );
        for unsayable in [
            &["Require ip 10.1"][..],
            &["Require host example.org"],
            &["Require not ip 10.0.0.1"],
            &["Require all granted", "Require ip 10.0.0.1"],
            &["Require all denied", "Require ip 10.0.0.1"],
            &["Require valid-user"],
            &["Require group admins"],
            &["Require env X"],
            &["Require method GET"],
            &["AuthType Basic"],
            &["AuthType Digest", "AuthName x", "AuthUserFile /none", "Require valid-user"],
            &["AuthType Basic", "AuthName x", "AuthUserFile /none", "Require valid-user"],
            &["AuthBasicProvider ldap", "Require all granted"],
            &["Require ip 10.0.0.0/33"],
            &["Require ip 10.0.0.0/255.0.0.0"],
        ] {
            check(unsayable, Err(()));
        }
    }

    #[test]
    fn all_of_several_are_asked() {
        let all = |lines: &[&str]| {
            let block = lines.iter().map(|line| directive(line)).collect();
            let mut words = AccessWords::default();
            assert!(words.take(&Directive { block: Some(block), ..directive("<RequireAll") }));
            words.rule(Path::new("/")).map_err(|_| ())
        };
        let denied = all(&["Require all granted", "Require not ip 10.0.0.1", "Require not ip 10.2.0.0/16"]);
        assert_eq!(denied, guarded(&["deny = [\"10.0.0.1/32\", \"10.2.0.0/16\"]"]));
        assert_eq!(all(&["Require not ip 10.0.0.1"]), Ok(Some(AccessRule::Closed)));
        assert_eq!(all(&["Require all denied", "Require ip 10.0.0.1"]), Ok(Some(AccessRule::Closed)));
        assert_eq!(all(&["Require ip 10.0.0.1", "Require ip 10.0.0.2"]), Err(()));
        assert_eq!(all(&["<RequireAny"]), Err(()));
    }
}
