//! What programs do when they run, over a host of plain lists.

use vcl::subroutine_verdicts::{DeliverVerdict, RecvVerdict, Status, SynthVerdict};
use vcl::*;

/// A program of which one thing is of interest, in one line so that places need no lines.
fn load(text: &str) -> Result<std::sync::Arc<Loaded>, String> {
    let checked = check(Included { name: "t.vcl".to_owned(), bytes: text.as_bytes().to_vec() }, &NoIncludes);
    let shown: Vec<String> = checked.diagnostics.iter().map(|d| draw(d, &checked.sources, false)).collect();
    let program = checked.program.ok_or_else(|| shown.join("\n"))?;
    Loaded::load(program, checked.sources, &NoWorld)
}

const HEAD: &str = "vcl 4.1; import std; import blob; import header; backend default none; backend other none; \
    acl near { \"127.0.0.0\"/8; ! \"127.0.0.2\"; \"::1\"; } acl logged +log { \"10.0.0.0\"/8; } ";

/// Runs a vcl_recv over a small request and shows what became of the request, what was logged, and the verdict.
fn recv_of(body: &str) -> String {
    let loaded =
        load(&format!("{HEAD} sub vcl_recv {{ {body} return (hash); }}")).unwrap_or_else(|why| panic!("{why}"));
    let arena = Arena::default();
    let host = request(&arena);
    let verdict = loaded.recv(&host);
    shown(&host, Message::Req, &format!("{verdict:?}"))
}

fn request(arena: &Arena) -> MapHost<'_> {
    MapHost::new(arena, &NoWorld)
        .with_variable(VariableId::REQ_URL, Plain::Text(Some(b"/a?b=1")))
        .with_variable(VariableId::REQ_METHOD, Plain::Text(Some(b"GET")))
        .with_variable(VariableId::REQ_PROTO, Plain::Text(Some(b"HTTP/1.1")))
        .with_variable(VariableId::REQ_XID, Plain::Int(1001))
        .with_variable(VariableId::NOW, Plain::Time(1_577_836_800.0))
        .with_variable(VariableId::REQ_GRACE, Plain::Duration(10.0))
        .with_variable(
            VariableId::CLIENT_IP,
            Plain::Ip(plain_values::Ip { address: "127.0.0.1".parse().expect("ok"), port: 5000 }),
        )
        .with_header(Message::Req, "Host", "a.example")
        .with_header(Message::Req, "Three", "one")
        .with_header(Message::Req, "three", "two")
        .with_header(Message::Req, "THREE", "three")
}

/// The lines that the program made, what it logged, and how it ended.
fn shown(host: &MapHost<'_>, of: Message, verdict: &str) -> String {
    let kept = ["Host: a.example", "Three: one", "three: two", "THREE: three"];
    let mut parts: Vec<String> = host.lines(of).into_iter().filter(|line| !kept.contains(&line.as_str())).collect();
    parts.extend(host.logged.borrow().iter().map(|(kind, line)| format!("{kind:?} {line}")));
    if verdict != "Hash" {
        parts.push(verdict.to_owned());
    }
    parts.join(", ")
}

/// `set req.http.r = VALUE;`.
fn value(value: &str, expect: &str) {
    assert_eq!(recv_of(&format!("set req.http.r = {value};")), format!("r: {expect}"), "{value}");
}

fn truth(condition: &str, expect: bool) {
    let body = format!("if ({condition}) {{ set req.http.r = \"true\"; }} else {{ set req.http.r = \"false\"; }}");
    assert_eq!(recv_of(&body), format!("r: {expect}"), "{condition}");
}

fn recv(body: &str, expect: &str) {
    assert_eq!(recv_of(body), expect, "{body}");
}

