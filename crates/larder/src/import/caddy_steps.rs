//! The directives of a site as steps, in the order in which Caddy takes them: sorted by what they are and by how much of a path they
//! name, but for those of a `route`, which stand as they are written. It carries nothing over.

use std::cmp::Ordering;

use crate::import::caddy_condition::{Condition, NamedMatchers};
use crate::import::nginx_conf::Directive;

/// The order of Caddy's own directives.
const ORDER: [&str; 38] = [
    "tracing",
    "map",
    "vars",
    "fs",
    "root",
    "log_append",
    "skip_log",
    "log_skip",
    "log_name",
    "header",
    "copy_response_headers",
    "request_body",
    "timeouts",
    "redir",
    "method",
    "rewrite",
    "uri",
    "try_files",
    "basicauth",
    "basic_auth",
    "forward_auth",
    "request_header",
    "encode",
    "push",
    "intercept",
    "templates",
    "invoke",
    "handle",
    "route",
    "abort",
    "error",
    "copy_response",
    "respond",
    "metrics",
    "reverse_proxy",
    "php_fastcgi",
    "file_server",
    "acme_server",
];

/// Of these only the first that is for a request is taken, among those of one block.
const ONE_OF_A_BLOCK: [&str; 3] = ["rewrite", "handle", "root"];

/// What is said of a site as a whole, and is no step.
const OF_SITES: [&str; 4] = ["tls", "bind", "log", "handle_errors"];

/// One directive, for the requests that it is for.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    pub directive: &'a Directive,
    pub when: Condition,
    /// Its words behind the matcher.
    pub words: &'a [String],
    /// The steps within it, with how its path is cut off before them.
    pub inside: Option<Vec<Step<'a>>>,
    pub cuts: Option<String>,
    /// Those of its block of which one is taken.
    pub one_of: Option<&'static str>,
}

/// By which name a directive is sorted.
fn sorted_as(name: &str) -> &str {
    match name {
        "handle_path" => "handle",
        name => name,
    }
}

/// The steps of a block. `is_sorted`: by Caddy's order. Directives of plugins come first, wherever Caddy was told to put them.
pub fn steps<'a>(block: &'a [Directive], around: &NamedMatchers, is_sorted: bool) -> Vec<Step<'a>> {
    let named = around.within(block);
    let of_steps = block.iter().filter(|one| !one.name.starts_with('@') && !OF_SITES.contains(&one.name.as_str()));
    let mut steps: Vec<Step<'a>> = of_steps.map(|directive| step(directive, &named)).collect();
    if is_sorted {
        steps.sort_by(order);
    }
    steps
}

fn step<'a>(directive: &'a Directive, named: &NamedMatchers) -> Step<'a> {
    let name = sorted_as(&directive.name);
    let (when, words) = match (name, &directive.arguments[..]) {
        // These take no matcher in front of a lone word.
        ("root" | "rewrite", [_]) | ("redir", [_] | [_, _]) if is_plain_target(directive) => {
            (Condition::Always, &directive.arguments[..])
        }
        // Of a plugin's words nobody knows which is a matcher.
        (name, _) if !ORDER.contains(&name) => (Condition::Always, &directive.arguments[..]),
        ("try_files" | "tracing", _) => (Condition::Always, &directive.arguments[..]),
        _ => named.of(directive),
    };
    let inside = matches!(name, "handle" | "route").then(|| steps(directive.children(), named, name == "handle"));
    let cuts = (directive.name == "handle_path")
        .then(|| directive.argument(0).trim_end_matches('*').trim_end_matches('/').to_owned())
        .filter(|path| !path.is_empty());
    let one_of = ONE_OF_A_BLOCK.into_iter().find(|one| *one == name);
    Step { directive, when, words, inside, cuts, one_of }
}

/// `root /srv`, `rewrite /x`, `redir /to`, `redir /to 301`: the first word is what it is about.
fn is_plain_target(directive: &Directive) -> bool {
    let is_status = |word: &str| matches!(word, "permanent" | "temporary" | "html") || word.parse::<u16>().is_ok();
    match &directive.arguments[..] {
        [one] => !one.starts_with('@'),
        [first, second] => !first.starts_with('@') && first != "*" && is_status(second),
        _ => false,
    }
}

