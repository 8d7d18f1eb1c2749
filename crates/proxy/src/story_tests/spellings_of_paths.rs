//! A path may be another one to who is asked: what a route says holds for every spelling.

use super::*;
use crate::settings::{FieldTemplate, Login, OwnAnswer, Rate, RateLimit, RouteAccess, RoutePattern};

#[test]
fn no_spelling_is_a_way_round_a_limit() {
    let story = Story::with(|settings| {
        let rate = Rate { period_us: 1_000_000, burst: 1 };
        let limit = RateLimit { rate, by: None, status: 429, zone: "login".into() };
        let rules = Arc::new(RouteRules { rate_limits: vec![limit], ..RouteRules::default() });
        let login = RouteSettings { path_prefix: "/login".to_owned(), rules, ..settings.routes[0].clone() };
        settings.routes.push(login);
    });
    story.origin([fresh(60, "page")]);
    let statuses = ["/login", "/%6cogin", "//login", "/a/../login", "/a"].map(|path| story.get(path, &[]).status());
    assert_eq!(statuses, [200, 429, 429, 429, 200]);
    // What cannot be decoded may be that path to who is asked.
    assert_eq!(story.get("/%zz/../login", &[]).status(), 400);
}

#[test]
fn no_spelling_comes_past_what_a_route_answers_itself() {
    let story = Story::with(|settings| {
        let answer = OwnAnswer {
            status: 503,
            location: None,
            body: None,
            kind: "text/plain".into(),
            retry_after: None,
            but_for: Vec::new(),
        };
        let rules = Arc::new(RouteRules { answer: Some(answer), ..RouteRules::default() });
        let shop = RouteSettings {
            path_prefix: "/shop".to_owned(),
            target: RouteTarget::Itself,
            rules,
            ..settings.routes[0].clone()
        };
        settings.routes.push(shop);
    });
    story.origin([fresh(60, "page")]);
    let paths = ["/shop", "//shop", "/%73hop", "/x/../shop", "/%zz/../shop", "/"];
    let statuses = paths.map(|path| story.get(path, &[]).status());
    assert_eq!(statuses, [503, 503, 503, 503, 400, 200]);
}

/// The text that a limit goes by is that of the path which is meant.
#[test]
fn a_limit_by_a_part_of_the_path_counts_every_spelling_of_it() {
    let story = Story::with(|settings| {
        let by = FieldTemplate::parse("$1").ok();
        let rate = Rate { period_us: 1_000_000, burst: 1 };
        let limit = RateLimit { rate, by, status: 429, zone: "tenant".into() };
        let rules = Arc::new(RouteRules { rate_limits: vec![limit], ..RouteRules::default() });
        let path_pattern = RoutePattern::new("^/t/([a-z]+)/").ok().map(Arc::new);
        settings.routes.push(RouteSettings { path_pattern, rules, ..settings.routes[0].clone() });
    });
    story.origin([fresh(60, "page")]);
    let paths = ["/t/a/x", "/t/a/x", "//t/a/x", "/%74/a/x", "/x/../t/a/x"];
    assert_eq!(paths.map(|path| story.get(path, &[]).status()), [200, 429, 429, 429, 429]);
}

/// What stands in the way is not what the operator has closed.
#[test]
fn another_spelling_of_a_guarded_path_is_refused_by_its_own_name() {
    let story = Story::with(|settings| {
        let login = Login { file: "/nowhere/users".into(), realm: "the house".to_owned() };
        let access = RouteAccess { login: Some(login), ..RouteAccess::default() };
        let rules = Arc::new(RouteRules { access, ..RouteRules::default() });
        settings.routes.push(RouteSettings { path_prefix: "/admin".to_owned(), rules, ..settings.routes[0].clone() });
        let closed = RouteSettings { path_prefix: "/shut".to_owned(), ..RouteSettings::to(RouteTarget::Closed) };
        settings.routes.push(closed);
    });
    for (path, token) in [("//admin", "spelling-of-guarded"), ("//shut", "route-closed")] {
        let reply = story.get(path, &[]);
        assert_eq!((reply.status(), reply.verdict().1), (403, token), "{path}");
    }
}

/// It is about that path alone, and what it makes of it would lead another spelling to itself.
#[test]
fn a_redirect_leads_no_other_spelling() {
    let story = Story::with(|settings| {
        let answer = OwnAnswer {
            status: 301,
            location: FieldTemplate::parse("/m%C3%BCnchen").ok(),
            body: None,
            kind: "text/plain".into(),
            retry_after: None,
            but_for: Vec::new(),
        };
        let rules = Arc::new(RouteRules { answer: Some(answer), ..RouteRules::default() });
        let path_pattern = RoutePattern::new("^/m\u{fc}nchen$").ok().map(Arc::new);
        let target = RouteTarget::Itself;
        settings.routes.push(RouteSettings { path_pattern, target, rules, ..settings.routes[0].clone() });
    });
    story.origin([fresh(60, "page")]);
    assert_eq!(story.get("/m%C3%BCnchen", &[]).status(), 200);
}