/// Each line was measured with Varnish 7.1.
#[test]
fn absent_is_not_empty() {
    truth("req.http.no == \"\"", false);
    truth("req.http.no != \"\"", true);
    truth("req.http.no == req.http.no", false);
    truth("req.http.no != req.http.no", true);
    truth("(req.http.no + req.http.no) == \"\"", true);
    truth("req.http.no ~ \"^$\"", true);
    truth("req.http.no < \"a\"", false);
    truth("req.http.no > \"a\"", true);
    truth("req.http.no <= \"a\"", false);
    truth("\"a\" >= req.http.no", true);
    recv("if (req.http.no + \"\") { set req.http.r = \"true\"; }", "r: true");
    recv("set req.http.r = req.http.no; if (req.http.r) { set req.http.s = \"true\"; }", "r: , s: true");
    recv("if (req.http.no) { set req.http.r = \"x\"; } elsif (req.http.Host) { set req.http.r = \"y\"; }", "r: y");
    value("regsub(req.http.no, \"^$\", \"X\")", "X");
    recv("if (regsub(req.http.no, \"a\", \"b\")) { set req.http.r = \"true\"; }", "r: true");
    value("\"[\" + std.tolower(req.http.no) + \"]\"", "[]");
    recv("if (std.tolower(req.http.no)) { set req.http.r = \"true\"; }", "r: true");
    recv("if (req.http.no.upper()) { set req.http.r = \"true\"; } else { set req.http.r = \"no\"; }", "r: no");
    value("req.http.three", "one");
    recv("set req.http.Three = \"x\";", "Three: x");
    recv("unset req.http.tHREE; set req.http.r = \"[\" + req.http.three + \"]\";", "r: []");
    recv("set req.http.r += \"a\"; set req.http.r += \"b\";", "r: ab");
    truth("\"\" == \"\"", true);
    recv("if (\"\") { set req.http.r = \"true\"; }", "r: true");
}

#[test]
fn values_become_texts_and_conditions() {
    value("1.5h", "5400.000");
    value("-1.5s", "-1.500");
    value("1.0", "1.000");
    value("true", "true");
    value("1 + \"2\" + 3", "123");
    value("7 / 2 + \" \" + 7 % 4 + \" \" + -7 / 2 + \" \" + -7 % 4", "3 3 -3 -3");
    value("now", "Wed, 01 Jan 2020 00:00:00 GMT");
    value("now - 1d", "Tue, 31 Dec 2019 00:00:00 GMT");
    value("now - (now - 5s)", "5.000");
    value(":Zm9v:", ":Zm9v:");
    value("client.ip", "127.0.0.1");
    value("other", "other");
    value("near", "near");
    value("\"[\" + req.backend_hint + \"]\"", "[]");
    value("req.xid", "1001");
    value("2s * 1.5", "3.000");
    value("1.5 + 1", "2.500");
    value("std.bytes(\"1KB\", 0B) * 2", "2048");
    value("req.url.upper() + req.url.lower()", "/A?B=1/a?b=1");
    truth("7 > 6 && !(1 == 2)", true);
    truth("1.5 < 1.6 || 1s > 2s", true);
    truth("req.restarts", false);
    truth("req.xid", true);
    truth("req.grace", true);
    truth("req.grace - 10s", false);
    truth("req.backend_hint", false);
    truth("other == other && other != default", true);
    truth("client.ip == \"127.0.0.1\"", true);
    truth("!req.http.no ~ \"a\"", true);
    truth("req.url ~ \"^/a\" && req.url !~ \"x\"", true);
    recv("set req.hash_always_miss = 1; if (req.hash_always_miss) { set req.http.r = \"x\"; }", "r: x");
    recv("set req.grace += 5s; set req.grace *= 2.0; set req.http.r = req.grace;", "r: 30.000");
    recv("set req.url = req.url + \"&c\"; set req.url += \"&d\"; set req.http.r = req.url;", "r: /a?b=1&c&d");
}

#[test]
fn addresses_are_matched() {
    truth("client.ip ~ near", true);
    truth("std.ip(\"127.0.0.2\") ~ near", false);
    truth("std.ip(\"::1\") !~ near", false);
    truth("std.ip(\"10.1.1.1\") ~ near", false);
    recv(
        "if (std.ip(\"10.1.1.1\") ~ logged) { set req.http.r = \"in\"; } if (client.ip ~ logged) { }",
        "r: in, Acl MATCH logged \"10.0.0.0\"/8, Acl NO_MATCH logged",
    );
}

