//! The second half: what the cache's plan for the request is, and which reasons stand behind it.

use std::sync::Arc;

use cache::{Explained, LookupPlan, Object};
use rules::conditions::Validators;
use rules::credentials;

use crate::explain::opened::{ExplainedRequest, answered, of_whom, who_it_names};
use crate::explain::{Explanation, StoredResponse, WouldBe};
use crate::reason::Reason;
use crate::transaction::lookup::{Question, UseOfStored, WithoutStored};
use crate::transaction::synth::Synth;
use crate::transaction::why_forwarded::Forwarded;

const IN_SHARED_TIER: &str = "the shared tier is asked first, and what it has only that tells";
const ON_DISK: &str = "a disk has something under this key, which is read first; what it is only the reading tells";
const NOT_CONFIRMED: &str = "what is stored does not say that others may have it, so that it is not confirmed for a request with credentials: all of it is asked for";
const HAS_FAILED: &str =
    "the origin failed a moment ago, and is not asked again at once: what is stored stands in meanwhile";
const IS_REFRESHED: &str = "somebody refreshes it already";
const IN_SLICES: &str = "its body lies in slices: those that are not there are fetched";
const IS_FOLLOWED: &str = "somebody fetches it at this moment: the request waits for that, and gets the same if it may";

pub(super) fn explain(asked: &ExplainedRequest<'_, '_>, question: &Question<'_>, explained: &mut Explanation) {
    let (core, now) = (asked.core, asked.core.now());
    let found = core.shared.cache.explain(question.key, question.request, &question.options(core.index), now);
    explained.key = Some(asked.key_text());
    let defaults = crate::fetch::store_defaults_of(asked.site, question.routed);
    let described = |object: &Arc<Object>| StoredResponse::of(object, question.request, &defaults, now);
    explained.stored = found.stored.iter().map(described).collect();
    let served = match question.wants_stored_alone(asked.site) {
        true => of_stored_alone(asked, question, &found, explained),
        false => of_plan(asked, question, &found, explained),
    };
    let chosen = served.or(found.selected);
    if let Some(object) = chosen {
        note_chosen(&object, &found.stored, explained);
    }
    note_credentials(asked, explained);
}

/// As `lookup::find` does it for most requests. Returns what is served.
fn of_plan(
    asked: &ExplainedRequest<'_, '_>,
    question: &Question<'_>,
    found: &Explained,
    explained: &mut Explanation,
) -> Option<Arc<Object>> {
    let now = asked.core.now();
    let meets_others = found.stored.iter().any(|object| object.vary().is_some());
    let (would_be, served) = match &found.plan {
        LookupPlan::Serve(object) => (WouldBe::Hit, Some(Arc::clone(object))),
        LookupPlan::ServeStale(object) => (stale(false, found, explained), Some(Arc::clone(object))),
        LookupPlan::Refresh(object) => (stale(true, found, explained), Some(Arc::clone(object))),
        LookupPlan::Fetch { stored, .. } => {
            let would_be = of_fetch(asked, question, stored.as_deref(), explained);
            // What a disk has is not known to be missing.
            if would_be != WouldBe::Disk {
                note_forwarded(Forwarded::of(stored.as_deref(), meets_others, now), stored.as_deref(), explained);
            }
            (would_be, None)
        }
        LookupPlan::Follow(_, stored) => {
            note_forwarded(Forwarded::of(stored.as_deref(), meets_others, now), stored.as_deref(), explained);
            explained.notes.push(IS_FOLLOWED.to_owned());
            (WouldBe::Coalesced, None)
        }
        LookupPlan::HitForMiss(stored, _) => {
            explained.because(Reason::HitForMiss, None);
            match stored.as_deref() {
                None => (WouldBe::Miss, None),
                Some(object) => {
                    note_forwarded(Forwarded::of(Some(object), meets_others, now), Some(object), explained);
                    (of_fetch(asked, question, Some(object), explained), None)
                }
            }
        }
        LookupPlan::Pass => {
            explained.because(Reason::HitForMiss, None);
            (WouldBe::Pass, None)
        }
        LookupPlan::HitForPass(_) => {
            explained.because(Reason::HitForPass, None);
            (WouldBe::Pass, None)
        }
        LookupPlan::Failed(failure) => (answered(&Synth::failed(failure)), None),
        // It was taken out of what was looked at.
        LookupPlan::Over(_) => (WouldBe::Miss, None),
    };
    if let Some(why) = found.why_uncacheable.filter(|_| served.is_none()) {
        let reason = Reason::from(why);
        explained.because(reason, of_whom(reason, asked.came.fields));
    }
    if question.directives.no_store && matches!(would_be, WouldBe::Miss | WouldBe::Coalesced | WouldBe::Revalidated) {
        explained.because(Reason::RequestNoStore, None);
    }
    explained.would_be = would_be;
    served
}

/// What is stale is served; and is it refreshed, where that may be?
fn stale(may_refresh: bool, found: &Explained, explained: &mut Explanation) -> WouldBe {
    if found.has_failed {
        explained.notes.push(HAS_FAILED.to_owned());
    } else if may_refresh && found.fetching > 0 {
        explained.notes.push(IS_REFRESHED.to_owned());
    }
    WouldBe::Stale { refreshes: may_refresh && !found.has_failed }
}

