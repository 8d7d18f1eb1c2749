//! One thread of the generator: a runtime, its users, and the desk at which they find all that they share.
//!
//! Nothing on the desk is touched by another thread but the catalogue, which nobody changes, and what was learned,
//! which is one atomic word for each request.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use tokio::sync::Notify;

use crate::agenda::{Agenda, Habits, Next, Start};
use crate::answer::{Answer, Reading};
use crate::catalogue::Catalogue;
use crate::coded_pages::CodedPages;
use crate::error_kind::ErrorKind;
use crate::frame_meter::FrameMeter;
use crate::handshake_tally::Handshake;
use crate::http2_requests::Http2Requests;
use crate::lab_clock::Nanos;
use crate::learned::Learned;
use crate::limits::{SCRATCH_BYTES, STOP_LOOK};
use crate::pacer::{Alarm, pace};
use crate::pauses::Pauses;
use crate::pick::Pick;
use crate::read_ahead::ReadPool;
use crate::received_head::HeadMemo;
use crate::sessions::Sessions;
use crate::sources::{self, Ports};
use crate::tally::{Life, Second, Stamps, Tally};
use crate::timetable::Timetable;
use crate::tls_client::{TlsClient, UserTls};
use crate::user;
use crate::verdict::{Awaited, Measure};
use crate::workload::{Connections, Load, Workload};

/// What a thread is told.
#[derive(Clone)]
pub(crate) struct ThreadJob {
    /// Of how many threads.
    pub(crate) thread: usize,
    pub(crate) workload: Arc<Workload>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) learned: Arc<Learned>,
    pub(crate) awaited: Awaited,
    pub(crate) tls: Option<TlsClient>,
    /// `None`: HTTP/1 or memcached is spoken.
    pub(crate) http2: Option<Arc<Http2Requests>>,
    pub(crate) begun: Nanos,
    pub(crate) stop: Arc<AtomicBool>,
    /// Where each second goes when it is over.
    pub(crate) seconds: Sender<(usize, Part)>,
}

/// What a thread hands over while it runs.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// A second that is over.
    Whole(Second),
    /// What was left when it ended.
    Last(Second),
}

/// What a thread brings back.
pub(crate) struct Brought {
    pub(crate) tally: Tally,
    pub(crate) ended: Nanos,
    pub(crate) cpu: Nanos,
}

pub(crate) struct Desk {
    pub(crate) workload: Arc<Workload>,
    pub(crate) catalogue: Arc<Catalogue>,
    learned: Arc<Learned>,
    awaited: Awaited,
    tls: Option<TlsClient>,
    pub(crate) http2: Option<Arc<Http2Requests>>,
    thread: usize,
    ports: RefCell<Ports>,
    begun: Nanos,
    pub(crate) agenda: RefCell<Agenda>,
    /// Rung when the pacer has to look at the agenda before the moment it knows of.
    pub(crate) bell: Notify,
    tally: RefCell<Tally>,
    /// Borrowed by whoever reads or writes, never across an await.
    pub(crate) scratch: RefCell<Box<[u8]>>,
    pub(crate) outgoing: RefCell<Vec<u8>>,
    pub(crate) read_pool: ReadPool,
    pub(crate) memo: RefCell<HeadMemo>,
    /// Of sessions, whose agenda says how many of a burst go out at once; 0 without.
    burst_max: usize,
    is_open: bool,
    users_left: Cell<usize>,
    nobody_left: Notify,
    /// A user did, which ends the thread.
    panicked: Cell<bool>,
}

/// The thread from its first connection to its last.
pub(crate) fn work(job: &ThreadJob) -> io::Result<Brought> {
    stay_on_cpu(job)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(256)
        .global_queue_interval(64)
        .build_local(Default::default())?;
    let desk = Rc::new(Desk::new(job));
    let ended = runtime.block_on(async {
        if needs_pacer(&job.workload) {
            tokio::task::spawn_local(pace(Rc::clone(&desk), Alarm::new()?));
        }
        for user in 0..desk.users_left.get() {
            tokio::task::spawn_local(user::live(Rc::clone(&desk), user));
        }
        tokio::select! {
            () = desk.nobody_left.notified() => {}
            () = watch(&desk, job) => {}
        }
        io::Result::Ok(Nanos::now())
    })?;
    assert!(!desk.panicked.get(), "a user panicked");
    // Users that still wait for an answer end here.
    drop(runtime);
    desk.close(ended);
    let _ = job.seconds.send((job.thread, Part::Last(desk.tally.borrow_mut().turn_second())));
    let tally = std::mem::take(&mut *desk.tally.borrow_mut());
    Ok(Brought { tally, ended, cpu: Nanos::of_thread() })
}

