//! The PROXY protocol as we say it to origins that want it: who the client is, before the first byte of HTTP.
//!
//! The reading side is `proxy_protocol`, against which this one is tested.

use std::net::{IpAddr, SocketAddr};

use crate::proxy_protocol::{V1_SIGNATURE, V2_SIGNATURE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// A line of text.
    One,
    /// Binary.
    Two,
}

/// Client and the address that it connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parties {
    pub source: SocketAddr,
    pub destination: SocketAddr,
}

/// Writes the header. Without parties it says that the connection is ours, or a UNIX socket's.
pub fn write_proxy_header(version: ProxyVersion, parties: Option<Parties>, out: &mut Vec<u8>) {
    let parties = parties.map(of_one_family);
    match version {
        ProxyVersion::One => write_v1(parties, out),
        ProxyVersion::Two => write_v2(parties, out),
    }
}

/// A header has one family for both; an IPv4 address has a form in IPv6.
fn of_one_family(parties: Parties) -> Parties {
    let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let (source, destination) = (plain(parties.source), plain(parties.destination));
    let wide = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    if source.is_ipv4() == destination.is_ipv4() {
        return Parties { source, destination };
    }
    Parties { source: wide(source), destination: wide(destination) }
}

fn write_v1(parties: Option<Parties>, out: &mut Vec<u8>) {
    let line = match parties {
        None => "UNKNOWN\r\n".to_owned(),
        Some(Parties { source, destination }) => {
            let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
            format!("{family} {} {} {} {}\r\n", source.ip(), destination.ip(), source.port(), destination.port())
        }
    };
    out.extend_from_slice(V1_SIGNATURE);
    out.extend_from_slice(line.as_bytes());
}

fn write_v2(parties: Option<Parties>, out: &mut Vec<u8>) {
    const LOCAL: u8 = 0x20;
    const PROXY: u8 = 0x21;
    out.extend_from_slice(V2_SIGNATURE);
    let Some(Parties { source, destination }) = parties else {
        out.extend_from_slice(&[LOCAL, 0, 0, 0]);
        return;
    };
    let (family, bytes): (u8, u16) = if source.is_ipv4() { (0x11, 12) } else { (0x21, 36) };
    out.extend_from_slice(&[PROXY, family]);
    out.extend_from_slice(&bytes.to_be_bytes());
    for address in [source, destination] {
        match address.ip() {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        }
    }
    for address in [source, destination] {
        out.extend_from_slice(&address.port().to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_proxy_header;

    /// What is written is read again as it was meant.
    fn check(parties: Option<(&str, &str)>, expect: Option<(&str, &str)>) {
        let pair = |(a, b): (&str, &str)| Parties { source: a.parse().unwrap(), destination: b.parse().unwrap() };
        for version in [ProxyVersion::One, ProxyVersion::Two] {
            let mut bytes = Vec::new();
            write_proxy_header(version, parties.map(pair), &mut bytes);
            let header = read_proxy_header(&bytes, false).unwrap().unwrap();
            let got = header.source.zip(header.destination);
            assert_eq!(got, expect.map(pair).map(|p| (p.source, p.destination)), "{version:?}");
            assert_eq!(header.bytes, bytes.len(), "{version:?}");
        }
    }

    #[test]
    fn the_header_says_who_asked_whom() {
        let same = |parties| check(Some(parties), Some(parties));
        same(("192.0.2.7:1024", "198.51.100.1:80"));
        same(("[2001:db8::7]:65535", "[2001:db8::1]:0"));
        check(Some(("192.0.2.7:1", "[2001:db8::1]:2")), Some(("[::ffff:192.0.2.7]:1", "[2001:db8::1]:2")));
        check(Some(("[::ffff:192.0.2.7]:1", "192.0.2.8:2")), Some(("192.0.2.7:1", "192.0.2.8:2")));
        check(None, None);
    }
}
