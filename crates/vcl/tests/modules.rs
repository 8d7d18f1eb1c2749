//! What the functions of the built-in modules do, over a host of plain lists. What Varnish 7.1 and varnish-modules 0.20
//! say to the same is what is expected, where they could be asked.

use std::sync::Arc;

use vcl::*;

const HEAD: &str = "vcl 4.1; import std; import directors; import cookie; import header; import var; import str; \
    import blob; import xkey; import purge; import vsthrottle; import saintmode; import bodyaccess; import unix; \
    import proxy; import h2; import vtc; import dynamic; import tls; \
    backend a { .host = \"127.0.0.1\"; } backend b { .host = \"127.0.0.1\"; } backend c { .host = \"127.0.0.1\"; } ";

fn load(text: &str) -> Arc<Loaded> {
    let text = format!("{HEAD} {text}");
    let checked = check(Included { name: "t.vcl".to_owned(), bytes: text.into_bytes() }, &NoIncludes);
    let shown: Vec<String> = checked.diagnostics.iter().map(|d| draw(d, &checked.sources, false)).collect();
    let program = checked.program.unwrap_or_else(|| panic!("{}", shown.join("\n")));
    Loaded::load(program, checked.sources, &NoWorld).unwrap_or_else(|why| panic!("{why}"))
}

/// Runs a vcl_recv, and shows what `req.http.r` became, or the verdict.
fn value_after(init: &str, body: &str, value: &str) -> String {
    let loaded = load(&format!(
        "sub vcl_init {{ {init} return (ok); }} sub vcl_recv {{ {body} set req.http.r = {value}; return (hash); }}"
    ));
    let arena = Arena::default();
    let host = host(&arena);
    match loaded.recv(&host) {
        subroutine_verdicts::RecvVerdict::Hash => {}
        other => return format!("{other:?}"),
    }
    let name = HeaderName::new(b"r");
    String::from_utf8_lossy(host.header(Message::Req, &name).unwrap_or_default()).into_owned()
}

fn host(arena: &Arena) -> MapHost<'_> {
    MapHost::new(arena, &NoWorld)
        .with_variable(VariableId::REQ_URL, Plain::Text(Some(b"/a")))
        .with_variable(VariableId::REQ_METHOD, Plain::Text(Some(b"GET")))
        .with_variable(VariableId::REQ_HASH, Plain::Blob(Some(&[0x80, 0, 0, 0, 1])))
        .with_header(Message::Req, "Host", "www.example:8080")
}

fn check_value(body: &str, value: &str, expect: &str) {
    assert_eq!(value_after("", body, value), expect, "{body} {value}");
}

#[test]
fn cookies_are_parsed_changed_and_written() {
    let parsed = "cookie.parse(\"a=1; b=2;c=3 ; foo; d=4; =5; e=; a=9; f==x;  g = h ;i\");";
    let jar = "\"[\" + cookie.get_string() + \"]\"";
    check_value(parsed, jar, "[a=9; b=2; c=3 ; foo; d=4; f==x; g = h ;]");
    check_value(parsed, "cookie.get(\"a\") + \"|\" + cookie.get(\"foo; d\") + \"|\" + cookie.get(\"f\")", "9|4|=x");
    check_value(parsed, "\"\" + cookie.isset(\"a\") + cookie.isset(\"x\") + cookie.isset(\"e\")", "truefalsefalse");
    check_value(
        "cookie.parse(\"a=1\"); cookie.set(\"z\", \"26\"); cookie.set(\"a\", \"A\"); cookie.set(\"\", \"x\"); cookie.set(\"y\", \"\");",
        jar,
        "[a=A; z=26;]",
    );
    let five = "cookie.parse(\"a=1; b=2; c=3; aa=4; ab=5\");";
    check_value(&format!("{five} cookie.keep(\"a,c ,ab, x\");"), jar, "[a=1; ab=5;]");
    check_value(&format!("{five} cookie.filter(\"a, c ,, ab\");"), jar, "[b=2; c=3; aa=4;]");
    check_value(&format!("{five} cookie.keep_re(\"^a\");"), jar, "[a=1; aa=4; ab=5;]");
    check_value(&format!("{five} cookie.filter_re(\"^a\");"), jar, "[b=2; c=3;]");
    check_value(&format!("{five} cookie.delete(\"a\");"), jar, "[b=2; c=3; aa=4; ab=5;]");
    check_value(five, "cookie.get_re(\"b\") + cookie.get_re(\"x\")", "2");
    check_value(&format!("{five} cookie.clean();"), jar, "[]");
    check_value("cookie.parse(\"a=1\"); cookie.parse(\"\"); cookie.parse(req.http.no);", jar, "[a=1;]");
    check_value("", "cookie.format_date(std.time(\"2020-01-01T00:00:00\"), 1d)", "Thu, 02 Jan 2020 00:00:00 GMT");
}

