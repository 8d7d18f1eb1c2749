//! Pass: to the origin and back, past the store. The fetch runs inside the transaction, because it needs the client:
//! its body goes up, interim answers come down, and when it leaves, the fetch ends.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use cache::{Answer as Asked, Began, LookupOptions};
use message::Method;
use wire::{HopByHop, ResponseBody};

use crate::access_log::CacheVerdict;
use crate::downstream::Downstream;
use crate::fetch::settled::{Settled, SettledBody};
use crate::fetch::{self, Broken, Client, Fetch, Purpose, Reply, fill_by_policy, slice_manifest};
use crate::records::fetch_records::Wish;
use crate::records::request_records;
use crate::transaction::deliver::{Answer, Made};
use crate::transaction::slice_probe::{self, Probed};
use crate::transaction::synth::{self, Synth};
use crate::transaction::wait::Wait;
use crate::transaction::{Step, Transaction, hit, lookup};
use crate::vcl_story::receiving;
use crate::{policy, policy_steps};

pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Step {
    if let Some(elsewhere) = policy_steps::pass(tx) {
        return elsewhere;
    }
    if !tx.policy.has_routes() {
        tx.outcome.verdict = CacheVerdict::Pass;
        return exchange_by_policy(tx, downstream).await;
    }
    if let Some(step) = by_slices(tx, downstream).await {
        return step;
    }
    tx.outcome.verdict = CacheVerdict::Pass;
    exchange(tx, downstream, Purpose::Pass).await
}

