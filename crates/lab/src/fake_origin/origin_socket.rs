//! The connection below a conversation of the origin: a socket, or TLS over one.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use message::Scheme;
use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use crate::fake_origin::origin_plan::Ending;
use crate::limits::{ORIGIN_IDLE, ORIGIN_LINGER};

pub(crate) enum OriginSocket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl OriginSocket {
    pub(crate) fn scheme(&self) -> Scheme {
        match self {
            OriginSocket::Plain(_) => Scheme::Http,
            OriginSocket::Tls(_) => Scheme::Https,
        }
    }

    /// Without whatever TLS would still say.
    fn into_tcp(self) -> TcpStream {
        match self {
            OriginSocket::Plain(stream) => stream,
            OriginSocket::Tls(stream) => stream.into_inner().0,
        }
    }

    /// Closes so that what was sent arrives, although the client may still be sending. Over TLS the end is said.
    pub(crate) async fn linger(mut self) {
        let mut rest = [0; 1_024];
        let closing = async {
            let _ = self.shutdown().await;
            while self.read(&mut rest).await.is_ok_and(|count| count > 0) {}
        };
        let _ = timeout(ORIGIN_LINGER, closing).await;
    }

    /// Closes at once, as nothing more can come. Over TLS the end is said.
    pub(crate) async fn close(mut self) {
        if let OriginSocket::Tls(_) = self {
            // A client that has left hears nothing.
            let _ = timeout(ORIGIN_LINGER, self.shutdown()).await;
        }
    }

    /// The end of a connection, as a fault has it. TLS does not say that it is one.
    pub(crate) async fn end_by_fault(self, ending: Ending) {
        let mut stream = self.into_tcp();
        match ending {
            // A reset may overtake what was sent, if that is still on its way: the client must read it first.
            Ending::Cut => OriginSocket::Plain(stream).linger().await,
            Ending::Reset => {
                let _ = set_socket_linger(&stream, Some(Duration::ZERO));
            }
            Ending::Stop => wait_until_gone(&mut stream).await,
        }
    }
}

/// Says nothing until the client has left, or for as long as a connection may be idle.
pub(crate) async fn wait_until_gone(stream: &mut TcpStream) {
    let mut rest = [0; 1_024];
    let until_gone = async { while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {} };
    let _ = timeout(ORIGIN_IDLE, until_gone).await;
}

impl AsyncRead for OriginSocket {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            OriginSocket::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            OriginSocket::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for OriginSocket {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            OriginSocket::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            OriginSocket::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            OriginSocket::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            OriginSocket::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            OriginSocket::Plain(stream) => Pin::new(stream).poll_flush(cx),
            OriginSocket::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            OriginSocket::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            OriginSocket::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
