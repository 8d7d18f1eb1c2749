//! `larder note`: writes a line into the history of the larder that runs, where the dashboard draws it.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use crate::admin_client::{self, RemoteFlags, encoded};

#[derive(Clone, Debug, Args)]
pub struct NoteFlags {
    /// What happened, in a few words
    #[arg(value_name = "TEXT", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    remote: RemoteFlags,
}

pub fn note(flags: &NoteFlags) -> ExitCode {
    let text = flags.words.join(" ");
    let target = format!("/notes?text={}", encoded(&text));
    let told = |answer: &Value| format!("noted: {}\n", answer["noted"].as_str().unwrap_or_default());
    admin_client::ask(&flags.remote, "POST", &target, b"", told)
}
