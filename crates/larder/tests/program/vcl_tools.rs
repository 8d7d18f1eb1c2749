//! `larder vcl fmt`, `test`, `explain` and `larder import` on files of a disk: what is written, what is left, and what the exit code says.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder of its own for each test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("vcl-tools").join(name);
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    folder
}

fn larder(folder: &Path, arguments: &str, input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.args(arguments.split_whitespace()).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("larder can be started");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("the input is read");
    child.wait_with_output().expect("larder ends")
}

/// Exit code, standard output, and a part of standard error.
#[track_caller]
fn check(folder: &Path, arguments: &str, input: &str, expect: (i32, &str, &str)) {
    let output = larder(folder, arguments, input);
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), &*out), (Some(expect.0), expect.1), "{arguments}: {errors}");
    assert!(errors.contains(expect.2) && (expect.2.is_empty() == errors.is_empty()), "{arguments}: {errors}");
}

const TIDY: &str = "vcl 4.1;\n\nsub a {\n    call b; # c\n}\n";
const UNTIDY: &str = "vcl 4.1;\n\nsub a{call b;# c\n}\n";
const BROKEN: &str = "vcl 4.1;\nsub a { call b }\n";

#[test]
fn files_are_laid_out_in_place() {
    let folder = folder("in-place");
    for (name, text) in [("tidy.vcl", TIDY), ("untidy.vcl", UNTIDY), ("broken.vcl", BROKEN)] {
        std::fs::write(folder.join(name), text).expect("a file can be written");
    }
    std::os::unix::fs::symlink("untidy.vcl", folder.join("link.vcl")).expect("a link can be made");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the file is there");

    check(&folder, "vcl fmt --check tidy.vcl untidy.vcl", "", (1, "untidy.vcl\n", ""));
    check(&folder, "vcl fmt --check tidy.vcl", "", (0, "", ""));
    check(&folder, "vcl fmt --stdout untidy.vcl", "", (0, TIDY, ""));
    assert_eq!(read("untidy.vcl"), UNTIDY);
    check(&folder, "vcl fmt link.vcl tidy.vcl", "", (0, "", ""));
    assert_eq!((read("untidy.vcl").as_str(), read("tidy.vcl").as_str()), (TIDY, TIDY));
    assert!(folder.join("link.vcl").is_symlink());
    check(&folder, "vcl fmt broken.vcl", "", (1, "", "broken.vcl:2:15: error[missing-semicolon]"));
    assert_eq!(read("broken.vcl"), BROKEN);
    check(&folder, "vcl fmt none.vcl", "", (1, "", "none.vcl: error: No such file"));
    assert_eq!(std::fs::read_dir(&folder).expect("the folder is there").count(), 4, "nothing is left beside");
}

#[test]
fn standard_input_goes_to_standard_output() {
    let folder = folder("input");
    check(&folder, "vcl fmt -", UNTIDY, (0, TIDY, ""));
    check(&folder, "vcl fmt --check -", UNTIDY, (1, "-\n", ""));
    check(&folder, "vcl fmt --indent tab -", UNTIDY, (0, &TIDY.replace("    ", "\t"), ""));
    check(&folder, "vcl fmt -", BROKEN, (1, "", "<stdin>:2:15: error[missing-semicolon]"));
    let json = "{\"files\":[{\"changed\":true,\"errors\":[],\"file\":\"-\",\"ok\":true}]}\n";
    check(&folder, "vcl fmt --json -", UNTIDY, (0, json, ""));
}

