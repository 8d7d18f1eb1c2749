//! How many bytes went to an origin and came from it, since it was first configured.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counters::CoreCounters;

/// One count for all cores: each addition goes with a call of the kernel, which costs far more.
#[derive(Debug, Default)]
pub(crate) struct CarriedBytes {
    received: AtomicU64,
    sent: AtomicU64,
}

impl CarriedBytes {
    /// So much was read, which the core counts, too.
    pub(crate) fn received(&self, counters: &CoreCounters, bytes: usize) {
        counters.origin_bytes_in.add(bytes as u64);
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Received, and sent.
    pub(crate) fn read(&self) -> (u64, u64) {
        (self.received.load(Ordering::Relaxed), self.sent.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_received_counts_for_the_core_and_for_the_origin() {
        let (carried, core) = (CarriedBytes::default(), CoreCounters::default());
        carried.received(&core, 3);
        carried.received(&core, 4);
        carried.sent(5);
        assert_eq!((carried.read(), core.origin_bytes_in.get()), ((7, 5), 7));
    }
}
