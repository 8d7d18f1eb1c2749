//! What a fetch is for.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use cache::Object;

/// What the fetch is for; it decides what the origin is asked.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// To be stored: no conditions or ranges of the client's, but our validators for what we hold.
    Store(Option<Arc<Object>>),
    /// Bytes of a body that is kept in slices, of the representation with this validator, if one is known.
    Slice { range: Range<u64>, if_range: Option<Bytes> },
    /// As the client asked.
    Pass,
    /// A question of ours about a client's request.
    Question,
    /// A copy of a client's request, whose answer nobody gets.
    Mirrored,
    /// As the client asked, with Upgrade.
    Upgrade,
    /// What a program pipes without one: the last of its connections on both sides.
    Piped,
    /// The same in place of varnishd: as it comes, and so is the answer.
    Raw,
    /// CONNECT, of a proxy.
    Tunnel,
}

impl Purpose {
    /// What comes is stored, and others get it too.
    pub(crate) fn is_for_many(&self) -> bool {
        matches!(self, Purpose::Store(_) | Purpose::Slice { .. })
    }
}
