//! What a preset says for its host, where other routes of that host have been written beside it.

use std::sync::Arc;

use proxy::settings::{RouteSettings, RouteTarget};

use super::routes::{ClosedWords, Routes};

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
