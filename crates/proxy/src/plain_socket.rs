//! A socket as the kernel has it, TCP or UNIX, of a client or to an origin. It does not know what its bytes mean.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::sendfile;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use vcl::UnixPeer;

use crate::held_body::Pages;

#[derive(Debug)]
pub enum PlainSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl PlainSocket {
    /// Takes over an accepted, non-blocking socket.
    pub(crate) fn register(socket: OwnedFd, is_unix: bool) -> io::Result<PlainSocket> {
        Ok(match is_unix {
            false => PlainSocket::Tcp(TcpStream::from_std(socket.into())?),
            true => PlainSocket::Unix(UnixStream::from_std(socket.into())?),
        })
    }

    /// The other end and ours; 0.0.0.0 port 0 for a UNIX socket.
    pub(crate) fn addresses(&self) -> (SocketAddr, SocketAddr) {
        const NONE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        match self {
            PlainSocket::Tcp(stream) => (stream.peer_addr().unwrap_or(NONE), stream.local_addr().unwrap_or(NONE)),
            PlainSocket::Unix(_) => (NONE, NONE),
        }
    }

    /// Where our end of a UNIX socket lies.
    pub(crate) fn unix_path(&self) -> Option<PathBuf> {
        match self {
            PlainSocket::Tcp(_) => None,
            PlainSocket::Unix(stream) => stream.local_addr().ok()?.as_pathname().map(Path::to_owned),
        }
    }

    /// Who is at the other end of a UNIX socket.
    pub(crate) fn unix_peer(&self) -> Option<UnixPeer> {
        match self {
            PlainSocket::Tcp(_) => None,
            PlainSocket::Unix(stream) => {
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
            PlainSocket::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            PlainSocket::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        };
        read.map_ok(|()| buffer.filled().len())
    }

    /// Writes what the socket takes now.
    #[inline]
    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            PlainSocket::Tcp(stream) => stream.try_write_vectored(slices),
            PlainSocket::Unix(stream) => stream.try_write_vectored(slices),
        }
    }

    /// The same of a socket that the runtime has not looked at yet: one that was just connected has room.
    #[inline]
    pub(crate) fn write_at_once(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.as_fd(), bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?)
    }

    /// How much of an answer the kernel may hold unsent. Where it cannot be told so it stays as it was.
    pub(crate) fn set_unsent_max(&self, bytes: u32) {
        if let PlainSocket::Tcp(stream) = self {
            let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(bytes);
        }
    }

    /// From here on a close throws away what the client has not taken, and says so by a reset: else the kernel keeps that for
    /// a client that takes nothing.
    pub(crate) fn resets_when_closed(&self) {
        if let PlainSocket::Tcp(stream) = self {
            let _ = socket2::SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
        }
    }

    /// Nothing to read, not even an end? Costs no system call while the runtime has seen nothing arrive.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        let mut byte = [0];
        matches!(self.try_read(&mut byte), Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// The same, asked of the kernel: for a socket whose runtime is another core's and may be behind.
    pub(crate) fn is_quiet_in_kernel(&self) -> bool {
        let mut byte = [0];
        let peeked = recv(self.as_fd(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(peeked, Err(e) if e == rustix::io::Errno::WOULDBLOCK)
    }

    /// Takes the socket out of the runtime that polls it and gives it to the current one.
    pub(crate) fn rehome(self) -> io::Result<PlainSocket> {
        Ok(match self {
            PlainSocket::Tcp(stream) => PlainSocket::Tcp(TcpStream::from_std(stream.into_std()?)?),
            PlainSocket::Unix(stream) => PlainSocket::Unix(UnixStream::from_std(stream.into_std()?)?),
        })
    }

    #[inline]
    pub(crate) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            PlainSocket::Tcp(stream) => stream.try_read(into),
            PlainSocket::Unix(stream) => stream.try_read(into),
        }
    }

    /// Ready when a read would not block: bytes, an end or an error are there.
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            PlainSocket::Tcp(stream) => stream.poll_read_ready(cx),
            PlainSocket::Unix(stream) => stream.poll_read_ready(cx),
        }
    }

    /// Ready when a write would not block.
    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            PlainSocket::Tcp(stream) => stream.poll_write_ready(cx),
            PlainSocket::Unix(stream) => stream.poll_write_ready(cx),
        }
    }

    /// Sends pages of a file as they lie, of `from..to` of the body what may be sent at once.
    pub(crate) fn try_send_pages(&self, pages: Pages<'_>, from: u64, to: u64) -> io::Result<usize> {
        let mut offset = pages.offset.wrapping_add(from);
        let count = usize::try_from((to - from).min(pages.piece_bytes_max)).unwrap_or(usize::MAX);
        let mut send = |fd: BorrowedFd<'_>| Ok(sendfile(fd, pages.file, Some(&mut offset), count)?);
        match self {
            PlainSocket::Tcp(s) => s.try_io(Interest::WRITABLE, || send(s.as_fd())),
            PlainSocket::Unix(s) => s.try_io(Interest::WRITABLE, || send(s.as_fd())),
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
            std::task::ready!(self.poll_write_ready(cx))?;
            match self.try_send_pages(pages, from, to) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }

    #[inline]
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            PlainSocket::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            PlainSocket::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    /// Ends our side: a FIN after what has been written.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            PlainSocket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            PlainSocket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    /// Has the client left, as far as the socket says without a byte being taken from it? A FIN alone is a
    /// half-close and counts as `Stayed`; so do bytes that wait to be read.
    pub(crate) fn poll_departure(&self, cx: &mut Context<'_>) -> Poll<Presence> {
        match self.poll_read_ready(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(_)) => Poll::Ready(Presence::Left),
            Poll::Ready(Ok(())) if self.has_hung_up() => Poll::Ready(Presence::Left),
            Poll::Ready(Ok(())) => Poll::Ready(Presence::Stayed),
        }
    }

    /// RST, or both directions closed: what `poll(2)` reports unasked.
    pub(crate) fn has_hung_up(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        let mut asked = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::empty())];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut asked, Some(&now)), Ok(1..))
            && asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }
}

impl AsFd for PlainSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            PlainSocket::Tcp(stream) => stream.as_fd(),
            PlainSocket::Unix(stream) => stream.as_fd(),
        }
    }
}

/// What [`PlainSocket::poll_departure`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// RST or HUP.
    Left,
    /// Half-closed or talking: nothing more can be learnt without reading.
    Stayed,
}
