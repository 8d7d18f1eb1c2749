//! What is to be done with a request: the one question `proxy` asks.
//!
//! A look-up, a judgement by `rules`, and at most one new flight, all under the lock of one shard. Copies of the
//! request, for those who will wait, are made after it.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use message::Request;

use crate::cache::Cache;
use crate::entry::Entry;
use crate::failure::Failure;
use crate::flight::Flight;
use crate::follower::Follower;
use crate::key::Key;
use crate::lookup_options::LookupOptions;
use crate::lookup_plan::{LookupPlan, Question, Stored, Verdict, fresh_part, judge};
use crate::moment::Now;
use crate::object::Object;
use crate::removed_objects::RemovedObjects;
use crate::spec::variant_of;
use crate::ticket::Ticket;

/// What is to be done with a request.
#[derive(Debug)]
pub enum Answer {
    /// Serve it.
    Fresh(Arc<Object>),
    /// It may be served now (stale-while-revalidate, max-stale, or in place of a failure that is remembered). The
    /// ticket, if there is one, is for one refresh in the background.
    Stale(Arc<Object>, Option<Ticket>),
    /// Fetch it. `ticket.stale()` is what to validate and what may be served if the fetch fails.
    Miss(Ticket),
    /// Somebody fetches it: follow.
    Busy(Follower),
    /// Known not to be storable: fetch beside the others and make nobody wait. With the mark that says so, if one does.
    HitForMiss(Ticket, Option<Arc<Object>>),
    /// A program said of a response like this that the next requests pass; only then. With the mark that says so.
    HitForPass(Arc<Object>),
    /// As `HitForMiss`, where `pass_uncacheable` was set.
    Uncacheable,
    /// It failed a moment ago, and nothing stored may stand in.
    RecentFailure(Failure),
}

/// What the shard said.
enum Finding {
    Fresh(Arc<Object>),
    Stale(Arc<Object>, Option<Arc<Flight>>),
    Miss(Arc<Flight>, Stored),
    /// With what is stored; or with the mark that says so.
    HitForMiss(Arc<Flight>, Stored, Option<Arc<Object>>),
    HitForPass(Arc<Object>),
    Uncacheable,
    Busy(Arc<Flight>, usize, Stored),
    RecentFailure(Failure),
}

impl Cache {
    /// Looks a request up. `Fresh` and `Stale` without a ticket change nothing; a `Ticket` is the right and the
    /// duty to fetch.
    pub fn ask(self: &Arc<Self>, key: Key, request: &Request<'_>, options: &LookupOptions, now: Now) -> Answer {
        let mut outdated = RemovedObjects::new();
        let mut others = false;
        let finding = loop {
            let mut shard = self.directory.shard(key);
            // Before what is stored is tested: a ban that this number leaves behind is one that was seen.
            let began = self.invalidation.load(Acquire);
            if let Some(object) =
                shard.only_object(key).filter(|object| self.is_the_answer(object, request, options, now))
            {
                break Finding::Fresh(Arc::clone(object));
            }
            let order = shard.next_order();
            let entry = shard.entry(key);
            self.weed(entry, request, (options, now), &mut outdated);
            if let Some(suspect) = self.suspect(entry.find(request.fields, options, now)) {
                drop(shard);
                self.examine(&suspect, request);
                continue;
            }
            let finding =
                self.look(entry, &Question { key, request, options, now, order, began, is_dry: false }, &mut outdated);
            others = matches!(finding, Finding::Miss(_, None)) && entry.objects().any(|object| object.spec.is_some());
            if let Finding::Stale(_, Some(flight)) | Finding::Miss(flight, _) | Finding::HitForMiss(flight, ..) =
                &finding
            {
                shard.open(flight.began());
            }
            shard.tidy(key);
            break finding;
        };
        let ticket = |flight, stored: Stored| Ticket::new(Arc::clone(self), flight, request.to_head(), stored);
        match finding {
            Finding::Fresh(object) => Answer::Fresh(object),
            Finding::Stale(object, None) => Answer::Stale(object, None),
            Finding::Stale(object, Some(flight)) => {
                let stored = Some(Arc::clone(&object));
                Answer::Stale(object, Some(ticket(flight, stored)))
            }
            Finding::Miss(flight, stored) => Answer::Miss(ticket(flight, stored).beside_others(others)),
            Finding::HitForMiss(flight, stored, mark) => {
                Answer::HitForMiss(ticket(flight, stored).past(mark.clone()), mark)
            }
            Finding::HitForPass(mark) => Answer::HitForPass(mark),
            Finding::Uncacheable => Answer::Uncacheable,
            Finding::Busy(flight, slot, stored) => {
                self.counters.coalesced.fetch_add(1, Relaxed);
                let must_fit = (!options.ignore_vary).then_some(request);
                let joined = self.invalidation.load(Relaxed);
                Answer::Busy(Follower::new(flight, slot, options.core).waiting(must_fit, stored, joined))
            }
            Finding::RecentFailure(failure) => Answer::RecentFailure(failure),
        }
    }

