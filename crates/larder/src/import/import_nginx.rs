//! `larder import nginx.conf`: an nginx configuration in, a larder.toml out that answers the same paths by the same files,
//! applications and rules, and a list of what could not be carried over. What was not is closed.
//!
//! Files are read by `nginx_conf.rs`. The locations of a server are put into nginx's order by `nginx_order.rs`, read by
//! `nginx_tree.rs`, and made into routes by `nginx_routes.rs`; what each level says and the ones inside inherit is in
//! `nginx_level.rs` and what it is made of. Here is the walk over servers, and what holds for all of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::config::route_host;
use crate::import::exact_networks::make_exact;
use crate::import::import_findings::{self, Findings};
use crate::import::import_flags::ImportFlags;
use crate::import::imported_toml::{ImportedToml, Route, own_routes};
use crate::import::nginx_conditions;
use crate::import::nginx_conf::{self, Directive};
use crate::import::nginx_guards;
use crate::import::nginx_head_buffers::HeadBuffers;
use crate::import::nginx_level::{self, Level};
use crate::import::nginx_limits::LimitZones;
use crate::import::nginx_listens::{self, InTheClear, Listens, ServerListens};
use crate::import::nginx_maps::{self, Maps};
use crate::import::nginx_memcached::Upstreams;
use crate::import::nginx_order::Matcher;
use crate::import::nginx_routes;
use crate::import::nginx_rulings;
use crate::import::nginx_times::seconds;
use crate::import::nginx_tree::Tree;
use crate::import::nginx_upstream::Origins;

/// More files than this need more descriptors than most processes may have.
const OPEN_FILES_CARRIED_MAX: u64 = 8_192;

/// Directives outside of `http` that say how nginx runs, and not what it serves.
const OF_THE_PROCESS: [&str; 16] = [
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
    "env",
    "include",
];

/// Routes know no listeners: beside it would be shown in the clear what nginx shows by TLS alone.
const IN_THE_CLEAR_ALONE: &str = "closed: it answers in the clear, where other servers are reached by TLS alone, and a route is \
    answered at every listener; all that comes in the clear is led to https://. Give it TLS, or a larder of its own";

/// The same of names that no server has.
const NO_ONE_DEFAULT: &str = "closed for names that no server has: which of them nginx asks hangs on the port";

/// What variables are made of: where one is used that larder has not, that is said there.
const OF_VARIABLES: [&str; 3] = ["geo", "split_clients", "map_hash_bucket_size"];

/// Files of nginx's packages that say what larder does by itself.
const PACKAGED: [&str; 5] = ["mime.types", "fastcgi_params", "fastcgi.conf", "proxy_params", "fastcgi-php.conf"];

pub fn import(flags: &ImportFlags) -> ExitCode {
    let done = nginx_conf::read(&flags.file).map(|mut conf| {
        let prefix = flags.prefix.clone().unwrap_or_else(|| usual_prefix(&flags.file));
        let prefix = std::path::absolute(&prefix).unwrap_or(prefix);
        let mut import = Import { folder: folder_of(&flags.file), prefix, ..Import::default() };
        make_exact(&mut conf.directives, &mut import.findings);
        let has_types = !conf.absent.iter().any(|include| include.argument(0).ends_with("mime.types"));
        import.carry(
            &conf.directives,
            has_types && conf.has_includes && conf.directives.iter().any(|directive| directive.name == "http"),
        );
        for include in &conf.absent {
            match PACKAGED.iter().any(|file| include.argument(0).ends_with(file)) {
                true => import.findings.note(include, "not here: what nginx's package has there larder does by itself"),
                false => import.findings.leave(include, "there is no such file"),
            }
        }
        import.made.listeners = if import.is_part_of_a_server { Vec::new() } else { import.listens.sections() };
        let text = import.made.text(&import.origins, &flags.file);
        (import.findings, text)
    });
    import_findings::finish(flags, done)
}

/// Where names of the configuration's own files begin.
fn folder_of(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(folder).unwrap_or(folder.to_owned())
}

