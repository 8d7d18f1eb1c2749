//! Purges: of a key or of a tag, hard or soft, and how many objects they hit.
//!
//! A hard purge takes objects out. A soft one only shortens their lives, as a rule so that they may be served while they
//! are fetched again. Either takes the next number of the invalidation sequence: what began before it is not stored.
//!
//! A hard purge of a tag, which may hit thousands, only marks them: from then on nobody is served any of them. They are taken out and
//! freed behind it (`purged_objects.rs`).

use std::sync::Arc;

use rules::lifetimes;
use store::Tenant;
use store::sync::atomic::Ordering::Relaxed;

use crate::by_program::ByProgram;
use crate::cache::Cache;
use crate::entry::Entry;
use crate::invalidation_line::Invalidated;
use crate::key::Key;
use crate::limits::PURGED_OUT_AT_ONCE;
use crate::moment::Now;
use crate::object::{Object, ObjectParts};
use crate::purge_kind::Purge;
use crate::removed_objects::RemovedObjects;

impl Cache {
    /// Purges all variants of a key. Fetches of it that are under way serve who waits for them and store nothing. Returns
    /// how many objects it hit, parts and marks among them.
    pub fn purge_as(&self, key: Key, how: Purge, now: Now) -> usize {
        if how == Purge::Hard {
            return self.purge(key);
        }
        let mut removed = RemovedObjects::new();
        let mut shard = self.directory.shard(key);
        let number = self.invalidation.fetch_add(1, Relaxed) + 1;
        shard.renumber(key, number);
        // On the disk it would have all of its life before it.
        self.forget_beneath(key);
        let Some(entry) = shard.known(key) else { return 0 };
        let hit = self.purge_all_of(entry, how, now, &mut removed);
        entry.forget_notes();
        entry.delist_those_that_left().for_each(|flight| flight.condemn());
        shard.tidy(key);
        drop(shard);
        hit
    }

    /// Purges what carries any of these tags, wherever it is. Softly, only what is not stale already is hit. Fetches under
    /// way turn out to carry one or not: those that do are not stored. It is in force when this returns, on the core of
    /// whoever calls; what a hard one hits may take memory until [`Cache::take_out_purged`] has been there.
    pub fn purge_tags(&self, tags: &[Key], how: Purge, now: Now) -> usize {
        let hit = tags.iter().map(|tag| self.purge_tag(*tag, how, now)).sum();
        self.take_out_purged(PURGED_OUT_AT_ONCE);
        hit
    }

    fn purge_tag(&self, tag: Key, how: Purge, now: Now) -> usize {
        let number = self.invalidation.fetch_add(1, Relaxed) + 1;
        // The number first: what is enrolled after the index is read finds it.
        self.tag_index().invalidate(tag, number);
        if let Some(disk) = &self.disk {
            disk.invalidate_tag(tag, number);
        }
        self.tell_of(|| Invalidated::Tag(tag));
        match how {
            Purge::Hard => self.withdraw_tag(tag),
            Purge::Soft { .. } => self.soften_tag(tag, how, now),
        }
    }

    fn withdraw_tag(&self, tag: Key) -> usize {
        let (mut taken, mut hit) = (self.tag_index().take(tag), 0);
        taken.in_pieces(|piece| hit += self.purged.withdraw(piece));
        self.counters.invalidated.fetch_add(hit as u64, Relaxed);
        hit
    }

    /// In their places, with nothing locked.
    fn soften_tag(&self, tag: Key, how: Purge, now: Now) -> usize {
        let (mut carriers, mut hit) = (self.tag_index().carriers(tag), 0);
        carriers.in_pieces(|piece| {
            let is_meant = |object: &Arc<Object>| object.lifetimes(now).ttl_ms > 0;
            let (parts, wholes): (Vec<_>, Vec<_>) =
                piece.into_iter().filter(is_meant).partition(|object| object.partial().is_some());
            hit += wholes.iter().filter(|object| self.shorten_when_stored(object, how, now)).count();
            // Nobody is served a part that is not fresh.
            if !parts.is_empty() {
                hit += self.purged.withdraw(parts);
            }
        });
        self.counters.invalidated.fetch_add(hit as u64, Relaxed);
        hit
    }

