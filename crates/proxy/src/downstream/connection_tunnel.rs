//! A connection of HTTP/1 whose bytes flow freely.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::Connection;
use crate::tunnel_flow::{self, Tunnel, TunnelEnd};

impl Connection {
    pub(super) async fn carry(&mut self, tunnel: Tunnel) -> u64 {
        let (core, early) = (Rc::clone(&self.core), std::mem::take(&mut self.pending));
        tunnel_flow::carry(&core, &mut ConnectionEnd(self), early, tunnel).await
    }
}

/// The client's end.
struct ConnectionEnd<'c>(&'c mut Connection);

impl AsyncRead for ConnectionEnd<'_> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.socket).poll_read(cx, into)
    }
}

impl AsyncWrite for ConnectionEnd<'_> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.socket).poll_shutdown(cx)
    }
}

impl TunnelEnd for ConnectionEnd<'_> {
    fn must_end(&mut self, cx: &mut Context<'_>, deadline_ms: u64) -> bool {
        let slot = &self.0.slot;
        // What is set anew is not over.
        if slot.deadline() != deadline_ms {
            slot.set_deadline(deadline_ms);
        }
        let must_end = slot.must_end();
        if !must_end {
            slot.park(cx.waker());
        }
        must_end
    }
}
