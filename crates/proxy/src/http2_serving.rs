//! The life of an HTTP/2 connection: bytes in, frames to the machine, requests to tasks of their own, and what these have to say out
//! again, many answers in one write. An idle connection holds its machine and no buffer.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use message::{Fields, Version};
use wire::http2::{ConnectionEvent, Http2Connection, Http2Options, Http2Request, StreamId};
use wire::limits::{FRAME_PAYLOAD_BYTES_MIN, UNCHECKED_FRAME_PAYLOAD_BYTES_MIN};
use wire::{ReceivedRequest, Refusal};

use crate::access_log::CacheVerdict;
use crate::clock::{Moment, deadline_now_ms};
use crate::connection::{Connection, DRAIN_IDLE_MS};
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::downstream::Downstream;
use crate::downstream::http2_stream::Http2Stream;
use crate::extended_connect;
use crate::giving_way::give_way;
use crate::http2_outbox::Http2Outbox;
use crate::http2_streams::Http2Streams;
use crate::instant_stream::InstantStream;
use crate::linger;
use crate::marked_opening;
use crate::peer::Peer;
use crate::records::request_records;
use crate::records::session_records::SessionEnd;
use crate::records::task_records::TaskRecords;
use crate::request_source::Opened;
use crate::settings::Settings;
use crate::slots::{CloseReason, Phase};
use crate::tls_facts::TlsFacts;
use crate::transaction::{Step, Transaction, log, story, synthesis};
use crate::unsent::{RestOfBody, Unsent};

/// Reads of one turn: others have theirs, too.
const READS_PER_TURN_MAX: u32 = 16;
/// Requests that the client takes back in one turn. Each cost more than it cost the client (CVE-2023-44487), and in the connection's
/// budget of them there are enough to keep everybody else waiting if they are worked off at once.
const RESETS_PER_TURN_MAX: u32 = 16;

/// What the connection's task has beside the socket.
struct Serving {
    core: Rc<Core>,
    streams: Rc<Http2Streams>,
    addresses: Rc<ConnectionAddresses>,
    outbox: Http2Outbox,
    /// We are to leave; since when the client knows.
    leaving_since_ms: Option<u64>,
    /// The machine takes nothing more.
    has_failed: bool,
    is_over: bool,
    /// Of this turn. With none left, what was read waits in `pending` for the next one.
    resets_left: u32,
    /// Since when the client has said that it leaves.
    client_leaves_since_ms: Option<u64>,
    /// Until when the handshake of TLS must be over, where something was asked before; and what waits for that.
    early_until_ms: u64,
    early: Vec<(Box<Transaction>, Step, Http2Stream)>,
}

/// Serves a connection of which nothing has been read but what is pending.
pub(crate) async fn run(connection: &mut Connection) {
    let core = Rc::clone(&connection.core);
    let machine = Http2Connection::of_client(&options(&core.site_ref().settings, connection));
    // The connection's own: a program that says how long it may be idle says so there.
    let addresses = connection.addresses.take().unwrap_or_else(|| Rc::new(connection.own_addresses()));
    connection.addresses = Some(Rc::clone(&addresses));
    let streams = Rc::new(Http2Streams::new(machine, &core.shared.cache, connection.asker().is_secure()));
    let mut serving = Serving {
        core: Rc::clone(&core),
        streams: Rc::clone(&streams),
        addresses,
        outbox: Http2Outbox::new(connection.session().is_some()),
        leaving_since_ms: None,
        has_failed: false,
        is_over: false,
        resets_left: RESETS_PER_TURN_MAX,
        client_leaves_since_ms: None,
        early_until_ms: deadline_now_ms() + core.site_ref().settings.limits.tls_handshake_timeout.as_millis() as u64,
        early: Vec::new(),
    };
    core.counters.http2_connections.add(1);
    let early = std::mem::take(&mut connection.pending);
    serving.outbox.record(connection, |frames, session| frames.came(session, &early));
    serving.take(connection, &early);
    poll_fn(|cx| serving.poll(connection, cx)).await;
    streams.end_all();
    serving.outbox.record(connection, |frames, session| session.account(frames.carried()));
    linger::close(connection).await;
}

fn options<'l>(settings: &'l Settings, connection: &Connection) -> Http2Options<'l> {
    let limits = &settings.limits;
    Http2Options {
        head_limits: &limits.request_head,
        trailer_limits: &limits.chunked,
        scheme: connection.scheme(),
        believes_scheme: connection.is_led_by_proxy(),
        streams_max: limits.http2_streams_max,
        // In place of varnishd, and of a forward proxy, what pipes and tunnels carry is HTTP/1.
        extended_connect: !connection.is_varnishd_s() && !connection.asker().asks_proxy(),
        peer_frame_bytes_min: match settings.http2_short_frames {
            true => UNCHECKED_FRAME_PAYLOAD_BYTES_MIN,
            false => FRAME_PAYLOAD_BYTES_MIN,
        },
    }
}

