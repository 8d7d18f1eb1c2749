//! Where nginx listens, and by which certificates, as `[[listen]]`. Routes know no listeners: what is answered at one is
//! answered at all, so servers that listen elsewhere than the first one are none of the same site.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::addresses::parse_listen;
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::{self, Directive};

/// The usual ports of http and https: a site has both.
const WEB_PORTS: [&str; 2] = ["80", "443"];

/// What is said of a server's TLS, by names of directives: larder's own choice is as good, or says it otherwise.
const OF_TLS: [&str; 14] = [
    "ssl",
    "ssl_ciphers",
    "ssl_prefer_server_ciphers",
    "ssl_session_cache",
    "ssl_session_timeout",
    "ssl_session_tickets",
    "ssl_session_ticket_key",
    "ssl_dhparam",
    "ssl_ecdh_curve",
    "ssl_buffer_size",
    "ssl_early_data",
    "ssl_conf_command",
    "http2",
    "ssl_reject_handshake",
];

/// The listeners of a configuration.
#[derive(Default)]
pub struct Listens {
    /// Where the first server listens.
    first: Option<BTreeSet<String>>,
    plain: Vec<String>,
    secure: Vec<SecureListen>,
    /// Plain ones from which everything is led to TLS.
    redirecting: Vec<String>,
    /// Where some servers are reached by TLS alone and others in the clear. A listener answers for all of them, so in the clear none does.
    sealed: Vec<BTreeSet<String>>,
}

struct SecureListen {
    address: String,
    certificates: Vec<(PathBuf, PathBuf)>,
    only_newest: bool,
}

/// Do requests come to a server in the clear?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTheClear {
    /// All of them: it has no TLS, or none that larder could have.
    Always,
    Never,
    /// They come both ways, and what comes in the clear can be led to TLS before anybody looks at it.
    CanBeLed,
}

/// What one server says of it.
#[derive(Clone, Debug, Default)]
pub struct ServerListens {
    plain: Vec<String>,
    secure: Vec<String>,
    pub is_default: bool,
    /// Where it says so.
    default_at: Vec<String>,
    certificates: Vec<Directive>,
    keys: Vec<Directive>,
    only_newest: bool,
    /// It names addresses at which larder cannot listen.
    has_lost_some: bool,
}

/// The addresses at which a server is reached by IPv4, all of them of a port.
pub fn everywhere(server: &Directive) -> BTreeSet<String> {
    let lines = server.children().iter().filter(|child| child.name == "listen" && !is_of_ipv6_alone(child));
    let addresses = lines.map(|line| address_of(line).replace("0.0.0.0:", "*:"));
    addresses.filter(|address| address.starts_with("*:")).collect()
}

/// Is this server the other one over IPv6: the same to the word, at the same ports? larder's listener for the other one is for both.
pub fn is_same_over_ipv6(server: &Directive, other: &Directive) -> bool {
    let is_of_ipv6 = |server| listen_lines(server).all(is_of_ipv6_alone);
    let all_listens = |server| listen_lines(server).map(any_listen).collect::<BTreeSet<_>>();
    listen_lines(server).next().is_some()
        && is_of_ipv6(server)
        && !is_of_ipv6(other)
        && all_listens(server) == all_listens(other)
        && nginx_conf::are_written_alike(but_for_listens(server), but_for_listens(other))
}

fn listen_lines(server: &Directive) -> impl Iterator<Item = &Directive> {
    server.children().iter().filter(|child| child.name == "listen")
}

fn but_for_listens(server: &Directive) -> impl Iterator<Item = &Directive> {
    server.children().iter().filter(|child| child.name != "listen")
}

/// An address and what is said of it, as if it were listened at by both versions of IP.
fn any_listen(listen: &Directive) -> (String, Vec<&str>) {
    let words = listen.arguments.iter().skip(1).map(String::as_str).filter(|word| *word != "ipv6only=on");
    let mut words: Vec<&str> = words.collect();
    words.sort_unstable();
    (address_of(listen).replace("0.0.0.0:", "*:"), words)
}