/// A range far into what is not stored brings the slice that it begins in, if that can be. `None`: the request goes on as
/// it is.
async fn by_slices(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Option<Step> {
    let first = slice_probe::first_byte(tx).filter(|_| tx.outcome.why == lookup::RANGE_AHEAD)?;
    let slice_bytes = slice_manifest::slice_bytes(&tx.core, &tx.site)?;
    let (key, now) = (tx.key(), tx.core.now());
    if !tx.is_lookup() || tx.core.shared.unsliceable.has(key, now.mono_ms) {
        return None;
    }
    Some(match slice_probe::run(tx, downstream, first, slice_bytes).await {
        Probed::Unsliced => return None,
        Probed::Manifest(manifest) => {
            tx.outcome.verdict = CacheVerdict::Miss;
            Step::Hit(manifest, hit::Why::Fetched)
        }
        Probed::Answered(answered, began) => {
            tx.outcome.verdict = CacheVerdict::Pass;
            let (fetch, reply) = *answered;
            take(tx, fetch, reply, began)
        }
        Probed::Unrouted(synth) => Step::Synth(synth),
        Probed::Broken(broken) => broken_off(tx, downstream, broken),
    })
}

/// Asks the origin with the client attached, as the policy wants it asked.
async fn exchange_by_policy(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Step {
    if tx.core.lacks_memory() {
        return Step::Synth(Synth::unfetched(synth::MEMORY_SHORT));
    }
    let streams_body = fetch::brings_body(tx.body);
    if let Some(state) = tx.policy.program_mut().filter(|_| streams_body) {
        state.body_is_gone = state.body.is_none();
    }
    let mut fetch = Fetch::by_policy(tx, Purpose::Pass, Wish::Pass);
    if downstream.owes_body() && !let_body_come(tx, downstream).await {
        return broken_off(tx, downstream, Broken::ClientLeft);
    }
    let settled = converse(&mut fetch, downstream).await;
    // The program has answered, and nothing can follow.
    tx.persistent &= !downstream.has_broken_body();
    if let Some(records) = tx.policy.records() {
        records.stamp("Fetch");
    }
    if let (Ok(settled), Some(state)) = (&settled, tx.policy.program()) {
        state.brought.set(Some(settled.lifetimes));
        state.passed_by.set(Some(fetch.xid()));
        // What the look-up found says more than that nothing else is to be said.
        if !settled.why.is_empty() {
            tx.outcome.why = settled.why;
        }
    }
    match settled {
        Ok(Settled { made, body: SettledBody::Origin(arriving, _), .. }) => {
            let body = Box::new(arriving.into_passed(&mut fetch));
            Step::Deliver(Box::new(Answer::Origin { head: made.head, body }))
        }
        Ok(Settled { made, body: SettledBody::Program(body), .. }) => {
            fetch.passed();
            Step::Deliver(Box::new(Answer::Made(Made { made, body, is_final: false })))
        }
        Ok(Settled { body: SettledBody::Stored, .. }) => unreachable!("a pass confirms nothing that is stored"),
        Err(broken) => broken_off(tx, downstream, broken),
    }
}

/// Goes on until the program settled on an answer. Without streaming its whole body comes first, and nobody sees the head
/// of one that breaks off.
async fn converse(fetch: &mut Fetch, downstream: &mut Downstream<'_>) -> Result<Settled, Broken> {
    let mut settled = fetch.converse_by_policy(&mut Client::Attached(downstream.reborrow())).await?;
    loop {
        let body = match settled.body {
            SettledBody::Origin(arriving, framing)
                if !settled.streams
                    && framing != ResponseBody::None
                    && !fill_by_policy::is_too_long(fetch, &arriving) =>
            {
                arriving
            }
            _ => return Ok(settled),
        };
        let read = {
            let mut reading = pin!(fill_by_policy::read_whole(fetch, *body));
            poll_fn(|cx| match reading.as_mut().poll(cx) {
                Poll::Ready(read) => Poll::Ready(Some(read)),
                Poll::Pending if downstream.has_left(cx) => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            })
            .await
        };
        match read {
            None => return Err(Broken::ClientLeft),
            Some(Ok(whole)) => {
                settled.made.head.fields = HopByHop::end_to_end(settled.made.head.fields.view());
                return Ok(Settled { body: SettledBody::Program(whole), ..settled });
            }
            Some(Err(failure)) => {
                settled = fetch.converse_anew(failure.token, &mut Client::Attached(downstream.reborrow())).await?;
            }
        }
    }
}

/// The body is about to be read. False: the client, which waited for that word, left.
async fn let_body_come(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> bool {
    let Some(state) = tx.policy.program() else { return true };
    let awaits_continue = state.awaits_continue.get();
    if let Some(records) = &state.records {
        request_records::body_begins(records);
        if awaits_continue {
            request_records::continued(records);
        }
        downstream.record_body(records);
    }
    !awaits_continue || receiving::send_continue(tx, downstream).await
}

/// Asks the origin with the client attached.
pub(crate) async fn exchange(tx: &mut Transaction, downstream: &mut Downstream<'_>, purpose: Purpose) -> Step {
    let mut fetch = match Fetch::of(tx, purpose) {
        Ok(fetch) => fetch,
        Err(synth) => return Step::Synth(synth),
    };
    // Taken before it connects: what is purged during the exchange must not be stored after it.
    let began = tx.core.shared.cache.began();
    match fetch.converse(&mut Client::Attached(downstream.reborrow())).await {
        Ok(reply) => take(tx, fetch, reply, began),
        Err(broken) => broken_off(tx, downstream, broken),
    }
}

/// What an answer changes, and where it goes.
fn take(tx: &mut Transaction, fetch: Fetch, reply: Reply, began: Began) -> Step {
    let request = tx.head.request();
    if request.method == Method::Head {
        fetch::freshen_by_head(&fetch, policy::key(&tx.core.shared, &request), &reply, began);
    }
    let began = fetch::invalidate_after(&tx.core, &request, &reply.head, began);
    if matches!(request.method, Method::Post | Method::Get) && tx.is_lookup() {
        match fetch.why_not_stored(&reply) {
            None => return store(tx, fetch, reply, began),
            // Hit-for-miss only says that it was so before.
            Some(why) if why.is_about_credentials() => tx.outcome.why = why.token(),
            Some(_) => {}
        }
    }
    pass_on(fetch, reply)
}

/// There is no answer.
fn broken_off(tx: &mut Transaction, downstream: &mut Downstream<'_>, broken: Broken) -> Step {
    match broken {
        Broken::ClientLeft => Step::client_left(downstream),
        Broken::ClientFault(refusal) => {
            downstream.stop_reading();
            tx.persistent = false;
            Step::Synth(Synth::refused(&refusal))
        }
        Broken::Origin(failure) => policy_steps::failed(tx, &failure),
    }
}

/// A GET that was known as uncacheable turns out not to be; a range was answered by a part that can be kept (RFC 9111
/// §3.3); or a POST's answer says that it is the representation of its target, and serves a later GET (RFC 9110 §9.3.3).
/// It lands in the store like a miss, and its requester follows.
fn store(tx: &mut Transaction, fetch: Fetch, reply: Reply, began: Began) -> Step {
    let key = tx.key();
    let began = Some(began);
    let options =
        LookupOptions { core: tx.core.index, always_miss: true, alone: true, began, ..LookupOptions::default() };
    match tx.core.shared.cache.ask(key, &tx.head.request(), &options, reply.received) {
        Asked::Miss(ticket) | Asked::HitForMiss(ticket, _) => {
            let follower = ticket.follow(tx.core.index);
            fetch::store_passed(fetch, ticket, reply);
            Step::Wait(Box::new(Wait::leading(follower, Default::default(), None)))
        }
        // Asked like this the cache gives a ticket. Without one the answer is still its requester's.
        _ => pass_on(fetch, reply),
    }
}

/// The answer as it came, to its requester alone.
fn pass_on(mut fetch: Fetch, reply: Reply) -> Step {
    let body = reply.body.into_passed(&mut fetch);
    Step::Deliver(Box::new(Answer::Origin { head: reply.head, body: Box::new(body) }))
}
