//! The regions of a host's paths, and the route of each. All that Apache's sections, proxies, redirects and aliases divide begins somewhere in
//! a path, so beginnings divide the paths into regions in each of which all of them say the same: it is worked out what they say there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::import::apache_access::AccessRule;
use crate::import::apache_paths::{PROGRAMS, PROGRAMS_BESIDE_PHP, PathBeginning, UNUSUAL, closes};
use crate::import::apache_proxy::{Balancers, ProxyAsked, ProxyWord, Upgrades};
use crate::import::apache_redirects::RedirectWord;
use crate::import::apache_scope::{ApacheScope, NamesOf, ScriptWord};
use crate::import::apache_sections::SectionWords;
use crate::import::import_findings::{Findings, literal, quoted};
use crate::import::imported_toml::Route;
use crate::import::nginx_conf::Directive;
use crate::import::nginx_order::Matcher;
use crate::import::nginx_upstream::Origins;

/// What Apache shows for a directory unless it is told otherwise.
const INDEX: &str = "index.html";

/// A file that no root has: what answers where Apache looks for no other.
const NO_FILE: &str = "not-in-apache.html";

/// More entries of a directory than are looked at for files that guard them.
const ENTRIES_MAX: usize = 50_000;

/// A host's own words, those of the file around them, and what is made of them.
pub struct HostRegions<'w> {
    directories: Vec<&'w (String, SectionWords)>,
    locations: Vec<&'w (PathBeginning, SectionWords)>,
    proxies: Vec<&'w (PathBeginning, ProxyWord)>,
    redirects: Vec<&'w (PathBeginning, RedirectWord)>,
    aliases: Vec<(PathBeginning, Option<String>)>,
    closed_names: Vec<&'w NamesOf<String>>,
    scripts: Vec<&'w NamesOf<ScriptWord>>,
    closed_paths: Vec<String>,
    words: SectionWords,
    balancers: Balancers,
    verifies: bool,
    has_tls: bool,
    leads_sockets: bool,
    /// What is said of this host is said of it here.
    at: &'w Directive,
    points: BTreeSet<PathBeginning>,
    /// Directories of which it is known whether a file in them may guard them.
    looked_at: BTreeMap<String, bool>,
}

/// Who answers in a region.
struct AnsweredRegion {
    /// In place of the region's own, where it has groups.
    pattern: Option<String>,
    lines: Vec<String>,
    closed: Vec<String>,
    /// Who asks there for a protocol that is not handed on is refused: larder would hand the question on.
    upgrades: Upgrades,
}

/// What is said once of a host some of whose proxies hand no `Upgrade` on.
const CLOSED_TO_UPGRADES: &str =
    "a WebSocket, or another upgrade, is refused where no upgrade= hands it on: Apache asks for a page in its place";

