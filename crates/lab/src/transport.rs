//! The connection below a protocol: a socket, or TLS over one.
//!
//! Users read and write the same either way. What TLS has taken and the socket has not is sent when the user comes
//! again, which it does as soon as the socket has room.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use crate::read_ahead::ReadAhead;

#[derive(Debug)]
pub(crate) enum Transport {
    Plain(ReadAhead),
    Tls(Box<TlsStream<ReadAhead>>),
}

impl Transport {
    /// As many of the bytes as are taken now.
    pub(crate) fn send(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> io::Result<usize> {
        let mut written = 0;
        while written < bytes.len() {
            match Pin::new(&mut *self).poll_write(cx, &bytes[written..]) {
                Poll::Ready(taken) => written += taken?,
                Poll::Pending => break,
            }
        }
        if let Transport::Tls(stream) = self
            && stream.get_ref().1.wants_write()
        {
            match Pin::new(stream).poll_flush(cx) {
                Poll::Ready(flushed) => flushed?,
                Poll::Pending => {}
            }
        }
        Ok(written)
    }

    /// Tells the other side that nothing more comes, as TLS wants it (RFC 8446 §6.1); without a wait for anything.
    pub(crate) fn say_goodbye(&mut self) {
        if let Transport::Tls(stream) = self {
            let (socket, connection) = stream.get_mut();
            connection.send_close_notify();
            let mut bytes = Vec::new();
            while connection.wants_write() && connection.write_tls(&mut bytes).is_ok() {}
            // A socket that has no room, or is gone, learns it from the end of the connection.
            let _ = socket.socket().try_write(&bytes);
        }
    }
}

impl AsyncRead for Transport {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Transport::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Transport {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Transport::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Transport::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Transport::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Transport::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
