//! What the locations of a server come to, as the routes of it, in the order in which nginx asks them: whose files are shown and
//! whose scripts run, and which spellings of a path are closed because they mean what another route answers. It reads no directive.

use crate::import::import_findings::{literal, quoted};
use crate::import::imported_toml::Route;
use crate::import::nginx_closed_line::{BEHIND_A_SCRIPT, own_pattern};
use crate::import::nginx_closed_paths::{is_about, unmatched};
use crate::import::nginx_found::{AnsweredBy, FoundLocation};
use crate::import::nginx_found_server::FoundServer;
use crate::import::nginx_guards;
use crate::import::nginx_level;
use crate::import::nginx_order::{Kind, Matcher, Spot, escaped};
use crate::import::nginx_rulings::{CaseOf, Ruling};
use crate::import::nginx_shown_files::Answered;
use crate::import::nginx_substitute::Substitute;
use crate::import::nginx_tree::Tree;
use crate::import::nginx_upstream::HandedUpgrades;

/// What is said once of a server some of whose locations hand no `Upgrade` on.
const CLOSED_TO_WEBSOCKETS: &str = "a WebSocket, or another upgrade, is refused where no proxy_set_header Upgrade hands it on: nginx asks for a page in its place";

/// What is said of locations that run scripts by what stands behind their names, too, and do not split that off.
const CLOSED_BEHIND_SCRIPTS: &str = "closed behind the names of scripts (/index.php/x): that is handed to a script where fastcgi_split_path_info says so";

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
    let mut making = FoundServer { tree: &mut tree, found, sources, of_server: rulings };
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

impl FoundServer<'_, '_> {
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
                    routes.extend(self.found.iter().filter_map(|found| self.with_its_slash(found)));
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
        let matcher = match &self.found[at].answer {
            AnsweredBy::AsksElsewhere(..) if spot.kind != Kind::Exact && self.found[at].strips_its_path().is_none() => {
                Matcher::Pattern(spot.pattern_with_rest())
            }
            _ => spot.matcher.clone(),
        };
        let matcher = if spot.is_unsayable() { Matcher::Pattern(spot.pattern()) } else { matcher };
        if self.found[at].answer != AnsweredBy::Closed {
            for case in &rulings.cases {
                let narrowed = case.pattern.as_ref().map(|pattern| Matcher::Pattern(spot.where_it_matches(pattern)));
                let mut route = self.case(case, narrowed.unwrap_or_else(|| matcher.clone()), Some(at));
                // What is rewritten within a location is still asked who may ask.
                if let (Ruling::Rewritten(_), Some(only)) = (&case.ruling, &rulings.only_methods) {
                    route.keep_methods(only);
                }
                let upgrades = self.upgrades_of(&case.ruling, Some(at));
                routes.extend(self.refused_upgrades(&route, upgrades));
                routes.push(route);
            }
        }
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
    fn with_its_slash(&self, location: &FoundLocation<'_>) -> Option<Route> {
        let pattern = self.folder_pattern(location)?;
        let path = location.spot.path.as_deref()?;
        let to = format!("redirect = {{ to = {}, status = 301 }}", quoted(&format!("{path}$is_args$args")));
        Some(Route::new(Matcher::Pattern(pattern), vec![to]))
    }

    /// The folder's path that is led so.
    pub fn folder_pattern(&self, location: &FoundLocation<'_>) -> Option<String> {
        let spot = &location.spot;
        let path = spot.path.as_deref().filter(|_| spot.kind != Kind::Regex)?;
        let bare = path.strip_suffix('/').filter(|bare| !bare.is_empty())?;
        // A location of that very path answers there, whichever kind of beginning it is.
        let is_around =
            |other: &Spot<'_>| other.blocks.len() < spot.blocks.len() && spot.blocks.starts_with(&other.blocks);
        let is_answered =
            |found: &FoundLocation<'_>| found.spot.path.as_deref() == Some(bare) && !is_around(&found.spot);
        if !location.is_led_to_its_slash() || self.found.iter().any(is_answered) || !is_plain_in_urls(path) {
            return None;
        }
        Some(format!("^{}$", escaped(bare)))
    }

    /// Which protocols the origin hears of that a ruling leads to.
    fn upgrades_of(&self, ruling: &Ruling, at: Option<usize>) -> Option<HandedUpgrades> {
        let to = match ruling {
            Ruling::Rewritten(_) => at,
            Ruling::Script(script) => self.find_script(script),
            Ruling::Closed | Ruling::ToTls(_) | Ruling::Answered(_) => None,
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
            None => {
                self.note_closed(case, at);
                Route::closed(matcher)
            }
        };
        route.hosts = case.host.iter().cloned().collect();
        if let Some(field) = &case.field {
            route.limit_to(field);
        }
        if !case.methods.is_empty() {
            route.limit_methods(&case.methods);
        }
        route
    }

    /// What nginx answers there is said to be closed; of what it closes itself nothing is to be said.
    fn note_closed(&mut self, case: &CaseOf, at: Option<usize>) {
        let block = at.and_then(|at| self.found[at].spot.blocks.last().copied()).unwrap_or(self.tree.server);
        if matches!(case.ruling, Ruling::Script(_) | Ruling::Rewritten(_)) {
            self.tree.findings.leave(block, "closed in part: what a rule of it leads to is nobody's to answer here");
        }
    }

