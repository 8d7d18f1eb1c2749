//! Pipe: a request to switch protocols. It goes to the origin alone; only when the origin says 101 do bytes flow
//! freely, and until then what the client sent behind its request waits here.

use message::{FieldName, Method};
use wire::{HopByHop, ResponseBody};

use crate::access_log::CacheVerdict;
use crate::answer_head::AnswerHead;
use crate::downstream::Downstream;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::purpose::Purpose;
use crate::fetch::{Fetch, OriginReply};
use crate::policy_steps;
use crate::send_outcome::End;
use crate::stored_head::via;
use crate::transaction::deliver::Answer;
use crate::transaction::synth::Synth;
use crate::transaction::tunnel::TunnelPermit;
use crate::transaction::{Step, Transaction, raw_pipe, tunnel};
use crate::tunnel_flow::Tunnel;

pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Step {
    if tx.head.method == Method::Connect {
        return tunnel::run(tx, downstream).await;
    }
    if !downstream.can_tunnel() {
        // As Varnish does.
        return Step::Pass;
    }
    tx.outcome.verdict = CacheVerdict::Pipe;
    if let Some(elsewhere) = policy_steps::pipe(tx) {
        return elsewhere;
    }
    let purpose = Purpose::of_pipe(tx);
    if matches!(purpose, Purpose::Raw) {
        return raw_pipe::run(tx, downstream, purpose).await;
    }
    let Some(_permit) = TunnelPermit::take(tx) else {
        return Step::Synth(Synth::tunnels_too_many());
    };
    let mut fetch = match Fetch::of(tx, purpose) {
        Ok(fetch) => fetch,
        Err(synth) => return Step::Synth(synth),
    };
    if fetch.is_piped() {
        tx.persistent = false;
    }
    let answered = fetch.converse(&mut ClientLink::Attached(downstream.reborrow())).await;
    tx.tries.append(&mut fetch.tries.take());
    match answered {
        Ok(reply) if reply.framing == ResponseBody::Tunnel => switch(tx, downstream, reply).await,
        Ok(reply) => {
            let body = reply.body.into_passed(&mut fetch);
            let answer = Answer::Origin { head: reply.head, body: Box::new(body) };
            Step::Deliver(Box::new(policy_steps::piped(tx, answer)))
        }
        Err(Broken::ClientLeft) => Step::client_left(downstream),
        Err(Broken::ClientFault(refusal)) => Step::Synth(Synth::refused(&refusal)),
        Err(Broken::Origin(failure)) => policy_steps::failed(tx, &failure),
    }
}

async fn switch(tx: &mut Transaction, downstream: &mut Downstream<'_>, reply: OriginReply) -> Step {
    tx.persistent = false;
    tx.outcome.status = reply.head.status.0;
    tx.core.counters.pipes.add(1);
    let mut head = AnswerHead::new(reply.head.status);
    let fields = reply.head.fields.view();
    head.fields = HopByHop::end_to_end(fields);
    // Upgrade is the one connection field that a 101 is about.
    for protocol in fields.get_all(FieldName::Upgrade) {
        head.fields.push(FieldName::Connection, "Upgrade");
        head.fields.push(FieldName::Upgrade, protocol);
    }
    head.fields.push(FieldName::Via, via(reply.head.version, &tx.site));
    if !downstream.begin_tunnel(Some(head)).await {
        return Step::client_left(downstream);
    }
    let tunnel = Tunnel { origin: reply.body.upstream };
    tx.outcome.body_bytes = downstream.carry(tunnel).await;
    Step::Log(End::TunnelClosed)
}
