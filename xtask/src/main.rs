//! The project's own tasks, run as `cargo xtask TASK`. `test` is all of them in order; the others are its parts.
//!
//! This crate knows larder only from outside: its source files, its binary, its documents. Nothing imports it.

use std::process::ExitCode;

use crate::project::Project;
use crate::shim::Over;

mod allocators;
mod allowances;
mod ban_load;
mod behaviours;
mod cache_model;
mod cache_random;
mod circles;
mod collector;
mod conformance;
mod counts;
mod crash;
mod crash_bodies;
mod dice;
mod disk_fill;
mod edge_counts;
mod esi_pages;
mod findings;
mod fleet_history;
mod flood_attack;
mod flood_client;
mod floods;
mod fuzzing;
mod glossary;
mod go_peer;
mod h2_shim;
mod h2spec;
mod homonyms;
mod import_corpus;
mod imports;
mod judged_cache;
mod large;
mod licences;
mod many_articles;
mod memory;
mod memory_line;
mod memory_load;
mod memory_plot;
mod memory_site;
mod memory_stalled;
mod miss_ratios;
mod module_map;
mod mutants;
mod object_cost;
mod original_scenario;
mod original_walk;
mod originals;
mod package;
mod page_names;
mod page_tables;
mod plain_exchange;
mod plot_marks;
mod ports;
mod process_signal;
mod project;
mod prometheus;
mod purge_cost;
mod scenario_origin;
mod seeded_run;
mod shim;
mod sites;
mod soak;
mod source;
mod started_larder;
mod step_tally;
mod suite;
mod test_certificate;
mod text_client;
mod tidy;
mod tls_shim;
mod vcl_corpus;
mod vcl_load_time;
mod vcl_random;
mod verdicts;
mod vtc;
mod vtc_kinds;
mod vtc_leftovers;
mod walls;

