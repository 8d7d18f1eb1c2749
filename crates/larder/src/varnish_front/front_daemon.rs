//! In the background: the program is started once more in a session of its own, and whoever typed the command learns
//! whether it came up.
//!
//! Forking is no way for a program with threads, and not one without `unsafe`; a second start is.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};

/// What the child says when it serves.
const READY: &str = "ready";

/// Starts ourselves anew, and waits until that one serves or has failed.
pub fn begin(words: &[String]) -> Result<ExitCode, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find our own program: {error}"))?;
    let mut command = Command::new(program);
    command.arg("varnishd").arg("--ready").args(words).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start in the background: {error}"))?;
    let mut line = String::new();
    if let Some(told) = child.stdout.take() {
        BufReader::new(told).read_line(&mut line).map_err(|error| error.to_string())?;
    }
    if line.trim_end() == READY {
        return Ok(ExitCode::SUCCESS);
    }
    // It has said why.
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0).unwrap_or(2)))
}

/// In the child, before anything else: the terminal's signals are not for us.
pub fn leave_session() -> Result<(), String> {
    rustix::process::setsid().map(drop).map_err(|error| format!("cannot begin a session: {error}"))
}

/// In the child, when it serves: the parent ends, and nobody reads what we say any more.
pub fn tell_ready() -> Result<(), String> {
    let _ = writeln!(std::io::stdout(), "{READY}");
    let failed = |error: std::io::Error| format!("/dev/null: {error}");
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&nothing).map_err(|error| failed(error.into()))?;
    rustix::stdio::dup2_stdout(&nothing).map_err(|error| failed(error.into()))?;
    rustix::stdio::dup2_stderr(&nothing).map_err(|error| failed(error.into()))?;
    Ok(())
}
