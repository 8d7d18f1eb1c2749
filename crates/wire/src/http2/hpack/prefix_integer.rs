//! Integers of HPACK, which begin within a byte (RFC 7541 §5.1).
//!
//! What is longer than a length or an index can be is refused, whatever it would come to.

use crate::limits::HPACK_INTEGER_BYTES_MAX;

/// The integer at the start of `input`, whose first byte keeps its value in the `prefix` lowest bits, and how many
/// bytes it takes; `None` when it is not whole or too large.
#[inline]
pub fn read(input: &[u8], prefix: u32) -> Option<(usize, usize)> {
    let mask = u8::MAX >> (8 - prefix);
    let first = input.first()? & mask;
    if first < mask { Some((usize::from(first), 1)) } else { read_rest(input, mask) }
}

fn read_rest(input: &[u8], mask: u8) -> Option<(usize, usize)> {
    let mut value = u64::from(mask);
    for (at, byte) in input.iter().enumerate().skip(1).take(HPACK_INTEGER_BYTES_MAX) {
        value += u64::from(byte & 0x7f) << (7 * (at - 1));
        if byte & 0x80 == 0 {
            return Some((u32::try_from(value).ok()? as usize, at + 1));
        }
    }
    None
}

/// Appends the integer; the upper bits of its first byte are those of `pattern`.
#[inline]
pub fn write(value: usize, prefix: u32, pattern: u8, out: &mut Vec<u8>) {
    let mask = (1usize << prefix) - 1;
    if value < mask {
        return out.push(pattern | value as u8);
    }
    out.push(pattern | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541, appendix C.1.
    #[test]
    fn the_examples_of_the_rfc() {
        for (value, prefix, bytes) in
            [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a]), (31, 5, &[0x1f, 0])]
        {
            let mut out = Vec::new();
            write(value, prefix, 0, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(read(bytes, prefix), Some((value, bytes.len())));
        }
    }

    #[test]
    fn what_is_cut_off_or_too_large_is_none() {
        for bytes in [&[][..], &[0x1f], &[0x1f, 0x80], &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x80, 0], &[0xff; 12]] {
            assert_eq!(read(bytes, 5), None, "{bytes:x?}");
        }
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x0f], 8), None, "255 more than 32 bits hold");
    }
}
