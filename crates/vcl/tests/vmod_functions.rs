//! What the functions of the modules do, over a host of plain lists. Those of std are in running.rs.

use vcl::*;

const HEAD: &str = "vcl 4.1; import cookie; import header; import purge; import std; import str; import var; import vsthrottle; import xkey; \
    backend default none; backend other none; ";

fn load(text: &str) -> std::sync::Arc<Loaded> {
    let text = format!("{HEAD}\n{text}");
    let checked = check(Included { name: "t.vcl".to_owned(), bytes: text.into_bytes() }, &NoIncludes);
    let shown: Vec<String> = checked.diagnostics.iter().map(|d| draw(d, &checked.sources, false)).collect();
    let program = checked.program.unwrap_or_else(|| panic!("{}", shown.join("\n")));
    Loaded::load(program, checked.sources, &NoWorld).unwrap_or_else(|why| panic!("{why}"))
}

fn request(arena: &Arena) -> MapHost<'_> {
    MapHost::new(arena, &NoWorld)
        .with_variable(VariableId::REQ_URL, Plain::Text(Some(b"/a")))
        .with_variable(VariableId::REQ_METHOD, Plain::Text(Some(b"GET")))
        .with_header(Message::Req, "Cookie", "a=1; b=2; session=x; c=3")
        .with_header(Message::Req, "List", "one")
        .with_header(Message::Req, "list", "two")
        .with_header(Message::Req, "LIST", "three")
}

/// Runs a vcl_recv over a small request and compares the lines that are then other than before, and what was logged.
fn recv(body: &str, expect: &str) {
    let loaded = load(&format!("sub vcl_recv {{ {body} return (hash); }}"));
    let arena = Arena::default();
    let host = request(&arena);
    let before = host.lines(Message::Req);
    loaded.recv(&host);
    let mut parts = host.lines(Message::Req);
    parts.retain(|line| !before.contains(line));
    parts.extend(host.logged.borrow().iter().map(|(_, line)| line.clone()));
    assert_eq!(parts.join(", "), expect, "{body}");
}

/// `set req.http.r = VALUE;`, after some statements.
fn value_after(statements: &str, value: &str, expect: &str) {
    recv(&format!("{statements} set req.http.r = {value};"), &format!("r: {expect}"));
}

fn value(value: &str, expect: &str) {
    value_after("", value, expect);
}

#[test]
fn cookies_are_parsed_and_changed() {
    let check = |statements: &str, expect: &str| {
        value_after(&format!("cookie.parse(req.http.Cookie); {statements}"), "cookie.get_string()", expect);
    };
    check("", "a=1; b=2; session=x; c=3;");
    check("cookie.keep(\"c, a,no\");", "a=1; c=3;");
    check("cookie.filter_except(\"c, a,no\");", "a=1; c=3;");
    check("cookie.keep(\"\");", "");
    check("cookie.filter(\"a,, session\");", "b=2; c=3;");
    check("cookie.filter(req.http.no);", "a=1; b=2; session=x; c=3;");
    check("cookie.keep_re(\"^[ac]$\");", "a=1; c=3;");
    check("cookie.filter_re(\"^[ac]$\");", "b=2; session=x;");
    check("cookie.delete(\"b\"); cookie.delete(\"\");", "a=1; session=x; c=3;");
    check(
        "cookie.set(\"b\", \"9\"); cookie.set(\"d\", \"4\"); cookie.set(\"a\", \"\");",
        "a=1; b=9; session=x; c=3; d=4;",
    );
    check("cookie.clean();", "");
    check("cookie.parse(\"\");", "a=1; b=2; session=x; c=3;");
    check("cookie.parse(\"z=1\");", "z=1;");
    let parsed = "cookie.parse(req.http.Cookie);";
    value_after(parsed, "cookie.get(\"b\") + cookie.isset(\"b\") + cookie.isset(\"no\")", "2truefalse");
    value_after(parsed, "cookie.get_re(\"^s\") + cookie.get_re(\"no\")", "x");
    recv("if (!cookie.get(\"no\")) { set req.http.r = \"absent\"; }", "r: absent");
    value("cookie.format_date(std.time(\"2020-01-01T00:00:00\"), 1d)", "Thu, 02 Jan 2020 00:00:00 GMT");
}

