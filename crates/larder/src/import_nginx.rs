//! `larder import nginx.conf`: the static and the proxied parts of an nginx configuration in, and what asks memcached, a
//! larder.toml out that serves the same paths with the same types, pages and bytes, and a list of what could not be carried
//! over.
//!
//! Files are read by `nginx_conf.rs`; one location becomes one route in `nginx_location.rs`, to whom it is proxied in
//! `nginx_upstream.rs`, which memcached it asks in `nginx_memcached.rs`. Here are servers, what holds
//! for all of them, and what is said of it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::import::ImportFlags;
use crate::import_findings::{self, Findings, quoted};
use crate::nginx_conf::{self, Directive};
use crate::nginx_location::{Level, Location, guards, seconds};
use crate::nginx_memcached::Upstreams;
use crate::nginx_upstream::Origins;

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
        let text = import.text(&flags.file);
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

/// The larder.toml that is being made.
#[derive(Default)]
struct Import {
    findings: Findings,
    /// Keys above all sections.
    top: Vec<String>,
    listeners: Vec<String>,
    routes: Vec<Vec<String>>,
    limits: Vec<String>,
    origins: Origins,
    /// client_max_body_size says so somewhere.
    bodies_are_unlimited: bool,
    log: Option<String>,
}

/// A route that is being made.
struct Carried {
    path: String,
    /// Its keys, but for path, host and pages.
    lines: Vec<String>,
    /// Statuses and paths.
    pages: Vec<(String, String)>,
    has_files: bool,
}

impl Carried {
    /// For what nginx keeps people out of, or answers otherwise: the route around it would show its files.
    fn closed(path: &str) -> Carried {
        let comment = "# Not carried over: nobody is answered here, with 403.".to_owned();
        let lines = vec![comment, "stub_status = true".to_owned(), "allow_from = []".to_owned()];
        Carried { path: path.to_owned(), lines, pages: Vec::new(), has_files: false }
    }
}

/// Names with a dot in front are forbidden, in one of the ways in which that is usually written.
fn is_dotfile_guard(location: &Directive) -> bool {
    let is_regex = location.argument(0).starts_with('~') && location.argument(1).starts_with("/\\.");
    let forbids = |directive: &Directive| {
        matches!((directive.name.as_str(), directive.argument(0)), ("deny", "all") | ("return", "403" | "404"))
    };
    is_regex && location.children().iter().any(forbids)
}

/// Does it ask others for what begins with a dot, where a guard of such names stands in front? By `^~` nginx looks at no
/// regex, and so at none that guards.
fn passes_dotfiles_on(location: &Directive) -> bool {
    let passes =
        |directive: &Directive| matches!(directive.name.as_str(), "proxy_pass" | "memc_pass" | "memcached_pass");
    location.argument(0) != "^~" && location.children().iter().any(passes)
}

impl Import {
    fn carry(&mut self, directives: &[Directive], prefix: &Path, is_whole: bool) {
        for directive in directives {
            match directive.name.as_str() {
                "worker_processes" => match directive.argument(0).parse::<u32>() {
                    Ok(count) => self.top.push(format!("workers = {count}")),
                    Err(_) => self.findings.note(directive, "one worker for each core is what larder starts by itself"),
                },
                "events" => self.findings.note(directive, "connections are bounded by limits.connections_max"),
                "http" => self.http(directive, prefix, is_whole),
                name if OF_THE_PROCESS.contains(&name) => {
                    self.findings
                        .note(directive, "how nginx runs; larder has flags, and raises its own limit of files");
                }
                _ => self.findings.leave(directive, "larder has nothing of the kind"),
            }
        }
    }

