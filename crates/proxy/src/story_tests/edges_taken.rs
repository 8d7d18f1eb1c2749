//! Every edge of the machines is taken in memory, or it is said where else.

use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::bodies_in_slices::third_slice_stored;
use super::files_beneath_a_root::beneath;
use super::led_by_a_proxy::proxy_of_users;
use super::scripts_beneath_a_root::{site, with_scripts};
use super::what_routes_say;
use super::who_is_admitted;
use super::*;
use crate::edges::EdgeCounts;
use crate::fetch::fetch_states::FETCH_EDGES;
use crate::static_files::finding::tests::TestFolder;
use crate::transaction::transaction_states::{State, TRANSACTION_EDGES};

/// Edges that no request takes in memory, by what they need, with the behaviours that take them.
const ELSEWHERE: &[(&str, &[(State, State)])] = &[
    (
        "memcached: spec/memcached",
        &[
            (State::Receive, State::Memcached),
            (State::Memcached, State::Deliver),
            (State::Memcached, State::Synth),
            (State::Memcached, State::Pass),
            (State::Memcached, State::Log),
            (State::Admit, State::Memcached),
        ],
    ),
    ("a stream of HTTP/2: spec/varnishd/http2_log.vtc", &[(State::Pipe, State::Pass)]),
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
    builtin.origin([answer(304, &stale[..1], ""), MockedAnswer::Refused]);
    builtin.get("/c", &[]);
    builtin.pass_seconds(2);
    builtin.get("/c", &[]);
    builtin.origin([MockedAnswer::Refused]);
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
        MockedAnswer::Refused,
        tagged(),
    ]);
    for path in ["/five", "/none", "/retry", "/six"] {
        program.get(path, &[]);
    }
    program.origin([MockedAnswer::Refused]);
    program.get("/seven", &[]);
    program.get("/pass/refused", &[]);
    program.get("/none", &[]);
    program.origin([tagged()]);
    program.get_together("/hit/away/together");
    program.leave("/leaves", &[]);
    program.leave("/pass/leaves", &[]);
    builtin.origin([answer(200, &["Cache-Control: no-store"], "no")]);
    builtin.get_together("/together/uncacheable");
    builtin.origin([fresh(60, "page")]);
    builtin.get_together("/together");
    builtin.leave("/leaves", &[]);
    let restarts = Story::vcl("sub vcl_recv { return (restart); }");
    restarts.get("/", &[]);
    let mut walks =
        vec![builtin, program, restarts, walk_over_pooled_connections(), walk_to_files(), walk_to_scripts()];
    walks.extend(walks_over_slices());
    walks.push(walk_through_a_proxy());
    walks.extend(walks_of_users());
    walks.push(walk_to_a_service());
    walks.extend(walks_that_end_unanswered());
    walks
}

fn walks_over_slices() -> [Story; 2] {
    let changed = answer(200, &["Cache-Control: max-age=60", "ETag: \"v2\""], "NEW3456789");
    let (served, broken) = (third_slice_stored([changed.clone(), changed]), third_slice_stored([answer(503, &[], "")]));
    served.get("/film", &["Range: bytes=25-29"]);
    served.get("/film", &["Range: bytes=0-3"]);
    broken.get("/film", &["Range: bytes=10-12"]);
    broken.leave("/film", &["Range: bytes=0-3"]);
    [served, broken]
}

fn walk_to_scripts() -> Story {
    let folder = site("edges-scripts");
    let story = with_scripts(&folder, |_| {});
    story.origin([fresh(60, "made"), fresh(60, "made")]);
    story.get("/index.php", &[]);
    story.ask("POST /index.php", &[], "a=b");
    story
}

fn walk_to_files() -> Story {
    let folder = TestFolder::new("edges-files");
    folder.write("page", "hello");
    let story = beneath(&folder);
    story.get("/page", &[]);
    story.get("/none", &[]);
    story
}

/// Users of a route with files, and of one that leads to a program.
fn walks_of_users() -> [Story; 2] {
    let folder = TestFolder::new("edges-logins");
    folder.write("page", "hello");
    let stories = [what_routes_say::files_of_users(&folder), what_routes_say::program_of_users(&folder)];
    stories.iter().for_each(|story| _ = story.get("/page", &[what_routes_say::ANN]));
    stories
}

/// Whom the service of a route refuses.
fn walk_to_a_service() -> Story {
    let story = who_is_admitted::of_users();
    story.origin([answer(401, &[], "who are you?")]);
    story.get("/", &[]);
    story
}

fn walk_through_a_proxy() -> Story {
    let folder = TestFolder::new("edges-users");
    let story = proxy_of_users(&folder, &["ann", "bob", "cid", "dan", "leo"]);
    let url = "http://a.test/x";
    for (method, user) in [("GET", "ann"), ("POST", "bob"), ("PURGE", "cid"), ("GET", "eve")] {
        led_by_a_proxy::ask(&story, &format!("{method} {url}"), user, false);
    }
    led_by_a_proxy::ask(&story, "CONNECT a.test:443", "dan", false);
    led_by_a_proxy::ask(&story, &format!("GET {url}"), "leo", true);
    story
}

/// A pipe, a client that leaves while its body is read, and a hit that is fetched anew.
fn walks_that_end_unanswered() -> [Story; 3] {
    let pipe = Story::builtin();
    pipe.origin([wire("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", Then::Closes)]);
    pipe.get("/", &["Connection: Upgrade", "Upgrade: x"]);
    let reads = Story::vcl("import std; sub vcl_recv { std.cache_req_body(10KB); }");
    let cut = b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\npie";
    reads.send_as(cut, Manner { leaves: true, ..Manner::default() });
    let anew = Story::vcl("sub vcl_hit { return (miss); }");
    anew.origin([fresh(60, "page")]);
    anew.get("/", &[]);
    anew.get("/", &[]);
    [pipe, reads, anew]
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
    let missing = not_taken(&TRANSACTION_EDGES, &TAKEN.0);
    let named: Vec<_> = ELSEWHERE.iter().flat_map(|(_, edges)| *edges).copied().collect();
    let not_named: Vec<_> = missing.iter().filter(|edge| !named.contains(edge)).collect();
    assert!(not_named.is_empty(), "no test takes {not_named:?}");
    let taken_here: Vec<_> = named.iter().filter(|edge| !missing.contains(edge)).collect();
    assert!(taken_here.is_empty(), "these are taken here: {taken_here:?}");
}

#[test]
fn every_edge_of_a_fetch_is_taken_in_memory() {
    let missing = not_taken(&FETCH_EDGES, &TAKEN.1);
    assert!(missing.is_empty(), "no test takes {missing:?}");
}

/// How often all walks together take each edge of a transaction, and of a fetch.
static TAKEN: LazyLock<(Vec<u64>, Vec<u64>)> = LazyLock::new(|| {
    let edges: Vec<Arc<EdgeCounts>> = walks().iter().map(|story| Arc::clone(&story.core.edges)).collect();
    let sum = |count: &dyn Fn(&EdgeCounts) -> &AtomicU64| edges.iter().map(|of| count(of).load(Relaxed)).sum();
    let transaction = (0..TRANSACTION_EDGES.len()).map(|edge| sum(&|of| &of.transaction[edge])).collect();
    (transaction, (0..FETCH_EDGES.len()).map(|edge| sum(&|of| &of.fetch[edge])).collect())
});

/// The edges of a table that no walk takes.
fn not_taken<E: Copy>(table: &[E], taken: &[u64]) -> Vec<E> {
    table.iter().zip(taken).filter(|(_, taken)| **taken == 0).map(|(&edge, _)| edge).collect()
}
