//! How often each edge of the machines was taken, per core. The edges show in the metrics, and the test run fails
//! when a legal one never was.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::fetch::FETCH_EDGES;
use crate::transaction::TRANSACTION_EDGES;

/// One core's counts. Written by that core alone.
#[derive(Debug)]
pub(crate) struct EdgeCounts {
    pub(crate) transaction: [AtomicU64; TRANSACTION_EDGES.len()],
    pub(crate) fetch: [AtomicU64; FETCH_EDGES.len()],
    pub(crate) exchange: [AtomicU64; wire::EDGES.len()],
}

impl Default for EdgeCounts {
    fn default() -> EdgeCounts {
        EdgeCounts {
            transaction: std::array::from_fn(|_| AtomicU64::new(0)),
            fetch: std::array::from_fn(|_| AtomicU64::new(0)),
            exchange: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

/// Counts an edge; there is one writer, so no locked instruction.
#[inline]
pub(crate) fn take(counts: &[AtomicU64], edge: usize) {
    let count = &counts[edge];
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// One row of the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub machine: &'static str,
    pub from: String,
    pub to: String,
    pub taken: u64,
}
