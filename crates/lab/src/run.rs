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
use crate::client_thread::{Brought, Errand, work};
use crate::lab_clock::Nanos;
use crate::learned::Learned;
use crate::sources;
use crate::tally::{Second, Tally};
use crate::workload::{Load, Workload};

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    pub elapsed: Duration,
    pub tally: Tally,
    /// Whole seconds, and last what was left.
    pub seconds: Vec<Second>,
    pub threads: Vec<ThreadCost>,
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
    /// The machine has no room for what is asked.
    NoRoom(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Unreachable { target, error } => write!(f, "cannot connect to {target}: {error}"),
            StartError::NoThread(error) => write!(f, "cannot start a thread: {error}"),
            StartError::NoRoom(why) => write!(f, "{why}"),
        }
    }
}

/// Runs to its end, or until `stop` is true. `on_second` gets each second when all threads have ended it.
pub fn run(
    mut workload: Workload,
    catalogue: Catalogue,
    stop: &Arc<AtomicBool>,
    on_second: &mut dyn FnMut(usize, &Second),
) -> Result<Outcome, StartError> {
    if let Some(count) = workload.length.requests() {
        workload.users = workload.users.min(usize::try_from(count).unwrap_or(usize::MAX));
    }
    if let Load::Sessions { count, .. } = workload.load {
        workload.users = workload.users.min(usize::try_from(count).unwrap_or(usize::MAX));
    }
    workload.threads = workload.threads.clamp(1, workload.users.max(1));
    sources::check(&workload, sources::port_range()).map_err(StartError::NoRoom)?;
    look(&workload)?;

    let threads = workload.threads;
    let (sender, receiver) = mpsc::channel();
    let errand = Errand {
        thread: 0,
        learned: Arc::new(match &workload.known_bodies {
            Some(bodies) if bodies.len() == catalogue.len() => Learned::knowing(bodies),
            _ if catalogue.is_of_memcached() => Learned::new(0),
            _ => Learned::new(catalogue.len()),
        }),
        workload: Arc::new(workload),
        catalogue: Arc::new(catalogue),
        begun: Nanos::now(),
        stop: Arc::clone(stop),
        seconds: sender,
    };
    let begun = errand.begun;
    let mut workers = Vec::with_capacity(threads);
    for thread in 0..threads {
        let errand = Errand { thread, ..errand.clone() };
        let builder = std::thread::Builder::new().name(format!("bench-{thread}"));
        workers.push(builder.spawn(move || work(&errand)).map_err(|error| {
            stop.store(true, Ordering::Relaxed);
            StartError::NoThread(error)
        })?);
    }
    drop(errand);
    let seconds = gather(&receiver, threads, on_second);
    let mut brought = Vec::with_capacity(threads);
    for worker in workers {
        brought.push(worker.join().expect("a thread of the generator panicked").map_err(StartError::NoThread)?);
    }
    Ok(sum_up(begun, seconds, &brought))
}

/// Is anybody there?
fn look(workload: &Workload) -> Result<(), StartError> {
    let (target, looked) = match &workload.unix {
        Some(path) => (path.display().to_string(), UnixStream::connect(path).map(drop)),
        None => {
            let address = workload.address;
            (address.to_string(), TcpStream::connect_timeout(&address, workload.timeout).map(drop))
        }
    };
    looked.map_err(|error| StartError::Unreachable { target, error })
}

/// Puts the seconds of the threads together, until the last thread has ended.
fn gather(
    receiver: &Receiver<(usize, Second)>,
    threads: usize,
    on_second: &mut dyn FnMut(usize, &Second),
) -> Vec<Second> {
    let mut seconds: Vec<(usize, Second)> = Vec::new();
    let mut came = vec![0; threads];
    while let Ok((thread, second)) = receiver.recv() {
        let index = came[thread];
        came[thread] += 1;
        if index == seconds.len() {
            seconds.push((0, Second::default()));
        }
        let (parts, sum) = &mut seconds[index];
        *parts += 1;
        sum.add(&second);
        if *parts == threads {
            on_second(index, sum);
        }
    }
    seconds.into_iter().map(|(_, second)| second).collect()
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
    Outcome { elapsed, tally, seconds, threads }
}
