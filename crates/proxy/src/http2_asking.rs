//! The life of an HTTP/2 connection to an origin: bytes in, frames to the machine, what they bring to the streams' queues, and what these
//! have to say out again. The counterpart of `http2_serving`.
//!
//! It ends when the origin ends it or breaks a rule, when the origin takes nothing or is not there any more (`origin_liveness`), when nobody has used it for
//! `limits.origin_idle_timeout`, or when it takes no more streams and has none. Whatever is still on it then is lost with it, and each
//! fetch decides for itself.

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use message::Scheme;
use tokio::time::{Instant, Sleep};

use crate::clock::deadline_now_ms;
use crate::core::Core;
use crate::giving_way::give_way;
use crate::limits::ORIGIN_LEAVE_TIME_MAX;
use crate::origin::{Opening, OriginConnection, SharedConnection, SharedStream};
use crate::origin_liveness::{Liveness, OriginLiveness};
use crate::origin_streams::{OriginStreams, OriginTerms};
use crate::socket::Socket;

/// Reads of one turn: others have theirs, too.
const READS_PER_TURN_MAX: u32 = 16;

/// Makes of a fresh connection one that is shared, and serves it. Returns the stream of who opened it.
pub(crate) fn begin(core: &Rc<Core>, connection: OriginConnection, opening: Opening) -> SharedStream {
    let terms = {
        let limits = &core.site_ref().settings.limits;
        OriginTerms {
            response_head: limits.response_head,
            trailers: limits.chunked,
            streams_max: limits.origin_streams_max,
            scheme: if connection.stream.tls().is_some() { Scheme::Https } else { Scheme::Http },
        }
    };
    let streams = OriginStreams::new(terms, &core.shared.cache);
    let (stream, socket) = core.shared_connections.share(connection, opening, streams);
    let asking = AskingTask {
        core: Rc::clone(core),
        connection: Rc::clone(&stream.connection),
        socket,
        pending: Vec::new(),
        idle: None,
        stuck: None,
        liveness: None,
        garbled: None,
        is_over: false,
    };
    core.counters.origin_http2_connections.add(1);
    tokio::task::spawn_local(run(asking));
    stream
}

async fn run(mut asking: AskingTask) {
    poll_fn(|cx| asking.poll(cx)).await;
}

/// What the connection's task has.
struct AskingTask {
    core: Rc<Core>,
    connection: Rc<SharedConnection>,
    socket: Socket,
    /// Read, and no whole frame yet.
    pending: Vec<u8>,
    /// It lies idle, until then.
    idle: Option<Pin<Box<Sleep>>>,
    /// The origin takes nothing of what is there to be sent: for how long still?
    stuck: Option<Pin<Box<Sleep>>>,
    /// While it has requests.
    liveness: Option<OriginLiveness>,
    /// The rule that the origin has broken.
    garbled: Option<&'static str>,
    is_over: bool,
}

