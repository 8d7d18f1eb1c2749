//! What a gzip says at its end of the text within it (RFC 1952 §2.3.1), of texts that are joined: each is summed once, and never again.

/// The polynomial of CRC-32, its bits reversed.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// What stands for 1 among the polynomials below.
const ONE: u32 = 1 << 31;

/// The checksum and the length of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextSum {
    /// CRC-32.
    pub crc: u32,
    /// In bytes.
    pub length: u64,
    /// What the checksum of a text before this one is multiplied by when they are joined.
    shift: u32,
}

impl Default for TextSum {
    /// Of an empty text.
    fn default() -> TextSum {
        TextSum { crc: 0, length: 0, shift: ONE }
    }
}

impl TextSum {
    /// As a gzip says it: the length may be said modulo 2³².
    pub fn new(crc: u32, length: u64) -> TextSum {
        TextSum { crc, length, shift: shift_by(length) }
    }

    pub fn of(text: &[u8]) -> TextSum {
        let mut crc = flate2::Crc::new();
        crc.update(text);
        TextSum::new(crc.sum(), text.len() as u64)
    }

    /// That of this text with another behind it.
    #[must_use]
    pub fn followed_by(self, next: TextSum) -> TextSum {
        TextSum {
            crc: product(next.shift, self.crc) ^ next.crc,
            length: self.length.wrapping_add(next.length),
            shift: product(self.shift, next.shift),
        }
    }

    /// The end of a gzip that has this text.
    pub fn end_of_gzip(self) -> [u8; 8] {
        let mut end = [0; 8];
        end[..4].copy_from_slice(&self.crc.to_le_bytes());
        end[4..].copy_from_slice(&(self.length as u32).to_le_bytes());
        end
    }
}

/// The product of two polynomials over GF(2), modulo that of the checksum.
const fn product(a: u32, mut b: u32) -> u32 {
    let (mut bit, mut product) = (ONE, 0);
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = if b & 1 != 0 { (b >> 1) ^ POLYNOMIAL } else { b >> 1 };
        bit >>= 1;
    }
    product
}

/// x to the power of eight times this: what so many bytes behind a text do to its checksum.
fn shift_by(bytes: u64) -> u32 {
    // x⁸, x¹⁶, x³² …: its squares.
    let (mut power, mut shift, mut left) = (1 << 23, ONE, bytes);
    while left != 0 {
        if left & 1 != 0 {
            shift = product(power, shift);
        }
        power = product(power, power);
        left >>= 1;
    }
    shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_joined_have_the_sum_of_the_whole() {
        let text: Vec<u8> = (0..70_000_u64).map(|n| (n * n % 251) as u8).collect();
        let whole = TextSum::of(&text);
        for cut in [0, 1, 2, 7, 255, 256, 65_535, 65_536, text.len() - 1, text.len()] {
            let joined = TextSum::of(&text[..cut]).followed_by(TextSum::of(&text[cut..]));
            assert_eq!(joined, whole, "{cut}");
        }
        let pieces = text.chunks(997).map(TextSum::of);
        assert_eq!(pieces.fold(TextSum::default(), TextSum::followed_by), whole);
        // In whichever order they are joined to one another.
        let (a, b, c) = (TextSum::of(b"a"), TextSum::of(b"bcd"), TextSum::of(b"ef"));
        assert_eq!(a.followed_by(b).followed_by(c), a.followed_by(b.followed_by(c)));
    }

    #[test]
    fn a_sum_is_that_of_the_standard() {
        assert_eq!(TextSum::of(b"123456789").crc, 0xcbf4_3926);
        assert_eq!(TextSum::of(b"123456789").end_of_gzip(), [0x26, 0x39, 0xf4, 0xcb, 9, 0, 0, 0]);
        assert_eq!(TextSum::of(b""), TextSum::default());
        assert_eq!(TextSum::new(0xcbf4_3926, 9), TextSum::of(b"123456789"));
    }
}
