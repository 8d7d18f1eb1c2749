//! `larder upgrade`: has the program as it lies on the disk now take over from the larder that runs, without a connection refused.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;

use crate::admin_client::{self, RemoteFlags};
use crate::limits::UPGRADE_PATIENCE;

#[derive(Clone, Debug, Args)]
pub struct UpgradeFlags {
    #[command(flatten)]
    pub remote: RemoteFlags,
}

pub const UPGRADE_EXAMPLES: &str = "\
Examples:
  larder upgrade --config /etc/larder/larder.toml
  apt-get install ./larder_2.0_amd64.deb && larder upgrade --config /etc/larder/larder.toml

The larder that runs starts the program that lies where it was started from, by the same flags; once that one serves on the same addresses, the
former process lets nobody in any more and finishes what is under way, for up to limits.upgrade_grace. What is on disks is handed over, and
the memory begins empty. A program that cannot serve changes nothing: the one that runs goes on. `kill -USR2` of the process does the same.

Exit codes: 0 upgraded; 1 not, or no larder answers; 2 wrong flags.";

pub fn upgrade(flags: &UpgradeFlags) -> ExitCode {
    let larder = &flags.remote.larder;
    let (status, answer) = match admin_client::exchange_json_within(UPGRADE_PATIENCE, larder, "POST", "/upgrade", None)
    {
        Ok(answered) => answered,
        Err(why) => return admin_client::failed(&why),
    };
    let text = match (flags.remote.json, status) {
        (true, _) => format!("{answer}\n"),
        (false, 200) => {
            let seen = admin_client::exchange_json(larder, "GET", "/status", None);
            let version = seen.ok().and_then(|(_, status)| Some(status["version"].as_str()?.to_owned()));
            let version = version.map_or_else(String::new, |version| format!(", version {version}"));
            format!("upgraded: process {}{version}\n", answer["process"])
        }
        (false, _) => return admin_client::failed(answer["error"].as_str().unwrap_or_default()),
    };
    // A closed pipe must not end this with a panic; the exit code still tells.
    let _ = io::stdout().write_all(text.as_bytes());
    if status == 200 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
