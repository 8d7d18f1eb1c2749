//! What the checker accepts, refuses and warns of, on texts of our own: one line a rule.

use vcl::{Included, NoIncludes};

/// The codes of what is said of the text, with lines.
fn codes(text: &str) -> String {
    let first = Included { name: "t.vcl".to_owned(), bytes: text.as_bytes().to_vec() };
    let checked = vcl::check(first, &NoIncludes);
    let said = checked.diagnostics.iter().map(|d| format!("{}@{}", d.code, checked.sources.position(d.span).line));
    said.collect::<Vec<_>>().join(" ")
}

/// A whole file.
fn check(text: &str, expect: &str) {
    assert_eq!(codes(text), expect, "{text}");
}

/// Line 5 and on is the body of a subroutine, under `vcl 4.1;`, with a backend `b`, an ACL `l` and vmods std and blob.
fn body(subroutine: &str, text: &str, expect: &str) {
    let file = format!(
        "vcl 4.1; import std; import blob; import directors;\nbackend b none;\nacl l {{ \"10.0.0.0\"/8; }}\n\
         sub {subroutine} {{\n{text}\n}}\nsub vcl_pipe {{ if (client.ip ~ l) {{ return (pipe); }} }}"
    );
    assert_eq!(codes(&file), expect, "{subroutine}: {text}");
}

#[test]
fn the_built_in_rules_are_a_good_program() {
    check("vcl 4.1; backend b none;", "");
    check("vcl 4.0; backend b none;", "");
}

/// The codes of what is said of a file beside which others define `app` and `shop`, and its backends.
fn beside_others(text: &str) -> (String, Vec<String>) {
    let first = Included { name: "t.vcl".to_owned(), bytes: format!("vcl 4.1; {text}").into_bytes() };
    let checked = vcl::check_beside(first, &NoIncludes, &["app".to_owned(), "shop".to_owned(), "now".to_owned()]);
    let said = checked.diagnostics.iter().map(|d| d.code.to_string()).collect::<Vec<_>>().join(" ");
    let show = |backend: &vcl::typed_program::Backend| format!("{} {}", backend.name, backend.is_elsewhere);
    (said, checked.program.map_or(Vec::new(), |program| program.backends.iter().map(show).collect()))
}

#[test]
fn backends_of_others_have_their_names_where_the_program_has_none_of_them() {
    let check = |text: &str, said: &str, backends: &[&str]| {
        let (found, known) = beside_others(text);
        assert_eq!(
            (found.as_str(), known.iter().map(String::as_str).collect::<Vec<_>>()),
            (said, backends.to_vec()),
            "{text}"
        );
    };
    let recv = |text: &str| format!("backend b none; sub vcl_recv {{ set req.backend_hint = b; {text} }}");
    check(&recv("set req.backend_hint = app; set req.backend_hint = App;"), "", &["b false", "app true"]);
    check("backend app none; sub vcl_recv { set req.backend_hint = app; }", "", &["app false"]);
    // Words of the language stay what they are.
    check(&recv("set req.http.x = now;"), "", &["b false"]);
    check("", "", &["app true"]);
    check(&recv("set req.backend_hint = other;"), "unknown-name", &[]);
    // Without others nothing is another than before.
    assert_eq!(codes("vcl 4.1;"), "no-backend@1");
}

