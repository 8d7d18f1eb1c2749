//! What a program's verdicts lead to.

use super::*;

/// The answer to one GET under this program, where the origin answers with a page.
fn get(text: &str) -> Reply {
    let story = Story::vcl(text);
    story.origin([fresh(60, "page")]);
    story.get("/", &[])
}

/// The same of the second.
fn second(text: &str) -> Reply {
    let story = Story::vcl(text);
    story.origin([fresh(60, "first"), fresh(60, "second")]);
    story.get("/", &[]);
    story.get("/", &[])
}

#[test]
fn builtin_vcl_stores_and_hits() {
    let reply = second("");
    assert_eq!((reply.body(), reply.verdict().0), ("first", CacheVerdict::Hit));
}

#[test]
fn builtin_vcl_passes_cookies_and_credentials_and_leaves_what_is_stored_alone() {
    for line in ["Cookie: a=b", "Authorization: Basic YTpi"] {
        let story = Story::vcl("");
        let public = |body| answer(200, &["Cache-Control: public, max-age=60"], body);
        story.origin([public("own"), public("all"), public("own again")]);
        let own = story.get("/", &[line]);
        let (name, value) = line.split_once(": ").expect("a field");
        assert_eq!((own.body(), own.asked_with(name)), ("own", Some(value)));
        assert_eq!(story.get("/", &[]).body(), "all");
        assert_eq!(story.get("/", &[line]).body(), "own again");
        let all = story.get("/", &[]);
        assert_eq!((all.body(), all.asked().len()), ("all", 0));
    }
}

#[test]
fn recv_may_pass() {
    assert_eq!(second("sub vcl_recv { return (pass); }").verdict().0, CacheVerdict::Pass);
}

#[test]
fn recv_may_change_what_is_asked() {
    assert_eq!(get("sub vcl_recv { set req.url = \"/b\"; }").asked(), ["GET /b"]);
}

#[test]
fn recv_that_fails_is_503() {
    assert_eq!(get("sub vcl_recv { return (fail); }").status(), 503);
}

#[test]
fn hash_decides_what_is_the_same() {
    let story = Story::vcl("sub vcl_hash { hash_data(req.http.X-Key); return (lookup); }");
    story.origin([fresh(60, "first"), fresh(60, "second")]);
    story.get("/a", &["X-Key: 1"]);
    assert_eq!(story.get("/b", &["X-Key: 1"]).body(), "first");
    assert_eq!(story.get("/a", &["X-Key: 2"]).body(), "second");
}

#[test]
fn hit_may_pass_restart_or_synthesize() {
    assert_eq!(second("sub vcl_hit { return (pass); }").body(), "second");
    assert_eq!(second("sub vcl_hit { return (synth(701)); }").status(), 701);
    let restart = "sub vcl_recv { if (req.restarts > 0) { return (pass); } } sub vcl_hit { return (restart); }";
    assert_eq!(second(restart).body(), "second");
}

#[test]
fn hit_may_fetch_anew_while_the_client_waits_as_of_old() {
    let reply = second("sub vcl_hit { return (miss); }");
    assert_eq!((reply.body(), reply.asked().len()), ("second", 1));
}

#[test]
fn miss_may_pass_restart_or_synthesize() {
    assert_eq!(get("sub vcl_miss { return (pass); }").verdict().0, CacheVerdict::Pass);
    assert_eq!(get("sub vcl_miss { return (synth(701)); }").status(), 701);
    let restart = "sub vcl_recv { if (req.restarts > 0) { return (pass); } } sub vcl_miss { return (restart); }";
    assert_eq!(get(restart).body(), "page");
}

#[test]
fn pass_may_restart_or_synthesize() {
    let passes = "sub vcl_recv { if (req.restarts > 0) { return (synth(702)); } return (pass); }";
    assert_eq!(get(&format!("{passes} sub vcl_pass {{ return (restart); }}")).status(), 702);
    assert_eq!(get(&format!("{passes} sub vcl_pass {{ return (synth(701)); }}")).status(), 701);
}