#[test]
fn single_lines_of_headers() {
    let three = "header.append(req.http.X, \"a\" + req.http.no + \"b\"); header.append(req.http.X, \"c\"); header.append(req.http.X, req.http.no);";
    check_value(
        three,
        "header.get(req.http.X, \"c\") + \"|\" + header.get(req.http.X, \"^a\") + \"|\" + header.get(req.http.X, \"zz\")",
        "c|ab|",
    );
    check_value(
        &format!("{three} set req.http.Y = \"old\"; header.copy(req.http.X, req.http.Y); std.collect(req.http.Y);"),
        "req.http.Y",
        "old, ab, c, ",
    );
    check_value(
        &format!("{three} header.remove(req.http.X, \"^c?$\"); std.collect(req.http.X);"),
        "req.http.X",
        "ab, ",
    );
    check_value(
        &format!("{three} header.regsub(req, \"^X: (.)\", \"Z: <\\1>\"); std.collect(req.http.Z);"),
        "req.http.Z + req.http.X",
        "<a>b, <c>",
    );
    check_value(
        "set req.http.n = \"HOST\";",
        "header.dyn(req, req.http.n) + header.dyn(req, \"no\")",
        "www.example:8080",
    );
    check_value("header.append(header.dyn(req, \"Dyn\"), \"x\");", "req.http.dyn", "x");
    assert!(
        value_after("", "header.append(header.dyn(req, \"a b\"), \"x\");", "\"\"")
            .contains("cannot be a header's name")
    );
    assert!(value_after("", "header.append(req.http.x, {\"a\nb\"});", "\"\"").contains("control byte"));
}

#[test]
fn variables_of_the_transaction_and_of_all() {
    let set = "var.set(\"a\", \"1\"); var.set_int(\"i\", 5); var.set_string(\"s\", \"x\"); var.set_real(\"r\", 1.5); \
        var.set_duration(\"d\", 5s); var.set_ip(\"ip\", std.ip(\"1.2.3.4\")); var.set_backend(\"b\", b);";
    check_value(
        set,
        "var.get(\"a\") + var.get_string(\"a\") + var.get(\"s\") + var.get_int(\"i\") + var.get_real(\"r\")",
        "11x51.500",
    );
    check_value(set, "\"\" + var.get_duration(\"d\") + var.get_ip(\"ip\") + var.get_backend(\"b\")", "5.0001.2.3.4b");
    check_value(
        set,
        "\"[\" + var.get(\"i\") + var.get_int(\"a\") + var.get(\"no\") + var.get_real(\"no\") + \"]\"",
        "[00.000]",
    );
    check_value(&format!("{set} var.clear();"), "\"[\" + var.get(\"a\") + \"]\"", "[]");
    check_value(
        "var.global_set(\"modules test\", \"x\");",
        "var.global_get(\"modules test\") + var.global_get(\"modules no\")",
        "x",
    );
    let many = "var.set(\"x\", var.get(\"x\") + var.get(\"x\") + \"0123456789\");".repeat(20);
    assert!(value_after("", &many, "\"\"").contains("more than"));
}

#[test]
fn parts_of_texts() {
    check_value("", "\"\" + str.count(\"abc\") + str.count(req.http.no)", "3-1");
    check_value(
        "",
        "\"\" + str.startswith(\"abc\", \"ab\") + str.endswith(\"abc\", \"b\") + str.contains(\"abc\", \"b\") + str.contains(req.http.no, \"\")",
        "truefalsetruefalse",
    );
    check_value("", "str.take(\"abcdef\", 2, -3) + str.reverse(\"abc\") + str.split(\"a,b;c\", 2, \",;\")", "decbab");
    check_value("", "\"\" + str.token_intersect(\"a, b\", \"c b\") + str.token_intersect(\"a\", \"b\")", "truefalse");
}

