//! Bytes in, requests out: one client connection from its first byte to its last.
//!
//! A request whose answer is in the store is answered here, at once, over the borrowed head: receive, lookup, hit,
//! deliver and the first write without an await, a copy or an allocation. Everything else is copied into a
//! transaction. An idle connection holds no buffer; it borrows the core's.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use message::Version;
use wire::http2::PREFACE;
use wire::{Event, ReceivedRequest, Refusal, leading_blanks, read_request, unfolded};

use crate::accepted::Accepted;
use crate::access_log::CacheVerdict;
use crate::asker::Asker;
use crate::client_identity::ClientIdentity;
use crate::clock::{Moment, deadline_now_ms};
use crate::connection::{Connection, DRAIN_IDLE_MS};
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::downstream::Downstream;
use crate::giving_way::give_way;
use crate::http1_sending;
use crate::http2_serving;
use crate::linger;
use crate::marked_opening;
use crate::records::request_records;
use crate::records::session_records::{SessionEnd, SessionRecords};
use crate::request_body::UnreadBody;
use crate::request_source::{Opened, RequestSource};
use crate::send_outcome::End;
use crate::site::Site;
use crate::slots::{CloseReason, Phase};
use crate::tls_greeting;
use crate::transaction::{Step, Transaction, log, story, synthesis};

/// What the read loop came upon.
pub(crate) enum Turn {
    /// Go on in the transaction loop.
    Step(Box<Transaction>, Step),
    /// Answer with an error and close.
    Refuse(Refusal),
    /// No answer is owed.
    Close,
    /// Close, of our own accord: an answer is on its way, and requests may be.
    Linger,
}

/// Begins to serve a fresh connection.
pub(crate) fn spawn(core: &Rc<Core>, accepted: Accepted) {
    let (proxy_protocol, h2c) = (accepted.proxy_protocol, accepted.h2c);
    let Some(connection) = Connection::open(core, accepted) else { return };
    let serving = serve(connection, proxy_protocol, h2c);
    assert!(size_of_val(&serving) <= 288, "an idle connection has grown");
    tokio::task::spawn_local(serving);
}

/// The life of a connection, as small as it can be while it waits.
#[allow(
    clippy::manual_async_fn,
    reason = "an async fn keeps its arguments twice, and every idle connection pays for it"
)]
fn serve(mut connection: Connection, proxy_protocol: bool, h2c: bool) -> impl Future<Output = ()> {
    async move {
        if proxy_protocol && !Box::pin(crate::proxy_header::read(&mut connection)).await {
            return;
        }
        if connection.socket.tls().is_some() && !Box::pin(tls_greeting::run(&mut connection)).await {
            return;
        }
        if connection.speaks_http2()
            || (connection.accepts_h2c(h2c) && Box::pin(connection.has_prior_knowledge()).await)
        {
            return Box::pin(http2_serving::run(&mut connection)).await;
        }
        loop {
            match poll_fn(|cx| connection.poll_turn(cx)).await {
                Turn::Step(tx, step) => {
                    // Boxed, so that an idle connection does not carry the room of a transaction.
                    if !Box::pin(tell(&mut connection, tx, step)).await {
                        return;
                    }
                    connection.rest();
                }
                Turn::Refuse(refusal) => return Box::pin(refuse(&mut connection, refusal)).await,
                Turn::Close => return,
                Turn::Linger => return Box::pin(linger::close(&mut connection)).await,
            }
        }
    }
}

/// The story of a request, when it is known who asks. True when the client may ask again.
async fn tell(connection: &mut Connection, tx: Box<Transaction>, step: Step) -> bool {
    if connection.is_early() && !tls_greeting::establish(connection).await {
        return false;
    }
    story::run(tx, Downstream::Http1(connection), step).await
}

