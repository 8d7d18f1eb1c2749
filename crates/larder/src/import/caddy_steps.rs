//! The directives of a site as steps, in the order in which Caddy takes them: sorted by what they are and by how much of a path they
//! name, but for those of a `route`, which stand as they are written. It carries nothing over.

use crate::import::caddy_condition::{CaddyMatcher, Condition, NamedMatchers};
use crate::import::nginx_conf::Directive;
use crate::import::stable_sort;

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

/// One directive, for the requests that it is for; or neighbours that are asked for once.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    /// Of neighbours the first one's.
    pub directive: &'a Directive,
    matcher: CaddyMatcher,
    /// Its words behind the matcher.
    pub words: &'a [String],
    /// The steps within it, with how its path is cut off before them.
    pub inside: Option<Vec<Step<'a>>>,
    pub cuts: Option<String>,
    /// Those of its block of which one is taken.
    pub one_of: Option<&'static str>,
    /// Caddy's versions differ on whether it is one or all of them.
    pub may_be_several: bool,
    /// The steps within it are neighbours for the same requests, which go through all of them.
    pub is_merged: bool,
}

impl<'a> Step<'a> {
    pub fn when(&self) -> &Condition {
        &self.matcher.condition
    }

    fn for_all(self) -> Step<'a> {
        Step { matcher: CaddyMatcher::of_all(), one_of: None, ..self }
    }

    /// The neighbours that it stands for, or itself.
    pub fn members(&self) -> &[Step<'a>] {
        match &self.inside {
            Some(members) if self.is_merged => members,
            _ => std::slice::from_ref(self),
        }
    }
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
        stable_sort::sort(&mut steps, &comes_first);
    }
    for kind in ONE_OF_A_BLOCK {
        let is_its = |step: &&mut Step<'_>| sorted_as(&step.directive.name) == kind;
        let is_group = kind == "rewrite" || steps.iter_mut().filter(is_its).count() > 1;
        for step in steps.iter_mut().filter(is_its).filter(|_| is_group) {
            step.one_of = Some(kind);
            step.may_be_several = !is_sorted;
        }
    }
    if is_sorted { merged(steps) } else { steps }
}

/// Caddy takes neighbours of one matcher as one, which is asked before the first of them has changed anything.
fn merged(steps: Vec<Step<'_>>) -> Vec<Step<'_>> {
    let mut all: Vec<Step<'_>> = Vec::new();
    for step in steps {
        let is_same = |last: &&mut Step<'_>| {
            is_ordered(&step.directive.name)
                && is_ordered(&last.directive.name)
                && last.matcher.written == step.matcher.written
                && last.one_of == step.one_of
        };
        let Some(last) = all.last_mut().filter(is_same) else {
            all.push(step);
            continue;
        };
        match &mut last.inside {
            Some(members) if last.is_merged => members.push(step.for_all()),
            _ => {
                let members = vec![last.clone().for_all(), step.for_all()];
                *last = Step { words: &[], inside: Some(members), cuts: None, is_merged: true, ..last.clone() };
            }
        }
    }
    all
}

fn step<'a>(directive: &'a Directive, named: &NamedMatchers) -> Step<'a> {
    let name = sorted_as(&directive.name);
    let (matcher, words) = match (name, &directive.arguments[..]) {
        // These take no matcher in front of a lone word.
        ("root" | "rewrite", [_]) | ("redir", [_] | [_, _]) if is_plain_target(directive) => {
            (CaddyMatcher::of_all(), &directive.arguments[..])
        }
        // Of a plugin's words nobody knows which is a matcher.
        (name, _) if !ORDER.contains(&name) => (CaddyMatcher::of_all(), &directive.arguments[..]),
        ("try_files" | "tracing", _) => (CaddyMatcher::of_all(), &directive.arguments[..]),
        _ => named.of(directive),
    };
    let inside = matches!(name, "handle" | "route").then(|| steps(directive.children(), named, name == "handle"));
    let cuts = (directive.name == "handle_path")
        .then(|| directive.argument(0).trim_end_matches('*').trim_end_matches('/').to_owned())
        .filter(|path| !path.is_empty());
    Step { directive, matcher, words, inside, cuts, one_of: None, may_be_several: false, is_merged: false }
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

/// Does Caddy take the first before the second? By what they are, then the longer path first, with its star; and what is for some before
/// what is for all.
fn comes_first(one: &Step<'_>, other: &Step<'_>) -> bool {
    let (place, other_place) = (place_of(one), place_of(other));
    if place != other_place || place == 0 {
        return place < other_place;
    }
    match (&one.matcher.path, &other.matcher.path) {
        (Some(one), Some(other)) if one.trim_end_matches('*') == other.trim_end_matches('*') => one.len() < other.len(),
        (Some(one), Some(other)) => one.len() > other.len(),
        _ => !one.matcher.written.is_empty() && other.matcher.written.is_empty(),
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
        check(&["respond /foo* 403", "respond /foob 200"], true, &["respond /foo* 403", "respond /foob 200"]);
        check(&["respond /b 1", "respond /{x}/c 2"], true, &["respond /{x}/c 2", "respond /b 1"]);
        check(&["@x path /a", "respond @x 404", "tls internal"], true, &["respond @x 404"]);
    }

    #[test]
    fn steps_have_matchers_words_and_what_is_cut_off() {
        let one = |line: &str| {
            let directive = directive(line);
            let steps = steps(std::slice::from_ref(&directive), &NamedMatchers::default(), true);
            (*steps[0].when() == Condition::Always, steps[0].words.join(" "), steps[0].cuts.clone())
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

    #[test]
    fn neighbours_of_one_matcher_are_one_step() {
        let check = |lines: &[&str], is_sorted: bool, expect: &[(usize, Option<&str>)]| {
            let block: Vec<Directive> = lines.iter().map(|line| directive(line)).collect();
            let steps = steps(&block, &NamedMatchers::default(), is_sorted);
            let found: Vec<_> = steps.iter().map(|step| (step.members().len(), step.one_of)).collect();
            assert_eq!(found, expect, "{lines:?}");
            let members = steps.iter().filter(|step| step.is_merged).flat_map(Step::members);
            assert!(members.into_iter().all(|member| *member.when() == Condition::Always), "{lines:?}");
        };
        check(&["uri /a* strip_prefix /a", "basic_auth /a*", "respond /a* 403"], true, &[(3, None)]);
        check(&["respond /a* 1", "respond /b* 2", "respond /a* 3"], true, &[(1, None); 3]);
        check(&["respond /a* 1", "respond /b* 2", "abort /b*"], true, &[(1, None); 3]);
        check(&["uri /a* strip_prefix /a", "respond /a* 403"], false, &[(1, None), (1, None)]);
        check(&["rewrite /a* /b", "respond /a* 403"], true, &[(1, Some("rewrite")), (1, None)]);
        check(&["handle", "handle"], true, &[(2, Some("handle"))]);
        check(&["root * /a", "root * /b", "file_server"], true, &[(2, Some("root")), (1, None)]);
        check(&["handle", "reverse_proxy a:1"], true, &[(2, None)]);
        check(&["plugin", "respond 1"], true, &[(1, None), (1, None)]);
    }
}
