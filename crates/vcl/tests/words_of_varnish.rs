//! What Varnish's compiler would say stands beside what larder says: whoever searches for the one finds the other.

use vcl::{Included, NoIncludes};

/// The words of all mistakes of a text, in its order.
fn words(text: &str) -> Vec<String> {
    let first = Included { name: "t.vcl".to_owned(), bytes: text.as_bytes().to_vec() };
    let checked = vcl::check(first, &NoIncludes);
    checked.diagnostics.into_iter().filter_map(|found| found.in_varnish.map(String::from)).collect()
}

fn check(text: &str, expect: &[&str]) {
    assert_eq!(words(&format!("vcl 4.1; import directors; backend b none; {text}")), expect, "{text}");
}

fn recv(text: &str, expect: &str) {
    check(&format!("sub vcl_recv {{ {text} }}"), &[expect]);
}

#[test]
fn what_cannot_be_read() {
    recv("set req.url >>= 2;", "Expected '=' got '>>'");
    recv("set req.url = \"foo\" if \"bar\";", "Expected ';' got 'if'");
    recv("set req.\"http\".x = \"a\";", "Expected '=' got '.'");
    recv("ban(<<);", "Unknown token '<<' when looking for STRING");
    recv("kluf;", "Symbol not found: 'kluf'");
    recv("discard;", "Symbol not found: 'discard'");
    check("sub vcl_recv { return (pipe(x); }", &["Arguments not allowed.", "Expected ')' got ';'"]);
    check("backend 0a none;", &["Expected ID got '0'"]);
    check("acl a { \"10.1.2\" ); } sub vcl_recv { if (client.ip ~ a) {} }", &["Expected ';' got ')'"]);
    check("acl a + log { }", &["Expected a flag at:"]);
    check("sub vcl_init { new d = directors.hash(); d; }", &["Expected '.' got ';'"]);
    // What may begin a text is none of these.
    check("sub vcl_recv { ban(\"a\"); ban((\"a\") + \"b\"); }", &[]);
}

#[test]
fn what_names_mean() {
    recv("set req.foobar = 3;", "Symbol not found: 'req.foobar'");
    recv("set req.http.x = req.foo;", "Unknown property 'foo' for type HTTP");
    recv("set req.http.x = mu;", "Symbol not found: 'mu'");
    recv("set req.backend_hint = s-1;", "Undefined backend s-1, first reference:");
    recv("ban_hash(if);", "Symbol not found: 'ban_hash'");
    recv("set req.http.{\"line\nbreak\"} = \"x\";", "Invalid character '\\n' in header name");
    recv("set req.backend_hint = directors.hash.backend(\"a\");", "Syntax error");
    recv("directors.hash.backend(\"a\");", "Syntax error");
    recv("if (client.ip ~ b) {}", "Name b must have type 'acl'.");
    recv("return (vcl(vcl_recv));", "Symbol 'vcl_recv' has wrong type (sub), expected vcl:");
    recv("set req.esi = false;", "Symbol not found: 'req.esi' (Only available when VCL syntax <= 4.0)");
    let old = |text: &str| words(&format!("vcl 4.0; backend b none; sub vcl_deliver {{ {text} }}"));
    let only = "(Only available when 4.1 <= VCL syntax)";
    assert_eq!(old("set resp.http.x = sess.xid;"), [format!("Symbol not found: 'sess.xid' {only}")]);
    assert_eq!(old("set resp.do_esi = false;"), [format!("Symbol not found: 'resp.do_esi' {only}")]);
    assert_eq!(old("set resp.http.\"x\" = \"y\";"), ["Quoted headers are available for VCL >= 4.1"]);
}

#[test]
fn what_is_not_allowed() {
    recv("unset req.restarts;", "Variable cannot be unset.");
    check("sub vcl_backend_fetch { set bereq.body = \"x\"; }", &["Variable cannot be set."]);
    check("sub vcl_backend_response { set beresp.do_gzip += 1; }", &["Expected '=' got '+='"]);
    recv("return (synth);", "Missing argument.");
    recv("return (foobar);", "Expected return action name.");
    recv("synthetic(\"x\");", "Not a valid action in subroutine 'vcl_recv'");
    recv("set req.http.x = beresp.ttl;", "Not available in subroutine 'vcl_recv'.");
    recv("if (client.ip > server.ip) {}", "Operator > not possible on IP");
}

#[test]
fn definitions() {
    let acl = |text: &str, expect: &str| {
        check(&format!("acl a {{ {text} }} sub vcl_recv {{ if (client.ip ~ a) {{}} }}"), &[expect]);
    };
    acl("\"10.1.2.3\"/33;", "Too wide mask (/33) for IPv4 address");
    acl("\"1::2\"/129;", "Too wide mask (/129) for IPv6 address");
    acl("\"1.2.3.4\"; !\"1.2.3.4\";", "Conflicting ACL entries:");
    acl("\"...com\";", "DNS lookup(...com): not a name");
    acl("\"10.0.1.0/1bc\";", ".../mask is not numeric.");
    acl("\"10.0.1.0/22\" / 22;", "/mask only allowed once");
    check("acl a +foobar { } sub vcl_recv { if (client.ip ~ a) {} }", &["Unknown ACL flag:"]);
    let probe = |text: &str, expect: &str| {
        check(&format!("backend c {{ .host = \"::1\"; .probe = {{ {text} }} }} unused c;"), &[expect])
    };
    probe(".url = \"/\"; .request = \"a\" \"b\";", "Probe request redefinition at:");
    probe(".timeout = \"120s\";", "Expected CNUM got '\"120s\"'");
    check("backend c none;", &["Unused backend c, defined:"]);
    check("sub c { }", &["Unused sub c, defined:"]);
}

#[test]
fn what_fails_when_it_runs_is_warned_of_and_not_refused() {
    let codes = |text: &str| -> Vec<&'static str> {
        let first = Included { name: "t.vcl".to_owned(), bytes: text.as_bytes().to_vec() };
        vcl::check(first, &NoIncludes).diagnostics.iter().map(|found| found.code.name()).collect()
    };
    let program = |inside: &str| {
        format!(
            "vcl 4.1; import directors; backend b none; sub vcl_init {{ new p = directors.shard_param(); }} {inside}"
        )
    };
    let lookup = "sub vcl_recv { set req.backend_hint = directors.lookup(\"b\"); }";
    assert_eq!(codes(&program(lookup)), ["fails-here"]);
    assert_eq!(codes(&program("sub vcl_recv { p.set(alt=1); }")), ["fails-here"]);
    assert_eq!(codes(&program("sub vcl_backend_fetch { p.set(alt=1); }")), Vec::<&str>::new());
}

/// Without being asked larder takes such an entry as it is meant, and warns.
#[test]
fn bits_behind_a_mask_are_refused_by_who_asks_for_that() {
    let acl = |flag: &str| format!("acl a {flag} {{ \"1.2.3.4\"/24; }} sub vcl_recv {{ if (client.ip ~ a) {{}} }}");
    check(&acl("+pedantic"), &["Non-zero bits in masked part"]);
    check(&acl(""), &[]);
    check(&acl("-pedantic"), &[]);
}
