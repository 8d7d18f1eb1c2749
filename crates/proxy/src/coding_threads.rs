//! Threads for coding work, so that no core is held by it: brotli of a page takes as long as ten thousand hits.
//!
//! A job is a function and comes back to who asked as a future. There are two classes. *Now*: somebody waits, and a few threads that all
//! cores share take such jobs in their order. *Idle*: nobody waits, and one thread of its own takes them while no other job waits and
//! [`IdleBudget`] allows it, so that a job of seconds holds up nobody. All of them have less weight than the cores. What waits is bounded;
//! beyond that the asker gets its function back at once, and runs it itself or does without.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use parking_lot::{Condvar, Mutex};
use rustix::process::nice;
use tokio::sync::oneshot;

use crate::clock::{Moment, thread_cpu_nanos};
use crate::idle_budget::IdleBudget;
use crate::limits::Limits;

/// How much the threads give way to the cores (nice(2)): a core that wants to run has three times the weight of the first, and seventy
/// times that of the second.
const NOW_NICE: i32 = 5;
const IDLE_NICE: i32 = 19;

/// The threads; they end with this value, and nothing waits for them.
pub(crate) struct CodingThreads {
    /// None in a dry run, where every asker does everything itself.
    pool: Option<Arc<CodingPool>>,
}

/// What a job comes to, for who asked. Dropped before its turn, the job is not done.
pub(crate) struct CodingJob<T>(oneshot::Receiver<T>);

/// A job that came to nothing: it panicked, or the threads have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobLost;

impl<T> Future for CodingJob<T> {
    type Output = Result<T, JobLost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, JobLost>> {
        Poll::Ready(ready!(Pin::new(&mut self.0).poll(cx)).map_err(|_| JobLost))
    }
}

/// Who waits for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodingClass {
    Now,
    Idle,
}

struct CodingPool {
    queues: Mutex<CodingQueues>,
    /// There is a job that somebody waits for.
    now_came: Condvar,
    /// What the idle thread looks at has changed.
    idle_changed: Condvar,
    threads: usize,
    counts: [ClassCounts; 2],
    /// What the thread that asks has had of a processor.
    cpu_nanos: fn() -> u64,
}

struct CodingQueues {
    now: WaitingJobs,
    idle: WaitingJobs,
    limits: CodingLimits,
    is_over: bool,
}

/// Each class may have so much waiting.
#[derive(Clone, Copy)]
struct CodingLimits {
    jobs_max: usize,
    bytes_max: usize,
    /// Of one core, for idle jobs.
    idle_percent: u32,
}

impl CodingLimits {
    fn of(limits: &Limits) -> CodingLimits {
        CodingLimits {
            jobs_max: limits.coding_jobs_max,
            bytes_max: limits.coding_jobs_bytes_max,
            idle_percent: limits.coding_idle_percent,
        }
    }
}

#[derive(Default)]
struct WaitingJobs {
    jobs: VecDeque<WaitingJob>,
    bytes: usize,
}

struct WaitingJob {
    bytes: usize,
    run: Box<dyn FnOnce() -> JobEnd + Send>,
}

/// How a job ended on its thread.
enum JobEnd {
    Done,
    /// Who asked had left before it began.
    Abandoned,
    Panicked,
}

impl WaitingJobs {
    fn has_room_for(&self, bytes: usize, limits: CodingLimits) -> bool {
        // One job of any size fits where nothing else waits.
        self.jobs.len() < limits.jobs_max
            && (self.jobs.is_empty() || self.bytes.saturating_add(bytes) <= limits.bytes_max)
    }

    fn put(&mut self, job: WaitingJob) {
        self.bytes += job.bytes;
        self.jobs.push_back(job);
    }

    fn take(&mut self) -> Option<WaitingJob> {
        let job = self.jobs.pop_front()?;
        self.bytes -= job.bytes;
        Some(job)
    }
}

#[derive(Default)]
struct ClassCounts {
    jobs: AtomicU64,
    bytes: AtomicU64,
    refused: AtomicU64,
    abandoned: AtomicU64,
    panicked: AtomicU64,
    cpu_nanos: AtomicU64,
}

