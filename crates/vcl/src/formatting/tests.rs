//! What comes out, and that it means what went in.

use super::*;
use crate::diagnostics::draw;

fn formatted(text: &str) -> Formatted {
    format(Included { name: "t.vcl".to_owned(), bytes: text.as_bytes().to_vec() }, Indent::Spaces(4))
}

/// The new text; once more it stays as it is.
fn check(text: &str, expect: &str) {
    let result = formatted(text);
    let shown = result.text.map(|text| String::from_utf8(text).expect("what was text is text"));
    assert_eq!(result.diagnostics, [], "{text}");
    assert_eq!(shown.as_deref(), Some(expect), "{text}");
    assert_eq!(formatted(expect).text.as_deref(), Some(expect.as_bytes()), "once more: {expect}");
}

#[test]
fn statements_stand_on_lines_of_their_own() {
    check(
        "vcl 4.1;\nsub a{set req.http.x=1+\"a\";if(b){return(hash);}elsif(c){call d ;}else{return(pass);}}sub d{}",
        "vcl 4.1;\nsub a {\n    set req.http.x = 1 + \"a\";\n    if (b) {\n        return (hash);\n    } elsif (c) {\n        \
         call d;\n    } else {\n        return (pass);\n    }\n}\n\nsub d {\n}\n",
    );
    check("sub a { { unset req . http . x ; } }", "sub a {\n    {\n        unset req.http.x;\n    }\n}\n");
    check("\n\n\nvcl 4.0;\n\n\n\nimport std;", "vcl 4.0;\n\nimport std;\n");
    check("sub a\n{\n\n  call b;\n\n\n  call c;\n\n}", "sub a {\n    call b;\n\n    call c;\n}\n");
    check(
        "sub a { if (b) { call c; }\n\n else\n if (d) { } }",
        "sub a {\n    if (b) {\n        call c;\n    } else if (d) {\n    }\n}\n",
    );
}

#[test]
fn blanks_stand_where_they_part_words() {
    let body =
        |text: &str, expect: &str| check(&format!("sub a {{\n{text}\n}}"), &format!("sub a {{\n    {expect}\n}}\n"));
    body("set x=a -b-c;", "set x = a - b-c;");
    body("set beresp.ttl=- 1s+120 s*2;", "set beresp.ttl = -1s + 120s * 2;");
    body("set x = - - 1;", "set x = - -1;");
    body("if(! a ~ \"b\"&&!( c||d )) { }", "if (!a ~ \"b\" && !(c || d)) {\n    }");
    body("return ( synth( 404,\"x\" ) ) ;", "return (synth(404, \"x\"));");
    body("return;", "return;");
    body("set x = std.ip( s = \"a\",resolve=false );", "set x = std.ip(s=\"a\", resolve=false);");
    body("set x = regsub (a,\"b\",\"c\").upper ();", "set x = regsub(a, \"b\", \"c\").upper();");
    body("set req.http.\"x.y\"+=:3q2+7w==:;", "set req.http.\"x.y\" += :3q2+7w==:;");
    body("set x = 7%4/2;", "set x = 7 % 4 / 2;");
    body("std.log ( {\"a  \nb\"} ) ;", "std.log({\"a  \nb\"});");
    check("include\t+ glob \"a\" ;import a as b from \"c\";", "include +glob \"a\";\nimport a as b from \"c\";\n");
    check(
        "acl a +log -pedantic +fold( -report ){!\"10.0.0.0\" / 8;( \"b\" ) ; ! ( \"c\"/9 );}",
        "acl a +log -pedantic +fold(-report) {\n    !\"10.0.0.0\"/8;\n    (\"b\");\n    !(\"c\"/9);\n}\n",
    );
    check(
        "backend a{.host=\"b\";.probe={.url=\"/\";.timeout=1 s;}.port = \"80\";}backend n none;",
        "backend a {\n    .host = \"b\";\n    .probe = {\n        .url = \"/\";\n        .timeout = 1s;\n    }\n    \
         .port = \"80\";\n}\n\nbackend n none;\n",
    );
}

