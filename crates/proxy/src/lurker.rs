//! The thread that works bans off in the background: it tests what no look-up comes across, so that bans come to their end.
//!
//! A thread of its own that gives way to the cores: what is tested for a ban is no hit's to pay for.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::core::Shared;
use crate::purge_orders::give_way_to_cores;
use crate::vital::vital_thread;

/// How often it looks whether there is a ban.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Stored responses that are tested in one go: a few milliseconds.
const TESTED_AT_ONCE_MAX: usize = 4_000;
/// And between two of those.
const PAUSE: Duration = Duration::from_millis(50);

/// Works for as long as anybody else holds what all cores share.
pub(crate) fn start(shared: &Arc<Shared>) -> std::io::Result<()> {
    let shared = Arc::downgrade(shared);
    let work = move || {
        give_way_to_cores();
        work_off(&shared);
    };
    vital_thread("larder-lurker", "what works off bans", work).map(drop)
}

fn work_off(shared: &Weak<Shared>) {
    while let Some(shared) = shared.upgrade() {
        let is_idle = shared.cache.work_off_bans(TESTED_AT_ONCE_MAX).is_idle;
        drop(shared);
        std::thread::sleep(if is_idle { LOOK_EVERY } else { PAUSE });
    }
}
