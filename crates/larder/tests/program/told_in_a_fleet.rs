//! What one node of a fleet invalidates by other ways than an operator's order reaches the others: unsafe methods, groups that a response names,
//! PURGE as a method, what a program purges and bans, and bans at the admin address.

use serde_json::json;

use crate::fleet_of_three::{FleetOfThree, FleetOptions, say, status, version_of};
use crate::peer_process::wait_for;

const UNSAFE: FleetOptions = FleetOptions { has_disk: false, vcl: None, words: "unsafe_methods = true" };
const APPLIED: FleetOptions = FleetOptions { has_disk: false, vcl: None, words: "acknowledge = \"applied\"" };

fn is_answered(answer: &str, status: u16) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
}

/// All have carried out as many orders.
fn have_heard(fleet: &FleetOfThree, number: u64) {
    wait_for("all have heard of it", || fleet.nodes.iter().all(|node| status(node)["number"] == number));
}

#[test]
fn what_a_post_makes_untrue_on_one_node_is_asked_for_anew_on_all() {
    let fleet = FleetOfThree::start("unsafe", "2s", UNSAFE);
    for (number, line, path) in [
        (1, "POST /page", "/page"),
        (2, "DELETE /page?of=1", "/page?of=1"),
        // Location and Content-Location of the response, on the same origin.
        (3, "POST /create", "/created"),
    ] {
        fleet.versions(path);
        let version = fleet.origin.renew();
        is_answered(&say(&fleet.nodes[1], line, ""), 200);
        assert_eq!(version_of(&fleet.nodes[1], path, ""), version, "at once where it was: {line}");
        have_heard(&fleet, number);
        let asked = fleet.origin.asked();
        assert_eq!(fleet.versions(path), [version; 3], "{line}");
        assert_eq!(
            fleet.origin.asked() - asked,
            2,
            "what was fetched since by the node that said it is still good: {line}"
        );
    }
    let told = status(&fleet.nodes[1]);
    assert_eq!((&told["told"], &told["lost"], &told["backlog"]), (&json!(3), &json!(0), &json!(0)));
}

#[test]
fn a_post_that_fails_makes_nothing_untrue_anywhere() {
    let fleet = FleetOfThree::start("unsafe-failed", "2s", UNSAFE);
    fleet.nodes.iter().for_each(|node| is_answered(&say(node, "GET /gone", ""), 404));
    let asked = fleet.origin.asked();
    is_answered(&say(&fleet.nodes[0], "POST /gone", ""), 404);
    is_answered(&say(&fleet.nodes[0], "GET /gone", ""), 404);
    assert_eq!(fleet.origin.asked(), asked + 1, "the POST");
    assert_eq!(status(&fleet.nodes[0])["told"], 0);
}

#[test]
fn groups_that_a_response_names_are_invalidated_on_all_nodes() {
    let fleet = FleetOfThree::start("groups", "2s", UNSAFE);
    for path in ["/grouped", "/grouped/others"] {
        assert_eq!(fleet.versions(path), [1; 3]);
    }
    let version = fleet.origin.renew();
    is_answered(&say(&fleet.nodes[2], "POST /regroup", ""), 200);
    // The groups, and the URL that was posted to.
    have_heard(&fleet, 2);
    assert_eq!(fleet.versions("/grouped"), [version; 3]);
    assert_eq!(fleet.versions("/grouped/others"), [1; 3]);
}

#[test]
fn unless_it_is_asked_for_a_post_is_each_nodes_own_affair() {
    let fleet = FleetOfThree::start("not-asked", "2s", FleetOptions::default());
    assert_eq!(fleet.versions("/page"), [1; 3]);
    let version = fleet.origin.renew();
    is_answered(&say(&fleet.nodes[0], "POST /page", ""), 200);
    let told = fleet.nodes[0].purge(&json!({ "url": "http://shop.test/other", "acknowledge": "applied" }));
    assert_eq!(told["number"], 1, "it is the first order");
    assert_eq!(fleet.versions("/page"), [version, 1, 1]);
}

#[test]
fn what_is_told_while_the_log_is_gone_reaches_the_others_when_it_is_there_again() {
    let mut fleet = FleetOfThree::start("told-later", "60s", UNSAFE);
    assert_eq!(fleet.versions("/page"), [1; 3]);
    fleet.redis.signal("-STOP");
    let version = fleet.origin.renew();
    is_answered(&say(&fleet.nodes[0], "POST /page", ""), 200);
    assert_eq!(fleet.versions("/page"), [version, 1, 1], "nobody waits, and the others cannot know");
    assert_eq!(status(&fleet.nodes[0])["backlog"], 1);
    fleet.redis.signal("-CONT");
    wait_for("the others have it", || fleet.versions("/page") == [version; 3]);
    // Right before the end: what waits goes before the good-bye.
    let version = fleet.origin.renew();
    is_answered(&say(&fleet.nodes[0], "PUT /page", ""), 200);
    fleet.nodes[0].end();
    wait_for("the others have it", || fleet.nodes[1..].iter().all(|node| version_of(node, "/page", "") == version));
}

