//! What a preset says for its host, where other routes of that host have been written beside it.

use std::sync::Arc;

use proxy::settings::{RouteRules, RouteSettings, RouteTarget, WordSource};

use super::closed_words::ClosedWords;
use super::route_match;
use super::routes::Routes;

/// A route that is written for a path which a preset names, too, answers in its place, above what the preset says of that path; so does one beneath
/// it, where that is that nothing is stored. `for_all`: what holds for all routes.
pub fn take_over(all: &mut Routes, for_all: &RouteRules) {
    let mut replaced = vec![false; all.routes.len()];
    for at in 0..all.routes.len() {
        let (route, said) = (&all.routes[at], &all.said[at]);
        if said.preset.is_some() {
            continue;
        }
        let named = all.routes.iter().zip(&all.said).enumerate().filter_map(|(other, (named, by))| {
            let words = by.of_preset_s_path?;
            let is_same = is_same_path(named, route);
            let holds = is_same || words.stores_nothing() && is_beneath(route, named);
            let is_its = is_of_site(route.host.as_deref(), named.host.as_deref(), &all.routes);
            (holds && is_its).then_some((other, is_same, words, by.preset?))
        });
        let Some((other, is_same, words, preset)) = named.max_by_key(|(_, is_same, ..)| *is_same) else { continue };
        let rules = said.words.over(&preset.rules_of_path(words, for_all), WordSource::Route, &said.zone);
        replaced[other] |= is_same && route_match::ask_for_the_same(&all.routes[other], route);
        all.routes[at].rules = Arc::new(rules);
    }
    let mut is_left = replaced.iter().map(|replaced| !replaced);
    all.routes.retain(|_| is_left.next().unwrap_or(true));
    let mut is_left = replaced.iter().map(|replaced| !replaced);
    all.said.retain(|_| is_left.next().unwrap_or(true));
}

fn is_same_path(one: &RouteSettings, other: &RouteSettings) -> bool {
    let pattern = |route: &RouteSettings| route.path_pattern.as_ref().map(|pattern| pattern.text().to_owned());
    one.path_prefix == other.path_prefix && pattern(one) == pattern(other)
}

