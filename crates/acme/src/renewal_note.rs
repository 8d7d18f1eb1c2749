//! What is remembered between two looks, over restarts and for all nodes: when a certificate is renewed, and how often that failed.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::limits::{CLOCKS_APART_MAX_S, PAUSE_MAX, RENEWAL_INFO_EVERY_MAX_S};
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

    /// What was noted by a clock that has been set back since is no reason to wait until that comes round again.
    pub(crate) fn believed_at(mut self, now_s: u64) -> RenewalNote {
        let latest_s = |pause_s: u64| now_s + pause_s + CLOCKS_APART_MAX_S;
        if self.ask_at_s > latest_s(RENEWAL_INFO_EVERY_MAX_S) {
            self.ask_at_s = now_s;
        }
        if self.rest_until_s > latest_s(PAUSE_MAX.as_secs()) {
            self.rest_until_s = 0;
        }
        if self.failed_at_s > latest_s(0) {
            (self.failed_at_s, self.put_off_s, self.try_at_s) = (now_s, 0, now_s);
        }
        self
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| error.to_string())?;
        state_folder::write_soon(path, &text)
    }
}
