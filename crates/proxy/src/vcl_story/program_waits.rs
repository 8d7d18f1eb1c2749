//! What a program that is a test waits for, away from the core that others share with it.

use std::sync::Arc;

use vcl::{LogKind, Task};

use crate::vcl_site::VclSite;

/// Waits for all that the subroutine that ran last wants to have waited for.
pub(crate) async fn settle(task: &Task, site: &Arc<VclSite>) {
    for wait in task.take_waits() {
        let site = Arc::clone(site);
        let waited =
            tokio::task::spawn_blocking(move || site.world().wait(&wait).map_err(|why| (Arc::clone(&site), why)));
        if let Ok(Err((site, why))) = waited.await {
            site.world().log(LogKind::Error, why.as_bytes());
        }
    }
}
