//! What a look-up comes to, found out before anything is done about it: `ask` does it, `explained_lookup` says it.

use std::sync::Arc;

use message::Request;
use rules::Freshness;
use rules::freshness::{OriginFailure, may_serve_on_error};
use rules::lifetimes::Stage;
use rules::range::if_range_holds;

use crate::by_program::MarkKind;
use crate::cache::Cache;
use crate::entry::Entry;
use crate::failure::Failure;
use crate::flight::{Flight, FlightHead};
use crate::flight_state::FlightState;
use crate::key::Key;
use crate::lookup_options::LookupOptions;
use crate::moment::Now;
use crate::object::Object;
use crate::variants::Slot;

/// What is to be done with a request.
#[derive(Debug)]
pub enum LookupPlan {
    /// Serve it: it is fresh.
    Serve(Arc<Object>),
    /// Serve it, though it is stale, and refresh nothing.
    ServeStale(Arc<Object>),
    /// Serve it, though it is stale, and let one request refresh it.
    Refresh(Arc<Object>),
    /// Ask the origin. With what is stored, which may be confirmed; and may others wait for the answer?
    Fetch { stored: Option<Arc<Object>>, is_shared: bool },
    /// Wait for a fetch that is under way.
    Follow(Arc<Flight>, Option<Arc<Object>>),
    /// Ask the origin beside others: known not to be storable. With what is stored, and with the mark that says so, if one does.
    HitForMiss(Option<Arc<Object>>, Option<Arc<Object>>),
    /// Go past the store, by the word of a program.
    HitForPass(Arc<Object>),
    /// Go past the store: known not to be storable.
    Pass,
    /// The origin failed a moment ago, and nothing stored may stand in.
    Failed(Failure),
    /// Its life is over: take it out and look again.
    Over(Arc<Object>),
}

/// What is asked of a key, and its place among the questions to its shard.
pub(crate) struct Question<'a> {
    pub key: Key,
    pub request: &'a Request<'a>,
    pub options: &'a LookupOptions,
    pub now: Now,
    pub order: u64,
    /// The number under which a fetch would begin.
    pub began: u64,
    /// The entry is a copy, and nothing beyond it may be changed.
    pub is_dry: bool,
}

/// The whole response that is there, though it cannot be served as it is.
pub(crate) type Stored = Option<Arc<Object>>;

/// What may be done with a stored object.
#[derive(Clone, Copy)]
pub(crate) enum Verdict {
    Serve,
    /// Serve it, and let one refresh it.
    Refresh,
    /// Serve it, stale, because this client said that it takes it so.
    Concede,
    /// Ask the origin first.
    Ask,
    /// The same, and what is stored is nothing to be validated.
    AskAnew,
    /// It is a mark, and no response.
    Marked(MarkKind),
    /// Its life is over.
    Drop,
}

impl Cache {
    /// What is to be done. Nothing is changed but the entry, where it had something to forget, and, unless it is dry, flights that an invalidation or
    /// a ban has outdated.
    pub(crate) fn plan(&self, entry: &mut Entry, question: &Question<'_>) -> LookupPlan {
        let Question { request, options, now, .. } = *question;
        entry.expire_notes(now);
        let slot = entry.find(request.fields, options, now);
        let stored = slot.and_then(|slot| slot.whole.clone());
        if options.always_miss {
            let stored = stored.filter(|object| !object.is_by_program());
            return LookupPlan::Fetch { stored, is_shared: false };
        }
        let verdict = stored.as_ref().map_or(Verdict::Ask, |object| judge(object, options, now));
        let stored = match (verdict, stored) {
            (Verdict::Drop, Some(over)) => return LookupPlan::Over(over),
            (Verdict::Marked(kind), Some(mark)) => return self.meet(entry, question, kind, mark),
            (Verdict::AskAnew, _) => None,
            (_, stored) => stored,
        };
        if !matches!(verdict, Verdict::Serve)
            && let Some(part) = slot.and_then(|slot| fresh_part(slot, request, options, now))
        {
            return LookupPlan::Serve(part);
        }
        match (verdict, &stored) {
            (Verdict::Serve, Some(object)) => return LookupPlan::Serve(Arc::clone(object)),
            (Verdict::Concede, Some(object)) => return LookupPlan::ServeStale(Arc::clone(object)),
            (Verdict::Refresh, Some(object)) => return LookupPlan::Refresh(Arc::clone(object)),
            _ => {}
        }
        if let Some(failure) = entry.recent_failure(now) {
            return match stored {
                Some(object) if may_stand_in(&object, options, now) => LookupPlan::ServeStale(object),
                _ => LookupPlan::Failed(failure),
            };
        }
        if options.alone {
            return LookupPlan::Fetch { stored, is_shared: false };
        }
        match self.joinable(entry, question, |flight| may_join(flight, question)) {
            Some(flight) if !options.ignore_busy || flight.state() != FlightState::Reserved => {
                return LookupPlan::Follow(flight, stored);
            }
            Some(_) => return LookupPlan::Fetch { stored, is_shared: false },
            None => {}
        }
        if entry.is_uncacheable(request.fields) {
            if options.pass_uncacheable && stored.is_none() {
                return LookupPlan::Pass;
            }
            return LookupPlan::HitForMiss(stored, None);
        }
        LookupPlan::Fetch { stored, is_shared: true }
    }

