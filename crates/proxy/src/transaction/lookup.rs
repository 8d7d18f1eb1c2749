//! Lookup: ask the cache, and see where its answer leads, for the built-in policy: the same for the instant run and for the loop. A program
//! asks in `client_steps::look_up`.

use std::rc::Rc;
use std::sync::Arc;

use cache::{Answer, Key, LookupOptions, Now, Object, Ticket};
use message::{FieldName, Method, Request};
use rules::range::{RangeSpec, RangeSpecs};
use rules::{Freshness, RequestDirectives};

use crate::access_log::CacheVerdict;
use crate::core::Core;
use crate::fetch::begin::{self, Requester};
use crate::field_set::FieldSet;
use crate::policy_steps;
use crate::reason::Reason;
use crate::site::{Routed, Site};
use crate::transaction::recalling::{Otherwise, Recall};
use crate::transaction::synth::Synth;
use crate::transaction::wait::Wait;
use crate::transaction::why_forwarded::Forwarded;
use crate::transaction::{Outcome, Step, Transaction, hit};

/// A waiter that was told so often to ask again goes to the origin beside the others.
pub(crate) const ASKED_AGAIN_MAX: u32 = 3;

/// Why a range is passed that begins far into what is not stored.
pub(crate) const RANGE_AHEAD: &str = Reason::RangeAhead.token();

/// Where the cache's answer leads.
pub(crate) enum LookupOutcome {
    /// Serve this now.
    Fresh(Arc<Object>),
    Step(Step, Outcome),
}

/// A request that is to be looked up.
pub(crate) struct Question<'a> {
    pub(crate) key: Key,
    pub(crate) request: &'a Request<'a>,
    pub(crate) seen: FieldSet,
    pub(crate) directives: &'a RequestDirectives,
    pub(crate) routed: Routed,
    /// Wait for nobody.
    pub(crate) alone: bool,
    /// A disk was asked already, and what it has of the key is in memory or not wanted.
    pub(crate) has_recalled: bool,
}

/// The step, in the loop.
pub(crate) fn ask(tx: &mut Transaction) -> Step {
    if let Some(step) = policy_steps::look_up(tx) {
        return step;
    }
    // The key is computed anew: No-Vary-Search may have changed while we waited.
    tx.key = None;
    let key = tx.key();
    let core = Rc::clone(&tx.core);
    tx.asked_again_count += 1;
    let question = Question {
        key,
        request: &tx.head.request(),
        seen: tx.seen,
        directives: &tx.directives,
        routed: tx.routed,
        alone: tx.asked_again_count > ASKED_AGAIN_MAX,
        has_recalled: tx.has_recalled(),
    };
    match find(&core, &tx.site, &question, core.now()) {
        LookupOutcome::Fresh(object) => Step::Hit(object, hit::Why::Fresh),
        LookupOutcome::Step(step, outcome) => {
            tx.outcome = outcome;
            step
        }
    }
}

/// Asks and sorts the answer.
pub(crate) fn find(core: &Rc<Core>, site: &Arc<Site>, question: &Question<'_>, now: Now) -> LookupOutcome {
    if question.wants_stored_alone(site) {
        return find_stored(core, site, question, now);
    }
    match core.shared.cache.ask(question.key, question.request, &question.options(core.index), now) {
        Answer::Fresh(object) => LookupOutcome::Fresh(object),
        answer => {
            let Lead { step, outcome, refresh } = Lead::of(answer, (question.key, now), || may_recall(core, question));
            if let Some(ticket) = refresh {
                spawn_refresh((core, site), question, ticket);
            }
            LookupOutcome::Step(step, outcome)
        }
    }
}

