//! Values that cannot be, names that are none, lists for tables and tables for lists: one message each, which says what is wrong and what to
//! write instead; and what is said leads out of the mistake.

use super::super::read;
use super::mistake_tests::{leads, says};

const ROUTE: &str = "[[route]]\norigin = \"a\"\n";
const LISTEN: &str = "[[listen]]\naddress = \"*:80\"\n";

fn route(line: &str) -> String {
    format!("{ROUTE}{line}\n")
}

/// Of a route that answers by itself.
fn alone(line: &str) -> String {
    format!("[[route]]\n{line}\n")
}

/// What is wrong, what is said of it, and what somebody has then who did literally that.
#[test]
fn a_port_in_a_key_of_its_own_is_one_mistake() {
    let complaints = read("[[listen]]\naddress = \"127.0.0.1\"\nport = 8080\n").unwrap_err();
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].what.contains("unknown key `port`"), "{complaints:?}");
    assert_eq!(read("[[listen]]\naddress = \"127.0.0.1\"\n").unwrap_err().len(), 1);
}

#[test]
fn a_value_that_cannot_be_is_met_with_one_that_can() {
    let site = "[origin.site]\nurls = [\"http://127.0.0.1:3000\"]\n[[route]]\norigin = \"a\"\n";
    let listen = |value: &str| format!("[[listen]]\naddress = {value}\n");
    let rows: Vec<(String, &str, String)> = vec![
        (
            alone("respond = 999"),
            "write respond = { status = 404 }: a status is 200 to 599",
            alone("respond = { status = 404 }"),
        ),
        (alone("respond = -1"), "write respond = { status = 404 }", alone("respond = { status = 404 }")),
        (alone("respond = { status = 999 }"), "must be 200 to 599", alone("respond = { status = 599 }")),
        (
            alone("redirect = \"www.a.test\""),
            "write \"https://www.a.test$request_uri\"",
            alone("redirect = \"https://www.a.test$request_uri\""),
        ),
        (listen("99999"), "write \"127.0.0.1:8080\" for this machine only", listen("\"*:80\"")),
        (listen("-1"), "a port is 1 to 65535", listen("\"127.0.0.1:8080\"")),
        (listen("true"), "write a text in quotes", listen("\"127.0.0.1:8080\"")),
        (listen("\"*:99999\""), "99999 is no port: 1 to 65535", listen("\"*:9999\"")),
        (listen("\"127.0.0.1:-1\""), "-1 is no port", listen("\"127.0.0.1:1\"")),
        (
            listen("[\"*:80\", \"*:81\"]"),
            "write a [[listen]] for each address",
            format!("{LISTEN}{}", listen("\"*:81\"")),
        ),
        (
            "listen = [80, 443]\n".into(),
            "[[listen]] on a line of its own, and below it address = \"127.0.0.1:80\"",
            listen("\"127.0.0.1:80\""),
        ),
        ("listen = [\"*:80\"]\n".into(), "below it address = \"*:80\"", listen("\"*:80\"")),
        ("listen = 3000\n".into(), "below it address = \"127.0.0.1:3000\"", listen("\"127.0.0.1:3000\"")),
        ("[admin]\naddress = 99999\n".into(), "a port is 1 to 65535", "[admin]\naddress = \"127.0.0.1:8080\"\n".into()),
        (
            "[[listen]]\naddress = \"*:80\"\nmode = \"redirect\"\nhttps_port = 99999\n".into(),
            "a port, 1 to 65535",
            format!("{LISTEN}mode = \"redirect\"\nhttps_port = 443\n"),
        ),
        ("[memory]\nsize = -5\n".into(), "must be 0 or more", "[memory]\nsize = \"512MiB\"\n".into()),
        ("memory = \"512MiB\"\n".into(), "below it size = \"512MiB\"", "[memory]\nsize = \"512MiB\"\n".into()),
        (
            "[limits]\nconnections_max = 99999999999999999999\n".into(),
            "larger than any number",
            "[limits]\nconnections_max = 999\n".into(),
        ),
        (
            "resolver = \"192.0.2.1\"\n".into(),
            "below it servers = \"192.0.2.1\"",
            "[resolver]\nservers = \"192.0.2.1\"\n".into(),
        ),
        ("compress = false\n".into(), "below it enabled = false", "[compress]\nenabled = false\n".into()),
        (
            "disk = \"/x\"\n".into(),
            "below it path = \"/x\" and size = \"10GiB\"",
            "[[disk]]\npath = \"/x\"\nsize = \"10GiB\"\n".into(),
        ),
        ("route = \"/x\"\n".into(), "below it path = \"/x\"", "[[route]]\npath = \"/x\"\n".into()),
        (
            "trusted_proxies = true\n".into(),
            "such as [\"10.0.0.0/8\", \"::1\"]",
            "trusted_proxies = [\"10.0.0.0/8\", \"::1\"]\n".into(),
        ),
        (route("ttl = -1"), "such as \"10s\"", route("ttl = \"10s\"")),
        (route("ttl = { 999 = \"5m\" }"), "200 to 599", route("ttl = { 599 = \"5m\" }")),
        (route("cache = \"off\""), "write false, without quotes", route("cache = false")),
        (route("cache = \"sometimes\""), "write true, false, \"origin\" or \"force\"", route("cache = \"origin\"")),
        (
            route("allow = \"localhost\""),
            "write \"127.0.0.0/8\" and \"::1\"",
            route("allow = [\"127.0.0.0/8\", \"::1\"]"),
        ),
        (route("allow = \"all\""), "name the networks that are meant", route("allow = [\"0.0.0.0/0\", \"::/0\"]")),
        (route("rate_limit = 10"), "write rate_limit = \"10/s\"", route("rate_limit = \"10/s\"")),
        (route("rate_limit = -1"), "write rate_limit = \"10/s\"", route("rate_limit = \"10/s\"")),
        (route("basic_auth = [\"users\"]"), "write basic_auth = \"users\"", route("basic_auth = \"users\"")),
        (route("basic_auth = true"), "write basic_auth = \"FILE\"", route("basic_auth = \"FILE\"")),
        (route("cookies = [\"sid\"]"), "write cookies = { bypass = ", route("cookies = { bypass = [\"sid\"] }")),
        (
            route("request_headers = [\"X: y\"]"),
            "write request_headers = { set = ",
            route("request_headers = { set = { X = \"y\" } }"),
        ),
        (
            route("cors = [\"https://b.test\"]"),
            "write cors = { origins = [\"https://b.test\"] }",
            route("cors = { origins = [\"https://b.test\"] }"),
        ),
        (
            route("vary_by = \"Accept-Language\""),
            "write \"header:Accept-Language\"",
            route("vary_by = \"header:Accept-Language\""),
        ),
        (route("path = \"admin\""), "write \"/admin\"", route("path = \"/admin\"")),
        (route("strip_prefix = \"api\""), "write \"/api\"", route("strip_prefix = \"/api\"")),
        (route("method = \"get\""), "write \"GET\"", route("method = \"GET\"")),
        (route("host = \"http://b.test/\""), "write \"b.test\"", route("host = \"b.test\"")),
        (route("host = \"b.test:8080\""), "write \"b.test\"", route("host = \"b.test\"")),
        (route("host = [[\"b.test\"]]"), "write one text in quotes, and no list", route("host = [\"b.test\"]")),
        (
            format!("{ROUTE}[origin.b]\nurls = 99999\n"),
            "a port is 1 to 65535",
            format!("{ROUTE}[origin.b]\nurls = \"http://127.0.0.1:3001\"\n"),
        ),
        (
            format!("{ROUTE}[origin.b]\nurls = \"http://127.0.0.1:-1\"\n"),
            "-1 is no port",
            format!("{ROUTE}[origin.b]\nurls = \"http://127.0.0.1:1\"\n"),
        ),
        (
            format!("{ROUTE}[origin.b]\nurls = \"127.0.0.1:99999\"\n"),
            "99999 is no port",
            format!("{ROUTE}[origin.b]\nurls = \"http://127.0.0.1:9999\"\n"),
        ),
        (
            format!("{ROUTE}[origin.b]\nurls = \"http://b\"\nprobe = \"/up\"\n"),
            "write probe = { path = \"/up\" }",
            format!("{ROUTE}[origin.b]\nurls = \"http://b\"\nprobe = {{ path = \"/up\" }}\n"),
        ),
        (
            format!("{ROUTE}[origin.my app]\nurls = \"http://b\"\n"),
            "write [origin.my-app]",
            format!("{ROUTE}[origin.my-app]\nurls = \"http://b\"\n"),
        ),
        (
            format!("{ROUTE}[origin.\"\"]\nurls = \"http://b\"\n"),
            "write [origin.site], or another name",
            format!("{ROUTE}[origin.site]\nurls = \"http://b\"\n"),
        ),
        (
            format!("{ROUTE}[[origin.b]]\nurls = \"http://b\"\n"),
            "write [origin.b] with one bracket",
            format!("{ROUTE}[origin.b]\nurls = \"http://b\"\n"),
        ),
        (
            format!("{ROUTE}[[origin.b]]\nurls = \"http://b\"\n[[origin.b]]\nurls = \"http://c\"\n"),
            "write [origin.b] once, with urls = [",
            format!("{ROUTE}[origin.b]\nurls = [\"http://b\", \"http://c\"]\n"),
        ),
        (
            format!("{ROUTE}[origin]\nb = 3000\n"),
            "write [origin.b] on a line of its own, and below it urls = [\"http://127.0.0.1:3000\"]",
            site.to_owned(),
        ),
        (
            "[[route]]\norigin = \"x y\"\n".into(),
            "add [origin.\"x y\"] with urls",
            "[[route]]\norigin = \"x y\"\n[origin.\"x y\"]\nurls = \"http://b\"\n".into(),
        ),
    ];
    rows.iter().for_each(|(wrong, hint, followed)| leads(wrong, hint, followed));
}

