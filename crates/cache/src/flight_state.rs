//! The states of a flight, their legal edges, and how often each was taken.
//!
//! A flight changes state only through [`FlightState::step`]; an edge that is not in the table ends the process,
//! because it means that shared state is no longer what this crate believes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Where a flight stands.
///
/// | state | the head is known | others may join | the body is | ends as |
/// |---|---|---|---|---|
/// | `Reserved` | no | yes | – | |
/// | `Described` | yes, storable | yes | about to grow | |
/// | `Filling` | yes | yes | growing, kept from byte 0 | |
/// | `Landed` | yes | (the object is asked instead) | stored whole | whole |
/// | `Private` | yes, not storable | no; who waited is released | a window for the leader | whole or truncated |
/// | `Failed` | perhaps | no | as far as it came | same failure for all, or truncated |
/// | `Condemned` | perhaps | no; who waited is served | a window | whole or truncated |
/// | `Overflowed` | yes | no; who waited is served | a window paced by the slowest | whole or truncated |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlightState {
    Reserved,
    Described,
    Filling,
    Landed,
    Private,
    Failed,
    Condemned,
    Overflowed,
}

use FlightState::*;

type Edge = (FlightState, FlightState, AtomicU64);

const fn edge(from: FlightState, to: FlightState) -> Edge {
    (from, to, AtomicU64::new(0))
}

static EDGES: [Edge; 16] = [
    edge(Reserved, Described),
    // A 304: the stored body lands under its new head. Or a slice that a disk had.
    edge(Reserved, Landed),
    edge(Reserved, Private),
    edge(Reserved, Failed),
    edge(Reserved, Condemned),
    edge(Described, Filling),
    // No body at all.
    edge(Described, Landed),
    edge(Described, Failed),
    edge(Described, Condemned),
    // The head said a length that is too much.
    edge(Described, Overflowed),
    edge(Filling, Landed),
    edge(Filling, Failed),
    edge(Filling, Condemned),
    edge(Filling, Overflowed),
    // Condemned before its head came: what the head or its absence then says to those who wait.
    edge(Condemned, Private),
    edge(Condemned, Failed),
];

/// How often each legal edge was taken, by all flights since the start.
pub fn edges_taken() -> &'static [(FlightState, FlightState, AtomicU64)] {
    &EDGES
}

impl FlightState {
    /// The only way a flight changes state.
    pub(crate) fn step(&mut self, to: FlightState) {
        let edge = EDGES.iter().find(|edge| edge.0 == *self && edge.1 == to);
        let (_, _, taken) = edge.unwrap_or_else(|| panic!("a flight cannot go from {self:?} to {to:?}"));
        taken.fetch_add(1, Ordering::Relaxed);
        *self = to;
    }
}
