//! What a run is asked to do: who asks, when, how long, and what counts as an answer.
//!
//! Plain values, filled in by the program from its flags or by `matrix` from a lab file. Nothing here runs.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::answer_coding::ContentCoding;
use crate::catalogue::Order;
use crate::replay::Replay;
use crate::script::Script;
use crate::tls_settings::TlsSettings;

#[derive(Clone, Debug)]
pub struct Workload {
    /// Where connections go …
    pub address: SocketAddr,
    /// … unless this UNIX socket is there for it.
    pub unix: Option<PathBuf>,
    /// `None`: in the clear.
    pub tls: Option<TlsSettings>,
    /// HTTP/2: over TLS by ALPN, in the clear by prior knowledge.
    pub http2: bool,
    pub load: Load,
    pub length: Length,
    /// Users: each has at most one connection.
    pub users: usize,
    pub threads: usize,
    /// Where connections come from, one user after another; empty: where the kernel likes.
    pub sources: Vec<IpAddr>,
    /// On which processor each thread runs, one after another; empty: where the kernel likes.
    pub cpus: Vec<usize>,
    pub connections: Connections,
    pub order: Order,
    pub checks: Checks,
    /// Length and CRC-32 of every request's body, where they are known before the first fetch; else that one teaches.
    pub known_bodies: Option<Arc<[(u64, u32)]>>,
    /// The content coding that the requests ask for, which answers must then have. Each page is looked at as it is, and in this coding,
    /// before the load, where `known_bodies` does not say what it is.
    pub encoding: Option<ContentCoding>,
    /// For a connection to be there, for the first byte of an answer, and for the next one of it.
    pub timeout: Duration,
    /// In a closed loop, users begin evenly over this time.
    pub ramp: Duration,
    /// In a closed loop, the longest time for which a user waits between an answer and the next request; drawn evenly.
    pub think: Duration,
    /// The same seed asks the same things at the same distances.
    pub seed: u64,
}

/// Who decides when the next request starts.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// The server: a user asks again when it was answered.
    Closed,
    /// A timetable, whatever the server does. When all users wait, starts are late, and their lateness is latency.
    Open { per_second: f64, arrivals: Arrivals },
    /// The same with one rate after another.
    Steps(RatePlan),
    /// Sessions start; their requests follow one another, each after its answer.
    Sessions { count: u64, starts: Option<RatePlan>, script: Arc<Script> },
    /// What a log says, so many times as fast; at speed 0 a closed loop in its order.
    Replay { log: Arc<Replay>, speed: f64 },
}

/// A rate, or several one after another; the last one stays.
#[derive(Clone, Debug, PartialEq)]
pub struct RatePlan {
    /// Starts a second; a pause is 0, and none but the last may be one.
    pub per_second: Vec<f64>,
    /// How long each of them lasts.
    pub step: Duration,
    pub arrivals: Arrivals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Equal distances.
    Constant,
    /// Distances between 90 % and 110 % of the equal ones.
    Jitter,
    /// Exponential distances: as independent people come.
    Poisson,
}

/// When it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Time(Duration),
    Requests(u64),
    /// So many, unless the time is up before.
    RequestsWithin(u64, Duration),
}

impl Length {
    pub(crate) fn requests(self) -> Option<u64> {
        match self {
            Length::Time(_) => None,
            Length::Requests(count) | Length::RequestsWithin(count, _) => Some(count),
        }
    }

    pub(crate) fn time(self) -> Option<Duration> {
        match self {
            Length::Requests(_) => None,
            Length::Time(time) | Length::RequestsWithin(_, time) => Some(time),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// Kept as long as the server keeps them, with so many requests under way at once: one behind another, or over HTTP/2
    /// each in a stream of its own.
    Kept { depth: usize },
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
    /// The same, or 404: what a memcached has not got is an answer too.
    NonErrorOrMiss,
    Exactly(u16),
}

impl Workload {
    /// Ten seconds of a closed loop of ten users who check everything: what a program changes to what it was asked for.
    pub fn new(address: SocketAddr) -> Workload {
        Workload {
            address,
            unix: None,
            tls: None,
            http2: false,
            load: Load::Closed,
            length: Length::Time(Duration::from_secs(10)),
            users: 10,
            threads: 1,
            sources: Vec::new(),
            cpus: Vec::new(),
            connections: Connections::Kept { depth: 1 },
            order: Order::InTurn,
            checks: Checks::ALL,
            known_bodies: None,
            encoding: None,
            timeout: Duration::from_secs(10),
            ramp: Duration::ZERO,
            think: Duration::ZERO,
            seed: 1,
        }
    }
}

impl RatePlan {
    pub fn steady(per_second: f64, arrivals: Arrivals) -> RatePlan {
        RatePlan { per_second: vec![per_second], step: Duration::MAX, arrivals }
    }
}

impl Load {
    /// When things start, if that is not left to the users.
    pub fn rate_plan(&self) -> Option<RatePlan> {
        match self {
            Load::Open { per_second, arrivals } => Some(RatePlan::steady(*per_second, *arrivals)),
            Load::Steps(plan) | Load::Sessions { starts: Some(plan), .. } => Some(plan.clone()),
            Load::Closed | Load::Sessions { starts: None, .. } | Load::Replay { .. } => None,
        }
    }

    /// Is there a timetable that is kept or not?
    pub fn is_open(&self) -> bool {
        match self {
            Load::Closed | Load::Sessions { starts: None, .. } => false,
            Load::Open { .. } | Load::Steps(_) | Load::Sessions { .. } => true,
            Load::Replay { speed, .. } => *speed > 0.0,
        }
    }
}

impl StatusWanted {
    pub(crate) fn accepts(self, status: u16) -> bool {
        match self {
            StatusWanted::Any => true,
            StatusWanted::NonError => (200..400).contains(&status),
            StatusWanted::NonErrorOrMiss => (200..400).contains(&status) || status == 404,
            StatusWanted::Exactly(wanted) => status == wanted,
        }
    }
}

impl Checks {
    pub const ALL: Checks = Checks { status: StatusWanted::NonError, length: true, bytes: true };
}
