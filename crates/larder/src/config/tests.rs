//! What an operator reads when a config is wrong: each text with the whole of its diagnostics.

mod definition_tests;
mod meant_otherwise_tests;
mod meant_words_tests;
mod mistake_tests;
mod newcomer_tests;
mod sample_tests;
mod value_tests;
mod vcl_config_tests;

use cache::{Admission, DiskFile};
use proxy::settings::{EvictionChoice, FieldLine, ListenAddress, NamePattern, Network, OriginUrl, RouteTarget};

use super::*;
use crate::addresses::AdminAddress;
use crate::plan::LogTarget;

/// The first line feed of both texts is for the eye.
fn check(text: &str, expect: &str) {
    let [text, expect] = [text, expect].map(|t| t.strip_prefix('\n').unwrap_or(t));
    let complaints = read(text).map(|_| ()).expect_err("the config is taken for good");
    let file = FaultyFile { name: "larder.toml".to_owned(), text: text.to_owned(), complaints };
    assert_eq!(file.draw(false), expect);
}

#[test]
fn a_whole_config_is_read() {
    let plan = read(WHOLE).unwrap();
    let settings = &plan.settings;
    assert_eq!((settings.server_name.as_str(), plan.workers), ("edge", Some(4)));
    assert_eq!(settings.listeners.len(), 2);
    assert_eq!(settings.listeners[1].address, ListenAddress::Unix("/run/larder.sock".into()));
    assert!(settings.listeners[1].proxy_protocol);
    let routes: Vec<_> =
        settings.routes.iter().map(|r| (r.host.as_deref(), r.path_prefix.as_str(), r.target)).collect();
    assert_eq!(
        routes,
        [
            (Some("a.test"), "/api", RouteTarget::Origin(1)),
            (Some("*.a.test"), "/api", RouteTarget::Origin(1)),
            (None, "/", RouteTarget::Origin(0))
        ],
        "hosts times paths, in the order of the file"
    );
    let (web, api) = (&settings.origins[0], &settings.origins[1]);
    assert_eq!((web.name.as_str(), web.urls.len(), web.host.as_deref()), ("web", 2, Some("www.a.test")));
    assert_eq!((api.urls[0].clone(), api.connections_max), (OriginUrl::Unix("/run/api.sock".into()), 10));
    assert_eq!((settings.memory_bytes_max, settings.eviction), (64 << 20, EvictionChoice::Lru));
    let disk = |path: &str, bytes: u64| DiskFile { path: path.into(), bytes };
    assert_eq!(plan.disks, [disk("/var/cache/a", 10 << 30), disk("/var/cache/b", 1 << 30)]);
    assert_eq!(plan.disk_admission, Admission::SecondFetch { at_once: (1, 16 << 10) });
    assert_eq!(plan.disk_leases_from, Some(1 << 20));
    let ignored = ["utm_*", "fbclid"].map(NamePattern::new);
    assert!(settings.routes.iter().all(|route| route.rules.query.ignored == ignored));
    assert_eq!((settings.policy.keep.as_secs(), settings.limits.connections_max), (3600, 500));
    assert_eq!(plan.log, Some(LogTarget::File("/var/log/larder.log".into())));
    assert_eq!(plan.admin.address, AdminAddress::At(ListenAddress::Unix("/run/admin.sock".into())));
    assert!(plan.admin.asked_for && settings.debug);
    assert_eq!(settings.details_to, [Network::v4([192, 0, 2, 0], 24)]);
    assert_eq!(settings.resolver.hosts[0].1.len(), 2);
    assert_eq!(settings.resolver.servers[0].port(), 53);
}

