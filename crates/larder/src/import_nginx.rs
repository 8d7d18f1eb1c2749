//! `larder import nginx.conf`: the static and the proxied parts of an nginx configuration in, and what asks memcached, a
//! larder.toml out that serves the same paths with the same types, pages and bytes, and a list of what could not be carried
//! over.
//!
//! Files are read by `nginx_conf.rs`; one location becomes one route in `nginx_location.rs`, to whom it is proxied in
//! `nginx_upstream.rs`, which memcached it asks in `nginx_memcached.rs`. Here are servers, what holds
//! for all of them, and what is said of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::import::ImportFlags;
use crate::import_findings::{self, Findings, quoted};
use crate::nginx_conf::{self, Directive};
use crate::nginx_guards::{self, AccessRules, ClosedPath, Kind};
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
    /// Where the first server in the clear listens, by [`place_of`].
    first_listens: Option<BTreeSet<String>>,
    routes: Vec<Route>,
    limits: Vec<String>,
    origins: Origins,
    /// client_max_body_size says so somewhere.
    bodies_are_unlimited: bool,
    log: Option<String>,
}

/// A `[[route]]` as it will stand there.
struct Route {
    /// None: any.
    hosts: Vec<String>,
    path: String,
    lines: Vec<String>,
    is_closed: bool,
    /// It is closed only because it leads to TLS or listens elsewhere: another server of the name is answered.
    gives_way: bool,
}

/// What one location comes to, before the guards of its server are known whole.
struct Carried {
    path: String,
    kind: Kind,
    answer: Answers,
    /// Its files, if it has any, are not those of the server around it.
    is_apart: bool,
    /// By locations within it.
    closed_within: Vec<ClosedPath>,
    /// Statuses and paths.
    pages: Vec<(String, String)>,
}

/// Who answers.
enum Answers {
    /// The keys of the route.
    Others(Vec<String>),
    Files(Box<Level>),
    /// Nobody: nginx keeps people out, or answers in a way that was not carried over. The route around it would show its files.
    Nobody {
        gives_way: bool,
    },
}

impl Carried {
    fn closed(path: &str, kind: Kind) -> Carried {
        let answer = Answers::Nobody { gives_way: false };
        Carried { path: path.to_owned(), kind, answer, is_apart: true, closed_within: Vec::new(), pages: Vec::new() }
    }

    /// What it closes on the routes around it.
    fn closes_around(&self) -> Option<ClosedPath> {
        let is_all = self.path == "/" && self.kind != Kind::Exact;
        match (&self.answer, self.kind) {
            _ if is_all => None,
            (Answers::Nobody { .. }, kind) => Some(ClosedPath::by_path(&self.path, kind == Kind::Exact)),
            (_, Kind::Exact) => None,
            _ if self.path.ends_with('/') || !self.is_apart => None,
            _ => Some(ClosedPath::beside(&self.path)),
        }
    }
}

const CLOSED_LINES: [&str; 2] = ["# Not carried over: nobody is answered here, with 403.", "closed = true"];

/// Names with a dot in front are forbidden, in one of the ways in which that is usually written.
fn is_dotfile_guard(location: &Directive) -> bool {
    let is_regex = location.argument(0).starts_with('~') && location.argument(1).starts_with("/\\.");
    let forbids = |directive: &Directive| {
        matches!((directive.name.as_str(), directive.argument(0)), ("deny", "all") | ("return", "403" | "404"))
    };
    is_regex && location.children().iter().any(forbids)
}

/// A server of nginx, as its locations are read.
struct Server<'a> {
    level: &'a Level,
    /// Those that have a name.
    named: Vec<&'a Directive>,
    upstreams: &'a Upstreams,
    prefix: &'a Path,
    /// As it is written.
    root: Option<&'a str>,
}