impl Question<'_> {
    /// Must it not take on a fetch of the whole? HEAD fetches no body, only-if-cached nothing at all, and nobody should wait for the front
    /// of a large body in order to get its end.
    pub(crate) fn wants_stored_alone(&self, site: &Site) -> bool {
        self.directives.only_if_cached || self.request.method == Method::Head || is_far_range(site, self)
    }

    /// How the cache is asked.
    pub(crate) fn options(&self, core: usize) -> LookupOptions {
        LookupOptions {
            core,
            alone: self.alone,
            pass_uncacheable: true,
            range: wanted_range(self),
            directives: *self.directives,
            ..LookupOptions::default()
        }
    }

    /// Where it goes that must not take on a fetch, when nothing stored answers it.
    pub(crate) fn without_stored(&self) -> WithoutStored {
        match (self.directives.only_if_cached, self.request.method) {
            (true, _) => WithoutStored::OnlyIfCached,
            (false, Method::Head) => WithoutStored::Pass(Reason::Head),
            (false, _) => WithoutStored::Pass(Reason::RangeAhead),
        }
    }

    /// May what is stored answer it, as it is?
    pub(crate) fn use_of(&self, object: &Object, now: Now) -> UseOfStored {
        match object.freshness(now, self.directives) {
            Freshness::Fresh => UseOfStored::Fresh,
            Freshness::Stale { while_revalidate, requester_allows } if while_revalidate || requester_allows => {
                // Who asked for nothing but what is stored causes no request.
                UseOfStored::Stale { refreshes: while_revalidate && !self.directives.only_if_cached }
            }
            _ => UseOfStored::None,
        }
    }
}

/// What becomes of what is stored, for who must not take on a fetch of the whole.
pub(crate) enum UseOfStored {
    Fresh,
    /// It is served all the same; and is it refreshed meanwhile?
    Stale {
        refreshes: bool,
    },
    None,
}

/// Where a request goes that must not take on a fetch of the whole.
#[derive(Clone, Copy)]
pub(crate) enum WithoutStored {
    /// RFC 9111 §5.2.1.7.
    OnlyIfCached,
    Pass(Reason),
}

/// Where an answer of the cache leads, whoever decides about the request.
pub(crate) struct Lead {
    pub(crate) step: Step,
    pub(crate) outcome: Outcome,
    /// The right to refresh the stale response that is going to be served.
    pub(crate) refresh: Option<Ticket>,
}

impl Lead {
    /// `may_recall`: may a disk have it, and was not asked yet?
    pub(crate) fn of(answer: Answer, (key, now): (Key, Now), may_recall: impl FnOnce() -> bool) -> Lead {
        let mut refresh = None;
        let forwarded = match &answer {
            Answer::Miss(ticket) | Answer::HitForMiss(ticket, _) => Forwarded::with(ticket, now),
            Answer::Busy(follower) => {
                follower.stale().map_or(Forwarded::Nothing, |stale| Forwarded::to_confirm(stale, now))
            }
            _ => Forwarded::Nothing,
        };
        let (step, verdict, why) = match answer {
            Answer::Fresh(object) => (Step::Hit(object, hit::Why::Fresh), CacheVerdict::Hit, ""),
            Answer::Stale(object, ticket) => {
                refresh = ticket;
                (Step::Hit(object, hit::Why::Stale), CacheVerdict::Stale, "")
            }
            Answer::Miss(ticket) => {
                let step = match ticket.stale().is_none() && may_recall() {
                    true => recall(key, Otherwise::Miss(ticket)),
                    false => Step::Miss(ticket),
                };
                (step, CacheVerdict::Miss, "")
            }
            Answer::HitForMiss(ticket, _) => (Step::Miss(ticket), CacheVerdict::Miss, Reason::HitForMiss.token()),
            Answer::HitForPass(_) => (Step::Pass, CacheVerdict::Pass, Reason::HitForPass.token()),
            Answer::Uncacheable => (Step::Pass, CacheVerdict::Pass, Reason::HitForMiss.token()),
            Answer::Busy(follower) => (Step::Wait(Box::new(Wait::behind(follower))), CacheVerdict::Coalesced, ""),
            Answer::RecentFailure(failure) => (Step::Synth(Synth::failed(&failure)), CacheVerdict::Error, ""),
        };
        Lead { step, outcome: Outcome { verdict, why, forwarded, ..Outcome::NONE }, refresh }
    }
}

