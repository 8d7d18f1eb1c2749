//! The tree of locations of one server: which of them is answered by whom, and what is closed because it cannot be carried
//! over. It makes no routes.

use std::path::Path;

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_guards::{self, ClosedPath, Kind};
use crate::import::nginx_location::{Level, Location};
use crate::import::nginx_memcached::Upstreams;
use crate::import::nginx_prefixes::prefixes_of;
use crate::import::nginx_routes::{Answers, Carried, ServerAnswers};
use crate::import::nginx_upstream::Origins;

/// What is known before the locations of a server are read.
pub struct Tree<'a> {
    pub findings: &'a mut Findings,
    pub origins: &'a mut Origins,
    pub upstreams: &'a Upstreams,
    pub prefix: &'a Path,
    /// What the locations inherit.
    pub level: &'a Level,
    /// Locations that have a name.
    pub named: Vec<&'a Directive>,
    /// The root of the server, as it is written.
    pub root: Option<&'a str>,
}

/// The root of a block, as it is written.
pub fn root_of(block: &Directive) -> Option<&str> {
    block.children().iter().find(|child| child.name == "root").map(|root| root.argument(0))
}

/// Names with a dot in front are forbidden, in one of the ways in which that is usually written.
fn is_dotfile_guard(location: &Directive) -> bool {
    let is_regex = location.argument(0).starts_with('~') && location.argument(1).starts_with("/\\.");
    let forbids = |directive: &Directive| {
        matches!((directive.name.as_str(), directive.argument(0)), ("deny", "all") | ("return", "403" | "404"))
    };
    is_regex && location.children().iter().any(forbids)
}

/// Why a location that shows files as they are is none of its own.
const AROUND: &str = "what it matches is answered by the route around it";

/// The path of a location that has one.
fn path_of(location: &Directive) -> Option<(&str, Kind)> {
    match location.arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [path] if path.starts_with('/') => Some((path, Kind::Usual)),
        ["^~", path] => Some((path, Kind::BeforeRegexes)),
        ["=", path] => Some((path, Kind::Exact)),
        _ => None,
    }
}

/// A route's path is held against a request as it was sent, a location's against what that means.
fn is_path_of_route(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()) && !path.contains(['?', '#', '%'])
}

/// The key of a route that asks this origin.
fn origin_line(name: &str) -> String {
    format!("origin = {}", quoted(name))
}