/// A list, or a value, where the table of all origins belongs: there is no other origin beside it.
#[test]
fn an_origin_has_a_name_and_is_no_item_of_a_list() {
    says("[[origin]]\nurls = \"http://a\"\n", "write [origin.site] in place of [[origin]]");
    says(
        "[[origin]]\nname = \"app\"\nurls = \"http://a\"\n[[origin]]\nurls = \"http://b\"\n",
        "write [origin.app] in place of [[origin]]",
    );
    says("[[origin]]\nname = \"my app\"\nurls = \"http://a\"\n", "write [origin.\"my app\"]");
    says(
        "origin = [\"http://a:1\", \"http://b:1\"]\n",
        "write [origin.site] on a line of its own, and below it urls = [\"http://a:1\"]",
    );
    says("origin = 3000\n", "below it urls = [\"http://127.0.0.1:3000\"]");
    says("origin = true\n", "below it urls = [\"http://HOST:PORT\"]");
    says("[[policy]]\nttl = \"5m\"\n", "write [policy] with one bracket on each side");
    says("[listen]\naddress = \"*:80\"\n", "write [[listen]] with two brackets on each side");
    says("policy = \"site.vcl\"\n", "below it vcl = \"site.vcl\"");
    assert!(read("[origin.\"my app\"]\nurls = \"http://a\"\n").is_ok(), "a name in quotes may have blanks");
}
