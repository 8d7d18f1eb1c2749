//! What the locations of a server come to, as the routes of it: who answers on which path, and which paths are closed on
//! which of them. It reads no directive.

use std::path::Path;

use crate::import::import_findings::{Findings, quoted};
use crate::import::imported_toml::{CLOSED_LINES, Route};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_guards::{ClosedPath, Kind};
use crate::import::nginx_location::Level;

/// All that a server answers, and what it keeps people out of.
#[derive(Default)]
pub struct ServerAnswers {
    pub carried: Vec<Carried>,
    pub closed: Vec<ClosedPath>,
    /// What begins with a dot is nobody's.
    pub hides_dotfiles: bool,
}

/// What one location comes to, before the guards of its server are known whole.
pub struct Carried {
    pub path: String,
    pub kind: Kind,
    pub answer: Answers,
    /// Its files, if it has any, are not those of the server around it.
    pub is_apart: bool,
    /// By locations within it.
    pub closed_within: Vec<ClosedPath>,
    /// Statuses and paths.
    pub pages: Vec<(String, String)>,
}

/// Who answers.
pub enum Answers {
    /// An origin or memcached: the keys of the route.
    Others(Vec<String>),
    /// The server's numbers: the keys of the route.
    Numbers(Vec<String>),
    Files(Box<Level>),
    /// Nobody: nginx keeps people out, or answers in a way that was not carried over. The route around it would show its files.
    Nobody {
        gives_way: bool,
    },
}

impl Carried {
    /// Nobody is answered.
    pub fn closed(path: &str, kind: Kind) -> Carried {
        let answer = Answers::Nobody { gives_way: false };
        Carried { path: path.to_owned(), kind, answer, is_apart: true, closed_within: Vec::new(), pages: Vec::new() }
    }

    /// Files of `level`, in a server with files of `around`.
    pub fn of_files(path: &str, kind: Kind, level: Level, around: &Level) -> Carried {
        let (pages, is_apart) = (level.error_pages().to_vec(), !level.has_root_of(around));
        Carried { answer: Answers::Files(Box::new(level)), is_apart, pages, ..Carried::closed(path, kind) }
    }

    pub fn asks_others(&self) -> bool {
        matches!(self.answer, Answers::Others(_))
    }

    /// Where there are files, other spellings of a path ask nobody either.
    fn closes_for_others(&self) -> Option<ClosedPath> {
        let is_part = self.path != "/" && matches!(self.answer, Answers::Files(_));
        is_part.then(|| ClosedPath::by_path(&self.path, self.kind == Kind::Exact).of_files())
    }

    /// What it closes on the routes around it.
    fn closes_around(&self) -> Option<ClosedPath> {
        let is_all = self.path == "/" && self.kind != Kind::Exact;
        match (&self.answer, self.kind) {
            _ if is_all => None,
            (Answers::Nobody { .. }, kind) => Some(ClosedPath::by_path(&self.path, kind == Kind::Exact)),
            (_, Kind::Exact) => None,
            _ if self.path.ends_with('/') || !self.is_apart => None,
            _ => Some(ClosedPath::beside(&self.path)),
        }
    }
}

impl ServerAnswers {
    /// A server that answers nobody.
    pub fn nobody(gives_way: bool) -> ServerAnswers {
        let answer = Answers::Nobody { gives_way };
        let all = Carried { answer, ..Carried::closed("/", Kind::Usual) };
        ServerAnswers { carried: vec![all], ..ServerAnswers::default() }
    }

    /// Routes of a server, each with the paths that are closed on it.
    pub fn routes(self, server: &Directive, hosts: &[String], prefix: &Path, findings: &mut Findings) -> Vec<Route> {
        let ServerAnswers { carried, mut closed, hides_dotfiles } = self;
        // nginx counts all names that begin so to a location, in every spelling; a route has whole segments.
        closed.extend(carried.iter().filter_map(Carried::closes_around));
        closed.extend(carried.iter().filter_map(Carried::closes_for_others));
        let closes = |path: &str| closed.iter().any(|closed| closed.closes_files(path));
        // A page belongs to the route that it would belong to if it were asked for.
        let has_root = |page: &str| {
            let fits = |path: &str| page == path || path.ends_with('/') && page.starts_with(path);
            let fitting = carried.iter().filter(|carried| fits(&carried.path));
            let nearest = fitting.max_by_key(|carried| carried.path.len());
            nearest.is_some_and(|carried| matches!(carried.answer, Answers::Files(_))) && !closes(page)
        };
        let mut routes = Vec::new();
        for Carried { path, kind, answer, closed_within, pages, .. } in &carried {
            let is_other = |other: &Carried| other.path == *path && other.kind != Kind::Exact;
            if *kind == Kind::Exact && carried.iter().any(is_other) {
                // One route has the path alone and what lies beneath it: where the path alone is closed, that one closes it.
                findings.leave(server, "a location by a whole path that another begins with: the other one counts");
                continue;
            }
            let exact = (*kind == Kind::Exact).then_some(path.as_str());
            let (mut lines, is_closed, gives_way) = match answer {
                Answers::Others(lines) | Answers::Numbers(lines) => (lines.clone(), false, false),
                Answers::Files(level) => {
                    let closes =
                        |name: &str| closes(name) || closed_within.iter().any(|closed| closed.closes_files(name));
                    (level.root_lines(prefix, exact, hides_dotfiles, &closes), false, false)
                }
                Answers::Nobody { gives_way } => (CLOSED_LINES.map(str::to_owned).into(), true, *gives_way),
            };
            let asks = match answer {
                Answers::Others(lines) => lines.first().map(String::as_str),
                _ => None,
            };
            let around = closed.iter().filter(|closed| closed.holds_on(path, *kind, asks));
            let within = closed_within.iter().filter(|closed| closed.concerns(asks));
            let patterns = around.chain(within).filter(|_| !is_closed);
            let mut patterns: Vec<String> = patterns.map(|closed| literal(closed.pattern())).collect();
            patterns.sort_unstable();
            patterns.dedup();
            if !patterns.is_empty() {
                lines.push(format!("closed_paths = [{}]", patterns.join(", ")));
            }
            let pages: Vec<String> = pages
                .iter()
                .filter(|(_, page)| has_root(page))
                .map(|(status, page)| format!("{status} = {}", quoted(page)))
                .collect();
            if !pages.is_empty() {
                lines.push(format!("error_pages = {{ {} }}", pages.join(", ")));
            }
            routes.push(Route { hosts: hosts.to_vec(), path: path.clone(), lines, is_closed, gives_way });
        }
        routes
    }
}

/// A regex as a TOML string: backslashes are plain in one between single quotes.
fn literal(pattern: &str) -> String {
    match pattern.contains('\'') || pattern.chars().any(char::is_control) {
        true => quoted(pattern),
        false => format!("'{pattern}'"),
    }
}
