//! `larder import Caddyfile`: a Caddyfile in, a larder.toml out that answers the same requests by the same files, origins and rules, and a
//! list of what could not be carried over. What was not is closed.
//!
//! Files are read by `caddy_words.rs` and `caddy_file.rs`. A site is put into Caddy's order by `caddy_steps.rs` and walked through by
//! `caddy_walk.rs`; what each step says or answers is in `caddy_answers.rs` and what it is made of, and the routes that come of it in
//! `caddy_leaves.rs`. Here is the walk over sites, and what holds for all of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::import::caddy_access::UserFiles;
use crate::import::caddy_answers::Hands;
use crate::import::caddy_condition::{Condition, NamedMatchers, networks};
use crate::import::caddy_file::{self, CaddyFile, CaddySite};
use crate::import::caddy_leaves::{self, Leaf};
use crate::import::caddy_listens::{CaddyListens, PortOptions, SiteListens};
use crate::import::caddy_passage::AskedRequests;
use crate::import::caddy_steps::{self, Step};
use crate::import::caddy_text::time;
use crate::import::caddy_walk::Walk;
use crate::import::exact_networks::make_exact;
use crate::import::import_findings::{self, Findings, quoted};
use crate::import::import_flags::ImportFlags;
use crate::import::imported_toml::{ImportedToml, Route};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_order::Matcher;
use crate::import::nginx_upstream::Origins;

/// Global options that say how Caddy runs, and not what it serves.
const OF_THE_PROCESS: [&str; 13] = [
    "admin",
    "debug",
    "log",
    "storage",
    "storage_clean_interval",
    "persist_config",
    "skip_install_trust",
    "local_certs",
    "key_type",
    "default_sni",
    "fallback_sni",
    "ocsp_stapling",
    "metrics",
];

pub fn import(flags: &ImportFlags) -> ExitCode {
    let variable = |name: &str| std::env::var(name).ok();
    let done = caddy_file::read(&flags.file, &variable).and_then(|mut read| {
        let mut exact = Findings::default();
        make_exact(&mut read.options, &mut exact);
        make_exact(read.sites.iter_mut().flat_map(|site| &mut site.directives), &mut exact);
        let carried = |asks_fields: bool| {
            let users = UserFiles::beside(flags.output.as_deref());
            let findings = exact.clone();
            let mut import = Import { file: flags.file.clone(), users, findings, asks_fields, ..Import::default() };
            import.carry(&read);
            let text = import.made.text(&import.origins, &flags.file);
            (import, text)
        };
        let (mut import, mut text) = carried(true);
        if crate::config::read(&text).is_err() {
            // Routes cannot be told apart by a field that others change.
            (import, text) = carried(false);
        }
        import.users.write()?;
        Ok((import.findings, text))
    });
    import_findings::finish(flags, done)
}

/// The walk over a configuration, and what came of it so far.
#[derive(Default)]
struct Import {
    findings: Findings,
    made: ImportedToml,
    origins: Origins,
    users: UserFiles,
    listens: CaddyListens,
    ports: PortOptions,
    file: PathBuf,
    /// Caddy takes directives in an order of its operator's.
    is_ordered_otherwise: bool,
    hosts: BTreeSet<String>,
    has_all: bool,
    /// Those of all sites that are carried over: no other one answers for them, whatever its matchers name.
    all_hosts: BTreeSet<String>,
    asks_fields: bool,
    believes_proxies: bool,
    /// Of the site that is walked through.
    is_secure: Option<bool>,
}

impl Import {
    /// Where relative names of files begin.
    fn folder(&self) -> PathBuf {
        let folder = self.file.parent().unwrap_or(Path::new("")).to_owned();
        std::path::absolute(&folder).unwrap_or(folder)
    }