fn is_beneath(route: &RouteSettings, named: &RouteSettings) -> bool {
    let rest = route.path_prefix.strip_prefix(&*named.path_prefix);
    route.path_pattern.is_none()
        && named.path_pattern.is_none()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Has nothing be shown or run, by any route of its hosts, that a preset closes: who gives a folder of the application another root, or has scripts
/// run there, does not ask for what visitors upload to be run. `closed_paths = false` of a route takes that back.
pub fn close(all: &mut Routes) {
    let presets: Vec<_> = all
        .routes
        .iter()
        .zip(&all.said)
        .filter_map(|(route, said)| Some((route.host.clone(), said.preset.filter(|preset| !preset.closed.is_empty())?)))
        .collect();
    let mut closed_for = Vec::new();
    for (at, (route, said)) in all.routes.iter().zip(&all.said).enumerate() {
        let answers = matches!(route.target, RouteTarget::Root(_) | RouteTarget::Origin(_));
        let preset = presets.iter().find(|(host, _)| is_of_site(route.host.as_deref(), host.as_deref(), &all.routes));
        if let (true, false, Some((_, preset))) = (answers, said.closed.takes_back, preset) {
            closed_for.push((at, [&preset.closed[..], &said.closed.patterns[..]].concat()));
        }
    }
    // Routes that close the same share what is held against paths.
    let mut made: Vec<(Vec<String>, Arc<_>)> = Vec::new();
    for (at, patterns) in closed_for {
        let known = made.iter().find(|(of, _)| *of == patterns).map(|(_, paths)| Arc::clone(paths));
        let words = ClosedWords { patterns, takes_back: false };
        let Some(paths) = known.or_else(|| words.paths()) else { continue };
        all.routes[at].closed = Some(Arc::clone(&paths));
        made.push((words.patterns, paths));
    }
}

/// Are requests for this host among those of the preset's? Those of a host within it whose pages are all somebody else's are not.
fn is_of_site(host: Option<&str>, preset_s: Option<&str>, routes: &[RouteSettings]) -> bool {
    if host == preset_s {
        return true;
    }
    let is_within = match (host, preset_s) {
        (Some(_), None) => true,
        (Some(host), Some(all)) => all.strip_prefix('*').is_some_and(|beneath| host.ends_with(beneath)),
        (None, _) => false,
    };
    let is_whole = |route: &RouteSettings| {
        route.host.as_deref() == host
            && route.path_prefix == "/"
            && route.path_pattern.is_none()
            && route.methods.is_empty()
            && route.fields.is_empty()
    };
    is_within && !routes.iter().any(is_whole)
}

#[cfg(test)]
mod tests {
    use proxy::settings::Settings;

    use super::super::read;
    use super::*;

    const BLOG: &str = "[origin.php]\nfastcgi = \"unix:/run/php.sock\"\n[origin.site]\nurls = \"http://a\"\n\
                        [[route]]\nhost = \"blog.test\"\nroot = \"/srv\"\norigin = \"php\"\npreset = \"wordpress\"\n";

    fn settings(more: &str) -> Settings {
        let text = format!("{BLOG}{more}\n");
        read(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}")).settings
    }

    fn check_closed(settings: &Settings, host: &str, path: &str, expect: bool) {
        let route = RouteSettings::among(&settings.routes, host.as_bytes(), path.as_bytes()).expect("a route");
        let closed = route.closed.as_ref().is_some_and(|closed| closed.close(path.as_bytes()));
        assert_eq!(closed, expect, "{host}{path}");
    }

    #[test]
    fn what_visitors_upload_is_run_by_no_route_of_the_host() {
        let evil = "/wp-content/uploads/2026/evil.php";
        let content = "[[route]]\nhost = \"blog.test\"\npath = \"/wp-content\"\nroot = \"/data\"\norigin = \"php\"\n";
        for more in ["", content, &content.replace("path = \"/wp-content\"", "path_pattern = '^/wp-content/'")] {
            let settings = settings(more);
            for path in [evil, "/wp-content/uploads/x.PHTML/y", "/blog/wp-content/uploads/x.php", "/wp-config.php.bak"]
            {
                check_closed(&settings, "blog.test", path, true);
            }
            for path in [
                "/wp-content/uploads/woocommerce_uploads/2026/book.pdf",
                "/wp-content/updraft/backup.zip",
                "/wp-content/uploads/wc-logs/fatal.log",
                "/wp-content/uploads/edd/2026/book.pdf",
                "/backup.zip",
                "/www.tar.gz",
                "/error_log",
                "/php_errorlog",
                "/dump.sql.gz",
            ] {
                check_closed(&settings, "blog.test", path, true);
            }
            for path in [
                "/wp-content/uploads/2026/plugin.zip",
                "/sitemap.xml.gz",
                "/wp-content/uploads/edd/2026/cover.jpg",
                "/2026/error_log-explained/",
            ] {
                check_closed(&settings, "blog.test", path, false);
            }
            for path in
                ["/wp-content/uploads/a.jpg", "/wp-content/plugins/a/b.php", "/2026/php-uploads/", "/wp-login.php"]
            {
                check_closed(&settings, "blog.test", path, false);
            }
        }
        let own = format!("{content}closed_paths = '^/wp-content/secret'\n");
        check_closed(&settings(&own), "blog.test", evil, true);
        check_closed(&settings(&own), "blog.test", "/wp-content/secret/x", true);
        check_closed(&settings(&format!("{content}closed_paths = false\n")), "blog.test", evil, false);
    }

    #[test]
    fn a_route_that_is_written_takes_over_what_its_path_is_said_to_be() {
        let written = |words: &str| settings(&format!("[[route]]\nhost = \"blog.test\"\norigin = \"site\"\n{words}"));
        let among = |settings: &Settings, path: &str| {
            RouteSettings::among(&settings.routes, b"blog.test", path.as_bytes()).expect("a route").clone()
        };
        for path in ["/wp-admin", "/wp-admin/", "/wp-admin/network", "/cart"] {
            let made = written(&format!("path = \"{path}\"\nallow = [\"192.0.2.0/24\"]"));
            let route = among(&made, &format!("{path}/x"));
            let is_guarded = route.rules.access.allowed.is_some();
            assert!(is_guarded && route.rules.caching.is_off && route.target == RouteTarget::Origin(1), "{path}");
        }
        let stored = written("path = \"/cart\"\ncache = \"origin\"\nttl = \"5m\"");
        assert!(!among(&stored, "/cart").rules.caching.is_off, "it says so itself");
        let closed = settings("[[route]]\nhost = \"blog.test\"\npath = \"/xmlrpc.php\"\nclosed = true");
        assert_eq!(among(&closed, "/xmlrpc.php").target, RouteTarget::Closed);
        // Elsewhere, and of what the preset says nothing of, there is nothing to take over.
        assert!(!among(&written("path = \"/shop\""), "/shop").rules.caching.is_off);
        let elsewhere = settings("[[route]]\nhost = \"b.test\"\npath = \"/wp-admin\"\norigin = \"site\"");
        let other = RouteSettings::among(&elsewhere.routes, b"b.test", b"/wp-admin").expect("a route");
        assert!(!other.rules.caching.is_off);
        // It may stand above the preset in the file, and one that is written twice is a mistake still.
        let before = format!("[[route]]\nhost = \"blog.test\"\npath = \"/wp-admin\"\nclosed = true\n{BLOG}");
        assert_eq!(among(&read(&before).expect("it is right").settings, "/wp-admin").target, RouteTarget::Closed);
        let twice = "[[route]]\nhost = \"blog.test\"\npath = \"/wp-admin\"\nclosed = true\n".repeat(2);
        assert!(read(&format!("{BLOG}{twice}")).is_err());
    }

    /// Other methods are answered as the preset says.
    #[test]
    fn a_route_of_some_methods_takes_over_theirs() {
        let some =
            "[[route]]\nhost = \"blog.test\"\npath = \"/wp-admin\"\nmethod = [\"GET\", \"POST\"]\norigin = \"site\"\n";
        let plan = read(&format!("{BLOG}{some}allow = [\"192.0.2.0/24\"]\n")).expect("it is right");
        let of_path: Vec<_> = plan.settings.routes.iter().filter(|route| route.path_prefix == "/wp-admin").collect();
        assert!(of_path.len() == 2 && of_path.iter().all(|route| route.rules.caching.is_off), "{of_path:?}");
        let said = "other methods than GET and POST come to another route, without its allow";
        assert!(plan.warnings.iter().any(|warning| warning.contains(said)), "{:?}", plan.warnings);
        let rest = format!("{some}[[route]]\nhost = \"blog.test\"\npath = \"/wp-admin\"\nclosed = true\n");
        let plan = read(&format!("{BLOG}{rest}")).expect("it is right");
        assert!(plan.warnings.iter().all(|warning| !warning.contains("other methods")), "{:?}", plan.warnings);
    }

    #[test]
    fn a_site_of_its_own_is_closed_by_its_own_words_alone() {
        let evil = "/wp-content/uploads/evil.php";
        let other = "[[route]]\nhost = \"other.test\"\norigin = \"site\"\n";
        check_closed(&settings(other), "other.test", evil, false);
        let anywhere = |more: &str| {
            let text = format!("{}{more}", BLOG.replace("host = \"blog.test\"\n", ""));
            read(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}")).settings
        };
        check_closed(&anywhere(other), "other.test", evil, false);
        let part = "[[route]]\nhost = \"other.test\"\npath = \"/wp-content\"\norigin = \"site\"\n";
        check_closed(&anywhere(part), "other.test", evil, true);
    }
}
