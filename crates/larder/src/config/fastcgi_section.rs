//! FastCGI: the keys of an `[origin.NAME]` that speaks it, and what its scripts make of a `[[route]]` with a root.

use std::ops::Range;

use proxy::settings::{
    FastCgiKeepAlive, FastCgiSettings, OriginSettings, OriginUrl, RootScripts, RootSettings, ShownSources,
};

use super::complaint::Complaint;
use super::section::{Node, Section, as_switch, parsed, text, whole, wrong_type};
use super::static_root::is_file_name;
use crate::addresses::parse_fastcgi;

/// Keys that mean nothing to an origin that speaks another protocol.
const OF_FASTCGI: [&str; 5] = ["document_root", "index", "split_path", "params", "keep_alive"];

/// Where an application is asked that speaks FastCGI, and how. `None`: the origin speaks another protocol.
pub fn of_origin(origin: &mut Section<'_>) -> Option<(Vec<OriginUrl>, FastCgiSettings)> {
    let urls = origin.read_list("fastcgi", |node| {
        let written = text(node)?;
        parse_fastcgi(written)
            .map_err(|why| Complaint::new(node.span(), format!("`{written}` cannot be asked over FastCGI"), why))
    });
    let is_asked = origin.get("fastcgi").is_some();
    let settings = settings(origin);
    if !is_asked {
        for key in OF_FASTCGI {
            if let Some(node) = origin.get(key) {
                let what = format!("`{key}` is for origins with fastcgi");
                let complaint = Complaint::new(node.span(), what, "this one speaks HTTP").following_from(&["fastcgi"]);
                origin
                    .complaints()
                    .add(complaint.suggest("write fastcgi = \"unix:/run/php/php-fpm.sock\" in place of urls"));
            }
        }
        return None;
    }
    if let Some(node) = origin.get("probe") {
        let what = "`probe` asks over HTTP/1, and this origin speaks FastCGI";
        let complaint = Complaint::new(node.span(), what, "it would be down at once");
        origin.complaints().add(complaint.suggest("leave `probe` out: ejection_failures leaves out who fails"));
    }
    for key in ["urls", "tls", "http2"] {
        if let Some(node) = origin.get(key) {
            let what = format!("`{key}` and `fastcgi` of one origin");
            origin.complaints().add(Complaint::new(node.span(), what, "it speaks HTTP or FastCGI, not both"));
        }
    }
    Some((urls?, settings))
}

fn settings(origin: &mut Section<'_>) -> FastCgiSettings {
    let ships = FastCgiSettings::default();
    let endings = origin.read_list("split_path", |node| {
        parsed(node, "end of a script's name", "a dot, then lower-case letters and digits, such as \".php\"", ending)
    });
    let endings = endings.filter(|endings| !endings.is_empty()).unwrap_or(ships.endings);
    FastCgiSettings {
        document_root: origin.read("document_root", |node| {
            parsed(node, "document root", "an absolute path, as the application sees it", |path| {
                let path = path.trim_end_matches('/');
                path.starts_with('/').then(|| path.to_owned())
            })
        }),
        index: origin.read("index", |node| script(node, &endings)).unwrap_or(ships.index),
        params: params(origin),
        keep_alive: origin.read("keep_alive", keep_alive).unwrap_or(ships.keep_alive),
        endings,
    }
}

/// A switch, or how many processes there are.
fn keep_alive(node: Node<'_>) -> Result<FastCgiKeepAlive, Complaint> {
    match as_switch(node) {
        Some(true) => Ok(FastCgiKeepAlive::WhileNobodyWaits),
        Some(false) => Ok(FastCgiKeepAlive::Never),
        None => match whole(node) {
            Ok(processes @ 1..) => Ok(FastCgiKeepAlive::UpTo(processes)),
            _ => Err(wrong_type(node, "true, false, or how many processes there are (`pm.max_children` of php-fpm)")),
        },
    }
}

fn ending(written: &str) -> Option<String> {
    let rest = written.strip_prefix('.')?;
    let is_plain = !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    is_plain.then(|| written.to_owned())
}

