//! Who may see and do what at the admin address: by the door that a request comes in at, its token, and the page that it comes from.

use std::net::{IpAddr, SocketAddr};

use message::{FieldName, FieldsView};
use proxy::is_same_secret;

use super::{Rights, is_loopback};

/// Where a request came in.
#[derive(Clone, Copy, Debug)]
pub enum Door {
    Tcp(SocketAddr),
    /// Only its owner can open it (mode 0600).
    Unix,
}

/// The UNIX socket's owner, and the bearer of the token.
pub fn may_change(fields: &FieldsView<'_>, door: Door, rights: &Rights) -> bool {
    let given = fields.get(FieldName::Authorization).and_then(|value| {
        // RFC 9110 §11.1: the scheme is a word without case.
        let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
    });
    let has_token =
        matches!((given, &rights.token), (Some(given), Some(token)) if is_same_secret(given, token.as_bytes()));
    match door {
        Door::Unix => has_token || !is_of_another_page(fields),
        Door::Tcp(_) => has_token,
    }
}

/// Is it a page of another site that asks? A UNIX socket that is carried to a port (`ssh -L`) is reached by every page that a browser shows, and
/// its owner's rights are not the page's.
fn is_of_another_page(fields: &FieldsView<'_>) -> bool {
    let strange = |site: &[u8]| !matches!(site, b"same-origin" | b"none");
    if fields.get_all_named(b"sec-fetch-site").any(strange) {
        return true;
    }
    let host = fields.get_all_named(b"host").next().unwrap_or_default();
    let is_ours = |origin: &[u8]| {
        let host_of = |scheme: &[u8]| origin.strip_prefix(scheme).is_some_and(|named| named.eq_ignore_ascii_case(host));
        host_of(b"http://") || host_of(b"https://")
    };
    !fields.get_all_named(b"origin").all(is_ours)
}

/// On loopback only names and addresses of loopback: a foreign name there is a web page that rebinds its own. A UNIX socket has no name, and takes
/// any that nobody can register: one without a dot, or an address.
pub fn host_fits(host: &[u8], door: Door) -> bool {
    if matches!(door, Door::Tcp(local) if !is_loopback(&local)) {
        return true;
    }
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    match (bare.parse::<IpAddr>(), door) {
        (Ok(address), Door::Tcp(_)) => address.to_canonical().is_loopback(),
        (Ok(_), Door::Unix) => true,
        (Err(_), Door::Tcp(_)) => host == "localhost" || host.ends_with(".localhost"),
        (Err(_), Door::Unix) => !host.contains('.') || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use message::Scheme;
    use wire::limits::HeadLimits;
    use wire::read_request;

    use super::*;

    #[test]
    fn a_page_of_another_site_has_no_rights_of_the_socket() {
        let rights = Rights { token: Some("0123456789abcdef".to_owned()), ..Rights::default() };
        let asked = |fields: &str, host: &str| {
            let head = format!("POST / HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
            let mut spans = Vec::new();
            let received =
                read_request(head.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap().unwrap();
            may_change(&received.request.fields, Door::Unix, &rights)
        };
        let here = "localhost:9180";
        assert!(asked("", here));
        assert!(asked("Origin: http://localhost:9180\r\nSec-Fetch-Site: same-origin\r\n", here));
        assert!(asked("Origin: https://LOCALHOST:9180\r\n", here));
        for strange in [
            "Origin: http://evil.test",
            "Origin: null",
            "Origin: http://localhost:9181",
            "Origin: http://localhost",
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Site: same-site",
            "Origin: http://localhost:9180\r\nSec-Fetch-Site: cross-site",
            "Origin: http://localhost:9180\r\nOrigin: http://evil.test",
        ] {
            assert!(!asked(&format!("{strange}\r\n"), here), "{strange}");
        }
        // Who has the token may, from wherever.
        assert!(asked("Origin: http://evil.test\r\nAuthorization: Bearer 0123456789abcdef\r\n", here));
    }
}
