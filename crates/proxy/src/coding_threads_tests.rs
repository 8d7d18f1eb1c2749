//! What `coding_threads` must do, with its real threads: who waits gets what was made, what is too much comes back, and nobody waits for
//! what has time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::getpriority_process;

use crate::clock::thread_cpu_nanos;
use crate::coding_threads::{CodingJob, CodingStatus, CodingThreads, JobLost};
use crate::limits::Limits;

/// So long nothing happens that must not happen.
const A_WHILE: Duration = Duration::from_millis(50);

fn limits(jobs: usize, bytes: usize, idle_percent: u32) -> Limits {
    Limits {
        coding_threads: 1,
        coding_jobs_max: jobs,
        coding_jobs_bytes_max: bytes,
        coding_idle_percent: idle_percent,
        ..Limits::default()
    }
}

fn threads(jobs: usize, bytes: usize, idle_percent: u32) -> CodingThreads {
    CodingThreads::start(&limits(jobs, bytes, idle_percent), 1).unwrap()
}

fn put<T: Send + 'static>(threads: &CodingThreads, work: impl FnOnce() -> T + Send + 'static) -> CodingJob<T> {
    threads.now(1, work).unwrap_or_else(|_| panic!("there is room"))
}

/// Holds the only thread up, from when this returns until the sender is dropped.
fn hold(threads: &CodingThreads) -> Sender<()> {
    let (release, held) = channel::<()>();
    let (began, begins) = channel();
    let job = put(threads, move || {
        let _ = began.send(());
        let _ = held.recv();
    });
    begins.recv().unwrap();
    drop(job);
    release
}

