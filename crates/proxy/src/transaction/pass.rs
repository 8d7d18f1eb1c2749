//! Pass: to the origin and back, past the store. The fetch runs inside the transaction, because it needs the client:
//! its body goes up, interim answers come down, and when it leaves, the fetch ends.

use cache::{Answer as Asked, Began, Wishes};
use message::Method;

use crate::access_log::CacheVerdict;
use crate::connection::Connection;
use crate::fetch::{self, Broken, Client, Fetch, Purpose, Reply};
use crate::transaction::deliver::Answer;
use crate::transaction::synth::Synth;
use crate::transaction::wait::Wait;
use crate::transaction::{Step, Transaction, transmit};

pub(crate) async fn run(tx: &mut Transaction, connection: &mut Connection) -> Step {
    tx.core.counters.passes.add(1);
    tx.outcome.verdict = CacheVerdict::Pass;
    exchange(tx, connection, Purpose::Pass).await
}

/// Asks the origin with the client attached.
pub(crate) async fn exchange(tx: &mut Transaction, connection: &mut Connection, purpose: Purpose) -> Step {
    let mut fetch = match Fetch::of(tx, purpose) {
        Ok(fetch) => fetch,
        Err(synth) => return Step::Synth(synth),
    };
    // Taken before it connects: what is purged during the exchange must not be stored after it.
    let began = tx.core.shared.cache.began();
    match fetch.converse(&mut Client::Attached(connection)).await {
        Ok(reply) => {
            let request = tx.head.request();
            let began = fetch::invalidate_after(&tx.core, &tx.policy, &request, &reply.head, began);
            if request.method == Method::Head {
                fetch::freshen_by_head(&fetch, tx.policy.key(&tx.core.shared, &request), &reply);
            }
            if matches!(request.method, Method::Post | Method::Get) && tx.is_lookup() && fetch.may_store(&reply) {
                return store(tx, fetch, reply, began);
            }
            pass_on(fetch, reply)
        }
        Err(Broken::ClientLeft) => {
            connection.exchange(wire::Event::AnswerCut);
            Step::Log(transmit::End::ClientLeft)
        }
        Err(Broken::ClientFault(refusal)) => {
            connection.exchange(wire::Event::ReadBroken);
            tx.persistent = false;
            Step::Synth(Synth::refused(&refusal))
        }
        Err(Broken::Origin(failure)) => Step::Synth(Synth::failed(&failure)),
    }
}

/// A GET that was known as uncacheable turns out not to be; a range was answered by a part that can be kept (RFC 9111
/// §3.3); or a POST's answer says that it is the representation of its target, and serves a later GET (RFC 9110 §9.3.3).
/// It lands in the store like a miss, and its requester follows.
fn store(tx: &mut Transaction, fetch: Fetch, reply: Reply, began: Began) -> Step {
    let key = tx.key();
    let began = Some(began);
    let wishes = Wishes { core: tx.core.index, always_miss: true, ignore_busy: true, began, ..Wishes::default() };
    match tx.core.shared.cache.ask(key, &tx.head.request(), &wishes, reply.received) {
        Asked::Miss(ticket) | Asked::HitForMiss(ticket) => {
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
