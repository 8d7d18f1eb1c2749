//! VCLs that are loaded and used at one node of a fleet, and by that on all; and what is said of a node that cannot.

use std::path::PathBuf;

use serde_json::json;

use crate::fleet_of_three::{FleetOfThree, FleetOptions, say, status};

/// Each node looks for what is included in a folder of its own.
const CARRIED: FleetOptions = FleetOptions {
    has_disk: false,
    vcl: Some("sub vcl_recv { return (synth(200, \"first\")); }"),
    words: concat!("vcl = true\n[policy]\nvcl_path = [\"", env!("CARGO_TARGET_TMPDIR"), "/included-of-NODE\"]"),
};

/// The reason phrase of each node's answer.
fn said(fleet: &FleetOfThree) -> Vec<String> {
    let reason =
        |answer: String| answer.lines().next().unwrap_or_default().trim_start_matches("HTTP/1.1 200 ").to_owned();
    fleet.nodes.iter().map(|node| reason(say(node, "GET /", ""))).collect()
}

fn file_of(fleet: &FleetOfThree, name: &str, text: &str) -> String {
    let file = fleet.nodes[0].folder.join(name);
    std::fs::write(&file, format!("vcl 4.1;\nbackend none none;\n{text}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_vcl_that_is_used_at_one_node_is_used_on_all() {
    let fleet = FleetOfThree::start("vcl", "2s", CARRIED);
    assert_eq!(said(&fleet), ["first"; 3]);
    let file = file_of(&fleet, "second.vcl", "sub vcl_recv { return (synth(200, \"second\")); }");
    let told = fleet.nodes[1].said(&["vcl", "load", "second", &file, "--use"]);
    assert!(told.contains("loaded second") && told.contains("second decides from now on"), "{told}");
    assert_eq!(said(&fleet), ["second"; 3], "at once: it was waited for");
    fleet.nodes[2].said(&["vcl", "label", "live", "second"]);
    assert!(fleet.nodes[0].said(&["vcl", "list"]).contains("live"));
    // What is no VCL is loaded by nobody, and all say so.
    let file = file_of(&fleet, "broken.vcl", "sub vcl_recv { return (dream); }");
    let failed = fleet.nodes[0].command(&["vcl", "load", "broken", &file, "--use"]);
    assert!(!failed.status.success() && String::from_utf8_lossy(&failed.stderr).contains("dream"));
    assert_eq!(said(&fleet), ["second"; 3]);
    for node in &fleet.nodes {
        let nodes = status(node)["nodes"].as_array().unwrap().clone();
        assert!(nodes.iter().all(|node| node["complaint"].as_str().unwrap().starts_with("VCL broken is not loaded")));
        assert_eq!(status(node)["condemned"], 0, "a VCL that is no good is no purge that was missed");
    }
}

#[test]
fn a_node_on_which_a_vcl_is_no_good_keeps_what_it_has_and_says_so() {
    for (node, text) in
        [("a", "sub vcl_deliver { }"), ("b", "sub vcl_deliver { }"), ("c", "sub vcl_deliver { nothing; }")]
    {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("included-of-{node}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("extra.vcl"), text).unwrap();
    }
    let fleet = FleetOfThree::start("vcl-kept", "2s", CARRIED);
    let text = "include \"extra.vcl\";\nsub vcl_recv { return (synth(200, \"third\")); }";
    let file = file_of(&fleet, "third.vcl", text);
    let told = fleet.nodes[0].said(&["vcl", "load", "third", &file, "--use"]);
    assert!(told.contains("c: VCL third is not loaded:") && told.contains("c: VCL third is not used:"), "{told}");
    assert_eq!(said(&fleet), ["third", "third", "first"]);
    let shown = fleet.nodes[1].said(&["fleet", "status"]);
    assert!(shown.contains("c: VCL third is not used:"), "{shown}");
}

#[test]
fn unless_it_says_so_a_node_takes_no_vcl_from_the_log() {
    let options = FleetOptions { words: "", ..CARRIED };
    let fleet = FleetOfThree::start("vcl-own", "2s", options);
    let file = file_of(&fleet, "own.vcl", "sub vcl_recv { return (synth(200, \"own\")); }");
    fleet.nodes[0].said(&["vcl", "load", "own", &file, "--use"]);
    assert_eq!(said(&fleet), ["own", "first", "first"]);
    // Somebody who can write to the log says it there.
    let order = json!({ "vcl": "use", "name": "boot" }).to_string();
    let mut redis = std::process::Command::new("redis-cli");
    redis.args(["-p", &fleet.redis.address.port().to_string(), "EVAL"]);
    redis.arg(
        "redis.call('SET', KEYS[2], ARGV[2], 'NX'); local n = redis.call('INCR', KEYS[3]); \
         return redis.call('XADD', KEYS[1], '*', 'epoch', redis.call('GET', KEYS[2]), 'number', n, 'kind', 'purge', 'order', ARGV[1], 'token', 'x')",
    );
    redis.args(["3", "{larder}:orders", "{larder}:epoch", "{larder}:number", &order, "e"]);
    assert!(redis.output().unwrap().status.success());
    let is_refused = || {
        let nodes = status(&fleet.nodes[0])["nodes"].as_array().unwrap().clone();
        nodes
            .iter()
            .all(|node| node["complaint"] == "VCL boot is not used: this node takes no VCL from the log: [fleet] vcl")
    };
    crate::peer_process::wait_for("all have refused it", is_refused);
    assert_eq!(said(&fleet), ["own", "first", "first"]);
}
