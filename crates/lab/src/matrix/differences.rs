//! Who is better than the reference, by how much, and whether that is more than the same server twice differs by.
//!
//! Ratios are taken within a block, where both had the same luck, and resampled by blocks.

use crate::limits::INTERVAL_VALUES_MIN;
use crate::matrix::cell_figures::{Judged, may_compare, value};
use crate::matrix::statistics::{distance_from_one, estimate};
use crate::results::{Cell, Difference, Estimate, Metric, Noise, RowKind, Verdict};

/// A cell with what it is judged by.
pub(crate) type Party<'a> = (&'a Cell, Judged<'a>);

/// What two copies of one server differ by, where both have the metric.
pub(crate) fn noise(metric: Metric, one: &Party<'_>, again: &Party<'_>, seed: u64) -> Option<Noise> {
    let (ratio, count) = ratio(metric, again.0, one.0, one.1.row.kind, seed)?;
    if count < INTERVAL_VALUES_MIN {
        return None;
    }
    let gap = distance_from_one(ratio.low).max(distance_from_one(ratio.high));
    Some(Noise { row: one.0.row.clone(), metric, ratio, gap })
}

pub(crate) fn difference(
    metric: Metric,
    party: &Party<'_>,
    reference: &Party<'_>,
    noise: Option<&Noise>,
    seed: u64,
) -> Option<Difference> {
    let (ratio, count) = ratio(metric, party.0, reference.0, party.1.row.kind, seed)?;
    let may = may_compare(metric, party.0, &party.1) && may_compare(metric, reference.0, &reference.1);
    let verdict = if may { verdict(metric, &ratio, noise.map(|noise| noise.gap), count) } else { Verdict::NotRanked };
    let (row, server, against) = (party.0.row.clone(), party.0.server.clone(), reference.0.server.clone());
    Some(Difference { row, metric, server, against, ratio, verdict })
}

/// With the number of blocks in which both have the metric: a percentile needs more samples than some blocks hold.
fn ratio(metric: Metric, over: &Cell, under: &Cell, kind: RowKind, seed: u64) -> Option<(Estimate, usize)> {
    let in_block = |cell: &Cell, block: usize| {
        let block = cell.blocks.iter().find(|other| other.block == block)?;
        value(metric, kind, block).filter(|value| *value > 0.0)
    };
    let ratios: Vec<f64> = over
        .blocks
        .iter()
        .filter_map(|block| {
            let (over, under) = (in_block(over, block.block)?, in_block(under, block.block)?);
            Some(over / under)
        })
        .collect();
    estimate(&ratios, seed).map(|ratio| (ratio, ratios.len()))
}

/// What a ratio says, over so many blocks and on a machine whose luck is so large: the one rule for servers of one run
/// and for one server in two runs. Without a second copy nobody knows what luck makes of equal servers.
pub(crate) fn verdict(metric: Metric, ratio: &Estimate, noise: Option<f64>, blocks: usize) -> Verdict {
    let excludes_one = ratio.low > 1.0 || ratio.high < 1.0;
    let is_beyond = noise.is_some_and(|noise| distance_from_one(ratio.median) > noise);
    if blocks < INTERVAL_VALUES_MIN || !excludes_one || !is_beyond {
        return Verdict::NoDifferenceShown;
    }
    if metric.is_better(ratio.median) { Verdict::Better } else { Verdict::Worse }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::cell_figures::{cell, tests::row};
    use crate::matrix::saved_run::SavedCell;
    use crate::matrix::server_profile::Role;
    use crate::results::{Block, RowUsed, ServerCost};

    fn check(costs: &[f64], again: &[f64], other: &[f64], expect: Verdict) {
        let row = row();
        let judged = || Judged { row: &row, role: Role::Cache, hot: true, seed: 1 };
        let made = |name: &str, costs: &[f64]| {
            let block = |(block, &cpu_seconds): (usize, &f64)| {
                let server = ServerCost { cpu_seconds, ..ServerCost::default() };
                Block { block, good: 100, elapsed_seconds: 1.0, server, ..Block::default() }
            };
            let blocks = costs.iter().enumerate().map(block).collect();
            cell(name, &judged(), &SavedCell { blocks, ..SavedCell::default() })
        };
        let (one, twin, other) = (made("a", costs), made("a-again", again), made("b", other));
        let metric = Metric::ServerMicrosPerAnswer;
        let noise = noise(metric, &(&one, judged()), &(&twin, judged()), 1);
        let found = difference(metric, &(&other, judged()), &(&one, judged()), noise.as_ref(), 1).unwrap();
        assert_eq!(found.verdict, expect, "{found:?} {noise:?}");
    }

    #[test]
    fn only_what_is_beyond_the_noise_is_a_difference() {
        let base = [1.0, 1.1, 0.9, 1.0, 1.05];
        let near = [1.02, 1.08, 0.92, 1.01, 1.04];
        let scaled = |by: f64| base.map(|cost| cost * by);
        check(&base, &near, &scaled(0.8), Verdict::Better);
        check(&base, &near, &scaled(1.25), Verdict::Worse);
        check(&base, &near, &near, Verdict::NoDifferenceShown);
        // Its interval excludes 1, but the second copy is further away than that.
        check(&base, &scaled(1.3), &scaled(1.2), Verdict::NoDifferenceShown);
        // Two blocks show nothing.
        check(&base[..2], &near[..2], &scaled(0.5)[..2], Verdict::NoDifferenceShown);
    }

    /// Where most slices are too short for a percentile, one that is not says nothing.
    #[test]
    fn one_ratio_is_no_difference() {
        let row = RowUsed { rate_per_second: Some(100.0), ..row() };
        let judged = || Judged { row: &row, role: Role::Cache, hot: true, seed: 1 };
        let made = |name: &str, p99_micros| {
            let block = |block| {
                let p99_micros = (block == 0).then_some(p99_micros);
                Block { block, good: 100, elapsed_seconds: 1.0, p99_micros, ..Block::default() }
            };
            cell(name, &judged(), &SavedCell { blocks: (0..5).map(block).collect(), ..SavedCell::default() })
        };
        let (one, twin, other) = (made("a", 100), made("a-again", 100), made("b", 900));
        assert_eq!(noise(Metric::P99, &(&one, judged()), &(&twin, judged()), 1), None);
        let quiet = Noise { row: "r".to_owned(), metric: Metric::P99, ratio: Estimate::default(), gap: 0.0 };
        let found = difference(Metric::P99, &(&other, judged()), &(&one, judged()), Some(&quiet), 1).unwrap();
        assert_eq!(found.verdict, Verdict::NoDifferenceShown, "{found:?}");
    }
}
