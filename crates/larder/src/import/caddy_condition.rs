//! What Caddy's matchers ask of a request, as formulas over what a `[[route]]` can ask. It knows no handler.

use std::collections::BTreeMap;

use crate::import::nginx_conf::Directive;
use crate::import::nginx_order::escaped;

/// Networks that `private_ranges` stands for.
pub const PRIVATE_RANGES: [&str; 6] =
    ["192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.0/8", "fd00::/8", "::1/128"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    Always,
    Never,
    /// One of these, in Caddy's own form: `/api/*`, `*.php`.
    Path(Vec<String>),
    /// By the name under which its groups are known.
    PathRegex(Option<String>, String),
    Method(Vec<String>),
    /// A field, and its value if it is not any.
    Field(String, Option<String>),
    Host(Vec<String>),
    /// Networks of the client's.
    Client(Vec<String>),
    /// Networks of who is connected, a proxy or the client.
    Peer(Vec<String>),
    /// By TLS.
    Secure,
    /// Nobody here can tell.
    Unknown,
    All(Vec<Condition>),
    Not(Box<Condition>),
}

/// What a directive is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaddyMatcher {
    pub condition: Condition,
    /// As it is written, kind by kind: Caddy takes neighbours with the same words as one. Empty: it is for all.
    pub written: String,
    /// The only path that it names.
    pub path: Option<String>,
}

/// The named matchers of a block and of those around it.
#[derive(Clone, Debug, Default)]
pub struct NamedMatchers(BTreeMap<String, CaddyMatcher>);

impl CaddyMatcher {
    pub fn of_all() -> CaddyMatcher {
        CaddyMatcher { condition: Condition::Always, written: String::new(), path: None }
    }

    fn of(condition: Condition, lines: &[Directive]) -> CaddyMatcher {
        let mut paths = lines.iter().filter(|line| line.name == "path").flat_map(|line| &line.arguments);
        let path = paths.next().filter(|_| paths.next().is_none()).cloned();
        CaddyMatcher { condition, written: written(lines), path }
    }
}

/// Words of one kind together, as in Caddy's JSON.
fn written(lines: &[Directive]) -> String {
    let mut kinds: BTreeMap<&str, String> = BTreeMap::new();
    for line in lines {
        let words = kinds.entry(&line.name).or_default();
        line.arguments.iter().for_each(|word| words.push_str(&format!(" {word:?}")));
        if line.block.is_some() {
            words.push_str(&format!(" {{{}}}", written(line.children())));
        }
    }
    kinds.iter().map(|(kind, words)| format!("{kind:?}{words}\n")).collect()
}

impl NamedMatchers {
    /// With those of a block besides.
    pub fn within(&self, block: &[Directive]) -> NamedMatchers {
        let mut all = self.clone();
        for directive in block.iter().filter(|directive| directive.name.starts_with('@')) {
            let matcher = match (&directive.block, directive.arguments.split_first()) {
                (Some(lines), _) => CaddyMatcher::of(of_lines(lines), lines),
                (None, Some((kind, words))) => {
                    let line = Directive { name: kind.clone(), arguments: words.to_vec(), ..directive.clone() };
                    CaddyMatcher::of(of_line(kind, words, &[]), &[line])
                }
                (None, None) => CaddyMatcher::of(Condition::Unknown, std::slice::from_ref(directive)),
            };
            all.0.insert(directive.name.clone(), matcher);
        }
        all
    }

    /// What a directive is for, and the words behind its matcher.
    pub fn of<'a>(&self, directive: &'a Directive) -> (CaddyMatcher, &'a [String]) {
        let all = &directive.arguments[..];
        let Some((first, rest)) = all.split_first() else { return (CaddyMatcher::of_all(), all) };
        match first.as_bytes().first() {
            _ if first == "*" => (CaddyMatcher::of_all(), rest),
            Some(b'/') => {
                let words = vec![first.clone()];
                let line = Directive { name: "path".to_owned(), arguments: words, block: None, ..directive.clone() };
                (CaddyMatcher::of(of_line("path", &line.arguments, &[]), &[line]), rest)
            }
            Some(b'@') => {
                let unknown = || CaddyMatcher { condition: Condition::Unknown, written: first.clone(), path: None };
                (self.0.get(first).cloned().unwrap_or_else(unknown), rest)
            }
            _ => (CaddyMatcher::of_all(), all),
        }
    }
}

