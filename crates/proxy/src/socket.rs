//! A connection's bytes, whoever is at the other end and whether they are sealed on the way: a client's connection, and one to an
//! origin or a memcached. The one place where TLS plugs in.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use vcl::UnixPeer;

use crate::held_body::Pages;
use crate::plain_socket::{PlainSocket, Presence};
use crate::tls_socket::TlsSocket;

/// Reads and writes text; what is on the wire is its own affair.
#[derive(Debug)]
pub enum Socket {
    Plain(PlainSocket),
    Tls(Box<TlsSocket>),
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Socket {
        Socket::Plain(PlainSocket::Tcp(stream))
    }
}

impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Socket {
        Socket::Plain(PlainSocket::Unix(stream))
    }
}

/// What it is.
impl Socket {
    /// Takes over an accepted, non-blocking socket.
    pub(crate) fn register(socket: OwnedFd, is_unix: bool) -> io::Result<Socket> {
        PlainSocket::register(socket, is_unix).map(Socket::Plain)
    }

    /// From here on what is sent is sealed, by a session that has not begun.
    pub(crate) fn sealed(self, session: tls::Session) -> Socket {
        match self {
            Socket::Plain(carrier) => Socket::Tls(Box::new(TlsSocket::new(carrier, session))),
            // Nobody asks for that.
            Socket::Tls(_) => self,
        }
    }

    /// Agrees with a server upon a session.
    pub(crate) async fn agreed(self, session: tls::Session) -> Result<Socket, tls::Fault> {
        let mut socket = self.sealed(session);
        if let Socket::Tls(tls) = &mut socket
            && poll_fn(|cx| tls.poll_handshake(cx, &mut [])).await.is_err()
        {
            return Err(tls.fault().unwrap_or(tls::Fault::Ended));
        }
        Ok(socket)
    }

    pub(crate) fn tls(&self) -> Option<&TlsSocket> {
        match self {
            Socket::Plain(_) => None,
            Socket::Tls(tls) => Some(tls),
        }
    }

    pub(crate) fn tls_mut(&mut self) -> Option<&mut TlsSocket> {
        match self {
            Socket::Plain(_) => None,
            Socket::Tls(tls) => Some(tls),
        }
    }

    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.carrier(), PlainSocket::Tcp(_))
    }

    fn carrier(&self) -> &PlainSocket {
        match self {
            Socket::Plain(carrier) => carrier,
            Socket::Tls(tls) => tls.carrier(),
        }
    }

    /// The other end and ours; 0.0.0.0 port 0 for a UNIX socket.
    pub(crate) fn addresses(&self) -> (SocketAddr, SocketAddr) {
        self.carrier().addresses()
    }

    /// Where our end of a UNIX socket lies.
    pub(crate) fn unix_path(&self) -> Option<PathBuf> {
        self.carrier().unix_path()
    }

    /// The socket's number in this process.
    pub(crate) fn descriptor(&self) -> i32 {
        self.carrier().as_fd().as_raw_fd()
    }

    /// Who is at the other end of a UNIX socket.
    pub(crate) fn unix_peer(&self) -> Option<UnixPeer> {
        self.carrier().unix_peer()
    }

    /// How much of an answer the kernel may hold unsent. Where it cannot be told so it stays as it was.
    pub(crate) fn set_unsent_max(&self, bytes: u32) {
        self.carrier().set_unsent_max(bytes);
    }

    /// From here on a close throws away what the client has not taken, and says so by a reset: else the kernel keeps that for
    /// a client that takes nothing.
    pub(crate) fn resets_when_closed(&self) {
        self.carrier().resets_when_closed();
    }

    /// Takes the socket out of the runtime that polls it and gives it to the current one.
    pub(crate) fn rehome(self) -> io::Result<Socket> {
        Ok(match self {
            Socket::Plain(carrier) => Socket::Plain(carrier.rehome()?),
            Socket::Tls(tls) => Socket::Tls(Box::new(tls.rehome()?)),
        })
    }
}

