//! Old texts and what becomes of them. What is whole must check as a program.

use super::*;
use crate::{IncludeRequest, Includes, Severity, check as check_program};

/// Whatever is included is there, and empty.
struct Empty;

impl Includes for Empty {
    fn find(&self, _: &IncludeRequest<'_>) -> Result<Vec<Included>, String> {
        Ok(Vec::new())
    }
}

fn translated(text: &str) -> Translated {
    translate(Included { name: "t.vcl".to_owned(), bytes: text.as_bytes().to_vec() }, None)
}

/// The new text behind its version; then what is said of it: `-` and the line for what was left, `~` for notes.
#[track_caller]
fn check(text: &str, expect: &str, said: &str) {
    let result = translated(text);
    let now = String::from_utf8(result.text.clone().unwrap_or_default()).expect("what was text is text");
    let shown: Vec<String> = result
        .diagnostics
        .iter()
        .map(|found| {
            let mark = if found.severity() == Severity::Error { '-' } else { '~' };
            format!("{mark}{}", result.sources.position(found.span).line)
        })
        .collect();
    let body = now.strip_prefix("vcl 4.1;\n\n").unwrap_or(&now);
    assert_eq!(body, expect, "{text}\n{:?}", result.diagnostics);
    assert_eq!(shown.join(" "), said, "{text}\n{:#?}", result.diagnostics);
    if result.is_whole() {
        let whole = format!("{now}\nbackend backend_of_the_test none;\n");
        let checked = check_program(Included { name: "new.vcl".to_owned(), bytes: whole.into_bytes() }, &Empty);
        let errors: Vec<_> = checked.diagnostics.iter().filter(|found| found.severity() == Severity::Error).collect();
        assert!(errors.is_empty(), "{now}\n{errors:#?}");
    }
}

#[test]
fn varnish_1_is_understood() {
    check(
        "backend default {\n    set backend.host = \"10.0.0.1\";\n    set backend.port = \"80\";\n}\n",
        "backend default {\n    .host = \"10.0.0.1\";\n    .port = \"80\";\n}\n",
        "",
    );
    check(
        "sub vcl_recv { if (req.request != \"GET\") { pipe; } lookup; }\nsub vcl_fetch { if (!obj.cacheable) { pass; } insert; }\n\
         sub vcl_timeout { discard; }",
        "sub vcl_recv { if (req.method != \"GET\") { return (pipe); } return (hash); }\n\
         sub vcl_backend_response { if (!(beresp.ttl > 0s)) { set beresp.uncacheable = true; return (deliver); } return (deliver); }\n\
         /* larder import: not carried over (there is no vcl_timeout any more): sub vcl_timeout { discard; } */",
        "~2 ~3",
    );
}

#[test]
fn strings_are_joined_by_plus() {
    check(
        "sub vcl_recv { set req.http.X = \"a\" req.url \"b\" regsub(req.url, \"c\" \"d\", \"\")\n \"e\"; set req.grace = 120 s; }",
        "sub vcl_recv { set req.http.X = \"a\" + req.url + \"b\" + regsub(req.url, \"c\" + \"d\", \"\")\n + \"e\"; set req.grace = 120 s; }",
        "",
    );
    check(
        "sub vcl_recv { ban(\"req.url == \" req.url); purge_url(req.url); purge(\"req.url ~ x\"); log \"a\" req.url; }",
        "import std;\n\nsub vcl_recv { ban(\"req.url == \" + req.url); ban(\"req.url ~ \" + req.url); ban(\"req.url ~ x\"); \
         std.log(\"a\" + req.url); }",
        "",
    );
}

#[test]
fn escapes_were_characters_until_varnish_2() {
    check(
        "sub vcl_recv { set req.http.X = \"say %22a%22\" req.url; lookup; }",
        "sub vcl_recv { set req.http.X = {\"say \"a\"\"} + req.url; return (hash); }",
        "~1",
    );
    check(
        "import std;\nsub vcl_recv { set req.http.X = \"%22\"; return (lookup); }",
        "import std;\nsub vcl_recv { set req.http.X = \"%22\"; return (hash); }",
        "",
    );
}

