//! The PROXY protocol as we say it to origins that want it: who the client is, before the first byte of HTTP.
//!
//! The reading side is `proxy_protocol`, against which this one is tested.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::proxy_protocol::{V1_SIGNATURE, V2_SIGNATURE};
use crate::proxy_triples::AUTHORITY;

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
        ProxyVersion::Two => write_v2(parties, None, out),
    }
}

/// Writes a header of version 2 that says where its connection is to be led: to this address, and by TLS, if that is spoken there, to the
/// server of this name. Of whom it is for nothing is said: many requests of many clients follow. Names of more than 255 bytes are none.
pub fn write_way_header(destination: SocketAddr, authority: Option<&str>, out: &mut Vec<u8>) {
    let nobody: IpAddr = match destination.ip().to_canonical() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = SocketAddr::new(nobody, 0);
    write_v2(Some(of_one_family(Parties { source, destination })), authority, out);
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

fn write_v2(parties: Option<Parties>, authority: Option<&str>, out: &mut Vec<u8>) {
    const LOCAL: u8 = 0x20;
    const PROXY: u8 = 0x21;
    out.extend_from_slice(V2_SIGNATURE);
    let Some(Parties { source, destination }) = parties else {
        out.extend_from_slice(&[LOCAL, 0, 0, 0]);
        return;
    };
    let (family, bytes): (u8, u16) = if source.is_ipv4() { (0x11, 12) } else { (0x21, 36) };
    let authority = authority.and_then(|name| Some((name, u8::try_from(name.len()).ok()?)));
    out.extend_from_slice(&[PROXY, family]);
    out.extend_from_slice(&(bytes + authority.map_or(0, |(_, length)| 3 + u16::from(length))).to_be_bytes());
    for address in [source, destination] {
        match address.ip() {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        }
    }
    for address in [source, destination] {
        out.extend_from_slice(&address.port().to_be_bytes());
    }
    if let Some((name, length)) = authority {
        out.extend_from_slice(&[AUTHORITY, 0, length]);
        out.extend_from_slice(name.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy_triples::ProxyTriples;
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
    fn a_way_is_told_with_the_name_of_the_server() {
        for (destination, name) in [("192.0.2.7:443", Some("a.test")), ("[2001:db8::1]:8443", None)] {
            let (mut bytes, destination) = (Vec::new(), destination.parse().unwrap());
            write_way_header(destination, name, &mut bytes);
            let header = read_proxy_header(&bytes, false).unwrap().unwrap();
            assert_eq!((header.destination, header.bytes), (Some(destination), bytes.len()));
            assert!(header.source.is_some_and(|source| source.ip().is_unspecified() && source.port() == 0));
            let told = ProxyTriples::of(&bytes);
            assert_eq!(told.as_ref().and_then(|told| told.value(AUTHORITY)), name.map(str::as_bytes));
        }
        let mut bytes = Vec::new();
        write_way_header("192.0.2.7:443".parse().unwrap(), Some(&"a".repeat(256)), &mut bytes);
        assert!(read_proxy_header(&bytes, false).unwrap().is_some() && ProxyTriples::of(&bytes).is_none());
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
