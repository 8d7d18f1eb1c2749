//! A ticket ends in a 304: the stored body under a new head answers all who wait, and is kept, or not, or leaves a mark.
//!
//! Whatever happened meanwhile to what was validated happened to what was confirmed, too: a purge, an invalidated group, a
//! ban. Whether the 304 is about it at all is for the caller to see.

use std::sync::Arc;

use bytes::Bytes;
use message::ResponseHead;
use rules::{Facts, Lifetimes, VarySpec, WhyNotStored};
use store::sync::atomic::Ordering::Relaxed;

use crate::ban_list::Trial;
use crate::by_program::{ByProgram, Mark, facts_of};
use crate::cache::Cache;
use crate::duty::entry_of;
use crate::entry::Entry;
use crate::flight::{End, Fits, FlightHead};
use crate::flight_body::FlightBody;
use crate::flight_state::FlightState;
use crate::group_table::Groups;
use crate::kept_head::KeptHead;
use crate::moment::Now;
use crate::object::{Object, ObjectParts};
use crate::removed_objects::RemovedObjects;
use crate::spec::variant_of;
use crate::tag_index::Tags;
use crate::ticket::Ticket;
use crate::variants::Slot;
use crate::why_uncacheable::WhyUncacheable;

/// What a 304 makes of the response that it confirmed.
#[derive(Clone, Debug)]
pub struct Renewal {
    pub facts: Facts,
    /// As those of [`StoreAs`](crate::StoreAs).
    pub lifetimes: Option<Lifetimes>,
    pub groups: Option<Groups>,
    pub tags: Option<Tags>,
    /// By the new head; another one than before selects by the fields of the request that was answered.
    pub vary: Option<VarySpec>,
}

/// What is remembered of a response that was confirmed for its leader alone. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Unshared {
    /// What a program leaves in its place.
    pub mark: Option<Mark>,
    /// What was confirmed is kept stored as it was: the answer to somebody's credentials says nothing of it.
    pub is_kept: bool,
    /// As those of [`Description`](crate::Description).
    pub uncacheable_ms: u64,
    pub is_personal: bool,
    /// Why what came is not stored.
    pub why_not: Option<WhyNotStored>,
}

/// What is kept of it.
enum Keeping {
    Renewed(Renewal),
    /// Nothing, and it answers its leader alone.
    Private(Unshared),
}

impl Ticket {
    /// As [`Ticket::renewed`], by RFC 9111 and with the Vary that it had.
    ///
    /// # Panics
    /// As [`Ticket::renewed`].
    pub fn refreshed(
        self,
        heads: (Arc<ResponseHead>, Bytes),
        facts: Facts,
        groups: Option<Groups>,
        now: Now,
    ) -> Arc<Object> {
        let vary = self.stale.as_ref().and_then(|stale| stale.spec.as_ref()).map(|spec| spec.vary().clone());
        self.renewed(heads, Renewal { facts, lifetimes: None, groups, tags: None, vary }, now)
    }

    /// The origin said 304: the stored body under a new head answers all who wait and whom it fits. It is stored only if
    /// what was validated still is what is stored, or was merely evicted meanwhile, and nothing invalidated the key
    /// (RFC 9111 §4.3.4). The caller has made sure that the 304 is about [`Ticket::stale`].
    ///
    /// # Panics
    /// Without a stale object: then no validator was sent.
    pub fn renewed(self, heads: (Arc<ResponseHead>, Bytes), renewal: Renewal, now: Now) -> Arc<Object> {
        self.confirmed(heads, Keeping::Renewed(renewal), now)
    }

    /// The same where a program says that what the 304 confirmed is not stored any more, and leaves a mark or none in its
    /// place: its leader has it, and who waits is released.
    ///
    /// # Panics
    /// As [`Ticket::renewed`].
    pub fn refreshed_privately(self, heads: (Arc<ResponseHead>, Bytes), mark: Option<Mark>, now: Now) -> Arc<Object> {
        self.refreshed_for_leader(heads, Unshared { mark, ..Unshared::default() }, now)
    }

