//! The statistics of a matrix: medians, their bootstrap intervals over blocks, and whether a series has a slope.
//!
//! What is resampled are blocks, never requests: those of one block have its luck in common.

use crate::limits::{BOOTSTRAP_ROUNDS, INTERVAL_VALUES_MIN};
use crate::results::Estimate;

/// Of values in any order; none of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The median with its 95 % bootstrap interval; with too few values for one, their whole span stands for it.
pub(crate) fn estimate(values: &[f64], seed: u64) -> Option<Estimate> {
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let middle = median(&values)?;
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = if values.len() < INTERVAL_VALUES_MIN { (min, max) } else { bootstrap(&values, seed) };
    Some(Estimate { median: middle, low, high, min, max })
}

fn bootstrap(values: &[f64], seed: u64) -> (f64, f64) {
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut drawn = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..BOOTSTRAP_ROUNDS)
        .map(|_| {
            drawn.iter_mut().for_each(|value| *value = values[dice.usize(..values.len())]);
            median(&drawn).expect("there are values")
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let beyond = BOOTSTRAP_ROUNDS / 40;
    (medians[beyond], medians[BOOTSTRAP_ROUNDS - 1 - beyond])
}

/// How far a ratio is from 1, the same for a half and for a double.
pub(crate) fn distance_from_one(ratio: f64) -> f64 {
    if ratio > 0.0 { ratio.max(1.0 / ratio) - 1.0 } else { f64::INFINITY }
}

/// Has the series settled? It has when the 95 % interval of its slope holds 0, or when all of the slope together is
/// too little to matter (`share_max` of the mean).
pub(crate) fn is_steady(values: &[f64], share_max: f64) -> bool {
    let count = values.len();
    if count < 3 {
        return false;
    }
    let (n, mean) = (count as f64, values.iter().sum::<f64>() / count as f64);
    let middle = (n - 1.0) / 2.0;
    let spread: f64 = (0..count).map(|x| (x as f64 - middle).powi(2)).sum();
    let slope = values.iter().enumerate().map(|(x, y)| (x as f64 - middle) * (y - mean)).sum::<f64>() / spread;
    let left: f64 =
        values.iter().enumerate().map(|(x, y)| (y - mean - slope * (x as f64 - middle)).powi(2)).sum::<f64>();
    let error = (left / (n - 2.0) / spread).sqrt();
    slope.abs() <= student_95(count - 2) * error || (slope * (n - 1.0)).abs() <= share_max * mean.abs()
}

/// The two-sided 95 % quantile of Student's distribution.
fn student_95(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
    TABLE.get(freedom.max(1) - 1).copied().unwrap_or(2.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_intervals() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[f64::NAN, 1.0]), Some(1.0));
        let few = estimate(&[1.0, 3.0], 1).unwrap();
        assert_eq!((few.low, few.median, few.high), (1.0, 2.0, 3.0));
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut dice = fastrand::Rng::with_seed(5);
        // Twelve values of a bell with its middle at 10, many times over.
        let rounds = 300;
        let held = (0..rounds).filter(|&round| {
            let values: Vec<f64> = (0..12).map(|_| 4.0 + (0..12).map(|_| dice.f64()).sum::<f64>()).collect();
            let interval = estimate(&values, round).unwrap();
            interval.low <= 10.0 && 10.0 <= interval.high
        });
        let share = held.count() as f64 / rounds as f64;
        assert!((0.88..=0.99).contains(&share), "{share}");
    }

    #[test]
    fn a_ratio_is_as_far_from_one_either_way() {
        assert_eq!(distance_from_one(1.0), 0.0);
        assert!((distance_from_one(0.5) - 1.0).abs() < 1e-12 && (distance_from_one(2.0) - 1.0).abs() < 1e-12);
        assert_eq!(distance_from_one(0.0), f64::INFINITY);
    }

    #[test]
    fn a_slope_is_told_from_noise() {
        let check = |values: &[f64], expect| assert_eq!(is_steady(values, 0.02), expect, "{values:?}");
        check(&[100.0, 101.0], false);
        check(&[100.0, 103.0, 98.0, 101.0, 99.0], true);
        check(&[50.0, 60.0, 70.0, 80.0, 90.0], false);
        check(&[100.0, 100.2, 100.4, 100.6, 100.8], true);
        check(&[10.0, 60.0, 80.0, 90.0, 95.0], false);
    }
}
