//! `larder import squid.conf`: what squid serves and whom, as an accelerator and as a forward proxy, in; a larder.toml out,
//! and a list of what could not be carried over.
//!
//! Files are read by `squid_conf.rs`; who may go where is in `squid_access.rs`. Here are ports, origins, memory and files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use cache::DiskFile;
use proxy::settings::ParentLogin;

use crate::import::ImportFlags;
use crate::import_findings::{self, Findings, quoted};
use crate::nginx_conf::Directive;
use crate::squid_access::{Acl, access, built_in};
use crate::squid_conf;

/// Directives that say how squid runs, and not what it serves.
const OF_THE_PROCESS: [&str; 28] = [
    "cache_log",
    "pid_filename",
    "coredump_dir",
    "cache_effective_user",
    "cache_effective_group",
    "cache_mgr",
    "logfile_rotate",
    "shutdown_lifetime",
    "max_filedescriptors",
    "max_filedesc",
    "hierarchy_stoplist",
    "icp_port",
    "htcp_port",
    "snmp_port",
    "pinger_enable",
    "netdb_filename",
    "ipcache_size",
    "ipcache_low",
    "ipcache_high",
    "fqdncache_size",
    "memory_pools",
    "memory_pools_limit",
    "buffered_logs",
    "cache_swap_low",
    "cache_swap_high",
    "half_closed_clients",
    "memory_replacement_policy",
    "cache_replacement_policy",
];

/// The lifetimes of squid's packaged file: what they mean larder does by itself.
const USUAL_PATTERNS: [&str; 5] =
    ["^ftp:", "^gopher:", "-i (/cgi-bin/|\\?) 0", "(Release|Packages(.gz)*)$", ". 0 20% 4320"];

/// A file that is squid's; `None`: it is something else.
pub fn import(flags: &ImportFlags, bytes: &[u8]) -> Option<ExitCode> {
    if !squid_conf::is_squid(&String::from_utf8_lossy(bytes)) {
        return None;
    }
    let done = squid_conf::read(&flags.file).map(|directives| {
        let mut import = Import::default();
        import.carry(&directives);
        let text = import.text(&flags.file);
        (import.findings, text)
    });
    Some(import_findings::finish(flags, done))
}

struct Peer {
    name: String,
    address: String,
    is_origin: bool,
    weight: Option<String>,
    connections_max: Option<String>,
    balance: Option<&'static str>,
    hosts: Vec<String>,
    /// Where name and password for it are to be written.
    login_file: Option<String>,
}

#[derive(Default)]
struct Import {
    findings: Findings,
    top: Vec<String>,
    /// Addresses, and whether they are a forward proxy's.
    listeners: Vec<(String, bool)>,
    peers: Vec<Peer>,
    acls: BTreeMap<String, Acl>,
    memory: Option<String>,
    /// Sections.
    disks: Vec<String>,
    object_bytes_max: Option<u64>,
    log: Option<String>,
    forward: Vec<String>,
}

impl Import {
    fn carry(&mut self, directives: &[Directive]) {
        self.acls = built_in();
        for directive in directives.iter().filter(|directive| directive.name == "acl") {
            let acl = self.acls.entry(directive.argument(0).to_owned()).or_default();
            acl.kind = directive.argument(1).to_owned();
            acl.values.extend(directive.arguments.iter().skip(2).filter(|value| !value.starts_with('-')).cloned());
        }
        for directive in directives {
            self.one(directive);
        }
        let rules: Vec<&Directive> = directives.iter().filter(|one| one.name == "http_access").collect();
        if self.listeners.iter().any(|(_, is_forward)| *is_forward) {
            let has_users = self.forward.iter().any(|line| line.starts_with("password_file"));
            let lines = access(&rules, &self.acls, has_users, &mut self.findings);
            self.forward.extend(lines);
        } else {
            for rule in rules {
                match (rule.argument(0), rule.argument(1)) {
                    ("allow", "all") | ("deny", "all") => {
                        self.findings.note(rule, "a site is for everybody who can reach the listener");
                    }
                    _ => self
                        .findings
                        .leave(rule, "a site is for everybody: larder has rules for the forward proxy alone"),
                }
            }
        }
    }

