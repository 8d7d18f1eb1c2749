//! A root with scripts: what is a file is shown, and what is none is asked of the origin.

use super::*;
use crate::settings::{
    ClosedPaths, FieldTemplate, Listing, OwnAnswer, Rate, RateLimit, RootScripts, RootSettings, RoutePattern,
};
use crate::static_files::finding::tests::TestFolder;

/// A story whose scripts lie in this folder. Who runs them is mocked, and asked over HTTP/1.
pub(super) fn with_scripts(folder: &TestFolder, change: impl FnOnce(&mut Settings)) -> Story {
    Story::with(|settings| {
        settings.roots = vec![RootSettings {
            index: vec!["index.php".to_owned()],
            fallback: Some("/index.php".to_owned()),
            scripts: Some(RootScripts { origin: 0, endings: vec![".php".to_owned()] }),
            listing: Listing::Off,
            ..RootSettings::of(folder.path(""))
        }];
        settings.routes[0].target = RouteTarget::Root(0);
        change(settings);
    })
}

pub(super) fn site(name: &str) -> TestFolder {
    let folder = TestFolder::new(name);
    for name in ["index.php", "admin/run.php", "a.css", "admin/index.php", "old.php.bak"] {
        folder.write(name, "its source");
    }
    folder
}

#[test]
fn what_a_script_answers_is_stored_like_any_other_answer() {
    let folder = site("story-scripts");
    let story = with_scripts(&folder, |_| {});
    for path in ["/", "/some/page", "/admin/run.php/x", "/.env", "/a%2fb", "/index.php"] {
        story.origin([fresh(60, "made")]);
        let first = story.get(path, &[]);
        assert_eq!((first.body(), first.verdict().0, first.asked().len()), ("made", CacheVerdict::Miss, 1), "{path}");
        let again = story.get(path, &[]);
        assert_eq!((again.body(), again.verdict().0, again.asked().len()), ("made", CacheVerdict::Hit, 0), "{path}");
    }
    let file = story.get("/a.css", &[]);
    assert_eq!((file.body(), file.verdict().0, file.asked().len()), ("its source", CacheVerdict::File, 0));
}

#[test]
fn a_source_is_never_shown() {
    let folder = site("story-sources");
    let story = with_scripts(&folder, |_| {});
    let copy = story.get("/old.php.bak", &[]);
    assert_eq!((copy.status(), copy.verdict(), copy.asked().len()), (403, (CacheVerdict::File, "file-source"), 0));
    story.origin([fresh(60, "made")]);
    assert_eq!(story.get("/%69ndex.php", &[]).body(), "made");
}

#[test]
fn a_form_goes_to_its_script_and_to_no_file() {
    let folder = site("story-forms");
    let story = with_scripts(&folder, |_| {});
    story.origin([answer(200, &[], "thanks")]);
    let posted = story.ask("POST /admin/run.php", &[], "a=b");
    assert_eq!((posted.body(), posted.verdict().0, posted.asked().len()), ("thanks", CacheVerdict::Pass, 1));
    let to_a_file = story.ask("POST /a.css", &[], "a=b");
    assert_eq!((to_a_file.status(), to_a_file.asked().len()), (405, 0));
    let moved = story.get("/admin", &[]);
    assert_eq!((moved.status(), moved.field("location")), (301, "/admin/".to_owned()));
}

#[test]
fn the_limits_of_a_script_hold_whatever_stands_behind_it() {
    let folder = site("story-limits");
    let story = with_scripts(&folder, |settings| {
        let limit =
            RateLimit { rate: Rate { period_us: 1_000_000, burst: 1 }, by: None, status: 429, zone: "run".into() };
        let rules = RouteRules { rate_limits: vec![limit], request_body_bytes_max: Some(3), ..RouteRules::default() };
        let route = RouteSettings {
            path_pattern: RoutePattern::new("/run[.]php$").ok().map(Arc::new),
            rules: Arc::new(rules),
            ..settings.routes[0].clone()
        };
        settings.routes.push(route);
    });
    story.origin([answer(200, &[], "made")]);
    let statuses = ["/admin/run.php", "/admin/run.php/x", "/admin/run.php/y"].map(|path| story.get(path, &[]).status());
    assert_eq!(statuses, [200, 429, 429]);
    story.pass_seconds(1);
    assert_eq!(story.ask("POST /admin/run.php/x", &[], "abcd").status(), 413);
}

/// As sites do that want no index.php in their URLs.
#[test]
fn a_redirect_from_a_script_to_its_directory_leads_nobody_in_circles() {
    let folder = site("story-no-index");
    let story = with_scripts(&folder, |settings| {
        let answer = OwnAnswer {
            status: 301,
            location: FieldTemplate::parse("/admin/").ok(),
            body: None,
            kind: "text/plain".into(),
            retry_after: None,
            but_for: Vec::new(),
        };
        let route = RouteSettings {
            path_prefix: "/admin/index.php".to_owned(),
            target: RouteTarget::Itself,
            rules: Arc::new(RouteRules { answer: Some(answer), ..RouteRules::default() }),
            ..settings.routes[0].clone()
        };
        settings.routes.push(route);
    });
    assert_eq!(story.get("/admin/index.php", &[]).status(), 301);
    story.origin([fresh(60, "made")]);
    assert_eq!(story.get("/admin/", &[]).body(), "made");
}

#[test]
fn a_closed_script_is_closed_whatever_stands_behind_it() {
    let folder = site("story-closed");
    let closed = ClosedPaths::new(["^/admin/run[.]php$"]).unwrap();
    let story = with_scripts(&folder, |settings| settings.routes[0].closed = Some(Arc::new(closed)));
    for path in ["/admin/run.php", "/admin/run.php/x", "/admin/%72un.php/x", "/admin/run.php/"] {
        let reply = story.get(path, &[]);
        assert_eq!((reply.status(), reply.asked().len()), (403, 0), "{path}");
    }
    story.origin([fresh(60, "made")]);
    assert_eq!(story.get("/admin/", &[]).body(), "made");
}

#[test]
fn a_site_without_a_start_has_nothing_for_what_is_no_file() {
    let folder = TestFolder::new("story-no-start");
    folder.write("a.css", "x");
    let story = with_scripts(&folder, |_| {});
    for path in ["/none", "/", "/.env", "/a.css/x.php"] {
        let reply = story.get(path, &[]);
        assert_eq!((reply.status(), reply.asked().len()), (404, 0), "{path}");
    }
}