async fn until(threads: &CodingThreads, is_so: impl Fn(CodingStatus) -> bool) -> CodingStatus {
    for _ in 0..20_000 {
        match threads.status() {
            status if is_so(status) => return status,
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
    panic!("it never came to {:?}", threads.status());
}

#[tokio::test]
async fn who_waits_gets_what_was_made_elsewhere() {
    let (threads, here) = (threads(8, 100, 0), std::thread::current().id());
    let usual = getpriority_process(None).unwrap();
    let job = threads.now(30, move || (std::thread::current().id() != here, getpriority_process(None).unwrap(), 6 * 7));
    let (is_elsewhere, nice, made) = job.unwrap_or_else(|_| panic!("there is room")).await.unwrap();
    assert_eq!((is_elsewhere, made), (true, 42));
    assert!(nice > usual, "it gives way to the cores: {nice}");
    assert_eq!(getpriority_process(None).unwrap(), usual, "and they do not");
    let now = until(&threads, |status| status.now.jobs == 1).await.now;
    assert_eq!((now.bytes, now.refused, now.abandoned, now.panicked), (30, 0, 0, 0));
}

#[tokio::test]
async fn what_is_too_much_comes_back_at_once() {
    for (jobs, bytes, fits) in [(2, usize::MAX, 2), (100, 30, 3), (0, 100, 0)] {
        let threads = threads(jobs, bytes, 100);
        let held = (jobs > 0).then(|| hold(&threads));
        let mut waiting = Vec::new();
        let refused = loop {
            match threads.now(10, || "made") {
                Ok(job) => waiting.push(job),
                Err(work) => break work(),
            }
        };
        assert_eq!((refused, waiting.len()), ("made", fits));
        let now = threads.status().now;
        assert_eq!((now.refused, now.waiting, now.waiting_bytes), (1, fits as u64, 10 * fits as u64));
        // The other class has room of its own.
        assert_eq!(threads.idle(10, || ()).is_ok(), jobs > 0);
        drop(held);
        for job in waiting {
            assert_eq!(job.await, Ok("made"));
        }
        let now = threads.status().now;
        assert_eq!((now.waiting, now.waiting_bytes), (0, 0));
    }
}

#[tokio::test]
async fn one_that_is_larger_than_all_may_wait_where_nothing_else_does() {
    let threads = threads(8, 100, 0);
    let held = hold(&threads);
    let large = threads.now(1_000, || 1).unwrap_or_else(|_| panic!("nothing else waits"));
    assert!(threads.now(1, || 2).is_err());
    drop(held);
    assert_eq!(large.await, Ok(1));
}

#[tokio::test]
async fn what_has_time_waits_for_what_has_none() {
    let threads = threads(8, 100, 100);
    let held = hold(&threads);
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |class| {
        let order = Arc::clone(&order);
        move || order.lock().unwrap().push(class)
    };
    let (first, second) = (put(&threads, note("now")), put(&threads, note("now")));
    let idle = threads.idle(1, note("idle")).unwrap_or_else(|_| panic!("there is room"));
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(threads.status().idle.waiting, 1);
    drop(held);
    assert_eq!((idle.await, first.await, second.await), (Ok(()), Ok(()), Ok(())));
    // The second may have been begun, and not come to its note, when the other thread saw that nothing waited.
    assert_eq!(order.lock().unwrap()[0], "now");
}

#[tokio::test]
async fn nobody_who_waits_waits_for_what_has_time() {
    let threads = threads(8, 100, 100);
    let (release, held) = channel::<()>();
    let idle = threads.idle(1, move || held.recv().is_err()).unwrap_or_else(|_| panic!("there is room"));
    until(&threads, |status| status.idle.waiting == 0).await;
    assert_eq!(put(&threads, || "now").await, Ok("now"));
    drop(release);
    assert_eq!(idle.await, Ok(true));
}

/// What all threads of this test took of processors, as its jobs say: how long they truly took depends on who else wants them.
static TOLD_NANOS: AtomicU64 = AtomicU64::new(0);

fn told_nanos() -> u64 {
    TOLD_NANOS.load(SeqCst)
}

#[tokio::test]
async fn idle_work_keeps_within_its_share() {
    // One per cent of ten seconds are there at the start.
    let threads = CodingThreads::start_by(told_nanos, &limits(8, 100, 1), 1).unwrap();
    let take = || TOLD_NANOS.fetch_add(60_000_000_000, SeqCst);
    threads.idle(1, take).unwrap_or_else(|_| panic!("there is room")).await.unwrap();
    let next = threads.idle(1, || ()).unwrap_or_else(|_| panic!("there is room"));
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(threads.status().idle.waiting, 1, "a hundred minutes have to go by for what was too much");
    assert_eq!(put(&threads, || 1).await, Ok(1), "what somebody waits for has no share to keep");
    threads.set_limits(&Limits { coding_idle_percent: 0, ..limits(8, 100, 1) });
    assert_eq!(next.await, Err(JobLost));
    assert_eq!(until(&threads, |status| status.idle.jobs == 1).await.idle.cpu_micros, 60_000_000);
}

#[tokio::test]
async fn what_work_takes_of_a_processor_is_counted() {
    let threads = threads(8, 100, 100);
    put(&threads, || while thread_cpu_nanos() < 3_000_000 {}).await.unwrap();
    let now = until(&threads, |status| status.now.jobs == 1).await.now;
    assert!(now.cpu_micros >= 1_000, "{now:?}");
}

#[tokio::test]
async fn without_a_share_nothing_is_done_in_idle_time() {
    assert!(threads(8, 100, 0).idle(1, || ()).is_err());
    let threads = threads(8, 100, 100);
    let _held = hold(&threads);
    let (_first, idle) = (put(&threads, || ()), threads.idle(1, || ()).unwrap_or_else(|_| panic!("there is room")));
    threads.set_limits(&limits(8, 100, 0));
    assert_eq!(idle.await, Err(JobLost), "what waited is told");
}

#[tokio::test]
async fn a_panic_is_that_of_one_job() {
    let threads = threads(8, 100, 100);
    let bad = put(&threads, || -> u8 { panic!("planted by a test") });
    assert_eq!(bad.await, Err(JobLost));
    assert_eq!(put(&threads, || 1).await, Ok(1));
    let idle = threads.idle(1, || -> u8 { panic!("planted by a test") });
    assert_eq!(idle.unwrap_or_else(|_| panic!("there is room")).await, Err(JobLost));
    let status = until(&threads, |status| status.now.jobs == 2 && status.idle.jobs == 1).await;
    assert_eq!((status.now.panicked, status.idle.panicked), (1, 1));
}

#[tokio::test]
async fn what_nobody_wants_any_more_is_not_done() {
    let threads = threads(8, 100, 0);
    let held = hold(&threads);
    let done = Arc::new(AtomicBool::new(false));
    let job = put(&threads, {
        let done = Arc::clone(&done);
        move || done.store(true, SeqCst)
    });
    drop(job);
    drop(held);
    assert_eq!(put(&threads, || 1).await, Ok(1), "the next one comes after it");
    assert!(!done.load(SeqCst));
    assert_eq!(until(&threads, |status| status.now.abandoned == 1).await.now.panicked, 0);
}

#[tokio::test]
async fn jobs_of_a_class_begin_in_their_order() {
    let threads = threads(100, 100, 0);
    let (held, count) = (hold(&threads), Arc::new(AtomicU64::new(0)));
    let jobs: Vec<_> = (0..50)
        .map(|_| {
            let count = Arc::clone(&count);
            put(&threads, move || count.fetch_add(1, SeqCst))
        })
        .collect();
    drop(held);
    for (number, job) in jobs.into_iter().enumerate() {
        assert_eq!(job.await, Ok(number as u64));
    }
}

#[tokio::test]
async fn the_end_waits_for_nothing() {
    let threads = threads(8, 100, 100);
    let (began, begins) = channel();
    let (release, held) = channel::<()>();
    let ended = put(&threads, move || {
        let _ = began.send(());
        tell_at_end(&held)
    });
    begins.recv().unwrap();
    let (now, idle) = (put(&threads, || ()), threads.idle(1, || ()).unwrap_or_else(|_| panic!("there is room")));
    drop(threads);
    assert_eq!((now.await, idle.await), (Err(JobLost), Err(JobLost)), "what waited is told");
    drop(release);
    assert_eq!(ended.await, Ok("over"), "what was under way goes on");
}

fn tell_at_end(held: &Receiver<()>) -> &'static str {
    let _ = held.recv();
    "over"
}

#[tokio::test]
async fn without_threads_everything_comes_back() {
    let none = CodingThreads::none();
    assert_eq!(none.now(1, || 5).err().map(|work| work()), Some(5));
    assert!(none.idle(1, || ()).is_err());
    assert_eq!(none.status(), CodingStatus::default());
}
