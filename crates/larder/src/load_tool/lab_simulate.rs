//! `larder lab simulate`: how much memory do I need, and on how many nodes? A trace through larder's own eviction at several sizes.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use store::{EvictionKind, Tried};

use crate::limits::{SIMULATED_NODES_MAX, SIMULATED_OBJECTS_MAX, SIMULATED_OBJECTS_MIN, SIMULATED_REQUESTS_MAX};
use crate::load_tool::simulation::curve_plot::svg;
use crate::load_tool::simulation::fleet_replay::FleetTried;
use crate::load_tool::simulation::fleet_table::{self, fleet_rows};
use crate::load_tool::simulation::made_trace::{MadeKind, Recipe, make};
use crate::load_tool::simulation::miss_curves::{Curve, Grid, curves, enough, standby_s, usual_sizes, whole_bytes};
use crate::load_tool::simulation::trace_file::{ReadAs, Trace, TraceFormat, read};
use crate::load_tool::simulation::what_if::WhatIf;
use crate::quantities::{parse_duration, parse_size, show_size};
use crate::say::say;

/// The memory of a node where none is said: of what everything takes.
const NODE_MEMORY_PERCENT_DEFAULT: f64 = 5.0;

/// What an object takes beside its body with a head of 300 bytes, its places in the index and in the eviction counted.
const OBJECT_BYTES_DEFAULT: u64 = 1_480;

#[derive(Clone, Debug, Args)]
pub struct SimulateFlags {
    /// An access log, a CSV file of seconds, key and bytes, or a trace in libCacheSim's oracleGeneral; - reads standard input
    #[arg(value_name = "TRACE", required_unless_present = "generate", conflicts_with = "generate")]
    pub trace: Option<PathBuf>,

    /// Make a trace instead of reading one
    #[arg(long, value_enum, value_name = "KIND")]
    pub generate: Option<MadeKind>,

    /// How many requests to make
    #[arg(long, value_name = "N", default_value_t = 1_000_000, conflicts_with = "trace",
          value_parser = clap::value_parser!(u64).range(1..=SIMULATED_REQUESTS_MAX))]
    pub requests: u64,

    /// How many objects they are for
    #[arg(long, value_name = "N", default_value_t = 100_000, conflicts_with = "trace",
          value_parser = clap::value_parser!(u32).range(SIMULATED_OBJECTS_MIN..=SIMULATED_OBJECTS_MAX))]
    pub objects: u32,

    /// The same seed makes the same trace
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "trace")]
    pub seed: u64,

    /// The trace's format [default: told by its first bytes]
    #[arg(long, value_enum, conflicts_with = "generate")]
    pub format: Option<TraceFormat>,

    /// A size of memory to try, or a part of what all objects take (5%); several with commas [default: ten sizes, from
    /// what holds everything down by halves]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_memory)]
    pub memory: Vec<MemoryTried>,

    /// An order of eviction to try: s3-fifo, sieve, lru; several with commas [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = parse_kind)]
    pub policy: Vec<EvictionKind>,

    /// Bytes that an object takes beside its body
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value_t = OBJECT_BYTES_DEFAULT)]
    pub object_bytes: u64,

    /// How long an object is fresh [default: for ever]
    #[arg(long, value_name = "DURATION", value_parser = parse_seconds)]
    pub ttl: Option<u32>,

    /// What if larder had stored what it did not, for this reason, such as cookie? For larder's own logs; several with commas
    #[arg(long, value_name = "WHY", value_delimiter = ',', conflicts_with = "generate")]
    pub if_stored: Vec<String>,

    /// Read only this many requests, from the start
    #[arg(long, value_name = "N", conflicts_with = "generate")]
    pub first: Option<u64>,

    /// Deal the requests to so many nodes in turn, each with the memory tried; several with commas. Then the default is 5%
    /// of memory and s3-fifo
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with_all = ["plot", "if_stored"],
          value_parser = clap::value_parser!(u32).range(1..=SIMULATED_NODES_MAX))]
    pub nodes: Vec<u32>,

    /// A node fetches from the owner of an object, as with [fleet] peers
    #[arg(long, requires = "nodes")]
    pub owners: bool,

    /// A cache of this size that all nodes share, asked before the origin; or a part of what all objects take
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, requires = "nodes")]
    pub shared: Option<MemoryTried>,

    /// So many requests go by before anything is counted
    #[arg(long, value_name = "N", default_value_t = 0, requires = "nodes")]
    pub warm: u64,

    /// Write the curves here as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,
}

/// A size of memory, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryTried {
    Bytes(u64),
    /// Of what everything takes that is asked for.
    Percent(f64),
}