/// What stands behind a head.
#[derive(Clone, Copy)]
enum Follows {
    Body {
        is_whole: bool,
    },
    /// Bytes that flow freely, once the tunnel is there.
    Tunnel,
}

impl Serving {
    /// Reads and writes as far as the socket goes. Ready when the connection is over.
    fn poll(&mut self, connection: &mut Connection, cx: &mut Context<'_>) -> Poll<()> {
        self.streams.park(cx);
        let mut reads_left = READS_PER_TURN_MAX;
        self.begin_turn(connection);
        loop {
            let is_written = match self.poll_write(connection, cx) {
                Poll::Ready(Err(())) => return Poll::Ready(()),
                Poll::Ready(Ok(())) => true,
                Poll::Pending => false,
            };
            if is_written && (self.is_over || self.streams.machine.borrow().has_left()) {
                return Poll::Ready(());
            }
            // Who does not take what is said is not listened to, beyond what is there already.
            if self.is_over || reads_left == 0 || self.resets_left == 0 || !self.read(connection, cx) {
                break;
            }
            reads_left -= 1;
        }
        if reads_left == 0 || self.resets_left == 0 {
            give_way(cx);
        }
        if !self.early.is_empty() && !connection.is_early() {
            self.early.drain(..).for_each(|(tx, step, stream)| tell(tx, step, stream));
        }
        self.rest(connection, cx)
    }

    /// What the last turn left is taken before anything is read.
    fn begin_turn(&mut self, connection: &mut Connection) {
        if std::mem::replace(&mut self.resets_left, RESETS_PER_TURN_MAX) == 0 {
            let left = std::mem::take(&mut connection.pending);
            self.take(connection, &left);
        }
    }

    /// One read, and what comes of it. False: nothing is there.
    fn read(&mut self, connection: &mut Connection, cx: &mut Context<'_>) -> bool {
        let core = Rc::clone(&self.core);
        let mut scratch = core.scratch.borrow_mut();
        let had = connection.pending.len();
        // What was left of a frame comes first.
        scratch[..had].copy_from_slice(&connection.pending);
        match connection.socket.poll_read(cx, &mut scratch[had..]) {
            Poll::Pending => false,
            Poll::Ready(Ok(0) | Err(_)) => {
                self.is_over = true;
                true
            }
            Poll::Ready(Ok(read)) => {
                core.counters.bytes_in.add(read as u64);
                connection.pending.clear();
                self.outbox.record(connection, |frames, session| frames.came(session, &scratch[had..had + read]));
                self.take(connection, &scratch[..had + read]);
                true
            }
        }
    }

    /// Hands bytes to the machine, and does what it says. What is no whole frame stays pending.
    fn take(&mut self, connection: &mut Connection, bytes: &[u8]) {
        if self.has_failed {
            return;
        }
        let core = Rc::clone(&self.core);
        let site = core.site();
        let options = options(&site.settings, connection);
        let mut heads = core.http2_heads.borrow_mut();
        let (mut at, now_ms) = (0, deadline_now_ms());
        loop {
            let received = self.streams.machine.borrow_mut().receive(&bytes[at..], &mut heads, &options, now_ms);
            let received = match received {
                Ok(received) => received,
                Err(error) => {
                    core.counters.http2_failed.add(1);
                    if let Some(session) = connection.session() {
                        session.broke(&error);
                    }
                    (self.has_failed, self.is_over) = (true, true);
                    return;
                }
            };
            let from = at;
            at += received.consumed;
            match received.event {
                None => break,
                Some(ConnectionEvent::Data { stream, range, is_last }) => {
                    self.streams.take_data(stream, &bytes[from + range.start..from + range.end], is_last);
                }
                Some(event) => self.take_event(connection, event),
            }
            if self.resets_left == 0 {
                break;
            }
        }
        connection.pending.extend_from_slice(&bytes[at..]);
        if connection.pending.is_empty() {
            connection.pending = Vec::new();
        }
    }

