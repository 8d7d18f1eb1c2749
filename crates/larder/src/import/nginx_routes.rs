//! What the locations of a server come to, as the routes of it, in the order in which nginx asks them: whose files are shown and
//! whose scripts run, and which spellings of a path are closed because they mean what another route answers. It reads no directive.

use crate::import::import_findings::quoted;
use crate::import::imported_toml::Route;
use crate::import::nginx_closed_paths::{
    is_about, is_seen_by_all, kept_from, leading_out, matches, may_be_about, unmatched,
};
use crate::import::nginx_conditions;
use crate::import::nginx_conf::Directive;
use crate::import::nginx_guards;
use crate::import::nginx_level::{self, FilesShown};
use crate::import::nginx_order::{Kind, Matcher, Spot, escaped};
use crate::import::nginx_rulings::{CaseOf, Ruling, Rulings};
use crate::import::nginx_substitute::Substitute;
use crate::import::nginx_tree::{AnsweredBy, FoundLocation, Tree};
use crate::import::nginx_upstream::HandedUpgrades;

/// A file that no root has: what answers where nginx looks for no other.
const NO_FILE: &str = "not-in-nginx.html";

/// What a script has behind its name.
const BEHIND_A_SCRIPT: &str = "/any-name.php/behind";

/// The paths of those who have.
const BEHIND_ANY_SCRIPT: &str = "(?i)[.]php/";

/// All that is no script, nor a directory, nor what answers where there is none.
const NO_SCRIPT: &str = r"^(?!.*(?:[.]php(?:/|$)|/$|/not-in-nginx[.]html$))";

/// What is said once of a server some of whose locations hand no `Upgrade` on.
const CLOSED_TO_WEBSOCKETS: &str = "a WebSocket, or another upgrade, is refused where no proxy_set_header Upgrade hands it on: nginx asks for a page in its place";

const TO_TLS: &str = "redirect = { to = \"https://$host$request_uri\", status = 301 }";

/// The making of a server's routes.
struct RoutesOf<'t, 'a> {
    tree: &'t mut Tree<'a>,
    found: Vec<FoundLocation<'a>>,
    /// Names of sources, where programs run any.
    sources: Option<&'static str>,
    /// What the server itself rules, whatever location is found.
    of_server: Rulings,
}

/// The lines of a route that says who answers.
struct Answered {
    lines: Vec<String>,
    /// Files that answer under another path than their own.
    shown_elsewhere: Vec<String>,
}

/// The routes of a server, none of which has a host yet.
pub fn routes(mut tree: Tree<'_>) -> Vec<Route> {
    let rulings = tree.rulings();
    if tree.level.is_guarded() || rulings.rest == Some(Ruling::Closed) {
        return vec![Route::closed(Matcher::Path("/".to_owned()))];
    }
    let Some(mut found) = tree.read() else { return vec![Route::closed(Matcher::Path("/".to_owned()))] };
    if rulings.fallback.is_some() {
        found.iter_mut().for_each(|location| close_without_files(&mut tree, location));
        if found.iter().any(|location| location.level.scripts.splits()) {
            tree.findings.leave(
                tree.server,
                "closed behind the names of scripts: that is no file, and the server's own script's",
            );
        }
    }
    let sources = nginx_guards::sources_run_by(tree.server);
    if sources.is_some() {
        tree.findings.leave(tree.server, "names that begin with a dot are hidden where programs run");
    }
    let mut making = RoutesOf { tree: &mut tree, found, sources, of_server: rulings };
    making.all()
}

/// Where a server hands what is no file to a script before it looks for a location, one that shows no files of the server's root is asked
/// for nothing but those.
fn close_without_files(tree: &mut Tree<'_>, location: &mut FoundLocation<'_>) {
    let is_of_root = location.level.root(tree.prefix) == tree.level.root(tree.prefix);
    match location.answer {
        AnsweredBy::Closed => {}
        AnsweredBy::Files | AnsweredBy::Scripts(_) if is_of_root && !location.is_internal => {}
        _ => {
            location.answer = AnsweredBy::Closed;
            let block = location.spot.blocks.last().copied().unwrap_or(tree.server);
            tree.findings.leave(
                block,
                "closed: the server hands what is no file to a script, and this would be asked for files alone",
            );
        }
    }
}

