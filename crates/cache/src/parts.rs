//! The stored parts (206) of one variant, side by side, and when they become one (RFC 9111 §3.3, §3.4).
//!
//! All are of one representation: they have the same strong entity tag. A range is answered by one part that holds
//! all of it. Neighbours are copied together while that is cheap, and when nothing is missing any more they are the
//! whole. What a range is, and that two entity tags say the same, `rules` knows.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use message::ResponseHead;
use rules::range::{ContentRange, RangeSpec, may_combine};

use crate::body_form::Part;
use crate::limits::{PARTS_JOIN_BYTES_MAX, PARTS_JOIN_RATIO, PARTS_MAX};
use crate::object::Object;
use crate::removed_objects::RemovedObjects;

#[derive(Clone, Debug, Default)]
pub(crate) struct Parts(Vec<Arc<Object>>);

/// The head under which parts are the whole, and its text.
#[derive(Clone, Debug)]
pub struct WholeHead {
    pub head: Arc<ResponseHead>,
    /// See [`Object::rendered`].
    pub rendered: Bytes,
}

impl Part {
    fn content_range(self) -> ContentRange {
        ContentRange { range: self.from..self.to, complete_length: self.complete }
    }

    /// The stretch of the whole that a range wants, if all of it is in this part.
    pub fn holds(self, wanted: RangeSpec) -> Option<Range<u64>> {
        self.content_range().holds(wanted)
    }

    pub(crate) fn len(self) -> u64 {
        self.to - self.from
    }

    fn covers(self, other: Part) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    fn touches(self, other: Part) -> bool {
        self.from <= other.to && other.from <= self.to
    }

    pub(crate) fn with(self, other: Part) -> Part {
        Part { from: self.from.min(other.from), to: self.to.max(other.to), complete: self.complete.or(other.complete) }
    }
}

impl Parts {
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that could answer a range, newest first.
    pub fn holding(&self, wanted: RangeSpec) -> impl Iterator<Item = &Arc<Object>> {
        self.0.iter().rev().filter(move |object| part_of(object).holds(wanted).is_some())
    }

    /// Is there a newer part of another representation?
    pub fn outdate(&self, object: &Object) -> bool {
        self.0.iter().any(|other| other.is_newer_than(object) && !are_of_one(other, object))
    }

    /// Takes a part in. Those that it covers leave, those of another representation, and in the end the oldest.
    pub fn store(&mut self, object: &Arc<Object>, removed: &mut RemovedObjects) {
        let stays = |other: &Arc<Object>| are_of_one(other, object) && !part_of(object).covers(part_of(other));
        removed.extend(self.0.extract_if(.., |other| !stays(other)));
        self.0.push(Arc::clone(object));
        if self.0.len() > PARTS_MAX {
            removed.push(self.0.remove(0));
        }
    }

    /// Takes out one part, if it is in.
    pub fn remove(&mut self, object: &Arc<Object>) -> bool {
        let place = self.0.iter().position(|other| Arc::ptr_eq(other, object));
        place.map(|at| self.0.remove(at)).is_some()
    }

    pub fn take_all(&mut self, removed: &mut RemovedObjects) {
        removed.extend(self.0.drain(..));
    }

    /// The parts that a new one should become one with, itself among them, in the order of their bytes: one that holds
    /// all of it, or neighbours that are not so much longer or shorter that the copying would never end.
    pub fn around(&self, object: &Arc<Object>) -> (Part, Vec<Arc<Object>>) {
        // No ban may lose sight of bytes that it has not tested yet.
        let tested = |other: &Object| other.checked() >= object.checked();
        let of_one = || self.0.iter().filter(|other| are_of_one(other, object) && other.is_valid() && tested(other));
        if let Some(larger) = of_one().find(|other| part_of(other).covers(part_of(object))) {
            return (part_of(larger).with(part_of(object)), vec![Arc::clone(larger)]);
        }
        let (mut span, mut run) = (part_of(object), vec![Arc::clone(object)]);
        let joins = |span: Part, other: Part| {
            let (short, long) = (span.len().min(other.len()), span.len().max(other.len()));
            let is_worth_it = short.saturating_mul(PARTS_JOIN_RATIO) >= long;
            span.touches(other) && is_worth_it && span.with(other).len() <= PARTS_JOIN_BYTES_MAX
        };
        while let Some(next) =
            of_one().find(|other| joins(span, part_of(other)) && !run.iter().any(|it| Arc::ptr_eq(it, other)))
        {
            span = span.with(part_of(next));
            run.push(Arc::clone(next));
        }
        run.sort_by_key(|object| part_of(object).from);
        (span, run)
    }
}

pub(crate) fn part_of(object: &Object) -> Part {
    object.partial().expect("only parts stand among parts")
}

/// RFC 9111 §3.4; and two lengths that are known must agree.
fn are_of_one(one: &Object, other: &Object) -> bool {
    let lengths = [one, other].map(|object| part_of(object).complete);
    let agree = !matches!(lengths, [Some(one), Some(other)] if one != other);
    agree && may_combine(one.fields(), other.fields())
}