impl<'w> HostRegions<'w> {
    pub fn new(all: &'w ApacheScope, host: &'w ApacheScope, at: &'w Directive) -> HostRegions<'w> {
        let mut directories: Vec<_> = all.directories.iter().chain(&host.directories).collect();
        directories.sort_by_key(|(path, _)| path.matches('/').count());
        let mut words = all.words.clone();
        words.then(&host.words);
        let mut balancers = all.balancers.clone();
        balancers.extend(host.balancers.iter().map(|(name, members)| (name.clone(), members.clone())));
        let mut aliases: Vec<_> = host.aliases.iter().chain(&all.aliases).cloned().collect();
        let root = host.root.as_ref().or(all.root.as_ref());
        aliases.extend(PathBeginning::new("/").map(|all| (all, root.cloned())));
        let mut regions = HostRegions {
            directories,
            locations: all.locations.iter().chain(&host.locations).collect(),
            proxies: all.proxies.iter().chain(&host.proxies).collect(),
            redirects: host.redirects.iter().chain(&all.redirects).collect(),
            aliases,
            closed_names: all.closed_names.iter().chain(&host.closed_names).collect(),
            scripts: all.scripts.iter().chain(&host.scripts).collect(),
            closed_paths: all.closed_paths.iter().chain(&host.closed_paths).cloned().collect(),
            words,
            balancers,
            verifies: all.verifies || host.verifies,
            has_tls: host.has_tls,
            leads_sockets: host.leads_sockets,
            at,
            points: BTreeSet::new(),
            looked_at: BTreeMap::new(),
        };
        regions.divide();
        regions
    }

    /// Where something begins to be said.
    fn divide(&mut self) {
        let mut points: BTreeSet<PathBeginning> = self.locations.iter().map(|(at, _)| at.clone()).collect();
        points.extend(self.proxies.iter().map(|(at, _)| at.clone()));
        points.extend(self.redirects.iter().map(|(at, _)| at.clone()));
        points.extend(self.aliases.iter().map(|(at, _)| at.clone()));
        for (from, folder) in &mut self.aliases {
            let Some(path) = folder.as_deref().and_then(plain_folder) else {
                *folder = None;
                continue;
            };
            for (directory, _) in &self.directories {
                let Some(rest) = directory.strip_prefix(&path).filter(|rest| rest.starts_with('/')) else { continue };
                match PathBeginning::new(&format!("{}{rest}", from.trimmed())) {
                    Some(point) => drop(points.insert(point)),
                    // Its paths may be spelt in several ways.
                    None => *folder = None,
                }
            }
            if folder.is_some() {
                *folder = Some(path);
            }
        }
        self.points = points;
    }

    /// The routes, the deepest region first.
    pub fn routes(&mut self, origins: &mut Origins, findings: &mut Findings) -> Vec<Route> {
        let mut points: Vec<PathBeginning> = self.points.iter().cloned().collect();
        points.sort_by_key(|point| std::cmp::Reverse(point.text().len()));
        let mut routes = Vec::new();
        for region in points {
            let answered = self.answered(&region, origins, findings);
            let whole = |pattern: String| {
                if pattern == "^/" { Matcher::Path("/".to_owned()) } else { Matcher::Pattern(pattern) }
            };
            let route = match answered {
                None => Route::closed(whole(region.regex())),
                Some(AnsweredRegion { pattern, mut lines, closed, upgrades }) => {
                    let closed: Vec<String> = closed.iter().map(|regex| literal(regex)).collect();
                    lines.push(format!("closed_paths = [{}]", closed.join(", ")));
                    let matcher = whole(pattern.unwrap_or_else(|| region.regex()));
                    let route = Route::new(matcher, lines);
                    if let Upgrades::Named(protocols) = upgrades
                        && let Some(refused) = route.closed_to_upgrades(&protocols)
                    {
                        findings.note(self.at, CLOSED_TO_UPGRADES);
                        routes.push(refused);
                    }
                    route
                }
            };
            routes.push(route);
        }
        // What no pattern is for.
        let is_for_all = |route: &Route| route.matcher == Matcher::Path("/".to_owned());
        if !routes.iter().any(is_for_all) {
            routes.push(Route::closed(Matcher::Path("/".to_owned())));
        }
        routes
    }

    /// `None`: nobody.
    fn answered(
        &mut self,
        region: &PathBeginning,
        origins: &mut Origins,
        findings: &mut Findings,
    ) -> Option<AnsweredRegion> {
        let mut around = SectionWords::default();
        self.locations.iter().filter(|(at, _)| region.is_within(at)).for_each(|(_, words)| around.then(words));
        if around.is_closed {
            return None;
        }
        if let Some((of, word)) = self.proxied(region, &around) {
            return match word {
                ProxyWord::Asks(asked) => self.asks(region, &of, &asked, &around, origins, findings),
                _ => None,
            };
        }
        if let Some((of, word)) = self.redirects.iter().find(|(of, _)| region.is_within(of)) {
            let (pattern, mut lines) = word.lines(of, region)?;
            let mut words = self.words.clone();
            words.then(&around);
            lines.extend(self.guards(&words)?);
            lines.extend(words.fields.lines(false));
            let closed = self.closed();
            return Some(AnsweredRegion { pattern: Some(pattern), lines, closed, upgrades: Upgrades::All });
        }
        let (of, folder) = self.aliases.iter().find(|(of, _)| region.is_within(of)).cloned()?;
        match folder {
            Some(folder) => self.files(region, &of, &folder, &around, origins, findings),
            None => {
                if of.text() == "/" {
                    findings.leave(self.at, "closed where files would answer: no plain DocumentRoot says which");
                }
                None
            }
        }
    }

    /// The `ProxyPass` that counts: that of the last section, else the first of the host. `None`: files answer.
    fn proxied(&self, region: &PathBeginning, around: &SectionWords) -> Option<(PathBeginning, ProxyWord)> {
        let is_its = |at: &PathBeginning| region.is_within(at);
        let of_section = self.locations.iter().rev().find(|(at, words)| is_its(at) && words.proxy.is_some());
        let found = match (of_section, &around.proxy) {
            (Some((at, _)), Some(word)) => Some((at.clone(), word.clone())),
            _ => self.proxies.iter().find(|(at, _)| is_its(at)).map(|(at, word)| (at.clone(), word.clone())),
        };
        found.filter(|(_, word)| *word != ProxyWord::Files)
    }

    fn asks(
        &self,
        region: &PathBeginning,
        of: &PathBeginning,
        asked: &ProxyAsked,
        around: &SectionWords,
        origins: &mut Origins,
        findings: &mut Findings,
    ) -> Option<AnsweredRegion> {
        let mut words = self.words.clone();
        words.then(around);
        let guards = self.guards(&words)?;
        let keeps_host = words.keeps_host.unwrap_or(false);
        let Some((pattern, mut own)) = asked.path_lines(of, region) else {
            findings
                .leave(self.at, "closed in part: the path and the URL of a ProxyPass both end in a slash, or neither");
            return None;
        };
        let Some(origin) = asked.origin(&self.balancers, keeps_host, self.verifies, origins) else {
            let why = "closed in part: a balancer is one with members that larder can ask, and with ProxyPreserveHost On where it has several";
            findings.leave(self.at, why);
            return None;
        };
        findings.note(self.at, "what an origin lets be stored is stored; Apache stores nothing");
        let mut lines = vec![format!("origin = {}", quoted(&origin))];
        lines.append(&mut own);
        lines.extend(not_stored(&guards, &words));
        lines.extend(guards);
        lines.extend(words.fields.lines(true));
        let mut upgrades = asked.upgrades.clone();
        if self.leads_sockets && asked.path == "/" {
            upgrades.add("websocket");
        }
        Some(AnsweredRegion { pattern: Some(pattern), lines, closed: self.closed(), upgrades })
    }

    /// Lines of a route. `None`: nobody is let in.
    fn guards(&self, words: &SectionWords) -> Option<Vec<String>> {
        match &words.rule {
            _ if words.is_closed || words.needs_tls && !self.has_tls => None,
            Some(AccessRule::Closed) => None,
            Some(AccessRule::Guarded(lines)) => Some(lines.clone()),
            Some(AccessRule::Open) | None => Some(Vec::new()),
        }
    }

    fn closed(&self) -> Vec<String> {
        [UNUSUAL.to_owned()].into_iter().chain(self.closed_paths.iter().cloned()).collect()
    }

    /// `of`: what is an alias of the folder, or `/`.
    fn files(
        &mut self,
        region: &PathBeginning,
        of: &PathBeginning,
        folder: &str,
        around: &SectionWords,
        origins: &mut Origins,
        findings: &mut Findings,
    ) -> Option<AnsweredRegion> {
        let beneath = format!("{folder}{}", &region.trimmed()[of.trimmed().len().min(region.trimmed().len())..]);
        let mut words = self.words.clone();
        let mut has_overrides = false;
        for (directory, said) in self.directories.iter().filter(|(directory, _)| is_beneath(&beneath, directory)) {
            has_overrides |= said.has_overrides == Some(true);
            if said.fallback.is_some() && (directory != folder || of.text() != "/") {
                findings
                    .leave(self.at, "closed in part: a script for what is no file is that of the DocumentRoot alone");
                return None;
            }
            words.then(said);
        }
        // Links are looked at before Apache knows of locations.
        let (is_granted, follows) = (words.rule.is_some(), words.follows_links());
        words.then(around);
        let guards = self.guards(&words)?;
        if !is_granted {
            findings.leave(self.at, "closed in part: no <Directory> says `Require all granted` of these files");
            return None;
        }
        if !follows || !words.follows_links() || self.is_led_to_against_options(&beneath) {
            findings.leave(
                self.at,
                "closed in part: larder follows links within a root; Options without FollowSymLinks follow none",
            );
            return None;
        }
        // Unless it is told not to, Apache looks for them, and answers nobody where it finds one.
        has_overrides |= words.has_overrides != Some(false);
        let is_never =
            self.directories.iter().any(|(directory, said)| directory.is_empty() && said.has_overrides == Some(false));
        let above = !is_never
            && Path::new(&beneath).ancestors().any(|above| above.join(".htaccess").symlink_metadata().is_ok());
        if above || has_overrides && self.may_be_overridden(&beneath) {
            findings.leave(
                self.at,
                "closed in part: without AllowOverride None, and there is an .htaccess, a link or no such folder here",
            );
            return None;
        }
        if has_overrides {
            findings.note(self.at, "no .htaccess is here now, and larder reads none that comes later");
        }
        let Some(root) = folder.strip_suffix(of.trimmed()).filter(|root| !root.is_empty()) else {
            findings.leave(
                self.at,
                "closed in part: the whole path is that of a file beneath a root: an Alias ends as its folder does",
            );
            return None;
        };
        if words.fallback.is_some() && self.guards_of_root(folder) != Some(guards.clone()) {
            findings.leave(
                self.at,
                "closed in part: what answers where there is no file is guarded otherwise at its own path",
            );
            return None;
        }
        self.files_of(root, &beneath, words, guards, origins, findings)
    }

    /// Is a folder, or one above it, a link that Apache does not follow where it stands?
    fn is_led_to_against_options(&self, folder: &str) -> bool {
        Path::new(folder).ancestors().filter(|path| path.is_symlink()).any(|link| {
            let above = link.parent().map(|above| above.display().to_string()).unwrap_or_default();
            let above = above.trim_end_matches('/');
            let mut words = self.words.clone();
            self.directories
                .iter()
                .filter(|(directory, _)| is_beneath(above, directory))
                .for_each(|(_, said)| words.then(said));
            !words.follows_links()
        })
    }

    /// Who may come to the files that lie in the DocumentRoot itself. `None`: nobody.
    fn guards_of_root(&self, folder: &str) -> Option<Vec<String>> {
        let mut words = self.words.clone();
        self.directories
            .iter()
            .filter(|(directory, _)| is_beneath(folder, directory))
            .for_each(|(_, said)| words.then(said));
        words.rule.as_ref()?;
        self.locations.iter().filter(|(at, _)| at.text() == "/").for_each(|(_, said)| words.then(said));
        self.guards(&words)
    }

    fn files_of(
        &self,
        root: &str,
        beneath: &str,
        words: SectionWords,
        guards: Vec<String>,
        origins: &mut Origins,
        findings: &mut Findings,
    ) -> Option<AnsweredRegion> {
        let is_about =
            |of: &Option<String>| of.as_ref().is_none_or(|of| is_beneath(beneath, of) || is_beneath(of, beneath));
        let application = self
            .scripts
            .iter()
            .rev()
            // A program is run where all of the region's files are such programs', and nowhere else.
            .find(|names| names.beneath.as_ref().is_none_or(|of| is_beneath(beneath, of)))
            .and_then(|names| names.said.application.clone());
        let mut closed = self.closed();
        closed.push(if application.is_some() { PROGRAMS_BESIDE_PHP } else { PROGRAMS }.to_owned());
        closed
            .extend(self.closed_names.iter().filter(|names| is_about(&names.beneath)).map(|names| names.said.clone()));
        // A file that answers under another path is guarded under that one alone.
        let is_guarded = |name: &str| {
            self.points.iter().any(|point| point.last_name() == name) || closes(&closed, &format!("/{name}"))
        };
        let mut index = words.index.clone().unwrap_or_else(|| vec![INDEX.to_owned()]);
        index.retain(|name| !is_guarded(name));
        if is_guarded(NO_FILE) {
            return None;
        }
        if index.is_empty() {
            index.push(NO_FILE.to_owned());
        }
        let fallback = match &words.fallback {
            Some(file) => {
                let is_plain = |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '%']);
                let is_name = file.strip_prefix('/').is_some_and(is_plain);
                if !is_name || is_guarded(file.trim_start_matches('/')) {
                    findings.leave(
                        self.at,
                        "closed in part: what answers where there is no file is guarded, or no plain file",
                    );
                    return None;
                }
                Some(file.clone())
            }
            None => application.is_some().then(|| format!("/{NO_FILE}")),
        };
        let names: Vec<String> = index.iter().map(|name| quoted(name)).collect();
        let mut lines = vec![format!("root = {}", quoted(root))];
        if let Some(address) = application {
            let name = origins.named("php", vec![format!("fastcgi = [{}]", quoted(&address))]);
            lines.push(format!("origin = {}", quoted(&name)));
            lines.extend(not_stored(&guards, &words));
            lines.extend(words.fields.lines(true));
        } else {
            lines.extend(words.fields.lines(false));
        }
        lines.push(format!("index = [{}]", names.join(", ")));
        lines.extend(fallback.map(|file| format!("fallback = {}", quoted(&file))));
        lines.extend(guards);
        Some(AnsweredRegion { pattern: None, lines, closed, upgrades: Upgrades::All })
    }

    /// May a file that Apache would read guard this folder, or something above or beneath it?
    fn may_be_overridden(&mut self, folder: &str) -> bool {
        if let Some(known) = self.looked_at.get(folder) {
            return *known;
        }
        let above = Path::new(folder).ancestors().any(|above| above.join(".htaccess").symlink_metadata().is_ok());
        let found = above || has_overrides_beneath(Path::new(folder));
        self.looked_at.insert(folder.to_owned(), found);
        found
    }
}

