//! `larder lab`: the parts of the lab that are programs of their own.

use std::process::ExitCode;

use clap::Subcommand;

use crate::lab_origin::{NullFlags, OriginFlags, null, origin};
use crate::lab_run::{RunFlags, run};

#[derive(Clone, Debug, Subcommand)]
pub enum LabCommand {
    /// Measure servers side by side: every row of a lab file, in interleaved blocks, every answer checked
    Run(RunFlags),
    /// Answer as the path and the query say: sizes, delays, statuses, and faults
    Origin(OriginFlags),
    /// Answer everything with the same bytes, as cheaply as can be: the ceiling of the load generator
    Null(NullFlags),
}

pub fn lab(command: &LabCommand) -> ExitCode {
    match command {
        LabCommand::Run(flags) => run(flags),
        LabCommand::Origin(flags) => origin(flags),
        LabCommand::Null(flags) => null(flags),
    }
}
