//! The places of a site where somebody answers, or nobody, in the order in which the first that fits counts; and the routes that come
//! of them. Here is which spellings of a path are closed because they mean what another place answers. It reads no directive.

use proxy::settings::ClosedPaths;

use crate::import::caddy_passage::AskedRequests;
use crate::import::import_findings::quoted;
use crate::import::imported_toml::Route;
use crate::import::nginx_order::Matcher;
use crate::import::nginx_routes::literal;

/// A place where somebody answers, or nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub asked: AskedRequests,
    pub answer: LeafAnswer,
    pub allow: Option<Vec<String>>,
    pub deny: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeafAnswer {
    /// 403, in every spelling of a path.
    Closed,
    /// A status that keeps people out, and the lines that say it.
    Refusal(Vec<String>),
    Answered(Box<AnsweredRoute>),
}

/// Who answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnsweredRoute {
    /// A pattern in place of that of the conditions, with a group for what stands behind a beginning.
    pub pattern: Option<String>,
    pub who: Vec<String>,
    pub words: Vec<String>,
    /// Patterns of paths that are closed.
    pub closed: Vec<String>,
    /// Paths of files that answer under another path than their own.
    pub shown_elsewhere: Vec<String>,
    pub body_bytes_max: Option<u64>,
}

impl Leaf {
    pub fn of(answer: LeafAnswer, asked: AskedRequests) -> Leaf {
        Leaf { asked, answer, allow: None, deny: Vec::new() }
    }

    pub fn closed(asked: AskedRequests) -> Leaf {
        Leaf::of(LeafAnswer::Closed, asked)
    }

    pub fn refuses(&self) -> bool {
        !matches!(self.answer, LeafAnswer::Answered(_))
    }

    pub fn answers_as(&self, other: &Leaf) -> bool {
        self.answer == other.answer && self.allow == other.allow && self.deny == other.deny
    }

    fn shown_elsewhere(&self) -> &[String] {
        match &self.answer {
            LeafAnswer::Answered(answered) => &answered.shown_elsewhere,
            _ => &[],
        }
    }

    /// What tells the one who answers here from others.
    fn key(&self) -> &[String] {
        match &self.answer {
            LeafAnswer::Answered(answered) => &answered.who,
            LeafAnswer::Refusal(lines) => lines,
            LeafAnswer::Closed => &[],
        }
    }

    fn pattern(&self) -> Option<String> {
        let own = match &self.answer {
            LeafAnswer::Answered(answered) => answered.pattern.clone(),
            _ => None,
        };
        own.or_else(|| self.asked.pattern())
    }
}

/// The routes of a site for these hosts. `origins`: all sections of origins so far.
pub fn routes(mut leaves: Vec<Leaf>, hosts: &[String], origins: &str) -> (Vec<Route>, bool) {
    close_refusals(&mut leaves);
    let (count, mut has_unsayable) = (leaves.len(), false);
    let mut routes = Vec::new();
    for at in 0..count {
        let matcher = match leaves[at].pattern() {
            Some(pattern) => Matcher::Pattern(pattern),
            // Paths come behind patterns, whatever else a route asks for.
            None if at + 1 < count => Matcher::Pattern("^/".to_owned()),
            None => Matcher::Path("/".to_owned()),
        };
        let conditions = conditions(&leaves[at].asked);
        let mut lines = conditions.clone();
        lines.extend(lines_of(&leaves, at));
        let is_sayable = leaves[at].answer == LeafAnswer::Closed || is_sayable(&matcher, &lines, origins);
        has_unsayable |= !is_sayable;
        let mut route = match &leaves[at].answer {
            LeafAnswer::Closed => {
                Route::new(matcher, conditions.into_iter().chain(["closed = true".to_owned()]).collect())
            }
            _ if !is_sayable => {
                Route::new(matcher, conditions.into_iter().chain(["closed = true".to_owned()]).collect())
            }
            LeafAnswer::Refusal(_) => Route::new(matcher, lines),
            LeafAnswer::Answered(answered) => {
                let mut route = Route::new(matcher, lines);
                route.body_bytes_max = Some(answered.body_bytes_max);
                route
            }
        };
        route.limit_methods(&leaves[at].asked.methods);
        route.hosts = hosts.to_vec();
        routes.push(route);
    }
    (routes, has_unsayable)
}

