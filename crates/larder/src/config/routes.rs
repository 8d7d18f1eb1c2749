//! `[[route]]`: which requests are answered by whom, an origin, the files of a directory or memcached, and the pages for errors.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use message::{Authority, Scheme};
use proxy::settings::{
    AuthRequest, ClosedPaths, ErrorClass, ErrorPages, FieldCondition, MemcachedSettings, OriginSettings, RootSettings,
    RouteRules, RouteSettings, RouteTarget, StatusPageSettings, WordSource,
};

use super::beside_presets;
use super::closed_words::{self, ClosedWords};
use super::complaint::Complaint;
use super::esi_section;
use super::fastcgi_section;
use super::literal;
use super::memcached_route;
use super::origins_by_name;
use super::presets::{self, Preset};
use super::route_access;
use super::route_match;
use super::route_mirror;
use super::route_words::{self, ForAll, RouteWords};
use super::section::{Complaints, Section, as_switch, network, parsed, switch, text};
use super::static_root::{file_path, root};
use crate::plan::everything;

/// Tells the limits of rates that `[policy]` sets from those of routes.
const ALL_ROUTES: &str = "all routes";

/// Keys of which a route needs one.
const ANSWERERS: [&str; 7] = ["origin", "root", "memcached", "stub_status", "redirect", "respond", "closed"];

/// The routes, and what of the answering is theirs alone.
#[derive(Debug, Default)]
pub struct Routes {
    pub routes: Vec<RouteSettings>,
    pub roots: Vec<RootSettings>,
    pub memcached: Vec<MemcachedSettings>,
    pub status_pages: Vec<StatusPageSettings>,
    /// What the section of each route said that it does not say itself.
    pub said: Vec<SaidOfRoute>,
}

/// Of a section, beside what its routes say.
#[derive(Clone, Debug, Default)]
pub struct SaidOfRoute {
    /// Where its `error_pages` stand.
    pages_span: Option<Range<usize>>,
    pub closed: ClosedWords,
    pub preset: Option<&'static Preset>,
    /// Of the paths that this route is for, where a preset names them.
    pub of_preset_s_path: Option<&'static RouteWords>,
    pub words: Arc<RouteWords>,
    /// Tells its limits from those of others.
    pub zone: String,
}

/// `[[route]]`. Without any, the only origin gets everything, and a program asks whom it likes.
pub fn read(top: &Section<'_>, sections: Vec<Section<'_>>, origins: &[OriginSettings], for_all: &ForAll) -> Routes {
    if sections.is_empty() && origins.len() > 1 && !for_all.has_program {
        let last = &origins[origins.len() - 1].name;
        let what = format!("there are {} origins and no [[route]] says who gets which request", origins.len());
        let complaint = Complaint::new(top.span().start..top.span().start + 1, what, "somewhere in this file");
        let suggestion =
            format!("add [[route]] with path = \"/\" and origin = \"{last}\", and one for each other origin");
        top.complaints().add(complaint.suggest(suggestion));
    }
    let mut all = Routes::default();
    if let (true, [first, others @ ..]) = (sections.is_empty(), origins) {
        if others.is_empty() {
            fastcgi_section::check_only(top, first);
        }
        let rules = Arc::new(for_all.words.over(&RouteRules::default(), WordSource::Policy, ALL_ROUTES));
        all.routes.push(RouteSettings { rules, ..everything(RouteTarget::Origin(0)) });
    }
    let starts: Vec<usize> = sections.iter().map(|section| section.span().start).collect();
    for (at, section) in sections.into_iter().enumerate() {
        let next = starts.get(at + 1).copied().unwrap_or(usize::MAX);
        let span = section.span();
        let complaints = section.complaints();
        for (route, said) in route(section, origins, &mut all, for_all) {
            // Of what a preset says of a path the other one takes over below.
            let is_same = |known: &RouteSettings| {
                route_match::ask_for_the_same(known, &route) && known.yields_to_paths == route.yields_to_paths
            };
            if all.routes.iter().any(is_same) {
                let what = format!("a route for {} exists already", route_match::shown(&route));
                let complaint = Complaint::new(span.clone(), what, "the second one");
                complaints.add(complaint.following_from(&["host", "path"]).until(next));
            }
            all.routes.push(route);
            all.said.push(said);
        }
    }
    all.said.resize(all.routes.len(), SaidOfRoute::default());
    beside_presets::take_over(&mut all, &for_all.words.over(&RouteRules::default(), WordSource::Policy, ALL_ROUTES));
    beside_presets::close(&mut all);
    check_pages(&all, top.complaints());
    check_conditions(&all, top);
    all
}

