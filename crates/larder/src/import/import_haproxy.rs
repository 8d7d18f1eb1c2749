//! `larder import haproxy.cfg`: the proxies of a HAProxy in, a larder.toml out that sends the same requests to the same servers, and a
//! list of what could not be carried over. What was not is closed.
//!
//! Files are read by `haproxy_conf.rs`; what a proxy's rules make of a request is in `haproxy_rules.rs` and what it is made of; their
//! routes are made by `decided_routes.rs`. Here is which proxies are carried over, and what holds for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::import::exact_networks::make_exact;
use crate::import::haproxy_acls::TestWorld;
use crate::import::haproxy_backends;
use crate::import::haproxy_binds::BoundAddresses;
use crate::import::haproxy_conditions::named_tests;
use crate::import::haproxy_conf::{self, HaproxySection};
use crate::import::haproxy_keywords::{self, ProxyKeyword};
use crate::import::haproxy_proxies::ProxyAnswers;
use crate::import::haproxy_rates::RatesTracked;
use crate::import::haproxy_servers::CertificateFolders;
use crate::import::haproxy_times::quoted_time;
use crate::import::haproxy_users::UserLists;
use crate::import::import_findings::{self, Findings, quoted};
use crate::import::import_flags::ImportFlags;
use crate::import::imported_toml::STORED_BY_WORD_ALONE;
use crate::import::nginx_conf::Directive;

pub fn import(flags: &ImportFlags) -> ExitCode {
    let done = haproxy_conf::read(&flags.file).and_then(|mut sections| {
        let mut findings = Findings::default();
        make_exact(sections.iter_mut().flat_map(|section| &mut section.lines), &mut findings);
        let mut import = HaproxyImport { findings, ..HaproxyImport::of(sections, &flags.file) };
        import.carry()?;
        import.users_files(flags.output.as_deref())?;
        let text = import.text(&flags.file);
        Ok((import.findings, text))
    });
    import_findings::finish(flags, done)
}

/// The import of one file, and what came of it so far.
#[derive(Default)]
struct HaproxyImport {
    sections: Vec<HaproxySection>,
    findings: Findings,
    users: UserLists,
    folders: CertificateFolders,
    limits: BTreeMap<&'static str, String>,
    top: Vec<String>,
    listeners: Vec<String>,
    routes: Vec<Vec<String>>,
    /// By the backend, and the Host that its servers get.
    origins: BTreeMap<(String, Option<String>), OriginMade>,
}

/// The keys of an origin; `None`: it can ask nobody.
type OriginMade = Option<(String, Vec<String>)>;

/// What one kind of listeners of a proxy answers.
struct KindOfListeners {
    bound: Vec<BoundAddresses>,
    answers: ProxyAnswers,
}

impl HaproxyImport {
    fn of(sections: Vec<HaproxySection>, file: &Path) -> HaproxyImport {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = std::path::absolute(folder).unwrap_or(folder.to_owned());
        let folders = CertificateFolders { certificates: folder.clone(), authorities: folder };
        HaproxyImport { sections, folders, ..HaproxyImport::default() }
    }

    fn carry(&mut self) -> Result<(), String> {
        let sections = std::mem::take(&mut self.sections);
        for section in &sections {
            match section.kind.as_str() {
                "global" => section.lines.iter().for_each(|line| self.global(line)),
                "userlist" => self.users.take(section),
                "cache" => self.cache(section),
                "frontend" | "backend" | "listen" => section.lines.iter().for_each(|line| self.proxy_line(line)),
                _ => self.findings.note(&section.head, "of use to other sections alone, which say what they miss"),
            }
        }
        self.sections = sections;
        let mut kinds = Vec::new();
        for at in 0..self.sections.len() {
            let section = self.sections[at].clone();
            if matches!(section.kind.as_str(), "frontend" | "listen") {
                kinds.extend(self.kinds(&section)?.into_iter().map(|kind| (section.head.clone(), kind)));
            }
        }
        self.serve(kinds)
    }

    fn global(&mut self, line: &Directive) {
        let folder = |known: &PathBuf| known.join(line.argument(0));
        match line.name.as_str() {
            "maxconn" => match line.argument(0).parse::<u64>() {
                Ok(max) if max > 0 => drop(self.limits.insert("connections_max", max.to_string())),
                _ => self.findings.leave(line, "no number of connections"),
            },
            "nbthread" => match line.argument(0).parse::<u32>() {
                Ok(count) if count > 0 => self.top.push(format!("workers = {count}")),
                _ => self.findings.leave(line, "no number of threads"),
            },
            "crt-base" => self.folders.certificates = folder(&self.folders.certificates),
            "ca-base" => self.folders.authorities = folder(&self.folders.authorities),
            _ if haproxy_keywords::is_of_the_process(line) => {
                self.findings.note(line, "how HAProxy runs and logs: larder has flags, [log] and [admin]");
            }
            _ => self.findings.leave(line, "larder has no setting that this becomes"),
        }
    }

