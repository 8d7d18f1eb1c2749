//! The connection below HTTP/2, on which everything that comes is counted.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::answer::Fault;
use crate::client_thread::Desk;
use crate::frame_meter::FrameMeter;
use crate::lab_clock::Nanos;
use crate::tls_client;
use crate::transport::Transport;

pub(crate) struct MeteredTransport<'d> {
    transport: Transport,
    desk: &'d Desk,
    meter: Rc<ConnectionMeter>,
}

/// What has come on a connection; shared by who reads and who judges.
#[derive(Debug)]
pub(crate) struct ConnectionMeter {
    pub(crate) frames: RefCell<FrameMeter>,
    /// The last moment at which anything came.
    pub(crate) last_received: Cell<Nanos>,
    /// What TLS said when it broke: the crate `h2` passes on only the text of an error.
    pub(crate) tls_fault: RefCell<Option<Fault>>,
}

impl<'d> MeteredTransport<'d> {
    pub(crate) fn new(transport: Transport, desk: &'d Desk) -> (MeteredTransport<'d>, Rc<ConnectionMeter>) {
        let meter = ConnectionMeter {
            frames: RefCell::default(),
            last_received: Cell::new(Nanos::now()),
            tls_fault: RefCell::default(),
        };
        let meter = Rc::new(meter);
        (MeteredTransport { transport, desk, meter: Rc::clone(&meter) }, meter)
    }
}

impl AsyncRead for MeteredTransport<'_> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        if let Err(error) = ready!(Pin::new(&mut this.transport).poll_read(cx, buf)) {
            *this.meter.tls_fault.borrow_mut() = tls_client::fault(&error);
            return Poll::Ready(Err(error));
        }
        let new = &buf.filled()[before..];
        this.desk.note_frames(new.len());
        this.meter.frames.borrow_mut().take(new);
        this.meter.last_received.set(Nanos::now());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MeteredTransport<'_> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().transport).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().transport).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(cx)
    }
}