/// A field by which answers are told apart selects what is stored, and has to be there still when it does. Whom it only shuts out gets none.
fn check_conditions(all: &Routes, top: &Section<'_>) {
    let bringing = all.routes.iter().filter(|route| route.target.may_be_stored());
    let names = bringing.flat_map(|route| &route.fields).map(FieldCondition::name);
    for name in names.collect::<BTreeSet<_>>() {
        let is_cookie = name.eq_ignore_ascii_case("cookie");
        let is_login = name.eq_ignore_ascii_case("authorization")
            && all.routes.iter().any(|route| route.rules.access.login.is_some());
        let is_copied = |service: &AuthRequest| service.copies(name.as_bytes());
        let is_edited = all.routes.iter().any(|route| {
            route.rules.request_fields.changes(name) || route.rules.access.service.as_ref().is_some_and(is_copied)
        });
        if is_cookie || is_login || is_edited {
            let what =
                format!("routes are told apart by `{name}`, which is changed before a stored response is looked up");
            let span = top.span().start..top.span().start + 1;
            let complaint = Complaint::new(span, what, "somewhere in this file");
            top.complaints().add(complaint.suggest("tell them apart by another field, or leave this one as it is"));
        }
    }
}

/// Every error's page belongs to a route with a root, or nobody would ever see it.
fn check_pages(all: &Routes, complaints: &Complaints) {
    for (route, said) in all.routes.iter().zip(&all.said) {
        let (Some(pages), Some(span)) = (&route.error_pages, &said.pages_span) else { continue };
        let host = route.host.as_deref().unwrap_or_default().replace('*', "any");
        for path in pages.paths() {
            let page = RouteSettings::among(&all.routes, host.as_bytes(), path.as_bytes()).map(|route| route.target);
            let what = match page {
                Some(RouteTarget::Root(at)) if path.contains("/.") && !all.roots[at].dotfiles => {
                    format!("the error page `{path}` is hidden: set `dotfiles = true`, or call it otherwise")
                }
                Some(RouteTarget::Root(_)) => continue,
                _ => format!("the error page `{path}` belongs to no route with a root"),
            };
            let complaint = Complaint::new(span.clone(), what, "it would never be served");
            let suggestion = format!("add [[route]] with path = \"{path}\" and root = \"DIR\"");
            complaints.add(if page.is_some_and(|page| matches!(page, RouteTarget::Root(_))) {
                complaint
            } else {
                complaint.suggest(suggestion)
            });
        }
    }
}

fn error_pages(section: &mut Section<'_>) -> Option<(ErrorPages, Range<usize>)> {
    let span = section.get("error_pages")?.span();
    let table = section.section("error_pages")?;
    let mut pages = ErrorPages::default();
    for (key, span, node) in table.entries() {
        let Some(class) = ErrorClass::parse(key) else {
            let complaint = Complaint::new(span, format!("`{key}` is no error"), "400 to 599, \"4xx\" or \"5xx\"");
            table.complaints().add(complaint);
            continue;
        };
        match file_path(node, "error page") {
            Ok(path) => pages.add(class, path),
            Err(complaint) => table.complaints().add(complaint),
        }
    }
    Some((pages, span))
}

