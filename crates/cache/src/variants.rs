//! The stored responses of one key: a table by variant digest, inline while there is one (most keys).
//!
//! A variant holds one whole response, or parts (stored 206s), or parts beside a stale whole.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::key::{DigestBuild, Variant};
use crate::object::Object;
use crate::parts::Parts;

#[derive(Clone, Debug, Default)]
pub(crate) enum Variants {
    #[default]
    None,
    One(Variant, Slot),
    Many(HashMap<Variant, Slot, DigestBuild>),
}

/// What is stored of one variant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    pub whole: Option<Arc<Object>>,
    pub parts: Parts,
}

impl Slot {
    pub fn objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.whole.iter().chain(self.parts.iter())
    }

    /// Of the newest of its objects.
    pub fn recency(&self) -> (u64, u32) {
        self.objects().map(|object| object.recency()).max().unwrap_or_default()
    }

    /// One of its objects whose groups were invalidated, or that was purged by its tag.
    pub fn outdated(&self) -> Option<Arc<Object>> {
        self.objects().find(|object| !object.is_valid()).cloned()
    }

    /// Is there something newer, so that this came too late? A part does not outdate another of its representation.
    pub fn outdates(&self, object: &Object) -> bool {
        self.whole.as_ref().is_some_and(|whole| whole.is_newer_than(object) && !whole.is_withdrawn())
            || object.partial().is_some() && self.parts.outdate(object)
    }

    pub fn is_mark(&self) -> bool {
        self.whole.as_ref().is_some_and(|whole| whole.mark().is_some())
    }

    pub fn is_empty(&self) -> bool {
        self.whole.is_none() && self.parts.is_empty()
    }
}

impl Variants {
    pub fn count(&self) -> usize {
        match self {
            Variants::None => 0,
            Variants::One(..) => 1,
            Variants::Many(slots) => slots.len(),
        }
    }

    #[inline]
    pub fn get(&self, variant: Variant) -> Option<&Slot> {
        match self {
            Variants::One(only, slot) if *only == variant => Some(slot),
            Variants::Many(slots) => slots.get(&variant),
            _ => None,
        }
    }

    pub fn get_mut(&mut self, variant: Variant) -> Option<&mut Slot> {
        match self {
            Variants::One(only, slot) if *only == variant => Some(slot),
            Variants::Many(slots) => slots.get_mut(&variant),
            _ => None,
        }
    }

    /// The slot of a variant, made if there is none.
    pub fn slot(&mut self, variant: Variant) -> &mut Slot {
        *self = match std::mem::take(self) {
            Variants::None => Variants::One(variant, Slot::default()),
            Variants::One(only, slot) if only != variant => Variants::Many(HashMap::from_iter([(only, slot)])),
            as_it_is => as_it_is,
        };
        match self {
            Variants::None => unreachable!("a slot was just made"),
            Variants::One(_, slot) => slot,
            Variants::Many(slots) => slots.entry(variant).or_default(),
        }
    }

    pub fn remove(&mut self, variant: Variant) -> Option<Slot> {
        match self {
            Variants::One(only, _) if *only == variant => match std::mem::take(self) {
                Variants::One(_, slot) => Some(slot),
                _ => None,
            },
            Variants::Many(slots) => {
                let slot = slots.remove(&variant);
                if slots.is_empty() {
                    *self = Variants::None;
                }
                slot
            }
            _ => None,
        }
    }

    /// How many hold marks, or how many hold responses.
    pub fn count_of(&self, marks: bool) -> usize {
        match self.count() {
            count @ 0..2 => count,
            _ => self.iter().filter(|(_, slot)| slot.is_mark() == marks).count(),
        }
    }

    /// The oldest variant of the kind of one, beside that.
    pub fn oldest_but(&self, spared: Variant, marks: bool) -> Option<Variant> {
        self.iter()
            .filter(|(variant, slot)| *variant != spared && slot.is_mark() == marks)
            .min_by_key(|(_, slot)| slot.recency())
            .map(|(variant, _)| variant)
    }

    /// The newest variant.
    pub fn newest(&self) -> Option<&Slot> {
        self.iter().max_by_key(|(_, slot)| slot.recency()).map(|(_, slot)| slot)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Variant, &Slot)> {
        let (one, many) = match self {
            Variants::None => (None, None),
            Variants::One(variant, slot) => (Some((*variant, slot)), None),
            Variants::Many(slots) => (None, Some(slots.iter().map(|(variant, slot)| (*variant, slot)))),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}
