//! What `tidy` found: what must be mended, and what should be looked at.

use std::fmt::Display;
use std::path::Path;

/// A sentence each.
#[derive(Default)]
pub struct Findings {
    pub complaints: Vec<String>,
    pub warnings: Vec<String>,
}

impl Findings {
    pub fn complain(&mut self, path: &Path, what: impl Display) {
        self.complaints.push(format!("{}: {what}", path.display()));
    }
}
