//! The thread that reads the counters once a second, makes rows of them, annotations what happened, and saves both.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use proxy::{LineAllowance, Moment, NOTICES_AT_ONCE, Proxy, wall_now_ms};

use super::History;
use super::annotation::{Annotation, AnnotationKind};
use super::history_columns::HistoryRow;
use super::history_file::{HistoryFile, HistoryFileFinding};
use super::history_reading::HistoryReading;
use super::history_ring::HistoryStep;
use crate::limits::{HISTORY_SAVED_EVERY_S, HISTORY_TURNS_TOLD_MAX};
use crate::say::say;

/// Ends the thread when it goes, with what is not saved yet.
pub struct HistorySampler {
    end: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl HistorySampler {
    /// `file`: where it is kept over a restart. What is wrong with that is a warning, and the history is kept in memory.
    pub fn start(proxy: Proxy, history: Arc<History>, file: Option<&Path>) -> io::Result<HistorySampler> {
        let file = file.and_then(|path| opened(path, &history));
        history.annotate(AnnotationKind::Restart, env!("CARGO_PKG_VERSION"));
        let (end, ended) = channel();
        let sampling = Sampling::begin(history, file, HistoryReading::of(&proxy));
        let thread = std::thread::Builder::new().name("larder-history".to_owned());
        let thread = thread.spawn(move || sample(&proxy, sampling, &ended))?;
        Ok(HistorySampler { end: Mutex::new(Some((end, thread))) })
    }

    pub fn finish(&self) {
        if let Some((end, thread)) = self.end.lock().take() {
            drop(end);
            // If it panicked there is nothing more to save.
            let _ = thread.join();
        }
    }
}

impl Drop for HistorySampler {
    fn drop(&mut self) {
        self.finish();
    }
}

fn opened(path: &Path, history: &History) -> Option<HistoryFile> {
    let shown = path.display();
    match HistoryFile::open(path, wall_now_ms() / 1_000, &mut history.ring.lock()) {
        Ok((file, finding)) => {
            match finding {
                HistoryFileFinding::New | HistoryFileFinding::Read => {}
                HistoryFileFinding::Damaged(places) => {
                    say!("warning: {places} parts of the history {shown} are damaged and left out")
                }
                HistoryFileFinding::BegunAnew(why) => {
                    say!("warning: the history {shown} is begun anew: {why} ([admin] history)")
                }
            }
            Some(file)
        }
        Err(why) => {
            say!("warning: the history is kept in memory alone: {shown}: {why} ([admin] history)");
            None
        }
    }
}

fn sample(proxy: &Proxy, mut sampling: Sampling, ended: &Receiver<()>) {
    loop {
        let into_second_ms = wall_now_ms() % 1_000;
        match ended.recv_timeout(Duration::from_millis(1_000 - into_second_ms)) {
            Err(RecvTimeoutError::Timeout) => sampling.take(HistoryReading::of(proxy)),
            _ => break,
        }
    }
    sampling.save();
}

/// What is between two readings.
struct Sampling {
    history: Arc<History>,
    file: Option<HistoryFile>,
    last: HistoryReading,
    /// Where the minute began.
    minute: HistoryReading,
    unsaved_seconds: Vec<HistoryRow>,
    unsaved_minutes: Vec<HistoryRow>,
    saved_at_s: u64,
    annotations_saved: u64,
    /// The last rows could not be saved.
    is_failing: bool,
    allowance: LineAllowance,
    /// That it fails was said, and not yet that it does no more.
    is_told: bool,
}

impl Sampling {
    fn begin(history: Arc<History>, file: Option<HistoryFile>, first: HistoryReading) -> Sampling {
        let saved_at_s = first.at_s();
        let minute = first.clone();
        Sampling {
            history,
            file,
            last: first,
            minute,
            unsaved_seconds: Vec::new(),
            unsaved_minutes: Vec::new(),
            saved_at_s,
            annotations_saved: 0,
            is_failing: false,
            allowance: LineAllowance::of(NOTICES_AT_ONCE),
            is_told: false,
        }
    }

    fn take(&mut self, reading: HistoryReading) {
        // A timer may be a little early.
        if reading.at_s() == self.last.at_s() {
            return;
        }
        let row = reading.since(&self.last);
        self.history.ring.lock().add(HistoryStep::Second, row);
        self.unsaved_seconds.push(row);
        self.annotate(&reading);
        if reading.at_s() / 60 != self.minute.at_s() / 60 {
            let row = reading.since(&self.minute);
            self.history.ring.lock().add(HistoryStep::Minute, row);
            self.unsaved_minutes.push(row);
            self.minute = reading.clone();
        }
        self.last = reading;
        if self.last.at_s().abs_diff(self.saved_at_s) >= HISTORY_SAVED_EVERY_S {
            self.save();
        }
    }

