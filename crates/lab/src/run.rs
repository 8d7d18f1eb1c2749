//! A run: a look whether the target is there, a thread for each share of the users, and the sum of what they bring.

use std::fmt;
use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::client_thread::{Brought, Part, ThreadJob, work};
use crate::coded_look::look;
use crate::coded_pages::{CodedPages, FormsSeen};
use crate::http2_requests::Http2Requests;
use crate::lab_clock::Nanos;
use crate::learned::Learned;
use crate::sources;
use crate::tally::{Second, Tally};
use crate::tls_client::TlsClient;
use crate::verdict::Awaited;
use crate::workload::{Load, Workload};

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    pub elapsed: Duration,
    pub tally: Tally,
    /// Whole seconds, and last what was left.
    pub seconds: Vec<Second>,
    pub threads: Vec<ThreadCost>,
    /// Where a content coding was asked for.
    pub forms: Option<FormsSeen>,
}

/// What a thread of the generator used itself.
#[derive(Clone, Copy, Debug)]
pub struct ThreadCost {
    pub cpu: Duration,
    /// Of one core.
    pub busy_share: f64,
}

/// Why there was no run.
#[derive(Debug)]
pub enum StartError {
    Unreachable {
        /// An address, or the path of a socket.
        target: String,
        error: io::Error,
    },
    NoThread(io::Error),
    /// TLS cannot be spoken as it was asked for.
    NoTls(String),
    /// What is asked for cannot be asked over HTTP/2.
    NoHttp2(String),
    /// The machine has no room for what is asked.
    NoRoom(String),
    /// The pages are not there in the content coding that is asked for.
    BadLook(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Unreachable { target, error } => write!(f, "cannot connect to {target}: {error}"),
            StartError::NoHttp2(why) => write!(f, "{why}"),
            StartError::NoTls(why) => write!(f, "cannot speak TLS: {why}"),
            StartError::NoThread(error) => write!(f, "cannot start a thread: {error}"),
            StartError::NoRoom(why) | StartError::BadLook(why) => write!(f, "{why}"),
        }
    }
}

/// Runs to its end, or until `stop` is true. `on_second` gets each second when all threads have ended it.
pub fn run(
    workload: Workload,
    catalogue: Catalogue,
    stop: &Arc<AtomicBool>,
    on_second: &mut dyn FnMut(usize, &Second),
) -> Result<Outcome, StartError> {
    let catalogue = Arc::new(catalogue);
    let known = workload.known_bodies.as_ref().filter(|bodies| bodies.len() == catalogue.len());
    let awaited = match (workload.encoding, known) {
        (None, _) => Awaited::Any,
        (Some(coding), Some(bodies)) => Awaited::Coded(Arc::new(CodedPages::new(coding, bodies))),
        (Some(coding), None) => Awaited::Coded(look(&workload, &catalogue, coding, stop)?),
    };
    let learned = Arc::new(match known {
        Some(bodies) => Learned::knowing(bodies),
        None if catalogue.is_of_memcached() => Learned::new(0),
        None => Learned::new(catalogue.len()),
    });
    load(workload, Round { catalogue, learned, awaited }, stop, on_second)
}

/// What is asked for, and what the answers are judged by.
pub(crate) struct Round {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) learned: Arc<Learned>,
    pub(crate) awaited: Awaited,
}

/// The load itself.
pub(crate) fn load(
    mut workload: Workload,
    round: Round,
    stop: &Arc<AtomicBool>,
    on_second: &mut dyn FnMut(usize, &Second),
) -> Result<Outcome, StartError> {
    let Round { catalogue, learned, awaited } = round;
    if let Some(count) = workload.length.requests() {
        workload.users = workload.users.min(usize::try_from(count).unwrap_or(usize::MAX));
    }
    if let Load::Sessions { count, .. } = workload.load {
        workload.users = workload.users.min(usize::try_from(count).unwrap_or(usize::MAX));
    }
    workload.threads = workload.threads.clamp(1, workload.users.max(1));
    sources::check(&workload, sources::port_range()).map_err(StartError::NoRoom)?;
    let http2 = workload.http2.then(|| Http2Requests::of(&catalogue, workload.tls.is_some()).map(Arc::new));
    let http2 = http2.transpose().map_err(StartError::NoHttp2)?;
    let protocol = if http2.is_some() { &b"h2"[..] } else { b"http/1.1" };
    let tls = workload.tls.as_ref().map(|settings| TlsClient::new(settings, protocol));
    let tls = tls.transpose().map_err(|error| StartError::NoTls(error.to_string()))?;
    knock(&workload)?;

    let threads = workload.threads;
    let (sender, receiver) = mpsc::channel();
    let job = ThreadJob {
        thread: 0,
        learned,
        awaited,
        workload: Arc::new(workload),
        catalogue,
        tls,
        http2,
        begun: Nanos::now(),
        stop: Arc::clone(stop),
        seconds: sender,
    };
    let (begun, awaited) = (job.begun, job.awaited.clone());
    let mut workers = Vec::with_capacity(threads);
    for thread in 0..threads {
        let job = ThreadJob { thread, ..job.clone() };
        let builder = std::thread::Builder::new().name(format!("bench-{thread}"));
        workers.push(builder.spawn(move || work(&job)).map_err(|error| {
            stop.store(true, Ordering::Relaxed);
            StartError::NoThread(error)
        })?);
    }
    drop(job);
    let seconds = gather(&receiver, threads, on_second);
    let mut brought = Vec::with_capacity(threads);
    for worker in workers {
        brought.push(worker.join().expect("a thread of the generator panicked").map_err(StartError::NoThread)?);
    }
    let forms = match awaited {
        Awaited::Coded(pages) => Some(pages.seen()),
        Awaited::Any | Awaited::Identity => None,
    };
    Ok(Outcome { forms, ..sum_up(begun, seconds, &brought) })
}