/// `stub_status = true`, and who may look.
fn status_page(section: &mut Section<'_>) -> Option<StatusPageSettings> {
    let is_on = section.read("stub_status", switch).unwrap_or(false);
    let allow_from = section.read_list("allow_from", network);
    if let (false, Some(node)) = (is_on, section.get("allow_from")) {
        let what = "`allow_from` is for routes with stub_status = true";
        let complaint = Complaint::new(node.span(), what, "no such page here");
        let suggestion = "write allow = [\"NETWORK\"] for whose requests are answered, or add stub_status = true";
        section.complaints().add(complaint.suggest(suggestion).following_from(&["stub_status"]));
    }
    is_on.then(|| allow_from.map_or_else(StatusPageSettings::default, |allow_from| StatusPageSettings { allow_from }))
}

/// Files that answer under another path than their own are shown by the path that was asked for.
fn check_files(root: &RootSettings, closed: &ClosedPaths, span: &Range<usize>, complaints: &Complaints) {
    let index = root.index.iter().map(|name| (format!("/{name}"), "index"));
    for (path, key) in index.chain(root.fallback.clone().map(|path| (path, "fallback"))) {
        if closed.close(path.as_bytes()) {
            let what = format!("`{path}` is closed, and `{key}` shows it under other paths");
            complaints.add(Complaint::new(span.clone(), what, "closes it").suggest(format!("take it out of `{key}`")));
        }
    }
}

fn route(
    mut section: Section<'_>,
    origins: &[OriginSettings],
    all: &mut Routes,
    for_all: &ForAll,
) -> Vec<(RouteSettings, SaidOfRoute)> {
    let hosts = section.read_list("host", |node| {
        let host = parsed(node, "host", "a name without port, or *.NAME for every name below it", route_host);
        host.map_err(|complaint| match text(node).ok().and_then(meant_host) {
            Some(meant) => complaint.suggest(format!("write \"{meant}\"")),
            None => complaint,
        })
    });
    let conditions = route_match::read(&mut section);
    let words = route_words::read(&mut section, origins);
    let preset = section.read("preset", presets::by_name);
    let pages = error_pages(&mut section);
    let closed = closed_words::read(&mut section);
    let compression = super::compress_section::of_route(&mut section);
    let dictionary_paths = super::compress_section::dictionary_paths(&mut section);
    let esi = section.read("esi", esi_section::pages);
    let purge_from = section.read_list("purge_from", network);
    if let (true, Some(node)) = (for_all.has_program, section.get("purge_from")) {
        let what = "`purge_from` says nothing beside a VCL, which decides by itself who may purge";
        let complaint = Complaint::new(node.span(), what, "does not act");
        section.complaints().add(complaint.suggest("write an acl, and `return (purge);` in vcl_recv"));
    }
    let target = answerer(&mut section, origins, all, &words);
    if let Some(why) = target.and_then(|target| stores_nothing(target, all)) {
        refuse_purgers(&mut section, why);
    }
    check_preset(&mut section, preset);
    if let (Some(preset), Some(RouteTarget::Root(at))) = (preset, target)
        && all.roots[at].scripts.is_none()
    {
        check_scripts(&mut section, preset);
    }
    route_mirror::check(&mut section, target, words.mirror);
    let for_all_rules = for_all.words.over(&RouteRules::default(), WordSource::Policy, ALL_ROUTES);
    let beneath = preset.map_or(for_all_rules.clone(), |preset| preset.rules(&for_all_rules));
    let zone = route_access::zone(&(&hosts, &conditions));
    let rules = words.over(&beneath, WordSource::Route, &zone);
    route_words::check_lifetimes(&mut section, &rules);
    if for_all.has_program {
        route_words::check_beside_program(&mut section);
    }
    let complaints = section.complaints();
    section.end();
    let Some(target) = target else { return Vec::new() };
    let (pages, pages_span) = pages.map_or((None, None), |(pages, span)| (Some(pages), Some(span)));
    if let (RouteTarget::Root(at), Some((closed, span))) = (target, &closed)
        && let Some(paths) = closed.paths()
    {
        check_files(&all.roots[at], &paths, span, complaints);
    }
    let closed = closed.map(|(closed, _)| closed).unwrap_or_default();
    let route = RouteSettings {
        closed: closed.paths(),
        error_pages: pages.filter(|pages| !pages.is_empty()).map(Arc::new),
        compression,
        dictionary_paths,
        esi,
        purge_from: purge_from.map(Into::into),
        rules: Arc::new(rules),
        ..RouteSettings::to(target)
    };
    let hosts = hosts.map_or(vec![None], |hosts| hosts.into_iter().map(Some).collect());
    let said = SaidOfRoute { pages_span, closed, preset, of_preset_s_path: None, words: Arc::new(words), zone };
    let mut routes: Vec<_> = conditions.routes(&hosts, &route).into_iter().map(|route| (route, said.clone())).collect();
    if let Some(preset) = preset {
        let of_paths = preset.routes(&hosts, &route, &mut all.roots).into_iter();
        routes.extend(
            of_paths.map(|(route, words)| (route, SaidOfRoute { of_preset_s_path: Some(words), ..said.clone() })),
        );
    }
    routes
}