#[test]
fn what_cannot_be_done_ends_the_transaction_and_is_logged() {
    let fails = |body: &str, why: &str| {
        let shown = recv_of(body);
        let (_, rest) = shown.split_once("Error ").unwrap_or_else(|| panic!("{body}: {shown}"));
        assert!(rest.starts_with("t.vcl:1:") && rest.contains(why) && rest.contains("Fail("), "{body}: {shown}");
    };
    fails("set req.http.r = 999999999999999 * 999999999999999;", "too large");
    fails("set req.http.r = 5 / req.restarts;", "division by zero");
    fails("set req.http.r = 5 % req.restarts;", "division by zero");
    fails("set req.http.r = 1.5 / 0.0;", "division by zero");
    fails("set req.http.r = 1s * 999999999999.0 * 999999999999.0;", "REAL overflow converting to string");
    fails("set req.http.r = {\"a\n\"};", "control byte");
    fails("set req.url = \"\";", "empty string");
    fails("set req.url = \"/a b\";", "blank");
    fails("set req.method = req.http.no;", "empty string");
    for method in ["GET /x", "G:T", "GET\u{e9}", "GET\t", "(GET)", "\u{1}"] {
        fails(&format!("set req.method = \"{method}\";"), "no token");
    }
    let line_break = "blob.transcode(decoding=URL, encoded=\"%0d%0aX-Forged:%201%0d%0a\")";
    fails(&format!("std.collect(req.http.three, {line_break});"), "control byte");
    fails(&format!("header.append(req.http.three, {line_break});"), "control byte");
    fails(&format!("set req.method = {line_break};"), "no token");
    fails("set req.http.r = std.integer(\"x\");", "no fallback");
    fails("return (synth(99));", "illegal synth (99) (..0##)");
    fails("return (synth(1050));", "illegal synth (1050) (..0##)");
    fails("return (synth(70000));", "synth (70000) > 65535");
    fails("return (synth(-1));", "synth (-1) is negative");
    fails("return (fail(\"because\"));", "because");
    fails("return (fail);", "the program says so");
    fails(
        "if (req.http.host ~ \"^(?=(a+)+$)a\") { } set req.http.h = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"; \
           if (req.http.h ~ \"^(?=(a+)+$)a\") { }",
        "PCRE_MATCHES_MAX",
    );
}

#[test]
fn a_run_has_limits() {
    let doubling = |depth: usize, inner: &str| {
        let subs: Vec<String> =
            (1..=depth).map(|n| format!("sub s{n} {{ call s{}; call s{}; }}", n - 1, n - 1)).collect();
        format!("{HEAD} sub s0 {{ {inner} }} {} sub vcl_recv {{ call s{depth}; }}", subs.join(" "))
    };
    let reason = |text: &str| {
        let loaded = load(text).unwrap_or_else(|why| panic!("{why}"));
        let arena = Arena::default();
        let RecvVerdict::Fail(why) = loaded.recv(&request(&arena)) else { panic!("it ran to its end") };
        why.reason().to_owned()
    };
    assert!(reason(&doubling(40, "set req.http.r = \"a\";")).contains("STATEMENTS_MAX"));
    assert!(reason(&doubling(18, "set req.http.r = req.http.r + \"aa\";")).contains("SCOPE_BYTES_MAX"));
}

#[test]
fn subroutines_call_and_leave_and_return() {
    let check = |subs: &str, expect: RecvVerdict<'_>| {
        let loaded = load(&format!("{HEAD} {subs}")).unwrap_or_else(|why| panic!("{why}"));
        let arena = Arena::default();
        assert_eq!(loaded.recv(&request(&arena)), expect, "{subs}");
    };
    let status = |status, reason: Option<&'static str>| Status { status, reason: reason.map(str::as_bytes) };
    check(
        "sub a { if (req.url ~ \"b\") { return; } return (pipe); } sub vcl_recv { call a; return (pass); }",
        RecvVerdict::Pass,
    );
    check("sub a { return (purge); } sub vcl_recv { if (true) { { call a; } } return (pass); }", RecvVerdict::Purge);
    check(
        "sub vcl_recv { return (synth(404, \"gone\" + req.http.no)); }",
        RecvVerdict::Synth(status(404, Some("gone"))),
    );
    check("sub vcl_recv { return (synth(750)); }", RecvVerdict::Synth(status(750, None)));
    check("sub vcl_recv { return (vcl(label)); }", RecvVerdict::Vcl("label"));
    check("sub vcl_recv { return (restart); }", RecvVerdict::Restart);
    // What builtin.vcl says when the policy says nothing.
    check("", RecvVerdict::Hash);
    check("sub vcl_recv { set req.method = \"POST\"; }", RecvVerdict::Pass);
    check("sub vcl_recv { set req.method = \"NOSUCH\"; }", RecvVerdict::Synth(status(501, None)));
    check("sub vcl_recv { set req.http.Cookie = \"a=b\"; }", RecvVerdict::Pass);
    check("sub vcl_recv { unset req.http.Host; }", RecvVerdict::Synth(status(400, None)));
    check("sub vcl_req_cookie { return; } sub vcl_recv { set req.http.Cookie = \"a\"; }", RecvVerdict::Hash);
    check("sub vcl_recv { call vcl_req_cookie; } sub vcl_req_authorization { return (pipe); }", RecvVerdict::Pipe);
    check("sub vcl_recv { return (pass); } sub vcl_recv { return (pipe); }", RecvVerdict::Pass);
}

