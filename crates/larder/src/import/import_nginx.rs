//! `larder import nginx.conf`: the static and the proxied parts of an nginx configuration in, and what asks memcached, a
//! larder.toml out that serves the same paths with the same types, pages and bytes, and a list of what could not be carried
//! over.
//!
//! Files are read by `nginx_conf.rs`, locations by `nginx_tree.rs`, and one of them by `nginx_location.rs`, to whom it is proxied by
//! `nginx_upstream.rs`, which memcached it asks by `nginx_memcached.rs`. Routes are made of them in `nginx_routes.rs`, and the
//! file in `imported_toml.rs`. Here is the walk over servers, and what holds for all of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::import::import_findings::{self, Findings};
use crate::import::import_flags::ImportFlags;
use crate::import::imported_toml::{ImportedToml, Route};
use crate::import::nginx_conf::{self, Directive};
use crate::import::nginx_guards::{self, AccessRules};
use crate::import::nginx_location::{Level, guards, seconds};
use crate::import::nginx_memcached::Upstreams;
use crate::import::nginx_routes::ServerAnswers;
use crate::import::nginx_tree::{Tree, root_of};
use crate::import::nginx_upstream::Origins;

/// More files than this need more descriptors than most processes may have.
const OPEN_FILES_CARRIED_MAX: u64 = 8_192;

/// nginx takes no longer body unless it is told to.
const BODY_BYTES_USUAL: u64 = 1 << 20;

/// Directives outside of `http` that say how nginx runs, and not what it serves.
const OF_THE_PROCESS: [&str; 14] = [
    "user",
    "pid",
    "daemon",
    "master_process",
    "worker_priority",
    "worker_cpu_affinity",
    "worker_rlimit_nofile",
    "worker_shutdown_timeout",
    "error_log",
    "pcre_jit",
    "thread_pool",
    "timer_resolution",
    "lock_file",
    "load_module",
];

/// A file that is nginx's; `None`: it is something else.
pub fn import(flags: &ImportFlags, bytes: &[u8]) -> Option<ExitCode> {
    if !nginx_conf::is_nginx(&String::from_utf8_lossy(bytes)) {
        return None;
    }
    let done = nginx_conf::read(&flags.file).map(|conf| {
        let prefix = flags.prefix.clone().unwrap_or_else(|| usual_prefix(&flags.file));
        let prefix = std::path::absolute(&prefix).unwrap_or(prefix);
        let mut import = Import::default();
        import.carry(&conf.directives, &prefix, conf.absent.is_empty());
        conf.absent.iter().for_each(|include| import.findings.leave(include, "there is no such file"));
        let text = import.made.text(&import.origins, &flags.file);
        (import.findings, text)
    });
    Some(import_findings::finish(flags, done))
}

/// nginx's own place: where `conf/` is, if the file lies in there.
fn usual_prefix(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = std::path::absolute(folder).unwrap_or(folder.to_owned());
    match (folder.file_name().is_some_and(|name| name == "conf"), folder.parent()) {
        (true, Some(parent)) => parent.to_owned(),
        _ => folder,
    }
}

/// The walk over a configuration, and what came of it so far.
#[derive(Default)]
struct Import {
    findings: Findings,
    made: ImportedToml,
    origins: Origins,
    /// Where the first server in the clear listens, by [`place_of`].
    first_listens: Option<BTreeSet<String>>,
    /// client_max_body_size says so somewhere.
    bodies_are_unlimited: bool,
}

impl Import {
    fn carry(&mut self, directives: &[Directive], prefix: &Path, is_whole: bool) {
        let is_part = |directive: &Directive| matches!(directive.name.as_str(), "server" | "upstream");
        if let Some(first) = directives.iter().find(|directive| is_part(directive)) {
            // A site as packages bring it, which an http { } includes.
            let http = Directive {
                name: "http".to_owned(),
                arguments: Vec::new(),
                block: Some(directives.to_vec()),
                ..first.clone()
            };
            return self.http(&http, prefix, false);
        }
        for directive in directives {
            match directive.name.as_str() {
                "worker_processes" => match directive.argument(0).parse::<u32>() {
                    Ok(count) => self.made.top.push(format!("workers = {count}")),
                    Err(_) => self.findings.note(directive, "one worker for each core is what larder starts by itself"),
                },
                "events" => self.findings.note(directive, "connections are bounded by limits.connections_max"),
                "http" => self.http(directive, prefix, is_whole),
                name if OF_THE_PROCESS.contains(&name) => {
                    self.findings
                        .note(directive, "how nginx runs; larder has flags, and raises its own limit of files");
                }
                _ => self.findings.leave(directive, "larder has no setting that this becomes"),
            }
        }
    }

