//! Who a request came from and through whom: X-Forwarded-*, Forwarded (RFC 7239) and Via (RFC 9110 §7.6.3) as
//! pure functions over their values.
//!
//! What an untrusted peer says of itself is replaced; what a trusted one says is kept, and ours is added. Nothing
//! here knows which peers are trusted: that is a predicate.

use std::net::{IpAddr, SocketAddr};

use message::{FieldName, FieldsView, Scheme, Version, list_members, write_address};

use crate::limits::FORWARDED_HOPS_MAX;

/// The address the request came from in the end: from the right of X-Forwarded-For as far as each hop is trusted.
/// `peer` is who holds the connection.
pub fn client_address(peer: IpAddr, fields: FieldsView<'_>, trusted: impl Fn(IpAddr) -> bool) -> IpAddr {
    if !trusted(peer) {
        return peer;
    }
    let mut client = peer;
    let members = last_members(fields, FieldName::XForwardedFor);
    for member in members.iter().rev() {
        let Some(address) = node_address(member) else { break };
        client = address;
        if !trusted(address) {
            break;
        }
    }
    client
}

/// The scheme the client used. Only a trusted peer may say so (`X-Forwarded-Proto`), and of several members only the
/// last is its own word: one that appends leaves what a stranger claimed in front.
pub fn client_scheme(own: Scheme, peer_trusted: bool, fields: FieldsView<'_>) -> Scheme {
    let said = fields.members(FieldName::XForwardedProto).last().filter(|_| peer_trusted);
    match said {
        Some(text) if text.eq_ignore_ascii_case(b"https") => Scheme::Https,
        Some(text) if text.eq_ignore_ascii_case(b"http") => Scheme::Http,
        _ => own,
    }
}

/// The value of X-Forwarded-For for the origin: the peer, behind what a trusted peer sent.
pub fn write_forwarded_for(peer: IpAddr, peer_trusted: bool, fields: FieldsView<'_>, out: &mut Vec<u8>) {
    if peer_trusted {
        for member in last_members(fields, FieldName::XForwardedFor) {
            out.extend_from_slice(member);
            out.extend_from_slice(b", ");
        }
    }
    write_address(out, peer);
}

/// The value of Forwarded for the origin (RFC 7239 §4), in the same way.
pub fn write_forwarded(
    peer: IpAddr,
    peer_trusted: bool,
    fields: FieldsView<'_>,
    host: &[u8],
    scheme: Scheme,
    out: &mut Vec<u8>,
) {
    if peer_trusted {
        for member in last_members(fields, FieldName::Forwarded) {
            out.extend_from_slice(member);
            out.extend_from_slice(b", ");
        }
    }
    // §6: the brackets and colons of IPv6 need quotes.
    let (before, behind): (&[u8], &[u8]) = if peer.is_ipv6() { (b"for=\"[", b"]\"") } else { (b"for=", b"") };
    out.extend_from_slice(before);
    write_address(out, peer);
    out.extend_from_slice(behind);
    if !host.is_empty() && !host.iter().any(|b| matches!(b, b'"' | b'\\')) {
        out.extend_from_slice(b";host=\"");
        out.extend_from_slice(host);
        out.push(b'"');
    }
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(scheme.text().as_bytes());
}

/// The value of Via: ours behind those that are there (RFC 9110 §7.6.3). `received` is the version in which the
/// message reached us.
pub fn write_via(fields: FieldsView<'_>, received: Version, pseudonym: &str, out: &mut Vec<u8>) {
    for value in fields.get_all(FieldName::Via) {
        out.extend_from_slice(value);
        out.extend_from_slice(b", ");
    }
    out.extend_from_slice(received.number().as_bytes());
    out.push(b' ');
    out.extend_from_slice(pseudonym.as_bytes());
}

/// How often the message already went through us: the guard against loops counts these.
pub fn via_count(fields: FieldsView<'_>, pseudonym: &str) -> usize {
    let received_by = |member: &[u8]| {
        let mut words = member.split(|b| matches!(b, b' ' | b'\t')).filter(|word| !word.is_empty());
        words.nth(1).is_some_and(|by| by.eq_ignore_ascii_case(pseudonym.as_bytes()))
    };
    fields.members(FieldName::Via).filter(|member| received_by(member)).count()
}

/// The last members of a list field, at most the limit, in their order.
fn last_members<'a>(fields: FieldsView<'a>, name: FieldName) -> Vec<&'a [u8]> {
    let mut members: Vec<&[u8]> = fields.get_all(name).flat_map(list_members).collect();
    let surplus = members.len().saturating_sub(FORWARDED_HOPS_MAX);
    members.drain(..surplus);
    members
}

