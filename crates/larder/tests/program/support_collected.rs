//! `larder support`: what it collects of a larder that runs, of one whose serving process has died, and of one that is not there.

use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::peer_process::wait_for;
use crate::supervised_larder::{HeldOrigin, SupervisedLarder};

/// A setting with a secret in it.
const TRACES: &str = "[traces]\nendpoint = \"http://127.0.0.1:1\"\nsample = 0.0\nheaders = { Authorization = \"Bearer of-the-operator\" }\n";

/// So many of its serving processes have died.
fn deaths(larder: &SupervisedLarder) -> Option<String> {
    let figures = String::from_utf8_lossy(&larder.command(&["stat", "--once"]).stdout).into_owned();
    figures.lines().find_map(|line| Some(line.strip_prefix("processes.deaths ")?.trim().to_owned()))
}

/// The part below a title.
fn part<'a>(text: &'a str, title: &str) -> &'a str {
    let (_, behind) = text.split_once(&format!("== {title} ==\n")).unwrap_or_else(|| panic!("no {title}: {text}"));
    behind.split("\n== ").next().unwrap_or_default()
}

fn collected(larder: &SupervisedLarder) -> String {
    let output = larder.command(&["support", "--to", "-"]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn it_has_what_is_needed_and_no_secret() {
    let origin = HeldOrigin::start();
    let larder = SupervisedLarder::start("support", &origin, TRACES);
    let secret = "?session=of-a-client";
    assert!(larder.get(&format!("/page{secret}")).expect("answered").starts_with("HTTP/1.1 200"));
    let killed = larder.serving()[0];
    larder.signal(killed, Signal::KILL);
    wait_for("another process serves", || larder.serving().first().is_some_and(|pid| *pid != killed));
    wait_for("it answers", || deaths(&larder).as_deref() == Some("1"));

    let text = collected(&larder);
    let died = format!("the serving process {} was ended by signal 9 after ", killed.as_raw_pid());
    assert!(part(&text, "crash reports").contains(&died), "{text}");
    assert!(part(&text, "larder").contains("build ") && part(&text, "machine").contains("MemTotal"));
    let process = part(&text, "process that serves");
    assert!(process.contains("Max open files") && process.contains("open descriptors: "), "{process}");
    assert!(part(&text, "what happened").contains("restart"));
    assert!(part(&text, "config that holds").contains("[origin.a]"));
    assert!(part(&text, "larder check").contains("summary: "));
    assert!(part(&text, "disks").contains(" free"));
    assert!(
        part(&text, "/status").contains("\"uptime_seconds\"")
            && part(&text, "/metrics").contains("larder_panics_total 0")
    );
    assert!(!text.contains("of-the-operator") && !text.contains("of-a-client"), "{text}");

    let file = larder.folder.join("support.txt");
    let output = larder.command(&["support", "--to", "support.txt"]);
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("support.txt has "),
        "{output:?}"
    );
    assert_eq!(std::fs::metadata(&file).expect("it is written").permissions().mode() & 0o777, 0o600);
    let again = larder.command(&["support", "--to", "support.txt"]);
    assert!(
        !again.status.success() && String::from_utf8_lossy(&again.stderr).contains("cannot be written"),
        "{again:?}"
    );

    larder.signal(larder.supervisor(), Signal::TERM);
    wait_for("nobody answers", || larder.command(&["stat", "--once"]).status.code() == Some(1));
    let text = collected(&larder);
    assert!(part(&text, "/status").contains("not to be had: the admin address"), "{text}");
    assert!(part(&text, "larder check").contains("summary: "), "{text}");
    assert!(part(&text, "machine").contains("MemTotal"), "{text}");

    // A line that is wrong may have a secret in it, and is not shown.
    let good = std::fs::read_to_string(larder.folder.join("larder.toml")).expect("it is there");
    let broken = format!("{good}token = \"of-the-operator\nmore = 1\n");
    std::fs::write(larder.folder.join("larder.toml"), broken).expect("the target folder can be written");
    let text = collected(&larder);
    assert!(part(&text, "larder check").contains("it has mistakes: "), "{text}");
    assert!(!text.contains("of-the-operator"), "{text}");
}
