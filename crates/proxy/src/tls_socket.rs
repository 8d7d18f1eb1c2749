//! A socket whose text is sealed on the way (TLS). Records are opened and sealed in buffers of the thread, so that an idle connection
//! holds its session and nothing else.
//!
//! What the kernel does not take of sealed records waits here, and cannot be taken back: it goes out before anything else, by
//! whatever is asked of the socket next. Who has to know that all of it is on its way asks [`TlsSocket::poll_sent`].

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tls::{Fault, Session};

use crate::limits::{SEALED_BYTES_MAX, SEALED_BYTES_MIN};
use crate::plain_socket::PlainSocket;
use crate::tls_facts::TlsFacts;

/// What is read of a connection at once.
const RECORDS_BYTES_MAX: usize = 64 << 10;

/// And at least.
const RECORDS_USUAL_BYTES: usize = 4 << 10;

thread_local! {
    /// Records as they come.
    static INPUT: RefCell<Box<[u8]>> = RefCell::new(vec![0; RECORDS_BYTES_MAX].into_boxed_slice());
    /// Records on their way out.
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A socket and its session.
#[derive(Debug)]
pub struct TlsSocket {
    carrier: PlainSocket,
    session: Session,
    /// Of a client's, what the log says of it.
    facts: Option<Arc<TlsFacts>>,
    /// Opened, and not asked for yet: behind what was read last.
    opened: Vec<u8>,
    /// Sealed, and not with the kernel yet.
    unsent: Vec<u8>,
    /// So much text is sealed at once: less for who does not take it.
    seal_max: usize,
    /// Nothing more comes.
    ended: bool,
    /// We have said that nothing more comes from us.
    closed: bool,
    /// Why it came to nothing.
    fault: Option<Fault>,
}

impl TlsSocket {
    pub(crate) fn new(carrier: PlainSocket, session: Session) -> TlsSocket {
        let (opened, unsent) = (Vec::new(), Vec::new());
        TlsSocket {
            carrier,
            session,
            facts: None,
            opened,
            unsent,
            seal_max: SEALED_BYTES_MAX,
            ended: false,
            closed: false,
            fault: None,
        }
    }

    pub(crate) fn carrier(&self) -> &PlainSocket {
        &self.carrier
    }

    pub(crate) fn carrier_mut(&mut self) -> &mut PlainSocket {
        &mut self.carrier
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// What came may be somebody else's, sent again: the handshake is not over.
    #[inline]
    pub(crate) fn is_early(&self) -> bool {
        self.session.is_early()
    }

    /// Both have agreed, and upon what is written down.
    pub(crate) fn settle(&mut self) {
        self.facts = Some(Arc::new(TlsFacts::of(&self.session)));
    }

    /// Where it is a client's.
    #[inline]
    pub(crate) fn facts(&self) -> Option<&Arc<TlsFacts>> {
        self.facts.as_ref()
    }

    /// Why it came to nothing, where it is TLS that did.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    pub(crate) fn rehome(self) -> io::Result<TlsSocket> {
        Ok(TlsSocket { carrier: self.carrier.rehome()?, ..self })
    }

    /// Ready when both sides have agreed, or text has come that may be answered before. The error's reason is [`TlsSocket::fault`], if it
    /// is one of TLS. `came`: what has come already.
    pub(crate) fn poll_handshake(&mut self, cx: &mut Context<'_>, came: &mut [u8]) -> Poll<io::Result<()>> {
        // A client speaks first.
        self.open(came, &mut [])?;
        self.poll_until(cx, |session| !session.is_handshaking() || session.is_early())
    }

    /// Ready when the handshake is over.
    pub(crate) fn poll_established(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_until(cx, |session| !session.is_handshaking())
    }

    fn poll_until(&mut self, cx: &mut Context<'_>, is_there: impl Fn(&Session) -> bool) -> Poll<io::Result<()>> {
        loop {
            let sent = self.poll_sent(cx);
            if is_there(&self.session) {
                return sent.map(|_| Ok(()));
            }
            let _ = sent?;
            match ready!(self.poll_records(cx, &mut [])) {
                // Who leaves as soon as they have agreed does not take the tickets.
                Err(_) if !self.session.is_handshaking() && self.fault.is_none() => return Poll::Ready(Ok(())),
                read => read?,
            };
            if self.ended && self.session.is_handshaking() {
                self.fault = Some(Fault::Ended);
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}

/// Reading.
impl TlsSocket {
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            if let Some(read) = self.take_opened(into) {
                return Poll::Ready(Ok(read));
            }
            // Whoever waits for us to hear from him may wait for the end of what we said.
            let _ = self.poll_sent(cx)?;
            let read = ready!(self.poll_records(cx, into))?;
            if read > 0 {
                return Poll::Ready(Ok(read));
            }
        }
    }

    pub(crate) fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(read) = self.take_opened(into) {
                return Ok(read);
            }
            let read = INPUT.with_borrow_mut(|records| {
                let room = room(records, into);
                let came = self.carrier.try_read(&mut records[..room])?;
                self.take(&mut records[..came], into)
            })?;
            if read > 0 {
                return Ok(read);
            }
        }
    }

    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.opened.is_empty() && !self.ended { self.carrier.poll_read_ready(cx) } else { Poll::Ready(Ok(())) }
    }

    /// Tickets may come at any time, and are no text.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        matches!(self.try_read(&mut byte), Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    pub(crate) fn is_quiet_in_kernel(&self) -> bool {
        self.opened.is_empty() && !self.ended && self.carrier.is_quiet_in_kernel()
    }

    /// What was opened before, or the end.
    fn take_opened(&mut self, into: &mut [u8]) -> Option<usize> {
        if self.opened.is_empty() {
            return self.ended.then_some(0);
        }
        let read = self.opened.len().min(into.len());
        into[..read].copy_from_slice(&self.opened[..read]);
        self.opened.drain(..read);
        if self.opened.is_empty() {
            self.opened = Vec::new();
        }
        Some(read)
    }

    /// Reads once, and opens what came.
    fn poll_records(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        INPUT.with_borrow_mut(|records| {
            let room = room(records, into);
            let came = ready!(self.carrier.poll_read(cx, &mut records[..room]))?;
            Poll::Ready(self.take(&mut records[..came], into))
        })
    }

    fn take(&mut self, records: &mut [u8], into: &mut [u8]) -> io::Result<usize> {
        if records.is_empty() {
            self.ended = true;
            return Ok(0);
        }
        self.open(records, into)
    }

    /// Opens records into `into`, and keeps what it has no room for.
    fn open(&mut self, records: &mut [u8], into: &mut [u8]) -> io::Result<usize> {
        let (session, opened) = (&mut self.session, &mut self.opened);
        let mut read = 0;
        let mut text = |piece: &[u8]| {
            let here = piece.len().min(into.len() - read);
            into[read..read + here].copy_from_slice(&piece[..here]);
            opened.extend_from_slice(&piece[here..]);
            read += here;
        };
        let (done, sent) = OUTPUT.with_borrow_mut(|out| {
            out.clear();
            let done = session.open(records, &mut text, out);
            (done, send(&self.carrier, &mut self.unsent, out))
        });
        match done {
            Ok(ended) => {
                self.ended |= ended;
                sent.map(|()| read)
            }
            Err(fault) => {
                self.fault = Some(fault);
                Err(io::ErrorKind::InvalidData.into())
            }
        }
    }
}

