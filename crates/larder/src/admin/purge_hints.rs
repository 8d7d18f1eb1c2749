//! What may be the matter where an order to purge has met nothing: how what was named is compared, and what is stored that is like it.

use proxy::{Proxy, PurgeSelector};

/// So much of what is stored is looked at for one that is like a URL: who purges after each change has no use for more.
const RESPONSES_LOOKED_AT_MAX: usize = 10_000;
const SHOWN_MAX: usize = 3;
/// Of so many responses the hosts are told.
const HOSTS_OF_RESPONSES_MAX: usize = 100;

/// For a thread that looks through the store.
pub fn why_nothing(proxy: &Proxy, selector: &PurgeSelector) -> Vec<String> {
    if let Some(word) = star_of(selector) {
        return vec![word.to_owned()];
    }
    match selector {
        PurgeSelector::Urls(urls) => urls.first().map(|url| of_url(proxy, &url.url)).into_iter().collect(),
        PurgeSelector::Tags(tags) => vec![of_tags(proxy, tags)],
        selector if selector.is_pattern() => {
            let hosts = proxy.stored_hosts(HOSTS_OF_RESPONSES_MAX);
            if hosts.is_empty() {
                return vec!["nothing at all is stored in memory".to_owned()];
            }
            let stored = format!(
                "stored are, among others, responses of {}: a host is named as clients ask for it, with its port if that is not the usual one",
                hosts.join(", ")
            );
            of_form(selector).map(str::to_owned).into_iter().chain([stored]).collect()
        }
        _ => Vec::new(),
    }
}

fn star_of(selector: &PurgeSelector) -> Option<&'static str> {
    let has_star = match selector {
        PurgeSelector::Urls(urls) => urls.iter().any(|url| url.url.contains('*')),
        PurgeSelector::Prefix(text) | PurgeSelector::Host(text) => text.contains('*'),
        _ => false,
    };
    has_star.then_some(
        "a * is a letter of the URL here, and stands for any text with `glob` alone: larder purge --glob 'PATTERN'",
    )
}

/// How a pattern is held against URLs.
fn of_form(selector: &PurgeSelector) -> Option<&'static str> {
    match selector {
        PurgeSelector::Glob(_) => Some(
            "a glob means whole URLs, from host or path to the end of the query: ? is the letter before a query, no wildcard, and `/a` is not \
             `/a?b`, which `/a?*` is",
        ),
        PurgeSelector::Regex(_) => Some(
            "a regex is held against HOST/PATH?QUERY, such as www.example.org/a?b, without http://, and a ? is a letter as \\? alone: \
             `^/a` matches nothing",
        ),
        _ => None,
    }
}

fn of_tags(proxy: &Proxy, tags: &[String]) -> String {
    let (_, in_use) = proxy.tags("", 0);
    let named = tags.iter().map(|tag| format!("`{tag}`")).collect::<Vec<_>>().join(" or ");
    match in_use {
        0 => format!("nothing that is stored in memory carries the tag {named}, nor any other"),
        count => format!(
            "nothing that is stored in memory carries the tag {named}: `larder tags` lists the {count} that there are"
        ),
    }
}

fn of_url(proxy: &Proxy, url: &str) -> String {
    let asked = UrlParts::of(url);
    let stored =
        proxy.stored_urls(|stored| Likeness::of(&asked, &UrlParts::of(stored)).is_some(), RESPONSES_LOOKED_AT_MAX);
    near(url, &stored)
}

/// What is stored of a URL under other ports than the one that it names.
pub fn under_another_port(proxy: &Proxy, url: &str) -> Option<String> {
    let asked = UrlParts::of(url);
    let is_like = |stored: &str| Likeness::of(&asked, &UrlParts::of(stored)) == Some(Likeness::Port);
    let stored = proxy.stored_urls(is_like, RESPONSES_LOOKED_AT_MAX);
    (!stored.is_empty()).then(|| near(url, &stored))
}

/// A URL as it is compared: by its host with the port, its path, and its query.
struct UrlParts<'a> {
    host: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> UrlParts<'a> {
    fn of(url: &'a str) -> UrlParts<'a> {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (target, query) = rest.split_once('?').map_or((rest, None), |(target, query)| (target, Some(query)));
        let (host, path) = target.split_at(target.find('/').unwrap_or(target.len()));
        UrlParts { host, path, query }
    }

    fn name(&self) -> &'a str {
        self.host.split(':').next().unwrap_or_default()
    }
}

/// In what a stored URL differs from the one that was named; what differs in more is not like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    Port,
    Query,
    Slash,
    Host,
}

impl Likeness {
    fn of(asked: &UrlParts<'_>, stored: &UrlParts<'_>) -> Option<Likeness> {
        let is_same_host = asked.host.eq_ignore_ascii_case(stored.host);
        let is_same_path = asked.path == stored.path;
        match (is_same_host, is_same_path) {
            (true, true) if asked.query != stored.query => Some(Likeness::Query),
            (true, false) if asked.path.trim_end_matches('/') == stored.path.trim_end_matches('/') => {
                Some(Likeness::Slash)
            }
            (false, true) if asked.query == stored.query => {
                Some(if asked.name().eq_ignore_ascii_case(stored.name()) { Likeness::Port } else { Likeness::Host })
            }
            _ => None,
        }
    }

    fn says(self) -> &'static str {
        match self {
            Likeness::Port => "a URL is stored with the port that clients ask for",
            Likeness::Query => "a URL is one query; --prefix means all that begin so",
            Likeness::Slash => "the slash at its end is part of a URL",
            Likeness::Host => "a URL is stored under the host that clients ask for",
        }
    }
}

fn near(url: &str, stored: &[String]) -> String {
    let asked = UrlParts::of(url);
    let mut like: Vec<(Likeness, &String)> =
        stored.iter().filter_map(|url| Some((Likeness::of(&asked, &UrlParts::of(url))?, url))).collect();
    like.sort();
    like.dedup();
    let Some((likeness, _)) = like.first() else {
        return format!(
            "nothing is stored under {url}, and nothing like it was found in memory: larder explain URL says under which key a request for it \
             is looked up"
        );
    };
    let shown: Vec<&str> = like.iter().take(SHOWN_MAX).map(|(_, url)| url.as_str()).collect();
    format!("nothing is stored under {url}, but {}: {}", shown.join(", "), likeness.says())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_and_like_the_url_is_named() {
        let check = |url: &str, stored: &[&str], expect: &str| {
            let stored: Vec<String> = stored.iter().map(|url| (*url).to_owned()).collect();
            let said = near(url, &stored);
            assert!(said.contains(expect), "{url}: {said}");
        };
        check(
            "http://localhost/x",
            &["http://localhost:8080/x"],
            "but http://localhost:8080/x: a URL is stored with the port",
        );
        check(
            "http://a.test/x",
            &["http://a.test/x?b=1", "http://a.test/y"],
            "but http://a.test/x?b=1: a URL is one query",
        );
        check("http://a.test/x/", &["http://a.test/x"], "the slash at its end");
        check(
            "http://a.test/x",
            &["http://www.a.test/x", "http://a.test:81/x"],
            "but http://a.test:81/x, http://www.a.test/x: a",
        );
        check("http://a.test/x", &["http://a.test/y"], "nothing like it");
        check("https://A.test/x", &[], "larder explain");
    }
}
