//! Which of several stored responses of a key answers a request that all of them match.
//!
//! | who decides | the choice |
//! |---|---|
//! | RFC 9111 §4.1 | what is stored under the newest Vary specification that has it; what has no Vary only where nothing with one matches, because some responses lack it by mistake |
//! | a VCL | the newest that is fresh, whatever its Vary says, and a mark like a response; where none is, the newest that has expired |
//!
//! The second is how Varnish goes through the list of an object head: newest first, up to the first fresh one that matches. So a
//! mark counts until something newer is there for the same request, and no longer.

use std::sync::Arc;

use message::FieldsView;
use rules::lifetimes::Stage;
use smallvec::SmallVec;

use crate::entry::Entry;
use crate::limits::SPECS_MAX;
use crate::lookup_options::LookupOptions;
use crate::moment::Now;
use crate::object::Object;
use crate::spec::{Spec, same_spec, variant_of};
use crate::variants::Slot;

/// What is greater is preferred: how alive it is, when it came, and which fetch of that moment brought it.
type Rank = (u8, u64, u32);

impl Entry {
    /// What is stored for a request.
    pub fn find(&self, request: FieldsView<'_>, options: &LookupOptions, now: Now) -> Option<&Slot> {
        if options.newest_first {
            return self.newest_first(request, options, now);
        }
        if options.ignore_vary {
            return self.variants.newest();
        }
        // Parts alone stand in for nothing: where a whole response matches, that answers.
        let under = |spec: &Option<Arc<Spec>>| {
            self.slots_under(spec, request)
                .into_iter()
                .flatten()
                .max_by_key(|slot| (slot.whole.is_some(), slot.recency()))
        };
        let varied = || self.specs.iter().filter(|spec| spec.is_some()).filter_map(under);
        let plain = || under(&None);
        let whole = varied().chain(plain()).find(|slot| slot.whole.is_some());
        whole.or_else(|| varied().next()).or_else(plain)
    }

    /// The slots of what is stored and of a mark under each specification, those of the newest specification first.
    fn matching(&self, request: FieldsView<'_>) -> impl Iterator<Item = [Option<&Slot>; 2]> {
        self.specs.iter().map(move |spec| self.slots_under(spec, request))
    }

    fn slots_under(&self, spec: &Option<Arc<Spec>>, request: FieldsView<'_>) -> [Option<&Slot>; 2] {
        let variant = variant_of(spec.as_ref(), request);
        [self.variants.get(variant), self.variants.get(variant.of_mark())]
    }

    fn newest_first(&self, request: FieldsView<'_>, options: &LookupOptions, now: Now) -> Option<&Slot> {
        let ranked = |slot: &'_ Slot| slot.whole.as_deref().map(|whole| rank(whole, options, now));
        if options.ignore_vary {
            return self.variants.iter().map(|(_, slot)| slot).max_by_key(|slot| ranked(slot));
        }
        self.matching(request).flatten().flatten().max_by_key(|slot| ranked(slot))
    }

    /// Says of an object whether it answers whatever it matches, whichever others are stored. Only then may a hot table serve it.
    pub fn first_choice(&self) -> impl Fn(&Object) -> bool {
        let newest = |spec: &Option<Arc<Spec>>| {
            let under_it = self.objects().filter(|object| same_spec(object.spec.as_ref(), spec.as_ref()));
            under_it.map(|object| object.recency()).max()
        };
        let newest: SmallVec<[_; SPECS_MAX]> = self.specs.iter().map(newest).collect();
        let any_varies = self.objects().any(|object| object.spec.is_some());
        let first_varied = self.specs.iter().position(Option::is_some);
        move |object| {
            let is_of = |spec: &Option<Arc<Spec>>| same_spec(object.spec.as_ref(), spec.as_ref());
            if !object.is_by_program() {
                let goes_first = first_varied.is_some_and(|at| object.spec.is_some() && is_of(&self.specs[at]));
                return goes_first || object.spec.is_none() && !any_varies;
            }
            let mark = self.variants.get(object.variant.of_mark()).and_then(|slot| slot.whole.as_ref());
            if mark.is_some_and(|mark| mark.is_newer_than(object)) {
                return false;
            }
            let mut others = self.specs.iter().zip(&newest).filter(|(spec, _)| !is_of(spec));
            others.all(|(_, newest)| newest.is_none_or(|newest| object.recency() > newest))
        }
    }
}

fn rank(object: &Object, options: &LookupOptions, now: Now) -> Rank {
    let (received_ms, order) = object.recency();
    match object.stage(options, now) {
        Some(Stage::Fresh) => (2, received_ms, order),
        // Of those that have expired, the one that its origin made last.
        Some(Stage::Grace | Stage::Keep) => (1, received_ms.saturating_sub(object.facts().initial_age_ms), order),
        Some(Stage::TooOld | Stage::Over) => (0, received_ms, order),
        // Stored before a VCL was loaded.
        None if object.freshness(now, &options.directives) == rules::Freshness::Fresh => (2, received_ms, order),
        None => (1, received_ms, order),
    }
}
