//! Spans and log records on their way to who exports them: a place of bounded size for each core, into which it puts pieces without ever
//! waiting.
//!
//! It does not know where they go.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::limits::{EXPORT_BATCH_BYTES_MAX, EXPORTS_WAITING_BYTES_MAX};

/// What is told of exchanges, by OpenTelemetry's word for kinds of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportSignal {
    #[default]
    Spans,
    Logs,
}

impl ExportSignal {
    pub const ALL: [ExportSignal; 2] = [ExportSignal::Spans, ExportSignal::Logs];
}

/// What is exported at once, or a piece of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportBatch {
    pub signal: ExportSignal,
    /// Spans or log records as OTLP has them in JSON, with commas between them.
    pub records: Vec<u8>,
    pub count: u64,
}

#[derive(Debug, Default)]
struct WaitingRecords {
    /// By signal.
    pieces: [VecDeque<ExportBatch>; ExportSignal::ALL.len()],
    /// Of both.
    bytes: usize,
}

/// Of all cores.
#[derive(Debug)]
pub struct ExportQueue {
    of_cores: Box<[Mutex<WaitingRecords>]>,
    arrived: Notify,
    /// Which signal is taken first: they take turns, so that neither waits for the other to be done.
    turn: AtomicUsize,
    outcomes: [ExportOutcomes; ExportSignal::ALL.len()],
}

#[derive(Debug, Default)]
struct ExportOutcomes {
    batches_sent: AtomicU64,
    batches_failed: AtomicU64,
    records_sent: AtomicU64,
    records_failed: AtomicU64,
}

/// What became of what was taken from it, of one signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExportCounts {
    pub(crate) batches_sent: u64,
    pub(crate) batches_failed: u64,
    pub(crate) records_sent: u64,
    pub(crate) records_failed: u64,
}

impl ExportQueue {
    pub(crate) fn new(cores: usize) -> ExportQueue {
        ExportQueue {
            of_cores: (0..cores).map(|_| Mutex::default()).collect(),
            arrived: Notify::new(),
            turn: AtomicUsize::new(0),
            outcomes: Default::default(),
        }
    }

    /// False when there is no room for it: then it is lost.
    pub(crate) fn put(&self, core: usize, piece: ExportBatch) -> bool {
        let mut waiting = self.of_cores[core].lock();
        if waiting.bytes + piece.records.len() > EXPORTS_WAITING_BYTES_MAX {
            return false;
        }
        waiting.bytes += piece.records.len();
        waiting.pieces[piece.signal as usize].push_back(piece);
        drop(waiting);
        self.arrived.notify_one();
        true
    }

    /// What waits of one signal, up to what is sent at once.
    pub fn take(&self) -> Option<ExportBatch> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let signals = ExportSignal::ALL.len();
        (0..signals).find_map(|at| self.take_of(ExportSignal::ALL[(turn + at) % signals]))
    }

    fn take_of(&self, signal: ExportSignal) -> Option<ExportBatch> {
        let mut batch = ExportBatch { signal, ..ExportBatch::default() };
        for core in &self.of_cores {
            let mut waiting = core.lock();
            while batch.records.len() < EXPORT_BATCH_BYTES_MAX
                && let Some(piece) = waiting.pieces[signal as usize].pop_front()
            {
                waiting.bytes -= piece.records.len();
                if batch.count > 0 {
                    batch.records.push(b',');
                }
                batch.records.extend_from_slice(&piece.records);
                batch.count += piece.count;
            }
        }
        (batch.count > 0).then_some(batch)
    }

    /// The same as soon as there is something.
    pub async fn next(&self) -> ExportBatch {
        loop {
            let arrived = self.arrived.notified();
            if let Some(batch) = self.take() {
                return batch;
            }
            arrived.await;
        }
    }

    /// A batch has arrived, of which the other end refused so many records.
    pub fn note_sent(&self, batch: &ExportBatch, refused: u64) {
        let refused = refused.min(batch.count);
        let outcomes = &self.outcomes[batch.signal as usize];
        outcomes.batches_sent.fetch_add(1, Ordering::Relaxed);
        outcomes.records_sent.fetch_add(batch.count - refused, Ordering::Relaxed);
        outcomes.records_failed.fetch_add(refused, Ordering::Relaxed);
    }

    /// It was given up.
    pub fn note_failed(&self, batch: &ExportBatch) {
        let outcomes = &self.outcomes[batch.signal as usize];
        outcomes.batches_failed.fetch_add(1, Ordering::Relaxed);
        outcomes.records_failed.fetch_add(batch.count, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self, signal: ExportSignal) -> ExportCounts {
        let outcomes = &self.outcomes[signal as usize];
        ExportCounts {
            batches_sent: outcomes.batches_sent.load(Ordering::Relaxed),
            batches_failed: outcomes.batches_failed.load(Ordering::Relaxed),
            records_sent: outcomes.records_sent.load(Ordering::Relaxed),
            records_failed: outcomes.records_failed.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: usize) -> ExportBatch {
        ExportBatch { records: vec![b'x'; bytes], count: 1, ..ExportBatch::default() }
    }

    fn log_piece(bytes: usize) -> ExportBatch {
        ExportBatch { signal: ExportSignal::Logs, ..piece(bytes) }
    }

    #[test]
    fn what_has_no_room_is_not_taken_and_other_cores_have_their_own() {
        let queue = ExportQueue::new(2);
        assert!(queue.put(0, piece(EXPORTS_WAITING_BYTES_MAX)));
        assert!(!queue.put(0, piece(1)) && !queue.put(0, log_piece(1)), "the room is for both");
        assert!(queue.put(1, piece(1)));
        assert_eq!(queue.take().map(|batch| batch.count), Some(1), "a batch is full with what is too much for it");
        assert_eq!(queue.take(), Some(piece(1)));
        assert_eq!(queue.take(), None);
        assert!(queue.put(0, piece(1)));
    }

    #[test]
    fn signals_take_turns_and_are_never_in_one_batch() {
        let queue = ExportQueue::new(1);
        (0..3).for_each(|_| assert!(queue.put(0, piece(EXPORT_BATCH_BYTES_MAX / 2)) && queue.put(0, log_piece(2))));
        let taken: Vec<_> = std::iter::from_fn(|| queue.take()).map(|batch| (batch.signal, batch.count)).collect();
        assert_eq!(taken, [(ExportSignal::Spans, 2), (ExportSignal::Logs, 3), (ExportSignal::Spans, 1)]);
    }

    #[tokio::test]
    async fn pieces_are_joined_and_what_became_of_them_is_counted() {
        let queue = ExportQueue::new(1);
        (0..3).for_each(|_| assert!(queue.put(0, log_piece(2))));
        let batch = queue.next().await;
        assert_eq!(batch, ExportBatch { signal: ExportSignal::Logs, records: b"xx,xx,xx".to_vec(), count: 3 });
        queue.note_sent(&batch, 1);
        queue.note_failed(&batch);
        let expect = ExportCounts { batches_sent: 1, batches_failed: 1, records_sent: 2, records_failed: 4 };
        assert_eq!(queue.counts(ExportSignal::Logs), expect);
        assert_eq!(queue.counts(ExportSignal::Spans), ExportCounts::default());
    }
}