impl AskingTask {
    /// Reads and writes as far as the socket goes. Ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.connection.streams.queues.park(cx);
        let mut reads_left = READS_PER_TURN_MAX;
        loop {
            match self.poll_write(cx) {
                Poll::Ready(Err(())) => return Poll::Ready(()),
                Poll::Ready(Ok(())) if self.is_over => return Poll::Ready(()),
                Poll::Ready(Ok(())) | Poll::Pending => {}
            }
            if self.is_over || reads_left == 0 || !self.read(cx) {
                break;
            }
            reads_left -= 1;
        }
        if reads_left == 0 {
            give_way(cx);
        }
        self.rest(cx)
    }

    /// One read, and what comes of it. False: nothing is there.
    fn read(&mut self, cx: &mut Context<'_>) -> bool {
        let core = Rc::clone(&self.core);
        let mut scratch = core.scratch.borrow_mut();
        let had = self.pending.len();
        // What was left of a frame comes first.
        scratch[..had].copy_from_slice(&self.pending);
        match self.socket.poll_read(cx, &mut scratch[had..]) {
            Poll::Pending => false,
            Poll::Ready(Ok(0) | Err(_)) => {
                self.is_over = true;
                true
            }
            Poll::Ready(Ok(read)) => {
                self.connection.carried.received(&core.counters, read);
                self.pending.clear();
                self.take(&scratch[..had + read]);
                self.connection.heard();
                true
            }
        }
    }

    /// Hands bytes to the machine, and does what it says. What is no whole frame stays pending.
    fn take(&mut self, bytes: &[u8]) {
        let mut heads = self.core.http2_heads.borrow_mut();
        let at = match self.connection.streams.receive(bytes, &mut heads, deadline_now_ms()) {
            Ok(at) => at,
            Err(error) => {
                self.core.counters.origin_http2_failed.add(1);
                (self.garbled, self.is_over) = (Some(error.token), true);
                return;
            }
        };
        self.pending.extend_from_slice(&bytes[at..]);
        if self.pending.is_empty() {
            self.pending = Vec::new();
        }
    }

    /// Ready when all that may be said is with the socket.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        loop {
            let streams = &self.connection.streams;
            if streams.framed.borrow().is_empty() {
                streams.frame();
            }
            let mut framed = streams.framed.borrow_mut();
            let written = match framed.is_empty() {
                true => {
                    *framed = Vec::new();
                    self.socket.poll_sent(cx).map_ok(|()| 0)
                }
                false => self.socket.poll_write(cx, &[IoSlice::new(&framed)]),
            };
            match written {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(())),
                Poll::Ready(Ok(written)) => {
                    self.stuck = None;
                    if written == 0 {
                        return Poll::Ready(Ok(()));
                    }
                    self.connection.carried.sent(written);
                    framed.drain(..written);
                }
            }
        }
    }

    /// Nothing to read or to write: unless the time is up, wait.
    fn rest(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_unwritten = !self.connection.streams.framed.borrow().is_empty() || self.socket.has_unsent();
        if is_unwritten {
            let limit = match self.is_over {
                true => ORIGIN_LEAVE_TIME_MAX,
                false => self.core.site_ref().settings.limits.between_bytes_timeout,
            };
            let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
            if stuck.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
        }
        if !self.connection.is_idle() {
            self.no_more_idle();
            return self.poll_gone(cx);
        }
        self.liveness = None;
        if self.connection.is_retired() || self.connection.streams.takes_none() {
            return Poll::Ready(());
        }
        if self.idle.is_none() {
            self.connection.streams.queues.machine.borrow_mut().shrink();
            if !self.connection.lies_idle() {
                return Poll::Ready(());
            }
            let until = Instant::now() + Duration::from_millis(self.connection.idle_timeout_ms());
            self.idle = Some(Box::pin(tokio::time::sleep_until(until)));
        }
        match &mut self.idle {
            Some(idle) => idle.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }

    /// Ready when the origin is no longer there: it says nothing, and does not answer when it is asked.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let limit = self.core.site_ref().settings.limits.origin_ping_timeout;
        if limit.is_zero() {
            return Poll::Pending;
        }
        let liveness = self.liveness.get_or_insert_with(|| OriginLiveness::begin(limit));
        match liveness.poll(limit, self.connection.heard_ms(), cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Liveness::Unsure) => {
                self.connection.streams.queues.machine.borrow_mut().ping();
                // What was queued is written by the next turn.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(Liveness::Gone) => {
                self.core.counters.origin_http2_silent.add(1);
                Poll::Ready(())
            }
        }
    }

    fn no_more_idle(&mut self) {
        if self.idle.take().is_some() {
            self.connection.lies_idle_no_more();
        }
    }
}

/// Also when the core ends.
impl Drop for AskingTask {
    fn drop(&mut self) {
        self.core.shared_connections.remove(&self.connection);
        self.connection.streams.end_all(self.garbled);
        self.no_more_idle();
    }
}
