//! A connection to a memcached that carries the commands of one core, pipelined: what a turn of the core's loop asks
//! goes out in one write, and replies come back in the order of the commands.
//!
//! A lane ends as a whole. A reply that is no reply, a server that says nothing in time or an end in the middle: what
//! could still come would be somebody else's answer, so every command on the lane fails with it, and no byte that
//! arrives later is read. A command that was not sent, and a get, may be asked again on another lane by whoever waits.
//!
//! Routes may differ in how long they wait. Who has waited long enough beside others who wait longer is told so, and the
//! lane takes nothing new and goes on for those others: a command of theirs that still waits to be sent goes out all the
//! same, and a reply that comes for nobody is read over.

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
use tokio::io::{AsyncReadExt, AsyncWrite};
use wire::memcached::{Asked, Blame, Command, Progress, Reply, ReplyFault, read_reply};

use crate::clock::deadline_now_ms;
use crate::counters::CoreCounters;
use crate::limits::{
    MEMCACHED_IDLE_TIMEOUT, MEMCACHED_LANE_QUEUE_BYTES_MAX, MEMCACHED_LANE_WAITING_MAX, MEMCACHED_LANE_WAITING_USUAL,
};
use crate::memcached_gateway::gateway_call::{Failure, FailureKind, GatewayCall, ReceivedReply};
use crate::memcached_gateway::lane_opening;
use crate::memcached_gateway::memcached_server::Server;
use crate::origin::DialAddress;
use crate::socket::Socket;

/// What is read at once, and what a lane's buffer has at least.
const READ_BYTES: usize = 16 << 10;
/// For a value that does not fit: at most doubled with each read, so that what is only announced takes no room.
const READ_BYTES_MAX: usize = 1 << 20;
/// A larger buffer of commands is given back when it is empty.
const KEPT_QUEUE_BYTES_MAX: usize = 256 << 10;

pub(crate) struct Lane {
    pub(crate) server: Arc<Server>,
    queue: RefCell<LaneQueue>,
    waker: RefCell<Option<Waker>>,
    /// It takes nothing new: it is closed, or will be when nobody on it waits any more.
    is_retired: Cell<bool>,
    place: RefCell<Option<DialAddress>>,
}

/// What is to be sent, and who waits for what.
#[derive(Default)]
struct LaneQueue {
    out: Vec<u8>,
    /// Of `out`, what is with the kernel.
    out_sent: usize,
    /// Of all that ever went out, what is with the kernel; a command is sent in part when it began before this.
    sent_bytes: u64,
    waiting: VecDeque<SentCall>,
    /// Nobody's patience ends before this.
    first_deadline_ms: u64,
}

struct SentCall {
    call: Arc<GatewayCall>,
    /// Where the command begins among all bytes of the lane.
    begins_at: u64,
    /// It was told that it has waited long enough.
    is_over: bool,
}

impl SentCall {
    fn is_late(&self, now_ms: u64) -> bool {
        !self.is_over && self.call.patience.deadline_ms <= now_ms
    }
}

impl Lane {
    /// Opens a connection; commands may be pushed at once.
    pub(crate) fn open(counters: &Arc<CoreCounters>, now_ms: u64, server: &Arc<Server>) -> Rc<Lane> {
        let lane = Rc::new(Lane {
            server: Arc::clone(server),
            queue: RefCell::default(),
            waker: RefCell::default(),
            is_retired: Cell::new(false),
            place: RefCell::default(),
        });
        tokio::task::spawn_local(run(Rc::clone(&lane), Arc::clone(counters), now_ms));
        lane
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.get()
    }

