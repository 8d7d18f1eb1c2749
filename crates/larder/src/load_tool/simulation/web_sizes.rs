//! How long objects of the web are: a lognormal body and a heavy tail, as P. Barford and M. Crovella found them for the
//! generator SURGE ("Generating representative web workloads for network and server performance evaluation", SIGMETRICS
//! 1998). Their median of 11.6 KB is still that of a site of pages, icons, scripts and pictures in thumbnail.

use std::f64::consts::TAU;

use fastrand::Rng;

/// The logarithm of the body's lengths, and how it spreads.
const BODY_MEAN: f64 = 9.357;
const BODY_DEVIATION: f64 = 1.318;

/// So many lie in the tail, which begins here and falls by this power (Pareto).
const TAIL_SHARE: f64 = 0.07;
const TAIL_BYTES_MIN: f64 = 133_000.0;
const TAIL_POWER: f64 = 1.1;

/// The tail's mean would depend on its single longest object otherwise: 16 MiB.
const BYTES_MAX: f64 = 16_777_216.0;
const BYTES_MIN: f64 = 1.0;

pub fn web_bytes(dice: &mut Rng) -> u32 {
    let bytes = match dice.f64() < TAIL_SHARE {
        true => TAIL_BYTES_MIN * (1.0 - dice.f64()).powf(-1.0 / TAIL_POWER),
        // Box and Muller's way to a normal number.
        false => {
            let normal = (-2.0 * (1.0 - dice.f64()).ln()).sqrt() * (TAU * dice.f64()).cos();
            (BODY_MEAN + BODY_DEVIATION * normal).exp()
        }
    };
    bytes.clamp(BYTES_MIN, BYTES_MAX) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_are_shorter_than_13_kb_and_one_in_a_thousand_is_longer_than_5_mb() {
        const DRAWS: usize = 100_000;
        let mut dice = Rng::with_seed(1);
        let mut lengths: Vec<u32> = (0..DRAWS).map(|_| web_bytes(&mut dice)).collect();
        lengths.sort_unstable();
        let at = |share: f64| lengths[(DRAWS as f64 * share) as usize];
        assert!((12_000..14_500).contains(&at(0.5)), "{}", at(0.5));
        assert!((150_000..200_000).contains(&at(0.93)), "{}", at(0.93));
        assert!((4_500_000..8_500_000).contains(&at(0.999)), "{}", at(0.999));
        assert!(lengths[DRAWS - 1] <= BYTES_MAX as u32);
    }
}