    fn cache(&mut self, section: &HaproxySection) {
        for line in &section.lines {
            match line.name.as_str() {
                "total-max-size" | "max-object-size" | "process-vary" | "max-secondary-entries" => {
                    self.findings.note(line, "larder has memory.size for all that is stored");
                }
                "max-age" => self.findings.leave(line, "an answer is kept for as long as its origin says"),
                _ => self.findings.leave(line, "larder has no setting that this becomes"),
            }
        }
    }

    /// A line that holds for all of larder, or says nothing to it. What is not known is said where it closes.
    fn proxy_line(&mut self, line: &Directive) {
        match haproxy_keywords::of_proxy(line) {
            ProxyKeyword::Time => self.timeout(line, line.argument(0)),
            ProxyKeyword::OwnAnswer => {
                self.findings.note(line, "larder's own sentence is said: see error_pages of a root");
            }
            ProxyKeyword::NeedsNothing => self.findings.note(line, "larder does so by itself, or has no need of it"),
            ProxyKeyword::OfTheProcess => {
                self.findings.note(line, "how HAProxy runs and logs: larder has flags, [log] and [admin]");
            }
            ProxyKeyword::Left => self.findings.leave(line, "larder has no word that this becomes"),
            ProxyKeyword::ReadElsewhere | ProxyKeyword::Unknown => {}
        }
    }

    fn timeout(&mut self, line: &Directive, name: &str) {
        let keys: &[&'static str] = match name {
            "client" => &["request_body_timeout", "send_timeout"],
            "http-request" => &["request_head_timeout"],
            "http-keep-alive" => &["idle_timeout"],
            "tunnel" => &["tunnel_idle_timeout"],
            "connect" | "server" | "queue" => return,
            _ => return self.findings.note(line, "larder has no such time"),
        };
        match quoted_time(line.argument(1)) {
            Some(time) => keys.iter().for_each(|key| drop(self.limits.insert(key, time.clone()))),
            None => self.findings.leave(line, "larder's setting cannot have this value"),
        }
    }

    /// What a proxy answers in the clear, and what by TLS.
    fn kinds(&mut self, section: &HaproxySection) -> Result<Vec<KindOfListeners>, String> {
        if section.lines.iter().any(|line| line.name == "disabled") {
            self.findings.note(&section.head, "it is disabled, and left out");
            return Ok(Vec::new());
        }
        let is_http =
            section.lines.iter().rev().find(|line| line.name == "mode").is_some_and(|line| line.argument(0) == "http");
        if !is_http {
            self.findings.leave(&section.head, "not carried over: larder speaks HTTP alone (mode http)");
            return Ok(Vec::new());
        }
        let mut all: [Vec<BoundAddresses>; 2] = Default::default();
        for line in section.lines.iter().filter(|line| line.name == "bind") {
            if let Some(bound) = BoundAddresses::read(line, &self.folders, &mut self.findings) {
                all[usize::from(bound.is_secure)].push(bound);
            }
        }
        let mut kinds = Vec::new();
        for (bound, is_secure) in all.into_iter().zip([false, true]) {
            if !bound.is_empty() {
                kinds.push(KindOfListeners { bound, answers: self.answers(section, is_secure)? });
            }
        }
        Ok(kinds)
    }

    fn answers(&mut self, section: &HaproxySection, is_secure: bool) -> Result<ProxyAnswers, String> {
        let rates = RatesTracked::of(section, &self.sections);
        let world = TestWorld { is_secure, users: &self.users, rates: &rates };
        let named = named_tests(&section.lines, &world);
        let mut answers = ProxyAnswers::of(section, named, world, &mut self.findings)?;
        for section in self.sections.iter().filter(|section| matches!(section.kind.as_str(), "backend" | "listen")) {
            let rates = RatesTracked::of(section, &self.sections);
            let world = TestWorld { is_secure, users: &self.users, rates: &rates };
            let named = named_tests(&section.lines, &world);
            answers.within(section, named, world, &mut self.findings)?;
        }
        Ok(answers)
    }

