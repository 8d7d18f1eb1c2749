//! Refreshed: the origin said 304. What is stored gets a new head, if the answer is about what we hold; else the
//! origin is asked again, without conditions.

use std::sync::Arc;

use cache::Ticket;
use message::{FieldName, ResponseHead};
use rules::conditions::Validators;
use rules::storing::facts_after_update;
use rules::{Exchange, Facts, update};

use crate::fetch::notes::FetchNotes;
use crate::fetch::{Fetch, FetchState, Purpose, Reply, failed};
use crate::stored_head;

/// Ends the fetch, or gives the ticket back for another round.
pub(crate) fn run(fetch: &mut Fetch, ticket: Ticket, reply: Reply, notes: Option<&FetchNotes>) -> Option<Ticket> {
    fetch.enter(FetchState::Refreshed);
    let Purpose::Store(Some(stale)) = fetch.purpose.clone() else {
        fetch.enter(FetchState::Failed);
        ticket.fail(failed::unasked_304(&fetch.origin), reply.received);
        return None;
    };
    let confirmed = Validators::of(stale.head().response(), stale.facts())
        .is_some_and(|validators| validators.are_confirmed_by(reply.head.fields.view()));
    if !confirmed {
        fetch.purpose = Purpose::Store(None);
        fetch.enter(FetchState::Prepare);
        return Some(ticket);
    }
    let (head, facts) = merged(fetch, stale.head(), &reply);
    let rendered = stored_head::render(&head, &fetch.site);
    if let Some(notes) = notes {
        notes.note_refreshed();
    }
    let key = stale.key();
    ticket.refreshed(Arc::new(head), rendered, facts.unwrap_or_default(), reply.received);
    if facts.is_none() {
        // The update forbids keeping it: those who wait have it, and nobody else will.
        fetch.core.shared.cache.invalidate(key);
    }
    // A 304 has no body: the connection is free.
    reply.body.into_body(fetch).finish();
    fetch.enter(FetchState::Landed);
    None
}

/// The stored head under the update, and its facts if it may still be kept.
pub(crate) fn merged(fetch: &Fetch, stored: &ResponseHead, reply: &Reply) -> (ResponseHead, Option<Facts>) {
    let defaults = fetch.store_defaults();
    let mut head = stored.clone();
    update::merge_304(&mut head, reply.head.response(), &defaults);
    // The new Age is that of the update: an old one would be counted twice.
    head.fields.remove(FieldName::Age);
    let mut judged = head.clone();
    if let Some(age) = reply.head.fields.view().get(FieldName::Age) {
        judged.fields.push(FieldName::Age, age);
    }
    let exchange = Exchange {
        request: &fetch.head.request(),
        response: judged.response(),
        response_wall_ms: reply.received.wall_ms,
        response_delay_ms: reply.delay_ms,
        defaults: &defaults,
    };
    let facts = facts_after_update(&exchange, judged.response()).ok();
    head.fields.shrink();
    (head, facts)
}