fn stay_on_cpu(job: &ThreadJob) -> io::Result<()> {
    let cpus = &job.workload.cpus;
    if cpus.is_empty() {
        return Ok(());
    }
    let cpu = cpus[job.thread % cpus.len()];
    let refused =
        |why: &dyn fmt::Display| io::Error::other(format!("it cannot stay on processor {cpu}: {why} (--cpus)"));
    if cpu >= CpuSet::MAX_CPU {
        return Err(refused(&"there is no such processor"));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|error| refused(&error))
}

/// Hands over each second; ends when the time is up or somebody says stop.
async fn watch(desk: &Desk, job: &ThreadJob) {
    let end = end(job);
    let mut second_end = job.begun.after(Duration::from_secs(1));
    loop {
        let now = Nanos::now();
        if now >= end || job.stop.load(Ordering::Relaxed) {
            return;
        }
        if now >= second_end {
            // Nobody listens any more only when the whole run was given up.
            let _ = job.seconds.send((job.thread, Part::Whole(desk.tally.borrow_mut().turn_second())));
            second_end = second_end.after(Duration::from_secs(1));
            continue;
        }
        tokio::time::sleep(now.until(second_end.min(end)).min(STOP_LOOK)).await;
    }
}

/// Does anything begin at a moment of its own?
fn needs_pacer(workload: &Workload) -> bool {
    let pauses = !workload.ramp.is_zero() || !workload.think.is_zero();
    workload.load.is_open() || pauses || matches!(workload.load, Load::Sessions { .. })
}

fn end(job: &ThreadJob) -> Nanos {
    job.workload.length.time().map_or(Nanos(u64::MAX), |time| job.begun.after(time))
}

/// What falls to one thread of several when all is shared out.
fn share(all: u64, (thread, threads): (usize, usize)) -> u64 {
    all / threads as u64 + u64::from((thread as u64) < all % threads as u64)
}

/// Of one thread of several, with so many of the users.
fn agenda(job: &ThreadJob, of: (usize, usize), users: usize) -> Agenda {
    let (workload, begun) = (&job.workload, job.begun);
    let by_length = workload.length.requests().map_or(u64::MAX, |all| share(all, of));
    let (starts, habits) = match &workload.load {
        Load::Sessions { count, script, .. } => {
            (share(*count, of), Habits::InSessions(Box::new(Sessions::new(Arc::clone(script), users, of, begun))))
        }
        Load::Replay { log, .. } => (by_length.min(share(log.len() as u64, of)), Habits::Restless),
        Load::Closed if !workload.ramp.is_zero() || !workload.think.is_zero() => {
            let pauses = Pauses::new(begun, workload.ramp, workload.think, of, users, workload.seed);
            (by_length, Habits::Pausing(pauses))
        }
        Load::Closed | Load::Open { .. } | Load::Steps(_) => (by_length, Habits::Restless),
    };
    let timetable = match &workload.load {
        Load::Replay { log, speed } if *speed > 0.0 => Some(Timetable::of_log(begun, Arc::clone(log), *speed, of)),
        load => load.rate_plan().map(|plan| Timetable::new(begun, &plan, of, workload.seed)),
    };
    let pick = match &workload.load {
        Load::Replay { log, .. } => Pick::of_log(Arc::clone(log), of),
        _ => Pick::new(workload.order, job.catalogue.len(), of, workload.seed),
    };
    Agenda::new(timetable, pick, habits, starts, end(job), users)
}