#[test]
fn the_other_subroutines_act_on_their_host() {
    let loaded = load(&format!(
        "{HEAD} sub vcl_hash {{ hash_data(req.http.no + \"x\"); hash_data(req.http.no); }} \
         sub vcl_deliver {{ set resp.http.X-Cache = \"hit \" + obj.hits; unset resp.http.Via; \
            if (resp.status == 503) {{ return (synth(503, \"again\")); }} }} \
         sub vcl_synth {{ synthetic(\"a\" + req.http.no + \"b\"); set resp.body += \"c\" + resp.status; return (deliver); }}"
    ));
    let loaded = loaded.unwrap_or_else(|why| panic!("{why}"));
    let arena = Arena::default();
    let host = request(&arena)
        .with_variable(VariableId::OBJ_HITS, Plain::Int(3))
        .with_variable(VariableId::RESP_STATUS, Plain::Int(200))
        .with_header(Message::Resp, "Via", "1.1 x");
    assert_eq!(loaded.hash(&host), subroutine_verdicts::HashVerdict::Lookup);
    let part = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(*host.hashed.borrow(), [None, part("x"), None, part("/a?b=1"), part("a.example")]);
    assert_eq!(*host.hashed_ends.borrow(), [2, 3, 4, 5], "one end behind each statement, and each of the built-in two");
    assert_eq!(loaded.deliver(&host), DeliverVerdict::Deliver);
    assert_eq!(host.lines(Message::Resp), ["X-Cache: hit 3"]);
    assert_eq!(loaded.synth(&host), SynthVerdict::Deliver);
    assert_eq!(*host.synthetic.borrow(), b"a(null)bc200");
}

#[test]
fn the_builtin_policy_makes_uncacheable_what_it_must() {
    use subroutine_verdicts::BackendResponseVerdict::Deliver;
    let check = |header: Option<(&'static str, &'static str)>, ttl: f64, uncacheable: bool| {
        let loaded = load(HEAD.split("acl").next().unwrap_or_default()).unwrap_or_else(|why| panic!("{why}"));
        let arena = Arena::default();
        let mut host = MapHost::new(&arena, &NoWorld)
            .with_variable(VariableId::BERESP_STATUS, Plain::Int(200))
            .with_variable(VariableId::PARAM_UNCACHEABLE_TTL, Plain::Duration(120.0))
            .with_variable(VariableId::BERESP_TTL, Plain::Duration(ttl));
        if let Some((name, value)) = header {
            host = host.with_header(Message::Beresp, name, value);
        }
        assert_eq!(loaded.backend_response(&host), Deliver);
        assert_eq!(host.variable(VariableId::BERESP_UNCACHEABLE), Plain::Bool(uncacheable), "{header:?}");
        let ttl = if uncacheable { 120.0 } else { ttl };
        assert_eq!(host.variable(VariableId::BERESP_TTL), Plain::Duration(ttl));
    };
    check(None, 10.0, false);
    check(None, 0.0, true);
    check(Some(("Set-Cookie", "a=b")), 10.0, true);
    check(Some(("Cache-Control", "max-age=3, PRIVATE")), 10.0, true);
    check(Some(("Vary", "*")), 10.0, true);
    check(Some(("Vary", "Accept-Encoding")), 10.0, false);
}

