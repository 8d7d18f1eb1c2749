//! Spans on their way to who exports them: a place of bounded size for each core, into which it puts pieces without ever waiting.
//!
//! It does not know where they go.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::limits::{SPAN_BATCH_BYTES_MAX, SPANS_WAITING_BYTES_MAX};

/// What is exported at once, or a piece of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanBatch {
    /// Spans as OTLP has them in JSON, with commas between them.
    pub spans: Vec<u8>,
    pub count: u64,
}

#[derive(Debug, Default)]
struct WaitingSpans {
    pieces: VecDeque<SpanBatch>,
    bytes: usize,
}

/// Of all cores.
#[derive(Debug)]
pub struct SpanQueue {
    of_cores: Box<[Mutex<WaitingSpans>]>,
    arrived: Notify,
    batches_sent: AtomicU64,
    batches_failed: AtomicU64,
    spans_sent: AtomicU64,
    spans_failed: AtomicU64,
}

/// What became of what was taken from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExportCounts {
    pub(crate) batches_sent: u64,
    pub(crate) batches_failed: u64,
    pub(crate) spans_sent: u64,
    pub(crate) spans_failed: u64,
}

impl SpanQueue {
    pub(crate) fn new(cores: usize) -> SpanQueue {
        SpanQueue {
            of_cores: (0..cores).map(|_| Mutex::default()).collect(),
            arrived: Notify::new(),
            batches_sent: AtomicU64::new(0),
            batches_failed: AtomicU64::new(0),
            spans_sent: AtomicU64::new(0),
            spans_failed: AtomicU64::new(0),
        }
    }

    /// False when there is no room for it: then it is lost.
    pub(crate) fn put(&self, core: usize, piece: SpanBatch) -> bool {
        let mut waiting = self.of_cores[core].lock();
        if waiting.bytes + piece.spans.len() > SPANS_WAITING_BYTES_MAX {
            return false;
        }
        waiting.bytes += piece.spans.len();
        waiting.pieces.push_back(piece);
        drop(waiting);
        self.arrived.notify_one();
        true
    }

    /// What waits, up to what is sent at once.
    pub fn take(&self) -> Option<SpanBatch> {
        let mut batch = SpanBatch::default();
        for core in &self.of_cores {
            let mut waiting = core.lock();
            while batch.spans.len() < SPAN_BATCH_BYTES_MAX
                && let Some(piece) = waiting.pieces.pop_front()
            {
                waiting.bytes -= piece.spans.len();
                if batch.count > 0 {
                    batch.spans.push(b',');
                }
                batch.spans.extend_from_slice(&piece.spans);
                batch.count += piece.count;
            }
        }
        (batch.count > 0).then_some(batch)
    }

    /// The same as soon as there is something.
    pub async fn next(&self) -> SpanBatch {
        loop {
            let arrived = self.arrived.notified();
            if let Some(batch) = self.take() {
                return batch;
            }
            arrived.await;
        }
    }

    /// A batch has arrived, of which the other end refused so many spans.
    pub fn note_sent(&self, batch: &SpanBatch, refused: u64) {
        let refused = refused.min(batch.count);
        self.batches_sent.fetch_add(1, Ordering::Relaxed);
        self.spans_sent.fetch_add(batch.count - refused, Ordering::Relaxed);
        self.spans_failed.fetch_add(refused, Ordering::Relaxed);
    }

    /// It was given up.
    pub fn note_failed(&self, batch: &SpanBatch) {
        self.batches_failed.fetch_add(1, Ordering::Relaxed);
        self.spans_failed.fetch_add(batch.count, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> ExportCounts {
        ExportCounts {
            batches_sent: self.batches_sent.load(Ordering::Relaxed),
            batches_failed: self.batches_failed.load(Ordering::Relaxed),
            spans_sent: self.spans_sent.load(Ordering::Relaxed),
            spans_failed: self.spans_failed.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: usize) -> SpanBatch {
        SpanBatch { spans: vec![b'x'; bytes], count: 1 }
    }

    #[test]
    fn what_has_no_room_is_not_taken_and_other_cores_have_their_own() {
        let queue = SpanQueue::new(2);
        assert!(queue.put(0, piece(SPANS_WAITING_BYTES_MAX)) && !queue.put(0, piece(1)) && queue.put(1, piece(1)));
        assert_eq!(queue.take().map(|batch| batch.count), Some(1), "a batch is full with what is too much for it");
        assert_eq!(queue.take(), Some(piece(1)));
        assert_eq!(queue.take(), None);
        assert!(queue.put(0, piece(1)));
    }

    #[tokio::test]
    async fn pieces_are_joined_and_what_became_of_them_is_counted() {
        let queue = SpanQueue::new(1);
        (0..3).for_each(|_| assert!(queue.put(0, piece(2))));
        let batch = queue.next().await;
        assert_eq!(batch, SpanBatch { spans: b"xx,xx,xx".to_vec(), count: 3 });
        queue.note_sent(&batch, 1);
        queue.note_failed(&batch);
        let expect = ExportCounts { batches_sent: 1, batches_failed: 1, spans_sent: 2, spans_failed: 4 };
        assert_eq!(queue.counts(), expect);
    }
}
