//! The right and the duty to fetch: what a miss holds until a head has come, or will not.
//!
//! A ticket ends in one of `describe`, `refreshed` or `fail`; dropping it fails the flight, so that nobody waits
//! for a fetch that nobody makes.

use std::sync::Arc;
use std::task::{Context, Poll};

use message::{Request, RequestHead, ResponseHead};
use rules::{Facts, WhyNotStored};
use store::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::ban_list::Trial;
use crate::by_program::{ByProgram, Mark, facts_of};
use crate::cache::Cache;
use crate::description::{Description, StoreAs};
use crate::draft::{Draft, Keep};
use crate::duty::{Duty, entry_of};
use crate::failure::Failure;
use crate::flight::{Fits, Flight, FlightHead, Inner, target_of};
use crate::flight_state::FlightState;
use crate::follower::Follower;
use crate::kept_head::KeptHead;
use crate::moment::Now;
use crate::object::{EncodingsFrom, Object, ObjectParts};
use crate::removed_objects::RemovedObjects;
use crate::second_tier::FetchRight;
use crate::slice_room::SliceUnderWay;
use crate::spec::variant_of;
use crate::why_uncacheable::WhyUncacheable;

#[derive(Debug)]
pub struct Ticket {
    pub(crate) duty: Duty,
    pub(crate) asked: Box<Asked>,
    pub(crate) stale: Option<Arc<Object>>,
    /// The mark that it goes by.
    mark: Option<Arc<Object>>,
    meets_other_variants: bool,
}

/// The request of a fetch. It selects the variant that the response will be stored as.
#[derive(Debug)]
pub(crate) struct Asked {
    /// As it was asked with.
    pub request: RequestHead,
    /// As the origin got it, where a program made another one of it.
    at_origin: Option<RequestHead>,
}

impl Asked {
    /// The request by which a variant is selected.
    pub fn selecting(&self) -> Request<'_> {
        self.at_origin.as_ref().unwrap_or(&self.request).request()
    }

    /// The URL that was asked for.
    pub fn url(&self) -> Box<[u8]> {
        let mut url = Vec::new();
        self.request.request().write_url(&mut url);
        url.into()
    }
}

impl Ticket {
    pub(crate) fn new(
        cache: Arc<Cache>,
        flight: Arc<Flight>,
        request: RequestHead,
        stale: Option<Arc<Object>>,
    ) -> Ticket {
        let asked = Box::new(Asked { request, at_origin: None });
        Ticket { duty: Duty::new(cache, flight), asked, stale, mark: None, meets_other_variants: false }
    }

    pub(crate) fn past(self, mark: Option<Arc<Object>>) -> Ticket {
        Ticket { mark, ..self }
    }

    pub(crate) fn beside_others(self, meets_other_variants: bool) -> Ticket {
        Ticket { meets_other_variants, ..self }
    }

    /// Fetches for other nodes, too.
    pub fn hold(&mut self, right: FetchRight) {
        self.duty.right = Some(right);
    }

    /// Says what the origin was asked, where that is another request: what its response varies on was chosen by that one, so
    /// it is that one's variant. Whom bans and waiting mean is still the request that was asked with.
    pub fn asked_as(&mut self, asked: RequestHead) {
        self.asked.at_origin = Some(asked);
    }

    /// What leaves when this fetch ends well: what it set out from, where a program decided how long that lives. Without one
    /// what is stored stays beside what is new, as RFC 9111 §4.1 chooses among them.
    pub(crate) fn superseded(&self) -> Option<Arc<Object>> {
        self.mark.as_ref().or(self.stale.as_ref().filter(|stale| stale.is_by_program())).cloned()
    }

    /// The right to say when the request leaves, for whoever sends it.
    pub fn departure(&self) -> Departure {
        Departure {
            cache: Arc::clone(&self.duty.cache),
            flight: Arc::clone(&self.duty.flight),
            stale: self.stale.clone(),
        }
    }

