//! The Huffman code of HPACK (RFC 7541 §5.2 and appendix B): read a symbol at a time from a word of bits, and written.
//!
//! The code is canonical: sorted by length and then by symbol, the codes ascend. So the lengths are all that stands
//! here, and the compiler makes the tables of them. What the octets mean is unknown here, but for the kinds that
//! [`field_octets`](super::field_octets) knows: they are gathered on the way, because each octet passes by anyway.

use super::field_octets::KINDS;

/// How many bits the code of each octet has, and of EOS, the last (RFC 7541, appendix B).
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];

const EOS: u16 = 256;
const LENGTH_MAX: usize = 30;

/// Codes of up to so many bits are found by one load; they are those of all common octets.
const SHORT_BITS: usize = 10;

/// The symbols by length and then by symbol, and for each length the first code and how many symbols stand before it.
struct Canon {
    symbols: [u16; 257],
    codes: [u32; 257],
    first_code: [u32; LENGTH_MAX + 2],
    symbols_before: [u16; LENGTH_MAX + 2],
}

static CANON: Canon = CANON_MADE;
const CANON_MADE: Canon = {
    let mut canon = Canon {
        symbols: [0; 257],
        codes: [0; 257],
        first_code: [0; LENGTH_MAX + 2],
        symbols_before: [0; LENGTH_MAX + 2],
    };
    let (mut length, mut code, mut count) = (1, 0, 0);
    while length <= LENGTH_MAX {
        canon.first_code[length] = code;
        canon.symbols_before[length] = count;
        let mut symbol = 0;
        while symbol < 257 {
            if LENGTHS[symbol] as usize == length {
                canon.symbols[count as usize] = symbol as u16;
                canon.codes[symbol] = code;
                code += 1;
                count += 1;
            }
            symbol += 1;
        }
        length += 1;
        code <<= 1;
    }
    assert!(count == 257 && code == 1 << (LENGTH_MAX + 1), "the code is complete");
    canon.symbols_before[LENGTH_MAX + 1] = count;
    canon
};

/// What the next bits begin with, in one word: a symbol, then its kinds, then its length; 0 stands for a longer code.
static SHORT: [u32; 1 << SHORT_BITS] = {
    let mut table = [0; 1 << SHORT_BITS];
    let mut symbol = 0;
    while symbol < 256 {
        let length = LENGTHS[symbol] as usize;
        if length <= SHORT_BITS {
            let spare = SHORT_BITS - length;
            let mut at = (CANON_MADE.codes[symbol] as usize) << spare;
            let end = at + (1 << spare);
            while at < end {
                table[at] = symbol as u32 | (KINDS[symbol] as u32) << 8 | (length as u32) << 16;
                at += 1;
            }
        }
        symbol += 1;
    }
    table
};

#[inline(always)]
fn short_code(bits: u64) -> u32 {
    SHORT[(bits >> (64 - SHORT_BITS)) as usize]
}

/// A code of more than [`SHORT_BITS`] at the head of these bits: symbol and length.
#[cold]
fn long_code(bits: u64) -> (u32, u32) {
    let head = (bits >> 32) as u32;
    let mut length = SHORT_BITS + 1;
    // All ones are EOS, the last code of the greatest length: the search ends there at the latest.
    loop {
        let code = head >> (32 - length);
        let count = CANON.symbols_before[length + 1] - CANON.symbols_before[length];
        let above_first = code.wrapping_sub(CANON.first_code[length]);
        if above_first < u32::from(count) || length == LENGTH_MAX {
            let place = usize::from(CANON.symbols_before[length]) + above_first as usize;
            return (u32::from(CANON.symbols.get(place).copied().unwrap_or(EOS)), length as u32);
        }
        length += 1;
    }
}

/// What no encoder writes: EOS, or padding that is longer than 7 bits or not of ones (RFC 7541 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCode;

/// Appends the octets of a coded string to `out`; says which kinds of them there are, all together.
pub fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<u8, BadCode> {
    let start = out.len();
    // The shortest code has 5 bits.
    out.resize(start + coded.len() * 8 / 5 + 1, 0);
    let room = &mut out[start..];
    let (mut input, mut window, mut bits) = (coded, 0u64, 0u32);
    let (mut count, mut kinds) = (0, 0);
    loop {
        (window, bits, input) = refill(window, bits, input);
        while bits >= SHORT_BITS as u32 {
            let short = short_code(window);
            if short == 0 {
                break;
            }
            room[count] = short as u8;
            count += 1;
            kinds |= (short >> 8) as u8;
            window <<= short >> 16;
            bits -= short >> 16;
        }
        if bits < LENGTH_MAX as u32 && !input.is_empty() {
            continue;
        }
        let Some((symbol, length)) = rare_code(window, bits) else { break };
        room[count] = symbol;
        count += 1;
        kinds |= KINDS[usize::from(symbol)];
        window <<= length;
        bits -= length;
    }
    out.truncate(start + count);
    let is_padding = input.is_empty() && bits < 8 && window.leading_ones() >= bits;
    if is_padding { Ok(kinds) } else { Err(BadCode) }
}

