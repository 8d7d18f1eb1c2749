//! To which address of its origin a request belongs: by a key of the request that addresses share out, and by the cookie of the address
//! that answered its client before, which it is told here too. Which address that is, the origin knows.

use std::net::IpAddr;

use message::{FieldName, Fields, FieldsView, Request, RequestHead};

use crate::client_identity::ClientIdentity;
use crate::origin::{Affinity, Origin, token_of};
use crate::rendezvous;
use crate::settings::HashKey;

/// Nothing is read of a request whose origin asks for nothing.
pub(super) fn of(origin: &Origin, head: &RequestHead, client: Option<ClientIdentity>) -> Affinity {
    let (key, cookie) = (origin.hash_key(), origin.sticky_cookie());
    if key.is_none() && cookie.is_none() {
        return Affinity::default();
    }
    let request = head.request();
    Affinity {
        key: key.and_then(|key| seed_of(key, &request, client.map(|client| client.ip))),
        sticks_to: cookie.and_then(|cookie| read(cookie_of(request.fields, cookie.name.as_bytes())?)),
    }
}

/// `None` where the request does not have it: it belongs to nobody then.
fn seed_of(key: &HashKey, request: &Request<'_>, client: Option<IpAddr>) -> Option<u64> {
    match key {
        HashKey::Url => {
            let mut url = Vec::with_capacity(128);
            request.authority.write_to(&mut url);
            request.write_target(&mut url);
            Some(rendezvous::seed(&url))
        }
        HashKey::Client => match client? {
            IpAddr::V4(ip) => Some(rendezvous::seed(&ip.octets())),
            IpAddr::V6(ip) => Some(rendezvous::seed(&ip.octets())),
        },
        HashKey::Cookie(name) => cookie_of(request.fields, name.as_bytes()).map(rendezvous::seed),
        HashKey::Stored(key) => Some(key.digest(request)),
        HashKey::Header(name) => request.fields.get_all_named(name.as_bytes()).next().map(rendezvous::seed),
    }
}

/// The value of the first cookie of this name.
fn cookie_of<'a>(fields: FieldsView<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let mut pairs = fields.get_all(FieldName::Cookie).flat_map(|line| line.split(|byte| *byte == b';'));
    pairs.find_map(|pair| pair.trim_ascii().strip_prefix(name)?.strip_prefix(b"="))
}

/// Tells the client of an answer that is for it alone to which address it belongs from now on, unless it knows.
pub(super) fn tell(origin: &Origin, request: &RequestHead, answered_by: &str, fields: &mut Fields) {
    let Some(cookie) = origin.sticky_cookie() else { return };
    let token = token_of(cookie, answered_by);
    let told = cookie_of(request.fields(), cookie.name.as_bytes()).and_then(read);
    if told != Some(token) {
        let line = format!("{}={token:016x}; Path=/; HttpOnly; SameSite=Lax", cookie.name);
        fields.push(FieldName::SetCookie, line);
    }
}

/// The value of a sticky cookie.
fn read(value: &[u8]) -> Option<u64> {
    let is_whole = value.len() == 16 && value.iter().all(u8::is_ascii_hexdigit);
    u64::from_str_radix(std::str::from_utf8(value).ok().filter(|_| is_whole)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::fetch_test_messages::request;

    fn seed(key: HashKey, lines: &[&str], client: &str) -> Option<u64> {
        let head = request("GET", lines);
        seed_of(&key, &head.request(), Some(client.parse().unwrap()))
    }

    #[test]
    fn a_key_is_what_it_names_and_nothing_else() {
        let url = |lines: &[&str]| seed(HashKey::Url, lines, "192.0.2.1");
        assert!(url(&[]).is_some() && url(&[]) == url(&["Cookie: a=1"]));
        let client = |client: &str| seed(HashKey::Client, &["Cookie: a=1"], client);
        assert!(client("192.0.2.1") != client("192.0.2.2") && client("192.0.2.1") != client("::1"));
        let cookie = |lines: &[&str]| seed(HashKey::Cookie("sid".to_owned()), lines, "192.0.2.1");
        assert_eq!((cookie(&[]), cookie(&["Cookie: a=1; xsid=2"])), (None, None));
        assert_eq!(cookie(&["Cookie: a=1; sid=2; b=3"]), cookie(&["Cookie: sid=2"]));
        assert_eq!(cookie(&["Cookie: a=1", "Cookie: sid=2"]), Some(rendezvous::seed(b"2")));
        let header = |lines: &[&str]| seed(HashKey::Header("X-Tenant".to_owned()), lines, "192.0.2.1");
        assert_eq!((header(&[]), header(&["x-tenant: t"])), (None, Some(rendezvous::seed(b"t"))));
    }

    #[test]
    fn a_sticky_cookie_is_sixteen_digits() {
        let token = 0x0123_4567_89ab_cdef_u64;
        assert_eq!(read(format!("{token:016x}").as_bytes()), Some(token));
        for wrong in ["", "0", "+123456789abcdef", "0123456789abcdefa", "0123456789abcdeg"] {
            assert_eq!(read(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
