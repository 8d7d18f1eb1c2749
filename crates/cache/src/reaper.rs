//! The reaper drops what a program gave a life that is over, walking through the directory in the background.

use std::sync::Arc;

use store::sync::atomic::Ordering::Relaxed;

use crate::cache::Cache;
use crate::limits::SHARDS;
use crate::moment::Now;
use crate::object::Object;
use crate::removed_objects::RemovedObjects;

impl Cache {
    /// Takes a stored object out; false if it was not the stored one any more, or was purged already.
    pub(crate) fn take_out(&self, object: &Arc<Object>) -> bool {
        let removed = RemovedObjects::from_iter([Arc::clone(object)]);
        let mut shard = self.directory.shard(object.key);
        shard.remove(object) && self.part_with(&removed) > 0
    }

    /// The reaper: drops what is over ([`Lifetimes`](rules::Lifetimes)), and returns after about so many objects were
    /// looked at, or after one round. The next call goes on where this one ended. Returns how many were dropped.
    pub fn reap(&self, now: Now, objects_max: usize) -> usize {
        let mut walk = self.reaper.lock();
        let (mut looked_at, mut dropped, end) = (0, 0, walk.cursor + SHARDS as u64);
        while looked_at < objects_max.max(1) && walk.cursor < end {
            let found = walk.step(&self.directory, |object| object.is_over(now));
            looked_at += found.seen.max(1);
            dropped += found.objects.iter().filter(|object| self.take_out(object)).count();
        }
        self.counters.expired.fetch_add(dropped as u64, Relaxed);
        dropped
    }
}
