//! The PROXY protocol, versions 1 and 2: who the client is, said by a proxy in front of us.
//!
//! Read before the first byte of HTTP on listeners that are set for it, and then it must be there. The caller
//! decides whether it trusts the peer; a refusal here means: close without an answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::limits::{PROXY_V1_BYTES_MAX, PROXY_V2_BODY_BYTES_MAX};
use crate::{Refusal, refusals};

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// The proxy speaks for itself (`LOCAL`, as in a health check): the addresses are those of the connection.
    pub is_local: bool,
    /// Absent where the proxy speaks for a client whose address it does not tell (`UNKNOWN`, `UNSPEC`, a UNIX socket).
    pub source: Option<SocketAddr>,
    pub destination: Option<SocketAddr>,
    /// HTTP begins here.
    pub bytes: usize,
}

pub(crate) const V1_SIGNATURE: &[u8] = b"PROXY ";
pub(crate) const V2_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
pub(crate) const V2_HEAD_BYTES: usize = 16;

/// Reads the header at the start of `buf`; `None` when it is not complete. `lenient`: addresses of version 2 that are of no
/// kind that is known, or too short, are passed over, as Varnish does it.
pub fn read_proxy_header(buf: &[u8], lenient: bool) -> Result<Option<ProxyHeader>, Refusal> {
    if begins_like(buf, V1_SIGNATURE) {
        return read_v1(buf);
    }
    if begins_like(buf, V2_SIGNATURE) {
        return read_v2(buf, lenient);
    }
    Err(refusals::PROXY_HEADER_MISSING)
}

fn begins_like(buf: &[u8], signature: &[u8]) -> bool {
    buf.iter().zip(signature).all(|(a, b)| a == b)
}

fn read_v1(buf: &[u8]) -> Result<Option<ProxyHeader>, Refusal> {
    let window = &buf[..buf.len().min(PROXY_V1_BYTES_MAX)];
    let Some(line_end) = window.iter().position(|&b| b == b'\n') else {
        return if buf.len() < PROXY_V1_BYTES_MAX { Ok(None) } else { Err(refusals::PROXY_HEADER_TOO_LARGE) };
    };
    let line = window[..line_end].strip_suffix(b"\r").ok_or(refusals::PROXY_HEADER_INVALID)?;
    let line = std::str::from_utf8(line).map_err(|_| refusals::PROXY_HEADER_INVALID)?;
    let bytes = line_end + 1;
    let mut words = line.split(' ').skip(1);
    let family = words.next();
    if family == Some("UNKNOWN") {
        return Ok(Some(ProxyHeader { is_local: false, source: None, destination: None, bytes }));
    }
    let mut address = || -> Option<IpAddr> {
        let text = words.next()?;
        match family? {
            "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let (source, destination) = (address(), address());
    let mut port = || parse_port(words.next()?);
    let (source_port, destination_port) = (port(), port());
    match (source, destination, source_port, destination_port, words.next()) {
        (Some(source), Some(destination), Some(source_port), Some(destination_port), None) => Ok(Some(ProxyHeader {
            is_local: false,
            source: Some(SocketAddr::new(source, source_port)),
            destination: Some(SocketAddr::new(destination, destination_port)),
            bytes,
        })),
        _ => Err(refusals::PROXY_HEADER_INVALID),
    }
}

/// Decimal, without leading zeros, as the specification wants it.
pub(crate) fn parse_port(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

fn read_v2(buf: &[u8], lenient: bool) -> Result<Option<ProxyHeader>, Refusal> {
    let Some((head, rest)) = buf.split_first_chunk::<V2_HEAD_BYTES>() else { return Ok(None) };
    let body_bytes = usize::from(u16::from_be_bytes([head[14], head[15]]));
    let is_proxied = match head[12] {
        0x20 => false,
        0x21 => true,
        _ => return Err(refusals::PROXY_HEADER_INVALID),
    };
    if body_bytes > PROXY_V2_BODY_BYTES_MAX {
        return Err(refusals::PROXY_HEADER_TOO_LARGE);
    }
    let fits = |address_bytes: &usize| !is_proxied || *address_bytes <= body_bytes;
    let address_bytes = address_bytes(head[13]).filter(fits);
    if address_bytes.is_none() && !lenient {
        return Err(refusals::PROXY_HEADER_INVALID);
    }
    let Some(body) = rest.get(..body_bytes) else { return Ok(None) };
    let bytes = V2_HEAD_BYTES + body_bytes;
    let Some(address_bytes) = address_bytes.filter(|_| is_proxied) else {
        return Ok(Some(ProxyHeader { is_local: !is_proxied, source: None, destination: None, bytes }));
    };
    let (addresses, triples) = body.split_at(address_bytes);
    check_triples(triples)?;
    let (source, destination) = match head[13] {
        0x11 => (v4_address(addresses, 0, 8), v4_address(addresses, 4, 10)),
        0x21 => (v6_address(addresses, 0, 32), v6_address(addresses, 16, 34)),
        _ => (None, None),
    };
    Ok(Some(ProxyHeader { is_local: false, source, destination, bytes }))
}

/// How long the addresses of a family are. Datagrams do not come over a stream, and no other family is defined.
pub(crate) fn address_bytes(family: u8) -> Option<usize> {
    match family {
        0x00 => Some(0),
        0x11 => Some(12),
        0x21 => Some(36),
        0x31 => Some(216),
        _ => None,
    }
}

fn v4_address(addresses: &[u8], at: usize, port_at: usize) -> Option<SocketAddr> {
    let octets: [u8; 4] = addresses.get(at..at + 4)?.try_into().ok()?;
    Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(octets)), be_port(addresses, port_at)?))
}

fn v6_address(addresses: &[u8], at: usize, port_at: usize) -> Option<SocketAddr> {
    let octets: [u8; 16] = addresses.get(at..at + 16)?.try_into().ok()?;
    Some(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(octets)), be_port(addresses, port_at)?))
}

fn be_port(addresses: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(addresses.get(at..at + 2)?.try_into().ok()?))
}

/// Type-length-value triples must fill what is left exactly; `proxy_triples.rs` reads them.
fn check_triples(mut rest: &[u8]) -> Result<(), Refusal> {
    while !rest.is_empty() {
        let Some((&[_, high, low], after)) = rest.split_first_chunk::<3>() else {
            return Err(refusals::PROXY_HEADER_INVALID);
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        rest = after.get(length..).ok_or(refusals::PROXY_HEADER_INVALID)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "proxy_protocol_tests.rs"]
mod tests;
