//! All about one key: what is stored, what is being fetched, and what is known otherwise.
//!
//! Keys of which only one response is known have no entry; see `directory.rs`.

use std::sync::Arc;

use message::FieldsView;
use rules::credentials;
use smallvec::SmallVec;
use store::Charge;

use crate::failure::Failure;
use crate::flight::{Flight, FlightHead};
use crate::key::Variant;
use crate::limits::{FAILURE_CONFIRMABLE_MS, FLIGHTS_LISTED_MAX, SPECS_MAX};
use crate::lookup_options::LookupOptions;
use crate::moment::Now;
use crate::object::Object;
use crate::removed_objects::RemovedObjects;
use crate::spec::{Spec, same_spec, variant_of};
use crate::variants::{Slot, Variants};
use crate::why_uncacheable::WhyUncacheable;

/// What stands under a key.
pub(crate) struct Entry {
    /// Every Vary specification in use, newest first; `None` is a response without Vary.
    pub(crate) specs: SmallVec<[Option<Arc<Spec>>; 1]>,
    pub(crate) variants: Variants,
    /// The flights that others can join.
    flights: Vec<Listed>,
    /// Fetches under way, listed or not. While there is one the entry stays, and with it `invalidated`.
    pub fetching: u32,
    /// The number of the last invalidation of this key.
    pub invalidated: u64,
    /// Hit-for-miss: until when its responses are known not to be storable.
    uncacheable_until_ms: u64,
    /// The same for the responses to requests with credentials alone.
    personal_until_ms: u64,
    /// Negative memory.
    failure: Option<Box<Failed>>,
    /// What those were that are known not to be storable.
    why_uncacheable: Option<WhyUncacheable>,
    noted: bool,
    _charge: Charge,
}

#[cfg(not(feature = "shuttle"))]
const _: () = assert!(size_of::<Entry>() <= crate::limits::ENTRY_BYTES);

/// What went wrong last.
#[derive(Clone)]
struct Failed {
    failure: Failure,
    /// Until when others are told so and the origin is not asked. 0: what one fetch alone did not get, the next may.
    told_until_ms: u64,
    /// Until when the next failure confirms this one.
    until_ms: u64,
}

#[derive(Clone)]
struct Listed {
    flight: Arc<Flight>,
    spec: Option<Arc<Spec>>,
    variant: Variant,
}

impl Entry {
    /// `invalidated`: the number under which the key was last, or may have been.
    pub fn new(invalidated: u64, charge: Charge) -> Entry {
        Entry {
            specs: SmallVec::new(),
            variants: Variants::None,
            flights: Vec::new(),
            fetching: 0,
            invalidated,
            uncacheable_until_ms: 0,
            personal_until_ms: 0,
            failure: None,
            why_uncacheable: None,
            noted: false,
            _charge: charge,
        }
    }

    /// That of a key of which nothing was known but an object.
    pub fn of(object: &Arc<Object>, invalidated: u64, charge: Charge) -> Entry {
        let mut entry = Entry::new(invalidated, charge);
        entry.specs.push(object.spec.clone());
        entry.variants.slot(object.variant).whole = Some(Arc::clone(object));
        entry
    }

    /// The same, for who asks what would be done: what is changed in it changes nothing else.
    pub fn copy(&self, charge: Charge) -> Entry {
        Entry {
            specs: self.specs.clone(),
            variants: self.variants.clone(),
            flights: self.flights.clone(),
            failure: self.failure.clone(),
            _charge: charge,
            ..*self
        }
    }

    /// Does it say nothing any more?
    pub fn is_idle(&self) -> bool {
        self.fetching == 0 && self.variants.count() == 0 && !self.says_more()
    }

    /// Is anything noted beside what is stored and fetched?
    fn says_more(&self) -> bool {
        self.uncacheable_until_ms != 0 || self.personal_until_ms != 0 || self.failure.is_some()
    }