/// What became of the jobs of one class since the start, and what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodingClassStatus {
    /// That were begun, and the bytes that they were given.
    pub jobs: u64,
    pub bytes: u64,
    /// That found all room taken.
    pub refused: u64,
    /// That nobody waited for any longer when their turn came.
    pub abandoned: u64,
    pub panicked: u64,
    /// What the begun ones took of a processor.
    pub cpu_micros: u64,
    pub waiting: u64,
    pub waiting_bytes: u64,
}

/// The threads for coding, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodingStatus {
    /// For jobs that somebody waits for; there is one more for idle jobs.
    pub threads: u64,
    /// What coders hold, and how often somebody went without for it (`limits.coding_memory_bytes_max`).
    pub memory_bytes: u64,
    pub memory_refused: u64,
    pub now: CodingClassStatus,
    pub idle: CodingClassStatus,
}

impl CodingThreads {
    /// With the threads that a configuration asks for, by default one for each two workers.
    pub(crate) fn start(limits: &Limits, workers: usize) -> std::io::Result<CodingThreads> {
        CodingThreads::start_by(thread_cpu_nanos, limits, workers)
    }

    /// By a clock of whose thread this is: what a test says was taken of a processor does not depend on who else wants it.
    pub(crate) fn start_by(cpu_nanos: fn() -> u64, limits: &Limits, workers: usize) -> std::io::Result<CodingThreads> {
        let threads = match limits.coding_threads {
            0 => (workers / 2).max(1),
            threads => threads,
        };
        let limits = CodingLimits::of(limits);
        let queues = CodingQueues { now: WaitingJobs::default(), idle: WaitingJobs::default(), limits, is_over: false };
        let pool = Arc::new(CodingPool {
            queues: Mutex::new(queues),
            now_came: Condvar::new(),
            idle_changed: Condvar::new(),
            threads,
            counts: Default::default(),
            cpu_nanos,
        });
        // If one of them cannot be started, those that were end with this.
        let started = CodingThreads { pool: Some(Arc::clone(&pool)) };
        for number in 0..threads {
            let pool = Arc::clone(&pool);
            spawn(format!("larder-code-{number}"), NOW_NICE, move || pool.work_now())?;
        }
        spawn("larder-idle".to_owned(), IDLE_NICE, move || pool.work_idle())?;
        Ok(started)
    }

    /// Without any thread: everything is refused.
    pub(crate) fn none() -> CodingThreads {
        CodingThreads { pool: None }
    }

    /// Takes over the limits of another configuration; there are as many threads as before.
    pub(crate) fn set_limits(&self, limits: &Limits) {
        let Some(pool) = &self.pool else { return };
        let mut queues = pool.queues.lock();
        queues.limits = CodingLimits::of(limits);
        let dropped =
            if queues.limits.idle_percent == 0 { std::mem::take(&mut queues.idle) } else { Default::default() };
        drop(queues);
        // Who waits for them is told, and may do anything.
        drop(dropped);
        pool.idle_changed.notify_one();
    }

    /// Has work done that somebody waits for. `bytes`: what it keeps in memory. The error is the work itself, where too much waits.
    pub(crate) fn now<T, W>(&self, bytes: usize, work: W) -> Result<CodingJob<T>, W>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        self.put(CodingClass::Now, bytes, work)
    }

    /// The same for work that has time.
    pub(crate) fn idle<T, W>(&self, bytes: usize, work: W) -> Result<CodingJob<T>, W>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        self.put(CodingClass::Idle, bytes, work)
    }

    /// Are there any at all?
    pub(crate) fn are_there(&self) -> bool {
        self.pool.is_some()
    }

    /// Is there any time for work that has time?
    pub(crate) fn takes_idle_work(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.queues.lock().limits.idle_percent > 0)
    }

    fn put<T, W>(&self, class: CodingClass, bytes: usize, work: W) -> Result<CodingJob<T>, W>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let Some(pool) = &self.pool else { return Err(work) };
        let mut queues = pool.queues.lock();
        let limits = queues.limits;
        let (queue, condition) = match class {
            CodingClass::Now => (&mut queues.now, &pool.now_came),
            CodingClass::Idle => (&mut queues.idle, &pool.idle_changed),
        };
        let is_off = class == CodingClass::Idle && limits.idle_percent == 0;
        if is_off || !queue.has_room_for(bytes, limits) {
            drop(queues);
            pool.count(class).refused.fetch_add(1, Relaxed);
            return Err(work);
        }
        let (reply, answer) = oneshot::channel();
        queue.put(WaitingJob { bytes, run: Box::new(move || run(work, reply)) });
        drop(queues);
        condition.notify_one();
        Ok(CodingJob(answer))
    }

    pub(crate) fn status(&self) -> CodingStatus {
        let Some(pool) = &self.pool else { return CodingStatus::default() };
        let queues = pool.queues.lock();
        let of = |class: CodingClass, queue: &WaitingJobs| {
            let counts = pool.count(class);
            CodingClassStatus {
                jobs: counts.jobs.load(Relaxed),
                bytes: counts.bytes.load(Relaxed),
                refused: counts.refused.load(Relaxed),
                abandoned: counts.abandoned.load(Relaxed),
                panicked: counts.panicked.load(Relaxed),
                cpu_micros: counts.cpu_nanos.load(Relaxed) / 1_000,
                waiting: queue.jobs.len() as u64,
                waiting_bytes: queue.bytes as u64,
            }
        };
        CodingStatus {
            threads: pool.threads as u64,
            memory_bytes: 0,
            memory_refused: 0,
            now: of(CodingClass::Now, &queues.now),
            idle: of(CodingClass::Idle, &queues.idle),
        }
    }
}

