//! The larder.toml that comes of an nginx configuration: its sections in their order, and which of two routes for the same
//! hosts and paths remains. It knows nothing of nginx but the directives that are named in what is said.

use std::path::Path;

use crate::import::import_findings::{Findings, literal, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_field_cases::FieldCase;
use crate::import::nginx_order::Matcher;
use crate::import::nginx_upstream::Origins;

/// [policy] of what was imported: only what its origin calls fresh is stored. By a page's age alone nobody can tell that it is for everybody.
/// And where nothing was stored, or nothing that sets a cookie, nobody has ever seen that `private` is missing beside a `max-age` of somebody's
/// own page.
pub const STORED_BY_WORD_ALONE: [&str; 5] = [
    "# What says nothing of how long it is fresh was not stored before. Without this line it lives for a tenth of its age.",
    "heuristic_percent = 0",
    "# And max-age said to browsers how long they may keep a page of their own. What sets a cookie, or was asked for with one, is stored",
    "# where public, s-maxage or a field for CDNs says that others may have it.",
    "share_by_max_age = false",
];

/// The same where clients had no say in what their cache answers.
const UNHEARD_CLIENTS: [&str; 2] = [
    "# no-cache and max-age of a client's were not heard: who reloads a page asks no origin.",
    "honour_client_cache_control = false",
];

/// The larder.toml that is being made.
#[derive(Default)]
pub struct ImportedToml {
    /// Keys above all sections.
    pub top: Vec<String>,
    /// Sections of their own.
    pub listeners: Vec<String>,
    routes: Vec<Route>,
    pub limits: Vec<String>,
    /// The program that it was has a cache and hears no client's Cache-Control.
    pub ignores_clients: bool,
    /// Where the access log is written.
    pub log: Option<String>,
    /// Comments at the end.
    pub comments: Vec<String>,
}

/// A `[[route]]` as it will stand there.
#[derive(Clone, Debug)]
pub struct Route {
    /// None: any.
    pub hosts: Vec<String>,
    pub matcher: Matcher,
    /// None: any.
    methods: Vec<String>,
    lines: Vec<String>,
    is_closed: bool,
    /// It is closed only because it leads to TLS or listens elsewhere: another server of the name is answered.
    gives_way: bool,
    /// How long a body may be, where one is taken; or of any length.
    pub body_bytes_max: Option<Option<u64>>,
}

/// The keys of a route that answers nobody.
const CLOSED_LINES: [&str; 1] = ["closed = true"];

/// Who does not know this protocol answers as if nobody had asked, and so does larder. Some clients offer it to everybody.
const OFFERED_TO_ALL: &str = "h2c";

impl Route {
    pub fn new(matcher: Matcher, lines: Vec<String>) -> Route {
        Route {
            hosts: Vec::new(),
            matcher,
            methods: Vec::new(),
            lines,
            is_closed: false,
            gives_way: false,
            body_bytes_max: None,
        }
    }

    /// Nobody is answered here.
    pub fn closed(matcher: Matcher) -> Route {
        Route { is_closed: true, ..Route::new(matcher, CLOSED_LINES.map(str::to_owned).into()) }
    }

    /// The route before this one that answers nobody who asks for another protocol than these: an origin that was never asked for one may let
    /// in there whom it asks for a password elsewhere. `None`: this one asks no origin.
    pub fn closed_to_upgrades(&self, but: &[String]) -> Option<Route> {
        let asks = self.lines.iter().any(|line| line.starts_with("origin = "));
        let others: Vec<String> = [OFFERED_TO_ALL]
            .into_iter()
            .chain(but.iter().map(String::as_str))
            .map(|protocol| quoted(&format!("!(?i){protocol}")))
            .collect();
        let others = if others.len() == 1 { others.concat() } else { format!("[{}]", others.join(", ")) };
        let asked = format!("header = {{ Upgrade = {others} }}");
        let lines = [asked].into_iter().chain(CLOSED_LINES.map(str::to_owned)).collect();
        asks.then(|| Route { lines, body_bytes_max: None, ..self.clone() })
    }

    /// The same, unless another server of the name is answered.
    pub fn giving_way(matcher: Matcher) -> Route {
        Route { gives_way: true, ..Route::closed(matcher) }
    }

    /// It is for these alone.
    pub fn limit_methods(&mut self, methods: &[String]) {
        self.methods = methods.to_vec();
        self.methods.sort_unstable();
        self.methods.dedup();
    }

    /// It is for those of its methods alone that are among these; closed, if none is.
    pub fn keep_methods(&mut self, only: &[String]) {
        let kept: Vec<String> = match self.methods.is_empty() {
            true => only.to_vec(),
            false => self.methods.iter().filter(|method| only.contains(method)).cloned().collect(),
        };
        match kept.is_empty() {
            true => {
                *self = Route {
                    hosts: self.hosts.clone(),
                    methods: self.methods.clone(),
                    ..Route::closed(self.matcher.clone())
                }
            }
            false => self.limit_methods(&kept),
        }
    }

    /// It is for requests alone of which this holds.
    pub fn limit_to(&mut self, field: &FieldCase) {
        self.lines.insert(0, field.line());
    }

    /// What it asks of the fields of a request.
    fn header(&self) -> Option<&String> {
        self.lines.iter().find(|line| line.starts_with("header = "))
    }

    pub fn has_methods(&self) -> bool {
        !self.methods.is_empty()
    }

    /// Is every request that the other one is for one of this, too, by the same words?
    fn takes_all_of(&self, other: &Route) -> bool {
        self.matcher == other.matcher
            && self.hosts == other.hosts
            && (self.methods.is_empty() || self.methods == other.methods)
            && self.header().is_none_or(|asked| Some(asked) == other.header())
    }

    fn section(&self, body_bytes_max: Option<u64>) -> Vec<String> {
        let mut lines = vec![match &self.matcher {
            Matcher::Path(path) => format!("path = {}", quoted(path)),
            Matcher::Pattern(pattern) => format!("path_pattern = {}", literal(pattern)),
        }];
        let list = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        if !self.hosts.is_empty() {
            lines.push(format!("host = [{}]", list(&self.hosts)));
        }
        if !self.methods.is_empty() {
            lines.push(format!("method = [{}]", list(&self.methods)));
        }
        lines.extend(self.lines.iter().cloned());
        if let Some(Some(own)) = self.body_bytes_max
            && body_bytes_max.is_none_or(|of_all| own < of_all)
        {
            lines.push(format!("request_body_max = {own}"));
        }
        lines
    }
}

/// Routes of a server for its hosts. Those that name a host by themselves are for that one, and what stands at the same place behind them is not.
pub fn own_routes(routes: &[Route], hosts: &[String]) -> impl Iterator<Item = Route> {
    routes.iter().enumerate().filter_map(|(at, route)| {
        if !route.hosts.is_empty() || hosts.is_empty() {
            return Some(route.clone());
        }
        let takes = |before: &Route, host: &String| {
            let asks = before.has_methods() || before.header().is_some();
            before.hosts.contains(host) && !asks && before.matcher == route.matcher
        };
        let is_left = |host: &&String| !routes[..at].iter().any(|before| takes(before, host));
        let left: Vec<String> = hosts.iter().filter(is_left).cloned().collect();
        (!left.is_empty()).then(|| Route { hosts: left, ..route.clone() })
    })
}

impl ImportedToml {
    /// Of two servers for one host one remains: the closed one, unless nginx would have led from it to TLS, else the first.
    /// `hosts`: those that are left to the new one, or none where it is for `all`. False: nothing is left to it.
    pub fn keep_one_of(
        &mut self,
        hosts: &mut Vec<String>,
        is_for_all: bool,
        new: &[Route],
        server: &Directive,
        findings: &mut Findings,
    ) -> bool {
        let is_closed = |routes: &[&Route]| routes.iter().all(|route| route.is_closed && !route.gives_way);
        let gives_way = |routes: &[&Route]| routes.iter().all(|route| route.gives_way);
        let new: Vec<&Route> = new.iter().collect();
        let known_to = |routes: &[Route], host: Option<&String>| -> bool {
            routes.iter().any(|route| host.map_or(route.hosts.is_empty(), |host| route.hosts.contains(host)))
        };
        let met: Vec<Option<String>> = match is_for_all {
            true => [None].into_iter().filter(|_| known_to(&self.routes, None)).collect(),
            false => hosts.iter().filter(|host| known_to(&self.routes, Some(host))).cloned().map(Some).collect(),
        };
        for host in met {
            findings.leave(server, "another server has the same host: one of them counts");
            let is_its =
                |route: &Route| host.as_ref().map_or(route.hosts.is_empty(), |host| route.hosts.contains(host));
            let known: Vec<&Route> = self.routes.iter().filter(|route| is_its(route)).collect();
            if gives_way(&known) || is_closed(&new) && !is_closed(&known) {
                self.routes.retain_mut(|route| match (is_its(route), &host) {
                    (true, Some(host)) => {
                        route.hosts.retain(|known| known != host);
                        !route.hosts.is_empty()
                    }
                    (is_its, _) => !is_its,
                });
            } else if host.is_none() {
                return false;
            } else {
                hosts.retain(|one| Some(one) != host.as_ref());
            }
        }
        is_for_all || !hosts.is_empty()
    }

    /// What stands behind a route for the same requests would answer none of them, and larder takes no such file.
    pub fn add(&mut self, route: Route) {
        if !self.routes.iter().any(|before| before.takes_all_of(&route)) {
            self.routes.push(route);
        }
    }

    /// A setting of all routes; the last word on it counts.
    pub fn limit(&mut self, line: Option<String>) {
        let Some(line) = line else { return };
        let key = line.split(' ').next().unwrap_or_default().to_owned();
        self.limits.retain(|known| known.split(' ').next() != Some(&key));
        self.limits.push(line);
    }

    /// The longest body that any route takes; `None`: of any length, or none is taken.
    fn body_bytes_max(&self) -> Option<u64> {
        self.routes.iter().filter_map(|route| route.body_bytes_max).max_by_key(|max| max.unwrap_or(u64::MAX)).flatten()
    }

    /// The text of it. `file` is what it was made from.
    pub fn text(&self, origins: &Origins, file: &Path) -> String {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut out = format!(
            "# Made from {name}. The first path_pattern that matches counts, then the longest path; what was not\n\
             # carried over is closed. larder follows no link that leads out of a root.\n"
        );
        let mut section = |name: &str, lines: &[String]| {
            if !lines.is_empty() {
                out.push_str(&format!("{name}{}\n", lines.join("\n")));
            }
        };
        section("", &self.top);
        for listener in &self.listeners {
            section("\n[[listen]]\n", std::slice::from_ref(listener));
        }
        let body_bytes_max = self.body_bytes_max();
        for route in &self.routes {
            section("\n[[route]]\n", &route.section(body_bytes_max));
        }
        let mut sections = String::new();
        origins.write(&mut sections);
        section(&sections, &[String::new()]);
        let body = body_bytes_max.map(|max| format!("request_body_bytes_max = {max}"));
        let limits: Vec<String> = self.limits.iter().cloned().chain(body).collect();
        if !sections.is_empty() {
            let of_clients = UNHEARD_CLIENTS.iter().filter(|_| self.ignores_clients);
            let policy: Vec<String> =
                STORED_BY_WORD_ALONE.iter().chain(of_clients).map(|line| (*line).to_owned()).collect();
            section("\n[policy]\n", &policy);
        }
        section("\n[limits]\n", &limits);
        if let Some(path) = &self.log {
            section("\n[log]\n", &[format!("path = {}", quoted(path))]);
        }
        section("\n", &self.comments);
        out
    }
}
