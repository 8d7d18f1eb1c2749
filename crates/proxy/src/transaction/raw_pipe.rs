//! A pipe in place of varnishd: the backend gets the head as vcl_pipe left it, and then bytes flow both ways as they come. Nobody
//! frames or judges them, and both connections are used for nothing else, before or after.
//!
//! A request that wants to upgrade goes the stricter way of `pipe.rs`, where nothing flows before a 101.

use crate::downstream::Downstream;
use crate::fetch::Fetch;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::purpose::Purpose;
use crate::send_outcome::End;
use crate::transaction::synth::Synth;
use crate::transaction::tunnel::TunnelPermit;
use crate::transaction::{Step, Transaction};
use crate::tunnel_flow::Tunnel;
use crate::vcl_story::client_steps;

pub(super) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, purpose: Purpose) -> Step {
    if client_steps::body_is_gone(tx, downstream) {
        return Step::Synth(Synth::unfetched("request-body-gone"));
    }
    let Some(_permit) = TunnelPermit::take(tx) else {
        return Step::Synth(Synth::tunnels_too_many());
    };
    let mut fetch = match Fetch::of(tx, purpose) {
        Ok(fetch) => fetch,
        Err(synth) => return Step::Synth(synth),
    };
    tx.persistent = false;
    let opened = fetch.open_pipe(&mut ClientLink::Attached(downstream.reborrow())).await;
    tx.tries.append(&mut fetch.tries.take());
    match opened {
        Ok(origin) => {
            downstream.begin_tunnel(None).await;
            tx.core.counters.pipes.add(1);
            tx.outcome.body_bytes = downstream.carry(Tunnel { origin }).await;
            Step::Log(End::TunnelClosed)
        }
        Err(Broken::ClientLeft) => Step::client_left(downstream),
        Err(Broken::ClientFault(refusal)) => Step::Synth(Synth::refused(&refusal)),
        Err(Broken::Origin(failure)) => Step::Synth(Synth::unfetched(failure.token)),
    }
}
