//! An origin's end of a tunnel: what came behind its head, then bytes as they flow. FastCGI has none: its heads never say that there is one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::upstream::Upstream;

impl AsyncRead for Upstream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Upstream::Http1(exchange) => {
                if exchange.read_early(into) {
                    return Poll::Ready(Ok(()));
                }
                Pin::new(&mut exchange.connection.stream).poll_read(cx, into)
            }
            Upstream::Http2(exchange) => exchange.poll_read(cx, into),
            Upstream::FastCgi(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }
}

impl AsyncWrite for Upstream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Upstream::Http1(exchange) => Pin::new(&mut exchange.connection.stream).poll_write(cx, bytes),
            Upstream::Http2(exchange) => exchange.poll_write(cx, bytes),
            Upstream::FastCgi(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Upstream::Http1(exchange) => Pin::new(&mut exchange.connection.stream).poll_flush(cx),
            Upstream::Http2(_) | Upstream::FastCgi(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Upstream::Http1(exchange) => Pin::new(&mut exchange.connection.stream).poll_shutdown(cx),
            Upstream::Http2(exchange) => exchange.poll_shutdown(cx),
            Upstream::FastCgi(_) => Poll::Ready(Ok(())),
        }
    }
}
