//! The exchange machine: one request and its answer on one connection, as three small enums and one table.
//!
//! `proxy` tells it what happened and asks it what may happen next. It is what makes a body an obligation: an
//! answer that ended before the request's body was read cannot lead to the next request, only to draining or to a
//! close. It knows no bytes.

use std::fmt;

/// Our reading of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reading {
    /// Nothing of the request is known yet.
    Head,
    /// The head is read, the body is owed to us.
    Body,
    /// The request is whole.
    Done,
    /// Refused, timed out or cut off: no byte that follows is HTTP.
    Broken,
    /// What arrives is opaque.
    Tunnel,
}

/// Our writing of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Writing {
    /// Nothing but interim responses has been written.
    Waiting,
    /// The head of the final answer has been, or is being, written.
    Answer,
    /// The answer is whole.
    Done,
    /// It can never be whole: the write failed, or its body was truncated.
    Cut,
    /// What is written is opaque.
    Tunnel,
}

/// Whether another request may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum KeepAlive {
    Wanted,
    Refused,
}

/// What happens to an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Event {
    /// A head without a body was read.
    BodilessHeadRead,
    /// A head was read whose body follows.
    HeadRead,
    /// The last byte of the request's body was read, or drained.
    BodyRead,
    /// The request was refused, or the client stopped sending it.
    ReadBroken,
    /// A 1xx other than 101 was written.
    InterimWritten,
    /// The head of the final answer is about to be written.
    AnswerBegun,
    /// Its last byte was written.
    AnswerEnded,
    /// It will never be whole.
    AnswerCut,
    /// 101, or 2xx to CONNECT, was written.
    Switched,
    /// A policy gave the connection away, whatever was still to come of the request.
    Piped,
    /// Either side wants the connection closed after this exchange.
    CloseWanted,
    /// The connection is taken for the next request.
    Reused,
}

/// One legal step. `None` in `keep_alive` means: whatever it is; in `to_keep_alive`: as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub reading: Reading,
    pub writing: Writing,
    pub keep_alive: Option<KeepAlive>,
    pub event: Event,
    pub to_reading: Reading,
    pub to_writing: Writing,
    pub to_keep_alive: Option<KeepAlive>,
}

/// Nothing that the table holds. The connection must be closed: the program has lost track of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IllegalEdge {
    pub reading: Reading,
    pub writing: Writing,
    pub keep_alive: KeepAlive,
    pub event: Event,
}

/// What becomes of the connection, as far as is known now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// The answer is not finished.
    NotYet,
    /// The next request may be read.
    Reuse,
    /// Read the rest of the request's body and throw it away; or close, lingering, if it is too long to wait for.
    Drain,
    /// Close. Nothing more was owed to us.
    Close,
    /// Shut down the writing side, and read and discard for a while, or a reset destroys the answer on its way
    /// (RFC 9112 §9.6).
    LingerClose,
    /// Close at once: the client must see that its answer is not whole.
    Abort,
    /// Bytes both ways until either side ends.
    Tunnel,
}

/// One request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    reading: Reading,
    writing: Writing,
    keep_alive: KeepAlive,
}

const fn edge(from: (Reading, Writing), event: Event, to: (Reading, Writing)) -> Edge {
    let (reading, writing) = from;
    let (to_reading, to_writing) = to;
    Edge { reading, writing, keep_alive: None, event, to_reading, to_writing, to_keep_alive: None }
}

/// A step after which no further request can follow.
const fn last_edge(from: (Reading, Writing), event: Event, to: (Reading, Writing)) -> Edge {
    Edge { to_keep_alive: Some(KeepAlive::Refused), ..edge(from, event, to) }
}

/// The table: all that may ever happen.
pub const EDGES: &[Edge] = {
    use Event::*;
    use Reading as R;
    use Writing as W;
    &[
        // The request's head.
        edge((R::Head, W::Waiting), BodilessHeadRead, (R::Done, W::Waiting)),
        edge((R::Head, W::Waiting), HeadRead, (R::Body, W::Waiting)),
        last_edge((R::Head, W::Waiting), ReadBroken, (R::Broken, W::Waiting)),
        // Its body, before and after we answer. While we answer nobody reads it.
        edge((R::Body, W::Waiting), BodyRead, (R::Done, W::Waiting)),
        edge((R::Body, W::Done), BodyRead, (R::Done, W::Done)),
        last_edge((R::Body, W::Waiting), ReadBroken, (R::Broken, W::Waiting)),
        // The answer.
        edge((R::Body, W::Waiting), InterimWritten, (R::Body, W::Waiting)),
        edge((R::Done, W::Waiting), InterimWritten, (R::Done, W::Waiting)),
        edge((R::Body, W::Waiting), AnswerBegun, (R::Body, W::Answer)),
        edge((R::Done, W::Waiting), AnswerBegun, (R::Done, W::Answer)),
        edge((R::Broken, W::Waiting), AnswerBegun, (R::Broken, W::Answer)),
        edge((R::Body, W::Answer), AnswerEnded, (R::Body, W::Done)),
        edge((R::Done, W::Answer), AnswerEnded, (R::Done, W::Done)),
        edge((R::Broken, W::Answer), AnswerEnded, (R::Broken, W::Done)),
        // No answer, or half of one.
        last_edge((R::Body, W::Waiting), AnswerCut, (R::Body, W::Cut)),
        last_edge((R::Done, W::Waiting), AnswerCut, (R::Done, W::Cut)),
        last_edge((R::Broken, W::Waiting), AnswerCut, (R::Broken, W::Cut)),
        last_edge((R::Body, W::Answer), AnswerCut, (R::Body, W::Cut)),
        last_edge((R::Done, W::Answer), AnswerCut, (R::Done, W::Cut)),
        last_edge((R::Broken, W::Answer), AnswerCut, (R::Broken, W::Cut)),
        // Only a whole request can turn into a tunnel.
        last_edge((R::Done, W::Waiting), Switched, (R::Tunnel, W::Tunnel)),
        // What is piped is nobody's to read.
        last_edge((R::Done, W::Waiting), Piped, (R::Tunnel, W::Tunnel)),
        last_edge((R::Body, W::Waiting), Piped, (R::Tunnel, W::Tunnel)),
        // Whether another request may follow is said when the answer has ended.
        last_edge((R::Body, W::Done), CloseWanted, (R::Body, W::Done)),
        last_edge((R::Done, W::Done), CloseWanted, (R::Done, W::Done)),
        // And round again: both whole, nobody against it.
        Edge { keep_alive: Some(KeepAlive::Wanted), ..edge((R::Done, W::Done), Reused, (R::Head, W::Waiting)) },
    ]
};

