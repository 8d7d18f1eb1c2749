//! One thread of the generator: a runtime, its users, and the desk at which they find all that they share.
//!
//! Nothing on the desk is touched by another thread but the catalogue, which nobody changes, and what was learned,
//! which is one atomic word for each request.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::Notify;

use crate::agenda::{Agenda, Pick, Start};
use crate::answer::Answer;
use crate::answer_head::HeadMemo;
use crate::catalogue::Catalogue;
use crate::error_kind::ErrorKind;
use crate::http_answer::Reading;
use crate::lab_clock::Nanos;
use crate::learned::Learned;
use crate::limits::{SCRATCH_BYTES, STOP_LOOK};
use crate::pacer::{Alarm, pace};
use crate::tally::{Life, Second, Stamps, Tally};
use crate::timetable::Timetable;
use crate::user;
use crate::workload::{Connections, Length, Load, Workload};

/// What a thread is told.
#[derive(Clone)]
pub(crate) struct Errand {
    /// Of how many threads.
    pub(crate) thread: usize,
    pub(crate) workload: Arc<Workload>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) learned: Arc<Learned>,
    pub(crate) begun: Nanos,
    pub(crate) stop: Arc<AtomicBool>,
    /// Where each second goes when it is over.
    pub(crate) seconds: Sender<(usize, Second)>,
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
    begun: Nanos,
    pub(crate) agenda: RefCell<Agenda>,
    tally: RefCell<Tally>,
    /// Borrowed by whoever reads or writes, never across an await.
    pub(crate) scratch: RefCell<Box<[u8]>>,
    pub(crate) outgoing: RefCell<Vec<u8>>,
    pub(crate) memo: RefCell<HeadMemo>,
    users_left: Cell<usize>,
    nobody_left: Notify,
}

/// The thread from its first connection to its last.
pub(crate) fn work(errand: &Errand) -> io::Result<Brought> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(256)
        .global_queue_interval(64)
        .build_local(Default::default())?;
    let desk = Rc::new(Desk::new(errand));
    let ended = runtime.block_on(async {
        if let Load::Open { .. } = errand.workload.load {
            tokio::task::spawn_local(pace(Rc::clone(&desk), Alarm::new()?));
        }
        for user in 0..desk.users_left.get() {
            tokio::task::spawn_local(user::live(Rc::clone(&desk), user));
        }
        tokio::select! {
            () = desk.nobody_left.notified() => {}
            () = watch(&desk, errand) => {}
        }
        io::Result::Ok(Nanos::now())
    })?;
    // Users that still wait for an answer end here.
    drop(runtime);
    desk.close(ended);
    let _ = errand.seconds.send((errand.thread, desk.tally.borrow_mut().turn_second()));
    let tally = std::mem::take(&mut *desk.tally.borrow_mut());
    Ok(Brought { tally, ended, cpu: Nanos::of_thread() })
}

/// Hands over each second; ends when the time is up or somebody says stop.
async fn watch(desk: &Desk, errand: &Errand) {
    let end = match errand.workload.length {
        Length::Time(time) => errand.begun.after(time),
        Length::Requests(_) => Nanos(u64::MAX),
    };
    let mut second_end = errand.begun.after(Duration::from_secs(1));
    loop {
        let now = Nanos::now();
        if now >= end || errand.stop.load(Ordering::Relaxed) {
            return;
        }
        if now >= second_end {
            // Nobody listens any more only when the whole run was given up.
            let _ = errand.seconds.send((errand.thread, desk.tally.borrow_mut().turn_second()));
            second_end = second_end.after(Duration::from_secs(1));
            continue;
        }
        tokio::time::sleep(now.until(second_end.min(end)).min(STOP_LOOK)).await;
    }
}

/// What falls to one thread of several when all is shared out.
fn share(all: u64, (thread, threads): (usize, usize)) -> u64 {
    all / threads as u64 + u64::from((thread as u64) < all % threads as u64)
}