    /// Ends it, as soon as nobody on it waits, if the server's name stands for another address by now.
    pub(crate) fn retire_if_moved(&self) {
        let whereabouts = self.server.whereabouts.load();
        if self.place.borrow().as_ref().is_some_and(|place| !whereabouts.leads_to(place)) {
            self.is_retired.set(true);
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
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
    pub(crate) fn push(&self, call: Arc<GatewayCall>, command: &Command<'_>) {
        let mut queue = self.queue.borrow_mut();
        let begins_at = queue.sent_bytes + (queue.out.len() - queue.out_sent) as u64;
        match call.is_quiet() {
            false => command.write(&mut queue.out),
            true => command.write_quiet(&mut queue.out),
        }
        let deadline_ms = call.patience.deadline_ms;
        if queue.waiting.is_empty() || deadline_ms < queue.first_deadline_ms {
            queue.first_deadline_ms = deadline_ms;
        }
        queue.waiting.push_back(SentCall { call, begins_at, is_over: false });
        drop(queue);
        // The waker is taken, so that a turn's other commands wake nobody.
        self.wake();
    }

    /// Everything on it fails.
    fn close(&self, counters: &CoreCounters, kind: FailureKind) {
        self.is_retired.set(true);
        let LaneQueue { waiting, sent_bytes, .. } = std::mem::take(&mut *self.queue.borrow_mut());
        if waiting.iter().all(|waiting| waiting.is_over) && kind == FailureKind::Lost {
            // An idle connection that the server closed, or one that was left.
            return;
        }
        let now_ms = deadline_now_ms();
        let counted = match kind {
            FailureKind::Timeout => waiting.iter().filter(|waiting| waiting.is_late(now_ms)).count(),
            FailureKind::Fault(_) => 1,
            _ => waiting.len().max(1),
        };
        self.count_failures(counters, counted, now_ms, kind);
        for (at, waiting) in waiting.into_iter().enumerate().filter(|(_, waiting)| !waiting.is_over) {
            let kind = match kind {
                // Others had time left, or would have been answered well.
                FailureKind::Timeout if !waiting.is_late(now_ms) => FailureKind::Lost,
                FailureKind::Fault(_) if at > 0 => FailureKind::Lost,
                kind => kind,
            };
            let failure = Failure { kind, unsent: waiting.begins_at >= sent_bytes };
            self.server.settle(counters, &waiting.call, Err(failure));
        }
    }

    fn count_failures(&self, counters: &CoreCounters, count: usize, now_ms: u64, kind: FailureKind) {
        counters.memcached_errors.add(count as u64);
        if self.server.failed(u32::try_from(count).unwrap_or(u32::MAX), now_ms, kind) {
            counters.memcached_ejections.add(1);
        }
    }

    /// Somebody's patience may have ended. True when the lane is over: nobody on it has more of it than who has waited
    /// in vain.
    fn is_hopeless(&self, counters: &CoreCounters) -> bool {
        let now_ms = deadline_now_ms();
        let mut queue = self.queue.borrow_mut();
        let late = queue.waiting.iter().filter(|waiting| waiting.is_late(now_ms));
        let (count, late_ms) = late.fold((0, 0), |(n, ms), waiting| (n + 1, ms.max(waiting.call.patience.timeout_ms)));
        let is_left = |waiting: &&SentCall| !waiting.is_over && !waiting.is_late(now_ms);
        if count > 0 && !queue.waiting.iter().filter(is_left).any(|waiting| waiting.call.patience.timeout_ms > late_ms)
        {
            return true;
        }
        let deadlines = queue.waiting.iter().filter(is_left).map(|waiting| waiting.call.patience.deadline_ms);
        queue.first_deadline_ms = deadlines.min().unwrap_or(u64::MAX);
        if count > 0 {
            self.is_retired.set(true);
            self.count_failures(counters, count, now_ms, FailureKind::Timeout);
            for waiting in queue.waiting.iter_mut().filter(|waiting| waiting.is_late(now_ms)) {
                waiting.is_over = true;
                // Whatever part of it is with the kernel by now: the lane goes on, and so does the rest of it.
                let failure = Failure { kind: FailureKind::Timeout, unsent: false };
                self.server.settle(counters, &waiting.call, Err(failure));
            }
        }
        false
    }

    /// It takes nothing new, and nobody waits any more.
    fn is_done(&self) -> bool {
        self.is_retired.get() && self.queue.borrow().waiting.iter().all(|waiting| waiting.is_over)
    }
}

async fn run(lane: Rc<Lane>, counters: Arc<CoreCounters>, now_ms: u64) {
    let mut stream = match lane_opening::open(&lane.server, now_ms).await {
        Ok((stream, place)) => {
            *lane.place.borrow_mut() = Some(place);
            stream
        }
        Err(kind) => return lane.close(&counters, kind),
    };
    counters.memcached_connections_opened.add(1);
    let mut input = BytesMut::with_capacity(READ_BYTES);
    let mut alarm = Alarm::default();
    let ended = poll_fn(|cx| lane.poll(&counters, &mut stream, &mut input, &mut alarm, cx)).await;
    drop(stream);
    lane.close(&counters, ended);
}

impl Lane {
    /// Writes and reads as far as the socket goes. Ready when the lane is over.
    fn poll(
        &self,
        counters: &CoreCounters,
        stream: &mut Socket,
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
            if let Err(kind) = self.take_replies(counters, input) {
                return Poll::Ready(kind);
            }
        }
        loop {
            let first_ms = self.first_deadline_ms();
            if !alarm.has_rung(first_ms, cx) {
                break;
            }
            if first_ms.is_none() {
                return Poll::Ready(FailureKind::Lost);
            }
            if self.is_hopeless(counters) {
                return Poll::Ready(FailureKind::Timeout);
            }
        }
        if self.is_done() {
            return Poll::Ready(FailureKind::Lost);
        }
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }

    fn first_deadline_ms(&self) -> Option<u64> {
        let queue = self.queue.borrow();
        (!queue.waiting.is_empty()).then_some(queue.first_deadline_ms)
    }

    fn write(&self, stream: &mut Socket, cx: &mut Context<'_>) -> io::Result<()> {
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
        if let Poll::Ready(Err(error)) = Pin::new(stream).poll_flush(cx) {
            return Err(error);
        }
        queue.out_sent = 0;
        queue.out.clear();
        if queue.out.capacity() > KEPT_QUEUE_BYTES_MAX {
            queue.out = Vec::new();
        }
        Ok(())
    }

    /// Ends the calls whose replies are there.
    fn take_replies(&self, counters: &CoreCounters, input: &mut BytesMut) -> Result<(), FailureKind> {
        while !input.is_empty() {
            let front = self.queue.borrow().waiting.front().map(|waiting| (Arc::clone(&waiting.call), waiting.is_over));
            // Bytes that nobody asked for.
            let Some((call, is_over)) = front else { return Err(FailureKind::Fault(ReplyFault::Unexpected)) };
            let asked = Asked { expected: call.expected, key: &call.key, value_bytes_max: call.value_bytes_max };
            match read_reply(input, &asked).map_err(FailureKind::Fault)? {
                Progress::More { whole_bytes_min } => {
                    let missing = whole_bytes_min - input.len();
                    input.reserve(missing.min(input.len().clamp(READ_BYTES, READ_BYTES_MAX)));
                    return Ok(());
                }
                Progress::Whole { reply, consumed } => {
                    // What follows a line that was not understood may be its value, read as commands.
                    let is_unsure = match reply {
                        Reply::Error { of: Blame::Command, .. } => !call.is_read,
                        Reply::Error { of: Blame::Client, .. } => call.stores,
                        _ => false,
                    };
                    self.queue.borrow_mut().waiting.pop_front();
                    self.server.answered();
                    counters.memcached_replies.add(1);
                    let bytes = input.split_to(consumed).freeze();
                    if !is_over {
                        self.server.settle(counters, &call, Ok(ReceivedReply { reply, bytes }));
                    }
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
fn read(stream: &mut Socket, input: &mut BytesMut, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
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