impl<'a> RoutesOf<'_, 'a> {
    fn all(&mut self) -> Vec<Route> {
        let of_server = self.of_server.clone();
        let mut routes = Vec::new();
        let everything = Matcher::Path("/".to_owned());
        for case in &of_server.cases {
            let matcher = Matcher::Pattern(case.pattern.clone().unwrap_or_else(|| "^/".to_owned()));
            let route = self.case(case, matcher, None);
            let upgrades = self.upgrades_of(&case.ruling, None);
            routes.extend(self.refused_upgrades(&route, upgrades));
            routes.push(route);
        }
        match &of_server.rest {
            Some(ruling) => {
                let lines = self.ruled(ruling, None);
                let route =
                    lines.map_or(Route::closed(everything.clone()), |lines| Route::new(everything.clone(), lines));
                let upgrades = self.upgrades_of(ruling, None);
                routes.extend(self.refused_upgrades(&route, upgrades));
                routes.push(route);
            }
            None => {
                if of_server.fallback.is_none() {
                    routes.extend(self.found.iter().filter_map(|found| self.with_its_slash(&found.spot)));
                }
                (0..self.found.len()).for_each(|at| self.of_location(at, &mut routes));
            }
        }
        if let Some(methods) = &of_server.only_methods {
            routes.iter_mut().filter(|route| !route.has_methods()).for_each(|route| route.limit_methods(methods));
            routes.push(Route::closed(everything));
        }
        routes
    }

    fn of_location(&mut self, at: usize, routes: &mut Vec<Route>) {
        let rulings = self.found[at].rulings.clone();
        let spot = self.found[at].spot.clone();
        if self.found[at].answer != AnsweredBy::Closed {
            for case in &rulings.cases {
                let matcher = case.pattern.as_ref().map(|pattern| Matcher::Pattern(spot.where_it_matches(pattern)));
                let matcher = matcher.unwrap_or_else(|| spot.matcher.clone());
                let mut route = self.case(case, matcher, Some(at));
                // What is rewritten within a location is still asked who may ask.
                if let (Ruling::Rewritten(_), Some(only)) = (&case.ruling, &rulings.only_methods) {
                    route.keep_methods(only);
                }
                let upgrades = self.upgrades_of(&case.ruling, Some(at));
                routes.extend(self.refused_upgrades(&route, upgrades));
                routes.push(route);
            }
        }
        let matcher = match &self.found[at].answer {
            AnsweredBy::AsksElsewhere(..) if spot.kind != Kind::Exact => Matcher::Pattern(spot.pattern_with_rest()),
            _ => spot.matcher.clone(),
        };
        let matcher = if spot.is_unsayable() { Matcher::Pattern(spot.pattern()) } else { matcher };
        let Some(lines) = self.lines(at) else { return routes.push(Route::closed(matcher)) };
        let mut route = Route::new(matcher.clone(), lines);
        route.body_bytes_max = self.body_bytes_max(at);
        let upgrades = match &self.found[at].answer {
            AnsweredBy::Script(script) => self.find_script(script).and_then(|to| self.found[to].upgrades.clone()),
            _ => self.found[at].upgrades.clone(),
        };
        routes.extend(self.refused_upgrades(&route, upgrades.filter(|_| !self.found[at].is_internal)));
        if let Some(methods) = &rulings.only_methods {
            route.limit_methods(methods);
            routes.push(route);
            return routes.push(Route::closed(matcher));
        }
        routes.push(route);
    }

    /// Where somebody is asked for all beneath `/api/`, nginx leads from `/api` to it before it looks at who may come in.
    fn with_its_slash(&self, spot: &Spot<'_>) -> Option<Route> {
        let path = spot.path.as_deref().filter(|_| spot.kind != Kind::Regex)?;
        let bare = path.strip_suffix('/').filter(|bare| !bare.is_empty())?;
        let children = spot.blocks.last()?.children();
        let has = |is_it: fn(&str) -> bool| children.iter().any(|child| is_it(&child.name));
        // A location of that very path answers there, whichever kind of beginning it is.
        let is_around =
            |other: &Spot<'_>| other.blocks.len() < spot.blocks.len() && spot.blocks.starts_with(&other.blocks);
        let is_answered =
            |found: &FoundLocation<'_>| found.spot.path.as_deref() == Some(bare) && !is_around(&found.spot);
        let is_led = has(|name| name.ends_with("_pass")) && !has(|name| name == "internal");
        if !is_led || self.found.iter().any(is_answered) || !is_plain_in_urls(path) {
            return None;
        }
        let to = format!("redirect = {{ to = {}, status = 301 }}", quoted(&format!("{path}$is_args$args")));
        Some(Route::new(Matcher::Pattern(format!("^{}$", escaped(bare))), vec![to]))
    }

    /// Which protocols the origin hears of that a ruling leads to.
    fn upgrades_of(&self, ruling: &Ruling, at: Option<usize>) -> Option<HandedUpgrades> {
        let to = match ruling {
            Ruling::Rewritten(_) => at,
            Ruling::Script(script) => self.find_script(script),
            Ruling::Closed | Ruling::ToTls | Ruling::Answered(_) => None,
        };
        self.found[to?].upgrades.clone()
    }

    /// The route before this one, for those of its requests that ask for a protocol which nginx does not hand on: its origin would be asked for
    /// a page in its place. `None`: all are handed on, or nobody is answered.
    fn refused_upgrades(&mut self, route: &Route, handed: Option<HandedUpgrades>) -> Option<Route> {
        let refused = match handed? {
            HandedUpgrades::All => return None,
            HandedUpgrades::Only(protocol) => route.closed_to_upgrades(&[protocol])?,
            HandedUpgrades::None => route.closed_to_upgrades(&[])?,
        };
        self.tree.findings.note(self.tree.server, CLOSED_TO_WEBSOCKETS);
        Some(refused)
    }

    /// Of those that hand bodies on.
    fn body_bytes_max(&self, at: usize) -> Option<Option<u64>> {
        let found = &self.found[at];
        let takes_bodies = found.answer.asks_others() || matches!(found.answer, AnsweredBy::Scripts(_));
        takes_bodies.then(|| found.level.access.body_bytes_max())
    }

    fn case(&mut self, case: &CaseOf, matcher: Matcher, at: Option<usize>) -> Route {
        let is_sayable = !self.hides_others(case, at);
        let mut route = match self.ruled(&case.ruling, at).filter(|_| is_sayable) {
            Some(mut lines) => {
                lines.extend(self.closed_of_case(case, &matcher, at));
                Route::new(matcher, lines)
            }
            None => Route::closed(matcher),
        };
        route.hosts = case.host.iter().cloned().collect();
        if !case.methods.is_empty() {
            route.limit_methods(&case.methods);
        }
        route
    }

    /// A path that is one of a case's by its spelling alone is somebody else's to answer.
    fn closed_of_case(&self, case: &CaseOf, matcher: &Matcher, at: Option<usize>) -> Option<String> {
        let Matcher::Pattern(pattern) = matcher else { return None };
        let is_for_all_spellings = match &case.ruling {
            Ruling::Closed | Ruling::ToTls => false,
            Ruling::Answered(lines) => lines.iter().any(|line| line.starts_with("respond")),
            Ruling::Script(_) | Ruling::Rewritten(_) => true,
        };
        let before = self.found[..at.unwrap_or(0)].iter().map(own_pattern);
        let closed: Vec<String> = [unmatched(pattern)].into_iter().chain(before).map(|it| literal(&it)).collect();
        is_for_all_spellings.then(|| format!("closed_paths = [{}]", closed.join(", ")))
    }

    /// A route of a host comes before all that name none: what a location shows one host alone would stand before the guards of locations
    /// within it.
    fn hides_others(&mut self, case: &CaseOf, at: Option<usize>) -> bool {
        let (Some(at), Some(_), Ruling::Rewritten(_) | Ruling::Script(_)) = (at, &case.host, &case.ruling) else {
            return false;
        };
        if let Some(block) = self.found[at].spot.blocks.last() {
            self.tree.findings.leave(
                block,
                "closed for one host: what an `if` of a location shows it alone would hide other locations",
            );
        }
        true
    }

    /// The lines of a route for a ruling on requests of a location, or of the server. `None`: closed.
    fn ruled(&mut self, ruling: &Ruling, at: Option<usize>) -> Option<Vec<String>> {
        match ruling {
            Ruling::Closed => None,
            Ruling::ToTls => Some(vec![TO_TLS.to_owned()]),
            Ruling::Answered(lines) => {
                let level = at.map_or(&self.tree.level, |at| &self.found[at].level).clone();
                let fields = level.fields.lines(false, self.tree.findings);
                Some(lines.iter().cloned().chain(fields).collect())
            }
            Ruling::Script(script) => self.script(script, at),
            Ruling::Rewritten(target) => {
                let found = &self.found[at?];
                let AnsweredBy::Asks(lines) = &found.answer else { return None };
                if lines.iter().any(|line| line.starts_with("strip_prefix")) {
                    return None;
                }
                let rewrite = format!("rewrite = {}", quoted(target));
                Some(
                    lines
                        .iter()
                        .cloned()
                        .chain([rewrite])
                        .chain(found.access.clone())
                        .chain(found.words.clone())
                        .collect(),
                )
            }
        }
    }

    /// The lines of a route on which one script answers, whatever is asked for.
    fn script(&mut self, script: &Substitute, at: Option<usize>) -> Option<Vec<String>> {
        let to = self.find_script(script)?;
        let (own, runner) = (at.map(|at| &self.found[at]), &self.found[to]);
        let mut lines = match &runner.answer {
            AnsweredBy::Scripts(_) => {
                let block = *runner.spot.blocks.last()?;
                let pass = block.children().iter().find(|child| child.name == "fastcgi_pass")?;
                let pass = self.tree.with_constants(pass, block);
                let (scripts, root) = (runner.level.scripts.clone(), runner.level.root(self.tree.prefix));
                let origin = scripts.always((&pass, &script.path), &root, self.tree.origins, self.tree.findings)?;
                vec![format!("origin = {}", quoted(&origin))]
            }
            AnsweredBy::Asks(lines) if runner.answer.asks_others() => lines.clone(),
            _ => return None,
        };
        // nginx asks who may come in where the script is, and not where it was rewritten.
        let of_own = own.map_or(&[][..], |own| &own.access);
        lines.extend(nginx_guards::with_others(&runner.access, of_own));
        lines.extend(runner.words.iter().cloned());
        Some(lines)
    }

    fn find(&self, path: &str) -> Option<usize> {
        self.found.iter().position(|found| found.spot.matches(path))
    }

    /// The location that is asked for a script, with all that is handed to it in its path. `None` also where it has a rule for some of those
    /// who ask it.
    fn find_script(&self, script: &Substitute) -> Option<usize> {
        let to = self.find(&script.path)?;
        let Rulings { cases, only_methods, .. } = &self.found[to].rulings;
        if only_methods.is_some() || cases.iter().any(|case| may_be_about(case, &script.path)) {
            return None;
        }
        let takes_more = |to: usize| {
            let is_same = self.find(&format!("{}/behind", script.path)) == Some(to);
            is_same && !self.found[to].level.looks_for_whole_path
        };
        (!script.is_followed || takes_more(to)).then_some(to)
    }

    /// The lines of a location's route. `None`: closed.
    fn lines(&mut self, at: usize) -> Option<Vec<String>> {
        if self.found[at].is_internal && self.found[at].answer != AnsweredBy::Closed {
            return Some(vec!["respond = { status = 404 }".to_owned()]);
        }
        let found = &self.found[at];
        let (access, words) = (found.access.clone(), found.words.clone());
        let answered = match found.answer.clone() {
            AnsweredBy::Closed => return None,
            AnsweredBy::ToTls => return Some(vec![TO_TLS.to_owned()]),
            AnsweredBy::Script(script) => {
                let lines = self.script(&script, Some(at))?;
                return Some(lines.into_iter().chain(self.closed_line(at, &[], true)).collect());
            }
            AnsweredBy::Asks(lines) => Answered { lines, shown_elsewhere: Vec::new() },
            AnsweredBy::AsksElsewhere(uri, mut lines) => {
                let rest = if found.spot.kind == Kind::Exact { "" } else { "$1" };
                lines.push(format!("rewrite = {}", quoted(&format!("{uri}{rest}"))));
                Answered { lines, shown_elsewhere: Vec::new() }
            }
            AnsweredBy::Files => self.files(at),
            AnsweredBy::Scripts(origin) => self.scripts(at, &origin),
        };
        let mut lines = answered.lines;
        lines.extend(self.closed_line(
            at,
            &answered.shown_elsewhere,
            lines.iter().any(|line| line.starts_with("origin")),
        ));
        lines.extend(self.pages_line(at));
        lines.extend(access.into_iter().chain(words));
        Some(lines)
    }

    fn is_source(&self, path: &str) -> bool {
        self.sources.is_some_and(|sources| matches(sources, path))
    }

    fn has_root_of(&self, one: usize, other: usize) -> bool {
        let root = |at: usize| self.found[at].level.root(self.tree.prefix);
        root(one) == root(other)
    }

    /// Does a location keep out whom another one does? nginx asks both where one answers in place of the other.
    fn has_guards_of(&self, at: usize, other: usize) -> bool {
        nginx_guards::are_guarded_like(&self.found[at].access, &self.found[other].access)
    }

    /// The origin that runs this script, of the root of a location.
    fn runner(&self, at: usize, script: &Substitute) -> Option<String> {
        let to = self.find_script(script).filter(|_| script.is_script())?;
        let to = Some(to).filter(|to| self.has_root_of(at, *to) && self.has_guards_of(at, *to))?;
        match &self.found[to].answer {
            AnsweredBy::Scripts(origin) => Some(origin.clone()),
            _ => None,
        }
    }

    /// The files of a root; where a script answers for a directory, or for what is no file, the root's scripts with them.
    fn files(&mut self, at: usize) -> Answered {
        let found = &self.found[at];
        let folder = match (&found.spot.path, found.spot.kind) {
            (Some(path), Kind::Exact) if !path.ends_with('/') => None,
            (Some(path), _) => Some(format!("{}/", path.trim_end_matches('/'))),
            (None, _) => None,
        };
        let (mut index, mut origin) = (Vec::new(), None);
        let passes_directories_by = found.level.passes_directories_by
            || found.rulings.passes_directories_by
            || self.of_server.passes_directories_by;
        let names = if passes_directories_by { Vec::new() } else { found.level.index() };
        let named = names.len();
        let names = self.seen_by_all(at, folder.as_deref().unwrap_or("/"), names);
        // nginx takes the first that is there: none behind one that nobody runs here.
        for name in &names {
            let runner =
                folder.as_ref().and_then(|folder| self.runner(at, &Substitute::whole(format!("{folder}{name}"))));
            match (self.is_source(&format!("/{name}")), runner) {
                (false, _) => index.push(name.clone()),
                (true, Some(runner)) => {
                    origin = Some(runner);
                    index.push(name.clone());
                }
                (true, None) => {
                    self.leave(at, "closed: an index that is a program's, which nobody runs here, and those behind it");
                    break;
                }
            }
        }
        let (fallback, runner) = self.fallback(at);
        let origin = runner.or(origin);
        if origin.is_none() {
            index.retain(|name| !self.is_source(&format!("/{name}")));
        }
        let may_list = index.len() == named && !passes_directories_by;
        let mut fallback = fallback.filter(|path| origin.is_some() || !self.is_source(path));
        if origin.is_some() {
            // larder would take names of its own.
            fallback = fallback.or_else(|| Some(format!("/{NO_FILE}")));
        }
        // Without any, a directory is no file at all.
        if index.is_empty() && !passes_directories_by {
            index.push(NO_FILE.to_owned());
        }
        let found = &self.found[at];
        let shown = FilesShown {
            prefix: self.tree.prefix,
            only: found.spot.path.as_deref().filter(|_| found.spot.kind == Kind::Exact),
            shows_dotfiles: self.sources.is_none(),
            index: &index,
            fallback: fallback.as_deref(),
            may_list,
        };
        let mut lines = found.level.root_lines(&shown);
        lines.extend(origin.map(|origin| format!("origin = {}", quoted(&origin))));
        let shown_elsewhere = index.iter().map(|name| format!("/{name}")).chain(fallback).collect();
        Answered { lines, shown_elsewhere }
    }

    /// Names of indexes that nginx shows to all whom the location lets in, by their own paths.
    fn seen_by_all(&mut self, at: usize, folder: &str, mut names: Vec<String>) -> Vec<String> {
        let named = names.len();
        let folders = ["", "any-name/", "0/"].map(|beneath| format!("{folder}{beneath}"));
        let mut own: Vec<&String> = folders.iter().filter(|folder| self.find(folder) == Some(at)).collect();
        let is_known = !own.is_empty();
        // Of a regex nobody knows a folder.
        if !is_known {
            own.extend(folders.last());
        }
        let prefix = self.tree.prefix;
        let is_seen = |path: String| {
            !self.is_ruled_by_server(&path) && is_seen_by_all(&self.found, at, (&path, is_known), prefix)
        };
        // nginx takes the first that is there: none behind one that is kept from somebody.
        let seen = names.iter().take_while(|name| own.iter().all(|folder| is_seen(format!("{folder}{name}"))));
        let seen = seen.count();
        names.truncate(seen);
        if names.len() < named {
            let why =
                "closed in part: where an index would answer, nginx asks the location of that file who may come in";
            self.leave(at, why);
        }
        names
    }

    /// nginx asks a server's own rulings again for the file that it has found.
    fn is_ruled_by_server(&self, path: &str) -> bool {
        self.of_server.cases.iter().any(|case| is_about(case, path))
    }

    /// What answers where there is no file, and the origin that runs it if it is a script.
    fn fallback(&mut self, at: usize) -> (Option<String>, Option<String>) {
        let block = self.found[at].spot.blocks.last();
        if block.is_some_and(|block| nginx_conditions::has_mere_condition(block)) && self.of_server.fallback.is_none() {
            self.leave(at, "404 where there is no file: who meets an `if` beside it is told nothing else by nginx");
            return (None, None);
        }
        let FoundLocation { level, rulings, .. } = &self.found[at];
        let of_rules = self.of_server.fallback.clone().or_else(|| rulings.fallback.clone());
        let (level, to) = (level.clone(), of_rules.or_else(|| level.fallback.clone()));
        let (to, origin) = match (to, self.tree.named_script(&level, &self.found[at].access)) {
            (Some(to), _) if self.is_ruled_by_server(&to.path) => {
                self.leave(at, "404 where there is no file: the server has a rule of its own for what nginx asks then");
                return (None, None);
            }
            (Some(to), _) => (to, None),
            (None, Some((to, origin))) => (to, origin),
            (None, None) => {
                if level.named.is_some() {
                    self.leave(at, "404 where there is no file: larder cannot ask the location that is named there");
                }
                return (None, None);
            }
        };
        if let Some(origin) = origin.or_else(|| self.runner(at, &to)) {
            return (Some(to.path), Some(origin));
        }
        let is_file = self.find(&to.path).is_some_and(|of| {
            let is_shown = self.found[of].answer == AnsweredBy::Files && !self.found[of].is_internal;
            is_shown && self.has_root_of(at, of) && self.has_guards_of(at, of)
        });
        if is_file && !to.is_followed && !self.is_source(&to.path) {
            return (Some(to.path), None);
        }
        self.leave(at, "404 where there is no file: what nginx asks then is not one of this root's files or scripts");
        (None, None)
    }

    fn leave(&mut self, at: usize, why: &'static str) {
        let block: &Directive = self.found[at].spot.blocks.last().copied().unwrap_or(self.tree.server);
        self.tree.findings.leave(block, why);
    }

    /// The scripts of a root, and nothing else of it.
    fn scripts(&mut self, at: usize, origin: &str) -> Answered {
        let (fallback, runner) = self.fallback(at);
        let found = &self.found[at];
        let fallback = fallback.filter(|_| runner.is_some()).unwrap_or_else(|| format!("/{NO_FILE}"));
        let index = vec![found.level.scripts.index().unwrap_or(NO_FILE).to_owned()];
        let shown = FilesShown {
            prefix: self.tree.prefix,
            only: None,
            shows_dotfiles: false,
            index: &index,
            fallback: Some(&fallback),
            may_list: false,
        };
        let mut lines = found.level.root_lines(&shown);
        lines.push(format!("origin = {}", quoted(origin)));
        Answered { lines, shown_elsewhere: vec![fallback, format!("/{}", index[0])] }
    }

    /// Paths that are closed: sources where they are files, and spellings of what another route answers.
    fn closed_line(&self, at: usize, shown_elsewhere: &[String], runs_scripts: bool) -> Option<String> {
        let found = &self.found[at];
        let is_root = matches!(found.answer, AnsweredBy::Files | AnsweredBy::Scripts(_));
        let mut closed: Vec<String> = Vec::new();
        match (&found.answer, self.sources) {
            (AnsweredBy::Files, Some(sources)) if !runs_scripts => closed.push(sources.to_owned()),
            (AnsweredBy::Scripts(_), _) if !found.spot.pattern().contains("php") => closed.push(NO_SCRIPT.to_owned()),
            _ => {}
        }
        // What is no file is the server's own script's to answer, where it has one.
        let takes_what_is_behind =
            found.level.scripts.splits() && !found.level.looks_for_whole_path && self.of_server.fallback.is_none();
        if matches!(found.answer, AnsweredBy::Scripts(_)) && !takes_what_is_behind {
            closed.push(BEHIND_ANY_SCRIPT.to_owned());
        }
        if found.answer == AnsweredBy::Files && runs_scripts {
            let is_run = self
                .find(BEHIND_A_SCRIPT)
                .is_some_and(|to| to < at && matches!(self.found[to].answer, AnsweredBy::Scripts(_)));
            let runs_behind = |path: &String| {
                let to = self.find(&format!("{path}/behind"));
                to.is_some_and(|to| matches!(self.found[to].answer, AnsweredBy::Scripts(_)))
            };
            let but_for = shown_elsewhere.iter().filter(|path| path.ends_with(".php") && runs_behind(path));
            let but_for: String = but_for.map(|path| format!("(?!{}/)", escaped(path))).collect();
            if !is_run {
                closed.push(format!("(?i)^{but_for}.*[.]php/"));
            }
        }
        if found.answer.is_for_all_spellings() || is_root {
            let others = self.found[..at].iter().filter(|other| {
                let is_answered = !matches!(other.answer, AnsweredBy::Closed);
                is_answered && (other.answer.key() != found.answer.key() || runs_scripts && other.shows_files_alone())
            });
            // And longer paths, which are asked behind it.
            let longer = self.found[at + 1..].iter().filter(|other| {
                let is_otherwise = other.answer.key() != found.answer.key() || other.access != found.access;
                is_otherwise && other.spot.path.as_ref().is_some_and(|path| found.spot.is_shorter_than(path))
            });
            closed.extend(others.chain(longer).map(own_pattern));
            let cases =
                self.found[..=at].iter().flat_map(|other| other.rulings.cases.iter().map(move |case| (other, case)));
            let is_other =
                |(_, case): &(&FoundLocation<'_>, &CaseOf)| case.methods.is_empty() && case.ruling != Ruling::Closed;
            let patterns = cases
                .filter(is_other)
                .filter_map(|(other, case)| Some(other.spot.where_it_matches(case.pattern.as_deref()?)));
            closed.extend(patterns);
        }
        closed.extend(kept_from(&self.found, at));
        closed.retain(|pattern| !shown_elsewhere.iter().any(|path| matches(pattern, path)));
        // What answers here under other paths has its own, which may lie elsewhere.
        let but_for: String = shown_elsewhere.iter().map(|path| format!("(?!{}$)", escaped(path))).collect();
        let runs_others = found.answer == AnsweredBy::Files && runs_scripts;
        let out = leading_out(&self.found, at, runs_others);
        closed.extend(out.map(|pattern| pattern.replacen('^', &format!("^{but_for}"), 1)));
        closed.sort_unstable();
        closed.dedup();
        let closed: Vec<String> = closed.iter().map(|pattern| literal(pattern)).collect();
        (!closed.is_empty()).then(|| format!("closed_paths = [{}]", closed.join(", ")))
    }

    /// Pages for errors that are files for everybody.
    fn pages_line(&mut self, at: usize) -> Option<String> {
        let mut pages = Vec::new();
        let leads = |line: &String| line.starts_with("auth_request = ") && line.contains(", login = ");
        if let Some(page) = self.found[at].level.login_page.clone()
            && !self.found[at].access.iter().any(leads)
        {
            self.tree.findings.leave(&page, nginx_level::NOT_LED);
        }
        for line in self.found[at].level.error_pages().to_vec() {
            let to = self.find(&line.page).filter(|to| self.has_guards_of(at, *to)).map(|to| &self.found[to]);
            let is_shown = to.is_some_and(|to| {
                let is_ruled = to.rulings.cases.iter().any(|case| is_about(case, &line.page));
                to.answer == AnsweredBy::Files && !to.is_internal && to.rulings.only_methods.is_none() && !is_ruled
            });
            let is_shown = is_shown && !self.is_ruled_by_server(&line.page);
            if is_shown && !self.is_source(&line.page) && !line.page.contains("/.") {
                pages.push(format!("{} = {}", line.status, quoted(&line.page)));
            } else {
                self.tree.findings.leave(&line.directive, "an error's page must be a file that anybody may see");
            }
        }
        (!pages.is_empty()).then(|| format!("error_pages = {{ {} }}", pages.join(", ")))
    }
}

/// What a location answers, with the path of its folder where nginx leads from that to it.
fn own_pattern(found: &FoundLocation<'_>) -> String {
    match found.answer.asks_others() || matches!(found.answer, AnsweredBy::Scripts(_)) {
        true => found.spot.pattern_with_folder(),
        false => found.spot.pattern(),
    }
}

/// Is the path written in a URL as it stands here, and as a variable of nobody's?
fn is_plain_in_urls(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~!&'()*+,;=:@".contains(&byte))
}

/// A regex as a TOML string: backslashes are plain in one between single quotes.
pub fn literal(pattern: &str) -> String {
    match pattern.contains('\'') || pattern.chars().any(char::is_control) {
        true => quoted(pattern),
        false => format!("'{pattern}'"),
    }
}
