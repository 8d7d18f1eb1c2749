//! Two nodes whose log and shared tier are one Redis that is spoken to over TLS alone, behind a user with a password; and what is said of
//! an engine without one.

use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::json;

use crate::fleet_of_three::{FleetOfThree, FleetOptions, status, version_of};
use crate::peer_process::{Running, free_address, wait_for, wait_until_it_listens};
use crate::purging_larder::{PurgingLarder, VersionedOrigin};
use crate::secure_site::TestAuthority;

#[test]
fn the_log_and_the_tier_may_lie_behind_tls_and_a_user() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("fleet-over-tls");
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let authority = TestAuthority::new();
    let certificate = authority.certificate("localhost", 2099);
    std::fs::write(file("ca.pem"), &authority.pem).unwrap();
    std::fs::write(file("redis.pem"), &certificate.chain).unwrap();
    std::fs::write(file("redis.key"), &certificate.key).unwrap();
    std::fs::write(file("secret"), "0123456789abcdef0123456789abcdef\n").unwrap();
    let (address, origin) = (free_address(), Arc::new(VersionedOrigin::start()));
    let port = address.port().to_string();
    let (pem, key, ca) = (file("redis.pem"), file("redis.key"), file("ca.pem"));
    let user = "nodes on >s3cret ~* +@scripting +@stream +get +set +del +incr";
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"]);
    command.args(["--tls-cert-file", &pem, "--tls-key-file", &key, "--tls-ca-cert-file", &ca, "--user"]);
    command.args(user.split(' ')).args(["--user", "default", "off"]).stdout(Stdio::null());
    let _redis = Running(command.spawn().expect("redis-server is installed by ./setup"));
    wait_until_it_listens(address);
    let node = |name: &str| {
        let url = format!("rediss://nodes:s3cret@localhost:{port}");
        let section = format!(
            "[fleet]\nname = \"{name}\"\nlog = \"{url}\"\nlog_ca = \"{ca}\"\nlease = \"2s\"\nsecret_file = \"{}\"\n\
             [shared]\nurl = \"{url}\"\nca = \"{ca}\"\nwait_max = \"1s\"\n",
            file("secret")
        );
        PurgingLarder::of_fleet(&origin, &format!("fleet-over-tls-{name}"), (false, None), section)
    };
    let nodes = [node("a"), node("b")];
    for node in &nodes {
        wait_for("the nodes know one another", || status(node)["nodes"].as_array().is_some_and(|all| all.len() == 2));
        let said = std::fs::read_to_string(node.folder.join("stderr")).unwrap();
        assert!(!said.contains("asks for no password") && !said.contains("s3cret"), "{said}");
    }
    assert_eq!(version_of(&nodes[0], "/page", ""), 1);
    wait_for("it is in the tier", || {
        nodes[0]
            .order("GET /metrics", "")
            .1
            .as_str()
            .is_some_and(|text| text.contains("\nlarder_shared_kept_total 1\n"))
    });
    assert_eq!((version_of(&nodes[1], "/page", ""), origin.asked()), (1, 1), "the other one takes it from there");
    let version = origin.renew();
    let told = nodes[1].purge(&json!({ "url": "http://shop.test/page", "acknowledge": "applied" }));
    assert_eq!(told["acknowledged"], "applied", "{told}");
    assert_eq!(version_of(&nodes[0], "/page", ""), version);
}

#[test]
fn a_log_without_a_password_is_warned_of() {
    let fleet = FleetOfThree::start("open-log", "2s", FleetOptions::default());
    let said = std::fs::read_to_string(fleet.nodes[0].folder.join("stderr")).unwrap();
    assert!(said.contains("asks for no password: whoever reaches it can purge\n"), "{said}");
}