/// Why nothing of a route can be purged, for nothing of it is ever stored.
fn stores_nothing(target: RouteTarget, all: &Routes) -> Option<&'static str> {
    match target {
        RouteTarget::Root(at) if all.roots[at].scripts.is_none() => Some("its files are read where they lie"),
        RouteTarget::Closed => Some("it is closed"),
        RouteTarget::StatusPage(_) => Some("its page is made anew each time"),
        RouteTarget::Itself => Some("larder answers it by itself"),
        _ => None,
    }
}

fn refuse_purgers(section: &mut Section<'_>, why: &str) {
    if let Some(node) = section.get("purge_from") {
        let what = "`purge_from` is for routes of which something is stored";
        let complaint = Complaint::new(node.span(), what, format!("{why}, and nothing is stored"));
        section.complaints().add(complaint.suggest("write it in the route with the origin, or in [policy] for all"));
    }
}

/// A preset is for an application at the root of its hosts.
fn check_preset(section: &mut Section<'_>, preset: Option<&Preset>) {
    for key in ["path", "path_pattern", "method", "header"] {
        if let (Some(_), Some(node)) = (preset, section.get(key)) {
            let what = format!("a preset is for a whole host, and `{key}` for a part of one");
            let complaint = Complaint::new(node.span(), what, "beside `preset`");
            section.complaints().add(complaint.suggest("write `host` instead, and other routes for other paths"));
        }
    }
}

/// An application whose scripts nobody runs is none.
fn check_scripts(section: &mut Section<'_>, preset: &Preset) {
    // An origin that is named is complained of for itself.
    let wants_runner = preset.has_scripts() && !section.has("origin");
    if let (true, Some(node)) = (wants_runner, section.get("preset")) {
        let what = "beneath this root are scripts, and nobody runs them: they would be 404".to_owned();
        let complaint = Complaint::new(node.span(), what, "an application in PHP");
        let way_out =
            "write `origin = \"php\"` beside `root`, and [origin.php] with `fastcgi = \"unix:/run/php/php-fpm.sock\"`";
        section.complaints().add(complaint.suggest(way_out));
    }
}

