//! `preset = "NAME"`: the words that sites of a kind need, as files of those words. They stand beneath what the operator says; what they say of
//! single paths of the application stands above it, for nobody wants pages of a session in a store because the site has a `ttl`.

use std::sync::LazyLock;

use proxy::settings::{RootSettings, RouteRules, RouteSettings, RouteTarget, WordSource};
use toml::de::DeTable;

use super::closed_words;
use super::complaint::Complaint;
use super::nearest::nearest;
use super::route_match::{self, Conditions};
use super::route_words::{self, RouteWords};
use super::section::{self, Complaints, Node, Section, text};

const TEXTS: [(&str, &str); 6] = [
    ("wordpress", include_str!("presets/wordpress.toml")),
    ("drupal", include_str!("presets/drupal.toml")),
    ("mediawiki", include_str!("presets/mediawiki.toml")),
    ("static", include_str!("presets/static.toml")),
    ("spa", include_str!("presets/spa.toml")),
    ("api", include_str!("presets/api.toml")),
];

static PRESETS: LazyLock<Vec<Preset>> =
    LazyLock::new(|| TEXTS.iter().map(|(name, text)| Preset::read(name, text)).collect());

/// What sites of a kind need.
#[derive(Debug)]
pub struct Preset {
    name: &'static str,
    /// Of the whole site.
    site: RouteWords,
    /// What nobody is shown, or has run, on its hosts.
    pub closed: Vec<String>,
    paths: Vec<PathsOfSite>,
}

/// Some of the paths of a site.
#[derive(Debug)]
struct PathsOfSite {
    conditions: Conditions,
    words: RouteWords,
    /// Where files answer: the Cache-Control of those that are there, if the route says none for all of its files.
    files_cache_control: Option<String>,
}

/// The root of paths whose files say this to browsers. `None`: they say what the route has them say.
fn of_files(root: &RootSettings, cache_control: &str) -> Option<RootSettings> {
    let cache_control = Some(cache_control.to_owned());
    // What never changes says so whatever the others say; what is not there is 404 then, and no `fallback` answers in its name for a year.
    let never_changes = cache_control.as_ref().is_some_and(|said| said.contains("immutable"));
    match (never_changes, &root.cache_control) {
        (true, _) => Some(RootSettings { fallback: None, cache_control, ..root.clone() }),
        (false, None) => Some(RootSettings { cache_control, ..root.clone() }),
        (false, Some(_)) => None,
    }
}

/// For `preset = "NAME"`.
pub fn by_name(node: Node<'_>) -> Result<&'static Preset, Complaint> {
    let written = text(node)?;
    named(written).ok_or_else(|| {
        let names: Vec<&str> = TEXTS.iter().map(|(name, _)| *name).collect();
        let complaint = Complaint::new(node.span(), format!("there is no preset `{written}`"), "no such preset");
        match nearest(written, names.iter().copied()) {
            Some(meant) => complaint.suggest(format!("did you mean \"{meant}\"?")),
            None => complaint.suggest(format!("there are {}", names.join(", "))),
        }
    })
}

/// The preset of this name.
pub fn named(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// The text of a preset, for people.
pub fn text_of(name: &str) -> Option<&'static str> {
    TEXTS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name)
}

impl Preset {
    /// A text of ours: a mistake in it is found by the tests.
    fn read(name: &'static str, text: &str) -> Preset {
        let complaints = Complaints::default();
        let (document, errors) = DeTable::parse_recoverable(text);
        assert!(errors.is_empty(), "preset {name}: {errors:?}");
        let mut top = Section::top(document.get_ref(), 0..text.len(), &complaints);
        let mut preset = Preset { name, site: RouteWords::default(), closed: Vec::new(), paths: Vec::new() };
        for mut section in top.sections("route") {
            let is_of_site = ["path", "path_pattern", "method", "header"].iter().all(|key| section.get(key).is_none());
            let (conditions, words) = (route_match::read(&mut section), route_words::read(&mut section, &[]));
            let files_cache_control = section.read("cache_control", |node| section::text(node).map(str::to_owned));
            preset.closed.extend(closed_words::read(&mut section).into_iter().flat_map(|(closed, _)| closed.patterns));
            match is_of_site {
                true => preset.site = words,
                false => preset.paths.push(PathsOfSite { conditions, words, files_cache_control }),
            }
            section.end();
        }
        top.end();
        let wrong = complaints.into_sorted();
        assert!(wrong.is_empty(), "preset {name}: {wrong:?}");
        preset
    }

    /// Is it one of an application in PHP?
    pub fn has_scripts(&self) -> bool {
        matches!(self.name, "wordpress" | "drupal" | "mediawiki")
    }

    fn source(&self) -> WordSource {
        WordSource::Preset(self.name)
    }

    /// What holds for the whole site, above what holds for all sites.
    pub fn rules(&self, for_all: &RouteRules) -> RouteRules {
        self.site.over(for_all, self.source(), self.name)
    }

    /// What it says of some paths, above what was said before.
    pub fn rules_of_path(&self, words: &RouteWords, before: &RouteRules) -> RouteRules {
        words.over(before, self.source(), self.name)
    }

