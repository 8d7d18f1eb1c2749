//! An application that can be judged, and the plays in which it is: what the site itself says of caching, how larder reaches it, and
//! what has to hold then.

use crate::sites::php_site::PhpSite;
use crate::sites::private_judge::Site;
use crate::sites::site_policy::{Reached, SiteWords};
use crate::sites::site_promise::Promise;

/// Installs it in a folder, starts it, and gives what the judge must know.
type SetUp = fn() -> Result<(PhpSite, Box<dyn Site>), String>;

pub struct Application {
    pub name: &'static str,
    pub words: SiteWords,
    pub set_up: SetUp,
    /// Without a preset.
    pub plays: &'static [Play],
    /// With it.
    pub preset_plays: &'static [Play],
}

pub struct Play {
    pub what: &'static str,
    /// What the site is told before.
    pub prepare: fn(&PhpSite) -> Result<(), String>,
    pub reached: Reached,
    /// What the operator says over the preset.
    pub on_top: &'static str,
    pub promise: Promise,
}

impl Play {
    /// Of the site alone: nothing is promised.
    pub const fn of_site(what: &'static str, prepare: fn(&PhpSite) -> Result<(), String>) -> Play {
        let promise = Promise { changes_seen_after_s: None, own_pages_alone: false, second_is_hit: false };
        Play { what, prepare, reached: Reached::ByHttp, on_top: "", promise }
    }
}

/// As it is.
pub fn as_it_is(_: &PhpSite) -> Result<(), String> {
    Ok(())
}
