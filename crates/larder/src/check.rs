//! `larder check FILE…`: says whether a config or a VCL file is good, and if not, everything that is wrong with it.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use proxy::settings::ListenMode;
use serde_json::{Value, json};

use crate::check_vcl::{self, VclResult};
use crate::config::{self, ConfigError};
use crate::flags::CheckFlags;
use crate::plan::Plan;
use crate::quantities::show_size;

/// What came of one file.
enum Checked {
    Config(Box<Result<Plan, ConfigError>>),
    Vcl(VclResult),
}

/// A closed pipe must not end the check with a panic, so write errors are ignored: the exit code still tells.
pub fn check(flags: &CheckFlags) -> ExitCode {
    let results: Vec<_> = flags.files.iter().map(|path| (path, Checked::of(path, flags))).collect();
    if flags.json {
        let files: Vec<Value> = results.iter().map(|(path, result)| result.row(path)).collect();
        let _ = writeln!(std::io::stdout(), "{}", json!({ "files": files }));
    } else {
        for (path, result) in &results {
            let _ = write!(std::io::stderr(), "{}", result.show(std::io::stderr().is_terminal()));
            if let Some(summary) = result.summary() {
                let _ = writeln!(std::io::stdout(), "{}: ok: {summary}", path.display());
            }
        }
    }
    if results.iter().all(|(_, result)| result.is_good()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Checked {
    fn of(path: &Path, flags: &CheckFlags) -> Checked {
        if check_vcl::is_vcl(path) {
            Checked::Vcl(check_vcl::load(path, &flags.vcl_path))
        } else {
            let loaded = config::load(path).and_then(|plan| match plan.contradiction() {
                Some(why) => Err(ConfigError::Unreadable(format!("{}: error: {why}", path.display()))),
                None => Ok(plan),
            });
            Checked::Config(Box::new(loaded))
        }
    }

    fn is_good(&self) -> bool {
        match self {
            Checked::Config(result) => result.is_ok(),
            Checked::Vcl(result) => result.is_good(),
        }
    }

    /// Everything that is wrong, or deserves a look.
    fn show(&self, colour: bool) -> String {
        match self {
            Checked::Config(result) => match result.as_ref() {
                Err(error) => error.show(colour),
                Ok(plan) => plan.warnings().iter().map(|warning| format!("warning: {warning}\n")).collect(),
            },
            Checked::Vcl(result) => result.show(colour),
        }
    }

    /// A good file in one line.
    fn summary(&self) -> Option<String> {
        match self {
            Checked::Config(result) => result.as_ref().as_ref().ok().map(summary),
            Checked::Vcl(result) => result.summary(),
        }
    }

    fn row(&self, path: &Path) -> Value {
        match self {
            Checked::Config(result) => row(path, result),
            Checked::Vcl(result) => result.row(path),
        }
    }
}

fn row(path: &Path, result: &Result<Plan, ConfigError>) -> Value {
    let file = path.display().to_string();
    match result {
        Ok(plan) => {
            let warnings = plan.warnings();
            json!({ "file": file, "ok": true, "summary": summary(plan), "errors": [], "warnings": warnings })
        }
        Err(ConfigError::Faulty(faulty)) => json!({ "file": file, "ok": false, "errors": faulty.rows() }),
        Err(ConfigError::Unreadable(why)) => json!({ "file": file, "ok": false, "errors": [{ "message": why }] }),
    }
}

/// The plan in one line.
fn summary(plan: &Plan) -> String {
    let counted = |n: usize, one: &str| match (n, one.split_once(' ')) {
        (1, _) => format!("1 {one}"),
        (_, None) => format!("{n} {one}s"),
        (_, Some((one, rest))) => format!("{n} {one}s {rest}"),
    };
    let settings = &plan.settings;
    let answerers = [
        (settings.origins.len(), "origin"),
        (settings.roots.len(), "root"),
        (settings.memcached.len(), "route to memcached"),
    ];
    let forwards = settings.listeners.iter().any(|listener| listener.mode == ListenMode::Forward);
    let answerers: Vec<String> = answerers
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|&(n, one)| counted(n, one))
        .chain(forwards.then(|| "a forward proxy".to_owned()))
        .collect();
    let origins = match answerers.is_empty() {
        true => "no origin (give --origin or --root to serve)".to_owned(),
        false => answerers.join(", "),
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
        let plan = config::read("[[listen]]\naddress = \"127.0.0.1:3128\"\nmode = \"forward\"").unwrap();
        assert_eq!(summary(&plan), "1 listener, 0 routes, a forward proxy, 256 MiB of memory");
    }
}