/// So nginx has it, unless it is said otherwise.
fn is_of_ipv6_alone(listen: &Directive) -> bool {
    listen.argument(0).starts_with("[::]:") && !listen.arguments.iter().any(|word| word == "ipv6only=off")
}

fn address_of(listen: &Directive) -> String {
    let address = match listen.argument(0) {
        unix if unix.starts_with("unix:") => unix.to_owned(),
        port if port.bytes().all(|b| b.is_ascii_digit()) => format!("*:{port}"),
        address if address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => address.to_owned(),
        address => format!("{address}:80"),
    };
    // Every address of a port is one listener.
    address.strip_prefix("[::]:").map(|port| format!("*:{port}")).unwrap_or(address)
}

impl ServerListens {
    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive, everywhere: &BTreeSet<String>, findings: &mut Findings) -> bool {
        match directive.name.as_str() {
            "listen" if is_of_ipv6_alone(directive) && !everywhere.contains(&address_of(directive)) => {
                self.has_lost_some = true;
                findings.leave(
                    directive,
                    "nobody listens: larder listens at all addresses of a port, and this is IPv6 alone",
                );
            }
            "listen" if parse_listen(&address_of(directive)).is_err() => {
                self.has_lost_some = true;
                findings.leave(directive, "nobody listens: larder listens at addresses, and looks no name up for that");
            }
            "listen" => {
                if directive.arguments.iter().any(|word| word == "default_server" || word == "default") {
                    self.is_default = true;
                    self.default_at.push(address_of(directive));
                }
                self.listen(directive, findings);
            }
            "ssl_certificate" => self.certificates.push(directive.clone()),
            "ssl_certificate_key" => self.keys.push(directive.clone()),
            "ssl_protocols" => {
                self.only_newest = directive.arguments == ["TLSv1.3"];
                findings.note(directive, "larder speaks TLS 1.2 and 1.3");
            }
            "ssl_verify_client" => return false,
            name if OF_TLS.contains(&name) || name.starts_with("ssl_stapling") || name.starts_with("http3") => {
                findings.note(directive, "larder does so by itself, or has no need of it");
            }
            "ssl_trusted_certificate" | "quic_retry" => findings.note(directive, "larder has no need of it"),
            _ => return false,
        }
        true
    }

    fn listen(&mut self, directive: &Directive, findings: &mut Findings) {
        let has = |name: &str| directive.arguments.iter().any(|word| word == name);
        if has("quic") {
            return findings.note(directive, "larder speaks no HTTP/3 yet");
        }
        if has("proxy_protocol") {
            findings
                .leave(directive, "say proxy_protocol of the [[listen]], and trusted_proxies, for who is behind it");
        }
        let address = address_of(directive);
        let to =
            if has("ssl") || has("http2") && address.ends_with(":443") { &mut self.secure } else { &mut self.plain };
        if !to.contains(&address) {
            to.push(address);
        }
    }

    /// As older files say it: for all that a server listens to.
    pub fn all_secure(&mut self) {
        self.secure.append(&mut self.plain);
    }

    pub fn is_secure(&self) -> bool {
        !self.secure.is_empty()
    }

    /// Are there none but those?
    pub fn is_nowhere(&self) -> bool {
        self.has_lost_some && self.plain.is_empty() && self.secure.is_empty()
    }

    pub fn is_plain_alone(&self) -> bool {
        self.secure.is_empty()
    }

    pub fn is_secure_alone(&self) -> bool {
        self.is_secure() && self.plain.is_empty()
    }

    /// An address that one server has with TLS has it for all.
    pub fn share_tls(&mut self, secure: &BTreeSet<String>) {
        let (shared, plain): (Vec<_>, Vec<_>) = self.plain.drain(..).partition(|address| secure.contains(address));
        self.plain = plain;
        add(&mut self.secure, &shared);
    }

    /// Where it listens by TLS.
    pub fn secure(&self) -> &[String] {
        &self.secure
    }

    /// How requests come to it.
    pub fn in_the_clear(&self, folder: &Path, findings: &mut Findings) -> InTheClear {
        match (self.secure.is_empty(), self.plain.is_empty()) {
            (true, _) => InTheClear::Always,
            (false, true) => InTheClear::Never,
            (false, false) if self.readable(folder, findings).is_empty() => InTheClear::Always,
            (false, false) => InTheClear::CanBeLed,
        }
    }

    fn places(&self) -> BTreeSet<String> {
        let all = self.plain.iter().chain(&self.secure);
        let mut places: BTreeSet<String> = all.map(|address| place_of(address)).collect();
        if places.is_empty() {
            places.insert("*:web".to_owned());
        }
        places
    }

    /// Those whose files are here: larder takes no listener without.
    fn readable(&self, folder: &Path, findings: &mut Findings) -> Vec<(PathBuf, PathBuf)> {
        let mut pairs = Vec::new();
        for (at, certificate) in self.certificates.iter().enumerate() {
            let key = self.keys.get(at).unwrap_or(certificate);
            let (certificate_file, key_file) = (folder.join(certificate.argument(0)), folder.join(key.argument(0)));
            let is_here = |path: &Path| std::fs::File::open(path).is_ok();
            match is_here(&certificate_file) && is_here(&key_file) {
                true => pairs.push((certificate_file, key_file)),
                false => findings.leave(certificate, "the files are not here: write tls = { cert, key } of [[listen]]"),
            }
        }
        pairs
    }
}

