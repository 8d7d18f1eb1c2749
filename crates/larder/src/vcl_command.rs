//! `larder vcl`: what is done with VCL files besides checking and serving them, and with those that a larder has loaded.

mod dry_run_heads;
mod dry_run_trace;
mod dry_running;
mod explained;
mod vcl_expect;
mod vcl_explain;
mod vcl_fmt;
mod vcl_remote;
mod vcl_suite;
mod vcl_test;

use std::process::ExitCode;

use clap::Subcommand;

use crate::admin_client::RemoteFlags;
use crate::vcl_command::vcl_explain::{ExplainFlags, explain};
use crate::vcl_command::vcl_fmt::{FmtFlags, fmt};
pub use crate::vcl_command::vcl_remote::{BanFlags, ban};
use crate::vcl_command::vcl_remote::{HealthFlags, LabelFlags, LoadFlags, NameFlags};
use crate::vcl_command::vcl_test::{TestFlags, test};

#[derive(Clone, Debug, Subcommand)]
pub enum VclCommand {
    /// Format VCL files: only blanks and line ends change
    #[command(after_help = FMT_EXAMPLES)]
    Fmt(FmtFlags),
    /// Show what a VCL does with a request: statements, changes, verdicts, and what decided how long the response lives
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Box<ExplainFlags>),
    /// Run unit tests of a VCL, without a network
    #[command(after_help = TEST_EXAMPLES)]
    Test(TestFlags),
    /// Load a VCL file into a running larder
    #[command(after_help = LOAD_EXAMPLES)]
    Load(LoadFlags),
    /// Make a loaded VCL the active one
    #[command(after_help = USE_EXAMPLES)]
    Use(NameFlags),
    /// Unload a VCL, or remove a label
    #[command(after_help = DISCARD_EXAMPLES)]
    Discard(NameFlags),
    /// Make a label stand for a loaded VCL: return (vcl(LABEL)) leads there
    #[command(after_help = LABEL_EXAMPLES)]
    Label(LabelFlags),
    /// List the loaded VCLs
    #[command(after_help = LIST_EXAMPLES)]
    List(RemoteFlags),
    /// List the backends of all loaded VCLs, with health and probes
    #[command(after_help = LIST_EXAMPLES)]
    Backends(RemoteFlags),
    /// Set the health of a backend, or leave it to its probes
    #[command(after_help = HEALTH_EXAMPLES)]
    Health(HealthFlags),
    /// Ban stored responses by conditions, as ban() in VCL does
    #[command(after_help = BAN_EXAMPLES)]
    Ban(BanFlags),
    /// List the bans in force, and what they dropped
    #[command(after_help = BAN_EXAMPLES)]
    Bans(RemoteFlags),
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  larder vcl explain shop.vcl --request 'GET /cart Host: shop.example Cookie: id=7'
  larder vcl explain shop.vcl --request 'GET / Host: a' --origin '200 Cache-Control: max-age=60'
  larder vcl explain shop.vcl --request 'GET / Host: a' --cached stale --sick web
  larder vcl explain shop.vcl --request-file request.txt --json | jq .lives

Nobody is asked over the network: what backends answer and what is in the cache is what you say. Names are not looked up,
and the time stands still.

Exit codes: 0 explained; 1 the program or the request is no good; 2 wrong flags.";

const TEST_EXAMPLES: &str = "\
Examples:
  larder vcl test shop.toml
  larder vcl test *.toml --only cart --brief

A file of tests:
  vcl = \"shop.vcl\"

  [[case]]
  name = \"carts are never stored\"
  request = \"GET /cart Host: shop.example\"
  origin = \"200 Cache-Control: max-age=60\"
  expect = { outcome = \"pass\", stored = false, resp = { X-Cache = \"MISS\", Server = false } }

docs/vcl-tools.md has all that may be expected.

Exit codes: 0 every case is ok; 1 one is not, or there is none, or a file is broken; 2 wrong flags.";

const LOAD_EXAMPLES: &str = "\
Examples:
  larder vcl load monday /etc/varnish/default.vcl --config larder.toml
  larder vcl load monday default.vcl --use --admin unix:/run/larder-admin.sock

It is checked first; one that is no good is refused with its mistakes, and nothing changes.

Exit codes: 0 loaded; 1 refused, or no larder answers; 2 wrong flags.";

const USE_EXAMPLES: &str = "\
Examples:
  larder vcl use monday --config larder.toml

Transactions under way end on the VCL that they began with.

Exit codes: 0 done; 1 refused, or no larder answers; 2 wrong flags.";

const DISCARD_EXAMPLES: &str = "\
Examples:
  larder vcl discard monday --config larder.toml

The one that decides is refused, and one that a label stands for.

Exit codes: 0 done; 1 refused, or no larder answers; 2 wrong flags.";

const LABEL_EXAMPLES: &str = "\
Examples:
  larder vcl label shop monday --config larder.toml      return (vcl(shop)) leads to monday from now on

Exit codes: 0 done; 1 refused, or no larder answers; 2 wrong flags.";

const LIST_EXAMPLES: &str = "\
Examples:
  larder vcl list
  larder vcl backends --json | jq '.backends[] | select(.healthy | not) | .name'

Exit codes: 0 done; 1 no larder answers; 2 wrong flags.";

pub const BAN_EXAMPLES: &str = "\
Examples:
  larder ban 'obj.url ~ ^/shop/' --config larder.toml
  larder ban 'obj.status == 404 && obj.age > 1h' --admin unix:/run/larder-admin.sock
  larder vcl bans

A ban on obj.* is worked off in the background; one on req.* when somebody asks, once for each response. obj.url and obj.host are those that a
response was fetched for. `larder purge --ban` works it off at once, and says how many went. `larder vcl ban` is the same as `larder ban`.

Exit codes: 0 done; 1 refused, or no larder answers; 2 wrong flags.";

const HEALTH_EXAMPLES: &str = "\
Examples:
  larder vcl health app1 sick --config larder.toml       no request goes there, whatever its probes say
  larder vcl health boot.app1 auto --config larder.toml

Exit codes: 0 done; 1 refused, or no larder answers; 2 wrong flags.";

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
        VclCommand::Explain(flags) => explain(flags),
        VclCommand::Test(flags) => test(flags),
        VclCommand::Load(flags) => vcl_remote::load(flags),
        VclCommand::Use(flags) => vcl_remote::use_it(flags),
        VclCommand::Discard(flags) => vcl_remote::discard(flags),
        VclCommand::Label(flags) => vcl_remote::label(flags),
        VclCommand::List(flags) => vcl_remote::list(flags),
        VclCommand::Backends(flags) => vcl_remote::backends(flags),
        VclCommand::Health(flags) => vcl_remote::health(flags),
        VclCommand::Ban(flags) => vcl_remote::ban(flags),
        VclCommand::Bans(flags) => vcl_remote::bans(flags),
    }
}
