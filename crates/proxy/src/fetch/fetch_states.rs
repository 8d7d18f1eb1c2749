//! The states of a fetch, and which may follow which.

/// The states of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchState {
    Prepare,
    Send,
    Reply,
    Retry,
    /// Of a program: vcl_backend_error makes an answer.
    Error,
    Refreshed,
    Fill,
    Landed,
    Failed,
}

const STATES: usize = FetchState::Failed as usize + 1;

/// Which state may follow which.
pub(crate) const FETCH_EDGES: [(FetchState, FetchState); 20] = {
    use FetchState::*;
    [
        (Prepare, Send),
        (Send, Reply),
        // The pooled connection was dead when we wrote, or died before a byte of an answer.
        (Send, Retry),
        (Reply, Retry),
        (Retry, Send),
        // No connection; the client left or sent what is no body.
        (Send, Failed),
        (Reply, Failed),
        // A 304 about what we hold. To one that is not it is asked again, without conditions.
        (Reply, Refreshed),
        (Refreshed, Landed),
        (Reply, Prepare),
        (Reply, Fill),
        (Fill, Landed),
        (Fill, Failed),
        // From here on only where a program says so: an answer of its own in place of one …
        (Prepare, Error),
        (Reply, Error),
        (Failed, Error),
        (Error, Fill),
        // … or another try, or none.
        (Error, Prepare),
        (Error, Failed),
        (Prepare, Failed),
    ]
};

const EDGE_OF: [[u8; STATES]; STATES] = {
    let mut table = [[u8::MAX; STATES]; STATES];
    let mut at = 0;
    while at < FETCH_EDGES.len() {
        table[FETCH_EDGES[at].0 as usize][FETCH_EDGES[at].1 as usize] = at as u8;
        at += 1;
    }
    table
};

/// The number of this edge; `None` where there is none.
pub(crate) const fn edge_of(from: FetchState, to: FetchState) -> Option<usize> {
    match EDGE_OF[from as usize][to as usize] {
        u8::MAX => None,
        edge => Some(edge as usize),
    }
}