/// Lines of one kind are alternatives, but for fields and `not`; those of different kinds are asked together.
fn of_lines(lines: &[Directive]) -> Condition {
    let mut all: Vec<Condition> = Vec::new();
    let mut merged: Vec<(&str, Vec<String>)> = Vec::new();
    for line in lines {
        match line.name.as_str() {
            kind @ ("path" | "method" | "host") => match merged.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, words)) => words.extend(line.arguments.iter().cloned()),
                None => merged.push((kind, line.arguments.clone())),
            },
            kind => all.push(of_line(kind, &line.arguments, line.children())),
        }
    }
    let kinds: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    // Several of these are alternatives by Caddy's rules of merging, which differ with its version.
    let is_twice = |kind: &str| kinds.iter().filter(|known| **known == kind).count() > 1;
    let by_field = lines.iter().filter(|line| line.name == "header").map(|line| line.argument(0).to_lowercase());
    let mut fields: Vec<String> = by_field.collect();
    let count = fields.len();
    fields.sort_unstable();
    fields.dedup();
    if ["remote_ip", "client_ip", "query", "path_regexp"].iter().any(|kind| is_twice(kind)) || fields.len() < count {
        return Condition::Unknown;
    }
    all.extend(merged.into_iter().map(|(kind, words)| of_line(kind, &words, &[])));
    // Paths first: what else is asked parts fewer ways then.
    all.sort_by_key(|condition| !matches!(condition, Condition::Path(_) | Condition::PathRegex(..)));
    Condition::All(all)
}

fn of_line(kind: &str, words: &[String], block: &[Directive]) -> Condition {
    if words.iter().any(|word| word.contains('{') && kind != "path_regexp" && kind != "expression") {
        return Condition::Unknown;
    }
    match (kind, words) {
        ("path", [_, ..]) if words.iter().all(|path| path_regex(path).is_some()) => Condition::Path(words.to_vec()),
        ("path_regexp", [regex]) => Condition::PathRegex(None, regex.clone()),
        ("path_regexp", [name, regex]) => Condition::PathRegex(Some(name.clone()), regex.clone()),
        ("method", [_, ..]) => Condition::Method(words.to_vec()),
        ("protocol", [one]) if one == "https" => Condition::Secure,
        ("protocol", [one]) if one == "http" => Condition::Not(Box::new(Condition::Secure)),
        // A name with the root's dot behind it is another one to Caddy, and the same to routes.
        ("host", [_, ..]) if words.iter().any(|host| host.ends_with('.')) => Condition::Unknown,
        // Of a host that has a * elsewhere routes know nothing.
        ("host", [_, ..]) if words.iter().any(|host| host.strip_prefix("*.").unwrap_or(host).contains('*')) => {
            Condition::Unknown
        }
        ("host", [_, ..]) => Condition::Host(words.iter().map(|host| host.to_lowercase()).collect()),
        ("header", [name]) => match name.strip_prefix('!') {
            Some(name) => Condition::Not(Box::new(Condition::Field(name.to_owned(), None))),
            None => Condition::Field(name.clone(), None),
        },
        ("header", [name, value]) => {
            let is_sayable = !value.trim_matches('*').contains('*');
            let value = (value != "*").then(|| value.clone());
            if is_sayable { Condition::Field(name.clone(), value) } else { Condition::Unknown }
        }
        ("remote_ip", [_, ..]) => networks(words).map_or(Condition::Unknown, Condition::Peer),
        ("client_ip", [_, ..]) => networks(words).map_or(Condition::Unknown, Condition::Client),
        ("not", []) => Condition::Not(Box::new(of_lines(block))),
        ("not", [kind, words @ ..]) => Condition::Not(Box::new(of_line(kind, words, &[]))),
        _ => Condition::Unknown,
    }
}

/// With `private_ranges` written out. `None`: it goes by what a client says of itself.
pub fn networks(words: &[String]) -> Option<Vec<String>> {
    let mut networks = Vec::new();
    for word in words {
        match word.as_str() {
            "private_ranges" => networks.extend(PRIVATE_RANGES.map(str::to_owned)),
            word if word.parse::<proxy::settings::Network>().is_ok() => networks.push(word.to_owned()),
            _ => return None,
        }
    }
    Some(networks)
}

/// Dots and blanks at the end of a path, which Caddy looks away from.
const END: &str = "[. ]*(?:%2[0e][. ]*)*$";

