//! Every edge of the machines is taken in memory, or it is said where else.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::edges::EdgeCounts;
use crate::fetch::fetch_states::FETCH_EDGES;
use crate::transaction::transaction_states::{State, TRANSACTION_EDGES};

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
    vec![builtin, program, restarts, walk_over_pooled_connections()]
}

/// Connections that are lost before an answer, and bodies that end too early.
fn walk_over_pooled_connections() -> Story {
    let story = Story::builtin();
    let lost = wire("", Then::Closes);
    story.origin([pooled(&[], "one", Then::Listens), lost, pooled(&[], "two", Then::Rests)]);
    story.get("/one", &[]);
    story.get("/two", &[]);
    story.origins_hang_up();
    story.origin([wire("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut", Then::Closes)]);
    story.get("/cut", &[]);
    story
}

#[test]
fn every_edge_of_a_transaction_is_taken_in_memory_or_named_here() {
    let missing = not_taken(&TRANSACTION_EDGES, |edges| &edges.transaction);
    let named: Vec<_> = ELSEWHERE.iter().flat_map(|(_, edges)| *edges).copied().collect();
    let not_named: Vec<_> = missing.iter().filter(|edge| !named.contains(edge)).collect();
    assert!(not_named.is_empty(), "no test takes {not_named:?}");
    let taken_here: Vec<_> = named.iter().filter(|edge| !missing.contains(edge)).collect();
    assert!(taken_here.is_empty(), "these are taken here: {taken_here:?}");
}

#[test]
fn every_edge_of_a_fetch_is_taken_in_memory() {
    let missing = not_taken(&FETCH_EDGES, |edges| &edges.fetch);
    assert!(missing.is_empty(), "no test takes {missing:?}");
}

/// The edges of a table that no walk takes.
fn not_taken<E: Copy, const N: usize>(table: &[E; N], counts: impl Fn(&EdgeCounts) -> &[AtomicU64; N]) -> Vec<E> {
    let walks = walks();
    let is_taken = |edge: usize| walks.iter().any(|story| counts(&story.core.edges)[edge].load(Ordering::Relaxed) > 0);
    table.iter().enumerate().filter(|&(edge, _)| !is_taken(edge)).map(|(_, &edge)| edge).collect()
}