const EVENTS_COUNT: usize = Event::Reused as usize + 1;
const STATES_COUNT: usize = 5 * 5 * 2;
const NO_EDGE: u8 = u8::MAX;

/// The table by state and event, so that a step costs one load; made from [`EDGES`] by the compiler.
static EDGE_OF: [[u8; EVENTS_COUNT]; STATES_COUNT] = {
    let mut edge_of = [[NO_EDGE; EVENTS_COUNT]; STATES_COUNT];
    let mut n = 0;
    while n < EDGES.len() {
        let edge = EDGES[n];
        let mut keep_alive = 0;
        while keep_alive < 2 {
            let state = state_index(edge.reading, edge.writing, keep_alive);
            let fits = match edge.keep_alive {
                Some(wanted) => wanted as usize == keep_alive,
                None => true,
            };
            if fits {
                assert!(edge_of[state][edge.event as usize] == NO_EDGE, "one step per state and event");
                edge_of[state][edge.event as usize] = n as u8;
            }
            keep_alive += 1;
        }
        n += 1;
    }
    edge_of
};

const fn state_index(reading: Reading, writing: Writing, keep_alive: usize) -> usize {
    (reading as usize * 5 + writing as usize) * 2 + keep_alive
}

impl Exchange {
    /// A connection on which a request may come.
    pub const fn new() -> Exchange {
        Exchange { reading: Reading::Head, writing: Writing::Waiting, keep_alive: KeepAlive::Wanted }
    }

    /// Takes the step and says which edge it was, or changes nothing.
    #[inline]
    pub fn step(&mut self, event: Event) -> Result<usize, IllegalEdge> {
        let state = state_index(self.reading, self.writing, self.keep_alive as usize);
        let index = usize::from(EDGE_OF[state][event as usize]);
        let Some(edge) = EDGES.get(index) else {
            let Exchange { reading, writing, keep_alive } = *self;
            return Err(IllegalEdge { reading, writing, keep_alive, event });
        };
        self.reading = edge.to_reading;
        self.writing = edge.to_writing;
        self.keep_alive = edge.to_keep_alive.unwrap_or(self.keep_alive);
        Ok(index)
    }

    #[inline]
    pub const fn reading(&self) -> Reading {
        self.reading
    }

    #[inline]
    pub const fn writing(&self) -> Writing {
        self.writing
    }

    #[inline]
    pub const fn keep_alive(&self) -> KeepAlive {
        self.keep_alive
    }

    /// What becomes of the connection. A peer that may have sent more than we read still deserves a lingering close
    /// where this says `Close`; the caller sees its buffer, this does not.
    #[inline]
    pub const fn afterwards(&self) -> Afterwards {
        match (self.reading, self.writing, self.keep_alive) {
            (_, Writing::Tunnel, _) => Afterwards::Tunnel,
            (_, Writing::Cut, _) => Afterwards::Abort,
            (_, Writing::Waiting | Writing::Answer, _) => Afterwards::NotYet,
            (Reading::Done, Writing::Done, KeepAlive::Wanted) => Afterwards::Reuse,
            (Reading::Done, Writing::Done, KeepAlive::Refused) => Afterwards::Close,
            (Reading::Body, Writing::Done, KeepAlive::Wanted) => Afterwards::Drain,
            (_, Writing::Done, _) => Afterwards::LingerClose,
        }
    }
}

impl Default for Exchange {
    fn default() -> Exchange {
        Exchange::new()
    }
}

impl fmt::Display for IllegalEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not possible in {:?}/{:?}/{:?}", self.event, self.reading, self.writing, self.keep_alive)
    }
}

impl std::error::Error for IllegalEdge {}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
