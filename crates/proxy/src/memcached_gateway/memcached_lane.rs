//! A connection to a memcached that carries the commands of one core, pipelined: what a turn of the core's loop asks
//! goes out in one write, and replies come back in the order of the commands.
//!
//! A lane ends as a whole. A reply that is no reply, a server that says nothing in time or an end in the middle: what
//! could still come would be somebody else's answer, so every command on the lane fails with it, and no byte that
//! arrives later is read. A command that was not sent, and a get, may be asked again on another lane by whoever waits.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use wire::memcached::{Asked, Blame, Command, Progress, Reply, ReplyFault, StoreVerb, read_reply};

use crate::clock::deadline_now_ms;
use crate::limits::{
    MEMCACHED_IDLE_TIMEOUT, MEMCACHED_LANE_QUEUE_BYTES_MAX, MEMCACHED_LANE_WAITING_MAX, MEMCACHED_LANE_WAITING_USUAL,
};
use crate::memcached_gateway::gateway_call::{Call, Failure, FailureKind, Got};
use crate::memcached_gateway::gateway_settings::MemcachedAddress;
use crate::memcached_gateway::memcached_server::Server;
use crate::origin::{OriginErrorKind, OriginStream, Place, dial};
use crate::worker::Core;

/// What is read at once, and what a lane's buffer has at least.
const READ_BYTES: usize = 16 << 10;
/// For a value that does not fit: at most doubled with each read, so that what is only announced takes no room.
const READ_BYTES_MAX: usize = 1 << 20;
/// A larger buffer of commands is given back when it is empty.
const KEPT_QUEUE_BYTES_MAX: usize = 256 << 10;

pub(crate) struct Lane {
    pub(crate) server: Arc<Server>,
    queue: RefCell<Queue>,
    waker: RefCell<Option<Waker>>,
    is_closed: Cell<bool>,
}

/// What is to be sent, and who waits for what.
#[derive(Default)]
struct Queue {
    out: Vec<u8>,
    /// Of `out`, what is with the kernel.
    out_sent: usize,
    /// Of all that ever went out, what is with the kernel; a command is sent in part when it began before this.
    sent_bytes: u64,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    call: Arc<Call>,
    /// Where the command begins among all bytes of the lane.
    begins_at: u64,
}