    /// The object that is all that it knows, taken out; what it varies on is said by the object.
    pub fn take_only_object(&mut self) -> Option<Arc<Object>> {
        let is_quiet = self.fetching == 0 && self.flights.is_empty() && !self.noted;
        let is_quiet = is_quiet && !self.says_more();
        let Variants::One(_, slot) = &mut self.variants else { return None };
        let newest = self.specs.first().and_then(Option::as_ref);
        let is_newest = |object: &Object| same_spec(object.spec.as_ref(), newest);
        let is_alone = is_quiet && slot.parts.is_empty() && slot.whole.as_deref().is_some_and(is_newest);
        if is_alone { slot.whole.take() } else { None }
    }

    /// What a request selects by every specification in use, but for one variant.
    pub fn other_variants(&self, request: FieldsView<'_>, but: Variant) -> SmallVec<[Variant; 2]> {
        self.specs.iter().map(|spec| variant_of(spec.as_ref(), request)).filter(|variant| *variant != but).collect()
    }

    pub fn slot(&self, variant: Variant) -> Option<&Slot> {
        self.variants.get(variant)
    }

    /// The newest flight whose response would fit, as far as is known, and which will do.
    pub fn joinable(
        &self,
        request: FieldsView<'_>,
        ignore_vary: bool,
        will_do: impl Fn(&Flight) -> bool,
    ) -> Option<&Arc<Flight>> {
        let mut last: Option<(&Option<Arc<Spec>>, Variant)> = None;
        let found = self.flights.iter().rev().find(|listed| {
            if ignore_vary {
                return will_do(&listed.flight);
            }
            let variant = match last {
                Some((spec, variant)) if same_spec(spec.as_ref(), listed.spec.as_ref()) => variant,
                _ => variant_of(listed.spec.as_ref(), request),
            };
            last = Some((&listed.spec, variant));
            // Only of those that fit is the lock taken.
            variant == listed.variant && will_do(&listed.flight)
        });
        found.map(|listed| &listed.flight)
    }

    /// Lets others find a flight whose response is not known yet: under the specification they would look by.
    pub fn list_new(&mut self, flight: &Arc<Flight>, request: FieldsView<'_>) {
        if self.flights.len() < FLIGHTS_LISTED_MAX {
            let spec = self.specs.first().cloned().flatten();
            let variant = variant_of(spec.as_ref(), request);
            self.flights.push(Listed { flight: Arc::clone(flight), spec, variant });
        }
    }

    /// The head said what the flight varies on: from now on it is found by that, unless another one is already that will
    /// do for most requests.
    pub fn list_described(&mut self, flight: &Arc<Flight>, spec: Option<Arc<Spec>>, variant: Variant, now: Now) {
        self.delist(flight);
        let anybody = LookupOptions::default();
        let will_do = |head: &FlightHead| head.is_fresh_for(&anybody, now);
        let taken = self.flights.iter().any(|it| {
            let is_same = it.variant == variant && same_spec(it.spec.as_ref(), spec.as_ref());
            is_same && it.flight.with(|inner| inner.head.as_ref().is_none_or(will_do))
        });
        if !taken && self.flights.len() < FLIGHTS_LISTED_MAX {
            self.flights.push(Listed { flight: Arc::clone(flight), spec, variant });
        }
    }

    /// True when others could have joined it until now.
    pub fn delist(&mut self, flight: &Arc<Flight>) -> bool {
        let before = self.flights.len();
        self.flights.retain(|listed| !Arc::ptr_eq(&listed.flight, flight));
        self.flights.len() < before
    }

    /// All whose request is on its way, or answered.
    pub fn delist_those_that_left(&mut self) -> impl Iterator<Item = Arc<Flight>> + use<> {
        let (gone, kept) = std::mem::take(&mut self.flights).into_iter().partition(|listed| listed.flight.has_left());
        self.flights = kept;
        let gone: Vec<Listed> = gone;
        gone.into_iter().map(|listed| listed.flight)
    }

