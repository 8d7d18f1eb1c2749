//! A core's access log on its way to the sink: lines gather here and are handed over in large pieces.

use crate::counters::CoreCounters;
use crate::log_sink::LogSink;

/// Handed over when it holds so much, and at every tick.
const HANDOVER_BYTES: usize = 32 << 10;

#[derive(Default)]
pub(crate) struct LogBuffer {
    lines: Vec<u8>,
    lines_count: u64,
}

impl LogBuffer {
    /// Appends one line that `write` ends with a line feed.
    #[inline]
    pub(crate) fn append(
        &mut self,
        sink: Option<&dyn LogSink>,
        counters: &CoreCounters,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        write(&mut self.lines);
        self.lines_count += 1;
        if self.lines.len() >= HANDOVER_BYTES {
            self.flush(sink, counters);
        }
    }

    /// Gives the lines to the sink; those it cannot take at once are lost and counted.
    pub(crate) fn flush(&mut self, sink: Option<&dyn LogSink>, counters: &CoreCounters) {
        let Some(sink) = sink.filter(|_| self.lines_count > 0) else { return };
        let lines = std::mem::replace(&mut self.lines, Vec::with_capacity(HANDOVER_BYTES + 1024));
        match sink.write(lines, self.lines_count) {
            Ok(()) => counters.log_lines.add(self.lines_count),
            Err(mut refused) => {
                counters.log_lines_lost.add(self.lines_count);
                refused.clear();
                self.lines = refused;
            }
        }
        self.lines_count = 0;
    }
}