    fn take_event(&mut self, connection: &mut Connection, event: ConnectionEvent<'_>) {
        match event {
            ConnectionEvent::Request { stream, head, is_whole } => {
                connection.requests_count += 1;
                let limits_max = self.core.site_ref().settings.limits.requests_per_connection_max;
                if connection.requests_count >= limits_max {
                    self.leave();
                }
                self.open(connection, stream, &head, is_whole);
            }
            ConnectionEvent::Refused { stream, refusal, is_whole } => {
                self.refuse(connection, stream, refusal, is_whole)
            }
            ConnectionEvent::Trailers { stream, fields } => {
                let mut trailers = Fields::default();
                fields.iter().for_each(|field| trailers.push_field(&field));
                self.streams.take_trailers(stream, trailers);
            }
            ConnectionEvent::StreamEnded { stream, token, .. } => {
                self.resets_left = self.resets_left.saturating_sub(1);
                if let Some(session) = connection.session() {
                    session.debug(format_args!("H2: stream {}: {token}", stream.0));
                }
                match self.streams.take_reset(stream) {
                    true => self.core.counters.http2_resets.add(1),
                    false => self.malformed(connection, token),
                }
            }
            // RFC 9113 §6.8: what it asks for is answered, also behind that.
            ConnectionEvent::GoneAway { .. } => {
                self.client_leaves_since_ms.get_or_insert(deadline_now_ms());
            }
            // What may be written now is looked at after every read.
            ConnectionEvent::WindowOpened { .. } => {}
            ConnectionEvent::Response { .. } | ConnectionEvent::Data { .. } => {}
        }
    }

    /// A request is answered at once, or becomes a task of its own.
    fn open(&mut self, connection: &mut Connection, id: StreamId, head: &Http2Request<'_>, is_whole: bool) {
        match head.protocol.map(|protocol| extended_connect::upgrade_fields(&head.received.request, protocol)) {
            None => self.begin(connection, id, head.received.clone(), Follows::Body { is_whole }),
            Some(Ok(fields)) => {
                let upgrade = extended_connect::as_upgrade(&head.received, &fields);
                self.begin(connection, id, upgrade, Follows::Tunnel);
            }
            Some(Err(refusal)) => self.refuse(connection, id, refusal, is_whole),
        }
    }

    fn begin(&mut self, connection: &mut Connection, id: StreamId, received: ReceivedRequest<'_>, follows: Follows) {
        let core = Rc::clone(&self.core);
        let is_whole = matches!(follows, Follows::Body { is_whole: true });
        let mut stream = InstantStream {
            connection,
            streams: &self.streams,
            outbox: &mut self.outbox,
            addresses: &self.addresses,
            id,
            is_whole,
        };
        let opened = marked_opening::open(&core, &mut stream, received, Moment::now());
        connection.begins_transaction();
        let Opened::Begun(tx, step) = opened else { return };
        self.streams.open(id, is_whole);
        let stream = match follows {
            Follows::Body { is_whole } => Http2Stream::new(&core, &self.streams, &connection.slot, id, is_whole),
            Follows::Tunnel => Http2Stream::for_tunnel(&core, &self.streams, &connection.slot, id),
        };
        match connection.is_early() {
            true => self.early.push((tx, step, stream)),
            false => tell(tx, step, stream),
        }
    }

    /// What was no request: its stream is reset already.
    fn malformed(&self, connection: &Connection, token: &'static str) {
        let (core, refusal) = (&self.core, Refusal { status: 400, token, limit: None });
        core.counters.answered(CacheVerdict::Refused);
        let tls = connection.asker().tls_facts();
        log::refused(core, (connection.peer, tls.as_deref()), (&refusal, None), (Version::Http2, 0));
        request_records::malformed(core, connection.session(), &refusal);
    }

    fn refuse(&self, connection: &Connection, id: StreamId, refusal: Refusal, is_whole: bool) {
        let (core, asker) = (Rc::clone(&self.core), connection.asker());
        let from = (asker.peer, asker.tls_facts());
        let records = request_records::begin_refused(&core, (connection.session(), Version::Http2), &refusal, &[]);
        self.streams.open(id, is_whole);
        let stream = Http2Stream::new(&core, &self.streams, &connection.slot, id, is_whole);
        connection.begins_transaction();
        tokio::task::spawn_local(answer_refusal(core, from, stream, refusal, records));
    }

    /// The client is told that this connection takes no more requests for long.
    fn leave(&mut self) {
        if self.leaving_since_ms.is_none() {
            self.leaving_since_ms = Some(deadline_now_ms());
            self.streams.machine.borrow_mut().announce_leaving();
        }
    }