/// The root of a block, as it is written.
fn root_of(block: &Directive) -> Option<&str> {
    block.children().iter().find(|child| child.name == "root").map(|root| root.argument(0))
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
                _ => self.findings.leave(directive, "larder has nothing of the kind, or says it elsewhere"),
            }
        }
        if !rules.admit_all() {
            self.findings.leave(http, "allow and deny for all servers: nobody is answered");
        }
        if is_guarded || !rules.admit_all() {
            return self.routes.push(Route {
                hosts: Vec::new(),
                path: "/".to_owned(),
                lines: CLOSED_LINES.map(str::to_owned).into(),
                is_closed: true,
                gives_way: false,
            });
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
                _ => self.findings.leave(directive, "larder has nothing of the kind, or says it elsewhere"),
            }
        }
        if !rules.admit_all() {
            is_guarded = true;
            self.findings.leave(server, "a server is for everybody: nobody is answered");
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
            return self.findings.leave(server, "a server without a name that a host could have");
        }
        if is_guarded {
            let answer = Answers::Nobody { gives_way };
            let all = Carried { answer, ..Carried::closed("/", Kind::Usual) };
            return self.routes_of(server, &hosts, vec![all], Vec::new(), prefix, false);
        }
        let level = level.within(http);
        let is_named = |location: &&Directive| location.argument(0).starts_with('@');
        let (named, locations): (Vec<_>, Vec<_>) = locations.into_iter().partition(is_named);
        let hides_dotfiles = locations.iter().any(|location| is_dotfile_guard(location));
        let around = Server { level: &level, named, upstreams, prefix, root: root_of(server) };
        let mut closed: Vec<ClosedPath> = Vec::new();
        closed
            .extend(nginx_guards::sources_run_by(server).and_then(|sources| ClosedPath::by_regex(sources.to_owned())));
        let mut carried = Vec::new();
        let is_all = |location: &Directive| location.arguments == ["/"] || location.arguments == ["^~", "/"];
        if !locations.iter().any(|location| is_all(location)) {
            carried.push(self.files(server, "/", Kind::Usual, level.clone(), &around));
        }
        for block in locations {
            match nginx_guards::regex_of(block) {
                Some(_) => closed.extend(self.close_by(block, root_of(server))),
                None => carried.extend(self.location(block, &around)),
            }
        }
        self.routes_of(server, &hosts, carried, closed, prefix, hides_dotfiles);
    }

    /// A location by a regex, or within another, is none of larder's: what it guards, or has answered by others, is closed on
    /// the routes around it.
    fn close_by(&mut self, block: &Directive, root: Option<&str>) -> Option<ClosedPath> {
        let closed = nginx_guards::closed_by(block, root);
        match &closed {
            None => self.findings.leave(block, "what it matches is answered by the route around it"),
            Some(_) if is_dotfile_guard(block) => {
                let why = "what begins with a dot is hidden, but for /.well-known/, and closed where others answer";
                self.findings.note(block, why);
            }
            Some(closed) if closed.closes("/") => {
                self.findings.leave(block, "its regex is none here, or matches everything: all is closed");
            }
            Some(_) => self.findings.leave(block, "what it matches is closed"),
        }
        closed
    }

    /// Routes of a server, each with the paths that are closed on it.
    fn routes_of(
        &mut self,
        server: &Directive,
        hosts: &[String],
        carried: Vec<Carried>,
        mut closed: Vec<ClosedPath>,
        prefix: &Path,
        hides_dotfiles: bool,
    ) {
        // nginx counts all names that begin so to a location, in every spelling; a route has whole segments.
        closed.extend(carried.iter().filter_map(Carried::closes_around));
        let closes = |path: &str| closed.iter().any(|closed| closed.closes(path));
        // A page belongs to the route that it would belong to if it were asked for.
        let has_root = |page: &str| {
            let fits = |path: &str| page == path || path.ends_with('/') && page.starts_with(path);
            let fitting = carried.iter().filter(|carried| fits(&carried.path));
            let nearest = fitting.max_by_key(|carried| carried.path.len());
            nearest.is_some_and(|carried| matches!(carried.answer, Answers::Files(_))) && !closes(page)
        };
        let mut routes = Vec::new();
        for Carried { path, kind, answer, closed_within, pages, .. } in &carried {
            let is_other = |other: &Carried| other.path == *path && other.kind != Kind::Exact;
            if *kind == Kind::Exact && carried.iter().any(is_other) {
                // One route has the path alone and what lies beneath it: where the path alone is closed, that one closes it.
                self.findings
                    .leave(server, "a location by a whole path that another begins with: the other one counts");
                continue;
            }
            let exact = (*kind == Kind::Exact).then_some(path.as_str());
            let (mut lines, is_closed, gives_way) = match answer {
                Answers::Others(lines) => (lines.clone(), false, false),
                Answers::Files(level) => {
                    let closes = |name: &str| closes(name) || closed_within.iter().any(|closed| closed.closes(name));
                    (level.root_lines(prefix, exact, hides_dotfiles, &closes), false, false)
                }
                Answers::Nobody { gives_way } => (CLOSED_LINES.map(str::to_owned).into(), true, *gives_way),
            };
            let around = closed.iter().filter(|closed| closed.holds_on(path, *kind));
            let patterns = around.chain(closed_within).filter(|_| !is_closed);
            let mut patterns: Vec<String> = patterns.map(|closed| literal(closed.pattern())).collect();
            patterns.sort_unstable();
            patterns.dedup();
            if !patterns.is_empty() {
                lines.push(format!("closed_paths = [{}]", patterns.join(", ")));
            }
            let pages: Vec<String> = pages
                .iter()
                .filter(|(_, page)| has_root(page))
                .map(|(status, page)| format!("{status} = {}", quoted(page)))
                .collect();
            if !pages.is_empty() {
                lines.push(format!("error_pages = {{ {} }}", pages.join(", ")));
            }
            routes.push(Route { hosts: hosts.to_vec(), path: path.clone(), lines, is_closed, gives_way });
        }
        routes.into_iter().for_each(|route| self.add(route, server));
    }

    /// Of two routes for the same host and path one remains: the closed one, unless nginx would have led from it to TLS.
    fn add(&mut self, mut route: Route, server: &Directive) {
        for at in (0..self.routes.len()).rev() {
            let known = &mut self.routes[at];
            let is_met = known.hosts.is_empty() && route.hosts.is_empty()
                || known.hosts.iter().any(|host| route.hosts.contains(host));
            if known.path != route.path || !is_met {
                continue;
            }
            self.findings.leave(server, "another server or location has the same host and path: one of them counts");
            let new_counts = known.gives_way || route.is_closed && !route.gives_way && !known.is_closed;
            let (keeps, gives) =
                if new_counts { (&route.hosts, &mut known.hosts) } else { (&known.hosts, &mut route.hosts) };
            let keeps = keeps.clone();
            gives.retain(|host| !keeps.contains(host));
            match (new_counts, gives.is_empty()) {
                (true, true) => drop(self.routes.remove(at)),
                (false, true) => return,
                _ => {}
            }
        }
        self.routes.push(route);
    }

    fn location(&mut self, block: &Directive, around: &Server<'_>) -> Option<Carried> {
        let carried = self.outer_location(block, around)?;
        let inner = block.children().iter().filter(|child| child.name == "location");
        let root = root_of(block).or(around.root);
        let closed_within = inner.filter_map(|inner| self.close_by(inner, root)).collect();
        Some(Carried { closed_within, ..carried })
    }

    /// A location without those within it.
    fn outer_location(&mut self, block: &Directive, around: &Server<'_>) -> Option<Carried> {
        let (path, kind) = match block.arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [path] if path.starts_with('/') => (path, Kind::Usual),
            ["^~", path] => (path, Kind::BeforeRegexes),
            ["=", path] => (path, Kind::Exact),
            _ => {
                self.findings.leave(block, "a location that is none");
                return None;
            }
        };
        let location = Location::read(block, path, around.prefix, &mut self.findings);
        if location.answered_otherwise {
            let gives_way = block.children().iter().any(nginx_guards::leads_to_tls);
            return Some(Carried { answer: Answers::Nobody { gives_way }, ..Carried::closed(path, kind) });
        }
        match (kind, path.ends_with('/')) {
            (Kind::Exact, _) => self.findings.note(block, "what lies beneath this path belongs to its route too"),
            (_, false) => self.findings.note(block, "matches whole segments of a path, and no longer names"),
            (_, true) => {}
        }
        let others = |lines, pages| Carried { answer: Answers::Others(lines), pages, ..Carried::closed(path, kind) };
        if location.stub_status {
            return Some(others(location.status_lines(), Vec::new()));
        }
        let level = location.level.within(around.level);
        if let Some(pass) = &location.proxy_pass {
            let Some(origin) = self.origins.of(pass, path, &level.proxy, &mut self.findings) else {
                return Some(Carried::closed(path, kind));
            };
            if path != "/" && path.ends_with('/') && kind != Kind::Exact {
                self.findings.note(block, "the path without its last slash belongs to the route around it");
            }
            return Some(others(vec![format!("origin = {}", quoted(&origin))], level.error_pages().to_vec()));
        }
        if let Some(pass) = &location.pass {
            let Some(mut lines) = level.memcached.lines(pass, around.upstreams, &mut self.findings) else {
                return Some(Carried::closed(path, kind));
            };
            lines.extend(level.type_lines());
            return Some(others(lines, level.error_pages().to_vec()));
        }
        Some(self.files(block, path, kind, level, around))
    }

    /// Files, or who is asked where there is none.
    fn files(&mut self, block: &Directive, path: &str, kind: Kind, level: Level, around: &Server<'_>) -> Carried {
        if let Some(origin) = level.named.as_deref().and_then(|name| self.named_origin(name, path, &level, around)) {
            self.findings
                .leave(block, "larder asks the origin for all of it: files beneath the root are not looked for first");
            let answer = Answers::Others(vec![format!("origin = {}", quoted(&origin))]);
            return Carried { answer, pages: level.error_pages().to_vec(), ..Carried::closed(path, kind) };
        }
        if level.hides_files() {
            return Carried::closed(path, kind);
        }
        let (pages, is_apart) = (level.error_pages().to_vec(), !level.has_root_of(around.level));
        Carried { answer: Answers::Files(Box::new(level)), is_apart, pages, ..Carried::closed(path, kind) }
    }

    /// Whom a location with a name asks, if it asks an origin and guards nothing.
    fn named_origin(&mut self, name: &str, path: &str, level: &Level, around: &Server<'_>) -> Option<String> {
        let block = around.named.iter().find(|block| block.argument(0) == name)?;
        let location = Location::read(block, path, around.prefix, &mut self.findings);
        let pass = location.proxy_pass.filter(|_| !location.answered_otherwise)?;
        let proxy = location.level.within(level).proxy;
        self.origins.of(&pass, path, &proxy, &mut self.findings)
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
                let why =
                    "it listens elsewhere than the first server, and routes know no listeners: nobody is answered";
                self.findings.leave(server, why);
                return false;
            }
            _ => {}
        }
        for address in addresses {
            if !self.listeners.contains(&address) {
                self.listeners.push(address);
            }
        }
        true
    }

    fn address_of(&mut self, listen: &Directive) -> Option<String> {
        let first = listen.argument(0);
        if listen.arguments.iter().any(|word| matches!(word.as_str(), "ssl" | "http2" | "quic")) {
            self.findings.leave(listen, "only HTTP/1.1 in the clear");
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
        for Route { hosts, path, lines, .. } in &self.routes {
            let mut route = vec![format!("path = {}", quoted(path))];
            if !hosts.is_empty() {
                let hosts: Vec<String> = hosts.iter().map(|host| quoted(host)).collect();
                route.push(format!("host = [{}]", hosts.join(", ")));
            }
            route.extend(lines.iter().cloned());
            section("\n[[route]]\n", &route);
        }
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

/// All addresses of a port are one place.
fn place_of(address: &str) -> String {
    let wildcards = ["*:", "0.0.0.0:", "[::]:"];
    wildcards.iter().find_map(|any| address.strip_prefix(any)).map_or(address.to_owned(), |port| format!("*:{port}"))
}

/// A regex as a TOML string: backslashes are plain in one between single quotes.
fn literal(pattern: &str) -> String {
    match pattern.contains('\'') || pattern.chars().any(char::is_control) {
        true => quoted(pattern),
        false => format!("'{pattern}'"),
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
