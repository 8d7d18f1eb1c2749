//! The fast way through the story: lookup, hit, deliver and the first write in one synchronous run over the
//! borrowed request head, by code of its own that passes the same states. Nothing is allocated or awaited, and a hit from the core's own
//! table touches no lock and no shared reference count. Whatever does not fit goes on as a transaction, with the same steps.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;

use cache::{Key, Now, Object};
use message::{FieldName, Method};
use rules::{AcceptedCodings, Freshness};

use crate::answer_plan::{self, AnswerPlan, PlanRules, Representation};
use crate::coded_answer::{self, CodedHit, CodingQuestion};
use crate::core::Core;
use crate::dictionary_offer;
use crate::instant_answer::{BegunStep, HitResponse, InstantClient, InstantHead, InstantOutcome};
use crate::parsed_request::ParsedRequest;
use crate::policy;
use crate::site::{Routed, Site};
use crate::stored_head;
use crate::transaction::lookup::{LookupOutcome, Question};
use crate::transaction::transaction_states::State;
use crate::transaction::{Outcome, Step, hit, lookup};

/// So much of a head and of a body is asked for ahead; the CPU itself goes on from there.
const AHEAD_BYTES: usize = 256;
const CACHE_LINE_BYTES: usize = 64;

/// Looks the request up and answers it if that can be done at once. The transaction is in state Lookup.
#[inline]
pub(crate) fn run(
    client: &mut impl InstantClient,
    core: &Rc<Core>,
    site: &Arc<Site>,
    parsed: &ParsedRequest<'_>,
    (key, routed): (Key, Routed),
) -> InstantOutcome<BegunStep> {
    let request = &parsed.received.request;
    let directives = policy::directives(&site.settings.policy, request, parsed.seen);
    let now = core.now_at(parsed.moment);
    let accepted = match site.compress(routed.backend) {
        Some(compress) if parsed.seen.has(FieldName::AcceptEncoding) => {
            if dictionary_offer::is_made(compress, parsed.seen) {
                return of_shards(
                    client,
                    core,
                    (site, routed),
                    parsed,
                    (key, core.codings.accepted(request.fields)),
                    now,
                );
            }
            core.codings.accepted(request.fields)
        }
        _ => AcceptedCodings::default(),
    };
    let mut hot = core.hot.borrow_mut();
    if let Some(object) = hot.get(key, accepted, request)
        && object.freshness(now, &directives) == Freshness::Fresh
    {
        prefetch(object);
        return answer(client, core, (site, routed), parsed, object, now);
    }
    drop(hot);
    of_shards(client, core, (site, routed), parsed, (key, accepted), now)
}

/// The same by the table that all cores share. `accepted`: in which codings. Cold beside the core's own table: what both have in common is
/// to be inlined there.
#[cold]
fn of_shards(
    client: &mut impl InstantClient,
    core: &Rc<Core>,
    (site, routed): (&Arc<Site>, Routed),
    parsed: &ParsedRequest<'_>,
    (key, accepted): (Key, AcceptedCodings),
    now: Now,
) -> InstantOutcome<BegunStep> {
    let request = &parsed.received.request;
    let directives = policy::directives(&site.settings.policy, request, parsed.seen);
    let question = Question {
        key,
        request,
        seen: parsed.seen,
        directives: &directives,
        routed,
        alone: false,
        has_recalled: false,
    };
    match lookup::find(core, site, &question, now) {
        // Leased in the loop: its body is on a disk, which may have to be waited for.
        LookupOutcome::Fresh(object) if object.body().on_disk().is_some() => {
            InstantOutcome::Step((State::Lookup, Step::Hit(object, hit::Why::Fresh), Outcome::NONE))
        }
        LookupOutcome::Fresh(object) => {
            let asked = CodingQuestion { request, seen: parsed.seen, accepted };
            match coded_answer::of_hit(core, site.compression_of(routed), &asked, &object) {
                CodedHit::Object { object, is_final } => {
                    if is_final {
                        core.hot.borrow_mut().remember(key, accepted, &object);
                    }
                    answer(client, core, (site, routed), parsed, &object, now)
                }
                CodedHit::ToBeMade => {
                    InstantOutcome::Step((State::Lookup, Step::Hit(object, hit::Why::Fresh), Outcome::NONE))
                }
            }
        }
        LookupOutcome::Step(step, outcome) => InstantOutcome::Step((State::Lookup, step, outcome)),
    }
}

