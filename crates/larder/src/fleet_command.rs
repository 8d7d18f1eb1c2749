//! `larder fleet`: the nodes of a fleet, how far each has come in the log of purges, and what each answers from its store.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::Value;

use crate::admin_client::{self, RemoteFlags};
use crate::command_examples::FLEET_STATUS_EXAMPLES;
use crate::log_command::shown_safely::shown_safely;
use crate::quantities::counted;

#[derive(Clone, Debug, Subcommand)]
pub enum FleetCommand {
    /// Each node, how far it has come in the log of purges, and what it answers from its store
    #[command(after_help = FLEET_STATUS_EXAMPLES)]
    Status(RemoteFlags),
}

pub fn fleet(command: &FleetCommand) -> ExitCode {
    match command {
        FleetCommand::Status(remote) => admin_client::ask(remote, "GET", "/fleet", b"", told),
    }
}

/// What the admin address answers, as a person reads it.
fn told(answer: &Value) -> String {
    let text = |value: &Value, key: &str| shown_safely(value[key].as_str().unwrap_or_default()).to_string();
    let mut lines = vec![format!(
        "{:20} {:>10} {:>6} {:>8} {:>7}  {:9} STATE",
        "NODE", "ORDER", "LAG", "SILENT", "HITS", "VERSION"
    )];
    let nodes = answer["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    for node in nodes {
        let number = |key: &str| node[key].as_u64().unwrap_or(0);
        let hits = match number("requests") {
            0 => "-".to_owned(),
            requests => format!("{:.1} %", number("hits") as f64 * 100.0 / requests as f64),
        };
        let state = match (node["this"] == true, node["lapsed"] == true) {
            (true, _) => "this node",
            (false, true) => "silent: its lease is over",
            (false, false) => "up",
        };
        lines.push(format!(
            "{:20} {:>10} {:>6} {:>7}s {hits:>7}  {:9} {state}",
            text(node, "name"),
            number("number"),
            number("lag"),
            format!("{:.1}", number("silent_ms") as f64 / 1_000.0),
            text(node, "version"),
        ));
    }
    for node in nodes.iter().filter(|node| node["complaint"].as_str().is_some_and(|complaint| !complaint.is_empty())) {
        lines.push(format!("{}: {}", text(node, "name"), text(node, "complaint")));
    }
    if answer["log"] != "ok" {
        lines.push(format!("the log cannot be used: {}", text(answer, "log")));
    }
    let number = |key: &str| answer[key].as_u64().unwrap_or(0);
    if number("backlog") > 0 {
        lines.push(format!("waiting for it: {}", counted(number("backlog"), "order")));
    }
    if number("condemned") > 0 {
        lines.push(format!(
            "what is stored here had to be confirmed {}, because orders were missed",
            counted(number("condemned"), "time")
        ));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_stand_in_lines_and_what_is_wrong_below() {
        let node = |name: &str, this: bool, lapsed: bool| {
            json!({"name": name, "this": this, "lapsed": lapsed, "version": "0.1.0", "number": 12, "lag": 0,
                   "silent_ms": 400, "complaint": if this { "" } else { "VCL shop is not loaded: no" }, "requests": 1000, "hits": 925})
        };
        let answer = json!({"log": "refused", "backlog": 2, "condemned": 1,
                            "nodes": [node("a", true, false), node("b\u{1b}[2J", false, true)]});
        let shown = told(&answer);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], "a                            12      0     0.4s  92.5 %  0.1.0     this node");
        assert!(lines[2].ends_with("silent: its lease is over") && !shown.contains('\u{1b}'), "{shown}");
        assert!(lines[3].ends_with(": VCL shop is not loaded: no"), "{shown}");
        assert_eq!(lines[4], "the log cannot be used: refused");
        assert_eq!(lines[5], "waiting for it: 2 orders");
        assert_eq!(lines[6], "what is stored here had to be confirmed 1 time, because orders were missed");
    }
}
