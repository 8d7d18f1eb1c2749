//! Numbers and addresses as text, without the formatting machinery: a request that goes to an origin carries half a
//! dozen of them, and formatting was a tenth of its instructions.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};

/// Appends decimal digits.
#[inline]
pub fn write_decimal(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(decimal(&mut [0; DIGITS_MAX], value));
}

/// Digits of the largest number.
pub const DIGITS_MAX: usize = 20;

/// All numbers of two digits: a division brings two at a time.
pub const PAIRS_OF_DIGITS: [[u8; 2]; 100] = {
    let (mut pairs, mut at) = ([[0; 2]; 100], 0);
    while at < pairs.len() {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
};

/// The number's digits, at the end of the room given.
pub fn decimal(digits: &mut [u8; DIGITS_MAX], mut value: u64) -> &[u8] {
    let mut at = digits.len();
    while value >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS_OF_DIGITS[(value % 100) as usize]);
        value /= 100;
    }
    // An even number of digits ends with nothing; nothing but that is a zero of its own.
    if value > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    &digits[at..]
}

/// Appends an address as `Display` writes it.
pub fn write_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => write_v4(out, v4),
        IpAddr::V6(v6) => write!(out, "{v6}").expect("writing to a Vec cannot fail"),
    }
}

fn write_v4(out: &mut Vec<u8>, address: Ipv4Addr) {
    const LENGTH_MAX: usize = "255.255.255.255".len();
    // From the end, and in one piece: every pass and miss names its client.
    let (mut text, mut at) = ([b'.'; LENGTH_MAX + 1], LENGTH_MAX + 1);
    for octet in address.octets().into_iter().rev() {
        let mut rest = octet;
        at -= 1;
        loop {
            at -= 1;
            text[at] = b'0' + rest % 10;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
    }
    out.extend_from_slice(&text[at..LENGTH_MAX]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_written_as_display_does() {
        for value in [0, 7, 9, 10, 99, 100, 105, 999, 1_000, 1_005, 6_221, 10_000, u64::MAX] {
            let mut out = Vec::new();
            write_decimal(&mut out, value);
            assert_eq!(out, value.to_string().as_bytes());
        }
    }

    #[test]
    fn addresses_are_written_as_display_does() {
        for text in ["0.0.0.0", "9.10.99.100", "255.255.255.255", "2001:db8::1"] {
            let mut out = Vec::new();
            write_address(&mut out, text.parse().expect("an address"));
            assert_eq!(out, text.as_bytes());
        }
    }
}