    fn carry(&mut self, read: &CaddyFile) {
        for option in &read.options {
            self.option(option);
        }
        for absent in &read.absent {
            self.findings.leave(absent, "there is no such file or snippet");
        }
        let folder = self.folder();
        let all = read.sites.iter().map(|site| {
            let listens = SiteListens::of(&site.head, &site.directives, &self.ports, &folder, &mut self.findings);
            (site, listens)
        });
        let (secure, plain): (Vec<_>, Vec<_>) =
            all.collect::<Vec<_>>().into_iter().partition(|(_, listens)| listens.is_secure());
        let (kept, dropped): (Vec<_>, Vec<_>) =
            secure.into_iter().chain(plain).partition(|(site, listens)| self.is_kept(site, listens));
        self.all_hosts = kept.iter().flat_map(|(_, listens)| listens.hosts()).collect();
        for (site, listens) in &dropped {
            if self.listens.meet(listens, &self.ports) {
                self.shut(site, listens);
            }
        }
        let of_all = kept.iter().find(|(_, listens)| listens.hosts().is_empty()).map(|(site, _)| *site);
        for (site, listens) in &kept {
            self.site(site, listens, of_all);
        }
        if self.hosts.is_empty() && !self.has_all {
            // Nothing is left of it.
            self.made.add(Route::closed(Matcher::Path("/".to_owned())));
        }
        let (sections, comments) = self.listens.sections(&self.ports);
        self.made.listeners = sections;
        self.made.comments = comments;
    }

    /// A global option.
    fn option(&mut self, option: &Directive) {
        let first = option.argument(0);
        match option.name.as_str() {
            "email" if !first.contains(['{', '"']) => self.ports.authority.push(format!("email = {}", quoted(first))),
            "acme_ca" if first.starts_with("https://") => {
                self.ports.authority.push(format!("directory = {}", quoted(first)));
            }
            "acme_ca_root" => {
                let file = self.folder().join(first).display().to_string();
                self.ports.authority.push(format!("ca = {}", quoted(&file)));
            }
            "http_port" => self.ports.http = first.parse().unwrap_or(self.ports.http),
            "https_port" => self.ports.https = first.parse().unwrap_or(self.ports.https),
            "default_bind" if !option.arguments.is_empty() => self.ports.binds.clone_from(&option.arguments),
            "auto_https" => self.ports.redirects = !matches!(first, "off" | "disable_redirects"),
            "grace_period" | "shutdown_delay" => match time(first) {
                Some(time) if option.name == "grace_period" => self.made.limit(Some(format!("drain_grace = {time}"))),
                _ => self.findings.leave(option, "larder has no setting that this becomes"),
            },
            "servers" => option.children().iter().for_each(|line| self.of_servers(line)),
            "order" if caddy_steps::is_ordered(first) => {
                self.is_ordered_otherwise = true;
                self.findings.leave(option, "closed: larder reads Caddy's own order, and not this one");
            }
            "order" => self.findings.note(option, "where its directive stands is closed"),
            name if OF_THE_PROCESS.contains(&name) => {
                self.findings.note(option, "how Caddy runs; larder has flags and settings of its own");
            }
            _ => self.findings.leave(option, "larder has no setting that this becomes"),
        }
    }

    fn of_servers(&mut self, line: &Directive) {
        match (line.name.as_str(), &line.arguments[..]) {
            ("trusted_proxies", [kind, words @ ..]) if kind == "static" => match networks(words) {
                Some(networks) => {
                    let networks: Vec<String> = networks.iter().map(|network| quoted(network)).collect();
                    self.believes_proxies = true;
                    self.made.top.push(format!("trusted_proxies = [{}]", networks.join(", ")));
                }
                None => self.findings.leave(line, "no network"),
            },
            ("timeouts", _) => {
                for timeout in line.children() {
                    let key = match timeout.name.as_str() {
                        "read_header" => "request_head_timeout",
                        "read_body" => "request_body_timeout",
                        "write" => "send_timeout",
                        "idle" => "idle_timeout",
                        _ => "",
                    };
                    match time(timeout.argument(0)).filter(|_| !key.is_empty()) {
                        Some(time) => self.made.limit(Some(format!("{key} = {time}"))),
                        None => self.findings.leave(timeout, "larder's setting cannot have this value"),
                    }
                }
            }
            ("protocols" | "metrics" | "name" | "keepalive_interval" | "log_credentials" | "strict_sni_host", _) => {
                self.findings.note(line, "larder does so by itself, or has no need of it");
            }
            _ => self.findings.leave(line, "larder has no setting that this becomes"),
        }
    }

