//! Refreshed: the origin said 304. What is stored gets a new head, if the answer is about what we hold; else the
//! origin is asked again, without conditions. The answer is judged as a 200 would be before anybody but its requester
//! sees it.

use std::sync::Arc;

use cache::{Began, Key, Renewal, Ticket, Unshared};
use message::{FieldName, Fields, FieldsView, Method, Request, Response, ResponseHead};
use rules::conditions::Validators;
use rules::storing::{Withholding, facts_after_update};
use rules::update::{self, HeadEffect};
use rules::{Exchange, Facts, UrlVariation, Vary, WhyNotStored};
use wire::HopByHop;

use crate::cache_groups;
use crate::fetch::notes::FetchNotes;
use crate::fetch::{Fetch, FetchState, Purpose, Reply, failed};
use crate::stored_head;

/// Ends the fetch, or gives the ticket back for another round.
pub(crate) fn run(fetch: &mut Fetch, ticket: Ticket, reply: Reply, notes: Option<&FetchNotes>) -> Option<Ticket> {
    fetch.enter(FetchState::Refreshed);
    let Purpose::Store(Some(stale)) = fetch.purpose.clone() else {
        fetch.enter(FetchState::Failed);
        ticket.fail(failed::unasked_304(fetch.origin()), reply.received);
        reply.body.into_body(fetch).finish();
        return None;
    };
    let confirmed = Validators::of(stale.response(), &stale.facts())
        .is_some_and(|validators| validators.are_confirmed_by(reply.head.fields.view()));
    if !confirmed || UrlVariation::is_changed_by(stale.fields(), reply.head.fields.view()) {
        reply.body.into_body(fetch).finish();
        fetch.purpose = Purpose::Store(None);
        fetch.enter(FetchState::Prepare);
        return Some(ticket);
    }
    let (head, facts) = merged(fetch, stale.response(), &reply);
    let rendered = stored_head::render(&head, &fetch.site);
    if let Some(notes) = notes {
        notes.note_refreshed(own_fields(fetch, &reply));
    }
    let groups = cache_groups::of_response(&fetch.core.shared.cache, &fetch.head.request(), head.fields.view());
    let heads = (Arc::new(head), rendered);
    match (facts, Vary::of(heads.0.fields.view())) {
        (Ok(facts), vary) => {
            let vary = match vary {
                Vary::Fields(spec) => Some(spec),
                Vary::None | Vary::Any | Vary::TooMany => None,
            };
            ticket.renewed(heads, Renewal { facts, lifetimes: None, groups, tags: None, vary }, reply.received)
        }
        (Err(why), _) => {
            if let Some(notes) = notes {
                notes.note_not_stored(why.token());
            }
            ticket.refreshed_for_leader(heads, unshared(fetch, why), reply.received)
        }
    };
    // A 304 has no body: the connection is free.
    reply.body.into_body(fetch).finish();
    fetch.enter(FetchState::Landed);
    None
}

/// What is remembered where the update forbids keeping it.
fn unshared(fetch: &Fetch, why: WhyNotStored) -> Unshared {
    Unshared {
        mark: None,
        is_kept: why.is_about_credentials(),
        uncacheable_ms: fetch.site.settings.policy.uncacheable.as_millis() as u64,
        is_personal: fetch.is_personal(why),
    }
}

/// The fields of a 304 that its requester gets and nobody else, as from a 200: its cookies, and what `no-cache="…"` or
/// `private="…"` names.
fn own_fields(fetch: &Fetch, reply: &Reply) -> Fields {
    let end_to_end = HopByHop::end_to_end(reply.head.fields.view());
    let defaults = fetch.store_defaults();
    let withholding = Withholding::of(end_to_end.view(), &defaults);
    let mut own = Fields::default();
    for field in end_to_end.view().iter() {
        if withholding.withholds(&field) && field.name != FieldName::Age {
            own.push_named(field.name_text, field.value);
        }
    }
    own
}

/// The stored head under the update, and its facts, or why it may not be kept.
pub(crate) fn merged(
    fetch: &Fetch,
    stored: Response<'_>,
    reply: &Reply,
) -> (ResponseHead, Result<Facts, WhyNotStored>) {
    let defaults = fetch.store_defaults();
    let mut head = stored.to_head();
    update::merge_304(&mut head, reply.head.response(), &defaults);
    // The new Age is that of the update: an old one would be counted twice.
    head.fields.remove(FieldName::Age);
    // What is stored answers GET, whatever asked just now.
    let request = Request { method: Method::Get, ..fetch.head.request() };
    let exchange = Exchange {
        request: &request,
        response: reply.head.response(),
        response_wall_ms: reply.received.wall_ms,
        response_delay_ms: reply.delay_ms,
        defaults: &defaults,
    };
    let facts = facts_after_update(&exchange, stored.fields, head.response());
    head.fields.shrink();
    (head, facts)
}

/// Where it belongs, and to whom, only a GET may say anew.
fn belongs_elsewhere(stored: FieldsView<'_>, update: FieldsView<'_>) -> bool {
    let regroups = update.contains(FieldName::CacheGroups)
        && rules::groups::of_response(update) != rules::groups::of_response(stored);
    let varies = update.contains(FieldName::Vary) && Vary::of(update) != Vary::of(stored);
    regroups || varies || UrlVariation::is_changed_by(stored, update)
}

/// RFC 9111 §4.3.5: what the answer to a HEAD says about a stored GET response. `began` is the number under which the HEAD
/// was asked.
pub(crate) fn by_head(fetch: &Fetch, key: Key, reply: &Reply, began: Began) {
    let cache = &fetch.core.shared.cache;
    let Some(stored) = cache.find(key, &fetch.head.request()) else { return };
    // What was stored or invalidated after the HEAD had left is newer than its answer.
    if !stored.was_stored_before(began, reply.received.mono_ms.saturating_sub(reply.delay_ms)) {
        return;
    }
    let (held, now_s) = ((stored.response(), &stored.facts()), (reply.received.wall_ms / 1000) as i64);
    let effect = update::head_effect(held, stored.length(), reply.head.response(), now_s);
    if effect == HeadEffect::None {
        return;
    }
    match merged(fetch, stored.response(), reply) {
        (head, Ok(facts))
            if effect == HeadEffect::Update && !belongs_elsewhere(stored.fields(), reply.head.fields.view()) =>
        {
            let rendered = stored_head::render(&head, &fetch.site);
            cache.freshen(&stored, Some((&head, &rendered)), facts, reply.received);
        }
        // What somebody's credentials were answered says nothing of what others get.
        (_, Err(why)) if why.is_about_credentials() => {}
        _ => {
            let facts = Facts { always_validate: true, ..stored.facts() };
            cache.freshen(&stored, None, facts, reply.received);
        }
    }
}