#[test]
fn deliver_may_restart_or_synthesize() {
    let restart =
        "sub vcl_recv { if (req.restarts > 0) { return (synth(702)); } } sub vcl_deliver { return (restart); }";
    assert_eq!(get(restart).status(), 702);
    assert_eq!(get("sub vcl_deliver { return (synth(701)); }").status(), 701);
}

#[test]
fn synth_may_restart() {
    let text = "sub vcl_recv { if (req.restarts == 0) { return (synth(701)); } } \
                sub vcl_synth { if (resp.status == 701) { return (restart); } }";
    assert_eq!(get(text).body(), "page");
}

#[test]
fn synth_makes_head_and_body() {
    let text = "sub vcl_recv { return (synth(418, \"Teapot\")); } \
                sub vcl_synth { set resp.http.X-A = \"1\"; synthetic(\"short and stout\"); return (deliver); }";
    let reply = get(text);
    assert_eq!((reply.status(), reply.body(), reply.field("x-a")), (418, "short and stout", "1".to_owned()));
}

#[test]
fn a_status_above_999_goes_out_as_its_last_digits() {
    assert_eq!(get("sub vcl_recv { return (synth(1404)); }").status(), 404);
}

#[test]
fn purge_drops_and_goes_on_to_synth() {
    let story = Story::vcl("sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } }");
    story.origin([fresh(60, "first"), fresh(60, "second")]);
    story.get("/", &[]);
    assert_eq!(story.ask("PURGE /", &[], "").status(), 200);
    assert_eq!(story.get("/", &[]).body(), "second");
}

#[test]
fn purge_may_restart_as_a_get() {
    let story = Story::vcl(
        "sub vcl_recv { if (req.method == \"PURGE\") { return (purge); } } \
         sub vcl_purge { set req.method = \"GET\"; set req.http.purged = \"yes\"; return (restart); } \
         sub vcl_deliver { set resp.http.purged = req.http.purged; }",
    );
    story.origin([fresh(60, "first"), fresh(60, "second")]);
    story.get("/", &[]);
    let reply = story.ask("PURGE /", &[], "");
    assert_eq!((reply.status(), reply.body(), reply.field("purged")), (200, "second", "yes".to_owned()));
    assert_eq!(reply.asked(), ["GET /"]);
    let hit = story.get("/", &[]);
    assert_eq!((hit.body(), hit.asked().len()), ("second", 0));
}

#[test]
fn ban_takes_what_it_is_about() {
    let story = Story::vcl(
        "sub vcl_recv { if (req.method == \"BAN\") { ban(\"obj.http.X-Tag == a\"); return (synth(200)); } }",
    );
    let tagged = |tag: &str, body| answer(200, &["Cache-Control: max-age=60", &format!("X-Tag: {tag}")], body);
    story.origin([tagged("a", "one"), tagged("b", "two"), tagged("a", "three")]);
    story.get("/1", &[]);
    story.get("/2", &[]);
    story.ask("BAN /", &[], "");
    assert_eq!((story.get("/1", &[]).body(), story.get("/2", &[]).body()), ("three", "two"));
}

#[test]
fn backend_fetch_changes_what_the_origin_gets() {
    let reply = get("sub vcl_backend_fetch { set bereq.http.X-Own = \"1\"; unset bereq.http.Host; }");
    assert_eq!(reply.asked_with("x-own"), Some("1"));
}

#[test]
fn backend_fetch_may_give_up() {
    let reply = get("sub vcl_backend_fetch { return (abandon); }");
    assert_eq!((reply.status(), reply.asked().len()), (503, 0));
}

#[test]
fn backend_response_decides_how_long_it_lives() {
    let story = Story::vcl("sub vcl_backend_response { set beresp.ttl = 5s; set beresp.grace = 0s; }");
    story.origin([answer(200, &[], "first"), answer(200, &[], "second")]);
    story.get("/", &[]);
    story.pass_seconds(4);
    assert_eq!(story.get("/", &[]).body(), "first");
    story.pass_seconds(2);
    assert_eq!(story.get("/", &[]).body(), "second");
}

