//! The config that larder holds, between who has read it and who asks for it at the admin address.
//!
//! It knows no config: who reads one leaves here how it is shown, and how it is found out what its file says by now.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

/// What is new in the file since; or why it would be refused.
pub type FileByNow = Result<Vec<String>, String>;

/// A config as it was read.
pub struct ReadConfig {
    /// As a larder.toml, without secrets.
    pub text: String,
    /// What it was read from, if not from flags alone.
    pub file: Option<PathBuf>,
    /// When, in milliseconds since 1970.
    pub wall_ms: u64,
    pub by_now: Box<dyn Fn() -> FileByNow + Send + Sync>,
}

/// The one that holds. None where larder runs without a config of its own: in place of varnishd, and in the demo.
#[derive(Default)]
pub struct HeldConfig {
    read: Mutex<Option<Arc<ReadConfig>>>,
}

impl HeldConfig {
    pub fn hold(&self, read: ReadConfig) {
        *self.read.lock() = Some(Arc::new(read));
    }

    pub fn get(&self) -> Option<Arc<ReadConfig>> {
        self.read.lock().clone()
    }
}
