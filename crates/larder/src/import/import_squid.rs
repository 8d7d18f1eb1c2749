//! `larder import squid.conf`: what squid serves and whom, as an accelerator and as a forward proxy, in; a larder.toml out,
//! and a list of what could not be carried over.
//!
//! Files are read by `squid_conf.rs`; who may go where through the proxy is in `squid_access.rs`, who may come to sites in
//! `squid_sites.rs`, and whom squid asks in `squid_peers.rs`. Here are ports, memory and files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cache::DiskFile;

use crate::import::exact_networks::make_exact;
use crate::import::import_findings::{self, Findings, quoted};
use crate::import::import_flags::ImportFlags;
use crate::import::nginx_conf::Directive;
use crate::import::squid_access::{Acl, access, built_in, purge_from};
use crate::import::squid_conf;
use crate::import::squid_peers::{Peers, SiteGuards};
use crate::import::squid_sites::{OTHER_RULES, SiteRules, is_shut_by_others};
use crate::import::squid_words::{ImportedWords, SquidWords};

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

/// Is a port an accelerator's?
fn is_of_sites(port: &Directive) -> bool {
    port.arguments.iter().skip(1).any(|option| matches!(option.as_str(), "accel" | "vhost" | "vport"))
}

pub fn import(flags: &ImportFlags) -> ExitCode {
    let done = squid_conf::read(&flags.file).map(|mut directives| {
        let folder = flags.file.parent().unwrap_or(Path::new(""));
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let mut import = Import { folder, ..Import::default() };
        make_exact(&mut directives, &mut import.findings);
        import.carry(&directives);
        let text = import.text(&flags.file);
        (import.findings, text)
    });
    import_findings::finish(flags, done)
}

#[derive(Default)]
struct Import {
    findings: Findings,
    top: Vec<String>,
    /// Addresses, and whether they are a forward proxy's.
    listeners: Vec<(String, bool)>,
    peers: Peers,
    words: SquidWords,
    route_words: ImportedWords,
    acls: BTreeMap<String, Acl>,
    guards: SiteGuards,
    /// Where relative names begin.
    folder: PathBuf,
    memory: Option<String>,
    /// Sections.
    disks: Vec<String>,
    object_bytes_max: Option<u64>,
    log: Option<String>,
    forward: Vec<String>,
    /// Networks, as values of a key.
    purge_from: Vec<String>,
}

impl Import {
    fn carry(&mut self, directives: &[Directive]) {
        for directive in directives.iter().filter(|directive| directive.name == "acl") {
            let acl = self.acls.entry(directive.argument(0).to_owned()).or_default();
            acl.kind = directive.argument(1).to_owned();
            acl.values.extend(directive.arguments.iter().skip(2).filter(|value| !value.starts_with('-')).cloned());
        }
        // Lines of one name add up; what says anew what a name of squid's own means says all of it.
        for (name, acl) in built_in() {
            self.acls.entry(name.to_owned()).or_insert(acl);
        }
        for directive in directives {
            self.one(directive);
        }
        self.peers.part_hosts(&mut self.findings);
        let rules: Vec<&Directive> = directives.iter().filter(|one| one.name == "http_access").collect();
        self.purge_from = purge_from(&rules, &self.acls);
        let is_forward = self.listeners.iter().any(|(_, is_forward)| *is_forward);
        self.route_words = self.words.for_routes(is_forward, &mut self.findings);
        let is_shut = is_shut_by_others(directives, &mut self.findings);
        if is_forward {
            let has_users = self.forward.iter().any(|line| line.starts_with("password_file"));
            let mut lines = access(&rules, &self.acls, has_users, &mut self.findings);
            if is_shut {
                lines.retain(|line| !line.starts_with("allow_clients"));
                lines.insert(0, "allow_clients = []".to_owned());
            }
            self.forward.extend(lines);
        }
        let mut sites = SiteRules::new(&rules, &self.acls, is_shut);
        let hosts: Vec<Vec<String>> = self.peers.hosts_of_origins().map(<[String]>::to_vec).collect();
        self.guards = hosts.into_iter().map(|hosts| (hosts.clone(), sites.guard(&hosts))).collect();
        // What is said of nobody's routes is said of none.
        let origin = directives.iter().find(|one| one.name == "cache_peer");
        if let Some(origin) = origin.filter(|_| !self.guards.is_empty()) {
            sites.say(origin, &mut self.findings);
        } else if !is_forward {
            rules.iter().for_each(|rule| self.findings.note(rule, "no route is made that it could be about"));
        }
    }

