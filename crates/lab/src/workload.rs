//! What a run is asked to do: who asks, when, how long, and what counts as an answer.
//!
//! Plain values, filled in by the program from its flags (and later from a lab file). Nothing here runs.

use std::net::SocketAddr;
use std::time::Duration;

use crate::catalogue::Order;

#[derive(Clone, Debug)]
pub struct Workload {
    /// Where connections go.
    pub address: SocketAddr,
    pub load: Load,
    pub length: Length,
    /// Users: each has at most one connection.
    pub users: usize,
    pub threads: usize,
    pub connections: Connections,
    pub order: Order,
    pub checks: Checks,
    /// For a connection to be there, for the first byte of an answer, and for the next one of it.
    pub timeout: Duration,
    /// The same seed asks the same things at the same distances.
    pub seed: u64,
}

/// Who decides when the next request starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// The server: a user asks again when it was answered.
    Closed,
    /// A timetable, whatever the server does. When all users wait, starts are late, and their lateness is latency.
    Open { per_second: f64, arrivals: Arrivals },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Equal distances.
    Constant,
    /// Exponential distances: as independent people come.
    Poisson,
}

/// When it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Time(Duration),
    Requests(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Kept as long as the server keeps them, with so many requests under way at once.
    Kept { pipeline: usize },
    /// A new one for each request.
    Short,
}

/// What an answer must have to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    pub status: StatusWanted,
    /// As long as the first one of its URL.
    pub length: bool,
    /// The same bytes as the first one of its URL.
    pub bytes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusWanted {
    Any,
    /// 2xx or 3xx.
    NonError,
    Exactly(u16),
}

impl StatusWanted {
    pub(crate) fn accepts(self, status: u16) -> bool {
        match self {
            StatusWanted::Any => true,
            StatusWanted::NonError => (200..400).contains(&status),
            StatusWanted::Exactly(wanted) => status == wanted,
        }
    }
}

impl Checks {
    pub const ALL: Checks = Checks { status: StatusWanted::NonError, length: true, bytes: true };
}
