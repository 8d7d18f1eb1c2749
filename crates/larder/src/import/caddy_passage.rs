//! What has been said of a request on its way through the steps of a site, before somebody answers: whose files, which path, which fields,
//! who may come. What is asked of requests that come this way is an `AskedRequests`.

use proxy::settings::RoutePattern;

use crate::import::caddy_condition::{Condition, follows, path_regex, paths_regex};
use crate::import::caddy_fields::FieldEdits;
use crate::import::nginx_conf::Directive;
use crate::import::nginx_order::escaped;

/// What has been said so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Passage {
    pub root: Option<String>,
    pub path: PathNow,
    pub answers: FieldEdits,
    pub requests: FieldEdits,
    /// Lines of a route: who may come.
    pub guards: Vec<String>,
    pub body_bytes_max: Option<u64>,
    /// The file that answers where there is none.
    pub fallback: Option<String>,
    /// The root beneath which it has been looked for files.
    pub looked_in: Option<Option<String>>,
    /// Who asks for what is no file there has been told so.
    pub needs_file: bool,
    /// The path may be that of a directory's index now, or have a slash behind it.
    pub is_path_unsure: bool,
    pub scripts: Option<Scripts>,
}

/// An application over FastCGI, which runs the scripts of the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripts {
    pub origin: String,
    pub index: String,
    /// Where it stands, to speak of it.
    pub said: Directive,
}

/// The path of a request after the rewrites so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathNow {
    /// `added`, and the client's without the beginning `stripped`.
    Of {
        stripped: String,
        added: String,
    },
    /// This one, whatever was asked for.
    Fixed(String),
    /// What larder's text says.
    Written(String),
    Unknown,
}

impl Default for PathNow {
    fn default() -> PathNow {
        PathNow::Of { stripped: String::new(), added: String::new() }
    }
}

impl PathNow {
    pub fn is_own(&self) -> bool {
        *self == PathNow::default()
    }

    /// What is asked of the path that it is now, as asked of the client's. `None`: nobody can tell.
    pub fn of_own(&self, condition: &Condition) -> Option<Condition> {
        let PathNow::Of { stripped, added } = self else {
            return match (self, condition) {
                (PathNow::Fixed(path), Condition::Path(paths)) => {
                    let is_match = |regex: String| Some(RoutePattern::new(&regex).ok()?.is_match(path.as_bytes()));
                    let matches = paths_regex(paths).and_then(is_match)?;
                    Some(if matches { Condition::Always } else { Condition::Never })
                }
                _ => None,
            };
        };
        match condition {
            Condition::Path(paths) if stripped.is_empty() && !added.is_empty() => behind(added, paths),
            _ if !added.is_empty() => None,
            condition if stripped.is_empty() => Some(condition.clone()),
            Condition::Path(paths) => {
                let all = paths.iter().map(|path| match path.as_bytes() {
                    [b'/', ..] => Some(format!("{stripped}{path}")),
                    [b'*', rest @ ..] if !rest.contains(&b'*') => Some(path.clone()),
                    _ => None,
                });
                all.collect::<Option<_>>().map(Condition::Path)
            }
            // What stands behind a bar might begin anywhere.
            Condition::PathRegex(name, regex) => {
                let rest = regex.strip_prefix('^').filter(|rest| !rest.contains('|'))?;
                Some(Condition::PathRegex(name.clone(), format!("^(?i:{})(?:{rest})", escaped(stripped))))
            }
            _ => None,
        }
    }
}

/// What is asked of a path that begins with what was added, as asked of what stands behind that.
fn behind(added: &str, paths: &[String]) -> Option<Condition> {
    let mut rest = Vec::new();
    for path in paths {
        let begins = path.strip_suffix('*').filter(|begins| !begins.contains('*') && begins.starts_with('/'))?;
        let (begins, added) = (begins.to_lowercase(), added.to_lowercase());
        if added.starts_with(&begins) {
            return Some(Condition::Always);
        }
        match begins.strip_prefix(&added) {
            Some(inner) if inner.starts_with('/') => rest.push(format!("{inner}*")),
            Some(_) => return None,
            None => {}
        }
    }
    Some(if rest.is_empty() { Condition::Never } else { Condition::Path(rest) })
}

/// A part of a pattern, and how many groups it has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    regex: String,
    groups: usize,
    name: Option<Option<String>>,
}

/// What requests are that come to one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedRequests {
    pieces: Vec<Piece>,
    pub methods: Vec<String>,
    pub fields: Vec<(String, Option<String>)>,
    /// Conditions about which it is known whether they hold.
    known: Vec<(Condition, bool)>,
}

