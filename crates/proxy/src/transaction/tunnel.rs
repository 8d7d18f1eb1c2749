//! CONNECT: a connection to whom the client names, and bytes both ways. They flow only behind our 200; until then what the
//! client sent behind its request waits where it is, and goes nowhere when there is no tunnel.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use wire::Event;

use crate::access_log::CacheVerdict;
use crate::connection::Connection;
use crate::fetch::unconnected;
use crate::origin::{Call, OriginConnection, Reuse};
use crate::transaction::pipe::{self, Tunnel};
use crate::transaction::synth::Synth;
use crate::transaction::transmit::{self, OutBody, Outgoing};
use crate::transaction::{Step, Transaction};
use crate::worker::Core;

/// RFC 9110 §9.3.6: no field may say that content follows.
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

pub(super) async fn run(tx: &mut Transaction, connection: &mut Connection) -> Step {
    tx.outcome.verdict = CacheVerdict::Pipe;
    tx.persistent = false;
    let Some(_place) = TunnelPlace::take(&tx.core, tx.site.settings.limits.tunnels_max) else {
        return Step::Synth(Synth::tunnels_too_many());
    };
    let origin = match open(tx, connection).await {
        Ok(origin) => origin,
        Err(step) => return step,
    };
    tx.outcome.status = 200;
    if transmit::send(connection, Outgoing::new(ESTABLISHED.to_vec(), OutBody::Empty)).await.is_err() {
        connection.exchange(Event::AnswerCut);
        return Step::Log(transmit::End::ClientLeft);
    }
    connection.exchange(Event::Switched);
    tx.core.counters.tunnels.add(1);
    tx.outcome.body_bytes = pipe::carry(connection, Tunnel { origin, early: Vec::new() }).await;
    Step::Log(transmit::End::TunnelClosed)
}

/// Connects, for as long as the client is there.
async fn open(tx: &mut Transaction, connection: &mut Connection) -> Result<OriginConnection, Step> {
    let refused = |synth: Synth| Step::Synth(synth.closing());
    let backend = tx.backend.ok_or_else(|| refused(Synth::no_route()))?;
    let core = Rc::clone(&tx.core);
    let origin = tx.site.origin(backend, &tx.head.request(), core.now().mono_ms);
    let origin = origin.map_err(|failure| refused(Synth::failed(&failure)))?;
    let connect_timeout = origin.connect_timeout(&tx.site.settings.limits);
    let handle = core.handle();
    let mut connecting = pin!(origin.call(&handle, Call { reuse: Reuse::Fresh, connect_timeout, parties: None }));
    let connected = poll_fn(|cx| {
        if let Poll::Ready(connected) = connecting.as_mut().poll(cx) {
            return Poll::Ready(Some(connected));
        }
        if connection.has_left(cx) { Poll::Ready(None) } else { Poll::Pending }
    })
    .await;
    match connected {
        Some(Ok(opened)) => Ok(opened),
        Some(Err(error)) => {
            let synth = Synth::failed(&unconnected(&error));
            if synth.status == 403 {
                core.counters.forward_denied.add(1);
            }
            Err(refused(synth))
        }
        None => {
            connection.exchange(Event::AnswerCut);
            Err(Step::Log(transmit::End::ClientLeft))
        }
    }
}

/// One of `limits.tunnels_max`; given back when it is dropped.
struct TunnelPlace(Rc<Core>);

impl TunnelPlace {
    fn take(core: &Rc<Core>, tunnels_max: usize) -> Option<TunnelPlace> {
        let place = TunnelPlace(Rc::clone(core));
        (core.shared.tunnels_open.fetch_add(1, Ordering::Relaxed) < tunnels_max).then_some(place)
    }
}

impl Drop for TunnelPlace {
    fn drop(&mut self) {
        self.0.shared.tunnels_open.fetch_sub(1, Ordering::Relaxed);
    }
}