/// The origin is asked, or a disk before it.
fn of_fetch(
    asked: &ExplainedRequest<'_, '_>,
    question: &Question<'_>,
    stored: Option<&Object>,
    explained: &mut Explanation,
) -> WouldBe {
    let Some(stored) = stored else {
        let cache = &asked.core.shared.cache;
        if cache.may_be_on_disk(question.key) {
            explained.notes.push(ON_DISK.to_owned());
            return WouldBe::Disk;
        }
        explained.notes.extend(cache.has_shared_tier().then(|| IN_SHARED_TIER.to_owned()));
        return WouldBe::Miss;
    };
    if !stored.facts().says_shared && credentials::of_request(question.request.fields).is_some() {
        explained.notes.push(NOT_CONFIRMED.to_owned());
        return WouldBe::Miss;
    }
    // Without a validator nothing can be asked but for all of it.
    match Validators::of(stored.response(), &stored.facts()) {
        Some(_) => WouldBe::Revalidated,
        None => WouldBe::Miss,
    }
}

/// As `lookup::find_stored` does it.
fn of_stored_alone(
    asked: &ExplainedRequest<'_, '_>,
    question: &Question<'_>,
    found: &Explained,
    explained: &mut Explanation,
) -> Option<Arc<Object>> {
    let now = asked.core.now();
    if let Some(object) = &found.selected {
        explained.would_be = match question.use_of(object, now) {
            UseOfStored::Fresh => WouldBe::Hit,
            UseOfStored::Stale { refreshes } => stale(refreshes, found, explained),
            UseOfStored::None => WouldBe::Pass,
        };
        if explained.would_be != WouldBe::Pass {
            return Some(Arc::clone(object));
        }
        note_forwarded(Forwarded::to_confirm(object, now), Some(object), explained);
    }
    if let Some(part) = &found.part {
        explained.would_be = WouldBe::Hit;
        explained.reasons.clear();
        return Some(Arc::clone(part));
    }
    if found.selected.is_none() && asked.core.shared.cache.may_be_on_disk(question.key) {
        explained.would_be = WouldBe::Disk;
        explained.notes.push(ON_DISK.to_owned());
        return None;
    }
    match question.without_stored() {
        WithoutStored::OnlyIfCached => {
            explained.because(Reason::OnlyIfCached, None);
            explained.would_be = answered(&Synth::only_if_cached());
        }
        WithoutStored::Pass(reason) => {
            explained.because(reason, None);
            explained.would_be = WouldBe::Pass;
        }
    }
    None
}

fn note_forwarded(forwarded: Forwarded, stored: Option<&Object>, explained: &mut Explanation) {
    let always_confirmed = stored.is_some_and(|stored| stored.facts().always_validate);
    let reason = match forwarded {
        Forwarded::Nothing => Reason::NothingStored,
        Forwarded::OtherVariant => Reason::OtherVariant,
        Forwarded::Stale if always_confirmed => Reason::AlwaysConfirmed,
        Forwarded::Stale => Reason::Stale,
        Forwarded::Request => Reason::RequestWantsIt,
    };
    let about = match reason {
        Reason::OtherVariant => {
            let mut names: Vec<&str> = Vec::new();
            let all = explained.stored.iter().flat_map(|stored| &stored.vary);
            all.for_each(|name| {
                if !names.contains(&name.as_str()) {
                    names.push(name)
                }
            });
            Some(names.join(", "))
        }
        _ => None,
    };
    explained.because(reason, about);
}

/// Which one is chosen, and by what (RFC 9111 §4.1).
fn note_chosen(object: &Arc<Object>, stored: &[Arc<Object>], explained: &mut Explanation) {
    if object.sliced().is_some() {
        explained.notes.push(IN_SLICES.to_owned());
    }
    let Some(at) = stored.iter().position(|other| Arc::ptr_eq(other, object)) else { return };
    let because = match (object.partial(), object.vary(), stored.len()) {
        (Some(_), ..) => "it is a part that holds the range".to_owned(),
        (None, None, 1) => "it is the only one, and for every request".to_owned(),
        (None, None, _) => "it has no Vary, and none that has one is for this request".to_owned(),
        (None, Some(_), _) => {
            format!(
                "the request has the same {} as the one that it was stored for",
                explained.stored[at].vary.join(", ")
            )
        }
    };
    explained.chosen = Some((at, because));
}

/// What comes for a request with credentials is stored only where it says so.
fn note_credentials(asked: &ExplainedRequest<'_, '_>, explained: &mut Explanation) {
    let asks_origin = matches!(explained.would_be, WouldBe::Miss | WouldBe::Coalesced | WouldBe::Revalidated);
    if let Some(names) = who_it_names(asked.received.request.fields).filter(|_| asks_origin) {
        explained.notes.push(format!(
            "the request has {names}: what the origin answers is stored only where it says that others may have it"
        ));
    }
}