    /// Does larder listen for it? What is not carried over has been said.
    fn is_kept(&mut self, site: &CaddySite, listens: &SiteListens) -> bool {
        if listens.is_unreadable() {
            let why = "not carried over: an address that is no host, or has a path or an unset variable";
            self.findings.leave(&site.head, why);
            return false;
        }
        self.listens.take(&site.head, listens, &self.ports, &mut self.findings)
    }

    /// No other site answers for the hosts of one that is not carried over.
    fn shut(&mut self, site: &CaddySite, listens: &SiteListens) {
        let shut = listens.shut_hosts();
        let mut hosts: BTreeSet<String> = shut.iter().flatten().cloned().collect();
        if shut.contains(&None) {
            hosts.extend(self.all_hosts.iter().filter(|host| host.starts_with('*')).cloned());
        }
        let hosts: Vec<String> = hosts.into_iter().filter(|host| self.hosts.insert(host.clone())).collect();
        let closed = || vec![Leaf::closed(AskedRequests::default())];
        if !hosts.is_empty() {
            self.add(closed(), &hosts, &site.head);
        }
        if shut.contains(&None) && !self.has_all {
            self.has_all = true;
            self.add(closed(), &[], &site.head);
        }
    }

    fn site(&mut self, site: &CaddySite, listens: &SiteListens, of_all: Option<&CaddySite>) {
        let head = &site.head;
        if !listens.is_secure() && self.listens.leads_to_tls() {
            self.findings.leave(head, "in the clear all are led to https://, as other sites are");
        }
        self.of_site(site);
        self.is_secure = listens.protocol();
        let mut hosts = listens.hosts();
        let (count, is_for_all) = (hosts.len(), hosts.is_empty());
        hosts.retain(|host| !self.hosts.contains(host));
        if hosts.len() < count || is_for_all && self.has_all {
            self.findings.leave(head, "another site has the same host: one of them counts");
        }
        if if is_for_all { self.has_all } else { hosts.is_empty() } {
            return;
        }
        self.has_all |= is_for_all;
        self.hosts.extend(hosts.iter().cloned());
        if listens.asks_clients || self.is_ordered_otherwise {
            return self.add(vec![Leaf::closed(AskedRequests::default())], &hosts, head);
        }
        let steps = caddy_steps::steps(&site.directives, &NamedMatchers::default(), true);
        let steps_of_all = of_all.map(|site| caddy_steps::steps(&site.directives, &NamedMatchers::default(), true));
        for class in self.classes(&steps, &hosts) {
            let (any, names): (Vec<String>, Vec<String>) = class.into_iter().partition(|host| host.starts_with("*."));
            if any.is_empty() || !names.is_empty() {
                let leaves = self.walk(&steps, names.first().map(String::as_str));
                self.add_all(leaves, &names, head);
            }
            for any in any {
                let mut leaves = self.walk(&steps, Some(&any));
                let deeper = steps_of_all.as_ref().map(|steps| self.walk(steps, Some(&format!("*.{any}"))));
                if deeper.is_some_and(|deeper| deeper != leaves) {
                    self.findings.note(head, "a * stands for one label: 403 for names with more");
                    let of_more = Condition::Field("Host".to_owned(), Some(format!("*.{any}*")));
                    let asked = AskedRequests::default().with(&of_more);
                    leaves
                        .iter_mut()
                        .for_each(|leaves| leaves.splice(..0, asked.clone().map(Leaf::closed)).for_each(drop));
                }
                self.add_all(leaves, &[any], head);
            }
        }
    }