/// A path beneath the document root.
fn script(node: Node<'_>, endings: &[String]) -> Result<String, Complaint> {
    parsed(node, "script", "a path beneath the root whose name ends like one, such as \"index.php\"", |path| {
        let is_script = endings.iter().any(|ending| path.ends_with(ending.as_str()));
        (is_script && path.split('/').all(is_file_name)).then(|| path.to_owned())
    })
}

fn params(origin: &mut Section<'_>) -> Vec<(String, String)> {
    let Some(table) = origin.section("params") else { return Vec::new() };
    let mut params = Vec::new();
    for (name, span, node) in table.entries() {
        let is_name = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        if name.is_empty() || !is_name || name.as_bytes()[0].is_ascii_digit() {
            let complaint =
                Complaint::new(span, format!("`{name}` is no variable"), "capitals, digits and underscores");
            table.complaints().add(complaint);
            continue;
        }
        match parsed(node, "value of a variable", "one line of text", |value| {
            (!value.contains(char::is_control)).then(|| value.to_owned())
        }) {
            Ok(value) => params.push((name.to_owned(), value)),
            Err(complaint) => table.complaints().add(complaint),
        }
    }
    params
}

/// Beside the root of a route an origin that speaks FastCGI runs the scripts that lie there. False: the root is one of files alone, or there
/// is none.
pub fn of_route(
    route: &mut Section<'_>,
    root: Option<&mut RootSettings>,
    origin: Option<&(usize, &OriginSettings)>,
) -> bool {
    let (Some(root), Some((origin, settings))) = (root, origin) else { return false };
    let Some(fastcgi) = &settings.fastcgi else { return false };
    if route.get("index").is_none() {
        root.index.insert(0, fastcgi.index.clone());
    }
    if root.fallback.is_none() {
        root.fallback = Some(format!("/{}", fastcgi.index));
    }
    if let (ShownSources::All, Some(node)) = (&root.sources, route.get("sources")) {
        let what = format!("`{}` runs the scripts of this root, so their sources are shown to nobody", settings.name);
        let complaint = Complaint::new(node.span(), what, "beside an origin that runs them");
        route
            .complaints()
            .add(complaint.suggest("leave it out, or write a route without origin for what is to be shown"));
    }
    root.scripts = Some(RootScripts { origin: *origin, endings: fastcgi.endings.clone() });
    true
}

/// The same of the only origin, which answers everything.
pub fn check_only(top: &Section<'_>, settings: &OriginSettings) {
    check_alone(top, top.span().start..top.span().start + 1, settings);
}

/// Without a root nobody here knows which scripts there are, so there is one, and it has to be said where it lies.
pub fn check_alone(section: &Section<'_>, span: Range<usize>, settings: &OriginSettings) {
    if settings.fastcgi.as_ref().is_some_and(|fastcgi| fastcgi.document_root.is_none()) {
        let what = format!("nothing says where the scripts of `{}` lie", settings.name);
        let complaint = Complaint::new(span, what, "it speaks FastCGI");
        section.complaints().add(complaint.suggest(
            "write root = \"/srv/www\" in its [[route]], or document_root = \"/srv/www\" in the origin where larder cannot see the files",
        ));
    }
}

#[cfg(test)]
mod tests {
    use proxy::settings::RouteTarget;

    use super::super::read as read_config;
    use super::*;

    const PHP: &str = "[origin.php]\nfastcgi = \"unix:/run/php.sock\"\n";

    #[test]
    fn connections_are_kept_by_a_switch_or_for_so_many_processes() {
        let kept = |word: &str| {
            let text = format!("{PHP}document_root = \"/srv\"\nkeep_alive = {word}\n[[route]]\norigin = \"php\"\n");
            read_config(&text).map(|read| read.settings.origins[0].fastcgi.as_ref().map(|fastcgi| fastcgi.keep_alive))
        };
        for (word, expect) in [
            ("true", FastCgiKeepAlive::WhileNobodyWaits),
            ("false", FastCgiKeepAlive::Never),
            ("8", FastCgiKeepAlive::UpTo(8)),
        ] {
            assert_eq!(kept(word).unwrap(), Some(expect), "{word}");
        }
        for word in ["0", "-1", "\"yes\"", "4294967296"] {
            assert!(kept(word).is_err(), "{word}");
        }
    }