    /// Makes a specification the newest. Returns the entry's own copy of it.
    pub fn note_spec(&mut self, spec: Option<Arc<Spec>>, removed: &mut RemovedObjects) -> Option<Arc<Spec>> {
        let known = self.specs.iter().position(|it| same_spec(it.as_ref(), spec.as_ref()));
        let spec = known.map_or(spec, |at| self.specs.remove(at));
        self.specs.insert(0, spec.clone());
        if self.specs.len() > SPECS_MAX {
            let gone = self.specs.pop().expect("there are more than SPECS_MAX");
            let of_it = |slot: &Slot| slot.objects().any(|object| same_spec(object.spec.as_ref(), gone.as_ref()));
            let variants: Vec<Variant> =
                self.variants.iter().filter(|(_, slot)| of_it(slot)).map(|(variant, _)| variant).collect();
            variants.into_iter().for_each(|variant| self.remove_variant(variant, removed));
        }
        spec
    }

    /// Takes an object in, as the newest of its variant, and makes hot exactly what is under the newest
    /// specification. Bounds: how many variants there may be, and whether bans are watched for.
    pub fn store(&mut self, object: &Arc<Object>, bounds: (usize, bool), removed: &mut RemovedObjects) {
        let (variants_max, watched) = bounds;
        self.note_spec(object.spec.clone(), removed);
        let slot = self.variants.slot(object.variant);
        if object.partial().is_some() {
            slot.parts.store(object, removed);
        } else {
            slot.parts.take_all(removed);
            removed.extend(slot.whole.replace(Arc::clone(object)));
            // Parts of what is too large to be stored say nothing about the whole.
            self.uncacheable_until_ms = 0;
            if object.facts().says_shared {
                self.personal_until_ms = 0;
            }
        }
        // Marks take no response's place.
        let is_mark = object.mark().is_some();
        if self.variants.count() > variants_max.max(1)
            && self.variants.count_of(is_mark) > variants_max.max(1)
            && let Some(oldest) = self.variants.oldest_but(object.variant, is_mark)
        {
            self.remove_variant(oldest, removed);
        }
        self.failure = None;
        // Not both at once: a purge of a tag of both would count two.
        for replaced in &*removed {
            replaced.withdraw();
        }
        self.temper(watched);
    }

    /// Responses like this one are stored again: the mark of its variant ends with it, unless that says something newer. A mark
    /// takes nothing's place but a mark's: what is stored may be wanted when the mark is over, and leaves, if it does, with the
    /// fetch that set out from it.
    pub fn end_mark(&mut self, by: &Object, removed: &mut RemovedObjects) {
        if by.mark().is_some() || by.partial().is_some() {
            return;
        }
        let Some(slot) = self.variants.get_mut(by.variant.of_mark()) else { return };
        removed.extend(slot.whole.take_if(|mark| !mark.is_newer_than(by)));
        if slot.is_empty() {
            self.variants.remove(by.variant.of_mark());
        }
    }