impl Lane {
    /// Opens a connection; commands may be pushed at once.
    pub(crate) fn open(core: &Rc<Core>, server: &Arc<Server>) -> Rc<Lane> {
        let lane = Rc::new(Lane {
            server: Arc::clone(server),
            queue: RefCell::default(),
            waker: RefCell::default(),
            is_closed: Cell::new(false),
        });
        tokio::task::spawn_local(run(Rc::clone(&lane), Rc::clone(core)));
        lane
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    pub(crate) fn waiting_count(&self) -> usize {
        self.queue.borrow().waiting.len()
    }

    /// Is there so little on it that another lane would bring nothing?
    pub(crate) fn has_room(&self) -> bool {
        let queue = self.queue.borrow();
        queue.waiting.len() < MEMCACHED_LANE_WAITING_USUAL && queue.out.len() < MEMCACHED_LANE_QUEUE_BYTES_MAX / 4
    }

    pub(crate) fn is_full(&self) -> bool {
        let queue = self.queue.borrow();
        queue.waiting.len() >= MEMCACHED_LANE_WAITING_MAX || queue.out.len() >= MEMCACHED_LANE_QUEUE_BYTES_MAX
    }

    /// Sends a command with the next turn of the loop.
    pub(crate) fn push(&self, call: Arc<Call>, command: &Command<'_>) {
        let mut queue = self.queue.borrow_mut();
        let begins_at = queue.sent_bytes + (queue.out.len() - queue.out_sent) as u64;
        command.write(&mut queue.out);
        queue.waiting.push_back(Waiting { call, begins_at });
        drop(queue);
        // Taken, so that a turn's other commands wake nobody.
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Everything on it fails.
    fn close(&self, core: &Core, kind: FailureKind) {
        self.is_closed.set(true);
        let Queue { waiting, sent_bytes, .. } = std::mem::take(&mut *self.queue.borrow_mut());
        if waiting.is_empty() && kind == FailureKind::Lost {
            // An idle connection that the server closed.
            return;
        }
        let now_ms = deadline_now_ms();
        let counted = match kind {
            FailureKind::Timeout => waiting.iter().filter(|waiting| waiting.call.deadline_ms <= now_ms).count(),
            FailureKind::Fault(_) => 1,
            _ => waiting.len().max(1),
        };
        core.counters.memcached_errors.add(counted as u64);
        if self.server.failed(u32::try_from(counted).unwrap_or(u32::MAX), now_ms) {
            core.counters.memcached_ejections.add(1);
        }
        for (at, Waiting { call, begins_at }) in waiting.into_iter().enumerate() {
            let kind = match kind {
                // Others had time left, or would have been answered well.
                FailureKind::Timeout if call.deadline_ms > now_ms => FailureKind::Lost,
                FailureKind::Fault(_) if at > 0 => FailureKind::Lost,
                kind => kind,
            };
            self.settle(&call, Err(Failure { kind, unsent: begins_at >= sent_bytes }));
        }
    }

    fn settle(&self, call: &Arc<Call>, outcome: Result<Got, Failure>) {
        let flights = &self.server.flights;
        match (call.is_read, call.is_flush) {
            (true, _) => flights.leave(call),
            (false, true) => flights.forget_all(),
            (false, false) => flights.forget(&call.key),
        }
        call.end(outcome);
    }
}

async fn run(lane: Rc<Lane>, core: Rc<Core>) {
    let mut stream = match connect(&lane.server).await {
        Ok(stream) => stream,
        Err(kind) => return lane.close(&core, kind),
    };
    core.counters.memcached_connections_opened.add(1);
    let mut input = BytesMut::with_capacity(READ_BYTES);
    let mut alarm = Alarm::default();
    let ended = poll_fn(|cx| lane.poll(&core, &mut stream, &mut input, &mut alarm, cx)).await;
    drop(stream);
    lane.close(&core, ended);
}

async fn connect(server: &Server) -> Result<OriginStream, FailureKind> {
    let (terms, timeout) = (&server.terms, server.terms.connect_timeout);
    let connecting = async {
        let place = match &terms.address {
            MemcachedAddress::Unix(path) => Place::Unix(path.clone()),
            MemcachedAddress::Tcp { host, port } => {
                let name = (host.trim_start_matches('[').trim_end_matches(']'), *port);
                let found = tokio::net::lookup_host(name).await.map_err(|error| FailureKind::Connect(error.kind()))?;
                Place::Tcp(found.into_iter().next().ok_or(FailureKind::Connect(io::ErrorKind::NotFound))?)
            }
        };
        dial(&place, timeout, |stream| async { Ok(stream) }).await.map_err(|kind| match kind {
            OriginErrorKind::Connect { why } | OriginErrorKind::Exhausted { why } => FailureKind::Connect(why.kind()),
            _ => FailureKind::ConnectTimeout,
        })
    };
    let login = async {
        let mut stream = connecting.await?;
        if let Some(login) = &terms.login {
            let token = format!("{} {}", login.user, login.password);
            log_in(&mut stream, token.as_bytes()).await?;
        }
        Ok(stream)
    };
    tokio::time::timeout(timeout, login).await.unwrap_or(Err(FailureKind::ConnectTimeout))
}

/// The set that a server started with `-Y` wants first; its key and flags mean nothing.
async fn log_in(stream: &mut OriginStream, token: &[u8]) -> Result<(), FailureKind> {
    let command = Command::Store { verb: StoreVerb::Set, key: b"login", flags: 0, exptime: 0, value: token };
    let mut out = Vec::new();
    command.write(&mut out);
    stream.write_all(&out).await.map_err(|_| FailureKind::Lost)?;
    let asked = Asked { expected: command.expected(), key: b"login", value_bytes_max: 0 };
    let mut input = Vec::new();
    loop {
        match read_reply(&input, &asked) {
            Ok(Progress::Whole { reply: Reply::Stored { .. }, .. }) => return Ok(()),
            Ok(Progress::Whole { .. }) => return Err(FailureKind::Login),
            Err(fault) => return Err(FailureKind::Fault(fault)),
            Ok(Progress::More { .. }) => {}
        }
        if stream.read_buf(&mut input).await.map_err(|_| FailureKind::Lost)? == 0 {
            return Err(FailureKind::Lost);
        }
    }
}

impl Lane {
    /// Writes and reads as far as the socket goes. Ready when the lane is over.
    fn poll(
        &self,
        core: &Core,
        stream: &mut OriginStream,
        input: &mut BytesMut,
        alarm: &mut Alarm,
        cx: &mut Context<'_>,
    ) -> Poll<FailureKind> {
        if self.write(stream, cx).is_err() {
            return Poll::Ready(FailureKind::Lost);
        }
        loop {
            match read(stream, input, cx) {
                Poll::Pending => break,
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(_) => return Poll::Ready(FailureKind::Lost),
            }
            if let Err(kind) = self.take_replies(core, input) {
                return Poll::Ready(kind);
            }
        }
        let first_ms = self.queue.borrow().waiting.iter().map(|waiting| waiting.call.deadline_ms).next();
        if alarm.has_rung(first_ms, cx) {
            return Poll::Ready(if first_ms.is_some() { FailureKind::Timeout } else { FailureKind::Lost });
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    fn write(&self, stream: &mut OriginStream, cx: &mut Context<'_>) -> io::Result<()> {
        let mut queue = self.queue.borrow_mut();
        let queue = &mut *queue;
        while queue.out_sent < queue.out.len() {
            match Pin::new(&mut *stream).poll_write(cx, &queue.out[queue.out_sent..]) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(sent)) => {
                    queue.out_sent += sent;
                    queue.sent_bytes += sent as u64;
                }
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
        queue.out_sent = 0;
        queue.out.clear();
        if queue.out.capacity() > KEPT_QUEUE_BYTES_MAX {
            queue.out = Vec::new();
        }
        Ok(())
    }

    /// Ends the calls whose replies are there.
    fn take_replies(&self, core: &Core, input: &mut BytesMut) -> Result<(), FailureKind> {
        while !input.is_empty() {
            let front = self.queue.borrow().waiting.front().map(|waiting| Arc::clone(&waiting.call));
            // Bytes that nobody asked for.
            let Some(call) = front else { return Err(FailureKind::Fault(ReplyFault::Unexpected)) };
            let asked = Asked { expected: call.expected, key: &call.key, value_bytes_max: call.value_bytes_max };
            match read_reply(input, &asked).map_err(FailureKind::Fault)? {
                Progress::More { whole_bytes_min } => {
                    let missing = whole_bytes_min - input.len();
                    input.reserve(missing.min(input.len().clamp(READ_BYTES, READ_BYTES_MAX)));
                    return Ok(());
                }
                Progress::Whole { reply, consumed } => {
                    // What follows an unknown command may be its value, read as commands.
                    let is_unsure = matches!(reply, Reply::Error { of: Blame::Command, .. }) && !call.is_read;
                    self.queue.borrow_mut().waiting.pop_front();
                    self.server.answered();
                    core.counters.memcached_replies.add(1);
                    let bytes = input.split_to(consumed).freeze();
                    self.settle(&call, Ok(Got { reply, bytes }));
                    if is_unsure {
                        return Err(FailureKind::Lost);
                    }
                }
            }
        }
        Ok(())
    }
}

/// False at the end of the stream.
fn read(stream: &mut OriginStream, input: &mut BytesMut, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
    if input.capacity() - input.len() < READ_BYTES / 4 {
        input.reserve(READ_BYTES);
    }
    pin!(stream.read_buf(input)).poll(cx).map_ok(|got| got > 0)
}

/// Rings when the first of those who wait has waited too long, or when nobody has for long. Set anew only when it
/// would ring too late: a busy lane's rings a few times a minute and finds nothing.
#[derive(Default)]
struct Alarm {
    sleep: Option<Pin<Box<tokio::time::Sleep>>>,
    rings_at_ms: u64,
    /// Since when nobody waits, as far as was seen.
    idle_since_ms: Option<u64>,
}

impl Alarm {
    fn has_rung(&mut self, first_ms: Option<u64>, cx: &mut Context<'_>) -> bool {
        let idle_ms = MEMCACHED_IDLE_TIMEOUT.as_millis() as u64;
        if first_ms.is_some() {
            self.idle_since_ms = None;
        }
        loop {
            if let Some(sleep) = &mut self.sleep
                && first_ms.is_none_or(|first_ms| self.rings_at_ms <= first_ms)
                && sleep.as_mut().poll(cx).is_pending()
            {
                return false;
            }
            let now_ms = deadline_now_ms();
            let due_ms = match first_ms {
                Some(first_ms) => first_ms,
                None => *self.idle_since_ms.get_or_insert(now_ms) + idle_ms,
            };
            if due_ms <= now_ms {
                return true;
            }
            self.rings_at_ms = due_ms;
            self.sleep = Some(Box::pin(tokio::time::sleep(Duration::from_millis(due_ms - now_ms))));
        }
    }
}