    #[test]
    fn a_php_site_is_a_root_and_an_origin() {
        let site = "[[route]]\nroot = \"/srv/www\"\norigin = \"php\"\n";
        let settings = read_config(&format!("{PHP}{site}")).unwrap().settings;
        assert_eq!(settings.routes[0].target, RouteTarget::Root(0));
        assert_eq!(settings.origins[0].urls, [OriginUrl::Unix("/run/php.sock".into())]);
        let root = &settings.roots[0];
        assert_eq!(root.index, ["index.php", "index.html"]);
        assert_eq!(root.fallback.as_deref(), Some("/index.php"));
        assert_eq!(root.scripts, Some(RootScripts { origin: 0, endings: vec![".php".to_owned()] }));
        let said = "index = \"app.php\"\nkeep_alive = true\nparams = { APP_ENV = \"prod\", X = \"\" }\nsplit_path = [\".php\", \".phtml\"]\ndocument_root = \"/app/\"\n";
        let own = "index = [\"a.html\"]\nfallback = \"/b.html\"\n";
        let settings = read_config(&format!("{PHP}{said}{site}{own}")).unwrap().settings;
        let fastcgi = settings.origins[0].fastcgi.clone().unwrap();
        assert_eq!(
            (fastcgi.document_root.as_deref(), fastcgi.keep_alive),
            (Some("/app"), FastCgiKeepAlive::WhileNobodyWaits)
        );
        assert_eq!(fastcgi.params, [("APP_ENV".into(), "prod".into()), ("X".into(), String::new())]);
        let root = &settings.roots[0];
        assert_eq!((&root.index[..], root.fallback.as_deref()), (&["a.html".to_owned()][..], Some("/b.html")));
        assert_eq!(root.scripts.as_ref().unwrap().endings, [".php", ".phtml"]);
    }

    #[test]
    fn an_origin_alone_answers_by_one_script() {
        let text = format!("{PHP}document_root = \"/app\"\nindex = \"public/index.php\"\n");
        let settings = read_config(&text).unwrap().settings;
        assert_eq!(settings.routes[0].target, RouteTarget::Origin(0));
        assert_eq!(settings.origins[0].fastcgi.as_ref().unwrap().index, "public/index.php");
    }

    fn check(text: &str, expect: &[&str]) {
        let wrong = read_config(text).unwrap_err();
        let said: Vec<_> = wrong.iter().map(|complaint| complaint.what.as_str()).collect();
        assert_eq!(said, expect, "{text}");
    }

    #[test]
    fn what_cannot_be_is_said() {
        let php = |lines: &str| format!("{PHP}document_root = \"/app\"\n{lines}\n");
        for asked in ["/run/php.sock", "http://a:9000", "127.0.0.1"] {
            let text = format!("[origin.php]\nfastcgi = \"{asked}\"\ndocument_root = \"/app\"\n");
            check(&text, &[&format!("`{asked}` cannot be asked over FastCGI")]);
        }
        check(&php("urls = \"http://a\""), &["`urls` and `fastcgi` of one origin"]);
        check(&php("probe = {}"), &["`probe` asks over HTTP/1, and this origin speaks FastCGI"]);
        check(&php("index = \"index.html\""), &["`index.html` is no script"]);
        check(&php("index = \"../index.php\""), &["`../index.php` is no script"]);
        check(&php("split_path = \"php\""), &["`php` is no end of a script's name"]);
        check(&php("params = { a = \"b\" }"), &["`a` is no variable"]);
        check(&php("params = { A = \"b\\nc\" }"), &["`b\nc` is no value of a variable"]);
        check(
            &format!("{PHP}document_root = \"app\"\n"),
            &["nothing says where the scripts of `php` lie", "`app` is no document root"],
        );
        check(PHP, &["nothing says where the scripts of `php` lie"]);
        check(&format!("{PHP}[[route]]\norigin = \"php\"\n"), &["nothing says where the scripts of `php` lie"]);
        check("[origin.web]\nurls = \"http://a\"\nkeep_alive = true\n", &["`keep_alive` is for origins with fastcgi"]);
        check(
            "[origin.web]\nurls = \"http://a\"\n[[route]]\norigin = \"web\"\nroot = \"/a\"\n",
            &["a route has exactly one of origin, root, memcached, stub_status, redirect, respond and closed"],
        );
    }
}