#[test]
fn types_agree_or_are_converted() {
    let recv = |text: &str, expect: &str| body("vcl_recv", text, expect);
    recv("set req.http.x = 1 + \"2\" + 3 + now + client.ip + b + true;", "");
    recv("set req.http.x = req.restarts;", "");
    recv("set req.grace = 10s * 2 + 1m - 5ms;", "");
    recv("set req.grace = 10;", "type-mismatch@5");
    recv("set req.hash_always_miss = 1;", "");
    recv("set req.hash_always_miss = \"true\";", "");
    recv("set req.hash_always_miss = 1.5;", "type-mismatch@5");
    recv("if (req.restarts + 1 > 2 && req.restarts % 2 == 0) { }", "");
    recv("if (req.restarts > \"1\") { }", "type-mismatch@5");
    recv("if (req.url == 1) { }", "type-mismatch@5");
    recv("if (now - 1d < now) { }", "");
    recv("if (now + now > now) { }", "bad-operator@5");
    recv("if (1.5) { }", "type-mismatch@5");
    recv("if (!req.http.Cookie ~ \"a\") { }", "");
    recv("if (client.ip == \"127.0.0.1\") { }", "");
    recv("if (client.ip == \"localhost\") { }", "type-mismatch@5");
    recv("if (req.backend_hint == b) { set req.backend_hint = default; }", "");
    recv("set req.backend_hint = \"b\";", "type-mismatch@5");
    recv("if (b < b) { }", "bad-operator@5");
    recv("set req.http.x = 1 / 0;", "bad-operator@5");
    recv("set req.http.x = 7 parsecs;", "bad-literal@5");
    recv("set req.url += \"x\"; set req.grace += 5s; set req.grace *= 1.5;", "");
    recv("set req.hash_always_miss += true;", "bad-operator@5");
    recv("set req.http.x = -req.restarts;", "");
}

#[test]
fn regexes_are_literals_that_compile() {
    let recv = |text: &str, expect: &str| body("vcl_recv", text, expect);
    recv("if (req.url ~ \"^/a\" + \"b\") { }", "");
    recv("if (req.url ~ \"(\") { }", "regex-invalid@5");
    recv("if (req.url ~ req.http.x) { }", "regex-not-literal@5");
    recv("if (req.url ~ l) { }", "type-mismatch@5");
    recv("if (client.ip ~ \"10\") { }", "type-mismatch@5");
    recv("if (req.restarts ~ \"1\") { }", "bad-operator@5");
    recv("set req.url = regsuball(req.url, \"a(?=b)\", \"\\1\");", "");
    recv("set req.url = regsub(req.url, \"a\");", "bad-arguments@5");
}

#[test]
fn names_are_resolved() {
    let recv = |text: &str, expect: &str| body("vcl_recv", text, expect);
    recv("set Req.HTTP.x = REQ.url.upper() + req.url.lower();", "");
    recv("set req.http.x = req.nosuch;", "unknown-name@5");
    recv("set req.htpp.x = \"a\";", "unknown-name@5");
    recv("set req.request = \"GET\";", "old-vcl@5");
    recv("set req.http.x = req.esi;", "unknown-name@5");
    recv("set req.http.\"x.y\" = \"a\"; unset req.http.\"x.y\";", "");
    recv("set req.http.{\"!!\"} = \"a\"; unset req.http.\"\"\"x.y\"\"\";", "");
    recv("set req.http.x.y = \"a\";", "bad-name@5");
    recv("call nosuch;", "unknown-name@5");
    recv("call b;", "wrong-kind@5");
    recv("std.nosuch();", "unknown-vmod-function@5");
    recv("cookie.parse(req.http.cookie);", "unknown-name@5");
    recv("set req.storage = storage.s0;", "");
    recv("if (b.resolve() == b && req.backend_hint.resolve() == b) { }", "");
    recv("set req.http.x = b.nosuch();", "unknown-name@5");
}

#[test]
fn arguments_fit_their_functions() {
    let recv = |text: &str, expect: &str| body("vcl_recv", text, expect);
    recv("set req.http.x = std.ip(s=\"1.2.3.4\", fallback=client.ip, resolve=false);", "");
    recv("set req.http.x = std.integer(req.http.x, 0) + std.integer(duration=1s);", "");
    recv("std.log();", "bad-arguments@5");
    recv("std.log(\"a\", \"b\");", "bad-arguments@5");
    recv("std.collect(req.http.Cookie, \"; \"); std.collect(req.url);", "type-mismatch@5");
    recv("set req.http.x = std.tolower(t=\"a\");", "bad-arguments@5");
    recv("set req.http.x = blob.encode(encoding=HEX, blob=:3q2+7w==:);", "");
    recv("set req.http.x = blob.encode(encoding=OCTAL, blob=:3q2+7w==:);", "bad-arguments@5");
    recv("set req.http.x = std.log(\"a\");", "type-mismatch@5");
    recv("std.cache_req_body(10KB); std.rollback(req);", "");
}

