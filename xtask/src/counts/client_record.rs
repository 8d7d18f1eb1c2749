//! What the clients of a run write down: each request with what came of it, and what went over their connections.

use std::sync::{Mutex, MutexGuard};

/// One request as its client saw it.
#[derive(Clone, Debug)]
pub struct ClientSight {
    pub number: String,
    pub method: &'static str,
    pub target: String,
    pub end: ClientEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEnd {
    Answered {
        status: u16,
        body_bytes: u64,
        /// Its framing says that all of it came.
        is_whole: bool,
    },
    /// The connection ended with the answer to the request before it.
    Unanswered,
    /// The connection or the stream ended without a final head.
    Dropped,
    /// The client went away.
    Left,
}

#[derive(Clone, Debug, Default)]
pub struct ClientBook {
    pub sights: Vec<ClientSight>,
    /// Statuses of answers to what was no request; 0: there was none.
    pub to_malformed: Vec<(u16, u64)>,
    pub connections: u64,
    pub http2_connections: u64,
    /// Streams that were taken back.
    pub resets: u64,
    /// By HTTP/1 alone, of connections that their clients have left to larder to end or have read to the end.
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// What befell a client that should not have.
    pub troubles: Vec<String>,
}

/// What all clients share.
#[derive(Debug, Default)]
pub struct ClientRecord(Mutex<ClientBook>);

impl ClientRecord {
    pub fn book(&self) -> MutexGuard<'_, ClientBook> {
        self.0.lock().expect("nobody panicked")
    }

    pub fn note(&self, number: String, (method, target): (&'static str, String), end: ClientEnd) {
        self.book().sights.push(ClientSight { number, method, target, end });
    }
}
