//! Two runs held against each other, cell by cell: what became better, what worse, and what cannot be said.
//!
//! Two runs are not interleaved, so no ratio within a block exists: medians are compared, and blocks of both are drawn
//! anew for the interval. Whatever is within the noise of either run is no change. That a server answers wrongly now,
//! or died, is worse whatever the numbers say. It prints nothing: `comparison_words` does.

use serde::Serialize;

use super::ranking::estimate;
use crate::limits::{BOOTSTRAP_ROUNDS, INTERVAL_VALUES_MIN};
use crate::matrix::cell_figures::value;
use crate::matrix::differences::verdict;
use crate::matrix::statistics::{distance_from_one, median};
use crate::results::{Cell, Colour, Estimate, LabResults, Metric, RowUsed, ServerUsed, Verdict};

/// Of the JSON; the number grows when a reader would have to change.
pub const COMPARISON_FORMAT: &str = "larder-lab-comparison/1";

/// Below this nobody is told off, however quiet the machine was.
pub const THRESHOLD_DEFAULT: f64 = 0.05;

/// What two runs differ in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub format: &'static str,
    /// When the two were begun.
    pub before: String,
    pub after: String,
    /// A worsening larger than this, and than the noise, fails.
    pub threshold: f64,
    pub failed: bool,
    pub changes: Vec<CellChange>,
    pub broken: Vec<CellBroken>,
    /// Cells that stand in one of the two only, or could be compared in nothing.
    pub only_before: Vec<String>,
    pub only_after: Vec<String>,
    pub warnings: Vec<String>,
}

/// One metric of one server in one row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellChange {
    pub server: String,
    pub row: String,
    pub metric: Metric,
    pub before: f64,
    pub after: f64,
    /// After over before; least and most are those of the resampled ratios.
    pub ratio: Estimate,
    /// The larger of the two runs' noise; 0 when neither knows its own.
    pub noise: f64,
    /// Never [`Verdict::NotRanked`]: what may not be compared is not here.
    pub change: Verdict,
    /// Worse, and by more than the threshold.
    pub past_threshold: bool,
}

/// A cell that could be trusted before and cannot be any more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellBroken {
    pub server: String,
    pub row: String,
    pub before: Colour,
    pub after: Colour,
    pub why: Vec<String>,
}

/// What every sound cell may be compared in, whatever bounded it.
const COST: [Metric; 2] = [Metric::ServerMicrosPerAnswer, Metric::BytesPerConnection];

/// `after` against `before`.
pub fn compare(before: &LabResults, after: &LabResults, threshold: f64) -> Comparison {
    let mut changes = Vec::new();
    let mut broken = Vec::new();
    let mut warnings = warnings(before, after);
    for now in &after.cells {
        let Some(was) = same(&before.cells, now) else { continue };
        let trusted = |cell: &Cell| matches!(cell.colour, Colour::Clean | Colour::LightYellow);
        // A cell that is no longer all hits, or does not settle any more, keeps its colour and says nothing.
        let is_sound = |cell: &Cell| COST.iter().any(|metric| cell.comparable_in.contains(metric));
        let is_lost = is_sound(was) && !is_sound(now);
        if trusted(was) && (is_lost || matches!(now.colour, Colour::Orange | Colour::Red)) {
            let (server, row) = (now.server.clone(), now.row.clone());
            broken.push(CellBroken { server, row, before: was.colour, after: now.colour, why: now.why.clone() });
        }
        let (Some(row), Some(row_now)) = (row_of(before, &was.row), row_of(after, &now.row)) else { continue };
        if load(row) != load(row_now) {
            let sentence =
                format!("row '{}' is another load now: it was '{}', it is '{}'", row.name, row.load, row_now.load);
            if !warnings.contains(&sentence) {
                warnings.push(sentence);
            }
            continue;
        }
        let of_metric = |metric| change(before, after, (was, now), row, metric, threshold);
        changes.extend(Metric::ALL.into_iter().filter_map(of_metric));
    }
    let failed = !broken.is_empty() || changes.iter().any(|change| change.past_threshold);
    Comparison {
        format: COMPARISON_FORMAT,
        before: before.begun.clone(),
        after: after.begun.clone(),
        threshold,
        failed,
        changes,
        broken,
        only_before: only_in(before, after),
        only_after: only_in(after, before),
        warnings,
    }
}

fn same<'a>(cells: &'a [Cell], cell: &Cell) -> Option<&'a Cell> {
    let measured =
        |other: &&Cell| other.server == cell.server && other.row == cell.row && other.colour != Colour::White;
    cells.iter().filter(|_| cell.colour != Colour::White).find(measured)
}

fn row_of<'a>(results: &'a LabResults, name: &str) -> Option<&'a RowUsed> {
    results.rows.iter().find(|row| row.name == name)
}

/// What must be alike for two rows to be the same load: the words hold sizes, order, sessions and header fields too.
fn load(row: &RowUsed) -> impl PartialEq {
    (&row.load, row.size_bytes, row.connections, row.keep_alive, row.rate_per_second.map(f64::to_bits), row.kind)
}