/// nginx's own place: where `conf/` is, if the file lies in there.
fn usual_prefix(file: &Path) -> PathBuf {
    let folder = folder_of(file);
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
    listens: Listens,
    zones: LimitZones,
    maps: Maps,
    prefix: PathBuf,
    folder: PathBuf,
    /// Somewhere responses are stored.
    others_store: bool,
    is_part_of_a_server: bool,
}

/// A server, before its locations are read.
struct Site<'a> {
    server: &'a Directive,
    level: Level,
    listens: ServerListens,
    clear: InTheClear,
    names: Vec<String>,
}

impl Import {
    fn carry(&mut self, directives: &[Directive], has_types: bool) {
        let is_of_http = |directive: &Directive| matches!(directive.name.as_str(), "server" | "upstream");
        let is_of_server = |directive: &Directive| directive.name == "location";
        let around = |name: &str, first: &Directive, inside: Vec<Directive>| Directive {
            name: name.to_owned(),
            arguments: Vec::new(),
            block: Some(inside),
            ..first.clone()
        };
        self.others_store = directives.iter().any(stores);
        self.made.ignores_clients = self.others_store;
        // A site as packages bring it, which an http { } includes, or what a server { } does.
        if let Some(first) = directives.iter().find(|directive| is_of_http(directive)) {
            return self.http(&around("http", first, directives.to_vec()), has_types);
        }
        if let Some(first) = directives.iter().find(|directive| is_of_server(directive)) {
            // It names no address, and nobody knows where it is included.
            self.is_part_of_a_server = true;
            let server = around("server", first, directives.to_vec());
            return self.http(&around("http", first, vec![server]), has_types);
        }
        for directive in directives {
            match directive.name.as_str() {
                "worker_processes" => match directive.argument(0).parse::<u32>() {
                    Ok(count) => self.made.top.push(format!("workers = {count}")),
                    Err(_) => self.findings.note(directive, "one worker for each core is what larder starts by itself"),
                },
                "events" => self.findings.note(directive, "connections are bounded by limits.connections_max"),
                "http" => self.http(directive, has_types),
                name if OF_THE_PROCESS.contains(&name) => {
                    self.findings
                        .note(directive, "how nginx runs; larder has flags, and raises its own limit of files");
                }
                _ => self.findings.leave(directive, "larder has no setting that this becomes"),
            }
        }
    }

