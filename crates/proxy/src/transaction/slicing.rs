//! Slicing: what was found is the manifest of a body that lies in slices. Says whether all that is wanted of it is there, and
//! waits for the first bytes, so that an origin that fails now can still be told from one that breaks off later.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use cache::{Failure, Object, Sliced};

use crate::access_log::CacheVerdict;
use crate::answer_plan::AnswerPlan;
use crate::downstream::Downstream;
use crate::fetch::slice_fetch::{self, SliceSource};
use crate::limits::SLICES_JUDGED_MAX;
use crate::policy_steps;
use crate::reason::Reason;
use crate::sliced_read::SlicedRead;
use crate::transaction::deliver::{self, Answer};
use crate::transaction::hit::Why;
use crate::transaction::lookup::ASKED_AGAIN_MAX;
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction};

/// A manifest that is to be served.
pub(crate) struct Slicing {
    pub(crate) object: Arc<Object>,
    pub(crate) why: Why,
}

pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, slicing: Slicing) -> Step {
    let Slicing { object, why } = slicing;
    let stretches = stretches(&deliver::plan_stored(tx, &object), object.length());
    let Some(source) = SliceSource::of(tx, &object).filter(|_| !tx.wants_head_only()) else {
        return deliver(tx, object, why, None);
    };
    let Some(first) = stretches.first() else {
        // A program may want a body all the same: where it makes another answer of what was a 304.
        return deliver(tx, object, why, Some(Box::new(SlicedRead::new(source, 0..0))));
    };
    let is_whole = are_there(tx, source.sliced, &stretches);
    if !is_whole && tx.directives.only_if_cached {
        // RFC 9111 §5.2.1.7.
        return Step::Synth(Synth::only_if_cached());
    }
    let why = if is_whole || why != Why::Fresh { why } else { Why::Incomplete };
    let mut read = SlicedRead::new(source, first.clone());
    downstream.set_no_deadline();
    let begun = poll_fn(|cx| {
        if let Poll::Ready(begun) = read.poll_ready(cx) {
            return Poll::Ready(Some(begun));
        }
        if downstream.has_left(cx) { Poll::Ready(None) } else { Poll::Pending }
    })
    .await;
    match begun {
        Some(Ok(())) => deliver(tx, object, why, Some(Box::new(read))),
        Some(Err(failure)) => failed(tx, &failure),
        None => Step::client_left(downstream),
    }
}

/// What of the body goes out, in order; nothing where none does.
fn stretches(plan: &AnswerPlan, length: u64) -> Vec<Range<u64>> {
    match plan {
        AnswerPlan::Whole => Some(0..length).into_iter().filter(|stretch| !stretch.is_empty()).collect(),
        AnswerPlan::Part(range) => vec![range.clone()],
        AnswerPlan::Parts(ranges) => ranges.clone(),
        AnswerPlan::HeadOnly
        | AnswerPlan::NotModified
        | AnswerPlan::PreconditionFailed
        | AnswerPlan::Unsatisfiable { .. } => Vec::new(),
    }
}

/// As far as is looked: of a long body the first.
fn are_there(tx: &Transaction, sliced: Sliced, stretches: &[Range<u64>]) -> bool {
    let numbers =
        stretches.iter().flat_map(|stretch| sliced.number_at(stretch.start)..=sliced.number_at(stretch.end - 1));
    let cache = &tx.core.shared.cache;
    numbers.take(SLICES_JUDGED_MAX as usize).all(|number| cache.may_have_slice(sliced, number))
}

fn deliver(tx: &mut Transaction, object: Arc<Object>, why: Why, slices: Option<Box<SlicedRead>>) -> Step {
    match why {
        Why::Fresh => tx.outcome.verdict = CacheVerdict::Hit,
        Why::Incomplete => {
            tx.outcome.verdict = CacheVerdict::Miss;
            tx.outcome.why = Reason::SlicesMissing.token();
        }
        _ => {}
    }
    Step::Deliver(Box::new(Answer::Stored { object, why, slices }))
}

fn failed(tx: &mut Transaction, failure: &Failure) -> Step {
    // Nothing was sent yet: the other representation may be.
    if failure.token == slice_fetch::CHANGED && tx.asked_again_count <= ASKED_AGAIN_MAX {
        return Step::Lookup;
    }
    policy_steps::failed(tx, failure)
}
