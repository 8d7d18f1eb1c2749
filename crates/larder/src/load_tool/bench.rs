//! `larder bench`: a run of load, stopped by a signal, and its outcome as a report. The flags are `bench_flags`', what they
//! come to `bench_job`'s, the load itself `lab`'s.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lab::Outcome;
use tokio::sync::oneshot;

use crate::load_tool::bench_flags::BenchFlags;
use crate::load_tool::bench_job::{Job, job};
use crate::load_tool::bench_memcached::preload;
use crate::load_tool::bench_show::Show;
use crate::say::say;
use crate::signals::{Signals, Told};

pub fn bench(flags: &BenchFlags) -> ExitCode {
    let outcome = job(flags).and_then(|job| {
        if flags.memcached.preload {
            preload(flags, &job.workload)?;
        }
        let signals = Signals::listen().map_err(|error| format!("cannot listen for signals: {error}"))?;
        let show = Show::begin(flags, &job)?;
        run(job, show, signals)
    });
    match outcome {
        Ok((mut show, outcome)) => {
            show.end(&outcome);
            let all_good = outcome.tally.failed() == 0 && outcome.tally.answers() > 0;
            if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(sentence) => {
            say!("error: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Runs in a thread of its own while this one listens for signals: the first one ends the run, and the report follows.
fn run(job: Job, show: Show, mut signals: Signals) -> Result<(Show, Outcome), String> {
    let stop = Arc::new(AtomicBool::new(false));
    let (ended_sender, mut ended) = oneshot::channel();
    let running = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            let mut show = show;
            let outcome = lab::run(job.workload, job.catalogue, &stop, &mut |index, second| show.second(index, second));
            let _ = ended_sender.send(());
            (show, outcome)
        })
    };
    loop {
        match signals.wait(&mut ended, None) {
            Told::End => stop.store(true, Ordering::Relaxed),
            Told::Ended => break,
            Told::Reload | Told::Nothing => {}
        }
    }
    let (show, outcome) = running.join().map_err(|_| "the run panicked".to_owned())?;
    Ok((show, outcome.map_err(|error| error.to_string())?))
}
