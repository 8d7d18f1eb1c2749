//! An entry of an ACL: an address and a mask, or a name that is looked up when the program is loaded.

use std::net::{IpAddr, Ipv4Addr};

/// An entry as it is checked.
#[derive(Clone, Debug, PartialEq)]
pub struct AclEntry {
    pub negated: bool,
    /// A name that does not resolve is passed over. Elsewhere it keeps the program from being loaded.
    pub optional: bool,
    pub network: Network,
    /// How a log shows it, where that is not by its addresses.
    pub shown: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// Addresses with these first bits; the others are zero.
    Prefix { address: IpAddr, bits: u8 },
    /// The bits, when there is a mask, count for each address of the name.
    Name { name: String, bits: Option<u8> },
}

/// Why an entry cannot be.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    MaskNotNumeric,
    MaskTwice,
    MaskTooLong { bits: u64, bits_max: u8 },
    BadName,
}

/// What an entry means, and whether bits behind its mask were set and are cleared.
pub fn network(written: &str, outside_mask: Option<u64>) -> Result<(Network, bool), Refused> {
    let (address, inside_mask) = match written.split_once('/') {
        Some((address, mask)) => (address, Some(mask.parse::<u64>().map_err(|_| Refused::MaskNotNumeric)?)),
        None => (written, None),
    };
    if inside_mask.is_some() && outside_mask.is_some() {
        return Err(Refused::MaskTwice);
    }
    let mask = inside_mask.or(outside_mask);
    let parsed = parse(address);
    let bits_max = if matches!(parsed, Some((IpAddr::V4(_), _))) { 32 } else { 128 };
    let bits = match mask {
        Some(bits) if bits > u64::from(bits_max) => return Err(Refused::MaskTooLong { bits, bits_max }),
        mask => mask.map(|bits| bits as u8),
    };
    let Some((address, bits_given)) = parsed else {
        if !is_host_name(address) {
            return Err(Refused::BadName);
        }
        return Ok((Network::Name { name: address.to_owned(), bits }, false));
    };
    let bits = bits.unwrap_or(bits_given);
    let masked = mask_of(address, bits);
    Ok((Network::Prefix { address: masked, bits }, masked != address))
}

/// An address and how many bits it gives. `"10.1"` is the beginning of one: 10.1.0.0/16.
fn parse(address: &str) -> Option<(IpAddr, u8)> {
    if let Ok(address) = address.parse::<IpAddr>() {
        return Some((address, if address.is_ipv4() { 32 } else { 128 }));
    }
    let mut octets = [0u8; 4];
    let parts: Vec<&str> = address.split('.').collect();
    if parts.len() > 4 {
        return None;
    }
    for (octet, part) in octets.iter_mut().zip(&parts) {
        *octet = part.parse().ok()?;
    }
    Some((IpAddr::V4(Ipv4Addr::from(octets)), parts.len() as u8 * 8))
}

fn mask_of(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

/// The networks around one, the next first, down to all addresses of its kind.
pub fn wider(address: IpAddr, bits: u8) -> impl Iterator<Item = (IpAddr, u8)> {
    (0..bits).rev().map(move |bits| (mask_of(address, bits), bits))
}

/// A name that could be looked up.
pub fn is_host_name(name: &str) -> bool {
    let label =
        |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    name.len() <= 253 && name.strip_suffix('.').unwrap_or(name).split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read() {
        let check = |written: &str, mask, expect: &str| {
            let shown = match network(written, mask) {
                Ok((Network::Prefix { address, bits }, cleared)) => {
                    format!("{address}/{bits}{}", if cleared { " cleared" } else { "" })
                }
                Ok((Network::Name { name, bits }, _)) => format!("{name} {bits:?}"),
                Err(why) => format!("{why:?}"),
            };
            assert_eq!(shown, expect, "{written} {mask:?}");
        };
        check("10.0.0.0", Some(8), "10.0.0.0/8");
        check("10.0.0.0/8", None, "10.0.0.0/8");
        check("10.1.2.3", Some(8), "10.0.0.0/8 cleared");
        check("10.1", None, "10.1.0.0/16");
        check("::1", None, "::1/128");
        check("2001:db8::1/32", None, "2001:db8::/32 cleared");
        check("0.0.0.0/0", None, "0.0.0.0/0");
        check("::/0", None, "::/0");
        check("localhost", None, "localhost None");
        check("localhost", Some(24), "localhost Some(24)");
        check("10.0.0.0/8", Some(8), "MaskTwice");
        check("10.0.0.0/x", None, "MaskNotNumeric");
        check("10.0.0.0", Some(33), "MaskTooLong { bits: 33, bits_max: 32 }");
        check("{{ ip }}", None, "BadName");
        check("", None, "BadName");
        check("300.1.1.1", None, "300.1.1.1 None");
    }
}
