//! `larder lab`: the parts of the lab that are programs of their own.

use std::process::ExitCode;

use clap::Subcommand;

use crate::lab_origin::{NullFlags, OriginFlags, null, origin};

#[derive(Clone, Debug, Subcommand)]
pub enum LabCommand {
    /// Answer as the path and the query say: sizes, delays, statuses, and faults
    Origin(OriginFlags),
    /// Answer everything with the same bytes, as cheaply as can be: the ceiling of the load generator
    Null(NullFlags),
}

pub fn lab(command: &LabCommand) -> ExitCode {
    match command {
        LabCommand::Origin(flags) => origin(flags),
        LabCommand::Null(flags) => null(flags),
    }
}
