//! `larder check FILE…`: says whether a config is good, and if not, everything that is wrong with it.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::config::{self, ConfigError};
use crate::flags::CheckFlags;
use crate::plan::Plan;
use crate::quantities::show_size;

/// A closed pipe must not end the check with a panic, so write errors are ignored: the exit code still tells.
pub fn check(flags: &CheckFlags) -> ExitCode {
    let results: Vec<_> = flags.files.iter().map(|path| (path, config::load(path))).collect();
    if flags.json {
        let files: Vec<Value> = results.iter().map(|(path, result)| row(path, result)).collect();
        let _ = writeln!(std::io::stdout(), "{}", json!({ "files": files }));
    } else {
        for (path, result) in &results {
            let _ = match result {
                Ok(plan) => writeln!(std::io::stdout(), "{}: ok: {}", path.display(), summary(plan)),
                Err(error) => write!(std::io::stderr(), "{}", error.show(std::io::stderr().is_terminal())),
            };
        }
    }
    if results.iter().all(|(_, result)| result.is_ok()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn row(path: &Path, result: &Result<Plan, ConfigError>) -> Value {
    let file = path.display().to_string();
    match result {
        Ok(plan) => json!({ "file": file, "ok": true, "summary": summary(plan), "errors": [] }),
        Err(ConfigError::Faulty(faulty)) => json!({ "file": file, "ok": false, "errors": faulty.rows() }),
        Err(ConfigError::Unreadable(why)) => json!({ "file": file, "ok": false, "errors": [{ "message": why }] }),
    }
}

/// The plan in one line.
fn summary(plan: &Plan) -> String {
    let counted = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
    let settings = &plan.settings;
    let origins = match settings.origins.len() {
        0 => "no origin (give --origin to serve)".to_owned(),
        n => counted(n, "origin"),
    };
    format!(
        "{}, {}, {origins}, {} of memory",
        counted(settings.listeners.len(), "listener"),
        counted(settings.routes.len(), "route"),
        show_size(settings.memory_bytes_max as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_config_is_summed_up() {
        let plan = config::read("[origin.web]\nurls = \"http://127.0.0.1:3000\"\n[memory]\nsize = \"64MiB\"").unwrap();
        assert_eq!(summary(&plan), "1 listener, 1 route, 1 origin, 64 MiB of memory");
        assert!(summary(&Plan::default()).contains("no origin"));
    }
}
