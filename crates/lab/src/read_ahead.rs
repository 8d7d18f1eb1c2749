//! A socket that is read in large pieces, whatever is asked of it: rustls asks for 4 KiB at a time, the crate `h2` for 8.
//!
//! Buffers are the thread's, not the connection's: whoever reads a socket reads until there is nothing more, so a buffer
//! is back in the pool before the next connection has its turn, and idle connections hold none.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::limits::SCRATCH_BYTES;

#[derive(Debug)]
pub(crate) struct ReadAhead {
    socket: TcpStream,
    pool: ReadPool,
    ahead: Option<Ahead>,
}

/// What was read and not asked for yet.
#[derive(Debug)]
struct Ahead {
    buffer: Box<[u8]>,
    from: usize,
    to: usize,
}

/// Buffers that nobody uses at the moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadPool(Rc<RefCell<Vec<Box<[u8]>>>>);

impl ReadPool {
    fn take(&self) -> Box<[u8]> {
        self.0.borrow_mut().pop().unwrap_or_else(|| vec![0; SCRATCH_BYTES].into_boxed_slice())
    }

    fn put(&self, buffer: Box<[u8]>) {
        self.0.borrow_mut().push(buffer);
    }
}

impl ReadAhead {
    pub(crate) fn new(socket: TcpStream, pool: ReadPool) -> ReadAhead {
        ReadAhead { socket, pool, ahead: None }
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }
}

impl AsyncRead for ReadAhead {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.ahead.is_none() && buf.remaining() >= SCRATCH_BYTES {
            return Pin::new(&mut this.socket).poll_read(cx, buf);
        }
        let mut ahead = match this.ahead.take() {
            Some(ahead) => ahead,
            None => {
                let mut buffer = this.pool.take();
                let mut whole = ReadBuf::new(&mut buffer);
                let read = Pin::new(&mut this.socket).poll_read(cx, &mut whole);
                let to = whole.filled().len();
                if to == 0 {
                    this.pool.put(buffer);
                    return read;
                }
                Ahead { buffer, from: 0, to }
            }
        };
        let end = ahead.to.min(ahead.from + buf.remaining());
        buf.put_slice(&ahead.buffer[ahead.from..end]);
        ahead.from = end;
        match ahead.from < ahead.to {
            true => this.ahead = Some(ahead),
            false => this.pool.put(ahead.buffer),
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ReadAhead {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tokio::io::AsyncReadExt;

    use super::*;

    #[test]
    fn small_reads_take_what_one_large_read_has_brought() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let mut peer = listener.accept().unwrap().0;
            let pool = ReadPool::default();
            let mut reader = ReadAhead::new(socket, pool.clone());
            peer.write_all(b"0123456789").unwrap();
            let mut part = [0; 4];
            for (expect, pooled) in [(&b"0123"[..], 0), (b"4567", 0), (b"89", 1)] {
                let length = reader.read(&mut part).await.unwrap();
                assert_eq!((&part[..length], pool.0.borrow().len()), (expect, pooled));
            }
            drop(peer);
            assert_eq!((reader.read(&mut part).await.unwrap(), pool.0.borrow().len()), (0, 1));
        });
    }
}