#[test]
fn backend_response_may_try_again() {
    let story = Story::vcl("sub vcl_backend_response { if (beresp.status == 500) { return (retry); } }");
    story.origin([answer(500, &[], "no"), fresh(60, "yes")]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.body(), reply.asked().len()), ("yes", 2));
}

#[test]
fn backend_response_may_pass_the_next_ones() {
    let story = Story::vcl("sub vcl_backend_response { return (pass(10s)); }");
    story.origin([fresh(60, "first"), fresh(60, "second")]);
    story.get("/", &[]);
    assert_eq!(story.get("/", &[]).verdict(), (CacheVerdict::Pass, "hit-for-pass"));
}

#[test]
fn uncacheable_is_a_miss_for_everybody() {
    let story = Story::vcl("sub vcl_backend_response { set beresp.uncacheable = true; set beresp.ttl = 10s; }");
    story.origin([fresh(60, "first"), fresh(60, "second")]);
    story.get("/", &[]);
    assert_eq!(story.get("/", &[]).verdict(), (CacheVerdict::Miss, "hit-for-miss"));
}

#[test]
fn backend_error_answers_in_place_of_an_origin() {
    let story =
        Story::vcl("sub vcl_backend_error { set beresp.status = 200; synthetic(\"sorry\"); return (deliver); }");
    story.origin([MockedAnswer::Refused]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.body()), (200, "sorry"));
}

#[test]
fn backend_error_may_try_another_backend() {
    let story = Story::vcl(
        "backend other { .host = \"192.0.2.2\"; } \
         sub vcl_backend_fetch { if (bereq.retries > 0) { set bereq.backend = other; } } \
         sub vcl_backend_error { if (bereq.retries == 0) { return (retry); } } \
         sub vcl_backend_response { set beresp.http.retries = bereq.retries; }",
    );
    story.origin([MockedAnswer::Refused, fresh(60, "up")]);
    let reply = story.get("/", &[]);
    assert_eq!((reply.status(), reply.body(), reply.field("retries")), (200, "up", "1".to_owned()));
    assert_eq!(reply.asked.iter().map(|sent| sent.backend.as_str()).collect::<Vec<_>>(), ["default", "other"]);
}

#[test]
fn a_503_by_builtin_vcl_is_not_stored() {
    let story = Story::vcl("");
    story.origin([wire("", Then::Closes), fresh(60, "page")]);
    assert_eq!(story.get("/", &[]).status(), 503);
    let next = story.get("/", &[]);
    assert_eq!((next.status(), next.body()), (200, "page"));
}

#[test]
fn grace_serves_what_is_over_and_fetches_behind() {
    let story = Story::vcl("sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 9s; }");
    story.origin([answer(200, &[], "first"), answer(200, &[], "second")]);
    story.get("/", &[]);
    story.pass_seconds(2);
    let stale = story.get("/", &[]);
    assert_eq!((stale.body(), stale.verdict().0), ("first", CacheVerdict::Stale));
    assert_eq!(story.get("/", &[]).body(), "second");
}

#[test]
fn keep_validates_what_is_over() {
    let story =
        Story::vcl("sub vcl_backend_response { set beresp.ttl = 1s; set beresp.grace = 0s; set beresp.keep = 9s; }");
    story.origin([answer(200, &["ETag: \"a\""], "first"), answer(304, &[], "")]);
    story.get("/", &[]);
    story.pass_seconds(2);
    let reply = story.get("/", &[]);
    assert_eq!((reply.body(), reply.asked_with("if-none-match")), ("first", Some("\"a\"")));
}

#[test]
fn deliver_changes_the_copy_and_not_what_is_stored() {
    let story = Story::vcl("sub vcl_deliver { set resp.http.X-Seen = obj.hits; }");
    story.origin([fresh(60, "page")]);
    assert_eq!(story.get("/", &[]).field("x-seen"), "0");
    assert_eq!(story.get("/", &[]).field("x-seen"), "1");
}

