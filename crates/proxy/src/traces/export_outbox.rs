//! A core's end of the spans: they gather here, and are put into its queue in pieces.

use crate::counters::CoreCounters;
use crate::traces::span_queue::{SpanBatch, SpanQueue};

/// Handed over when it holds so much, and at every tick.
const HANDOVER_BYTES: usize = 16 << 10;

#[derive(Debug, Default)]
pub(crate) struct SpanOutbox {
    gathered: SpanBatch,
}

impl SpanOutbox {
    /// Spans that `write` appends with commas between them; it returns how many.
    pub(crate) fn append(
        &mut self,
        (queue, core): (&SpanQueue, usize),
        counters: &CoreCounters,
        write: impl FnOnce(&mut Vec<u8>) -> u64,
    ) {
        if self.gathered.count > 0 {
            self.gathered.spans.push(b',');
        }
        self.gathered.count += write(&mut self.gathered.spans);
        if self.gathered.spans.len() >= HANDOVER_BYTES {
            self.flush((queue, core), counters);
        }
    }

    pub(crate) fn flush(&mut self, (queue, core): (&SpanQueue, usize), counters: &CoreCounters) {
        if self.gathered.count == 0 {
            return;
        }
        let piece = std::mem::take(&mut self.gathered);
        let count = piece.count;
        match queue.put(core, piece) {
            true => counters.spans_made.add(count),
            false => counters.spans_lost.add(count),
        }
    }
}
