//! Rendezvous hashing: everybody draws for a key, and the highest draw has it. Who leaves takes only what it had along, which goes to
//! all others alike; weights stretch the draws, so that each has its share.
//!
//! What is drawn is the same in every process, or what one stored would not be found again by the next.

use siphasher::sip::SipHasher13;

/// What stands for a text in the draws.
pub(crate) fn seed(text: &[u8]) -> u64 {
    SipHasher13::new().hash(text)
}

/// What one who weighs so much draws for a key; `of` is of both.
pub(crate) fn draw(weight: u32, of: u64) -> f64 {
    let unit = ((of >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    f64::from(weight) / -unit.ln()
}

/// To whom of these a key belongs, each of whom is told with its seed and its weight.
pub(crate) fn highest_draw<T>(key: u64, among: impl Iterator<Item = (T, u64, u32)>) -> Option<T> {
    let drawn = among.map(|(who, seed, weight)| (draw(weight, mix(key ^ seed)), who));
    drawn.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, who)| who)
}

/// A number from another, of which each bit depends on all of its (the finaliser of splitmix64).
#[inline]
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