/// Does nginx ask the same of these servers for what none has a name for, whichever of their plain addresses it comes to?
pub fn have_one_default(all: &[&ServerListens]) -> bool {
    let default_at = |address: &String| {
        let says_so = all.iter().position(|listens| listens.default_at.contains(address));
        says_so.or_else(|| all.iter().position(|listens| listens.plain.contains(address)))
    };
    let defaults: BTreeSet<_> = all.iter().flat_map(|listens| &listens.plain).map(default_at).collect();
    defaults.len() <= 1
}

/// All addresses of a port are one place, and the two ports of the web one.
fn place_of(address: &str) -> String {
    let Some((host, port)) = address.rsplit_once(':').filter(|(host, _)| *host != "unix") else {
        return address.to_owned();
    };
    let host = if ["*", "0.0.0.0", "[::]"].contains(&host) { "*" } else { host };
    let port = if WEB_PORTS.contains(&port) { "web" } else { port };
    format!("{host}:{port}")
}

/// May one request come in at both of these places? One of them is all addresses of a port, or they are the same.
fn is_near(one: &str, other: &str) -> bool {
    let split = |place: &str| place.rsplit_once(':').map(|(host, port)| (host.to_owned(), port.to_owned()));
    match (split(one), split(other)) {
        (Some((a, a_port)), Some((b, b_port))) => {
            a_port == b_port && (a == b || a != "unix" && b != "unix" && (a == "*" || b == "*"))
        }
        _ => one == other,
    }
}