    /// The hosts of a site in groups, in each of which all matchers of hosts say the same. Those of other sites are none of its.
    fn classes(&self, steps: &[Step<'_>], hosts: &[String]) -> Vec<Vec<String>> {
        let mut named = BTreeSet::new();
        hosts_in(steps, &mut named);
        if named.is_empty() {
            return vec![hosts.to_vec()];
        }
        let is_its = |name: &&String| match hosts.is_empty() {
            true => *name != "*" && !self.hosts.contains(*name),
            false => !hosts.contains(name) && hosts.iter().any(|host| is_beneath(name, host)),
        };
        let named = named.iter().filter(|name| !self.all_hosts.contains(*name)).filter(is_its);
        let mut classes: Vec<Vec<String>> = hosts.iter().chain(named).map(|host| vec![host.clone()]).collect();
        if hosts.is_empty() {
            classes.push(Vec::new());
        }
        classes
    }

    /// The places of a site for this host.
    fn walk(&mut self, steps: &[Step<'_>], host: Option<&str>) -> Option<Vec<Leaf>> {
        let folder = self.folder();
        let hands = Hands {
            findings: &mut self.findings,
            origins: &mut self.origins,
            users: &mut self.users,
            file: &self.file,
            folder: &folder,
            believes_proxies: self.believes_proxies,
            asks_fields: self.asks_fields,
            is_secure: self.is_secure,
        };
        Walk::new(hands, host).leaves(steps)
    }

    fn add_all(&mut self, leaves: Option<Vec<Leaf>>, hosts: &[String], head: &Directive) {
        let leaves = leaves.unwrap_or_else(|| {
            self.findings.leave(head, "closed: more cases than a site may have routes");
            vec![Leaf::closed(AskedRequests::default())]
        });
        self.add(leaves, hosts, head);
    }

    fn add(&mut self, leaves: Vec<Leaf>, hosts: &[String], head: &Directive) {
        let mut origins = String::new();
        self.origins.write(&mut origins);
        let (routes, has_unsayable) = caddy_leaves::routes(leaves, hosts, &origins);
        if has_unsayable {
            self.findings.leave(head, "closed in part: larder's routes cannot have all of these words together");
        }
        for route in routes {
            self.made.add(route);
        }
    }

    /// What a site says as a whole.
    fn of_site(&mut self, site: &CaddySite) {
        for directive in &site.directives {
            match directive.name.as_str() {
                "log" => self.log(directive),
                "handle_errors" => self.findings.leave(directive, "larder says errors itself: see error_pages"),
                _ => {}
            }
        }
    }

    fn log(&mut self, log: &Directive) {
        let output = log.children().iter().find(|line| line.name == "output");
        match output.filter(|output| output.argument(0) == "file" && !output.argument(1).contains('{')) {
            Some(output) => {
                self.made.log = Some(output.argument(1).to_owned());
                self.findings.note(log, "one log for all sites, in larder's form");
            }
            None => self.findings.note(log, "path of [log] says where an access log is written"),
        }
    }
}

/// All hosts that the matchers of a site name.
fn hosts_in(steps: &[Step<'_>], found: &mut BTreeSet<String>) {
    fn of(condition: &Condition, found: &mut BTreeSet<String>) {
        match condition {
            Condition::Host(hosts) => found.extend(hosts.iter().cloned()),
            Condition::All(all) => all.iter().for_each(|one| of(one, found)),
            Condition::Not(one) => of(one, found),
            _ => {}
        }
    }
    for step in steps {
        of(step.when(), found);
        hosts_in(step.inside.as_deref().unwrap_or_default(), found);
    }
}

/// Is a name one of those that a host with a `*` stands for?
fn is_beneath(name: &str, host: &str) -> bool {
    host.strip_prefix("*")
        .is_some_and(|suffix| name.split_once('.').is_some_and(|(_, rest)| suffix == format!(".{rest}")))
}
