//! What people write who know another program, or guess: each is met with what to write here.

use super::mistake_tests::{leads, says};

const SITE: &str = "[origin.a]\nurls = \"http://127.0.0.1:3000\"\n";

fn route(line: &str) -> String {
    format!("{SITE}[[route]]\norigin = \"a\"\n{line}\n")
}

fn origin(line: &str) -> String {
    format!("{SITE}{line}\n")
}

fn top(line: &str) -> String {
    format!("{line}\n{SITE}")
}

fn listen(line: &str) -> String {
    format!("{SITE}[[listen]]\naddress = \"*:80\"\n{line}\n")
}

#[test]
fn words_for_something_else_lead_to_it() {
    for (text, expect) in [
        (route("headers = { X-A = \"b\" }"), "response_headers = { set = { NAME"),
        (route("allow = [\"10.0.0.0/8\"]\ndeny = [\"all\"]"), "nobody else is let in, without a `deny`"),
        (route("cors = \"*\""), "write cors = true"),
        ("[[route]]\nroot = \"/srv\"\nlisting = true\n".to_owned(), "write listing = \"html\""),
        (origin("headers = { X-A = \"b\" }"), "write request_headers = { set"),
        (route("pass = true"), "write cache = false in [[route]]"),
        (listen("redirect = \"https\""), "write mode = \"redirect\""),
        (origin("weight = 3"), "urls = [\"http://10.0.0.1:80 weight=3\""),
        (top("user = \"www-data\""), "[process]"),
        (format!("{SITE}[limits]\ntimeout = \"5s\"\n"), "write idle_timeout"),
        (route("timeout = \"5s\""), "write timeouts = { connect"),
        (route("allow_from = \"10.0.0.0/8\""), "write allow = [\"NETWORK\"]"),
        (top("allow_from = \"10.0.0.0/8\""), "write allow = [\"10.0.0.0/8\"] in [[route]]"),
        (origin("health_check = \"/health\""), "write probe = { path = \"/health\" }"),
        (format!("{SITE}[policy]\npurge_acl = \"10.0.0.0/8\"\n"), "write purge_from"),
        (route("cache_key = \"$host$uri\""), "vary_by = [\"header:NAME\"] adds a field"),
        (route("websocket = true"), "a WebSocket goes to the origin by itself"),
        (route("beresp.ttl = \"5m\""), "ttl = \"5m\" in [[route]]"),
        (top("beresp.ttl = \"5m\""), "that is VCL"),
        (top("include = \"conf.d/*.toml\""), "a larder.toml is one file"),
        (listen("ssl = true"), "write tls = { cert = \"FILE\""),
        (format!("{SITE}[[listen]]\nport = 80\n"), "write address = \"*:80\""),
        ("[origin.a]\naddress = \"127.0.0.1:3000\"\n".to_owned(), "write urls = [\"http://127.0.0.1:3000\"]"),
        ("[origin.a]\nurl = \"http://127.0.0.1:3000\"\n".to_owned(), "did you mean `urls`?"),
        (route("error_page = \"404 /404.html\""), "write error_pages = { 404 = \"/404.html\" }"),
        (route("default_ttl = \"1h\""), "write ttl = \"2m\" in [[route]]"),
        (top("hsts = true"), "write hsts = \"max-age=31536000\""),
        (top("hsts = 86400"), "write hsts = \"max-age=86400\""),
        (top("hsts = \"1y\""), "write hsts = \"max-age=31536000\""),
        (route("rewrite = \"^/a /b last\""), "write path_pattern = \"^/a\" and rewrite = \"/b\""),
        (route("rewrite = \"^/a /b permanent\""), "write path_pattern = \"^/a\" and redirect = \"/b\""),
        (route("rewrite = \"b\""), "write \"/b\""),
        (route("ttl = \"5min\""), "write \"5m\""),
        (route("ttl = \"1y\""), "write \"365d\""),
    ] {
        says(&text, expect);
    }
}

