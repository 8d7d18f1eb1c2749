//! The byte stream to an origin: TCP or a UNIX socket. It reads and writes for the fetch; the pool asks it whether
//! it is quiet, and moves it to another core's runtime. It does not know what the bytes mean, nor where it came from.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

#[derive(Debug)]
pub enum OriginStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl OriginStream {
    /// Nothing to read, not even an end? Costs no system call while the runtime has seen nothing arrive.
    ///
    /// Bytes that came unasked would be taken for the next answer, and everybody's answers after it would be
    /// somebody else's: such a connection is never used again.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        let mut byte = [0];
        matches!(self.try_read(&mut byte), Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// The same, asked of the kernel: for a stream whose runtime is another core's and may be behind.
    pub fn is_quiet_in_kernel(&self) -> bool {
        let mut byte = [0];
        let peeked = recv(self.as_fd(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(peeked, Err(e) if e == rustix::io::Errno::WOULDBLOCK)
    }

    /// Takes the socket out of the runtime that polls it and gives it to the current one.
    pub fn rehome(self) -> io::Result<OriginStream> {
        Ok(match self {
            OriginStream::Tcp(stream) => OriginStream::Tcp(TcpStream::from_std(stream.into_std()?)?),
            OriginStream::Unix(stream) => OriginStream::Unix(UnixStream::from_std(stream.into_std()?)?),
        })
    }

    pub fn ends(&self) -> (i32, SocketAddr, SocketAddr) {
        const NONE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        match self {
            OriginStream::Tcp(stream) => {
                let (remote, local) = (stream.peer_addr().unwrap_or(NONE), stream.local_addr().unwrap_or(NONE));
                (stream.as_raw_fd(), remote, local)
            }
            OriginStream::Unix(stream) => (stream.as_raw_fd(), NONE, NONE),
        }
    }

    #[inline]
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            OriginStream::Tcp(stream) => stream.try_read(buf),
            OriginStream::Unix(stream) => stream.try_read(buf),
        }
    }

    #[inline]
    pub fn try_write_vectored(&self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            OriginStream::Tcp(stream) => stream.try_write_vectored(slices),
            OriginStream::Unix(stream) => stream.try_write_vectored(slices),
        }
    }

    /// Ready when a read would not block: bytes, an end or an error are there.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            OriginStream::Tcp(stream) => stream.poll_read_ready(cx),
            OriginStream::Unix(stream) => stream.poll_read_ready(cx),
        }
    }

    /// Ready when a write would not block.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            OriginStream::Tcp(stream) => stream.poll_write_ready(cx),
            OriginStream::Unix(stream) => stream.poll_write_ready(cx),
        }
    }
}

impl AsFd for OriginStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            OriginStream::Tcp(stream) => stream.as_fd(),
            OriginStream::Unix(stream) => stream.as_fd(),
        }
    }
}

impl AsyncRead for OriginStream {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            OriginStream::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            OriginStream::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for OriginStream {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            OriginStream::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            OriginStream::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            OriginStream::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            OriginStream::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Shuts the sending side down; what the origin still sends can be read.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            OriginStream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            OriginStream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