    /// A path that is one of a case's by its spelling alone is somebody else's to answer.
    fn closed_of_case(&self, case: &CaseOf, matcher: &Matcher, at: Option<usize>) -> Option<String> {
        let Matcher::Pattern(pattern) = matcher else { return None };
        let is_for_all_spellings = match &case.ruling {
            Ruling::Closed | Ruling::ToTls(_) => false,
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
            Ruling::ToTls(line) => Some(vec![line.clone()]),
            Ruling::Answered(lines) => {
                let level = at.map_or(&self.tree.level, |at| &self.found[at].level).clone();
                let fields = level.fields.lines(false, self.tree.findings);
                Some(lines.iter().cloned().chain(fields).collect())
            }
            Ruling::Script(script) => self.script(script, at),
            Ruling::Rewritten(target) => {
                let found = &self.found[at?];
                let AnsweredBy::Asks(lines) = &found.answer else { return None };
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
            // An application runs its one script, whatever it is asked for; an origin over HTTP would hear the path that came.
            AnsweredBy::Asks(lines) if runs_one_script(runner) => lines.clone(),
            _ => return None,
        };
        // nginx asks who may come in where the script is, and not where it was rewritten.
        let of_own = own.map_or(&[][..], |own| &own.access);
        lines.extend(nginx_guards::with_others(&runner.access, of_own));
        lines.extend(runner.words.iter().cloned());
        Some(lines)
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
            AnsweredBy::ToTls(line) => return Some(vec![line]),
            AnsweredBy::Script(script) => {
                let lines = self.script(&script, Some(at))?;
                return Some(lines.into_iter().chain(self.closed_line(at, &[], true)).collect());
            }
            AnsweredBy::Asks(lines) => Answered { lines, shown_elsewhere: Vec::new() },
            AnsweredBy::AsksElsewhere(uri, mut lines) => {
                let rest = if found.spot.kind == Kind::Exact { "" } else { "$1" };
                lines.push(match found.strips_its_path() {
                    Some(path) => format!("strip_prefix = {}", quoted(path)),
                    None => format!("rewrite = {}", quoted(&format!("{uri}{rest}"))),
                });
                Answered { lines, shown_elsewhere: Vec::new() }
            }
            AnsweredBy::Files | AnsweredBy::Scripts(_) if found.level.has_no_files(self.tree.prefix) => {
                if found.answer != AnsweredBy::Files || found.level.fallback.is_some() {
                    self.leave(at, "404: there is no root for it, and nginx's own folder of files is not there");
                }
                Answered { lines: vec!["respond = { status = 404 }".to_owned()], shown_elsewhere: Vec::new() }
            }
            AnsweredBy::Files => self.files(at),
            AnsweredBy::Scripts(origin) => {
                if !found.level.scripts.splits() && found.spot.matches(BEHIND_A_SCRIPT) {
                    self.leave(at, CLOSED_BEHIND_SCRIPTS);
                }
                self.scripts(at, &origin)
            }
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

    /// Pages for errors that are files for everybody.
    fn pages_line(&mut self, at: usize) -> Option<String> {
        let mut pages = Vec::new();
        let leads = |line: &String| line.starts_with("auth_request = ") && line.contains(", login = ");
        if let Some(page) = self.found[at].level.login_page.clone()
            && !self.found[at].access.iter().any(leads)
        {
            self.tree.findings.leave(&page, nginx_level::NOT_LED);
        }
        // Whoever asks for a host with a ruling of its own is told that one for the page, too.
        let is_of_host = |case: &CaseOf| case.pattern.is_none() && case.host.is_some();
        let is_of_field = |case: &CaseOf| case.pattern.is_none() && case.field.is_some();
        for line in self.found[at].level.error_pages().to_vec() {
            let to = self.find(&line.page).filter(|to| self.has_guards_of(at, *to)).map(|to| &self.found[to]);
            let is_shown = to.is_some_and(|to| {
                let is_ruled = |case: &CaseOf| is_about(case, &line.page) || is_of_host(case) || is_of_field(case);
                let is_ruled = to.rulings.cases.iter().any(is_ruled);
                to.answer == AnsweredBy::Files && !to.is_internal && to.rulings.only_methods.is_none() && !is_ruled
            });
            let is_shown = is_shown
                && self.of_server.only_methods.is_none()
                && !self.of_server.cases.iter().any(is_of_host)
                && !self.is_ruled_by_server(&line.page);
            if is_shown && !self.is_source(&line.page) && !line.page.contains("/.") {
                pages.push(format!("{} = {}", line.status, quoted(&line.page)));
            } else {
                self.tree.findings.leave(&line.directive, "an error's page must be a file that anybody may see");
            }
        }
        (!pages.is_empty()).then(|| format!("error_pages = {{ {} }}", pages.join(", ")))
    }
}

fn runs_one_script(found: &FoundLocation<'_>) -> bool {
    let block = found.spot.blocks.last();
    found.answer.asks_others()
        && block.is_some_and(|block| block.children().iter().any(|child| child.name == "fastcgi_pass"))
}

/// Is the path written in a URL as it stands here, and as a variable of nobody's?
fn is_plain_in_urls(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~!&'()*+,;=:@".contains(&byte))
}
