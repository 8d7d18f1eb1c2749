//! The places of a site where somebody answers, or nobody, in the order in which the first that fits counts; and the routes that come
//! of them. Here is which spellings of a path are closed because they mean what another place answers. It reads no directive.

use proxy::settings::ClosedPaths;

use crate::import::caddy_passage::{AskedRequests, from_the_start};
use crate::import::import_findings::{literal, quoted};
use crate::import::imported_toml::Route;
use crate::import::nginx_order::{Matcher, escaped};

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

    /// Does somebody else answer there, or with other words about who asks?
    fn differs(&self, other: &Leaf) -> bool {
        let key = |leaf: &Leaf| -> Vec<String> {
            match &leaf.answer {
                LeafAnswer::Answered(answered) => {
                    let of_requests = answered.words.iter().filter(|word| !word.starts_with("response_headers"));
                    answered.who.iter().chain(of_requests).cloned().collect()
                }
                LeafAnswer::Refusal(lines) => lines.clone(),
                LeafAnswer::Closed => Vec::new(),
            }
        };
        key(self) != key(other)
    }

    /// The same pattern of a path, but for files that are shown under another one.
    fn but_for_shown(&self, ahead: char, pattern: &str) -> String {
        let shown: Vec<&String> = self.shown_elsewhere().iter().collect();
        let but: String = shown.iter().map(|path| format!("(?!(?s:.*){}$)", escaped(path))).collect();
        let closes = format!("^(?{ahead}{})", from_the_start(pattern));
        match shown.iter().any(|path| matches(&closes, path)) {
            true => closes.replacen('^', &format!("^{but}"), 1),
            false if ahead == '=' => pattern.to_owned(),
            false => closes,
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
            LeafAnswer::Closed => closed_route(matcher, conditions),
            _ if !is_sayable => closed_route(matcher, conditions),
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
        routes.extend(unusual(&leaves, at, hosts));
    }
    (routes, has_unsayable)
}

fn closed_route(matcher: Matcher, conditions: Vec<String>) -> Route {
    Route::new(matcher, conditions.into_iter().chain(["closed = true".to_owned()]).collect())
}

/// Spellings in which nobody asks who means no harm: escapes of what needs none, empty segments, and dots.
const UNUSUAL: &str = "(?i)%2[1-9a-f]|%[3-7][0-9a-f]|//|/\\.{1,2}(?:/|$)";

/// Where a route asks for more than a path, what stands behind it cannot be closed for other spellings of that path: it would be for other
/// requests, too. So nobody who asks in an unusual one with all else that is asked for comes there.
fn unusual(leaves: &[Leaf], at: usize, hosts: &[String]) -> Option<Route> {
    let leaf = &leaves[at];
    let pattern = leaf.pattern().filter(|_| leaf.asked.asks_beside_the_path() && leaf.answer != LeafAnswer::Closed)?;
    if !leaves[at + 1..].iter().any(|later| later.answer != LeafAnswer::Closed && leaf.differs(later)) {
        return None;
    }
    let unusual = format!("^(?!{})(?=(?s:.*?)(?:{UNUSUAL}))", from_the_start(&pattern));
    let mut route = closed_route(Matcher::Pattern(unusual), conditions(&leaf.asked));
    route.limit_methods(&leaf.asked.methods);
    route.hosts = hosts.to_vec();
    Some(route)
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
            closed.extend(answered_behind(leaves, at));
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
    let leaf = &leaves[at];
    leaves[..at]
        .iter()
        .filter(|other| {
            other.answer != LeafAnswer::Closed && !other.asked.asks_beside_the_path() && leaf.differs(other)
        })
        .filter_map(|other| Some(leaf.but_for_shown('=', &other.pattern()?)))
}

/// What others behind a place answer: all that it is not for itself.
fn answered_behind(leaves: &[Leaf], at: usize) -> Option<String> {
    let leaf = &leaves[at];
    let is_other = |later: &Leaf| later.answer != LeafAnswer::Closed && leaf.differs(later);
    let pattern = leaf.pattern().filter(|_| leaves[at + 1..].iter().any(is_other))?;
    Some(leaf.but_for_shown('!', &pattern))
}

fn matches(pattern: &str, path: &str) -> bool {
    ClosedPaths::new([pattern]).map_or(true, |closed| closed.close(path.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::caddy_condition::Condition;

    fn asked(path: &str) -> AskedRequests {
        AskedRequests::default().with(&Condition::Path(vec![path.to_owned()])).expect("sayable")
    }

    fn answered(who: &str, shown: &[&str]) -> LeafAnswer {
        let shown_elsewhere = shown.iter().map(|&path| path.to_owned()).collect();
        LeafAnswer::Answered(Box::new(AnsweredRoute {
            who: vec![who.to_owned()],
            shown_elsewhere,
            ..Default::default()
        }))
    }

    #[test]
    fn what_another_place_answers_is_closed() {
        let leaves = [
            Leaf::of(answered("a", &["/index.html"]), asked("/pub/*")),
            Leaf::of(answered("b", &[]), asked("*.html")),
            Leaf::of(answered("a", &["/index.html"]), AskedRequests::default()),
        ];
        let closes = |at: usize, path: &str| {
            let patterns: Vec<String> = spelled_otherwise(&leaves, at).chain(answered_behind(&leaves, at)).collect();
            patterns.iter().any(|pattern| matches(pattern, path))
        };
        for (at, path, expect) in [
            (0, "/pub/x", false),
            (0, "/pub/index.html", false),
            (0, "/pub/../admin", true),
            (0, "/pub/%2e%2e/admin", true),
            (1, "/x/../a.html", false),
            (1, "/a.html/../b", true),
            (2, "/x", false),
            (2, "/a.htm%6c", true),
            // It answers for a directory.
            (2, "/sub/index.html", false),
            // The same one answers it.
            (2, "/x/../pub/y", false),
        ] {
            assert_eq!(closes(at, path), expect, "{at} {path}");
        }
    }

    #[test]
    fn unusual_spellings_are_closed_with_all_that_is_asked() {
        let post = asked("/api/*").with(&Condition::Method(vec!["POST".to_owned()])).expect("sayable");
        let leaves = [Leaf::of(answered("a", &[]), post), Leaf::of(answered("b", &[]), AskedRequests::default())];
        let route = unusual(&leaves, 0, &[]).expect("a route");
        let Matcher::Pattern(pattern) = &route.matcher else { panic!("{route:?}") };
        let pattern = proxy::settings::RoutePattern::new(pattern).expect("a regex");
        for (path, expect) in [
            ("//api/x", true),
            ("/%61pi/x", true),
            ("/x/../api/y", true),
            ("/api/x", false),
            ("/api//x", false),
            ("/x%20y", false),
        ] {
            assert_eq!(pattern.is_match(path.as_bytes()), expect, "{path}");
        }
        assert!(route.has_methods() && unusual(&leaves, 1, &[]).is_none());
    }
}
