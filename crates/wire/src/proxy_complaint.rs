//! What Varnish's log says of a PROXY header that is refused, or whose addresses are passed over: for who reads that log.
//!
//! Asked only when somebody wants records. It says why and decides nothing: that is `proxy_protocol`'s, and where that is
//! stricter there may be nothing to say.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::proxy_protocol::{V1_SIGNATURE, V2_HEAD_BYTES, V2_SIGNATURE, address_bytes, parse_port};

/// In Varnish's words; `None` where it has none.
pub fn proxy_complaint(header: &[u8]) -> Option<Cow<'static, str>> {
    if header.starts_with(V1_SIGNATURE) {
        return complaint_of_v1(header).map(Cow::Borrowed);
    }
    let head = header.first_chunk::<V2_HEAD_BYTES>().filter(|head| head.starts_with(V2_SIGNATURE))?;
    complaint_of_v2(head, &header[V2_HEAD_BYTES..])
}

fn complaint_of_v1(header: &[u8]) -> Option<&'static str> {
    let line_end = header.iter().position(|&byte| byte == b'\n')?;
    let line = String::from_utf8_lossy(header[..line_end].strip_suffix(b"\r")?);
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let [family, source, destination, source_port, destination_port] = words[..] else {
        return Some(if words.len() < 5 { "PROXY1: Too few fields" } else { "PROXY1: Too many fields" });
    };
    let is_address = |text: &str, port: &str| {
        let is_of_family =
            if family == "TCP4" { text.parse::<Ipv4Addr>().is_ok() } else { text.parse::<Ipv6Addr>().is_ok() };
        is_of_family && parse_port(port).is_some()
    };
    match family {
        "TCP4" | "TCP6" if !is_address(source, source_port) => Some("PROXY1: Cannot resolve source address"),
        "TCP4" | "TCP6" if !is_address(destination, destination_port) => {
            Some("PROXY1: Cannot resolve destination address")
        }
        "TCP4" | "TCP6" => None,
        _ => Some("PROXY1: Wrong TCP[46] field"),
    }
}

fn complaint_of_v2(head: &[u8; V2_HEAD_BYTES], rest: &[u8]) -> Option<Cow<'static, str>> {
    let (version, command, family) = (head[12] >> 4, head[12] & 0x0f, head[13]);
    let body_bytes = usize::from(u16::from_be_bytes([head[14], head[15]]));
    match (version, command, family) {
        (2, 0, _) => None,
        (2, 1, 0x00) => Some("PROXY2: Ignoring UNSPEC|UNSPEC addresses".into()),
        (2, 1, 0x11 | 0x21) => {
            let address_bytes = address_bytes(family).filter(|needed| *needed <= body_bytes);
            let Some(address_bytes) = address_bytes else {
                let family = if family == 0x11 { "IPv4" } else { "IPv6" };
                return Some(format!("PROXY2: Ignoring short {family} addresses ({body_bytes})").into());
            };
            complaint_of_triples(rest.get(address_bytes..body_bytes)?).map(Cow::Borrowed)
        }
        (2, 1, _) => Some(format!("PROXY2: Ignoring unsupported protocol (0x{family:02x})").into()),
        (2, ..) => Some(format!("PROXY2: bad command ({command})").into()),
        _ => Some(format!("PROXY2: bad version ({version})").into()),
    }
}

fn complaint_of_triples(mut rest: &[u8]) -> Option<&'static str> {
    while !rest.is_empty() {
        let Some((&[_, high, low], after)) = rest.split_first_chunk::<3>() else {
            return Some("PROXY2: TLV Dribble bytes");
        };
        let Some(behind) = after.get(usize::from(u16::from_be_bytes([high, low]))..) else {
            return Some("PROXY2: TLV Length Error");
        };
        rest = behind;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &[u8], expect: Option<&str>) {
        assert_eq!(proxy_complaint(header).as_deref(), expect, "{}", header.escape_ascii());
    }

    fn check_v2(command: u8, family: u8, body: &[u8], expect: Option<&str>) {
        let length = u16::try_from(body.len()).expect("short").to_be_bytes();
        check(&[V2_SIGNATURE, &[command, family], &length, body].concat(), expect);
    }

    #[test]
    fn lines_are_complained_of_by_their_first_fault() {
        check(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", None);
        check(b"PROXY TCP4 192.0.2.1", None);
        check(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n", None);
        check(b"GET / HTTP/1.1\r\n", None);
        check(b"PROXY one two three four\r\n", Some("PROXY1: Too few fields"));
        check(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n", Some("PROXY1: Too many fields"));
        check(b"PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n", Some("PROXY1: Wrong TCP[46] field"));
        check(b"PROXY TCP4 ::1 192.0.2.2 1 2\r\n", Some("PROXY1: Cannot resolve source address"));
        check(b"PROXY TCP4 192.0.2.1 192.0.2.2 x y\r\n", Some("PROXY1: Cannot resolve source address"));
        check(b"PROXY TCP6 ::1 192.0.2.2 1 2\r\n", Some("PROXY1: Cannot resolve destination address"));
    }

    #[test]
    fn so_are_headers_of_version_2() {
        check_v2(0x20, 0x99, b"", None);
        check_v2(0x21, 0x11, &[0; 12], None);
        check_v2(0x11, 0x11, &[0; 12], Some("PROXY2: bad version (1)"));
        check_v2(0x2f, 0x11, &[0; 12], Some("PROXY2: bad command (15)"));
        check_v2(0x21, 0x00, b"", Some("PROXY2: Ignoring UNSPEC|UNSPEC addresses"));
        check_v2(0x21, 0x12, &[0; 12], Some("PROXY2: Ignoring unsupported protocol (0x12)"));
        check_v2(0x21, 0x21, &[0; 12], Some("PROXY2: Ignoring short IPv6 addresses (12)"));
        check_v2(0x21, 0x11, &[0; 14], Some("PROXY2: TLV Dribble bytes"));
        check_v2(0x21, 0x11, &[1; 16], Some("PROXY2: TLV Length Error"));
        check(V2_SIGNATURE, None);
    }
}