    /// Puts an object in the place of one that differs in its lifetimes only.
    pub fn swap(&mut self, old: &Arc<Object>, new: &Arc<Object>, watched: bool) {
        let slot = self.variants.get_mut(old.variant).expect("who swaps has found it here");
        slot.whole = Some(Arc::clone(new));
        old.withdraw();
        self.temper(watched);
    }

    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.variants.iter().flat_map(|(_, slot)| slot.objects())
    }

    /// Says of every object whether a hot table may serve it, and whether that has to watch for bans: what every rule of
    /// [`find`](Entry::find) would select among those that match.
    pub fn temper(&self, watched: bool) {
        let goes_first = self.first_choice();
        for object in self.objects() {
            temper(object, watched, goes_first(object));
        }
    }

    /// Takes out what a fetch set out from, now that it has brought something else; what came to its place meanwhile stays.
    pub fn supersede(&mut self, old: &Object, removed: &mut RemovedObjects) {
        let Some(slot) = self.variants.get_mut(old.variant) else { return };
        removed.extend(slot.whole.take_if(|stored| !stored.is_newer_than(old)));
        if slot.is_empty() {
            self.variants.remove(old.variant);
        }
    }

    /// Takes out the whole response of a variant.
    pub fn remove_whole(&mut self, variant: Variant, removed: &mut RemovedObjects) {
        if let Some(slot) = self.variants.get_mut(variant) {
            removed.extend(slot.whole.take());
            if slot.is_empty() {
                self.variants.remove(variant);
            }
        }
    }

    fn remove_variant(&mut self, variant: Variant, removed: &mut RemovedObjects) {
        if let Some(mut slot) = self.variants.remove(variant) {
            removed.extend(slot.whole);
            slot.parts.take_all(removed);
        }
    }

    /// Takes out one object, if it is the stored one.
    pub fn remove(&mut self, object: &Arc<Object>) -> bool {
        let Some(slot) = self.variants.get_mut(object.variant) else { return false };
        let is_it = match object.partial() {
            Some(_) => slot.parts.remove(object),
            None => slot.whole.take_if(|stored| Arc::ptr_eq(stored, object)).is_some(),
        };
        if is_it && slot.is_empty() {
            self.variants.remove(object.variant);
        }
        is_it
    }

    pub fn remove_all(&mut self, removed: &mut RemovedObjects) {
        self.specs.clear();
        let all: Vec<Variant> = self.variants.iter().map(|(variant, _)| variant).collect();
        all.into_iter().for_each(|variant| self.remove_variant(variant, removed));
    }

    /// Forgets what was noted until now: a key of which nothing is known but an object needs no entry.
    pub fn expire_notes(&mut self, now: Now) {
        for until_ms in [&mut self.uncacheable_until_ms, &mut self.personal_until_ms] {
            if *until_ms <= now.mono_ms {
                *until_ms = 0;
            }
        }
    }

    /// Is the response to a request with these fields known not to be storable?
    pub fn is_uncacheable(&self, request: FieldsView<'_>) -> bool {
        self.uncacheable_until_ms != 0 || self.personal_until_ms != 0 && credentials::of_request(request).is_some()
    }

    /// What such a response was.
    pub fn why_uncacheable(&self) -> Option<WhyUncacheable> {
        self.why_uncacheable
    }

    /// The failure of a moment ago that is told to others.
    pub fn recent_failure(&mut self, now: Now) -> Option<Failure> {
        self.failure.take_if(|it| it.until_ms <= now.mono_ms);
        self.failure.as_ref().filter(|it| it.told_until_ms > now.mono_ms).map(|it| it.failure.clone())
    }

    /// Its responses, or those to requests with credentials, are known not to be storable until then.
    pub fn note_uncacheable(&mut self, until_ms: u64, is_personal: bool, why: Option<WhyUncacheable>) {
        self.why_uncacheable = why;
        match is_personal {
            true => self.personal_until_ms = until_ms,
            false => self.uncacheable_until_ms = until_ms,
        }
    }

    /// Negative memory. A failure before a head may be about the one request that was sent, and nobody else is told of it
    /// before another fetch has failed so, too; `had_by_several` says that it needs no such confirmation.
    pub fn note_failure(&mut self, failure: Failure, had_by_several: bool, now: Now) {
        let is_confirmed = had_by_several || self.failure.as_ref().is_some_and(|it| it.until_ms > now.mono_ms);
        let told_until_ms = if is_confirmed { now.mono_ms.saturating_add(failure.remember_ms) } else { 0 };
        let until_ms = now.mono_ms.saturating_add(FAILURE_CONFIRMABLE_MS.max(failure.remember_ms));
        self.failure = Some(Box::new(Failed { failure, told_until_ms, until_ms }));
    }

    /// The origin answers, whatever it says.
    pub fn note_answered(&mut self) {
        self.failure = None;
    }

    /// Says whether it is among those with notes; returns what was said before.
    pub fn set_noted(&mut self, noted: bool) -> bool {
        std::mem::replace(&mut self.noted, noted)
    }

    pub fn forget_notes(&mut self) {
        self.uncacheable_until_ms = 0;
        self.personal_until_ms = 0;
        self.failure = None;
    }
}

/// Says of an object whether a hot table may serve it.
pub(crate) fn temper(object: &Object, watched: bool, goes_first: bool) {
    let is_whole = object.partial().is_none() && object.mark().is_none();
    object.set_hot(watched, is_whole && goes_first);
}