    /// True if it could be served until now.
    fn shorten_when_stored(&self, object: &Object, how: Purge, now: Now) -> bool {
        let shortens = || {
            object.note_on_disk(0);
            shorten(object, how, now)
        };
        // Whoever stores it has enrolled it, and holds the lock until it is in its place; or it is gone.
        shortens() || {
            drop(self.directory.shard(object.key()));
            shortens()
        }
    }

    /// Takes out and frees so much of what purges of tags have marked, at most; returns how much it was. Nobody is served any of it, done or
    /// not.
    pub fn take_out_purged(&self, objects_max: usize) -> usize {
        (0..objects_max).take_while(|_| self.take_out_one_purged().is_some()).count()
    }

    /// The bytes of the one that it takes out; `None`: there is none.
    pub(crate) fn take_out_one_purged(&self) -> Option<usize> {
        let object = self.purged.next()?;
        let weight = object.weight();
        self.take_out(&object);
        self.purged.note_taken_out();
        Some(weight)
    }

    /// Under the shard's lock.
    fn purge_all_of(&self, entry: &mut Entry, how: Purge, now: Now, removed: &mut RemovedObjects) -> usize {
        let meant: Vec<Arc<Object>> = entry.objects().cloned().collect();
        let mut hit = 0;
        for object in &meant {
            hit += match how {
                // Nobody is served a part that is not fresh.
                Purge::Soft { .. } if object.partial().is_none() => {
                    usize::from(self.soften(entry, object, (how, now), object.checked()).is_some())
                }
                _ => {
                    entry.remove(object);
                    self.part_with(&RemovedObjects::from_iter([Arc::clone(object)]))
                }
            };
        }
        self.counters.invalidated.fetch_add(hit as u64, Relaxed);
        removed.extend(meant);
        hit
    }

    /// Shortens the life of what a soft ban of this number hit, from when the ban was issued. What is no longer the stored one is
    /// somebody else's affair. Returns what is stored then.
    pub(crate) fn soften_stored(&self, object: &Arc<Object>, how: (Purge, Now), number: u64) -> Option<Arc<Object>> {
        let mut shard = self.directory.shard(object.key());
        let entry = shard.known(object.key())?;
        let stored = entry.slot(object.variant).and_then(|slot| slot.whole.as_ref());
        let is_stored = stored.is_some_and(|stored| Arc::ptr_eq(stored, object));
        let softened = if is_stored { self.soften(entry, object, how, number) } else { None };
        shard.tidy(object.key());
        self.counters.invalidated.fetch_add(u64::from(softened.is_some()), Relaxed);
        softened
    }

    /// Leaves it less of its life: in its place, if it has room for that; otherwise the same response with less of it takes its place.
    /// Up to which number it was tested against bans goes with it. `None`: it was replaced meanwhile.
    fn soften(
        &self,
        entry: &mut Entry,
        object: &Arc<Object>,
        (how, now): (Purge, Now),
        checked: u64,
    ) -> Option<Arc<Object>> {
        let Purge::Soft { ttl_ms, grace_ms, keep_ms } = how else { return Some(Arc::clone(object)) };
        if object.can_be_shortened() {
            object.note_checked(checked);
            object.note_on_disk(0);
            return shorten(object, how, now).then(|| Arc::clone(object));
        }
        if object.is_withdrawn() {
            return None;
        }
        let facts = lifetimes::shortened(&object.facts(), object.resident_ms(now), ttl_ms, grace_ms);
        let keep_of = |policy: &ByProgram| keep_ms.map_or(policy.keep_ms, |max| max.min(policy.keep_ms));
        let policy = object.by_program().map(|policy| ByProgram { keep_ms: keep_of(&policy), ..policy });
        let softened = self.object(ObjectParts { facts, policy, checked, on_disk: 0, ..ObjectParts::of(object) });
        entry.swap(object, &softened, self.bans.is_watching());
        self.admit(&softened, &RemovedObjects::from_iter([Arc::clone(object)]));
        Some(softened)
    }
}

fn shorten(object: &Object, how: Purge, now: Now) -> bool {
    match how {
        Purge::Hard => false,
        Purge::Soft { ttl_ms, grace_ms, keep_ms } => object.shorten(ttl_ms, grace_ms, keep_ms, now),
    }
}
