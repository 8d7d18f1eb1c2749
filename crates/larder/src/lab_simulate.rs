//! `larder lab simulate`: how much memory do I need? A trace through larder's own eviction at several sizes.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use store::EvictionKind;

use crate::quantities::{parse_duration, parse_size, show_size};
use crate::say::say;
use crate::simulation::curve_plot::svg;
use crate::simulation::miss_curves::{Curve, Grid, curves, enough, usual_sizes, whole_bytes};
use crate::simulation::trace_file::{Trace, TraceFormat, read};

/// What an object takes beside its body with a head of 300 bytes, its places in the index and in the eviction counted.
const OBJECT_BYTES_DEFAULT: u64 = 1_480;

#[derive(Clone, Debug, Args)]
pub struct SimulateFlags {
    /// An access log, a CSV file of seconds, key and bytes, or a trace in libCacheSim's oracleGeneral; - reads standard input
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,

    /// The trace's format, if it is not to be told by its beginning
    #[arg(long, value_enum)]
    pub format: Option<TraceFormat>,

    /// A size of memory to try, several by commas; else ten, from what holds everything down by halves
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size)]
    pub memory: Vec<u64>,

    /// An order of eviction to try, several by commas: s3-fifo, sieve, lru; else all of them
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = parse_kind)]
    pub policy: Vec<EvictionKind>,

    /// What an object takes beside its body
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value_t = OBJECT_BYTES_DEFAULT)]
    pub object_bytes: u64,

    /// How long an object is fresh; else for ever
    #[arg(long, value_name = "DURATION", value_parser = parse_seconds)]
    pub ttl: Option<u32>,

    /// Only so many requests, from the start
    #[arg(long, value_name = "N")]
    pub first: Option<u64>,

    /// Write the curves here as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,
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
    let name = flags.trace.display();
    let trace = open(&flags.trace)
        .and_then(|from| read(from, flags.format, flags.first))
        .map_err(|what| format!("{name}: {what}"))?;
    let grid = grid(flags, &trace);
    let pairs_count = grid.kinds.len() * grid.sizes_bytes.len();
    let shows_progress = std::io::stderr().is_terminal();
    let made = curves(&trace, &grid, |done| {
        if shows_progress {
            let _ = write!(std::io::stderr(), "\r{done} of {pairs_count} replays\x1b[K");
        }
    });
    if shows_progress {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
    if let Some(path) = &flags.plot {
        let title = format!("Miss ratio of {name}, {} requests", trace.asks.len());
        std::fs::write(path, svg(&grid.sizes_bytes, &made, &title))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let told = if flags.json { as_json(&trace, &grid, &made) } else { as_text(&trace, &grid, &made) };
    let _ = std::io::stdout().write_all(told.as_bytes());
    Ok(())
}

fn open(path: &Path) -> Result<Box<dyn Read>, String> {
    match path == Path::new("-") {
        true => Ok(Box::new(std::io::stdin().lock())),
        false => File::open(path).map(|file| Box::new(file) as Box<dyn Read>).map_err(|error| error.to_string()),
    }
}

fn grid(flags: &SimulateFlags, trace: &Trace) -> Grid {
    let mut sizes_bytes = flags.memory.clone();
    sizes_bytes.sort_unstable();
    sizes_bytes.dedup();
    if sizes_bytes.is_empty() {
        sizes_bytes = usual_sizes(whole_bytes(trace, flags.object_bytes));
    }
    let kinds = if flags.policy.is_empty() { EvictionKind::ALL.to_vec() } else { flags.policy.clone() };
    Grid { kinds, sizes_bytes, object_bytes: flags.object_bytes, ttl_s: flags.ttl }
}

fn as_text(trace: &Trace, grid: &Grid, curves: &[Curve]) -> String {
    let requests = trace.asks.len();
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
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
    out += &format!("at least {} are misses: first requests\n\n", percent(f64::from(trace.objects) / requests as f64));
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

fn as_json(trace: &Trace, grid: &Grid, curves: &[Curve]) -> String {
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
    let told = json!({
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
    format!("{told:#}\n")
}
