//! What lies beneath memory and disk and is shared with other nodes, as the cache sees it: a store of records by name, on the other side
//! of a network. It may be slow, full, dead or lying; a record that comes back is one that some node of the fleet wrote under that name, or
//! none.
//!
//! Unlike the disk it is nobody's own. It is not told of invalidations: each node holds what it finds against the purges that it knows
//! (`shared_level.rs`).

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use store::Blocks;

/// What a record lies under: the same on all nodes, for all make it by the same keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TierName {
    pub key: u128,
    pub variant: u64,
}

/// What is kept: a head in a form of the cache's own, and a body.
#[derive(Clone, Debug)]
pub struct TierRecord {
    pub head: Bytes,
    pub body: Blocks,
}

/// The right to fetch for all nodes: whoever asks for the same meanwhile waits a while. It is given back when it is dropped.
pub struct FetchRight(Option<Box<dyn FnOnce() + Send + Sync>>);

impl FetchRight {
    pub fn new(give_back: impl FnOnce() + Send + Sync + 'static) -> FetchRight {
        FetchRight(Some(Box::new(give_back)))
    }
}

impl Drop for FetchRight {
    fn drop(&mut self) {
        if let Some(give_back) = self.0.take() {
            give_back();
        }
    }
}

impl std::fmt::Debug for FetchRight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FetchRight")
    }
}

/// What asking came to.
#[derive(Debug)]
pub enum TierAnswer {
    Found(TierRecord),
    /// It has none, or none that can be had in time. With the right to fetch, if that was wanted and nobody has it.
    Nothing(Option<FetchRight>),
}

pub type AskedTier<'a> = Pin<Box<dyn Future<Output = TierAnswer> + Send + 'a>>;

/// How often what came of it, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierFigures {
    pub asked: u64,
    pub found: u64,
    /// Somebody else fetched it, and it was waited for: what came of that counts as found or not.
    pub waited: u64,
    /// No answer came within the time that a request may wait.
    pub timeouts: u64,
    /// An answer that is none, or a connection that broke.
    pub errors: u64,
    /// Nothing was asked, for the server had failed a moment ago, or too much was asked of it already.
    pub skipped: u64,
    /// A record that no node of this fleet wrote as it is.
    pub refused: u64,
    pub kept: u64,
    /// Not kept: too much was on its way, or the server would not have it.
    pub not_kept: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
}

/// A server of it, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierServer {
    /// Without what may be a password.
    pub name: String,
    /// Why it is left alone at the moment.
    pub trouble: Option<String>,
}

/// All of it returns at once but what `ask` gives.
pub trait SecondTier: Send + Sync {
    /// What lies under a name. `wants_right`: who asks would fetch it for all, and waits a while for who does so already.
    fn ask(&self, name: TierName, wants_right: bool) -> AskedTier<'_>;

    /// Keeps a record, or not: until `expires_s`, seconds since 1970.
    fn keep(&self, name: TierName, record: TierRecord, expires_s: u64);

    fn forget(&self, name: TierName);

    /// Bodies of more bytes are not kept.
    fn body_bytes_max(&self) -> u64;

    fn figures(&self) -> TierFigures;

    fn servers(&self) -> Vec<TierServer>;
}

/// A tier that was opened, and what a node must know to share it.
#[derive(Clone)]
pub struct SharedTier {
    pub tier: Arc<dyn SecondTier>,
    /// What all nodes make names by.
    pub seed: [u8; 16],
    /// Of this process, and of no other one.
    pub run: u64,
}
