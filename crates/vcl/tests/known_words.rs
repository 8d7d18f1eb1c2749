//! Where Varnish's compiler has a phrase that its users search the web for, ours is the same.

use vcl::{Included, NoIncludes};

fn check(body: &str, expect: &str) {
    let text = format!("vcl 4.1; import std; import directors;\nbackend b none;\n{body}\n");
    let first = Included { name: "t.vcl".to_owned(), bytes: text.into_bytes() };
    let checked = vcl::check(first, &NoIncludes);
    let said: Vec<&str> = checked.diagnostics.iter().map(|report| &*report.what).collect();
    assert!(said.contains(&expect), "{body}: {said:?}");
}

fn recv(body: &str, expect: &str) {
    check(&format!("sub vcl_recv {{ {body} }}"), expect);
}

#[test]
fn names_and_types() {
    recv("set req.grace = \"x\";", "Expression has type STRING, expected DURATION");
    check("sub vcl_hit { set obj.http.x = \"1\"; }", "Variable is read only.");
    recv("set req.hash_always_miss = 1.5;", "Expression has type REAL, expected BOOL");
    recv("if (req.url ~ req.http.x) { }", "Expression has type STRING, expected REGEX");
    recv("if (req.url ~ !\"a\") { }", "Unknown token '!' when looking for REGEX");
    recv("set req.http.x = \"a\" + !\"b\";", "`!` stands before a condition, not before a value");
    check("sub a { } sub a { }", "Subroutine 'a' redefined");
    check("backend b none;", "Backend 'b' redefined");
    check("probe p { } probe p { }", "Probe 'p' redefined");
    check("acl p { } acl p { }", "ACL 'p' redefined");
    check(
        "sub vcl_init { new a.b = directors.random(); }",
        "Name of VCL object, 'a.b', contains illegal character '.'",
    );
    recv("return;", "Expected '(' got ';'");
    recv("if (std.ip(\"x\", \"1::2::3\") == \"1.2.3.4\") { }", "`1::2::3` could not be resolved to an IP address");
}

#[test]
fn words_of_the_text() {
    check("/* a /* b */", "a /* ... */ comment contains /*");
    recv("set req.http.x = 1234567890123456;", "Too many digits for integer.");
    recv("set req.http.x = 1.2345;", "Too many digits for real.");
    for (blob, expect) in [
        (":a:", "BLOB must have n*4 base64 characters"),
        (":bbbbaa:", "BLOB must have n*4 base64 characters"),
        (":aaaa=aa:", "Wrong padding ('=') in BLOB"),
        (":aaaaa=a:", "Wrong padding ('=') in BLOB"),
        (":a===:", "Wrong padding ('=') in BLOB"),
        (":aa?:", "Illegal BLOB character: '?'"),
        (":AB==:", "Illegal BLOB character: 'B' leaves bits over"),
        (":AAB=:", "Illegal BLOB character: 'B' leaves bits over"),
        (":aaaa", "Missing colon at end of BLOB"),
    ] {
        recv(&format!("set req.http.x = {blob}"), expect);
    }
    let text = b"vcl 4.1; import blob; backend b none; sub vcl_recv { set req.http.x = blob.encode(blob=:AA==:) + blob.encode(blob=:AAQ=:); }";
    let first = Included { name: "t.vcl".to_owned(), bytes: text.to_vec() };
    assert!(vcl::check(first, &NoIncludes).is_good());
}