impl Desk {
    fn new(errand: &Errand) -> Desk {
        let workload = Arc::clone(&errand.workload);
        let of = (errand.thread, workload.threads);
        let users = share(workload.users as u64, of) as usize;
        let starts = match workload.length {
            Length::Time(_) => u64::MAX,
            Length::Requests(all) => share(all, of),
        };
        let timetable = match workload.load {
            Load::Closed => None,
            Load::Open { per_second, arrivals } => {
                Some(Timetable::new(errand.begun, per_second, arrivals, of, workload.seed))
            }
        };
        let pick = Pick::new(workload.order, errand.catalogue.len(), of, workload.seed);
        Desk {
            catalogue: Arc::clone(&errand.catalogue),
            learned: Arc::clone(&errand.learned),
            begun: errand.begun,
            agenda: RefCell::new(Agenda::new(timetable, pick, starts, users)),
            tally: RefCell::default(),
            scratch: RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()),
            outgoing: RefCell::default(),
            memo: RefCell::default(),
            users_left: Cell::new(users),
            nobody_left: Notify::new(),
            workload,
        }
    }

    /// How many requests may be under way on one connection.
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        match self.workload.connections {
            Connections::Kept { pipeline } => pipeline,
            Connections::Short => 1,
        }
    }

    pub(crate) fn one_each(&self) -> bool {
        self.workload.connections == Connections::Short
    }

    #[inline]
    pub(crate) fn poll_start(&self, user: usize, cx: &mut Context<'_>) -> Poll<Option<Start>> {
        let start = ready!(self.agenda.borrow_mut().poll_start(Nanos::now(), user, cx));
        self.tally.borrow_mut().started += u64::from(start.is_some());
        Poll::Ready(start)
    }

    #[inline]
    pub(crate) fn note_sent(&self, start: &Start, now: Nanos) {
        if let Load::Open { .. } = self.workload.load {
            self.tally.borrow_mut().send_lag.saturating_record(start.intended.micros_until(now));
        }
    }

    pub(crate) fn note_connection(&self, begun: Nanos) {
        let mut tally = self.tally.borrow_mut();
        tally.connections += 1;
        tally.lives.begin();
        tally.connect.saturating_record(begun.micros_until(Nanos::now()));
    }

    pub(crate) fn note_connection_end(&self, life: &Life) {
        self.tally.borrow_mut().lives.end(life, Nanos::now());
    }

    #[inline]
    pub(crate) fn note_received(&self, bytes: &[u8]) {
        self.tally.borrow_mut().note_received(bytes);
    }

    /// How the answer to this request is to be read.
    #[inline]
    pub(crate) fn reading(&self, request: usize) -> Reading {
        Reading { bodiless: self.catalogue.request(request).starts_with(b"HEAD "), sums: self.workload.checks.bytes }
    }

    /// What a whole answer is worth.
    #[inline]
    pub(crate) fn judge(&self, request: usize, answer: &Answer<'_>, stamps: &Stamps) {
        let mut tally = self.tally.borrow_mut();
        tally.note_answer(answer);
        match self.learned.judge(request, answer, &self.workload.checks) {
            Ok(()) => tally.note_good(stamps, answer.length),
            Err(kind) => {
                let at = self.since_begin(stamps.last_byte);
                tally.note_failed(kind, at, || {
                    let path = self.catalogue.path(request);
                    match kind {
                        ErrorKind::BadStatus => format!("{path}: status {}", answer.status),
                        ErrorKind::BadLength => {
                            format!("{path}: {} bytes, the first had {}", answer.length, self.learned.length(request))
                        }
                        _ => format!("{path}: {} bytes, not those of the first fetch", answer.length),
                    }
                });
            }
        }
    }

    pub(crate) fn note_failed(&self, kind: ErrorKind, text: impl FnOnce() -> String) {
        self.tally.borrow_mut().note_failed(kind, self.since_begin(Nanos::now()), text);
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
    pub(crate) fn leave(&self) {
        self.users_left.set(self.users_left.get() - 1);
        if self.users_left.get() == 0 {
            self.nobody_left.notify_one();
        }
    }

    /// Counts what the end of the run cut off, and what was due and never sent.
    fn close(&self, ended: Nanos) {
        let mut tally = self.tally.borrow_mut();
        let (at, open) = (self.since_begin(ended), tally.started - tally.finished);
        tally.note_error(ErrorKind::ClientDeadline, open, at, || "cut off by the end of the run".to_owned());
        let dropped = self.agenda.borrow_mut().backlog(ended);
        tally.note_error(ErrorKind::Dropped, dropped, at, || {
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