#[test]
fn objects_are_made_in_vcl_init() {
    let objects = "new d = directors.round_robin(); d.add_backend(b); new h = directors.hash(); h.add_backend(b, 2.0);";
    body("vcl_init", objects, "");
    body("vcl_recv", objects, "not-here@5 not-here@5");
    body("vcl_init", "new d = directors.nosuch(); d.add_backend(b);", "unknown-vmod-function@5");
    body("vcl_init", "new d = nosuch.thing();", "unknown-name@5");
    body("vcl_init", "new d = directors.random(); d.add_backend(b);", "bad-arguments@5");
    let used = "sub vcl_recv { set req.backend_hint = d.backend(); d.nosuch(); }";
    let text =
        format!("vcl 4.1; import directors; backend b none;\n{used}\nsub vcl_init {{ new d = directors.fallback(); }}");
    check(&text, "unknown-vmod-function@2");
}

#[test]
fn variables_are_where_they_are() {
    body("vcl_backend_response", "set req.http.x = \"a\";", "not-writable-here@5");
    body("vcl_deliver", "set resp.http.x = beresp.http.x;", "not-readable-here@5");
    body("vcl_recv", "set obj.ttl = 1s;", "read-only@5");
    body("vcl_recv", "unset req.url;", "not-unsettable@5");
    body("vcl_recv", "hash_data(req.url);", "not-here@5");
    body("vcl_deliver", "synthetic(\"a\");", "not-here@5");
    body("vcl_backend_response", "unset beresp.http.Content-Length;", "ignored@5");
    for wish in ["do_esi", "do_gzip", "do_gunzip"] {
        body("vcl_backend_response", &format!("set beresp.{wish} = true;"), "");
    }
    body("vcl_synth", "set resp.body = \"a\" + resp.status; set resp.body += \"b\";", "");
    // By the call graph.
    let graph = "vcl 4.1; backend b none;\nsub a { set req.url = \"/\"; }\nsub c { call a; }\n";
    check(&format!("{graph}sub vcl_recv {{ call c; }}"), "");
    check(&format!("{graph}sub vcl_deliver {{ call c; }} sub vcl_backend_fetch {{ call c; }}"), "not-writable-here@2");
    check(&format!("{graph}sub d {{ call c; set beresp.ttl = 1s; }}"), "impossible-subroutine@4 unused@4");
}

#[test]
fn returns_are_those_of_the_subroutine() {
    body("vcl_recv", "return (hash);", "hash-skips-builtin@5");
    body("vcl_recv", "return (lookup);", "wrong-return@5");
    body("vcl_recv", "return (HASH);", "wrong-return@5");
    body("vcl_recv", "return;", "wrong-return@5");
    body("vcl_recv", "return (synth);", "bad-arguments@5");
    body("vcl_recv", "return (synth(404, \"a\" + req.url));", "");
    body("vcl_recv", "return (pass(10s, 5));", "bad-arguments@5");
    body("vcl_recv", "return (vcl(label));", "");
    body("vcl_recv", "return (vcl(b));", "wrong-kind@5");
    body("vcl_hit", "if (obj.hits) { return (miss); } return (fetch);", "renamed-action@5 renamed-action@5");
    body("vcl_backend_response", "return (hit_for_pass);", "old-vcl@5");
    body("vcl_backend_response", "if (beresp.http.Set-Cookie) { return (pass(120s)); }", "");
    check("vcl 4.1; backend b none;\nsub a { return (pass); }\nsub vcl_deliver { call a; }", "wrong-return@2");
    check("vcl 4.1; backend b none;\nsub a { return; }\nsub vcl_deliver { call a; }", "");
}

