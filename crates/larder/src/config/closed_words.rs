//! `closed_paths` of a route or of a preset.

use std::ops::Range;
use std::sync::Arc;

use proxy::settings::ClosedPaths;

use super::complaint::Complaint;
use super::section::{Section, as_switch, pattern};

/// What it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosedWords {
    pub patterns: Vec<String>,
    /// `false`: nothing that a preset closes is.
    pub takes_back: bool,
}

/// What is closed, and where that stands.
pub fn read(section: &mut Section<'_>) -> Option<(ClosedWords, Range<usize>)> {
    let node = section.get("closed_paths")?;
    let span = node.span();
    if as_switch(node) == Some(false) {
        return Some((ClosedWords { takes_back: true, ..ClosedWords::default() }, span));
    }
    let patterns = section.read_list("closed_paths", |node| {
        let written = pattern(node)?;
        match ClosedPaths::new([written]) {
            Ok(_) => Ok(written.to_owned()),
            Err(why) => Err(Complaint::new(node.span(), why, "a PCRE2 pattern was expected")),
        }
    })?;
    Some((ClosedWords { patterns, takes_back: false }, span))
}

impl ClosedWords {
    /// Held against paths; nothing, if none is closed.
    pub fn paths(&self) -> Option<Arc<ClosedPaths>> {
        let paths = ClosedPaths::new(self.patterns.iter().map(String::as_str)).ok();
        paths.filter(|_| !self.patterns.is_empty()).map(Arc::new)
    }
}
