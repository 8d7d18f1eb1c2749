//! Signals to processes, by the `kill` that every shell has: the program of that name is in a package of its own.

use std::process::{Command, Stdio};

/// Sends a signal by its name without SIG (`0` only asks) to a process, or with a minus in front to its group. False if
/// there is none.
pub fn send(signal: &str, process: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", "kill -s \"$1\" -- \"$2\"", "sh", signal, process]);
    shell.stdin(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