    pub fn flight(&self) -> &Arc<Flight> {
        &self.duty.flight
    }

    /// The request that was asked with.
    pub fn request(&self) -> Request<'_> {
        self.asked.request.request()
    }

    /// What to validate, and what may be served if the fetch fails.
    pub fn stale(&self) -> Option<&Arc<Object>> {
        self.stale.as_ref()
    }

    /// Is something stored under its key that Vary selects for other requests?
    pub fn meets_other_variants(&self) -> bool {
        self.meets_other_variants
    }

    /// The leader's own reader. To be taken before the head is described; a background refresh needs none.
    pub fn follow(&self, core: usize) -> Follower {
        let flight = &self.duty.flight;
        let slot = flight.with(|inner| inner.readers.join(core));
        Follower::new(Arc::clone(flight), slot, core)
    }

    pub fn readers_count(&self) -> usize {
        self.duty.flight.readers_count()
    }

    /// A reader like all others: set free when the ticket is given back.
    pub fn join(&self, core: usize) -> Follower {
        self.follow(core).waiting(None, None, 0)
    }

    /// Ready when somebody waits: [`Follower::announce`] wakes us.
    pub fn poll_wanted(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.duty.flight.with(|inner| inner.poll_writer(cx, |inner| inner.readers.count() > 0))
    }

    /// Ready when nobody waits any more.
    pub fn poll_abandoned(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.duty.flight.with(|inner| inner.poll_writer(cx, |inner| inner.readers.count() == 0))
    }

    /// Gives the fetch up if nobody waits for it; hands the ticket back if somebody does after all. Nobody can join
    /// between the look and the end.
    pub fn abandon(mut self, failure: Failure) -> Option<Ticket> {
        (!self.duty.give_up_unread(failure)).then_some(self)
    }

    /// The head is known. Who waits is told; whom it does not fit is regrouped; a body is to follow.
    pub fn describe(self, description: Description) -> Draft {
        self.describe_kept(description, None)
    }

    /// The same of a slice, which takes room that was held for it: it is kept however much readers hold of others.
    pub fn describe_within(self, room: SliceUnderWay, description: Description) -> Draft {
        self.describe_kept(description, Some(room))
    }

    fn describe_kept(self, description: Description, room: Option<SliceUnderWay>) -> Draft {
        let Description { head: full, shared_head: shared, length, storable, now, .. } = description;
        let Description { uncacheable_ms, is_personal, why_not, supersedes, mark, esi, .. } = description;
        let superseded = self.superseded().filter(|_| supersedes);
        // Whatever was invalidated from here on is about it.
        self.duty.flight.depart();
        let fits = Fits::Leader;
        let trial = Trial::since(self.duty.flight.began());
        let head = FlightHead {
            full,
            shared,
            length,
            facts: None,
            received: now,
            fits,
            groups: None,
            tags: None,
            keep_ms: 0,
            is_by_program: false,
            trial,
            is_manifest: false,
            esi,
        };
        let mark_ms = (uncacheable_ms > 0).then(|| now.mono_ms.saturating_add(uncacheable_ms));
        match storable {
            Some(store_as) => self.describe_storable(head, store_as, mark_ms, room).superseding(superseded),
            None => self.describe_private(head, (mark_ms, is_personal, why_not), mark, superseded),
        }
    }

    fn describe_private(
        self,
        head: FlightHead,
        (mark_ms, is_personal, why_not): (Option<u64>, bool, Option<WhyNotStored>),
        mark: Option<Mark>,
        superseded: Option<Arc<Object>>,
    ) -> Draft {
        let mark = mark.map(|mark| self.mark_object(mark, Arc::clone(&head.shared), head.received));
        let (mut duty, length, mut trial) = (self.duty, head.length, head.trial);
        // It is nobody else's.
        duty.right = None;
        let mut removed = RemovedObjects::new();
        let request = self.asked.request.request();
        let shard = duty.cache.shard_after(duty.flight.key, &mut trial, |trial| match &mark {
            Some(mark) => duty.cache.bans.go_on(trial, &mark.as_subject(Some(&request))),
            None => trial.checked = u64::MAX,
        });
        let ((), wakes) = duty.within(shard, |shard, flight| {
            let entry = entry_of(shard, flight);
            entry.note_answered();
            entry.delist(flight);
            if let Some(mark) = mark.filter(|_| trial.banned.is_none()) {
                mark.note_checked(trial.checked);
                duty.cache.take_in(entry, &mark, flight.began(), &mut removed);
            }
            if let Some(old) = &superseded {
                duty.cache.supersede(entry, old, &mut removed);
            }
            shard.note_uncacheable(flight.key, mark_ms, is_personal, why_not.map(WhyUncacheable::Rules));
            flight.change(|inner| {
                inner.state.step(FlightState::Private);
                inner.head = Some(head);
                inner.open_window();
            })
        });
        wakes.send(&duty.flight);
        Draft::new(duty, length, None, mark_ms)
    }

    /// A mark, in place of the response that it is about.
    pub(crate) fn mark_object(&self, mark: Mark, head: Arc<ResponseHead>, received: Now) -> Arc<Object> {
        let (cache, flight) = (&self.duty.cache, &self.duty.flight);
        let (facts, policy) = (mark.lifetimes.facts(&Facts::default()), ByProgram::marking(&mark));
        let spec = mark.vary.map(|vary| cache.specs.spec(vary, cache.digester));
        cache.object(ObjectParts {
            key: flight.key,
            variant: variant_of(spec.as_ref(), self.asked.selecting().fields).of_mark(),
            spec,
            head: KeptHead::of_url(&self.asked.url(), (&head, b""), &[]),
            out_of_line: None,
            facts,
            received,
            order: flight.order,
            part: None,
            sliced: None,
            groups: None,
            policy: Some(policy),
            tags: cache.tag_set(mark.tags),
            esi: None,
            checked: flight.began(),
            began: flight.began(),
            on_disk: 0,
            encodings: EncodingsFrom::Nobody,
        })
    }

    fn describe_storable(
        self,
        mut head: FlightHead,
        store_as: StoreAs,
        mark_ms: Option<u64>,
        room: Option<SliceUnderWay>,
    ) -> Draft {
        let (mut duty, asked, length) = (self.duty, self.asked, head.length);
        let cache = Arc::clone(&duty.cache);
        let StoreAs { facts, lifetimes, vary, rendered, partial, whole, sliced, elsewhere, groups, tags } = store_as;
        let tags = cache.tag_set(tags);
        let (facts, policy) = (facts_of(lifetimes.as_ref(), facts), lifetimes.as_ref().map(ByProgram::of));
        let spec = vary.map(|vary| cache.specs.spec(vary, cache.digester));
        let variant = variant_of(spec.as_ref(), asked.selecting().fields);
        let too_long = room.is_none() && length.is_some_and(|length| length > cache.object_bytes_max());
        head.facts = Some(facts);
        head.is_manifest = sliced.is_some();
        head.keep_ms = policy.map_or(0, |policy| policy.keep_ms);
        head.is_by_program = policy.is_some();
        head.groups = cache.membership(groups.as_ref(), duty.flight.began());
        head.tags = tags.as_ref().map(|tags| tags.under_way(duty.flight.began()));
        let mut removed = RemovedObjects::new();
        let mut trial = head.trial;
        let shard = cache.shard_after(duty.flight.key, &mut trial, |trial| {
            cache.bans.go_on(trial, &head.as_subject(&asked.request.request()));
        });
        head.trial = trial;
        let (keep, wakes) = duty.within(shard, |shard, flight| {
            let entry = entry_of(shard, flight);
            entry.note_answered();
            let condemned = entry.invalidated > flight.began() || !head.is_valid() || trial.banned.is_some();
            let groups = head.groups.clone();
            // What must not be stored says nothing about the key any more.
            let here = !condemned && elsewhere.is_none();
            let spec = if here { entry.note_spec(spec, &mut removed) } else { spec };
            let displaced = entry.other_variants(asked.selecting().fields, variant);
            cache.part_with(&removed);
            let only_target = elsewhere.is_some_and(|there| there.only_target);
            head.fits = match partial {
                Some(_) => Fits::Leader,
                None if only_target => Fits::Target(spec.clone(), variant, target_of(&asked.request.request())),
                None => Fits::Variant(spec.clone(), variant),
            };
            if condemned || only_target || too_long || partial.is_some() {
                entry.delist(flight);
            } else {
                entry.list_described(flight, spec.clone(), variant, head.received);
            }
            if too_long && !condemned {
                shard.note_uncacheable(flight.key, mark_ms, false, Some(WhyUncacheable::TooLarge));
            }
            let (_, wakes) = flight.change(|inner| inner.describe(head, condemned, too_long));
            let url = asked.url();
            let request = cache.bans.is_watching().then_some(asked.request);
            let keep = Keep {
                request,
                spec,
                variant,
                displaced,
                rendered,
                url,
                facts,
                policy,
                partial,
                whole,
                sliced,
                elsewhere,
                groups,
                tags,
            };
            let keep = (!condemned && !too_long).then_some(keep);
            (keep, wakes)
        });
        wakes.send(&duty.flight);
        cache.counters.overflowed.fetch_add(u64::from(too_long), Relaxed);
        if keep.is_none() {
            duty.right = None;
        }
        Draft::new(duty, length, keep, mark_ms).within(room)
    }

    /// The right is not used: who waits is set free to ask anew, and nothing is remembered.
    pub fn give_back(self) {
        let Ticket { mut duty, .. } = self;
        let ((), wakes) = duty.close(|shard, flight| {
            entry_of(shard, flight).delist(flight);
            flight.change(|inner| {
                // Also if it was purged meanwhile: what was found instead may be younger than that.
                let is_open = matches!(inner.state, FlightState::Reserved | FlightState::Condemned);
                if is_open && inner.head.is_none() {
                    inner.state.step(FlightState::Private);
                }
            })
        });
        wakes.send(&duty.flight);
    }

    /// No head will come. All who wait get the same failure; others too, for as long as it says.
    pub fn fail(self, failure: Failure, now: Now) {
        let Ticket { mut duty, .. } = self;
        duty.give_up(failure, Some(now));
    }
}