/// A long code, or one of the last: behind the `bits` that there are stands nothing. `None`: no symbol is left.
fn rare_code(window: u64, bits: u32) -> Option<(u8, u32)> {
    let short = short_code(window);
    let (symbol, length) = match short >> 16 {
        0 if bits <= SHORT_BITS as u32 => return None,
        0 => long_code(window),
        length => (short & 0xff, length),
    };
    // What stands behind the end may have been taken for a part of the code.
    (length <= bits).then_some((u8::try_from(symbol).ok()?, length))
}

/// Fills the window from its left until it holds the longest code, or all that there is.
#[inline(always)]
fn refill(window: u64, bits: u32, input: &[u8]) -> (u64, u32, &[u8]) {
    if bits >= LENGTH_MAX as u32 {
        return (window, bits, input);
    }
    if let Some((four, rest)) = input.split_first_chunk::<4>() {
        return (window | u64::from(u32::from_be_bytes(*four)) << (32 - bits), bits + 32, rest);
    }
    let last = input.iter().fold((window, bits), |(w, n), byte| (w | u64::from(*byte) << (56 - n), n + 8));
    (last.0, last.1, &[])
}

/// How many bytes the coded string takes.
pub fn coded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|octet| usize::from(LENGTHS[usize::from(*octet)])).sum();
    bits.div_ceil(8)
}

/// Appends the coded string.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut bits) = (0u64, 0u32);
    for octet in text {
        let length = u32::from(LENGTHS[usize::from(*octet)]);
        window = window << length | u64::from(CANON.codes[usize::from(*octet)]);
        bits += length;
        while bits >= 8 {
            bits -= 8;
            out.push((window >> bits) as u8);
        }
    }
    if bits > 0 {
        out.push((window << (8 - bits)) as u8 | (0xff >> bits));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http2::hpack::field_octets::{NOT_IN_NAME, NOT_IN_VALUE};

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        decode(coded, &mut out).ok()?;
        Some(out.split_off(6))
    }

    /// RFC 7541, appendix C.4 and C.6.
    #[test]
    fn the_examples_of_the_rfc() {
        let rows: [(&[u8], &[u8]); 5] = [
            (b"www.example.com", &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff]),
            (b"no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            (b"custom-key", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f]),
            (b"302", &[0x64, 0x02]),
            (b"private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
        ];
        for (text, coded) in rows {
            let mut out = Vec::new();
            encode(text, &mut out);
            assert_eq!(out, coded);
            assert_eq!(coded_len(text), coded.len());
            assert_eq!(decoded(coded).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_no_encoder_writes_is_refused() {
        let rows: [&[u8]; 6] = [
            &[0xff, 0xff, 0xff, 0xff],             // EOS
            &[0xff],                               // a whole byte of padding
            &[0x1f, 0xff],                         // '0' is 00000: eleven bits of padding
            &[0x00],                               // three bits of zeros behind a symbol
            &[0xff, 0xff, 0xff],                   // 24 bits of padding
            &[0x07, 0xff, 0xff, 0xff, 0xff, 0xff], // EOS behind a symbol
        ];
        for coded in rows {
            assert_eq!(decoded(coded), None, "{coded:x?}");
        }
        assert_eq!(decoded(&[]), Some(vec![]));
        assert_eq!(decoded(&[0x07]), Some(b"0".to_vec()));
    }

    #[test]
    fn the_kinds_of_octets_are_gathered() {
        for (text, kinds) in [
            (&b"abc-1"[..], 0),
            (b"aBc", NOT_IN_NAME),
            (b"a b", NOT_IN_NAME),
            (b"a\nb", NOT_IN_NAME | NOT_IN_VALUE),
            (b"\xff", NOT_IN_NAME),
        ] {
            let mut coded = Vec::new();
            encode(text, &mut coded);
            assert_eq!(decode(&coded, &mut Vec::new()), Ok(kinds), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_octets_come_back(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut coded = Vec::new();
            encode(&text, &mut coded);
            prop_assert_eq!(coded.len(), coded_len(&text));
            prop_assert_eq!(decoded(&coded), Some(text));
        }

        #[test]
        fn no_input_panics_and_what_is_read_is_the_only_spelling(coded in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(text) = decoded(&coded) {
                let mut again = Vec::new();
                encode(&text, &mut again);
                prop_assert_eq!(again, coded);
            }
        }
    }
}
