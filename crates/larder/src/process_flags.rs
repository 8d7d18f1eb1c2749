//! The flags of `larder serve` about its processes: whether one supervises, and what they say to one another.

use clap::Args;

/// See the module.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ProcessFlags {
    /// Serve in the process that is started, without one above it: nothing starts larder again, and an upgrade is a restart
    #[arg(long)]
    pub no_supervisor: bool,

    /// Said by a supervisor to the process that it starts.
    #[arg(long, hide = true, conflicts_with = "no_supervisor")]
    supervised: bool,

    /// Said by a supervisor to the next version of itself.
    #[arg(long, hide = true, conflicts_with_all = ["no_supervisor", "supervised"])]
    succeeding: bool,
}

/// What a process of `larder serve` is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessRole {
    Supervisor,
    /// A supervisor that goes on for another version.
    Successor,
    /// It serves, below a supervisor.
    Supervised,
    /// It serves, and there is no other.
    Alone,
}

impl ProcessFlags {
    pub fn role(self) -> ProcessRole {
        match self {
            ProcessFlags { succeeding: true, .. } => ProcessRole::Successor,
            ProcessFlags { supervised: true, .. } => ProcessRole::Supervised,
            ProcessFlags { no_supervisor: true, .. } => ProcessRole::Alone,
            _ => ProcessRole::Supervisor,
        }
    }
}