    fn http(&mut self, http: &Directive, has_types: bool) {
        let mut level = Level::default();
        if !has_types {
            level.trust_larder_types();
        }
        let mut servers = Vec::new();
        let upstreams = Upstreams::read(http, &mut self.findings);
        let mut buffers = HeadBuffers::default();
        for directive in http.children() {
            match directive.name.as_str() {
                "server" => servers.push(directive),
                "underscores_in_headers" if directive.argument(0) == "on" => {
                    self.made.top.push("odd_field_names = true".to_owned());
                }
                "upstream" => self.origins.know(directive),
                name if OF_VARIABLES.contains(&name) || self.maps.take(directive) => {
                    self.findings.note(directive, "where its variable is used and cannot be, that is said there");
                }
                _ if buffers.take(directive) || self.zones.take(directive, &mut self.findings) => {}
                _ if nginx_guards::is_guard(directive) => {
                    self.findings.leave(directive, "closed: larder has no such guard, or does not answer so");
                    level.close();
                }
                _ if self.limit(directive) || level.take(directive, &self.prefix, &mut self.findings) => {}
                _ => self.findings.leave(directive, "larder has no setting that this becomes"),
            }
        }
        self.made.limits.extend(buffers.lines());
        self.join_ipv6(&mut servers);
        let servers = self.maps.by_host(&servers);
        let mut sites: Vec<Site<'_>> = servers.iter().map(|server| self.site(server, &level)).collect();
        let secure: BTreeSet<String> = sites.iter().flat_map(|site| site.listens.secure()).cloned().collect();
        sites.iter_mut().for_each(|site| site.share_tls(&secure));
        let has_tls = sites.iter().any(|site| site.listens.is_secure());
        if has_tls {
            self.findings.speak_tls();
        }
        let is_answered = |site: &Site<'_>| !(has_tls && site.leads_to_tls());
        let answered: Vec<&Site<'_>> = sites.iter().filter(|site| is_answered(site)).collect();
        self.listens.seal(answered.iter().map(|site| &site.listens));
        let begins = answered.iter().find(|site| !site.listens.is_nowhere() && !self.listens.is_apart(&site.listens));
        if let Some(site) = begins {
            self.listens.begin_with(&site.listens);
        }
        let (left_out, served): (Vec<_>, Vec<_>) =
            answered.into_iter().partition(|site| self.listens.leaves_out(&site.listens));
        let is_here = |site: &&Site<'_>| !self.listens.is_apart(&site.listens) && self.listens.is_with(&site.listens);
        let kept: Vec<&Site<'_>> = served.iter().copied().filter(is_here).collect();
        // nginx asks another server for what nobody is named for, where that says so.
        let is_other_default = served.iter().any(|site| {
            let is_here = kept.iter().any(|kept| std::ptr::eq(*kept, *site));
            !is_here && site.listens.is_default && !self.listens.is_nowhere_near(&site.listens)
        });
        let listens: Vec<&ServerListens> = kept.iter().map(|site| &site.listens).collect();
        let has_one_default = nginx_listens::have_one_default(&listens);
        let first = first_of(&kept).filter(|first| has_one_default && (first.listens.is_default || !is_other_default));
        if let (false, Some(site)) = (has_one_default, kept.first()) {
            self.findings.leave(site.server, NO_ONE_DEFAULT);
        }
        let own_names: Vec<String> = kept.iter().flat_map(|site| hosts_of(&site.names)).collect();
        let wide = |name: &&String| name.starts_with(['*', '.']);
        let wide_names = sites.iter().flat_map(|site| site.names.iter().filter(wide).cloned());
        let claimed: Vec<String> = wide_names.chain(named_twice(&own_names)).collect();
        for site in &served {
            match self.listens.is_with(&site.listens) {
                true => self.server(
                    site,
                    first.is_some_and(|first| std::ptr::eq(first, *site) || site.listens.is_default),
                    &upstreams,
                    (&claimed, &own_names),
                ),
                false => self.server_elsewhere(site, &own_names),
            }
        }
        for site in left_out {
            self.listens.leads_to_tls(&site.listens);
            self.findings.leave(site.server, IN_THE_CLEAR_ALONE);
        }
        sites.iter().filter(|site| !is_answered(site)).for_each(|site| self.lead_away(site));
        served.iter().for_each(|site| self.lead_what_is_clear(site));
        for site in served.iter().filter(|site| self.listens.is_led_to_tls(&site.listens)) {
            if !site.leads_what_is_clear() {
                self.findings.leave(
                    site.server,
                    "in the clear it is led to https://: another server is, or is reached by TLS alone",
                );
            }
        }
    }

    /// A server that is written once more for IPv6 is one with the other.
    fn join_ipv6(&mut self, servers: &mut Vec<&Directive>) {
        let all = servers.clone();
        servers.retain(|server| {
            let is_joined = all.iter().any(|other| nginx_listens::is_same_over_ipv6(server, other));
            if is_joined {
                self.findings.note(server, "one with the server that says the same for IPv4: larder listens at both");
            }
            !is_joined
        });
    }

    /// A server that leads all that comes to it to TLS.
    fn lead_away(&mut self, site: &Site<'_>) {
        self.listens.leads_to_tls(&site.listens);
        match site.leads_each_name_to_itself() {
            true => self.findings.note(site.server, "all of this listener is led to https://: mode = \"redirect\""),
            false => self.findings.leave(
                site.server,
                "each name is led to its own https:// (mode = \"redirect\"), not to the one that is written here",
            ),
        }
        self.leave_beside(site);
    }

    /// A server that listens both ways, and says something of what comes in the clear alone: all of that is led to TLS.
    fn lead_what_is_clear(&mut self, site: &Site<'_>) {
        let said = nginx_conditions::says_of_the_clear(site.server);
        if site.clear != InTheClear::CanBeLed || said.is_empty() {
            return;
        }
        self.listens.leads_to_tls(&site.listens);
        if !site.leads_what_is_clear() {
            for said in said {
                self.findings.leave(said, "in the clear all of the server is led to the same URL at https://");
            }
        }
    }

