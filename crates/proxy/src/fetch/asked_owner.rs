//! Another node of the fleet, the owner of a fetch's URL, that is asked in place of the origin.

use std::cell::Cell;
use std::sync::Arc;

use crate::fetch::timeouts::Timeouts;
use crate::fleet::Fleet;
use crate::fleet::crossings::Crossing;
use crate::fleet::node_proof::Proof;
use crate::origin::{Address, Origin};

/// The owner that is asked.
pub(crate) struct AskedOwner {
    pub(super) fleet: Arc<Fleet>,
    pub(super) key: u64,
    pub(super) at: Arc<Address>,
    /// In whose place none of these is asked.
    pub(super) avoid: Vec<Arc<Address>>,
    pub(super) failed: Vec<Arc<Address>>,
    /// Of the request that was sent last.
    pub(super) proof: Cell<Proof>,
    /// Who is asked when there is no owner any more, and how long.
    pub(super) origin: Arc<Origin>,
    pub(super) timeouts: Timeouts,
    pub(super) _crossing: Crossing,
}
