//! What `[fleet]` says: who this node is, and where the log of purges lies.

use std::path::PathBuf;
use std::time::Duration;

use fleet::{Acknowledge, LogPlace};

use crate::plan::Plan;

/// What the keys of the log begin with.
pub const LOG_KEY: &str = "larder";

/// How far this node has heard, beside the first disk: what lies there outlives the process.
const POSITION_ENDING: &str = ".fleet";

impl Plan {
    /// `None`: nothing that is stored outlives the process.
    pub fn fleet_position_file(&self) -> Option<PathBuf> {
        let disk = &self.disks.first()?.path;
        let mut file = disk.clone().into_os_string();
        file.push(POSITION_ENDING);
        Some(file.into())
    }
}

/// A node that shares a log of purges with others.
#[derive(Clone)]
pub struct LogPlan {
    pub place: LogPlace,
    /// As it is written, which is compared after a reload and shown to nobody.
    pub url: String,
    pub key: String,
    /// `None`: the name of the machine.
    pub name: Option<String>,
    pub lease: Duration,
    /// What an order's acknowledgement means that does not say it.
    pub acknowledge: Acknowledge,
    /// The others are told of what unsafe methods invalidate, too.
    pub unsafe_methods: bool,
    /// VCLs are loaded and used on all nodes at once.
    pub vcl: bool,
    /// Who may sign the certificate of the log's engine, in PEM; `None`: whom this system trusts.
    pub authorities: Option<Vec<u8>>,
}

/// Without the address, which may hold a password.
impl std::fmt::Debug for LogPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let said = (&self.key, &self.name, self.lease, self.acknowledge, self.unsafe_methods, self.vcl);
        f.debug_tuple("LogPlan").field(&said).finish_non_exhaustive()
    }
}

impl LogPlan {
    pub const LEASE: Duration = Duration::from_secs(5);

    /// All that it says, to be compared.
    pub fn said(&self) -> (&str, &str, Option<&str>, Duration, &'static str, bool, bool) {
        (&self.url, &self.key, self.name.as_deref(), self.lease, self.acknowledge.word(), self.unsafe_methods, self.vcl)
    }
}