/// Who answers a route, by the one key that says so. Where there is but one origin nobody has to name it.
fn answerer(
    section: &mut Section<'_>,
    origins: &[OriginSettings],
    all: &mut Routes,
    words: &RouteWords,
) -> Option<RouteTarget> {
    let origin = section.read("origin", |node| origins_by_name::named(node, origins));
    let origin_span = section.get("origin").map(|node| node.span());
    let mut root = root(section);
    let asked = origin.map(|origin| (origin, &origins[origin]));
    let runs_scripts = fastcgi_section::of_route(section, root.as_mut(), asked.as_ref());
    if let (false, Some((_, asked)), Some(node)) = (root.is_some(), asked, section.get("origin")) {
        fastcgi_section::check_alone(section, node.span(), asked);
    }
    let status_page = status_page(section);
    let is_closed = section.read("closed", switch).unwrap_or(false);
    let memcached = memcached_route::read(section);
    let answers_itself = section.get("redirect").is_some() || section.get("respond").is_some();
    // Beside memcached an origin answers what that has not.
    // Whether one that nobody knows would run scripts of the root is not known either.
    let is_unknown = origin.is_none() && section.get("root").is_some();
    let has_origin = origin_span.is_some() && memcached.is_none() && !runs_scripts && !is_unknown;
    let answerers = [has_origin, root.is_some(), status_page.is_some(), memcached.is_some(), is_closed, answers_itself];
    if answerers.into_iter().filter(|is_there| *is_there).count() > 1 {
        let what = "a route has exactly one of origin, root, memcached, stub_status, redirect, respond and closed";
        let complaint = Complaint::new(origin_span.clone().unwrap_or(section.span()), what, "beside another");
        section.complaints().add(complaint.suggest(match (root.is_some(), asked) {
            (true, Some((_, asked))) => format!(
                "write two routes with a path each; or, if {} runs scripts of this root, fastcgi in place of urls in [origin.{}]",
                asked.name, asked.name
            ),
            _ => "write two routes with a path each".to_owned(),
        }));
    }
    let is_named_wrong = section.get("root").is_some() || section.get("memcached").is_some();
    let is_off = section.get("stub_status").is_none_or(|node| as_switch(node) == Some(false));
    let has_none = !answerers.contains(&true) && !is_named_wrong && is_off;
    let only = (has_none && origins.len() == 1).then_some(0);
    if let (false, None, Some(node)) = (has_origin || runs_scripts, only, section.get("dictionary_paths")) {
        let what = "`dictionary_paths` is for routes with an origin";
        section.complaints().add(Complaint::new(node.span(), what, "nothing here is a dictionary"));
    }
    if has_none && only.is_none() {
        let named = match origins.is_empty() {
            true => "\"NAME\", where [origin.NAME] says where it is".to_owned(),
            false => origins.iter().map(|origin| literal::text(&origin.name)).collect::<Vec<_>>().join(" or "),
        };
        let suggestion = format!("write origin = {named}, root = \"DIR\", or memcached = [\"HOST:PORT\"]");
        section.require_among("origin", &ANSWERERS, &suggestion);
    }
    if is_closed {
        return Some(RouteTarget::Closed);
    }
    if let Some(memcached) = memcached {
        all.memcached.push(MemcachedSettings { origin, ..memcached });
        return Some(RouteTarget::Memcached(all.memcached.len() - 1));
    }
    if let Some(root) = root {
        all.roots.push(root);
        return Some(RouteTarget::Root(all.roots.len() - 1));
    }
    if let Some(page) = status_page {
        all.status_pages.push(page);
        return Some(RouteTarget::StatusPage(all.status_pages.len() - 1));
    }
    match answers_itself {
        true => words.answer.as_ref().map(|_| RouteTarget::Itself),
        false => origin.or(only).map(RouteTarget::Origin),
    }
}

/// A name, or `*.NAME`.
pub fn route_host(written: &str) -> Option<String> {
    let name = written.strip_prefix("*.").unwrap_or(written);
    let authority = Authority::parse(name.as_bytes(), Scheme::Http)?;
    let plain = !name.contains('*') && !name.ends_with(':') && !has_port(name);
    // The dot of the root behind a name is no part of it.
    let host = std::str::from_utf8(&authority.host).ok().map(|host| host.strip_suffix('.').unwrap_or(host))?;
    let plain = plain && !host.is_empty();
    plain.then(|| if name.len() < written.len() { format!("*.{host}") } else { host.to_owned() })
}

