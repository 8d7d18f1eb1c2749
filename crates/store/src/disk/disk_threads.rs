//! The threads of a disk: one that writes, one that syncs behind it, and several that read. None of them is ever waited for by a worker.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use super::disk_command::Command;
use super::disk_log::DiskLog;
use super::disk_queue::{CommandQueue, QuestionQueue};
use super::limits::{PROBE_TICKS, PROBE_TICKS_MAX, TICK_MS};
use super::one_disk::OneDisk;
use super::syncer::Syncer;

const TICK: Duration = Duration::from_millis(TICK_MS);
/// Nothing comes any more, so there is nothing to look for.
const FOR_GOOD: Duration = Duration::from_secs(3600);

/// The writer, and who syncs behind it. They end when it was told to close.
pub fn start_log(mut log: DiskLog, queue: Arc<CommandQueue>) -> io::Result<[JoinHandle<()>; 2]> {
    let disk = Arc::clone(&log.disk);
    let (syncer, syncing) = Syncer::start(Arc::clone(&disk.device))?;
    log.syncer = Some(syncer);
    let run = move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| write_until_closed(&mut log, &queue)));
        if outcome.is_err() {
            // What is half done stays so, and nothing is written on top of it: the disk is out until the next start.
            disk.drop_it(&io::Error::other("its writer has a defect"));
            drop(log);
            refuse_until_closed(&disk, &queue);
        }
    };
    let writing = std::thread::Builder::new().name("disk-log".into()).spawn(run)?;
    Ok([writing, syncing])
}

fn write_until_closed(log: &mut DiskLog, queue: &CommandQueue) {
    // At the start there is an index to be brought back.
    let (mut patience, mut idle_ticks, mut probe_ticks) = (Duration::ZERO, 0, PROBE_TICKS);
    loop {
        let batch = queue.take(patience);
        let is_idle = batch.is_empty();
        for (command, bytes) in batch {
            let is_last = matches!(command, Command::Close { .. });
            log.apply(command);
            queue.done(bytes);
            if is_last {
                return;
            }
        }
        log.commit_if_due(is_idle);
        let has_more = log.work();
        patience = if has_more { Duration::ZERO } else { TICK };
        let is_out = !log.disk.is_up();
        if is_out && !is_idle {
            // Whoever invalidates much must not keep it out.
            std::thread::sleep(TICK);
        }
        idle_ticks = if is_out || is_idle && !has_more { idle_ticks + 1 } else { idle_ticks };
        // What was told before it went out has been refused by now, and stays refused.
        if (is_out || is_idle) && idle_ticks >= probe_ticks {
            idle_ticks = 0;
            log.look_after();
            probe_ticks = next_probe_ticks(probe_ticks, is_out, log.probe());
        }
    }
}

/// A disk that comes and goes is tried less and less often; one that stays for as long as it was out is forgiven by and by.
fn next_probe_ticks(probe_ticks: u32, was_out: bool, is_taken_back: bool) -> u32 {
    match (was_out, is_taken_back) {
        (true, true) => (probe_ticks * 2).min(PROBE_TICKS_MAX),
        (true, false) => probe_ticks,
        (false, _) => (probe_ticks / 2).max(PROBE_TICKS),
    }
}

fn refuse_until_closed(disk: &OneDisk, queue: &CommandQueue) {
    loop {
        for (command, bytes) in queue.take(FOR_GOOD) {
            queue.done(bytes);
            match command {
                Command::Close { done } => return done.keep(()),
                Command::HandOver { done } => {
                    disk.device.release();
                    done.keep(());
                }
                // It holds in this process, and nobody keeps its promise to the index any more.
                Command::Invalidate { what, .. } => disk.index.waits_no_more(&what),
                _ => {}
            }
        }
    }
}

/// The readers. They end when their queue is closed.
pub fn start_readers(disk: &Arc<OneDisk>, queue: &Arc<QuestionQueue>) -> io::Result<Vec<JoinHandle<()>>> {
    let start = |number: usize| {
        let queue = Arc::clone(queue);
        let run = move || {
            while let Some(question) = queue.take() {
                // Who asked gets no answer, and takes that for a miss.
                let _ = catch_unwind(AssertUnwindSafe(question));
            }
        };
        std::thread::Builder::new().name(format!("disk-read-{number}")).spawn(run)
    };
    (0..disk.settings.readers.max(1)).map(start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_comes_and_goes_is_tried_less_and_less_often() {
        let after = |outcomes: &[(bool, bool)]| {
            outcomes.iter().fold(PROBE_TICKS, |ticks, &(was_out, is_back)| next_probe_ticks(ticks, was_out, is_back))
        };
        assert_eq!(after(&[(true, false); 100]), PROBE_TICKS, "it was out all the time");
        assert_eq!(after(&[(true, true); 2]), PROBE_TICKS * 4);
        assert_eq!(after(&[(true, true); 100]), PROBE_TICKS_MAX);
        let forgiven = [[(true, true); 100].as_slice(), &[(false, false); 10]].concat();
        assert_eq!(after(&forgiven), PROBE_TICKS);
    }
}