#[test]
fn definitions_are_checked() {
    let backend = |text: &str, expect: &str| check(&format!("vcl 4.1;\nbackend b {{ {text} }}"), expect);
    backend(".host = \"a.example\"; .port = \"80\"; .connect_timeout = 3.5s; .max_connections = 10;", "");
    backend(".host = \"[::1]:80\"; .proxy_header = 2; .preamble = :3q2+7w==:; .ssl = 1;", "");
    backend(".path = \"/run/a.sock\";", "");
    backend(".path = \"a.sock\";", "bad-backend@2");
    backend(".port = \"80\";", "bad-backend@2");
    backend(".host = \"a\"; .path = \"/b\";", "duplicate@2");
    backend(".host = \"a\"; .host = \"b\";", "duplicate@2");
    backend(".hots = \"a\"; .host = \"b\";", "unknown-attribute@2");
    backend(".host = \"a\"; .connect_timeout = 5;", "type-mismatch@2");
    backend(".host = \"a\"; .port = 80;", "type-mismatch@2");
    backend(".host = \"a\"; .probe = nosuch;", "unknown-name@2");
    backend(".host = \"a\"; .probe = { .url = \"/\"; .window = 8; .threshold = 9; }", "bad-probe@2");
    backend(".host = \"a\"; .probe = { .window = 65; .threshold = 3; }", "bad-probe@2");
    backend(".host = \"a\"; .proxy_header = 3;", "bad-backend@2");
    backend(".host = \"{{ host }}\";", "template@2");
    check("vcl 4.1;\nprobe p { .request = \"a\" \"b\"; }\nbackend b { .host = \"a\"; .probe = p; }", "");
    check("vcl 4.1;\nsub vcl_recv { }", "no-backend@1");
    let entries = |text: &str, expect: &str| {
        check(
            &format!("vcl 4.1; backend b none;\nacl a {{ {text} }}\nsub vcl_recv {{ if (client.ip ~ a) {{ }} }}"),
            expect,
        );
    };
    entries("\"10.0.0.0\"/8; ! \"10.1.0.0/16\"; (\"host.example\"); \"::1\";", "");
    entries("\"10.0.0.1\"/8;", "host-bits@2");
    entries("\"10.0.0.0\"/33;", "bad-acl-entry@2");
    entries("\"10.0.0.0\"; ! \"10.0.0.0\";", "bad-acl-entry@2");
    entries("\"10.0.0.0\"; \"10.0.0.0\"/32;", "never-matches@2");
    entries("\"not an address\";", "bad-acl-entry@2");
}

#[test]
fn names_are_defined_once_and_not_of_the_language() {
    check("vcl 4.1; backend b none;\nacl ban { \"::1\"; }", "reserved-name@2");
    check("vcl 4.1; backend b none;\nsub vcl_nosuch { }", "reserved-name@2");
    for word in ["sub", "acl", "vcl", "probe", "import", "req", "now", "set", "vcl_x"] {
        check(&format!("vcl 4.1; backend b none;\nbackend {word} none;"), "reserved-name@2");
    }
    check("vcl 4.1; backend b none;\nsub vcl_fetch { }", "old-vcl@2");
    check("vcl 4.1; backend b none;\nsub a { }\nsub a { } sub vcl_recv { call a; }", "duplicate@3");
    check("vcl 4.1; backend b none;\nsub vcl_recv { }\nsub vcl_recv { } sub vcl_req_cookie { }", "");
    check("vcl 4.1; backend b none;\nbackend B none;", "duplicate@2");
    check("vcl 4.1; backend b none;\nsub a { call c; }\nsub c { call a; } sub vcl_recv { call a; }", "recursion@3");
    check(
        "vcl 4.1; backend b none;\nacl a { \"::1\"; } probe p { } sub s { }\nbackend c none;",
        "unused@2 unused@2 unused@2 unused@3",
    );
    check("vcl 4.1; backend b none;\nacl a { \"::1\"; } unused a; unused nosuch;", "unknown-name@2");
    check("vcl 4.0; backend b none;\ninclude \"x\";", "include-not-found@2");
}