#[test]
fn errors_become_responses_of_ones_own() {
    check(
        "sub vcl_recv { error 403 \"no \" req.url; }\nsub vcl_fetch { if (beresp.status == 500) { error 503; } }\n\
         sub vcl_hit { error (404); }\nsub vcl_miss { error(404, \"x\"); error req.restarts; }\nsub vcl_pass { error; }",
        "sub vcl_recv { return (synth(403, \"no \" + req.url)); }\n\
         sub vcl_backend_response { if (beresp.status == 500) { return (error(503)); } }\n\
         sub vcl_hit { return (synth(404)); }\nsub vcl_miss { return (synth(404, \"x\")); return (synth(req.restarts)); }\n\
         sub vcl_pass { return (synth(503)); }",
        "",
    );
}

#[test]
fn the_subroutine_for_errors_becomes_two() {
    check(
        "sub vcl_error {\n    if (obj.status == 750) { set obj.http.Location = obj.response; set obj.status = 301; }\n    \
         set obj.http.X = req.url;\n    if (req.restarts < 2) { return (restart); }\n    synthetic {\"<p>\"} obj.status \"</p>\";\n}\n",
        "sub vcl_synth {\n    if (resp.status == 750) { set resp.http.Location = resp.reason; set resp.status = 301; }\n    \
         set resp.http.X = req.url;\n    if (req.restarts < 2) { return (restart); }\n    \
         synthetic({\"<p>\"} + resp.status + \"</p>\");\n}\n\n\
         sub vcl_backend_error {\n    \n    \
         set beresp.http.X = bereq.url;\n    if (bereq.retries < 2) { return (retry); }\n    \
         synthetic({\"<p>\"} + beresp.status + \"</p>\");\n}\n",
        "~4",
    );
}

#[test]
fn purges_and_the_cache_of_varnish_3() {
    check(
        "acl purge { \"localhost\"; }\nsub vcl_recv { if (req.request == \"PURGE\" && client.ip ~ purge) { return(lookup); } }\n\
         sub vcl_hit { purge; error 200 \"Purged\"; }\nsub vcl_miss { purge; error 200 \"Purged\"; }",
        "import purge as purging;\n\nacl purge { \"localhost\"; }\n\
         sub vcl_recv { if (req.method == \"PURGE\" && client.ip ~ purge) { return (hash); } }\n\
         sub vcl_hit { purging.hard(); return (synth(200, \"Purged\")); }\n\
         sub vcl_miss { purging.hard(); return (synth(200, \"Purged\")); }",
        "",
    );
    check("sub vcl_hit { set obj.ttl = 0s; }", "import purge as purging;\n\nsub vcl_hit { purging.hard(); }", "~1");
    check(
        "sub vcl_fetch {\n    if (req.http.Cookie) {\n        return (hit_for_pass);\n    }\n    esi;\n    remove beresp.http.X;\n    \
         set req.http.Y = beresp.response;\n}",
        "sub vcl_backend_response {\n    if (bereq.http.Cookie) {\n        set beresp.uncacheable = true;\n        return (deliver);\n    }\n    \
         set beresp.do_esi = true;\n    unset beresp.http.X;\n    set bereq.http.Y = beresp.reason;\n}",
        "~3 ~7",
    );
    check(
        "sub vcl_hash { set req.hash += req.url; if (req.http.Host) { set req.hash += req.http.Host \"x\"; } hash; }",
        "sub vcl_hash { hash_data(req.url); if (req.http.Host) { hash_data(req.http.Host + \"x\"); } return (lookup); }",
        "",
    );
    check(
        "sub vcl_miss { set bereq.http.X = \"1\"; fetch; }",
        "sub vcl_miss { set req.http.X = \"1\"; return (fetch); }",
        "~1",
    );
}