    /// What a server that leads to TLS answers besides.
    fn leave_beside(&mut self, site: &Site<'_>) {
        // `if ($host = NAME) { return 301 …; } return 404;`
        let refusal = |child: &&Directive| child.name == "return" && child.argument(0).starts_with(['4', '5']);
        let leads_own_names = nginx_conditions::asks_for_each_host(site.server, &site.names);
        for refusal in site.server.children().iter().filter(refusal) {
            match leads_own_names {
                true => self.findings.note(
                    refusal,
                    "a listener leads all: who asks by another name is led to https:// too, and answered as by that name there",
                ),
                false => self
                    .findings
                    .leave(refusal, "led to https:// as the names of the server are: a listener leads all or none"),
            }
        }
        let name = site.names.first().map_or("", String::as_str);
        let is_other = |child: &&Directive| {
            child.name == "if" && nginx_conditions::act_of(child).is_some() && !nginx_rulings::leads_to_tls(child, name)
        };
        for condition in site.server.children().iter().filter(is_other) {
            self.findings.leave(condition, "led to https:// with the rest: a listener leads all or none");
        }
        let is_location = |child: &&Directive| child.name == "location" && child.argument(0) != "/";
        for location in site.server.children().iter().filter(is_location) {
            self.findings
                .leave(location, "led to https:// with the rest; larder orders certificates by itself ([acme])");
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
            "proxy_connect_timeout" => time("connect_timeout"),
            "proxy_read_timeout" => {
                self.made.limit(time("first_byte_timeout"));
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
                if first.starts_with("syslog:") || first.contains('$') {
                    self.findings.leave(directive, "the log is a file");
                    return true;
                }
                self.take_log(directive);
                return true;
            }
            "error_log" => {
                self.findings.note(directive, "larder says it on standard error");
                return true;
            }
            _ => return false,
        };
        match line {
            Some(line) => self.made.limit(Some(line)),
            None => self.findings.leave(directive, "larder's setting cannot have this value"),
        }
        true
    }

    /// Of several logs the first. A relative name begins where nginx's do, whatever folder larder is started in.
    fn take_log(&mut self, directive: &Directive) {
        let path = self.prefix.join(directive.argument(0)).display().to_string();
        match &self.made.log {
            Some(known) if *known != path => return self.findings.leave(directive, nginx_level::ONE_LOG),
            _ => self.made.log = Some(path),
        }
        if directive.arguments.iter().any(|word| word.starts_with("if=")) {
            return self
                .findings
                .leave(directive, "every request is written, under no condition: one log, for all routes");
        }
        self.findings.note(
            directive,
            "one log for all routes; lines are those of `combined`, with what larder adds behind them",
        );
    }

