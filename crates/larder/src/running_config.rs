//! `larder config running`: the config that the larder that runs holds, and whether its file says the same by now.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use crate::admin_client::{self, RemoteFlags};

pub fn show(flags: &RemoteFlags) -> ExitCode {
    let (status, answer) = match admin_client::exchange_json(&flags.larder, "GET", "/config", None) {
        Ok(answered) => answered,
        Err(why) => return admin_client::failed(&why),
    };
    let text = match (flags.json, status) {
        (true, _) => format!("{answer}\n"),
        (false, 200) => told(&answer),
        (false, _) => return admin_client::failed(answer["error"].as_str().unwrap_or_default()),
    };
    // A closed pipe must not end it with a panic.
    let _ = io::stdout().write_all(text.as_bytes());
    if status == 200 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A larder.toml, and above it where it is from.
fn told(answer: &Value) -> String {
    let at = UNIX_EPOCH + Duration::from_millis(answer["read_ms"].as_u64().unwrap_or(0));
    let at = httpdate::fmt_http_date(at);
    let Some(file) = answer["file"].as_str() else {
        let config = answer["config"].as_str().unwrap_or_default();
        return format!(
            "# What the larder that runs holds: it read no file, and was started with flags on {at}.\n\n{config}"
        );
    };
    let changed: Vec<&str> = answer["changed"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let by_now = match (answer["refused"].as_str(), changed.as_slice()) {
        (Some(why), _) => format!("The file is wrong by now, and a reload would be refused: {}", one_line(why)),
        (None, []) => "The file says the same.".to_owned(),
        (None, changed) => {
            format!("The file says something else by now, which a reload takes over: {}", changed.join(", "))
        }
    };
    let config = answer["config"].as_str().unwrap_or_default();
    format!("# What the larder that runs holds, as it read it from {file} on {at}.\n# {by_now}\n\n{config}")
}

/// A comment ends with its line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(changed: Value, refused: Value, expect: &str) {
        let answer = json!({ "config": "a = 1\n", "file": "/x", "read_ms": 784_111_777_000u64, "changed": changed, "refused": refused });
        let text = told(&answer);
        let (head, config) = text.split_once("\n\n").unwrap();
        assert_eq!(config, "a = 1\n");
        let lines: Vec<&str> = head.lines().collect();
        let from = "# What the larder that runs holds, as it read it from /x on Sun, 06 Nov 1994 08:49:37 GMT.";
        assert_eq!((lines.len(), lines[0], lines[1]), (2, from, expect));
    }

    #[test]
    fn it_is_a_file_with_what_is_to_be_known_above_it() {
        check(json!([]), json!(null), "# The file says the same.");
        let new = "# The file says something else by now, which a reload takes over: [limits], [log]";
        check(json!(["[limits]", "[log]"]), json!(null), new);
        let wrong = "# The file is wrong by now, and a reload would be refused: /x:1:2 /x:3:4";
        check(json!([]), json!("/x:1:2\n/x:3:4"), wrong);
        assert!(told(&json!({ "config": "a = 1\n", "file": null, "read_ms": 0 })).contains("it read no file"));
    }
}
