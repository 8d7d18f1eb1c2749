//! The states of a transaction, and which may follow which.

/// The states of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Receive,
    Restart,
    Lookup,
    /// A disk is asked.
    Recall,
    Hit,
    /// What was hit lies in slices: the first is waited for.
    Slicing,
    Wait,
    Miss,
    Pass,
    Pipe,
    Purge,
    Synth,
    /// A file beneath a root is looked for, or the page for an error.
    Files,
    /// It is being found out whether the client may come in.
    Admit,
    /// memcached is asked.
    Memcached,
    Deliver,
    Transmit,
    Log,
}

const STATES: usize = State::Log as usize + 1;

/// Which state may follow which. Anything else is a bug and ends the connection.
pub(crate) const TRANSACTION_EDGES: [(State, State); 81] = {
    use State::*;
    [
        (Receive, Lookup),
        (Receive, Pass),
        (Receive, Pipe),
        (Receive, Purge),
        (Receive, Synth),
        (Receive, Files),
        (Receive, Admit),
        (Admit, Lookup),
        (Admit, Pass),
        (Admit, Pipe),
        (Admit, Purge),
        (Admit, Files),
        (Admit, Memcached),
        // The client may come in, and a program decides what it gets.
        (Admit, Receive),
        // The client may not come in; or it may, and what it asks for is refused.
        (Admit, Synth),
        // The service of the route refuses the client, which is told what that says.
        (Admit, Deliver),
        // The client left.
        (Admit, Log),
        (Files, Deliver),
        // There is none, it may not be shown, or it is a directory that was asked for without its slash.
        (Files, Synth),
        // It is a script, or a script answers for it.
        (Files, Lookup),
        (Files, Pass),
        (Receive, Memcached),
        (Memcached, Deliver),
        // A miss, a refusal, or nobody who replies.
        (Memcached, Synth),
        // The same, where an origin stands behind it.
        (Memcached, Pass),
        (Memcached, Log),
        (Lookup, Hit),
        // Somebody fetches it already.
        (Lookup, Wait),
        (Lookup, Miss),
        // A HEAD, or a range far into a body, of what is not stored goes to the origin as it is.
        (Lookup, Pass),
        // only-if-cached, or an origin that failed a moment ago.
        (Lookup, Synth),
        // Memory has nothing of it, and a disk may.
        (Lookup, Recall),
        (Recall, Lookup),
        // It is not what was asked for.
        (Recall, Miss),
        (Recall, Pass),
        (Recall, Synth),
        (Hit, Deliver),
        (Hit, Slicing),
        (Slicing, Deliver),
        // Its body lay on a disk, which has written over it since.
        (Hit, Lookup),
        // The origin has another representation by now.
        (Slicing, Lookup),
        // It fails, or the client takes nothing but what is stored.
        (Slicing, Synth),
        // The client left.
        (Slicing, Log),
        // The fetch runs in a task of its own and its requester follows it like everybody else.
        (Miss, Wait),
        (Wait, Deliver),
        // Freed by an uncacheable answer, or by a Vary that does not fit: ask again.
        (Wait, Lookup),
        // The origin confirmed what was stored, or failed and stale is allowed.
        (Wait, Hit),
        (Wait, Synth),
        // The client left.
        (Wait, Log),
        (Pass, Deliver),
        // An answer that may be stored after all.
        (Pass, Wait),
        // A range far ahead made a manifest.
        (Pass, Hit),
        (Pass, Synth),
        (Pass, Log),
        // The origin did not switch protocols.
        (Pipe, Deliver),
        (Pipe, Synth),
        // A stream of HTTP/2 is no tunnel.
        (Pipe, Pass),
        (Pipe, Log),
        (Purge, Synth),
        (Synth, Deliver),
        // There may be a page for this error.
        (Synth, Files),
        (Deliver, Transmit),
        (Transmit, Log),
        // From here on only where a program says so. Any of its subroutines may send the request elsewhere …
        (Hit, Pass),
        (Hit, Miss),
        (Hit, Synth),
        (Miss, Pass),
        (Miss, Synth),
        (Wait, Pass),
        (Deliver, Synth),
        // The request has a body, or goes to a label.
        (Receive, Receive),
        // The client left meanwhile.
        (Receive, Log),
        // … or back to the start.
        (Receive, Restart),
        (Hit, Restart),
        (Miss, Restart),
        (Pass, Restart),
        (Purge, Restart),
        (Deliver, Restart),
        (Synth, Restart),
        (Restart, Receive),
        // Once too often.
        (Restart, Synth),
    ]
};

/// Edge numbers by states, `u8::MAX` where there is no edge.
const EDGE_OF: [[u8; STATES]; STATES] = {
    let mut table = [[u8::MAX; STATES]; STATES];
    let mut at = 0;
    while at < TRANSACTION_EDGES.len() {
        let (from, to) = TRANSACTION_EDGES[at];
        table[from as usize][to as usize] = at as u8;
        at += 1;
    }
    table
};

/// The number of this edge; `None` where there is none.
pub(crate) const fn edge_of(from: State, to: State) -> Option<usize> {
    match EDGE_OF[from as usize][to as usize] {
        u8::MAX => None,
        edge => Some(edge as usize),
    }
}
