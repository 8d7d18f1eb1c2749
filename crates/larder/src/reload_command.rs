//! `larder reload`: has the larder that runs read its config again, and says what came of it.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::admin_client::{self, RemoteFlags};

#[derive(Clone, Debug, Args)]
pub struct ReloadFlags {
    #[command(flatten)]
    pub remote: RemoteFlags,
}

pub fn reload(flags: &ReloadFlags) -> ExitCode {
    admin_client::ask(&flags.remote, "POST", "/reload", b"", told)
}

/// What is new, a line each, and what is to be known of it.
fn told(answer: &Value) -> String {
    let texts =
        |key: &str| -> Vec<&str> { answer[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect() };
    let changed = texts("changed");
    let mut lines = vec![match changed.len() {
        0 => "reloaded: nothing that larder.toml says is new".to_owned(),
        1 => "reloaded: one thing is new".to_owned(),
        count => format!("reloaded: {count} things are new"),
    }];
    lines.extend(changed.iter().map(|part| format!("  {part}")));
    lines.extend(texts("warnings").iter().map(|warning| format!("warning: {warning}")));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_new_is_told_a_line_each() {
        let check = |changed: Value, expect: &str| {
            assert_eq!(told(&json!({ "outcome": "taken", "changed": changed, "warnings": ["w"] })), expect);
        };
        check(json!([]), "reloaded: nothing that larder.toml says is new\nwarning: w\n");
        check(json!(["[limits]"]), "reloaded: one thing is new\n  [limits]\nwarning: w\n");
        check(json!(["[origin] a", "[limits]"]), "reloaded: 2 things are new\n  [origin] a\n  [limits]\nwarning: w\n");
    }
}