#[test]
fn a_304_under_a_program_keeps_what_the_program_left() {
    let story = Story::vcl("sub vcl_deliver { set resp.http.X-A = \"1\"; }");
    story.origin([answer(200, &["Cache-Control: max-age=60", "ETag: \"a\""], "page")]);
    story.get("/", &[]);
    let reply = story.get("/", &["If-None-Match: \"a\""]);
    assert_eq!((reply.status(), reply.field("x-a"), reply.field("content-length")), (304, "1".into(), String::new()));
}

#[test]
fn a_416_under_a_program_keeps_what_lets_a_script_read_it() {
    let story = Story::vcl("sub vcl_deliver { set resp.http.Access-Control-Allow-Origin = \"*\"; }");
    story.origin([fresh(60, "page")]);
    story.get("/", &[]);
    let reply = story.get("/", &["Range: bytes=9-"]);
    assert_eq!((reply.status(), reply.field("access-control-allow-origin")), (416, "*".to_owned()));
}

#[test]
fn x_varnish_names_the_request_and_on_a_hit_its_fetch() {
    let story = Story::vcl("");
    story.origin([fresh(60, "page")]);
    let first = story.get("/", &[]).field("x-varnish");
    let second = story.get("/", &[]).field("x-varnish");
    assert_eq!((first.split(' ').count(), second.split(' ').count()), (1, 2), "{first} {second}");
}

#[test]
fn a_post_is_passed_by_builtin_vcl_with_its_body() {
    let story = Story::vcl("");
    story.origin([answer(200, &[], "done")]);
    let reply = story.ask("POST /", &[], "pie");
    assert_eq!((reply.body(), reply.asked[0].body.as_slice()), ("done", &b"pie"[..]));
}

#[test]
fn a_body_that_was_kept_can_be_sent_again() {
    let text = "import std; sub vcl_recv { std.cache_req_body(1KB); } \
                sub vcl_deliver { if (resp.status == 500 && req.restarts == 0) { return (restart); } }";
    let story = Story::vcl(text);
    story.origin([answer(500, &[], "no"), answer(200, &[], "yes")]);
    let reply = story.ask("POST /", &[], "pie");
    assert_eq!((reply.body(), reply.asked.len()), ("yes", 2));
    assert!(reply.asked.iter().all(|sent| sent.body == b"pie"));
}

#[test]
fn a_body_that_is_gone_is_not_sent_as_nothing() {
    let text = "sub vcl_recv { return (pass); } sub vcl_deliver { if (resp.status == 500 && req.restarts == 0) { return (restart); } } \
                sub vcl_synth { set resp.http.restarts = req.restarts; }";
    let story = Story::vcl(text);
    story.origin([answer(500, &[], "")]);
    let reply = story.ask("POST /", &[], "form");
    assert_eq!((reply.status(), reply.field("restarts"), reply.asked.len()), (503, "1".to_owned(), 1));
    assert_eq!(reply.asked[0].body, b"form");
}

#[test]
fn a_body_that_no_backend_could_be_sent_is_there_for_a_retry_and_for_a_restart() {
    let retry = "sub vcl_backend_error { if (bereq.retries == 0) { return (retry); } }";
    let restart = "sub vcl_deliver { if (req.restarts == 0) { return (restart); } }";
    for text in [retry, restart] {
        let story = Story::vcl(text);
        story.origin([MockedAnswer::Refused, answer(200, &[], "done")]);
        let reply = story.ask("POST /", &[], "pie");
        assert_eq!((reply.status(), reply.body(), reply.asked.len()), (200, "done", 2), "{text}");
        assert_eq!(reply.asked[1].body, b"pie", "{text}");
    }
}

#[test]
fn a_body_that_was_taken_off_is_not_announced_again_by_a_rollback() {
    let story = Story::vcl("import std; sub vcl_backend_fetch { unset bereq.body; std.rollback(bereq); }");
    story.origin([answer(200, &[], "done")]);
    let reply = story.ask("PUT /", &[], "pie");
    assert_eq!((reply.body(), reply.asked[0].body.as_slice()), ("done", &b""[..]));
    assert_eq!((reply.asked_with("content-length"), reply.asked_with("transfer-encoding")), (None, None));
}