    /// What a server says beside its locations.
    fn site<'a>(&mut self, server: &'a Directive, http: &Level) -> Site<'a> {
        let (mut level, mut names, mut listens) = (Level::default(), Vec::new(), ServerListens::default());
        let everywhere = nginx_listens::everywhere(server);
        for directive in server.children() {
            match directive.name.as_str() {
                "location" => {}
                "access_log" if directive.argument(0) != "off" => drop(self.limit(directive)),
                "server_name" => names.extend(directive.arguments.iter().cloned()),
                "ssl" if directive.argument(0) == "on" => listens.all_secure(),
                _ if listens.take(directive, &everywhere, &mut self.findings)
                    || nginx_rulings::is_of_rewriting(directive) => {}
                _ if nginx_guards::is_guard(directive) => {
                    self.findings.leave(directive, "closed: larder has no such guard, or does not answer so");
                    level.close();
                }
                _ if level.take(directive, &self.prefix, &mut self.findings) => {}
                _ if self.limit(directive) => self.findings.note(directive, "holds for all routes now"),
                _ => self.findings.leave(directive, "larder has no setting that this becomes"),
            }
        }
        let clear = listens.in_the_clear(&self.folder, &mut self.findings);
        Site { server, level: level.within(http), listens, clear, names }
    }

    fn server(
        &mut self,
        site: &Site<'_>,
        is_for_all: bool,
        upstreams: &Upstreams,
        (claimed, own_names): (&[String], &[String]),
    ) {
        let server = site.server;
        self.listens.listen(server, &site.listens, &self.folder, &mut self.findings);
        let mut hosts = if is_for_all { Vec::new() } else { self.hosts(server, &site.names) };
        if !is_for_all && hosts.is_empty() {
            return self.findings.leave(server, "not carried over: none of its names can be a host");
        }
        let server_name =
            site.names.first().filter(|name| !name.starts_with(['*', '.']) && *name != "_" && !is_no_host(name));
        let tree = Tree {
            findings: &mut self.findings,
            origins: &mut self.origins,
            upstreams,
            zones: &self.zones,
            maps: &self.maps,
            clear: site.clear,
            prefix: &self.prefix,
            folder: &self.folder,
            level: site.level.clone(),
            server,
            server_name: server_name.map_or("$host", String::as_str),
            others_store: self.others_store,
        };
        let mut routes = nginx_routes::routes(tree);
        if !self.made.keep_one_of(&mut hosts, is_for_all, &routes, server, &mut self.findings) {
            return;
        }
        // Of `.NAME` nginx takes both, or none where another server has `*.NAME`.
        let halves = site.names.iter().filter_map(|name| name.strip_prefix('.')).map(str::to_lowercase);
        let lost: Vec<String> = halves.filter(|name| !hosts.contains(&format!("*.{name}"))).collect();
        hosts.retain(|host| !lost.contains(host));
        if hosts.is_empty() && !is_for_all {
            return;
        }
        // Who is ruled by a host that another server has is asked there.
        let is_asked = |host: &String| match is_for_all {
            true => is_one_of(&hosts_of(&site.names), host) || !is_one_of(own_names, host),
            false => is_one_of(&hosts, host),
        };
        routes.retain(|route| route.hosts.iter().all(is_asked));
        // What is for all names is for its own first: another server that has them, too, or `*.NAME`, would be asked.
        let mut own = if is_for_all { hosts_of(&site.names) } else { Vec::new() };
        own.retain(|host| claimed.iter().any(|name| nginx_maps::covers(name, host)));
        if !own.is_empty() && self.made.keep_one_of(&mut own, false, &routes, server, &mut self.findings) {
            own_routes(&routes, &own).for_each(|route| self.made.add(route));
            return routes.into_iter().filter(|route| route.hosts.is_empty()).for_each(|route| self.made.add(route));
        }
        own_routes(&routes, &hosts).for_each(|route| self.made.add(route));
    }

    /// A server that listens elsewhere than the first one. Who asks for its names where the first one listens gets what nginx answers there, by
    /// that name or by none; and where both listen, nothing: nginx would ask this one, or by what address one came would say which.
    fn server_elsewhere(&mut self, site: &Site<'_>, own_names: &[String]) {
        let is_apart = self.listens.is_nowhere_near(&site.listens);
        let mut hosts = self.hosts(site.server, &site.names);
        let shared: Vec<String> = hosts.iter().filter(|host| own_names.contains(host)).cloned().collect();
        // Of one that listens nowhere it is said by its lines why, but not what becomes of a name that is another server's, too.
        if !site.listens.is_nowhere() || !shared.is_empty() {
            let why = match is_apart {
                true => {
                    "it listens elsewhere than the first server, and routes know no listeners: give it a larder of its own"
                }
                false if !shared.is_empty() => {
                    "closed, with the other server of its name: which of them is asked hangs on the address, and routes know none"
                }
                false => "closed: it listens elsewhere than the first server, and routes know no listeners",
            };
            self.findings.leave(site.server, why);
        }
        if is_apart {
            return;
        }
        hosts.retain(|host| !own_names.contains(host));
        let everything = || Matcher::Path("/".to_owned());
        for (mut hosts, closed) in [(hosts, Route::giving_way(everything())), (shared, Route::closed(everything()))] {
            let closed = [closed];
            if !hosts.is_empty() && self.made.keep_one_of(&mut hosts, false, &closed, site.server, &mut self.findings) {
                own_routes(&closed, &hosts).for_each(|route| self.made.add(route));
            }
        }
    }

    fn hosts(&mut self, server: &Directive, names: &[String]) -> Vec<String> {
        if names.iter().any(|name| is_no_host(name)) {
            self.findings
                .leave(server, "a host cannot be a regex, nor end in a star or a dot, nor be anything but a name");
        }
        hosts_of(names)
    }
}