    /// A mark. Who comes while a response is on its way that can be stored after all, follows that.
    fn meet(&self, entry: &mut Entry, question: &Question<'_>, kind: MarkKind, mark: Arc<Object>) -> LookupPlan {
        if kind == MarkKind::Pass {
            return LookupPlan::HitForPass(mark);
        }
        match self
            .joinable(entry, question, |flight| may_join(flight, question))
            .filter(|flight| flight.state() != FlightState::Reserved)
        {
            Some(flight) if !question.options.alone => LookupPlan::Follow(flight, None),
            _ => LookupPlan::HitForMiss(None, Some(mark)),
        }
    }

    /// The flight whose response would fit, and which will do. One that has outlived an invalidation of its groups, or a ban,
    /// takes no one new.
    pub(crate) fn joinable(
        &self,
        entry: &mut Entry,
        question: &Question<'_>,
        will_do: impl Fn(&Flight) -> bool,
    ) -> Option<Arc<Flight>> {
        loop {
            let flight = entry.joinable(question.request.fields, question.options.ignore_vary, &will_do)?;
            let flight = Arc::clone(flight);
            let is_banned = match question.is_dry {
                false => self.is_banned(&flight, question.request),
                true => self.would_ban(&flight, question.request),
            };
            if flight.is_valid() && !is_banned {
                return Some(flight);
            }
            entry.delist(&flight);
            if !question.is_dry {
                flight.condemn();
            }
        }
    }
}

/// Before its head is known anybody may wait for a response. After that it is one that might be stored: who comes then gets
/// it only as a fresh hit.
fn may_join(flight: &Flight, question: &Question<'_>) -> bool {
    let is_fresh_for = |head: &FlightHead| head.is_fresh_for(question.options, question.now);
    flight.began() >= question.now.confirmed_from && flight.with(|inner| inner.head.as_ref().is_none_or(is_fresh_for))
}

/// A part that holds what is wanted and needs no validation. A stale one is worth a fetch, not a refresh beside it.
pub(crate) fn fresh_part(slot: &Slot, request: &Request<'_>, options: &LookupOptions, now: Now) -> Option<Arc<Object>> {
    let mut parts = slot.parts.holding(options.range?);
    let holds = |part: &Object| if_range_holds(request.fields, part.fields(), &part.facts());
    parts.find(|part| holds(part) && matches!(judge(part, options, now), Verdict::Serve)).cloned()
}

pub(crate) fn judge(object: &Object, options: &LookupOptions, now: Now) -> Verdict {
    if let Some(stage) = object.stage(options, now) {
        return judge_by_policy(stage, object.mark());
    }
    let (facts, resident_ms) = (object.facts(), object.resident_ms(now));
    if options.age_max_ms.is_some_and(|max| facts.age_ms(resident_ms) > max) {
        return Verdict::Ask;
    }
    let in_grace = options.grace_max_ms.is_none_or(|max| facts.stale_for_ms(resident_ms) <= max);
    match object.freshness(now, &options.directives) {
        Freshness::Fresh => Verdict::Serve,
        Freshness::Stale { while_revalidate: true, .. } if in_grace => Verdict::Refresh,
        Freshness::Stale { requester_allows: true, .. } if in_grace => Verdict::Concede,
        _ => Verdict::Ask,
    }
}

/// A mark whose ttl is over goes on saying what both kinds say.
fn judge_by_policy(stage: Stage, mark: Option<MarkKind>) -> Verdict {
    match (stage, mark) {
        (Stage::Over, _) => Verdict::Drop,
        (Stage::TooOld, _) => Verdict::AskAnew,
        (Stage::Fresh, Some(kind)) => Verdict::Marked(kind),
        (_, Some(_)) => Verdict::Marked(MarkKind::Miss),
        (Stage::Fresh, None) => Verdict::Serve,
        (Stage::Grace, None) => Verdict::Refresh,
        (Stage::Keep, None) => Verdict::Ask,
    }
}

/// RFC 9111 §4.2.4, RFC 5861 §4: the failure that is remembered had no response.
fn may_stand_in(object: &Object, options: &LookupOptions, now: Now) -> bool {
    may_serve_on_error(&object.facts(), object.resident_ms(now), &options.directives, OriginFailure::Unreachable)
}
