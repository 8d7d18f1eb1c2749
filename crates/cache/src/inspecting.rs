//! A look at what is stored, for operators: all of it, what lies under a key, what carries a tag or belongs to a group.
//!
//! Whoever looks does so on a thread of its own: a walk takes slices of the directory as the lurker does (`walk.rs`), and nothing is
//! locked while an object is looked at.

use std::sync::Arc;

use crate::ban_test::BanTest;
use crate::cache::Cache;
use crate::group_table::slot_of;
use crate::key::Key;
use crate::limits::SHARDS;
use crate::moment::Now;
use crate::object::Object;
use crate::tag_index::TagUse;
use crate::walk::Walk;

impl Cache {
    /// Shows everything that is stored to `look` until that says `false`. Others may go first at each `pause`.
    pub fn look_through(&self, mut look: impl FnMut(&Arc<Object>) -> bool, mut pause: impl FnMut()) {
        let mut walk = Walk::default();
        while walk.cursor < SHARDS as u64 {
            let found = walk.step(&self.directory, |_| true);
            if !found.objects.iter().all(&mut look) {
                return;
            }
            pause();
        }
    }

    /// All that is stored under a key.
    pub fn stored_under(&self, key: Key) -> Vec<Arc<Object>> {
        self.directory.shard(key).copy(key).objects().filter(|object| !object.is_withdrawn()).cloned().collect()
    }

    /// What is stored and carries one of these tags, each once; looked up.
    pub fn tagged(&self, tags: &[Key]) -> Vec<Arc<Object>> {
        let index = self.tag_index_if_any();
        let mut keys: Vec<Key> = index.iter().flat_map(|index| tags.iter().flat_map(|tag| index.keys(*tag))).collect();
        keys.sort_unstable_by_key(|key| key.bits());
        keys.dedup();
        let carries = |object: &Arc<Object>| object.tags().is_some_and(|own| tags.iter().any(|tag| own.has(*tag)));
        keys.into_iter().flat_map(|key| self.stored_under(key)).filter(carries).collect()
    }

    /// All tags that anything stored carries.
    pub fn tags_in_use(&self) -> Vec<TagUse> {
        self.tag_index_if_any().map_or_else(Vec::new, |index| index.uses())
    }

    /// Does a stored response belong to one of these groups, or share its slot, and was not invalidated with it already?
    pub fn belongs(&self, object: &Object, groups: &[Key]) -> bool {
        let is_meant = |slot: &u32| groups.iter().any(|group| slot_of(*group) == *slot);
        object.groups().is_some_and(|own| own.is_valid() && own.slots().iter().any(is_meant))
    }

    /// Drops a stored response whose groups were invalidated: nobody would be served it any more.
    pub fn drop_outdated(&self, object: &Arc<Object>) -> bool {
        !object.is_valid() && self.take_out(object)
    }

    /// Would a ban hit a stored response?
    pub fn would_hit(&self, test: &dyn BanTest, object: &Object) -> bool {
        test.bans(&object.as_subject(None))
    }
}

impl Object {
    /// Is it served to whoever asks at this moment, without a word of the request's?
    pub fn is_fresh_at(&self, now: Now) -> bool {
        self.is_valid() && self.lifetimes(now).ttl_ms > 0
    }
}
