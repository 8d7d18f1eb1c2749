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
    /// As they were typed, without the program's name.
    pub arguments: Vec<OsString>,
}

impl Program {
    /// The program that this process runs: after an upgrade another one lies where it came from.
    pub fn here(&self) -> PathBuf {
        const RUNNING: &str = "/proc/self/exe";
        let which = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        match which(&self.path) == which(Path::new(RUNNING)) {
            true => self.path.clone(),
            false => PathBuf::from(RUNNING),
        }
    }
}
