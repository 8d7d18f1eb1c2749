//! The loop over the steps of a transaction.

use crate::clock::Moment;
use crate::downstream::Downstream;
use crate::included::IncludedClient;
use crate::policy::Policy;
use crate::transaction::{Step, Transaction};
use crate::transaction::{
    admit, deliver, error_page, files, hit, log, lookup, memcached, miss, part_receiving, pass, pipe, purge, recalling,
    restart, slicing, synthesis, transmit, unread_body, wait,
};
use crate::vcl_story::{client_steps, program_waits, receiving};

/// Runs the transaction from `step` to its end. True when its client may ask again the same way.
pub(crate) async fn run(mut tx: Box<Transaction>, downstream: Downstream<'_>, step: Step) -> bool {
    let (tx, downstream) = (&mut *tx, &mut { downstream });
    let mut step = step;
    loop {
        tx.enter(step.state());
        step = match step {
            Step::Receive => received(tx, downstream).await,
            Step::Relabel(label) => client_steps::relabel(tx, &label),
            Step::Restart => restart::run(tx),
            Step::Lookup => lookup::ask(tx),
            Step::Recall(recall) => recalling::run(tx, *recall).await,
            Step::Hit(object, why) => hit::run(tx, object, why),
            Step::Slicing(slicing) => slicing::run(tx, downstream, *slicing).await,
            Step::Wait(wait) => wait::run(tx, downstream, *wait).await,
            Step::Miss(ticket) => miss::run(tx, downstream, ticket),
            Step::Pass => pass::run(tx, downstream).await,
            // Boxed, so that no other story carries the room of the rare ones.
            Step::Pipe => Box::pin(pipe::run(tx, downstream)).await,
            Step::Purge => purge::run(tx).await,
            Step::Synth(synth) => synthesis::run(tx, synth),
            Step::Files { root, file, is_lookup } => files::run(tx, root, file, is_lookup).await,
            Step::ErrorPage(page) => error_page::run(tx, *page).await,
            Step::Admit(unverified) => Box::pin(admit::run(tx, downstream, *unverified)).await,
            Step::Memcached(route) => Box::pin(memcached::run(tx, downstream, route)).await,
            Step::Deliver(answer) => deliver::run(tx, *answer, begin_included),
            Step::Transmit(outgoing) => {
                if downstream.has_unread_body() {
                    unread_body::settle(tx, downstream).await;
                }
                tx.answer_began = Some(Moment::now());
                tx.core.counters.answered(tx.outcome.verdict);
                tx.core.counters.hits_disk.add(u64::from(tx.outcome.is_hit_of_disk()));
                transmit::run(tx, downstream, *outgoing).await
            }
            Step::Log(end) => return log::run(tx, downstream, end).await,
        };
        if let Some(state) = tx.policy.program().filter(|state| state.vcl_site.loaded.waits()) {
            program_waits::settle(&state.task, &state.vcl_site).await;
        }
    }
}

/// Under a program a request may come here again. By the built-in policy that is where what a page includes begins; all others have been
/// received before.
async fn received(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Step {
    match tx.policy {
        Policy::Builtin => part_receiving::run(tx),
        Policy::Program(_) => receiving::run(tx, downstream).await,
    }
}

/// What a page includes is a story like any other.
fn begin_included(tx: Box<Transaction>, client: IncludedClient, step: Step) {
    tokio::task::spawn_local(async move {
        let mut client = client;
        run(tx, Downstream::Included(&mut client), step).await
    });
}