#[test]
fn chains_of_regexes_are_one_pass_and_mean_the_same() {
    let names: Vec<String> = (0..300).map(|n| format!("bot{n}[/ ]")).collect();
    let tests: Vec<String> = names.iter().map(|name| format!("req.http.UA ~ \"{name}\"")).collect();
    let chain: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(n, name)| format!("if (req.http.UA ~ \"(?i){name}\") {{ set req.http.n = {n}; }}"))
        .collect();
    let body = format!(
        "if ({}) {{ set req.http.any = \"yes\"; }} {} set req.http.UA = \"BOT7/\"; {}",
        tests.join(" || "),
        chain.join(" else "),
        chain.join(" else ")
    );
    let check =
        |agent: &str, expect: &str| recv(&format!("set req.http.UA = \"{agent}\"; {body} unset req.http.UA;"), expect);
    check("bot299/1", "any: yes, n: 7");
    check("BOT299/1", "n: 7");
    check("Mozilla", "n: 7");
    check("bot1 bot2 bot299/", "any: yes, n: 7");
}

#[test]
fn functions_of_std() {
    value("std.toupper(\"a\" + req.url) + std.tolower(\"B\")", "A/A?B=1b");
    value("std.querysort(\"/a?b=1&a\")", "/a?a&b=1");
    value("std.strstr(req.url, \"?\")", "?b=1");
    value("std.fnmatch(\"/*\", \"/a\")", "true");
    value("std.integer(\"12\", 0) + std.integer(real=1.9)", "13");
    value("std.duration(\"1.5h\", 0s) + std.duration(real=1.5)", "5401.500");
    value("std.round(-2.5) + \" \" + std.random(1, 1)", "-3.000 1.000");
    value("std.ip(\"1.2.3.4:81\", \"9.9.9.9\") + \" \" + std.port(std.ip(\"1.2.3.4:81\", \"9.9.9.9\"))", "1.2.3.4 81");
    value("std.port(\"1.2.3.4\") + \" \" + std.port(\"1.2.3.4 8000\") + \" \" + std.port(\"[::1]:81\")", "80 8000 81");
    value("std.port(std.ip(\"1.2.3.4\", \"9.9.9.9\")) + \" \" + std.port(std.ip(\"::1\", p=\"443\"))", "80 443");
    value("std.ip(\"x\", \"9.9.9.9\", false) + \" \" + std.ip(\"[::1]:80\", \"9.9.9.9\")", "9.9.9.9 ::1");
    value("std.time(\"2020-01-01T00:00:00\", now - 1d)", "Wed, 01 Jan 2020 00:00:00 GMT");
    value("std.strftime(now, \"%Y\")", "2020");
    value("std.syntax(4.1) + \" \" + std.syntax(5.0)", "true false");
    value("std.real2integer(1.5, 1) + \" \" + std.real(\"1.5\", 0.0)", "2 1.500");
    recv("std.collect(req.http.three); set req.http.r = req.http.three;", "three: one, two, three, r: one, two, three");
    recv(
        "std.log(\"a\" + req.http.no); std.syslog(8, \"b\"); std.timestamp(\"c\");",
        "Program a, System(8) b, Timestamp c",
    );
    recv(
        "set req.http.r = std.ban(\"x\") + std.ban_error();",
        "r: falsea ban is a field, an operator and a value, \
         Error ban(): a ban is a field, an operator and a value (so this bans nothing: x)",
    );
    recv(
        "ban(\"obj.http.x == y\"); ban(\"x\");",
        "Error ban(): a ban is a field, an operator and a value (so this bans nothing: x)",
    );
    recv("set req.http.r = \"x\"; std.rollback(req);", "");
    recv("if (std.healthy(default)) { set req.http.r = \"y\"; }", "r: y");
    recv("set req.http.r = std.cache_req_body(1KB);", "r: false");
}