/// `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:4711`.
fn node_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fields;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Our own network: 10.0.0.0/8 and ::1.
    fn trusted(address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => v4.octets()[0] == 10,
            IpAddr::V6(v6) => v6.is_loopback(),
        }
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_ours() {
        let check = |peer: &str, value: &str, expect: &str| {
            let fields = fields(&format!("X-Forwarded-For: {value}"));
            assert_eq!(client_address(address(peer), fields.view(), trusted), address(expect), "{peer} says {value}");
        };
        check("192.0.2.1", "198.51.100.9", "192.0.2.1");
        check("10.0.0.1", "198.51.100.9", "198.51.100.9");
        check("10.0.0.1", "203.0.113.5, 198.51.100.9, 10.0.0.7", "198.51.100.9");
        check("10.0.0.1", "203.0.113.5\nX-Forwarded-For: 198.51.100.9", "198.51.100.9");
        check("10.0.0.1", "", "10.0.0.1");
        check("10.0.0.1", "junk, 10.0.0.7", "10.0.0.7");
        check("10.0.0.1", "junk", "10.0.0.1");
        check("10.0.0.1", "198.51.100.9:4711", "198.51.100.9");
        check("::1", "[2001:db8::1]:4711", "2001:db8::1");
        check("::1", "[2001:db8::1]", "2001:db8::1");
        check("::1", "2001:db8::1", "2001:db8::1");
        check("10.0.0.1", &format!("198.51.100.9{}", ",1".repeat(5000)), "10.0.0.1");
        check("10.0.0.1", &format!("198.51.100.9{}", ", 10.0.0.2".repeat(500)), "10.0.0.2");
    }

    #[test]
    fn what_a_stranger_says_is_replaced() {
        let check = |peer: &str, trusted: bool, value: &str, expect: &str| {
            let (fields, mut out) = (fields(&format!("X-Forwarded-For: {value}")), Vec::new());
            write_forwarded_for(address(peer), trusted, fields.view(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expect);
        };
        check("192.0.2.1", false, "203.0.113.5", "192.0.2.1");
        check("10.0.0.1", true, "203.0.113.5,junk", "203.0.113.5, junk, 10.0.0.1");
        check("10.0.0.1", true, "", "10.0.0.1");
    }

    /// RFC 7239 §4.
    #[test]
    fn forwarded() {
        let check = |peer: &str, trusted: bool, host: &[u8], expect: &str| {
            let (fields, mut out) = (fields("Forwarded: for=203.0.113.5;by=x"), Vec::new());
            write_forwarded(address(peer), trusted, fields.view(), host, Scheme::Https, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expect);
        };
        check("192.0.2.1", false, b"t.test:81", "for=192.0.2.1;host=\"t.test:81\";proto=https");
        check("10.0.0.1", true, b"", "for=203.0.113.5;by=x, for=10.0.0.1;proto=https");
        check("2001:db8::1", false, b"a\"b", "for=\"[2001:db8::1]\";proto=https");
    }

    #[test]
    fn only_a_trusted_peer_says_the_scheme() {
        let check = |trusted: bool, value: &str, expect: Scheme| {
            let fields = fields(&format!("X-Forwarded-Proto: {value}"));
            assert_eq!(client_scheme(Scheme::Http, trusted, fields.view()), expect, "{value}");
        };
        check(true, "HTTPS", Scheme::Https);
        check(true, "http, https", Scheme::Https);
        check(true, "https, http", Scheme::Http);
        check(false, "https", Scheme::Http);
        check(true, "gopher", Scheme::Http);
        check(true, "", Scheme::Http);
    }

    /// RFC 9110 §7.6.3.
    #[test]
    fn via_is_extended_and_counted() {
        let lines = "Via: 1.0 fred, 1.1 larder (a, \"b\")\nVia: 1.1\tLarder";
        let (fields, mut out) = (fields(lines), Vec::new());
        write_via(fields.view(), Version::Http10, "larder", &mut out);
        assert_eq!(String::from_utf8_lossy(&out), "1.0 fred, 1.1 larder (a, \"b\"), 1.1\tLarder, 1.0 larder");
        assert_eq!(via_count(fields.view(), "larder"), 2);
        assert_eq!(via_count(fields.view(), "fred"), 1);
        assert_eq!(via_count(fields.view(), "1.1"), 0);
    }
}