/// The name in a URL, or before a port.
fn meant_host(written: &str) -> Option<String> {
    let rest = written.split_once("://").map_or(written, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next()?;
    route_host(if has_port(host) { host.rsplit_once(':')?.0 } else { host })
}

fn has_port(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'))
}

#[cfg(test)]
mod tests {
    use proxy::settings::Listing;

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

    #[test]
    fn only_what_is_stored_can_be_purged() {
        let said = "`purge_from` is for routes of which something is stored";
        for answerer in
            ["root = \"/a\"", "closed = true", "redirect = \"/b\"", "respond = \"hello\"", "stub_status = true"]
        {
            check(&format!("{answerer}\npurge_from = \"10.0.0.0/8\""), &[said]);
        }
        let php = "[origin.php]\nfastcgi = \"unix:/p\"\n[[route]]\nroot = \"/a\"\norigin = \"php\"\npurge_from = \"10.0.0.0/8\"\n";
        assert!(read_config(php).is_ok());
    }

    fn check(route: &str, expect: &[&str]) {
        let text =
            format!("[[route]]\n{route}\n[origin.web]\nurls = \"http://a\"\n[origin.other]\nurls = \"http://b\"\n");
        let wrong = read_config(&text).unwrap_err();
        let said: Vec<_> = wrong.iter().map(|complaint| complaint.what.as_str()).collect();
        assert_eq!(said, expect, "{route}");
    }

    #[test]
    fn what_a_route_cannot_be_is_said() {
        check("root = \"\"", &["`` is no directory"]);
        check("path = \"/\"", &["`origin` is missing"]);
        let several = "a route has exactly one of origin, root, memcached, stub_status, redirect, respond and closed";
        check("origin = \"web\"\nroot = \"/a\"", &[several]);
        check("root = \"/a\"\nstub_status = true", &[several]);
        check("origin = \"web\"\nallow_from = \"::1\"", &["`allow_from` is for routes with stub_status = true"]);
        check("stub_status = false", &["`origin` is missing"]);
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
        check("root = \"/a\"\nlisting = \"xml\"", &["`xml` is not among the choices"]);
        check("root = \"/a\"\ntypes = { \".js\" = \"text/plain\" }", &["`.js` is no end of a name"]);
        check("root = \"/a\"\ntypes = { js = \"javascript\" }", &["`javascript` is no media type"]);
        check("origin = \"web\"\ndefault_type = \"text/plain\"", &["`default_type` is for routes with a root"]);
    }

    #[test]
    fn what_is_asked_of_a_field_is_said_or_complained_of() {
        check("closed = true\nheader = { A = \"(?i)~x\" }", &["the (?i) of a pattern stands behind its ~"]);
        check(
            "closed = true\nheader = { A = \"!~(\" }",
            &["`(` is no regular expression: missing closing parenthesis"],
        );
        let neither =
            "a field must have a value, in which a * stands for any text, or true for any value, or false for none";
        check("closed = true\nheader = { A = 1 }", &[neither]);
        check("closed = true\nheader = { A = [] }", &[neither]);
        let fields = |route: &str| {
            read_config(&format!("{route}\n[[route]]\nroot = \"/a\"\n")).unwrap().settings.routes[0].fields.clone()
        };
        let read = fields("[[route]]\nheader = { A = false, B = true, C = [\"~x\", \"!y\"] }\nclosed = true");
        let written = |value| FieldCondition::written("C", value).unwrap();
        let expect = [FieldCondition::missing("A"), FieldCondition::present("B"), written("~x"), written("!y")];
        assert_eq!(read, expect);
    }

    /// What it shuts out is shut out before cookies are stripped.
    #[test]
    fn a_cookie_may_shut_out_and_lead_to_no_other_origin() {
        let with = |answers: &str| {
            let routes = format!("[[route]]\nheader = {{ Cookie = \"~bad\" }}\n{answers}\n[[route]]\norigin = \"a\"\n");
            read_config(&format!("[origin.a]\nurls = \"http://a\"\n{routes}"))
        };
        assert!(with("closed = true").is_ok() && with("origin = \"a\"").is_err());
    }

    #[test]
    fn a_root_lists_and_names_types() {
        let text = "[[route]]\nroot = \"/a\"\nlisting = \"negotiated\"\ndefault_type = \"text/plain\"\n\
                    types = { JS = \"application/javascript; charset=GBK\", 7z = \"a/b\" }\n";
        let root = read_config(text).unwrap().settings.roots.remove(0);
        assert_eq!((root.listing, root.default_type.as_deref()), (Listing::Negotiated, Some("text/plain")));
        let types: Vec<_> = root.types.iter().map(|(end, kind)| (end.as_str(), kind.as_str())).collect();
        assert_eq!(types, [("7z", "a/b"), ("js", "application/javascript; charset=GBK")]);
    }

    #[test]
    fn paths_may_be_closed() {
        let text = "[[route]]\nroot = \"/a\"\nclosed_paths = ['^/config(?:$|/)', '\\.php$']\n[[route]]\npath = \"/data\"\nclosed = true\n";
        let settings = read_config(text).unwrap().settings;
        let closed = settings.routes[0].closed.as_ref().unwrap();
        assert!(closed.close(b"/config/x") && closed.close(b"/a.php") && !closed.close(b"/a.html"));
        assert_eq!(settings.routes[1].target, RouteTarget::Closed);
        check(
            "origin = \"web\"\nclosed = true",
            &["a route has exactly one of origin, root, memcached, stub_status, redirect, respond and closed"],
        );
        check("root = \"/a\"\nclosed_paths = '(a'", &["`(a` is no regular expression: missing closing parenthesis"]);
        check(
            "root = \"/a\"\nindex = [\"a.html\", \"index.php\"]\nclosed_paths = '\\.php'",
            &["`/index.php` is closed, and `index` shows it under other paths"],
        );
        check(
            "root = \"/a\"\nfallback = \"/index.php\"\nclosed_paths = '\\.php'",
            &["`/index.php` is closed, and `fallback` shows it under other paths"],
        );
    }

    #[test]
    fn errors_have_pages() {
        let text = "[[route]]\nroot = \"/a\"\nerror_pages = { 404 = \"/404.html\", 5xx = \"/50x.html\" }\n\
                    [[route]]\npath = \"/50x.html\"\nroot = \"/b\"\n[[route]]\npath = \"/numbers\"\nstub_status = true\n\
                    [[route]]\npath = \"/all\"\nstub_status = true\nallow_from = [\"0.0.0.0/0\", \"::/0\"]\n";
        let settings = read_config(text).unwrap().settings;
        let pages = settings.routes[0].error_pages.as_ref().unwrap();
        assert_eq!((pages.page(404), pages.page(502)), (Some("/404.html"), Some("/50x.html")));
        assert!(settings.routes[1].error_pages.is_none());
        assert_eq!(settings.routes[2].target, RouteTarget::StatusPage(0));
        assert_eq!(settings.status_pages[0].allow_from, proxy::settings::Network::LOOPBACK);
        assert_eq!(settings.status_pages[1].allow_from.len(), 2);
    }

    #[test]
    fn a_page_that_nobody_would_see_is_said() {
        check("root = \"/a\"\nerror_pages = { 200 = \"/a.html\" }", &["`200` is no error"]);
        check("root = \"/a\"\nerror_pages = { 404 = \"a.html\" }", &["`a.html` is no error page"]);
        let elsewhere = "the error page `/502.html` belongs to no route with a root";
        check("origin = \"web\"\nerror_pages = { 502 = \"/502.html\" }", &[elsewhere]);
        let hidden = "the error page `/.e.html` is hidden: set `dotfiles = true`, or call it otherwise";
        check("root = \"/a\"\nerror_pages = { 4xx = \"/.e.html\" }", &[hidden]);
        let by_host = "host = \"a.test\"\norigin = \"web\"\nerror_pages = { 502 = \"/e/502.html\" }\n\
                       [[route]]\nhost = [\"a.test\"]\npath = \"/e\"\nroot = \"/e\"";
        let text = format!("[[route]]\n{by_host}\n[origin.web]\nurls = \"http://a\"\n");
        assert!(read_config(&text).is_ok());
    }
}