impl Desk {
    fn new(job: &ThreadJob) -> Desk {
        let workload = Arc::clone(&job.workload);
        let of = (job.thread, workload.threads);
        let users = share(workload.users as u64, of) as usize;
        let agenda = agenda(job, of, users);
        Desk {
            catalogue: Arc::clone(&job.catalogue),
            learned: Arc::clone(&job.learned),
            awaited: job.awaited.clone(),
            tls: job.tls.clone(),
            http2: job.http2.clone(),
            thread: job.thread,
            ports: RefCell::new(Ports::new(workload.sources.len(), sources::port_range(), of)),
            begun: job.begun,
            agenda: RefCell::new(agenda),
            bell: Notify::new(),
            tally: RefCell::default(),
            scratch: RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()),
            outgoing: RefCell::default(),
            read_pool: ReadPool::default(),
            memo: RefCell::default(),
            burst_max: match &workload.load {
                Load::Sessions { script, .. } => script.burst_max() as usize,
                _ => 0,
            },
            is_open: workload.load.is_open(),
            users_left: Cell::new(users),
            nobody_left: Notify::new(),
            panicked: Cell::new(false),
            workload,
        }
    }

    /// How many requests may be under way on one connection.
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        match self.workload.connections {
            Connections::Kept { depth } => self.burst_max.max(depth),
            Connections::Short => 1,
        }
    }

    pub(crate) fn tls_of_user(&self) -> Option<UserTls> {
        self.tls.as_ref().map(TlsClient::of_user)
    }

    /// Which of the sources the connections of a user come from.
    pub(crate) fn source(&self, user: usize) -> Option<usize> {
        sources::source_of(user, self.thread, self.workload.sources.len())
    }

    /// The next port of a source.
    pub(crate) fn take_port(&self, source: usize) -> SocketAddr {
        SocketAddr::new(self.workload.sources[source], self.ports.borrow_mut().take(source))
    }

    pub(crate) fn one_each(&self) -> bool {
        self.workload.connections == Connections::Short
    }

    #[inline]
    pub(crate) fn poll_next(&self, user: usize, cx: &mut Context<'_>) -> Poll<Next> {
        let mut agenda = self.agenda.borrow_mut();
        let next = agenda.poll_next(Nanos::now(), user, cx);
        if agenda.take_must_ring() {
            self.bell.notify_one();
        }
        let next = ready!(next);
        self.tally.borrow_mut().started += u64::from(matches!(next, Next::Ask(_)));
        Poll::Ready(next)
    }

    #[inline]
    pub(crate) fn note_sent(&self, start: &Start, now: Nanos) {
        if self.is_open {
            self.tally.borrow_mut().send_lag.saturating_record(start.intended.micros_until(now));
        }
    }

    /// The socket is connected; a protocol may still have to begin on it.
    pub(crate) fn note_connected(&self, begun: Nanos, connected: Nanos) {
        let mut tally = self.tally.borrow_mut();
        tally.connections += 1;
        tally.connect.saturating_record(begun.micros_until(connected));
    }

    /// `dialled`: when the connection was begun, `begun`: when TLS was.
    pub(crate) fn note_handshake(&self, handshake: &Handshake, dialled: Nanos, begun: Nanos) {
        let mut tally = self.tally.borrow_mut();
        tally.handshakes.get_or_insert_default().note(handshake, dialled, begun, Nanos::now());
    }

    /// The connection can be used.
    pub(crate) fn note_connection(&self) {
        self.tally.borrow_mut().lives.begin();
    }

    pub(crate) fn note_connection_end(&self, life: &Life) {
        self.tally.borrow_mut().lives.end(life, Nanos::now());
    }

    pub(crate) fn note_left_open(&self) {
        self.tally.borrow_mut().left_open += 1;
    }

    #[inline]
    pub(crate) fn note_received(&self, bytes: &[u8]) {
        self.tally.borrow_mut().note_received(bytes);
    }

    /// Bytes of HTTP/2, of which nothing shows what an answer looks like …
    pub(crate) fn note_frames(&self, count: usize) {
        self.tally.borrow_mut().received_bytes += count as u64;
    }

    /// … but this does: the head of an answer, if it is the first one.
    pub(crate) fn note_head(&self, text: impl FnOnce() -> Vec<u8>) {
        self.tally.borrow_mut().note_head(text);
    }

    /// What a connection has shown. `allowed`: streams at once, as far as that is known.
    pub(crate) fn note_http2(&self, frames: &FrameMeter, allowed: Option<usize>) {
        let mut tally = self.tally.borrow_mut();
        let wanted = self.depth();
        tally.http2.get_or_insert_default().note(frames, allowed.filter(|&allowed| allowed < wanted));
    }

    /// How the answer to this request is to be read.
    #[inline]
    pub(crate) fn reading(&self, request: usize) -> Reading<'_> {
        Reading {
            asked: self.catalogue.request(request),
            sums: self.workload.checks.bytes,
            keeps: self.coded().is_some(),
        }
    }

    /// The pages behind the answers, where they are awaited in a coding.
    #[inline]
    fn coded(&self) -> Option<&CodedPages> {
        match &self.awaited {
            Awaited::Coded(pages) => Some(pages),
            Awaited::Any | Awaited::Identity => None,
        }
    }

    /// What a whole answer is worth.
    #[inline]
    pub(crate) fn judge(&self, user: usize, request: usize, answer: &Answer<'_>, stamps: &Stamps) {
        let mut tally = self.tally.borrow_mut();
        tally.note_answer(answer);
        let Desk { catalogue, learned, awaited, workload, .. } = self;
        let measure = Measure { catalogue, learned, awaited, checks: &workload.checks };
        let verdict = measure.judge(request, answer);
        self.agenda.borrow_mut().note_outcome(user, verdict.is_ok(), stamps.last_byte);
        match verdict {
            Ok(()) => {
                tally.text_bytes += self.coded().map_or(0, |pages| pages.text_bytes(request));
                tally.note_good(stamps, answer.length);
            }
            Err(kind) => {
                let at = self.since_begin(stamps.last_byte);
                tally.note_failed(kind, at, || measure.describe(request, answer, kind));
            }
        }
    }

    /// A request of this user has failed.
    pub(crate) fn note_failed(&self, user: usize, kind: ErrorKind, text: impl FnOnce() -> String) {
        let now = Nanos::now();
        self.agenda.borrow_mut().note_outcome(user, false, now);
        self.tally.borrow_mut().note_failed(kind, self.since_begin(now), text);
    }

    /// Bytes that nobody asked for.
    pub(crate) fn note_unasked(&self, bytes: &[u8]) {
        let at = self.since_begin(Nanos::now());
        self.tally.borrow_mut().note_error(ErrorKind::LongBody, 1, at, || {
            format!("{} bytes between two answers: {}", bytes.len(), String::from_utf8_lossy(bytes))
        });
    }

    pub(crate) fn overlong(&self, request: usize, extra: &[u8]) -> String {
        format!("{}: {} bytes too many: {}", self.catalogue.path(request), extra.len(), String::from_utf8_lossy(extra))
    }

    /// This user has nothing more to do.
    pub(crate) fn leave(&self, panicked: bool) {
        self.users_left.set(self.users_left.get() - 1);
        self.panicked.set(self.panicked.get() || panicked);
        if self.users_left.get() == 0 || panicked {
            self.nobody_left.notify_one();
        }
    }

    /// Counts what the end of the run cut off, and what was due and never sent.
    fn close(&self, ended: Nanos) {
        let mut tally = self.tally.borrow_mut();
        let mut agenda = self.agenda.borrow_mut();
        if self.catalogue.is_of_memcached() {
            tally.name_memcached();
        }
        tally.sessions = agenda.take_sessions().map(Box::new);
        let untaken = agenda.take_untaken(ended);
        let (at, open) = (self.since_begin(ended), tally.started - tally.finished + untaken.cut);
        tally.note_error(ErrorKind::ClientDeadline, open, at, || "cut off by the end of the run".to_owned());
        tally.note_error(ErrorKind::Dropped, untaken.dropped, at, || {
            format!("all {} users were waiting; more connections would have asked", self.workload.users)
        });
    }

    fn since_begin(&self, moment: Nanos) -> Nanos {
        Nanos(moment.0.saturating_sub(self.begun.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (all, threads, expect) in [(10, 3, &[4, 3, 3][..]), (2, 2, &[1, 1]), (1, 1, &[1]), (1, 2, &[1, 0])] {
            let shares: Vec<u64> = (0..threads).map(|thread| share(all, (thread, threads))).collect();
            assert_eq!(shares, expect);
        }
    }
}
