//! Three larders before one origin, with a real redis-server between them: what is purged at one is purged at all, an acknowledgement means what
//! it says, and a node that hears nothing serves nothing old.

use serde_json::{Value, json};

use crate::fleet_of_three::{FleetOfThree, FleetOptions, Redis, knows_three, status};
use crate::peer_process::wait_for;
use crate::purging_larder::PurgingLarder;

fn start(test: &str, lease: &str, has_disk: bool) -> FleetOfThree {
    FleetOfThree::start(test, lease, FleetOptions { has_disk, ..FleetOptions::default() })
}

fn version_of(node: &PurgingLarder, path: &str) -> u64 {
    crate::fleet_of_three::version_of(node, path, "")
}

fn order(acknowledge: &str) -> Value {
    json!({ "url": "http://shop.test/page", "acknowledge": acknowledge })
}

#[test]
fn what_is_purged_at_one_node_is_served_by_none() {
    let fleet = start("everywhere", "1s", false);
    assert_eq!(fleet.versions("/page"), [1, 1, 1]);
    for round in 2..12 {
        let version = fleet.origin.renew();
        let at = &fleet.nodes[round % 3];
        let told = at.purge(&order("applied"));
        assert_eq!((&told["acknowledged"], &told["lapsed"]), (&json!("applied"), &json!([])), "{told}");
        assert_eq!(
            (&told["dropped"], &told["number"]),
            (&json!(1), &json!(round - 1)),
            "as the node says that was asked"
        );
        assert_eq!(fleet.versions("/page"), [version; 3]);
    }
    assert_eq!(fleet.origin.asked(), 33, "once a purge and node, and no more");
}

#[test]
fn tags_prefixes_and_soft_purges_reach_all_nodes() {
    let fleet = start("selectors", "1s", false);
    for (path, selector) in [
        ("/tagged/1", json!({ "tags": ["Menu"] })),
        ("/page", json!({ "prefix": "shop.test/p" })),
        ("/page", json!({ "regex": "^shop.test/pa.e$", "soft": true })),
        ("/page", json!({ "all": true })),
    ] {
        fleet.versions(path);
        let version = fleet.origin.renew();
        let mut order = selector.clone();
        order["acknowledge"] = "applied".into();
        fleet.nodes[1].purge(&order);
        assert_eq!(fleet.versions(path), [version; 3], "{selector}");
    }
}

#[test]
fn a_stopped_node_is_waited_for_until_it_serves_nothing_old() {
    let fleet = start("stopped", "1s", false);
    assert_eq!(fleet.versions("/page"), [1, 1, 1]);
    let stopped = &fleet.nodes[2];
    stopped.signal("-STOP");
    let version = fleet.origin.renew();
    let told = fleet.nodes[0].purge(&order("applied"));
    assert_eq!((&told["acknowledged"], &told["lapsed"]), (&json!("applied"), &json!(["c"])), "{told}");
    stopped.signal("-CONT");
    assert_eq!(version_of(stopped, "/page"), version, "whether it has heard of the purge by now or not");
    knows_three(stopped);
}

#[test]
fn without_the_log_pages_are_served_and_none_that_is_older_than_a_lease() {
    let mut fleet = start("cut-off", "1s", false);
    assert_eq!(fleet.versions("/page"), [1, 1, 1]);
    fleet.redis.signal("-KILL");
    fleet.redis.process.0.wait().expect("it ends");
    let (status_code, told) = fleet.nodes[0].order("POST /purge", &order("applied").to_string());
    assert_eq!((status_code, &told["acknowledged"]), (503, &json!("local")), "{told}");
    let version = fleet.origin.renew();
    wait_for("the others ask the origin", || fleet.versions("/page")[1..] == [version; 2]);
    // It confirms what they have once a lease, and not for each request.
    let asked = fleet.origin.asked();
    (0..20).for_each(|_| assert_eq!(fleet.versions("/page")[1..], [version; 2]));
    assert!(fleet.origin.asked() - asked <= 12, "{asked} {}", fleet.origin.asked());
    // What was ordered meanwhile reaches the others when the log is there again.
    fleet.redis.process = Redis::on(fleet.redis.address);
    wait_for("nothing waits any more", || {
        status(&fleet.nodes[0])["backlog"] == 0 && status(&fleet.nodes[0])["log"] == "ok"
    });
    let told = fleet.nodes[1].purge(&order("applied"));
    assert_eq!(told["acknowledged"], "applied", "{told}");
}

#[test]
fn a_node_that_comes_back_with_its_disk_serves_nothing_that_was_purged_meanwhile() {
    let mut fleet = start("restarted", "2s", true);
    for path in ["/page", "/other"] {
        assert_eq!(fleet.versions(path), [1, 1, 1]);
    }
    let position = fleet.nodes[2].folder.join("disk.fleet");
    fleet.nodes[2].purge(&json!({ "url": "http://shop.test/nothing", "acknowledge": "applied" }));
    wait_for("it has written down how far it is", || {
        std::fs::read_to_string(&position).is_ok_and(|text| text.contains("number 1\n"))
    });
    fleet.nodes[2].end();
    let version = fleet.origin.renew();
    let told = fleet.nodes[0].purge(&order("applied"));
    assert_eq!((&told["acknowledged"], &told["lapsed"]), (&json!("applied"), &json!([])), "it said good-bye: {told}");
    fleet.nodes[2].begin();
    assert_eq!(version_of(&fleet.nodes[2], "/page"), version);
    knows_three(&fleet.nodes[2]);
    assert_eq!(status(&fleet.nodes[2])["condemned"], 0, "it read on from where it was");
    assert_eq!(version_of(&fleet.nodes[2], "/other"), 1, "from its disk");
}

#[test]
fn a_purge_says_what_it_needs_where_there_is_no_fleet() {
    let alone = PurgingLarder::start("fleet-alone", false);
    let (status_code, told) = alone.order("POST /purge", &order("applied").to_string());
    assert_eq!(status_code, 422);
    assert!(told["error"].as_str().unwrap().contains("[fleet] log"), "{told}");
    assert_eq!(alone.order("GET /fleet", "").0, 404);
}

#[test]
fn the_commands_say_how_a_fleet_stands() {
    let fleet = start("commands", "1s", false);
    let node = &fleet.nodes[0];
    assert_eq!(
        node.said(&["purge", "http://shop.test/page", "--applied"]).lines().nth(1),
        Some("order 1 of the fleet: every node has applied it")
    );
    let shown = node.said(&["fleet", "status"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 4, "{shown}");
    assert!(lines[1].starts_with("a ") && lines[1].ends_with("this node"), "{shown}");
    assert!(lines[2..].iter().all(|line| line.ends_with(" up")), "{shown}");
}