    /// The routes of its paths, made of the one for the whole site, and what they say. `roots`: those of all routes.
    pub fn routes(
        &'static self,
        hosts: &[Option<String>],
        site: &RouteSettings,
        roots: &mut Vec<RootSettings>,
    ) -> Vec<(RouteSettings, &'static RouteWords)> {
        let mut routes = Vec::new();
        for PathsOfSite { conditions, words, files_cache_control } in &self.paths {
            let rules = self.rules_of_path(words, &site.rules).into();
            let mut route = RouteSettings { rules, yields_to_paths: true, ..site.clone() };
            if let (RouteTarget::Root(at), Some(cache_control)) = (site.target, files_cache_control)
                && let Some(root) = of_files(&roots[at], cache_control)
            {
                route.target = RouteTarget::Root(roots.len());
                roots.push(root);
            }
            routes.extend(conditions.routes(hosts, &route).into_iter().map(|route| (route, words)));
        }
        routes
    }
}

#[cfg(test)]
mod tests {
    use proxy::settings::GrantedLifetime;

    use super::super::read;
    use super::*;

    /// What a file at this path says to browsers, and whether the `fallback` of the route answers where it is not there.
    fn said(preset: &str, more: &str, path: &str) -> (Option<String>, bool) {
        let text = format!("[[route]]\nroot = \"/srv\"\nfallback = \"/index.html\"\npreset = \"{preset}\"\n{more}\n");
        let text = match preset {
            "wordpress" => format!("{text}origin = \"php\"\n[origin.php]\nfastcgi = \"unix:/run/php.sock\"\n"),
            _ => text,
        };
        let settings = read(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}")).settings;
        let route = RouteSettings::among(&settings.routes, b"any", path.as_bytes()).expect("a route");
        let RouteTarget::Root(at) = route.target else { panic!("{path}: {:?}", route.target) };
        (settings.roots[at].cache_control.clone(), settings.roots[at].fallback.is_some())
    }

    #[test]
    fn files_with_a_kind_say_to_browsers_how_long_they_live() {
        let hour = || Some("public, max-age=3600".to_owned());
        let own = || Some("max-age=9".to_owned());
        assert_eq!(said("static", "", "/a.css"), (hour(), true));
        assert_eq!(said("static", "", "/page"), (None, true));
        assert_eq!(said("static", "cache_control = \"max-age=9\"", "/a.css"), (own(), true));
        assert_eq!(said("wordpress", "", "/wp-content/a.css"), (Some("public, max-age=86400".to_owned()), true));
        assert_eq!(said("wordpress", "", "/a/page"), (None, true));
        let forever = || Some("public, max-age=31536000, immutable".to_owned());
        assert_eq!(said("spa", "cache_control = \"max-age=9\"", "/app-0123abcd.js"), (forever(), false));
        assert_eq!(said("spa", "cache_control = \"max-age=9\"", "/page"), (own(), true));
    }

    /// How long a page is fresh that does not say so; `None` where nothing is stored. And are its cookies taken out?
    fn stored(preset: &str, path: &str) -> (Option<u64>, bool) {
        let text = format!("[[route]]\npreset = \"{preset}\"\n[origin.a]\nurls = \"http://a\"\n");
        let settings = read(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}")).settings;
        let rules = &RouteSettings::among(&settings.routes, b"any", path.as_bytes()).expect("a route").rules;
        let of_ok =
            |lifetime: &&GrantedLifetime| lifetime.statuses.is_none_or(|(first, last)| (first..=last).contains(&200));
        let fresh = rules.caching.grant.lifetimes.iter().find(of_ok).map(|lifetime| lifetime.seconds);
        (fresh.filter(|_| !rules.caching.is_off), !rules.cookies.stripped.is_empty())
    }

    #[test]
    fn a_script_goes_past_the_store_however_it_is_reached() {
        let day = Some(86_400);
        for folder in ["", "/blog", "/a/b"] {
            for script in
                ["plugins/foo/", "plugins/foo", "plugins/foo/index.php", "plugins/a.b/", "x.PHP/y", "a.phtml", ""]
            {
                let path = format!("{folder}/wp-content/{script}");
                assert_eq!(stored("wordpress", &path), (None, false), "{path}");
            }
            for file in ["wp-content/a.css", "wp-content/uploads/2026/b.c.jpg", "wp-includes/js/x.min.js"] {
                let path = format!("{folder}/{file}");
                assert_eq!(stored("wordpress", &path), (day, true), "{path}");
            }
        }
        assert_eq!(stored("wordpress", "/2026/wp-content-and-more/"), (Some(300), false));
        assert_eq!(stored("drupal", "/modules/a/a.css"), (day, true));
        assert_eq!(stored("drupal", "/sites/default/files/a.php"), (None, false));
        assert_eq!(stored("drupal", "/modules/a/"), (Some(60), false));
    }

    #[test]
    fn an_application_needs_somebody_who_runs_its_scripts() {
        for (name, has_scripts) in
            [("wordpress", true), ("drupal", true), ("mediawiki", true), ("static", false), ("spa", false)]
        {
            let text = format!("[[route]]\nroot = \"/srv\"\npreset = \"{name}\"\n");
            let wrong = read(&text).err().map(|wrong| format!("{wrong:?}")).unwrap_or_default();
            assert_eq!(wrong.contains("nobody runs them"), has_scripts, "{name}: {wrong}");
        }
    }
}
