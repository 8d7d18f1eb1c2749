//! The prefix codes of deflate (RFC 1951 §3.2.2): which symbol some bits begin with, and how many of them it takes.

use crate::flaw::Flaw;

/// The longest code.
const BITS_MAX: usize = 15;
/// Codes up to this length are looked up at once.
const FAST_BITS: usize = 9;
/// Symbols of the largest code: literals, lengths and the end.
pub(crate) const SYMBOLS_MAX: usize = 288;

/// One code.
pub(crate) struct PrefixCode {
    /// By the next bits: the symbol, and in its low four bits the length of its code; 0 for a longer code.
    fast: [u16; 1 << FAST_BITS],
    /// How many codes there are of each length …
    counts: [u16; BITS_MAX + 1],
    /// … and the symbols, in the order of their codes.
    symbols: [u16; SYMBOLS_MAX],
}

impl PrefixCode {
    /// `lengths`: of the code of each symbol; 0 for one that does not occur. `may_lack`: the code of a single symbol, or of none, is not
    /// complete, and may be so.
    pub(crate) fn new(lengths: &[u8], may_lack: bool) -> Result<PrefixCode, Flaw> {
        let mut code = PrefixCode { fast: [0; 1 << FAST_BITS], counts: [0; BITS_MAX + 1], symbols: [0; SYMBOLS_MAX] };
        for &length in lengths {
            code.counts[usize::from(length)] += 1;
        }
        let used = lengths.len() as u16 - code.counts[0];
        code.counts[0] = 0;
        let mut left = 1_i32;
        for count in &code.counts[1..] {
            left = (left << 1) - i32::from(*count);
            if left < 0 {
                return Err(Flaw::Corrupt);
            }
        }
        let is_single = used == code.counts[1] && used <= 1;
        if left > 0 && !(may_lack && is_single) {
            return Err(Flaw::Corrupt);
        }
        code.fill(lengths);
        Ok(code)
    }

    fn fill(&mut self, lengths: &[u8]) {
        let (mut offsets, mut next) = ([0_usize; BITS_MAX + 2], [0_u16; BITS_MAX + 2]);
        for length in 1..=BITS_MAX {
            offsets[length + 1] = offsets[length] + usize::from(self.counts[length]);
            next[length + 1] = (next[length] + self.counts[length]) << 1;
        }
        for (symbol, &length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let length = usize::from(length);
            self.symbols[offsets[length]] = symbol as u16;
            offsets[length] += 1;
            let bits = next[length];
            next[length] += 1;
            if length <= FAST_BITS {
                // The first bit that comes is the highest of the code.
                let first = usize::from(bits.reverse_bits() >> (16 - length));
                for at in (first..1 << FAST_BITS).step_by(1 << length) {
                    self.fast[at] = ((symbol as u16) << 4) | length as u16;
                }
            }
        }
    }

    /// The symbol that these bits begin with, the lowest first, and how many it takes. `None`: none does, of so many bits.
    pub(crate) fn symbol(&self, bits: u64) -> Option<(u16, u32)> {
        let fast = self.fast[bits as usize & ((1 << FAST_BITS) - 1)];
        if fast != 0 {
            return Some((fast >> 4, u32::from(fast & 15)));
        }
        let (mut code, mut first, mut index) = (0_u32, 0_u32, 0_u32);
        for length in 1..=BITS_MAX {
            code |= (bits >> (length - 1)) as u32 & 1;
            let count = u32::from(self.counts[length]);
            if code < first + count {
                return Some((self.symbols[(index + code - first) as usize], length as u32));
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_read_off_their_codes() {
        // The example of RFC 1951 §3.2.2: ABCDEFGH with the lengths 3, 3, 3, 3, 3, 2, 4, 4.
        let code = PrefixCode::new(&[3, 3, 3, 3, 3, 2, 4, 4], false).unwrap();
        let check = |bits: &str, expect: (u16, u32)| {
            let read = bits.chars().rev().fold(0, |bits, bit| (bits << 1) | u64::from(bit == '1'));
            assert_eq!(code.symbol(read), Some(expect), "{bits}");
        };
        check("010", (0, 3));
        check("110", (4, 3));
        check("00", (5, 2));
        check("1110", (6, 4));
        check("1111", (7, 4));
    }

    #[test]
    fn codes_that_are_longer_than_the_table_are_found_too() {
        // 1 to 14 and two of 15: a complete code.
        let lengths: Vec<u8> = (1..=15).chain([15]).collect();
        let code = PrefixCode::new(&lengths, false).unwrap();
        for (symbol, length) in lengths.iter().enumerate() {
            let ones = if symbol == 15 { 15 } else { u32::from(*length) - 1 };
            assert_eq!(code.symbol((1 << ones) - 1), Some((symbol as u16, u32::from(*length))), "{symbol}");
        }
    }

    #[test]
    fn a_code_that_is_none_is_refused() {
        assert!(PrefixCode::new(&[1, 1, 1], false).is_err(), "more than there can be");
        assert!(PrefixCode::new(&[2, 2, 2], false).is_err(), "less than there must be");
        assert!(PrefixCode::new(&[1], false).is_err());
        assert!(PrefixCode::new(&[1], true).is_ok() && PrefixCode::new(&[0], true).is_ok());
        assert!(PrefixCode::new(&[2], true).is_err());
        assert_eq!(PrefixCode::new(&[1], true).unwrap().symbol(1), None);
    }
}
