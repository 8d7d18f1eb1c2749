//! A walk through the whole directory in bounded steps, and who takes one: the lurker for bans (`banning.rs`), and the
//! reaper, which drops what a policy gave a life that is over.
//!
//! A shard is locked for one slice of its keys. All of the keys are looked at, which is quick, but only the objects of one
//! slice of them, which may be anywhere in memory. What comes into a slice behind the walker's back is not missed: the
//! lurker has it tested when it lands, and to the reaper it is young.

use std::sync::Arc;

use store::sync::atomic::Ordering::Relaxed;

use crate::cache::Cache;
use crate::directory::{Directory, Leavers};
use crate::limits::{SHARDS, WALK_OBJECTS_MAX};
use crate::moment::Now;
use crate::object::Object;

/// Where a walker stands: in a slice of a shard's keys.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// Shards looked through since the start; the next one follows from it.
    pub cursor: u64,
    slice: u32,
    slices: u32,
}

/// What a step found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub objects: Vec<Arc<Object>>,
    /// Objects that were looked at.
    pub seen: usize,
    /// It was the last slice of its shard.
    pub ends_shard: bool,
}

impl Walk {
    /// The wanted objects of the next slice.
    pub fn step(&mut self, directory: &Directory, wanted: impl Fn(&Object) -> bool) -> Found {
        let mut found = Found::default();
        let shard = directory.nth_shard((self.cursor % SHARDS as u64) as usize);
        if self.slice == 0 {
            self.slices = (shard.keys_count() / WALK_OBJECTS_MAX + 1).next_power_of_two() as u32;
        }
        let (slice, mask) = (u64::from(self.slice), u64::from(self.slices) - 1);
        for object in shard.objects(|key_bits| (key_bits >> 32) & mask == slice) {
            found.seen += 1;
            if wanted(object) {
                found.objects.push(Arc::clone(object));
            }
        }
        self.slice += 1;
        if self.slice == self.slices {
            (self.slice, self.cursor, found.ends_shard) = (0, self.cursor + 1, true);
        }
        found
    }
}

impl Cache {
    /// Takes a stored object out; false if it was not the stored one any more.
    pub(crate) fn take_out(&self, object: &Arc<Object>) -> bool {
        let leavers = Leavers::from_iter([Arc::clone(object)]);
        let mut shard = self.directory.shard(object.key);
        let is_stored = shard.remove(object);
        if is_stored {
            self.part_with(&leavers);
        }
        is_stored
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