impl Tree<'_> {
    /// All locations of a server but those that have a name.
    pub fn read(&mut self, server: &Directive, locations: &[&Directive]) -> ServerAnswers {
        let sources = nginx_guards::sources_run_by(server);
        let sources = sources.and_then(|sources| ClosedPath::by_regex(sources.to_owned()));
        let (mut carried, mut closed) = (Vec::new(), Vec::from_iter(sources));
        let is_all = |location: &Directive| location.arguments == ["/"] || location.arguments == ["^~", "/"];
        if !locations.iter().any(|location| is_all(location)) {
            carried.push(self.files(server, "/", Kind::Usual, self.level.clone()));
        }
        let is_by_regex = |location: &&&Directive| nginx_guards::regex_of(location).is_some();
        let (by_regex, by_path): (Vec<_>, Vec<_>) =
            locations.iter().copied().partition(|location| is_by_regex(&location));
        for block in by_path {
            self.location(block, &mut carried, &mut closed);
        }
        let asks_others = carried.iter().any(Carried::asks_others);
        for block in by_regex {
            match nginx_guards::shows_plain_files(block, self.root) {
                false => closed.push(self.close_by(block, self.root, self.level)),
                true if asks_others => {
                    carried.extend(self.shown_beside_others(block, self.root, self.level, &mut closed))
                }
                true => self.findings.leave(block, AROUND),
            }
        }
        let hides_dotfiles = locations.iter().any(|location| is_dotfile_guard(location));
        ServerAnswers { carried, closed, hides_dotfiles }
    }

    /// A location by a regex, or within another, is none of larder's: what it guards, or has answered by others, is closed on
    /// the routes around it.
    fn close_by(&mut self, block: &Directive, root: Option<&str>, outer: &Level) -> ClosedPath {
        if let Some(origin) = self.origin_beside(block, outer) {
            self.findings.note(
                block,
                "what it matches is asked of the same origin by the routes that ask that, and closed on others",
            );
            return nginx_guards::closed_by(block, root).of_origin(origin_line(&origin));
        }
        let closed = nginx_guards::closed_by(block, root);
        match &closed {
            _ if is_dotfile_guard(block) => {
                let why = "what begins with a dot is hidden, but for /.well-known/, and closed where others answer";
                self.findings.note(block, why);
            }
            closed if closed.closes("/") => {
                self.findings
                    .leave(block, "closed altogether: PCRE2 does not take its regex, or it matches everything");
            }
            _ => self.findings.leave(block, "closed (closed_paths): larder has no location by a regex"),
        }
        closed
    }

    /// The origin that a location by a regex asks, or one within another.
    fn origin_beside(&mut self, block: &Directive, outer: &Level) -> Option<String> {
        if !nginx_guards::asks_an_origin(block) {
            return None;
        }
        let location = Location::read(block, "/", self.prefix, self.findings);
        let level = location.level.within(outer);
        self.origins.of(&location.proxy_pass?, "/", &level.proxy, self.findings)
    }

    /// A location that shows files as they are where another would be asked: the files are routes where a path can say which, and
    /// nobody is asked for what it matches.
    fn shown_beside_others(
        &mut self,
        block: &Directive,
        root: Option<&str>,
        outer: &Level,
        closed: &mut Vec<ClosedPath>,
    ) -> Vec<Carried> {
        closed.push(nginx_guards::closed_by(block, root));
        let (paths, kind) = match (nginx_guards::regex_of(block), path_of(block)) {
            (Some(regex), _) => (prefixes_of(&regex).unwrap_or_default(), Kind::Usual),
            (None, Some((path, kind))) => (vec![path.to_owned()], kind),
            (None, None) => (Vec::new(), Kind::Usual),
        };
        let shown =
            paths.first().map(|path| Location::read(block, path, self.prefix, self.findings).level.within(outer));
        let Some(level) = shown.filter(|level| !level.hides_files()) else {
            self.findings.leave(block, "closed: no path says which files it shows");
            return Vec::new();
        };
        self.findings.note(block, "files of routes of their own; nobody else is asked for what it matches");
        paths.iter().map(|path| Carried::of_files(path, kind, level.clone(), self.level)).collect()
    }

    /// A location by a path, with those within it.
    fn location(&mut self, block: &Directive, carried: &mut Vec<Carried>, closed: &mut Vec<ClosedPath>) {
        let Some((path, kind)) = path_of(block) else {
            return self.findings.leave(block, "nginx would not take this location");
        };
        if !is_path_of_route(path) {
            self.findings.leave(block, "closed: the path of a route cannot be this");
            return closed.push(ClosedPath::by_path(path, kind == Kind::Exact));
        }
        let location = Location::read(block, path, self.prefix, self.findings);
        let level = location.level.clone().within(self.level);
        let root = root_of(block).or(self.root);
        let outer = self.outer_location(block, (path, kind), &location, &level);
        let (mut closed_within, mut shown) = (Vec::new(), Vec::new());
        for inner in block.children().iter().filter(|child| child.name == "location") {
            match nginx_guards::shows_plain_files(inner, root) {
                false => closed_within.push(self.close_by(inner, root, &level)),
                true if outer.asks_others() => {
                    shown.extend(self.shown_beside_others(inner, root, &level, &mut closed_within));
                }
                true => self.findings.leave(inner, AROUND),
            }
        }
        carried.push(Carried { closed_within, ..outer });
        carried.extend(shown.into_iter().filter(|shown| shown.path.starts_with(path)));
    }

    /// A location without those within it.
    fn outer_location(
        &mut self,
        block: &Directive,
        (path, kind): (&str, Kind),
        location: &Location,
        level: &Level,
    ) -> Carried {
        if location.answered_otherwise {
            let gives_way = block.children().iter().any(nginx_guards::leads_to_tls);
            return Carried { answer: Answers::Nobody { gives_way }, ..Carried::closed(path, kind) };
        }
        match (kind, path.ends_with('/')) {
            (Kind::Exact, _) => self.findings.note(block, "what lies beneath this path belongs to its route too"),
            (_, false) => self.findings.note(block, "matches whole segments of a path, and no longer names"),
            (_, true) => {}
        }
        if location.stub_status {
            let answer = Answers::Numbers(location.status_lines());
            return Carried { answer, ..Carried::closed(path, kind) };
        }
        let others = |lines| {
            let (answer, pages) = (Answers::Others(lines), level.error_pages().to_vec());
            Carried { answer, pages, ..Carried::closed(path, kind) }
        };
        if let Some(pass) = &location.proxy_pass {
            let Some(origin) = self.origins.of(pass, path, &level.proxy, self.findings) else {
                return Carried::closed(path, kind);
            };
            if path != "/" && path.ends_with('/') && kind != Kind::Exact {
                self.findings.note(block, "the path without its last slash belongs to the route around it");
            }
            return others(vec![origin_line(&origin)]);
        }
        if let Some(pass) = &location.pass {
            let Some(mut lines) = level.memcached.lines(pass, self.upstreams, self.findings) else {
                return Carried::closed(path, kind);
            };
            lines.extend(level.type_lines());
            return others(lines);
        }
        self.files(block, path, kind, level.clone())
    }

    /// Files, or who is asked where there is none.
    fn files(&mut self, block: &Directive, path: &str, kind: Kind, level: Level) -> Carried {
        if let Some(origin) = level.named.as_deref().and_then(|name| self.named_origin(name, path, &level)) {
            self.findings
                .leave(block, "larder asks the origin for all of it: files beneath the root are not looked for first");
            let answer = Answers::Others(vec![origin_line(&origin)]);
            return Carried { answer, pages: level.error_pages().to_vec(), ..Carried::closed(path, kind) };
        }
        if level.hides_files() {
            return Carried::closed(path, kind);
        }
        Carried::of_files(path, kind, level, self.level)
    }

    /// Whom a location with a name asks, if it asks an origin and guards nothing.
    fn named_origin(&mut self, name: &str, path: &str, level: &Level) -> Option<String> {
        let block = self.named.iter().find(|block| block.argument(0) == name)?;
        let location = Location::read(block, path, self.prefix, self.findings);
        let pass = location.proxy_pass.filter(|_| !location.answered_otherwise)?;
        let proxy = location.level.within(level).proxy;
        self.origins.of(&pass, path, &proxy, self.findings)
    }
}