    /// Is anything stored under a key, whether it can be served or not?
    pub fn holds(&self, key: Key) -> bool {
        self.directory.shard(key).holds_any(key)
    }

    /// The part that `ask` would serve, for who must not take on a fetch of the whole.
    pub fn find_part(&self, key: Key, request: &Request<'_>, options: &LookupOptions, now: Now) -> Option<Arc<Object>> {
        self.look_up(key, request, (options, now), |slot| fresh_part(slot, request, options, now))
    }

    /// The right to refresh a whole response that is served stale to who must not take on a fetch: what `ask` gives
    /// with `Stale`. `None` when somebody fetches it already, it failed a moment ago, or it is not what is stored.
    pub fn refresh(
        self: &Arc<Self>,
        object: &Arc<Object>,
        request: &Request<'_>,
        options: &LookupOptions,
        now: Now,
    ) -> Option<Ticket> {
        let flight = {
            let mut shard = self.directory.shard(object.key);
            let began = self.invalidation.load(Acquire);
            let order = shard.next_order();
            let entry = shard.known(object.key)?;
            let whole = entry.slot(object.variant).and_then(|slot| slot.whole.as_ref());
            let question = Question { key: object.key, request, options, now, order, began, is_dry: false };
            let flight = match whole.is_some_and(|whole| Arc::ptr_eq(whole, object) && !object.is_withdrawn()) {
                true => self.begin_refresh(entry, &question),
                false => None,
            };
            if let Some(flight) = &flight {
                shard.open(flight.began());
            }
            shard.tidy(object.key);
            flight?
        };
        Some(Ticket::new(Arc::clone(self), flight, request.to_head(), Some(Arc::clone(object))))
    }

    /// What `look` says of a key of which one object is all that is known, when that is the answer: most look-ups.
    fn is_the_answer(&self, object: &Object, request: &Request<'_>, options: &LookupOptions, now: Now) -> bool {
        let is_meant = options.ignore_vary || variant_of(object.spec.as_ref(), request.fields) == object.variant;
        let is_tested = object.is_valid() && object.checked() >= self.bans.newest();
        is_meant && is_tested && !options.always_miss && matches!(judge(object, options, now), Verdict::Serve)
    }

    fn look(&self, entry: &mut Entry, question: &Question<'_>, removed: &mut RemovedObjects) -> Finding {
        match self.plan(entry, question) {
            LookupPlan::Serve(object) => Finding::Fresh(object),
            LookupPlan::ServeStale(object) => Finding::Stale(object, None),
            LookupPlan::Refresh(object) => {
                let refresh = self.begin_refresh(entry, question);
                Finding::Stale(object, refresh)
            }
            LookupPlan::Fetch { stored, is_shared: true } => Finding::Miss(self.begin_listed(entry, question), stored),
            LookupPlan::Fetch { stored, is_shared: false } => Finding::Miss(self.begin(entry, question), stored),
            LookupPlan::Follow(flight, stored) => join(flight, question.options, stored),
            LookupPlan::HitForMiss(stored, mark) => Finding::HitForMiss(self.begin(entry, question), stored, mark),
            LookupPlan::HitForPass(mark) => Finding::HitForPass(mark),
            LookupPlan::Pass => Finding::Uncacheable,
            LookupPlan::Failed(failure) => Finding::RecentFailure(failure),
            LookupPlan::Over(over) => {
                self.drop_over(entry, over, removed);
                self.look(entry, question, removed)
            }
        }
    }

    fn drop_over(&self, entry: &mut Entry, object: Arc<Object>, removed: &mut RemovedObjects) {
        entry.remove(&object);
        let over = RemovedObjects::from_iter([object]);
        self.part_with(&over);
        self.counters.expired.fetch_add(1, Relaxed);
        removed.extend(over);
    }

    /// One refresh at a time, and none right after a failure.
    fn begin_refresh(&self, entry: &mut Entry, question: &Question<'_>) -> Option<Arc<Flight>> {
        let alone = self.joinable(entry, question, |_| true).is_none() && entry.recent_failure(question.now).is_none();
        alone.then(|| self.begin_listed(entry, question))
    }

    /// A flight that nobody else finds, until its head says that it can be shared.
    fn begin(&self, entry: &mut Entry, question: &Question<'_>) -> Arc<Flight> {
        entry.fetching += 1;
        let began = question.options.began.map_or(question.began, |began| began.0);
        let flight =
            Flight::new(question.key, began, question.order, question.options.core, Arc::clone(&self.notifier));
        // What is validated was stored before: whatever is invalidated from here on is about it.
        let validates = || entry.find(question.request.fields, question.options, question.now).is_some();
        if question.options.says_departure && !validates() {
            flight.wait_for_departure();
        }
        flight
    }

    fn begin_listed(&self, entry: &mut Entry, question: &Question<'_>) -> Arc<Flight> {
        let flight = self.begin(entry, question);
        entry.list_new(&flight, question.request.fields);
        flight
    }
}

fn join(flight: Arc<Flight>, options: &LookupOptions, stored: Stored) -> Finding {
    let slot = flight.with(|inner| inner.readers.join(options.core));
    Finding::Busy(flight, slot, stored)
}