    fn one(&mut self, directive: &Directive) {
        let first = directive.argument(0);
        match directive.name.as_str() {
            "acl" | "http_access" => {}
            "http_port" => self.port(directive),
            "cache_peer" => self.peer(directive),
            "cache_peer_domain" => self.domain(directive, &directive.arguments[1.min(directive.arguments.len())..]),
            "cache_peer_access" => {
                let acl = self.acls.get(directive.argument(2)).filter(|acl| acl.kind == "dstdomain").cloned();
                match (directive.argument(1), directive.argument(2), acl) {
                    ("allow", "all", _) | ("deny", "all", _) => {}
                    ("allow", _, Some(acl)) if directive.arguments.len() == 3 => self.domain(directive, &acl.values),
                    _ => self.findings.leave(directive, "only hosts decide which origin is asked"),
                }
            }
            "visible_hostname" => self.top.push(format!("server_name = {}", quoted(first))),
            "workers" if first.parse::<u32>().is_ok_and(|count| count > 0) => {
                self.top.push(format!("workers = {first}"))
            }
            "cache_mem" => match bytes(&directive.arguments) {
                Some(size) => self.memory = Some(size.max(1 << 20).to_string()),
                None => self.findings.leave(directive, "no size"),
            },
            "maximum_object_size" | "maximum_object_size_in_memory" => match bytes(&directive.arguments) {
                Some(size) => {
                    self.object_bytes_max = self.object_bytes_max.max(Some(size));
                    self.findings.note(directive, "the larger of both holds, in memory and on disk");
                }
                None => self.findings.leave(directive, "no size"),
            },
            "cache_dir" => self.disk(directive),
            "access_log" => self.access_log(directive),
            "refresh_pattern" => match USUAL_PATTERNS
                .iter()
                .any(|usual| directive.arguments.join(" ").starts_with(usual))
            {
                true => self
                    .findings
                    .note(directive, "as packaged: without a lifetime of its own a response lives a tenth of its age"),
                false => self.findings.leave(directive, "lifetimes are the response's own, or a VCL's (beresp.ttl)"),
            },
            "never_direct" if directive.arguments == ["allow", "all"] => {
                self.forward.push("never_direct = true".to_owned())
            }
            "always_direct" => self.always_direct(directive),
            "auth_param" => self.password(directive),
            "collapsed_forwarding" if first == "on" => {
                self.findings.note(directive, "many who want one URL always cause one request");
            }
            "via" | "forwarded_for" | "client_persistent_connections" | "server_persistent_connections"
                if first == "on" =>
            {
                self.findings.note(directive, "so it is by itself");
            }
            name if OF_THE_PROCESS.contains(&name) => {
                self.findings.note(directive, "how squid runs; larder has flags, or nothing to be set");
            }
            "include" => self.findings.leave(directive, "there is no such file"),
            _ => self.findings.leave(directive, "larder has nothing of the kind, or says it elsewhere"),
        }
    }

    fn port(&mut self, directive: &Directive) {
        let first = directive.argument(0);
        let options = &directive.arguments[1.min(directive.arguments.len())..];
        let has = |names: &[&str]| options.iter().any(|option| names.contains(&option.as_str()));
        if has(&["intercept", "transparent", "tproxy", "ssl-bump"]) {
            return self.findings.leave(directive, "connections that were meant for somebody else are not taken");
        }
        let is_forward = !has(&["accel", "vhost", "vport"]);
        let address = match first.parse::<u16>() {
            Ok(port) => format!("*:{port}"),
            Err(_) => first.to_owned(),
        };
        for option in options {
            match option.as_str() {
                "accel" | "vhost" => {}
                option if option == "vport" || option.starts_with("vport=") => {
                    self.findings.note(directive, "the port of a URL is that of its Host field");
                }
                option if option.starts_with("name=") => {}
                _ => self.findings.note(directive, "larder does not have all of these options"),
            }
        }
        if is_forward {
            let why = "what has no public address is closed: forward.allow_destinations opens it";
            self.findings.note(directive, why);
        }
        self.listeners.push((address, is_forward));
    }

