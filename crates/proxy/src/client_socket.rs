//! The socket of a client connection, whichever kind it is. The one place where TLS will plug in.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::sendfile;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use vcl::UnixPeer;

use crate::held_body::Pages;

pub(crate) enum ClientSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl ClientSocket {
    /// Takes over an accepted, non-blocking socket.
    pub(crate) fn register(socket: OwnedFd, is_unix: bool) -> io::Result<ClientSocket> {
        Ok(match is_unix {
            false => ClientSocket::Tcp(TcpStream::from_std(socket.into())?),
            true => ClientSocket::Unix(UnixStream::from_std(socket.into())?),
        })
    }

    /// The other end and ours; 0.0.0.0 port 0 for a UNIX socket.
    pub(crate) fn addresses(&self) -> (SocketAddr, SocketAddr) {
        const NONE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        match self {
            ClientSocket::Tcp(stream) => (stream.peer_addr().unwrap_or(NONE), stream.local_addr().unwrap_or(NONE)),
            ClientSocket::Unix(_) => (NONE, NONE),
        }
    }

    /// Where our end of a UNIX socket lies.
    pub(crate) fn unix_path(&self) -> Option<PathBuf> {
        match self {
            ClientSocket::Tcp(_) => None,
            ClientSocket::Unix(stream) => stream.local_addr().ok()?.as_pathname().map(Path::to_owned),
        }
    }

    /// The socket's number in this process.
    pub(crate) fn descriptor(&self) -> i32 {
        match self {
            ClientSocket::Tcp(stream) => stream.as_raw_fd(),
            ClientSocket::Unix(stream) => stream.as_raw_fd(),
        }
    }

    /// Who is at the other end of a UNIX socket.
    pub(crate) fn unix_peer(&self) -> Option<UnixPeer> {
        match self {
            ClientSocket::Tcp(_) => None,
            ClientSocket::Unix(stream) => {
                let peer = stream.peer_cred().ok()?;
                Some(UnixPeer { user: peer.uid(), group: peer.gid() })
            }
        }
    }

    /// Reads once. `Ok(0)` is the end of the input.
    #[inline]
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        let read = match self {
            ClientSocket::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            ClientSocket::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        };
        read.map_ok(|()| buffer.filled().len())
    }

    /// Writes what the socket takes now.
    #[inline]
    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            ClientSocket::Tcp(stream) => stream.try_write_vectored(slices),
            ClientSocket::Unix(stream) => stream.try_write_vectored(slices),
        }
    }

    /// How much of an answer the kernel may hold unsent. Where it cannot be told so it stays as it was.
    pub(crate) fn set_unsent_max(&self, bytes: u32) {
        if let ClientSocket::Tcp(stream) = self {
            let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(bytes);
        }
    }

    /// From here on a close throws away what the client has not taken, and says so by a reset: else the kernel keeps that for
    /// a client that takes nothing.
    pub(crate) fn resets_when_closed(&self) {
        if let ClientSocket::Tcp(stream) = self {
            let _ = socket2::SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
        }
    }

    /// Sends pages of a file as they lie, of `from..to` of the body what may be sent at once.
    pub(crate) fn try_send_pages(&self, pages: Pages<'_>, from: u64, to: u64) -> io::Result<usize> {
        let mut offset = pages.offset.wrapping_add(from);
        let count = usize::try_from((to - from).min(pages.piece_bytes_max)).unwrap_or(usize::MAX);
        let mut send = |fd: BorrowedFd<'_>| Ok(sendfile(fd, pages.file, Some(&mut offset), count)?);
        match self {
            ClientSocket::Tcp(s) => s.try_io(Interest::WRITABLE, || send(s.as_fd())),
            ClientSocket::Unix(s) => s.try_io(Interest::WRITABLE, || send(s.as_fd())),
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
        loop {
            let ready = match self {
                ClientSocket::Tcp(stream) => stream.poll_write_ready(cx),
                ClientSocket::Unix(stream) => stream.poll_write_ready(cx),
            };
            std::task::ready!(ready)?;
            match self.try_send_pages(pages, from, to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    #[inline]
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            ClientSocket::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            ClientSocket::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    /// Ends our side: a FIN after what has been written.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            ClientSocket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            ClientSocket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    /// Has the client left, as far as the socket says without a byte being taken from it? A FIN alone is a
    /// half-close and counts as `Stayed`; so do bytes that wait to be read.
    pub(crate) fn poll_departure(&mut self, cx: &mut Context<'_>) -> Poll<Presence> {
        let ready = match self {
            ClientSocket::Tcp(stream) => stream.poll_read_ready(cx),
            ClientSocket::Unix(stream) => stream.poll_read_ready(cx),
        };
        match ready {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(_)) => Poll::Ready(Presence::Left),
            Poll::Ready(Ok(())) if self.has_hung_up() => Poll::Ready(Presence::Left),
            Poll::Ready(Ok(())) => Poll::Ready(Presence::Stayed),
        }
    }

    /// RST, or both directions closed: what `poll(2)` reports unasked.
    pub(crate) fn has_hung_up(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        let fd = match self {
            ClientSocket::Tcp(stream) => stream.as_fd(),
            ClientSocket::Unix(stream) => stream.as_fd(),
        };
        let mut asked = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut asked, Some(&now)), Ok(1..))
            && asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            ClientSocket::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            ClientSocket::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write(cx, &[IoSlice::new(bytes)])
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_shutdown(cx)
    }
}

/// What [`ClientSocket::poll_departure`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// RST or HUP.
    Left,
    /// Half-closed or talking: nothing more can be learnt without reading.
    Stayed,
}
