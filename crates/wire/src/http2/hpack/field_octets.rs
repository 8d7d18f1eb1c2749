//! Which octets may stand in a field's name and value (RFC 9113 §8.2.1), as a bit each.
//!
//! Gathered while strings are decoded, judged where a head is. The same octets pass as in HTTP/1: what passes here
//! is written there.

use crate::connection_options::is_token_byte;

/// No octet of a lower-case token.
pub const NOT_IN_NAME: u8 = 1;
/// A control character other than the tabulator.
pub const NOT_IN_VALUE: u8 = 2;

pub static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut at = 0;
    while at < 256 {
        let octet = at as u8;
        if !is_token_byte(octet) || octet.is_ascii_uppercase() {
            kinds[at] |= NOT_IN_NAME;
        }
        if octet != b'\t' && octet.is_ascii_control() {
            kinds[at] |= NOT_IN_VALUE;
        }
        at += 1;
    }
    kinds
};

/// The kinds of all of them.
#[inline]
pub fn kinds_of(text: &[u8]) -> u8 {
    text.iter().fold(0, |kinds, octet| kinds | KINDS[usize::from(*octet)])
}