/// For requests that must not take on a fetch of the whole. What the origin answers to a range that begins far ahead is stored as a part.
fn find_stored(core: &Rc<Core>, site: &Arc<Site>, question: &Question<'_>, now: Now) -> LookupOutcome {
    let found = core.shared.cache.find(question.key, question.request);
    let is_found = found.is_some();
    let mut forwarded = Forwarded::Nothing;
    if let Some(object) = found {
        forwarded = Forwarded::to_confirm(&object, now);
        match question.use_of(&object, now) {
            UseOfStored::Fresh => return LookupOutcome::Fresh(object),
            UseOfStored::Stale { refreshes } => {
                if refreshes {
                    refresh_behind(core, site, question, &object, now);
                }
                let outcome = Outcome { verdict: CacheVerdict::Stale, ..Outcome::NONE };
                return LookupOutcome::Step(Step::Hit(object, hit::Why::Stale), outcome);
            }
            UseOfStored::None => {}
        }
    }
    let options =
        LookupOptions { range: wanted_range(question), directives: *question.directives, ..LookupOptions::default() };
    if options.range.is_some()
        && let Some(part) = core.shared.cache.find_part(question.key, question.request, &options, now)
    {
        return LookupOutcome::Fresh(part);
    }
    let otherwise = question.without_stored();
    if !is_found && may_recall(core, question) {
        let otherwise = match otherwise {
            WithoutStored::OnlyIfCached => Otherwise::OnlyIfCached,
            WithoutStored::Pass(why) => Otherwise::Pass(why.token()),
        };
        return LookupOutcome::Step(recall(question.key, otherwise), Outcome::NONE);
    }
    match otherwise {
        WithoutStored::OnlyIfCached => LookupOutcome::Step(Step::Synth(Synth::only_if_cached()), Outcome::NONE),
        WithoutStored::Pass(why) => {
            let why = why.token();
            LookupOutcome::Step(Step::Pass, Outcome { why, forwarded, verdict: CacheVerdict::Pass, ..Outcome::NONE })
        }
    }
}

/// May a disk have it? Where there is none this is one look at a field.
pub(crate) fn may_recall(core: &Core, question: &Question<'_>) -> bool {
    !question.has_recalled && core.shared.cache.may_recall(question.key)
}

fn recall(key: Key, otherwise: Otherwise) -> Step {
    Step::Recall(Box::new(Recall { key, otherwise }))
}

/// RFC 5861 §3: what is served stale is refreshed meanwhile. The refresh fetches the whole, whatever was asked for.
fn refresh_behind(core: &Rc<Core>, site: &Arc<Site>, question: &Question<'_>, object: &Arc<Object>, now: Now) {
    let request = Request { method: Method::Get, method_text: b"GET", ..question.request.clone() };
    let options = LookupOptions { core: core.index, ..LookupOptions::default() };
    if let Some(ticket) = core.shared.cache.refresh(object, &request, &options, now) {
        spawn_refresh((core, site), question, ticket);
    }
}

fn spawn_refresh(site: (&Rc<Core>, &Arc<Site>), question: &Question<'_>, ticket: Ticket) {
    let head = Rc::new(ticket.request().to_head());
    begin::spawn_refresh(&Requester::in_background(site, question.routed, &head), ticket);
}

/// The one range that a GET wants: a stored part may hold it.
fn wanted_range(question: &Question<'_>) -> Option<RangeSpec> {
    if !question.seen.has(FieldName::Range) || question.request.method != Method::Get {
        return None;
    }
    RangeSpecs::of(question.request.fields)?.single()
}

/// A range that starts further ahead than `limits.range_ahead_bytes_max`, or counts from an end we do not know.
fn is_far_range(site: &Site, question: &Question<'_>) -> bool {
    if !question.seen.has(FieldName::Range) {
        return false;
    }
    let ahead_max = site.settings.limits.range_ahead_bytes_max;
    let Some(specs) = RangeSpecs::of(question.request.fields) else { return false };
    specs.specs().iter().any(|spec| match spec {
        RangeSpec::From { first, .. } => *first > ahead_max,
        RangeSpec::Suffix { .. } => true,
    })
}