    fn peer(&mut self, directive: &Directive) {
        let (host, kind, port) = (directive.argument(0), directive.argument(1), directive.argument(2));
        if kind != "parent" || port.parse::<u16>().is_err() {
            return self.findings.leave(directive, "larder asks parents and origins, and no neighbours");
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
                self.findings.leave(directive, "an option that larder does not have for a peer");
                break;
            }
        }
        if !has("no-query") && directive.argument(3) != "0" {
            self.findings.note(directive, "nobody is asked by ICP what they have");
        }
        let name = value("name").unwrap_or_else(|| host.to_owned());
        let has_login = login_of(directive).is_some() && !has("originserver");
        match has_login {
            true => self.findings.leave(directive, "name and password belong into its login_file, as NAME:PASSWORD"),
            false if value("login").is_some() => {
                self.findings.leave(directive, "a parent is told one name and password, and an origin none");
            }
            false => {}
        }
        self.peers.push(Peer {
            login_file: has_login.then(|| format!("{name}.login")),
            name,
            address: format!("{host}:{port}"),
            is_origin: has("originserver"),
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

    fn domain(&mut self, directive: &Directive, domains: &[String]) {
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.name == directive.argument(0)) else {
            return self.findings.leave(directive, "there is no such peer");
        };
        for domain in domains {
            match domain.strip_prefix('.') {
                Some(rest) => peer.hosts.extend([rest.to_lowercase(), format!("*.{}", rest.to_lowercase())]),
                None => peer.hosts.push(domain.to_lowercase()),
            }
        }
    }

    fn access_log(&mut self, directive: &Directive) {
        let first = directive.argument(0);
        let path = first.rsplit_once(':').map_or(first, |(_, path)| path);
        match first {
            "none" => {}
            _ if path.starts_with('/') => {
                self.log = Some(path.to_owned());
                self.findings.note(directive, "lines are those of `combined`, with what larder adds behind them");
            }
            _ => self.findings.leave(directive, "the log is a file"),
        }
    }

    /// `cache_dir TYPE DIRECTORY MEGABYTES …`.
    fn disk(&mut self, directive: &Directive) {
        let (kind, folder) = (directive.argument(0), directive.argument(1));
        let mib = directive.argument(2).parse::<u64>().ok().and_then(|mib| mib.checked_mul(1 << 20));
        match mib {
            _ if kind == "null" => {}
            Some(bytes) if folder.starts_with('/') && bytes >= DiskFile::BYTES_MIN => {
                self.disks.push(format!("path = {}\nsize = {bytes}", quoted(folder)));
                self.findings.note(directive, "one file of that size; what squid has stored there is not read");
            }
            _ => self.findings.leave(directive, "a disk needs a directory and a size that something fits into"),
        }
    }

    fn always_direct(&mut self, directive: &Directive) {
        let acl = self.acls.get(directive.argument(1)).filter(|acl| acl.kind == "dstdomain");
        match (directive.argument(0), acl) {
            ("allow", Some(acl)) if directive.arguments.len() == 2 => {
                let names: Vec<String> = acl.values.iter().map(|name| quoted(name)).collect();
                self.forward.push(format!("always_direct = [{}]", names.join(", ")));
            }
            ("deny", _) if directive.argument(1) == "all" => {}
            _ => self.findings.leave(directive, "only names say who is asked directly"),
        }
    }

    fn password(&mut self, directive: &Directive) {
        match (directive.argument(0), directive.argument(1)) {
            ("basic", "program")
                if directive.argument(2).ends_with("basic_ncsa_auth") && directive.arguments.len() == 4 =>
            {
                self.forward.push(format!("password_file = {}", quoted(directive.argument(3))));
                self.findings.note(directive, "its hashes have to be bcrypt: htpasswd -B");
            }
            ("basic", "realm") => self.forward.push(format!("realm = {}", quoted(&directive.arguments[2..].join(" ")))),
            ("basic", "children" | "credentialsttl" | "casesensitive") => {
                self.findings.note(directive, "what was verified is known for five minutes");
            }
            _ => self.findings.leave(directive, "users are those of a file, by Basic authentication"),
        }
    }

    fn text(&mut self, file: &Path) -> String {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut out = format!("# Made from {name}.\n");
        let mut section = |name: &str, lines: &[String]| {
            if !lines.is_empty() {
                out.push_str(&format!("{name}{}\n", lines.join("\n")));
            }
        };
        section("", &self.top);
        for (address, is_forward) in &self.listeners {
            let mode = is_forward.then(|| "mode = \"forward\"".to_owned());
            let lines: Vec<String> = [format!("address = {}", quoted(address))].into_iter().chain(mode).collect();
            section("\n[[listen]]\n", &lines);
        }
        let origins: Vec<&Peer> = self.peers.iter().filter(|peer| peer.is_origin).collect();
        for (at, peer) in origins.iter().enumerate() {
            let hosts: Vec<String> = peer.hosts.iter().map(|host| quoted(host)).collect();
            let host = (!hosts.is_empty()).then(|| format!("host = [{}]", hosts.join(", ")));
            // Squid asks the first that is up; who stands behind it for no host of its own waits for it to fail.
            if host.is_none() && origins[..at].iter().any(|other| other.hosts.is_empty()) {
                continue;
            }
            let lines: Vec<String> = host.into_iter().chain([format!("origin = {}", quoted(&peer.name))]).collect();
            section("\n[[route]]\n", &lines);
            let equals = origins.iter().filter(|other| other.hosts == peer.hosts);
            let urls: Vec<String> = equals.map(|other| quoted(&format!("http://{}", other.address))).collect();
            let connections = peer.connections_max.as_ref().map(|max| format!("max_connections = {max}"));
            let lines: Vec<String> = [format!("urls = [{}]", urls.join(", "))].into_iter().chain(connections).collect();
            section(&format!("\n[origin.{}]\n", quoted(&peer.name)), &lines);
        }
        section("\n[forward]\n", &self.forward_lines());
        for peer in self.peers.iter().filter(|peer| !peer.is_origin) {
            let weight = peer.weight.as_ref().map(|weight| format!("weight = {weight}"));
            let login = peer.login_file.as_ref().map(|file| format!("login_file = {}", quoted(file)));
            let address = format!("address = {}", quoted(&peer.address));
            let lines: Vec<String> = [address].into_iter().chain(weight).chain(login).collect();
            section("\n[[forward.parent]]\n", &lines);
        }
        let size = self.memory.iter().map(|size| format!("size = {size}")).collect::<Vec<_>>();
        section("\n[memory]\n", &size);
        self.disks.iter().for_each(|disk| section("\n[[disk]]\n", std::slice::from_ref(disk)));
        let max = self.object_bytes_max.iter().map(|max| format!("object_bytes_max = {max}")).collect::<Vec<_>>();
        section("\n[limits]\n", &max);
        let log = self.log.iter().map(|path| format!("path = {}", quoted(path))).collect::<Vec<_>>();
        section("\n[log]\n", &log);
        out
    }

    fn forward_lines(&self) -> Vec<String> {
        let balance = self.peers.iter().filter(|peer| !peer.is_origin).find_map(|peer| peer.balance);
        let balance = balance.map(|balance| format!("balance = \"{balance}\""));
        self.forward.iter().cloned().chain(balance).collect()
    }
}

/// `login=NAME:PASSWORD`; `PASS`, `PASSTHRU` and a `*` for the client's own name are something else.
fn login_of(directive: &Directive) -> Option<ParentLogin> {
    let login = directive.arguments.iter().find_map(|word| word.strip_prefix("login="))?;
    ParentLogin::of(login).filter(|_| !login.starts_with('*'))
}

/// `4000 MB`, `512 KB`, `1 GB`, `100 bytes`: squid's are 1024s.
fn bytes(words: &[String]) -> Option<u64> {
    let number: u64 = words.first()?.parse().ok()?;
    let factor = match words.get(1).map(|unit| unit.to_ascii_lowercase()).as_deref() {
        None | Some("bytes") => 1,
        Some("kb") => 1 << 10,
        Some("mb") => 1 << 20,
        Some("gb") => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nginx_conf::Place;

    /// What becomes of a parent, and how much of it is left.
    fn check(line: &str, expect: &[&str], left: usize) {
        let mut words = line.split(' ').map(str::to_owned);
        let place = Place { file: "squid.conf".into(), line: 1 };
        let name = words.next().unwrap_or_default();
        let mut import = Import::default();
        import.peer(&Directive { name, arguments: words.collect(), block: None, place });
        let text = import.text(Path::new("squid.conf"));
        assert!(expect.iter().all(|line| text.lines().any(|found| found == *line)), "{line}: {text}");
        assert_eq!(text.contains("login_file"), expect.iter().any(|line| line.contains("login_file")), "{text}");
        assert_eq!(import.findings.left_count(), left, "{line}: {:?}", import.findings);
        assert!(!format!("{text}{:?}", import.findings).contains("secret"), "{:?}", import.findings);
    }

    #[test]
    fn a_cache_dir_is_a_disk() {
        let check = |line: &str, expect: &str, left: usize| {
            let place = Place { file: "squid.conf".into(), line: 1 };
            let arguments = line.split(' ').map(str::to_owned).collect();
            let mut import = Import::default();
            import.disk(&Directive { name: "cache_dir".to_owned(), arguments, block: None, place });
            let text = import.text(Path::new("squid.conf"));
            assert_eq!(text.split_once("[[disk]]\n").map_or("", |(_, disk)| disk), expect, "{line}");
            assert_eq!(import.findings.left_count(), left, "{line}");
        };
        check("aufs /srv/squid_cache 20480 16 256", "path = \"/srv/squid_cache\"\nsize = 21474836480\n", 0);
        check("rock /srv/rock 100 max-size=32768", "path = \"/srv/rock\"\nsize = 104857600\n", 0);
        check("null /tmp", "", 0);
        check("ufs /srv/c 1 16 256", "", 1);
        check("ufs /srv/c", "", 1);
    }

    #[test]
    fn a_parent_has_a_file_for_its_login_and_the_password_is_never_said() {
        let parent = "cache_peer p.test parent 3128 0 no-query";
        let address = "address = \"p.test:3128\"";
        check(parent, &["[[forward.parent]]", address], 0);
        let own = "login_file = \"up.login\"";
        check(&format!("{parent} name=up login=ann:secret weight=2"), &[address, "weight = 2", own], 1);
        for other in ["PASS", "PASSTHRU", "*:secret", "NEGOTIATE", "secret"] {
            check(&format!("{parent} login={other}"), &[address], 1);
        }
        let origin = "cache_peer o.test parent 80 0 no-query originserver";
        check(&format!("{origin} login=ann:secret"), &["urls = [\"http://o.test:80\"]"], 1);
    }
}
