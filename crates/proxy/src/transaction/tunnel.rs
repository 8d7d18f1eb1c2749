//! CONNECT: a connection to whom the client names, and bytes both ways. They flow only behind our 200; until then what the
//! client sent behind its request waits where it is, and goes nowhere when there is no tunnel.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use message::Status;
use wire::ResponseBody;

use crate::access_log::CacheVerdict;
use crate::answer_head::AnswerHead;
use crate::core::Core;
use crate::downstream::Downstream;
use crate::fetch::Fetch;
use crate::fetch::begin::Requester;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::failed::unconnected;
use crate::fetch::timeouts::Timeouts;
use crate::forward::Taken;
use crate::forward::parents::Ways;
use crate::origin::{Call, Origin, Reuse};
use crate::send_outcome::End;
use crate::settings::RouteTimeouts;
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction};
use crate::tunnel_flow::Tunnel;
use crate::upstream::Upstream;

/// RFC 9110 §9.3.6: no field may say that content follows.
fn established() -> AnswerHead {
    let mut head = AnswerHead::new(Status::OK);
    head.reason = Some(b"Connection established"[..].into());
    head
}

pub(super) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Step {
    tx.outcome.verdict = CacheVerdict::Pipe;
    tx.persistent = false;
    let Some(_permit) = TunnelPermit::take(tx) else {
        return Step::Synth(Synth::tunnels_too_many());
    };
    let tunnel = match open(tx, downstream).await {
        Ok(tunnel) => tunnel,
        Err(step) => return step,
    };
    tx.outcome.status = 200;
    if !downstream.begin_tunnel(Some(established())).await {
        return Step::client_left(downstream);
    }
    tx.core.counters.tunnels.add(1);
    tx.outcome.body_bytes = downstream.carry(tunnel).await;
    Step::Log(End::TunnelClosed)
}

/// Why there is no tunnel.
enum Untunnelled {
    /// Nobody is there; somebody else may be.
    Unconnected(Synth),
    For(Step),
}

/// Goes one way after the other until one of them can be gone.
async fn open(tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Result<Tunnel, Step> {
    let refused = |synth: Synth| Step::Synth(synth.closing());
    let backend = tx.routed.backend.ok_or_else(|| refused(Synth::no_route()))?;
    let (core, site) = (Rc::clone(&tx.core), Arc::clone(&tx.site));
    let mut ways = Ways::new();
    let mut taken = site.origin(backend, &tx.head.request(), core.now().mono_ms, &mut ways);
    loop {
        let Taken { origin, parent } = taken.map_err(|failure| refused(Synth::failed(&failure)))?;
        let opened = match parent {
            Some(parent) => open_by_parent(tx, downstream, origin, parent).await,
            None => open_directly(tx, downstream, &origin).await,
        };
        match opened {
            Ok(tunnel) => return Ok(tunnel),
            Err(Untunnelled::Unconnected(synth)) if ways.is_empty() => {
                if synth.status == 403 {
                    core.counters.forward_denied.add(1);
                }
                return Err(refused(synth));
            }
            Err(Untunnelled::Unconnected(_)) => {}
            Err(Untunnelled::For(step)) => return Err(step),
        }
        taken = site.forward.take_way(&mut ways, &tx.head.request(), core.now().mono_ms);
    }
}

/// Connects, for as long as the client is there.
async fn open_directly(
    tx: &Transaction,
    downstream: &mut Downstream<'_>,
    origin: &Origin,
) -> Result<Tunnel, Untunnelled> {
    let timeout = Timeouts::asked(&RouteTimeouts::default(), origin, &tx.site.settings.limits).connect;
    let handle = tx.core.handle();
    let mut connecting = pin!(origin.call(&handle, Call::plain(Reuse::Fresh, timeout.after)));
    let connected = poll_fn(|cx| {
        if let Poll::Ready(connected) = connecting.as_mut().poll(cx) {
            return Poll::Ready(Some(connected));
        }
        if downstream.has_left(cx) { Poll::Ready(None) } else { Poll::Pending }
    })
    .await;
    match connected {
        Some(Ok(connection)) => Ok(Tunnel { origin: Upstream::from(connection) }),
        Some(Err(error)) => Err(Untunnelled::Unconnected(Synth::failed(&unconnected(&error, timeout)))),
        None => Err(Untunnelled::For(Step::client_left(downstream))),
    }
}

/// Asks another proxy for the tunnel.
async fn open_by_parent(
    tx: &mut Transaction,
    downstream: &mut Downstream<'_>,
    origin: Arc<Origin>,
    parent: usize,
) -> Result<Tunnel, Untunnelled> {
    let mut fetch = Fetch::tunnelled(&Requester::of(tx), origin, parent);
    let answered = fetch.converse(&mut ClientLink::Attached(downstream.reborrow())).await;
    tx.tries.append(&mut fetch.tries.take());
    match answered {
        Ok(reply) if reply.framing == ResponseBody::Tunnel => Ok(Tunnel { origin: reply.body.upstream }),
        // Its words may be about things that are not our client's business, its name and our credentials for one.
        Ok(reply) => {
            fetch.passed();
            Err(Untunnelled::For(Step::Synth(Synth::refused_by_parent(reply.head.status.0))))
        }
        Err(Broken::ClientLeft) => Err(Untunnelled::For(Step::client_left(downstream))),
        Err(Broken::ClientFault(refusal)) => Err(Untunnelled::For(Step::Synth(Synth::refused(&refusal)))),
        Err(Broken::Origin(failure)) => Err(Untunnelled::Unconnected(Synth::failed(&failure))),
    }
}

/// One of `limits.tunnels_max`; given back when it is dropped.
pub(super) struct TunnelPermit(Rc<Core>);

impl TunnelPermit {
    pub(super) fn take(tx: &Transaction) -> Option<TunnelPermit> {
        let (core, tunnels_max) = (&tx.core, tx.site.settings.limits.tunnels_max);
        let permit = TunnelPermit(Rc::clone(core));
        core.counters.tunnels_open.add(1);
        let is_free = core.shared.tunnels_open.fetch_add(1, Ordering::Relaxed) < tunnels_max;
        core.counters.tunnels_refused.add(u64::from(!is_free));
        is_free.then_some(permit)
    }
}

impl Drop for TunnelPermit {
    fn drop(&mut self) {
        self.0.shared.tunnels_open.fetch_sub(1, Ordering::Relaxed);
        self.0.counters.tunnels_open.sub(1);
    }
}