/// A path of Caddy's as a regex, which looks at letters of either case as the same.
pub fn path_regex(path: &str) -> Option<String> {
    let is_sendable =
        path.bytes().all(|byte| byte.is_ascii_graphic()) && !path.contains(['#', '%', '[', '\\', '{', '?']);
    if !is_sendable || path.is_empty() {
        return None;
    }
    let inner = path.trim_matches('*');
    let (begins, ends) = (path.starts_with('*'), path.ends_with('*'));
    let stars = path.matches('*').count();
    let ends_in_dot = inner.ends_with('.');
    // Of a dot before the star Caddy sees nothing where nothing but dots and blanks stands behind it; at the end it never sees one.
    let behind = if ends_in_dot { format!("(?!{END})") } else { String::new() };
    Some(match (begins, ends, stars) {
        _ if path == "*" => "^".to_owned(),
        _ if ends_in_dot && !ends => "(?!)".to_owned(),
        (true, true, 2) => format!("{}{behind}", escaped(inner)),
        (true, false, 1) => format!("{}{END}", escaped(inner)),
        (false, true, 1) => format!("^{}{behind}", escaped(inner)),
        (_, _, 0) => format!("^{}{END}", escaped(path)),
        _ => format!("^{}{END}", path.split('*').map(escaped).collect::<Vec<_>>().join("[^/]*")),
    })
}

/// The same of several, one of which has to match.
pub fn paths_regex(paths: &[String]) -> Option<String> {
    let all: Vec<String> = paths.iter().map(|path| path_regex(path)).collect::<Option<_>>()?;
    Some(match &all[..] {
        [one] => format!("(?i){one}"),
        all => format!("(?i)(?:{})", all.join("|")),
    })
}