    /// Routes know no listeners: one kind of answers is carried over, with all listeners that give the same.
    fn serve(&mut self, kinds: Vec<(Directive, KindOfListeners)>) -> Result<(), String> {
        let is_site = |kind: &KindOfListeners| !kind.answers.leads_to_tls() && kind.answers.opens_anything();
        // Of one proxy what is answered by TLS counts, which stands behind what is answered in the clear.
        let first = kinds.iter().position(|(_, kind)| is_site(kind)).map(|at| match kinds.get(at + 1) {
            Some((head, kind)) if *head == kinds[at].0 && is_site(kind) => at + 1,
            _ => at,
        });
        let leads = || kinds.iter().position(|(_, kind)| kind.answers.leads_to_tls());
        let Some(first) = first.or_else(leads).or((!kinds.is_empty()).then_some(0)) else {
            self.routes.push(vec!["path = \"/\"".to_owned(), "closed = true".to_owned()]);
            return Ok(());
        };
        let branches = kinds[first].1.answers.branches();
        let asked = branches.iter().flat_map(|branch| branch.cell.fields()).map(|(name, _)| name.clone()).collect();
        let routes = self.routes_of(&kinds[first].1.answers, &asked)?;
        for (at, (head, kind)) in kinds.iter().enumerate() {
            let leads = kind.answers.leads_to_tls() && at != first;
            if at != first && !leads && kind.answers.decided_texts() != kinds[first].1.answers.decided_texts() {
                let why = match kind.answers.opens_anything() {
                    true => "nobody listens there: it answers otherwise than the first, and routes know no listeners",
                    false => "nobody listens there: all of it is closed",
                };
                self.findings.leave(head, why);
                continue;
            }
            if leads && !kind.answers.only_leads_to_tls() {
                self.findings.leave(head, "in the clear all of it is led to https:// (mode = \"redirect\")");
            }
            for bound in &kind.bound {
                for address in &bound.addresses {
                    let mode = leads.then(|| "mode = \"redirect\"".to_owned());
                    let lines = bound.lines.iter().cloned().chain(mode);
                    let all: Vec<String> =
                        [format!("address = {}", quoted(address))].into_iter().chain(lines).collect();
                    self.listeners.push(all.join("\n"));
                }
            }
        }
        self.routes = routes;
        Ok(())
    }

    fn routes_of(&mut self, answers: &ProxyAnswers, asked: &BTreeSet<String>) -> Result<Vec<Vec<String>>, String> {
        let has_cache = answers.branches().iter().any(|branch| branch.cache.is_some());
        let mut decided = Vec::new();
        for branch in answers.branches() {
            let origin = match answers.backend_of(branch) {
                Some(backend) => self.origin(&backend, branch.host.clone()),
                None => None,
            };
            decided.push(answers.decided(branch, origin, (has_cache, asked), &mut self.findings));
        }
        crate::import::decided_routes::routes(&decided, answers.realm(), &mut self.findings)
    }

    /// The name of the origin that stands for a backend.
    fn origin(&mut self, backend: &str, host: Option<String>) -> Option<String> {
        let key = (backend.to_owned(), host.clone());
        if !self.origins.contains_key(&key) {
            let is_it = |section: &&HaproxySection| {
                section.name == backend && matches!(section.kind.as_str(), "backend" | "listen")
            };
            let section = self.sections.iter().find(is_it).cloned()?;
            self.findings
                .note(&section.head, "what an origin lets be stored is stored; HAProxy stores nothing without a cache");
            let lines = haproxy_backends::origin_lines(&section, host.as_deref(), &self.folders, &mut self.findings);
            let name = host.map_or(backend.to_owned(), |host| format!("{backend} for {host}"));
            self.origins.insert(key.clone(), lines.map(|lines| (name, lines)));
        }
        self.origins.get(&key)?.as_ref().map(|(name, _)| name.clone())
    }

    /// Files of users lie beside the new one.
    fn users_files(&mut self, output: Option<&Path>) -> Result<(), String> {
        let named = |line: &String| Some(line.strip_prefix("basic_auth = { file = \"")?.split('"').next()?.to_owned());
        let files: BTreeSet<String> = self.routes.iter().flatten().filter_map(named).collect();
        if files.is_empty() {
            return Ok(());
        }
        match output {
            Some(output) => self.users.write(&files, output.parent().unwrap_or(Path::new("."))),
            None => {
                let lists = self.sections.iter().filter(|section| section.kind == "userlist");
                lists.for_each(|list| {
                    self.findings
                        .leave(&list.head, "its file NAME.users is written beside the new one with --output alone");
                });
                Ok(())
            }
        }
    }

    fn text(&self, file: &Path) -> String {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut out = format!(
            "# Made from {name}. The rules are asked in HAProxy's order: the first path_pattern that matches counts. What was not\n\
             # carried over is closed.\n"
        );
        let mut section = |head: &str, lines: &[String]| {
            if !lines.is_empty() {
                out.push_str(&format!("{head}{}\n", lines.join("\n")));
            }
        };
        section("", &self.top);
        self.listeners.iter().for_each(|listener| section("\n[[listen]]\n", std::slice::from_ref(listener)));
        self.routes.iter().for_each(|route| section("\n[[route]]\n", route));
        for (name, lines) in self.origins.values().flatten() {
            section(&format!("\n[origin.{}]\n", quoted(name)), lines);
        }
        section("\n[policy]\n", &STORED_BY_WORD_ALONE.map(str::to_owned));
        let limits: Vec<String> = self.limits.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        section("\n[limits]\n", &limits);
        out
    }
}