/// Answers by what is stored, fresh and in memory, if anything is. `None`: nothing has been done, and who may have the answer is still open.
#[inline]
pub(crate) fn of_fresh(
    client: &mut impl InstantClient,
    core: &Rc<Core>,
    site: &Arc<Site>,
    parsed: &ParsedRequest<'_>,
    (key, routed): (Key, Routed),
) -> Option<InstantOutcome<BegunStep>> {
    let request = &parsed.received.request;
    let directives = policy::directives(&site.settings.policy, request, parsed.seen);
    let now = core.now_at(parsed.moment);
    let accepted = match site.compress(routed.backend) {
        Some(compress) if parsed.seen.has(FieldName::AcceptEncoding) => {
            if dictionary_offer::is_made(compress, parsed.seen) {
                return None;
            }
            core.codings.accepted(request.fields)
        }
        _ => AcceptedCodings::default(),
    };
    let mut hot = core.hot.borrow_mut();
    if let Some(object) = hot.get(key, accepted, request)
        && object.freshness(now, &directives) == Freshness::Fresh
    {
        core.edges.take(State::Receive, State::Lookup);
        prefetch(object);
        return Some(answer(client, core, (site, routed), parsed, object, now));
    }
    drop(hot);
    let object = core.shared.cache.find(key, request)?;
    if object.freshness(now, &directives) != Freshness::Fresh || object.body().on_disk().is_some() {
        return None;
    }
    let asked = CodingQuestion { request, seen: parsed.seen, accepted };
    let CodedHit::Object { object, is_final } =
        coded_answer::of_hit(core, site.compression_of(routed), &asked, &object)
    else {
        return None;
    };
    if is_final {
        core.hot.borrow_mut().remember(key, accepted, &object);
    }
    core.edges.take(State::Receive, State::Lookup);
    Some(answer(client, core, (site, routed), parsed, &object, now))
}

/// Answers a GET or a HEAD that came before the handshake of TLS was over by what is stored and fresh. Whoever sends it again causes nothing:
/// no flight begins, nothing is refreshed and no disk is asked. `None`: it has to wait.
#[cold]
pub(crate) fn of_stored(
    client: &mut impl InstantClient,
    core: &Rc<Core>,
    site: &Arc<Site>,
    parsed: &ParsedRequest<'_>,
    (key, routed): (Key, Routed),
) -> Option<InstantOutcome<BegunStep>> {
    let request = &parsed.received.request;
    if !matches!(request.method, Method::Get | Method::Head) {
        return None;
    }
    let directives = policy::directives(&site.settings.policy, request, parsed.seen);
    let now = core.now_at(parsed.moment);
    let object = core.shared.cache.find(key, request)?;
    let is_at_hand = object.freshness(now, &directives) == Freshness::Fresh && object.body().on_disk().is_none();
    if !is_at_hand || !is_sent_whole(parsed, &object) {
        return None;
    }
    core.edges.take(State::Receive, State::Lookup);
    Some(answer(client, core, (site, routed), parsed, &object, now))
}

/// Begins to read what the kernel is about to copy, so that both misses of the CPU's cache are under way while the end
/// of the head is written.
#[inline]
fn prefetch(object: &Arc<Object>) {
    for bytes in [object.rendered(), object.body().behind_head()] {
        for at in (0..AHEAD_BYTES).step_by(CACHE_LINE_BYTES) {
            black_box(bytes.get(at).copied());
        }
    }
}

/// Hit, deliver and the first write.
#[inline]
fn answer<C: InstantClient>(
    client: &mut C,
    core: &Core,
    (site, routed): (&Site, Routed),
    parsed: &ParsedRequest<'_>,
    object: &Arc<Object>,
    now: Now,
) -> InstantOutcome<BegunStep> {
    let edits = site.answer_fields_of(routed);
    if !is_sent_whole(parsed, object) || edits.is_some_and(|edits| !edits.leave_as_rendered(object)) {
        // Several pieces, or a head that is made anew: no hurry.
        return InstantOutcome::Step((State::Lookup, Step::Hit(Arc::clone(object), hit::Why::Fresh), Outcome::NONE));
    }
    core.edges.take(State::Lookup, State::Hit);
    core.edges.take(State::Hit, State::Deliver);
    object.touch(now);
    let mut tail = core.tail.borrow_mut();
    tail.clear();
    stored_head::write_tail::<C::Form>(&mut tail, site, object, now, (parsed, edits));
    client.send(core, site, &HitResponse::to(parsed), object, InstantHead::Stored { tail: &tail })
}

/// Does the whole of it go out, or its head alone, as it was rendered?
#[inline]
fn is_sent_whole(parsed: &ParsedRequest<'_>, object: &Object) -> bool {
    if !object.goes_out_as_it_is() {
        return false;
    }
    if !parsed.is_conditional() {
        return true;
    }
    let (request, seen) = (&parsed.received.request, parsed.seen);
    let (facts, head_only) = (object.facts(), request.method == Method::Head);
    let plan = answer_plan::plan(request, seen, head_only, Representation::stored(object, &facts), PlanRules::Rfc);
    matches!(plan, AnswerPlan::Whole | AnswerPlan::HeadOnly)
}