#[test]
fn a_program_that_cannot_be_loaded_says_why() {
    let check = |text: &str, expect: &str| {
        let why = load(text).expect_err("it cannot be loaded");
        assert!(why.contains(expect), "{why}");
    };
    check("vcl 4.1; backend b none; acl a { \"no.example\"; } sub vcl_recv { if (client.ip ~ a) { } }", "no.example");
    check("vcl 4.1; backend b none; sub vcl_init { return (fail(\"not today\")); }", "not today");
}

/// Whatever the request: the rules that run as functions say what their text says.
#[test]
fn builtin_rules_say_the_same_as_functions_and_as_text() {
    let as_functions = load("vcl 4.1; backend default none;").expect("it is good");
    // With something of one's own in it, however little, a rule is run as it is written.
    let as_text = load(
        "vcl 4.1; backend default none; sub vcl_builtin_recv { if (false) { return; } } \
         sub vcl_builtin_hash { if (false) { return; } }",
    )
    .expect("it is good");
    let of = |loaded: &Loaded, method: &str, url: &str, proto: &str, header: Option<(&str, &str)>, esi_level| {
        let arena = Arena::default();
        let mut host = MapHost::new(&arena, &NoWorld)
            .with_variable(VariableId::REQ_URL, Plain::Text(Some(arena.copy(url.as_bytes()).expect("room"))))
            .with_variable(VariableId::REQ_METHOD, Plain::Text(Some(arena.copy(method.as_bytes()).expect("room"))))
            .with_variable(VariableId::REQ_PROTO, Plain::Text(Some(arena.copy(proto.as_bytes()).expect("room"))))
            .with_variable(VariableId::REQ_ESI_LEVEL, Plain::Int(esi_level))
            .with_variable(
                VariableId::SERVER_IP,
                Plain::Ip(plain_values::Ip { address: "192.0.2.1".parse().expect("ok"), port: 80 }),
            );
        if let Some((name, value)) = header {
            host = host.with_header(Message::Req, name, value);
        }
        let verdict = loaded.recv(&host);
        let hashed = loaded.hash(&host);
        format!("{verdict:?} {hashed:?} {:?} {:?}", host.lines(Message::Req), host.hashed.borrow())
    };
    let headers = [
        None,
        Some(("Host", "a.example")),
        Some(("host", "A.Example")),
        Some(("Cookie", "")),
        Some(("Authorization", "x")),
        Some(("X-Other", "x")),
    ];
    let mut verdicts = std::collections::HashSet::new();
    for method in ["GET", "HEAD", "POST", "PATCH", "CONNECT", "OPTIONS", "get", "", "PURGE"] {
        for url in ["/", "/a?b", "*", "", "a.example:443", "http://a.example/"] {
            for (proto, esi_level) in [("HTTP/1.1", 0), ("HTTP/1.0", 0), ("HTTP/1.1", 1)] {
                for header in headers {
                    let said = of(&as_functions, method, url, proto, header, esi_level);
                    assert_eq!(said, of(&as_text, method, url, proto, header, esi_level), "{method} {url} {header:?}");
                    verdicts.insert(said.split(" Lookup").next().unwrap_or_default().to_owned());
                }
            }
        }
    }
    assert_eq!(verdicts.len(), 4, "hash, pass and two refusals: {verdicts:?}");
    let built_in = |loaded: &Loaded| loaded.is_builtin(subroutines::Method::Recv);
    assert!(built_in(&as_functions) && !built_in(&as_text));
}

/// Regexes about one header, in one chain with other conditions between them: each says what it says by itself.
#[test]
fn a_chain_of_regexes_is_its_regexes() {
    let chain = |three: &str| {
        format!(
            "set req.http.u = \"{three}\"; \
             if (req.http.u ~ \"^abc.*d\") {{ set req.http.r = 1; }} \
             elseif (req.http.u !~ \"[a-z]{{3}}\") {{ set req.http.r = 2; }} \
             elseif (req.http.Host ~ \"no\" || req.http.u ~ \"x.z\" || req.http.u ~ \"q+\") {{ set req.http.r = 3; }} \
             elseif (req.method == \"HEAD\") {{ set req.http.r = 4; }} \
             elseif (req.http.u ~ \"f.o$\" && req.http.u !~ \"b.*o\") {{ set req.http.r = 5; }} \
             elseif (req.http.u ~ \"b.*o\") {{ set req.http.u = \"xyz\"; if (req.http.u ~ \"x.z\") {{ set req.http.r = 6; }} }} \
             else {{ set req.http.r = 7; }} unset req.http.u;"
        )
    };
    let texts = [("abcxd", 1), ("ab", 2), ("", 2), ("xyzz", 3), ("aaaq", 3), ("aafoo", 5), ("bbbfoo", 6), ("mmm", 7)];
    for (text, branch) in texts {
        assert_eq!(recv_of(&chain(text)), format!("r: {branch}"), "{text}");
    }
}