#[test]
fn old_files_become_new_ones() {
    let folder = folder("import");
    let backend = "backend a { .host = \"10.0.0.1\"; }\n";
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file can be written");
    write("good.vcl", &format!("{backend}sub vcl_fetch {{ esi; }}\n"));
    write("left.vcl", &format!("{backend}sub vcl_recv {{ C{{ }}C }}\n"));
    write("bad.vcl", &format!("{backend}sub vcl_recv {{ call nobody; }}\n"));
    write("whole.vcl", &format!("include \"part.vcl\";\n{backend}"));
    write("part.vcl", "sub vcl_recv { set req.backend = a; }\n");
    write("other.vcl", "worker_processes 4;\n");

    let expect = format!("vcl 4.1;\n\n{backend}sub vcl_backend_response {{ set beresp.do_esi = true; }}\n");
    check(&folder, "import good.vcl", "", (0, &expect, "carried over, with 0 notes; the new file is good"));
    check(&folder, "import good.vcl -o new.vcl", "", (0, "", "the new file is good"));
    assert_eq!(std::fs::read_to_string(folder.join("new.vcl")).expect("it is there"), expect);
    check(&folder, "check new.vcl", "", (0, "new.vcl: ok: 1 subroutine, 1 backend, 0 ACLs, 0 warnings\n", ""));
    check(&folder, "import new.vcl", "", (0, &expect, "the new file is good"));
    check(&folder, "import good.vcl -o good.vcl", "", (1, "", "names the file that is read"));
    check(&folder, "import left.vcl -o x.vcl", "", (1, "", "left.vcl:2:16: error[not-carried-over]"));
    check(&folder, "import bad.vcl -o x.vcl", "", (1, "", "the new file has 1 mistake"));
    check(&folder, "import whole.vcl -o x.vcl", "", (0, "", "the new file is good"));
    check(&folder, "import part.vcl -o x.vcl", "", (0, "", "as a part of a program"));
    check(&folder, "import other.vcl", "", (1, "", "other.vcl:1:1: error[syntax]: expected a definition"));
    write("other", "worker_processes 4;\n");
    check(
        &folder,
        "import other",
        "",
        (1, "", "other: error: nothing in it says whose configuration it is: --kind nginx,"),
    );
}

