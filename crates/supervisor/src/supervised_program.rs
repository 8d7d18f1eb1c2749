//! The program that is started, and where it lies.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Stands behind the arguments of one that is to serve.
pub const SERVING_FLAG: &str = "--supervised";
/// Stands behind the arguments of a supervisor that goes on for another one, in the same process.
pub const SUCCEEDING_FLAG: &str = "--succeeding";

/// What is started, and again.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where it lies, also after an upgrade.
    pub path: PathBuf,
    /// What this process runs, also when another program lies there by now: the one that is started in place of one that died.
    pub running: PathBuf,
    /// As they were typed, without the program's name.
    pub arguments: Vec<OsString>,
}

impl Program {
    /// The program that this process runs, by its name where it still lies there: after an upgrade another one lies where it came from.
    pub fn here(&self) -> PathBuf {
        let which = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        match which(&self.path) == which(&self.running) {
            true => self.path.clone(),
            false => self.running.clone(),
        }
    }
}
