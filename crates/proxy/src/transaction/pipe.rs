//! Pipe: a request to switch protocols. It goes to the origin alone; only when the origin says 101 do bytes flow
//! freely, and until then what the client sent behind its request waits here.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::{Event, ResponseBody};

use crate::access_log::CacheVerdict;
use crate::clock::Moment;
use crate::connection::Connection;
use crate::fetch::{Broken, Client, Fetch, Purpose, Reply};
use crate::origin::{OriginConnection, OriginStream};
use crate::stored_head::{write_field, write_status_line, write_via};
use crate::transaction::deliver::Answer;
use crate::transaction::synth::Synth;
use crate::transaction::transmit::{self, OutBody, Outgoing};
use crate::transaction::{Step, Transaction};
use crate::wire_stream::Wire;

/// One direction's buffer.
const BUFFER_BYTES: usize = 16 << 10;

/// Exists only after a 101: the permission to treat bytes as a tunnel's (bad-inputs F10).
struct Tunnel {
    origin: OriginConnection,
    /// What the origin sent behind its 101.
    early: Vec<u8>,
}

pub(crate) async fn run(tx: &mut Transaction, connection: &mut Connection) -> Step {
    tx.outcome.verdict = CacheVerdict::Pipe;
    let mut fetch = match Fetch::of(tx, Purpose::Upgrade, None) {
        Ok(fetch) => fetch,
        Err(synth) => return Step::Synth(synth),
    };
    match fetch.converse(&mut Client::Attached(connection)).await {
        Ok(reply) if reply.framing == ResponseBody::Tunnel => switch(tx, connection, reply).await,
        Ok(reply) => {
            let body = reply.body.into_passed(&mut fetch);
            Step::Deliver(Box::new(Answer::Origin { head: reply.head, body: Box::new(body) }))
        }
        Err(Broken::ClientLeft) => {
            connection.exchange(Event::AnswerCut);
            Step::Log(transmit::End::ClientLeft)
        }
        Err(Broken::ClientFault(refusal)) => Step::Synth(Synth::refused(&refusal)),
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
        if field.name == message::FieldName::Upgrade {
            write_field(&mut out, b"Connection", b"Upgrade");
            write_field(&mut out, b"Upgrade", field.value);
        } else if !hop_by_hop.drops(&field) {
            write_field(&mut out, field.name_text, field.value);
        }
    }
    write_via(&mut out, &reply.head, &tx.site);
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

    /// Moves what can be moved. True when something was; `Err` when either side broke.
    fn poll_move(
        &mut self,
        cx: &mut Context<'_>,
        read: &mut dyn FnMut(&mut Context<'_>, &mut [u8]) -> Poll<io::Result<usize>>,
        write: &mut dyn FnMut(&mut Context<'_>, &[u8]) -> Poll<io::Result<usize>>,
        shut: &mut dyn FnMut(&mut Context<'_>) -> Poll<io::Result<()>>,
    ) -> io::Result<bool> {
        let mut moved = false;
        loop {
            while self.sent < self.buffer.len() {
                match write(cx, &self.buffer[self.sent..]) {
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
                if !self.shut && shut(cx)?.is_ready() {
                    self.shut = true;
                    moved = true;
                }
                return Ok(moved);
            }
            self.buffer.resize(BUFFER_BYTES, 0);
            self.sent = BUFFER_BYTES;
            match read(cx, &mut self.buffer) {
                Poll::Pending => {
                    self.buffer = Vec::new();
                    self.sent = 0;
                    return Ok(moved);
                }
                Poll::Ready(read) => {
                    let read = read?;
                    self.buffer.truncate(read);
                    self.sent = 0;
                    self.read_ended = read == 0;
                    moved = true;
                }
            }
        }
    }
}

/// Carries bytes both ways until both sides have ended, one broke, or nothing moved for `limits.tunnel_idle_timeout`.
/// Returns how many went to the client.
async fn carry(connection: &mut Connection, tunnel: Tunnel) -> u64 {
    let idle_ms = connection.core.site_ref().settings.limits.tunnel_idle_timeout.as_millis() as u64;
    let mut up = Flow::new(std::mem::take(&mut connection.pending));
    let mut down = Flow::new(tunnel.early);
    let mut connection_to_origin = tunnel.origin;
    let origin = &mut connection_to_origin.stream;
    connection.slot.set_deadline(Moment::now().deadline_ms() + idle_ms);
    poll_fn(|cx| {
        let wire = &mut connection.wire;
        let went_up = up.poll_move(
            cx,
            &mut |cx, into| wire.poll_read(cx, into),
            &mut |cx, from| Pin::new(&mut *origin).poll_write(cx, from),
            &mut |_| Poll::Ready(Ok(())),
        );
        let went_down = down.poll_move(
            cx,
            &mut |cx, into| poll_read(origin, cx, into),
            &mut |cx, from| wire.poll_write(cx, &[IoSlice::new(from)]),
            &mut |_| Poll::Ready(Ok(())),
        );
        if up.read_ended && up.sent == up.buffer.len() {
            let _ = Pin::new(&mut *origin).poll_shutdown(cx);
        }
        if down.read_ended && down.sent == down.buffer.len() {
            let _ = Wire::poll_shutdown(wire, cx);
        }
        let (Ok(went_up), Ok(went_down)) = (went_up, went_down) else { return Poll::Ready(()) };
        if (up.shut && down.shut) || connection.slot.must_end() {
            return Poll::Ready(());
        }
        if went_up || went_down {
            connection.slot.set_deadline(Moment::now().deadline_ms() + idle_ms);
        }
        connection.slot.park(cx.waker());
        Poll::Pending
    })
    .await;
    down.bytes
}

fn poll_read(stream: &mut OriginStream, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(into);
    Pin::new(stream).poll_read(cx, &mut buffer).map_ok(|()| buffer.filled().len())
}
