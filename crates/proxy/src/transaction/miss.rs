//! Miss: begins the fetch, in a task of its own that outlives its requester, and follows it like everybody else.

use cache::Ticket;

use crate::downstream::Downstream;
use crate::fetch::begin::{self, Requester};
use crate::policy_steps;
use crate::transaction::wait::Wait;
use crate::transaction::{Step, Transaction, mirror};

pub(crate) fn run(tx: &mut Transaction, downstream: &Downstream<'_>, ticket: Ticket) -> Step {
    if let Some(elsewhere) = policy_steps::miss(tx, downstream) {
        ticket.give_back();
        return elsewhere;
    }
    let stale = ticket.stale().cloned();
    let follower = ticket.follow(tx.core.index);
    let notes = begin::spawn(&Requester::of(tx), ticket);
    // What is stored was asked for without a body.
    drop(mirror::begin(tx));
    Step::Wait(Box::new(Wait::leading(follower, notes, stale)))
}
