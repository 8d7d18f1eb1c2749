//! Who a request came from and through whom: X-Forwarded-*, Forwarded (RFC 7239) and Via (RFC 9110 §7.6.3) as
//! pure functions over their values.
//!
//! What an untrusted peer says of itself is replaced; what a trusted one says is kept, and ours is added. Nothing
//! here knows which peers are trusted: that is a predicate.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use message::{FieldName, FieldsView, Scheme, Version, list_members, write_address};

use crate::limits::FORWARDED_HOPS_MAX;

/// The address of a sender whom nobody names in a form that can be read. No list that means somebody holds it.
pub const UNKNOWN_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Who sent a request, as far as its hops are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// For logs, limits and programs; [`UNKNOWN_ADDRESS`] where a trusted hop names nobody that can be read.
    pub address: IpAddr,
    /// May a list that lets somebody in go by the address? Not where another may stand behind it.
    pub is_vouched_for: bool,
}

impl Sender {
    /// The peer itself.
    pub const fn peer(address: IpAddr) -> Sender {
        Sender { address, is_vouched_for: true }
    }
}

/// Who sent the request: the peer, or the first hop that is not trusted, seen from the peer, in X-Forwarded-For or else in
/// Forwarded (RFC 7239).
///
/// * A hop that cannot be read hides everybody behind it: the sender is unknown.
/// * Where both fields are there X-Forwarded-For names the sender. Nobody vouches for him unless the other says the same: a
///   proxy writes one of them, and what came in the other may be a stranger's.
/// * A peer on this machine that is not trusted and yet speaks for others, as one of [`RELAY_FIELDS`] shows, is a proxy:
///   nobody vouches for whom it speaks for.
pub fn sender(peer: IpAddr, fields: FieldsView<'_>, trusted: impl Fn(IpAddr) -> bool) -> Sender {
    if !trusted(peer) {
        let is_relay = RELAY_FIELDS.iter().any(|&name| fields.contains(name));
        return Sender { address: peer, is_vouched_for: !(is_relay && peer.to_canonical().is_loopback()) };
    }
    let by = |name, read: fn(&[u8]) -> Option<IpAddr>| {
        fields.contains(name).then(|| last_untrusted(peer, fields, name, read, &trusted).unwrap_or(UNKNOWN_ADDRESS))
    };
    let x_forwarded_for = by(FieldName::XForwardedFor, node_address);
    let forwarded = by(FieldName::Forwarded, forwarded_address);
    let is_vouched_for = x_forwarded_for.is_none() || forwarded.is_none() || x_forwarded_for == forwarded;
    Sender { address: x_forwarded_for.or(forwarded).unwrap_or(peer), is_vouched_for }
}

/// What a peer adds that speaks for somebody else.
pub const RELAY_FIELDS: &[FieldName] = &[
    FieldName::XForwardedFor,
    FieldName::Forwarded,
    FieldName::Via,
    FieldName::XRealIp,
    FieldName::XForwardedProto,
    FieldName::XForwardedHost,
    FieldName::XForwardedPort,
];

/// From the right of a list of hops to the first that is not trusted. `None` when a hop on the way cannot be read, when
/// there is none, or when there are more than are looked at.
fn last_untrusted(
    peer: IpAddr,
    fields: FieldsView<'_>,
    name: FieldName,
    read: fn(&[u8]) -> Option<IpAddr>,
    trusted: &impl Fn(IpAddr) -> bool,
) -> Option<IpAddr> {
    let hops = last_members(fields, name);
    let mut client = (!hops.is_empty()).then_some(peer)?;
    for hop in hops.iter().rev() {
        client = read(hop)?;
        if !trusted(client) {
            return Some(client);
        }
    }
    (hops.len() < FORWARDED_HOPS_MAX).then_some(client)
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
    write_node(peer, out);
}

/// An address, or the word for somebody whose address nobody knows (RFC 7239 §6.2), which is what other proxies write in
/// X-Forwarded-For too.
pub fn write_node(address: IpAddr, out: &mut Vec<u8>) {
    if address == UNKNOWN_ADDRESS { out.extend_from_slice(b"unknown") } else { write_address(out, address) }
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
    write_node(peer, out);
    out.extend_from_slice(behind);
    if !host.is_empty() && !host.iter().any(|b| matches!(b, b'"' | b'\\')) {
        out.extend_from_slice(b";host=\"");
        out.extend_from_slice(host);
        out.push(b'"');
    }
    out.extend_from_slice(b";proto=");
    out.extend_from_slice(scheme.text().as_bytes());
}

