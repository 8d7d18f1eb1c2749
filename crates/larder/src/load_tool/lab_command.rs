//! `larder lab`: the parts of the lab that are programs of their own.

use std::process::ExitCode;

use clap::Subcommand;

use crate::load_tool::lab_compare::{CompareFlags, ReportFlags, compare, report};
use crate::load_tool::lab_origin::{NullFlags, OriginFlags, null, origin};
use crate::load_tool::lab_run::{RunFlags, run};
use crate::load_tool::lab_simulate::{SimulateFlags, simulate};

#[derive(Clone, Debug, Subcommand)]
pub enum LabCommand {
    /// Measure servers side by side: every row of a lab file, in interleaved blocks, every answer checked
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunFlags),
    /// Print the table of a finished run; write its page or its cells again
    Report(ReportFlags),
    /// Compare two runs: what became better or worse; exit 1 when anything became worse
    Compare(CompareFlags),
    /// Replay an access log or a trace at several sizes of memory: how much does a cache need?
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateFlags),
    /// Run an origin whose answers are what path and query ask for: sizes, delays, statuses, faults
    Origin(OriginFlags),
    /// Run a server that answers everything with the same bytes, as cheaply as can be
    Null(NullFlags),
    /// End the servers of a lab that was killed; `larder lab run` starts it
    #[command(hide = true)]
    Keeper,
}

const RUN_EXAMPLES: &str = "\
Examples:
  larder lab run lab/bench.toml --quick                    a look at all rows
  larder lab run lab/bench.toml --only varnish --rows hit  some of it
  larder lab run mine.toml --out results/mine              goes on there when it was interrupted

A lab file:
  title = \"hits\"
  reference = \"larder\"                  # it runs twice: what the two differ by is the noise
  servers = [\"larder\", \"nginx-cache\"]  # or [[server]] with name, profile, args, options, workers, port, binary
  [[row]]
  name = \"hit\"
  size = [6221, 75356]                  # or urls = { count = 10000, mean_bytes = 12000, order = \"zipf\" }
  connections = [64, 1000]              # also rate, sessions, keep_alive, headers, kind = \"pass\" or \"idle\"
  [[row]]
  name = \"over TLS and HTTP/2\"         # one of the two alone, too; each server shows a certificate made for the run
  size = 6221
  connections = 64
  tls = true                            # with keep_alive = false: handshakes; resume = true: resumed ones
  http2 = true
  streams = [10, 1]                     # requests under way at once on each connection
  [[row]]
  name = \"compressed\"                   # kind = \"miss\": each request for a URL of its own
  size = 75356
  connections = 64
  encoding = [\"gzip\", \"zstd\"]          # or parts = { count = 20, bytes = 1000 }: a page that caches put together (ESI)

Profiles: larder, larder-static, larder-forward, larder-memc, larder-vcl, nginx-cache, nginx-static, nginx-memc, varnish, hitch-varnish, squid,
squid-forward, haproxy, apache, apache-static, h2o, caddy, lighttpd, trafficserver, memcached, null. Servers that are not installed are
skipped. Over TLS and HTTP/2: larder, nginx, haproxy, h2o, caddy; hitch-varnish over TLS, varnish over HTTP/2 in the clear.

Exit codes: 0 measured; 1 a bad file, a server that does not start, interrupted; 2 wrong flags.";

const SIMULATE_EXAMPLES: &str = "\
Examples:
  larder lab simulate /var/log/nginx/access.log
  larder lab simulate access.log --memory 64MiB,256MiB,1GiB --ttl 10m --plot curves.svg
  zstd -dc trace.oracleGeneral.zst | larder lab simulate - --first 10000000 --json
  larder lab simulate --generate site --seed 7 --memory 0.1%,1%,10%,30%

Exit codes: 0 simulated; 1 no such file, or no trace; 2 wrong flags.";

pub fn lab(command: &LabCommand) -> ExitCode {
    match command {
        LabCommand::Run(flags) => run(flags),
        LabCommand::Report(flags) => report(flags),
        LabCommand::Compare(flags) => compare(flags),
        LabCommand::Simulate(flags) => simulate(flags),
        LabCommand::Origin(flags) => origin(flags),
        LabCommand::Null(flags) => null(flags),
        LabCommand::Keeper => {
            lab::keep_groups(std::io::stdin().lock());
            ExitCode::SUCCESS
        }
    }
}