const USAGE: &str = "\
usage: cargo xtask TASK

  test                     everything that must hold, in order, with a summary
  check                    format, lints, tidy
  unit                     unit tests, tests in memory and the examples of the crates' docs
  tidy                     the rules of ARCHITECTURE.md and of the house, as a test
  tidy --circles [CRATE…]  the largest circle of imports of every crate, or of these, and which edges would open it
  behaviours [FILE.vtc…]   the behaviour files, all or these
  behaviours --over tls|h2 [FILE.vtc…]
                           the same with a larder that is asked over TLS or HTTP/2, but for what xtask/over/NAME.toml gives a
                           reason for
  conformance              the public HTTP cache test suite against larder, held against docs/conformance.md
  conformance --against URL --origin-port PORT
                           the same suite against another proxy that listens at URL and forwards to 127.0.0.1:PORT
  conformance --list       like the first, and prints the rows that docs/conformance.md should hold
  floods [--seconds N]     larder, HAProxy and nginx flooded over HTTP/2 in seven ways: what is resident, what does a good client wait for?
  h2spec                   the public conformance test of HTTP/2 against larder, over TLS and in the clear
  collector                spans and log records of larder to the OpenTelemetry Collector, which is built with Go 1.26 or newer: are
                           they understood?
  prometheus               larder's histograms in Prometheus 3, which is built with Go 1.26 or newer, as native ones: is what they answer
                           right?
  vcl-corpus DIR           every .vcl file under DIR to Varnish's compiler and to larder check: do they agree?
                           and do whole files do the same in both, by the scenarios of xtask/originals/?
  originals DIR [NAME…]    only the second half of that, all scenarios or these
  vtc DIR [NAME…]          Varnish's own tests, from a checkout of Varnish at DIR, with larder in place of varnishd: all, these,
                           `first` (those to pass first), `wire` (those for any cache that reads VCL)
  esi-pages                pages with parts through larder and the installed Varnish under one VCL: are they the same, what does one of 20
                           cached parts cost, and how long does one of 20 missing parts take?
  crash [--runs N] [--seed S]
                           kill -9 under load, 100 times or as told: is anything wrong, or back, after the restart?
  cache-random [--answers N] [--seed S]
                           random origins, clients, purges, clocks, kills and reloads: was each of 100,000 answers, or as
                           told, one that RFC 9111 and docs/what-is-cached.md allow?
  fleet-history [--rounds N] [--seed S] [--planted local-as-applied|no-lease]
                           three larders with one log in Redis, and faults of nodes, links and Redis in 30 rounds, or as told: was
                           any answer older than a purge allows that was acknowledged before? With --planted it must say so
  soak [--hours N | --minutes N] [--seed S] [--plant stale|truncate|leak|kill]
                           two larders as operators have them, every protocol at once, and reloads, upgrades, kills, purges,
                           certificates, full and frozen disks in turn, for 3 minutes or as told: was every byte right, did no
                           request fail that was not announced, does memory not grow? With --plant it must say so
  counts [--exchanges N] [--seed S]
                           a random load of 100,000 exchanges, or as told, with faults of origins and clients that leave: do access
                           log, events, metrics, larder stat, varnishstat, clients and origins count the same, to the last one?
  import-corpus DIR [--expect-open] [NAME…]
                           published configurations of that folder, imported, beside the real servers: a table of requests to
                           both; is nothing open that was closed, and all that is otherwise listed?
  import-random [--files N] [--seed S]
                           configurations of nginx that nobody wrote, imported, beside the real nginx: the same question
  sites wordpress|mediawiki [--steps N] [--seed S] [--vcl | --preset] [--expect-leaks]
                           larder in front of the real one: does anything private reach anybody else in 500 random steps? With
                           --preset: does it keep what it promises, pages from the store and changes in time?
  vcl-random [--programs N] [--seed S] [--first N] [--as-found]
                           random VCL programs and requests to larder and to the installed Varnish: do both answer alike, and
                           ask their origins alike, but for what xtask/vcl-random/argued.toml argues?
  vcl-random --replay FILE one program with its requests, as a run has written it down
  mutants [rules|wire|proxy] [--seed S] [--first N] [--count N] [--lanes N] [--listed] [--write]
                           the crates with one small fault at a time: does a test fail for each, but for what
                           xtask/mutants/survivors.toml gives a reason for? All faults in their order, with a seed in a
                           random one, or those of the list; --write puts the figures into docs/behaviours.md
  large [--mib N] [--clients N] [--memory-mib N]
                           a file of 5 GiB, or as told, in ranges to 50 clients at once: is every byte right, and the
                           origin asked once?
  fill [--mib N] [--blocks N] [--seconds N]
                           bodies written to a disk beside fio and beside passing them, and what hits cost meanwhile
  miss-ratios [--seed N]   S3-FIFO against LRU on three made traces; without a seed docs/simulate.md is written anew
  memory [--minutes N] [--memory SIZE] [--seed N] [--urls N]
                           a mixed load for a minute, or as told, of so many distinct URLs, or 500,000 a minute: does the
                           process stay below its limit, and alive?
  memory --stalled N [--bytes-per-second N] [--minutes N] [--memory SIZE]
                           N readers that take nothing, or so little, of 2 MB each: is everybody else answered, and does
                           the process stay below its limit?
  allocators NAME=BINARY[,LIBRARY]…
                           larder under one allocator and another: what is resident, and what a hit and a miss cost
  object-cost [--objects N] [--larder BINARY]
                           what one small object makes resident, here or in another larder, and in Debian's varnishd
  purge-cost [--objects N] [--larder BINARY]
                           how long a purge of a tag takes that a hundredth of 1,000,000 responses, or as told, carries
  package                  target/package/larder.deb, by cargo-deb: is all in it that has to be?
  machines                 writes docs/machines.md anew from the program's own edge tables
  fuzz TARGET [SECONDS]    one fuzz target, 60 seconds unless told otherwise
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // These are started by behaviour files, in folders of their own and often.
    match arguments.as_slice() {
        ["over", name, certificates, larder, rest @ ..] => {
            return ended(over(name).and_then(|over| shim::start(over, certificates, larder, rest)));
        }
        ["shim", "tls", certificates] => return ended(tls_shim::run(certificates)),
        ["shim", "h2", _] => return ended(h2_shim::run()),
        _ => {}
    }
    let project = match Project::locate() {
        Ok(project) => project,
        Err(why) => return fail(&why),
    };
    let outcome = match arguments.as_slice() {
        ["test"] => suite::test(&project),
        ["check"] => suite::check(&project),
        ["unit"] => suite::unit(&project),
        ["tidy"] => tidy::task(&project),
        ["tidy", "--circles", crates @ ..] => circles::task(&project, crates),
        ["behaviours", "--over", name, files @ ..] => {
            over(name).and_then(|over| behaviours::task(&project, over, files))
        }
        ["behaviours", files @ ..] => behaviours::task(&project, Over::Clear, files),
        ["conformance", options @ ..] => conformance::task(&project, options),
        ["floods", options @ ..] => floods::task(&project, options),
        ["h2spec"] => h2spec::task(&project),
        ["collector"] => collector::task(&project),
        ["prometheus"] => prometheus::task(&project),
        ["vcl-corpus", folder] => vcl_corpus::task(&project, folder),
        ["originals", folder, named @ ..] => originals::task(&project, folder, named),
        ["vtc", folder, named @ ..] => vtc::task(&project, folder, named),
        ["esi-pages"] => esi_pages::task(&project),
        ["counts", options @ ..] => counts::task(&project, options),
        ["crash", options @ ..] => crash::task(&project, options),
        ["fleet-history", options @ ..] => fleet_history::task(&project, options),
        ["soak", options @ ..] => soak::task(&project, options),
        ["cache-random", options @ ..] => cache_random::task(&project, options),
        ["import-corpus", options @ ..] => import_corpus::task(&project, options),
        ["import-random", options @ ..] => import_corpus::random_run::task(&project, options),
        ["sites", options @ ..] => sites::task(&project, options),
        ["vcl-random", options @ ..] => vcl_random::task(&project, options),
        ["large", options @ ..] => large::task(&project, options),
        ["fill", options @ ..] => disk_fill::task(&project, options),
        ["mutants", options @ ..] => mutants::task(&project, options),
        ["miss-ratios", options @ ..] => miss_ratios::task(&project, options),
        ["memory", options @ ..] => memory::task(&project, options),
        ["allocators", named @ ..] => allocators::task(&project, named),
        ["object-cost", options @ ..] => object_cost::task(&project, options),
        ["purge-cost", options @ ..] => purge_cost::task(&project, options),
        ["package"] => package::task(&project),
        ["machines"] => edge_counts::redraw(&project),
        ["fuzz", target] => fuzzing::task(&project, target, fuzzing::SECONDS_DEFAULT),
        ["fuzz", target, seconds] => match seconds.parse() {
            Ok(seconds) => fuzzing::task(&project, target, seconds),
            Err(_) => Err(format!("'{seconds}' is no number of seconds")),
        },
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    ended(outcome)
}

fn over(name: &str) -> Result<Over, String> {
    Over::named(name).ok_or_else(|| format!("'{name}' is nothing to run behaviours over: tls, h2"))
}

fn ended(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fail(&why),
    }
}

fn fail(why: &str) -> ExitCode {
    if !why.is_empty() {
        eprintln!("xtask: {why}");
    }
    ExitCode::FAILURE
}