    fn http(&mut self, http: &Directive, prefix: &Path, is_whole: bool) {
        let mut level = Level::default();
        if !is_whole {
            level.trust_larder_types();
        }
        let (mut servers, mut is_guarded, mut rules) = (Vec::new(), false, AccessRules::default());
        let upstreams = Upstreams::read(http, &mut self.findings);
        let mut buffers: (u64, u64) = (1 << 10, 8 << 10);
        let mut buffers_count = None;
        for directive in http.children() {
            match directive.name.as_str() {
                "server" => servers.push(directive),
                "upstream" => self.origins.know(directive),
                "client_header_buffer_size" => buffers.0 = bytes(directive.argument(0)).unwrap_or(buffers.0),
                "large_client_header_buffers" => {
                    buffers.1 = bytes(directive.argument(1)).unwrap_or(buffers.1);
                    buffers_count = directive.argument(0).parse::<u64>().ok();
                }
                _ if rules.take(directive) => {}
                _ if guards(directive, &mut self.findings) => is_guarded = true,
                _ if self.limit(directive) || level.take(directive, prefix, &mut self.findings) => {}
                _ => self.findings.leave(directive, "larder has no setting that this becomes"),
            }
        }
        if !rules.admit_all() {
            self.findings.leave(http, "closed: larder cannot limit all servers to some clients");
        }
        if is_guarded || !rules.admit_all() {
            return self.made.add(Route::closed("/"), http, &mut self.findings);
        }
        if let Some(count) = buffers_count {
            // One line has to fit into one buffer, and all of them into all.
            let line = buffers.1.clamp(256, u64::from(u16::MAX));
            self.made.limits.push(format!("request_target_bytes_max = {line}"));
            self.made.limits.push(format!("request_field_bytes_max = {line}"));
            self.made
                .limits
                .push(format!("request_head_bytes_max = {}", (buffers.0 + count * buffers.1).clamp(512, 16 << 20)));
        }
        for (at, server) in servers.iter().enumerate() {
            self.server(server, at == 0, &level, &upstreams, prefix);
        }
        let has_limit = self.made.limits.iter().any(|limit| limit.starts_with("request_body_bytes_max"));
        if !self.origins.is_empty() && !has_limit && !self.bodies_are_unlimited {
            self.made.limits.push(format!("request_body_bytes_max = {BODY_BYTES_USUAL}"));
        }
    }

    /// What holds for all routes in larder. False: the directive is another one.
    fn limit(&mut self, directive: &Directive) -> bool {
        let first = directive.argument(0);
        let time = |key: &str| seconds(first).filter(|&s| s > 0).map(|seconds| format!("{key} = \"{seconds}s\""));
        let line = match directive.name.as_str() {
            "keepalive_timeout" => time("idle_timeout"),
            "client_header_timeout" => time("request_head_timeout"),
            "client_body_timeout" => time("request_body_timeout"),
            "send_timeout" => time("send_timeout"),
            "client_max_body_size" => match bytes(first) {
                Some(0) => {
                    self.bodies_are_unlimited = true;
                    return true;
                }
                size => size.map(|size| format!("request_body_bytes_max = {size}")),
            },
            "proxy_connect_timeout" => time("connect_timeout"),
            "proxy_read_timeout" => {
                self.made.limits.extend(time("first_byte_timeout"));
                time("between_bytes_timeout")
            }
            "open_file_cache_valid" => time("open_file_check_interval"),
            "open_file_cache" => {
                let max = directive.arguments.iter().find_map(|word| word.strip_prefix("max=")?.parse::<u64>().ok());
                self.findings.note(directive, "larder closes files by use, not by time (limits.open_files_max)");
                match max {
                    Some(max) => Some(format!("open_files_max = {}", max.min(OPEN_FILES_CARRIED_MAX))),
                    None => return true,
                }
            }
            "access_log" if first != "off" => {
                self.made.log = Some(first.to_owned());
                self.findings.note(directive, "lines are those of `combined`, with what larder adds behind them");
                return true;
            }
            _ => return false,
        };
        match line {
            Some(line) => self.made.limits.push(line),
            None => self.findings.leave(directive, "larder's setting cannot have this value"),
        }
        true
    }

