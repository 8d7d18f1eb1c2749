//! `larder vcl`: what is done with VCL files besides checking and serving them.

use std::process::ExitCode;

use clap::Subcommand;

use crate::vcl_fmt::{FmtFlags, fmt};

#[derive(Clone, Debug, Subcommand)]
pub enum VclCommand {
    /// Lay VCL files out anew: only blanks and line ends change
    #[command(after_help = FMT_EXAMPLES)]
    Fmt(FmtFlags),
}

const FMT_EXAMPLES: &str = "\
Examples:
  larder vcl fmt default.vcl                 in place
  larder vcl fmt --check *.vcl               exit 1 when one is not laid out like this, and name it
  larder vcl fmt - < old.vcl > new.vcl

No word, string or comment is changed, and line ends within a statement stay where their author put them. A file with
mistakes in its syntax is left as it is. Files that others include may be given too.

Exit codes: 0 done; 1 a file is broken, or --check found one to change; 2 wrong flags.";

pub fn vcl(command: &VclCommand) -> ExitCode {
    match command {
        VclCommand::Fmt(flags) => fmt(flags),
    }
}