#[test]
fn what_a_transaction_keeps_outlives_a_subroutine() {
    let loaded = load(
        "sub vcl_recv { cookie.parse(req.http.Cookie); var.set(\"a\", \"kept\"); return (hash); } \
         sub vcl_deliver { set resp.http.r = cookie.get(\"a\") + var.get(\"a\"); return (deliver); }",
    );
    let mut arena = Arena::default();
    let task = {
        let host = request(&arena);
        loaded.recv(&host);
        host.into_task()
    };
    arena.reset();
    let host = MapHost::new(&arena, &NoWorld).with_task(task);
    loaded.deliver(&host);
    assert_eq!(host.lines(Message::Resp), ["r: 1kept"]);
}

#[test]
fn variables_are_of_their_types() {
    value_after("var.set(\"a\", \"x\" + req.url);", "var.get(\"a\") + var.get_string(\"a\")", "x/ax/a");
    value_after("var.set_string(\"a\", req.http.no);", "\"[\" + var.get(\"a\") + \"]\"", "[]");
    value_after("var.set_int(\"a\", 3);", "var.get_int(\"a\") + 1", "4");
    value_after("var.set_int(\"a\", 3);", "\"\" + var.get_real(\"a\") + var.get(\"a\")", "0.000");
    value_after(
        "var.set_real(\"a\", 1.5); var.set_duration(\"b\", 2m);",
        "var.get_real(\"a\") + \" \" + var.get_duration(\"b\")",
        "1.500 120.000",
    );
    value_after(
        "var.set_ip(\"a\", std.ip(\"1.2.3.4\"));",
        "var.get_ip(\"a\") + \" \" + var.get_ip(\"b\")",
        "1.2.3.4 0.0.0.0",
    );
    value_after("var.set_backend(\"a\", other);", "\"\" + var.get_backend(\"a\") + var.get_backend(\"b\")", "other");
    value_after("var.set(\"a\", \"x\"); var.set_int(\"a\", 1);", "var.get_int(\"a\") + var.get(\"a\")", "1");
    value_after("var.set(\"a\", \"x\"); var.clear();", "\"[\" + var.get(\"a\") + \"]\"", "[]");
    recv("if (!var.get(\"no\")) { set req.http.r = \"absent\"; }", "r: absent");
}

#[test]
fn global_variables_are_for_all() {
    recv("var.global_set(\"of this test\", req.url); var.global_set(req.http.no, \"x\");", "");
    value("var.global_get(\"of this test\") + var.global_get(req.http.no)", "/a");
    recv("var.global_set(\"of this test\", req.http.no);", "");
    recv("if (!var.global_get(\"of this test\")) { set req.http.r = \"absent\"; }", "r: absent");
}

#[test]
fn lines_of_a_header_are_changed_one_by_one() {
    let lists = |statements: &str, expect: &str| {
        let collect = "std.collect(req.http.list); set req.http.r = req.http.list; unset req.http.list;";
        recv(&format!("{statements} {collect}"), &format!("r: {expect}"));
    };
    lists("header.append(req.http.LIST, \"four\" + req.http.no);", "one, two, three, four");
    lists("header.remove(req.http.list, \"^t\");", "one");
    lists("header.remove(req.http.list, \"no\");", "one, two, three");
    lists("header.append(req.http.list, \"\"); header.remove(req.http.list, \"\");", "");
    lists("header.copy(req.http.list, req.http.list);", "one, two, three, one, two, three");
    lists(
        "header.copy(req.http.list, req.http.new); std.collect(req.http.new, \"+\"); set req.http.list = req.http.new; unset req.http.new;",
        "one+two+three",
    );
    value("header.get(req.http.list, \"^t\") + header.get(req.http.list, \"no\")", "two");
    recv("if (!header.get(req.http.no, \"\")) { set req.http.r = \"absent\"; }", "r: absent");
    value("header.get(header.dyn(req, \"LI\" + \"ST\"), \"^t\")", "two");
    recv(
        "header.append(req.http.x, {\"a\nb\"});",
        "t.vcl:2:16: x cannot be \"a\\nb\": it holds a control byte (in vcl_recv)",
    );
}