    fn server(&mut self, server: &Directive, is_first: bool, http: &Level, upstreams: &Upstreams, prefix: &Path) {
        let (mut level, mut locations, mut names) = (Level::default(), Vec::new(), Vec::new());
        let (mut is_default, mut listens, mut is_guarded, mut gives_way) = (is_first, Vec::new(), false, false);
        let mut rules = AccessRules::default();
        for directive in server.children() {
            match directive.name.as_str() {
                "location" => locations.push(directive),
                "listen" => {
                    listens.push(directive);
                    is_default |= directive.arguments.iter().any(|word| word == "default_server" || word == "default");
                }
                "server_name" => names.extend(directive.arguments.iter().cloned()),
                _ if rules.take(directive) => {}
                _ if guards(directive, &mut self.findings) => {
                    gives_way = nginx_guards::leads_to_tls(directive);
                    is_guarded = true;
                }
                _ if level.take(directive, prefix, &mut self.findings) => {}
                _ if self.limit(directive) => self.findings.note(directive, "holds for all routes now"),
                _ => self.findings.leave(directive, "larder has no setting that this becomes"),
            }
        }
        if !rules.admit_all() {
            is_guarded = true;
            self.findings.leave(server, "closed: larder cannot limit a server to some clients");
        }
        let listens_here = self.listens_with_the_first(server, &listens);
        let hosts = match is_default && listens_here {
            true => Vec::new(),
            false => self.hosts(server, &names),
        };
        if !listens_here {
            is_default = false;
            (is_guarded, gives_way) = (true, true);
        }
        if !is_default && hosts.is_empty() {
            return self.findings.leave(server, "not carried over: none of its names can be a host");
        }
        if is_guarded {
            return self.add(ServerAnswers::nobody(gives_way), server, &hosts, prefix);
        }
        let level = level.within(http);
        let is_named = |location: &&Directive| location.argument(0).starts_with('@');
        let (named, locations): (Vec<_>, Vec<_>) = locations.into_iter().partition(is_named);
        let mut tree = Tree {
            findings: &mut self.findings,
            origins: &mut self.origins,
            upstreams,
            prefix,
            level: &level,
            named,
            root: root_of(server),
        };
        let answers = tree.read(server, &locations);
        self.add(answers, server, &hosts, prefix);
    }

    fn add(&mut self, answers: ServerAnswers, server: &Directive, hosts: &[String], prefix: &Path) {
        for route in answers.routes(server, hosts, prefix, &mut self.findings) {
            self.made.add(route, server, &mut self.findings);
        }
    }

    /// Does a server listen where the first one does? Routes know no listeners: what is answered for one is answered for all,
    /// and an inner port of nginx's would be open to everybody. By TLS alone nobody listens here.
    fn listens_with_the_first(&mut self, server: &Directive, listens: &[&Directive]) -> bool {
        let mut addresses: Vec<String> = listens.iter().filter_map(|listen| self.address_of(listen)).collect();
        if listens.is_empty() {
            addresses.push("*:80".to_owned());
        }
        let places = |addresses: &[String]| addresses.iter().map(|address| place_of(address)).collect::<BTreeSet<_>>();
        if addresses.is_empty() {
            self.findings.leave(server, "it listens by TLS alone: larder answers for it in the clear");
            return true;
        }
        match &self.first_listens {
            None => self.first_listens = Some(places(&addresses)),
            Some(first) if *first != places(&addresses) => {
                let why = "closed: it listens elsewhere than the first server, and routes know no listeners";
                self.findings.leave(server, why);
                return false;
            }
            _ => {}
        }
        for address in addresses {
            if !self.made.listeners.contains(&address) {
                self.made.listeners.push(address);
            }
        }
        true
    }

    fn address_of(&mut self, listen: &Directive) -> Option<String> {
        let first = listen.argument(0);
        if listen.arguments.iter().any(|word| matches!(word.as_str(), "ssl" | "http2" | "quic")) {
            self.findings.leave(listen, "larder listens for HTTP/1.1 without TLS only");
            return None;
        }
        Some(match first {
            unix if unix.starts_with("unix:") => unix.to_owned(),
            port if port.bytes().all(|b| b.is_ascii_digit()) => format!("*:{port}"),
            address if address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
                first.to_owned()
            }
            _ => format!("{first}:80"),
        })
    }

    fn hosts(&mut self, server: &Directive, names: &[String]) -> Vec<String> {
        let mut hosts = Vec::new();
        for name in names {
            match name.as_str() {
                "" | "_" => {}
                name if name.starts_with('~') || name.ends_with('*') || name.contains('$') => {
                    self.findings.leave(server, "a host cannot be a regex, nor end in a star");
                }
                name => match name.strip_prefix('.') {
                    Some(rest) => hosts.extend([rest.to_lowercase(), format!("*.{}", rest.to_lowercase())]),
                    None => hosts.push(name.to_lowercase()),
                },
            }
        }
        hosts
    }
}

/// All addresses of a port are one place.
fn place_of(address: &str) -> String {
    let wildcards = ["*:", "0.0.0.0:", "[::]:"];
    wildcards.iter().find_map(|any| address.strip_prefix(any)).map_or(address.to_owned(), |port| format!("*:{port}"))
}

/// `8m`, `2k`, `100`.
fn bytes(text: &str) -> Option<u64> {
    let (digits, factor) = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => (&text[..text.len() - 1], 1 << 10),
        b'm' => (&text[..text.len() - 1], 1 << 20),
        b'g' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}
