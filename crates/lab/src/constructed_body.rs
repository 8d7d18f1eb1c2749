//! Bodies by construction: which bytes stand behind a path is a rule, so nobody has to store or to trust them.
//!
//! The fake origin sends them, and whoever reads them can tell each wrong byte and each that is at the wrong place.
//! Printable ASCII in lines of 64, so that a body can be looked at, and compresses as little as noise does.

/// Of one line, its line feed included.
const LINE_BYTES: u64 = 64;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Appends the bytes `from..to` of the body that belongs to `seed`.
pub fn append_constructed(out: &mut Vec<u8>, seed: u64, from: u64, to: u64) {
    let mut at = from;
    while at < to {
        let (line, column) = (at / LINE_BYTES, (at % LINE_BYTES) as usize);
        let whole = constructed_line(seed, line);
        let take = (LINE_BYTES as usize - column).min((to - at) as usize);
        out.extend_from_slice(&whole[column..column + take]);
        at += take as u64;
    }
}

/// The seed of a path: FNV-1a, which everybody can compute in three lines.
pub fn body_seed(path: &str) -> u64 {
    path.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

fn constructed_line(seed: u64, line: u64) -> [u8; LINE_BYTES as usize] {
    let mut dice = fastrand::Rng::with_seed(seed ^ line.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut text = [b'\n'; LINE_BYTES as usize];
    for letters in text[..LINE_BYTES as usize - 1].chunks_mut(10) {
        let mut bits = dice.u64(..);
        for letter in letters {
            *letter = LETTERS[(bits & 63) as usize];
            bits >>= 6;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_is_the_same_as_in_the_whole() {
        let part = |from, to| {
            let mut out = Vec::new();
            append_constructed(&mut out, body_seed("/a"), from, to);
            out
        };
        let whole = part(0, 1_000);
        for (from, to) in [(0, 0), (0, 1), (63, 65), (64, 128), (100, 999), (999, 1_000)] {
            assert_eq!(part(from, to), whole[from as usize..to as usize], "{from}..{to}");
        }
        assert!(whole.iter().all(|b| b.is_ascii_graphic() || *b == b'\n'));
        let mut other = Vec::new();
        append_constructed(&mut other, body_seed("/b"), 0, 1_000);
        assert_ne!(other, whole);
        assert_ne!(whole[..64], whole[64..128]);
    }
}
