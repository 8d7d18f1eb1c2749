//! `larder reload`: has the larder that runs read its config again, and says what came of it.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use proxy::settings::ListenAddress;
use serde_json::Value;

use crate::admin_client::{self, AdminFlags, RemoteFlags};
use crate::config;
use crate::port_holder::{self, PortHolder};

#[derive(Clone, Debug, Args)]
pub struct ReloadFlags {
    #[command(flatten)]
    pub remote: RemoteFlags,
}

pub fn reload(flags: &ReloadFlags) -> ExitCode {
    let larder = &flags.remote.larder;
    let (status, answer) = match admin_client::exchange_json(larder, "POST", "/reload", None) {
        Ok(answered) => answered,
        // A file that does not say whom to ask has the mistake in it; nobody was asked.
        Err(why) if larder.config_file().is_some_and(|file| config::load_admin(&file).is_err()) => {
            return admin_client::failed(&format!("{}\n  {NOBODY_ASKED}", why.trim_end()));
        }
        Err(why) => return admin_client::failed(&with_advice(why, &refused_to_speak(larder))),
    };
    let text = match (flags.remote.json, status) {
        (true, _) => format!("{answer}\n"),
        (false, 200) => told(&answer),
        (false, 401 | 403) => {
            let sentence = answer["error"].as_str().unwrap_or_default().to_owned();
            return admin_client::failed(&with_advice(sentence, &refused_to_obey(larder)));
        }
        (false, _) => return admin_client::failed(answer["error"].as_str().unwrap_or_default()),
    };
    // A closed pipe must not end this with a panic; the exit code still tells.
    let _ = io::stdout().write_all(text.as_bytes());
    if status == 200 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

const NOBODY_ASKED: &str = "No larder was asked: the one that runs goes on with the config that it has";

fn with_advice(sentence: String, advice: &str) -> String {
    if advice.is_empty() { sentence } else { format!("{}\n  {advice}", sentence.trim_end()) }
}

/// A file that was changed says another token, or another address, than the larder that runs has; and it is the file that is to be read.
fn refused_to_obey(larder: &AdminFlags) -> String {
    match larder.config_file() {
        None => String::new(),
        Some(file) => format!(
            "Is the token in {} a new one? The larder that runs still has the one that it read last: `{}` has it read the file, or --token-file \
             FILE with the old token",
            file.display(),
            hang_up(larder)
        ),
    }
}

fn refused_to_speak(larder: &AdminFlags) -> String {
    match larder.config_file() {
        Some(file) if larder.admin.is_none() => format!(
            "Is the address in {} a new one? The larder that runs keeps the one that it was started with until a restart: `{}` has it read the \
             file, or --admin ADDRESS with the old one",
            file.display(),
            hang_up(larder)
        ),
        _ => String::new(),
    }
}

/// What has it read its config without a word over the admin address: with its process, where it can be found.
fn hang_up(larder: &AdminFlags) -> String {
    let holder = match admin_client::address_of(larder) {
        Some(ListenAddress::Tcp(address)) => port_holder::of(address),
        _ => PortHolder::Unseen,
    };
    match holder {
        PortHolder::Larder(Some(process)) => format!("kill -HUP {process}"),
        _ => "kill -HUP $(pidof larder)".to_owned(),
    }
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
