//! `larder lab run` with rows of bodies that change on their way: the rows of `lab/bench.toml` that are named `bodies`, in small, with the
//! real servers that `./setup all` installs, and those of `./setup lab` where they are there.

use serde_json::Value;

use crate::lab_matrix::{Place, said};

/// Of lab/bench.toml, so that what is published is what is tested; shorter, with fewer connections.
fn lab_file() -> String {
    let text = include_str!("../../../../lab/bench.toml");
    let (servers, rows) = text.split_at(text.find("[[row]]").expect("it has rows"));
    let mut lab = servers[..servers.find("[method]").expect("it has a method")].to_owned();
    lab.push_str("[method]\nblocks = 1\nslice = \"500ms\"\nwarm_max = \"500ms\"\n\n");
    for row in rows.split("[[row]]").filter(|row| row.contains("name = \"bodies: ")) {
        lab.push_str("[[row]]");
        for line in row.lines().filter(|line| !line.starts_with("blocks")) {
            lab.push_str(line);
            lab.push('\n');
        }
    }
    // Each first delivery waits for a coder: on a busy machine twelve at once have none within a slice.
    lab.replace("connections = 64", "connections = 8").replace("connections = 12", "connections = 4")
}

fn cells(results: &Value) -> impl Iterator<Item = &Value> {
    results["cells"].as_array().expect("cells are a list").iter()
}

#[test]
fn every_row_of_bodies_is_measured_with_every_server_that_is_there() {
    let place = Place::new("codings");
    let output = place.run(&lab_file(), &[]);
    assert!(output.status.success(), "{}", said(&output));
    let results = place.results();
    let mut measured = Vec::new();
    for cell in cells(&results).filter(|cell| cell["colour"] != "white") {
        let (server, row) = (cell["server"].as_str().expect("a name"), cell["row"].as_str().expect("a name"));
        assert_eq!(cell["colour"], "clean", "{server}, {row}: {}", cell["why"]);
        let block = &cell["blocks"][0];
        assert!(block["good"].as_u64() >= Some(1), "{server}, {row}: {block:#}");
        let (text, body) = (block["text_bytes"].as_f64(), block["body_bytes"].as_f64().expect("bytes"));
        let is_coded = [" in gzip", " in br", " in zstd"].iter().any(|end| row.ends_with(end));
        assert_eq!(text.is_some(), is_coded, "{server}, {row}: {block:#}");
        if let Some(text) = text {
            // HAProxy halves it, with the library that Debian builds it with.
            assert!(text > 1.5 * body, "{server}, {row}: {text} in {body}");
        }
        if row.contains("first delivery") {
            assert!(block["origin_requests"].as_u64() >= block["good"].as_u64(), "{server}, {row}: {block:#}");
        }
        measured.push((server, row));
    }
    let rows = results["rows"].as_array().expect("rows are a list");
    assert_eq!(rows.len(), 8, "{rows:#?}");
    for row in rows.iter().map(|row| row["name"].as_str().expect("a name")) {
        let with_parts = row.contains("parts");
        let sure = if with_parts { ["larder-esi", "varnish-esi"] } else { ["larder", "larder-again"] };
        assert!(sure.iter().all(|server| measured.contains(&(server, row))), "{row}: {measured:?}");
    }
    for (server, part) in [("nginx-cache", "gzip_comp_level 5"), ("varnish", "beresp.do_gzip")] {
        let mut all = results["servers"].as_array().expect("servers are a list").iter();
        let server = all.find(|it| it["name"] == server).expect("it is among them");
        let configs = server["configs"].as_array().expect("configs are a list");
        let coded = |config: &&Value| config["name"].as_str().is_some_and(|name| name.ends_with("(gzip)"));
        let text = configs.iter().find(coded).map(|config| config["text"].to_string()).unwrap_or_default();
        assert!(text.contains(part), "{server:#}");
    }
    // The parts are fetched side by side, 50 ms each, or one after the other.
    let slowest = |server: &str| {
        let mut all = cells(&results).filter(|cell| cell["server"] == server);
        let cell = all.find(|cell| cell["row"].as_str().is_some_and(|row| row.contains("50 ms"))).expect("a cell");
        cell["blocks"][0]["max_micros"].as_u64().expect("a time")
    };
    assert!(slowest("larder-esi") >= 50_000 && slowest("varnish-esi") >= 900_000, "{results:#}");
    place.nothing_is_left();
}