    fn annotate(&self, reading: &HistoryReading) {
        let mut ring = self.history.ring.lock();
        let annotation = |kind, text: &str| Annotation::new(reading.at_s(), kind, text);
        let purges = reading.purges_since(&self.last);
        if purges > 0 {
            ring.annotate(Annotation { count: purges, ..annotation(AnnotationKind::Purge, "by PURGE") });
        }
        for (name, serves) in reading.turned(&self.last).take(HISTORY_TURNS_TOLD_MAX) {
            let kind = if serves { AnnotationKind::Back } else { AnnotationKind::Out };
            ring.annotate(annotation(kind, name));
        }
    }

    /// A file that cannot be written is tried again the next time, with all that is kept by then.
    fn save(&mut self) {
        self.saved_at_s = self.last.at_s();
        let (seconds, minutes) = (std::mem::take(&mut self.unsaved_seconds), std::mem::take(&mut self.unsaved_minutes));
        let Some(file) = &self.file else { return };
        let ring = self.history.ring.lock();
        let version = ring.annotations_version();
        let all = |step| ring.rows(step).iter().copied().collect();
        let (seconds, minutes) = match self.is_failing {
            true => (all(HistoryStep::Second), all(HistoryStep::Minute)),
            false => (seconds, minutes),
        };
        let is_changed = self.is_failing || version != self.annotations_saved;
        let annotations = is_changed.then(|| ring.annotations().clone());
        drop(ring);
        let saved = file
            .write_rows(HistoryStep::Second, &seconds)
            .and_then(|()| file.write_rows(HistoryStep::Minute, &minutes))
            .and_then(|()| annotations.map_or(Ok(()), |annotations| file.write_annotations(annotations.iter())));
        self.annotations_saved = version;
        let shown = file.path().display();
        self.is_failing = saved.is_err();
        match saved {
            Err(error) if !self.is_told && self.allowance.take(Moment::now().millis()) => {
                self.is_told = true;
                say!(
                    "warning: the history {shown} cannot be written: {error}; it is kept in memory until it can ([admin] history)"
                );
            }
            Ok(()) if std::mem::take(&mut self.is_told) => say!("the history {shown} can be written again"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::history_reading::tests::reading;
    use super::*;

    fn taken(readings: impl IntoIterator<Item = HistoryReading>) -> Arc<History> {
        let history = Arc::new(History::default());
        let mut sampling = Sampling::begin(Arc::clone(&history), None, reading(1_000, 0, true));
        readings.into_iter().for_each(|reading| sampling.take(reading));
        history
    }

    #[test]
    fn seconds_become_minutes() {
        let history = taken((1_001..1_200).map(|at_s| reading(at_s, (at_s - 1_000) * 3, true)));
        let ring = history.ring.lock();
        assert_eq!(ring.rows(HistoryStep::Second).len(), 199);
        assert!(ring.rows(HistoryStep::Second).iter().all(|row| row.of("requests") == 3));
        let minutes: Vec<(u64, u64)> =
            ring.rows(HistoryStep::Minute).iter().map(|row| (row.at_s(), row.of("requests"))).collect();
        // 1020 is the end of a minute; the first one was begun in its middle.
        assert_eq!(minutes, [(1_020, 60), (1_080, 180), (1_140, 180)]);
        assert_eq!(ring.rows(HistoryStep::Minute)[1].of("store_p50"), 7);
    }

    #[test]
    fn a_second_that_was_slept_through_is_covered_by_the_next_row() {
        let history = taken([reading(1_001, 1, true), reading(1_001, 2, true), reading(1_009, 9, true)]);
        let ring = history.ring.lock();
        let rows: Vec<[u64; 3]> = ring
            .rows(HistoryStep::Second)
            .iter()
            .map(|row| [row.at_s(), row.of("span_ms"), row.of("requests")])
            .collect();
        assert_eq!(rows, [[1_001, 1_000, 1], [1_009, 8_000, 8]]);
    }

    #[test]
    fn who_is_left_out_is_told() {
        let history = taken([reading(1_001, 1, false), reading(1_002, 1, false), reading(1_003, 1, true)]);
        let ring = history.ring.lock();
        let annotations: Vec<_> = ring
            .annotations()
            .iter()
            .map(|annotation| (annotation.at_s, annotation.kind, annotation.text.as_str()))
            .collect();
        let app = "app 10.0.0.1:80";
        assert_eq!(annotations, [(1_001, AnnotationKind::Out, app), (1_003, AnnotationKind::Back, app)]);
    }
}
