//! Pipe: a request to switch protocols. It goes to the origin alone; only when the origin says 101 do bytes flow
//! freely, and until then what the client sent behind its request waits here.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use message::{FieldName, Method};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::{Event, ResponseBody};

use crate::access_log::CacheVerdict;
use crate::clock::deadline_now_ms;
use crate::connection::Connection;
use crate::fetch::{Broken, Client, Fetch, Reply};
use crate::origin::OriginConnection;
use crate::stored_head::{write_field, write_status_line, write_via};
use crate::transaction::deliver::Answer;
use crate::transaction::synth::Synth;
use crate::transaction::transmit::{self, OutBody, Outgoing};
use crate::transaction::tunnel::TunnelPlace;
use crate::transaction::{Step, Transaction, raw_pipe, tunnel};
use crate::vcl_story::client_steps;

/// One direction's buffer.
const BUFFER_BYTES: usize = 16 << 10;

/// Exists only after a 101, or a 200 to CONNECT: the permission to treat bytes as a tunnel's (bad-inputs F10).
pub(super) struct Tunnel {
    pub(super) origin: OriginConnection,
    /// What the origin sent behind its head.
    pub(super) early: Vec<u8>,
}

pub(crate) async fn run(tx: &mut Transaction, connection: &mut Connection) -> Step {
    if tx.head.method == Method::Connect {
        return tunnel::run(tx, connection).await;
    }
    tx.outcome.verdict = CacheVerdict::Pipe;
    if tx.vcl.is_some()
        && let Some(elsewhere) = client_steps::pipe(tx)
    {
        return elsewhere;
    }
    if tx.vcl.is_some() && connection.is_varnishd_s() && !tx.head.request().fields.contains(FieldName::Upgrade) {
        return raw_pipe::run(tx, connection).await;
    }
    let Some(_place) = TunnelPlace::take(tx) else {
        return Step::Synth(Synth::tunnels_too_many());
    };
    let mut fetch = match Fetch::piped(tx) {
        Ok(fetch) => fetch,
        Err(synth) => return Step::Synth(synth),
    };
    if fetch.is_piped() {
        tx.persistent = false;
    }
    match fetch.converse(&mut Client::Attached(connection)).await {
        Ok(reply) if reply.framing == ResponseBody::Tunnel => switch(tx, connection, reply).await,
        Ok(reply) => {
            let body = reply.body.into_passed(&mut fetch);
            let answer = Answer::Origin { head: reply.head, body: Box::new(body) };
            // What is piped goes by: vcl_deliver does not see it.
            Step::Deliver(Box::new(if tx.vcl.is_some() { Answer::Piped(Box::new(answer)) } else { answer }))
        }
        Err(Broken::ClientLeft) => {
            connection.exchange(Event::AnswerCut);
            Step::Log(transmit::End::ClientLeft)
        }
        Err(Broken::ClientFault(refusal)) => Step::Synth(Synth::refused(&refusal)),
        Err(Broken::Origin(failure)) if tx.vcl.is_some() => Step::Synth(Synth::unfetched(failure.token)),
        Err(Broken::Origin(failure)) => Step::Synth(Synth::failed(&failure)),
    }
}

async fn switch(tx: &mut Transaction, connection: &mut Connection, reply: Reply) -> Step {
    tx.persistent = false;
    tx.outcome.status = reply.head.status.0;
    tx.core.counters.pipes.add(1);
    let mut out = Vec::with_capacity(256);
    write_status_line(&mut out, reply.head.status.0);
    let fields = reply.head.fields.view();
    let hop_by_hop = wire::HopByHop::of(fields);
    for field in fields.iter() {
        // Upgrade is the one connection field that a 101 is about.
        if field.name == FieldName::Upgrade {
            write_field(&mut out, b"Connection", b"Upgrade");
            write_field(&mut out, b"Upgrade", field.value);
        } else if !hop_by_hop.drops(&field) {
            write_field(&mut out, field.name_text, field.value);
        }
    }
    write_via(&mut out, reply.head.version, &tx.site);
    out.extend_from_slice(b"\r\n");
    if transmit::send(connection, Outgoing::new(out, OutBody::Empty)).await.is_err() {
        connection.exchange(Event::AnswerCut);
        return Step::Log(transmit::End::ClientLeft);
    }
    connection.exchange(Event::Switched);
    let (origin, early) = reply.body.into_tunnel();
    let tunnel = Tunnel { origin, early };
    tx.outcome.body_bytes = carry(connection, tunnel).await;
    Step::Log(transmit::End::TunnelClosed)
}

