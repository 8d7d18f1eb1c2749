//! The bytes of a tunnel, both ways, between a client and an origin's connection.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::clock::deadline_now_ms;
use crate::core::Core;
use crate::upstream::Upstream;

/// One direction's buffer.
const BUFFER_BYTES: usize = 16 << 10;

/// Exists only after a 101, or a 200 to CONNECT: the permission to treat bytes as a tunnel's (bad-inputs F10).
pub(crate) struct Tunnel {
    pub(crate) origin: Upstream,
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

/// The client's end of a tunnel.
pub(crate) trait TunnelEnd: AsyncRead + AsyncWrite + Unpin {
    /// Has this moment come, or must the client's connection end? If not, the task is woken when that changes.
    fn must_end(&mut self, cx: &mut Context<'_>, deadline_ms: u64) -> bool;
}

/// Carries bytes both ways until both sides have ended, one broke, or nothing moved for `limits.tunnel_idle_timeout`,
/// `limits.tunnel_half_closed_timeout` once one of them has ended: many that end never say so. `early`: what the client sent
/// already. Returns how many went to the client.
pub(crate) async fn carry(core: &Core, client: &mut impl TunnelEnd, early: Vec<u8>, tunnel: Tunnel) -> u64 {
    let (idle_ms, half_closed_ms) = {
        let limits = &core.site_ref().settings.limits;
        (limits.tunnel_idle_timeout.as_millis() as u64, limits.tunnel_half_closed_timeout.as_millis() as u64)
    };
    let mut up = Flow::new(early);
    let mut down = Flow::new(Vec::new());
    let mut origin = tunnel.origin;
    let mut deadline_ms = deadline_now_ms() + idle_ms;
    poll_fn(|cx| {
        let went_up = up.poll_move(cx, client, &mut origin);
        let went_down = down.poll_move(cx, &mut origin, client);
        let (Ok(went_up), Ok(went_down)) = (went_up, went_down) else { return Poll::Ready(()) };
        if up.shut && down.shut {
            return Poll::Ready(());
        }
        if went_up || went_down {
            let patience_ms = if up.shut || down.shut { idle_ms.min(half_closed_ms) } else { idle_ms };
            deadline_ms = deadline_now_ms() + patience_ms;
        }
        if client.must_end(cx, deadline_ms) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    core.counters.tunnel_bytes_up.add(up.bytes);
    core.counters.tunnel_bytes_down.add(down.bytes);
    down.bytes
}