    fn one(&mut self, directive: &Directive) {
        let first = directive.argument(0);
        match directive.name.as_str() {
            "acl" | "http_access" => {}
            name if OTHER_RULES.contains(&name) => {}
            "http_port" => self.port(directive),
            "cache_peer" => self.peers.take(directive, &mut self.findings),
            "cache_peer_domain" => {
                let domains = &directive.arguments[1.min(directive.arguments.len())..];
                self.peers.domain(directive, domains, &mut self.findings);
            }
            "cache_peer_access" => self.peers.access(directive, &self.acls, &mut self.findings),
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
            _ if self.words.take(directive) => {}
            _ => self.findings.leave(directive, "larder has no setting that this becomes"),
        }
    }

    fn port(&mut self, directive: &Directive) {
        let first = directive.argument(0);
        let options = &directive.arguments[1.min(directive.arguments.len())..];
        let has = |names: &[&str]| options.iter().any(|option| names.contains(&option.as_str()));
        if has(&["intercept", "transparent", "tproxy", "ssl-bump"]) {
            return self.findings.leave(directive, "connections that were meant for somebody else are not taken");
        }
        let is_forward = !is_of_sites(directive);
        let address = match first.parse::<u16>() {
            Ok(port) => format!("*:{port}"),
            Err(_) if first.parse::<std::net::SocketAddr>().is_ok() => first.to_owned(),
            Err(_) => {
                let why = "nobody listens: larder listens at addresses, and looks no name up for that";
                return self.findings.leave(directive, why);
            }
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
                let file = self.folder.join(directive.argument(3)).display().to_string();
                self.forward.push(format!("password_file = {}", quoted(&file)));
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
        for (heading, lines) in self.peers.origins(&self.route_words, &self.guards) {
            section(&heading, &lines);
        }
        section("\n[forward]\n", &self.forward_lines());
        // Without it this machine may.
        let purgers = self.purge_from.iter().map(|network| quoted(network)).collect::<Vec<_>>().join(", ");
        section("\n[policy]\n", &[format!("purge_from = [{purgers}]")]);
        for lines in self.peers.parents() {
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
        let balance = self.peers.balance().map(|balance| format!("balance = \"{balance}\""));
        self.forward.iter().cloned().chain(balance).collect()
    }
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
    use crate::import::nginx_conf::Place;

    /// What becomes of a parent, and how much of it is left.
    fn check(line: &str, expect: &[&str], left: usize) {
        let mut words = line.split(' ').map(str::to_owned);
        let place = Place { file: "squid.conf".into(), line: 1 };
        let name = words.next().unwrap_or_default();
        let mut import = Import::default();
        import.peers.take(&Directive { name, arguments: words.collect(), block: None, place }, &mut import.findings);
        let text = import.text(Path::new("squid.conf"));
        assert!(expect.iter().all(|line| text.lines().any(|found| found == *line)), "{line}: {text}");
        assert_eq!(text.contains("login_file"), expect.iter().any(|line| line.contains("login_file")), "{text}");
        assert_eq!(import.findings.left_count(), left, "{line}: {:?}", import.findings);
        assert!(!format!("{text}{:?}", import.findings).contains("secret"), "{:?}", import.findings);
    }

    /// A whole file: what comes of it, which larder takes, and how much is left.
    fn carried(lines: &[&str]) -> (String, usize) {
        let mut import = Import::default();
        let directive = |(at, line): (usize, &&str)| {
            let mut words = line.split(' ').map(str::to_owned);
            let place = Place { file: "squid.conf".into(), line: at + 1 };
            Directive { name: words.next().unwrap_or_default(), arguments: words.collect(), block: None, place }
        };
        import.carry(&lines.iter().enumerate().map(directive).collect::<Vec<_>>());
        let text = import.text(Path::new("squid.conf"));
        let complaints = crate::config::read(&text).err().unwrap_or_default();
        assert!(complaints.is_empty(), "{text}: {:?}", complaints[0].what);
        (text, import.findings.left_count())
    }

    #[test]
    fn a_parent_is_asked_for_all_hosts_or_that_is_said() {
        let start = ["http_port 3128", "acl in dstdomain .in.test", "cache_peer p.test parent 3128 0 no-query"];
        for (access, expect) in [
            (&["cache_peer_access p.test allow in"][..], 1),
            (&["cache_peer_access p.test allow in", "cache_peer_access p.test deny all"], 2),
            (&["cache_peer_access p.test deny all"], 1),
            (&["cache_peer_access p.test allow all"], 0),
            (&["cache_peer_domain p.test in.test"], 1),
        ] {
            let (text, left) = carried(&[&start[..], access].concat());
            assert!(left == expect && text.contains("address = \"p.test:3128\""), "{access:?} {left}: {text}");
        }
    }

    #[test]
    fn origins_of_the_same_hosts_are_one() {
        let start = [
            "http_port 80 accel vhost",
            "http_access allow all",
            "acl in dstdomain a.test b.test",
            "acl out dstdomain b.test c.test",
        ];
        let peer = |name: &str| format!("cache_peer {name} parent 80 0 no-query originserver");
        let (one, two) = (peer("10.0.0.1"), peer("10.0.0.2"));
        let rules = |first: &str, second: &str| {
            let first = format!("cache_peer_access 10.0.0.1 allow {first}");
            let second = format!("cache_peer_access 10.0.0.2 allow {second}");
            let end = ["cache_peer_access 10.0.0.1 deny all", "cache_peer_access 10.0.0.2 deny all"];
            carried(&[&start[..], &[&one, &two, &first, &second], &end[..]].concat())
        };
        let (text, left) = rules("in", "in");
        assert_eq!((text.matches("[[route]]").count(), left), (1, 0), "{text}");
        assert!(text.contains("urls = [\"http://10.0.0.1:80\", \"http://10.0.0.2:80\"]"), "{text}");
        // Of hosts that both have, the first has them.
        let (text, left) = rules("in", "out");
        assert_eq!((text.matches("[[route]]").count(), left), (2, 1), "{text}");
        assert!(text.contains("host = [\"a.test\", \"b.test\"]\n") && text.contains("host = [\"c.test\"]\n"), "{text}");
        // None for whom it is asked.
        let (text, left) = carried(&[start[0], &one, "cache_peer_access 10.0.0.1 deny all"]);
        assert!(left == 1 && !text.contains("[[route]]"), "{left}: {text}");
    }

    /// The first that is there, unless something is said of it.
    #[test]
    fn origins_share_what_is_asked_as_peers_do() {
        let start = [
            "http_port 80 accel vhost",
            "http_access allow all",
            "refresh_pattern \\.css$ 60 20% 120",
            "refresh_pattern . 0 20% 4320",
        ];
        let peer = |name: &str, options: &str| format!("cache_peer {name} parent 80 0 no-query originserver {options}");
        for (first, second, urls, lines) in [
            ("weight=3", "", "\"http://10.0.0.1:80\", \"http://10.0.0.2:80\"", "balance = \"first\""),
            ("round-robin weight=3", "round-robin", "\"http://10.0.0.1:80 weight=3\", \"http://10.0.0.2:80\"", ""),
            (
                "sourcehash",
                "sourcehash",
                "\"http://10.0.0.1:80\", \"http://10.0.0.2:80\"",
                "balance = \"hash\"\nhash = \"client\"",
            ),
            (
                "carp weight=2",
                "carp",
                "\"http://10.0.0.1:80 weight=2\", \"http://10.0.0.2:80\"",
                "balance = \"hash\"\nhash = \"url\"",
            ),
        ] {
            let (one, two) = (peer("10.0.0.1", first), peer("10.0.0.2", second));
            let (text, left) =
                carried(&[&start[..], &[&one, &two]].concat().iter().map(|line| line.trim_end()).collect::<Vec<_>>());
            assert!(left == 0 && text.contains(&format!("urls = [{urls}]\n{lines}")), "{first} {left}: {text}");
            assert!(text.contains("path_pattern = '\\.css$'\norigin = \"10.0.0.1\"\nttl = \"60m\""), "{text}");
        }
        let (_, left) = carried(&[start[0], start[1], &peer("10.0.0.1", "userhash"), &peer("10.0.0.2", "weight=0")]);
        assert_eq!(left, 2);
    }

    #[test]
    fn what_squid_defines_itself_may_be_defined_again() {
        let (text, left) = carried(&[
            "http_port 3128",
            "acl all src 0.0.0.0/0.0.0.0",
            "acl manager proto cache_object",
            "acl localhost src 127.0.0.1/255.255.255.255",
            "acl CONNECT method CONNECT",
            "acl SSL_ports port 443",
            "http_access deny manager",
            "http_access deny CONNECT !SSL_ports",
            "http_access allow localhost",
            "http_access deny all",
        ]);
        assert_eq!(left, 0, "{text}");
        assert!(text.contains("allow_clients = [\"127.0.0.1/32\"]\nconnect_ports = [443]\n"), "{text}");
        let (text, left) = carried(&["http_port 3128", "acl all src all", "http_access deny all"]);
        assert!(left == 0 && text.contains("allow_clients = []"), "{text}");
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

    /// Squid asks its rules of an accelerator, too.
    #[test]
    fn an_accelerator_is_no_more_open_than_its_rules() {
        let start = [
            "http_port 80 accel vhost",
            "acl localnet src 10.0.0.0/8",
            "acl admin urlpath_regex ^/admin",
            "acl in dstdomain a.test",
            "cache_peer 10.0.0.1 parent 80 0 no-query originserver",
        ];
        let (open, closed, local) = ("origin = \"10.0.0.1\"\n\n", "closed = true", "allow = [\"10.0.0.0/8\"]");
        let (of_host, hosts) = ("cache_peer_access 10.0.0.1 allow in", "host = [\"a.test\"]");
        for (lines, expect, left) in [
            (&["http_access allow all"][..], open, 0),
            (&["http_access allow localnet", "http_access deny all"], local, 0),
            (&["http_access deny admin !localnet", "http_access allow localnet", "http_access deny all"], closed, 1),
            (&["http_access deny manager", "http_access allow all"], open, 0),
            (&["http_access allow in", "http_access deny all", of_host], hosts, 0),
            (&["http_access allow in", "http_access deny all"], closed, 1),
            (&[], closed, 1),
            (&["http_access allow all", "http_reply_access deny admin", "http_reply_access allow all"], closed, 2),
            (&["http_access allow all", "miss_access allow localnet"], closed, 1),
            (&["http_access allow all", "adapted_http_access deny all"], closed, 1),
            (&["http_access allow all", "http_reply_access allow all"], open, 0),
        ] {
            let (text, found) = carried(&[&start[..], lines].concat());
            assert!(found == left && text.contains(expect), "{lines:?} {found}: {text}");
            assert_eq!(text.contains("closed = true"), expect == closed, "{lines:?}: {text}");
        }
    }

    /// A forward proxy has no such rules beside those on clients.
    #[test]
    fn other_rules_that_keep_people_out_close_a_forward_proxy() {
        let start = ["http_port 3128", "acl here src 10.0.0.0/8", "acl tls port 443", "http_access deny CONNECT !tls"];
        let with = |line| carried(&[&start[..], &["http_access allow here", "http_access deny all", line]].concat());
        for line in ["miss_access deny here", "http_reply_access deny all", "adapted_http_access allow here"] {
            let (text, left) = with(line);
            assert!(left == 1 && text.contains("allow_clients = []"), "{line} {left}: {text}");
        }
        let (text, left) = with("miss_access allow all");
        assert!(left == 0 && text.contains("allow_clients = [\"10.0.0.0/8\"]"), "{left}: {text}");
    }

    /// Relative names of the new file begin at its own folder.
    #[test]
    fn the_password_file_is_where_it_was() {
        let place = Place { file: "squid.conf".into(), line: 1 };
        let arguments = "basic program /lib/basic_ncsa_auth users".split(' ').map(str::to_owned).collect();
        let mut import = Import { folder: PathBuf::from("/etc/squid"), ..Import::default() };
        import.password(&Directive { name: "auth_param".to_owned(), arguments, block: None, place });
        assert_eq!(import.forward, ["password_file = \"/etc/squid/users\""]);
    }

    #[test]
    fn a_port_at_no_address_is_listed() {
        let (text, left) = carried(&["http_port ${GATEWAY_IP}:3128", "acl all src all", "http_access deny all"]);
        assert!(left >= 1 && !text.contains("GATEWAY"), "{text}");
        let (text, _) = carried(&["http_port 10.0.0.1:3128", "acl all src all", "http_access deny all"]);
        assert!(text.contains("10.0.0.1:3128"), "{text}");
    }

    #[test]
    fn who_may_purge_is_who_a_rule_lets() {
        let purgers = |lines: &[&str]| {
            let (text, _) =
                carried(&[&["http_port 3128", "acl purge method PURGE", "acl here src 192.0.2.0/24"], lines].concat());
            text.lines().find(|line| line.starts_with("purge_from")).map(str::to_owned)
        };
        for (lines, expect) in [
            (&["http_access allow all"][..], "purge_from = []"),
            (&["http_access allow purge here", "http_access deny purge"], "purge_from = [\"192.0.2.0/24\"]"),
            (&["http_access deny purge here", "http_access allow purge localhost"], "purge_from = []"),
            (&["http_access deny all", "http_access allow purge here"], "purge_from = []"),
            (&["http_access deny purge", "http_access allow purge here"], "purge_from = []"),
            (&["http_access deny here", "http_access allow purge here"], "purge_from = []"),
            (
                &["http_access deny manager", "http_access deny CONNECT here", "http_access allow purge here"],
                "purge_from = [\"192.0.2.0/24\"]",
            ),
        ] {
            assert_eq!(purgers(lines).as_deref(), Some(expect), "{lines:?}");
        }
    }
}