impl Inner {
    /// The head of a response that may be stored, unless the flight is condemned or the body too long.
    pub(crate) fn describe(&mut self, head: FlightHead, condemned: bool, too_long: bool) {
        self.head = Some(head);
        match self.state {
            // A purge condemns the flights it finds; one that was not listed learns it here.
            FlightState::Reserved if condemned => self.state.step(FlightState::Condemned),
            FlightState::Condemned => {}
            _ => self.state.step(FlightState::Described),
        }
        if too_long && !condemned {
            self.state.step(FlightState::Overflowed);
        }
        if condemned || too_long {
            self.open_window();
        }
    }
}

/// Says that a fetch leaves for its origin: what is invalidated before that, by whoever asks or by others, is not about what
/// it brings.
#[derive(Debug)]
pub struct Departure {
    cache: Arc<Cache>,
    flight: Arc<Flight>,
    stale: Option<Arc<Object>>,
}

impl Departure {
    /// Takes the number of this moment for the fetch. Where what it validates has been invalidated meanwhile it keeps the one
    /// that it has: a 304 would bring that back.
    pub fn note(&self) {
        let Departure { cache, flight, stale } = self;
        let mut shard = cache.directory.shard(flight.key);
        let (before, now) = (flight.began(), cache.invalidation.load(Acquire));
        if before != now && stale.as_ref().is_none_or(|stale| stale.is_live()) {
            shard.close(before);
            shard.open(now);
            flight.begin_at(now);
        }
        flight.depart();
    }
}
