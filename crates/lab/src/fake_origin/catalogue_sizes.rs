//! How long the pages of a catalogue are: a rule from a page's number to its size, so that nobody stores a list.
//!
//! Log-normal, as the bodies of web files are (Barford and Crovella 1998, SIGMETRICS, found σ = 1.318 for all but the
//! tail), cut at a hundred times the mean. The quantiles are walked through by multiples of the golden ratio and not
//! drawn: then the mean of the first thousand pages is already the mean asked for, which with a tail as heavy as this
//! one a thousand draws would miss by a tenth.

/// Of the logarithms.
const SIGMA: f64 = 1.318;
/// A size is at most so many times the mean.
pub(crate) const SIZE_PER_MEAN_MAX: f64 = 100.0;
/// The logarithm of median over mean, for which the mean of what was cut is the mean asked for.
const MEDIAN_PER_MEAN_LOG: f64 = -0.867_910_2;
const SIZE_BYTES_MIN: u64 = 64;

/// The size in bytes of the `n`-th page of a catalogue whose pages have this size on average.
pub fn catalogue_size(n: u64, mean_bytes: u64) -> u64 {
    let walked = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // In the middle of its step, so that it is neither 0 nor 1.
    let quantile = ((walked >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
    let per_mean = (MEDIAN_PER_MEAN_LOG + SIGMA * normal_quantile(quantile)).exp();
    ((mean_bytes as f64 * per_mean.min(SIZE_PER_MEAN_MAX)) as u64).max(SIZE_BYTES_MIN)
}

/// The inverse of the standard normal distribution function: Wichura 1988, Applied Statistics 37, algorithm AS 241,
/// its seven-digit form.
fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(r, [3.387_132_7, 50.434_271_9, 159.291_13, 59.109_374_7])
            / polynomial(r, [1.0, 17.895_169_5, 78.757_757_3, 67.187_563_6]);
    }
    let r = (-p.min(1.0 - p).ln()).sqrt();
    let far = match r {
        r if r <= 5.0 => {
            polynomial(r - 1.6, [1.423_437_3, 2.756_815_4, 1.306_728_4, 0.170_238_21])
                / polynomial(r - 1.6, [1.0, 0.737_001_64, 0.120_211_32, 0.0])
        }
        r => {
            polynomial(r - 5.0, [6.657_905_1, 3.081_226_4, 0.428_682_94, 0.017_337_203])
                / polynomial(r - 5.0, [1.0, 0.241_978_94, 0.012_258_202, 0.0])
        }
    };
    if q < 0.0 { -far } else { far }
}

fn polynomial(x: f64, terms: [f64; 4]) -> f64 {
    terms.iter().rev().fold(0.0, |sum, term| sum * x + term)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_of_the_normal_distribution_is_that_of_the_tables() {
        for (p, z) in [(0.5, 0.0), (0.841_344_7, 1.0), (0.975, 1.959_964), (0.999, 3.090_232), (1e-12, -7.034_484)] {
            assert!((normal_quantile(p) - z).abs() < 2e-5, "{p}: {}", normal_quantile(p));
        }
    }

    #[test]
    fn the_mean_is_the_one_asked_for_and_the_tail_is_heavy() {
        for pages in [1_000, 10_000, 150_000] {
            for mean in [6_221, 11_000, 1 << 20] {
                let sizes: Vec<u64> = (0..pages).map(|n| catalogue_size(n, mean)).collect();
                let off = sizes.iter().sum::<u64>() as f64 / (pages * mean) as f64;
                assert!((0.98..1.02).contains(&off), "{pages} pages of {mean}: {off}");
                let below = sizes.iter().filter(|&&size| size < mean * 42 / 100).count() as f64 / pages as f64;
                assert!((0.48..0.52).contains(&below), "{below} lie below the median");
                let beyond = sizes.iter().filter(|&&size| size > mean * 8).count() as f64 / pages as f64;
                assert!((0.005..0.03).contains(&beyond), "{beyond} are eight times the mean");
                assert!(sizes.iter().all(|&size| (64..=mean * 100).contains(&size)));
            }
        }
    }

    #[test]
    fn the_rule_stays_as_it_is() {
        // Files were written by it, which other servers are compared with.
        let sizes: Vec<u64> = (0..5).map(|n| catalogue_size(n, 11_000)).collect();
        assert_eq!(sizes, [6_860, 1_790, 18_530, 4_211, 789]);
    }
}