fn parse_memory(text: &str) -> Result<MemoryTried, String> {
    let Some(number) = text.strip_suffix('%') else { return parse_size(text).map(MemoryTried::Bytes) };
    let percent = number.trim_end().parse().ok().filter(|percent| (f64::MIN_POSITIVE..=100.0).contains(percent));
    percent.map(MemoryTried::Percent).ok_or_else(|| format!("`{text}` is no part of the whole, such as 0.5% or 30%"))
}

fn parse_kind(text: &str) -> Result<EvictionKind, String> {
    let found = EvictionKind::ALL.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| "an order of eviction is s3-fifo, sieve or lru".to_owned())
}

fn parse_seconds(text: &str) -> Result<u32, String> {
    u32::try_from(parse_duration(text)?.as_secs()).map_err(|_| format!("`{text}` is too long"))
}

pub fn simulate(flags: &SimulateFlags) -> ExitCode {
    match run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            say!("error: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &SimulateFlags) -> Result<(), String> {
    let (name, trace) = trace(flags)?;
    let grid = grid(flags, &trace);
    if !flags.nodes.is_empty() {
        return run_fleets(flags, &trace, &grid);
    }
    let pairs_count = grid.kinds.len() * grid.sizes_bytes.len();
    let made = curves(&trace, &grid, |done| show_progress(done, pairs_count));
    if let Some(path) = &flags.plot {
        let title = format!("Miss ratio of {name}, {} requests", trace.asks.len());
        std::fs::write(path, svg(&grid.sizes_bytes, &made, &title))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let what_if = WhatIf::of(&trace, &grid, &made, &flags.if_stored);
    let told = match flags.json {
        true => as_json(&trace, &grid, &made, what_if.as_ref()),
        false => as_text(&trace, &grid, &made) + &what_if.map(|what_if| what_if.sentence()).unwrap_or_default(),
    };
    let _ = std::io::stdout().write_all(told.as_bytes());
    Ok(())
}

/// On a terminal, until all are done.
fn show_progress(done: usize, all: usize) {
    if std::io::stderr().is_terminal() {
        let text = if done < all { format!("{done} of {all} replays") } else { String::new() };
        let _ = write!(std::io::stderr(), "\r{text}\x1b[K");
    }
}

fn run_fleets(flags: &SimulateFlags, trace: &Trace, grid: &Grid) -> Result<(), String> {
    if flags.warm >= trace.asks.len() as u64 {
        return Err(format!("--warm {} leaves none of the {} requests to count", flags.warm, trace.asks.len()));
    }
    let shared_bytes = flags.shared.as_ref().map(|size| bytes_of(size, whole_bytes(trace, grid.object_bytes)));
    let mut all = Vec::new();
    for kind in &grid.kinds {
        for limit_bytes in &grid.sizes_bytes {
            let Grid { object_bytes, ttl_s, .. } = *grid;
            let memory =
                Tried { kind: *kind, limit_bytes: *limit_bytes, object_bytes, ttl_s, standby_s: standby_s(ttl_s) };
            let (owners, warm_requests) = (flags.owners, flags.warm);
            all.extend(flags.nodes.iter().map(|nodes| FleetTried {
                nodes: *nodes,
                memory,
                owners,
                shared_bytes,
                warm_requests,
            }));
        }
    }
    let rows = fleet_rows(trace, &all, |done| show_progress(done, all.len()));
    let told = match flags.json {
        true => fleet_table::as_json(trace, &rows),
        false => format!("{}\n{}", trace_as_text(trace, grid), fleet_table::as_text(&rows)),
    };
    let _ = std::io::stdout().write_all(told.as_bytes());
    Ok(())
}

/// With its name.
fn trace(flags: &SimulateFlags) -> Result<(String, Trace), String> {
    if let Some(kind) = flags.generate {
        let SimulateFlags { requests, objects, seed, .. } = *flags;
        return Ok((format!("{}, seed {seed}", kind.name()), make(&Recipe { kind, requests, objects, seed })));
    }
    let path = flags.trace.as_deref().expect("clap wants a trace where none is made");
    let name = path.display().to_string();
    let read_as = ReadAs { format: flags.format, first: flags.first, if_stored: flags.if_stored.clone() };
    let trace = open(path).and_then(|from| read(from, &read_as)).map_err(|what| format!("{name}: {what}"))?;
    Ok((name, trace))
}

fn open(path: &Path) -> Result<Box<dyn Read>, String> {
    match path == Path::new("-") {
        true => Ok(Box::new(std::io::stdin().lock())),
        false => File::open(path).map(|file| Box::new(file) as Box<dyn Read>).map_err(|error| error.to_string()),
    }
}

fn grid(flags: &SimulateFlags, trace: &Trace) -> Grid {
    let (whole_bytes, is_fleet) = (whole_bytes(trace, flags.object_bytes), !flags.nodes.is_empty());
    let mut sizes_bytes: Vec<u64> = flags.memory.iter().map(|tried| bytes_of(tried, whole_bytes)).collect();
    sizes_bytes.sort_unstable();
    sizes_bytes.dedup();
    if sizes_bytes.is_empty() {
        let of_node = || vec![bytes_of(&MemoryTried::Percent(NODE_MEMORY_PERCENT_DEFAULT), whole_bytes)];
        sizes_bytes = if is_fleet { of_node() } else { usual_sizes(whole_bytes) };
    }
    let kinds = match flags.policy.is_empty() {
        false => flags.policy.clone(),
        true if is_fleet => vec![EvictionKind::S3Fifo],
        true => EvictionKind::ALL.to_vec(),
    };
    Grid { kinds, sizes_bytes, object_bytes: flags.object_bytes, ttl_s: flags.ttl }
}

fn bytes_of(tried: &MemoryTried, whole_bytes: u64) -> u64 {
    match *tried {
        MemoryTried::Bytes(bytes) => bytes,
        MemoryTried::Percent(percent) => (whole_bytes as f64 * percent / 100.0).ceil() as u64,
    }
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// What was read or made, and what of it no cache can change.
fn trace_as_text(trace: &Trace, grid: &Grid) -> String {
    let requests = trace.asks.len();
    let mut out = format!(
        "{requests} requests for {} objects; all of them take {}, {} each beside their bodies\n",
        trace.objects,
        show_size(whole_bytes(trace, grid.object_bytes)),
        show_size(grid.object_bytes),
    );
    if trace.not_cacheable + trace.not_understood > 0 {
        out += &format!(
            "left out: requests that no cache keeps: {}; lines that were not understood: {}\n",
            trace.not_cacheable, trace.not_understood
        );
    }
    if !trace.not_stored.is_empty() {
        let reasons: Vec<String> = trace.not_stored.iter().map(|(why, count)| format!("{why} {count}")).collect();
        out += &format!("left out: what larder did not store: {} (--if-stored WHY)\n", reasons.join(", "));
    }
    out + &format!("at least {} are misses: first requests\n", percent(f64::from(trace.objects) / requests as f64))
}

fn as_text(trace: &Trace, grid: &Grid, curves: &[Curve]) -> String {
    let mut out = trace_as_text(trace, grid) + "\n";
    out += "misses of all requests (of all bytes)\n";
    out += &format!("{:>12}", "memory");
    curves.iter().for_each(|curve| out += &format!("  {:>20}", curve.kind.name()));
    out.push('\n');
    for (at, size) in grid.sizes_bytes.iter().enumerate() {
        out += &format!("{:>12}", show_size(*size));
        for curve in curves {
            let misses = &curve.misses[at];
            out += &format!("  {:>8} ({:>9})", percent(misses.ratio()), percent(misses.bytes_ratio()));
        }
        let bar = "█".repeat((curves[0].misses[at].ratio() * 40.0).round() as usize);
        out += &format!("  {bar}\n");
    }
    out.push('\n');
    for curve in curves {
        if let Some(at) = enough(curve) {
            let (size, name) = (show_size(grid.sizes_bytes[at]), curve.kind.name());
            out += &format!("{name}: {size} wins nine tenths of what the largest size tried wins over the smallest\n");
        }
    }
    out
}

fn as_json(trace: &Trace, grid: &Grid, curves: &[Curve], what_if: Option<&WhatIf>) -> String {
    let points = |curve: &Curve| {
        let point = |(size, misses): (&u64, &store::Misses)| {
            json!({
                "memory_bytes": size,
                "missed": misses.missed,
                "miss_ratio": misses.ratio(),
                "missed_bytes": misses.missed_bytes,
                "byte_miss_ratio": misses.bytes_ratio(),
            })
        };
        grid.sizes_bytes.iter().zip(&curve.misses).map(point).collect::<Vec<_>>()
    };
    let mut told = json!({
        "requests": trace.asks.len(),
        "objects": trace.objects,
        "not_cacheable": trace.not_cacheable,
        "not_understood": trace.not_understood,
        "bytes": curves.first().and_then(|curve| curve.misses.first()).map_or(0, |misses| misses.bytes),
        "whole_bytes": whole_bytes(trace, grid.object_bytes),
        "object_bytes": grid.object_bytes,
        "ttl_s": grid.ttl_s,
        "curves": curves.iter().map(|curve| json!({
            "policy": curve.kind.name(),
            "points": points(curve),
            "enough_bytes": enough(curve).map(|at| grid.sizes_bytes[at]),
        })).collect::<Vec<_>>(),
    });
    if !trace.not_stored.is_empty() {
        told["not_stored"] = json!(trace.not_stored);
    }
    if let Some(what_if) = what_if {
        told["if_stored"] = what_if.as_json();
    }
    format!("{told:#}\n")
}
