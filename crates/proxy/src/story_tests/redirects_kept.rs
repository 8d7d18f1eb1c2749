//! Which redirects of routes browsers and caches may keep: those that hold for good, and for everybody.

use super::*;
use crate::settings::{FieldCondition, FieldTemplate, OwnAnswer, RouteAccess};

fn redirect(status: u16, to: &str) -> RouteRules {
    let answer = OwnAnswer {
        status,
        location: Some(FieldTemplate::parse(to).unwrap()),
        body: None,
        kind: "text/plain".into(),
        retry_after: None,
        but_for: Vec::new(),
    };
    RouteRules { answer: Some(answer), ..RouteRules::default() }
}

/// What the answer says of caches.
fn said(rules: RouteRules, fields: Vec<FieldCondition>) -> String {
    let story = Story::with(|settings| {
        settings.routes[0].rules = Arc::new(rules);
        settings.routes[0].fields = fields;
    });
    let reply = story.get("/x", &["X-Key: a"]);
    assert!(reply.status() > 300 && reply.asked().is_empty(), "{}", reply.status());
    reply.field("cache-control")
}

#[test]
fn what_leads_elsewhere_for_good_says_nothing_of_caches() {
    for (status, to, expect) in [
        (301, "https://www.a.test$request_uri", ""),
        (308, "/b", ""),
        (302, "/b", "no-store"),
        (303, "/b", "no-store"),
        (307, "/b", "no-store"),
        (301, "/$cookie_a", "no-store"),
    ] {
        assert_eq!(said(redirect(status, to), Vec::new()), expect, "{status} {to}");
    }
}

#[test]
fn what_goes_by_who_asks_is_kept_by_nobody() {
    let access = RouteAccess { denied: vec!["192.0.2.0/24".parse().unwrap()], ..RouteAccess::default() };
    assert_eq!(said(RouteRules { access, ..redirect(301, "/b") }, Vec::new()), "no-store");
    assert_eq!(said(redirect(301, "/b"), vec![FieldCondition::present("X-Key")]), "no-store");
    let mut but_for = redirect(301, "/b");
    but_for.answer.as_mut().unwrap().but_for = vec!["192.0.2.0/24".parse().unwrap()];
    assert_eq!(said(but_for, Vec::new()), "no-store");
}