#[test]
fn what_variables_begin_with_may_be_a_name() {
    for word in ["client", "server", "local", "remote", "sess", "storage", "obj", "req_top"] {
        let acl = format!("acl {word} {{ \"::1\"; }} sub vcl_recv {{ if (client.ip ~ {word}) {{ return (pass); }} }}");
        check(&format!("vcl 4.1; backend b none;\n{acl}"), "");
    }
    let object = "sub vcl_init { new storage = directors.round_robin(); storage.add_backend(b); }";
    let uses = "sub vcl_recv { set req.backend_hint = storage.backend(); set req.storage = storage.Transient; }";
    check(&format!("vcl 4.1; backend b none; import directors;\n{object}\n{uses}"), "");
}

#[test]
fn an_empty_port_is_no_port() {
    check("vcl 4.1;\nbackend b { .host = \"::1\"; .port = \"\"; }", "");
    check("vcl 4.1;\nbackend b { .host = \"\"; .port = \"\"; }", "bad-backend@2");
}

#[test]
fn modules_that_larder_lacks_are_named() {
    check("vcl 4.1; backend b none;\nimport ykey;\nsub vcl_recv { ykey.purge(req.url); }", "unknown-vmod@2");
    check("vcl 4.1; backend b none;\nimport stdd;", "unknown-vmod@2");
    check(
        "vcl 4.1; backend b none;\nimport std; import std; import std as s from \"x\";\nsub vcl_recv { s.log(\"a\"); }",
        "ignored@2",
    );
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    body("vcl_recv", "if (req.http.x == \"\") { }", "header-against-empty@5");
    body("vcl_recv", "set req.http.x = req.http.y;", "absent-becomes-empty@5");
    body("vcl_recv", "return (pass);\nset req.url = \"/\";", "unreachable@6");
    body("vcl_recv", "if (req.url ~ \"^$\") { }", "never-matches@5");
    body("vcl_recv", "if (req.url ~ \"\\.(jpg|png)\") { }", "loose-extension@5");
    body("vcl_recv", "ban(\"req.url ~ \" + req.url);", "ban-on-request@5");
    body("vcl_recv", "ban(\"obj.http.x ~ \" + req.url + \"&& obj.status == 200\");", "bad-ban@5");
    body("vcl_hash", "hash_data(req.http.host); return (lookup);", "hash-without-url@5");
    body("vcl_backend_response", "set beresp.ttl = 1h; return (deliver);", "cookie-cached@5");
    body("vcl_backend_response", "set beresp.uncacheable = true; set beresp.grace = 1h;", "ttl-of-uncacheable@5");
}

#[test]
fn a_guarded_header_is_there() {
    let recv = |text: &str, expect: &str| body("vcl_recv", text, expect);
    recv("if (req.http.y) { set req.http.x = req.http.y; }", "");
    recv("if (req.http.Y ~ \"a\" && req.restarts == 0) { set req.http.x = req.http.y; }", "");
    recv("if (req.http.y == \"a\" || req.http.y == \"b\") { set req.http.x = req.http.y; }", "");
    recv("if (req.http.y || req.url == \"/\") {\nset req.http.x = req.http.y; }", "absent-becomes-empty@6");
    recv("if (!req.http.y) { return (pass); }\nset req.http.x = req.http.y;", "");
    recv("if (!req.http.y) { set req.http.y = \"-\"; }\nset req.http.x = req.http.y;", "");
    recv("if (!req.http.y) { set req.http.z = \"-\"; }\nset req.http.x = req.http.y;", "absent-becomes-empty@6");
    recv("if (req.http.y) { } else {\nset req.http.x = req.http.y; }", "absent-becomes-empty@6");
    recv("if (req.http.y) { unset req.http.y;\nset req.http.x = req.http.y; }", "absent-becomes-empty@6");
    recv(
        "set req.http.y = \"a\"; if (req.url == \"/\") { unset req.http.y; }\nset req.http.x = req.http.y;",
        "absent-becomes-empty@6",
    );
    recv(
        "set req.http.y = \"a\"; if (req.url == \"/\") { unset req.http.y; return (pass); }\nset req.http.x = req.http.y;",
        "",
    );
    recv("if (req.http.y) { set req.http.x = req.http.y; }\nset req.http.x = req.http.y;", "absent-becomes-empty@6");
    recv("set req.http.X-Forwarded-Host = req.http.host;", "");
}