/// What is behind a guard, or is told caches otherwise than its origin says, is not stored.
fn not_stored(guards: &[String], words: &SectionWords) -> Option<String> {
    (!guards.is_empty() || words.fields.is_kept_private).then(|| "cache = false".to_owned())
}

/// A folder from `/` on, without a slash at its end. `None`: nobody knows here where it is.
fn plain_folder(written: &str) -> Option<String> {
    let parts: Vec<&str> = written.split('/').filter(|part| !part.is_empty()).collect();
    let is_plain = written.starts_with('/') && !parts.iter().any(|part| matches!(*part, "." | ".."));
    (is_plain && !written.contains(['$', '%'])).then(|| parts.iter().map(|part| format!("/{part}")).collect())
}

/// Is the first the second, or in it?
fn is_beneath(path: &str, directory: &str) -> bool {
    path == directory || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

fn has_overrides_beneath(folder: &Path) -> bool {
    let (mut folders, mut count) = (vec![folder.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { return true };
        for entry in entries {
            count += 1;
            let Ok((entry, kind)) = entry.and_then(|entry| entry.file_type().map(|kind| (entry, kind))) else {
                return true;
            };
            if entry.file_name() == ".htaccess" || kind.is_symlink() || count > ENTRIES_MAX {
                return true;
            }
            if kind.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    false
}