impl AskedRequests {
    /// Does a condition hold for all of these, or for none?
    pub fn is_known(&self, condition: &Condition) -> Option<bool> {
        self.known.iter().find_map(|(known, holds)| match (known, condition) {
            (known, condition) if known == condition => Some(*holds),
            (Condition::Path(known), Condition::Path(asked)) if *holds => follows(known, asked),
            // What is no part of the larger one is none of the smaller.
            (Condition::Path(known), Condition::Path(asked)) if follows(asked, known) == Some(true) => Some(false),
            (Condition::Method(known), Condition::Method(asked)) if *holds => {
                match (known.iter().all(|one| asked.contains(one)), known.iter().any(|one| asked.contains(one))) {
                    (true, _) => Some(true),
                    (_, false) => Some(false),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    pub fn without(&self, condition: &Condition) -> AskedRequests {
        let mut asked = self.clone();
        asked.known.push((condition.clone(), false));
        asked
    }

    /// Those for which it holds. `None`: a route cannot ask this.
    pub fn with(&self, condition: &Condition) -> Option<AskedRequests> {
        let mut asked = self.clone();
        asked.known.push((condition.clone(), true));
        match condition {
            Condition::Path(paths) => {
                asked.pieces.push(Piece { regex: paths_regex(paths)?, groups: 0, name: None });
            }
            Condition::PathRegex(name, regex) => {
                RoutePattern::new(regex).ok()?;
                asked.pieces.push(Piece { regex: regex.clone(), groups: groups_in(regex), name: Some(name.clone()) });
            }
            Condition::Method(methods) => {
                match asked.methods.is_empty() {
                    true => asked.methods = methods.clone(),
                    false => asked.methods.retain(|method| methods.contains(method)),
                }
                let is_method = |method: &String| method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
                if asked.methods.is_empty() || !asked.methods.iter().all(is_method) {
                    return None;
                }
            }
            Condition::Field(name, value) => {
                if asked.fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                    return None;
                }
                asked.fields.push((name.clone(), value.clone()));
            }
            _ => return None,
        }
        Some(asked)
    }

    /// The same requests but for a condition that is asked of these.
    pub fn is_but_for(&self, other: &AskedRequests, condition: &Condition) -> bool {
        let Some(with) = other.with(condition) else { return false };
        let sorted = |asked: &AskedRequests| {
            let mut pieces: Vec<String> = asked.pieces.iter().map(|piece| piece.regex.clone()).collect();
            pieces.sort_unstable();
            (pieces, asked.methods.clone(), asked.fields.clone())
        };
        sorted(self) == sorted(&with)
    }

    pub fn asks_beside_the_path(&self) -> bool {
        !self.methods.is_empty() || !self.fields.is_empty()
    }

    /// The expression whose groups a text may name, and how many stand before them.
    pub fn groups(&self) -> Option<(Option<&str>, usize)> {
        let mut named = self.pieces.iter().filter(|piece| piece.name.is_some());
        let first = named.next().filter(|_| named.next().is_none())?;
        Some((first.name.as_ref()?.as_deref(), 0))
    }

    /// The regex of the paths. `None`: all of them.
    pub fn pattern(&self) -> Option<String> {
        match &self.pieces[..] {
            [] => None,
            [one] => Some(one.regex.clone()),
            all => Some(format!("^{}", all.iter().map(ahead).collect::<String>())),
        }
    }

    /// The same with what stands behind a beginning as a group, and the number of that.
    pub fn pattern_with_rest(&self, beginning: &str) -> (String, usize) {
        let ahead: String = self.pieces.iter().filter(|piece| !says_no_more(piece, beginning)).map(ahead).collect();
        let groups: usize = self.pieces.iter().map(|piece| piece.groups).sum();
        (format!("^{ahead}(?i:{})/?(.*)$", escaped(beginning)), groups + 1)
    }
}

/// A piece that asks for nothing but a beginning that is asked for anyway.
fn says_no_more(piece: &Piece, beginning: &str) -> bool {
    let same = path_regex(&format!("{beginning}*")).map(|regex| format!("(?i){regex}"));
    piece.groups == 0 && Some(&piece.regex) == same.as_ref()
}

fn ahead(piece: &Piece) -> String {
    format!("(?={})", from_the_start(&piece.regex))
}

/// An expression that is looked for anywhere, as one that is held against the start of a path.
pub fn from_the_start(regex: &str) -> String {
    match regex.strip_prefix("(?i)").unwrap_or(regex).starts_with('^') && !regex.contains('|') {
        true => regex.to_owned(),
        false => format!("(?s:.*?)(?:{regex})"),
    }
}

/// Groups that are counted.
fn groups_in(regex: &str) -> usize {
    let (mut count, mut is_class, mut bytes) = (0, false, regex.bytes().peekable());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'[' => is_class = true,
            b']' => is_class = false,
            b'(' if !is_class => {
                let mut behind = bytes.clone();
                let is_plain = behind.next() != Some(b'?');
                let is_named = matches!((behind.next(), behind.next()), (Some(b'P'), Some(b'<')) | (Some(b'<'), Some(b'a'..=b'z' | b'A'..=b'Z' | b'_')));
                count += usize::from(is_plain || is_named);
            }
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> Condition {
        Condition::Path(vec![path.to_owned()])
    }

    fn is_match(pattern: &str, path: &str) -> bool {
        RoutePattern::new(pattern).expect("a pattern").is_match(path.as_bytes())
    }

    #[test]
    fn several_conditions_are_one_pattern() {
        let asked = AskedRequests::default()
            .with(&path("/api/*"))
            .and_then(|asked| asked.with(&path("*.json")))
            .expect("sayable");
        let pattern = asked.pattern().expect("a pattern");
        for (path, expect) in [("/api/a.json", true), ("/API/x/a.JSON", true), ("/api/a", false), ("/a.json", false)] {
            assert_eq!(is_match(&pattern, path), expect, "{path} {pattern}");
        }
        let several = Condition::Path(vec!["/a".to_owned(), "/b/*".to_owned()]);
        let asked = AskedRequests::default().with(&several).and_then(|asked| asked.with(&path("*x"))).expect("sayable");
        let pattern = asked.pattern().expect("a pattern");
        for (path, expect) in [("/b/x", true), ("/a", false), ("/c/b/x", false)] {
            assert_eq!(is_match(&pattern, path), expect, "{path} {pattern}");
        }
    }

    #[test]
    fn what_is_known_is_not_asked_again() {
        let asked = AskedRequests::default().with(&path("/api/*")).expect("sayable");
        assert_eq!(asked.is_known(&path("/api/*")), Some(true));
        assert_eq!(asked.is_known(&path("/web/*")), Some(false));
        assert_eq!(asked.is_known(&path("/api/x/*")), None);
        let others = AskedRequests::default().without(&path("/api/*"));
        assert_eq!(others.is_known(&path("/api/x/*")), Some(false));
        assert_eq!(others.is_known(&path("/*")), None);
    }

    #[test]
    fn a_path_that_is_cut_off_is_asked_for_with_it() {
        let now = PathNow::Of { stripped: "/api".to_owned(), added: String::new() };
        assert_eq!(now.of_own(&path("/x/*")), Some(path("/api/x/*")));
        assert_eq!(now.of_own(&path("*.php")), Some(path("*.php")));
        assert_eq!(now.of_own(&path("*/x/*")), None);
        let regex = |regex: &str| Condition::PathRegex(None, regex.to_owned());
        assert_eq!(now.of_own(&regex("^/adm$")), Some(regex("^(?i:/api)(?:/adm$)")));
        assert_eq!(now.of_own(&regex("^/adm|^/x")), None);
        let now = PathNow::Of { stripped: String::new(), added: "/new".to_owned() };
        assert_eq!(now.of_own(&path("/new/x/*")), Some(path("/x/*")));
        assert_eq!(now.of_own(&path("/n*")), Some(Condition::Always));
        assert_eq!(now.of_own(&path("/old*")), Some(Condition::Never));
        assert_eq!(now.of_own(&path("/old")), None);
        let fixed = PathNow::Fixed("/index.php".to_owned());
        assert_eq!(fixed.of_own(&path("*.php")), Some(Condition::Always));
        assert_eq!(fixed.of_own(&path("/x")), Some(Condition::Never));
        let (pattern, group) =
            AskedRequests::default().with(&path("/api/*")).expect("sayable").pattern_with_rest("/api");
        let groups = |path: &str| RoutePattern::new(&pattern).expect("a pattern").groups(path.as_bytes()).is_some();
        assert!(groups("/api/x") && groups("/API/") && !groups("/api") && !groups("/apix"), "{pattern}");
        assert_eq!(group, 1);
    }

    #[test]
    fn groups_are_counted() {
        for (regex, expect) in [("^/(a|b)/(.*)$", 2), ("(?:a)(b)", 1), ("[(]\\((?P<x>a)(?<y>b)(?<!c)", 2)] {
            assert_eq!(groups_in(regex), expect, "{regex}");
        }
        let regex = Condition::PathRegex(Some("x".to_owned()), "^/(a)".to_owned());
        let asked = AskedRequests::default().with(&regex).expect("sayable");
        assert_eq!(asked.groups(), Some((Some("x"), 0)));
    }
}