impl Connection {
    /// Reads and answers until something needs more than this turn.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        let core = Rc::clone(&self.core);
        let mut hits_left = core.site_ref().settings.limits.pipelined_hits_max;
        loop {
            if hits_left == 0 {
                // Others have their turn first.
                give_way(cx);
                return Poll::Pending;
            }
            if self.pending.len() > self.looked_at as usize {
                // What came behind the last request, or the rest of a pipeline longer than one turn.
                core.counters.requests_pipelined.add(1);
                if let Some(turn) = self.take_pending(&core, &mut hits_left) {
                    return Poll::Ready(turn);
                }
                continue;
            }
            let read = if self.pending.is_empty() {
                self.poll_scratch(&core, cx, &mut hits_left)
            } else {
                self.poll_more(&core, cx, &mut hits_left)
            };
            match read {
                Poll::Ready(Some(turn)) => return Poll::Ready(turn),
                Poll::Ready(None) => {}
                Poll::Pending => return self.park(cx),
            }
        }
    }

    /// Nothing to read: unless the time is up, wait.
    fn park(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        match self.slot.close_reason() {
            CloseReason::Late if self.slot.phase.get() == Phase::Reading && !self.is_varnishd_s() => {
                return Poll::Ready(Turn::Refuse(Refusal {
                    status: 408,
                    token: "request-head-timeout",
                    limit: Some("limits.request_head_timeout"),
                }));
            }
            close_reason @ (CloseReason::Late | CloseReason::Now) => {
                self.closes(if close_reason == CloseReason::Now { SessionEnd::Response } else { SessionEnd::Timeout });
                return Poll::Ready(Turn::Close);
            }
            CloseReason::Drain if self.slot.phase.get() == Phase::Waiting => {
                self.slot.set_deadline(self.slot.deadline().min(deadline_now_ms() + DRAIN_IDLE_MS));
            }
            // Only an answer is cut for memory, and this one has gone.
            CloseReason::Drain | CloseReason::Memory | CloseReason::None => {}
        }
        self.slot.park(cx.waker());
        Poll::Pending
    }

    /// Reads into the core's buffer and answers in place.
    fn poll_scratch(&mut self, core: &Rc<Core>, cx: &mut Context<'_>, hits_left: &mut u32) -> Poll<Option<Turn>> {
        let mut scratch = core.scratch.borrow_mut();
        let read = match self.socket.poll_read(cx, &mut scratch) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Some(Turn::Close)),
            Poll::Ready(Ok(read)) => read,
        };
        core.counters.bytes_in.add(read as u64);
        let bytes = &scratch[..read];
        let (consumed, turn) = self.take_requests(core, bytes, hits_left);
        if consumed < read {
            self.pending.extend_from_slice(&bytes[consumed..]);
            self.looked_at = if turn.is_some() || *hits_left == 0 { 0 } else { self.pending.len() as u32 };
        }
        drop(scratch);
        Poll::Ready(self.settle(core, turn))
    }

    /// A partial head is there: reads behind it.
    fn poll_more(&mut self, core: &Rc<Core>, cx: &mut Context<'_>, hits_left: &mut u32) -> Poll<Option<Turn>> {
        let limits = core.site_ref().settings.limits.request_head;
        let had = self.pending.len();
        let room = next_room(had, limits.head_bytes_max);
        self.pending.resize(had + room, 0);
        let read = self.socket.poll_read(cx, &mut self.pending[had..]);
        let got = match &read {
            Poll::Ready(Ok(got)) => *got,
            _ => 0,
        };
        self.pending.truncate(had + got);
        match read {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Some(Turn::Close)),
            Poll::Ready(Ok(_)) => {}
        }
        core.counters.bytes_in.add(got as u64);
        if !wire::may_end_now(&self.pending, had, &limits) {
            self.charge(core, self.pending.capacity());
            return Poll::Ready(None);
        }
        self.looked_at = 0;
        Poll::Ready(self.take_pending(core, hits_left))
    }

    /// Answers what has been received before.
    fn take_pending(&mut self, core: &Rc<Core>, hits_left: &mut u32) -> Option<Turn> {
        let mut bytes = std::mem::take(&mut self.pending);
        let (consumed, turn) = self.take_requests(core, &bytes, hits_left);
        bytes.drain(..consumed);
        if !bytes.is_empty() {
            self.looked_at = if turn.is_some() || *hits_left == 0 { 0 } else { bytes.len() as u32 };
            self.pending = bytes;
        } else {
            self.looked_at = 0;
        }
        self.settle(core, turn)
    }

    /// After a read: the account of partial heads, and the phase.
    fn settle(&mut self, core: &Core, turn: Option<Turn>) -> Option<Turn> {
        if self.pending.is_empty() {
            if self.charged_bytes > 0 {
                self.charge(core, 0);
            }
            return turn;
        }
        if turn.is_some() {
            return turn;
        }
        if self.slot.phase.get() == Phase::Waiting {
            // Absolute: later bytes of the same head do not move it.
            let limit_ms = core.site_ref().settings.limits.request_head_timeout.as_millis() as u64;
            self.slot.phase.set(Phase::Reading);
            self.slot.set_deadline(deadline_now_ms() + limit_ms);
        }
        self.charge(core, self.pending.capacity());
        let bytes_max = core.site_ref().settings.limits.partial_heads_bytes_max;
        if core.shared.partial_heads_bytes.load(Ordering::Relaxed) > core.shared.memory.buffers_max(bytes_max) {
            return Some(Turn::Refuse(Refusal {
                status: 503,
                token: "partial-heads-too-many",
                limit: Some("limits.partial_heads_bytes_max"),
            }));
        }
        None
    }

    /// Answers the requests at the start of `bytes`. Returns how many bytes are done with.
    fn take_requests(&mut self, core: &Rc<Core>, bytes: &[u8], hits_left: &mut u32) -> (usize, Option<Turn>) {
        let (mut at, mut is_first, scheme) = (0, true, self.scheme());
        while at < bytes.len() && *hits_left > 0 {
            let limits = core.site_ref().settings.limits.request_head;
            if limits.lenient {
                // Who sends nothing else is idle.
                at += leading_blanks(&bytes[at..]);
                if at == bytes.len() {
                    break;
                }
            }
            if !std::mem::take(&mut is_first) {
                core.counters.requests_pipelined.add(1);
            }
            let moment = Moment::now();
            let mut spans = core.spans.borrow_mut();
            match read_request(&bytes[at..], &mut spans, &limits, scheme) {
                Ok(None) => break,
                Err(_) if self.is_varnishd_s() && begins_http2(&bytes[at..]) => {
                    if bytes.len() - at < PREFACE.len() {
                        break;
                    }
                    // As Varnish, which says nothing to who speaks HTTP/2 where it is switched off.
                    self.closes(SessionEnd::Http2Refused);
                    return (at, Some(Turn::Close));
                }
                Err(refusal) => match unfolded(&bytes[at..]).filter(|_| limits.lenient) {
                    Some(text) => match self.take_unfolded(core, &text, moment) {
                        Ok(None) => break,
                        Ok(Some((head_bytes, turn))) => {
                            at += head_bytes;
                            match turn {
                                None => *hits_left -= 1,
                                Some(turn) => return (at, Some(turn)),
                            }
                        }
                        Err(refusal) => return (at, Some(Turn::Refuse(refusal))),
                    },
                    None => return (at, Some(Turn::Refuse(refusal))),
                },
                Ok(Some(received)) => {
                    at += received.head_bytes;
                    match self.take_request(core, received, moment) {
                        None => *hits_left -= 1,
                        Some(turn) => return (at, Some(turn)),
                    }
                }
            }
        }
        (at, None)
    }

    /// A request with lines that went on in the next one; and how many bytes its head had. `None`: its end has not come.
    #[cold]
    fn take_unfolded(
        &mut self,
        core: &Rc<Core>,
        text: &[u8],
        moment: Moment,
    ) -> Result<Option<(usize, Option<Turn>)>, Refusal> {
        let (mut spans, limits) = (Vec::new(), core.site_ref().settings.limits.request_head);
        let Some(received) = read_request(text, &mut spans, &limits, self.scheme())? else { return Ok(None) };
        Ok(Some((received.head_bytes, self.take_request(core, received, moment))))
    }

    /// One request: answered (`None`), or what is to be done about it.
    #[inline]
    fn take_request(&mut self, core: &Rc<Core>, received: ReceivedRequest<'_>, moment: Moment) -> Option<Turn> {
        self.requests_count += 1;
        match marked_opening::open(core, self, received, moment) {
            Opened::Begun(tx, step) => {
                self.begins_transaction();
                Some(Turn::Step(tx, step))
            }
            Opened::Answered { persistent: true, .. } => {
                let idle_ms = self.idle_ms(&core.site_ref().settings.limits);
                self.slot.set_idle(deadline_now_ms() + idle_ms);
                None
            }
            Opened::Answered { client_closes: true, .. } => {
                self.closes(SessionEnd::Request);
                Some(Turn::Close)
            }
            // The client did not say that nothing more comes: it may be on its way.
            Opened::Answered { .. } => {
                self.closes(SessionEnd::Response);
                Some(Turn::Linger)
            }
        }
    }
}