/// Is it one of Caddy's own directives, which have a place?
pub fn is_ordered(name: &str) -> bool {
    ORDER.contains(&sorted_as(name))
}

fn place_of(step: &Step<'_>) -> usize {
    let name = sorted_as(&step.directive.name);
    ORDER.iter().position(|known| *known == name).map_or(0, |at| at + 1)
}

/// The only path of a condition.
fn only_path(condition: &Condition) -> Option<&str> {
    match condition {
        Condition::Path(paths) if paths.len() == 1 => Some(&paths[0]),
        Condition::All(all) if all.len() == 1 => only_path(&all[0]),
        Condition::All(all) => {
            let mut paths = all.iter().filter_map(only_path);
            paths.next().filter(|_| paths.next().is_none())
        }
        _ => None,
    }
}

fn order(one: &Step<'_>, other: &Step<'_>) -> Ordering {
    let by_kind = place_of(one).cmp(&place_of(other));
    if by_kind != Ordering::Equal || place_of(one) == 0 {
        return by_kind;
    }
    match (only_path(&one.when), only_path(&other.when)) {
        (Some(one), Some(other)) => {
            let (one_begins, other_begins) = (one.trim_end_matches('*'), other.trim_end_matches('*'));
            match one_begins == other_begins {
                true => one.len().cmp(&other.len()),
                false => other_begins.len().cmp(&one_begins.len()),
            }
        }
        _ => {
            let is_for_all = |step: &Step<'_>| step.when == Condition::Always;
            is_for_all(one).cmp(&is_for_all(other))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn check(lines: &[&str], is_sorted: bool, expect: &[&str]) {
        let block: Vec<Directive> = lines.iter().map(|line| directive(line)).collect();
        let steps = steps(&block, &NamedMatchers::default(), is_sorted);
        let shown: Vec<String> = steps.iter().map(|step| step.directive.text()).collect();
        assert_eq!(shown, expect);
    }

    #[test]
    fn directives_are_sorted_as_caddy_sorts_them() {
        let lines = [
            "file_server",
            "reverse_proxy /api/* a:1",
            "respond /x 404",
            "handle_path /a/*",
            "handle /api/v1/*",
            "handle",
            "basic_auth /p/*",
            "header /x/* A b",
            "header A c",
            "redir /old /new",
            "root * /srv",
            "plugin",
        ];
        let sorted = [
            "plugin",
            "root * /srv",
            "header /x/* A b",
            "header A c",
            "redir /old /new",
            "basic_auth /p/*",
            "handle /api/v1/*",
            "handle_path /a/*",
            "handle",
            "respond /x 404",
            "reverse_proxy /api/* a:1",
            "file_server",
        ];
        check(&lines, true, &sorted);
        check(&lines, false, &lines);
        check(&["handle /a*", "handle /a"], true, &["handle /a", "handle /a*"]);
        check(&["@x path /a", "respond @x 404", "tls internal"], true, &["respond @x 404"]);
    }

    #[test]
    fn steps_have_matchers_words_and_what_is_cut_off() {
        let one = |line: &str| {
            let directive = directive(line);
            let steps = steps(std::slice::from_ref(&directive), &NamedMatchers::default(), true);
            (steps[0].when == Condition::Always, steps[0].words.join(" "), steps[0].cuts.clone())
        };
        for (line, is_for_all, words, cuts) in [
            ("redir /new", true, "/new", None),
            ("redir /new 301", true, "/new 301", None),
            ("redir /old /new", false, "/new", None),
            ("redir /old /new permanent", false, "/new permanent", None),
            ("root /srv", true, "/srv", None),
            ("rewrite /a /b", false, "/b", None),
            ("handle_path /api/*", false, "", Some("/api")),
            ("try_files {path} /index.html", true, "{path} /index.html", None),
        ] {
            assert_eq!(one(line), (is_for_all, words.to_owned(), cuts.map(str::to_owned)), "{line}");
        }
    }
}
