//! Popularity as the web has it: the k-th request of a catalogue is asked for in proportion to k to the power of -alpha.
//!
//! Rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
//! distributions", ACM TOMACS 6(3), 1996, pages 169–184): no table, a constant time whatever the size of the catalogue,
//! and exact, while the usual shortcut of inverting the continuous law gives the first ranks a wrong share.

/// Ranks from 0, the most popular one.
#[derive(Clone, Debug)]
pub struct ZipfPick {
    dice: fastrand::Rng,
    law: Law,
    count: f64,
    /// Between these the integral is inverted.
    from: f64,
    to: f64,
    /// So far below its rank a point is accepted without a look at the law.
    safe: f64,
}

/// `x` to the power of -alpha, its integral and the inverse of that.
#[derive(Clone, Copy, Debug)]
struct Law {
    alpha: f64,
}

impl Law {
    fn at(self, x: f64) -> f64 {
        x.powf(-self.alpha)
    }

    fn integral(self, x: f64) -> f64 {
        match 1.0 - self.alpha {
            power if power.abs() < HARMONIC => x.ln(),
            power => (x.powf(power) - 1.0) / power,
        }
    }

    fn inverse(self, area: f64) -> f64 {
        match 1.0 - self.alpha {
            power if power.abs() < HARMONIC => area.exp(),
            power => (1.0 + area * power).max(0.0).powf(1.0 / power),
        }
    }
}

/// So near to 1 alpha is taken for 1, where the power's integral is a logarithm.
const HARMONIC: f64 = 1e-6;

impl ZipfPick {
    /// `count` is at least 1, `alpha` not negative.
    pub fn new(count: usize, alpha: f64, dice: fastrand::Rng) -> ZipfPick {
        let law = Law { alpha };
        let count = count as f64;
        ZipfPick {
            dice,
            law,
            count,
            from: law.integral(1.5) - 1.0,
            to: law.integral(count + 0.5),
            safe: 2.0 - law.inverse(law.integral(2.5) - law.at(2.0)),
        }
    }

    /// The next request's rank.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it never ends, and is called by name in the loop of a load")]
    pub fn next(&mut self) -> usize {
        loop {
            let area = self.to + self.dice.f64() * (self.from - self.to);
            let x = self.law.inverse(area);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.safe || area >= self.law.integral(rank + 0.5) - self.law.at(rank) {
                return rank as usize - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of the first ranks, and blocks of the rest, must come as often as the law says.
    fn check(count: usize, alpha: f64) {
        const DRAWS: usize = 400_000;
        let mut pick = ZipfPick::new(count, alpha, fastrand::Rng::with_seed(7));
        let mut came = vec![0u32; count];
        (0..DRAWS).for_each(|_| came[pick.next()] += 1);
        let weights: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-alpha)).collect();
        let all: f64 = weights.iter().sum();
        let (mut from, mut width) = (0, 1);
        while from < count {
            let to = (from + width).min(count);
            let share = weights[from..to].iter().sum::<f64>() / all;
            let (expect, got) = (share * DRAWS as f64, f64::from(came[from..to].iter().sum::<u32>()));
            let deviation = (expect * (1.0 - share)).sqrt();
            assert!((got - expect).abs() <= 4.5 * deviation + 1e-6, "{alpha}: ranks {from}..{to}: {got} of {expect}");
            from = to;
            width = if from < 8 { 1 } else { from };
        }
    }

    #[test]
    fn every_rank_has_its_share() {
        for alpha in [0.0, 0.5, 0.75, 0.99, 1.0, 1.000_000_1, 1.2, 2.5] {
            for count in [1, 2, 10, 1_000, 150_000] {
                check(count, alpha);
            }
        }
    }
}