#[test]
fn directors_become_objects() {
    check(
        "backend a { .host = \"10.0.0.1\"; }\ndirector d round-robin {\n    { .backend = a; } # the first\n    \
         { .backend = { .host = \"10.0.0.2\"; } }\n}\n\
         sub vcl_recv { set req.backend = d; if (!req.backend.healthy) { set req.backend = a; } }",
        "import directors;\nimport std;\n\nbackend a { .host = \"10.0.0.1\"; }\n\
         backend d_1 { .host = \"10.0.0.2\"; }\n\nsub vcl_init {\n    new d = directors.round_robin();\n    \
         d.add_backend(a);\n    # the first\n    d.add_backend(d_1);\n}\n\
         sub vcl_recv { set req.backend_hint = d.backend(); if (!std.healthy(req.backend_hint)) { set req.backend_hint = a; } }",
        "",
    );
    check(
        "backend a { .host = \"10.0.0.1\"; }\ndirector default client { { .backend = a; .weight = 2; } }",
        "import directors;\n\nbackend a { .host = \"10.0.0.1\"; }\nsub vcl_init {\n    new default_director = directors.hash();\n    \
         default_director.add_backend(a, 2);\n}\n\nsub vcl_recv {\n    if (req.restarts == 0) {\n        \
         set req.backend_hint = default_director.backend(client.identity);\n    }\n}",
        "",
    );
    check(
        "director d dns { .list = { .host_header = \"a\"; } }",
        "/* larder import: not carried over (vmod directors has no such director): \
         director d dns { .list = { .host_header = \"a\"; } } */",
        "-1",
    );
}

#[test]
fn subroutines_of_ones_own_follow_those_that_call_them() {
    check(
        "sub plain { set req.http.X = req.url; }\nsub vcl_recv { call plain; }\nsub vcl_deliver { call plain; }",
        "sub plain { set req.http.X = req.url; }\nsub vcl_recv { call plain; }\nsub vcl_deliver { call plain; }",
        "",
    );
    check(
        "sub both { call inner; }\nsub inner { set req.http.X = req.url; }\nsub vcl_recv { call both; }\nsub vcl_fetch { call both; }",
        "sub both { call inner; }\n\nsub both_in_backend_response { call inner_in_backend_response; }\n\
         sub inner { set req.http.X = req.url; }\n\nsub inner_in_backend_response { set bereq.http.X = bereq.url; }\n\
         sub vcl_recv { call both; }\nsub vcl_backend_response { call both_in_backend_response; }",
        "~2",
    );
    let circle = "sub a { call b; }\nsub b { call a; }";
    assert_eq!(translated(circle).text, Some(format!("vcl 4.1;\n\n{circle}").into_bytes()));
}

#[test]
fn what_cannot_be_carried_over_stays_to_be_read() {
    check(
        "sub vcl_fetch { set beresp.saintmode = 10s; return (restart); }",
        "sub vcl_backend_response { /* larder import: not carried over (there is no `beresp.saintmode` now): \
         set beresp.saintmode = 10s; */ return (retry); }",
        "-1 ~1",
    );
    check(
        "sub vcl_fetch { if (req.esi_level > 0) { esi; } }",
        "sub vcl_backend_response { if (/* larder import: not carried over: there is no `bereq.esi_level` now */ req.esi_level > 0) \
         { set beresp.do_esi = true; } }",
        "-1",
    );
    check(
        "sub vcl_recv { C{ int i; /* c */ }C }",
        "sub vcl_recv { /* larder import: not carried over (larder compiles no C): C{ int i; / * c * / }C */ }",
        "-1",
    );
    check(
        "sub vcl_deliver { synthetic \"a\"; frobnicate; }",
        "sub vcl_deliver { /* larder import: not carried over (`synthetic` belongs into vcl_synth, not into vcl_deliver): \
         synthetic \"a\"; */ /* larder import: not carried over (there is no statement `frobnicate` now): frobnicate; */ }",
        "-1 -1",
    );
    check("import std from \"/x.so\";\ninclude \"b.vcl\";", "import std;\ninclude \"b.vcl\";", "~1 ~2");
}

#[test]
fn what_is_no_old_vcl_is_refused() {
    let check = |text: &str, expect: &str| {
        let result = translated(text);
        assert_eq!(result.text, None, "{text}");
        let codes: Vec<&str> = result.diagnostics.iter().map(|found| found.code.name()).collect();
        assert_eq!(codes.join(" "), expect, "{text}");
    };
    check("worker_processes 4;", "syntax");
    check("sub vcl_recv { set x = \"a; }", "unterminated");
    check("sub vcl_recv { ", "unbalanced-brace");
    check("sub vcl_recv {\n#FASTLY recv\n}", "fastly-vcl");
}
