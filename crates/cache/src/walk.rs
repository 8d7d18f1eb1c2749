//! A walk through the whole directory in bounded steps: the lurker takes one for bans (`banning.rs`), and the reaper for what a
//! policy gave a life that is over (`reaper.rs`).
//!
//! A shard is locked for one slice of its keys. All of the keys are looked at, which is quick, but only the objects of one
//! slice of them, which may be anywhere in memory. What comes into a slice behind the walker's back is not missed: the
//! lurker has it tested when it lands, and to the reaper it is young.

use std::sync::Arc;

use crate::directory::Directory;
use crate::limits::{SHARDS, WALK_OBJECTS_MAX};
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
            if !object.is_withdrawn() && wanted(object) {
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