const SHOP: &str = "vcl 4.1;
backend web { .host = \"web.test\"; }
backend spare { .host = \"127.0.0.2\"; }
sub vcl_recv {
    if (req.restarts == 0 && req.url == \"/again\") { return (restart); }
    if (req.url == \"/broken\") { return (fail(\"on purpose\")); }
    if (req.url == \"/pipe\") { return (pipe); }
    if (req.method == \"PURGE\") { return (purge); }
    if (req.url == \"/spare\") { set req.backend_hint = spare; }
}
sub vcl_backend_response {
    if (beresp.status == 500) { return (retry); }
    if (bereq.url == \"/private\") { set beresp.uncacheable = true; }
}
sub vcl_synth { set resp.body = \"sorry\"; return (deliver); }
";

/// A folder with the shop in it, and what a file of cases comes to there.
fn tested(folder: &Path, cases: &str, expect: (i32, &str, &str)) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file can be written");
    write("shop.vcl", SHOP);
    write("t.toml", &format!("vcl = \"shop.vcl\"\n{cases}"));
    let output = larder(folder, "vcl test t.toml --brief", "");
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(expect.0), "{cases}: {out}{errors}");
    assert!(out.contains(expect.1), "{cases}: {out}{errors}");
    assert!(errors.contains(expect.2) && (expect.2.is_empty() == errors.is_empty()), "{cases}: {errors}");
}

/// Of each expectation, a case that holds and the same with another value, which must fail.
#[test]
fn every_expectation_can_hold_and_can_fail() {
    let folder = folder("vcl-test");
    let both = |case: &str, good: &str, bad: &str| {
        let text = |expect: &str| format!("[[case]]\nname = \"x\"\n{case}\nexpect = {{ {expect} }}");
        tested(&folder, &text(good), (0, "ok    x\n1 case: 1 ok, 0 failed", ""));
        tested(&folder, &text(bad), (1, "FAIL  x\n", ""));
    };
    let get = "request = \"GET /a Host: a\"";
    both("request = \"/again Host: a\"", "restarts = 1", "restarts = 0");
    both("request = \"/broken Host: a\"", "status = 503, reason = \"VCL failed\"", "reason = \"OK\"");
    both("request = \"/broken Host: a\"", "body = \"sorry\"", "body = false");
    both("request = \"/broken Host: a\"", "verdicts = { recv = \"fail\" }", "verdicts = { recv = \"hash\" }");
    both("request = \"/pipe Host: a\"", "outcome = \"pipe\", backend = \"web\"", "backend = \"spare\"");
    both("request = \"/spare Host: a\"", "backend = \"spare\"", "backend = \"none\"");
    both(get, "ttl = \"120s\", ttl_by = \"default_ttl\"", "ttl_by = \"max-age\"");
    both(get, "grace = \"10s\", grace_by = \"default_grace\"", "grace = \"11s\"");
    both(get, "keep = \"0s\", keep_by = \"default_keep\"", "keep = \"1s\"");
    both(get, "stored = true", "stored = false");
    both("request = \"/private Host: a\"", "kept = \"hit-for-miss\", stored = false", "kept = \"stored\"");
    both(&format!("{get}\norigin = [\"500\", \"200 X: y\"]"), "retries = 1, resp = { X = \"y\" }", "retries = 0");
    both(&format!("{get}\norigin = \"500\""), "retries = 4, status = 503, fetches = 5", "fetches = 1");
    both(
        "request = \"POST / Host: a\"\nbody = \"b\"\norigin = \"201\"",
        "outcome = \"pass\", status = 201",
        "outcome = \"miss\"",
    );
    both("request = \"/ Host: a Cookie: b\"", "bereq = { Cookie = true }", "bereq = { Cookie = false }");
    both("request = \"/?b Host: A\"", "url = \"/?b\", bereq_url = \"/?b\"", "url = { matches = \"^/a\" }");
    both("request = \"HEAD / Host: A\"", "bereq_method = \"GET\"", "bereq_method = \"HEAD\"");
    both("request = \"/x Host: A\"", "hash = [\"/x\", \"a\"]", "hash = [\"/x\"]");
    both("request = \"/x Host: A\"", "same_hash_as = \"/x Host: a Cookie: b\"", "same_hash_as = \"/y Host: a\"");
    both("request = \"/x Host: A\"", "other_hash_than = \"/x Host: b\"", "other_hash_than = \"/x Host: a\"");
    both("request = \"/x Host: A\"", "req = { X-Forwarded-For = \"192.0.2.1\" }", "req = { Host = \"b\" }");
    both(&format!("{get}\norigin = \"200 A: b\""), "beresp = { A = \"b\" }", "beresp = { A = { matches = \"c\" } }");
    both(&format!("{get}\ncached = \"hit\""), "outcome = \"hit\", fetches = 0", "outcome = \"miss\"");
    both(&format!("{get}\ncached = \"stale\""), "outcome = \"stale\", fetches = 1", "outcome = \"hit\"");
    both(&format!("{get}\ncached = \"200s\""), "outcome = \"miss\"", "outcome = \"stale\"");
    both("request = \"/private Host: a\"\ncached = \"hit\"", "outcome = \"miss\"", "outcome = \"hit\"");
    both(&format!("{get}\nbefore = [\"/a Host: a\", \"PURGE /a Host: a\"]"), "outcome = \"miss\"", "outcome = \"hit\"");
    let aged = "before = [{ request = \"/a Host: a\", origin = \"200 Cache-Control: max-age=9\", then_wait = \"8s\" }]";
    both(&format!("{get}\n{aged}"), "outcome = \"hit\", resp = { Age = \"8\" }", "resp = { Age = \"0\" }");
    both("request = \"PURGE /a Host: a\"", "purged = true, status = 200", "purged = false");
    both(&format!("{get}\nsick = [\"web\"]"), "status = 503, fetches = 0", "status = 200");
    both(get, "ran = [\"shop.vcl:9\"], not_ran = [\"builtin.vcl:1\"]", "ran = [5], not_ran = [9]");
    let chain = "\"recv hash\", \"hash lookup\", \"miss fetch\", \"backend_fetch fetch\", \"backend_response deliver\"";
    both(get, &format!("verdicts = [{chain}, \"deliver deliver\"]"), &format!("verdicts = [{chain}]"));
    both(get, "logs = [], bans = [], stored = true", "logs = [\"x\"]");
    both(get, "bans = []", "bans = [\"req.url ~ .\"]");
}

#[test]
fn a_case_that_cannot_be_judged_is_an_error() {
    let folder = folder("vcl-test-errors");
    let wrong = |cases: &str, expect: &str| tested(&folder, cases, (1, "0 cases: 0 ok, 0 failed", expect));
    let case = "[[case]]\nname = \"x\"\nrequest = \"/ Host: a\"\n";
    wrong(case, "case \"x\": it expects nothing, so it cannot fail");
    wrong(&format!("{case}expect = {{ statsu = 1 }}"), "did you mean `status`?");
    wrong(&format!("{case}expect = {{ outcome = \"hti\" }}"), "there is no outcome `hti`: did you mean `hit`?");
    wrong(&format!("{case}expect = {{ backend = \"wbe\" }}"), "there is no backend `wbe`: did you mean `web`?");
    wrong(&format!("{case}expect = {{ verdicts = {{ rcv = \"hash\" }} }}"), "did you mean `vcl_recv`?");
    wrong(&format!("{case}expect = {{ kept = \"no\" }}"), "`kept` is no `no`");
    wrong(&format!("{case}expect = {{ ttl = \"5\" }}"), "ttl: a duration needs its unit");
    wrong(&format!("{case}expect = {{ resp = {{ A = {{ matches = \"(\" }} }} }}"), "is no regular expression");
    wrong(&format!("{case}sick = [\"no\"]\nexpect = {{ status = 1 }}"), "there is no backend `no` to be sick");
    wrong(&format!("{case}cached = \"x\"\nexpect = {{ status = 1 }}"), "none of miss, hit, stale");
    wrong(&format!("{case}origin = \"x\"\nexpect = {{ status = 1 }}"), "`x` is no answer");
    wrong(&format!("parameters = {{ default_tl = \"1s\" }}\n{case}expect = {{ status = 1 }}"), "default_ttl");
    wrong("", "missing field `case`");
    check(&folder, "vcl test none.toml", "", (1, "0 cases: 0 ok, 0 failed\n", "none.toml: error: No such file"));
}

#[test]
fn programs_are_explained() {
    let folder = folder("vcl-explain");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file can be written");
    write("shop.vcl", SHOP);
    write("broken.vcl", BROKEN);
    write("main.vcl", "vcl 4.1; backend a none; sub vcl_recv { return (vcl(shop)); }");
    write("request", "GET /private HTTP/1.1\nHost: a\n\n");
    let run = |words: &str, input: &str| {
        let output = larder(&folder, &format!("vcl explain {words}"), input);
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let text = run("shop.vcl --request-file request", "");
    assert!(text.contains("shop.vcl:13  if (bereq.url == \"/private\")  yes\n"), "{text}");
    assert!(text.contains("    shop.vcl:13  set beresp.uncacheable = true;\n"), "{text}");
    assert!(text.contains("cache    hit-for-miss  by shop.vcl:13\n"), "{text}");
    assert_eq!(run("shop.vcl --request-file -", "GET /private HTTP/1.1\r\nHost: a\r\n\r\n"), text);
    let note = run("shop.vcl --request-file request --cached stale", "");
    assert!(note.starts_with("note: the same request asked before left hit-for-miss in the cache\n"), "{note}");
    let labelled: serde_json::Value =
        serde_json::from_str(&run("main.vcl --label shop=shop.vcl --request-file request --json", "")).expect("JSON");
    assert_eq!(labelled["subroutines"][0]["verdict"], "vcl(shop)");
    assert_eq!((&labelled["outcome"], &labelled["asked"][0]["backend"]), (&"miss".into(), &"web".into()));
    // A chain is one step when nobody looks.
    write(
        "chain.vcl",
        "vcl 4.1; backend a none; sub vcl_recv {\n\
         set req.http.c = regsub(req.http.c, \"x\", \"\");\nset req.http.c = regsub(req.http.c, \"y\", \"\");\n}",
    );
    let chain = run("chain.vcl --request / -H Host:a -H c:xyz", "");
    let expect = "  chain.vcl:2  set req.http.c = regsub(req.http.c, \"x\", \"\");\n      req.http.c: \"xyz\" becomes \"yz\"\n  \
                  chain.vcl:3  set req.http.c = regsub(req.http.c, \"y\", \"\");\n      req.http.c: \"yz\" becomes \"z\"\n";
    assert!(chain.contains(expect), "{chain}");
    let refused = run("shop.vcl --request /", "");
    assert!(refused.contains("no subroutine ran") && refused.contains("because  host-missing"), "{refused}");
    check(&folder, "vcl explain broken.vcl --request /", "", (1, "", "broken.vcl:2:15: error[missing-semicolon]"));
    check(&folder, "vcl explain main.vcl --request /", "", (1, "", "--label shop=FILE"));
    check(&folder, "vcl explain shop.vcl --request / --sick wep", "", (1, "", "did you mean `web`?"));
    check(&folder, "vcl explain none.vcl --request /", "", (1, "", "none.vcl: error: No such file"));
    check(&folder, "vcl explain shop.vcl --request-file none", "", (1, "", "error: none: No such file"));
}
