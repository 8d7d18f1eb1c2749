//! A program of others that is built with Go, from modules of its registry that a folder here pins, and started beside larder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::ports;
use crate::project::Project;

/// Until it listens.
const PATIENCE_S: f64 = 30.0;

/// `sources`: the folder with its `go.mod`; `arguments`: of `go build`, with what is built of it last.
pub fn build(project: &Project, name: &str, sources: &str, arguments: &[&str]) -> Result<PathBuf, String> {
    let program = project.root.join("target/tools").join(name);
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .args(arguments)
        .current_dir(project.root.join(sources))
        .status()
        .map_err(|error| format!("go, which the {name} is built with: {error}"))?;
    if built.success() { Ok(program) } else { Err(format!("the {name} cannot be built")) }
}

/// Ends with whoever started it.
pub struct Started(pub Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Once it listens. What it says is in `log`.
pub fn start(command: &mut Command, log: &Path, port: u16) -> Result<Started, String> {
    let file = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn();
    let mut started = Started(child.map_err(|error| format!("{}: {error}", log.display()))?);
    ports::wait(port, PATIENCE_S, || matches!(started.0.try_wait(), Ok(None)))
        .map_err(|why| format!("{why}: {}", log.display()))?;
    Ok(started)
}