fn is_no_host(name: &str) -> bool {
    // A request's host never has a dot behind it: nginx takes it off.
    let is_host = || matches!(name, "" | "_") || route_host(name.strip_prefix('.').unwrap_or(name)).is_some();
    name.starts_with('~') || name.ends_with(['*', '.']) || name.contains('$') || !is_host()
}

fn hosts_of(names: &[String]) -> Vec<String> {
    let names = names.iter().filter(|name| !matches!(name.as_str(), "" | "_") && !is_no_host(name));
    let all = names
        .flat_map(|name| match name.strip_prefix('.') {
            Some(rest) => vec![rest.to_lowercase(), format!("*.{}", rest.to_lowercase())],
            None => vec![name.to_lowercase()],
        })
        .collect::<Vec<String>>();
    // Who writes a name twice means it once.
    let is_first = |at: usize| !all[..at].contains(&all[at]);
    (0..all.len()).filter(|at| is_first(*at)).map(|at| all[at].clone()).collect()
}

/// Is this host one of those, or beneath `*.NAME`?
fn is_one_of(hosts: &[String], host: &str) -> bool {
    let beneath = |own: &String| own.strip_prefix('*').is_some_and(|end| host.ends_with(end));
    hosts.iter().any(|own| own == host || beneath(own))
}

/// What is in there more than once.
fn named_twice(names: &[String]) -> impl Iterator<Item = String> {
    names.iter().enumerate().filter(|(at, name)| names[..*at].contains(name)).map(|(_, name)| name.clone())
}

/// Does something in it store responses?
fn stores(block: &Directive) -> bool {
    let is_on = matches!(block.name.as_str(), "proxy_cache" | "fastcgi_cache") && block.argument(0) != "off";
    is_on || block.children().iter().any(stores)
}

/// Where none says that it is for all names, the first one is.
fn first_of<'a, 'b>(sites: &[&'b Site<'a>]) -> Option<&'b Site<'a>> {
    sites.iter().find(|site| site.listens.is_default).or(sites.first()).copied()
}

impl Site<'_> {
    /// Or is one name written there, to which all are led that come by this listener?
    fn leads_each_name_to_itself(&self) -> bool {
        let names_host = |directive: &Directive| {
            matches!(directive.name.as_str(), "return" | "rewrite")
                && directive
                    .arguments
                    .iter()
                    .any(|argument| argument.contains("$host") || argument.contains("$http_host"))
        };
        let inner = self.server.children().iter().flat_map(|child| child.children());
        self.server.children().iter().chain(inner).any(names_host)
    }

    /// Does it lead what comes in the clear to the same URL over TLS, all of it?
    fn leads_what_is_clear(&self) -> bool {
        let said = nginx_conditions::says_of_the_clear(self.server);
        let name = self.names.first().map_or("", String::as_str);
        let is_own = |said: &Directive| self.server.children().contains(said);
        self.clear == InTheClear::CanBeLed
            && !said.is_empty()
            && said.iter().all(|said| is_own(said) && nginx_rulings::leads_to_tls(said, name))
    }

    /// What it has at an address where another server has TLS comes by TLS.
    fn share_tls(&mut self, secure: &BTreeSet<String>) {
        let was_plain = self.listens.is_plain_alone();
        self.listens.share_tls(secure);
        if self.listens.is_secure_alone() {
            self.clear = InTheClear::Never;
        } else if was_plain && self.listens.is_secure() {
            self.clear = InTheClear::CanBeLed;
        }
    }

    fn leads_to_tls(&self) -> bool {
        let name = self.names.first().map_or("", String::as_str);
        let leads = |block: &Directive| nginx_rulings::leads_to_tls(block, name);
        let mut locations = self.server.children().iter().filter(|child| child.name == "location");
        self.listens.is_plain_alone()
            && (leads(self.server) || locations.any(|location| location.argument(0) == "/" && leads(location)))
    }
}
