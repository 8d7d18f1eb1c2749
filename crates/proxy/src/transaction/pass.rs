//! Pass: to the origin and back, past the store. The fetch runs inside the transaction, because it needs the client:
//! its body goes up, interim answers come down, and when it leaves, the fetch ends.

use cache::{Answer as Asked, Began, LookupOptions};
use message::Method;

use crate::access_log::CacheVerdict;
use crate::downstream::Downstream;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::fill;
use crate::fetch::purpose::Purpose;
use crate::fetch::settled::{Settled, SettledBody};
use crate::fetch::{Fetch, slice_manifest};
use crate::policy_steps;
use crate::records::request_records;
use crate::transaction::deliver::{Answer, Made};
use crate::transaction::slice_probe::{self, Probed};
use crate::transaction::synth::Synth;
use crate::transaction::wait::Wait;
use crate::transaction::{Step, Transaction, hit, lookup, mirror};
use crate::vcl_story::receiving;

pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Step {
    if let Some(elsewhere) = policy_steps::pass(tx, downstream) {
        return elsewhere;
    }
    if let Some(step) = by_slices(tx, downstream).await {
        return step;
    }
    tx.outcome.verdict = CacheVerdict::Pass;
    exchange(tx, downstream).await
}

/// A range far into what is not stored brings the slice that it begins in, if that can be. `None`: the request goes on as
/// it is.
async fn by_slices(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Option<Step> {
    // Only the built-in policy passes a request for this.
    if tx.outcome.why != lookup::RANGE_AHEAD {
        return None;
    }
    let first = slice_probe::first_byte(tx)?;
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
        Probed::Answered(fetch, settled, began) => {
            tx.outcome.verdict = CacheVerdict::Pass;
            take(tx, fetch, settled, began)
        }
        Probed::Unrouted(synth) => Step::Synth(synth),
        Probed::Broken(broken) => broken_off(tx, downstream, broken),
    })
}

/// Asks the origin with the client attached.
async fn exchange(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Step {
    let mut fetch = match Fetch::of(tx, Purpose::Pass) {
        Ok(fetch) => fetch,
        Err(synth) => return Step::Synth(synth),
    };
    fetch.copy = mirror::begin(tx);
    if downstream.has_unread_body() && !let_body_come(tx, downstream).await {
        return broken_off(tx, downstream, Broken::ClientLeft);
    }
    // Taken before it connects: what is purged during the exchange must not be stored after it.
    let began = tx.core.shared.cache.began();
    let settled = fetch.settle(&mut ClientLink::Attached(downstream.reborrow())).await;
    tx.tries.append(&mut fetch.tries.take());
    // The program has answered, and nothing can follow.
    tx.persistent &= !downstream.has_broken_body();
    if let Some(records) = tx.policy.records() {
        records.stamp("Fetch");
    }
    if let (Ok(settled), Some(state)) = (&settled, tx.policy.program()) {
        state.brought.set(settled.lifetimes());
        state.passed_by.set(fetch.xid());
        // What the look-up found says more than that nothing else is to be said.
        if !settled.why.is_empty() {
            tx.outcome.why = settled.why;
        }
    }
    match settled {
        Ok(settled) => take(tx, fetch, settled, began),
        Err(broken) => broken_off(tx, downstream, broken),
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

/// What an answer changes, and where it goes.
fn take(tx: &mut Transaction, fetch: Box<Fetch>, settled: Box<Settled>, began: Began) -> Step {
    let began = fetch.change_stored(&settled, began);
    if let Some(began) = began.filter(|_| may_be_kept(tx)) {
        match settled.why_not_stored() {
            None => return store(tx, fetch, settled, began),
            // Hit-for-miss only says that it was so before.
            Some(why) if why.is_about_credentials() => tx.outcome.why = why.token(),
            Some(_) => {}
        }
    }
    pass_on(fetch, settled)
}

/// What was asked for with something that is one client's own is kept for nobody.
fn may_be_kept(tx: &Transaction) -> bool {
    matches!(tx.head.method, Method::Post | Method::Get) && tx.is_lookup() && !tx.routed.is_bypass
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
fn store(tx: &mut Transaction, fetch: Box<Fetch>, settled: Box<Settled>, began: Began) -> Step {
    let (key, began) = (tx.key(), Some(began));
    let options =
        LookupOptions { core: tx.core.index, always_miss: true, alone: true, began, ..LookupOptions::default() };
    match tx.core.shared.cache.ask(key, &tx.head.request(), &options, settled.arrival.received) {
        Asked::Miss(ticket) | Asked::HitForMiss(ticket, _) => {
            let follower = ticket.follow(tx.core.index);
            fill::store_passed(fetch, ticket, settled);
            Step::Wait(Box::new(Wait::leading(follower, Default::default(), None)))
        }
        // Asked like this the cache gives a ticket. Without one the answer is still its requester's.
        _ => pass_on(fetch, settled),
    }
}

/// The answer to its requester alone.
fn pass_on(mut fetch: Box<Fetch>, settled: Box<Settled>) -> Step {
    let Settled { mut made, body, page, .. } = *settled;
    fetch.describe_passed(&mut made.head);
    Step::Deliver(Box::new(match body {
        SettledBody::Origin(arriving) => {
            let body = Box::new(arriving.into_passed(&mut fetch));
            Answer::Origin { head: made.head, body }
        }
        SettledBody::Read(body) | SettledBody::Made(body) => {
            fetch.passed();
            Answer::Made(Made { made, body, is_final: false, page })
        }
        SettledBody::Stored { .. } => unreachable!("a pass confirms nothing that is stored"),
    }))
}
