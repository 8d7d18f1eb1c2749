//! Miss: begins the fetch, in a task of its own that outlives its requester, and follows it like everybody else.

use cache::Ticket;

use crate::fetch;
use crate::transaction::synth::Synth;
use crate::transaction::wait::Wait;
use crate::transaction::{Step, Transaction};
use crate::vcl_story::client_steps;

pub(crate) fn run(tx: &mut Transaction, ticket: Ticket) -> Step {
    if tx.vcl.is_some()
        && let Some(elsewhere) = client_steps::miss(tx)
    {
        ticket.give_back();
        return elsewhere;
    }
    if tx.vcl.is_some() && client_steps::body_is_gone(tx) {
        // Asked without it, it would be another request.
        ticket.give_back();
        return Step::Synth(Synth::unfetched("request-body-gone"));
    }
    let stale = ticket.stale().cloned();
    let follower = ticket.follow(tx.core.index);
    let notes = fetch::spawn(tx, ticket);
    Step::Wait(Box::new(Wait::leading(follower, notes, stale)))
}