    /// The same where the 304 forbids storing (RFC 9111 §5.2.2.5, §5.2.2.7): what it is about leaves the store, unless it was
    /// forbidden for who asked alone. Nothing else under the key has become untrue.
    ///
    /// # Panics
    /// As [`Ticket::renewed`].
    pub fn refreshed_for_leader(self, heads: (Arc<ResponseHead>, Bytes), unshared: Unshared, now: Now) -> Arc<Object> {
        self.confirmed(heads, Keeping::Private(unshared), now)
    }

    fn confirmed(self, heads: (Arc<ResponseHead>, Bytes), keeping: Keeping, now: Now) -> Arc<Object> {
        let head = Arc::clone(&heads.0);
        let (fresh, mark) = self.under_new_head(heads, &keeping, now);
        let Ticket { mut duty, stale, asked, .. } = self;
        let old = stale.expect("only a stored object can be refreshed");
        let cache = Arc::clone(&duty.cache);
        let (began, groups) = (duty.flight.began(), fresh.groups().cloned());
        let unshared = match keeping {
            Keeping::Renewed(_) => None,
            Keeping::Private(unshared) => Some(unshared),
        };
        let facts = unshared.is_none().then(|| fresh.facts());
        let mut removed = RemovedObjects::new();
        let mut trial = Trial::since(began);
        let shard = cache.shard_after(duty.flight.key, &mut trial, |trial| {
            // As for groups: what hit the old head meanwhile meant what was confirmed here.
            let request = asked.request.request();
            // Bans are tested late: one that is older than this fetch may not have met what it validates.
            let mut under_old_head = Trial::since(old.checked().min(began));
            cache.bans.go_on(trial, &fresh.as_subject(Some(&request)));
            cache.bans.go_on(&mut under_old_head, &old.as_subject(Some(&request)));
            trial.banned = [trial.banned, under_old_head.banned].into_iter().flatten().min();
        });
        // Also the groups and tags that it had count: what invalidated them meanwhile meant what was confirmed here.
        let is_valid = || {
            let groups_are = old.groups().is_none_or(|groups| groups.is_valid_since(began));
            let tags_are = old.tags().is_none_or(|tags| tags.is_valid_since(began));
            trial.banned.is_none() && groups_are && tags_are && fresh.is_valid()
        };
        fresh.note_checked(trial.checked);
        let ((), wakes) = duty.close_in(shard, |shard, flight| {
            let mut stores = false;
            let entry = entry_of(shard, flight);
            entry.note_answered();
            entry.delist(flight);
            match &unshared {
                None => stores = cache.take_confirmed(entry, (&old, &fresh), (began, is_valid()), &mut removed),
                Some(Unshared { is_kept: true, .. }) => {}
                Some(_) => cache.give_up(entry, &old, &mut removed),
            }
            if let Some(mark) = mark.filter(|_| trial.banned.is_none()) {
                mark.note_checked(trial.checked);
                let mut marked = RemovedObjects::new();
                cache.take_in(entry, &mark, began, &mut marked);
                removed.extend(marked);
            }
            if let Some(Unshared { uncacheable_ms: ms @ 1.., is_personal, why_not, .. }) = unshared {
                let why = why_not.map(WhyUncacheable::Rules);
                shard.note_uncacheable(flight.key, Some(now.mono_ms.saturating_add(ms)), is_personal, why);
            }
            let fits = Fits::Variant(fresh.spec.clone(), fresh.variant);
            let shared = Arc::clone(&head);
            let (length, keep_ms, is_manifest) = (Some(fresh.length()), 0, fresh.sliced().is_some());
            let tags = fresh.tags().map(|tags| tags.under_way(began));
            let head = FlightHead {
                full: head,
                shared,
                length,
                facts,
                received: now,
                fits,
                groups,
                tags,
                keep_ms,
                is_by_program: fresh.is_by_program(),
                trial,
                is_manifest,
                esi: fresh.esi().cloned(),
            };
            flight.change(|inner| {
                match inner.state {
                    _ if unshared.is_some() => inner.state.step(FlightState::Private),
                    FlightState::Reserved if stores => inner.state.step(FlightState::Landed),
                    FlightState::Reserved => inner.state.step(FlightState::Condemned),
                    _ => {}
                }
                inner.head = Some(head);
                inner.body = FlightBody::Landed(Arc::clone(&fresh));
                inner.end = End::Whole(None);
            })
        });
        wakes.send(&duty.flight);
        cache.counters.refreshed.fetch_add(1, Relaxed);
        fresh
    }