    fn http(&mut self, http: &Directive, prefix: &Path, is_whole: bool) {
        let mut level = Level::default();
        if !is_whole {
            level.trust_larder_types();
        }
        let (mut servers, mut is_guarded) = (Vec::new(), false);
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
                _ if guards(directive, &mut self.findings) => is_guarded = true,
                _ if self.limit(directive) || level.take(directive, prefix, &mut self.findings) => {}
                _ => self.findings.leave(directive, "larder has nothing of the kind, or says it elsewhere"),
            }
        }
        if is_guarded {
            return;
        }
        if let Some(count) = buffers_count {
            // One line has to fit into one buffer, and all of them into all.
            let line = buffers.1.clamp(256, u64::from(u16::MAX));
            self.limits.push(format!("request_target_bytes_max = {line}"));
            self.limits.push(format!("request_field_bytes_max = {line}"));
            self.limits
                .push(format!("request_head_bytes_max = {}", (buffers.0 + count * buffers.1).clamp(512, 16 << 20)));
        }
        for (at, server) in servers.iter().enumerate() {
            self.server(server, at == 0, &level, &upstreams, prefix);
        }
        let has_limit = self.limits.iter().any(|limit| limit.starts_with("request_body_bytes_max"));
        if !self.origins.is_empty() && !has_limit && !self.bodies_are_unlimited {
            self.limits.push(format!("request_body_bytes_max = {BODY_BYTES_USUAL}"));
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
                self.limits.extend(time("first_byte_timeout"));
                time("between_bytes_timeout")
            }
            "open_file_cache_valid" => time("open_file_check_interval"),
            "open_file_cache" => {
                let max = directive.arguments.iter().find_map(|word| word.strip_prefix("max=")?.parse::<u64>().ok());
                self.findings.note(directive, "what is in the way of others goes, by use and not by time");
                match max {
                    Some(max) => Some(format!("open_files_max = {}", max.min(OPEN_FILES_CARRIED_MAX))),
                    None => return true,
                }
            }
            "access_log" if first != "off" => {
                self.log = Some(first.to_owned());
                self.findings.note(directive, "lines are those of `combined`, with what larder adds behind them");
                return true;
            }
            _ => return false,
        };
        match line {
            Some(line) => self.limits.push(line),
            None => self.findings.leave(directive, "a value that larder does not have"),
        }
        true
    }

    fn server(&mut self, server: &Directive, is_first: bool, http: &Level, upstreams: &Upstreams, prefix: &Path) {
        let (mut level, mut locations, mut names) = (Level::default(), Vec::new(), Vec::new());
        let (mut is_default, mut listens, mut is_guarded) = (is_first, false, false);
        for directive in server.children() {
            match directive.name.as_str() {
                "location" => locations.push(directive),
                "listen" => {
                    listens = true;
                    is_default |= directive.arguments.iter().any(|word| word == "default_server" || word == "default");
                    self.listen(directive);
                }
                "server_name" => names.extend(directive.arguments.iter().cloned()),
                _ if guards(directive, &mut self.findings) => is_guarded = true,
                _ if level.take(directive, prefix, &mut self.findings) => {}
                _ if self.limit(directive) => self.findings.note(directive, "holds for all routes now"),
                _ => self.findings.leave(directive, "larder has nothing of the kind, or says it elsewhere"),
            }
        }
        if !listens {
            self.listeners.push("*:80".to_owned());
        }
        let hosts = match is_default {
            true => Vec::new(),
            false => self.hosts(server, &names),
        };
        if !is_default && hosts.is_empty() {
            return self.findings.leave(server, "a server without a name that a host could have");
        }
        let level = level.within(http);
        let hides_dotfiles = locations.iter().any(|location| is_dotfile_guard(location));
        let mut routes = Vec::new();
        let is_all = |location: &Directive| location.arguments == ["/"] || location.arguments == ["^~", "/"];
        if !locations.iter().any(|location| is_all(location)) {
            let (lines, pages) = (level.root_lines(prefix, None, hides_dotfiles), level.error_pages().to_vec());
            routes.push(Carried { path: "/".to_owned(), lines, pages, has_files: true });
        }
        let are_shut = hides_dotfiles && locations.iter().any(|location| passes_dotfiles_on(location));
        for block in locations {
            if is_dotfile_guard(block) {
                match are_shut {
                    true => {
                        self.findings.leave(block, "it hides files alone: locations that pass requests on are shut")
                    }
                    false => self.findings.note(block, "what begins with a dot is hidden, but for /.well-known/"),
                }
                continue;
            }
            routes.extend(self.location(block, &level, upstreams, prefix, hides_dotfiles));
        }
        if is_guarded {
            routes = vec![Carried::closed("/")];
        }
        // A page belongs to the route that it would belong to if it were asked for.
        let has_root = |page: &str| {
            let fits = |path: &str| page == path || path.ends_with('/') && page.starts_with(path);
            let fitting = routes.iter().filter(|route| fits(&route.path));
            fitting.max_by_key(|route| route.path.len()).is_some_and(|route| route.has_files)
        };
        for Carried { path, lines, pages, .. } in &routes {
            let mut route = vec![format!("path = {}", quoted(path))];
            if !hosts.is_empty() {
                let hosts: Vec<String> = hosts.iter().map(|host| quoted(host)).collect();
                route.push(format!("host = [{}]", hosts.join(", ")));
            }
            route.extend(lines.iter().cloned());
            let pages: Vec<String> = pages
                .iter()
                .filter(|(_, page)| has_root(page))
                .map(|(status, page)| format!("{status} = {}", quoted(page)))
                .collect();
            if !pages.is_empty() {
                route.push(format!("error_pages = {{ {} }}", pages.join(", ")));
            }
            self.routes.push(route);
        }
    }

    fn location(
        &mut self,
        block: &Directive,
        server: &Level,
        upstreams: &Upstreams,
        prefix: &Path,
        hides_dotfiles: bool,
    ) -> Option<Carried> {
        let (path, is_exact) = match block.arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [path] if path.starts_with('/') => (path, false),
            ["^~", path] => (path, false),
            ["=", path] => (path, true),
            [name] if name.starts_with('@') => {
                self.findings.leave(block, "a location by a name");
                return None;
            }
            _ => {
                let why = "a location by a regex: what it matches is answered by the route around it, which may ask others, \
                           or show the sources of programs";
                self.findings.leave(block, why);
                return None;
            }
        };
        let location = Location::read(block, path, prefix, &mut self.findings);
        if location.answered_otherwise || hides_dotfiles && passes_dotfiles_on(block) {
            return Some(Carried::closed(path));
        }
        match (is_exact, path.ends_with('/')) {
            (true, _) => self.findings.note(block, "what lies beneath this path belongs to its route too"),
            (false, false) => self.findings.note(block, "matches whole segments of a path, and no longer names"),
            (false, true) => {}
        }
        if location.stub_status {
            let lines = location.status_lines();
            return Some(Carried { path: path.to_owned(), lines, pages: Vec::new(), has_files: false });
        }
        let level = location.level.within(server);
        if let Some(pass) = &location.proxy_pass {
            let Some(origin) = self.origins.of(pass, path, &level.proxy, &mut self.findings) else {
                return Some(Carried::closed(path));
            };
            if path != "/" && path.ends_with('/') && !is_exact {
                self.findings.note(block, "the path without its last slash belongs to the route around it");
            }
            let (lines, pages) = (vec![format!("origin = {}", quoted(&origin))], level.error_pages().to_vec());
            return Some(Carried { path: path.to_owned(), lines, pages, has_files: false });
        }
        if let Some(pass) = &location.pass {
            let Some(mut lines) = level.memcached.lines(pass, upstreams, &mut self.findings) else {
                return Some(Carried::closed(path));
            };
            lines.extend(level.type_lines());
            return Some(Carried {
                path: path.to_owned(),
                lines,
                pages: level.error_pages().to_vec(),
                has_files: false,
            });
        }
        let lines = level.root_lines(prefix, is_exact.then_some(path), hides_dotfiles);
        Some(Carried { path: path.to_owned(), lines, pages: level.error_pages().to_vec(), has_files: true })
    }

    fn listen(&mut self, directive: &Directive) {
        let first = directive.argument(0);
        if directive.arguments.iter().any(|word| matches!(word.as_str(), "ssl" | "http2" | "quic")) {
            return self.findings.leave(directive, "only HTTP/1.1 in the clear");
        }
        let address = match first {
            unix if unix.starts_with("unix:") => unix.to_owned(),
            port if port.bytes().all(|b| b.is_ascii_digit()) => format!("*:{port}"),
            address if address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
                first.to_owned()
            }
            _ => format!("{first}:80"),
        };
        if !self.listeners.contains(&address) {
            self.listeners.push(address);
        }
    }

    fn hosts(&mut self, server: &Directive, names: &[String]) -> Vec<String> {
        let mut hosts = Vec::new();
        for name in names {
            match name.as_str() {
                "" | "_" => {}
                name if name.starts_with('~') || name.ends_with('*') || name.contains('$') => {
                    self.findings.leave(server, "a server name that is a regex, or ends in a star");
                }
                name => match name.strip_prefix('.') {
                    Some(rest) => hosts.extend([rest.to_lowercase(), format!("*.{}", rest.to_lowercase())]),
                    None => hosts.push(name.to_lowercase()),
                },
            }
        }
        hosts
    }

    fn text(&self, file: &Path) -> String {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut out = format!(
            "# Made from {name}. Where nginx follows links anywhere and shows dotfiles, larder follows none that lead out of a\n\
             # root, and shows what begins with a dot only where `dotfiles` says so.\n"
        );
        let mut section = |name: &str, lines: &[String]| {
            if !lines.is_empty() {
                out.push_str(&format!("{name}{}\n", lines.join("\n")));
            }
        };
        section("", &self.top);
        for address in &self.listeners {
            section("\n[[listen]]\n", &[format!("address = {}", quoted(address))]);
        }
        self.routes.iter().for_each(|route| section("\n[[route]]\n", route));
        let mut origins = String::new();
        self.origins.write(&mut origins);
        section(&origins, &[String::new()]);
        section("\n[limits]\n", &self.limits);
        if let Some(path) = &self.log {
            section("\n[log]\n", &[format!("path = {}", quoted(path))]);
        }
        out
    }
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
