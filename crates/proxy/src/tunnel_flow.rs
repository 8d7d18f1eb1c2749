//! The bytes of a tunnel, both ways, between a client's HTTP/1 connection and an origin's.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::clock::deadline_now_ms;
use crate::connection::Connection;
use crate::origin::OriginConnection;

/// One direction's buffer.
const BUFFER_BYTES: usize = 16 << 10;

/// Exists only after a 101, or a 200 to CONNECT: the permission to treat bytes as a tunnel's (bad-inputs F10).
pub(crate) struct Tunnel {
    pub(crate) origin: OriginConnection,
    /// What the origin sent behind its head.
    pub(crate) early: Vec<u8>,
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
pub(crate) async fn carry(connection: &mut Connection, tunnel: Tunnel) -> u64 {
    let (idle_ms, half_closed_ms) = {
        let limits = &connection.core.site_ref().settings.limits;
        (limits.tunnel_idle_timeout.as_millis() as u64, limits.tunnel_half_closed_timeout.as_millis() as u64)
    };
    let mut up = Flow::new(std::mem::take(&mut connection.pending));
    let mut down = Flow::new(tunnel.early);
    let mut origin = tunnel.origin;
    connection.slot.set_deadline(deadline_now_ms() + idle_ms);
    poll_fn(|cx| {
        let went_up = up.poll_move(cx, &mut connection.socket, &mut origin.stream);
        let went_down = down.poll_move(cx, &mut origin.stream, &mut connection.socket);
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
