//! Which addresses are anybody's, and which are of this machine, this network or no host at all: what a forward proxy must
//! not be led to by whoever may ask it.
//!
//! By the registries of special-purpose addresses (RFC 6890 and its updates). An IPv6 address that stands for an IPv4 one
//! is what that one is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// First address and prefix length of what no public host has.
const NOT_PUBLIC_V4: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    // Carriers' own (RFC 6598).
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    // Link-local, and with it what clouds tell a machine about itself.
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    // Relays from IPv6 to IPv4 (RFC 7526).
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    // Multicast, and everything above it with the broadcast.
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
    ([255, 255, 255, 255], 32),
];

/// The same beneath 2000::/3; outside of that nothing is public.
const NOT_PUBLIC_V6: [(Ipv6Addr, u32); 6] = [
    // IETF protocols: Teredo, ORCHID, benchmarks and the rest.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
    // What was the 6bone (RFC 3701).
    (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x2001, 0x10, 0, 0, 0, 0, 0, 0), 28),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48),
];

/// Could this be a host of the public Internet?
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => match stands_for(v6) {
            Some(v4) => is_public_v4(v4),
            None => is_in(v6, Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3) && !is_special(v6),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_beneath = |(first, bits): &([u8; 4], u32)| {
        let mask = u32::MAX << (32 - bits);
        address.to_bits() & mask == Ipv4Addr::from(*first).to_bits()
    };
    !NOT_PUBLIC_V4.iter().any(is_beneath)
}

fn is_special(address: Ipv6Addr) -> bool {
    NOT_PUBLIC_V6.iter().any(|&(first, bits)| is_in(address, first, bits))
}

fn is_in(address: Ipv6Addr, first: Ipv6Addr, bits: u32) -> bool {
    let mask = u128::MAX << (128 - bits);
    address.to_bits() & mask == first.to_bits()
}

/// The IPv4 address to which a gateway would carry what is sent to this one: NAT64 (RFC 6052) and 6to4 (RFC 3056). The
/// mapped form is canonical IPv4 before it comes here.
fn stands_for(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match (a, b) {
        (0x64, 0xff9b) if (c, d, e, f) == (0, 0, 0, 0) => v4(g, h),
        (0x2002, high) => v4(high, c),
        _ => None,
    }
}

/// Is it an address of this very machine? The kernel says so: what goes there would leave from that same address. A
/// socket for datagrams that is connected sends nothing.
pub(crate) fn is_ours(address: IpAddr) -> bool {
    let any: SocketAddr = match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    // The port is of no importance, and 0 is none.
    let leaves_from = UdpSocket::bind(any).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    leaves_from.is_ok_and(|local| local.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(public: bool, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    #[test]
    fn what_is_special_is_not_public_in_any_of_its_forms() {
        check(
            false,
            &[
                "0.0.0.0",
                "0.1.2.3",
                "10.0.0.1",
                "100.64.0.1",
                "100.127.255.255",
                "127.0.0.1",
                "127.255.255.254",
                "169.254.169.254",
                "172.16.0.1",
                "172.31.255.255",
                "192.0.0.8",
                "192.0.2.1",
                "192.168.1.1",
                "198.18.0.1",
                "198.19.255.255",
                "198.51.100.7",
                "203.0.113.9",
                "224.0.0.1",
                "239.255.255.255",
                "240.0.0.1",
                "255.255.255.255",
                "::",
                "::1",
                "::ffff:127.0.0.1",
                "::ffff:10.0.0.1",
                "::127.0.0.1",
                "64:ff9b::127.0.0.1",
                "64:ff9b::10.1.2.3",
                "64:ff9b:1::1",
                "2002:7f00:1::1",
                "2002:a00:1::",
                "2002:c0a8:101::1",
                "fc00::1",
                "fdff::1",
                "fe80::1",
                "febf::1",
                "fec0::1",
                "ff02::1",
                "100::1",
                "2001::1",
                "2001:db8::1",
                "3fff::1",
                "5f00::1",
                "4000::1",
            ],
        );
    }

    #[test]
    fn what_anybody_may_have_is_public() {
        check(
            true,
            &[
                "1.1.1.1",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "128.0.0.1",
                "172.15.0.1",
                "172.32.0.1",
                "192.0.1.1",
                "193.0.0.1",
                "198.17.0.1",
                "198.20.0.1",
                "223.255.255.255",
                "::ffff:1.1.1.1",
                "64:ff9b::1.1.1.1",
                "2002:101:101::1",
                "2606:4700::1111",
                "2a00:1450::1",
                "2001:4860:4860::8888",
                "2400:cb00::1",
            ],
        );
    }

    #[test]
    fn this_machine_knows_its_own_addresses() {
        assert!(is_ours(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_ours(Ipv4Addr::new(192, 0, 2, 1).into()));
    }
}