#[test]
fn a_location_of_nginx_is_no_path() {
    for (path, write) in [
        ("~ ^/x", "path_pattern = \"^/x\" in place of path"),
        ("~* [.]php$", "path_pattern = \"(?i)[.]php$\" in place of path"),
        ("^/x", "path_pattern = \"^/x\" in place of path"),
        ("= /a.html", "path_pattern = \"^/a[.]html$\" in place of path"),
        ("^~ /x", "path = \"/x\": the longest path counts"),
    ] {
        let followed = write.split(" in place of").next().and_then(|write| write.split(": ").next()).unwrap();
        let alone = |line: &str| format!("[[route]]\norigin = \"a\"\n{line}\n");
        leads(&alone(&format!("path = \"{path}\"")), write, &alone(followed));
    }
}

#[test]
fn several_origins_are_one_with_several_addresses() {
    let two = format!("{SITE}[origin.b]\nurls = \"http://b:81\"\n[[route]]\norigin = [\"a\", \"b\"]\n");
    says(&two, "urls = [\"http://127.0.0.1:3000\", \"http://b:81\"] of [origin.a]");
    says(&format!("{SITE}[[route]]\norigin = [\"a\"]\n"), "write \"a\", without brackets");
}

#[test]
fn a_key_in_the_section_above_it_is_shown_the_way_out() {
    let below = |line: &str| format!("[admin]\naddress = \"127.0.0.1:8081\"\n{line}\n");
    for key in ["workers = 2", "server_name = \"x\"", "trusted_proxies = []", "hsts = \"max-age=1\""] {
        let hint = "belongs above all sections: write it before the first line with a [, or it is a key of the section above it, here [admin]";
        leads(&below(key), hint, &format!("{key}\n"));
    }
}

#[test]
fn a_section_within_another_is_none_of_its_own() {
    for (section, expect) in [
        ("[tls]\ncert = \"a\"\n", "write [listen.tls] below its [[listen]], or [origin.NAME.tls]"),
        ("[probe]\npath = \"/\"\n", "write [origin.NAME.probe]"),
        ("[cors]\norigins = \"*\"\n", "in [[route]], or for all routes in [policy]"),
        ("[cookies]\nstrip = \"a\"\n", "in [[route]], or for all routes in [policy]"),
        ("[redirect]\nto = \"/a\"\n", "write redirect = "),
        ("[global]\nworkers = 2\n", "stands above all sections, without a header"),
    ] {
        says(&format!("{SITE}{section}"), expect);
    }
}

#[test]
fn what_stands_twice_is_shown_where_it_stood_first() {
    says("[memory]\nsize = \"1G\"\n\n[memory] # more\neviction = \"lru\"\n", "the first one is on line 1");
    says(&format!("{SITE}{SITE}"), "below the [origin.a] of line 1, or give this one another name");
    says(&route("host = \"a.test\"\nhost = \"b.test\""), "write both as one list, host = ");
    says("workers = 1\n[memory]\nsize = \"1G\"\nsize = \"2G\"\n", "the first time is on line 3");
}

#[test]
fn quotes_of_texts_and_backslashes_are_told_from_others() {
    let memory = |size: &str| format!("[memory]\nsize = {size}\n");
    for quoted in ["\u{201c}64MiB\u{201d}", "\u{201e}64MiB\u{201c}", "\u{ab}64MiB\u{bb}"] {
        leads(&memory(quoted), "write size = \"64MiB\"", &memory("\"64MiB\""));
    }
    leads(&memory("\u{2018}64MiB\u{2019}"), "write size = '64MiB'", &memory("'64MiB'"));
    let alone = |line: &str| format!("[[route]]\norigin = \"a\"\n{line}\n");
    for (line, plain) in [
        ("path_pattern = \"\\.php$\"", "path_pattern = '\\.php$'"),
        ("closed_paths = [\"^/a\\.b\", \"\\d+\", \"c\"]", "closed_paths = ['^/a\\.b', '\\d+', \"c\"]"),
        ("path_pattern = \"it's\\.\" # it", "path_pattern = \"it's\\\\.\" # it"),
    ] {
        leads(&alone(line), &format!("write {plain}"), &alone(plain));
    }
}
