//! Where a request goes from step to step.

use std::sync::atomic::Ordering;

use super::*;
use crate::transaction::transaction_states::State;
use crate::transaction::transaction_states::TRANSACTION_EDGES;

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
    story.origin([PlayedAnswer::Refused]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.verdict().0), (502, CacheVerdict::Error));
}

#[test]
fn only_if_cached_asks_nobody() {
    let story = Story::builtin();
    let reply = story.get("/", &["Cache-Control: only-if-cached"]);
    assert_eq!((reply.status(), reply.asked().len()), (504, 0));
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

/// Edges that no request takes in memory, by what they need, with the behaviours that take them.
const ELSEWHERE: &[(&str, &[(State, State)])] = &[
    (
        "files beneath a root: spec/static",
        &[
            (State::Receive, State::Files),
            (State::Files, State::Deliver),
            (State::Files, State::Synth),
            (State::Synth, State::Files),
        ],
    ),
    (
        "a forward listener: spec/forward",
        &[
            (State::Receive, State::Admit),
            (State::Admit, State::Lookup),
            (State::Admit, State::Pass),
            (State::Admit, State::Pipe),
            (State::Admit, State::Purge),
            (State::Admit, State::Synth),
            (State::Admit, State::Log),
        ],
    ),
    (
        "memcached: spec/memcached",
        &[
            (State::Receive, State::Memcached),
            (State::Memcached, State::Deliver),
            (State::Memcached, State::Synth),
            (State::Memcached, State::Pass),
            (State::Memcached, State::Log),
        ],
    ),
    (
        "a disk: spec/disk",
        &[
            (State::Lookup, State::Recall),
            (State::Recall, State::Lookup),
            (State::Recall, State::Miss),
            (State::Recall, State::Pass),
            (State::Recall, State::Synth),
            (State::Hit, State::Lookup),
        ],
    ),
    (
        "bodies in slices: spec/slices",
        &[
            (State::Hit, State::Slicing),
            (State::Slicing, State::Deliver),
            (State::Slicing, State::Lookup),
            (State::Slicing, State::Synth),
            (State::Slicing, State::Log),
            (State::Pass, State::Hit),
        ],
    ),
    (
        "a client that leaves while it is read from, or piped: spec/pipe, spec/policy",
        &[(State::Pipe, State::Log), (State::Receive, State::Log)],
    ),
    ("vcl_hit of old: spec/policy", &[(State::Hit, State::Miss)]),
];

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

/// Requests that between them go every way that is there in memory.
fn walks() -> Vec<Story> {
    let builtin = Story::builtin();
    let stale = ["Cache-Control: max-age=1, stale-if-error=60", "ETag: \"a\""];
    builtin.origin([fresh(60, "page"), answer(200, &["Cache-Control: no-store"], "no"), answer(200, &stale, "old")]);
    for path in ["/a", "/a", "/b", "/b", "/c"] {
        builtin.get(path, &[]);
    }
    builtin.pass_seconds(2);
    builtin.origin([answer(304, &stale[..1], ""), PlayedAnswer::Refused]);
    builtin.get("/c", &[]);
    builtin.pass_seconds(2);
    builtin.get("/c", &[]);
    builtin.origin([PlayedAnswer::Refused]);
    builtin.get("/d", &[]);
    builtin.ask("POST /d", &[], "x");
    builtin.ask("PURGE /a", &[], "");
    builtin.ask("TRACE /", &[], "");
    builtin.ask("HEAD /e", &[], "");
    builtin.get("/e", &["Cache-Control: only-if-cached"]);
    builtin.get("/e", &["Connection: Upgrade", "Upgrade: websocket"]);
    builtin.origin([answer(200, &[], "plain")]);
    builtin.get("/e", &["Connection: Upgrade", "Upgrade: websocket"]);
    builtin.origin([answer(200, &["Cache-Control: no-store"], "no"), fresh(60, "yes")]);
    builtin.get("/f", &[]);
    builtin.get("/f", &[]);

    let text = "sub vcl_recv { \
            if (req.restarts > 0) { return (synth(700)); } \
            if (req.url ~ \"^/restart/recv\") { return (restart); } \
            if (req.url ~ \"^/.*pass\") { return (pass); } \
            if (req.url ~ \"^/pipe\") { return (pipe); } \
            if (req.url ~ \"purge\") { return (purge); } \
            if (req.url ~ \"^/restart/synth\") { return (synth(701)); } \
            return (hash); } \
        sub vcl_hit { if (req.url ~ \"^/hit/away\") { return (pass); } if (req.url ~ \"^/hit/synth\") { return (synth(702)); } \
            if (req.url ~ \"^/hit/again\") { return (restart); } } \
        sub vcl_miss { if (req.url ~ \"^/miss/away\") { return (pass); } if (req.url ~ \"^/miss/synth\") { return (synth(703)); } \
            if (req.url ~ \"^/miss/again\") { return (restart); } } \
        sub vcl_pass { if (req.url ~ \"^/passing/again\") { return (restart); } if (req.url ~ \"^/passing/synth\") { return (synth(704)); } } \
        sub vcl_purge { if (req.url ~ \"again\") { return (restart); } } \
        sub vcl_deliver { if (req.url ~ \"^/deliver/again\") { return (restart); } if (req.url ~ \"^/deliver/synth\") { return (synth(705)); } } \
        sub vcl_synth { if (resp.status == 701) { return (restart); } } \
        sub vcl_backend_fetch { if (bereq.url ~ \"^/abandon\") { return (abandon); } if (bereq.url ~ \"^/error\") { return (error(503)); } } \
        sub vcl_backend_response { if (beresp.status == 500 && bereq.retries == 0) { return (retry); } if (beresp.status == 501) { return (error(502)); } \
            if (beresp.status == 502) { return (abandon); } set beresp.ttl = 1s; set beresp.grace = 0s; set beresp.keep = 60s; } \
        sub vcl_backend_error { if (bereq.url ~ \"^/retry\" && bereq.retries == 0) { return (retry); } if (bereq.url ~ \"^/none\") { return (abandon); } }";
    let program = Story::vcl(text);
    let tagged = || answer(200, &["ETag: \"a\""], "page");
    program.origin([tagged()]);
    for path in [
        "/a",
        "/a",
        "/restart/recv",
        "/restart/synth",
        "/pass",
        "/passing/again",
        "/passing/synth",
        "/purge",
        "/purge/again",
        "/miss/away",
        "/miss/synth",
        "/miss/again",
        "/deliver/again",
        "/deliver/synth",
        "/hit/synth",
        "/hit/synth",
        "/hit/again",
        "/hit/again",
        "/hit/away",
        "/hit/away",
        "/abandon",
        "/error",
        "/pipe",
    ] {
        program.get(path, &[]);
    }
    program.ask("POST /body", &[], "pie");
    program.pass_seconds(2);
    program.origin([answer(304, &[], "")]);
    program.get("/a", &[]);
    program.origin([
        answer(500, &[], "no"),
        answer(501, &[], "no"),
        answer(502, &[], "no"),
        PlayedAnswer::Refused,
        tagged(),
    ]);
    for path in ["/five", "/none", "/retry", "/six"] {
        program.get(path, &[]);
    }
    program.origin([PlayedAnswer::Refused]);
    program.get("/seven", &[]);
    program.get("/pass/refused", &[]);
    program.get("/none", &[]);
    program.origin([tagged()]);
    program.get_together("/hit/away/together");
    program.leave("/leaves");
    program.leave("/pass/leaves");
    builtin.origin([answer(200, &["Cache-Control: no-store"], "no")]);
    builtin.get_together("/together/uncacheable");
    builtin.origin([fresh(60, "page")]);
    builtin.get_together("/together");
    builtin.leave("/leaves");
    let restarts = Story::vcl("sub vcl_recv { return (restart); }");
    restarts.get("/", &[]);
    vec![builtin, program, restarts]
}

#[test]
fn every_edge_is_taken_in_memory_or_named_here() {
    let walks = walks();
    let taken = |edge: usize| walks.iter().any(|story| story.core.edges.transaction[edge].load(Ordering::Relaxed) > 0);
    let missing: Vec<_> =
        TRANSACTION_EDGES.iter().enumerate().filter(|&(edge, _)| !taken(edge)).map(|(_, &it)| it).collect();
    let named: Vec<_> = ELSEWHERE.iter().flat_map(|(_, edges)| *edges).copied().collect();
    let not_named: Vec<_> = missing.iter().filter(|edge| !named.contains(edge)).collect();
    assert!(not_named.is_empty(), "no test takes {not_named:?}");
    let taken_here: Vec<_> = named.iter().filter(|edge| !missing.contains(edge)).collect();
    assert!(taken_here.is_empty(), "these are taken here: {taken_here:?}");
}
