//! The client, while an origin is talked to for it.

use std::rc::Rc;
use std::task::Context;

use crate::downstream::Downstream;
use crate::fetch::notes::FetchNotes;

/// Who is on the other side while the origin is talked to.
pub(crate) enum ClientLink<'a> {
    /// A pass: body up, interim answers down, and its leaving ends the fetch.
    Attached(Downstream<'a>),
    /// A miss: its requester reads interim answers from the notes, if it is still there.
    Detached(Option<Rc<FetchNotes>>),
}

impl ClientLink<'_> {
    /// Has an attached client gone?
    pub(crate) fn has_left(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            ClientLink::Attached(downstream) => downstream.has_left(cx),
            ClientLink::Detached(_) => false,
        }
    }
}
