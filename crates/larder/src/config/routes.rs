//! `[[route]]`: which requests are answered by whom, an origin or the files of a directory.

use message::{Authority, Scheme};
use proxy::settings::{OriginSettings, RootSettings, RouteSettings, RouteTarget};

use super::complaint::Complaint;
use super::nearest::nearest;
use super::section::{Section, parsed, switch, text};
use super::sections::path;
use crate::plan::everything;

/// Keys that the design has and this version does not.
const NOT_YET: [&str; 3] = ["memcached", "respond", "redirect"];

/// `[[route]]`. Without any, the only origin gets everything.
pub fn read(
    top: &Section<'_>,
    sections: Vec<Section<'_>>,
    origins: &[OriginSettings],
) -> (Vec<RouteSettings>, Vec<RootSettings>) {
    if sections.is_empty() && origins.len() > 1 {
        let last = &origins[origins.len() - 1].name;
        let what = format!("there are {} origins and no [[route]] says who gets which request", origins.len());
        let complaint = Complaint::new(top.span().start..top.span().start + 1, what, "somewhere in this file");
        let suggestion =
            format!("add [[route]] with path = \"/\" and origin = \"{last}\", and one for each other origin");
        top.complaints().add(complaint.suggest(suggestion));
    }
    let (mut routes, mut roots): (Vec<RouteSettings>, Vec<RootSettings>) = Default::default();
    if sections.is_empty() && origins.len() == 1 {
        routes.push(everything(RouteTarget::Origin(0)));
    }
    for section in sections {
        let span = section.span();
        let complaints = section.complaints();
        for route in route(section, origins, &mut roots) {
            if routes.iter().any(|known| known.host == route.host && known.path_prefix == route.path_prefix) {
                let host = route.host.as_deref().unwrap_or("any host");
                let what = format!("a route for {host} and {} exists already", route.path_prefix);
                complaints.add(Complaint::new(span.clone(), what, "the second one"));
            }
            routes.push(route);
        }
    }
    (routes, roots)
}

fn route(section: Section<'_>, origins: &[OriginSettings], roots: &mut Vec<RootSettings>) -> Vec<RouteSettings> {
    let mut section = section.not_yet(&NOT_YET);
    let hosts = section.read_list("host", |node| {
        parsed(node, "host", "a name without port, or *.NAME for every name below it", route_host)
    });
    let paths = section.read_list("path", |node| {
        parsed(node, "path", "begins with / and has no ?, # or space", |written| {
            let valid = written.starts_with('/')
                && !written.contains(['?', '#'])
                && written.bytes().all(|b| b.is_ascii_graphic());
            valid.then(|| written.to_owned())
        })
    });
    let origin = section.read("origin", |node| {
        let written = text(node)?;
        origins.iter().position(|origin| origin.name == written).ok_or_else(|| {
            let complaint = Complaint::new(node.span(), format!("there is no origin `{written}`"), "not defined");
            match nearest(written, origins.iter().map(|o| o.name.as_str())) {
                Some(meant) => complaint.suggest(format!("did you mean `{meant}`?")),
                None => complaint.suggest(format!("add [origin.{written}] with urls = [\"http://HOST:PORT\"]")),
            }
        })
    });
    let origin_span = section.get("origin").map(|node| node.span());
    let root = root(&mut section);
    let target = match (origin, root) {
        (_, Some(root)) => {
            if let Some(span) = origin_span {
                let complaint = Complaint::new(span, "a route has an origin or a root, not both", "beside `root`");
                section.complaints().add(complaint.suggest("write two routes with a path each"));
            }
            roots.push(root);
            Some(RouteTarget::Root(roots.len() - 1))
        }
        (origin, None) => {
            if section.get("root").is_none() {
                let suggestion = "write origin = \"NAME\", where [origin.NAME] says where it is, or root = \"DIR\"";
                section.require("origin", suggestion);
            }
            origin.map(RouteTarget::Origin)
        }
    };
    section.end();
    let Some(target) = target else { return Vec::new() };
    let hosts = hosts.map_or(vec![None], |hosts| hosts.into_iter().map(Some).collect());
    let paths = paths.unwrap_or_else(|| vec!["/".to_owned()]);
    let pairs = hosts.iter().flat_map(|host| paths.iter().map(move |path| (host.clone(), path.clone())));
    pairs.map(|(host, path_prefix)| RouteSettings { host, path_prefix, target }).collect()
}

