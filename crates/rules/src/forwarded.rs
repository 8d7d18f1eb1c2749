//! Who a request came from and through whom: X-Forwarded-*, Forwarded (RFC 7239) and Via (RFC 9110 §7.6.3) as
//! pure functions over their values.
//!
//! What an untrusted peer says of itself is replaced; what a trusted one says is kept, and ours is added. Nothing
//! here knows which peers are trusted: that is a predicate.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use message::{FieldName, FieldsView, Scheme, Version, list_members};

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

/// The scheme the client used. Only a trusted peer may say so (`X-Forwarded-Proto`).
pub fn client_scheme(own: Scheme, peer_trusted: bool, fields: FieldsView<'_>) -> Scheme {
    let said = fields.members(FieldName::XForwardedProto).next().filter(|_| peer_trusted);
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
    put(out, format_args!("{peer}"));
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
    match peer {
        IpAddr::V4(v4) => put(out, format_args!("for={v4}")),
        // §6: the brackets and colons of IPv6 need quotes.
        IpAddr::V6(v6) => put(out, format_args!("for=\"[{v6}]\"")),
    }
    if !host.is_empty() && !host.iter().any(|b| matches!(b, b'"' | b'\\')) {
        out.extend_from_slice(b";host=\"");
        out.extend_from_slice(host);
        out.push(b'"');
    }
    put(out, format_args!(";proto={}", scheme.text()));
}

/// The value of Via: ours behind those that are there (RFC 9110 §7.6.3). `received` is the version in which the
/// message reached us.
pub fn write_via(fields: FieldsView<'_>, received: Version, pseudonym: &str, out: &mut Vec<u8>) {
    for value in fields.get_all(FieldName::Via) {
        out.extend_from_slice(value);
        out.extend_from_slice(b", ");
    }
    put(out, format_args!("{} {pseudonym}", received.number()));
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

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a Vec cannot fail");
}
