//! What a supervisor has in its hands: the next version of it takes it over.

use crate::child::Child;
use crate::crash_reports::CrashReports;
use crate::kept_sockets::KeptSockets;

/// See the module.
#[derive(Debug, Default)]
pub struct Processes {
    pub kept: KeptSockets,
    pub children: Vec<Child>,
    /// Of those that served, so many have died before their time.
    pub deaths: u64,
    pub reports: CrashReports,
}
