//! Chance, for directors and `std.random`: good enough to spread load, not to keep secrets.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    // A new `RandomState` is the one source of chance that the standard library has.
    static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0));
}

/// Any number. The generator is splitmix64.
pub fn draw() -> u64 {
    STATE.set(STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
    let mut z = STATE.get();
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// From zero up to, but not, one.
pub fn unit(drawn: u64) -> f64 {
    (drawn >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_spread() {
        let mean = (0..1000).map(|_| unit(draw())).sum::<f64>() / 1000.0;
        assert!((0.4..0.6).contains(&mean), "{mean}");
    }
}