    /// What was validated under its new head, and the mark that comes in its place.
    fn under_new_head(
        &self,
        (head, rendered): (Arc<ResponseHead>, Bytes),
        keeping: &Keeping,
        now: Now,
    ) -> (Arc<Object>, Option<Arc<Object>>) {
        let (cache, flight) = (&self.duty.cache, &self.duty.flight);
        let old = self.stale.as_ref().expect("only a stored object can be refreshed");
        let mark = match keeping {
            Keeping::Private(Unshared { mark: Some(mark), .. }) => {
                Some(self.mark_object(mark.clone(), Arc::clone(&head), now))
            }
            _ => None,
        };
        let (order, began) = (flight.order, flight.began());
        let url = old.url().unwrap_or_default();
        let head = KeptHead::of_url(url, (&head, &rendered), &[old.behind_head()]);
        let mut parts = ObjectParts { received: now, order, began, ..ObjectParts::under(head, old) };
        parts.tags = None;
        (parts.facts, parts.policy, parts.groups) = match keeping {
            Keeping::Renewed(Renewal { facts, lifetimes, vary, groups, tags }) => {
                // RFC 9111 §4.1: of two Vary the new one counts, and the request that was asked with.
                parts.spec = vary.clone().map(|vary| cache.specs.spec(vary, cache.digester));
                parts.variant = variant_of(parts.spec.as_ref(), self.asked.selecting().fields);
                if parts.variant != old.variant {
                    // What a disk has is the old variant.
                    parts.on_disk = 0;
                }
                let membership = cache.membership(groups.as_ref(), flight.began());
                parts.tags = cache.tag_set(tags.clone());
                (facts_of(lifetimes.as_ref(), *facts), lifetimes.as_ref().map(ByProgram::of), membership)
            }
            Keeping::Private(_) => (Facts::default(), None, None),
        };
        (cache.object(parts), mark)
    }
}

impl Cache {
    /// Stores what a 304 confirmed. Under the shard's lock.
    fn take_confirmed(
        &self,
        entry: &mut Entry,
        (old, fresh): (&Arc<Object>, &Arc<Object>),
        (began, is_valid): (u64, bool),
        removed: &mut RemovedObjects,
    ) -> bool {
        let is_stored = |slot: &Slot| slot.objects().any(|it| Arc::ptr_eq(it, old));
        let moves = fresh.variant != old.variant;
        let is_superseded = moves && entry.slot(fresh.variant).is_some_and(|slot| slot.outdates(fresh));
        let replaceable = entry.slot(old.variant).is_none_or(is_stored) && !is_superseded;
        let stores = entry.invalidated <= began && replaceable && is_valid && fresh.enrol(began);
        if stores {
            if moves {
                removed.extend(entry.remove(old).then(|| Arc::clone(old)));
                self.forget_variant_beneath(old.key, old.variant);
            }
            self.put(entry, fresh, removed);
        }
        stores
    }

    /// What was confirmed leaves the store. Under the shard's lock.
    fn give_up(&self, entry: &mut Entry, old: &Arc<Object>, removed: &mut RemovedObjects) {
        if entry.remove(old) {
            removed.push(Arc::clone(old));
            self.part_with(removed);
        }
        // Evicted meanwhile it may lie beneath all the same.
        if entry.slot(old.variant).is_none_or(|slot| slot.whole.is_none()) {
            self.forget_variant_beneath(old.key, old.variant);
        }
    }
}