impl Listens {
    /// Finds out where some of the servers that listen at the same places are reached by TLS alone, and others in the clear.
    pub fn seal<'a>(&mut self, all: impl Iterator<Item = &'a ServerListens> + Clone) {
        let all = all.filter(|listens| !listens.is_nowhere());
        let places: BTreeSet<BTreeSet<String>> = all.clone().map(ServerListens::places).collect();
        let is_divided = |places: &BTreeSet<String>| {
            let mut here = all.clone().filter(|listens| listens.places() == *places);
            here.clone().any(|listens| listens.is_secure_alone()) && !here.all(|listens| listens.is_secure_alone())
        };
        self.sealed = places.into_iter().filter(is_divided).collect();
    }

    /// The servers that listen where this one does are carried over.
    pub fn begin_with(&mut self, listens: &ServerListens) {
        self.first = Some(listens.places());
    }

    /// Does a server answer in the clear alone, where others are reached by TLS alone?
    pub fn is_apart(&self, listens: &ServerListens) -> bool {
        listens.is_plain_alone() && !listens.is_nowhere() && self.sealed.contains(&listens.places())
    }

    /// Is that so where the servers listen that are carried over?
    fn is_sealed(&self) -> bool {
        self.first.as_ref().map_or(!self.sealed.is_empty(), |places| self.sealed.contains(places))
    }

    /// Is a server left out, for it answers in the clear alone where nothing is answered so? It would be shown where another one has to be.
    pub fn leaves_out(&self, listens: &ServerListens) -> bool {
        self.is_apart(listens) && self.first.as_ref() == Some(&listens.places())
    }

    /// Does a server listen where the first one does? An inner port of nginx's would be open to everybody.
    pub fn is_with(&self, listens: &ServerListens) -> bool {
        !listens.is_nowhere() && self.first.as_ref() == Some(&listens.places())
    }

    /// Does nginx never ask this server for what comes in where the first one listens?
    pub fn is_nowhere_near(&self, listens: &ServerListens) -> bool {
        let Some(first) = self.first.as_ref().filter(|_| !listens.is_nowhere()) else { return false };
        !first.iter().any(|one| listens.places().iter().any(|other| is_near(one, other)))
    }

    /// Where a server listens, larder does.
    pub fn listen(&mut self, server: &Directive, listens: &ServerListens, folder: &Path, findings: &mut Findings) {
        add(&mut self.plain, &listens.plain);
        if listens.plain.is_empty() && listens.secure.is_empty() {
            add(&mut self.plain, &["*:80".to_owned()]);
        }
        let certificates = listens.readable(folder, findings);
        if listens.is_secure() && certificates.is_empty() {
            return findings
                .leave(server, "it has no certificate here: nobody listens for it by TLS until you name one");
        }
        for address in &listens.secure {
            let known = self.secure.iter_mut().find(|known| known.address == *address);
            match known {
                Some(known) => {
                    known.only_newest &= listens.only_newest;
                    for pair in &certificates {
                        if !known.certificates.contains(pair) {
                            known.certificates.push(pair.clone());
                        }
                    }
                }
                None => self.secure.push(SecureListen {
                    address: address.clone(),
                    certificates: certificates.clone(),
                    only_newest: listens.only_newest,
                }),
            }
        }
    }

    /// A server that leads everything to TLS.
    pub fn leads_to_tls(&mut self, listens: &ServerListens) {
        if listens.is_nowhere() {
            return;
        }
        let usual = ["*:80".to_owned()];
        add(&mut self.redirecting, if listens.plain.is_empty() { &usual } else { &listens.plain });
    }

    /// Is all that a server answers in the clear led to TLS, because that is what another one of its listener does?
    pub fn is_led_to_tls(&self, listens: &ServerListens) -> bool {
        let is_led = |address: &String| self.is_sealed() || self.redirecting.contains(address);
        !self.secure.is_empty() && listens.plain.iter().any(is_led)
    }

    /// The keys of each `[[listen]]`. A listener of which one server leads to TLS leads all there: in the clear nobody is shown
    /// what has to be sealed.
    pub fn sections(&self) -> Vec<String> {
        let is_secure = |address: &String| self.secure.iter().any(|secure| secure.address == *address);
        let mut plain: Vec<&String> = Vec::new();
        for address in self.plain.iter().chain(&self.redirecting) {
            // Where one server has TLS all have it; and without TLS nobody may see what is reached by that alone.
            if self.is_sealed() && self.secure.is_empty() {
                break;
            }
            if !plain.contains(&address) && !is_secure(address) {
                plain.push(address);
            }
        }
        let mut sections = Vec::new();
        for address in plain {
            // Without TLS they would be led to nowhere.
            let leads = !self.secure.is_empty() && (self.is_sealed() || self.redirecting.contains(address));
            let mode = if leads { "\nmode = \"redirect\"" } else { "" };
            sections.push(format!("address = {}{mode}", quoted(address)));
        }
        for SecureListen { address, certificates, only_newest } in &self.secure {
            let list = |of: &dyn Fn(&(PathBuf, PathBuf)) -> String| {
                certificates.iter().map(|pair| quoted(&of(pair))).collect::<Vec<_>>().join(", ")
            };
            let (files, keys) =
                (list(&|pair| pair.0.display().to_string()), list(&|pair| pair.1.display().to_string()));
            let version = if *only_newest { ", min_version = \"1.3\"" } else { "" };
            let tls = format!("tls = {{ cert = [{files}], key = [{keys}]{version} }}");
            sections.push(format!("address = {}\n{tls}", quoted(address)));
        }
        sections
    }
}