#[test]
fn whole_lines_are_rewritten() {
    recv("header.regsub(req, \"^(?i)list: (t.*)\", \"List: <\\1>\");", "List: <two>, List: <three>");
    recv("header.regsub(req, \"^list: \", \"x: \");", "x: two");
    recv(
        "set req.http.aa = \"aa\"; header.regsub(req, \"a\", \"e\", true);",
        "Cookie: e=1; b=2; session=x; c=3, ee: ee",
    );
    recv("set req.http.q = \"1\"; header.regsub(req, \"^q: .*\", \"\");", "");
    let no_header = |made: &str, what: &str| {
        recv(&format!("header.regsub(req, \"^list.*\", \"{made}\");"), &format!("t.vcl:2:16: {what} (in vcl_recv)"));
    };
    no_header("nothing", "header.regsub() made \"nothing\", which is no header");
    no_header(": x", "\"\" cannot be a header's name");
}

#[test]
fn texts_are_counted_and_compared() {
    value("str.count(\"12345\") + \" \" + str.count(req.http.no)", "5 -1");
    value("\"\" + str.startswith(\"haystack\", \"hay\") + str.startswith(\"hay\", \"haystack\")", "truefalse");
    value("\"\" + str.endswith(\"haystack\", \"stack\") + str.endswith(\"haystack\", \"hay\")", "truefalse");
    value(
        "\"\" + str.contains(\"haystack\", \"yst\") + str.contains(\"a\", \"\") + str.contains(req.http.no, \"\")",
        "truetruefalse",
    );
    value("str.take(\"haystack\", 3) + str.take(\"haystack\", 3, -3)", "hayack");
    value("str.reverse(\"abc\") + str.reverse(req.http.no)", "cba");
    value("str.split(\"a b\tc\", 3) + str.split(\"a,b,c\", -3, \",\")", "ca");
    value("\"\" + str.token_intersect(\"a, b\", \"c b\") + str.token_intersect(\"a b\", \"a;b\", \";\")", "truefalse");
}

#[test]
fn purges_reach_the_cache() {
    let check = |call: &str, expect: &[&str], count: &str| {
        let loaded = load(&format!("sub vcl_hit {{ set req.http.r = {call}; return (deliver); }}"));
        let arena = Arena::default();
        let host = request(&arena);
        loaded.hit(&host);
        assert_eq!(*host.purges.borrow(), expect, "{call}");
        assert!(host.lines(Message::Req).contains(&format!("r: {count}")), "{call}");
    };
    check("purge.hard()", &["this Hard"], "1");
    check("purge.soft()", &["this Soft { ttl_s: 0.0, grace_s: None, keep_s: None }"], "1");
    check("purge.soft(1s, 2s, 0s)", &["this Soft { ttl_s: 1.0, grace_s: Some(2.0), keep_s: Some(0.0) }"], "1");
    check("xkey.purge(\"a, b,\" + \" c\")", &["a Hard", "b Hard", "c Hard"], "3");
    check("xkey.purge(req.http.no)", &[], "0");
    check("xkey.softpurge(\"a\")", &["a Soft { ttl_s: 0.0, grace_s: None, keep_s: None }"], "1");
}

#[test]
fn keys_are_throttled() {
    let key = "\"of this test\", 2, 1h";
    let denied = format!("vsthrottle.is_denied({key})");
    value(&format!("\"\" + vsthrottle.remaining({key}) + {denied} + {denied} + {denied}"), "2falsefalsetrue");
    value(&format!("\"\" + vsthrottle.is_denied(\"of this test\", 3, 1h) + {denied}"), "falsetrue");
    recv(&format!("vsthrottle.return_token({key}); set req.http.r = {denied};"), "r: false");
    recv(&format!("vsthrottle.remove_bucket({key}); set req.http.r = vsthrottle.remaining({key});"), "r: 2");
    let absent = "req.http.no, 2, 1h";
    value(&format!("\"\" + vsthrottle.is_denied({absent}) + vsthrottle.remaining({absent})"), "true-1");
    let blocking = "\"blocked in this test\", 1, 1h, 2h";
    recv(
        &format!(
            "if (!vsthrottle.is_denied({blocking}) && vsthrottle.is_denied({blocking})) \
             {{ set req.http.r = vsthrottle.blocked({blocking}) + vsthrottle.blocked({absent}, 1s); }}"
        ),
        "r: 7199.000",
    );
}
