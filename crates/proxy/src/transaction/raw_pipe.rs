//! A pipe in place of varnishd: the backend gets the head as vcl_pipe left it, and then bytes flow both ways as they come. Nobody
//! frames or judges them, and both connections are used for nothing else, before or after.
//!
//! A request that wants to upgrade goes the stricter way of `pipe.rs`, where nothing flows before a 101.

use wire::Event;

use crate::connection::Connection;
use crate::fetch::{Broken, Client, Fetch};
use crate::transaction::pipe::{self, Tunnel};
use crate::transaction::synth::Synth;
use crate::transaction::tunnel::TunnelPlace;
use crate::transaction::{Step, Transaction, transmit};

pub(super) async fn run(tx: &mut Transaction, connection: &mut Connection) -> Step {
    if tx.vcl.as_deref().is_some_and(|state| state.body_is_gone) {
        return Step::Synth(Synth::unfetched("request-body-gone"));
    }
    let Some(_place) = TunnelPlace::take(tx) else {
        return Step::Synth(Synth::tunnels_too_many());
    };
    let mut fetch = match Fetch::piped(tx) {
        Ok(fetch) => fetch,
        Err(synth) => return Step::Synth(synth),
    };
    tx.persistent = false;
    match fetch.open_pipe(&mut Client::Attached(connection)).await {
        Ok(origin) => {
            connection.exchange(Event::Piped);
            connection.owed = None;
            tx.core.counters.pipes.add(1);
            tx.outcome.body_bytes = pipe::carry(connection, Tunnel { origin, early: Vec::new() }).await;
            Step::Log(transmit::End::TunnelClosed)
        }
        Err(Broken::ClientLeft) => {
            connection.exchange(Event::AnswerCut);
            Step::Log(transmit::End::ClientLeft)
        }
        Err(Broken::ClientFault(refusal)) => Step::Synth(Synth::refused(&refusal)),
        Err(Broken::Origin(failure)) => Step::Synth(Synth::unfetched(failure.token)),
    }
}