/// Does an element of Forwarded (RFC 7239 §5.3) name another host than this one?
pub fn names_other_host(fields: FieldsView<'_>, host: &[u8]) -> bool {
    let is_other = |pair: &[u8]| {
        let Some(at) = pair.iter().position(|&byte| byte == b'=') else { return false };
        let (name, value) = (pair[..at].trim_ascii(), pair[at + 1..].trim_ascii());
        let value = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        name.eq_ignore_ascii_case(b"host") && !value.eq_ignore_ascii_case(host)
    };
    let elements = fields.get_all(FieldName::Forwarded).flat_map(list_members);
    elements.flat_map(|element| element.split(|&byte| byte == b';')).any(is_other)
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
pub fn node_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

/// The `for` of an element of Forwarded (RFC 7239 §4, §6); what is quoted is taken out of its quotes. A quote that does not
/// end could hide elements that a proxy has added.
fn forwarded_address(element: &[u8]) -> Option<IpAddr> {
    let (parameters, is_whole) = parameters(element);
    let mut nodes = parameters.iter().filter(|_| is_whole).filter_map(|pair| {
        let at = pair.iter().position(|&b| b == b'=')?;
        pair[..at].trim_ascii().eq_ignore_ascii_case(b"for").then(|| pair[at + 1..].trim_ascii())
    });
    // Twice is once too often: which of them counts is anybody's guess.
    let (Some(node), None) = (nodes.next(), nodes.next()) else { return None };
    match node.strip_prefix(b"\"") {
        // No address needs a backslash.
        Some(quoted) => node_address(quoted.strip_suffix(b"\"").filter(|bare| !bare.contains(&b'\\'))?),
        None => node_address(node),
    }
}

/// The parts of an element between semicolons that are not quoted, and whether every quote ends.
fn parameters(element: &[u8]) -> (Vec<&[u8]>, bool) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = element.split(|&byte| {
        let ends = byte == b';' && !is_quoted;
        is_quoted ^= byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && is_quoted && !is_escaped;
        ends
    });
    let parts = parts.collect();
    (parts, !is_quoted)
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

    const UNKNOWN: &str = "0.0.0.0";

    #[test]
    fn another_host_is_found_in_whichever_element_names_it() {
        let check = |lines: &str, expect: bool| {
            assert_eq!(names_other_host(fields(lines).view(), b"shop.example"), expect, "{lines}");
        };
        check("Accept: x", false);
        check("Forwarded: for=192.0.2.1;proto=https", false);
        check("Forwarded: for=192.0.2.1;Host=SHOP.example, host=\"shop.example\"", false);
        check("Forwarded: host=evil.example", true);
        check("Forwarded: host=shop.example\nForwarded: for=x; host = \"evil.example\"", true);
        check("Forwarded: ghost=evil.example;host", false);
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_ours() {
        let check = |peer: &str, value: &str, expect: &str| {
            let fields = fields(&format!("X-Forwarded-For: {value}"));
            let sender = sender(address(peer), fields.view(), trusted);
            assert_eq!(sender, Sender::peer(address(expect)), "{peer} says {value}");
        };
        check("192.0.2.1", "198.51.100.9", "192.0.2.1");
        check("10.0.0.1", "198.51.100.9", "198.51.100.9");
        check("10.0.0.1", "203.0.113.5, 198.51.100.9, 10.0.0.7", "198.51.100.9");
        check("10.0.0.1", "203.0.113.5\nX-Forwarded-For: 198.51.100.9", "198.51.100.9");
        check("10.0.0.1", "junk, 198.51.100.9", "198.51.100.9");
        check("10.0.0.1", "10.0.0.9, 10.0.0.7", "10.0.0.9");
        check("10.0.0.1", "198.51.100.9:4711", "198.51.100.9");
        check("10.0.0.1", "::ffff:198.51.100.9", "198.51.100.9");
        check("::1", "[2001:db8::1]:4711", "2001:db8::1");
        check("::1", "[2001:db8::1]", "2001:db8::1");
        check("::1", "2001:db8::1", "2001:db8::1");
    }

    /// A hop that cannot be read is a stranger, and so is everybody behind it.
    #[test]
    fn who_cannot_be_read_is_a_stranger() {
        let check = |lines: &str| {
            let fields = fields(lines);
            assert_eq!(sender(address("10.0.0.1"), fields.view(), trusted).address, address(UNKNOWN), "{lines}");
        };
        let unreadable = [
            "unknown",
            "_hidden",
            "\"203.0.113.9\"",
            "2001:db8::1%eth0",
            "203.0.113.009",
            "203.0.113.9, unknown",
            "",
            ",",
            "junk, 10.0.0.7",
            "203.0.113.9 x",
            "203.0.113.9:x",
            "[10.0.0.7",
            "10.0.0.7]",
            "::ffff:10.0.0.7:80:",
        ];
        for value in unreadable {
            check(&format!("X-Forwarded-For: {value}"));
        }
        for value in [
            "",
            "by=10.0.0.7",
            "for=unknown",
            "for=_hidden",
            "for=",
            "for=\"203.0.113.9",
            "for=2001:db8::1;x=\"",
            "x",
            "for=203.0.113.9;for=10.0.0.7",
            "for=203.0.113.9, for=unknown",
            "for=\"203.0.113.\\9\"",
            "for",
            "by=\";for=203.0.113.9;\"",
            "for=10.0.0.7;x=\", for=203.0.113.9;host=\"h\"",
            "\";for=203.0.113.9;\"\"",
            "x=\"\\\";for=203.0.113.9;y=\\\"\"",
        ] {
            check(&format!("Forwarded: {value}"));
        }
        check(&format!("X-Forwarded-For: 198.51.100.9{}", ",1".repeat(5000)));
        check(&format!("X-Forwarded-For: 198.51.100.9{}", ", 10.0.0.2".repeat(500)));
        check(&format!("Forwarded: for=198.51.100.9{}", ", for=10.0.0.2".repeat(500)));
    }

    /// RFC 7239 §4 and §6.
    #[test]
    fn forwarded_names_the_client_as_x_forwarded_for_does() {
        let check = |value: &str, expect: &str| {
            let fields = fields(&format!("Forwarded: {value}"));
            let sender = sender(address("10.0.0.1"), fields.view(), trusted);
            assert_eq!(sender, Sender::peer(address(expect)), "{value}");
        };
        check("for=203.0.113.9", "203.0.113.9");
        check("For=\"203.0.113.9:4711\";proto=https;by=10.0.0.1", "203.0.113.9");
        check("proto=https;for=\"[2001:db8::1]:4711\"", "2001:db8::1");
        check("for=203.0.113.5, for=198.51.100.9;host=\"a,b;for=x\", for=10.0.0.7", "198.51.100.9");
        check("for=203.0.113.5\nForwarded: for=198.51.100.9", "198.51.100.9");
    }

    #[test]
    fn nobody_vouches_for_two_fields_that_disagree() {
        let check = |x_forwarded_for: &str, forwarded: &str, expect: &str, is_vouched_for: bool| {
            let fields = fields(&format!("X-Forwarded-For: {x_forwarded_for}\nForwarded: {forwarded}"));
            let expect = Sender { address: address(expect), is_vouched_for };
            assert_eq!(sender(address("10.0.0.1"), fields.view(), trusted), expect, "{x_forwarded_for} {forwarded}");
        };
        check("203.0.113.9", "for=203.0.113.9", "203.0.113.9", true);
        check("203.0.113.9", "for=10.0.0.7", "203.0.113.9", false);
        check("10.0.0.7", "for=203.0.113.9", "10.0.0.7", false);
        check("203.0.113.9", "for=unknown", "203.0.113.9", false);
        check("unknown", "for=10.0.0.7", UNKNOWN, false);
        check("unknown", "for=unknown", UNKNOWN, true);
    }

    #[test]
    fn nobody_vouches_for_whom_a_stranger_on_this_machine_speaks_for() {
        let check = |peer: &str, lines: &str, is_vouched_for: bool| {
            let fields = fields(lines);
            let expect = Sender { address: address(peer), is_vouched_for };
            assert_eq!(sender(address(peer), fields.view(), |_| false), expect, "{peer} {lines}");
        };
        let of_relays = ["X-Forwarded-For: 203.0.113.9", "X-Forwarded-For:", "Forwarded: for=x", "Via: 1.1 hitch"];
        let of_others = ["X-Real-IP: 203.0.113.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: a"];
        for lines in of_relays.into_iter().chain(of_others) {
            check("127.0.0.1", lines, false);
            check("::1", lines, false);
            check("::ffff:127.0.0.1", lines, false);
            check("192.0.2.1", lines, true);
        }
        check("127.0.0.1", "X-Own: 203.0.113.9", true);
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
        let said = |own: Scheme, trusted: bool, value: &str| {
            client_scheme(own, trusted, fields(&format!("X-Forwarded-Proto: {value}")).view())
        };
        let check = |trusted: bool, value: &str, expect: Scheme| {
            assert_eq!(said(Scheme::Http, trusted, value), expect, "{value}");
        };
        assert_eq!(said(Scheme::Https, true, "http"), Scheme::Http);
        assert_eq!(said(Scheme::Https, true, "gopher"), Scheme::Https);
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