    /// Ready when all that may be said is with the socket.
    fn poll_write(&mut self, connection: &mut Connection, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        loop {
            if self.outbox.framed.is_empty() {
                self.streams.frame(&mut self.outbox.framed);
            }
            if self.outbox.framed.is_empty() {
                self.outbox.framed = Vec::new();
                return connection.socket.poll_sent(cx).map_err(|_| ());
            }
            ready!(self.outbox.poll_write(connection, cx))?;
            if !self.streams.is_empty() {
                // The socket has taken something: its time begins anew.
                connection.slot.set_deadline(u64::MAX);
            }
        }
    }

    /// Nothing to read or to write: unless the time is up, wait.
    fn rest(&mut self, connection: &mut Connection, cx: &mut Context<'_>) -> Poll<()> {
        let slot = Rc::clone(&connection.slot);
        let (now_ms, is_idle) = (deadline_now_ms(), self.streams.is_empty());
        if is_idle && slot.phase.get() == Phase::Writing {
            self.streams.machine.borrow_mut().shrink();
            slot.set_idle(now_ms + connection.idle_ms(&self.core.site_ref().settings.limits));
        }
        self.wait_for_client(connection, now_ms);
        if connection.is_early() {
            if now_ms >= self.early_until_ms {
                return Poll::Ready(());
            }
            if slot.deadline() > self.early_until_ms {
                slot.set_deadline(self.early_until_ms);
            }
        }
        if let Some(since_ms) = self.client_leaves_since_ms.filter(|_| is_idle && self.outbox.framed.is_empty()) {
            if now_ms >= since_ms + DRAIN_IDLE_MS {
                return Poll::Ready(());
            }
            slot.set_deadline(slot.deadline().min(since_ms + DRAIN_IDLE_MS));
        }
        match slot.close_reason() {
            CloseReason::Now | CloseReason::Memory => return Poll::Ready(()),
            CloseReason::Late if is_idle => {
                connection.closes(SessionEnd::Timeout);
                return self.say_last(connection, cx);
            }
            CloseReason::Drain => self.leave(),
            CloseReason::Late => return Poll::Ready(()),
            CloseReason::None => {}
        }
        if let Some(since_ms) = self.leaving_since_ms {
            if now_ms >= since_ms + DRAIN_IDLE_MS {
                self.streams.machine.borrow_mut().leave();
            } else if is_idle {
                slot.set_deadline(slot.deadline().min(since_ms + DRAIN_IDLE_MS));
            }
            let _ = self.poll_write(connection, cx);
            if self.streams.machine.borrow().has_left() {
                return Poll::Ready(());
            }
        }
        slot.park(cx.waker());
        Poll::Pending
    }

    /// Its streams have limits of their own; these are for a client that takes nothing at all.
    fn wait_for_client(&self, connection: &Connection, now_ms: u64) {
        let (slot, framed) = (&connection.slot, &self.outbox.framed);
        self.streams.set_framed(framed.capacity());
        if framed.is_empty() && !connection.socket.has_unsent() {
            return slot.waits_no_more();
        }
        if slot.deadline() == u64::MAX {
            slot.set_deadline(now_ms + self.core.site_ref().settings.limits.send_timeout.as_millis() as u64);
        }
        slot.waits_for_client(|before| {
            let kept_bytes = framed.capacity() + connection.socket.unsent_bytes();
            Unsent::new(before, (self.outbox.written_bytes(), kept_bytes), RestOfBody::Queued, now_ms)
        });
    }

    /// Leaves, and does not wait until the client has heard it.
    fn say_last(&mut self, connection: &mut Connection, cx: &mut Context<'_>) -> Poll<()> {
        self.streams.machine.borrow_mut().leave();
        let _ = self.poll_write(connection, cx);
        Poll::Ready(())
    }
}

/// Begins the story of a stream, in a task of its own.
fn tell(tx: Box<Transaction>, step: Step, mut stream: Http2Stream) {
    tokio::task::spawn_local(async move {
        Box::pin(story::run(tx, Downstream::Http2(&mut stream), step)).await;
    });
}

/// Answers what was read and is refused: a request over a limit.
async fn answer_refusal(
    core: Rc<Core>,
    (peer, tls): (Peer, Option<Arc<TlsFacts>>),
    mut stream: Http2Stream,
    refusal: Refusal,
    records: Option<Rc<TaskRecords>>,
) {
    core.counters.answered(CacheVerdict::Refused);
    let (outgoing, note) = synthesis::answer_refusal(&core, peer, &[], &refusal);
    let sent = stream.send(outgoing).await;
    log::refused(&core, (peer, tls.as_deref()), (&refusal, note.as_ref()), (Version::Http2, sent.body_bytes));
    if let Some(records) = records {
        request_records::end_refused(&records, &sent);
    }
}
