//! The connection below the crate `h2`, on which the origin can say something between two of its frames: a GOAWAY that leaves
//! a request undone is nothing that `h2` would say of a request that it has handed over.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

use crate::fake_origin::origin_socket::OriginSocket;
use crate::frame_meter::FrameMeter;
use crate::limits::ORIGIN_WRITE_PATIENCE;

/// Shared by the crate and by whoever speaks between its frames.
#[derive(Clone)]
pub(crate) struct FrameSocket(Rc<RefCell<Inner>>);

struct Inner {
    socket: OriginSocket,
    /// What was read before it was known that this is HTTP/2.
    ahead: Vec<u8>,
    /// What was sent.
    sent: FrameMeter,
}

impl FrameSocket {
    pub(crate) fn new(socket: OriginSocket, ahead: Vec<u8>) -> FrameSocket {
        FrameSocket(Rc::new(RefCell::new(Inner { socket, ahead, sent: FrameMeter::default() })))
    }

    /// Sends a frame of our own as soon as the one before it is whole. The crate must go on in the same task meanwhile.
    pub(crate) async fn say(&self, mut frame: &[u8]) -> io::Result<()> {
        let saying = poll_fn(|cx| {
            let mut inner = self.0.borrow_mut();
            if !inner.sent.is_between_frames() {
                return Poll::Pending;
            }
            while !frame.is_empty() {
                let written = ready!(Pin::new(&mut inner.socket).poll_write(cx, frame))?;
                frame = &frame[written..];
            }
            Pin::new(&mut inner.socket).poll_flush(cx)
        });
        timeout(ORIGIN_WRITE_PATIENCE, saying).await?
    }

    pub(crate) fn is_between_frames(&self) -> bool {
        self.0.borrow().sent.is_between_frames()
    }

    /// None while the crate has it too.
    pub(crate) fn into_socket(self) -> Option<OriginSocket> {
        Rc::into_inner(self.0).map(|inner| inner.into_inner().socket)
    }
}

impl AsyncRead for FrameSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.0.borrow_mut();
        if inner.ahead.is_empty() {
            return Pin::new(&mut inner.socket).poll_read(cx, buf);
        }
        let length = inner.ahead.len().min(buf.remaining());
        buf.put_slice(&inner.ahead[..length]);
        inner.ahead.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for FrameSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let inner = &mut *self.0.borrow_mut();
        let written = ready!(Pin::new(&mut inner.socket).poll_write_vectored(cx, parts))?;
        let mut left = written;
        for part in parts {
            let of_this = left.min(part.len());
            inner.sent.take(&part[..of_this]);
            left -= of_this;
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().socket).poll_shutdown(cx)
    }
}