/// The keys of a route that serves files.
fn root(section: &mut Section<'_>) -> Option<RootSettings> {
    let directory = section.read("root", |node| parsed(node, "directory", "a path", path));
    let index = section.read_list("index", |node| {
        let form = "the name of a file, without a slash";
        parsed(node, "index file", form, |name| is_file_name(name).then(|| name.to_owned()))
    });
    let fallback = section.read("fallback", |node| {
        let form = "the path of a file, such as \"/index.html\"";
        parsed(node, "fallback", form, |path| is_fallback(path).then(|| path.to_owned()))
    });
    let charset = section.read("charset", |node| {
        parsed(node, "charset", "a name such as utf-8 or gbk", |name| is_token(name).then(|| name.to_owned()))
    });
    let cache_control = section.read("cache_control", |node| {
        parsed(node, "field value", "such as \"public, max-age=3600\"", |value| {
            let is_value =
                !value.is_empty() && value.trim() == value && value.bytes().all(|b| (b' '..=b'~').contains(&b));
            is_value.then(|| value.to_owned())
        })
    });
    let dotfiles = section.read("dotfiles", switch);
    let precompressed = section.read("precompressed", switch);
    if directory.is_none() && section.get("root").is_none() {
        for key in ["index", "fallback", "charset", "cache_control", "dotfiles", "precompressed"] {
            if let Some(node) = section.get(key) {
                let complaint =
                    Complaint::new(node.span(), format!("`{key}` is for routes with a root"), "no root here");
                section.complaints().add(complaint);
            }
        }
    }
    if let (Some(node), Some(hidden)) =
        (section.get("fallback"), fallback.as_deref().filter(|path| path.contains("/.")))
        && dotfiles != Some(true)
    {
        let what = format!("the fallback `{hidden}` is hidden: set `dotfiles = true`, or call it otherwise");
        let complaint = Complaint::new(node.span(), what, "nobody is shown this");
        section.complaints().add(complaint);
    }
    let ships = RootSettings::of(directory?);
    Some(RootSettings {
        index: index.unwrap_or(ships.index),
        fallback,
        precompressed: precompressed.unwrap_or(ships.precompressed),
        charset,
        cache_control,
        dotfiles: dotfiles.unwrap_or(ships.dotfiles),
        directory: ships.directory,
    })
}

fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// As it is asked for, with nothing to be decoded or resolved.
fn is_fallback(path: &str) -> bool {
    path.len() > 1 && path.starts_with('/') && !path.contains('%') && path[1..].split('/').all(is_file_name)
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:+".contains(&b))
}

fn route_host(written: &str) -> Option<String> {
    let name = written.strip_prefix("*.").unwrap_or(written);
    let authority = Authority::parse(name.as_bytes(), Scheme::Http)?;
    let plain = !name.contains('*') && !name.ends_with(':') && !has_port(name);
    let host = std::str::from_utf8(&authority.host).ok()?;
    plain.then(|| if name.len() < written.len() { format!("*.{host}") } else { host.to_owned() })
}

fn has_port(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'))
}

#[cfg(test)]
mod tests {
    use super::super::read as read_config;
    use super::*;

    #[test]
    fn a_route_may_have_a_root() {
        let text = "[[route]]\nroot = \"/srv/www\"\n[[route]]\nhost = \"a.test\"\nroot = \"/srv/a\"\n\
                    index = [\"index.htm\", \"a.html\"]\ncharset = \"gbk\"\nfallback = \"/a.html\"\ncache_control = \"max-age=60\"\ndotfiles = true\n";
        let settings = read_config(text).unwrap().settings;
        let targets: Vec<_> = settings.routes.iter().map(|route| route.target).collect();
        assert_eq!(targets, [RouteTarget::Root(0), RouteTarget::Root(1)]);
        let (first, second) = (&settings.roots[0], &settings.roots[1]);
        assert_eq!(
            (&*first.index, first.charset.as_deref(), first.dotfiles),
            (&["index.html".to_owned()][..], None, false)
        );
        assert_eq!(second.directory.as_os_str(), "/srv/a");
        assert_eq!(second.index, ["index.htm", "a.html"]);
        assert_eq!((second.charset.as_deref(), second.cache_control.as_deref()), (Some("gbk"), Some("max-age=60")));
        assert_eq!((second.fallback.as_deref(), &first.fallback), (Some("/a.html"), &None));
        assert!(second.dotfiles && settings.origins.is_empty());
    }

    fn check(route: &str, expect: &[&str]) {
        let text = format!("[[route]]\n{route}\n[origin.web]\nurls = \"http://a\"\n");
        let wrong = read_config(&text).unwrap_err();
        let said: Vec<_> = wrong.iter().map(|complaint| complaint.what.as_str()).collect();
        assert_eq!(said, expect, "{route}");
    }

    #[test]
    fn what_a_route_cannot_be_is_said() {
        check("root = \"\"", &["`` is no directory"]);
        check("path = \"/\"", &["`origin` is missing"]);
        check("origin = \"web\"\nroot = \"/a\"", &["a route has an origin or a root, not both"]);
        check("origin = \"web\"\ncharset = \"gbk\"", &["`charset` is for routes with a root"]);
        check("root = \"/a\"\ncharset = \"g b\"", &["`g b` is no charset"]);
        check("root = \"/a\"\nindex = \"a/b\"", &["`a/b` is no index file"]);
        for fallback in ["index.html", "/", "/a/", "/a%20b", "/a/../b"] {
            check(&format!("root = \"/a\"\nfallback = \"{fallback}\""), &[&format!("`{fallback}` is no fallback")]);
        }
        check(
            "root = \"/a\"\nfallback = \"/.a.html\"",
            &["the fallback `/.a.html` is hidden: set `dotfiles = true`, or call it otherwise"],
        );
        let shown = "[[route]]\nroot = \"/a\"\nfallback = \"/.a.html\"\ndotfiles = true\n";
        assert!(read_config(shown).is_ok());
        check("root = \"/a\"\ncache_control = \"a\\nb\"", &["`a\nb` is no field value"]);
    }
}