impl RequestSource for Connection {
    type Client = Self;

    #[inline]
    fn asker(&self) -> Asker<'_> {
        self.asker()
    }

    fn session(&self) -> Option<&SessionRecords> {
        self.session()
    }

    #[inline]
    fn begins_exchange(&mut self, core: &Core, site: &Site, received: &ReceivedRequest<'_>) -> bool {
        self.unread = UnreadBody::of(received.body, &site.settings.limits.chunked);
        self.exchange(if self.unread.is_some() { Event::HeadRead } else { Event::BodilessHeadRead });
        received.persistent
            && !core.draining()
            && self.requests_count < site.settings.limits.requests_per_connection_max
    }

    #[inline]
    fn at_once(&mut self) -> Option<&mut Self> {
        self.unread.is_none().then_some(self)
    }

    /// The connection's are asked for once.
    fn addresses(&mut self, client: &ClientIdentity) -> Rc<ConnectionAddresses> {
        let addresses = self.addresses.take().unwrap_or_else(|| Rc::new(self.own_addresses()));
        self.addresses = Some(Rc::clone(&addresses));
        if client.ip == client.peer.ip() {
            return addresses;
        }
        Rc::new(ConnectionAddresses { client: SocketAddr::new(client.ip, 0), ..ConnectionAddresses::clone(&addresses) })
    }
}