#[test]
fn comments_stay_where_they_belong() {
    check(
        "# a \n\n\n//b\nsub a{ # c\n# d\nset x=1;# e\n\n\n/* f\n g */\n# h\n} # i\n# j\nsub b{}",
        "# a \n\n//b\nsub a { # c\n    # d\n    set x = 1; # e\n\n    /* f\n g */\n    # h\n} # i\n\n# j\nsub b {\n}\n",
    );
    check(
        "sub a{if(b) # c\n{call d;} # e\nelse{} if(f){}\n# g\nelse{}}",
        "sub a {\n    if (b) # c\n    {\n        call d;\n    } # e\n    else {\n    }\n    if (f) {\n    }\n    # g\n    \
         else {\n    }\n}\n",
    );
    check("sub a{if(b){}/* c */else{}}", "sub a {\n    if (b) {\n    } /* c */ else {\n    }\n}\n");
    check(
        "sub a{if(b # c\n&& d\n# e\n){} set x = # f\n1 ;}",
        "sub a {\n    if (b # c\n        && d\n        # e\n    ) {\n    }\n    set x = # f\n        1;\n}\n",
    );
    check("/* a */ sub b{/* c */ call d;/* e */}", "/* a */\nsub b { /* c */\n    call d; /* e */\n}\n");
    check("# only", "# only\n");
    check("", "");
}

#[test]
fn lines_that_the_author_broke_stay_broken() {
    check(
        "sub a{if(b ||\n(c\n&& d)){} set x = f(\ng,\n\nh\n); call\ne\n;}",
        "sub a {\n    if (b ||\n        (c\n            && d)) {\n    }\n    set x = f(\n        g,\n        h\n    );\n    call\n        \
         e;\n}\n",
    );
    check(
        "probe a{.request=\n\"GET / HTTP/1.1\"\n\"Host: a\";}",
        "probe a {\n    .request =\n        \"GET / HTTP/1.1\"\n        \"Host: a\";\n}\n",
    );
}

#[test]
fn long_lines_are_broken_at_their_loosest_operators() {
    let name = "req.http.a-name-of-thirty-characters";
    check(
        &format!("sub a{{if({name}&&({name}||{name})||{name}){{}}}}"),
        &format!("sub a {{\n    if ({name}\n        && ({name} || {name})\n        || {name}) {{\n    }}\n}}\n"),
    );
    check(
        &format!("sub a{{set x={name}+{name}+{name}+{name};}}"),
        &format!("sub a {{\n    set x = {name}\n        + {name}\n        + {name}\n        + {name};\n}}\n"),
    );
    check(
        &format!("sub a{{set x=regsub({name},{name},{name}+{name});}}"),
        &format!("sub a {{\n    set x = regsub({name},\n        {name},\n        {name} + {name});\n}}\n"),
    );
    let pattern = format!("\"{}\"", "x".repeat(120));
    check(
        &format!("sub a{{set x=regsub({name},{pattern},\"\");}}"),
        &format!("sub a {{\n    set x = regsub({name}, {pattern}, \"\");\n}}\n"),
    );
    let comment = format!("# {}", "x".repeat(120));
    check(&format!("sub a{{set x=b+c;{comment}\n}}"), &format!("sub a {{\n    set x = b + c; {comment}\n}}\n"));
}

#[test]
fn line_ends_and_bytes_are_the_files_own() {
    check("sub a {\r\n# b\r\ncall c; }\r\n", "sub a {\r\n    # b\r\n    call c;\r\n}\r\n");
    check("import a;\nsub b { }\r\n# c\r\n", "import a;\nsub b {\n}\n\n# c\n");
    let latin = b"sub a { set x = \"\xe9\"; } # \xe9".to_vec();
    let result = format(Included { name: "t.vcl".to_owned(), bytes: latin }, Indent::Tab);
    assert_eq!(result.text.as_deref(), Some(&b"sub a {\n\tset x = \"\xe9\";\n} # \xe9\n"[..]));
}

/// What is wrong, by code and line.
#[test]
fn a_broken_file_is_refused() {
    let check = |text: &str, expect: &str| {
        let result = formatted(text);
        assert_eq!(result.text, None, "{text}");
        let shown: Vec<String> = result.diagnostics.iter().map(|found| draw(found, &result.sources, false)).collect();
        assert!(shown.iter().any(|found| found.contains(expect)), "{text}: {shown:?}");
    };
    check("sub a {\nset x 1; }", "t.vcl:2:7: error[syntax]");
    check("sub a {\nset x = \"b; }", "error[unterminated]");
    check("sub a { call b; ", "error[unbalanced-brace]");
    check("sub a { C{ int i; }C }", "error[inline-c]");
    check("sub a { remove req.http.x; }", "error[old-vcl]");
    check("director a random { }", "error[old-vcl]");
    check("set x = 1:b;", "error[bad-literal]");
}

#[test]
fn parts_of_programs_are_formatted_too() {
    check(
        "set x=1;\ninclude \"a\";if(b){include \"c\";}",
        "set x = 1;\ninclude \"a\";\nif (b) {\n    include \"c\";\n}\n",
    );
}