#[test]
fn a_cookie_is_unset_before_it_is_looked_at() {
    let recv = |text: &str, expect: &str| body("vcl_recv", text, expect);
    recv("if (req.http.Cookie) { return (pass); }\nunset req.http.cookie;", "cookie-too-late@6");
    recv(
        "if (req.http.Authorization || req.http.Cookie) { return (pass); }\nif (req.url ~ \"^/s/\") {\nunset req.http.Cookie; }",
        "cookie-too-late@7",
    );
    recv("if (req.http.Cookie ~ \"a\") { return (pass); }\nunset req.http.Cookie;", "");
    recv("if (req.http.Cookie) { set req.http.X = \"1\"; }\nunset req.http.Cookie; unset req.http.Cookie;", "");
    recv("if (req.http.Cookie) { return (pass); }\nset req.http.Cookie = \"a\"; unset req.http.Cookie;", "");
}

#[test]
fn acl_entries_that_decide_nothing_are_told() {
    let acl = |entries: &str, expect: &str| {
        check(
            &format!("vcl 4.1; backend b none;\nacl a {{ {entries} }} sub vcl_recv {{ if (client.ip ~ a) {{ }} }}"),
            expect,
        );
    };
    acl("\"10.0.0.0\"/8; \"10.1.0.0\"/16;", "never-matches@2");
    acl("\"10.0.0.0\"/8; ! \"10.1.0.0\"/16; \"10.1.2.3\";", "");
    acl("\"0.0.0.0\";", "never-matches@2");
    acl("\"::\";", "never-matches@2");
    acl("\"0.0.0.0\"/0; \"::\"/0;", "");
    acl("\"localhost\"; \"127.0.0.1\";", "");
}

#[test]
fn a_way_through_another_backend_is_one_step_to_a_name() {
    const BEFORE: &str = "vcl 4.1; sub vcl_recv { set req.backend_hint = a; }\nbackend v none;\n";
    let check = |backends: &str, expect: &str| check(&format!("{BEFORE}{backends}"), expect);
    check("backend a { .via = v; .host = \"a.test\"; }", "");
    check("backend a { .via = v; .host = \"10.0.0.1\"; .authority = \"a.test\"; }", "");
    check("backend a { .via = v; .host = \"10.0.0.1\"; }", "bad-backend@3");
    check("backend a { .via = v; .host = \"a.test\"; .host_header = \"10.0.0.1\"; }", "bad-backend@3");
    check("backend a { .via = v; .path = \"/run/a\"; }", "bad-backend@3");
    check("backend a { .via = b; .host = \"a.test\"; }\nbackend b { .via = v; .host = \"b.test\"; }", "bad-backend@3");
}

#[test]
fn http2_to_a_backend_is_for_all_clients_and_no_probe() {
    let check = |attributes: &str, expect: &str| {
        check(&format!("vcl 4.1; backend a {{ .http2 = 1; {attributes} }}\nsub vcl_recv {{ }}"), expect);
    };
    check(".host = \"a.test\";", "");
    check(".host = \"a.test\"; .ssl = 1; .probe = { }", "");
    check(".path = \"/run/a\"; .ssl = 1;", "");
    for other in [".proxy_header = 1;", ".preamble = :SGVsbG8=:;", ".probe = { }"] {
        check(&format!(".host = \"a.test\"; {other}"), "bad-backend@1");
    }
    check(".path = \"/run/a\";", "bad-backend@1");
    check(".host = \"a.test\"; .ssl = 1; .proxy_header = 2;", "bad-backend@1");
}