/// Is anybody there?
fn knock(workload: &Workload) -> Result<(), StartError> {
    let (target, looked) = match &workload.unix {
        Some(path) => (path.display().to_string(), UnixStream::connect(path).map(drop)),
        None => {
            let address = workload.address;
            (address.to_string(), TcpStream::connect_timeout(&address, workload.timeout).map(drop))
        }
    };
    looked.map_err(|error| StartError::Unreachable { target, error })
}

/// Puts the seconds of the threads together, until the last thread has ended. A second is over when every thread that
/// still runs has ended it: one that was done before has no part in it.
fn gather(
    receiver: &Receiver<(usize, Part)>,
    threads: usize,
    on_second: &mut dyn FnMut(usize, &Second),
) -> Vec<Second> {
    let mut seconds: Vec<Second> = Vec::new();
    let mut came = vec![0; threads];
    let mut has_ended = vec![false; threads];
    let mut shown = 0;
    while let Ok((thread, part)) = receiver.recv() {
        let (Part::Whole(second) | Part::Last(second)) = &part;
        has_ended[thread] = matches!(part, Part::Last(_));
        if came[thread] == seconds.len() {
            seconds.push(Second::default());
        }
        seconds[came[thread]].add(second);
        came[thread] += 1;
        let is_over = |index: usize| (0..threads).all(|thread| has_ended[thread] || came[thread] > index);
        while shown < seconds.len() && is_over(shown) {
            on_second(shown, &seconds[shown]);
            shown += 1;
        }
    }
    seconds
}

fn sum_up(begun: Nanos, seconds: Vec<Second>, brought: &[Brought]) -> Outcome {
    let mut tally = Tally::default();
    let mut elapsed = Duration::ZERO;
    let mut threads = Vec::with_capacity(brought.len());
    for one in brought {
        tally.add(&one.tally);
        let time = begun.until(one.ended);
        elapsed = elapsed.max(time);
        let cpu = Duration::from_nanos(one.cpu.0);
        threads.push(ThreadCost { cpu, busy_share: cpu.as_secs_f64() / time.as_secs_f64().max(1e-9) });
    }
    Outcome { elapsed, tally, seconds, threads, forms: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the threads hand over, in the order in which it comes, and the good answers of each second that is shown.
    fn check(threads: usize, parts: &[(usize, Part)], expect: &[u64]) {
        let (sender, receiver) = mpsc::channel();
        parts.iter().for_each(|part| sender.send(part.clone()).unwrap());
        drop(sender);
        let mut shown = Vec::new();
        let seconds = gather(&receiver, threads, &mut |index, second| {
            assert_eq!(index, shown.len());
            shown.push(second.good);
        });
        assert_eq!(shown, expect);
        assert_eq!(seconds.iter().map(|second| second.good).collect::<Vec<_>>(), expect);
    }

    fn whole(thread: usize, good: u64) -> (usize, Part) {
        (thread, Part::Whole(Second { good, ..Second::default() }))
    }

    fn last(thread: usize, good: u64) -> (usize, Part) {
        (thread, Part::Last(Second { good, ..Second::default() }))
    }

    #[test]
    fn seconds_are_shown_when_all_threads_have_ended_them() {
        check(2, &[whole(0, 1), whole(0, 2), whole(1, 10), whole(1, 20), last(0, 3), last(1, 30)], &[11, 22, 33]);
    }

    #[test]
    fn a_thread_that_ends_early_does_not_keep_the_others_seconds() {
        check(2, &[last(0, 1), whole(1, 10), whole(1, 20), whole(1, 30), last(1, 40)], &[11, 20, 30, 40]);
        check(2, &[whole(1, 10), whole(1, 20), last(0, 1), last(1, 30)], &[11, 20, 30]);
        check(1, &[last(0, 7)], &[7]);
    }
}
