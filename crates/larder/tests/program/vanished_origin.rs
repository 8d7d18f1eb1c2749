//! An origin whose host vanishes without a word, under connections that stand: no RST, no FIN, no ICMP. In networks that this test makes, each a
//! namespace: larder in one, the origin in another, and between them a wire, from whose far end the address is taken.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::fenced_larder::{FencedLarder, make_folder, spawn, write_config};
use crate::peer_process::{Running, wait_long};

const NEAR: &str = "203.0.113.1";
const FAR: &str = "203.0.113.2";
/// Before a program, in a network of its own: until that has its address.
const ONCE_CONNECTED: &str =
    "until ip addr show dev wire 2>/dev/null | grep -q 203.0.113; do sleep 0.05; done; exec \"$0\" \"$@\"";

fn may_unshare() -> bool {
    let tried = Command::new("unshare")
        .args(["-n", "ip", "link", "add", "one", "type", "veth", "peer", "name", "two"])
        .output();
    let may = tried.is_ok_and(|tried| tried.status.success());
    if !may {
        println!("not run: no network can be made here");
    }
    may
}

/// larder, in a network that is still to be connected.
fn unconnected() -> Command {
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", ONCE_CONNECTED, env!("CARGO_BIN_EXE_larder")]);
    command
}

/// `ip` in the network of a process.
fn ip(process: u32, words: &str) -> String {
    let mut command = Command::new("nsenter");
    let told = command.args(["-n", "-t", &process.to_string(), "ip"]).args(words.split(' ')).output();
    let told = told.expect("nsenter is there");
    assert!(told.status.success(), "ip {words}: {}", String::from_utf8_lossy(&told.stderr));
    String::from_utf8(told.stdout).expect("it is text")
}

fn connect(near: u32, far: u32) {
    let network = |process: u32| std::fs::read_link(format!("/proc/{process}/ns/net")).expect("it runs");
    let ours = network(std::process::id());
    wait_long("both have a network of their own", || network(near) != ours && network(far) != ours);
    ip(std::process::id(), &format!("link add wire netns {near} type veth peer name wire netns {far}"));
    for (process, address) in [(near, NEAR), (far, FAR)] {
        ip(process, "link set lo up");
        ip(process, "link set wire up");
        ip(process, &format!("addr add {address}/24 dev wire"));
    }
    // Who asks whether somebody has the address is told so for ever, as by a router in between.
    let told = ip(far, "-o link show dev wire");
    let words: Vec<&str> = told.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "link/ether").expect("it has one");
    ip(near, &format!("neigh replace {FAR} lladdr {} nud permanent dev wire", words[at + 1]));
}

/// The status of an answer.
fn ask(folder: &Path, target: &str) -> String {
    let mut command = Command::new("curl");
    command.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket"]).arg(folder.join("run/l.sock"));
    let told = command.arg(format!("http://site.test{target}")).output().expect("curl is there");
    String::from_utf8(told.stdout).expect("it is text")
}

#[test]
fn a_host_that_vanishes_is_given_up_in_time_and_asked_again_when_it_is_back() {
    const STORED: &str = "/f1000.html?max-age=600";
    const PASSED: &str = "/f2000.html?c=0";
    if !may_unshare() {
        return;
    }
    let folder = make_folder("vanished");
    let config = format!(
        "[[listen]]\naddress = \"unix:PLACE/run/l.sock\"\n[origin.app]\nurls = [\"http://{FAR}:8080\"]\nejection_time = \"1s\"\n\
         [limits]\nconnect_timeout = \"1s\"\nfirst_byte_timeout = \"1s\"\n"
    );
    write_config(&folder, &config);
    let mut origin = unconnected();
    origin.args(["lab", "origin", "--listen", &format!("{FAR}:8080")]);
    let origin = Running(origin.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it can be started"));
    let mut serve = unconnected();
    let child = spawn(&folder, serve.args(["serve", "--no-supervisor"]));
    connect(child.0.id(), origin.0.id());
    let larder = FencedLarder::running(folder.clone(), child);
    wait_long("the origin answers", || ask(&folder, STORED) == "200");
    assert_eq!(ask(&folder, PASSED), "200");

    ip(origin.0.id(), &format!("addr del {FAR}/24 dev wire"));
    // Over the connection that stands: nobody says that there is nobody any more.
    assert_eq!(ask(&folder, PASSED), "504");
    assert_eq!(ask(&folder, STORED), "200", "what is stored is served");
    wait_long("it is said that it is down", || {
        assert!(["502", "503", "504"].contains(&ask(&folder, PASSED).as_str()));
        larder.said().contains(&format!(
            "origin \"app\" ({FAR}:8080) is down: connect timed out after 1 s (limits.connect_timeout)"
        ))
    });
    let said = larder.said();
    assert_eq!(said.matches("is down").count(), 1, "{said}");
    assert_eq!(larder.metric("larder_origin_up"), 0.0);

    ip(origin.0.id(), &format!("addr add {FAR}/24 dev wire"));
    wait_long("it answers again", || ask(&folder, PASSED) == "200");
    larder.wait_for_word(&format!("origin \"app\" ({FAR}:8080) is back after "));
    assert_eq!(larder.metric("larder_origin_up"), 1.0);
}