#[test]
fn a_body_that_no_backend_could_be_sent_is_there_for_every_try_in_place_of_varnishd() {
    let text = "sub vcl_deliver { if (req.restarts < 2) { return (restart); } } sub vcl_synth { return (fail); }";
    let story = Story::vcl_with(text, |settings| settings.as_varnishd = true);
    story.origin([MockedAnswer::Refused, MockedAnswer::Refused, MockedAnswer::Refused]);
    let reply = story.ask("POST /", &[], "pie");
    assert_eq!((reply.status(), reply.asked.len()), (503, 3));
}

#[test]
fn whoever_is_told_to_switch_is_refused_by_an_origin_that_does_not() {
    let story = Story::vcl("sub vcl_recv { return (pipe); }");
    story.origin([answer(200, &[], "plain")]);
    let reply = story.get("/", &["Connection: Upgrade", "Upgrade: websocket"]);
    assert_eq!((reply.status(), reply.body()), (200, "plain"));
}

#[test]
fn beresp_time_is_when_the_answer_came() {
    let story = Story::vcl("sub vcl_backend_response { set beresp.http.X-Time = beresp.time; }");
    story.origin([fresh(60, "page")]);
    assert_eq!(story.get("/", &[]).field("x-time"), "Thu, 01 Jan 2026 12:00:00 GMT");
}

#[test]
fn an_answer_that_a_program_makes_of_an_error_is_not_met_by_a_ban_from_before_the_error() {
    let story = Story::vcl(
        "sub vcl_backend_response { ban(\"req.url ~ /\"); return (error(503)); } \
         sub vcl_backend_error { set beresp.ttl = 60s; synthetic(\"made\"); return (deliver); }",
    );
    story.origin([fresh(60, "page")]);
    assert_eq!((story.get("/", &[]).status(), story.get("/", &[]).verdict().0), (503, CacheVerdict::Hit));
}

#[test]
fn hash_always_miss_fetches_anew_and_stores() {
    let story = Story::vcl(
        "sub vcl_recv { if (req.http.X-Anew) { set req.hash_always_miss = true; } } sub vcl_deliver { set resp.http.hits = obj.hits; }",
    );
    story.origin([fresh(60, "first"), fresh(60, "second")]);
    story.get("/", &[]);
    assert_eq!(story.get("/", &[]).body(), "first");
    let anew = story.get("/", &["X-Anew: 1"]);
    assert_eq!((anew.body(), anew.field("hits")), ("second", "0".to_owned()));
    let hit = story.get("/", &[]);
    assert_eq!((hit.body(), hit.field("hits"), hit.asked().len()), ("second", "1".to_owned(), 0));
}

#[test]
fn what_nothing_can_select_is_a_hit_for_miss_the_next_time() {
    let story = Story::vcl("sub vcl_backend_response { set beresp.http.Met = bereq.is_hitmiss; return (deliver); }");
    story.origin([answer(200, &["Vary: *", "Cache-Control: max-age=60"], "page")]);
    assert_eq!([story.get("/", &[]), story.get("/", &[])].map(|reply| reply.field("met")), ["false", "true"]);
}

#[test]
fn hash_may_leave_the_host_out_for_some_and_the_rest_to_builtin_vcl() {
    let story = Story::vcl("sub vcl_hash { if (req.url ~ \"png$\") { hash_data(req.url); return (lookup); } }");
    story.origin([fresh(60, "image"), fresh(60, "page")]);
    let get = |path: &str, host: &str| story.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    assert_eq!(get("/a.png", "one.test").body(), "image");
    let other_host = get("/a.png", "two.test");
    assert_eq!((other_host.body(), other_host.asked().len()), ("image", 0));
    assert_eq!(get("/a", "www.test").body(), "page");
}