/// What is no request: nothing else begins like that.
fn begins_http2(bytes: &[u8]) -> bool {
    bytes.iter().zip(PREFACE).all(|(came, known)| came == known)
}

/// How much to read behind a partial head: the buffer grows 1, 4, 16, 32 KiB, never past the limit.
fn next_room(had: usize, head_bytes_max: usize) -> usize {
    const SIZES: [usize; 4] = [1 << 10, 4 << 10, 16 << 10, 32 << 10];
    let size = SIZES.into_iter().find(|&size| size > had).unwrap_or(had + (32 << 10));
    size.min(head_bytes_max.max(had + 1)) - had
}

/// Answers bytes that are no acceptable request: an error, a log line, and the end of the connection.
async fn refuse(connection: &mut Connection, refusal: Refusal) {
    let core = Rc::clone(&connection.core);
    core.counters.answered(CacheVerdict::Refused);
    connection.slot.phase.set(Phase::Writing);
    connection.exchange(Event::ReadBroken);
    connection.exchange(Event::AnswerBegun);
    let (outgoing, note) = synthesis::answer_refusal(&core, connection.peer, &connection.pending, &refusal);
    // Who is refused asks anew at once: that one comes later.
    let records =
        request_records::begin_refused(&core, (connection.session(), Version::Http11), &refusal, &connection.pending);
    let sent = http1_sending::send(connection, outgoing, Version::Http11, false).await;
    connection.exchange(if sent.end == End::Sent { Event::AnswerEnded } else { Event::AnswerCut });
    let tls = connection.asker().tls_facts();
    let answered = (Version::Http11, sent.body_bytes);
    log::refused(&core, (connection.peer, tls.as_deref()), (&refusal, note.as_ref()), answered);
    if let Some(records) = records {
        connection.closes(SessionEnd::of_refusal(&refusal));
        request_records::end_refused(&records, &sent);
    }
    if sent.end == End::Sent {
        linger::close(connection).await;
    }
}