/// A text that is made by running something may change what the regexes of the chain are asked about.
#[test]
fn a_chain_of_regexes_looks_again_after_a_call() {
    let program = format!(
        "{HEAD} sub change {{ set req.http.u = \"b1\"; }} sub vcl_recv {{ set req.http.u = \"none\"; \
         if (req.http.u ~ \"a+c1\" || req.http.u ~ \"a+c2\" || req.http.u ~ \"a+c3\" \
             || \"\" + std.timed_call(change) ~ \"never+a\" || req.http.u ~ \"b+1\") {{ return (pass); }} return (hash); }}"
    );
    let loaded = load(&program).unwrap_or_else(|why| panic!("{why}"));
    let arena = Arena::default();
    assert_eq!(loaded.recv(&request(&arena)), RecvVerdict::Pass);
}

/// A chain of substitutions is one step; it does what its statements do one after another.
#[test]
fn what_a_substitution_brings_together_is_found_by_those_behind_it() {
    let chain: String = ["b", "x-", "a", "^y+", "ca", "aa", "dd?"]
        .map(|pattern| format!("set req.http.r = regsuball(req.http.r, \"{pattern}\", \"\"); "))
        .concat();
    let apart = chain.replace("; set", "; set req.http.x = \"1\"; set");
    for (value, expect) in
        [("cbx-a", "c"), ("yd", ""), ("x-yx-y", ""), ("z dd", "z "), ("dbd", ""), ("e", "e"), ("cbab", "c")]
    {
        let before = format!("set req.http.r = \"{value}\"; ");
        assert_eq!(recv_of(&format!("{before}{chain}")), format!("r: {expect}"), "{value}");
        assert_eq!(recv_of(&format!("{before}{apart} unset req.http.x;")), recv_of(&format!("{before}{chain}")));
    }
}

#[test]
fn a_chain_of_substitutions_is_its_statements() {
    let chain = "set req.http.r = regsuball(req.http.r, \"a=[^;]+(; )?\", \"\"); \
        set req.http.r = regsuball(req.http.r, \"b=[^;]+(; )?\", \"\"); \
        set req.http.R = regsub(req.http.r, \"^;\\s*\", \"\"); \
        set req.http.r = regsub(req.http.r, \"(c=)(.)\", \"\\2\\1\");";
    let apart = chain.replace("; set", "; set req.http.x = \"1\"; set");
    for (value, expect) in [("a=1; b=2; c=3", "3c="), ("", ""), ("a=1; ", ""), ("x; a=1; ", "x; "), (";  c=9", "9c=")] {
        let before = format!("set req.http.r = \"{value}\"; ");
        assert_eq!(recv_of(&format!("{before}{chain}")), format!("r: {expect}"), "{value}");
        assert_eq!(recv_of(&format!("{before}{apart} unset req.http.x;")), recv_of(&format!("{before}{chain}")));
    }
    // What fails by itself fails in a chain.
    let broken = "set req.http.n = \"xay\"; set req.http.n = regsub(req.http.n, \"a\", {\"\n\"}); \
        set req.http.n = regsub(req.http.n, \"\\s\", \"-\");";
    assert!(recv_of(broken).contains("it holds a control byte"), "{}", recv_of(broken));
    // Absent is empty from the first of them on.
    assert_eq!(
        recv_of(
            "set req.http.n = regsub(req.http.n, \"a\", \"b\"); set req.http.n = regsub(req.http.n, \"^$\", \"e\");"
        ),
        "n: e"
    );
}