/// Writing.
impl TlsSocket {
    /// Seals the start of what is to be written, and sends what the kernel takes of that.
    pub(crate) fn try_write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.unsent.is_empty() {
            let waited = std::mem::take(&mut self.unsent);
            send(&self.carrier, &mut self.unsent, &waited)?;
            if !self.unsent.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        let taken = OUTPUT.with_borrow_mut(|out| {
            out.clear();
            let taken = self.session.seal(slices, self.seal_max, out).map_err(|_| io::ErrorKind::InvalidData)?;
            send(&self.carrier, &mut self.unsent, out)?;
            Ok::<usize, io::Error>(taken)
        })?;
        self.seal_max = if self.unsent.is_empty() { SEALED_BYTES_MAX } else { SEALED_BYTES_MIN };
        if taken == 0 && slices.iter().any(|slice| !slice.is_empty()) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(taken)
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        ready!(self.poll_sent(cx))?;
        Poll::Ready(self.try_write(slices))
    }

    /// Sealed, and not with the kernel yet.
    #[inline]
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    /// Ready when the kernel has all that was sealed.
    pub(crate) fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let sent = ready!(self.carrier.poll_write(cx, &[IoSlice::new(&self.unsent)]))?;
            self.unsent.drain(..sent);
            if self.unsent.is_empty() {
                self.unsent = Vec::new();
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Says that nothing more comes from us, so that nobody takes what was sent for a part. Does not wait.
    pub(crate) fn say_end(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        OUTPUT.with_borrow_mut(|out| {
            out.clear();
            self.session.close(out);
            // Who does not take it is not there any more.
            let _ = send(&self.carrier, &mut self.unsent, out);
        });
    }

    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.say_end();
        ready!(self.poll_sent(cx))?;
        self.carrier.poll_shutdown(cx)
    }
}

/// How much is read for who has so much room: a record at least, in most cases.
fn room(records: &[u8], into: &[u8]) -> usize {
    into.len().clamp(RECORDS_USUAL_BYTES, records.len())
}

/// Sends what the kernel takes, behind what waits already; the rest waits.
fn send(carrier: &PlainSocket, unsent: &mut Vec<u8>, sealed: &[u8]) -> io::Result<()> {
    let mut rest = sealed;
    while unsent.is_empty() && !rest.is_empty() {
        match carrier.try_write(&[IoSlice::new(rest)]) {
            Ok(sent) => rest = &rest[sent..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    unsent.extend_from_slice(rest);
    Ok(())
}
