//! What is remembered between two looks, over restarts and for all nodes: when a certificate is renewed, and how often that failed.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::schedule::Window;
use crate::state_folder;

/// All times are in seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RenewalNote {
    /// Until when the certificate is good that this is about: one that was replaced by hand has other times.
    pub(crate) until_s: u64,
    pub(crate) renew_at_s: u64,
    /// What the authority suggested.
    pub(crate) window: Option<Window>,
    /// When it is asked again.
    pub(crate) ask_at_s: u64,
    /// Since it last went well.
    pub(crate) failures: u32,
    /// Nothing is tried before.
    pub(crate) try_at_s: u64,
    /// So far the authority itself put us off.
    pub(crate) put_off_s: u64,
    pub(crate) failed_at_s: u64,
    pub(crate) last_failure: Option<String>,
    /// Nothing is renewed before, so soon after it was.
    pub(crate) rest_until_s: u64,
}

impl RenewalNote {
    /// What is no note is as good as none, and is said.
    pub(crate) fn read(path: &Path) -> (RenewalNote, Option<String>) {
        let read = || {
            let Some(text) = state_folder::read(path)? else { return Ok(RenewalNote::default()) };
            serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
        };
        match read() {
            Ok(note) => (note, None),
            Err(why) => (RenewalNote::default(), Some(why)),
        }
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| error.to_string())?;
        state_folder::write_soon(path, &text)
    }
}
