//! A core's end of what is exported: spans and log records gather here, and are put into its queue in pieces.

use crate::counters::CoreCounters;
use crate::traces::export_queue::{ExportBatch, ExportQueue, ExportSignal};

/// Handed over when it holds so much, and at every tick.
const HANDOVER_BYTES: usize = 16 << 10;

#[derive(Debug, Default)]
pub(crate) struct ExportOutbox {
    /// By signal.
    gathered: [ExportBatch; ExportSignal::ALL.len()],
}

impl ExportOutbox {
    /// Records that `write` appends with commas between them; it returns how many.
    pub(crate) fn append(
        &mut self,
        (queue, core): (&ExportQueue, usize),
        counters: &CoreCounters,
        signal: ExportSignal,
        write: impl FnOnce(&mut Vec<u8>) -> u64,
    ) {
        let gathered = &mut self.gathered[signal as usize];
        if gathered.count > 0 {
            gathered.records.push(b',');
        }
        gathered.count += write(&mut gathered.records);
        if gathered.records.len() >= HANDOVER_BYTES {
            self.hand_over((queue, core), counters, signal);
        }
    }

    pub(crate) fn flush(&mut self, (queue, core): (&ExportQueue, usize), counters: &CoreCounters) {
        for signal in ExportSignal::ALL {
            self.hand_over((queue, core), counters, signal);
        }
    }

    fn hand_over(&mut self, (queue, core): (&ExportQueue, usize), counters: &CoreCounters, signal: ExportSignal) {
        let gathered = &mut self.gathered[signal as usize];
        if gathered.count == 0 {
            return;
        }
        let piece = ExportBatch { signal, ..std::mem::take(gathered) };
        let count = piece.count;
        let (made, lost) = match signal {
            ExportSignal::Spans => (&counters.spans_made, &counters.spans_lost),
            ExportSignal::Logs => (&counters.log_records_made, &counters.log_records_lost),
        };
        match queue.put(core, piece) {
            true => made.add(count),
            false => lost.add(count),
        }
    }
}