/// Reading.
impl Socket {
    /// Reads once. `Ok(0)` is the end of the input.
    #[inline]
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Plain(carrier) => carrier.poll_read(cx, into),
            Socket::Tls(tls) => tls.poll_read(cx, into),
        }
    }

    #[inline]
    pub(crate) fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(carrier) => carrier.try_read(into),
            Socket::Tls(tls) => tls.try_read(into),
        }
    }

    /// Ready when it is worth trying to read: bytes, an end or an error are there.
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Plain(carrier) => carrier.poll_read_ready(cx),
            Socket::Tls(tls) => tls.poll_read_ready(cx),
        }
    }

    /// Nothing to read, not even an end? Costs no system call while the runtime has seen nothing arrive.
    ///
    /// Bytes that came unasked would be taken for the next answer, and everybody's answers after it would be
    /// somebody else's: such a connection is never used again.
    #[inline]
    pub(crate) fn is_quiet(&mut self) -> bool {
        match self {
            Socket::Plain(carrier) => carrier.is_quiet(),
            Socket::Tls(tls) => tls.is_quiet(),
        }
    }

    /// The same, asked of the kernel: for a socket whose runtime is another core's and may be behind.
    pub(crate) fn is_quiet_in_kernel(&self) -> bool {
        match self {
            Socket::Plain(carrier) => carrier.is_quiet_in_kernel(),
            Socket::Tls(tls) => tls.is_quiet_in_kernel(),
        }
    }

    /// Reads what is not sealed, which comes before TLS begins.
    pub(crate) fn poll_read_clear(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Plain(carrier) => carrier.poll_read(cx, into),
            Socket::Tls(tls) => tls.carrier_mut().poll_read(cx, into),
        }
    }

    /// Has the client left, as far as the socket says without a byte being taken from it? A FIN alone is a
    /// half-close and counts as `Stayed`; so do bytes that wait to be read.
    pub(crate) fn poll_departure(&self, cx: &mut Context<'_>) -> Poll<Presence> {
        self.carrier().poll_departure(cx)
    }

    /// RST, or both directions closed: what `poll(2)` reports unasked.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.carrier().has_hung_up()
    }
}

/// Writing.
impl Socket {
    /// Writes what the socket takes now. Over TLS some of what it took may wait here: see [`Socket::has_unsent`].
    #[inline]
    pub(crate) fn try_write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Plain(carrier) => carrier.try_write(slices),
            Socket::Tls(tls) => tls.try_write(slices),
        }
    }

    /// What the kernel takes now, asked without looking whether it is ready. Nothing over TLS, where what is sealed has to be sent first.
    #[inline]
    pub(crate) fn write_at_once(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(carrier) => carrier.write_at_once(bytes),
            Socket::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Writes without sealing, to somebody who does not speak TLS.
    pub(crate) fn try_write_clear(&self, bytes: &[u8]) -> io::Result<usize> {
        self.carrier().try_write(&[IoSlice::new(bytes)])
    }

    #[inline]
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Plain(carrier) => carrier.poll_write(cx, slices),
            Socket::Tls(tls) => tls.poll_write(cx, slices),
        }
    }

    /// Has the kernel not taken yet what was written?
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            Socket::Plain(_) => false,
            Socket::Tls(tls) => tls.unsent_bytes() > 0,
        }
    }

    /// What waits here for the kernel to take it.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.tls().map_or(0, TlsSocket::unsent_bytes)
    }

    /// Ready when the kernel has all that was written.
    #[inline]
    pub(crate) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Plain(_) => Poll::Ready(Ok(())),
            Socket::Tls(tls) => tls.poll_sent(cx),
        }
    }

    /// Can pages of a file be sent as they lie? Not where they are sealed.
    #[inline]
    pub(crate) fn takes_pages(&self) -> bool {
        matches!(self, Socket::Plain(_))
    }

    /// Sends pages of a file as they lie, of `from..to` of the body what may be sent at once.
    pub(crate) fn try_send_pages(&self, pages: Pages<'_>, from: u64, to: u64) -> io::Result<usize> {
        match self {
            Socket::Plain(carrier) => carrier.try_send_pages(pages, from, to),
            Socket::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The same, when the socket is ready for it.
    pub(crate) fn poll_send_pages(
        &self,
        cx: &mut Context<'_>,
        pages: Pages<'_>,
        from: u64,
        to: u64,
    ) -> Poll<io::Result<usize>> {
        match self {
            Socket::Plain(carrier) => carrier.poll_send_pages(cx, pages, from, to),
            Socket::Tls(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Ends our side: a FIN after what has been written.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Plain(carrier) => carrier.poll_shutdown(cx),
            Socket::Tls(tls) => tls.poll_shutdown(cx),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.carrier().as_fd()
    }
}

impl AsyncRead for Socket {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(PlainSocket::Tcp(stream)) => Pin::new(stream).poll_read(cx, buffer),
            Socket::Plain(PlainSocket::Unix(stream)) => Pin::new(stream).poll_read(cx, buffer),
            Socket::Tls(tls) => {
                let read = std::task::ready!(tls.poll_read(cx, buffer.initialize_unfilled()))?;
                buffer.advance(read);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for Socket {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write(cx, &[IoSlice::new(bytes)])
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_sent(cx)
    }

    /// Shuts the sending side down; what the other end still sends can be read.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_shutdown(cx)
    }
}
