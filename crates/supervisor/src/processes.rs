//! What a supervisor has in its hands: the next version of it takes it over.

use crate::child::Child;
use crate::kept_sockets::KeptSockets;

/// See the module.
#[derive(Debug, Default)]
pub struct Processes {
    pub kept: KeptSockets,
    pub children: Vec<Child>,
    /// Of those that served, so many have died before their time.
    pub deaths: u64,
}