impl Drop for CodingThreads {
    fn drop(&mut self) {
        let Some(pool) = &self.pool else { return };
        let mut queues = pool.queues.lock();
        queues.is_over = true;
        let dropped = (std::mem::take(&mut queues.now), std::mem::take(&mut queues.idle));
        drop(queues);
        drop(dropped);
        pool.now_came.notify_all();
        pool.idle_changed.notify_all();
    }
}

fn spawn(name: String, niceness: i32, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let run = move || {
        // Of this thread alone, as Linux has it. Where it may not be said, the same work is done with more weight.
        let _ = nice(niceness);
        work();
    };
    std::thread::Builder::new().name(name).spawn(run).map(drop)
}

/// On the thread.
fn run<T>(work: impl FnOnce() -> T, reply: oneshot::Sender<T>) -> JobEnd {
    if reply.is_closed() {
        return JobEnd::Abandoned;
    }
    // What it may leave half done is its own: nobody sees it again.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(made) => {
            // Who asked may have left meanwhile.
            let _ = reply.send(made);
            JobEnd::Done
        }
        Err(_) => JobEnd::Panicked,
    }
}

impl CodingPool {
    fn count(&self, class: CodingClass) -> &ClassCounts {
        &self.counts[class as usize]
    }

    fn work_now(&self) {
        let mut queues = self.queues.lock();
        while !queues.is_over {
            let Some(job) = queues.now.take() else {
                self.now_came.wait(&mut queues);
                continue;
            };
            let is_last = queues.now.jobs.is_empty();
            drop(queues);
            if is_last {
                self.idle_changed.notify_one();
            }
            self.run(CodingClass::Now, job);
            queues = self.queues.lock();
        }
    }

    fn work_idle(&self) {
        let mut budget = IdleBudget::full(Moment::now());
        let mut queues = self.queues.lock();
        while !queues.is_over {
            if queues.idle.jobs.is_empty() || !queues.now.jobs.is_empty() {
                self.idle_changed.wait(&mut queues);
                continue;
            }
            let pause = budget.due_in(Moment::now(), queues.limits.idle_percent);
            if !pause.is_zero() {
                self.idle_changed.wait_for(&mut queues, pause);
                continue;
            }
            let job = queues.idle.take();
            drop(queues);
            budget.spend(job.map_or(0, |job| self.run(CodingClass::Idle, job)));
            queues = self.queues.lock();
        }
    }

    /// What it took of a processor, in nanoseconds.
    fn run(&self, class: CodingClass, job: WaitingJob) -> u64 {
        let counts = self.count(class);
        let begin = (self.cpu_nanos)();
        let end = (job.run)();
        let took = (self.cpu_nanos)().saturating_sub(begin);
        counts.cpu_nanos.fetch_add(took, Relaxed);
        match end {
            JobEnd::Abandoned => counts.abandoned.fetch_add(1, Relaxed),
            JobEnd::Done | JobEnd::Panicked => {
                counts.bytes.fetch_add(job.bytes as u64, Relaxed);
                counts.jobs.fetch_add(1, Relaxed)
            }
        };
        if let JobEnd::Panicked = end {
            counts.panicked.fetch_add(1, Relaxed);
        }
        took
    }
}
