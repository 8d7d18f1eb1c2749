//! How long an answer is waited for: always the same, or drawn for each request.

use std::time::Duration;

use crate::limits::DELAY_MAX;

/// In milliseconds, fractions too.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Delay {
    #[default]
    None,
    Fixed(f64),
    Uniform(f64, f64),
    /// Exponential, of this mean: what waits of independent causes look like.
    Exponential(f64),
    /// This share of the requests waits so long, the others not at all.
    Pause(f64, f64),
}

impl Delay {
    pub(crate) fn parse(text: &str) -> Option<Delay> {
        let numbers: Option<Vec<f64>> = text.split(':').skip(1).map(number).collect();
        let delay = match (text.split(':').next()?, numbers?.as_slice()) {
            ("uniform", &[from, to]) if from <= to => Delay::Uniform(from, to),
            ("exp", &[mean]) => Delay::Exponential(mean),
            ("pause", &[share, ms]) if share <= 1.0 => Delay::Pause(share, ms),
            (fixed, []) => match number(fixed)? {
                0.0 => Delay::None,
                ms => Delay::Fixed(ms),
            },
            _ => return None,
        };
        Some(delay)
    }

    pub(crate) fn draw(&self, dice: &mut fastrand::Rng) -> Duration {
        let ms = match *self {
            Delay::None => return Duration::ZERO,
            Delay::Fixed(ms) => ms,
            Delay::Uniform(from, to) => from + (to - from) * dice.f64(),
            Delay::Exponential(mean) => -mean * (1.0 - dice.f64()).ln(),
            Delay::Pause(share, ms) => f64::from(u8::from(dice.f64() < share)) * ms,
        };
        Duration::from_secs_f64(ms / 1_000.0).min(DELAY_MAX)
    }
}

fn number(text: &str) -> Option<f64> {
    let max = DELAY_MAX.as_secs_f64() * 1_000.0;
    text.parse().ok().filter(|&ms: &f64| (0.0..=max).contains(&ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, mean_ms: f64, deviation_ms: f64) {
        let delay = Delay::parse(text).unwrap_or_else(|| panic!("{text}"));
        let mut dice = fastrand::Rng::with_seed(1);
        let drawn: Vec<f64> = (0..100_000).map(|_| delay.draw(&mut dice).as_secs_f64() * 1_000.0).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let deviation = (drawn.iter().map(|ms| (ms - mean).powi(2)).sum::<f64>() / drawn.len() as f64).sqrt();
        assert!((mean - mean_ms).abs() <= mean_ms * 0.02, "{text}: mean {mean}");
        assert!((deviation - deviation_ms).abs() <= deviation_ms * 0.02 + 1e-9, "{text}: deviation {deviation}");
    }

    #[test]
    fn delays_have_the_mean_and_the_spread_of_their_kind() {
        check("0", 0.0, 0.0);
        check("25", 25.0, 0.0);
        check("0.5", 0.5, 0.0);
        check("uniform:1:10", 5.5, 9.0 / 12f64.sqrt());
        check("exp:5", 5.0, 5.0);
        check("pause:0.1:100", 10.0, 30.0);
    }

    #[test]
    fn what_is_no_delay_is_refused() {
        for text in ["", "x", "-1", "nan", "inf", "uniform", "uniform:5", "uniform:5:1", "exp:", "pause:2:1", "1:2"] {
            assert_eq!(Delay::parse(text), None, "{text}");
        }
    }
}
