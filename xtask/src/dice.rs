//! Numbers that follow from a seed, so that a run can be had again.

/// splitmix64.
pub struct Dice(u64);

impl Dice {
    pub fn of(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Another seed at each start.
    pub fn drawn() -> u64 {
        use std::collections::hash_map::RandomState;
        use std::hash::{BuildHasher, Hasher};
        RandomState::new().build_hasher().finish() >> 16
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Below `end`, the small ones far more often: one of the first tenth in every second draw.
    pub fn often_small(&mut self, end: u64) -> u64 {
        let even = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        (even.powi(3) * end as f64) as u64
    }
}