/// Does larder take it? What it does not take would leave the whole file unused.
fn is_sayable(matcher: &Matcher, lines: &[String], origins: &str) -> bool {
    let matcher = match matcher {
        Matcher::Path(path) => format!("path = {}", quoted(path)),
        Matcher::Pattern(pattern) => format!("path_pattern = {}", literal(pattern)),
    };
    crate::config::read(&format!("[[route]]\n{matcher}\n{}\n{origins}", lines.join("\n"))).is_ok()
}

/// A refusal holds for every spelling: where what stands behind it cannot be closed for all of them, it is 403 by itself.
fn close_refusals(leaves: &mut [Leaf]) {
    for at in 0..leaves.len() {
        let (before, behind) = leaves.split_at_mut(at + 1);
        let Some(leaf) = before.last_mut().filter(|leaf| matches!(leaf.answer, LeafAnswer::Refusal(_))) else {
            continue;
        };
        let shown = behind.iter().flat_map(Leaf::shown_elsewhere);
        let is_shown = |pattern: &str| shown.clone().any(|path| matches(pattern, path));
        let is_shown = leaf.pattern().is_some_and(|pattern| is_shown(&pattern));
        if !behind.is_empty() && (leaf.asked.asks_beside_the_path() || is_shown) {
            leaf.answer = LeafAnswer::Closed;
        }
    }
}

fn conditions(asked: &AskedRequests) -> Vec<String> {
    let fields: Vec<String> = asked
        .fields
        .iter()
        .map(|(name, value)| {
            format!("{} = {}", quoted(name), value.as_ref().map_or("true".to_owned(), |value| quoted(value)))
        })
        .collect();
    if fields.is_empty() { Vec::new() } else { vec![format!("header = {{ {} }}", fields.join(", "))] }
}

fn lines_of(leaves: &[Leaf], at: usize) -> Vec<String> {
    let leaf = &leaves[at];
    let list = |all: &[String]| all.iter().map(|one| quoted(one)).collect::<Vec<_>>().join(", ");
    match &leaf.answer {
        LeafAnswer::Closed => Vec::new(),
        LeafAnswer::Refusal(lines) => lines.clone(),
        LeafAnswer::Answered(answered) => {
            let mut lines = answered.who.clone();
            let mut closed = answered.closed.clone();
            closed.extend(spelled_otherwise(leaves, at));
            closed.retain(|pattern| !answered.shown_elsewhere.iter().any(|path| matches(pattern, path)));
            closed.sort_unstable();
            closed.dedup();
            let closed: Vec<String> = closed.iter().map(|pattern| literal(pattern)).collect();
            if !closed.is_empty() {
                lines.push(format!("closed_paths = [{}]", closed.join(", ")));
            }
            lines.extend(answered.words.iter().cloned());
            lines.extend(leaf.allow.as_ref().map(|networks| format!("allow = [{}]", list(networks))));
            if !leaf.deny.is_empty() {
                lines.push(format!("deny = [{}]", list(&leaf.deny)));
            }
            lines
        }
    }
}

/// What others in front of a place answer. Where they refuse all spellings are refused anyway.
fn spelled_otherwise(leaves: &[Leaf], at: usize) -> impl Iterator<Item = String> {
    let key = leaves[at].key();
    leaves[..at]
        .iter()
        .filter(move |other| {
            other.answer != LeafAnswer::Closed && !other.asked.asks_beside_the_path() && other.key() != key
        })
        .filter_map(Leaf::pattern)
}

fn matches(pattern: &str, path: &str) -> bool {
    ClosedPaths::new([pattern]).map_or(true, |closed| closed.close(path.as_bytes()))
}
