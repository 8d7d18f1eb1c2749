//! Where a request goes from step to step.

use super::*;
use crate::settings::Network;

#[test]
fn a_post_is_passed_and_its_body_arrives() {
    let story = Story::builtin();
    story.origin([answer(200, &[], "done")]);
    let reply = story.ask("POST /order", &[], "two pies");
    assert_eq!((reply.status(), reply.body(), reply.verdict()), (200, "done", (CacheVerdict::Pass, "method")));
    assert_eq!(reply.asked(), ["POST /order"]);
    assert_eq!(reply.asked[0].body, b"two pies");
}

#[test]
fn an_origin_that_refuses_is_502() {
    let story = Story::builtin();
    story.origin([MockedAnswer::Refused]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.verdict().0), (502, CacheVerdict::Error));
}

#[test]
fn only_if_cached_asks_nobody() {
    let story = Story::builtin();
    story.origin([fresh(60, "hello")]);
    let line = ["Cache-Control: only-if-cached"];
    assert_eq!((story.get("/", &line).status(), story.get("/", &line).asked().len()), (504, 0));
    assert_eq!(story.get("/", &[]).body(), "hello");
    let stored = story.get("/", &line);
    assert_eq!((stored.status(), stored.body(), stored.asked().len()), (200, "hello", 0));
}

#[test]
fn trace_is_refused() {
    let reply = Story::builtin().ask("TRACE /", &[], "");
    assert_eq!((reply.status(), reply.field("connection")), (405, "close".to_owned()));
}

#[test]
fn bytes_that_are_no_request_are_refused_and_end_the_connection() {
    let reply = Story::builtin().send(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    assert_eq!((reply.status(), reply.field("connection")), (400, "close".to_owned()));
}

/// A group may be another route's.
#[test]
fn a_route_says_who_purges_its_urls_and_no_groups() {
    const GROUP: &[&str] = &["Cache-Group-Invalidation: \"a\""];
    let statuses = |of_all: &[Network], of_route: Option<&[Network]>| {
        let story = Story::with(|settings| {
            settings.policy.purge_from = of_all.to_vec();
            settings.routes[0].purge_from = of_route.map(Into::into);
        });
        story.origin([fresh(60, "page")]);
        story.get("/", &[]);
        [&[][..], GROUP].map(|lines| story.ask("PURGE /", lines, "").status())
    };
    assert_eq!(statuses(&[], Some(&Network::LOOPBACK)), [200, 403]);
    assert_eq!(statuses(&Network::LOOPBACK, Some(&[])), [403, 200]);
    assert_eq!(statuses(&Network::LOOPBACK, None), [200, 200]);
    assert_eq!(statuses(&[], None), [403, 403]);
}

#[test]
fn a_purge_drops_what_is_stored() {
    let story = Story::builtin();
    story.origin([fresh(60, "old"), fresh(60, "new")]);
    assert_eq!(story.get("/", &[]).body(), "old");
    assert_eq!(story.ask("PURGE /", &[], "").status(), 200);
    assert_eq!(story.get("/", &[]).body(), "new");
}

#[test]
fn a_stale_answer_is_confirmed_by_304() {
    let story = Story::builtin();
    let confirmed = answer(304, &["Cache-Control: max-age=60", "ETag: \"a\""], "");
    story.origin([answer(200, &["Cache-Control: max-age=1", "ETag: \"a\""], "page"), confirmed]);
    story.get("/", &[]);
    story.pass_seconds(2);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.verdict().0), (200, "page", CacheVerdict::Revalidated));
    assert_eq!(reply.asked_with("if-none-match"), Some("\"a\""));
}

#[test]
fn a_program_synthesizes_without_an_origin() {
    let reply = Story::vcl("sub vcl_recv { return (synth(701, \"Tea\")); }").get("/", &[]);
    assert_eq!((reply.status(), reply.asked().len()), (701, 0));
}

#[test]
fn a_program_restarts_once_and_is_asked_again() {
    let text = "sub vcl_recv { if (req.restarts == 0) { return (restart); } set req.url = \"/again\"; }";
    let story = Story::vcl(text);
    story.origin([answer(200, &[], "second")]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.body(), reply.asked()), ("second", vec!["GET /again".to_owned()]));
}

#[test]
fn who_waits_for_100_gets_it_before_the_body_goes_up() {
    let story = Story::builtin();
    story.origin([answer(200, &[], "done")]);
    let reply = story.ask("POST /", &["Expect: 100-continue"], "pie");
    assert_eq!((reply.status(), reply.asked[0].body.as_slice()), (200, &b"pie"[..]));
    assert!(reply.interims.is_empty(), "whoever has begun to send does not wait");
}

#[test]
fn too_many_restarts_are_answered_by_vcl_synth() {
    let text = "sub vcl_recv { return (restart); } sub vcl_synth { set resp.http.X-Restarts = req.restarts; }";
    let reply = Story::vcl_with(text, |settings| settings.vcl.max_restarts = 2).get("/", &[]);
    assert_eq!((reply.status(), reply.field("x-restarts")), (503, "3".to_owned()));
}

#[test]
fn two_who_ask_at_once_share_one_fetch() {
    let story = Story::builtin();
    story.origin([fresh(60, "page")]);
    assert_eq!(story.get_together("/"), (["page".to_owned(), "page".to_owned()], 1));
}

#[test]
fn an_answer_that_cannot_be_shared_frees_who_waits() {
    let story = Story::builtin();
    story.origin([answer(200, &["Cache-Control: private"], "one"), answer(200, &["Cache-Control: private"], "other")]);
    assert_eq!(story.get_together("/"), (["one".to_owned(), "other".to_owned()], 2));
}
