//! The larder.toml that comes of an nginx configuration: its sections in their order, and which of two routes for the same
//! host and path remains. It knows nothing of nginx but the directives that are named in what is said.

use std::path::Path;

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_upstream::Origins;

/// The larder.toml that is being made.
#[derive(Default)]
pub struct ImportedToml {
    /// Keys above all sections.
    pub top: Vec<String>,
    pub listeners: Vec<String>,
    routes: Vec<Route>,
    pub limits: Vec<String>,
    /// Where the access log is written.
    pub log: Option<String>,
}

/// A `[[route]]` as it will stand there.
pub struct Route {
    /// None: any.
    pub hosts: Vec<String>,
    pub path: String,
    pub lines: Vec<String>,
    pub is_closed: bool,
    /// It is closed only because it leads to TLS or listens elsewhere: another server of the name is answered.
    pub gives_way: bool,
}

impl Route {
    /// Nobody is answered here.
    pub fn closed(path: &str) -> Route {
        let lines = CLOSED_LINES.map(str::to_owned).into();
        Route { hosts: Vec::new(), path: path.to_owned(), lines, is_closed: true, gives_way: false }
    }
}

/// The keys of a route that answers nobody.
pub const CLOSED_LINES: [&str; 2] = ["# Not carried over: nobody is answered here, with 403.", "closed = true"];

impl ImportedToml {
    /// Of two routes for the same host and path one remains: the closed one, unless nginx would have led from it to TLS.
    pub fn add(&mut self, mut route: Route, server: &Directive, findings: &mut Findings) {
        for at in (0..self.routes.len()).rev() {
            let known = &mut self.routes[at];
            let is_met = known.hosts.is_empty() && route.hosts.is_empty()
                || known.hosts.iter().any(|host| route.hosts.contains(host));
            if known.path != route.path || !is_met {
                continue;
            }
            findings.leave(server, "another server or location has the same host and path: one of them counts");
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

    /// The text of it. `file` is what it was made from.
    pub fn text(&self, origins: &Origins, file: &Path) -> String {
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
        let mut sections = String::new();
        origins.write(&mut sections);
        section(&sections, &[String::new()]);
        section("\n[limits]\n", &self.limits);
        if let Some(path) = &self.log {
            section("\n[log]\n", &[format!("path = {}", quoted(path))]);
        }
        out
    }
}