#[test]
fn a_purge_by_its_method_is_answered_when_it_is_acknowledged_as_the_fleet_says() {
    let fleet = FleetOfThree::start("purge-method", "1s", APPLIED);
    for round in 0..3 {
        for (path, lines) in [("/page", ""), ("/page?of=1", ""), ("/grouped", "Cache-Group-Invalidation: \"news\"\r\n")]
        {
            fleet.versions(path);
            let version = fleet.origin.renew();
            is_answered(&say(&fleet.nodes[round], &format!("PURGE {path}"), lines), 200);
            assert_eq!(fleet.versions(path), [version; 3], "{path}");
        }
    }
    fleet.redis.signal("-KILL");
    let answer = say(&fleet.nodes[0], "PURGE /page", "");
    is_answered(&answer, 503);
    assert!(answer.contains("not acknowledged as [fleet] acknowledge says"), "{answer}");
    assert_eq!(status(&fleet.nodes[0])["backlog"], 1, "it reaches the others when the log is there again");
}

#[test]
fn a_ban_at_the_admin_address_is_in_force_on_all_nodes() {
    let fleet = FleetOfThree::start("ban", "1s", APPLIED);
    for path in ["/picture", "/page"] {
        assert_eq!(fleet.versions(path), [1; 3]);
    }
    let version = fleet.origin.renew();
    assert_eq!(fleet.nodes[1].order("POST /ban", "obj.http.Content-Type ~ ^image/").0, 200);
    assert_eq!(fleet.versions("/picture"), [version; 3]);
    assert_eq!(fleet.versions("/page"), [1; 3]);
    assert_eq!(fleet.nodes[1].order("POST /ban", "obj.nothing == 1").0, 422, "what is none goes to nobody");
    assert_eq!(status(&fleet.nodes[1])["number"], 1);
    fleet.redis.signal("-KILL");
    let (code, told) = fleet.nodes[1].order("POST /ban", "obj.status == 200");
    assert!(code == 503 && told["error"].as_str().unwrap().contains("not acknowledged as applied"), "{told}");
    assert!(version_of(&fleet.nodes[1], "/page", "") == version, "it is in force here");
}

const PURGING: &str = "
import std; import purge; import xkey;
sub vcl_recv {
  if (req.method == \"PURGE\") { return (purge); }
  if (req.method == \"BAN\") { ban(\"obj.http.Content-Type ~ \" + req.http.X-Type); return (synth(200, \"Banned\")); }
  if (req.method == \"STDBAN\") {
    if (std.ban(\"obj.http.Content-Type ~ \" + req.http.X-Type)) { return (synth(200, \"Banned\")); }
    return (synth(400, std.ban_error()));
  }
  if (req.method == \"TAG\") { return (synth(200, \"Tagged: \" + xkey.purge(req.http.X-Word))); }
}
sub vcl_hash { hash_data(req.url); hash_data(req.http.X-Tenant); return (lookup); }
sub vcl_hit {
  if (req.http.X-Purge == \"hard\") { return (synth(200, \"Gone: \" + purge.hard())); }
  if (req.http.X-Purge == \"soft\") { return (synth(200, \"Softened: \" + purge.soft(0s, 0s, 0s))); }
}
sub vcl_backend_response { if (bereq.url == \"/picture\") { set beresp.http.xkey = \"pictures\"; } set beresp.grace = 0s; }
";

#[test]
fn what_a_program_purges_and_bans_is_gone_on_all_nodes() {
    let options = FleetOptions { vcl: Some(PURGING), ..APPLIED };
    let fleet = FleetOfThree::start("program", "2s", options);
    let mut number = 0;
    for (line, lines, path, tenant) in [
        ("PURGE /page", "", "/page", ""),
        // What vcl_hash hashes beside the URL goes with it.
        ("PURGE /page", "X-Tenant: blue\r\n", "/page", "X-Tenant: blue\r\n"),
        ("GET /page", "X-Purge: hard\r\n", "/page", ""),
        ("GET /page", "X-Purge: soft\r\nX-Tenant: blue\r\n", "/page", "X-Tenant: blue\r\n"),
        ("TAG /", "X-Word: pictures\r\n", "/picture", ""),
        ("BAN /", "X-Type: ^image/\r\n", "/picture", ""),
        ("STDBAN /", "X-Type: ^image/\r\n", "/picture", ""),
    ] {
        let versions = || fleet.nodes.iter().map(|node| version_of(node, path, tenant)).collect::<Vec<_>>();
        let others = || fleet.nodes.iter().map(|node| version_of(node, "/other", "")).collect::<Vec<_>>();
        let (_, before) = (versions(), others());
        let version = fleet.origin.renew();
        is_answered(&say(&fleet.nodes[number % 3], line, lines), 200);
        number += 1;
        if line.starts_with("PURGE") {
            assert_eq!(versions(), [version; 3], "it is acknowledged: {line}");
        }
        have_heard(&fleet, number as u64);
        assert_eq!(versions(), [version; 3], "{line} {lines}");
        assert_eq!(others(), before, "and nothing else: {line}");
    }
    is_answered(&say(&fleet.nodes[0], "STDBAN /", "X-Type: (\r\n"), 400);
    assert_eq!(status(&fleet.nodes[0])["number"], number, "what is no ban is told to nobody");
    fleet.redis.signal("-KILL");
    is_answered(&say(&fleet.nodes[0], "PURGE /page", ""), 503);
}
