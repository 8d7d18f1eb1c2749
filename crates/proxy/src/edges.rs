//! How often each edge of the machines was taken, per core. The edges show in the metrics, and the test run fails
//! when a legal one never was.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::fetch::fetch_states::{self, FETCH_EDGES, FetchState};
use crate::transaction::transaction_states::{self, State, TRANSACTION_EDGES};

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

impl EdgeCounts {
    /// The one function through which a transaction changes its state. What is not in the table is a bug and ends the connection.
    #[inline]
    pub(crate) fn take(&self, from: State, to: State) {
        match transaction_states::edge_of(from, to) {
            Some(edge) => add(&self.transaction[edge]),
            None => panic!("no transaction goes from {from:?} to {to:?}"),
        }
    }

    /// The same of a fetch.
    #[inline]
    pub(crate) fn take_of_fetch(&self, from: FetchState, to: FetchState) {
        match fetch_states::edge_of(from, to) {
            Some(edge) => add(&self.fetch[edge]),
            None => panic!("no fetch goes from {from:?} to {to:?}"),
        }
    }

    /// The same of the exchange on a connection.
    #[inline]
    pub(crate) fn take_of_exchange(&self, edge: usize) {
        add(&self.exchange[edge]);
    }
}

/// There is one writer, so no locked instruction.
#[inline]
fn add(count: &AtomicU64) {
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