/// What follows for one of two from the other, where both are paths: every path of the first is one of the second, or none is.
pub fn follows(known: &[String], asked: &[String]) -> Option<bool> {
    let is_within = |one: &String| asked.iter().any(|other| is_part(one, other));
    let is_apart = |one: &String| asked.iter().all(|other| are_apart(one, other));
    match (known.iter().all(is_within), known.iter().all(is_apart)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Without its star, in one case: the beginning, or the whole.
fn beginning(path: &str) -> Option<(String, bool)> {
    let lower = path.to_lowercase();
    match (lower.strip_suffix('*'), lower.contains('*')) {
        (Some(beginning), _) if !beginning.contains('*') => Some((beginning.to_owned(), true)),
        (None, false) => Some((lower, false)),
        _ => None,
    }
}

fn is_part(one: &str, other: &str) -> bool {
    if one.eq_ignore_ascii_case(other) {
        return true;
    }
    match (beginning(one), beginning(other)) {
        (Some((one, _)), Some((other, true))) => one.starts_with(&other),
        (Some((one, false)), None) => {
            let other = other.to_lowercase();
            other.strip_prefix('*').is_some_and(|end| !end.contains('*') && one.ends_with(end))
        }
        _ => false,
    }
}

fn are_apart(one: &str, other: &str) -> bool {
    match (beginning(one), beginning(other)) {
        (Some((one, false)), Some((other, false))) => one != other,
        (Some((one, true)), Some((other, true))) => !one.starts_with(&other) && !other.starts_with(&one),
        (Some((beginning, true)), Some((whole, false))) | (Some((whole, false)), Some((beginning, true))) => {
            !whole.starts_with(&beginning)
        }
        (Some((whole, false)), None) => {
            let other = other.to_lowercase();
            other.strip_prefix('*').is_some_and(|end| !end.contains('*') && !whole.ends_with(end))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn matcher(lines: &[&str]) -> Condition {
        let lines = lines.iter().map(|line| directive(line)).collect();
        let named = Directive { block: Some(lines), ..directive("@m") };
        NamedMatchers::default().within(&[named]).of(&directive("respond @m 404")).0.condition
    }

    fn paths(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|&path| path.to_owned()).collect()
    }

    #[test]
    fn matchers_ask_for_what_stands_in_them() {
        let path = |all: &[&str]| Condition::Path(paths(all));
        let all = |of: Vec<Condition>| Condition::All(of);
        assert_eq!(matcher(&["path /a", "path /b/*"]), all(vec![path(&["/a", "/b/*"])]));
        let post = Condition::Method(vec!["POST".to_owned()]);
        let not_b = Condition::Not(Box::new(path(&["/b"])));
        assert_eq!(matcher(&["method POST", "not path /b"]), all(vec![not_b, post]));
        let field = |name: &str, value: Option<&str>| Condition::Field(name.to_owned(), value.map(str::to_owned));
        assert_eq!(
            matcher(&["header X-A *", "header X-B b*"]),
            all(vec![field("X-A", None), field("X-B", Some("b*"))])
        );
        let absent = Condition::Not(Box::new(field("X-A", None)));
        assert_eq!(matcher(&["header !X-A"]), all(vec![absent]));
        let networks = vec!["10.0.0.0/8".to_owned()];
        assert_eq!(matcher(&["remote_ip 10.0.0.0/8"]), all(vec![Condition::Peer(networks.clone())]));
        assert_eq!(matcher(&["client_ip 10.0.0.0/8"]), all(vec![Condition::Client(networks)]));
        for unknown in [
            "expression x",
            "remote_ip forwarded 10.0.0.0/8",
            "query a=b",
            "path /{x}",
            "file",
            "header A a*b",
            "host *",
            "host *.*.a",
        ] {
            assert_eq!(matcher(&[unknown]), all(vec![Condition::Unknown]), "{unknown}");
        }
        assert_eq!(matcher(&["header A b", "header a c"]), Condition::Unknown);
        assert_eq!(NamedMatchers::default().of(&directive("respond @none 1")).0.condition, Condition::Unknown);
        assert_eq!(NamedMatchers::default().of(&directive("respond /a? 1")).0.condition, Condition::Unknown);
    }

    #[test]
    fn the_first_word_may_be_a_matcher() {
        for (line, condition, rest) in [
            ("redir /old /new", Condition::Path(paths(&["/old"])), "/new"),
            ("root * /srv", Condition::Always, "/srv"),
            ("respond hello 200", Condition::Always, "hello 200"),
            ("encode", Condition::Always, ""),
        ] {
            let directive = directive(line);
            let found = NamedMatchers::default().of(&directive);
            assert_eq!((found.0.condition, found.1.join(" ").as_str()), (condition, rest), "{line}");
        }
    }

    #[test]
    fn matchers_of_the_same_words_are_the_same() {
        let lines = |lines: &[&str]| lines.iter().map(|line| directive(line)).collect::<Vec<_>>();
        let one = lines(&["method GET", "path /a", "path /b"]);
        assert_eq!(written(&one), written(&lines(&["path /a /b", "method GET"])));
        assert_ne!(written(&one), written(&lines(&["path /b /a", "method GET"])));
        let named = NamedMatchers::default().within(&lines(&["@a path /a", "@b expression /a", "@c expression /c"]));
        let matcher = |line: &str| named.of(&directive(line)).0;
        assert_eq!(matcher("respond @a 1"), matcher("respond /a 1"));
        assert_eq!(matcher("respond * 1"), matcher("respond 1"));
        assert_ne!(matcher("respond @b 1"), matcher("respond @c 1"));
        let paths = CaddyMatcher::of(Condition::Unknown, &lines(&["path /{x}", "header A b"]));
        assert_eq!((paths.path.as_deref(), CaddyMatcher::of(Condition::Unknown, &one).path), (Some("/{x}"), None));
    }

    #[test]
    fn paths_are_regexes_of_either_case() {
        let is_match = |pattern: &str, path: &str| {
            let regex = paths_regex(&[pattern.to_owned()]).expect("a path");
            proxy::settings::RoutePattern::new(&regex).expect("a regex").is_match(path.as_bytes())
        };
        for (pattern, path, expect) in [
            ("/api/*", "/api/x", true),
            ("/api/*", "/API/x", true),
            ("/api/*", "/api", false),
            ("/api*", "/apix", true),
            ("/a.b", "/a.b", true),
            ("/a.b", "/axb", false),
            ("/a", "/a/", false),
            ("/a", "/a. .%20", true),
            ("*.bak", "/x.BAK%2e", true),
            ("/u/*/edit", "/u/a/edit.", true),
            ("*.php", "/x/a.PHP", true),
            ("*.php", "/a.php/x", false),
            ("*/secret/*", "/a/secret/b", true),
            ("/u/*/edit", "/u/ann/edit", true),
            ("/u/*/edit", "/u/a/b/edit", false),
            ("*", "/x", true),
            ("/a.*", "/a.b", true),
            ("/a.*", "/a.", false),
            ("/a.*", "/a..%20", false),
            ("/a.*", "/a..b", true),
            ("*/a.*", "/x/a.", false),
            ("/a.", "/a.", false),
            ("*.", "/a.", false),
        ] {
            assert_eq!(is_match(pattern, path), expect, "{pattern} {path}");
        }
        for unsayable in ["/a%20b", "/a b", "/[ab]", "/{x}", ""] {
            assert_eq!(path_regex(unsayable), None, "{unsayable}");
        }
    }

    #[test]
    fn what_follows_from_a_path_is_known() {
        for (known, asked, expect) in [
            ("/api/x", "/api/*", Some(true)),
            ("/api/v1/*", "/API/*", Some(true)),
            ("/api/*", "/api/v1/*", None),
            ("/api/*", "/web/*", Some(false)),
            ("/api", "/api/*", Some(false)),
            ("/a.php", "*.php", Some(true)),
            ("/a.html", "*.php", Some(false)),
            ("/api/*", "*.php", None),
            ("/a", "/b", Some(false)),
        ] {
            assert_eq!(follows(&paths(&[known]), &paths(&[asked])), expect, "{known} {asked}");
        }
        assert_eq!(follows(&paths(&["/a", "/c"]), &paths(&["/a", "/b"])), None);
    }
}