fn add(to: &mut Vec<String>, addresses: &[String]) {
    for address in addresses {
        if !to.contains(address) {
            to.push(address.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn listens(lines: &[&str]) -> ServerListens {
        let (mut listens, mut findings) = (ServerListens::default(), Findings::default());
        let lines: Vec<Directive> = lines.iter().map(|line| directive(line)).collect();
        let everywhere = everywhere(&Directive { block: Some(lines.clone()), ..directive("server") });
        assert!(lines.iter().all(|line| listens.take(line, &everywhere, &mut findings)));
        listens
    }

    #[test]
    fn both_ports_of_the_web_are_one_place() {
        let check = |first: &[&str], second: &[&str], expect: bool| {
            let mut all = Listens::default();
            all.begin_with(&listens(first));
            assert!(all.is_with(&listens(first)));
            assert_eq!(all.is_with(&listens(second)), expect, "{first:?} {second:?}");
        };
        check(&["listen 80"], &["listen 443 ssl"], true);
        check(&["listen 80", "listen [::]:80"], &["listen *:80"], true);
        check(&[], &["listen 80"], true);
        check(&["listen 80"], &["listen 8080"], false);
        check(&["listen 80"], &["listen 127.0.0.1:80"], false);
        check(&["listen 80"], &["listen unix:/run/a.sock"], false);
    }

    #[test]
    fn each_port_has_a_default_of_its_own() {
        let check = |servers: &[&[&str]], expect: bool| {
            let all: Vec<ServerListens> = servers.iter().map(|lines| listens(lines)).collect();
            assert_eq!(have_one_default(&all.iter().collect::<Vec<_>>()), expect, "{servers:?}");
        };
        check(&[&["listen 80"], &["listen 80 default_server"]], true);
        check(&[&["listen 80", "listen 8080"], &["listen 80 default_server", "listen 8080"]], false);
        check(&[&["listen 80", "listen 8080"], &["listen 80", "listen 8080"]], true);
        check(&[&["listen 80"], &["listen 443 ssl default_server"]], true);
        check(&[&[]], true);
    }

    /// Who listens beside the first server at one of its addresses is asked there; who listens at others only is not.
    #[test]
    fn servers_at_other_ports_are_not_asked() {
        let check = |first: &[&str], second: &[&str], expect: bool| {
            let mut all = Listens::default();
            all.begin_with(&listens(first));
            assert_eq!(all.is_nowhere_near(&listens(second)), expect, "{first:?} {second:?}");
        };
        check(&["listen 80"], &["listen 8080"], true);
        check(&["listen 80"], &["listen unix:/run/a.sock"], true);
        check(&["listen 10.0.0.1:80"], &["listen 10.0.0.2:80"], true);
        check(&["listen 80"], &["listen 10.0.0.2:80"], false);
        check(&["listen 80"], &["listen 80", "listen 8080"], false);
        check(&["listen 8080"], &["listen 80", "listen 8080"], false);
        check(&["listen 80"], &["listen [::]:8080"], false);
        check(&["listen 80"], &["listen 8443 ssl"], true);
    }

    /// `ipv6only=on` is nginx's default; larder has no such listener, and IPv4 was not named. Nor does it look up a name.
    #[test]
    fn ipv6_alone_and_names_are_not_listened_at() {
        let made = |lines: &[&str]| {
            let mut all = Listens::default();
            all.begin_with(&listens(lines));
            let is_here = all.is_with(&listens(lines));
            if is_here {
                all.listen(&directive("server"), &listens(lines), Path::new("/"), &mut Findings::default());
            }
            (is_here, all.sections())
        };
        assert_eq!(made(&["listen [::]:80"]), (false, Vec::new()));
        assert_eq!(made(&["listen name.test:80"]), (false, Vec::new()));
        assert_eq!(made(&["listen name.test"]), (false, Vec::new()));
        let both = (true, vec!["address = \"*:80\"".to_owned()]);
        assert_eq!(made(&["listen 80", "listen [::]:80"]), both);
        assert_eq!(made(&["listen [::]:80 ipv6only=off"]), both);
        assert_eq!(made(&["listen [::]:8080", "listen 80"]), both);
        // What another server has at IPv4 is not what this one is asked for there.
        let mut all = Listens::default();
        all.begin_with(&listens(&["listen 80"]));
        let is_here = |lines: &[&str]| all.is_with(&listens(lines));
        assert!(is_here(&["listen 80"]) && !is_here(&["listen [::]:80 default_server ipv6only=on"]));
    }

    /// Else what is reached by TLS alone would be shown in the clear.
    #[test]
    fn nothing_is_answered_in_the_clear_beside_a_server_of_tls_alone() {
        let check = |first: &[&str], second: &[&str], expect: (bool, bool, bool)| {
            let mut all = Listens::default();
            let (first, second) = (listens(first), listens(second));
            all.seal([&first, &second].into_iter());
            if let Some(begins) = [&first, &second].into_iter().find(|listens| !all.is_apart(listens)) {
                all.begin_with(begins);
            }
            let left_out = (all.leaves_out(&first), all.leaves_out(&second));
            // Nobody has a certificate here.
            let sections = Listens { plain: vec!["*:80".to_owned()], ..all }.sections();
            assert_eq!((left_out.0, left_out.1, sections.is_empty()), expect, "{first:?} {second:?}");
        };
        check(&["listen 80"], &["listen 443 ssl"], (true, false, true));
        check(&["listen 443 ssl"], &[], (false, true, true));
        check(&["listen 80", "listen 443 ssl"], &["listen 443 ssl"], (false, false, true));
        check(&["listen 80", "listen 443 ssl"], &["listen 80"], (false, false, false));
        check(&["listen 80"], &["listen 8443 ssl"], (false, false, false));
    }

    #[test]
    fn certificates_that_are_here_are_carried_over() {
        let folder = std::env::temp_dir().join(format!("larder-listens-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        ["a.pem", "a.key"].iter().for_each(|name| std::fs::write(folder.join(name), "x").unwrap());
        let (mut all, mut findings) = (Listens::default(), Findings::default());
        let secure = ["listen 443 ssl", "ssl_certificate a.pem", "ssl_certificate_key a.key", "ssl_protocols TLSv1.3"];
        all.listen(&directive("server"), &listens(&secure), &folder, &mut findings);
        all.leads_to_tls(&listens(&["listen 80"]));
        let (pem, key) = (folder.join("a.pem"), folder.join("a.key"));
        assert_eq!(
            all.sections(),
            [
                "address = \"*:80\"\nmode = \"redirect\"".to_owned(),
                format!(
                    "address = \"*:443\"\ntls = {{ cert = [\"{}\"], key = [\"{}\"], min_version = \"1.3\" }}",
                    pem.display(),
                    key.display()
                ),
            ]
        );
        assert_eq!(findings.left_count(), 0);
        // One that answers beside one that leads away is led away, too.
        let plain = listens(&["listen 80", "listen 443"]);
        all.listen(&directive("server"), &plain, &folder, &mut findings);
        assert!(all.is_led_to_tls(&plain) && all.sections().len() == 2, "{:?}", all.sections());
        let mut none = Listens::default();
        let secure = ["listen 443 ssl", "ssl_certificate none.pem"];
        none.listen(&directive("server"), &listens(&secure), &folder, &mut findings);
        assert_eq!((none.sections(), findings.left_count()), (Vec::new(), 2));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
