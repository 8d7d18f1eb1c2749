//! `larder lab run` over TLS and HTTP/2: every kind of row of `lab/bench.toml` in small, with the real servers that
//! `./setup all` installs, and those of `./setup lab` where they are there.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::lab_matrix::{Place, said};

const HEAD: &str = r#"
title = "TLS and HTTP/2"
reference = "larder"
servers = ["larder", "nginx-cache", "varnish", "hitch-varnish", "haproxy", "h2o", "caddy", "null"]

[method]
blocks = 1
slice = "200ms"
warm_max = "300ms"
"#;

const ROWS: &str = r#"
[[row]]
name = "https"
tls = true
size = 6221
connections = 4

[[row]]
name = "h2c"
http2 = true
streams = 5
size = 6221
connections = 4

[[row]]
name = "h2"
tls = true
http2 = true
streams = 5
size = 123784
connections = 4

[[row]]
name = "full"
tls = true
size = 128
connections = 4
keep_alive = false

[[row]]
name = "resumed"
tls = true
size = 128
connections = 4
keep_alive = false
resume = true

[[row]]
name = "idle"
kind = "idle"
tls = true
size = 128
connections = 30
requests = 2

[[row]]
name = "idle h2"
kind = "idle"
tls = true
http2 = true
size = 128
connections = 30
requests = 2
"#;

/// What is started for certain, and what is where it was installed.
const SURE: [&str; 5] = ["larder", "larder-again", "nginx-cache", "varnish", "hitch-varnish"];
const IF_THERE: [&str; 3] = ["haproxy", "h2o", "caddy"];

struct Cells(Value);

impl Cells {
    fn of(&self, server: &str, row: &str) -> &Value {
        let all = self.0["cells"].as_array().expect("cells are a list");
        let found = all.iter().find(|cell| cell["server"] == *server && cell["row"] == *row);
        found.unwrap_or_else(|| panic!("no cell of {server} in {row}"))
    }

    fn server(&self, name: &str) -> &Value {
        let all = self.0["servers"].as_array().expect("servers are a list");
        all.iter().find(|server| server["name"] == *name).expect("it is among them")
    }

    /// The one block of a cell in which nothing failed.
    #[track_caller]
    fn clean(&self, server: &str, row: &str) -> &Value {
        let cell = self.of(server, row);
        assert_eq!(cell["colour"], "clean", "{server}, {row}: {}", cell["why"]);
        let block = &cell["blocks"][0];
        assert!(block["good"].as_u64() >= Some(10), "{server}, {row}: {block:#}");
        assert!(block["origin_requests"].as_u64().unwrap_or(0) == 0, "{server}, {row}: {block:#}");
        block
    }

    #[track_caller]
    fn left_out(&self, server: &str, row: &str, why: &str) {
        let cell = self.of(server, row);
        assert_eq!(cell["colour"], "white", "{server}, {row}: {cell:#}");
        assert!(cell["why"][0].as_str().is_some_and(|said| said.contains(why)), "{server}, {row}: {}", cell["why"]);
    }
}

fn check_server(cells: &Cells, server: &str) {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{server}: no number"));
    if server != "varnish" {
        assert_eq!(number(&cells.clean(server, "https")["handshakes"]["made"]), 4, "{server}");
        assert_eq!(number(&cells.clean(server, "h2")["handshakes"]["made"]), 4, "{server}");
        let full = cells.clean(server, "full");
        let (made, opened) = (number(&full["handshakes"]["made"]), number(&full["connections_opened"]));
        assert!(made >= number(&full["good"]) && made <= opened, "{server}: {full:#}");
        assert_eq!(full["handshakes"]["resumed"], 0, "{server}");
        let resumed = &cells.clean(server, "resumed")["handshakes"];
        // H2O hands out no ticket with a resumed handshake of TLS 1.3: the lab says so.
        let why = cells.of(server, "resumed")["why"].to_string();
        assert_eq!(why.contains("sessions were not resumed"), server == "h2o", "{server}: {why}");
        assert!(number(&resumed["resumed"]) > number(&resumed["made"]) / 2, "{server}: {resumed:#}");
        for row in ["idle", "idle h2"] {
            assert_eq!(cells.clean(server, row)["held"]["alive"], 30, "{server}, {row}");
        }
    }
    if server != "hitch-varnish" {
        assert!(cells.clean(server, "h2c")["handshakes"].is_null(), "{server}");
    }
}

#[test]
fn every_kind_of_row_over_tls_and_http_2_is_measured() {
    let place = Place::new("over-tls");
    let output = place.run(&format!("{HEAD}{ROWS}"), &[]);
    assert!(output.status.success(), "{}", said(&output));
    let cells = Cells(place.results());
    SURE.iter().for_each(|server| check_server(&cells, server));
    for server in IF_THERE {
        match cells.server(server)["skipped"].as_str() {
            None => check_server(&cells, server),
            Some(why) => assert!(why.contains("is not installed: apt-get install"), "{server}: {why}"),
        }
    }
    cells.left_out("varnish", "https", "hitch-varnish has hitch before it");
    cells.left_out("hitch-varnish", "h2c", "asked of varnish");
    cells.left_out("null", "h2", "speaks neither TLS nor HTTP/2");
    // Varnish has a hundred threads at least, and its part is counted.
    let block = cells.clean("hitch-varnish", "https");
    assert!(block["server"]["threads"].as_u64() > Some(100), "{block:#}");
    let hitch = cells.server("hitch-varnish");
    assert!(hitch["version"].as_str().is_some_and(|version| version.contains("hitch")), "{hitch:#}");
    assert!(hitch["behind"]["version"].as_str().is_some_and(|version| version.contains("varnish")), "{hitch:#}");
    let nginx = cells.server("nginx-cache")["configs"].as_array().expect("configs are a list");
    let names: Vec<&str> = nginx.iter().filter_map(|config| config["name"].as_str()).collect();
    assert!(names.contains(&"nginx.conf (TLS)") && names.contains(&"nginx.conf (HTTP/2 over TLS)"), "{names:?}");
    let key = fs::metadata(place.out().join("work/certificate.key")).expect("the run has a key");
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    place.nothing_is_left();
}
