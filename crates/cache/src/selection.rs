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

use crate::entry::Entry;
use crate::key::Variant;
use crate::object::Object;
use crate::spec::{Spec, same_spec, variant_of};
use crate::variants::Slot;
use crate::wishes::{Now, Wishes};

/// What is greater is preferred: how alive it is, when it came, and which fetch of that moment brought it.
type Rank = (u8, u64, u32);

impl Entry {
    /// What is stored for a request.
    pub fn find(&self, request: FieldsView<'_>, wishes: &Wishes, now: Now) -> Option<&Slot> {
        if wishes.newest_first {
            return self.newest_first(request, wishes, now);
        }
        if wishes.ignore_vary {
            return self.variants.newest();
        }
        let slot = |spec: &Option<Arc<Spec>>| self.variants.get(variant_of(spec.as_ref(), request));
        let with_vary = self.specs.iter().filter(|spec| spec.is_some()).find_map(slot);
        with_vary.or_else(|| self.variants.get(Variant::PLAIN))
    }

    /// One slot for each specification under which the request finds something, those of the newest specification first.
    fn matching(&self, request: FieldsView<'_>) -> impl Iterator<Item = &Slot> {
        self.specs.iter().filter_map(move |spec| self.variants.get(variant_of(spec.as_ref(), request)))
    }

    fn newest_first(&self, request: FieldsView<'_>, wishes: &Wishes, now: Now) -> Option<&Slot> {
        let ranked = |slot: &'_ Slot| slot.whole.as_deref().map(|whole| rank(whole, wishes, now));
        if wishes.ignore_vary {
            return self.variants.iter().map(|(_, slot)| slot).max_by_key(|slot| ranked(slot));
        }
        self.matching(request).max_by_key(|slot| ranked(slot))
    }

    /// Does this object answer whatever it matches, whichever others are stored? Only then may a hot table serve it.
    pub fn goes_first(&self, object: &Object) -> bool {
        let newest = self.specs.first().and_then(Option::as_ref);
        if !object.is_by_policy() {
            let any_varies = || self.objects().any(|other| other.spec.is_some());
            return same_spec(object.spec.as_ref(), newest) && (object.spec.is_some() || !any_varies());
        }
        let mut others = self.objects().filter(|other| !same_spec(other.spec.as_ref(), object.spec.as_ref()));
        others.all(|other| object.is_newer_than(other))
    }
}

fn rank(object: &Object, wishes: &Wishes, now: Now) -> Rank {
    let (received_ms, order) = object.recency();
    match object.stage(wishes, now) {
        Some(Stage::Fresh) => (2, received_ms, order),
        // Of those that have expired, the one that its origin made last.
        Some(Stage::Grace | Stage::Keep) => (1, received_ms.saturating_sub(object.facts().initial_age_ms), order),
        Some(Stage::TooOld | Stage::Over) => (0, received_ms, order),
        // Stored before a VCL was loaded.
        None if object.freshness(now, &wishes.directives) == rules::Freshness::Fresh => (2, received_ms, order),
        None => (1, received_ms, order),
    }
}