#[test]
fn a_field_that_a_route_sets_is_never_missing() {
    let text = "[origin.web]\nurls = [\"http://b:80\"]\n[policy]\nsecurity_headers = true\n\
        [[route]]\nresponse_headers = { set = { x-frame-options = \"DENY\" }, add = { Referrer-Policy = \"origin\" } }\n";
    let fields = read(text).unwrap().settings.routes[0].rules.answer_fields.clone();
    let names = |lines: &[FieldLine]| lines.iter().map(|line| line.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(
        (names(&fields.set), names(&fields.added)),
        (vec!["x-frame-options".into()], vec!["Referrer-Policy".into()])
    );
    assert_eq!(names(&fields.missing), ["X-Content-Type-Options"], "a browser that is told two things heeds neither");
}

const WHOLE: &str = r#"
server_name = "edge"
workers = 4
trusted_proxies = ["10.0.0.0/8", "::1"]
[[listen]]
address = "127.0.0.1:8080"
mode = "accelerate"
[[listen]]
address = "unix:/run/larder.sock"
proxy_protocol = true
[[route]]
host = ["A.test", "*.a.test"]
path = "/api"
origin = "api"
[[route]]
origin = "web"
[origin.web]
urls = ["http://127.0.0.1:3000", "http://app.internal:3000"]
host = "www.a.test"
[origin.api]
urls = "unix:/run/api.sock"
max_connections = 10
[[disk]]
path = "/var/cache/a"
size = "10GiB"
[[disk]]
path = "/var/cache/b"
size = "1GiB"
[store]
disk_admission = "second-fetch"
disk_at_once_max = "16KiB"
disk_sendfile = true
disk_sendfile_min = "1MiB"
[memory]
size = "64MiB"
eviction = "lru"
[policy]
purge_from = ["127.0.0.1"]
ignore_query = ["utm_*", "fbclid"]
keep = "1h"
[limits]
connections_max = 500
[log]
path = "/var/log/larder.log"
format = "json"
[admin]
address = "unix:/run/admin.sock"
details_to = ["192.0.2.0/24"]
debug = true
token = "0123456789abcdef"
[resolver]
servers = ["192.0.2.53"]
hosts = { "app.internal" = ["192.0.2.1", "192.0.2.2"] }
"#;

#[test]
fn the_only_origin_gets_everything() {
    let plan = read("[origin.web]\nurls = \"http://a\"\n").unwrap();
    assert_eq!((plan.settings.routes.len(), plan.settings.routes[0].path_prefix.as_str()), (1, "/"));
}

#[test]
fn an_empty_config_is_the_defaults() {
    let plan = read("").unwrap();
    assert_eq!(plan.settings.listeners, Plan::default().settings.listeners);
    assert!(plan.settings.routes.is_empty() && plan.log.is_none() && !plan.admin.asked_for);
}

#[test]
fn an_unknown_key_names_the_nearest() {
    check(
        r#"
server_nmae = "edge"
[listen2]
"#,
        r#"
larder.toml:1:1: error: unknown key `server_nmae` in the top level
   |
 1 | server_nmae = "edge"
   | ^^^^^^^^^^^ no such key
   = help: did you mean `server_name`?
larder.toml:2:2: error: unknown key `listen2` in the top level
   |
 2 | [listen2]
   |  ^^^^^^^ no such key
   = help: did you mean `listen`?
"#,
    );
}

#[test]
fn a_misspelt_key_is_not_missing_too() {
    check(
        r#"
[[listen]]
adress = "127.0.0.1:8080"
"#,
        r#"
larder.toml:2:1: error: unknown key `adress` in [[listen]]
   |
 2 | adress = "127.0.0.1:8080"
   | ^^^^^^ no such key
   = help: did you mean `address`?
"#,
    );
}

#[test]
fn a_key_that_must_be_there_is_asked_for() {
    check(
        r#"
[[listen]]
proxy_protocol = true
[log]
"#,
        r#"
larder.toml:1:1: error: `address` is missing
   |
 1 | [[listen]]
   | ^^^^^^^^^^ in this section
   = help: write address = "127.0.0.1:8080"
larder.toml:3:1: error: `path` is missing
   |
 3 | [log]
   | ^^^^^ in this section
   = help: write path = "/var/log/larder/access.log", or path = "-" for standard output
"#,
    );
}

#[test]
fn a_wrong_type_says_what_was_expected() {
    check(
        r#"
workers = "many"
[origin.web]
urls = "http://a"
max_connections = "64"
[admin]
debug = 1
"#,
        r#"
larder.toml:1:11: error: expected a whole number, found a string
   |
 1 | workers = "many"
   |           ^^^^^^ has the wrong type
larder.toml:4:19: error: expected a whole number, found a string
   |
 4 | max_connections = "64"
   |                   ^^^^ has the wrong type
larder.toml:6:9: error: expected true or false, found an integer
   |
 6 | debug = 1
   |         ^ has the wrong type
   = help: write true or false, without quotes
"#,
    );
}

#[test]
fn a_duration_without_its_unit_is_asked_back() {
    check(
        r#"
[limits]
idle_timeout = 10
send_timeout = "10 min"
"#,
        r#"
larder.toml:2:16: error: a duration needs its unit
   |
 2 | idle_timeout = 10
   |                ^^ which unit?
   = help: write "10s" or "10ms"
larder.toml:3:16: error: `10 min` is no duration
   |
 3 | send_timeout = "10 min"
   |                ^^^^^^^^ `min` is no unit of time; take ms, s, m, h, d or w
   = help: write "10m"
"#,
    );
}

#[test]
fn a_disk_needs_a_path_and_a_size_that_something_fits_into() {
    check(
        r#"
[[disk]]
path = "/var/cache/a"
size = "1KiB"
"#,
        r#"
larder.toml:3:8: error: 1 KiB is too little for a disk: at least 16 MiB
   |
 3 | size = "1KiB"
   |        ^^^^^^ too small
   = help: such as size = "10GiB"
"#,
    );
    check(
        r#"
[[disk]]
size = "1GiB"
"#,
        r#"
larder.toml:1:1: error: `path` is missing
   |
 1 | [[disk]]
   | ^^^^^^^^ in this section
   = help: path = "/var/cache/larder"
"#,
    );
}

#[test]
fn memory_of_one_byte_says_the_least() {
    check(
        r#"
[memory]
size = 1
"#,
        r#"
larder.toml:2:8: error: 1 byte is too little memory: at least 1 MiB
   |
 2 | size = 1
   |        ^ too small
   = help: such as size = "512MiB"
"#,
    );
}

#[test]
fn an_unknown_origin_names_the_nearest() {
    check(
        r#"
[[route]]
origin = "wbe"
[origin.web]
urls = ["http://a"]
"#,
        r#"
larder.toml:2:10: error: there is no origin `wbe`
   |
 2 | origin = "wbe"
   |          ^^^^^ not defined
   = help: did you mean `web`?
"#,
    );
}

#[test]
fn origins_say_what_they_cannot_be() {
    check(
        r#"
[origin.web]
urls = ["ftp://a", "b:80", "http://c/d"]
"#,
        r#"
larder.toml:2:9: error: `ftp://a` cannot be an origin
   |
 2 | urls = ["ftp://a", "b:80", "http://c/d"]
   |         ^^^^^^^^^ `ftp://` is no scheme larder speaks; an origin is http://HOST[:PORT], https://HOST[:PORT], h2://HOST[:PORT] or unix:/PATH
larder.toml:2:20: error: `b:80` cannot be an origin
   |
 2 | urls = ["ftp://a", "b:80", "http://c/d"]
   |                    ^^^^^^ the scheme is missing: write http://b:80
larder.toml:2:28: error: `http://c/d` cannot be an origin
   |
 2 | urls = ["ftp://a", "b:80", "http://c/d"]
   |                            ^^^^^^^^^^^^ an origin URL has no path: what the client asked for is forwarded as it is
"#,
    );
}

#[test]
fn limits_know_their_range() {
    check(
        r#"
[limits]
connections_max = 0
request_fields_max = 5000
window_bytes_max = "1K"
variants_max = -1
"#,
        r#"
larder.toml:2:19: error: 0 is out of range
   |
 2 | connections_max = 0
   |                   ^ must be at least 1
larder.toml:3:22: error: 5000 is out of range
   |
 3 | request_fields_max = 5000
   |                      ^^^^ must be 8 to 256
larder.toml:4:20: error: 1 KiB is out of range
   |
 4 | window_bytes_max = "1K"
   |                    ^^^^ must be at least 64 KiB
larder.toml:5:16: error: the number is out of range
   |
 5 | variants_max = -1
   |                ^^ must be 0 or more
"#,
    );
}

#[test]
fn choices_are_listed() {
    check(
        r#"
[memory]
eviction = "s3fifo"
[log]
path = "-"
format = "xml"
"#,
        r#"
larder.toml:2:12: error: `s3fifo` is not among the choices
   |
 2 | eviction = "s3fifo"
   |            ^^^^^^^^ no such choice
   = help: did you mean "s3-fifo"?
larder.toml:5:10: error: `xml` is not among the choices
   |
 5 | format = "xml"
   |          ^^^^^ no such choice
   = help: write "combined" or "json"
"#,
    );
}

#[test]
fn tables_and_lists_of_tables_are_told_apart() {
    check(
        r#"
route = 1
[listen]
address = "127.0.0.1:80"
[origin]
web = "http://a"
"#,
        r#"
larder.toml:1:9: error: `route` must be a list of tables, but this is an integer
   |
 1 | route = 1
   |         ^ begins here
   = help: write [[route]] on a line of its own, and its keys below it
larder.toml:2:1: error: `listen` must be a list of tables, but this is one table
   |
 2 | [listen]
   | ^ begins here
   = help: write [[listen]] with two brackets on each side
larder.toml:5:7: error: [origin.web] must be a table, but this is a string
   |
 5 | web = "http://a"
   |       ^^^^^^^^^^ a table of keys was expected
   = help: write [origin.web] on a line of its own, and below it urls = ["http://a"]
"#,
    );
}

#[test]
fn routes_that_contradict_are_found() {
    check(
        r#"
[[route]]
origin = "a"
[[route]]
path = "/"
origin = "a"
[[route]]
host = "a.test:80"
path = "x"
origin = "a"
[origin.a]
urls = "http://a"
"#,
        r#"
larder.toml:3:1: error: a route for any host and / exists already
   |
 3 | [[route]]
   | ^^^^^^^^^ the second one
larder.toml:7:8: error: `a.test:80` is no host
   |
 7 | host = "a.test:80"
   |        ^^^^^^^^^^^ a name without port, or *.NAME for every name below it
   = help: write "a.test"
larder.toml:8:8: error: `x` is no path
   |
 8 | path = "x"
   |        ^^^ begins with / and has no ?, # or space
   = help: write "/x"
"#,
    );
}

#[test]
fn http2_is_asked_for_where_it_can_be_spoken() {
    let text = |lines: &str| format!("[origin.web]\n{lines}\n");
    let read_origin = |lines: &str| read(&text(lines)).map(|plan| plan.settings.origins[0].http2);
    let verify = "tls = { verify = false }";
    for (lines, expect) in [
        (format!("urls = \"https://a\"\n{verify}"), false),
        (format!("urls = \"https://a\"\n{verify}\nhttp2 = true"), true),
        (format!("urls = \"https://a\"\n{verify}\nhttp2 = false"), false),
        ("urls = \"h2://a:81\"".to_owned(), false),
    ] {
        assert_eq!(read_origin(&lines).unwrap(), expect, "{lines}");
    }
    for (lines, says) in [
        ("urls = \"http://a\"\nhttp2 = true", "write h2://HOST:PORT to speak HTTP/2 without TLS"),
        ("urls = \"h2://a\"\nhttp2 = true", "h2:// URLs are asked over HTTP/2 always"),
        ("urls = [\"h2://a\", \"http://b\"]", "h2:// and other URLs of one origin"),
    ] {
        let complaints = read_origin(lines).expect_err("the config is taken for good");
        let file = FaultyFile { name: "larder.toml".to_owned(), text: text(lines), complaints };
        let drawn = file.draw(false);
        assert!(drawn.contains(says), "{lines}: {drawn}");
    }
}

#[test]
fn two_origins_need_routes() {
    check(
        r#"
[origin.a]
urls = "http://a"
[origin.b]
urls = []
"#,
        r#"
larder.toml:1:1: error: there are 2 origins and no [[route]] says who gets which request
   |
 1 | [origin.a]
   | ^ somewhere in this file
   = help: add [[route]] with path = "/" and origin = "b", and one for each other origin
larder.toml:4:8: error: the origin `b` has no address
   |
 4 | urls = []
   |        ^^ an empty list
"#,
    );
}

#[test]
fn tls_of_a_listener_needs_certificates_with_their_keys() {
    check(
        r#"
[[listen]]
address = "127.0.0.1:443"
tls = { cert = ["/a.pem", "/b.pem"], key = "/a.key" }
"#,
        r#"
larder.toml:3:7: error: there are 2 certificates and 1 keys
   |
 3 | tls = { cert = ["/a.pem", "/b.pem"], key = "/a.key" }
   |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ each certificate has a key
   = help: list the keys in the order of the certificates
"#,
    );
    check(
        r#"
[[listen]]
address = "127.0.0.1:443"
tls = { cert = "/nowhere/a.pem" }
"#,
        r#"
larder.toml:3:16: error: /nowhere/a.pem: No such file or directory (os error 2)
   |
 3 | tls = { cert = "/nowhere/a.pem" }
   |                ^^^^^^^^^^^^^^^^ no TLS can be spoken with this
"#,
    );
}

#[test]
fn what_is_no_toml_is_shown_where() {
    check(
        r#"
[memory
size = "1
a = = 3
"#,
        r#"
larder.toml:1:8: error: unclosed table, expected `]`
   |
 1 | [memory
   |        ^ not TOML
larder.toml:2:10: error: invalid basic string, expected `"`
   |
 2 | size = "1
   |          ^ not TOML
larder.toml:3:5: error: extra `=`, expected nothing
   |
 3 | a = = 3
   |     ^ not TOML
"#,
    );
}

#[test]
fn an_array_that_is_not_closed_is_one_mistake_where_it_begins() {
    check(
        r#"
trusted_proxies = ["127.0.0.1"
server_name = "a"
[policy]
purge_from = ["127.0.0.1"]
"#,
        r#"
larder.toml:1:19: error: this array is not closed
   |
 1 | trusted_proxies = ["127.0.0.1"
   |                   ^ there is no `]` for it before what cannot belong to it
   = help: write `]` behind its last value
"#,
    );
}

#[test]
fn addresses_are_checked() {
    check(
        r#"
trusted_proxies = ["10.0.0.0/33"]
[[listen]]
address = "8080"
[resolver]
servers = "dns"
[resolver.hosts]
a = "b"
"#,
        r#"
larder.toml:1:20: error: `10.0.0.0/33` is no network
   |
 1 | trusted_proxies = ["10.0.0.0/33"]
   |                    ^^^^^^^^^^^^^ an address or a prefix, such as 10.0.0.0/8 or ::1
larder.toml:3:11: error: larder cannot listen on `8080`
   |
 3 | address = "8080"
   |           ^^^^^^ say which address: 127.0.0.1:8080 for this machine only, *:8080 for all
larder.toml:5:11: error: `dns` is no name server
   |
 5 | servers = "dns"
   |           ^^^^^ an IP address, with a port if it is not 53
larder.toml:7:5: error: `b` is no IP address
   |
 7 | a = "b"
   |     ^^^ such as 192.0.2.7 or [2001:db8::7] without brackets
"#,
    );
}

#[test]
fn who_opens_larder_to_everybody_is_told() {
    let check = |text: &str, expect: Option<&str>| {
        let said = read(text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}")).warnings();
        assert_eq!(said.len(), expect.iter().len(), "{text}: {said:?}");
        assert!(expect.is_none_or(|part| said[0].contains(part)), "{text}: {said:?}");
    };
    check("[admin]\naddress = \"127.0.0.1:9180\"\n", None);
    check("[admin]\naddress = \"unix:/run/a.sock\"\n", None);
    check("[admin]\naddress = \"off\"\n", None);
    check("[admin]\naddress = \"0.0.0.0:9180\"\n", Some("other machines can read the admin address 0.0.0.0:9180"));
    check("trusted_proxies = \"10.0.0.0/8\"\n", None);
    check("trusted_proxies = [\"10.0.0.0/8\", \"::/0\"]\n", Some("trusted_proxies are all addresses"));
}