/// One direction of the tunnel.
struct Flow {
    buffer: Vec<u8>,
    sent: usize,
    read_ended: bool,
    shut: bool,
    bytes: u64,
}

impl Flow {
    fn new(early: Vec<u8>) -> Flow {
        Flow { buffer: early, sent: 0, read_ended: false, shut: false, bytes: 0 }
    }

    /// Moves what can be moved, and passes the end on. True when something moved; `Err` when either side broke.
    fn poll_move(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<bool> {
        let mut moved = false;
        loop {
            while self.sent < self.buffer.len() {
                match Pin::new(&mut *to).poll_write(cx, &self.buffer[self.sent..]) {
                    Poll::Pending => return Ok(moved),
                    Poll::Ready(written) => {
                        let written = written?;
                        self.sent += written;
                        self.bytes += written as u64;
                        moved = true;
                    }
                }
            }
            if self.read_ended {
                if !self.shut && Pin::new(&mut *to).poll_shutdown(cx)?.is_ready() {
                    self.shut = true;
                    moved = true;
                }
                return Ok(moved);
            }
            self.sent = 0;
            self.buffer.resize(BUFFER_BYTES, 0);
            let mut into = ReadBuf::new(&mut self.buffer);
            let outcome = Pin::new(&mut *from).poll_read(cx, &mut into);
            let filled = into.filled().len();
            self.buffer.truncate(filled);
            match outcome {
                Poll::Pending => {
                    // An idle tunnel holds no buffer.
                    self.buffer = Vec::new();
                    return Ok(moved);
                }
                Poll::Ready(read) => {
                    read?;
                    self.read_ended = filled == 0;
                    moved = true;
                }
            }
        }
    }
}

/// Carries bytes both ways until both sides have ended, one broke, or nothing moved for `limits.tunnel_idle_timeout`,
/// `limits.tunnel_half_closed_timeout` once one of them has ended: many that end never say so. Returns how many went to the
/// client.
pub(super) async fn carry(connection: &mut Connection, tunnel: Tunnel) -> u64 {
    let (idle_ms, half_closed_ms) = {
        let limits = &connection.core.site_ref().settings.limits;
        (limits.tunnel_idle_timeout.as_millis() as u64, limits.tunnel_half_closed_timeout.as_millis() as u64)
    };
    let mut up = Flow::new(std::mem::take(&mut connection.pending));
    let mut down = Flow::new(tunnel.early);
    let mut origin = tunnel.origin;
    connection.slot.set_deadline(deadline_now_ms() + idle_ms);
    poll_fn(|cx| {
        let went_up = up.poll_move(cx, &mut connection.wire, &mut origin.stream);
        let went_down = down.poll_move(cx, &mut origin.stream, &mut connection.wire);
        let (Ok(went_up), Ok(went_down)) = (went_up, went_down) else { return Poll::Ready(()) };
        if (up.shut && down.shut) || connection.slot.must_end() {
            return Poll::Ready(());
        }
        if went_up || went_down {
            let patience_ms = if up.shut || down.shut { idle_ms.min(half_closed_ms) } else { idle_ms };
            connection.slot.set_deadline(deadline_now_ms() + patience_ms);
        }
        connection.slot.park(cx.waker());
        Poll::Pending
    })
    .await;
    let counters = &connection.core.counters;
    counters.tunnel_bytes_up.add(up.bytes);
    counters.tunnel_bytes_down.add(down.bytes);
    down.bytes
}