#[test]
fn blobs_are_written_and_read() {
    check_value("", "blob.encode(encoding=HEX, blob=blob.decode(BASE64, encoded=\"Zm9v\" + \"YmE=\"))", "666f6f6261");
    check_value(
        "",
        "blob.transcode(URL, IDENTITY, encoded=\"a%20b\") + blob.transcode(length=2, encoded=\"abcd\")",
        "a bab",
    );
    check_value("", "\"\" + blob.length(:Zm9v:) + blob.equal(:Zm9v:, blob.decode(encoded=\"foo\"))", "3true");
    check_value("", "blob.encode(blob=blob.sub(:Zm9vYmFy:, 2B, 3B))", "ba");
    assert!(
        value_after("", "", "blob.encode(blob=blob.sub(:Zm9v:, 9B))")
            .contains("requires more bytes than blob length 3")
    );
    // A text ends where a NUL stands.
    assert_eq!(
        value_after("", "", "blob.transcode(decoding=HEX, encoding=IDENTITY, encoded=\"6100620a\") + \"!\""),
        "a!"
    );
    assert!(value_after("", "", "blob.transcode(HEX, encoded=\"xx\")").contains("illegal encoding beginning with"));
    let quoted = value_after("", "", "blob.transcode(HEX, encoded=\"g\" + req.http.host)");
    assert!(quoted.contains(r#"beginning with \"g\""#), "the first of several is quoted, as by Varnish: {quoted}");
    let cut = value_after("", "", "blob.transcode(URL, length=2, encoded=\"%20\")");
    assert!(cut.contains(r#"beginning with \"%20\""#), "{cut}");
    assert_eq!(value_after("new k = blob.blob(HEX, \"666f6f\");", "", "k.encode() + k.get()"), "foo:Zm9v:");
}

#[test]
fn what_is_purged_is_the_hosts() {
    let loaded = load(
        "sub vcl_hit { set req.http.r = purge.soft(1s, 2s) + purge.hard() + xkey.purge(\"a b,c\") + xkey.softpurge(\" d \"); }",
    );
    let arena = Arena::default();
    let host = host(&arena);
    assert_eq!(loaded.hit(&host), subroutine_verdicts::HitVerdict::Deliver);
    let soft = "Soft { ttl_s: 1.0, grace_s: Some(2.0), keep_s: None }";
    let soft_tag = "Soft { ttl_s: 0.0, grace_s: None, keep_s: None }";
    let expect = [
        format!("this {soft}"),
        "this Hard".to_owned(),
        "a Hard".to_owned(),
        "b Hard".to_owned(),
        "c Hard".to_owned(),
        format!("d {soft_tag}"),
    ];
    assert_eq!(*host.purges.borrow(), expect);
    assert_eq!(host.header(Message::Req, &HeaderName::new(b"r")), Some(b"6".as_slice()));
}

/// The names of the backends that so many choices give, with some of them sick.
fn chosen(init: &str, expression: &str, sick: &[u32], count: usize) -> String {
    let loaded = load(&format!(
        "sub vcl_init {{ {init} return (ok); }} sub vcl_recv {{ set req.backend_hint = {expression}; }}"
    ));
    let arena = Arena::default();
    let host = host(&arena);
    host.sick.borrow_mut().extend(sick.iter().map(|id| typed_program::BackendId(*id)));
    let mut names = Vec::new();
    for _ in 0..count {
        loaded.recv(&host);
        let hint = host.variable(VariableId::REQ_BACKEND_HINT).backend();
        let id = loaded.resolve(&host, hint);
        names.push(id.map_or("-".to_owned(), |id| loaded.backend_name(BackendRef::Named(id)).into_owned()));
    }
    names.join("")
}

#[test]
fn directors_choose_among_the_healthy() {
    let three = |class: &str, weights: [&str; 3]| {
        let add = |(name, weight): (&str, &str)| format!("d.add_backend({name}{weight});");
        let added: Vec<String> = ["a", "b", "c"].into_iter().zip(weights).map(add).collect();
        format!("new d = directors.{class}; {}", added.join(" "))
    };
    let turn = three("round_robin()", [""; 3]);
    assert_eq!(chosen(&turn, "d.backend()", &[], 6), "abcabc");
    assert_eq!(chosen(&turn, "d.backend()", &[1], 4), "acac");
    assert_eq!(chosen(&turn, "d.backend()", &[0, 1, 2], 2), "--");
    assert_eq!(chosen(&format!("{turn} d.remove_backend(b);"), "d.backend()", &[], 4), "acac");
    let order = three("fallback()", [""; 3]);
    assert_eq!(chosen(&order, "d.backend()", &[], 3), "aaa");
    assert_eq!(chosen(&order, "d.backend()", &[0], 3), "bbb");
    assert_eq!(chosen(&three("random()", [", 1", ", 0", ", 1"]), "d.backend()", &[0], 5), "ccccc");
    let spread = chosen(&three("random()", [", 1", ", 1", ", 2"]), "d.backend()", &[], 200);
    let count = |name: char| spread.chars().filter(|c| *c == name).count();
    assert!(count('a') > 20 && count('b') > 20 && count('c') > 60, "{spread}");
    let hash = three("hash()", [""; 3]);
    let by = |key: &str, sick: &[u32]| chosen(&hash, &format!("d.backend(\"{key}\")"), sick, 1);
    assert_eq!((by("/a", &[]), by("/a", &[])), (by("/a", &[]), by("/a", &[])));
    // Asked of Varnish 7.1, with backends of the same names.
    let six: Vec<String> = (0..6).map(|n| by(&format!("/{n}"), &[])).collect();
    assert_eq!(six.concat(), "cbcaab");
    let keys: Vec<String> = (0..30).map(|n| by(&format!("/{n}"), &[])).collect();
    assert!(["a", "b", "c"].iter().all(|name| keys.iter().any(|key| key == name)), "{keys:?}");
    assert!((0..30).all(|n| by(&format!("/{n}"), &[1]) != "b"));
    // Behind one another, and one that stands behind itself, which ends.
    assert_eq!(
        chosen(&format!("{turn} new e = directors.fallback(); e.add_backend(d.backend());"), "e.backend()", &[0], 3),
        "bcb"
    );
    assert_eq!(chosen("new d = directors.fallback(); d.add_backend(d.backend());", "d.backend()", &[], 1), "-");
    assert_eq!(
        chosen("new d = directors.fallback(); d.add_backend(directors.lookup(\"c\"));", "d.backend()", &[], 1),
        "c"
    );
    assert_eq!(chosen("new d = directors.round_robin();", "d.backend()", &[], 1), "-");
}

/// What is taken out of a sticky director while requests are served does not move the one that serves, unless it is that one:
/// then the next has its turn. `s` and `d` are the same backends.
#[test]
fn a_sticky_director_stays_where_it_is_when_another_is_taken_out() {
    let sticky = "new d = directors.fallback(sticky = true); d.add_backend(a); d.add_backend(b); d.add_backend(c);";
    let loaded = load(&format!(
        "sub vcl_init {{ {sticky} }} sub vcl_recv {{ set req.backend_hint = d.backend(); \
         if (req.url == \"/a\") {{ d.remove_backend(a); }} if (req.url == \"/c\") {{ d.remove_backend(c); }} }}"
    ));
    let arena = Arena::default();
    let ask = |url: &'static str, sick: &[u32]| {
        let host = host(&arena).with_variable(VariableId::REQ_URL, Plain::Text(Some(url.as_bytes())));
        host.sick.borrow_mut().extend(sick.iter().map(|id| typed_program::BackendId(*id)));
        loaded.recv(&host);
        let id = loaded.resolve(&host, host.variable(VariableId::REQ_BACKEND_HINT).backend());
        id.map_or("-".to_owned(), |id| loaded.backend_name(BackendRef::Named(id)).into_owned())
    };
    assert_eq!(ask("/", &[0]), "b");
    assert_eq!(ask("/a", &[]), "b");
    assert_eq!(ask("/", &[]), "b", "a is gone, and b is where it was");
    assert_eq!(ask("/", &[1]), "c");
    assert_eq!(ask("/c", &[]), "b", "the one that served is gone, and behind it there is none");
}

/// As by Varnish 7.1, of which the words are.
#[test]
fn what_is_called_none_is_no_member_of_a_director() {
    for (class, rest) in [("round_robin", ""), ("fallback", ""), ("random", ", 1"), ("hash", ", 1"), ("shard", "")] {
        let init = format!("new d = directors.{class}(); d.add_backend(no{rest});");
        let text = format!("{HEAD} backend no none; sub vcl_init {{ {init} }}");
        let checked = check(Included { name: "t.vcl".to_owned(), bytes: text.into_bytes() }, &NoIncludes);
        let program = checked.program.expect("the program is lawful");
        let why = Loaded::load(program, checked.sources, &NoWorld).expect_err(class);
        assert!(why.contains("None backend cannot be added"), "{class}: {why}");
    }
}

#[test]
fn shards_are_those_of_varnish() {
    let ring = "new d = directors.shard(); d.add_backend(a); d.add_backend(b); d.add_backend(c); d.reconfigure(25);";
    let by = |arguments: &str, sick: &[u32]| chosen(ring, &format!("d.backend({arguments})"), sick, 1);
    // Asked of Varnish 7.1, with backends of the same names.
    let keys = ["0", "1", "1073741824", "2147483648", "3221225472", "4294967295"];
    let at = |extra: &str, sick: &[u32]| -> String {
        keys.iter().map(|key| by(&format!("by=KEY, key={key}{extra}"), sick)).collect()
    };
    assert_eq!(at("", &[]), SHARDS);
    assert_eq!(at(", alt=1", &[]), SHARDS_ALT);
    assert_eq!(by("by=URL", &[]), SHARD_OF_URL);
    assert_eq!(value_after(ring, "", "\"\" + d.key(\"hello\" + \" world\")"), SHARD_KEY);
    // The next stands in for one that is sick.
    let first = by("by=KEY, key=1", &[]);
    let sick = ["a", "b", "c"].iter().position(|name| *name == first).expect("it is one of them") as u32;
    assert_eq!(by("by=KEY, key=1", &[sick]), by("by=KEY, key=1, alt=1", &[]));
    assert_eq!(by("by=KEY, key=1, healthy=IGNORE", &[sick]), first);
    assert_eq!(by("by=KEY, key=1", &[0, 1, 2]), "-");
    // By chance, which is certain here, the next has a turn.
    assert_eq!(by("by=KEY, key=1, warmup=1.0", &[]), by("by=KEY, key=1, alt=1", &[]));
    // A client's request is not hashed yet.
    assert_eq!(by("by=HASH", &[]), SHARD_OF_URL);
    assert_eq!(by("by=BLOB, key_blob=:gAAAAA==:", &[]) + &by("by=BLOB, key_blob=:gA==:", &[]), "cb");
}

/// As by Varnish 7.1: the program goes on, and is told where there is something to tell.
#[test]
fn a_shard_director_passes_over_numbers_that_are_none_for_it() {
    let ring = "new d = directors.shard(); d.set_warmup(1.0); d.add_backend(a, weight=0.3); d.reconfigure(25);";
    assert_eq!(chosen(ring, "d.backend(by=KEY, key=1)", &[], 1), "a");
    assert_eq!(
        value_after(ring, "", "\"\" + d.reconfigure(0) + d.reconfigure(-1) + d.reconfigure(1)"),
        "falsefalsetrue"
    );
    let none = "\"\" + d.reconfigure(1) + d.clear() + d.reconfigure(1)";
    assert_eq!(value_after("new d = directors.shard();", "", none), "truetruefalse");
}

#[test]
fn shards_are_chosen_late_by_their_parameters() {
    let ring = "new d = directors.shard(); d.add_backend(a); d.add_backend(b); d.add_backend(c); d.reconfigure(25); \
        new p = directors.shard_param(); p.set(by=KEY, key=3221225472); d.associate(p.use());";
    assert_eq!(chosen(ring, "d.backend()", &[], 1), SHARDS[4..5]);
    assert_eq!(chosen(ring, "d.backend(by=KEY, key=0)", &[], 1), SHARDS[..1]);
    assert_eq!(
        value_after(
            ring,
            "",
            "p.get_by() + p.get_key() + p.get_alt() + p.get_warmup() + p.get_rampup() + p.get_healthy()"
        ),
        "KEY32212254720-1.000trueCHOSEN"
    );
    assert!(value_after(ring, "set req.backend_hint = d.backend(resolve=LAZY, alt=1);", "\"\"").contains("LAZY"));
    assert!(value_after(ring, "set req.backend_hint = d.backend(param=:Zm9v:);", "\"\"").contains("shard_param.use()"));
}

/// `d.backend(resolve=LAZY, …)` says how the director chooses when the fetch begins, wherever the call stands.
#[test]
fn a_shard_is_chosen_late_by_what_was_said_for_the_fetch() {
    let loaded = load(
        "sub vcl_init { new d = directors.shard(); d.add_backend(a); d.add_backend(b); d.add_backend(c); d.reconfigure(25); \
            new p = directors.shard_param(); p.set(by=KEY, key=0); new q = directors.shard_param(); \
            q.set(by=KEY, key=3221225472); d.associate(p.use()); } \
         sub vcl_backend_fetch { set bereq.backend = d.backend(resolve=LAZY); \
            if (bereq.url == \"/q\") { d.backend(resolve=LAZY, param=q.use()); } \
            if (bereq.url == \"/alt\") { d.backend(resolve=LAZY, alt=1); set bereq.http.now = d.backend(resolve=NOW); } \
            if (bereq.url == \"/hash\") { d.backend(resolve=LAZY, by=HASH); } \
            if (bereq.url == \"/url\") { d.backend(resolve=LAZY, by=URL); } }",
    );
    let arena = Arena::default();
    let chosen = |url: &'static str, hash: &'static [u8]| {
        let host = MapHost::new(&arena, &NoWorld)
            .with_variable(VariableId::BEREQ_URL, Plain::Text(Some(url.as_bytes())))
            .with_variable(VariableId::BEREQ_HASH, Plain::Blob(Some(hash)));
        loaded.backend_fetch(&host);
        let id = loaded.resolve(&host, host.variable(VariableId::BEREQ_BACKEND).backend()).expect("all are healthy");
        let now = host.header(Message::Bereq, &HeaderName::new(b"now")).map(<[u8]>::to_vec);
        (
            loaded.backend_name(BackendRef::Named(id)).into_owned(),
            now.map(|now| String::from_utf8_lossy(&now).into_owned()),
        )
    };
    let late = |of: &str| (of.to_owned(), None);
    assert_eq!(chosen("/", b"1234"), late(&SHARDS[..1]));
    assert_eq!(chosen("/q", b"1234"), late(&SHARDS[4..5]));
    let alt = &SHARDS_ALT[..1];
    assert_eq!(chosen("/alt", b"1234"), (alt.to_owned(), Some(alt.to_owned())));
    assert_eq!(chosen("/hash", &[0xc0, 0, 0, 0, 1]), late(&SHARDS[4..5]));
    assert_eq!(chosen("/url", b"1234"), late("a"));
}

const SHARDS: &str = "bbbccb";
const SHARDS_ALT: &str = "aacbaa";
const SHARD_OF_URL: &str = "a";
const SHARD_KEY: &str = "3922587618";

#[test]
fn a_saint_is_sick_for_what_it_answered_badly() {
    let loaded = load(
        "sub vcl_init { new s = saintmode.saintmode(a, 2); new d = directors.fallback(); d.add_backend(s.backend()); d.add_backend(b); } \
         sub vcl_backend_response { saintmode.denylist(20s); return (retry); }",
    );
    let arena = Arena::default();
    let host = |hash: &'static [u8]| {
        MapHost::new(&arena, &NoWorld)
            .with_variable(VariableId::BEREQ_HASH, Plain::Blob(Some(hash)))
            .with_variable(VariableId::BERESP_BACKEND, Plain::Backend(BackendRef::Named(typed_program::BackendId(0))))
    };
    let director = BackendRef::Director(typed_program::ObjectId(1));
    let chosen =
        |hash| loaded.resolve(&host(hash), director).map(|id| loaded.backend_name(BackendRef::Named(id)).into_owned());
    assert_eq!(chosen(b"one").as_deref(), Some("a"));
    loaded.backend_response(&host(b"one"));
    assert_eq!((chosen(b"one").as_deref(), chosen(b"two").as_deref()), (Some("b"), Some("a")));
    // Too much: it is sick for all.
    loaded.backend_response(&host(b"three"));
    assert_eq!(chosen(b"two").as_deref(), Some("b"));
    assert_eq!(
        value_after(
            "new s = saintmode.saintmode(a, 2);",
            "",
            "\"\" + s.denylist_count() + s.is_healthy() + s.backend()"
        ),
        "0trues"
    );
}

#[test]
fn the_connection_and_the_body() {
    let loaded = load(
        "sub vcl_recv { set req.http.r = unix.uid() + unix.user() + proxy.is_ssl() + proxy.authority() + h2.is() + tls.is_tls() + std.cache_req_body(1KB) + bodyaccess.len_req_body() + bodyaccess.rematch_req_body(\"a+\"); bodyaccess.log_req_body(\"b:\", 2); } sub vcl_hash { bodyaccess.hash_req_body(); }",
    );
    assert_eq!(loaded.request_body_bytes_usual(), Some(1024));
    let check = |body: Option<&'static [u8]>, expect: &str, logged: &[&str]| {
        let arena = Arena::default();
        let host = host(&arena);
        host.body.set(body);
        host.peer.set(body.map(|_| UnixPeer { user: 7, group: 8 }));
        loaded.recv(&host);
        let made = host.header(Message::Req, &HeaderName::new(b"r")).map(String::from_utf8_lossy);
        assert_eq!(made.as_deref(), Some(expect));
        assert_eq!(host.logged(LogKind::Program), logged);
        loaded.hash(&host);
        let hashed = host.hashed.borrow().first().cloned().flatten();
        assert_eq!(hashed.as_deref().filter(|_| body.is_some()), body);
    };
    check(Some(b"xaaay"), "7falsefalsefalsetrue51", &["b:xa", "b:aa", "b:y"]);
    assert_eq!(load("").request_body_bytes_usual(), None);
    check_value("", "\"\" + bodyaccess.len_req_body() + unix.gid()", "-1-1");
}

#[test]
fn backends_are_made_by_name() {
    let init = "new d = dynamic.director(port=\"8080\", ttl=60s, connect_timeout=1s);";
    let loaded = load(&format!(
        "sub vcl_init {{ {init} }} sub vcl_recv {{ set req.backend_hint = d.backend(req.http.which); set req.http.r = req.backend_hint; }}"
    ));
    let made = |which: &'static str| {
        let arena = Arena::default();
        let host = host(&arena).with_header(Message::Req, "which", which);
        loaded.recv(&host);
        let hint = host.variable(VariableId::REQ_BACKEND_HINT).backend();
        (
            loaded.resolve(&host, hint),
            String::from_utf8_lossy(host.header(Message::Req, &HeaderName::new(b"r")).unwrap_or_default()).into_owned(),
        )
    };
    let first = made("One.example");
    assert_eq!(first, (Some(typed_program::BackendId(3)), "d(one.example:8080)".to_owned()));
    assert_eq!(made("one.example"), first);
    assert_eq!(made("").1, "d(www.example:8080)");
    assert_eq!(made("a b").0, None);
    let backend = loaded.dynamic_backend(typed_program::BackendId(3)).expect("it was made");
    let endpoint = backend.backend.endpoint.clone().expect("it has one");
    assert_eq!((backend.lookup_interval_s, endpoint.connect_timeout_s), (60.0, Some(1.0)));
    assert_eq!(
        endpoint.address,
        typed_program::Address::Host { host: "one.example".to_owned(), port: Some("8080".to_owned()) }
    );
    assert_eq!(loaded.dynamic_backend(typed_program::BackendId(0)), None);
}

#[test]
fn the_tests_own_module() {
    check_value("", "vtc.typesize(\"ci\") + \"\" + vtc.workspace_overflowed(client)", "8false");
    assert!(value_after("", "", "\"\" + vtc.no_ip()").contains("an address that is none"));
    assert!(value_after("", "vtc.panic(\"no\");", "\"\"").contains("vtc.panic: no"));
    assert!(value_after("", "vtc.barrier_sync(\"x\");", "\"\"").contains("no barriers"));
}
