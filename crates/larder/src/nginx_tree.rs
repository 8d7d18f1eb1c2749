//! The tree of locations of one server: which of them is answered by whom, and what is closed because it cannot be carried
//! over. It makes no routes.

use std::path::Path;

use crate::import_findings::{Findings, quoted};
use crate::nginx_conf::Directive;
use crate::nginx_guards::{self, ClosedPath, Kind};
use crate::nginx_location::{Level, Location};
use crate::nginx_memcached::Upstreams;
use crate::nginx_routes::{Answers, Carried, ServerAnswers};
use crate::nginx_upstream::Origins;

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

impl Tree<'_> {
    /// All locations of a server but those that have a name.
    pub fn read(&mut self, server: &Directive, locations: &[&Directive]) -> ServerAnswers {
        let mut closed: Vec<ClosedPath> = Vec::new();
        closed
            .extend(nginx_guards::sources_run_by(server).and_then(|sources| ClosedPath::by_regex(sources.to_owned())));
        let mut carried = Vec::new();
        let is_all = |location: &Directive| location.arguments == ["/"] || location.arguments == ["^~", "/"];
        if !locations.iter().any(|location| is_all(location)) {
            carried.push(self.files(server, "/", Kind::Usual, self.level.clone()));
        }
        for block in locations {
            match nginx_guards::regex_of(block) {
                Some(_) => closed.extend(self.close_by(block, self.root)),
                None => carried.extend(self.location(block)),
            }
        }
        let hides_dotfiles = locations.iter().any(|location| is_dotfile_guard(location));
        ServerAnswers { carried, closed, hides_dotfiles }
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

    fn location(&mut self, block: &Directive) -> Option<Carried> {
        let carried = self.outer_location(block)?;
        let inner = block.children().iter().filter(|child| child.name == "location");
        let root = root_of(block).or(self.root);
        let closed_within = inner.filter_map(|inner| self.close_by(inner, root)).collect();
        Some(Carried { closed_within, ..carried })
    }

    /// A location without those within it.
    fn outer_location(&mut self, block: &Directive) -> Option<Carried> {
        let (path, kind) = match block.arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [path] if path.starts_with('/') => (path, Kind::Usual),
            ["^~", path] => (path, Kind::BeforeRegexes),
            ["=", path] => (path, Kind::Exact),
            _ => {
                self.findings.leave(block, "a location that is none");
                return None;
            }
        };
        let location = Location::read(block, path, self.prefix, self.findings);
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
        let level = location.level.within(self.level);
        if let Some(pass) = &location.proxy_pass {
            let Some(origin) = self.origins.of(pass, path, &level.proxy, self.findings) else {
                return Some(Carried::closed(path, kind));
            };
            if path != "/" && path.ends_with('/') && kind != Kind::Exact {
                self.findings.note(block, "the path without its last slash belongs to the route around it");
            }
            return Some(others(vec![format!("origin = {}", quoted(&origin))], level.error_pages().to_vec()));
        }
        if let Some(pass) = &location.pass {
            let Some(mut lines) = level.memcached.lines(pass, self.upstreams, self.findings) else {
                return Some(Carried::closed(path, kind));
            };
            lines.extend(level.type_lines());
            return Some(others(lines, level.error_pages().to_vec()));
        }
        Some(self.files(block, path, kind, level))
    }

    /// Files, or who is asked where there is none.
    fn files(&mut self, block: &Directive, path: &str, kind: Kind, level: Level) -> Carried {
        if let Some(origin) = level.named.as_deref().and_then(|name| self.named_origin(name, path, &level)) {
            self.findings
                .leave(block, "larder asks the origin for all of it: files beneath the root are not looked for first");
            let answer = Answers::Others(vec![format!("origin = {}", quoted(&origin))]);
            return Carried { answer, pages: level.error_pages().to_vec(), ..Carried::closed(path, kind) };
        }
        if level.hides_files() {
            return Carried::closed(path, kind);
        }
        let (pages, is_apart) = (level.error_pages().to_vec(), !level.has_root_of(self.level));
        Carried { answer: Answers::Files(Box::new(level)), is_apart, pages, ..Carried::closed(path, kind) }
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
