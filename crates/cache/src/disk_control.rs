//! What whoever runs the cache has its disks do: take bans of an earlier process up again, forget, settle, and close.

use std::sync::Arc;
use std::time::Duration;

use store::disk::Invalidation;

use crate::ban_test::BanTest;
use crate::cache::Cache;
use crate::moment::Now;

impl Cache {
    /// Has a ban of an earlier process in force again: what lies on a disk is tested against it. To be called in the order
    /// of their numbers, before anything is asked.
    pub fn restore_ban(&self, number: u64, test: Arc<dyn BanTest>, issued: Now) {
        self.watch_for_bans();
        let _ = self.bans.push(test, issued, &self.account, |_| number);
    }

    /// Drops all that lies on disks: of what they know a part could not be read.
    pub fn forget_disks(&self) {
        if let Some(disk) = &self.disk {
            drop(disk.tier.invalidate(Invalidation::Clear));
        }
    }

    /// Writes what is still to be written, and closes the files. False if that takes longer: then the last of it is missing
    /// after the next start.
    pub fn close_disks(&self, patience: Duration) -> bool {
        self.disk.as_ref().is_none_or(|disk| disk.tier.close(patience))
    }

    /// Ready when every invalidation so far survives a crash, at once where there is no disk. The error says which disk
    /// does not know of one, and why.
    pub fn settled(&self) -> impl Future<Output = Result<(), String>> + Send + 'static {
        let settled = self.disk.as_ref().map(|disk| disk.settled(self.began().0));
        async move {
            match settled {
                Some(settled) => settled.await.map_err(|why| why.0),
                None => Ok(()),
            }
        }
    }
}
