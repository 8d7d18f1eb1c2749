//! What a program decided about a stored response, beside its facts: how long it may be validated, or that it is no
//! response to serve at all but a mark, which says that responses like it are not stored.
//!
//! A mark is an object without a body: so it is found by Vary, evicted, purged and banned like every other. It stands beside
//! what is stored of its variant (`Variant::of_mark`), and which of the two counts is said in `selection.rs`.

use rules::lifetimes::{Bounds, Stage, judge};
use rules::{Facts, Lifetimes, VarySpec};

use crate::lookup_options::LookupOptions;
use crate::tag_index::Tags;

/// What is to be done with a request that meets a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// Hit-for-miss: fetch it like a miss, beside all others. A response that can be stored takes the mark's place.
    Miss,
    /// Hit-for-pass: pass it. When its ttl is over it becomes the other kind, for its grace and keep.
    Pass,
}

/// That responses like this one are not stored.
#[derive(Clone, Debug)]
pub struct Mark {
    pub kind: MarkKind,
    pub lifetimes: Lifetimes,
    /// Of the marked response: others than those that it would have answered do not meet the mark.
    pub vary: Option<VarySpec>,
    pub tags: Option<Tags>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByProgram {
    pub keep_ms: u64,
    pub mark: Option<MarkKind>,
}

impl ByProgram {
    pub fn of(lifetimes: &Lifetimes) -> ByProgram {
        ByProgram { keep_ms: lifetimes.keep_ms, mark: None }
    }

    pub fn marking(mark: &Mark) -> ByProgram {
        ByProgram { mark: Some(mark.kind), ..ByProgram::of(&mark.lifetimes) }
    }
}

/// Where a response stands by these lookup options whose lifetimes a program decided.
pub(crate) fn stage(facts: &Facts, keep_ms: u64, resident_ms: u64, options: &LookupOptions) -> Stage {
    let maxima = [options.ttl_max_ms, options.age_max_ms];
    let bounds = Bounds { ttl_max_ms: maxima.into_iter().flatten().min(), grace_max_ms: options.grace_max_ms };
    judge(facts, keep_ms, resident_ms, &bounds)
}

/// Facts that say what lifetimes do, about dates what they did.
pub(crate) fn facts_of(lifetimes: Option<&Lifetimes>, facts: Facts) -> Facts {
    lifetimes.map_or(facts, |lifetimes| lifetimes.facts(&facts))
}
