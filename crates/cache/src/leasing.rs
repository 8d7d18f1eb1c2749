//! Bodies that stay on their disk when they are recalled: what stands in memory is the head, and who answers borrows the body from
//! the disk's file for as long as it is being sent.
//!
//! A disk writes its segments again when it needs them, whatever memory knows of them: so a body may turn out to be gone, and
//! then its object leaves memory, and is looked for anew.

use std::sync::Arc;

use store::Blocks;
use store::disk::Stored;

use crate::cache::Cache;
use crate::disk_level::DiskLevel;
use crate::object::Object;

impl DiskLevel {
    /// The body of a record: as it lies on its disk, if it is large enough for that and may stay there, or read into memory.
    /// `None` if it cannot be had.
    pub(crate) async fn body_of(&self, stored: &Stored) -> Option<Blocks> {
        if let Some(blocks) = stored.body() {
            return Some(blocks.clone());
        }
        let is_large = self.leases_from.is_some_and(|bytes_min| stored.body_len() >= bytes_min);
        match stored.verify_in_place().filter(|_| is_large) {
            Some(verified) => verified.await.ok().map(Blocks::in_segments),
            None => stored.read_all().await.ok(),
        }
    }
}

impl Cache {
    /// Its body is not there any more, or cannot be leased now: whoever asks next looks for it on the disk.
    pub fn release(&self, object: &Arc<Object>) {
        let mut shard = self.directory.shard(object.key);
        if shard.remove(object) {
            self.part_with(&[Arc::clone(object)].into_iter().collect());
        }
    }
}