fn change(
    before: &LabResults,
    after: &LabResults,
    (was, now): (&Cell, &Cell),
    row: &RowUsed,
    metric: Metric,
    threshold: f64,
) -> Option<CellChange> {
    let may = |cell: &Cell| cell.comparable_in.contains(&metric) && estimate(cell, metric).is_some();
    if !may(was) || !may(now) {
        return None;
    }
    let values = |cell: &Cell| -> Vec<f64> {
        cell.blocks.iter().filter_map(|block| value(metric, row.kind, block)).filter(|v| *v > 0.0).collect()
    };
    let (values_before, values_after) = (values(was), values(now));
    let ratio = ratio(&values_before, &values_after, before.method.seed ^ after.method.seed)?;
    let noise = noise(before, &row.name, metric).max(noise(after, &row.name, metric));
    let blocks = values_before.len().min(values_after.len());
    let change = verdict(metric, &ratio, Some(noise), blocks);
    Some(CellChange {
        server: now.server.clone(),
        row: row.name.clone(),
        metric,
        before: median(&values_before)?,
        after: median(&values_after)?,
        ratio,
        noise,
        change,
        past_threshold: change == Verdict::Worse && distance_from_one(ratio.median) > threshold,
    })
}

/// The ratio of the medians, and its 95 % interval from blocks of both runs drawn anew.
fn ratio(before: &[f64], after: &[f64], seed: u64) -> Option<Estimate> {
    let middle = median(after)? / median(before)?;
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut drawn = |values: &[f64]| {
        let again: Vec<f64> = values.iter().map(|_| values[dice.usize(..values.len())]).collect();
        median(&again).expect("there are values")
    };
    let mut ratios: Vec<f64> = (0..BOOTSTRAP_ROUNDS).map(|_| drawn(after) / drawn(before)).collect();
    ratios.sort_by(f64::total_cmp);
    let last = BOOTSTRAP_ROUNDS - 1;
    let beyond = BOOTSTRAP_ROUNDS / 40;
    Some(Estimate {
        median: middle,
        low: ratios[beyond],
        high: ratios[last - beyond],
        min: ratios[0],
        max: ratios[last],
    })
}

/// Of the row where it was measured there, of the worst row otherwise.
fn noise(results: &LabResults, row: &str, metric: Metric) -> f64 {
    let of_metric = || results.noise.iter().filter(|noise| noise.metric == metric);
    let own = of_metric().find(|noise| noise.row == row).map(|noise| noise.gap);
    own.unwrap_or_else(|| of_metric().map(|noise| noise.gap).fold(0.0, f64::max))
}

fn only_in(one: &LabResults, other: &LabResults) -> Vec<String> {
    let measured = one.cells.iter().filter(|cell| cell.colour != Colour::White);
    let alone = measured.filter(|cell| same(&other.cells, cell).is_none());
    alone
        .map(|cell| {
            let there = other.cells.iter().find(|there| there.server == cell.server && there.row == cell.row);
            let why = there.map_or_else(String::new, |there| format!(" ({})", there.why.join(" ")));
            format!("{}, {}{why}", cell.server, cell.row)
        })
        .collect()
}

/// What makes two runs hard to compare.
fn warnings(before: &LabResults, after: &LabResults) -> Vec<String> {
    let (mut out, was, now) = (Vec::new(), &before.machine, &after.machine);
    let mut differs = |what: &str, was: String, now: String| {
        if was != now {
            out.push(format!("{what} differs: '{was}' before, '{now}' after"));
        }
    };
    differs("the CPU", was.cpu_model.clone(), now.cpu_model.clone());
    differs("the number of CPUs", was.cpus.to_string(), now.cpus.to_string());
    differs("the kernel", was.kernel.clone(), now.kernel.clone());
    for (name, was) in &was.settings {
        differs(name, was.clone(), now.settings.get(name).cloned().unwrap_or_default());
    }
    let (was, now) = (&before.method, &after.method);
    differs("the CPUs of the client", format!("{:?}", was.client_cpus), format!("{:?}", now.client_cpus));
    differs("the CPUs of the servers", format!("{:?}", was.server_cpus), format!("{:?}", now.server_cpus));
    differs("the client's threads", was.client_threads.to_string(), now.client_threads.to_string());
    differs("the slice", format!("{} s", was.slice_seconds), format!("{} s", now.slice_seconds));
    differs("how often servers are started anew", was.restart_every.to_string(), now.restart_every.to_string());
    for server in with_those_behind(after) {
        let Some(was) = with_those_behind(before).find(|was| was.name == server.name) else { continue };
        differs(&format!("the version of {}", server.name), was.version.clone(), server.version.clone());
        differs(&format!("the binary of {}", server.name), was.binary_sha256.clone(), server.binary_sha256.clone());
    }
    out.extend(other_configs(before, after));
    out.extend(unfit(before, "before").into_iter().chain(unfit(after, "after")));
    out
}

/// Only that they differ: what in them is in both results, for those who want it.
fn other_configs(before: &LabResults, after: &LabResults) -> impl Iterator<Item = String> {
    with_those_behind(after).filter_map(|server| {
        let was = with_those_behind(before).find(|was| was.name == server.name)?;
        (was.configs != server.configs).then(|| format!("the configuration of {} differs", server.name))
    })
}

/// The servers that were measured, and those that are a part of one.
fn with_those_behind(results: &LabResults) -> impl Iterator<Item = &ServerUsed> {
    results.servers.iter().flat_map(|server| std::iter::once(server).chain(server.behind.as_deref()))
}

fn unfit(results: &LabResults, name: &str) -> Vec<String> {
    let blocks = results.method.blocks;
    let found = [
        (results.smoke, "was a smoke run".to_owned()),
        (results.interrupted, "was interrupted".to_owned()),
        (
            results.noise.is_empty(),
            "did not measure its noise: an interval that excludes 1 may still be luck".to_owned(),
        ),
        (blocks < INTERVAL_VALUES_MIN, format!("has {blocks} blocks: nothing of it shows a difference")),
    ];
    found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| format!("the run {name} {what}")).collect()
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;
